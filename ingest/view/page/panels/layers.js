"use strict";
// The layers of a run under one another; see layers.py, which works out their cells. The functions outside of `panels` are pure. Times are
// ms, latencies ns.
const layers = (() => {
  const HIGH = 130, BETWEEN = 12;

  // The range of latency of all layers; a bin that begins at zero is an octave high.
  const bottomOf = (lower, upper) => (lower > 0 ? lower : upper / 2);
  function rangeOf(shown) {
    let [low, high] = [Infinity, 0];
    for (const { lower, upper } of shown) {
      for (let at = 0; at < lower.length; at++) [low, high] = [Math.min(low, bottomOf(lower[at], upper[at])), Math.max(high, upper[at])];
    }
    return high ? [low, high] : [1, 10];
  }
  // The cells of all layers whose windows begin in [from, to).
  function cellsOf(shown, step, from, to) {
    return shown.flatMap(({ layer, t, lower, upper, share, n, open }) => t.flatMap((begin, at) => (begin < from - step + 1 || begin >= to ? [] : [{
      t: begin, t2: begin + step, row: layer, lower: lower[at], upper: upper[at], bottom: bottomOf(lower[at], upper[at]), v: share[at], n: n[at], open: open[at],
    }])));
  }
  // Powers of ten of the latency axis of each layer.
  function ticksOf(shown, [low, high]) {
    const powers = [];
    for (let power = Math.ceil(Math.log10(low) - 1e-9); 10 ** power <= high; power++) powers.push(10 ** power);
    return shown.flatMap(({ layer }) => powers.map((tick) => ({ row: layer, tick })));
  }

  function panels({ now, number, windowsOf }) {
    return {
      layers() {
        const { run, content } = now(), { step, layers: shown } = content.sections.layers[content.runs.indexOf(run)];
        if (!shown.length) return { alone: true };
        const level = run.levels.cluster, span = windowsOf(level).map((window) => level.origin + window * level.step);
        const yd = rangeOf(shown), points = cellsOf(shown, step, ...span);
        const said = shown.map(({ layer, kind, bound, n }) => `${layer}: ${number(n.reduce((sum, c) => sum + c, 0))} samples, ${kind} latency, error of a percentile ${bound}.`);
        const says = ["Colour: the share of a window's samples, for each factor of 2 of latency.", ...said, `Windows of ${shown[0].windows}.`, "Times are those of the clock of each host; how far these are apart is not known."];
        const data = { points, rows: shown.map(({ layer }) => ({ row: layer })), ticks: ticksOf(shown, yd), thin: [], gaps: [] };
        return { data, span, signals: { yd }, height: shown.length * (HIGH + BETWEEN), says: says.join(" ") };
      },
    };
  }
  tailboard.sections.push((offered) => ({ panels: panels(offered), feeds: {}, piecemeal: { layers: "points" } }));
  return { rangeOf, cellsOf, ticksOf, panels };
})();
if (typeof module !== "undefined") module.exports = layers;
