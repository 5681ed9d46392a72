// What each panel of the report draws: its tables, and the sentence that says the most of it. Between two yields lies a frame.
// Follows tables.js in the same script, and the scripts of sections. Times are ms, latencies ns.
const panels = (() => {
  const { MOST, percentileOf, pointsOf, thinOf } = tailboard;
  const { now, memo, held, find, when, sayHighest, sayHighestOr } = chosen, { table, sharesIn, tailOf } = tables;
  const { what, latency, atLeast, number, WEIGHED, mixedIn, tooFew } = words;
  const LEGEND = 64; // as high as a legend of colors is at least: of one row it reached into the axis
  const SURFACE = ["99.99", "99.95", "99.9", "99.5", "99", "98", "95", "90", "75", "50"];

  function tailPanel(scope, height) {
    const { points, thin, gaps, rows, span, names } = tailOf(scope);
    const fewer = rows.length < names.length && `The ${rows.length} worst of ${names.length}.`;
    const data = { points, thin, gaps, rows }, wide = points.length ? (points[0].t2 - points[0].t) / 1000 : 0;
    const shown = [...points, ...thin].map((point) => ({ ...point, label: point.row }));
    const says = sayHighest(shown, wide && `Windows of ${wide} s.`, fewer);
    return { data, signals: { what: what(now.state.tail) }, span, height: Math.max(LEGEND, 12 + height * rows.length), says };
  }
  // The label that is shown where bins are needed for it: threads only where the page has bins of them.
  const byBins = () => (now.state.by === "run" || (now.state.by === "thread" && !now.run.levels.threads) ? "" : now.state.by);
  // The highest threads where the page has no bins of them: the percentile that it holds.
  function worstThreads() {
    const { state } = now;
    const { points, thin, rows, span, names } = tailOf("thread"), worst = rows.slice(0, MOST.worst).map(({ row }) => row);
    const [shown, few] = [points, thin].map((cells) => cells.filter(({ row }) => worst.includes(row)));
    const why = `Of ${names.length} threads the page holds p50, p99 and max: ${what(state.tail)} of the ${worst.length} worst.`;
    const whole = worst.map((label) => ({ label, v: 0 }));
    return { data: { points: shown, thin: few, gaps: [], whole }, span, says: sayHighestOr(tooFew(state.p, few), shown, why) };
  }

  const byName = {
    percentiles() {
      const { run, state } = now;
      const wanted = [...new Set([state.p, ...state.also.split(",").filter(Boolean)])].map(percentileOf);
      if (state.by === "thread" && !run.levels.threads) return worstThreads();
      const merged = table(byBins(), MOST.points / wanted.length), whole = table(byBins(), 0);
      const points = pointsOf(merged, merged.names, wanted), all = merged.rows * wanted.length;
      const thin = wanted.flatMap((p) => thinOf(merged, merged.names, p, wanted.length > 1));
      const frail = points.filter(({ beyond }) => beyond < 10).length;
      const few = thin.length && `${thin.length} of ${all} have too few samples: circles at their maximum.`;
      const rest = frail && `${frail} rest on fewer than 10 samples beyond them.`;
      const data = { points, thin, whole: pointsOf(whole, whole.names, wanted) };
      return { merged, data, says: sayHighest([...points, ...thin], `Windows of ${merged.width / 1000} s.`, few, rest, mixedIn(merged)) };
    },
    hosts: () => tailPanel("host", 28),
    threads: () => tailPanel("thread", 15),
    rate() {
      const { run } = now;
      const merged = table(byBins(), MOST.points), points = tailboard.ratesOf(merged, merged.names, run.covered);
      const whole = points.filter(({ part }) => !part), least = (whole.length ? whole : points).reduce((low, point) => (point.v < low.v ? point : low), { v: Infinity, t: run.begin, t2: run.end });
      const all = number(points.reduce((sum, { n }) => sum + n, 0)), lowest = number(Math.round(least.v));
      const sampled = merged.events.some((n, row) => n !== merged.done[row]);
      const says = `${all} ${sampled ? "events" : "I/Os"} in view; lowest ${lowest} a second, ${least.label}, ${when(least)}.${sampled ? ` All events, stored or not: ${WEIGHED}` : ""}`;
      return { merged, data: { points }, says };
    },
    surface() {
      const merged = table("", 120), points = SURFACE.flatMap((p) => pointsOf(merged, [`p${p}`], [percentileOf(p)]));
      const rows = SURFACE.map((p) => ({ row: `p${p}` })).filter(({ row }) => points.some((point) => point.row === row));
      return { merged, data: { points, rows }, says: sayHighest(points, mixedIn(merged)) };
    },
    distribution() {
      const { state, content } = now;
      const of = (run) => tailboard.curveOf(table("", 0, run), [run.label]), merged = table(byBins(), 0), [t, t2] = merged.span;
      const points = state.by === "run" ? content.runs.flatMap(of) : tailboard.curveOf(merged, merged.names);
      return { data: { points }, says: sayHighest(points.map((point) => ({ ...point, t, t2 })), mixedIn(merged)) };
    },
    runs() {
      const { state, content } = now;
      const shown = (run) => ({ t, t2, v }) => ({ run: run.name, name: run.label, t: t - run.start, t2: t2 - run.start, v });
      const points = content.runs.flatMap((run) => pointsOf(table("", 60, run), [""], [percentileOf(state.p)]).map(shown(run)));
      return { data: { points }, signals: { what: what(state.p) }, says: `${content.runs.length} runs on the same scales.` };
    },
    * maps() {
      const { state, content } = now;
      const most = Math.max(12, Math.min(60, Math.floor(360 / content.runs.length)));
      const tables = content.runs.map((run) => table("", most, run)), id = ["maps", ...tables.map((run) => run.id)];
      if (!held(id)) yield;
      const shift = (run) => (cell) => ({ ...cell, run: run.name, name: run.label, t: cell.t - run.start, t2: cell.t2 - run.start });
      const cells = memo(id, () => heat.heatMaps(tables).flatMap((map, at) => map.map(shift(content.runs[at]))));
      const { shading, palette } = state, all = number(cells.reduce((sum, { c }) => sum + c, 0));
      const says = `${all} samples of ${content.runs.length} runs; time, latency and shades on the same scales.`;
      return { data: { cells }, signals: { shading, palette }, says };
    },
    load() {
      const { state, content } = now;
      const { sweep } = content, across = sweep?.across ?? "I/Os a second";
      const whole = (run) => pointsOf(table("", 0, run), [""], [percentileOf(state.p)]).map(({ v }) => [v, table("", 0, run).events[0]]);
      const points = content.runs.flatMap((run) => whole(run).map(([v, n]) => {
        const rate = n / run.seconds, place = sweep?.places[run.name], name = sweep ? `${number(Math.round(rate))}/s` : run.label;
        return { run: run.name, name, label: (place?.line || state.op) || "all", x: place?.x ?? rate, rate, v, n }; }));
      find("h-load").textContent = `Load curve: percentile against ${sweep ? across : "I/O rate"}`;
      const at = ({ run: name, x, label }) => (sweep ? `${label} at ${x}` : content.runs.find((run) => run.name === name).label);
      const says = points.map((point) => `${at(point)}: ${number(Math.round(point.rate))} a second, ${latency(point.v)}`);
      const known = (content.capacities ?? []).filter((capacity) => capacity.known);
      const told = (content.capacities ?? []).map(({ text }) => text);
      const signals = { what: what(state.p), across, depth: Boolean(sweep) };
      return { data: { points, capacities: known }, signals, says: [...told, ...says].join("; ") };
    },
    worst() {
      const { run, state } = now;
      const thread = tailOf("thread"), wanted = percentileOf(state.p);
      const shares = (by, window) => sharesIn(by, window, window.lower, Infinity).map(({ name, share }) => `${name || "-"} ${(100 * share).toFixed(0)} %`);
      const highest = ({ t, t2 }) => thread.points.filter((point) => point.t < t2 && point.t2 > t)
        .sort((a, b) => b.v - a.v)
        .map((point) => `${point.row} ${what(state.tail)} ${atLeast(point)}`);
      const lines = tailboard.worstOf(table("", MOST.columns), wanted, MOST.worst).map((window) => {
        const threads = run.levels.threads ? shares("thread", window) : highest(window), line = document.createElement("tr");
        const makers = [shares("host", window), threads].map((names) => names.slice(0, 3).join(", "));
        for (const text of [when(window), atLeast(window), atLeast(window.highest), number(window.n), ...makers]) line.insertCell().textContent = text;
        return line;
      });
      find("worst-rows").replaceChildren(...lines);
      find("worst-title").textContent = what(state.p);
      return {};
    },
  };

  // What the panel of heat maps and the sections are offered; they take what stands in a later script when it is called.
  const offered = {
    ...chosen, ...tables, what, latency, atLeast, number, tooFew, mixedIn,
    now: () => ({ ...now, page: chosen.page }), set: (wanted) => controls.set(wanted), offer: (select, options) => controls.offer(select, options),
    renewed: (text) => controls.renewed(text), redraw: (...names) => drawing.refresh(...names),
  };
  const map = heatPanel(offered);
  const hand = heatHand(offered, map);
  byName.heatmap = map.heatmap;
  // What the scripts of sections add (see section.py): panels, feeds (which of them a control feeds), and where they want it
  // piecemeal and top as draw.js has them, opened(name, view) once a chart is there, shown() when controls are set anew.
  const sections = tailboard.sections.map((section) => section(offered));
  for (const section of sections) Object.assign(byName, section.panels);
  return { byName, map, hand, sections };
})();
