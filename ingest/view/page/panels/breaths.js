"use strict";
// Breath efficiency: what breaths of Snabb processes cost and moved. Follows numbers.js in the same script. Sums, lines and cells are
// pure, tested in Node and held against the query layer (ingest/query/breaths.py); breaths_panel.js draws them.
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
if (typeof module !== "undefined") module.exports = breaths;
