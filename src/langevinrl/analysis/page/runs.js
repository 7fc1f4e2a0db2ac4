// Runs: how each ended, its version, and its configuration in a drawer.
const STATUSES = { done: "finished", cut: "cut short", failed: "failed", none: "no evaluation",
  unreadable: "cannot be read" };

// A version without its commit.
const packageOf = (version) => version.split(" (")[0];

// Remarks on a run that affect how far to trust it.
function remarks(run) {
  const list = [];
  if (run.status !== "done") list.push(STATUSES[run.status]);
  if (run.resumes) list.push(run.resumes === 1 ? "resumed once" : `resumed ${run.resumes} times`);
  if (run.dirty) list.push("uncommitted changes");
  if (run.changed.length) list.push(`${run.changed.join(" and ")} changed after it was written`);
  const evaluated = run.seeds.length > 0;
  if (evaluated && packageOf(run.version) !== packageOf(DATA.versions[0])) list.push("other version");
  return list;
}

const needsALook = (run) => remarks(run).length > 0;

const UNCOMPARED = new Set(["out", "seed", "env", "track", "compilation_cache"]);

// Fields in which a run differs from most runs of its method.
function differences(run) {
  const others = DATA.runs.filter((other) => other !== run && other.agent === run.agent);
  const found = [];
  for (const [name, value] of Object.entries(run.config)) {
    if (UNCOMPARED.has(name) || !others.length) continue;
    const counts = new Map();
    for (const other of others) {
      const text = JSON.stringify(other.config[name]);
      counts.set(text, (counts.get(text) ?? 0) + 1);
    }
    const [usual] = [...counts].sort((a, b) => b[1] - a[1])[0];
    if (usual !== JSON.stringify(value)) found.push([name, value, usual]);
  }
  return found;
}

const code = (value) => el("code", {}, typeof value === "string" ? value : JSON.stringify(value));

function openDrawer(run) {
  const different = differences(run);
  const body = [
    el("p", {}, `${run.label} on ${run.task}, seeds ${run.seeds.join(", ") || "–"}: ` +
      `${STATUSES[run.status]}, ${show(run.reached, 0)} of ${show(run.planned, 0)} iterations.`),
    run.error && el("div", {}, el("h3", {}, "Error"), el("pre", {}, run.error)),
    el("h3", {}, "Different from most runs of this method"),
    different.length
      ? tableOf({ caption: "Differences", columns: ["Field", "Here", "Usually"],
        rows: different.map(([name, value, usual]) =>
          [name, { node: code(value) }, { node: code(usual === undefined ? "missing" : usual) }]) })
      : el("p", { class: "absent" }, "Only its seed, task and folder."),
    el("h3", {}, "Configuration"),
    tableOf({ caption: "Configuration", columns: ["Field", "Value"],
      rows: Object.entries(run.config).map(([name, value]) => [name, { node: code(value) }]) }),
    el("h3", {}, "Made with"),
    tableOf({ caption: "Versions", columns: ["What", "Version"],
      rows: Object.entries(run.versions)
        .map(([name, value]) => [name, { node: code(value) }]) }),
  ];
  $("drawer-title").textContent = run.folder;
  $("drawer-body").replaceChildren(...body.filter(Boolean));
  $("drawer").showModal();
  $("drawer-body").scrollTop = 0;
}

function drawer() {
  const node = el("dialog", { id: "drawer", "aria-labelledby": "drawer-title" },
    el("div", { class: "drawer-head" }, el("h2", { id: "drawer-title" }),
      el("button", { type: "button", onclick: () => node.close() }, "Close")),
    el("div", { id: "drawer-body" }));
  node.addEventListener("click", (event) => { if (event.target === node) node.close(); });
  return node;
}

function healthSentence() {
  const count = (test) => DATA.runs.filter(test).length;
  const parts = Object.entries(STATUSES).map(([key, text]) => [count((r) => r.status === key), text])
    .filter(([n]) => n).map(([n, text]) => `${n} ${text}`);
  const more = [[count((r) => r.changed.length), "with a log that is not what the run wrote"],
    [count((r) => r.resumes), "resumed"], [count((r) => r.dirty), "from a tree with " +
    "uncommitted changes"]].filter(([n]) => n).map(([n, text]) => `${n} ${text}`);
  const made = DATA.versions.length > 1
    ? `Several versions are mixed: ${DATA.madeWith}.` : `All were made with version ${DATA.madeWith}.`;
  return `${DATA.runs.length} run${DATA.runs.length === 1 ? "" : "s"}: ${parts.join(", ")}` +
    `${more.length ? `; ${more.join(", ")}` : ""}. ${made}`;
}

const MOST = 25; // rows shown at first

function healthSection() {
  const seen = { which: DATA.runs.some(needsALook) ? "look" : "all", words: "", most: MOST };
  const body = el("div"), count = el("p", { class: "note", role: "status" });
  const matches = (run) => {
    const text = [run.folder, run.label, run.task, run.version, run.error, ...remarks(run)].join(" ");
    return (seen.which === "all" || needsALook(run)) &&
      seen.words.toLowerCase().split(/\s+/).every((word) => text.toLowerCase().includes(word));
  };
  const fill = () => {
    const found = DATA.runs.filter(matches), shown = found.slice(0, seen.most);
    count.textContent = `${shown.length} of ${DATA.runs.length} runs shown.`;
    body.replaceChildren(found.length ? tableOf({ caption: "Runs",
      columns: ["Run", "Method", "Task", "Seeds", "Iterations", "Version", "Remarks"],
      rows: shown.map((run) => [
        { node: el("button", { type: "button", class: "run", onclick: () => openDrawer(run) }, run.folder) },
        run.label, run.task, run.seeds.join(", "), { number: true, text:
          `${short(run.reached ?? 0)} of ${isNumber(run.planned) ? short(run.planned) : "?"}` },
        run.version, { node: el("span", {}, el("span", {}, remarks(run).join(", ") || "–"),
          run.error ? el("span", { class: "error" }, run.error.trim().split("\n").at(-1)) : "") }]) })
      : absent("No run matches."),
    found.length > shown.length ? tool(`Show all ${found.length}`, "Show all matching runs",
      () => { seen.most = Infinity; fill(); }) : "");
  };
  const filter = el("input", { type: "search", id: "run-filter", placeholder: "Filter by any word",
    "aria-label": "Filter runs by any word", oninput: () => { seen.words = filter.value.trim(); fill(); } });
  const which = switches("Runs", { look: "With remarks", all: "All" }, (key) => seen.which === key,
    (key) => { seen.which = key; fill(); }, "run-kind");
  fill();
  return section("health", "Runs", healthSentence(), el("div", { class: "filters" }, which, filter),
    count, body, drawer());
}
