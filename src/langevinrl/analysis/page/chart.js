// Line charts with bands on linear axes, and a crosshair.
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, Helvetica, Arial, sans-serif';

function label(x, y, text, look, more = {}) {
  return svg("text", { x, y, fill: look.soft, "font-size": 11, "font-family": FONT, ...more }, text);
}

function extent(values, fallback) {
  let low = Infinity, high = -Infinity;
  for (const v of values) {
    if (!isNumber(v)) continue;
    if (v < low) low = v;
    if (v > high) high = v;
  }
  if (low > high) return fallback;
  const room = low === high ? Math.max(1, Math.abs(low) * 0.1) : 0;
  return [low - room, high + room];
}

// Convert points to a path; null is a gap.
function pathOf(xs, ys, toX, toY) {
  let text = "", pen = "M";
  for (let i = 0; i < xs.length; i++) {
    if (!isNumber(ys[i]) || !isNumber(xs[i])) { pen = "M"; continue; }
    text += pen + toX(xs[i]).toFixed(1) + "," + toY(ys[i]).toFixed(1);
    pen = "L";
  }
  return text;
}

// The area between two lines with the same gaps.
function areaOf(xs, low, high, toX, toY) {
  const kept = xs.map((_, i) => i).filter((i) => isNumber(low[i]) && isNumber(high[i]));
  if (kept.length < 2) return "";
  const there = kept.map((i) => `${toX(xs[i]).toFixed(1)},${toY(high[i]).toFixed(1)}`);
  const back = kept.reverse().map((i) => `${toX(xs[i]).toFixed(1)},${toY(low[i]).toFixed(1)}`);
  return `M${there.join("L")}L${back.join("L")}Z`;
}

const largest = (values) => Math.max(...values.map(Math.abs), 0);

function frame(spec, width, height) {
  const xs = spec.lines.flatMap((line) => line.xs.concat(...line.thin.map((seed) => seed.xs)));
  const ys = spec.lines.flatMap((line) =>
    line.ys.concat(line.low ?? [], line.high ?? [], ...line.thin.map((seed) => seed.ys)));
  const [xLow, xHigh] = spec.xRange ?? [0, extent([0, ...xs], [0, 1])[1]];
  let [yLow, yHigh] = spec.yRange ?? extent(ys, [0, 1]);
  if (!spec.yRange) {
    const room = (yHigh - yLow) * 0.04;
    [yLow, yHigh] = [yLow - room, yHigh + room];
  }
  const yTicks = ticks(yLow, yHigh, Math.max(3, Math.round(height / 48)));
  const widest = Math.max(...yTicks.map((t) => short(t, largest(yTicks)).length), 2);
  const left = 12 + widest * 6.2 + 14, top = 10, right = 12, bottom = 38;
  const inner = { w: width - left - right, h: height - top - bottom };
  return {
    left, top, right: width - right, bottom: height - bottom, yTicks,
    xTicks: spec.xTicks ?? ticks(xLow, xHigh, Math.max(2, Math.round(inner.w / 78))),
    toX: (x) => left + ((x - xLow) / (xHigh - xLow)) * inner.w,
    toY: (y) => top + ((yHigh - y) / (yHigh - yLow)) * inner.h,
    fromX: (at) => xLow + ((at - left) / inner.w) * (xHigh - xLow),
  };
}

function drawAxes(spec, box, look) {
  const group = svg("g", { class: "axes" });
  for (const t of box.yTicks) {
    const y = box.toY(t);
    group.append(svg("line", { x1: box.left, x2: box.right, y1: y, y2: y, stroke: look.grid }),
      label(box.left - 6, y + 4, short(t, largest(box.yTicks)), look, { "text-anchor": "end" }));
  }
  group.append(svg("line", { x1: box.left, x2: box.right, y1: box.bottom, y2: box.bottom,
    stroke: look.axis }));
  for (const t of box.xTicks) {
    const x = box.toX(t);
    group.append(svg("line", { x1: x, x2: x, y1: box.bottom, y2: box.bottom + 4, stroke: look.axis }),
      label(x, box.bottom + 16, (spec.xShort ?? short)(t, largest(box.xTicks)), look,
        { "text-anchor": x > box.right - 12 ? "end" : "middle", class: "x-tick" }));
  }
  const middle = (box.top + box.bottom) / 2;
  group.append(
    label((box.left + box.right) / 2, box.bottom + 32, spec.xLabel, look,
      { "text-anchor": "middle", class: "x-label" }),
    label(0, 0, spec.yLabel, look,
      { "text-anchor": "middle", transform: `translate(11 ${middle}) rotate(-90)` }));
  return group;
}

function drawLine(line, box, look) {
  const colour = colourOn(line.colour, look), { toX, toY } = box;
  const faded = state.strong !== null && line.method !== undefined && line.method !== state.strong;
  const group = svg("g", { class: "line", "data-method": line.method, opacity: faded ? 0.18 : null });
  if (line.bars) {
    line.xs.forEach((x, i) => isNumber(line.low[i]) && group.append(svg("line", { x1: toX(x), x2: toX(x),
      y1: toY(line.low[i]), y2: toY(line.high[i]), stroke: colour, "stroke-width": 2 })));
  } else if (line.low) {
    group.append(svg("path", { class: "band", d: areaOf(line.xs, line.low, line.high, toX, toY),
      fill: colour, "fill-opacity": look === THEMES.light ? 0.13 : 0.2 }));
  }
  for (const seed of line.thin) {
    group.append(svg("path", { class: "thin", d: pathOf(seed.xs, seed.ys, toX, toY), fill: "none",
      stroke: colour, "stroke-width": 0.9, "stroke-opacity": 0.5 }));
  }
  if (!line.bars) group.append(svg("path", { class: "mean", d: pathOf(line.xs, line.ys, toX, toY), fill: "none",
    stroke: colour, "stroke-width": line.method === state.strong ? 2.8 : 1.8,
    "stroke-linejoin": "round", "stroke-dasharray": line.dash }));
  const marked = line.everyPoint ? line.xs.keys() : [line.xs.length - 1];
  for (const i of marked) {
    if (!isNumber(line.ys[i]) || !line.mark) continue;
    group.append(svg("path", { d: line.mark, fill: colour, stroke: look.card, "stroke-width": 0.7,
      transform: `translate(${toX(line.xs[i]).toFixed(1)} ${toY(line.ys[i]).toFixed(1)})` }));
  }
  return group;
}

