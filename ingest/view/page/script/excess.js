"use strict";
// How far samples lie above a latency, which makes a window one of the worst. Follows numbers.js in the same script; all pure.
// Times are ms, latencies ns.
const excess = (() => {
  const { reportedIn, timesOf, valueOf, percentileOf } = tailboard, HIGHEST = percentileOf("100");

  // By how much the samples of a row lie above a latency, added up, in ns.
  function excessOf(table, row, least) {
    let sum = 0;
    for (let at = table.ptr[row + 1] - 1; at >= table.ptr[row]; at--) {
      const over = reportedIn(table, row, table.bin[at]) - least, before = at > table.ptr[row] ? table.cum[at - 1] : 0;
      if (over <= 0) break;
      sum += (table.cum[at] - before) * over;
    }
    return (sum * table.scale[table.group[row]]) / table.unit;
  }
  // The windows whose samples lie furthest above a latency in all, with their percentile, null where they cannot carry it.
  function worstOf(table, wanted, most, least) {
    const windows = Array.from(table.done, (n, row) => ({ ...timesOf(table, row), n, excess: excessOf(table, row, least), row }));
    const sorted = windows.filter(({ excess }) => excess > 0).sort((a, b) => b.excess - a.excess || a.t - b.t).slice(0, most);
    return sorted.map(({ row, ...window }) => ({ ...window, value: valueOf(table, row, wanted), highest: valueOf(table, row, HIGHEST) }));
  }
  // The excess of all rows of each group, largest first.
  function excessBy(table, names, least) {
    const sums = new Map();
    for (let row = 0; row < table.rows; row++) {
      const name = names[table.group[row]];
      sums.set(name, (sums.get(name) ?? 0) + excessOf(table, row, least));
    }
    const total = [...sums.values()].reduce((sum, excess) => sum + excess, 0);
    return [...sums].filter(([, excess]) => excess > 0).map(([name, excess]) => ({ name, excess, share: excess / total })).sort((a, b) => b.excess - a.excess);
  }
  return { excessOf, worstOf, excessBy };
})();
if (typeof module !== "undefined") module.exports = excess;
