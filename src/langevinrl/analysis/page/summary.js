// Sections over all tasks: normalised curve, progress table, metrics, profiles, pairs.
// An estimate is [value, low, high]; scores are shown x 100.
const FOUND = DATA.aggregates;
const METRICS = { mean: "Mean", median: "Median", IQM: "Interquartile mean",
  "optimality gap": "Optimality gap" };
const methodAt = (name) => DATA.methods.findIndex((method) => method.label === name);
const percent = (x) => (isNumber(x) ? 100 * x : null);
const compared = () => FOUND.methods.filter((one) => state.methods.has(methodAt(one.label)));
const banded = (values) => (state.band === "none" ? null : values);

function normalisedCurve() {
  const rows = () => compared().filter((one) => one.curve).map((one) => {
    const [ys, low, high] = one.curve.mean.map((values) => values.map(percent));
    return { at: methodAt(one.label), xs: one.curve.progress, ys, low, high };
  });
  const spec = () => ({ title: "Normalised return over all tasks", xLabel: "Share of training",
    yLabel: "Normalised return × 100", digits: 1, xRange: [0, 1], xShow: (x) => `${show(100 * x, 0)} %`,
    lines: rows().map(({ at, xs, ys, low, high }) =>
      lineOf(at, { xs, ys, low: banded(low), high: banded(high) })) });
  return chartFigure(spec, 320, () => ({
    columns: ["Method", "Share of training", "Mean", "Low", "High"],
    rows: rows().flatMap(({ at, xs, ys, low, high }) => xs.map((x, k) =>
      [DATA.methods[at].label, x, ys[k], low[k], high[k]])) }));
}

function notesList() {
  const list = el("ul", { class: "note" }, DATA.notes.map((text) => el("li", {}, text)));
  if (DATA.notes.length <= 3) return DATA.notes.length ? list : null;
  return el("details", { class: "numbers" },
    el("summary", {}, `Left out or uneven: ${DATA.notes.length} notes`), list);
}

function scaleTable() {
  return el("details", { class: "numbers" }, el("summary", {}, "Returns scored 0 and 100 on each task"),
    tableOf({ caption: "Returns scored 0 and 100", columns: ["Task", "Scored 0", "Scored 100"],
      rows: FOUND.tasks.map((task) => [task, ...FOUND.normalisation.bounds[task]]) }));
}

// A figure of lines with a crosshair.
function chartFigure(spec, height, numbers) {
  return figureOf({ title: spec().title, height, numbers, reader: true, make: (width, look) => {
    const now = spec();
    return { spec: now, methods: now.lines.map((line) => line.method),
      picture: drawChart(now, width, height, look) };
  } });
}

// ---- the paper's table beside ours ----
function progressTable() {
  const { progress, values, plusMinus } = DATA.paper;
  const ours = compared().map((one) => [one, one.progress.map(([value]) => percent(value))]);
  const best = progress.map((_, k) => Math.max(...ours.map(([, row]) => row[k] ?? -Infinity)));
  const cells = (row, bold) => row.map((x, k) => ({ number: true, value: x, text: show(x, 1),
    strong: bold && x === best[k] }));
  const columns = ["Method", "Source", ...progress.map((part) => show(part, 1)), "at 1.0"];
  const lines = [];
  for (const [one, row] of ours) {
    const [low, high] = one.progress.at(-1).slice(1).map(percent);
    const interval = isNumber(low) ? `${show(low, 1)} to ${show(high, 1)}` : "–";
    lines.push([one.label, "here", ...cells(row, true), { number: true, text: interval }]);
    if (values[one.agent]) lines.push(["", "paper", ...cells(values[one.agent], false),
      { number: true, text: `± ${show(plusMinus[one.agent], 1)}` }]);
  }
  return { caption: "Normalised return at five fractions of training", columns, rows: lines };
}

function progressPart() {
  const holder = el("div", { class: "pairs" });
  addView(holder, () => holder.replaceChildren(tableOf(progressTable())));
  const csv = () => {
    const { columns, rows } = progressTable();
    let name = "";
    const filled = plainRows(rows).map((row) => { name = row[0] || name; return [name, ...row.slice(1)]; });
    save("normalised-table.csv", csvOf({ columns, rows: filled }), "text/csv");
  };
  const same = DATA.paper.tasks.length === FOUND.tasks.length &&
    DATA.paper.tasks.every((task) => FOUND.tasks.includes(task));
  return [el("div", { class: "head" }, el("h3", {}, "Normalised return during training"),
    el("div", { class: "tools" }, tool("CSV", "Save the normalised table as CSV", csv))),
  el("p", { class: "note" }, "Mean over tasks × 100. The last column belongs to the one before it: our " +
    "interval, or the ± printed in the paper. The paper does not define its normalisation, so compare " +
    `the order of methods, not the numbers.${same ? "" : " Its nine tasks are not those here."}`), holder];
}

