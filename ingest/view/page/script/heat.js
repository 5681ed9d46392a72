"use strict";
// Latency heat maps: the rows of a map, its cells, what is highlighted in them, and who made the samples of one. Follows numbers.js
// in the same script. All pure, tested in Node and held against ingest/query/cells.py. Times are ms, latencies ns.
const heat = (() => {
  const { MOST, layoutOf } = tailboard;
  const LINEAR = 40, FINEST = 32;

  // ---- Rows.
  // The share of [lower, upper) that lies in each of the rows between ascending edges: [row, share] of those that have any.
  function overlaps(lower, upper, edges) {
    let low = 0, high = edges.length - 1;
    while (low < high - 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= lower) low = middle;
      else high = middle;
    }
    const out = [];
    for (let row = low; row < edges.length - 1 && edges[row] < upper; row++) {
      const shared = Math.min(upper, edges[row + 1]) - Math.max(lower, edges[row]);
      if (shared > 0) out.push([row, shared / (upper - lower)]);
    }
    return out;
  }
  // A limit a little above the maximum that stays while the maximum wanders.
  function autoscaled(most) {
    const above = (unit) => (Math.floor(most / unit) + 1) * unit;
    let unit = 10 ** (Math.floor(Math.log10(most)) + 1);
    for (let turn = 0; above(unit) >= 1.25 * most; turn++) unit /= turn % 2 ? 2 : 5;
    return above(unit);
  }
  // The row of a bin where an octave has `half` rows: [lower, upper].
  function rowOf({ edges, unit }, bin, half) {
    const units = Math.floor(edges[bin] / unit);
    const wide = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(units, 1))) - Math.log2(half));
    return [Math.floor(units / wide) * wide * unit, (Math.floor(units / wide) + 1) * wide * unit];
  }
  // The samples of each bin of a table.
  function binsOf(table) {
    const [layout] = table.layouts, sums = new Float64Array(layout.values.length);
    for (let row = 0; row < table.rows; row++) {
      for (let at = table.ptr[row], before = 0; at < table.ptr[row + 1]; before = table.cum[at++]) {
        sums[table.bin[at]] += (table.cum[at] - before) / table.unit;
      }
    }
    return sums;
  }
  // How many of the lowest stay where at most a share of all samples may lie above them.
  function kept(sums, share) {
    let left = share * sums.reduce((sum, c) => sum + c, 0), at = sums.length;
    while (at > 0 && (left -= sums[at - 1]) >= 0) at--;
    return at;
  }
  // The filled cells of a table in [low, high) with `half` rows an octave, and how many rows they span.
  function extent(table, half, low, high) {
    const [layout] = table.layouts, rows = layout.values.map((_, bin) => rowOf(layout, bin, half));
    let cells = 0, least = Infinity, most = 0;
    for (let row = 0; row < table.rows; row++) {
      for (let at = table.ptr[row], last = -1; at < table.ptr[row + 1]; at++) {
        const [lower, upper] = rows[table.bin[at]];
        if (lower === last || upper <= low || lower >= high) continue;
        cells++;
        last = lower;
        if (lower < least) least = lower;
        if (lower > most) most = lower;
      }
    }
    return { cells, rows: (Math.log2(most / Math.max(1, least)) || 1) * half };
  }
  // The most rows an octave of which neither the filled cells nor the rows are more than can be drawn and seen.
  function fitting(table, most = MOST.cells, finest = FINEST, low = 0, high = Infinity) {
    for (let half = Math.min(table.layouts[0].half, finest); half > 1; half /= 2) {
      const { cells, rows } = extent(table, half, low, high);
      if (cells <= most && rows <= MOST.high) return half;
    }
    return 1;
  }
  // Of each bin the rows that take it, as columns: those of bin b stand from first[b] to below first[b + 1].
  function columnsOf(taken) {
    const first = new Uint32Array(taken.length + 1), flat = taken.flat();
    taken.forEach((rows, bin) => (first[bin + 1] = first[bin] + rows.length));
    return { first, row: Uint32Array.from(flat, ([row]) => row), share: Float64Array.from(flat, ([, share]) => share) };
  }
  // Rows that nest in the bins: their edges, and of each bin the row that takes it.
  function nested(layout, half) {
    const ranges = layout.values.map((_, bin) => rowOf(layout, bin, half)), edges = [...new Set(ranges.map(([lower]) => lower))];
    const place = new Map(edges.map((lower, row) => [lower, row]));
    return { edges: [...edges, ranges.at(-1)[1]], into: columnsOf(ranges.map(([lower]) => [[place.get(lower), 1]])) };
  }
  // Equal rows from `low` to `high`, one more for what lies below and above; an open bin counts as a point.
  function even(layout, low, high) {
    const inner = Array.from({ length: LINEAR + 1 }, (_, row) => low + ((high - low) * row) / LINEAR), top = layout.edges.at(-1);
    const edges = [...(low > 0 ? [0] : []), ...inner, ...(top > high ? [top] : [])];
    const upper = (bin) => (bin === layout.last ? layout.edges[bin] + 1 : layout.edges[bin + 1]);
    return { edges, into: columnsOf(layout.values.map((_, bin) => overlaps(layout.edges[bin], upper(bin), edges))), first: Number(low > 0) };
  }
  // Which rows of those that nest hold a range: as fine as can be drawn, down to the bins themselves.
  function inRange(table, low, high, half) {
    const rows = nested(table.layouts[0], half), { edges } = rows, last = edges.length - 1;
    const first = low >= edges[last] ? last : Math.max(0, edges.findIndex((edge) => edge > low) - 1);
    const stop = Math.max(first, edges.findIndex((edge, row) => row === last || edge >= high));
    return { ...rows, first, stop, over: -1, reach: first < stop ? [edges[first], edges[stop]] : [low, Math.min(high, 10 * low)] };
  }
  // The rows of a map: edges, the rows of each bin, which are shown (first to below stop), which holds what was dropped
  // (-1: none), and the range of the axis where one was asked (reach).
  function ladderOf(table, axis, drop, range) {
    const [layout] = table.layouts, [low, most] = range ?? [0, Infinity];
    if (axis === "log") {
      if (range) return inRange(table, low, most, fitting(table, MOST.cells, layout.half, low, most));
      const rows = nested(layout, fitting(table)), held = new Float64Array(rows.edges.length - 1), all = held.length;
      if (!drop) return { ...rows, first: 0, stop: all, over: -1, reach: null };
      binsOf(table).forEach((c, bin) => (held[rows.into.row[bin]] += c));
      const stop = kept(held, drop / 100);
      return { ...rows, first: 0, stop, over: stop < kept(held, 0) ? stop : -1, reach: null };
    }
    const sums = binsOf(table), top = layout.edges[kept(sums, 0)];
    const high = range ? Math.min(most, autoscaled(top)) : autoscaled(layout.edges[kept(sums, drop / 100)]);
    const seen = layout.values.map((_, bin) => layout.edges[bin + 1] - layout.edges[bin])
      .filter((_, bin) => layout.edges[bin] < high && layout.edges[bin + 1] > low);
    if (range && (high - low) / LINEAR < Math.max(...seen)) return inRange(table, low, high, layout.half);
    const rows = even(layout, low, high), stop = rows.first + LINEAR;
    return { ...rows, stop, over: range || rows.edges.length - 1 === stop ? -1 : stop, reach: range ? [low, high] : null };
  }

  // ---- Cells.
  // The cells of a table in some rows, ordered by window and latency, and how many samples lie below and above those shown.
  function cellsOf(table, { edges, into, first, stop, over }) {
    const [layout] = table.layouts, sums = new Float64Array(edges.length - 1), cells = [];
    const { first: starts, row: places, share: shares } = into;
    const open = layout.last in layout.values ? places[starts[layout.last]] : -1;
    let [below, above] = [0, 0];
    for (let row = 0; row < table.rows; row++) {
      let least = sums.length, most = -1, cum = 0, dropped = null;
      const t = table.t[row], t2 = t + table.width, n = table.n[row] / table.unit;
      for (let at = table.ptr[row], before = 0; at < table.ptr[row + 1]; before = table.cum[at++]) {
        const c = (table.cum[at] - before) / table.unit, bin = table.bin[at];
        for (let taken = starts[bin]; taken < starts[bin + 1]; taken++) {
          const place = places[taken];
          sums[place] += c * shares[taken];
          if (place < least) least = place;
          if (place > most) most = place;
        }
      }
      for (let place = least; place <= most; place++) {
        const c = sums[place], upper = edges[place + 1], here = Number(place === open);
        sums[place] = 0;
        if (c < 1e-9) continue;
        cum += c;
        if (place < first) below += c;
        else if (over >= 0 && place >= over) {
          if (!dropped) cells.push((dropped = { t, t2, n, lower: edges[over], upper, c, cum, open: here, over: 1 }));
          else Object.assign(dropped, { c: dropped.c + c, cum, upper, open: Math.max(dropped.open, here) });
        } else if (place >= stop) above += c;
        else cells.push({ t, t2, n, lower: edges[place], upper, c, cum, open: here, over: 0 });
      }
    }
    return { cells, below, above };
  }
  function heatOf(table, half) {
    return table.rows ? cellsOf(table, { ...nested(table.layouts[0], half), first: 0, stop: Infinity, over: -1 }).cells : [];
  }
  // Cells with what their shade needs: the share of cells at most as full, and of the fullest one.
  function compared(cells) {
    const counts = Float64Array.from(cells, ({ c }) => c).sort(), ranks = new Map(), most = Math.max(1, counts.at(-1) ?? 1);
    counts.forEach((c, at) => ranks.set(c, (at + 1) / counts.length));
    for (const cell of cells) Object.assign(cell, { rank: ranks.get(cell.c), part: cell.c / most });
    return cells;
  }
  // A table of one group in the layout that all can be moved to.
  function inCommon(table, layouts) {
    const [{ into }] = table.layouts, common = layouts.at(-1);
    if (!into) return { ...table, layouts: [common] };
    const [bin, cum, ptr] = [[], [], [0]];
    for (let row = 0; row < table.rows; row++) {
      for (let at = table.ptr[row]; at < table.ptr[row + 1]; at++) {
        const place = into[table.bin[at]], same = bin.length > ptr[row] && bin.at(-1) === place;
        if (same) cum[cum.length - 1] = table.cum[at];
        else { bin.push(place); cum.push(table.cum[at]); }
      }
      ptr.push(bin.length);
    }
    return { ...table, layouts: [common], bin, cum, ptr };
  }
  // The cells of a map of one group: on which axis, with how many percent dropped or in which range; `lit` is a table of what is
  // highlighted in it, of the same columns.
  function heatMap(table, axis, drop, range = null, lit = null, layouts = null) {
    if (!table.rows) return { cells: [], below: 0, above: 0, reach: range };
    const alike = !lit?.rows || lit.layouts[0] === table.layouts[0], [all, some] = alike ? [table, lit] : [table, lit].map((one) => inCommon(one, layouts));
    const ladder = ladderOf(all, axis, drop, range), found = cellsOf(all, ladder);
    if (lit) {
      const key = ({ t, lower }) => `${Math.round((t - table.begin) / table.width)} ${lower}`;
      const counts = new Map(lit.rows ? cellsOf(some, ladder).cells.map((cell) => [key(cell), cell.c]) : []);
      for (const cell of found.cells) cell.lit = counts.get(key(cell)) ?? 0;
    }
    compared(found.cells);
    return { ...found, reach: ladder.reach };
  }
  // A map of each table with the same rows; shades compare the cells of all of them.
  function heatMaps(tables) {
    const filled = tables.filter(({ rows }) => rows);
    const half = Math.min(...filled.map((table) => fitting(table, MOST.cells / filled.length)));
    const maps = tables.map((table) => heatOf(table, half));
    compared(maps.flat());
    return maps;
  }
  // How many samples each group has in [lower, upper), in the whole of a table, most first; a bin by its overlap.
  function splitOf(table, names, lower, upper) {
    const sums = new Map();
    for (let row = 0; row < table.rows; row++) {
      const layout = layoutOf(table, row), name = names[table.group[row]], scale = table.scale[table.group[row]];
      for (let at = table.ptr[row], before = 0; at < table.ptr[row + 1]; before = table.cum[at++]) {
        const bin = table.bin[at], edge = layout.edges[bin], end = bin === layout.last ? edge + 1 : layout.edges[bin + 1];
        const share = Math.max(0, Math.min(upper, end) - Math.max(lower, edge)) / (end - edge);
        if (share) sums.set(name, (sums.get(name) ?? 0) + (share * scale * (table.cum[at] - before)) / table.unit);
      }
    }
    return [...sums].map(([name, count]) => ({ name, count })).sort((one, other) => other.count - one.count);
  }
  return { overlaps, autoscaled, heatOf, heatMap, heatMaps, splitOf };
})();
if (typeof module !== "undefined") module.exports = heat;
