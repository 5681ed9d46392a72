"use strict";
// Latency heat maps: the rows of a map, its cells, what is highlighted in them, and where the samples of a cell came from. Follows numbers.js
// in the same script. All pure, tested in Node and held against ingest/query/heatmap.py. Times are ms, latencies ns.
const heat = (() => {
  const { MOST, layoutOf } = tailboard;
  const FINEST = 32, BELOW = -1, ABOVE = -2, OVER = -3, DIGITS = 6e-5, LEAST = 1e-9;

  // ---- Rows.
  // A limit a little above the maximum that stays while the maximum wanders.
  function autoscaled(most) {
    const above = (unit) => (Math.floor(most / unit) + 1) * unit;
    let unit = 10 ** (Math.floor(Math.log10(most)) + 1);
    for (let turn = 0; above(unit) >= 1.25 * most; turn++) unit /= turn % 2 ? 2 : 5;
    return above(unit);
  }
  // The rows of bins that are not log-linear: as many bins as are at most 2^(1 / half) times as high, else one, by bin.
  function listedRows({ edges, half: finest }, half) {
    const rows = [], least = 2 ** (1 / half) * (1 + 1e-9);
    for (let bin = 0, row; bin + 1 < edges.length; bin++) {
      if (!row || half >= finest || !row[0] || edges[bin + 1] > row[0] * least) row = [edges[bin], 0];
      row[1] = edges[bin + 1];
      rows.push(row);
    }
    return rows;
  }
  // The row of a bin where an octave has `half` rows: [lower, upper].
  function rowOf(layout, bin, half) {
    const { edges, unit } = layout;
    if (!unit) return listedRows(layout, half)[bin];
    const units = Math.floor(edges[bin] / unit);
    const wide = 2 ** Math.max(0, Math.floor(Math.log2(Math.max(units, 1))) - Math.log2(half));
    return [Math.floor(units / wide) * wide * unit, (Math.floor(units / wide) + 1) * wide * unit];
  }
  // The samples of each bin of a table.
  function binsOf({ layouts: [layout], rows, ptr, bin, cum, unit }) {
    const sums = new Float64Array(layout.values.length);
    for (let row = 0; row < rows; row++) {
      for (let at = ptr[row], before = 0; at < ptr[row + 1]; before = cum[at++]) sums[bin[at]] += (cum[at] - before) / unit;
    }
    return sums;
  }
  // How many of the lowest stay where at most a share of all samples may lie above them.
  function kept(sums, share) {
    let left = share * sums.reduce((sum, c) => sum + c, 0), at = sums.length;
    while (at > 0 && (left -= sums[at - 1]) >= 0) at--;
    return at;
  }
  // Of ascending edges the place of the range that holds a latency, as far as there is one.
  function placeOf(edges, latency) {
    let low = 0, high = edges.length - 1;
    while (low < high - 1) {
      const middle = (low + high) >> 1;
      if (edges[middle] <= latency) low = middle;
      else high = middle;
    }
    return low;
  }
  // Rows of whole bins, so that every count is one of the layout's: edges, of each bin its row (BELOW, ABOVE: not in the range that was asked,
  // OVER: dropped), which one is open, and what was dropped. `begins` says whether a bin begins a row or goes on with the one that has this
  // lower edge; the row of the last bin is shown whole.
  function rowsOf(layout, [first, last], begins, top) {
    const place = new Int32Array(layout.values.length).fill(ABOVE), edges = [];
    place.fill(BELOW, 0, first);
    let bin = first;
    for (; bin < place.length && (bin <= last || !begins(bin, edges.at(-1))); bin++) {
      if (bin === first || begins(bin, edges.at(-1))) edges.push(layout.edges[bin]);
      place[bin] = edges.length - 1;
    }
    const over = top >= bin;
    if (over) place.fill(OVER, bin);
    edges.push(layout.edges[bin]);
    return { edges: Float64Array.from(edges), place, open: layout.last in place ? place[layout.last] : ABOVE, over: over ? [layout.edges[bin], layout.edges[top + 1]] : null };
  }
  // The first bin with samples and the last one.
  const filledIn = (sums) => [Math.max(0, sums.findIndex((c) => c)), Math.max(0, kept(sums, 0) - 1)];
  // The most rows an octave with which some bins make no more rows than can be seen.
  function fitting(layout, [first, last], most) {
    const count = (half) => {
      let rows = 0, before = -1;
      for (let bin = first; bin <= last; bin++) {
        const [lower] = rowOf(layout, bin, half);
        if (lower !== before) rows++;
        before = lower;
      }
      return rows;
    };
    let { half } = layout;
    while (half > 1 && count(half) > most) half /= 2;
    return half;
  }
  // Rows that nest, `half` an octave, from that of the first bin to that of the last one.
  function nested(layout, half, [first, last], top) {
    const begins = (bin, lower) => rowOf(layout, bin, half)[0] > lower;
    const rows = rowsOf(layout, [placeOf(layout.edges, rowOf(layout, first, half)[0]), last], begins, top);
    [, rows.edges[rows.edges.length - 1]] = rowOf(layout, last, half); // a layout may end within a row
    return rows;
  }
  // Rows of about the same height: as few bins as are at least so tall.
  function even(layout, tall, bins, top) {
    return rowsOf(layout, bins, (bin, lower) => layout.edges[bin] - lower >= tall * (1 - 1e-9), top);
  }
  // The rows of a map in the range [low, high] that was asked, or as high as all but `drop` percent of the samples. A range comes in five digits:
  // what is nearer to an edge than these is that edge.
  function ladderOf(table, axis, drop, range, most = MOST.high) {
    const [layout] = table.layouts, sums = binsOf(table), [bottom, top] = filledIn(sums), { edges } = layout;
    const [low, high] = range ?? [0, Infinity];
    const first = low > 0 ? placeOf(edges, low * (1 + DIGITS)) : axis === "log" ? bottom : 0;
    const last = Math.max(first, high < Infinity ? placeOf(edges, high * (1 - DIGITS)) : range ? top : Math.max(0, kept(sums, drop / 100) - 1));
    const bins = [first, last], tall = ((high < Infinity ? edges[last + 1] : autoscaled(edges[last + 1])) - edges[first]) / most, highest = range ? -1 : top;
    const rows = axis === "log" ? nested(layout, fitting(layout, bins, most), bins, highest) : even(layout, tall, bins, highest);
    if (low >= edges[edges.length - 1]) rows.place.fill(BELOW); // the range begins beyond all bins
    return { ...rows, reach: range && [rows.edges[0], rows.edges.at(-1)], whole: [edges[bottom], edges[top + 1]] };
  }

  // ---- Cells.
  // The samples of a table by column and row of a ladder, a column after the other: `counts`; of each column what lies below the rows, what was
  // dropped above them, and all of it (n); of the whole table what lies outside the range that was asked.
  function countsOf(table, { edges, place }) {
    const { columns, begin, width, ptr, bin, cum, unit } = table, rows = edges.length - 1;
    const [below, dropped, n] = [0, 1, 2].map(() => new Float64Array(columns)), counts = new Float64Array(columns * rows);
    let above = 0;
    for (let row = 0; row < table.rows; row++) {
      const column = Math.round((table.t[row] - begin) / width), base = column * rows;
      n[column] += table.n[row] / unit;
      for (let at = ptr[row], before = 0; at < ptr[row + 1]; before = cum[at++]) {
        const c = (cum[at] - before) / unit, to = place[bin[at]];
        if (to >= 0) counts[base + to] += c;
        else if (to === BELOW) below[column] += c;
        else if (to === OVER) dropped[column] += c;
        else above += c;
      }
    }
    return { counts, below, dropped, n, outside: [below.reduce((sum, c) => sum + c, 0), above] };
  }
  const none = (range) => ({ columns: 0, rows: 0, begin: 0, width: 1, edges: [], counts: new Float64Array(), below: [], dropped: [], n: [], lit: [], outside: [0, 0], over: null, reach: range, whole: [1, 10] });
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
  // The map of a table of one group: on which axis, with how many percent dropped or in which range, in at most so many rows. `lit` are tables of
  // what is highlighted in it, of columns of the same times; of each the map has `counts` and `dropped`.
  function heatMap(table, axis, drop, range = null, lit = [], layouts = null, most = MOST.raster.rows) {
    if (!table.rows) return none(range);
    const filled = lit.filter(({ rows }) => rows), alike = filled.every((part) => part.layouts[0] === table.layouts[0]);
    const all = alike ? table : inCommon(table, layouts), ladder = ladderOf(all, axis, drop, range, most);
    const { columns, begin, width, unit } = table, rows = ladder.edges.length - 1;
    const placed = (part) => ({ ...(alike ? part : inCommon(part, layouts)), columns, begin });
    const nothing = { counts: new Float64Array(columns * rows), dropped: new Float64Array(columns) };
    return {
      ...ladder, ...countsOf(all, ladder), columns, rows, begin, width, weighed: unit > 1,
      lit: lit.map((part) => (part.rows ? countsOf(placed(part), ladder) : nothing)),
    };
  }
  // One cell of a map; row `rows` is that of what was dropped. cum: the samples of its window up to its upper edge.
  function cellAt(map, column, row) {
    const { rows, edges, begin, width, counts, dropped, below, n, over, lit } = map, base = column * rows, t = begin + column * width;
    const above = row === rows, of = (part) => (above ? part.dropped[column] : part.counts[base + row]);
    let cum = below[column];
    for (let at = 0; at <= Math.min(row, rows - 1); at++) cum += counts[base + at];
    const [lower, upper] = above ? over : [edges[row], edges[row + 1]];
    return { column, row, t, t2: t + width, n: n[column], lower, upper, c: of(map), cum: cum + (above ? dropped[column] : 0), open: Number(!above && row === map.open), over: Number(above), lit: lit.map(of) };
  }
  // The filled cells of a map, ordered by window and latency.
  function cellsOf(map) {
    const cells = [];
    for (let column = 0; column < map.columns; column++) {
      for (let row = 0; row < map.rows; row++) if (map.counts[column * map.rows + row] > LEAST) cells.push(cellAt(map, column, row));
      if (map.dropped[column] > LEAST) cells.push(cellAt(map, column, map.rows));
    }
    return cells;
  }
  // The samples of each row of a map, of all or of what is highlighted.
  function sumsOf({ rows, columns }, counts) {
    const sums = new Float64Array(rows);
    for (let column = 0, at = 0; column < columns; column++) for (let row = 0; row < rows; row++) sums[row] += counts[at++];
    return sums;
  }
  // The cells of a table in rows that nest, `half` an octave.
  function heatOf(table, half) {
    if (!table.rows) return [];
    const [layout] = table.layouts, ladder = nested(layout, half, filledIn(binsOf(table)), -1);
    const { columns, begin, width } = table;
    return cellsOf({ ...ladder, ...countsOf(table, ladder), columns, rows: ladder.edges.length - 1, begin, width, lit: [] });
  }
  // A map of each table with the same rows.
  function heatMaps(tables) {
    const filled = tables.filter(({ rows }) => rows), all = () => filled.flatMap((table) => heatOf(table, half));
    let half = Math.min(FINEST, ...filled.map((table) => fitting(table.layouts[0], filledIn(binsOf(table)), MOST.high)));
    while (half > 1 && all().length > MOST.cells) half /= 2;
    return tables.map((table) => heatOf(table, half));
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
    return [...sums].map(([name, count]) => ({ name, count })).sort((a, b) => b.count - a.count);
  }
  return { autoscaled, binsOf, placeOf, heatOf, heatMap, heatMaps, cellAt, cellsOf, sumsOf, splitOf };
})();
if (typeof module !== "undefined") module.exports = heat;
