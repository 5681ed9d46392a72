"use strict";
// What averaging would have said: the exact percentile beside the usual wrong ways; see estimates.py, which works them
// out. The functions outside of `panels` are pure. Times are ms, latencies ns.
const estimates = (() => {
  const EXACT = "exact", WIDE = { [EXACT]: 4 }, NARROW = 2, SMALL = 0.1;

  // Of the percentiles that were worked out the one that is asked for, else the nearest.
  function nearest(known, wanted) {
    const far = (text) => Math.abs(Number(text) - Number(wanted));
    return [...known].sort((a, b) => far(a) - far(b))[0];
  }
  function offBy(v, truth) {
    const share = v / truth - 1;
    if (share >= 1) return `${(1 + share).toFixed(share < 9 ? 1 : 0)} times too high`;
    const text = (100 * Math.abs(share)).toPrecision(2), shown = Number(text);
    return shown ? `${shown} % too ${share < 0 ? "low" : "high"}` : "right";
  }
  // A row a window and way of the windows that begin in [from, to).
  function pointsOf({ t, n, step, p }, text, from, to) {
    return Object.entries(p[text] ?? {}).flatMap(([label, values]) => values.flatMap((v, at) => {
      const truth = p[text][EXACT][at];
      if (v === null || t[at] < from || t[at] >= to) return [];
      const off = label === EXACT ? "exact" : truth > 0 ? offBy(v, truth) : "";
      return [{ t: t[at], t2: t[at] + step, label, row: label, v, n: n[at], open: 0, wide: WIDE[label] ?? NARROW, off, truth }];
    }));
  }
  const wrong = (points) => points.filter(({ label, truth }) => label !== EXACT && truth > 0);
  // The row that is furthest off by its ratio, either way.
  function furthest(points) {
    const far = ({ v, truth }) => Math.abs(Math.log(Math.max(v, 1) / truth));
    return wrong(points).reduce((most, point) => (most && far(most) >= far(point) ? most : point), null);
  }
  // The median of how far each way is off, in the order of the labels.
  function typical(points) {
    const shares = new Map();
    for (const { label, v, truth } of wrong(points)) shares.set(label, [...(shares.get(label) ?? []), v / truth]);
    return [...shares].map(([label, all]) => [label, all.sort((a, b) => a - b)[Math.floor((all.length - 1) / 2)]]);
  }

  function panels({ now, what, latency, when, windowsOf }) {
    return {
      estimates() {
        const { run, state, content } = now(), estimated = content.sections.estimates[content.runs.indexOf(run)];
        if (!estimated?.t || estimated.kind !== state.kind) return { alone: true };
        const level = run.levels.cluster, span = windowsOf(level).map((window) => level.origin + window * level.step);
        const text = nearest(Object.keys(estimated.p), state.p), points = pointsOf(estimated, text, span[0] - estimated.step + 1, span[1]);
        const labels = Object.keys(estimated.p[text]), top = furthest(points), name = what(text);
        const ways = typical(points).map(([label, ratio]) => `${label} ${offBy(ratio, 1)}`);
        const bad = new Set(wrong(points).filter(({ v, truth }) => Math.abs(v / truth - 1) > SMALL).map(({ t }) => t)).size;
        const windows = new Set(points.map(({ t }) => t)).size;
        const says = [
          text !== state.p && `Computed for ${Object.keys(estimated.p).map(what).join(", ")}; shown: ${name}.`,
          top && `Furthest off: ${when(top)}, where ${top.label === "CBT" ? "CBT" : `the ${top.label}`} says ${latency(top.v)} and ${name} is ${latency(top.truth)} (${top.off}).`,
          ways.length && `Typical window: ${ways.join(", ")}.`,
          `Off by more than 10 % in ${bad} of ${windows} windows of ${estimated.step / 1000} s, of ${estimated.series} series.`,
        ];
        const data = { points, thin: [], gaps: [], whole: labels.map((label) => ({ label, v: 0 })) };
        return { data, span, says: points.length ? says.filter(Boolean).join(" ") : "Too few samples in view." };
      },
    };
  }
  tailboard.sections.push((offered) => ({ panels: panels(offered), feeds: { p: ["estimates"], sla: ["estimates"] } }));
  return { nearest, offBy, pointsOf, furthest, typical, panels };
})();
if (typeof module !== "undefined") module.exports = estimates;