// ---- metrics: a row per method with a value and an interval ----
function drawIntervals(title, rows, width, look, range) {
  const height = Math.max(1, rows.length) * 22 + 40;
  const widest = Math.max(...rows.map((row) => row.name.length), 4);
  const left = Math.min(width * 0.45, widest * 6.8 + 14), right = width - 14, bottom = height - 34;
  const toX = (x) => left + ((x - range[0]) / (range[1] - range[0])) * (right - left);
  const values = rows.map((row) => `${row.name} ${show(row.value, 1)}`).join("; ");
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${title}: ${values}` });
  for (const t of ticks(...range, Math.max(2, Math.round((right - left) / 60)))) {
    picture.append(svg("line", { x1: toX(t), x2: toX(t), y1: 2, y2: bottom, stroke: look.grid }),
      label(toX(t), bottom + 15, short(t), look, { "text-anchor": "middle" }));
  }
  rows.forEach((row, k) => {
    const y = 14 + 22 * k, colour = colourOn(DATA.methods[row.method].colour, look);
    const room = Math.floor((left - 10) / 6.4);
    const text = row.name.length > room ? row.name.slice(0, room - 1) + "…" : row.name;
    const faded = state.strong !== null && row.method !== state.strong;
    picture.append(label(left - 8, y + 4, text, look, { "text-anchor": "end", fill: look.ink }),
      svg("g", { class: "line", "data-method": row.method, opacity: faded ? 0.18 : 1 },
        svg("title", {}, `${row.name}: ${show(row.value, 1)}` + (isNumber(row.low)
          ? `, interval ${show(row.low, 1)} to ${show(row.high, 1)}` : "")),
        isNumber(row.low) ? svg("rect", { x: toX(row.low), y: y - 5, height: 10, rx: 2, fill: colour, "fill-opacity": 0.3,
          width: Math.max(1, toX(row.high) - toX(row.low)) }) : null,
        svg("line", { x1: toX(row.value), x2: toX(row.value), y1: y - 7, y2: y + 7, stroke: colour,
          "stroke-width": 2.5 })));
  });
  return picture;
}

function metricsPart() {
  const figures = Object.entries(METRICS).map(([key, title]) => {
    const rows = () => compared().map((one) => {
      const [value, low, high] = one.aggregates[key].map(percent);
      return { method: methodAt(one.label), name: one.label, value, low, high };
    });
    return figureOf({
      title, level: "h4", height: 22 * FOUND.methods.length + 40,
      make: (width, look) => ({ picture: drawIntervals(title, rows(), width, look,
        extent(rows().flatMap((row) => [row.low, row.high, row.value]), [0, 100])) }),
      numbers: () => ({ columns: ["Method", title, "Low", "High"],
        rows: rows().map((row) => [row.name, row.value, row.low, row.high]) }),
    });
  });
  return el("div", { class: "quarters" }, figures);
}

// ---- performance profiles ----
function profilesPart() {
  const scores = FOUND.thresholds.map(percent);
  const spec = () => ({ title: "Runs above a score", xLabel: "Normalised return × 100, τ",
    xName: "τ", yLabel: "Share of runs above τ", digits: 2, yRange: [0, 1.02],
    xRange: [scores[0], scores.at(-1)], xShow: (x) => show(x, 1),
    lines: compared().map((one) => {
      const [ys, low, high] = one.profile;
      return lineOf(methodAt(one.label), { xs: scores, ys, mark: null, low: banded(low), high: banded(high) });
    }) });
  return chartFigure(spec, 300, () => ({
    columns: ["τ", ...compared().map((one) => one.label)],
    rows: scores.map((score, k) => [show(score, 1), ...compared().map((one) => one.profile[0][k])]) }));
}

// ---- probability of improvement ----
function improvementPart() {
  if (!FOUND.improvement.length)
    return absent(`${FOUND.methods.length} methods are too many to compare pair by pair.`);
  const pairs = () => {
    const names = compared().map((one) => one.label);
    return { names, pairs: FOUND.improvement.filter((pair) =>
      names.includes(pair.first) && names.includes(pair.second)) };
  };
  return figureOf({ title: "Row above column, in per cent", height: 120,
    make: (width, look) => {
      const now = pairs();
      const cells = now.pairs.map(({ first, second, probability: [p, low, high] }) => ({
        row: now.names.indexOf(first), column: now.names.indexOf(second), part: p,
        strong: isNumber(low) && (low > 0.5 || high < 0.5), text: show(100 * p, 0),
        about: `${first} above ${second}: ${show(100 * p, 0)} %` + (isNumber(low)
          ? `, interval ${show(100 * low, 0)} to ${show(100 * high, 0)} %` : "") }));
      return { picture: drawGrid({ title: "Probability of improvement in per cent", rows: now.names,
        columns: now.names, cells, both: true },
      Math.min(width, 96 + 62 * Math.max(4, now.names.length)), look) };
    },
    numbers: () => ({ columns: ["Method", "Above", "Probability", "Low", "High"],
      rows: pairs().pairs.map((pair) => [pair.first, pair.second, ...pair.probability]) }) });
}

function summarySections() {
  if (!FOUND) return [section("summary", "Over all tasks", null, absent(DATA.noAggregates))];
  const single = FOUND.methods.some((one) => one.seeds.some((count) => count < 2))
    ? " There is no interval where a task has a single seed." : "";
  return [
    section("summary", "Over all tasks", `${DATA.scales[FOUND.normalisation.kind]} Scores are shown × 100. ` +
      "Bands and intervals are 95 % bootstrap intervals over seeds within tasks. All seeds count here, " +
      "whichever are selected.", notesList(), scaleTable(), normalisedCurve(), progressPart()),
    section("metrics", "Aggregate metrics", "Scores at the end of training. The interquartile mean leaves " +
      "out the best and the worst quarter of all runs. The optimality gap is how far runs stay below 100, " +
      `so lower is better.${single}`, metricsPart()),
    section("profiles", "Performance profiles", "Share of runs that end above a score, mean over tasks. A " +
      `curve above another means more runs above that score.${single}`, profilesPart()),
    section("improvement", "Probability of improvement", "How often, in per cent, a run of the method in the " +
      "row ends above one of the method in the column, mean over tasks. 50 means no difference; bold where " +
      "the 95 % interval excludes 50.", improvementPart()),
  ];
}
