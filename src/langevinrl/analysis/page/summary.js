// Over all tasks: the normalised curve, the table beside the paper's, metrics, profiles, pairs.
const SUMMARY = DATA.summary;
const named = (at) => DATA.methods[at].label;
const on = (row) => state.methods.has(row.method);

function normalisedCurve() {
  const { rows } = SUMMARY.curve;
  const spec = () => ({ title: "Normalised return over all tasks", xLabel: "Share of training",
    yLabel: "Normalised return × 100", digits: 1, xRange: [0, 1], xShow: (x) => `${show(100 * x, 0)} %`,
    lines: rows.filter(on).map((row) => lineOf(row.method, { xs: row.xs, ys: row.mean,
      low: state.band === "none" ? null : row.low, high: state.band === "none" ? null : row.high })) });
  return chartFigure(spec, 320, () => ({
    columns: ["Method", "Share of training", "Mean", "Low", "High"],
    rows: rows.filter(on).flatMap((row) => row.xs.map((x, k) =>
      [named(row.method), x, row.mean[k], row.low[k], row.high[k]])) }));
}

function remarksOnWho() {
  const list = el("ul", { class: "note" }, SUMMARY.notes.map((text) => el("li", {}, text)));
  if (SUMMARY.notes.length <= 3) return SUMMARY.notes.length ? list : null;
  return el("details", { class: "numbers" },
    el("summary", {}, `Left out or uneven: ${SUMMARY.notes.length} remarks`), list);
}

function scaleTable() {
  return el("details", { class: "numbers" }, el("summary", {}, "The scale of each task"),
    tableOf({ caption: "Returns that are scored 0 and 100", columns: ["Task", "Scored 0", "Scored 100"],
      rows: SUMMARY.scale.map((row) => [row.task, row.low, row.high]) }));
}

// A figure of lines that can be read with the crosshair.
function chartFigure(spec, height, numbers) {
  return figureOf({ title: spec().title, height, numbers, reader: true, make: (width, look) => {
    const now = spec();
    return { spec: now, methods: now.lines.map((line) => line.method),
      picture: drawChart(now, width, height, look) };
  } });
}

// ---- the paper's table, ours beside it ----
function progressTable() {
  const { progress, rows, paper } = SUMMARY.table;
  const best = progress.map((_, k) => Math.max(...rows.filter(on).map((row) => row.values[k] ?? -Infinity)));
  const cells = (values, bold) => values.map((x, k) => ({ number: true, value: x, text: show(x, 1),
    strong: bold && x === best[k] }));
  const columns = ["Method", "Source", ...progress.map((part) => show(part, 1)), "at 1.0"];
  const lines = [];
  for (const row of rows.filter(on)) {
    const interval = isNumber(row.low) ? `${show(row.low, 1)} to ${show(row.high, 1)}` : "–";
    lines.push([named(row.method), "here", ...cells(row.values, true), { number: true, text: interval }]);
    const theirs = paper[row.method];
    if (theirs) lines.push(["", "paper", ...cells(theirs.values, false),
      { number: true, text: `± ${show(theirs.spread, 1)}` }]);
  }
  return { caption: "Normalised return at five shares of training", columns, rows: lines };
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
  return [el("div", { class: "head" }, el("h3", {}, "Normalised return at shares of training"),
    el("div", { class: "tools" }, tool("CSV", "Save the normalised table as CSV", csv))),
  el("p", { class: "note" }, SUMMARY.table.note), holder];
}

