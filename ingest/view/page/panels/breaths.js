"use strict";
// Breath efficiency: what breaths of Snabb processes cost and moved. Follows numbers.js in the same script. Sums, lines and cells are
// pure, tested in Node and held against the query layer (ingest/query/breaths.py); the panels draw them.
const breaths = (() => {
  const LEAST = 30, ALIKE = 3, CERTAIN = 2, STEPS = 40, SUMS = 5;
  const BREATH = "engine.breath_end", NOTHING = { streams: [] };

  // The windows [from, to) of the page's range, given in ms.
  function windowsIn(section, begin, end) {
    const place = (t, round, none) => (t === null ? none : round((t - section.origin) / section.step));
    return [place(begin, Math.floor, 0), place(end, Math.ceil, Infinity)];
  }
  // What all breaths of each stream in a range cost together; where rates are mixed each breath counts by its weight.
  function addedUp(section, [from, to]) {
    const all = section.streams.map((stream) => (
      { ...stream, n: 0, known: 0, idle: 0, longest: 0, estimated: 0, total: 0, squared: 0, sums: Array(SUMS).fill(0), cells: new Map() }));
    const rows = section.windows ?? { stream: [] }, kept = [];
    rows.stream.forEach((_, row) => rows.at[row] >= from && rows.at[row] < to && kept.push(row));
    const weights = section.streams.map(() => new Set());
    for (const row of kept) weights[rows.stream[row]].add(rows.weight[row]);
    for (const row of kept) {
      const stream = all[rows.stream[row]];
      stream.mixed = weights[rows.stream[row]].size > 1;
      const weight = stream.mixed ? rows.weight[row] : 1;
      stream.n += rows.count[row];
      stream.known += rows.known[row];
      stream.idle += rows.idle[row];
      stream.longest = Math.max(stream.longest, rows.longest[row]);
      stream.estimated += rows.count[row] * rows.weight[row];
      stream.total += weight * rows.known[row];
      stream.squared += weight * weight * rows.known[row];
      for (let sum = 0; sum < SUMS; sum++) stream.sums[sum] += weight * rows.sums[sum][row];
      for (let place = rows.ptr[row]; place < rows.ptr[row + 1]; place++) {
        const cell = stream.cells.get(rows.cell[place]) ?? { n: 0, c: 0 };
        stream.cells.set(rows.cell[place], { n: cell.n + rows.n[place], c: cell.c + weight * rows.n[place] });
      }
    }
    return all;
  }
  // The line of least squares, or why there is none: as ingest/query/breaths.py.
  function fitOf({ known, total, squared, sums: [packets, cycles, packets2, both, cycles2] }) {
    if (known < LEAST) return { why: `${known} breaths are too few for a line` };
    const x = packets / total, y = cycles / total, spread = packets2 / total - x * x, alike = (total * total) / squared;
    if (alike <= ALIKE) return { why: `no line: a few breaths stand for nearly all of ${known}` };
    const variance = Math.max(0, cycles2 / total - y * y), about = Math.sqrt((variance * alike) / (alike - 1));
    if (spread <= 1e-12 * x * x) return { why: `no line: every breath moved ${Number(x.toPrecision(6))} packets`, residual: about };
    const joint = both / total - x * y, slope = joint / spread;
    const left = Math.max(0, variance - slope * joint), residual = (left * alike) / (alike - 2), error = Math.sqrt(residual / (alike * spread));
    if (Math.abs(slope) < CERTAIN * error) return { why: `no line: ${few(slope)} ± ${few(error)} cycles a packet are not certain`, residual: about };
    return { base: y - slope * x, slope, error, explained: variance ? 1 - left / variance : 1, residual: Math.sqrt(residual) };
  }
  const few = (value) => Number(value.toPrecision(3)).toLocaleString("en");

  // The occupied cells of a stream, with their edges.
  function cellsOf(stream, { packets, cycles }) {
    const tall = cycles.length - 1, all = [...stream.cells.values()].reduce((sum, { c }) => sum + c, 0);
    return [...stream.cells].map(([cell, { n, c }]) => {
      const column = Math.floor(cell / tall), row = cell % tall;
      return { facet: stream.name, place: stream.place, x: packets[column], x2: packets[column + 1], y: cycles[row], y2: cycles[row + 1], n, c, all };
    });
  }
  // The packets that a line is drawn over: from the fewest to the most that a breath moved.
  function reachOf(stream, { packets, cycles }) {
    const columns = [...stream.cells.keys()].map((cell) => Math.floor(cell / (cycles.length - 1)));
    return [stream.idle ? 0 : packets[Math.min(...columns)], packets[Math.max(...columns) + 1] - 1];
  }
  // A line in cycles of a breath, and the same in cycles a packet, which is no straight line.
  function lineOf(stream, { base, slope, why }, reach) {
    if (why !== undefined || !stream.cells.size) return { cycles: [], each: [] };
    const [low, high] = reach, steps = Array.from({ length: STEPS + 1 }, (_, at) => at / STEPS), row = { facet: stream.name, place: stream.place, label: stream.label ?? stream.name };
    const cycles = steps.map((share) => low + share * (high - low)).map((x) => ({ ...row, x, v: base + slope * x }));
    const first = Math.max(1, low), each = steps.map((share) => first * (high / first) ** share).map((x) => ({ ...row, x, v: base / x + slope }));
    return { cycles: cycles.filter(({ v }) => v > 0), each: each.filter(({ v }) => v > 0) };
  }
  const costOf = ({ sums: [packets, cycles] }) => (packets ? cycles / packets : NaN);
  // Processes by cycles a packet, the most first; those that moved nothing last.
  const byCost = (all) => [...all].sort((a, b) =>
    (Number.isNaN(costOf(a)) - Number.isNaN(costOf(b))) || costOf(b) - costOf(a) || (a.name < b.name ? -1 : 1));
  const whole = (value) => value.toLocaleString("en");
  function cellText({ facet, x, x2, y, y2, n, c, all }) {
    const packets = x2 - x === 1 ? whole(x) : x2 > 4096 ? `${whole(x)} packets and more,` : `${whole(x)} to ${whole(x2 - 1)}`;
    const size = x2 > 4096 ? packets : `${packets} packets,`;
    const stands = c === n ? "" : `, which stand for ${whole(c)}`;
    return `${facet}, ${size} ${whole(y)} to ${whole(y2 - 1)} cycles a packet: ${whole(n)} breaths${stands} (${Number(((100 * c) / all).toPrecision(3))} %)`;
  }
  return { BREATH, NOTHING, few, costOf, windowsIn, addedUp, fitOf, cellsOf, lineOf, reachOf, byCost, cellText };
})();

