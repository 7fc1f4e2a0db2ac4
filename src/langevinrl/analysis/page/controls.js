// Controls for all sections: methods, axis, band, seeds, theme.
function switches(title, options, isOn, choose, id) {
  const buttons = Object.entries(options).map(([key, text]) => el("button", { type: "button",
    "data-key": key, onclick: () => { choose(key); settle(); refresh(); } }, text));
  const settle = () => buttons.forEach((b) => b.setAttribute("aria-pressed", isOn(b.dataset.key)));
  settle();
  const group = el("div", { class: "switch", role: "group", "aria-label": title, id }, buttons);
  group.settle = settle;
  return el("div", { class: "control" }, el("div", { class: "control-name" }, title), group);
}

function legend() {
  const list = el("div", { class: "legend", role: "group", "aria-label": "Methods", id: "legend" });
  const buttons = [];
  const settle = () => buttons.forEach((button, at) => {
    button.setAttribute("aria-pressed", String(state.methods.has(at)));
    button.firstChild.replaceWith(swatch(at));
  });
  const strengthen = (at) => {
    if (state.strong === at) return;
    state.strong = at;
    for (const line of document.querySelectorAll("g.line[data-method]")) {
      const mine = at === null || Number(line.dataset.method) === at;
      line.setAttribute("opacity", mine ? 1 : 0.18);
    }
  };
  const agents = DATA.methods.map((method) => method.agent);
  DATA.methods.forEach((method, at) => {
    const several = agents.indexOf(method.agent) !== agents.lastIndexOf(method.agent);
    if (several && agents.indexOf(method.agent) === at)
      list.append(el("div", { class: "agent" }, DATA.agents[method.agent]));
    buttons.push(el("button", {
      type: "button", "aria-pressed": "true", "data-method": at, class: several ? "setting" : null,
      onclick: () => {
        if (!state.methods.delete(at)) state.methods.add(at);
        state.strong = state.methods.has(at) ? at : null;
        settle();
        refresh();
      },
      onpointerenter: () => strengthen(state.methods.has(at) ? at : null),
      onpointerleave: () => strengthen(null),
      onfocus: () => strengthen(state.methods.has(at) ? at : null),
      onblur: () => strengthen(null),
    }, swatch(at), el("span", {}, several ? settingsName(method) : method.label)));
    list.append(buttons.at(-1));
  });
  list.settle = settle;
  const set = (which) => () => { state.methods = new Set(which); settle(); refresh(); };
  return el("div", { class: "control" },
    el("div", { class: "control-name" }, "Methods", el("span", { class: "tools" },
      tool("All", "Show all methods", set(DATA.methods.keys())),
      tool("None", "Hide all methods", set([])))), list);
}

// The settings that distinguish a method, without its name.
const settingsName = (method) => (Object.keys(method.settings).length
  ? method.label.slice(DATA.agents[method.agent].length + 2) : method.label);

function seedChoice() {
  const options = Object.fromEntries(SEEDS.map((seed) => [`s${seed}`, String(seed)]));
  return switches("Seeds", options, (key) => state.seeds.has(Number(key.slice(1))), (key) => {
    const seed = Number(key.slice(1));
    if (!state.seeds.delete(seed)) state.seeds.add(seed);
  }, "seeds");
}

function themeSwitch() {
  const chosen = () => document.documentElement.dataset.theme ?? "auto";
  return switches("Theme", { auto: "Auto", light: "Light", dark: "Dark" },
    (key) => chosen() === key, (key) => {
      if (key === "auto") delete document.documentElement.dataset.theme;
      else document.documentElement.dataset.theme = key;
      $("legend").settle();
    }, "theme");
}

function controls() {
  const axes = Object.fromEntries(Object.entries(AXES).map(([key, axis]) => [key, axis.label]));
  axes.steps = "Steps";
  const panel = el("div", { id: "choices" }, legend(),
    switches("Horizontal axis", axes, (key) => state.axis === key,
      (key) => { state.axis = key; }, "axis"),
    switches("Band", BANDS, (key) => state.band === key, (key) => { state.band = key; }, "band"),
    SEEDS.length ? seedChoice() : null,
    switches("Single seeds", { on: "Thin line per seed" }, () => state.single,
      () => { state.single = !state.single; }, "single"),
    themeSwitch());
  const open = el("button", { type: "button", id: "open-choices", "aria-expanded": "false",
    "aria-controls": "choices", onclick: () => {
      const now = document.body.classList.toggle("choosing");
      open.setAttribute("aria-expanded", String(now));
    } }, "Methods, axis, seeds");
  return [open, panel];
}