// ---- metrics with intervals: a row per method, a point and a bar ----
function drawIntervals(title, rows, width, look, range) {
  const shown = rows.filter(on), height = Math.max(1, shown.length) * 22 + 40;
  const widest = Math.max(...shown.map((row) => named(row.method).length), 4);
  const left = Math.min(width * 0.45, widest * 6.8 + 14), right = width - 14, bottom = height - 34;
  const toX = (x) => left + ((x - range[0]) / (range[1] - range[0])) * (right - left);
  const told = shown.map((row) => `${named(row.method)} ${show(row.value, 1)}`).join("; ");
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${title}: ${told}` });
  for (const t of ticks(...range, Math.max(2, Math.round((right - left) / 60)))) {
    picture.append(svg("line", { x1: toX(t), x2: toX(t), y1: 2, y2: bottom, stroke: look.grid }),
      label(toX(t), bottom + 15, short(t), look, { "text-anchor": "middle" }));
  }
  shown.forEach((row, k) => {
    const y = 14 + 22 * k, colour = tint(DATA.methods[row.method].colour, look);
    const name = named(row.method), room = Math.floor((left - 10) / 6.4);
    const text = name.length > room ? name.slice(0, room - 1) + "…" : name;
    const faded = state.strong !== null && row.method !== state.strong;
    picture.append(label(left - 8, y + 4, text, look, { "text-anchor": "end", fill: look.ink }),
      svg("g", { class: "line", "data-method": row.method, opacity: faded ? 0.18 : 1 },
        svg("title", {}, `${name}: ${show(row.value, 1)}` + (isNumber(row.low)
          ? `, interval ${show(row.low, 1)} to ${show(row.high, 1)}` : "")),
        isNumber(row.low) ? svg("rect", { x: toX(row.low), y: y - 5, height: 10, rx: 2, fill: colour, "fill-opacity": 0.3,
          width: Math.max(1, toX(row.high) - toX(row.low)) }) : null,
        svg("line", { x1: toX(row.value), x2: toX(row.value), y1: y - 7, y2: y + 7, stroke: colour,
          "stroke-width": 2.5 })));
  });
  return picture;
}

function metricsPart() {
  if (SUMMARY.metrics.absent) return absent(SUMMARY.metrics.absent);
  const figures = SUMMARY.metrics.list.map((metric) => figureOf({
    title: metric.name, level: "h4", height: 22 * metric.rows.length + 40,
    make: (width, look) => ({ picture: drawIntervals(metric.name, metric.rows, width, look,
      extent(metric.rows.filter(on).flatMap((row) => [row.low, row.high, row.value]), [0, 100])) }),
    numbers: () => ({ columns: ["Method", metric.name, "Low", "High"],
      rows: metric.rows.filter(on).map((row) => [named(row.method), row.value, row.low, row.high]) }),
  }));
  return el("div", { class: "quarters" }, figures);
}

// ---- performance profiles ----
function profilesPart() {
  if (SUMMARY.profiles.absent) return absent(SUMMARY.profiles.absent);
  const { scores, rows } = SUMMARY.profiles;
  const spec = () => ({ title: "Runs above a score", xLabel: "Normalised return × 100, τ",
    xName: "τ", yLabel: "Share of runs above τ", digits: 2, yRange: [0, 1.02],
    xRange: [scores[0], scores.at(-1)],
    lines: rows.filter(on).map((row) => lineOf(row.method, { xs: scores, ys: row.share, mark: null,
      low: state.band === "none" ? null : row.low, high: state.band === "none" ? null : row.high })) });
  return chartFigure(spec, 300, () => ({
    columns: ["τ", ...rows.filter(on).map((row) => named(row.method))],
    rows: scores.map((score, k) => [show(score, 1), ...rows.filter(on).map((row) => row.share[k])]) }));
}

// ---- probability of improvement ----
function improvementPart() {
  const part = SUMMARY.improvement;
  if (part.absent) return absent(part.absent);
  const shown = () => [...new Set(part.rows.flatMap((row) => [row.a, row.b]))]
    .filter((at) => state.methods.has(at)).sort((a, b) => a - b);
  const pairs = () => part.rows.filter((row) => state.methods.has(row.a) && state.methods.has(row.b));
  return figureOf({ title: "Row above column, in per cent", height: 120,
    make: (width, look) => {
      const list = shown(), names = list.map(named);
      const cells = pairs().map((row) => ({ row: list.indexOf(row.a), column: list.indexOf(row.b),
        part: row.p, strong: isNumber(row.low) && (row.low > 0.5 || row.high < 0.5), text: show(100 * row.p, 0),
        about: `${named(row.a)} above ${named(row.b)}: ${show(100 * row.p, 0)} %` +
          (isNumber(row.low)
            ? `, interval ${show(100 * row.low, 0)} to ${show(100 * row.high, 0)} %` : "") }));
      return { picture: drawGrid({ title: "Probability of improvement in per cent", rows: names,
        columns: names, cells, both: true }, Math.min(width, 96 + 62 * Math.max(4, list.length)), look) };
    },
    numbers: () => ({ columns: ["Method", "Above", "Probability", "Low", "High"],
      rows: pairs().map((row) => [named(row.a), named(row.b), row.p, row.low, row.high]) }) });
}

function summarySections() {
  if (SUMMARY.absent) return [section("summary", "Over all tasks", null, absent(SUMMARY.absent))];
  return [
    section("summary", "Over all tasks", SUMMARY.note,
      remarksOnWho(), scaleTable(), normalisedCurve(), progressPart()),
    section("metrics", "Aggregate metrics", SUMMARY.metrics.note, metricsPart()),
    section("profiles", "Performance profiles", SUMMARY.profiles.note, profilesPart()),
    section("improvement", "Probability of improvement", SUMMARY.improvement.note, improvementPart()),
  ];
}
