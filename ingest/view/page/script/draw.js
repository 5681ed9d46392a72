// The report's pictures: what panels.js works out, drawn by Vega, one panel a frame. Follows panels.js in the same script.
const drawing = (() => {
  const { page, now, find, memo, theme, forgetTheme, clockOf, zone, zero, isOurs, keysOf } = chosen, { byName, sections } = panels;
  const { what, atLeast } = words, { NARROW, make, dotOf, roomOf, fittedRoom, embedded, described, drained } = charting;
  // Large pictures are drawn anew in pieces: so many rows a frame, of the table that has the most.
  // The first piece is small, as the old rows go with it.
  const FIRST = 250, PIECE = 500, PIECEMEAL = { hosts: "points", threads: "points", surface: "points", maps: "cells" };
  const TOP = { heatmap: 22, load: 40 }; // room above a chart, for its legend
  const MISSING = "samples are missing"; // the text of its bands: query/missing.py
  const BOUNDS = "samples are missing: the facts have bounds";
  const LINES = 0.12, LOWEST_MAP = 120, BELOW_MAP = 130, HOST = 28, HOSTS = 6; // of the screen's height for the lines; px: how low the map may be; what the first screen needs below it, a host, how many
  const AXIS = 24; // px below a picture of the first screen whose axis the map has, too, with its name
  const NAMED = 5; // hosts in a sentence
  const FRAMES = 4000; // of which is kept how long they took
  const CLEAN = 256; // after how many rows that went Vega forgets them, instead of 10,000: a page may be open for days
  // Vega keeps the number of each row that was ever in a derived table (the lookup of its Relay): after so many a chart is made anew.
  const HELD = 20_000;
  const charts = {}, dirty = new Set();
  const pulled = { time: null, latency: null }; // the range under the pointer: [view, [from, to]]
  for (const { piecemeal, top } of sections) {
    Object.assign(PIECEMEAL, piecemeal);
    Object.assign(TOP, top);
  }

  // ---- A chart.
  // The tables of a panel and the signals of all of them.
  function filling({ merged, data, signals, span = merged?.span }) {
    const { run, state, content } = now, sla = Math.max(0, Number(state.sla) || 0) * 1e6;
    const marks = memo(["marks", run.name], () => content.marks.filter(isOurs));
    const gaps = merged && memo(["gaps", merged.id], () => tailboard.gapsOf(merged, merged.names));
    return {
      tables: { marks, ...(merged && { gaps }), ...data },
      common: { clock: clockOf(), zone: zone(), origin: zero(), range: span, sla, ...theme().colors, ...signals },
    };
  }
  // The map takes what the first screen has left between the lines and the hosts.
  function heightOf(name, { height }) {
    if (document.documentElement.classList.contains("print")) return height;
    if (name === "percentiles") return Math.min(height, Math.max(88, Math.round(LINES * innerHeight)));
    if (name !== "heatmap") return height;
    const top = find(name).getBoundingClientRect().top + scrollY + TOP.heatmap, hosts = new Set(now.run.levels.hosts.keys.map(({ host }) => host)).size;
    const below = hosts > 1 ? BELOW_MAP + HOST * Math.min(HOSTS, Math.max(2, hosts)) : 80;
    return Math.min(height, Math.max(LOWEST_MAP, Math.round(innerHeight - top - below)));
  }
  // Room below a chart: where it is narrow, the legend of the map stands below its axis, not beside the name of it.
  const belowOf = (name, { clientWidth }) => (name === "heatmap" && clientWidth < NARROW ? 74 : ["percentiles", "hosts"].includes(name) ? AXIS : undefined);
  // Fills a chart with other tables; returns the rows that are still to come.
  async function refill(name, spec, { tables, common }, { fixed, size }) {
    const { view, last } = charts[name], large = PIECEMEAL[name], known = new Set(spec.signals.map((signal) => signal.name));
    let rest = [];
    for (const [key, value] of Object.entries(common)) if (known.has(key)) view.signal(key, value);
    for (const { name: key } of spec.data.filter((entry) => entry.name in tables && last[entry.name] !== tables[entry.name])) {
      const rows = key === large && tables[key].length > FIRST ? tailboard.widestFirst(tables[key]) : tables[key];
      charts[name].held += rows.length;
      view.data(key, key === large ? rows.slice(0, FIRST) : rows);
      if (key === large) rest = rows.slice(FIRST);
    }
    if (String(size) !== charts[name].size) view.width(size[0]).height(size[1]).padding(fixed.padding ?? view.padding());
    await view.runAsync();
    return rest;
  }
  async function create(name, spec, { tables, common }, room) {
    const hint = (_, event, __, value) => overlay.hint(name, event, value);
    const { view, finalize } = await embedded(find(name), spec, tables, common, room, theme().config, hint);
    view.cleanThreshold = CLEAN;
    charts[name] = { view, finalize, held: 0 };
    page.views[name] = view;
    const listen = (signal, act) => spec.signals.some((known) => known.name === signal) && view.addSignalListener(signal, (_, value) => act(value));
    listen("drag", (range) => (pulled.time = range && [view, range]));
    for (const { opened } of sections) opened?.(name, view);
    listen("rise", (range) => (pulled.latency = range && [view, range]));
  }
  // Draws a panel and returns the rows that are still to come, in frames of their own.
  async function draw(name, panel) {
    const element = find(name), spec = now.content.specs[name] ?? now.content.specs.tails, given = filling(panel);
    find(name).closest(".panel").hidden = false;
    say(name, panel.says);
    const grid = name === "runs" || name === "maps";
    const room = grid ? fittedRoom(element, spec) : roomOf(element, panel.height ?? heightOf(name, spec), TOP[name] ?? 10, belowOf(name, element));
    if (charts[name]?.held > HELD) discard(name);
    const rest = charts[name] ? await refill(name, spec, given, room) : [];
    if (!charts[name]) await create(name, spec, given, room);
    Object.assign(charts[name], { last: given.tables, size: String(room.size) });
    described(element, panel.says);
    overlay.drawn(name);
    legends.drawn(name, panel.series);
    if (name === "percentiles") readOut(panel.data.whole, given.common.range ?? [-Infinity, Infinity]);
    return rest;
  }
  const say = (name, says) => Object.assign(find(`${name}-says`), { textContent: says, title: says }); // a line may be too short for all of it
  // A panel that is folded away is its sentence alone; one that says nothing that others do not (`alone`) is not shown.
  const isFolded = (name) => Boolean(find(name).closest(".panel.folded"));
  function spare(name, { says, alone = false }) {
    find(name).closest(".panel").hidden = alone;
    if (says) say(name, says);
    if (charts[name]) discard(name);
    delete page.views[name];
  }
  // The kind that is shown, where there are several, and the hosts that have another one alone: no line is of them.
  function kindShown() {
    const { kind, host } = now.state, keys = keysOf(), kinds = new Set(keys.map((key) => key.kind));
    const hosts = (ours) => new Set(keys.filter((key) => ours(key) && key.host && (!host || key.host === host)).map((key) => key.host));
    const shown = hosts((key) => key.kind === kind), others = [...hosts((key) => key.kind !== kind)].filter((name) => !shown.has(name)).sort();
    const named = `${others.slice(0, NAMED).join(", ")}${others.length > NAMED ? ` and ${others.length - NAMED} more` : ""}`;
    return { of: kinds.size > 1 && kind ? ` of ${kind} latency` : "", others: others.length ? `${named}: no ${kind || "unnamed"} latency, choose another kind` : "" };
  }
  // Of samples that are missing the page knows when, not how many: the table of the whole range has what a percentile can be.
  function readOut(whole, [from, to]) {
    const color = page.views.percentiles.scale("color"), { run, content, state } = now;
    const { of, others } = memo(["kind", run.name, state.kind, state.host], kindShown);
    const title = `${what(state.p)}${of} of the range:`;
    const lacking = content.marks.some((mark) => mark.text === MISSING && isOurs(mark) && mark.t < to && mark.t2 > from);
    const said = [whole.length && lacking && BOUNDS, others || (!whole.length && "too few samples")].filter(Boolean);
    const values = whole.filter(({ v }) => v > 0).map((point) => make("span", {}, dotOf(color(point.label)), point.label === what(state.p) ? "" : `${point.label} `, make("b", {}, atLeast(point))));
    find("readout").replaceChildren(title, ...values, ...(said.length ? [` ${said.join("; ")}`] : []));
    find("percentile").setAttribute("aria-valuetext", find("readout").textContent);
  }
  const discard = (name) => [charts[name].finalize(), delete charts[name]];

  // ---- Frames.
  async function frame(name, act) {
    const begun = performance.now(), result = await act();
    const end = performance.now();
    page.frames.push({ name, ms: end - begun, end });
    if (page.frames.length > FRAMES) page.frames.splice(0, FRAMES / 2);
    await charting.frame();
    return result;
  }
  async function numbers(name) {
    let steps = null, step;
    const next = () => ((steps ??= byName[name]()).next ? steps.next() : { done: true, value: steps });
    do step = await frame(`${name} numbers`, next);
    while (!step.done);
    return step.value;
  }
  async function picture(name, panel) {
    let rest = await frame(name, () => draw(name, panel));
    const { view, last } = charts[name];
    for (; rest.length && !dirty.has(name); rest = rest.slice(PIECE)) {
      await frame(name, () => view.insert(PIECEMEAL[name], rest.slice(0, PIECE)).runAsync());
    }
    if (rest.length) last[PIECEMEAL[name]] = null;
  }
  // One panel at a time, those in sight first from the top down, its numbers in some frames and its picture in the next ones; what changes
  // meanwhile is drawn in the same go.
  function refresh(...names) {
    for (const name of names.length ? names : Object.keys(byName)) if (find(name)) dirty.add(name);
    return (page.ready = page.ready.then(() => drained(dirty, async (name) => {
      const panel = await numbers(name);
      if (panel.alone || isFolded(name)) spare(name, panel);
      else if (panel.says) await picture(name, panel);
    })).catch(failed));
  }
  // Changes what is drawn, between two goes, and draws all of it: what a go under way drew until then is drawn again.
  function renew(changed) {
    page.ready = page.ready.then(changed).catch(failed);
    return page.ready.then(() => refresh());
  }
  const redraw = () => renew(() => {
    Object.keys(charts).forEach(discard);
    forgetTheme();
  });
  const isDrawn = (name) => Boolean(charts[name]);
  const tablesOf = (name) => charts[name]?.last ?? {};
  return { pulled, isDrawn, isFolded, tablesOf, heightOf, refresh, renew, redraw };
})();
