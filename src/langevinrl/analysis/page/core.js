"use strict";
// Shared by all sections: data, the reader's selections, elements, numbers, colours.
const DATA = JSON.parse(document.getElementById("data").textContent);
const AXES = {
  iterations: { label: "Iterations", column: "iterations" },
  steps: { label: "Environment steps", column: "env_steps" },
  hours: { label: "Hours", column: "hours" },
};
const BANDS = { sd: "± SD", range: "Min–max", none: "None" };
const SEEDS = [...new Set(DATA.curves.flatMap((c) => c.series.map((s) => s.seed)))]
  .sort((a, b) => a - b);
// The reader's selections; every view is drawn from them.
const state = {
  methods: new Set(DATA.methods.keys()),
  seeds: new Set(SEEDS),
  axis: "iterations",
  band: "sd",
  single: false, // a thin line for each seed
  strong: null, // the method pointed at in the legend
  wide: new Set(), // tasks whose panels are enlarged
};

// ---- elements: text is only ever set as text, so names from a run cannot become markup ----
function el(tag, attributes = {}, ...children) {
  return setUp(document.createElement(tag), attributes, children);
}

function svg(tag, attributes = {}, ...children) {
  return setUp(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function setUp(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined));
  return node;
}

const $ = (id) => document.getElementById(id);

// ---- numbers ----
const isNumber = (x) => typeof x === "number" && Number.isFinite(x);
const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

function deviation(values) {
  if (values.length < 2) return 0;
  const centre = mean(values);
  return Math.sqrt(values.reduce((sum, x) => sum + (x - centre) ** 2, 0) / (values.length - 1));
}

// Decimal places to show for a number of this size.
function placesOf(x) {
  const size = Math.abs(x);
  return size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 3;
}

// Format a number for a table, with a proper minus sign.
function show(x, digits) {
  if (!isNumber(x)) return "–";
  const places = digits ?? placesOf(x);
  const text = x.toLocaleString("en", {
    minimumFractionDigits: places, maximumFractionDigits: places,
  });
  return text.replace("-", "−");
}

// Format a number for an axis: 200k, 1.5M, 0.25; the unit suits the largest tick.
function short(x, largest = x) {
  const size = Math.abs(largest);
  if (x === 0) return "0";
  const [unit, mark] = size >= 1e9 ? [1e9, "B"] : size >= 1e6 ? [1e6, "M"]
    : size >= 1e4 ? [1e3, "k"] : [1, ""];
  return (x / unit).toLocaleString("en", { maximumSignificantDigits: 4 }).replace("-", "−") + mark;
}

// Round tick positions, about `count` of them, within a range.
function ticks(low, high, count) {
  const raw = (high - low) / Math.max(1, count), power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].find((m) => m * power >= raw * 0.999) * power;
  const found = [];
  for (let k = Math.ceil(low / step - 1e-9); k * step <= high + step * 1e-9; k++)
    found.push(Number((k * step).toPrecision(12)));
  return found;
}

// Interpolate a line at x; null outside its range or in a gap.
function valueAt(xs, ys, x) {
  const last = xs.length - 1;
  if (last < 0 || x < xs[0] || x > xs[last]) return null;
  let low = 0, high = last;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (xs[middle] <= x) low = middle;
    else high = middle;
  }
  if (x === xs[low]) return ys[low];
  if (x === xs[high]) return ys[high];
  if (!isNumber(ys[low]) || !isNumber(ys[high])) return null;
  return ys[low] + ((ys[high] - ys[low]) * (x - xs[low])) / (xs[high] - xs[low]);
}

// ---- light and dark ----
const THEMES = {
  light: { ink: "#1a2129", soft: "#55606d", card: "#ffffff", grid: "#e6e9ed", axis: "#9aa3ad" },
  dark: { ink: "#e8ebef", soft: "#a4aeba", card: "#1a2028", grid: "#2b333e", axis: "#5d6875" },
};
const prefersDark = matchMedia("(prefers-color-scheme: dark)");
let printing = false;

function isDark() {
  const chosen = document.documentElement.dataset.theme;
  return !printing && (chosen ? chosen === "dark" : prefersDark.matches);
}

const theme = () => (isDark() ? THEMES.dark : THEMES.light);
const rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));

function luminance(hex) {
  const [r, g, b] = rgb(hex).map((v) => {
    const part = v / 255;
    return part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}

function mix(from, to, part) {
  const [a, b] = [rgb(from), rgb(to)];
  return "#" + a.map((v, i) => Math.round(v + (b[i] - v) * part).toString(16).padStart(2, "0"))
    .join("");
}

// A method's colour on this background: as registered on white, lightened on dark.
function colourOn(hex, look = theme()) {
  if (look === THEMES.light) return hex;
  if (luminance(hex) < 0.01) return look.ink;
  let part = 0;
  while (luminance(mix(hex, "#ffffff", part)) < 0.2 && part < 0.9) part += 0.05;
  return mix(hex, "#ffffff", part);
}

// ---- one marker per method, so that colour is not the only key ----
const MARKS = [
  "M-3.5,0A3.5,3.5 0 1 1 3.5,0A3.5,3.5 0 1 1 -3.5,0Z", "M-3,-3H3V3H-3Z", "M0,-4.2L3.8,2.8H-3.8Z",
  "M0,-4.4L4.4,0L0,4.4L-4.4,0Z", "M0,4.2L3.8,-2.8H-3.8Z",
  "M-1.4,-4H1.4V-1.4H4V1.4H1.4V4H-1.4V1.4H-4V-1.4H-1.4Z", "M-4,-2.2H4V2.2H-4Z",
  "M-2.2,-4H2.2V4H-2.2Z", "M-4.2,0L2.8,-3.8V3.8Z", "M4.2,0L-2.8,-3.8V3.8Z",
];
const DASHES = [null, "6 3", "2 3", "8 3 2 3"];

// Methods of the same colour have different dashes.
const STYLES = DATA.methods.map((method, at) => {
  const alike = DATA.methods.slice(0, at).filter((other) => other.colour === method.colour).length;
  return { mark: MARKS[at % MARKS.length], dash: DASHES[alike % DASHES.length] };
});

function swatch(at, look) {
  const colour = colourOn(DATA.methods[at].colour, look);
  return svg("svg", { width: 26, height: 12, viewBox: "0 0 26 12", "aria-hidden": "true",
    class: "swatch" },
  svg("line", { x1: 1, x2: 25, y1: 6, y2: 6, stroke: colour, "stroke-width": 2,
    "stroke-dasharray": STYLES[at].dash }),
  svg("path", { d: STYLES[at].mark, transform: "translate(13 6)", fill: colour }));
}

// ---- views: redrawn when a selection changes, at once if visible, otherwise when scrolled to ----
const views = [];
const near = new IntersectionObserver((entries) => {
  for (const entry of entries) {
    const view = views.find((one) => one.node === entry.target);
    view.seen = entry.isIntersecting;
    if (view.seen && view.stale) drawView(view);
  }
  // The first call comes with the first layout: everything visible has been drawn.
  window.reportReadyMs ??= performance.now();
}, { rootMargin: "300px" });

function drawView(view) {
  view.stale = false;
  view.draw();
}

function addView(node, draw) {
  const view = { node, draw, stale: true, seen: false };
  views.push(view);
  near.observe(node);
  return view;
}

function refresh(everything = false) {
  for (const view of views) {
    view.stale = true;
    if (view.seen || everything) drawView(view);
  }
}
