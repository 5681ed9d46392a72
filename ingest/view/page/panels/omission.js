"use strict";
// Coordinated omission: service, response and wait time beside one another. Follows numbers.js in the same script. The tables are
// pure, tested in Node and held against the query layer; omission_panel.js draws them. Times are ms, latencies ns.
const omission = (() => {
  const { percentileOf, valueOf, layoutOf, gapsOf } = tailboard;
  const MEDIAN = percentileOf("50"), HIGHEST = percentileOf("100");

  // A row a window and kind: median, percentile (null where the samples are too few for it), maximum.
  function bandsOf(tables, wanted) {
    return tables.flatMap(({ label, table }) => Array.from({ length: table.rows }, (_, row) => {
      const [low, middle, high] = [MEDIAN, wanted, HIGHEST].map((p) => valueOf(table, row, p)), t = table.t[row];
      const values = { low: low.v, v: middle?.v ?? null, high: high.v, n: table.done[row], open: middle?.open ?? 0, open_high: high.open };
      return { t, t2: t + table.width, label, ...values };
    }));
  }
  // Stretches of windows in which none of the tables has a row; all have the same windows.
  function silenceOf(tables) {
    return tables.length ? gapsOf({ ...tables[0], groups: 1, t: tables.flatMap(({ t }) => [...t]) }, [""]) : [];
  }
  // Response minus service at a percentile, of each window and group of which both can be determined: as ingest/query/compare.py.
  function gapOf(service, response, wanted) {
    const name = (table, row) => table.names[table.group[row]], served = new Map(), out = [];
    for (let row = 0; row < service.rows; row++) {
      const value = valueOf(service, row, wanted);
      if (value) served.set(`${service.t[row]} ${name(service, row)}`, value);
    }
    for (let row = 0; row < response.rows; row++) {
      const t = response.t[row], value = valueOf(response, row, wanted), other = served.get(`${t} ${name(response, row)}`);
      if (!value || !other) continue;
      const error = (2 * value.v) / layoutOf(response, row).half; // the bins of both
      const facts = { service: other.v, response: value.v, n: response.done[row], open: value.open, error };
      out.push({ t, t2: t + response.width, label: name(response, row) || "all", v: value.v - other.v, ...facts });
    }
    return out;
  }
  // A curve for a logarithmic axis: what is zero cannot be drawn, the first that is more begins where zeros end.
  function aboveZero(curve) {
    const first = curve.findIndex(({ v }) => v > 0);
    return first < 1 ? curve.slice(first < 0 ? curve.length : 0) : [{ ...curve[first], x: curve[first - 1].x }, ...curve.slice(first)];
  }
  // The share of the samples of a row that are zero.
  function zeroShare(table, row) {
    const first = table.ptr[row];
    return layoutOf(table, row).values[table.bin[first]] === 0 ? table.cum[first] / table.n[row] : 0;
  }
  // The rows of the labels with the highest values, and how many labels these are of how many.
  function worst(points, most) {
    const highest = new Map();
    for (const { label, v } of points) highest.set(label, Math.max(highest.get(label) ?? -Infinity, v));
    const kept = new Set([...highest].sort((a, b) => b[1] - a[1]).slice(0, most).map(([label]) => label));
    return { shown: points.filter(({ label }) => kept.has(label)), kept: kept.size, of: highest.size };
  }
  const highestOf = (points) => points.reduce((top, point) => (point.v !== null && !(point.v <= top?.v) ? point : top), null);
  return { bandsOf, silenceOf, gapOf, aboveZero, zeroShare, worst, highestOf };
})();
if (typeof module !== "undefined") module.exports = omission;
