"use strict";
// Breath efficiency: what breaths of Snabb processes cost and moved. Follows numbers.js in the same script. Sums, lines and cells are
// pure, tested in Node and held against the query layer (ingest/query/breaths.py); `panels` is what page.js draws of them. What
// Python told of each run is in `content.sections.breaths` (see breaths.py).
const breaths = (() => {
  const LEAST = 30, ALIKE = 3, CERTAIN = 2, STEPS = 40, WIDE = 700, SUMS = 5, LINED = 10;
  const BREATH = "engine.breath_end", NOTHING = { streams: [] };

  // The windows [from, to) of the page's range, given in ms.
  function windowsIn(told, begin, end) {
    const place = (t, round, none) => (t === null ? none : round((t - told.origin) / told.step));
    return [place(begin, Math.floor, 0), place(end, Math.ceil, Infinity)];
  }
  // What all breaths of each stream in a range cost together; where rates are mixed each breath counts by its weight.
  function addedUp(told, [from, to]) {
    const all = told.streams.map((stream) => (
      { ...stream, n: 0, known: 0, idle: 0, longest: 0, estimated: 0, total: 0, squared: 0, sums: Array(SUMS).fill(0), cells: new Map() }));
    const rows = told.windows ?? { stream: [] }, kept = [];
    rows.stream.forEach((_, row) => rows.at[row] >= from && rows.at[row] < to && kept.push(row));
    const weights = told.streams.map(() => new Set());
    for (const row of kept) weights[rows.stream[row]].add(rows.weight[row]);
    for (const row of kept) {
      const one = all[rows.stream[row]];
      one.mixed = weights[rows.stream[row]].size > 1;
      const weight = one.mixed ? rows.weight[row] : 1;
      one.n += rows.count[row];
      one.known += rows.known[row];
      one.idle += rows.idle[row];
      one.longest = Math.max(one.longest, rows.longest[row]);
      one.estimated += rows.count[row] * rows.weight[row];
      one.total += weight * rows.known[row];
      one.squared += weight * weight * rows.known[row];
      for (let sum = 0; sum < SUMS; sum++) one.sums[sum] += weight * rows.sums[sum][row];
      for (let place = rows.ptr[row]; place < rows.ptr[row + 1]; place++) {
        const found = one.cells.get(rows.cell[place]) ?? { n: 0, c: 0 };
        one.cells.set(rows.cell[place], { n: found.n + rows.n[place], c: found.c + weight * rows.n[place] });
      }
    }
    return all;
  }
  // The line of least squares, or why there is none: as ingest/query/breaths.py.
  function fitOf({ known, total, squared, sums: [packets, cycles, packets2, both, cycles2] }) {
    if (known < LEAST) return { why: `${known} breaths are too few for a line` };
    const x = packets / total, y = cycles / total, spread = packets2 / total - x * x, alike = (total * total) / squared;
    if (alike <= ALIKE) return { why: `no line: a few breaths stand for nearly all of ${known}` };
    if (spread <= 1e-12 * x * x) return { why: `no line: every breath moved ${Number(x.toPrecision(6))} packets` };
    const joint = both / total - x * y, variance = Math.max(0, cycles2 / total - y * y), slope = joint / spread;
    const left = Math.max(0, variance - slope * joint), residual = (left * alike) / (alike - 2), error = Math.sqrt(residual / (alike * spread));
    if (Math.abs(slope) < CERTAIN * error) return { why: `no line: ${few(slope)} ± ${few(error)} cycles a packet are not certain` };
    return { base: y - slope * x, slope, error, explained: variance ? 1 - left / variance : 1, residual: Math.sqrt(residual) };
  }
  const few = (value) => Number(value.toPrecision(3)).toLocaleString("en");

  // The occupied cells of a stream, with their edges.
  function cellsOf(one, { packets, cycles }) {
    const tall = cycles.length - 1, all = [...one.cells.values()].reduce((sum, { c }) => sum + c, 0);
    return [...one.cells].map(([cell, { n, c }]) => {
      const column = Math.floor(cell / tall), row = cell % tall;
      return { facet: one.name, place: one.place, x: packets[column], x2: packets[column + 1], y: cycles[row], y2: cycles[row + 1], n, c, all };
    });
  }
  // What the shade of a cell needs, among all that are drawn.
  function shaded(cells) {
    const counts = cells.map(({ c }) => c).sort((one, other) => one - other), most = counts.at(-1) ?? 1, upTo = new Map();
    counts.forEach((c, at) => upTo.set(c, at + 1));
    return cells.map((cell) => ({ ...cell, rank: upTo.get(cell.c) / counts.length, part: cell.c / most }));
  }
  // The packets that a line is drawn over: from the fewest to the most that a breath moved.
  function reachOf(one, { packets, cycles }) {
    const columns = [...one.cells.keys()].map((cell) => Math.floor(cell / (cycles.length - 1)));
    return [one.idle ? 0 : packets[Math.min(...columns)], packets[Math.max(...columns) + 1] - 1];
  }
  // A line in cycles of a breath, and the same in cycles a packet, which is no straight line.
  function lineOf(one, { base, slope, why }, reach) {
    if (why !== undefined || !one.cells.size) return { cycles: [], each: [] };
    const [low, high] = reach, steps = Array.from({ length: STEPS + 1 }, (_, at) => at / STEPS), row = { facet: one.name, place: one.place, label: one.label ?? one.name };
    const cycles = steps.map((share) => low + share * (high - low)).map((x) => ({ ...row, x, v: base + slope * x }));
    const first = Math.max(1, low), each = steps.map((share) => first * (high / first) ** share).map((x) => ({ ...row, x, v: base / x + slope }));
    return { cycles: cycles.filter(({ v }) => v > 0), each: each.filter(({ v }) => v > 0) };
  }
  const costOf = ({ sums: [packets, cycles] }) => (packets ? cycles / packets : NaN);
  // Processes by cycles a packet, the most first; those that moved nothing last.
  const byCost = (all) => [...all].sort((one, other) =>
    (Number.isNaN(costOf(one)) - Number.isNaN(costOf(other))) || costOf(other) - costOf(one) || (one.name < other.name ? -1 : 1));

  function panels({ now: chosen, memo, find, number }) {
    const now = () => {
      const { run, state, content } = chosen(), told = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
      const at = (seconds) => (seconds === "" ? null : run.start + 1000 * seconds);
      return { run, state, told, range: windowsIn(told, at(state.from), at(state.to)) };
    };
    const hidden = (name, visible) => (find(name).closest("section").hidden = !visible);
    function summed() {
      const { run, told, range } = now();
      return memo(["breaths", run.name, ...range], () => addedUp(told, range).filter(({ n }) => n));
    }
    const fitted = (all) => byCost(all).map((one) => ({ ...one, fit: fitOf(one) }));
    const processes = () => fitted(summed().filter(({ op }) => op === BREATH));
    // The pictures: one process that is chosen, or those with the most cycles a packet.
    function shown() {
      const { state } = now(), all = processes(), mine = all.filter(({ name }) => name === state.process);
      const some = (mine.length ? mine : all.slice(0, Number(state.pictures))).map((one, place) => ({ ...one, place }));
      return { all, some, columns: find("breaths").clientWidth < WIDE ? 1 : some.length < 4 ? some.length : some.length > 4 ? 3 : 2 };
    }
    const lineText = ({ base, slope, explained, why }) =>
      why ?? `${few(base)} + ${few(slope)} a packet (R² ${explained.toFixed(2)})`;
    const facetsOf = (some) => some.map((one) =>
      ({ facet: one.name, place: one.place, title: one.name, note: `${lineText(one.fit)}; ${number(one.n)} breaths` }));
    const height = (count, columns) => Math.ceil(count / columns) * (count > 1 ? 230 : 320) + (Math.ceil(count / columns) - 1) * 92;
    function grid({ all, some, columns }) {
      const fewer = some.length < all.length ? (some.length === 1 && now().state.process ? "" : `The ${some.length} of ${all.length} processes with the most cycles a packet.`) : "";
      return { facets: facetsOf(some), columns, height: height(some.length, columns), fewer };
    }
    const drawn = (one, told) => lineOf(one, one.fit, reachOf(one, told.edges));
    const soft = () => getComputedStyle(document.documentElement).getPropertyValue("--soft").trim();
    const rangeText = (told) => (told.step > 1000 ? `Time ranges go in steps of ${told.step / 1000} s here.` : "");
    return {
      breaths() {
        const { told, state, range } = now();
        if (hidden("breaths", told.streams.length)) return {};
        const picked = shown(), { facets, columns, height: tall, fewer } = grid(picked), places = new Map(picked.some.map(({ name, place }) => [name, place]));
        const { stream, t, x, y } = told.points, [from, to] = range, name = (at) => told.streams[stream[at]].name;
        const window = (at) => Math.ceil((t[at] - told.origin) / told.step) - 1;
        const points = stream.map((_, at) => at).filter((at) => places.has(name(at)) && window(at) >= from && window(at) < to)
          .map((at) => ({ facet: name(at), place: places.get(name(at)), label: "single breaths", x: x[at], y: y[at] }));
        const lines = picked.some.flatMap((one) => drawn(one, told).cycles), all = picked.some.reduce((sum, { n }) => sum + n, 0);
        const worst = picked.some[0], cost = !worst ? "No breath in view." : !worst.sums[0] ? `${worst.name} moved no packet that it tells of.` : `${worst.name} takes ${few(costOf(worst))} cycles a packet; ${worst.fit.why ? "" : "line: "}${lineText(worst.fit)}.`;
        const sample = points.length < all ? `A random sample of ${number(points.length)} of ${number(all)} stored breaths is drawn, lines are through all.` : `All ${number(all)} stored breaths are drawn.`;
        const says = [cost, fewer, all && sample, rangeText(told)].filter(Boolean).join(" ");
        return { data: { facets, points, lines }, signals: { columns, axis: state.spread, soft: soft() }, height: tall, says };
      },
      density() {
        const { told, state } = now();
        if (hidden("density", told.streams.length)) return {};
        const picked = shown(), { facets, columns, height: tall } = grid(picked);
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
      },
      costs() {
        const { told } = now();
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
      },
    };
    function rowOf([name, ...texts]) {
      const line = document.createElement("tr"), head = Object.assign(document.createElement("th"), { scope: "row", textContent: name });
      line.append(head);
      for (const text of texts) line.insertCell().textContent = text === "NaN" ? "–" : text;
      return line;
    }
  }
  const whole = (value) => value.toLocaleString("en");
  function cellText({ facet, x, x2, y, y2, n, c, all }) {
    const packets = x2 - x === 1 ? whole(x) : x2 > 4096 ? `${whole(x)} packets and more,` : `${whole(x)} to ${whole(x2 - 1)}`;
    const told = x2 > 4096 ? packets : `${packets} packets,`;
    const stands = c === n ? "" : `, which stand for ${whole(c)}`;
    return `${facet}, ${told} ${whole(y)} to ${whole(y2 - 1)} cycles a packet: ${whole(n)} breaths${stands} (${Number(((100 * c) / all).toPrecision(3))} %)`;
  }
  const feeds = { process: ["breaths", "density"], pictures: ["breaths", "density"], spread: ["breaths", "density"], shading: ["density"], palette: ["density"], p: [] };
  tailboard.sections.push((offered) => {
    const { find, now } = offered;
    function opened(name, view) {
      if (name === "density") view.addSignalListener("cell", (_, cell) => cell && (find("breath-cell").textContent = cellText(cell)));
    }
    function shown() {
      const { run, content } = now(), told = content.sections.breaths[content.runs.indexOf(run)] ?? NOTHING;
      const names = told.streams.filter(({ op }) => op === BREATH).map(({ name }) => name), select = document.querySelector("select[name=process]");
      const options = [new Option("most cycles a packet", ""), ...names.map((name) => new Option(name, name))];
      offered.offer(select, options);
      for (const control of ["process", "pictures"]) document.querySelector(`select[name=${control}]`).closest("label").hidden = names.length < 2;
    }
    return { panels: panels(offered), feeds, top: { breaths: 40, density: 100 }, opened, shown };
  });
  return { windowsIn, addedUp, fitOf, cellsOf, shaded, lineOf, reachOf, byCost, cellText };
})();
if (typeof module !== "undefined") module.exports = breaths;
