// Figures: picture, table of numbers, and both as files.
function save(name, text, type) {
  const link = el("a", { href: URL.createObjectURL(new Blob([text], { type })), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// CSV text; a cell that a spreadsheet would read as a formula gets an apostrophe.
function csvOf({ columns, rows }) {
  const cell = (value) => {
    if (value === null || value === undefined) return "";
    if (isNumber(value)) return String(value);
    const text = /^[=+@\t\r-]/.test(String(value)) ? `'${value}` : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return [columns, ...rows].map((row) => row.map(cell).join(",")).join("\n") + "\n";
}

// The picture alone, on white, with title and legend.
function svgFile(title, picture, methods) {
  const look = THEMES.light;
  const width = Number(picture.getAttribute("width")), tall = Number(picture.getAttribute("height"));
  const wide = 50 + 6.6 * Math.max(...methods.map((at) => DATA.methods[at].label.length), 8);
  const across = Math.max(1, Math.floor((width - 20) / wide));
  const rows = Math.ceil(methods.length / across), height = 30 + tall + rows * 20 + 8;
  const whole = svg("svg", { xmlns: "http://www.w3.org/2000/svg", width, height,
    viewBox: `0 0 ${width} ${height}` },
  svg("rect", { width, height, fill: look.card }),
  label(12, 20, title, look, { "font-size": 14, "font-weight": 600, fill: look.ink }));
  picture.setAttribute("y", 28);
  whole.append(picture);
  methods.forEach((at, k) => {
    const key = swatch(at, look);
    key.setAttribute("x", 14 + (k % across) * wide);
    key.setAttribute("y", 32 + tall + Math.floor(k / across) * 20);
    whole.append(key, label(44 + (k % across) * wide, 42 + tall + Math.floor(k / across) * 20,
      DATA.methods[at].label, look, { fill: look.ink }));
  });
  return new XMLSerializer().serializeToString(whole);
}

// ---- tables ----
// columns: names; rows: cells, each text, a number or {text, strong, node}.  The first cell of a row is its header.
function tableOf({ columns, rows, caption }) {
  const cell = (value, at) => {
    const one = value !== null && typeof value === "object" ? value : { text: value };
    const number = isNumber(one.text) || one.number;
    const shown = one.node ?? (isNumber(one.text) ? show(one.text) : String(one.text ?? "–"));
    return el(at ? "td" : "th", { scope: at ? null : "row", role: at ? "cell" : "rowheader",
      class: number ? "num" : null, "data-label": at ? columns[at] : null },
    one.strong ? el("strong", {}, shown) : shown);
  };
  const numeric = columns.map((_, k) => k > 0 && rows.some((row) => {
    const one = row[k];
    return isNumber(one) || (one && typeof one === "object" && (one.number || isNumber(one.text)));
  }));
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": caption },
    // On a phone the rows of a wide table become cards; roles keep it a table for screen readers.
    el("table", { role: "table", class: columns.length > 3 ? "cards" : null },
      el("caption", { class: "unseen" }, caption),
      el("thead", {}, el("tr", {}, columns.map((name, k) =>
        el("th", { scope: "col", class: numeric[k] ? "num" : null }, name)))),
      el("tbody", {}, rows.map((row) => el("tr", { role: "row" }, row.map(cell))))));
}

// Cells for a CSV file: no emphasis, numbers not rounded.
const plainRows = (rows) => rows.map((row) => row.map((value) =>
  (value !== null && typeof value === "object" ? value.value ?? value.text : value)));

const slug = (text) => text.toLowerCase().replace(/[^a-z0-9.]+/g, "-").replace(/^-|-$/g, "");

function tool(text, about, onclick) {
  return el("button", { type: "button", class: "tool", "aria-label": about, title: about, onclick },
    text);
}

// A title may break before a task's version.
const breakable = (text) => text.split(/(?=-v\d)/).flatMap((part, at) => (at ? [el("wbr"), part] : [part]));

// ---- figures ----
// make(width, look) returns {picture, spec, methods}; numbers() returns {columns, rows}.
function figureOf({ title, level = "h3", height, make, numbers, reader, tools = [] }) {
  const holder = el("div", { class: "chart", style: `min-height:${height}px` });
  const made = { picture: null, spec: null };
  const table = numbers && el("details", { class: "numbers" }, el("summary", {}, "Numbers"));
  const node = el("figure", {},
    el("figcaption", {}, el(level, {}, breakable(title)), el("div", { class: "tools" }, tools,
      tool("SVG", `Save the figure ${title} as SVG`, () => {
        const one = make(660, THEMES.light);
        save(`${slug(title)}.svg`, svgFile(title, one.picture, one.methods ?? []), "image/svg+xml");
      }),
      numbers && tool("CSV", `Save the numbers of ${title} as CSV`, () => {
        const { columns, rows } = numbers();
        save(`${slug(title)}.csv`, csvOf({ columns, rows: plainRows(rows) }), "text/csv");
      }))),
    holder, table);
  let hide = () => {};
  if (reader) {
    setUp(holder, { tabindex: 0, role: "group",
      "aria-label": `${title}: left and right arrow keys read its values` }, []);
    hide = addReader(holder, () => made);
  }
  const fill = () => {
    if (table?.open) table.replaceChildren(table.firstChild, tableOf({ caption: title, ...numbers() }));
  };
  table?.addEventListener("toggle", fill);
  addView(node, () => {
    hide();
    const width = Math.max(240, Math.floor(holder.clientWidth));
    const one = make(width, theme());
    made.picture?.remove();
    Object.assign(made, one);
    holder.prepend(one.picture);
    fill();
  });
  return node;
}

function section(id, title, note, ...content) {
  return el("section", { id, "aria-labelledby": `${id}-title` },
    el("h2", { id: `${id}-title` }, title), note && el("p", { class: "note" }, note), content);
}

const absent = (text) => el("p", { class: "absent" }, text);

const shownMethods = () => [...state.methods].sort((a, b) => a - b);

// A line of a chart in a method's colour, marker and dash.
const lineOf = (at, more) => ({ method: at, name: DATA.methods[at].label,
  colour: DATA.methods[at].colour, mark: STYLES[at].mark, dash: STYLES[at].dash, thin: [], ...more });
