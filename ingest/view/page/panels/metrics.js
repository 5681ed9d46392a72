"use strict";
// What else was measured, such as the load of a disk: a picture each, on the axis of time of all panels; see metrics.py.
tailboard.sections.push(({ now, when, number, windowsOf }) => {
  const MOST = 12, HIGH = 80;
  function panel(place) {
    const { run, content } = now(), { name, runs } = content.sections[`metric${place}`], { t, v, of } = runs[content.runs.indexOf(run)], { cluster } = run.levels;
    const span = windowsOf(cluster).map((window) => cluster.origin + window * cluster.step);
    const points = t.map((begin, at) => ({ t: begin, t2: t[at + 1] ?? Math.max(begin, run.end), label: name, v: v[at] })).filter((point) => point.t < span[1] && point.t2 > span[0]);
    const top = points.reduce((most, point) => (most && most.v >= point.v ? most : point), null), low = Math.min(...points.map((point) => point.v));
    const says = top ? `Highest: ${number(top.v)}, ${when(top)}; lowest ${number(low)}.${of > 1 ? ` Each is the highest of ${of} values.` : ""}` : "No value in view.";
    return { data: { points, gaps: [] }, signals: { series: [name], measure: "" }, span, height: HIGH, says };
  }
  return { panels: Object.fromEntries(Array.from({ length: MOST }, (_, at) => [`metric${at}`, () => panel(at)])) };
});
