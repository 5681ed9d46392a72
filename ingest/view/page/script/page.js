// The report's page: what is chosen, what each panel draws, one panel a frame. Follows the other scripts.
(() => {
  const { MOST, MULTIPLES, carriedShare, percentileOf, pointsOf, thinOf, gapsOf, sharesOf, within } = tailboard;
  const SURFACE = ["99.99", "99.95", "99.9", "99.5", "99", "98", "95", "90", "75", "50"];
  const page = (window.tailboard = Object.assign(tailboard, { views: {}, frames: [], state: null, ready: Promise.resolve() }));
  // Large pictures are drawn anew in pieces: so many rows a frame, of the table that has the most.
  // The first piece is small, as the old rows go with it.
  const FIRST = 250, PIECE = 500, PIECEMEAL = { heatmap: "cells", hosts: "points", threads: "points", surface: "points", maps: "cells" };
  const TOP = { heatmap: 64, load: 40 }; // room above a chart, for its legend
  const FRAMES = 4000; // of which is kept how long they took
  const CLEAN = 256; // after how many rows that went Vega forgets them, instead of 10,000: a page may be open for days
  // Vega keeps the number of each row that was ever in a derived table (the lookup of its Relay): after so many a chart is made anew.
  const HELD = 20_000;
  const WHOLE = { from: "", to: "", least: "", most: "" };
  const drawn = {}, dirty = new Set(), cache = new Map(), root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const every = (selector, act) => document.querySelectorAll(selector).forEach(act);
  const { what, latency, atLeast, number, WEIGHED, mixedIn, tooFew } = words;
  let content, state, defaults, run;
  let dragged = null; // the range under the pointer: [view, [from, to]]
  let risen = null; // the same of latency

  function memo(key, make) {
    const name = JSON.stringify(key);
    if (!cache.has(name)) cache.set(name, make());
    return cache.get(name);
  }
  const held = (key) => cache.has(JSON.stringify(key));

  // ---- Words.
  const clockOf = () => (run.relative ? "elapsed" : state.clock); // a run without a clock has its own seconds alone
  const zero = () => ({ elapsed: run.start, local: new Date(run.begin).getTimezoneOffset() * 6e4 })[clockOf()] ?? 0;
  const zone = () => (state.clock === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC");
  function when({ t, t2 }) {
    const seconds = (ms) => ((ms - run.start) / 1000).toFixed(1), both = (shown) => [t, t2 ?? t].map(shown);
    const words = ([begin, end]) => (t2 === undefined ? begin : `${begin} – ${end}`);
    if (clockOf() === "elapsed") return `${words(both(seconds))} s elapsed`;
    return `${words(both((ms) => new Date(ms - zero()).toISOString().slice(11, 23).replace(".000", "")))} ${zone()}`;
  }
  // `none` is what is said without any points.
  function toldOr(none, points, ...more) {
    const top = points.reduce((most, point) => (point.v > most.v ? point : most), { v: -1 });
    const first = top.v < 0 ? none : `Highest: ${atLeast(top)}, ${top.label ? `${top.label}, ` : ""}${when(top)}.`;
    return [first, ...more].filter(Boolean).join(" ");
  }
  const told = (points, ...more) => toldOr("Nothing to show.", points, ...more);

  // ---- Rows under the filters.
  const passes = (key, op = state.op, kind = state.kind) =>
    key.kind === kind && (!op || key.op === op) && (!state.host || key.host === state.host);
  // The windows of a level in the chosen range, which is kept in seconds since the run's start.
  function windowsOf(level) {
    const window = (seconds) => (run.start + 1000 * seconds - level.origin) / level.step;
    const place = (seconds, round, none) => (seconds === "" ? none : round(window(seconds)));
    const from = Math.min(Math.max(0, place(state.from, Math.floor, 0)), level.windows - 1);
    return [from, Math.max(from + 1, Math.min(level.windows, place(state.to, Math.ceil, level.windows)))];
  }
  const spanOf = (level, windows) => windows.map((window) => level.origin + window * level.step);
  // The level that holds what is told apart by a label, the names of its groups, the group of each series, and the windows.
  function groupsOf(by, of = run, kind = state.kind) {
    const level = of.levels[by === "thread" ? "threads" : state.host || by === "host" ? "hosts" : "cluster"];
    const keys = level.keys.map((key) => (passes(key, state.op, kind) ? (by ? key[by] : "") : null));
    const names = [...new Set(keys.filter((key) => key !== null))].sort();
    const pick = keys.map((key) => (key === null ? -1 : names.indexOf(key)));
    return { level, names, pick, windows: of === run ? windowsOf(level) : [0, level.windows] };
  }
  // How many windows a cell holds where there are to be at most `most` cells; 0: all of them.
  function multipleOf({ names, windows: [from, to] }, most) {
    const least = ((to - from) * names.length) / most;
    return most && (MULTIPLES.find((multiple) => multiple >= least) ?? Math.ceil(least));
  }
  // A run's rows of a kind added up by a label in at most `most` cells, or in cells of `fixed` windows; 0: over the whole range.
  function table(by, most, of = run, kind = state.kind, fixed = null) {
    const groups = groupsOf(by, of, kind), { level, names, pick, windows: [from, to] } = groups;
    const k = fixed ?? multipleOf(groups, most), id = [by, k, of.name, kind, state.op, state.host, from, to];
    const span = spanOf(level, [from, to]);
    return memo(id, () => ({ id, names, span, ...tailboard.merged(level, content.layouts, pick, from, to, k) }));
  }
  // Whose samples a window has from a latency up to below another: its own rows alone are added up.
  function sharesIn(by, { t, t2 }, lower, upper) {
    const { level, names, pick, windows } = groupsOf(by), place = (ms) => (ms - level.origin) / level.step;
    const from = Math.max(windows[0], Math.floor(place(t) + 1e-6)), to = Math.min(windows[1], Math.ceil(place(t2) - 1e-6));
    if (from >= to) return [];
    return sharesOf(tailboard.merged(level, content.layouts, pick, from, to, 0), names, -Infinity, Infinity, lower, upper);
  }
  // One percentile of every host or thread, the row with the highest cell first.
  function tailOf(scope) {
    const out = run.tails[`${scope}s`] ? tailOfTails(scope, run.tails[`${scope}s`].steps) : tailOfBins(scope);
    const highest = new Map(out.names.map((name) => [name, 0]));
    for (const { row, v } of [...out.points, ...out.thin]) highest.set(row, Math.max(highest.get(row), v));
    const rows = [...highest].sort((one, other) => other[1] - one[1]).slice(0, MOST.rows).map(([row]) => ({ row }));
    const kept = new Set(rows.map(({ row }) => row));
    for (const name of ["points", "thin", "gaps"]) out[name] = out[name].filter(({ row }) => kept.has(row));
    return { ...out, rows };
  }
  // From bins: windows as fine as may be drawn of which at least four in five carry the percentile.
  function tailOfBins(scope) {
    const wanted = percentileOf(state.tail);
    const groups = groupsOf(scope), { level, pick, windows } = groups;
    const tries = [180, 90, 45, 22].map((columns) => Math.min(columns * (groups.names.length || 1), MOST.tails));
    const carried = (most) => carriedShare(level, pick, ...windows, multipleOf(groups, most), wanted) >= 0.8;
    const found = table(scope, tries.find(carried) ?? tries.at(-1)), { names, span } = found;
    const points = pointsOf(found, names, [wanted]), thin = thinOf(found, names, wanted);
    return { points, thin, gaps: gapsOf(found, names, true), span, names };
  }
  // From what the page holds of threads that are too many for bins, at the one of its steps that fits.
  function tailOfTails(scope, steps) {
    const wide = (step) => windowsOf(step)[1] - windowsOf(step)[0];
    const level = wide(steps[1]) * MOST.rows <= MOST.tails ? steps[1] : steps[0], [from, to] = windowsOf(level);
    const op = state.op || (level.keys.some((key) => key.op === "*") ? "*" : ""), column = level[`p${state.tail}`];
    const out = { points: [], thin: [], gaps: [], span: spanOf(level, [from, to]), names: [] };
    level.keys.forEach((key, series) => {
      if (!passes(key, op)) return;
      const layout = content.layouts[level.layouts[series]], label = key[scope];
      out.names.push(label);
      for (let row = level.first[series]; row < level.first[series + 1]; row++) {
        if (level.window[row] < from || level.window[row] >= to) continue;
        const t = level.origin + level.window[row] * level.step, highest = state.tail === "100", n = level.count[row];
        const v = highest ? column[row] : within(layout.values[column[row] - 1], level.p0[row], level.p100[row]), open = Number(!highest && column[row] - 1 === layout.last);
        const cell = { t, t2: t + level.step, row: label, label, n, open };
        if (v === undefined) out.thin.push({ ...cell, v: level.p100[row] });
        else out.points.push({ ...cell, v });
      }
    });
    return out;
  }

  // ---- What each panel draws: its tables, and the sentence that says the most of it. Between two yields lies a frame.
  function tailPanel(scope, height) {
    const { points, thin, gaps, rows, span, names } = tailOf(scope);
    const fewer = rows.length < names.length && `The ${rows.length} worst of ${names.length}.`;
    const data = { points, thin, gaps, rows }, wide = points.length ? (points[0].t2 - points[0].t) / 1000 : 0;
    const shown = [...points, ...thin].map((point) => ({ ...point, label: point.row }));
    const says = told(shown, wide && `Windows of ${wide} s.`, fewer);
    return { data, signals: { what: what(state.tail) }, span, height: 12 + height * rows.length, says };
  }
  // What is told apart where bins are needed for it: threads only where the page has bins of them.
  const byBins = () => (state.by === "run" || (state.by === "thread" && !run.levels.threads) ? "" : state.by);
  const panels = {
    percentiles() {
      const wanted = [...new Set([state.p, ...state.also.split(",").filter(Boolean)])].map(percentileOf);
      if (state.by === "thread" && !run.levels.threads) {
        const { points, thin, rows, span, names } = tailOf("thread"), worst = rows.slice(0, MOST.worst).map(({ row }) => row);
        const [shown, few] = [points, thin].map((cells) => cells.filter(({ row }) => worst.includes(row)));
        const why = `Of ${names.length} threads the page holds p50, p99 and max: ${what(state.tail)} of the ${worst.length} worst.`;
        const whole = worst.map((label) => ({ label, v: 0 }));
        return { data: { points: shown, thin: few, gaps: [], whole }, span, says: toldOr(tooFew(state.p, few), shown, why) };
      }
      const found = table(byBins(), MOST.points / wanted.length), whole = table(byBins(), 0);
      const points = pointsOf(found, found.names, wanted), all = found.rows * wanted.length;
      const thin = wanted.flatMap((p) => thinOf(found, found.names, p, wanted.length > 1));
      const frail = points.filter(({ beyond }) => beyond < 10).length;
      const few = thin.length && `${thin.length} of ${all} have too few samples: circles at their maximum.`;
      const rest = frail && `${frail} rest on fewer than 10 samples beyond them.`;
      const data = { points, thin, whole: pointsOf(whole, whole.names, wanted) };
      return { found, data, says: told([...points, ...thin], `Windows of ${found.width / 1000} s.`, few, rest, mixedIn(found)) };
    },
    hosts: () => tailPanel("host", 28),
    threads: () => tailPanel("thread", 15),
    rate() {
      const found = table(byBins(), MOST.points), points = tailboard.ratesOf(found, found.names, run.covered);
      const whole = points.filter(({ part }) => !part), least = (whole.length ? whole : points).reduce((low, point) => (point.v < low.v ? point : low), { v: Infinity, t: run.begin, t2: run.end });
      const all = number(points.reduce((sum, { n }) => sum + n, 0)), lowest = number(Math.round(least.v));
      const sampled = found.events.some((n, row) => n !== found.done[row]);
      const says = `${all} ${sampled ? "events" : "I/Os"} in view; lowest ${lowest} a second, ${least.label}, ${when(least)}.${sampled ? ` All events, stored or not: ${WEIGHED}` : ""}`;
      return { found, data: { points }, says };
    },
    surface() {
      const found = table("", 120), points = SURFACE.flatMap((p) => pointsOf(found, [`p${p}`], [percentileOf(p)]));
      const rows = SURFACE.map((p) => ({ row: `p${p}` })).filter(({ row }) => points.some((point) => point.row === row));
      return { found, data: { points, rows }, says: told(points, mixedIn(found)) };
    },
    distribution() {
      const of = (one) => tailboard.curveOf(table("", 0, one), [one.label]), found = table(byBins(), 0), [t, t2] = found.span;
      const points = state.by === "run" ? content.runs.flatMap(of) : tailboard.curveOf(found, found.names);
      return { data: { points }, says: told(points.map((point) => ({ ...point, t, t2 })), mixedIn(found)) };
    },
    runs() {
      const shown = (one) => ({ t, t2, v }) => ({ run: one.name, name: one.label, t: t - one.start, t2: t2 - one.start, v });
      const points = content.runs.flatMap((one) => pointsOf(table("", 60, one), [""], [percentileOf(state.p)]).map(shown(one)));
      return { data: { points }, signals: { what: what(state.p) }, says: `${content.runs.length} runs on the same scales.` };
    },
    * maps() {
      const most = Math.max(12, Math.min(60, Math.floor(360 / content.runs.length)));
      const tables = content.runs.map((one) => table("", most, one)), id = ["maps", ...tables.map((one) => one.id)];
      if (!held(id)) yield;
      const shift = (one) => (cell) => ({ ...cell, run: one.name, name: one.label, t: cell.t - one.start, t2: cell.t2 - one.start });
      const cells = memo(id, () => heat.heatMaps(tables).flatMap((map, at) => map.map(shift(content.runs[at]))));
      const { shading, palette } = state, all = number(cells.reduce((sum, { c }) => sum + c, 0));
      const says = `${all} samples of ${content.runs.length} runs; time, latency and shades on the same scales.`;
      return { data: { cells }, signals: { shading, palette }, says };
    },
    load() {
      const { sweep } = content, across = sweep?.across ?? "I/Os a second";
      const whole = (one) => pointsOf(table("", 0, one), [""], [percentileOf(state.p)]).map(({ v }) => [v, table("", 0, one).events[0]]);
      const points = content.runs.flatMap((one) => whole(one).map(([v, n]) => {
        const rate = n / one.seconds, place = sweep?.places[one.name], name = sweep ? `${number(Math.round(rate))}/s` : one.label;
        return { run: one.name, name, label: (place?.line || state.op) || "all", x: place?.x ?? rate, rate, v, n }; }));
      find("h-load").textContent = `Load curve: percentile against ${sweep ? across : "I/O rate"}`;
      const at = ({ run: name, x, label }) => (sweep ? `${label} at ${x}` : content.runs.find((one) => one.name === name).label);
      const says = points.map((one) => `${at(one)}: ${number(Math.round(one.rate))} a second, ${latency(one.v)}`);
      return { data: { points }, signals: { what: what(state.p), across, depth: Boolean(sweep) }, says: says.join("; ") };
    },
    worst() {
      const thread = tailOf("thread"), wanted = percentileOf(state.p);
      const shares = (by, one) => sharesIn(by, one, one.lower, Infinity).map(({ name, share }) => `${name || "-"} ${(100 * share).toFixed(0)} %`);
      const highest = ({ t, t2 }) => thread.points.filter((point) => point.t < t2 && point.t2 > t)
        .sort((one, other) => other.v - one.v)
        .map((point) => `${point.row} ${what(state.tail)} ${atLeast(point)}`);
      const lines = tailboard.worstOf(table("", MOST.columns), wanted, MOST.worst).map((one) => {
        const threads = run.levels.threads ? shares("thread", one) : highest(one), line = document.createElement("tr");
        const makers = [shares("host", one), threads].map((names) => names.slice(0, 3).join(", "));
        for (const text of [when(one), atLeast(one), atLeast(one.highest), number(one.n), ...makers]) line.insertCell().textContent = text;
        return line;
      });
      find("worst-rows").replaceChildren(...lines);
      find("worst-title").textContent = what(state.p);
      return {};
    },
  };

  const offered = {
    now: () => ({ run, state, content, page }), set: (change) => set(change),
    table, groupsOf, windowsOf, multipleOf, memo, held, find, what, latency, atLeast, when, number, told, toldOr, tooFew, mixedIn, offer, renewed,
  };
  const map = heatPanel(offered);
  panels.heatmap = map.heatmap;
  // What the scripts of sections add (see section.py): panels, feeds (which of them a control feeds), and where they want it
  // piecemeal and top as above, opened(name, view) once a chart is there, shown() when controls are set anew.
  const sections = tailboard.sections.map((section) => section(offered));
  for (const { panels: more, piecemeal, top } of sections) {
    Object.assign(panels, more);
    Object.assign(PIECEMEAL, piecemeal);
    Object.assign(TOP, top);
  }

  // ---- Drawing.
  // Draws a panel and returns the rows that are still to come, in frames of their own.
  async function draw(name, { found, data, signals, says, height, span = found?.span }) {
    const element = find(name);
    find(`${name}-says`).textContent = says;
    const spec = content.specs[name] ?? content.specs.tails, { config, colors } = memo("theme", () => themeOf(root));
    const known = new Set(spec.signals.map((signal) => signal.name)), sla = Math.max(0, Number(state.sla) || 0) * 1e6;
    const common = { clock: clockOf(), zone: zone(), origin: zero(), range: span, sla, ...colors, ...signals };
    const ours = (mark) => mark.run === run.name || content.runs.length === 1;
    const marks = memo(["marks", run.name], () => content.marks.filter(ours));
    const tables = { marks, ...(found && { gaps: memo(["gaps", found.id], () => gapsOf(found, found.names)) }), ...data };
    // Fixed room for axes: a layout that fits itself would draw all twice, and time axes would not be in line.
    const wide = element.clientWidth || 600, left = wide < 640 ? 70 : 132, top = TOP[name] ?? 10;
    const small = name === "runs" || name === "maps";
    const fixed = small ? {} : { autosize: "none", padding: { left, right: 8, top, bottom: 46 } };
    const size = small ? [wide, spec.height] : [wide - left - 8, height ?? spec.height];
    if (!small) element.style.height = `${size[1] + top + 46}px`;
    let rest = [];
    if (drawn[name]?.held > HELD) discard(name);
    if (drawn[name]) {
      const { view, last } = drawn[name], large = PIECEMEAL[name];
      for (const [key, value] of Object.entries(common)) if (known.has(key)) view.signal(key, value);
      for (const { name: key } of spec.data.filter((entry) => entry.name in tables && last[entry.name] !== tables[entry.name])) {
        const rows = key === large && tables[key].length > FIRST ? tailboard.widestFirst(tables[key]) : tables[key];
        drawn[name].held += rows.length;
        view.data(key, key === large ? rows.slice(0, FIRST) : rows);
        if (key === large) rest = rows.slice(FIRST);
      }
      if (String(size) !== drawn[name].size) view.width(size[0]).height(size[1]).padding(fixed.padding ?? view.padding());
      await view.runAsync();
    } else {
      const filled = { ...spec, ...fixed, width: size[0], height: size[1] };
      const hole = (entry) => entry.name in tables && !entry.source;
      filled.data = spec.data.map((entry) => (hole(entry) ? { ...entry, values: tables[entry.name] } : entry));
      filled.signals = spec.signals.map((signal) => (signal.name in common ? { ...signal, value: common[signal.name] } : signal));
      const how = { mode: "vega", ast: true, actions: false, renderer: "canvas", defaultStyle: false, config };
      how.tooltip = { disableDefaultStyle: true };
      const { view, finalize } = await vegaEmbed(element, filled, how); // ast: the page's policy has no unsafe-eval
      view.cleanThreshold = CLEAN;
      drawn[name] = { view, finalize, held: 0 };
      page.views[name] = view;
      if (known.has("drag")) view.addSignalListener("drag", (_, range) => (dragged = range && [view, range]));
      if (known.has("picked")) view.addSignalListener("picked", (_, cell) => cell && map.tell(cell));
      for (const { opened } of sections) opened?.(name, view);
      if (known.has("rise")) view.addSignalListener("rise", (_, range) => (risen = range && [view, range]));
    }
    Object.assign(drawn[name], { last: tables, size: String(size) });
    element.setAttribute("role", "img"); // Vega has set its own
    element.setAttribute("aria-label", `${element.dataset.title}. ${says}`);
    element.removeAttribute("aria-roledescription");
    if (name === "percentiles") readOut(data.whole);
    return rest;
  }
  async function numbers(name) {
    let steps = null, found;
    const next = () => ((steps ??= panels[name]()).next ? steps.next() : { done: true, value: steps });
    do found = await frame(`${name} numbers`, next);
    while (!found.done);
    return found.value;
  }
  async function picture(name, told) {
    let rest = await frame(name, () => draw(name, told));
    const { view, last } = drawn[name];
    for (; rest.length && !dirty.has(name); rest = rest.slice(PIECE)) {
      await frame(name, () => view.insert(PIECEMEAL[name], rest.slice(0, PIECE)).runAsync());
    }
    if (rest.length) last[PIECEMEAL[name]] = null;
  }
  function readOut(whole) {
    const color = page.views.percentiles.scale("color"), words = `${what(state.p)} of the range:`;
    find("readout").replaceChildren(words, ...whole.filter(({ v }) => v > 0).map((point) => {
      const [part, dot, value] = ["span", "i", "b"].map((tag) => document.createElement(tag));
      [dot.style.background, value.textContent] = [color(point.label), atLeast(point)];
      part.append(dot, `${point.label} `, value);
      return part;
    }), ...(whole.length ? [] : ["too few samples"]));
    find("percentile").setAttribute("aria-valuetext", find("readout").textContent);
  }
  async function frame(name, act) {
    const begun = performance.now(), told = await act();
    const end = performance.now();
    page.frames.push({ name, ms: end - begun, end });
    if (page.frames.length > FRAMES) page.frames.splice(0, FRAMES / 2);
    await new Promise((done) => [requestAnimationFrame(done), setTimeout(done, 50)]);
    return told;
  }
  // One panel at a time, those in sight first, its numbers in some frames and its picture in the next ones; what changes
  // meanwhile is drawn in the same go.
  function refresh(...names) {
    for (const name of names.length ? names : Object.keys(panels)) if (find(name)) dirty.add(name);
    return (page.ready = page.ready.then(async () => {
      const inSight = (name) => ((box) => box.bottom > 0 && box.top < innerHeight)(find(name).getBoundingClientRect());
      while (dirty.size) {
        const name = [...dirty].find(inSight) ?? [...dirty][0];
        dirty.delete(name);
        const told = await numbers(name);
        if (told.says) await picture(name, told);
      }
    }).catch(failed));
  }
  function discard(name) {
    drawn[name].finalize();
    delete drawn[name];
  }
  function redraw() {
    page.ready = page.ready.then(() => {
      Object.keys(drawn).forEach(discard);
      cache.delete(JSON.stringify("theme"));
    });
    return refresh();
  }

  // ---- State: every control bears the name of what it sets; what is not as it was at first stands in the address.
  const FEEDS = {
    p: ["percentiles", "heatmap", "runs", "load", "worst"], also: ["percentiles"], by: ["percentiles", "rate", "distribution"],
    tail: ["hosts", "threads", "percentiles", "worst"],
    sla: ["percentiles", "heatmap", "distribution", "runs", "maps", "load"], shading: ["heatmap", "maps"], palette: ["heatmap", "maps"],
    axis: ["heatmap"], drop: ["heatmap"], least: ["heatmap"], most: ["heatmap"], highlight: ["heatmap"],
  };
  for (const { feeds } of sections) {
    for (const [key, names] of Object.entries(feeds ?? {})) FEEDS[key] = [...(FEEDS[key] ?? []), ...names];
  }
  function set(change) {
    if (change.axis === "linear" && state.drop === "0") change.drop = "0.1"; // one outlier would press all else to the ground
    if ("run" in change) Object.assign(change, { from: "", to: "" });
    Object.assign(state, change);
    const keys = Object.keys(change);
    if (cache.size > 60) cache.clear();
    show();
    const changes = Object.entries(state).filter(([key, value]) => value !== defaults[key]);
    history.replaceState(null, "", `#${new URLSearchParams(changes)}`);
    const feeds = new Set(keys.flatMap((key) => FEEDS[key] ?? Object.keys(panels)));
    return refresh(...feeds);
  }
  // Gives a list its choices, and leaves it alone where it has them: it may be open.
  function offer(select, options) {
    const same = (one, at) => one.value === select.options[at].value && one.text === select.options[at].text;
    if (options.length !== select.options.length || !options.every(same)) select.replaceChildren(...options);
  }
  function show(typing = null) {
    run = content.runs.find(({ name }) => name === state.run) ?? content.runs[0];
    const keys = Object.values(run.levels).flatMap((level) => level.keys);
    const known = (label) => [...new Set(keys.map((key) => key[label]))].filter(Boolean).sort();
    for (const [name, first] of [["run", null], ["kind", null], ["op", "all operations"], ["host", "all hosts"]]) {
      const values = name === "run" ? content.runs.map((one) => one.name) : known(name);
      if (!values.includes(state[name])) state[name] = first === null ? values[0] ?? "" : "";
      every(`select[name=${name}]`, (select) => {
        offer(select, [...(first ? [new Option(first, "")] : []), ...values.map((value) => new Option(value, value))]);
        select.closest("label").hidden = values.length < 2;
      });
    }
    every("select[name=highlight]", (select) => {
      const known = map.choices().map(([value, shown]) => new Option(shown, value));
      offer(select, [new Option("nothing", ""), ...known]);
      select.closest("label").hidden = !known.length;
    });
    for (const { shown } of sections) shown?.();
    every("[name]", valid);
    every("[name]", (control) => {
      if (control.type === "radio") control.checked = control.value === state[control.name];
      else if (control.type === "checkbox") control.checked = state[control.name].split(",").includes(control.value);
      else if (control.name in state && control !== typing) control.value = state[control.name];
    });
    every("[data-p]", (button) => button.setAttribute("aria-pressed", String(button.dataset.p === state.p)));
  }
  // What no control can be set to, as an address may hold it, is as it was at first.
  function valid({ name, type, tagName, options }) {
    if (!(name in state)) return;
    const offered = tagName === "SELECT" ? [...options].map(({ value }) => value)
      : type === "radio" ? [...document.querySelectorAll(`[name=${name}]`)].map(({ value }) => value) : null;
    const inside = name !== "p" || (Number(state.p) >= 50 && Number(state.p) <= 100);
    const able = offered?.includes(state[name]) ?? (type === "checkbox" || (Number.isFinite(Number(state[name])) && inside));
    if (!able) state[name] = defaults[name];
    if (type === "checkbox") state[name] = state[name].split(",").filter((p) => Number(p) >= 50 && Number(p) <= 100).join(",");
  }
  function changed({ target }) {
    const { name, type } = target;
    let { value } = target;
    if (!(name in state)) return;
    if (name === "p") value = String(Math.min(100, Math.max(50, Math.round(100 * Number(value)) / 100)) || state.p);
    if (type === "checkbox") value = [...document.querySelectorAll(`[name=${name}]:checked`)].map((one) => one.value).join(",");
    if (type === "number" && name !== "p" && !Number.isFinite(Number(value))) value = "";
    if (value !== state[name]) set({ [name]: value });
    else show();
  }
  // Data of the same page in place of those that it has: what was chosen stays, pictures are kept and filled anew.
  async function renewed(text) {
    const next = await tailboard.unpack(text), typing = document.activeElement?.type === "number" ? document.activeElement : null;
    page.ready = page.ready.then(() => {
      const chosen = Object.entries(state).filter(([key, value]) => value !== defaults[key]);
      [content, defaults] = [(page.content = next), next.state];
      for (const key of cache.keys()) if (key !== JSON.stringify("theme")) cache.delete(key);
      Object.assign(state, defaults, Object.fromEntries(chosen.filter(([key]) => key in defaults)));
      show(typing);
    }).catch(failed);
    return refresh();
  }
  function fromAddress() {
    const told = Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => key in defaults));
    return Object.assign(state, defaults, told);
  }
  function listen() {
    document.addEventListener("input", (event) => event.target.type === "range" && changed(event));
    document.addEventListener("change", changed);
    every("[data-p]", (button) => button.addEventListener("click", () => set({ p: button.dataset.p })));
    find("whole").addEventListener("click", () => set({ ...WHOLE }));
    find("heatmap")?.addEventListener("keydown", map.step);
    addEventListener("pointerup", () => {
      if (risen) {
        const [view, range] = risen, [least, most] = range.map((ns) => String(Number((ns / 1e6).toPrecision(5))));
        risen = null;
        view.signal("rise", null);
        set({ least, most });
      }
      if (!dragged) return;
      const [view, range] = dragged, seconds = (ms, round) => String(round((ms - run.start) / 10) / 100);
      dragged = null;
      view.signal("drag", null);
      set({ from: seconds(range[0], Math.floor), to: seconds(range[1], Math.ceil) });
    });
    addEventListener("keydown", (event) => event.key === "Escape" && set({ ...WHOLE }));
    addEventListener("hashchange", () => { fromAddress(); show(); refresh(); });
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("beforeprint", () => { root.classList.add("print"); redraw(); });
    addEventListener("afterprint", () => { root.classList.remove("print"); redraw(); });
    const sizes = new Map(), resized = new ResizeObserver((entries) => {
      for (const { target: { id, clientWidth } } of entries) {
        if (drawn[id] && sizes.get(id) !== clientWidth) refresh(id);
        sizes.set(id, clientWidth);
      }
    });
    every(".chart", (chart) => (sizes.set(chart.id, chart.clientWidth), resized.observe(chart)));
  }
  async function begin() {
    content = await tailboard.unpack(find("data").textContent);
    find("data").remove();
    Object.assign(page, { content, state: (state = {}) });
    defaults = content.state;
    fromAddress();
    show();
    listen();
  }
  page.ready = begin().then(() => void refresh(), failed);
})();
