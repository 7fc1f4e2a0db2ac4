// Ablations: final return over one setting as a line, over two as a grid of colours.
const BLUES = ["#f2f5fa", "#b9cfe6", "#6ba0cf", "#2f6fae", "#123f75"];
const DIVERGING = ["#a6611a", "#dfc27d", "#f4f4f2", "#80cdc1", "#01665e"];

function scaleColour(palette, part) {
  const place = Math.max(0, Math.min(0.9999, part)) * (palette.length - 1), i = Math.floor(place);
  return mix(palette[i], palette[i + 1], place - i);
}

// grid: {title, rows, columns, cells: [{row, column, part (0..1), text, about, strong}], both}
function drawGrid(grid, width, look) {
  const cut = (name) => (name.length > 16 ? name.slice(0, 15) + "…" : name);
  const rows = grid.rows.map(cut), columns = grid.columns.map(cut);
  const longest = (names) => Math.max(...names.map((name) => name.length), 3) * 6.9;
  const left = longest(rows) + 12 + (grid.rowTitle ? 16 : 0);
  // Column names wider than their columns are turned upright, or tilted if there is room.
  const count = Math.max(1, columns.length), even = (width - left - 4) / count;
  const turn = longest(columns) <= even - 4 ? 0 : even < 44 ? -90 : -45;
  const tilt = turn === -45 ? Math.max(0, longest(columns.slice(-2)) * 0.72 - even / 2) : 0;
  const side = (width - left - 4 - tilt) / count;
  const top = ({ 0: 20, "-45": longest(columns) * 0.72 + 12, "-90": longest(columns) + 12 })[turn] +
    (grid.columnTitle ? 16 : 0);
  const tall = Math.max(24, Math.min(40, side * 0.7));
  const height = Math.max(top + rows.length * tall + 4, 12 + 6.2 * (grid.rowTitle ?? "").length);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `${grid.title}. ${grid.cells.map((cell) => cell.about).join("; ")}` });
  const palette = grid.both ? DIVERGING : BLUES;
  columns.forEach((name, k) => {
    const x = left + (k + 0.5) * side;
    picture.append(label(0, 0, name, look, { fill: look.ink, "text-anchor": turn ? "start" : "middle",
      transform: `translate(${turn === -90 ? x + 4 : x} ${top - 7}) rotate(${turn})` }));
  });
  rows.forEach((name, k) => picture.append(label(left - 8, top + (k + 0.5) * tall + 4, name, look,
    { fill: look.ink, "text-anchor": "end" })));
  for (const cell of grid.cells) {
    const fill = scaleColour(palette, cell.part), x = left + cell.column * side;
    const y = top + cell.row * tall;
    picture.append(svg("g", {}, svg("title", {}, cell.about),
      svg("rect", { x: x + 1, y: y + 1, width: side - 2, height: tall - 2, rx: 3, fill }),
      label(x + side / 2, y + tall / 2 + 4, cell.text, look, { "text-anchor": "middle",
        fill: luminance(fill) > 0.28 ? "#14191f" : "#ffffff", "font-weight": cell.strong ? 700 : 400 })));
  }
  if (grid.columnTitle) picture.append(label(left + (width - left) / 2, 12, grid.columnTitle, look,
    { "text-anchor": "middle" }));
  if (grid.rowTitle) picture.append(label(0, 0, grid.rowTitle, look, { "text-anchor": "middle",
    transform: `translate(11 ${height / 2}) rotate(-90)` }));
  return picture;
}

// ---- which settings vary ----
const settingText = (value) => (Array.isArray(value) ? value.join("×") : typeof value === "boolean"
  ? (value ? "on" : "off") : String(value));

function order(values) {
  const unique = [...new Map(values.map((v) => [JSON.stringify(v), v])).values()];
  return unique.every(isNumber) ? unique.sort((a, b) => a - b) : unique;
}

// One per agent and task with more than one setting: {agent, task, names, methods}.
function variations() {
  const found = [];
  for (const agent of new Set(DATA.methods.map((method) => method.agent))) {
    const names = [...new Set(DATA.methods.flatMap((m) =>
      (m.agent === agent ? Object.keys(m.settings) : [])))];
    DATA.tasks.forEach((_, task) => {
      const methods = [...DATA.methods.keys()].filter((at) =>
        DATA.methods[at].agent === agent && curveOf(at, task));
      const varied = names.filter((name) =>
        order(methods.map((at) => DATA.methods[at].settings[name] ?? null)).length > 1);
      if (methods.length > 1 && varied.length) found.push({ agent, task, names: varied, methods });
    });
  }
  return found;
}

