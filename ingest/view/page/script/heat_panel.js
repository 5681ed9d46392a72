"use strict";
// The panel of the latency heat map: which rows and columns, what is highlighted, and what a cell tells. Follows heat.js in the same
// script; panels.js hands over what is chosen. Times are ms, latencies ns.
const heatPanel = (() => {
  const { MOST, percentileOf, merged, pointsOf } = tailboard, { heatMap, splitOf } = heat;
  const LABELS = ["host", "thread", "op", "extra"], PARTS = 6;
  // The range of latency in ns that is set, in ms; null where none is, or none that can be.
  function rangeOf({ least, most }) {
    const [low, high] = [Number(least) * 1e6, most === "" ? Infinity : Number(most) * 1e6];
    return low >= 0 && low < high && (low > 0 || high < Infinity) ? [low, high] : null;
  }
  let now, table, groupsOf, windowsOf, multipleOf, memo, held, find, what, latency, when, number, toldOr, tooFew, mixedIn; // what panels.js offers
  const percent = (share) => `${Number((100 * share).toPrecision(4))} %`;
  const whole = (n) => number(Number(n.toFixed(1))); // counts spread by overlap have parts
  let cursor = null; // the cell that is told about

  // What can be highlighted: of each label that has several values, each.
  function choices() {
    const { run, state } = now(), { cluster, hosts, threads } = run.levels;
    const keys = { host: hosts.keys, thread: threads?.keys ?? [], op: cluster.keys, extra: cluster.keys };
    return LABELS.flatMap((label) => {
      const values = [...new Set(keys[label].filter((key) => key.kind === state.kind).map((key) => key[label]))].filter(Boolean).sort();
      return values.length > 1 ? values.map((value) => [`${label}=${value}`, `${label === "extra" ? "" : label} ${value}`.trim()]) : [];
    });
  }
  // A table of all, and one of what is highlighted, in columns of the same times: of those that both levels have windows for.
  function pair(chosen) {
    const { content } = now(), at = chosen.indexOf("="), [label, value] = [chosen.slice(0, at), chosen.slice(at + 1)];
    const all = groupsOf(""), some = groupsOf(label), own = label === "op" || label === "extra" ? all.level : some.level;
    const pick = own.keys.map((key, series) => ((own === all.level ? all.pick : some.pick)[series] >= 0 && key[label] === value ? 0 : -1));
    let k = multipleOf(all, MOST.columns);
    while (k % 1 || Math.abs(((k * all.level.step) / own.step) % 1) > 1e-9) k++;
    const wide = k * all.level.step, [from, to] = all.windows, first = Math.floor((all.level.base + from) / k);
    const last = Math.ceil((all.level.base + to) / k), begin = all.level.origin + (first * k - all.level.base) * all.level.step;
    const columns = (level, groups) => {
      const each = Math.round(wide / level.step), low = Math.max(0, first * each - level.base), high = Math.min(level.windows, last * each - level.base);
      return merged(level, content.layouts, groups, low, high, each);
    };
    return { total: columns(all.level, all.pick), lit: columns(own, pick), span: [begin, begin + (last - first) * wide], name: `${label === "extra" ? "" : label} ${value}`.trim() };
  }
  // The tables of the map under the filters, all and what is highlighted.
  function tables() {
    const { state, run } = now(), { level, windows } = groupsOf("");
    if (!state.highlight) return { total: table("", MOST.columns), lit: null, name: "" };
    const id = ["pair", run.name, state.kind, state.op, state.host, state.highlight, windows, level.step];
    return memo(id, () => {
      const { total, lit, span, name } = pair(state.highlight);
      return { total: { ...total, id, names: [""], span }, lit, name };
    });
  }
  function sentence({ below, above, cells }, lit, name) {
    const sum = (of) => cells.reduce((all, cell) => all + of(cell), 0), dropped = sum((cell) => cell.over * cell.c);
    const outside = [[below, "below"], [above, "above"]].filter(([n]) => n).map(([n, where]) => `${whole(n)} ${where}`).join(" and ");
    return [
      dropped && `${whole(dropped)} samples lie above the map.`,
      outside && `Of the samples ${outside} the range of latency are not shown.`,
      lit && `${name}: ${whole(sum((cell) => cell.lit))} of ${whole(sum((cell) => cell.c))} samples in the map.`,
    ];
  }
  function* heatmap() {
    const { state, content } = now(), { total, lit, name } = tables(), range = rangeOf(state);
    const points = pointsOf(total, [""], [percentileOf(state.p)]), { shading, palette, axis, drop } = state;
    const id = ["heat", total.id, axis, range ?? drop];
    if (!held(id)) yield;
    const map = memo(id, () => heatMap(total, axis, Number(drop), range, lit, content.layouts));
    const line = points.length ? `The line is ${what(state.p)}; windows` : map.cells.length && "Windows";
    const says = toldOr(tooFew(state.p, map.cells), points, line && `${line} of ${total.width / 1000} s.`, ...sentence(map, lit, name), mixedIn(total));
    const signals = { shading, palette, axis, reach: map.reach, highlight: name, zoomable: true };
    return { merged: total, data: { cells: map.cells, points }, signals, says };
  }
  // Who made the samples of a cell by a label, where the page holds bins by it, and in which windows it holds them.
  function split(label, cell, upper) {
    const { content } = now(), { level, names, pick, windows } = groupsOf(label), place = (ms) => (ms - level.origin) / level.step;
    const from = Math.max(windows[0], Math.floor(place(cell.t) + 1e-6)), to = Math.min(windows[1], Math.ceil(place(cell.t2) - 1e-6));
    if (from >= to) return null;
    const [t, t2] = [from, to].map((window) => level.origin + window * level.step);
    const parts = splitOf(merged(level, content.layouts, pick, from, to, 0), names, cell.lower, upper);
    return { parts, t, t2, exact: t >= cell.t - 0.5 && t2 <= cell.t2 + 0.5 };
  }
  function sharesBy(label, cell, upper) {
    const found = split(label, cell, upper);
    if (!found) return "";
    const { parts, exact } = found, all = exact ? cell.c : parts.reduce((sum, { count }) => sum + count, 0);
    const rest = all - parts.reduce((sum, { count }) => sum + count, 0), few = parts.slice(0, PARTS);
    const others = rest > 1e-6 * all ? [{ name: "those that the page has no bins of", count: rest }] : [];
    const words = [...few, ...others].map(({ name, count }) => `${name || "-"} ${number(count)} (${percent(count / all)})`).join(", ");
    const more = parts.length > few.length ? ` and ${parts.length - few.length} more` : "";
    const { run } = now(), title = label === "extra" ? run.extra : label;
    return `By ${title}${exact ? "" : `, of ${when(found)}, the finest that the page holds`}: ${words}${more}.`;
  }
  // Says what a cell of the map holds, and its split by host, thread, operation and what was asked beside them.
  function tell(cell) {
    const { run, page } = now(), above = cell.open || cell.over, upper = above ? Infinity : cell.upper;
    const range = above ? `≥ ${latency(cell.lower)}` : `${latency(cell.lower)} – ${latency(cell.upper)}`;
    const shares = `${percent(cell.c / cell.n)} of the window, ${percent(cell.cum / cell.n)} up to here`;
    const labels = LABELS.filter((label) => (label === "extra" ? run.extra : label !== "thread" || run.levels.threads));
    const first = `${when(cell)}, ${range}: ${number(cell.c)} samples, ${shares}.`;
    const lines = [first, ...labels.map((label) => sharesBy(label, cell, upper)), run.levels.threads ? "" : "Of threads the page holds no bins."];
    find("cell").replaceChildren(...lines.filter(Boolean).map((text) => Object.assign(document.createElement("span"), { textContent: `${text} ` })));
    const { t, t2, lower } = (cursor = cell);
    page.views.heatmap.signal("pointed", { t, t2, lower, upper: cell.upper }).runAsync();
  }
  // Arrow keys go from cell to cell: up and down in a window, left and right to the nearest latency of the next window.
  function step(event) {
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0];
    if (!across && !up) return;
    event.preventDefault();
    const cells = now().page.views.heatmap.data("shown");
    const here = cells.find(({ t, lower }) => t === cursor?.t && lower === cursor?.lower);
    if (!here) return cells.length && tell(cells.reduce((most, cell) => (cell.lower > most.lower ? cell : most)));
    const next = ({ t, lower }) => (across ? across * (t - here.t) > 0 : t === here.t && up * (lower - here.lower) > 0);
    const beside = cells.filter(next);
    const far = (cell) => Math.abs(cell.t - here.t) * 1e15 + Math.abs(cell.lower - here.lower);
    if (beside.length) tell(beside.reduce((near, cell) => (far(cell) < far(near) ? cell : near)));
  }
  return function panel(offered) {
    ({ now, table, groupsOf, windowsOf, multipleOf, memo, held, find, what, latency, when, number, toldOr, tooFew, mixedIn } = offered);
    return { heatmap, choices, tell, step };
  };
})();