// Pictures of processes, and tables of what they cost. What Python says of each run is in `content.sections.breaths` (see breaths.py).
tailboard.sections.push(({ now, memo, find, number, offer }) => {
  const { BREATH, NOTHING, few, costOf, windowsIn, addedUp, fitOf, cellsOf, lineOf, reachOf, byCost, cellText } = breaths;
  const WIDE = 700, LINED = 10;

  const here = () => {
    const { run, state, content } = now(), section = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const at = (seconds) => (seconds === "" ? null : run.start + 1000 * seconds);
    return { run, state, section, range: windowsIn(section, at(state.from), at(state.to)) };
  };
  function summed() {
    const { run, section, range } = here();
    return memo(["breaths", run.name, ...range], () => addedUp(section, range).filter(({ n }) => n));
  }
  const fitted = (all) => byCost(all).map((process) => ({ ...process, fit: fitOf(process) }));
  const processes = () => fitted(summed().filter(({ op }) => op === BREATH));
  // The pictures: one process that is chosen, or those with the most cycles a packet.
  function pictured() {
    const { state } = here(), all = processes(), mine = all.filter(({ name }) => name === state.process);
    const some = (mine.length ? mine : all.slice(0, Number(state.pictures))).map((process, place) => ({ ...process, place }));
    return { all, some, columns: find("breaths").clientWidth < WIDE ? 1 : some.length < 4 ? some.length : some.length > 4 ? 3 : 2 };
  }
  const lineText = ({ base, slope, explained, why }) =>
    why ?? `${few(base)} + ${few(slope)} a packet (R² ${explained.toFixed(2)})`;
  const facetsOf = (some) => some.map((process) =>
    ({ facet: process.name, place: process.place, title: process.name, note: `${lineText(process.fit)}; ${number(process.n)} breaths` }));
  const height = (count, columns) => Math.ceil(count / columns) * (count > 1 ? 230 : 320) + (Math.ceil(count / columns) - 1) * 92;
  function grid({ all, some, columns }) {
    const fewer = some.length < all.length ? (some.length === 1 && here().state.process ? "" : `The ${some.length} of ${all.length} processes with the most cycles a packet.`) : "";
    return { facets: facetsOf(some), columns, height: height(some.length, columns), fewer };
  }
  const drawn = (process, section) => lineOf(process, process.fit, reachOf(process, section.edges));
  const soft = () => getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
  const rangeText = (section) => (section.step > 1000 ? `Time ranges go in steps of ${section.step / 1000} s here.` : "");
  const rowOf = ([name, ...texts]) => charting.make("tr", {}, charting.make("th", { scope: "row" }, name), ...charting.rowOf(texts.map((text) => (text === "NaN" ? "–" : text))).children);

  function drawnBreaths() {
    const { section, state, range } = here();
    if (!section.streams.length) return { alone: true };
    const picked = pictured(), { facets, columns, height: tall, fewer } = grid(picked), places = new Map(picked.some.map(({ name, place }) => [name, place]));
    const { stream, t, x, y } = section.points, [from, to] = range, name = (at) => section.streams[stream[at]].name;
    const window = (at) => Math.ceil((t[at] - section.origin) / section.step) - 1;
    const points = stream.map((_, at) => at).filter((at) => places.has(name(at)) && window(at) >= from && window(at) < to)
      .map((at) => ({ facet: name(at), place: places.get(name(at)), label: "single breaths", x: x[at], y: y[at] }));
    const lines = picked.some.flatMap((process) => drawn(process, section).cycles), all = picked.some.reduce((sum, { n }) => sum + n, 0);
    const worst = picked.some[0], cost = !worst ? "No breath in view." : !worst.sums[0] ? `${worst.name} moved no packet that it logged.` : `${worst.name} takes ${few(costOf(worst))} cycles a packet; ${worst.fit.why ? "" : "line: "}${lineText(worst.fit)}.`;
    const sample = points.length < all ? `Of ${number(all)} stored breaths the longest and a random sample are drawn, together ${number(points.length)}; lines are fitted to all.` : `All ${number(all)} stored breaths are drawn.`;
    const says = [cost, fewer, all && sample, rangeText(section)].filter(Boolean).join(" ");
    return { data: { facets, points, lines }, signals: { columns, axis: state.spread, soft: soft() }, height: tall, says };
  }
  function drawnDensity() {
    const { section, state } = here();
    if (!section.streams.length) return { alone: true };
    const picked = pictured(), { facets, columns, height: tall } = grid(picked);
    const cells = picked.some.flatMap((process) => cellsOf(process, section.edges));
    const lines = picked.some.flatMap((process) => drawn(process, section).each), idle = picked.some.reduce((sum, process) => sum + process.idle, 0);
    const unknown = picked.some.reduce((sum, process) => sum + process.n - process.known, 0), [top] = [...cells].sort((a, b) => b.c - a.c);
    const says = [
      top ? `The fullest cell: ${cellText(top)}.` : "No breath in view moved a packet.",
      idle && `${number(idle)} breaths moved no packet and are in no cell.`, unknown && `${number(unknown)} did not log what they moved.`,
      picked.some.some(({ mixed }) => mixed) && "Events of different rates are combined: each breath counts for all those that it represents.",
    ].filter(Boolean).join(" ");
    const { spread: axis, shading, palette } = state;
    return { data: { facets, cells, lines }, signals: { columns, axis, shading, palette, soft: soft() }, height: tall, says };
  }
  function listedCosts() {
    const { section } = here();
    find("costs").hidden = !section.streams.length;
    const texts = processes().map((process) => {
      const [packets] = process.sums, { base, slope, error, explained, residual, why } = process.fit;
      const line = why ? [why, residual === undefined ? "" : few(residual)] : [few(base), `${few(slope)} ± ${few(error)}`, explained.toFixed(3), few(residual)];
      return [process.name, number(process.n), number(process.estimated), few(costOf(process)), few(packets / process.total), number(process.longest), ...line];
    });
    find("costs-rows").replaceChildren(...texts.map((row) => {
      const line = rowOf(row);
      if (row.length < LINED) Object.assign(line.lastElementChild.previousElementSibling, { colSpan: LINED - row.length + 1, className: "left" });
      return line;
    }));
    const calls = fitted(summed().filter(({ op }) => op !== BREATH));
    find("callbacks").hidden = !calls.length;
    find("callbacks-none").hidden = calls.length > 0;
    find("callbacks-rows").replaceChildren(...calls.map((callback) => {
      const [packets, cycles] = callback.sums;
      return rowOf([callback.name, number(callback.n), few(costOf(callback)), few(packets / callback.total), few(cycles / callback.total), number(callback.longest), lineText(callback.fit)]);
    }));
    return {};
  }
  function opened(name, view) {
    if (name === "density") view.addSignalListener("cell", (_, cell) => cell && (find("breath-cell").textContent = cellText(cell)));
  }
  function shown() {
    const { run, content } = now(), section = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const names = section.streams.filter(({ op }) => op === BREATH).map(({ name }) => name), select = document.querySelector("select[name=process]");
    const options = [new Option("most cycles a packet", ""), ...names.map((name) => new Option(name, name))];
    offer(select, options);
    for (const control of ["process", "pictures"]) document.querySelector(`select[name=${control}]`).closest("label").hidden = names.length < 2;
  }
  const feeds = { process: ["breaths", "density"], pictures: ["breaths", "density"], spread: ["breaths", "density"], shading: ["density"], palette: ["density"], p: [] };
  return { panels: { breaths: drawnBreaths, density: drawnDensity, costs: listedCosts }, feeds, top: { breaths: 40, density: 100 }, opened, shown };
});
if (typeof module !== "undefined") module.exports = breaths;