const settingOf = (at, name) => DATA.methods[at].settings[name] ?? null;
const baseName = (agent) => DATA.agents[agent] ?? agent;

function ablationNumbers(one) {
  return { columns: ["Setting", ...one.names, "Seeds", "Final return", "SD"],
    rows: one.methods.map((at) => {
      const cell = finalCell(at, one.task);
      return [DATA.methods[at].label, ...one.names.map((name) => settingText(settingOf(at, name))),
        cell?.seeds ?? 0, cell?.mean ?? null, cell?.sd ?? null];
    }) };
}

// One setting: values are evenly spaced, since they often span orders of magnitude.
function ablationLine(one, width, look) {
  const [name] = one.names, values = order(one.methods.map((at) => settingOf(at, name)));
  const cells = values.map((value) => {
    const at = one.methods.find((m) => settingText(settingOf(m, name)) === settingText(value));
    return at === undefined ? null : finalCell(at, one.task);
  });
  const spec = { title: ablationTitle(one), xLabel: name, yLabel: "Final return",
    xRange: [-0.4, values.length - 0.6], xTicks: [...values.keys()],
    xShow: (x) => settingText(values[x]), xShort: (x) => settingText(values[x]), lines: [{
      name: baseName(one.agent), colour: DATA.methods[one.methods[0]].colour, mark: MARKS[0],
      everyPoint: true, bars: values.length < 3 || !values.every(isNumber), thin: [], xs: [...values.keys()], ys: cells.map((cell) => cell?.mean ?? null),
      low: cells.map((cell) => (isNumber(cell?.sd) ? cell.mean - cell.sd : null)),
      high: cells.map((cell) => (isNumber(cell?.sd) ? cell.mean + cell.sd : null)) }] };
  return { spec, picture: drawChart(spec, width, 236, look) };
}

// Two settings: a colour per pair, from the lowest return to the highest.
function ablationGrid(one, width, look) {
  const [down, across] = one.names;
  const rows = order(one.methods.map((at) => settingOf(at, down)));
  const columns = order(one.methods.map((at) => settingOf(at, across)));
  const place = (list, value) => list.findIndex((v) => settingText(v) === settingText(value));
  const finals = one.methods.map((at) => ({ at, cell: finalCell(at, one.task) })).filter((f) => f.cell);
  const [low, high] = extent(finals.map((f) => f.cell.mean), [0, 1]);
  const cells = finals.map(({ at, cell }) => ({ row: place(rows, settingOf(at, down)),
    column: place(columns, settingOf(at, across)), part: (cell.mean - low) / (high - low),
    text: short(Number(cell.mean.toPrecision(3))),
    about: `${down} ${settingText(settingOf(at, down))}, ${across} ${settingText(settingOf(at, across))}: ` +
      `${finalText(cell)} over ${cell.seeds} seed(s)` }));
  return { picture: drawGrid({ title: ablationTitle(one), rows: rows.map(settingText),
    columns: columns.map(settingText), rowTitle: down, columnTitle: across, cells },
  Math.min(width, 140 + 110 * columns.length), look) };
}

const ablationTitle = (one) =>
  `${baseName(one.agent)} on ${DATA.tasks[one.task]}: ${one.names.join(" and ")}`;

function ablationSection() {
  const all = variations();
  const drawn = { 1: ablationLine, 2: ablationGrid };
  if (!all.length) return section("ablations", "Ablations", null,
    absent("Every method was run with one setting per task, so there is nothing to compare."));
  return section("ablations", "Ablations",
    "Final return over the settings that vary within a method: mean and standard deviation over " +
    "all seeds that finished.",
    el("div", { class: "halves" }, all.map((one) => (drawn[one.names.length]
      ? figureOf({ title: ablationTitle(one), height: 120, numbers: () => ablationNumbers(one),
        reader: one.names.length === 1, make: (width, look) => drawn[one.names.length](one, width, look) })
      : el("figure", {}, el("figcaption", {}, el("h3", {}, ablationTitle(one))),
        tableOf({ caption: ablationTitle(one), ...ablationNumbers(one) }))))));
}
