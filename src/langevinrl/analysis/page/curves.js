// Learning curves: from the seeds' points to a mean with its band, a panel per task.
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

const chosenSeeds = (curve) =>
  (curve ? curve.series.filter((s) => state.seeds.has(s.seed) && s.iterations.length) : []);

// The mean over the chosen seeds where all of them have been: on the points of the one that ended
// first, the others read between their points.  Both axes are means over the same seeds.
function meanCurve(curve, axis = state.axis) {
  const seeds = chosenSeeds(curve);
  const out = { xs: [], ys: [], low: [], high: [], sd: [], at: [], count: seeds.length, seeds };
  if (!seeds.length) return out;
  const start = Math.max(...seeds.map((s) => s.iterations[0]));
  const first = seeds.reduce((a, b) => (b.iterations.at(-1) < a.iterations.at(-1) ? b : a));
  for (const at of first.iterations) {
    if (at < start) continue;
    const values = seeds.map((s) => valueAt(s.iterations, s.returns, at)).filter(isNumber);
    const places = seeds.map((s) => valueAt(s.iterations, s[axis], at)).filter(isNumber);
    if (values.length < seeds.length || places.length < seeds.length) continue;
    const centre = mean(values), sd = deviation(values);
    out.at.push(at);
    out.xs.push(mean(places));
    out.ys.push(centre);
    out.sd.push(sd);
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
  const empty = !here.length ? "No method chosen" : here.some((c) => chosenSeeds(c).length)
    ? "Not logged on this axis" : "No seed chosen";
  return { title: DATA.tasks[task].name, xLabel: AXES[state.axis].label, yLabel: "Return", lines,
    empty };
}

// The tidy table of what is shown: a row per method, task, seed and evaluation.
function tidyRows(tasks = [...DATA.tasks.keys()]) {
  const rows = [];
  for (const task of tasks) for (const at of shownMethods())
    for (const s of chosenSeeds(curveOf(at, task))) s.iterations.forEach((i, k) =>
      rows.push([DATA.methods[at].label, DATA.tasks[task].name, s.seed, i, s.steps[k],
        s.hours[k], s.returns[k]]));
  return { rows, columns: ["method", "task", "seed", "iterations", "env_steps", "hours", "return"] };
}

function panelOf(task) {
  const name = DATA.tasks[task].name, height = (width) => (state.wide.has(task) ? 420
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
function finalCell(at, task) {
  const found = meanCurve(curveOf(at, task), "iterations");
  if (!found.ys.length) return null;
  return { mean: found.ys.at(-1), sd: found.sd.at(-1), count: found.count, at: found.at.at(-1) };
}

function finalTable() {
  const cells = shownMethods().map((at) => [at, [...DATA.tasks.keys()].map((t) => finalCell(at, t))]);
  const best = DATA.tasks.map((_, t) => Math.max(...cells.map(([, row]) => row[t]?.mean ?? -Infinity)));
  return {
    caption: "Return at the last evaluation that all chosen seeds reached",
    columns: ["Method", ...DATA.tasks.map((task) => task.name)],
    rows: cells.map(([at, row]) => [DATA.methods[at].label, ...row.map((cell, t) => (cell
      ? { number: true, value: cell.mean, strong: cells.length > 1 && cell.mean === best[t],
        text: show(cell.mean) + (cell.count > 1 ? ` ± ${show(cell.sd, placesOf(cell.mean))}` : "") }
      : { number: true, value: null, text: "–" }))]),
  };
}

function finalsCsv() {
  const rows = [];
  for (const at of shownMethods()) DATA.tasks.forEach((task, t) => {
    const cell = finalCell(at, t);
    if (cell) rows.push([DATA.methods[at].label, task.name, cell.at, cell.count, cell.mean, cell.sd]);
  });
  return { columns: ["method", "task", "iterations", "seeds", "mean", "sd"], rows };
}

function curvesSection() {
  if (!DATA.curves.some((curve) => curve.series.some((s) => s.i !== null && s.r.length)))
    return section("curves", "Learning curves", null, absent("No evaluation has been logged yet."));
  const finals = el("div");
  const part = section("curves", "Learning curves",
    "Mean return over the chosen seeds, where all of them have been; the band is their spread. " +
    "Point at a panel, or focus it and use the arrow keys, to read values.",
    el("p", { class: "saves" }, tool("All curves as CSV", "Save every shown point as tidy CSV",
      () => save("curves.csv", csvOf(tidyRows()), "text/csv"))),
    el("div", { class: "panels" }, DATA.tasks.map((_, task) => panelOf(task))),
    el("div", { class: "head" }, el("h3", {}, "Final return"), el("div", { class: "tools" },
      tool("CSV", "Save the final returns as CSV",
        () => save("final-returns.csv", csvOf(finalsCsv()), "text/csv")))),
    el("p", { class: "note" }, "At the last evaluation that all chosen seeds reached: mean ± " +
      "standard deviation over seeds; the highest mean of each task is bold, which is no test."),
    finals);
  addView(finals, () => finals.replaceChildren(tableOf(finalTable())));
  return part;
}
