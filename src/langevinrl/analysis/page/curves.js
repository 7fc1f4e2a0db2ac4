// Learning curves: a panel per task with mean and band over seeds.
for (const curve of DATA.curves) {
  for (const seed of curve.series) {
    seed.iterations = DATA.grids[seed.i];
    seed.steps = DATA.grids[seed.e];
    seed.hours = seed.h;
    seed.returns = seed.r;
  }
}

const curveOf = (method, task) =>
  DATA.curves.find((curve) => curve.method === method && curve.task === task);

const selectedSeeds = (curve) =>
  (curve ? curve.series.filter((s) => state.seeds.has(s.seed) && s.iterations.length) : []);

// Mean over the selected seeds at the points of the shortest one; the others are interpolated.
// On both axes a point is a mean over the same seeds.
function meanCurve(curve) {
  const seeds = selectedSeeds(curve);
  const out = { xs: [], ys: [], low: [], high: [], count: seeds.length, seeds };
  if (!seeds.length) return out;
  const start = Math.max(...seeds.map((s) => s.iterations[0]));
  const first = seeds.reduce((a, b) => (b.iterations.at(-1) < a.iterations.at(-1) ? b : a));
  for (const at of first.iterations) {
    if (at < start) continue;
    const values = seeds.map((s) => valueAt(s.iterations, s.returns, at)).filter(isNumber);
    const places = seeds.map((s) => valueAt(s.iterations, s[state.axis], at)).filter(isNumber);
    if (values.length < seeds.length || places.length < seeds.length) continue;
    const centre = mean(values), sd = deviation(values);
    out.xs.push(mean(places));
    out.ys.push(centre);
    out.low.push(state.band === "range" ? Math.min(...values) : centre - sd);
    out.high.push(state.band === "range" ? Math.max(...values) : centre + sd);
  }
  return out;
}

function curveSpec(task) {
  const lines = [];
  for (const at of shownMethods()) {
    const curve = curveOf(at, task), found = meanCurve(curve);
    if (!found.xs.length) continue;
    const banded = state.band !== "none" && found.count > 1;
    lines.push(lineOf(at, { xs: found.xs, ys: found.ys, low: banded ? found.low : null,
      high: banded ? found.high : null, thin: state.single
        ? found.seeds.map((s) => ({ xs: s[state.axis], ys: s.returns })) : [] }));
  }
  const here = DATA.curves.filter((c) => c.task === task && state.methods.has(c.method));
  const empty = !here.length ? "No method selected" : here.some((c) => selectedSeeds(c).length)
    ? "Not logged on this axis" : "No seed selected";
  return { title: DATA.tasks[task], xLabel: AXES[state.axis].label, yLabel: "Return", lines,
    empty };
}

// What is shown, as a tidy table: a row per method, task, seed and evaluation.
function tidyRows(tasks = [...DATA.tasks.keys()]) {
  const rows = [];
  for (const task of tasks) for (const at of shownMethods())
    for (const s of selectedSeeds(curveOf(at, task))) s.iterations.forEach((i, k) =>
      rows.push([DATA.methods[at].label, DATA.tasks[task], s.seed, i, s.steps[k],
        s.hours[k], s.returns[k]]));
  return { rows, columns: ["method", "task", "seed", "iterations", "env_steps", "hours", "return"] };
}

function panelOf(task) {
  const name = DATA.tasks[task], height = (width) => (state.wide.has(task) ? 420
    : Math.round(Math.max(236, Math.min(340, width * 0.5))));
  const enlarge = tool("⤢", `Enlarge ${name}`, () => {
    const wide = !state.wide.delete(task) && state.wide.add(task);
    node.classList.toggle("wide", Boolean(wide));
    enlarge.setAttribute("aria-pressed", String(Boolean(wide)));
    requestAnimationFrame(() => refresh());
  });
  enlarge.setAttribute("aria-pressed", "false");
  const node = figureOf({
    title: name, height: 236, reader: true, tools: [enlarge],
    make: (width, look) => {
      const spec = curveSpec(task);
      return { spec, methods: spec.lines.map((line) => line.method),
        picture: drawChart(spec, width, height(width), look) };
    },
  });
  node.classList.add("panel");
  node.dataset.task = name;
  return node;
}

// ---- final returns ----
// Mean and standard deviation over finished seeds, as in the tables beside the page.
const finalCell = (at, task) =>
  DATA.finals.find((cell) => cell.method === at && cell.task === task) ?? null;

const finalText = (cell) =>
  show(cell.mean) + (isNumber(cell.sd) ? ` ± ${show(cell.sd, placesOf(cell.mean))}` : "");

function finalTable() {
  const cells = shownMethods().map((at) => [at, [...DATA.tasks.keys()].map((t) => finalCell(at, t))]);
  const best = DATA.tasks.map((_, t) => Math.max(...cells.map(([, row]) => row[t]?.mean ?? -Infinity)));
  return {
    caption: "Return at the end of training",
    columns: ["Method", ...DATA.tasks],
    rows: cells.map(([at, row]) => [DATA.methods[at].label, ...row.map((cell, t) => (cell
      ? { number: true, value: cell.mean, strong: cells.length > 1 && cell.mean === best[t],
        text: finalText(cell) }
      : { number: true, value: null, text: "–" }))]),
  };
}

function finalsCsv() {
  const rows = [];
  for (const at of shownMethods()) DATA.tasks.forEach((task, t) => {
    const cell = finalCell(at, t);
    if (cell) rows.push([DATA.methods[at].label, task, cell.seeds, cell.mean, cell.sd]);
  });
  return { columns: ["method", "task", "seeds", "mean", "sd"], rows };
}

function curvesSection() {
  if (!DATA.curves.some((curve) => curve.series.some((s) => s.i !== null && s.r.length)))
    return section("curves", "Learning curves", null, absent("No evaluation has been logged yet."));
  const finals = el("div");
  const part = section("curves", "Learning curves",
    "Mean return over the selected seeds, up to the shortest one; the band shows their standard " +
    "deviation or range. Point at a panel, or focus it and use the arrow keys, to read values.",
    el("p", { class: "saves" }, tool("All curves as CSV", "Save every shown point as tidy CSV",
      () => save("curves.csv", csvOf(tidyRows()), "text/csv"))),
    el("div", { class: "panels" }, DATA.tasks.map((_, task) => panelOf(task))),
    el("div", { class: "head" }, el("h3", {}, "Final return"), el("div", { class: "tools" },
      tool("CSV", "Save the final returns as CSV",
        () => save("final-returns.csv", csvOf(finalsCsv()), "text/csv")))),
    el("p", { class: "note" }, "At the end of training: mean ± standard deviation over all seeds " +
      "that finished. The highest mean of each task is bold; this is not a significance test."),
    finals);
  addView(finals, () => finals.replaceChildren(tableOf(finalTable())));
  return part;
}
