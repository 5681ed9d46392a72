// Draws a spec as Kibana does: expressions interpreted (no eval), Kibana's functions known, every warning and error kept.
window.called = [];
window.problems = [];
for (const name of ["kibanaSetTimeFilter", "kibanaAddFilter", "kibanaRemoveFilter", "kibanaRemoveAllFilters"]) {
  vega.expressionFunction(name, (...words) => { window.called.push([name, ...words.map(Number)]); });
}
const logger = (level) => (...words) => { window.problems.push(`${level}: ${words.map((word) => word?.stack ?? word).join(" ")}`); return log; };
const log = { level: () => log, error: logger("error"), warn: logger("warn"), info: () => log, debug: () => log };

// `restored` are signals of an earlier view: what Kibana puts back after a refresh, before the view first runs or (`late`) after that.
window.draw = async (spec, { width, height, config = {}, restored = null, late = false, renderer = "canvas" }) => {
  window.view?.finalize();
  window.called.length = window.problems.length = 0;
  const place = document.getElementById("place");
  place.replaceChildren();
  const runtime = vega.parse(spec, config, { ast: true });
  window.view = new vega.View(runtime, { expr: vega.expressionInterpreter, renderer, container: place, logger: log, hover: true });
  view.width(width).height(height);
  if (late || !restored) await view.runAsync();
  if (restored) await view.setState({ signals: restored });
  return window.problems;
};
// Tables and signals of the top level and of the groups within.
const scopes = (context) => [context, ...(context.subcontext ?? []).flatMap(scopes)];
const scopeOf = (kind, name) => {
  const scope = scopes(view._runtime).find((scope) => scope[kind] && Object.hasOwn(scope[kind], name));
  if (!scope) throw new Error(`no ${kind} ${name}`);
  return scope[kind][name];
};
window.table = (name) => scopeOf("data", name).values.value.map((row) => {
  const plain = {};
  for (const [key, value] of Object.entries(row)) if (value === null || typeof value !== "object") plain[key] = value;
  return plain;
});
window.signalNow = (name) => scopeOf("signals", name).value;
// What Kibana keeps over a refresh: signals of the top level, these apart; no data, nothing of groups.
const IGNORED = ["width", "height", "padding", "autosize", "background"];
window.signalsOf = () => view.getState({ signals: (name) => !IGNORED.includes(name), data: () => false }).signals;
// The boxes of all items of a named mark: what a reader sees, in pixels of the picture.
window.marksOf = (name) => {
  const found = [], walk = (item, x, y) => {
    for (const mark of item.items ?? []) {
      if (mark.marktype === "group" && mark.name !== name) for (const group of mark.items) walk(group, x + (group.x ?? 0), y + (group.y ?? 0));
      if (mark.name === name) for (const one of mark.items) found.push({ x1: one.bounds.x1 + x, x2: one.bounds.x2 + x, y1: one.bounds.y1 + y, y2: one.bounds.y2 + y, fill: one.fill, stroke: one.stroke, opacity: one.opacity, text: one.text });
    }
  };
  const { left, top } = view.padding(), [x, y] = view.origin();
  walk({ items: [view.scenegraph().root] }, left + x, top + y);
  return found;
};
// All that a reader sees, to the tenth of a pixel: the size of the plot, the heading, every item of axes, legends and marks.
window.picture = () => {
  const seen = [], near = (value) => Math.round(value * 10) / 10;
  const walk = (item, x, y) => {
    for (const mark of item.items ?? []) {
      for (const child of mark.items) {
        const { bounds: { x1, x2, y1, y2 }, fill, stroke, opacity, text } = child;
        if (mark.marktype !== "group") seen.push([mark.role, mark.marktype, ...[x1 + x, x2 + x, y1 + y, y2 + y].map(near), String(fill ?? ""), String(stroke ?? ""), opacity ?? 1, String(text ?? "")]);
        else if (opacity !== 0) walk(child, x + (child.x ?? 0), y + (child.y ?? 0));
      }
    }
  };
  const [x, y] = view.origin();
  walk({ items: [view.scenegraph().root] }, x, y);
  const size = { width: view.width(), height: view.height() };
  return { ...size, heading: signalNow("heading"), seen: seen.map((item) => JSON.stringify(item)).sort() };
};
