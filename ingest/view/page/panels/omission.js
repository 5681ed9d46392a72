"use strict";
// Coordinated omission: service, response and wait time beside one another. Follows numbers.js in the same script. The tables are
// pure, tested in Node and held against the query layer; the panels draw them. Times are ms, latencies ns.
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

// Kinds over time, the gap between two of them, their distributions. What Python says of each run is in `content.sections.omission`.
tailboard.sections.push(({ now, table, groupsOf, multipleOf, find, what, latency, atLeast, when }) => {
  const { MOST, percentileOf, pointsOf, valueOf, curveOf } = tailboard;
  const { bandsOf, silenceOf, gapOf, aboveZero, zeroShare, worst, highestOf } = omission, { percent, sentences } = words;
  const COLUMNS = [180, 90, 45, 22, 10, 5], BANDS = 300;

  const here = () => {
    const { run, state, content } = now();
    return { ...content.sections.omission[content.runs.indexOf(run)], run, p: state.p };
  };
  // A table of each kind that has rows under the filters, all in the same windows; `most` 0: one of the whole range.
  function tablesOf(most) {
    const { run, kinds } = here(), groups = kinds.map((kind) => groupsOf("", run, kind));
    const filled = kinds.filter((_, at) => groups[at].names.length);
    const k = multipleOf({ ...groups[0], names: filled }, most);
    return filled.map((kind) => ({ label: kind || "measured", table: table("", most, run, kind, k) }));
  }
  // The windows of response time that are finest of which at least four in five carry the percentile.
  function finest(wanted) {
    const { run } = here(), groups = groupsOf("op", run, "response");
    const tries = COLUMNS.map((columns) => multipleOf(groups, Math.min(columns * Math.max(1, groups.names.length), MOST.points)));
    const carries = (rows) => pointsOf(rows, rows.names, [wanted]).length >= 0.8 * rows.rows;
    return tries.find((k) => carries(table("op", 0, run, "response", k))) ?? tries.at(-1);
  }
  function schedule({ said, warned }) {
    find("omission-said").replaceChildren(...said.map((text) => charting.make("li", {}, text)));
    find("omission-notes").hidden = !said.length;
    find("omission-notes").classList.toggle("notes", warned);
  }
  function drawnKinds() {
    const { p, kinds } = here(), name = what(p);
    if (!kinds.length) return { alone: true };
    schedule(here());
    const tables = tablesOf(BANDS), points = bandsOf(tables, percentileOf(p)), thin = points.filter(({ v }) => v === null).length;
    const tops = tables.map(({ label }) => highestOf(points.filter((point) => point.label === label))).filter(Boolean);
    const words = tops.sort((a, b) => b.v - a.v).map((top, at) => `${top.label} ${atLeast(top)}${at ? "" : ` (${when(top)})`}`);
    const says = sentences(
      tops.length ? `Highest ${name} of a window: ${words.join(", ")}.` : !points.length && "Nothing to show.",
      points.length && `Windows of ${tables[0].table.width / 1000} s.`,
      thin && `${thin} of ${points.length} have too few samples: circles at their maximum.`,
    );
    const gaps = silenceOf(tables.map((entry) => entry.table));
    return { data: { points, gaps }, span: tables[0]?.table.span, signals: { what: name }, says };
  }
  function drawnGap() {
    const { p, run, kinds } = here(), name = what(p);
    if (!kinds.includes("service") || !kinds.includes("response")) return { alone: true };
    const wanted = percentileOf(p), k = finest(wanted);
    const both = ["service", "response"].map((kind) => table("op", 0, run, kind, k)), points = gapOf(...both, wanted);
    const { shown, kept, of } = worst(points, MOST.worst);
    const top = highestOf(points.filter(({ v, error }) => v > error)), most = Math.max(0, ...points.map(({ v }) => v));
    const twice = points.filter((point) => point.response > 2 * point.service).length, thin = both[1].rows - points.length;
    const largest = () => {
      const response = atLeast({ v: top.response, open: top.open });
      return `Largest${most > top.v ? " beyond the error of the bins" : ""}: ${latency(top.v)}, ${top.label}, ${when(top)}: service ${name} says ${latency(top.service)}, response ${name} ${response}.`;
    };
    const says = sentences(
      top ? largest() : !points.length ? `No window has enough samples for ${name} of both.`
        : most > 0 ? `No gap: at most ${latency(most)}, which is within the error of the bins.` : `No gap: response ${name} never exceeds service ${name}.`,
      twice && `In ${twice} of ${points.length} windows${of > 1 ? " of an operation" : ""} response ${name} is more than twice service ${name}.`,
      thin > 0 && points.length && `${thin} more ${thin > 1 ? "have" : "has"} too few samples.`,
      kept < of && `The ${kept} worst of ${of} operations.`,
      `Windows of ${both[1].width / 1000} s.`,
    );
    return { data: { points: shown, gaps: silenceOf(both) }, span: both[1].span, signals: { what: name }, says };
  }
  function drawnCurves() {
    const { p, kinds } = here();
    if (!kinds.length) return { alone: true };
    const tables = tablesOf(0).filter((entry) => entry.table.rows), room = MOST.curve / tables.length;
    // As in omission.json: of lines that lie on one another all are seen, and colours are in this order.
    const wide = (at) => (step) => ({ ...step, wide: 2 * (tables.length - at) });
    const points = tables.flatMap(({ label, table: whole }, at) => aboveZero(curveOf(whole, [label], room)).map(wide(at)));
    const values = tables.map(({ label, table: whole }) => ({ label, ...valueOf(whole, 0, percentileOf(p)) })).filter(({ v }) => v !== undefined);
    const waits = tables.find(({ label }) => label === "wait"), none = waits ? zeroShare(waits.table, 0) : 0;
    const shown = values.map((value) => `${value.label} ${atLeast(value)}`).join(", ") || "too few samples";
    const says = sentences(`${what(p)} of the range in view: ${shown}.`, none > 0 && `${percent(none)} of requests did not wait.`);
    return { data: { points }, says };
  }
  const feeds = { p: ["omission", "gap", "kinds"], sla: ["omission", "kinds"] };
  return { panels: { omission: drawnKinds, gap: drawnGap, kinds: drawnCurves }, feeds };
});
if (typeof module !== "undefined") module.exports = omission;
