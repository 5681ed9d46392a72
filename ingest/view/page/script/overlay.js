"use strict";
// What lies over the pictures: one line through all panels over time with the values of all series there, the events that the story
// names, and windows that are covered in part. Follows panels.js in the same script. Times are ms, latencies ns.
const overlay = (() => {
  const { page, now, find, every, when } = chosen, { make, dotOf } = charting, { what, atLeast, number } = words;
  const READ = ["percentiles", "heatmap", "hosts", "threads", "rate", "surface"], ALWAYS = ["percentiles", "hosts", "rate"];
  const MOST = 8, EVENTS = 3, LEAST = 8; // lines of a panel; events that are marked; px, of a mark
  const layers = new Map();
  let place = null, held = null; // where the line is: {name, t}; what is under the pointer by itself

  // ---- Layers: one over the plot of each panel whose axis is time.
  const viewOf = (name) => layers.has(name) && page.views[name], part = (kind) => make("div", { className: kind });
  function drawn(name) {
    const view = page.views[name], plot = find(name).parentElement;
    if (!isTime(view) || !plot.matches(".plot")) return;
    if (!layers.has(name)) {
      const layer = part("over");
      layer.setAttribute("aria-hidden", "true");
      layer.append(part("marks"), part("line"));
      layers.set(name, layer);
    }
    const layer = layers.get(name), { left, top } = view.padding();
    if (layer.parentElement !== plot) plot.append(layer);
    // In shares of the picture's width, as on paper that is another one than what it was drawn for; margins are shares of a width, too.
    const [width, height] = [view.signal("main"), view.height()], chart = find(name), share = (px) => `${(100 * px) / chart.clientWidth}%`;
    Object.assign(layer.style, { left: share(left), top: `${chart.offsetTop}px`, marginTop: share(top), width: share(width), aspectRatio: `${width} / ${height}` });
    layer.firstChild.replaceChildren(...partial(name, view), ...events(name, view));
    follow();
  }
  function isTime(view) {
    try {
      return view.signal("main") > 0 && view.signal("end") > view.signal("begin") && Boolean(view.scale("x"));
    } catch {
      return false; // a chart without such signals
    }
  }
  function box(kind, view, [left, right], [top, bottom]) {
    const element = part(kind), [across, down] = [view.signal("main"), view.height()].map((all) => (px) => `${(100 * px) / all}%`);
    Object.assign(element.style, { left: across(left), width: across(right - left), top: down(top), height: down(bottom - top) });
    return element;
  }
  // ---- Windows that the data or the view cover in part, at the first and the last edge.
  function partial(name, view) {
    const { points = [] } = drawing.tablesOf(name), { run } = now, [begin, end] = ["begin", "end"].map((edge) => view.signal(edge));
    if (!READ.includes(name) || !points.length) return [];
    const [low, high] = [Math.max(begin, run.covered?.[0] ?? begin), Math.min(end, run.covered?.[1] ?? end)], x = view.scale("x");
    const first = points.find(({ t, t2 }) => t < low - 1 && t2 > low), last = points.find(({ t, t2 }) => t < high && t2 > high + 1);
    const parts = name === "rate" ? [points.find(({ part: is }) => is), points.findLast(({ part: is }) => is)] : [first, last];
    return [...new Set(parts)].filter(Boolean).map(({ t, t2 }) => {
      const cut = (ms) => Math.min(view.signal("main"), Math.max(0, x(ms)));
      return box("partial", view, [cut(t), cut(t2)], [0, view.height()]);
    });
  }
  // ---- Events: what the story names, at its time and, where the picture has it, its latency or host.
  const placed = (seconds) => now.run.start + 1000 * seconds;
  const eventsOf = () => (now.run.story?.findings ?? []).slice(0, EVENTS)
    .map((finding) => ({ t: placed(finding.from_s), t2: placed(finding.to_s), who: finding.who, latency: finding.latency_ns, text: finding.value }));
  const isSelected = (who = {}) => ["host", "op"].every((label) => !who[label] || !now.state[label] || who[label] === now.state[label]);
  function events(name, view) {
    const x = view.scale("x"), main = view.signal("main"), [begin, end] = ["begin", "end"].map((edge) => view.signal(edge));
    if (!["heatmap", "hosts"].includes(name)) return [];
    return eventsOf().flatMap((event, rank) => {
      if (event.t >= end || event.t2 <= begin || !isSelected(event.who)) return [];
      const whole = event.t2 - event.t > 0.9 * (end - begin);
      let [left, right] = [Math.max(0, x(event.t)), Math.min(main, x(event.t2))];
      if (right - left < LEAST) [left, right] = [(left + right - LEAST) / 2, (left + right + LEAST) / 2];
      const span = name === "hosts" ? rowOf(view, event.who?.host) : whole ? null : heightsOf(view, event.latency);
      if (!span) return [];
      const mark = box(`event rank${rank + 1}`, view, [left, right], span), label = part("label");
      label.textContent = event.text ?? "";
      label.classList.toggle("after", left < 130); // px, that a text such as "slowest 4.01 s" takes
      if (name === "heatmap") mark.append(label);
      return [mark];
    });
  }
  function rowOf(view, host) {
    const y = view.scale("y"), top = host && y(host);
    return top === undefined || top === "" ? null : [top, top + y.bandwidth()];
  }
  function heightsOf(view, range) {
    if (!range) return null;
    const y = view.scale("y"), inside = (ns) => Math.min(view.height(), Math.max(0, y(Math.max(1, ns))));
    const [top, bottom] = [inside(range[1]) - 5, inside(range[0]) + 4];
    return [top, Math.max(bottom, top + 2 * LEAST)];
  }

  // ---- The line through all panels.
  const rowsOf = (name) => { const { points = [], thin = [] } = drawing.tablesOf(name); return [...points, ...thin]; };
  // The window of a panel that is nearest to a time.
  function nearest(name, t) {
    const far = (row) => (t >= row.t && t < row.t2 ? 0 : Math.min(Math.abs(row.t - t), Math.abs(row.t2 - t)));
    return rowsOf(name).reduce((best, row) => (!best || far(row) < far(best) ? row : best), null);
  }
  function follow() {
    for (const [name, layer] of layers) {
      const view = place && page.views[name], inside = view && place.t >= view.signal("begin") && place.t <= view.signal("end");
      layer.lastChild.style.display = inside ? "block" : "none";
      if (inside) layer.lastChild.style.left = `${view.scale("x")(place.t)}px`;
    }
  }
  const said = (name, { v, open, beyond }) => (name === "rate" ? `${number(Math.round(v))} a second` : `${atLeast({ v, open })}${beyond === undefined && name === "percentiles" ? " (max: too few samples)" : ""}`);
  // The lines of the box: of each panel the series at the time.
  function valuesAt({ name, t }) {
    const twice = name !== "hosts" && now.state.by === "host" ? "hosts" : ""; // the lines are those of hosts
    const wanted = [...new Set([name, ...ALWAYS])].filter((panel) => panel !== twice && READ.includes(panel) && page.views[panel]);
    return wanted.map((panel) => {
      const rows = rowsOf(panel).filter((row) => row.t <= t && t < row.t2).sort((a, b) => b.v - a.v);
      const color = ["percentiles", "rate"].includes(panel) && page.views[panel].scale("color");
      const kept = rows.slice(0, MOST), more = rows.length - kept.length;
      const title = { heatmap: `${what(now.state.p)} of all`, hosts: `Hosts, ${page.views.hosts?.signal("what")}`, threads: `Threads, ${page.views.threads?.signal("what")}` }[panel] ?? find(panel).dataset.title;
      return { title, more, lines: kept.map((row) => [row.row && panel !== "percentiles" ? row.row : row.label || "all", said(panel, row), color && color(row.label)]) };
    });
  }
  function table(rows) {
    const line = ([key, value, color]) => make("tr", {}, make("td", { className: "key" }, ...(color ? [dotOf(color)] : []), key), make("td", {}, value));
    return make("table", {}, ...rows.map(line));
  }
  const titled = (text) => Object.assign(part("title"), { textContent: text });
  function content() {
    const own = !held ? [] : typeof held === "object" ? [table(Object.entries(held).map(([key, value]) => [key, String(value)]))] : [titled(String(held))];
    if (!place) return own;
    const row = nearest(place.name, place.t), at = row ? { t: row.t, t2: row.t2 } : { t: place.t };
    const values = valuesAt(place).filter(({ lines }) => lines.length);
    return [titled(when(at)), ...own, ...values.flatMap(({ title, lines, more }) => [titled(title), table([...lines, ...(more ? [[`and ${more} more`, ""]] : [])])])];
  }
  function show(x, y) {
    const tip = tipOf(), nodes = content();
    tip.classList.toggle("visible", nodes.length > 0);
    if (!nodes.length) return;
    tip.replaceChildren(...nodes);
    const { width, height } = tip.getBoundingClientRect(), top = Math.max(4, Math.min(y + 14, innerHeight - height - 8)), answer = find("boxed")?.getBoundingClientRect();
    const isOver = answer && x + 16 + width > answer.left && x < answer.left && top < answer.bottom && top + height > answer.top; // what is said of a box
    Object.assign(tip.style, { left: `${isOver || x + 16 + width > innerWidth ? Math.max(4, x - width - 16) : x + 16}px`, top: `${top}px` });
  }
  const tipOf = () => find("vg-tooltip-element") ?? document.body.appendChild(make("div", { id: "vg-tooltip-element" }));
  // What Vega says of the mark under the pointer.
  function hint(name, event, value) {
    held = value === null || value === undefined || value === "" ? null : value;
    if (event) show(event.clientX, event.clientY);
  }
  function hide() {
    [place, held] = [null, null];
    follow();
    tipOf().classList.remove("visible");
  }
  function timeUnder(name, clientX) {
    const view = viewOf(name), { left, width } = layers.get(name).getBoundingClientRect(), x = clientX - left;
    return x < 0 || x > width ? null : view.scale("x").invert(x).valueOf();
  }
  // What a row of hosts or threads, a line of a legend, a value of a box is of: its cells are lit in the heat map.
  function rowUnder(name, { clientY }) {
    const { rows } = drawing.tablesOf(name), { top, height } = layers.get(name).getBoundingClientRect();
    const row = rows?.[Math.floor(((clientY - top) / height) * rows.length)]?.row;
    return row !== undefined && name !== "surface" ? `${name.slice(0, -1)}=${row}` : "";
  }
  function moved(event) {
    const chart = event.target.closest?.(".chart"), name = chart?.id, view = name && viewOf(name);
    panels.map.light(event.target.closest?.("[data-lit]")?.dataset.lit ?? (view ? rowUnder(name, event) : ""));
    if (!view || drawing.pulled.time) return void (place && hide());
    const t = timeUnder(name, event.clientX);
    if (t === null) return void (place && hide());
    const row = nearest(name, t);
    place = { name, t: row ? (row.t + row.t2) / 2 : t };
    follow();
    show(event.clientX, event.clientY);
  }
  // Arrow keys move the line of the chart that has the focus from window to window.
  function stepped(event) {
    const name = event.target.id, way = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!way || !event.target.matches?.(".chart") || name === "heatmap" || !viewOf(name)) return;
    event.preventDefault();
    const starts = [...new Set(rowsOf(name).map((row) => (row.t + row.t2) / 2))].sort((a, b) => a - b);
    const from = place?.t ?? (way > 0 ? -Infinity : Infinity);
    const next = way > 0 ? starts.find((t) => t > from + 1) : starts.findLast((t) => t < from - 1);
    if (next === undefined) return;
    place = { name, t: next };
    follow();
    const { left, top } = layers.get(name).getBoundingClientRect();
    show(left + page.views[name].scale("x")(next), top);
    find("line-says").textContent = content().map((node) => node.textContent).join(" ");
  }
  function listen() {
    every(".chart", (chart) => {
      const plot = part("plot");
      chart.replaceWith(plot);
      plot.append(chart);
    });
    const live = Object.assign(part("aloud"), { id: "line-says" });
    live.setAttribute("aria-live", "polite");
    document.querySelector("main").append(live);
    let waiting = null;
    document.addEventListener("pointermove", (event) => {
      if (!waiting) requestAnimationFrame(() => { const last = waiting; waiting = null; moved(last); });
      waiting = event;
    });
    document.addEventListener("pointerleave", hide);
    document.addEventListener("keydown", stepped);
    document.addEventListener("focusout", ({ target }) => target.matches(".chart") && hide());
    document.addEventListener("keydown", ({ key }) => key === "Escape" && hide());
  }
  return { drawn, hint, listen, valuesAt, eventsOf };
})();
