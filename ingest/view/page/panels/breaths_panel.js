"use strict";
// The panel of breath efficiency: pictures of processes, and tables of what they cost. Follows breaths.js in the same script;
// panels.js hands over what is chosen. What Python says of each run is in `content.sections.breaths` (see breaths.py).
(() => {
  const { BREATH, NOTHING, few, costOf, windowsIn, addedUp, fitOf, cellsOf, lineOf, reachOf, byCost, cellText } = breaths;
  const WIDE = 700, LINED = 10;
  let now, memo, find, number, offer; // what panels.js offers

  const here = () => {
    const { run, state, content } = now(), section = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const at = (seconds) => (seconds === "" ? null : run.start + 1000 * seconds);
    return { run, state, section, range: windowsIn(section, at(state.from), at(state.to)) };
  };
  function summed() {
    const { run, section, range } = here();
    return memo(["breaths", run.name, ...range], () => addedUp(section, range).filter(({ n }) => n));
  }
  const fitted = (all) => byCost(all).map((process) => ({ ...process, fit: fitOf(process) }));
  const processes = () => fitted(summed().filter(({ op }) => op === BREATH));
  // The pictures: one process that is chosen, or those with the most cycles a packet.
  function pictured() {
    const { state } = here(), all = processes(), mine = all.filter(({ name }) => name === state.process);
    const some = (mine.length ? mine : all.slice(0, Number(state.pictures))).map((process, place) => ({ ...process, place }));
    return { all, some, columns: find("breaths").clientWidth < WIDE ? 1 : some.length < 4 ? some.length : some.length > 4 ? 3 : 2 };
  }
  const lineText = ({ base, slope, explained, why }) =>
    why ?? `${few(base)} + ${few(slope)} a packet (R² ${explained.toFixed(2)})`;
  const facetsOf = (some) => some.map((process) =>
    ({ facet: process.name, place: process.place, title: process.name, note: `${lineText(process.fit)}; ${number(process.n)} breaths` }));
  const height = (count, columns) => Math.ceil(count / columns) * (count > 1 ? 230 : 320) + (Math.ceil(count / columns) - 1) * 92;
  function grid({ all, some, columns }) {
    const fewer = some.length < all.length ? (some.length === 1 && here().state.process ? "" : `The ${some.length} of ${all.length} processes with the most cycles a packet.`) : "";
    return { facets: facetsOf(some), columns, height: height(some.length, columns), fewer };
  }
  const drawn = (process, section) => lineOf(process, process.fit, reachOf(process, section.edges));
  const soft = () => getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
  const rangeText = (section) => (section.step > 1000 ? `Time ranges go in steps of ${section.step / 1000} s here.` : "");
  const rowOf = ([name, ...texts]) => charting.make("tr", {}, charting.make("th", { scope: "row" }, name), ...charting.rowOf(texts.map((text) => (text === "NaN" ? "–" : text))).children);

  function drawnBreaths() {
    const { section, state, range } = here();
    if (!section.streams.length) return { alone: true };
    const picked = pictured(), { facets, columns, height: tall, fewer } = grid(picked), places = new Map(picked.some.map(({ name, place }) => [name, place]));
    const { stream, t, x, y } = section.points, [from, to] = range, name = (at) => section.streams[stream[at]].name;
    const window = (at) => Math.ceil((t[at] - section.origin) / section.step) - 1;
    const points = stream.map((_, at) => at).filter((at) => places.has(name(at)) && window(at) >= from && window(at) < to)
      .map((at) => ({ facet: name(at), place: places.get(name(at)), label: "single breaths", x: x[at], y: y[at] }));
    const lines = picked.some.flatMap((process) => drawn(process, section).cycles), all = picked.some.reduce((sum, { n }) => sum + n, 0);
    const worst = picked.some[0], cost = !worst ? "No breath in view." : !worst.sums[0] ? `${worst.name} moved no packet that it logged.` : `${worst.name} takes ${few(costOf(worst))} cycles a packet; ${worst.fit.why ? "" : "line: "}${lineText(worst.fit)}.`;
    const sample = points.length < all ? `Of ${number(all)} stored breaths the longest and a random sample are drawn, together ${number(points.length)}; lines are fitted to all.` : `All ${number(all)} stored breaths are drawn.`;
    const says = [cost, fewer, all && sample, rangeText(section)].filter(Boolean).join(" ");
    return { data: { facets, points, lines }, signals: { columns, axis: state.spread, soft: soft() }, height: tall, says };
  }
  function drawnDensity() {
    const { section, state } = here();
    if (!section.streams.length) return { alone: true };
    const picked = pictured(), { facets, columns, height: tall } = grid(picked);
    const cells = picked.some.flatMap((process) => cellsOf(process, section.edges));
    const lines = picked.some.flatMap((process) => drawn(process, section).each), idle = picked.some.reduce((sum, process) => sum + process.idle, 0);
    const unknown = picked.some.reduce((sum, process) => sum + process.n - process.known, 0), [top] = [...cells].sort((a, b) => b.c - a.c);
    const says = [
      top ? `The fullest cell: ${cellText(top)}.` : "No breath in view moved a packet.",
      idle && `${number(idle)} breaths moved no packet and are in no cell.`, unknown && `${number(unknown)} did not log what they moved.`,
      picked.some.some(({ mixed }) => mixed) && "Events of different rates are combined: each breath counts for all those that it represents.",
    ].filter(Boolean).join(" ");
    const { spread: axis, shading, palette } = state;
    return { data: { facets, cells, lines }, signals: { columns, axis, shading, palette, soft: soft() }, height: tall, says };
  }
  function listedCosts() {
    const { section } = here();
    find("costs").hidden = !section.streams.length;
    const texts = processes().map((process) => {
      const [packets] = process.sums, { base, slope, error, explained, residual, why } = process.fit;
      const line = why ? [why, residual === undefined ? "" : few(residual)] : [few(base), `${few(slope)} ± ${few(error)}`, explained.toFixed(3), few(residual)];
      return [process.name, number(process.n), number(process.estimated), few(costOf(process)), few(packets / process.total), number(process.longest), ...line];
    });
    find("costs-rows").replaceChildren(...texts.map((row) => {
      const line = rowOf(row);
      if (row.length < LINED) Object.assign(line.lastElementChild.previousElementSibling, { colSpan: LINED - row.length + 1, className: "left" });
      return line;
    }));
    const calls = fitted(summed().filter(({ op }) => op !== BREATH));
    find("callbacks").hidden = !calls.length;
    find("callbacks-none").hidden = calls.length > 0;
    find("callbacks-rows").replaceChildren(...calls.map((callback) => {
      const [packets, cycles] = callback.sums;
      return rowOf([callback.name, number(callback.n), few(costOf(callback)), few(packets / callback.total), few(cycles / callback.total), number(callback.longest), lineText(callback.fit)]);
    }));
    return {};
  }
  function opened(name, view) {
    if (name === "density") view.addSignalListener("cell", (_, cell) => cell && (find("breath-cell").textContent = cellText(cell)));
  }
  function shown() {
    const { run, content } = now(), section = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const names = section.streams.filter(({ op }) => op === BREATH).map(({ name }) => name), select = document.querySelector("select[name=process]");
    const options = [new Option("most cycles a packet", ""), ...names.map((name) => new Option(name, name))];
    offer(select, options);
    for (const control of ["process", "pictures"]) document.querySelector(`select[name=${control}]`).closest("label").hidden = names.length < 2;
  }
  const feeds = { process: ["breaths", "density"], pictures: ["breaths", "density"], spread: ["breaths", "density"], shading: ["density"], palette: ["density"], p: [] };
  tailboard.sections.push((offered) => {
    ({ now, memo, find, number, offer } = offered);
    return { panels: { breaths: drawnBreaths, density: drawnDensity, costs: listedCosts }, feeds, top: { breaths: 40, density: 100 }, opened, shown };
  });
})();
