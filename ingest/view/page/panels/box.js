"use strict";
// A box of time and latency: moved to whole windows and bins, every label's values counted in it and outside, lifts and their bounds.
// Follows numbers.js in the same script. All pure; held against ingest/query/box.py and lifts.py. Times are ms, latencies ns.
const boxes = (() => {
  const { starts, added } = tailboard;
  const LEAST = 5, LEAST_BLOCKS = 25, ENOUGH = 50, TAIL = 0.015, SAME_WITHIN = 1.1, MOST_CORRELATION = 0.999;

  // ---- What was packed: see ingest/view/page/panels/box.py.
  async function unpack(run) {
    const labels = await Promise.all(run.labels.map(async (label) => {
      const take = tailboard.reader(await tailboard.inflated(label.data)), first = starts(label.rows), rows = first.at(-1);
      const windows = added(take(rows, Uint32Array), first), ptr = starts(take(rows));
      return { ...label, first, windows, ptr, bins: added(take(label.entries, Uint32Array), ptr), counts: take(label.entries) };
    }));
    return { ...run, labels };
  }

  // ---- Which box.
  // The four numbers of "from,to,low,high" (s, s, ms, ms), null where one is empty; null where it is no box.
  function parsed(text) {
    const parts = (text ?? "").split(",");
    if (parts.length !== 4 || parts.every((part) => part.trim() === "")) return null;
    const numbers = parts.map((part) => (part.trim() === "" ? null : Number(part)));
    if (numbers.some((number) => number !== null && !Number.isFinite(number))) return null;
    const [from, to, low, high] = numbers, ends = (a, b) => a !== null && b !== null && a >= b;
    return ends(from, to) || ends(low, high) ? null : { from, to, low, high };
  }
  // The windows and bins that a box touches, and the box that they make; null at open ends.
  function snapped(data, { from, to, low, high }, start) {
    const { origin, step, windows, edges, last } = data, bins = edges.length - 1;
    const place = (seconds) => (start + 1000 * seconds - origin) / step, within = (value) => Math.min(windows, Math.max(0, value));
    const first = from === null ? 0 : within(Math.floor(place(from) + 1e-6)), stop = to === null ? windows : within(Math.ceil(place(to) - 1e-6));
    const inside = (ns) => edges.findIndex((edge) => edge > ns + 1e-3), bin = low === null ? 0 : inside(1e6 * low) - 1;
    const lowest = bin < 0 ? (last >= 0 && last < bins ? last : bins) : bin, above = high === null ? -1 : edges.findIndex((edge) => edge >= 1e6 * high - 1e-3);
    const highest = above < 0 || (last >= 0 && above > last) ? bins : Math.max(above, lowest);
    const seconds = (window) => (origin + window * step - start) / 1000;
    const used = { from: from === null ? null : seconds(first), to: to === null ? null : seconds(Math.max(first, stop)), low: low === null ? null : edges[lowest], high: highest === bins ? null : edges[highest] };
    return { first, stop: Math.max(first, stop), lowest, highest, used };
  }

  // ---- Counting.
  // On which side of a box a sample is: 0 inside, 1 of those that it is held against, 2 neither.
  function sideOf({ first, stop, lowest, highest, against }, window, bin) {
    const during = window >= first && window < stop;
    if (during && bin >= lowest && bin < highest) return 0;
    return (against === "before" ? window < first : against === "after" ? window >= stop : against === "time" ? during : true) ? 1 : 2;
  }
  // Of each value of a label its samples by window, inside and outside; of a key that passes.
  function sidesOf(label, { windows }, box, passes) {
    const values = [...new Set(label.keys.filter(passes).map(({ value }) => value))].sort();
    const [inside, outside, neither] = [0, 1, 2].map(() => values.map(() => new Float64Array(windows)));
    label.keys.forEach((key, number) => {
      if (!passes(key)) return;
      const at = values.indexOf(key.value);
      for (let row = label.first[number]; row < label.first[number + 1]; row++) {
        const window = label.windows[row];
        for (let entry = label.ptr[row]; entry < label.ptr[row + 1]; entry++) {
          [inside, outside, neither][sideOf(box, window, label.bins[entry])][at][window] += label.counts[entry];
        }
      }
    });
    return { values, inside, outside };
  }
  // The samples of each bin: inside, outside, in the time of the box whatever their latency, and at all other times.
  function binsOf(label, { edges }, box, passes) {
    const [inside, outside, during, other, neither] = [0, 1, 2, 3, 4].map(() => new Float64Array(edges.length - 1));
    label.keys.forEach((key, number) => {
      for (let row = label.first[number]; passes(key) && row < label.first[number + 1]; row++) {
        const window = label.windows[row], within = window >= box.first && window < box.stop;
        for (let entry = label.ptr[row]; entry < label.ptr[row + 1]; entry++) {
          const bin = label.bins[entry], count = label.counts[entry];
          [inside, outside, neither][sideOf(box, window, bin)][bin] += count;
          (within ? during : other)[bin] += count;
        }
      }
    });
    return { inside, outside, during, other };
  }
  const total = (values) => values.reduce((sum, value) => sum + value, 0);
  const columns = (sides) => Float64Array.from(sides[0] ?? [], (_, window) => sides.reduce((sum, side) => sum + side[window], 0));
  // All that is said of a box: samples inside and outside, in how many windows, bins, and the rows of values, highest score first.
  function explained(data, box, passes) {
    const bins = binsOf(data.labels[0], data, box, passes), inside = total(bins.inside), outside = total(bins.outside);
    const sides = data.labels.map((label) => ({ name: label.name, ...sidesOf(label, data, box, passes) })).filter(({ values }) => values.length > 1);
    const together = sides.reduce((sum, { values }) => sum + values.length, 0), base = sidesOf(data.labels[0], data, box, passes);
    const rows = sides.flatMap((label, order) => {
      const every = [columns(label.inside), columns(label.outside)];
      return label.values.map((value, at) => {
        const own = [label.inside[at], label.outside[at]], counts = own.map(total), shares = counts.map((count, side) => count / Math.max(1, [inside, outside][side]));
        return { label: label.name, value, order, counts, shares, score: shares[0] - shares[1], ...liftOf(...sharesOf(own, every, together)) };
      });
    });
    rows.sort((a, b) => b.score - a.score || a.order - b.order || (a.value < b.value ? -1 : 1));
    return { inside, outside, filled: columns(base.inside).filter((n) => n).length, bins, rows };
  }

  // ---- Bounds: as ingest/query/batch_means.py has them.
  function sharesOf(own, every, rows) {
    const factors = own.map((counts, side) => dependence(counts, every[side])), most = Math.max(...factors);
    const enough = (side) => every[side].filter((n) => n).length >= ENOUGH;
    return own.map((counts, side) => shareOf(counts, every[side], rows, enough(side) ? factors[side] : most));
  }
  function dependence(counts, every) {
    const share = total(counts) / Math.max(1, total(every)), rest = Array.from(counts, (n, at) => n - share * every[at]).filter((_, at) => every[at]);
    const power = total(rest.map((r) => r * r));
    let factor = 1;
    for (let blocks = 1; power && Math.floor(rest.length / blocks) >= LEAST_BLOCKS; blocks *= 2) {
      const added = Array.from({ length: Math.floor(rest.length / blocks) }, (_, at) => total(rest.slice(at * blocks, (at + 1) * blocks)));
      const correlation = neighbours(added), wider = total(added.map((r) => r * r)) / added.length / blocks / (power / rest.length);
      factor = Math.max(factor, (wider * (1 + correlation)) / (1 - correlation));
    }
    return factor;
  }
  function shareOf(counts, every, rows, factor) {
    const all = total(every), number = every.filter((n) => n).length, none = [NaN, NaN];
    if (!all) return { share: NaN, bounds: none, loose: none };
    const share = total(counts) / all, loose = wilson(share, all, student(Infinity, TAIL / rows)), effective = number / factor;
    if (effective < LEAST) return { share, bounds: none, loose };
    const rest = Array.from(counts, (n, at) => n - share * every[at]);
    const variance = (((total(rest.map((r) => r * r)) * number) / (number - 1) / all ** 2) * number) / effective;
    const samples = variance > 0 ? Math.min((share * (1 - share)) / variance, all) : Math.min(effective, all);
    return { share, bounds: wilson(share, samples, student(effective - 1, TAIL / rows)), loose };
  }
  function wilson(share, samples, quantile) {
    const part = quantile ** 2 / samples, middle = share + part / 2, half = Math.sqrt(part * share * (1 - share) + part ** 2 / 4);
    return [Math.max((middle - half) / (1 + part), 0), Math.min((middle + half) / (1 + part), 1)];
  }
  function neighbours(values) {
    const mean = total(values) / values.length, centred = values.map((value) => value - mean), variance = total(centred.map((c) => c * c));
    if (!variance) return 0;
    const measured = total(centred.slice(1).map((c, at) => c * centred[at])) / variance;
    return Math.min((values.length * measured + 1) / (values.length - 3), MOST_CORRELATION);
  }
  function liftOf(inside, outside) {
    const lift = outside.share ? inside.share / outside.share : Infinity, [low, high] = between(inside, outside, lift);
    const out = inside.share > outside.share && inside.loose[0] > outside.loose[1];
    const near = low >= 1 / SAME_WITHIN && high <= SAME_WITHIN;
    return { lift, low, high, out, verdict: near ? "same" : low > 1 ? "more" : high < 1 ? "less" : "cannot tell" };
  }
  function between(inside, outside, lift) {
    const [[a, b], [c, d]] = [inside.bounds, outside.bounds];
    if (Number.isNaN(a) || Number.isNaN(c)) return [NaN, NaN];
    if (!outside.share) return [a / d, Infinity];
    if (!inside.share) return [0, c ? b / c : Infinity];
    const log = (larger, smaller) => (smaller ? Math.log(larger / smaller) : Infinity);
    return [lift * Math.exp(-Math.hypot(log(inside.share, a), log(d, outside.share))), lift * Math.exp(Math.hypot(log(b, inside.share), log(outside.share, c)))];
  }
  // The quantile of the normal distribution that `tail` lies above (Acklam, one step of Halley's method on erfc left out: 1e-9).
  function normal(tail) {
    const a = [-39.69683028665376, 220.9460984245205, -275.9285104469687, 138.357751867269, -30.66479806614716, 2.506628277459239];
    const b = [-54.47609879822406, 161.5858368580409, -155.6989798598866, 66.80131188771972, -13.28068155288572, 1];
    const c = [-0.007784894002430293, -0.3223964580411365, -2.400758277161838, -2.549732539343734, 4.374664141464968, 2.938163982698783];
    const d = [0.007784695709041462, 0.3224671290700398, 2.445134137142996, 3.754408661907416, 1];
    const poly = (factors, x) => factors.reduce((sum, factor) => sum * x + factor, 0);
    if (tail < 0.02425) { const q = Math.sqrt(-2 * Math.log(tail)); return -poly(c, q) / poly(d, q); }
    const q = 0.5 - tail, r = q * q;
    return (poly(a, r) * q) / poly(b, r);
  }
  // The quantile of Student's t that `tail` lies above: as ingest/query/batch_means.py (Hill 1970, Algorithm 396).
  function student(exact, tail) {
    if (exact < 2) return 1 / Math.tan(Math.PI * tail);
    if (exact > 1e6) return normal(tail);
    const n = Math.round(10 * exact) / 10, a = 1 / (n - 0.5), b = (48 / a) / a;
    let c = ((20700 * a / b - 98) * a - 16) * a + 96.36;
    const d = ((94.5 / (b + c) - 3) / b + 1) * Math.sqrt((a * Math.PI) / 2) * n;
    let y = (2 * d * tail) ** (2 / n);
    if (y > 0.05 + a) {
      const x = -normal(tail);
      y = x * x;
      if (n < 5) c += 0.3 * (n - 4.5) * (x + 0.6);
      c = (((0.05 * d * x - 5) * x - 7) * x - 2) * x + b + c;
      y = (((((0.4 * y + 6.3) * y + 36) * y + 94.5) / c - y - 3) / b + 1) * x;
      y = Math.expm1(a * y * y);
    } else {
      y = ((1 / (((n + 6) / (n * y) - 0.089 * d - 0.822) * (n + 2) * 3) + 0.5 / (n + 4)) * y - 1) * (n + 1) / (n + 2) + 1 / y;
    }
    return Math.sqrt(n * y);
  }
  return { unpack, parsed, snapped, explained, sharesOf, liftOf, student };
})();
if (typeof module !== "undefined") module.exports = boxes;
