"use strict";
// Maps of subsecond offsets from the ticks that the page holds: see ingest/query/offsets.py. Follows numbers.js in the same
// script. All pure, tested in Node and held against ingest/query/offsets/stored.py. Times are ms since 1970, edges of rows ns.
const offsetMap = (() => {
  const MOST_COLUMNS = 720, BESIDE = 50, NS = 1e6, MINUTE = 6e4;
  const PERIODS = [["100 ms", 100], ["1 s", 1000], ["1 min", MINUTE], ["1 h", 36e5], ["1 d", 864e5]];
  const ROWS = [10, 20, 24, 25, 49, 50, 60, 99, 100];
  const LABELS = ["host", "process", "thread", "op"];

  // ---- What was packed: see ingest/view/page/panels/offsets.py.
  // The same run with its streams read: of a table of ticks first (of each group), index and count.
  async function unpack(run) {
    const take = tailboard.reader(await tailboard.inflated(run.data));
    const ticks = ({ rows, base }) => {
      const first = tailboard.starts(rows), index = take(first.at(-1)), count = take(first.at(-1));
      rows.forEach((many, group) => { if (many) index[first[group]] += base; });
      return { first, index: tailboard.added(index, first), count };
    };
    const tables = Object.fromEntries(["fine", "wide", "late"].map((name) => [name, run[name] && ticks(run[name])]));
    const ends = [take(run.gaps), take(run.gaps)], gaps = [];
    for (let at = 0, from = run.first; at < run.gaps; at++) gaps.push([(from += ends[0][at]), (from += ends[1][at])]);
    return { ...run, ...tables, gaps };
  }

  const held = new WeakMap();
  // The same, once for all who ask.
  function unpackedOnce(run) {
    if (!held.has(run)) held.set(run, unpack(run));
    return held.get(run);
  }

  // ---- Which maps can be drawn.
  // The ticks that a map of a period is made of: their table, how wide they are, and how many ms a column spans.
  function ticksOf(run, period) {
    const tied = run.seconds > 1; // seconds are added up, offset by offset
    if (!tied || period === 1000) return { ticks: run.fine, width: run.tick, unit: tied ? 1000 * run.seconds : period, tied };
    return { ticks: run.wide, width: run.wideTick, unit: period, tied: false };
  }
  const able = (run, period, rows) => {
    if (run.seconds > 1 && period < 1000) return false;
    const { width } = ticksOf(run, period);
    return (run.seconds === 1 || period === 1000 || period >= MINUTE) && period >= rows * width && period % width === 0;
  };
  const periodsOf = (run) => PERIODS.filter(([, period]) => ROWS.some((rows) => able(run, period, rows)));
  const rowsOf = (run, period) => ROWS.filter((rows) => able(run, period, rows));
  // Whether ticks straddle rows, so that counts are shared out by overlap.
  function resampled(run, period, rows) {
    const { width } = ticksOf(run, period);
    return edgesOf(period, rows).some((edge) => edge % (width * NS));
  }
  // The edges of rows in ns: row i holds the offsets from edge i to below edge i + 1.
  function edgesOf(period, rows) {
    const whole = BigInt(period) * BigInt(NS), many = BigInt(rows);
    return Array.from({ length: rows + 1 }, (_, row) => Number((BigInt(row) * whole + many - 1n) / many));
  }

  // ---- Columns and cells.
  // The columns of a map from one time to another, at most MOST_COLUMNS: neighbours are added up.
  function columnsOf(run, period, from = run.first, to = run.end, most = MOST_COLUMNS) {
    const { unit } = ticksOf(run, period), low = Math.floor(Math.max(run.first, Math.min(from, run.end - 1)) / unit);
    const high = Math.max(low + 1, Math.ceil(Math.min(run.end, Math.max(to, run.first)) / unit));
    const each = Math.ceil((high - low) / most);
    return { low, high, unit, width: each * unit, columns: Math.ceil((high - low) / each), begin: low * unit };
  }
  // The first place in index[from..to) that holds at least a number.
  function reached(index, number, from, to) {
    while (from < to) {
      const middle = (from + to) >> 1;
      if (index[middle] < number) from = middle + 1;
      else to = middle;
    }
    return from;
  }
  // Calls act(group, column of a unit, offset in ms, count) for each tick of the groups in the columns from low to below high.
  function each(run, period, groups, low, high, act) {
    const { ticks, width, unit, tied } = ticksOf(run, period), parts = 1000 / width;
    const number = (column) => (tied ? column * parts : (column * unit) / width);
    for (const group of groups) {
      const last = ticks.first[group + 1];
      for (let at = reached(ticks.index, number(low), ticks.first[group], last); at < last && ticks.index[at] < number(high); at++) {
        const time = tied ? 0 : ticks.index[at] * width, column = tied ? Math.floor(ticks.index[at] / parts) : Math.floor(time / unit);
        act(group, column, tied ? (ticks.index[at] - column * parts) * width : time - column * unit, ticks.count[at]);
      }
    }
  }
  // Events that fall on the line between rows, as ingest/core/offsets.py has it: halves to even, what is left goes to the upper row.
  function lowerPart(count, part, width) {
    const doubled = 2 * count * part + width, rest = doubled % (2 * width), lower = (doubled - rest) / (2 * width);
    return rest === 0 && lower % 2 ? lower - 1 : lower;
  }
  // The counts of some groups by column and row, dense: counts[column * rows + row].
  function counted(run, { period, rows }, groups, { low, high, unit, width, columns }) {
    const edges = edgesOf(period, rows), tick = ticksOf(run, period).width * NS, counts = new Float64Array(columns * rows);
    const straddling = new Map(), joined = width / unit, size = period * NS;
    each(run, period, groups, low, high, (_, column, offset, count) => {
      const row = Math.floor((offset * rows) / period), place = Math.floor((column - low) / joined) * rows + row;
      if (edges[row + 1] >= offset * NS + tick || edges[row + 1] >= size) counts[place] += count;
      else {
        const key = (column - low) * rows + row, share = straddling.get(key) ?? { place, part: edges[row + 1] - offset * NS, count: 0 };
        share.count += count;
        straddling.set(key, share);
      }
    });
    for (const { place, part, count } of straddling.values()) {
      const lower = lowerPart(count, part, tick);
      counts[place] += lower;
      counts[place + 1] += count - lower;
    }
    return counts;
  }
  // A map of some groups; `lit` are those of each highlight. Asked: period, rows, and where they are set from, to and most columns.
  function mapOf(run, asked, groups, lit = []) {
    const shape = columnsOf(run, asked.period, asked.from, asked.to, asked.most), { columns, begin, width } = shape;
    const [counts, ...parts] = [groups, ...lit].map((some) => counted(run, asked, some, shape));
    return { ...shape, counts, lit: parts.map((each) => ({ counts: each })), rows: asked.rows, period: asked.period, edges: edgesOf(asked.period, asked.rows), end: begin + columns * width };
  }
  // What is said beside a map: the fullest cell, and the sums by row and of all.
  function summaryOf({ counts, rows, columns }) {
    const sums = new Float64Array(rows);
    for (let at = 0; at < columns * rows; at++) sums[at % rows] += counts[at];
    return { most: counts.reduce((most, c) => Math.max(most, c), 0), sums, total: sums.reduce((sum, c) => sum + c, 0) };
  }
  // The shade of each count that occurs in some maps, from above 0 to 1, and the counts that the legend names. Shaded as specs do: by rank
  // among the different counts, in proportion where that is asked for or at least half of the cells hold the same count.
  function shadesOf(maps, shading) {
    const filled = Float64Array.from(maps.flatMap(({ counts }) => [...counts.filter((c) => c > 0)])), { each, cells } = shades.distinct(filled);
    const most = each.at(-1) ?? 0, even = shades.isEven(cells), ranked = shading === "rank" && !even;
    const quarter = (share) => each[Math.round(share * (each.length - 1))] ?? 0, [least, q1, median, q3] = [0, 0.25, 0.5, 0.75].map(quarter);
    return { of: new Map(each.map((c, at) => [c, ranked ? (at + 1) / each.length : c / Math.max(most, 1)])), levels: { least, q1, median, q3, most, even } };
  }
  function cellAt(map, column, row) {
    const { counts, lit, rows, begin, width, edges } = map, at = column * rows + row, t = begin + column * width;
    let n = 0;
    for (let place = column * rows; place < (column + 1) * rows; place++) n += counts[place];
    return { column, row, t, t2: t + width, lower: edges[row], upper: edges[row + 1], c: counts[at], n, lit: lit.map((part) => part.counts[at]) };
  }
  // All filled cells, by column and row.
  function cellsOf(map) {
    const cells = [];
    map.counts.forEach((c, at) => c && cells.push(cellAt(map, Math.floor(at / map.rows), at % map.rows)));
    return cells;
  }

  // ---- What is marked.
  // Stretches of whole periods in which nothing at all was recorded of the run.
  function gapsOf({ gaps }, period) {
    const whole = gaps.map(([from, to]) => [Math.ceil(from / period) * period, Math.floor(to / period) * period]);
    return whole.filter(([from, to]) => from < to).map(([t, t2]) => ({ t, t2 }));
  }
  // The periods that some groups' events were reported late for, and how many.
  function lateOf(run, period, groups) {
    const sums = new Map(), wide = Math.max(period, run.lateTick);
    for (const group of groups) {
      for (let at = run.late.first[group]; at < run.late.first[group + 1]; at++) {
        const t = Math.floor((run.late.index[at] * run.lateTick) / wide) * wide;
        sums.set(t, (sums.get(t) ?? 0) + run.late.count[at]);
      }
    }
    return [...sums].sort(([a], [b]) => a - b).map(([t, n]) => ({ t, t2: t + wide, n }));
  }

  // ---- Whose events.
  // The groups that pass: {label: [values]} of `only`, of each label one must match; of `not` none may.
  function groupsOf(run, only = {}, not = {}) {
    const has = (group, [label, values]) => values.includes(nameOf(group, label));
    return run.groups.flatMap((group, number) =>
      (Object.entries(only).every((choice) => has(group, choice)) && !Object.entries(not).some((choice) => has(group, choice)) ? [number] : []));
  }
  // What a group is called by a label: threads that were added up (rest; 2: whatever their host) have a name of their own.
  function nameOf(group, label) {
    return group.rest === 2 || (group.rest && label !== "host") ? "others" : group[label];
  }
  // How many events of each value of a label some groups have in a part of a map (all columns, or one; all rows, or one), most
  // first. A tick that straddles rows counts by overlap.
  function sharesOf(run, label, groups, map, column = null, row = null) {
    const of_group = new Float64Array(run.groups.length), tick = ticksOf(run, map.period).width * NS, { edges, unit, width } = map;
    const low = column === null ? map.low : map.low + column * (width / unit), high = column === null ? map.high : Math.min(map.high, low + width / unit);
    each(run, map.period, groups, low, high, (group, _, offset, count) => {
      const from = offset * NS, shared = row === null ? tick : Math.min(from + tick, edges[row + 1]) - Math.max(from, edges[row]);
      if (shared > 0) of_group[group] += shared >= tick ? count : (count * shared) / tick;
    });
    const sums = new Map();
    of_group.forEach((count, group) => {
      const name = count && nameOf(run.groups[group], label);
      if (count) sums.set(name, (sums.get(name) ?? 0) + count);
    });
    return [...sums].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count || (a.name < b.name ? -1 : 1));
  }
  // The events of some groups by offset within the second, in rows of 20 ms: of the seconds that [from, to) touches, and of all
  // others. As ingest/query/box.py counts them.
  function besideOf(run, groups, from, to) {
    const asked = { period: 1000, rows: BESIDE, most: 1 }, whole = mapOf(run, asked, groups).counts;
    const away = (from ?? -Infinity) >= run.end || (to ?? Infinity) <= run.first;
    const inside = away ? new Float64Array(BESIDE) : mapOf(run, { ...asked, from: from ?? undefined, to: to ?? undefined }, groups).counts;
    return { inside: Array.from(inside), outside: Array.from(whole, (n, row) => n - inside[row]) };
  }
  return {
    BESIDE, LABELS, unpack, unpackedOnce, besideOf, periodsOf, rowsOf, able, resampled, edgesOf, columnsOf, mapOf, summaryOf, shadesOf, cellAt, cellsOf, gapsOf, lateOf, groupsOf, nameOf,
    sharesOf,
  };
})();
if (typeof module !== "undefined") module.exports = offsetMap;