// spec: {title, xLabel, yLabel, lines: [{name, colour, method, mark, dash, xs, ys, low, high, thin}]}
function drawChart(spec, width, height, look) {
  const box = frame(spec, width, height);
  const picture = svg("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": describe(spec) }, drawAxes(spec, box, look));
  for (const line of spec.lines) picture.append(drawLine(line, box, look));
  if (!spec.lines.length) {
    picture.append(label((box.left + box.right) / 2, (box.top + box.bottom) / 2,
      spec.empty ?? "No method selected", look, { "text-anchor": "middle" }));
  }
  picture.box = box;
  return picture;
}

function describe(spec) {
  const ends = spec.lines.map((line) => {
    const last = line.ys.findLastIndex(isNumber);
    return last < 0 ? null : `${line.name} ${show(line.ys[last])} at ${short(line.xs[last])}`;
  }).filter(Boolean);
  return `${spec.title}: ${spec.yLabel} over ${spec.xLabel.toLowerCase()}. Last values: ` +
    (ends.length ? ends.join("; ") : "none");
}

// ---- the crosshair: by pointer, or by arrow keys when the chart has the focus ----
function addReader(holder, current) {
  const tip = el("div", { class: "tip", role: "status", hidden: true });
  holder.append(tip);
  let at = null, cross = null;
  const hide = () => { tip.hidden = true; cross?.remove(); at = null; };
  const places = () => [...new Set(current().spec.lines.flatMap((line) => line.xs))]
    .sort((a, b) => a - b);
  const read = (x) => {
    const { spec, picture } = current();
    at = x;
    cross?.remove();
    cross = drawCross(spec, picture.box, x);
    picture.append(cross);
    fillTip(tip, spec, x);
    tip.hidden = false;
    const left = picture.box.toX(x), flip = left > holder.clientWidth / 2;
    tip.style.left = flip ? "" : `${left + 10}px`;
    tip.style.right = flip ? `${holder.clientWidth - left + 10}px` : "";
  };
  const nearest = (x) => {
    let best = null;
    for (const place of places())
      if (best === null || Math.abs(place - x) < Math.abs(best - x)) best = place;
    return best;
  };
  const point = (event) => {
    const { spec, picture } = current();
    if (!picture || !spec.lines.length) return;
    const x = nearest(picture.box.fromX(event.clientX - holder.getBoundingClientRect().left));
    if (x !== null && x !== at) read(x);
  };
  holder.addEventListener("pointermove", point);
  holder.addEventListener("pointerdown", point);
  holder.addEventListener("pointerleave", hide);
  holder.addEventListener("blur", hide);
  holder.addEventListener("keydown", (event) => {
    const all = places(), here = at === null ? -1 : all.indexOf(at);
    const next = { ArrowRight: Math.min(all.length - 1, here + 1), Home: 0, End: all.length - 1,
      ArrowLeft: here < 0 ? all.length - 1 : Math.max(0, here - 1) }[event.key];
    if (event.key === "Escape") hide();
    if (next === undefined || !all.length) return;
    event.preventDefault();
    read(all[next]);
  });
  return hide;
}

function drawCross(spec, box, x) {
  const look = theme(), at = box.toX(x);
  const group = svg("g", { class: "cross", "pointer-events": "none" },
    svg("line", { x1: at, x2: at, y1: box.top, y2: box.bottom, stroke: look.soft,
      "stroke-dasharray": "3 3" }));
  for (const line of spec.lines) {
    const y = valueAt(line.xs, line.ys, x);
    if (isNumber(y)) group.append(svg("circle", { cx: at, cy: box.toY(y), r: 3.6,
      fill: colourOn(line.colour, look), stroke: look.card }));
  }
  return group;
}

// All values at x, the highest first.
function fillTip(tip, spec, x) {
  const rows = spec.lines.map((line) => ({
    line, y: valueAt(line.xs, line.ys, x),
    low: line.low && valueAt(line.xs, line.low, x), high: line.high && valueAt(line.xs, line.high, x),
  })).filter((row) => isNumber(row.y)).sort((a, b) => b.y - a.y);
  tip.replaceChildren(el("b", {}, `${spec.xName ?? spec.xLabel}: ${(spec.xShow ?? showPlace)(x)}`),
    ...rows.map((row) => el("div", { class: "tip-row" },
      row.line.method === undefined ? "" : swatch(row.line.method),
      el("span", {}, row.line.name),
      el("span", { class: "num" }, show(row.y, spec.digits)),
      el("span", { class: "num soft" }, isNumber(row.low) && row.low !== row.high
        ? `${show(row.low, spec.digits)} to ${show(row.high, spec.digits)}` : ""))));
}

const showPlace = (x) => x.toLocaleString("en", { maximumFractionDigits: x < 10 ? 3 : 1 });
