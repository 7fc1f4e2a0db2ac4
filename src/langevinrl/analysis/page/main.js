// The whole page, in reading order.
function header() {
  const facts = el("dl", { class: "facts" });
  for (const [name, value] of DATA.facts) facts.append(el("div", {}, el("dt", {}, name), el("dd", {}, value)));
  return el("header", {}, el("p", { class: "kicker" }, "langevinrl report"),
    el("h1", {}, DATA.title), facts, el("p", { class: "budget" }, DATA.budget));
}

function costSection() {
  const titles = { parameters: "Trainable parameters", time: "Time per update" };
  const parts = DATA.extras.map((extra) => el("div", { class: "extra" },
    el("div", { class: "head" }, el("h3", {}, titles[extra.kind]), el("div", { class: "tools" },
      tool("CSV", `Save ${titles[extra.kind]} as CSV`,
        () => save(`${extra.kind}.csv`, csvOf(extra), "text/csv")))),
    el("p", { class: "note" }, `As in ${extra.source}.`),
    tableOf({ caption: titles[extra.kind], columns: extra.columns, rows: extra.rows.map((row) =>
      row.map((text, k) => (k && text !== "" && Number.isFinite(Number(text))
        ? { number: true, text: /^\d+$/.test(text) ? Number(text).toLocaleString("en") : text }
        : k ? { number: true, text: text || "–" } : text))) })));
  return section("costs", "Parameters and time", null, parts.length ? el("div", { class: "halves" }, parts)
    : absent("None of the folders holds a parameters.csv or a time.csv."));
}

function contents(sections) {
  return el("nav", { "aria-label": "Contents" }, el("ul", {}, sections.map((part) =>
    el("li", {}, el("a", { href: `#${part.id}` }, part.querySelector("h2").textContent)))));
}

function build() {
  document.title = `${DATA.title} · langevinrl`;
  const sections = [curvesSection(), ...summarySections(), ablationSection(), costSection(),
    healthSection()];
  $("page").append(header(), el("aside", { "aria-label": "Choices" }, controls(), contents(sections)),
    el("main", {}, sections, el("footer", {}, DATA.made)));
}

function afterResize() {
  let width = innerWidth, waiting = 0;
  addEventListener("resize", () => {
    if (innerWidth === width) return; // phones resize when their bars hide
    width = innerWidth;
    cancelAnimationFrame(waiting);
    waiting = requestAnimationFrame(() => refresh());
  });
}

build();
afterResize();
prefersDark.addEventListener("change", () => { $("legend").settle(); refresh(); });
addEventListener("beforeprint", () => { printing = true; $("legend").settle(); refresh(true); });
addEventListener("afterprint", () => { printing = false; $("legend").settle(); refresh(); });
