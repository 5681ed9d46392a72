"use strict";
// The panel of breath efficiency: pictures of processes, and tables of what they cost. Follows breaths.js in the same script;
// panels.js hands over what is chosen. What Python says of each run is in `content.sections.breaths` (see breaths.py).
(() => {
  const { BREATH, NOTHING, few, costOf, windowsIn, addedUp, fitOf, cellsOf, shaded, lineOf, reachOf, byCost, cellText } = breaths;
  const WIDE = 700, LINED = 10;
  let now, memo, find, number, offer; // what panels.js offers

  const here = () => {
    const { run, state, content } = now(), told = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const at = (seconds) => (seconds === "" ? null : run.start + 1000 * seconds);
    return { run, state, told, range: windowsIn(told, at(state.from), at(state.to)) };
  };
  const hidden = (name, visible) => (find(name).closest("section").hidden = !visible);
  function summed() {
    const { run, told, range } = here();
    return memo(["breaths", run.name, ...range], () => addedUp(told, range).filter(({ n }) => n));
  }
  const fitted = (all) => byCost(all).map((one) => ({ ...one, fit: fitOf(one) }));
  const processes = () => fitted(summed().filter(({ op }) => op === BREATH));
  // The pictures: one process that is chosen, or those with the most cycles a packet.
  function pictured() {
    const { state } = here(), all = processes(), mine = all.filter(({ name }) => name === state.process);
    const some = (mine.length ? mine : all.slice(0, Number(state.pictures))).map((one, place) => ({ ...one, place }));
    return { all, some, columns: find("breaths").clientWidth < WIDE ? 1 : some.length < 4 ? some.length : some.length > 4 ? 3 : 2 };
  }
  const lineText = ({ base, slope, explained, why }) =>
    why ?? `${few(base)} + ${few(slope)} a packet (R² ${explained.toFixed(2)})`;
  const facetsOf = (some) => some.map((one) =>
    ({ facet: one.name, place: one.place, title: one.name, note: `${lineText(one.fit)}; ${number(one.n)} breaths` }));
  const height = (count, columns) => Math.ceil(count / columns) * (count > 1 ? 230 : 320) + (Math.ceil(count / columns) - 1) * 92;
  function grid({ all, some, columns }) {
    const fewer = some.length < all.length ? (some.length === 1 && here().state.process ? "" : `The ${some.length} of ${all.length} processes with the most cycles a packet.`) : "";
    return { facets: facetsOf(some), columns, height: height(some.length, columns), fewer };
  }
  const drawn = (one, told) => lineOf(one, one.fit, reachOf(one, told.edges));
  const soft = () => getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
  const rangeText = (told) => (told.step > 1000 ? `Time ranges go in steps of ${told.step / 1000} s here.` : "");
  function rowOf([name, ...texts]) {
    const line = document.createElement("tr"), head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
    line.append(head);
    for (const text of texts) line.insertCell().textContent = text === "NaN" ? "–" : text;
    return line;
  }

  function drawnBreaths() {
    const { told, state, range } = here();
    if (hidden("breaths", told.streams.length)) return {};
    const picked = pictured(), { facets, columns, height: tall, fewer } = grid(picked), places = new Map(picked.some.map(({ name, place }) => [name, place]));
    const { stream, t, x, y } = told.points, [from, to] = range, name = (at) => told.streams[stream[at]].name;
    const window = (at) => Math.ceil((t[at] - told.origin) / told.step) - 1;
    const points = stream.map((_, at) => at).filter((at) => places.has(name(at)) && window(at) >= from && window(at) < to)
      .map((at) => ({ facet: name(at), place: places.get(name(at)), label: "single breaths", x: x[at], y: y[at] }));
    const lines = picked.some.flatMap((one) => drawn(one, told).cycles), all = picked.some.reduce((sum, { n }) => sum + n, 0);
    const worst = picked.some[0], cost = !worst ? "No breath in view." : !worst.sums[0] ? `${worst.name} moved no packet that it tells of.` : `${worst.name} takes ${few(costOf(worst))} cycles a packet; ${worst.fit.why ? "" : "line: "}${lineText(worst.fit)}.`;
    const sample = points.length < all ? `A random sample of ${number(points.length)} of ${number(all)} stored breaths is drawn, lines are through all.` : `All ${number(all)} stored breaths are drawn.`;
    const says = [cost, fewer, all && sample, rangeText(told)].filter(Boolean).join(" ");
    return { data: { facets, points, lines }, signals: { columns, axis: state.spread, soft: soft() }, height: tall, says };
  }
  function drawnDensity() {
    const { told, state } = here();
    if (hidden("density", told.streams.length)) return {};
    const picked = pictured(), { facets, columns, height: tall } = grid(picked);
    const cells = shaded(picked.some.flatMap((one) => cellsOf(one, told.edges)));
    const lines = picked.some.flatMap((one) => drawn(one, told).each), idle = picked.some.reduce((sum, one) => sum + one.idle, 0);
    const untold = picked.some.reduce((sum, one) => sum + one.n - one.known, 0), [top] = [...cells].sort((one, other) => other.c - one.c);
    const says = [
      top ? `The fullest cell: ${cellText(top)}.` : "No breath in view moved a packet.",
      idle && `${number(idle)} breaths moved no packet and are in no cell.`, untold && `${number(untold)} do not tell what they moved.`,
      picked.some.some(({ mixed }) => mixed) && "Events of unlike rates come together: each breath counts for those it stands for.",
    ].filter(Boolean).join(" ");
    const { spread: axis, shading, palette } = state;
    return { data: { facets, cells, lines }, signals: { columns, axis, shading, palette, soft: soft() }, height: tall, says };
  }
  function listedCosts() {
    const { told } = here();
    if (hidden("costs", told.streams.length)) return {};
    const texts = processes().map((one) => {
      const [packets] = one.sums, { base, slope, error, explained, residual, why } = one.fit;
      const line = why ? [why] : [few(base), `${few(slope)} ± ${few(error)}`, explained.toFixed(3), few(residual)];
      return [one.name, number(one.n), number(one.estimated), few(costOf(one)), few(packets / one.total), number(one.longest), ...line];
    });
    find("costs-rows").replaceChildren(...texts.map((row) => {
      const line = rowOf(row);
      if (row.length < LINED) Object.assign(line.lastElementChild, { colSpan: LINED - row.length + 1, className: "left" });
      return line;
    }));
    const calls = fitted(summed().filter(({ op }) => op !== BREATH));
    find("callbacks").hidden = !calls.length;
    find("callbacks-none").hidden = calls.length > 0;
    find("callbacks-rows").replaceChildren(...calls.map((one) => {
      const [packets, cycles] = one.sums;
      return rowOf([one.name, number(one.n), few(costOf(one)), few(packets / one.total), few(cycles / one.total), number(one.longest), lineText(one.fit)]);
    }));
    return {};
  }
  function opened(name, view) {
    if (name === "density") view.addSignalListener("cell", (_, cell) => cell && (find("breath-cell").textContent = cellText(cell)));
  }
  function shown() {
    const { run, content } = now(), told = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
    const names = told.streams.filter(({ op }) => op === BREATH).map(({ name }) => name), select = document.querySelector("select[name=process]");
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
