// The controls of the report's page: every one bears the name of what it sets. They set what is chosen, and have drawn anew what that
// feeds. Follows draw.js in the same script, and begins all of it.
const controls = (() => {
  const { page, now, WHOLE, find, every, change, correct, fromAddress, toAddress, settled, chooseRun, keysOf, unpacked, replaced, when, dated, zero } = chosen;
  const { byName, map, hand, sections, linkTo } = panels, { pulled, isDrawn, refresh, renew, redraw } = drawing, { make } = charting;
  const PRESETS = ["50", "90", "95", "99", "99.9", "99.99", "100"];
  const FEEDS = {
    p: ["percentiles", "heatmap", "runs", "load", "worst"], also: ["percentiles"], by: ["percentiles", "rate", "distribution"],
    tail: ["hosts", "threads", "percentiles", "worst"],
    sla: ["percentiles", "heatmap", "distribution", "runs", "maps", "load"], shading: ["heatmap", "maps"], palette: ["heatmap", "maps"],
    axis: ["heatmap"], drop: ["heatmap"], least: ["heatmap"], most: ["heatmap"], highlight: ["heatmap"], box: ["heatmap"],
    off: ["percentiles", "rate", "distribution"], open: [], beside: ["percentiles"],
  };
  for (const { feeds } of sections) {
    for (const [key, names] of Object.entries(feeds ?? {})) FEEDS[key] = [...(FEEDS[key] ?? []), ...names];
  }

  function set(wanted, moving = null) {
    change(wanted);
    show();
    toAddress(moving);
    return refresh(...new Set(Object.keys(wanted).flatMap((key) => FEEDS[key] ?? Object.keys(byName))));
  }

  // ---- Showing what is chosen.
  // Gives a list its choices, and leaves it alone where it has them: it may be open.
  function offer(select, options) {
    const same = (option, at) => option.value === select.options[at].value && option.text === select.options[at].text;
    if (options.length !== select.options.length || !options.every(same)) select.replaceChildren(...options);
  }
  function offerLabels() {
    const { content, state } = now, keys = keysOf();
    const known = (label) => [...new Set(keys.map((key) => key[label]))].filter(Boolean).sort();
    for (const [name, first] of [["run", null], ["beside", "nothing"], ["kind", null], ["op", "all operations"], ["host", "all hosts"]]) {
      const values = name === "run" ? content.runs.map((run) => run.name) : name === "beside" ? content.runs.filter((run) => run !== now.run).map((run) => run.name) : known(name);
      if (!values.includes(state[name])) state[name] = first === null ? values[0] ?? "" : "";
      every(`select[name=${name}]`, (select) => {
        offer(select, [...(first ? [new Option(first, "")] : []), ...values.map((value) => new Option(value, value))]);
        select.closest("label").hidden = values.length < (name === "beside" ? 1 : 2);
      });
    }
    map.offerHighlights(offer);
  }
  function show(typing = null) {
    const { state } = now;
    chooseRun();
    offerLabels();
    for (const { shown } of sections) shown?.();
    every("a[data-t]", (link) => { // rows that the file itself has, of all runs
      Object.assign(link, linkTo({ t: Number(link.dataset.t), t2: Number(link.dataset.t2) }));
      link.closest("tr").hidden = link.closest("tr").dataset.run !== now.run.name;
    });
    every("[name]", correct);
    every("[name]", (control) => {
      if (control.type === "radio") control.checked = control.value === state[control.name];
      else if (control.type === "checkbox") control.checked = state[control.name].split(",").includes(control.value);
      else if (control.name in state && control !== typing) control.value = state[control.name];
    });
    every("[data-p]", (button) => button.setAttribute("aria-pressed", String(button.dataset.p === state.p)));
    find("whole").hidden = Object.keys(WHOLE).every((name) => !state[name]);
    charting.fold((name) => charting.listed(state.open).includes(name) || Boolean(name === "box" && state.box));
    view();
  }
  // What all panels over time show: how wide a window is, and of which range.
  function view() {
    const says = find("view-says"), { run, state } = now, { cluster } = run.levels;
    if (!says || !cluster) return;
    const [t, t2] = tables.windowsOf(cluster).map((window) => cluster.origin + window * cluster.step);
    const day = dated() || run.relative || state.clock === "elapsed" ? "" : `, ${new Date(t - zero()).toISOString().slice(0, 10)}`;
    says.textContent = `${when({ t, t2 })}${day}, windows of ${tables.viewStep(tables.linesOf()) / 1000} s`;
  }
  function toggled(name, panel) {
    set({ open: charting.otherwise(now.state.open, name) });
    return refresh(...Object.keys(byName).filter((each) => panel.contains(find(each) ?? find(`${each}-rows`))));
  }
  // The numbers of a chart, every one in full.
  function csvOf(name) {
    const { cells, points = [], thin = [] } = drawing.tablesOf(name), own = Object.assign({ heatmap: map.rows }, ...sections.map(({ csv }) => csv))[name];
    const rows = own?.() ?? cells ?? [...points.map((row) => ({ ...row, too_few: 0 })), ...thin.map((row) => ({ ...row, too_few: 1 }))];
    return menus.csvOf(rows, now.run.name, name === "rate" ? { v: "rate" } : name.startsWith("metric") ? { v: "value" } : {});
  }
  // Data of the same page in place of those that it has: what was chosen stays, pictures are kept and filled anew.
  async function renewed(text) {
    const next = await tailboard.unpack(text), typing = document.activeElement?.type === "number" ? document.activeElement : null;
    return renew(() => {
      replaced(next);
      show(typing);
    });
  }

  // ---- Listening.
  function changed({ target, type: event }) {
    const { name, type } = target, { state } = now;
    let { value } = target;
    if (!(name in state)) return;
    if (name === "p") value = String(Math.min(100, Math.max(50, Math.round(100 * Number(value)) / 100)) || state.p);
    if (type === "checkbox") value = [...document.querySelectorAll(`[name=${name}]:checked`)].map((box) => box.value).join(",");
    if (type === "number" && name !== "p" && !Number.isFinite(Number(value))) value = "";
    if (value !== state[name]) set({ [name]: value }, event === "input" ? name : null);
    else show();
    if (event === "change") settled();
  }
  // What was dragged over an axis becomes the range of it.
  function released() {
    if (pulled.latency) {
      const [view, range] = pulled.latency, [least, most] = range.map((ns) => String(Number((ns / 1e6).toPrecision(5))));
      pulled.latency = null;
      view.signal("rise", null);
      set({ least, most });
    }
    if (!pulled.time) return;
    const [view, range] = pulled.time, seconds = (ms, round) => String(round((ms - now.run.start) / 10) / 100);
    pulled.time = null;
    view.signal("drag", null);
    set({ from: seconds(range[0], Math.floor), to: seconds(range[1], Math.ceil) });
  }
  function returned() {
    const before = JSON.stringify(now.state);
    fromAddress();
    show();
    if (JSON.stringify(now.state) !== before) refresh();
  }
  function listen() {
    document.addEventListener("input", (event) => event.target.type === "range" && changed(event));
    document.addEventListener("change", changed);
    find("whole").addEventListener("click", () => set({ ...WHOLE }));
    map.listen();
    hand.listen();
    addEventListener("pointerup", released);
    addEventListener("keydown", (event) => event.key === "Escape" && set({ ...WHOLE }));
    addEventListener("popstate", returned); // Back, Forward, a link of the page, another address typed
    overlay.listen();
    menus.listen({ csvOf, named: () => now.run.label, headed: () => [now.run.name, find("view-says")?.textContent] });
    charting.listen({ refresh, redraw, isDrawn, unfold: (open) => every("#noted, #about, #story-more", (fold) => (fold.open = open)) });
  }
  async function begin() {
    await unpacked();
    every(".presets", (row) => row.append(...PRESETS.map((p) => make("button", { type: "button", dataset: { p }, onclick: () => set({ p }) }, p === "100" ? "max" : p))));
    charting.foldable(toggled);
    show();
    listen();
  }
  page.ready = begin().then(() => void refresh(), failed);
  return { set, offer, renewed };
})();
