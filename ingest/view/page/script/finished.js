// A page of finished pictures (see panels.py): which view of each chart is chosen, drawn by Vega, one chart a frame. Follows theme.js.
(() => {
  const page = (window.tailboard = { views: {}, state: null, ready: Promise.resolve() });
  const NARROW = 560; // below it specs leave out their legends
  const TOP = { maps: 64, breaths: 64 }, FITTED = new Set(["maps"]); // pictures in a grid lay themselves out
  const drawn = {}, dirty = new Set(), root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const every = (selector, act) => document.querySelectorAll(selector).forEach(act);
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

  async function draw(chart) {
    const { name } = chart, element = find(name), view = viewOf(chart), spec = content.specs[chart.spec];
    find(`${name}-says`).textContent = view.says;
    const { config, colors: hues } = (colors ??= themeOf(root)), known = new Set(spec.signals.map((signal) => signal.name));
    const signals = { ...hues, ...state, ...view.signals };
    // Fixed room for axes, so that charts below one another are in line.
    const wide = element.clientWidth || 600, left = wide < 640 ? 70 : 132, top = TOP[chart.spec] ?? 14, fitted = FITTED.has(chart.spec);
    const fixed = fitted ? {} : { autosize: "none", padding: { left, right: 8, top, bottom: chart.spec === "trend" ? 96 : 46 } };
    const [width, height] = fitted ? [wide, spec.height] : [wide - left - 8, view.height || spec.height];
    if (!fitted) element.style.height = `${height + top + fixed.padding.bottom}px`;
    const hole = (entry) => entry.name in view.tables && !entry.source;
    const filled = { ...spec, ...fixed, width, height };
    filled.data = spec.data.map((entry) => (hole(entry) ? { ...entry, values: rowsOf(view.tables[entry.name]) } : entry));
    filled.signals = spec.signals.map((signal) => (known.has(signal.name) && signal.name in signals && !signal.update ? { ...signal, value: signals[signal.name] } : signal));
    drawn[name]?.finalize();
    const how = { mode: "vega", ast: true, actions: false, renderer: "canvas", defaultStyle: false, config };
    how.tooltip = { disableDefaultStyle: true };
    drawn[name] = await vegaEmbed(element, filled, how); // ast: the page's policy has no unsafe-eval
    page.views[name] = drawn[name].view;
    key(element, !fitted && wide - left - 8 < NARROW && known.has("main") && spec.legends ? drawn[name].view.scale("color") : null);
    element.setAttribute("role", "img"); // Vega has set its own
    element.setAttribute("aria-label", `${element.dataset.title}. ${view.says}`);
    element.removeAttribute("aria-roledescription");
  }
  // The colours by name where a chart has no room for its legend.
  function key(element, color) {
    element.parentElement.querySelector(`[data-of=${element.id}]`)?.remove();
    if (!color) return;
    const line = Object.assign(document.createElement("p"), { className: "key" });
    line.dataset.of = element.id;
    line.append(...color.domain().map((label) => {
      const [part, dot] = ["span", "i"].map((tag) => document.createElement(tag));
      dot.style.background = color(label);
      part.append(dot, label);
      return part;
    }));
    element.after(line);
  }
  const frame = () => new Promise((done) => [requestAnimationFrame(done), setTimeout(done, 50)]);
  // Those in sight first; what changes meanwhile is drawn in the same go.
  function refresh(charts = content.charts) {
    for (const chart of charts) dirty.add(chart);
    return (page.ready = page.ready.then(async () => {
      const inSight = ({ name }) => ((box) => box.bottom > 0 && box.top < innerHeight)(find(name).getBoundingClientRect());
      while (dirty.size) {
        const chart = [...dirty].find(inSight) ?? [...dirty][0];
        dirty.delete(chart);
        await draw(chart);
        await frame();
      }
    }).catch(failed));
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
    history.replaceState(null, "", `#${new URLSearchParams(changes)}`);
    return refresh(content.charts.filter((chart) => Object.keys(change).some((key) => fedBy(key)(chart))));
  }
  const offered = (name) => [...document.querySelectorAll(`select[name=${name}] option, input[name=${name}]`)].map(({ value }) => value);
  // What no control can be set to, as an address may hold it, is as it was at first.
  function show() {
    for (const key of Object.keys(state)) if (!offered(key).includes(state[key])) state[key] = content.state[key];
    every("[name]", (control) => {
      if (control.type === "radio") control.checked = control.value === state[control.name];
      else if (control.name in state) control.value = state[control.name];
    });
  }
  function fromAddress() {
    const told = [...new URLSearchParams(location.hash.slice(1))].filter(([key]) => Object.hasOwn(content.state, key));
    return { ...content.state, ...Object.fromEntries(told) };
  }
  function listen() {
    document.addEventListener("change", ({ target: { name, value } }) => Object.hasOwn(state, name) && value !== state[name] && set({ [name]: value }));
    addEventListener("hashchange", () => { Object.assign(state, fromAddress()); show(); refresh(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    let folded = [];
    addEventListener("beforeprint", () => {
      folded = [...document.querySelectorAll("details:not([open])")];
      folded.forEach((one) => (one.open = true));
      root.classList.add("print");
      redraw();
    });
    addEventListener("afterprint", () => {
      folded.forEach((one) => (one.open = false));
      root.classList.remove("print");
      redraw();
    });
    const sizes = new Map(), resized = new ResizeObserver((entries) => {
      for (const { target: { id, clientWidth } } of entries) {
        if (drawn[id] && sizes.get(id) !== clientWidth) refresh(content.charts.filter(({ name }) => name === id));
        sizes.set(id, clientWidth);
      }
    });
    every(".chart", (chart) => (sizes.set(chart.id, chart.clientWidth), resized.observe(chart)));
  }
  async function begin() {
    content = await unpack(find("data").textContent);
    find("data").remove();
    Object.assign(page, { content, state: (state = fromAddress()) });
    show();
    listen();
  }
  page.ready = begin().then(() => void refresh(), failed);
})();
