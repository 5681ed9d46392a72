// A page of finished pictures (see finished/page.py): which view of each chart is chosen, drawn by Vega, one chart a frame. Follows charting.js.
(() => {
  const page = (window.tailboard = { views: {}, state: null, ready: Promise.resolve() });
  const NARROW = 560; // px: below it specs leave out their legends
  const TOP = { maps: 64, breaths: 64 }, FITTED = new Set(["maps"]); // pictures in a grid lay themselves out
  const { find, every, make, dotOf, roomOf, fittedRoom, embedded, described, frame, drained } = charting;
  const drawn = {}, dirty = new Set();
  let content, state, colors = null;

  async function unpack(text) {
    const packed = Uint8Array.fromBase64?.(text) ?? Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    return new Response(new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"))).json();
  }
  // The rows of a table that came as columns.
  function rowsOf(columns) {
    const names = Object.keys(columns), length = names.length ? columns[names[0]].length : 0;
    return Array.from({ length }, (_, row) => Object.fromEntries(names.map((name) => [name, columns[name][row]])));
  }
  const viewOf = ({ by, views }) => views[by ? state[by] : ""] ?? Object.values(views)[0];

  async function draw(name) {
    const chart = content.charts.find((one) => one.name === name), element = find(name), view = viewOf(chart), spec = content.specs[chart.spec];
    find(`${name}-says`).textContent = view.says;
    drawn[name]?.finalize();
    delete drawn[name];
    delete page.views[name];
    if (element.closest(".folded")) return;
    const { config, colors: hues } = (colors ??= themeOf(document.documentElement)), fitted = FITTED.has(chart.spec);
    const bottom = chart.spec === "trend" ? 96 : 46, high = view.height || spec.height;
    const room = fitted ? fittedRoom(element, spec) : roomOf(element, high, TOP[chart.spec] ?? 14, bottom);
    const filled = Object.fromEntries(Object.entries(view.tables).map(([table, columns]) => [table, rowsOf(columns)]));
    drawn[name] = await embedded(element, spec, filled, { ...hues, ...state, ...view.signals }, room, config, { disableDefaultStyle: true });
    page.views[name] = drawn[name].view;
    const narrow = !fitted && room.size[0] < NARROW && spec.signals.some((signal) => signal.name === "main") && spec.legends;
    key(element, narrow ? drawn[name].view.scale("color") : null);
    described(element, view.says);
  }
  // The colours by name where a chart has no room for its legend.
  function key(element, color) {
    element.parentElement.querySelector(`[data-of=${element.id}]`)?.remove();
    if (!color) return;
    element.after(make("p", { className: "key", dataset: { of: element.id } }, ...color.domain().map((label) => make("span", {}, dotOf(color(label)), label))));
  }
  function refresh(...names) {
    for (const name of names.length ? names : content.charts.map((chart) => chart.name)) dirty.add(name);
    return (page.ready = page.ready.then(() => drained(dirty, (name) => draw(name).then(frame))).catch(failed));
  }
  function redraw() {
    colors = null;
    return refresh();
  }

  // ---- State: every control bears the name of what it sets; what is not as it was at first stands in the address.
  const fedBy = (key) => ({ by, spec }) => by === key || content.specs[spec].signals.some(({ name, update }) => name === key && !update);
  function set(change) {
    Object.assign(state, change);
    show();
    const changes = Object.entries(state).filter(([key, value]) => value !== content.state[key]);
    history.pushState(null, "", `#${new URLSearchParams(changes)}`);
    const fed = content.charts.filter((chart) => Object.keys(change).some((key) => fedBy(key)(chart)));
    return fed.length ? refresh(...fed.map(({ name }) => name)) : page.ready;
  }
  const offered = (name) => [...document.querySelectorAll(`select[name=${name}] option, input[name=${name}]`)].map(({ value }) => value);
  // What no control can be set to, as an address may hold it, is as it was at first.
  function show() {
    for (const key of Object.keys(state)) if (key !== "open" && !offered(key).includes(state[key])) state[key] = content.state[key];
    charting.fold((name) => charting.listed(state.open).includes(name));
    every("[name]", (control) => {
      if (control.type === "radio") control.checked = control.value === state[control.name];
      else if (control.name in state) control.value = state[control.name];
    });
  }
  function toggled(name, panel) {
    set({ open: charting.otherwise(state.open, name) });
    return refresh(...content.charts.map((chart) => chart.name).filter((each) => panel.contains(find(each))));
  }
  // The numbers of a chart that is drawn, every one in full.
  function csvOf(name) {
    const { tables } = viewOf(content.charts.find((chart) => chart.name === name));
    return menus.csvOf(rowsOf(tables.points ?? tables.cells), "");
  }
  function fromAddress() {
    const entries = [...new URLSearchParams(location.hash.slice(1))].filter(([key]) => Object.hasOwn(content.state, key));
    return { ...content.state, ...Object.fromEntries(entries) };
  }
  function listen() {
    document.addEventListener("change", ({ target: { name, value } }) => Object.hasOwn(state, name) && value !== state[name] && set({ [name]: value }));
    addEventListener("popstate", () => { Object.assign(state, fromAddress()); show(); refresh(); });
    const title = document.querySelector("h1").textContent;
    menus.listen({ csvOf, named: () => title, headed: () => [title], tablesFirst: true });
    charting.listen({ refresh, redraw, isDrawn: (name) => Boolean(drawn[name]), unfold: (open) => every("details:not(.tools)", (part) => (part.open = open)) });
  }
  async function begin() {
    content = await unpack(find("data").textContent);
    find("data").remove();
    Object.assign(page, { content, state: (state = fromAddress()) });
    charting.foldable(toggled);
    show();
    listen();
  }
  page.ready = begin().then(() => void refresh(), failed);
})();
