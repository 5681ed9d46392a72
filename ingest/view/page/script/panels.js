// What each panel of the report draws: its tables, and the sentence that says the most of it. Between two yields lies a frame.
// Follows tables.js in the same script, and the scripts of sections. Times are ms, latencies ns.
const panels = (() => {
  const { MOST, percentileOf, pointsOf, thinOf } = tailboard;
  const { now, memo, held, find, when, inClock, sayHighest, sayHighestOr, addressOf, isOurs } = chosen, { table, inView, viewStep, linesOf, excessIn, tailOf } = tables;
  const { what, alike, decade, latency, atLeast, number, WEIGHED, mixedIn, tooFew } = words;
  const LEGEND = 64; // as high as a legend of colors is at least: of one row it reached into the axis
  const TALL = 200; // all hosts, or threads, as long as each has a line of text
  const MOST_TOLD = 16; // points of a load curve that are told one by one
  const SURFACE = ["99.99", "99.95", "99.9", "99.5", "99", "98", "95", "90", "75", "50"];

  function tailPanel(scope) {
    if (isAlone(scope)) return { alone: true };
    const { points, thin, gaps, rows, span, names, tail, width, typical } = tailOf(scope);
    const fewer = rows.length < names.length && `The ${rows.length} worst of ${names.length}.`, data = { points, thin, gaps, rows };
    const shown = [...points, ...thin].map((point) => ({ ...point, label: point.row }));
    const instead = tail !== now.state.tail && `Most windows have too few samples for ${what(now.state.tail)}: the maximum of each is shown.`;
    const says = sayHighest(shown, alike(shown), instead, ownWidth(width), fewer);
    return { data, signals: { what: what(tail), shared: now.state.colour === "absolute" ? scale() : beyond(typical, shown) }, span, height: Math.max(LEGEND, 12 + Math.max(15, Math.min(28, Math.floor(TALL / rows.length))) * rows.length), says };
  }
  // A panel by a label that has one value says nothing that others do not; threads neither, where each host has one.
  function isAlone(scope) {
    const { levels, tails: held } = now.run, count = (label) => {
      const level = held[`${label}s`]?.steps.at(-1) ?? levels[`${label}s`];
      return level ? new Set(level.keys.map((key) => key[label])).size : Infinity;
    };
    return count(scope) < 2 || (scope === "thread" && count("thread") === count("host"));
  }
  // Said by panels of which the page holds wider windows than those of the view.
  const ownWidth = (width) => width !== viewStep(linesOf()) && `Windows of ${width / 1000} s, the narrowest here that the page holds.`;
  // The colour scale from what is typical on: a decade, or up to the highest cell, but two decades at most, so that one outlier hides no
  // other. What is as usual is pale, however high that is.
  const beyond = (typical, cells) => (cells.length ? [typical, typical * Math.min(100, Math.max(10, ...cells.map(({ v }) => v / typical)))] : null);
  // The colour scale of all panels that colour by latency: from the median of what is in view to its maximum.
  function scale() {
    const whole = table("", 0), [low] = pointsOf(whole, [""], [percentileOf("50")]), [high] = pointsOf(whole, [""], [percentileOf("100")]);
    return high ? decade([low.v, high.v]) : null;
  }
  // The series that the legend has not switched off; a line of the whole range without a value keeps its colour.
  function switched({ points, thin, whole }) {
    const off = new Set(now.state.off ? JSON.parse(now.state.off) : []), on = ({ label }) => !off.has(label);
    const series = [...new Set([...(whole ?? []), ...points, ...(thin ?? [])].map(({ label }) => label))];
    const kept = { points: points.filter(on), ...(thin && { thin: thin.filter(on) }), ...(whole && { whole: whole.map((point) => (on(point) ? point : { ...point, v: 0 })) }) };
    return { data: kept, series };
  }
  // What is said of the lines of several runs, of which some have samples, but in no window enough of them for the percentile.
  function linesSaid(all, drawn, without) {
    const few = tooFew(now.state.p, { length: without });
    if (!drawn) return without ? `${few} Choose a lower percentile.` : few;
    return `${all} runs on the same scales.${without ? ` ${without === 1 ? "1 run has" : `${without} runs have`} no line: no window of ${without === 1 ? "it" : "theirs"} has enough samples for ${what(now.state.p)}.` : ""}`;
  }
  // The label that is shown where bins are needed for it: threads only where the page has bins of them.
  const byBins = () => (now.state.by === "run" || (now.state.by === "thread" && !now.run.levels.threads) ? "" : now.state.by);
  // The percentile of another run, in windows of the same width, where it has been as long under way; and how that is said.
  function besideOf({ width, span: [from, to] }) {
    const { run, state, content } = now, other = content.runs.find(({ name }) => name === state.beside && name !== run.name);
    if (!other) return { ghost: [] };
    const rows = table("", 0, other, state.kind, Math.max(1, Math.round(width / other.levels.cluster.step))), shift = run.start - other.start, wanted = percentileOf(state.p);
    const points = pointsOf(rows, [""], [wanted]).map((point) => ({ ...point, t: point.t + shift, t2: point.t2 + shift, label: other.label }));
    const [whole] = pointsOf(table("", 0, other), [""], [wanted]);
    return { ghost: points.filter(({ t, t2 }) => t < to && t2 > from), said: `Grey: ${what(state.p)} of ${other.label}${whole ? `, ${atLeast(whole)} as a whole` : ""}.` };
  }
  // Lines as they are drawn, on an axis that is a decade high at least, so that what is as usual lies flat.
  function linesOver(data, series, span) {
    const sla = 1e6 * Number(now.state.sla), shown = ["points", "thin", "whole", "ghost"].flatMap((name) => data[name]).map(({ v }) => v).filter((v) => v > 0);
    const [low, high] = [...shown, ...(sla > 0 && shown.length ? [sla] : [])].reduce(([least, most], v) => [Math.min(least, v), Math.max(most, v)], [Infinity, 0]);
    const yd = high ? decade([low / 1.2, high * 1.2]) : [1, 10], at = (v) => Math.log(yd[1] / Math.max(v, yd[0])) / Math.log(yd[1] / yd[0]);
    return { data: { ...data, paths: raster.pathsOf(data.points, span, at) }, series, signals: { series, yd }, span };
  }
  // The highest threads where the page has no bins of them: the percentile that it holds.
  function worstThreads() {
    const { state } = now;
    const { points, thin, rows, span, names, tail } = tailOf("thread"), worst = rows.slice(0, MOST.worst).map(({ row }) => row);
    const [shown, few] = [points, thin].map((cells) => cells.filter(({ row }) => worst.includes(row)));
    const why = `Of ${names.length} threads the page holds p50, p99 and max: ${what(tail)} of the ${worst.length} worst.`;
    const { data, series } = switched({ points: shown, thin: few, whole: worst.map((label) => ({ label, v: 0 })) });
    return { ...linesOver({ ...data, gaps: [], ghost: [] }, series, span), says: sayHighestOr(tooFew(state.p, few), shown, why) };
  }

  // ---- The worst: findings that the story has no room for and episodes first, then the windows whose samples lie furthest above the percentile of the range.
  function worstWindows() {
    const { state } = now, merged = inView(""), wanted = percentileOf(state.p), whole = table("", 0);
    const of = ({ v: least }) => excess.worstOf(merged, wanted, MOST.worst, least).map((window) => ({ ...window, least }));
    return memo(["worst", merged.id, state.p], () => {
      const [above = [], aboveMedian = []] = [wanted, percentileOf("50")].flatMap((p) => pointsOf(whole, [""], [p])).map(of);
      return above.length ? above : aboveMedian;
    });
  }
  // What a link to a time is made of: to a range around it.
  function linkTo({ t, t2 }) {
    const room = Math.max(3 * (t2 - t), 2 * viewStep()), seconds = (ms) => String(Number(((Math.min(now.run.end, Math.max(now.run.start, ms)) - now.run.start) / 1000).toFixed(2)));
    const value = [t, t2].map((ms) => new Date(ms).toISOString()).join("/"); // as csv has it
    return { href: addressOf({ from: seconds(t - room), to: seconds(t2 + room) }), textContent: when({ t, t2 }), value };
  }
  // A row of the table: its time is a link to it.
  function row({ t, t2 }, cells, wide = false) {
    const line = charting.rowOf([charting.make("a", linkTo({ t, t2 })), ...cells], (at) => at === 0 || at > 4);
    if (wide) Object.assign(line.lastChild, { colSpan: 6, className: "sentence" });
    return line;
  }
  function findingRows() {
    const rest = (now.run.story?.findings ?? []).slice(MOST.sentences), placed = ({ text, from_s, to_s }) => [text, ...[from_s, to_s].map((seconds) => now.run.start + 1000 * seconds)];
    return rest.map(placed).map(([text, t, t2]) => row({ t, t2 }, [inClock(text, t, t2)], true));
  }
  function episodeRows() {
    const sentence = ({ objective, group, peak, state }) => `${objective}, ${group}: peak ${peak}, ${state}`;
    return (now.content.sections.episodes ?? []).filter(isOurs).slice(0, MOST.worst).map((episode) => row(episode, [sentence(episode)], true));
  }
  function sharesBy(by, window) {
    const held = by === "host" || now.run.levels.threads, said = ({ name, share }) => `${name || "-"} ${(100 * share).toFixed(0)} %`;
    if (held) return excessIn(by, window, window.least).slice(0, 3).map(said).join(", ");
    const { points, tail } = tailOf("thread"), inside = points.filter((point) => point.t < window.t2 && point.t2 > window.t);
    return inside.sort((a, b) => b.v - a.v).slice(0, 3).map((point) => `${point.row} ${what(tail)} ${atLeast(point)}`).join(", ");
  }

  const byName = {
    * percentiles() {
      const { run, state } = now;
      const wanted = [...new Set([state.p, ...state.also.split(",").filter(Boolean)])].map(percentileOf);
      if (state.by === "thread" && !run.levels.threads) return worstThreads();
      const merged = inView(byBins());
      yield;
      const whole = table(byBins(), 0), points = pointsOf(merged, merged.names, wanted), all = merged.rows * wanted.length;
      const thin = wanted.flatMap((p) => thinOf(merged, merged.names, p, wanted.length > 1));
      const frail = points.filter(({ beyond }) => beyond < 10).length;
      const few = thin.length && `${thin.length} of ${all} have too few samples: circles at their maximum.`;
      const rest = frail && `${frail} ${frail === 1 ? "rests" : "rest"} on fewer than 10 samples beyond.`;
      const { data, series } = switched({ points, thin, whole: pointsOf(whole, whole.names, wanted) });
      const { ghost, said } = besideOf(merged), says = sayHighest([...data.points, ...data.thin], said, ownWidth(merged.width), few, rest, mixedIn(merged));
      return { merged, ...linesOver({ ...data, ghost }, series, merged.span), says };
    },
    hosts: () => tailPanel("host"),
    threads: () => tailPanel("thread"),
    rate() {
      const { run } = now;
      const merged = inView(byBins()), every = tailboard.ratesOf(merged, merged.names, run.covered), { data, series } = switched({ points: every });
      const { points } = data;
      // Windows in which a group did nothing are no points, and lower than any; those at the ends are no part of the run.
      const [first, last] = run.covered ?? [-Infinity, Infinity], gaps = tailboard.gapsOf(merged, merged.names, true);
      const silent = gaps.filter(({ t, t2 }) => t >= first && t2 <= last).map(({ t, t2, row }) => ({ t, t2, label: row || "all", v: 0 }));
      const whole = [...switched({ points: silent }).data.points, ...points.filter(({ part }) => !part)];
      const least = (whole.length ? whole : points).reduce((low, point) => (point.v < low.v ? point : low), { v: Infinity, t: run.begin, t2: run.end });
      const all = number(points.reduce((sum, { n }) => sum + n, 0)), lowest = number(Math.round(least.v));
      const sampled = merged.events.some((n, row) => n !== merged.done[row]);
      const says = `${all} ${sampled ? "events" : "I/Os"} in view; lowest ${lowest} a second, ${least.label}, ${when(least)}.${sampled ? ` All events, stored or not: ${WEIGHED}` : ""}`;
      return { merged, data, series, signals: { series }, says };
    },
    surface() {
      const merged = inView(""), points = SURFACE.flatMap((p) => pointsOf(merged, [`p${p}`], [percentileOf(p)]));
      const rows = SURFACE.map((p) => ({ row: `p${p}` })).filter(({ row }) => points.some((point) => point.row === row));
      return { merged, data: { points, rows }, signals: { shared: scale() }, says: sayHighest(points, mixedIn(merged)) };
    },
    distribution() {
      const { state, content } = now;
      const of = (run) => tailboard.curveOf(table("", 0, run), [run.label]), merged = table(byBins(), 0), [t, t2] = merged.span;
      const points = state.by === "run" ? content.runs.flatMap(of) : tailboard.curveOf(merged, merged.names);
      const { data, series } = switched({ points });
      return { data, series, signals: { series }, says: sayHighest(data.points.map((point) => ({ ...point, t, t2 })), mixedIn(merged)) };
    },
    runs() {
      const { state, content } = now;
      const shown = (run) => ({ t, t2, v }) => ({ run: run.name, name: run.label, t: t - run.start, t2: t2 - run.start, v });
      const tables = content.runs.map((run) => table("", 60, run)), wanted = percentileOf(state.p);
      const lines = tables.map((windows, at) => pointsOf(windows, [""], [wanted]).map(shown(content.runs[at])));
      const without = tables.filter((windows, at) => !lines[at].length && windows.rows).length;
      return { data: { points: lines.flat() }, signals: { what: what(state.p) }, says: linesSaid(lines.length, lines.filter(({ length }) => length).length, without) };
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
      const without = content.runs.filter((run) => table("", 0, run).rows && !whole(run).length).length;
      find("h-load").textContent = `Load curve: percentile against ${sweep ? across : "I/O rate"}`;
      const at = ({ run: name, x, label }) => (sweep ? `${label} at ${x}` : content.runs.find((run) => run.name === name).label);
      const each = points.map((point) => `${at(point)}: ${number(Math.round(point.rate))} a second, ${latency(point.v)}`);
      const [slow, quick, low, high] = ["rate", "v"].flatMap((key) => {
        const order = [...points.keys()].sort((one, other) => points[one][key] - points[other][key]);
        return [order[0], order.at(-1)]; });
      const few = { "lowest rate": slow, "highest rate": quick, [`lowest ${what(state.p)}`]: low, [`highest ${what(state.p)}`]: high };
      const says = points.length <= MOST_TOLD ? each : [`${number(points.length)} points`, ...Object.entries(few).map(([name, place]) => `${name}: ${each[place]}`)];
      const known = (content.capacities ?? []).filter((capacity) => capacity.known);
      const told = (content.capacities ?? []).map(({ text }) => text);
      const signals = { what: what(state.p), across, depth: Boolean(sweep) };
      return { data: { points, capacities: known }, signals, says: [...told, ...says, ...(without ? [`${without} of ${content.runs.length} runs have too few samples for ${what(state.p)}`] : [])].join("; ") };
    },
    * worst() {
      const { state } = now, told = [...findingRows(), ...episodeRows()], windows = [], worst = worstWindows();
      for (const window of drawing.isFolded("worst-rows") ? worst.slice(0, 1) : worst) {
        yield;
        const makers = ["host", "thread"].map((by) => sharesBy(by, window)), value = window.value ? atLeast(window.value) : "–";
        const cells = [[window.highest.v, atLeast(window.highest)], [window.value?.v ?? "", value], [window.n, number(window.n)], [window.excess, latency(window.excess)]];
        windows.push(row(window, [...cells.map(([exact, shown]) => charting.make("data", { value: exact }, shown)), ...makers]));
      }
      const [first] = windows, by = [5, 6].map((at) => first?.cells[at].textContent).find((shares) => shares && !shares.startsWith("- ")); // one host without a name tells nothing
      find("worst-says").textContent = first ? `Most above ${what(state.p)} of the range: ${first.cells[0].textContent}${by ? `, by ${by}` : ""}.` : "";
      find("worst-rows").replaceChildren(...told, ...windows);
      const titles = find("worst").querySelectorAll("th");
      [titles[2].textContent, titles[4].textContent] = [what(state.p), `above ${what(state.p)} of the range`];
      return {};
    },
  };

  // What the panel of heat maps and the sections are offered; they take what stands in a later script when it is called.
  const offered = {
    ...chosen, ...tables, what, latency, atLeast, number, tooFew, mixedIn,
    now: () => ({ ...now, page: chosen.page }), set: (wanted) => controls.set(wanted), offer: (select, options) => controls.offer(select, options),
    renewed: (text) => controls.renewed(text), redraw: (...names) => drawing.refresh(...names), heightOf: () => drawing.heightOf("heatmap", now.content.specs.heatmap), highlights: () => map.choices().map(([value]) => value),
  };
  const map = heatPanel(offered);
  const hand = heatHand(offered, map);
  byName.heatmap = map.heatmap;
  // What the scripts of sections add (see section.py): panels, feeds (which of them a control feeds), and where they want it
  // piecemeal and top as draw.js has them, opened(name, view) once a chart is there, shown() when controls are set anew.
  const sections = tailboard.sections.map((section) => section(offered));
  for (const section of sections) Object.assign(byName, section.panels);
  return { byName, map, hand, sections, linkTo };
})();
