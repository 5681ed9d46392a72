"use strict";
// The panel of a box: its four fields, who is over-represented in it, its latencies beside those of the rest. Follows box.js in the
// same script; panels.js hands over what is chosen on the page. The box is state `box`: "from,to,low,high" in s and ms.
tailboard.sections.push(({ now, set, find, when, number, latency }) => {
  const { unpack, parsed, snapped, explained } = boxes;
  const FIELDS = ["from", "to", "low", "high"], SAID = 3, SHOWN = 12, FEW = 5, LEAST_TIMES = 1.5, LEAST_SCORE = 0.1, LEAST_SPREADS = 4;
  const WIDE = 640, HIGH = 120, TITLES = { op: "operation" };
  const unpacked = new WeakMap();
  // What a box is held against, as ingest/view/boxes.py says it: where those are, and of whom the other share is.
  const AGAINST = { "": ["elsewhere", "of all others"], before: ["before", "of all before it"], after: ["after it", "of all after it"], time: ["in the rest of its time", "of the others of its time"] };
  const WIDTH = 330, GAP = 10; // px: of the answer, beside the box that it is of
  let against = AGAINST[""];
  const title = (label) => TITLES[label] ?? label;

  // ---- Words.
  const percent = (share) => `${Number((100 * share).toPrecision(share < 0.1 ? 2 : 3))} %`;
  const rounded = (value, digits) => Number(value >= 10 ** digits ? Math.round(value) : value.toPrecision(digits));
  const times = (lift) => (lift === Infinity ? "many" : String(rounded(lift, lift >= 0.1 && lift < 2 ? 3 : 2)));
  const counted = (n, noun) => `${number(n)} ${noun}${n === 1 ? "" : "s"}`;
  const seconds = (s) => `${Number(s.toFixed(3))} s`;
  function range(low, high, shown, all) {
    if (low === null && high === null) return all;
    return high === null ? `${shown(low)} and above` : low === null ? `up to ${shown(high)}` : `${shown(low)} to ${shown(high)}`;
  }
  function line(row, inside) {
    const bounds = Number.isNaN(row.low) ? "" : row.high === Infinity ? ` (at least ${times(row.low)})` : ` (${times(row.low)} to ${times(row.high)})`;
    const shares = `${percent(row.shares[0])}, ${against[1]} ${percent(row.shares[1])}`;
    return `${title(row.label)} ${row.value || "-"} made ${number(row.counts[0])} of the ${counted(inside, "sample")} in the box (${shares}): ${times(row.lift)} times its share ${against[0]}${bounds}.`;
  }
  // As ingest/view/boxes.py says it.
  function sentences({ inside, outside, filled, rows }, { step, left }) {
    if (!inside) return ["No sample lies in this box."];
    if (!outside) return [against === AGAINST[""] ? "All samples lie in this box: there is no rest to compare it with." : `No sample lies ${against[0]}: there is nothing to compare it with.`];
    if (!rows.length) return [`Every label ${left.length ? "that this page holds" : ""} has one value here: there is nothing to tell apart.`.replace("  ", " ")];
    const over = rows.filter(({ verdict, score }) => verdict === "more" && score > 0), [first] = rows, unbounded = Number.isNaN(first.low);
    const few = `They lie in ${counted(filled, "window")} of ${seconds(step / 1000)}${filled >= FEW ? ", which resemble their neighbours" : ""}: ${first.out ? "all this may be a single event, so whether it tends to happen there cannot be told." : "too few to tell whether chance alone does this."}`;
    const lines = over.map((row) => line(row, inside)), striking = unbounded && first.lift >= LEAST_TIMES && first.score >= LEAST_SCORE;
    if (striking && (first.out || !over.length)) return [line(first, inside), few, ...lines].slice(0, SAID); // the most of the box leads, also where it may be a single event
    if (over.length) return lines.slice(0, SAID);
    const nothing = "Nothing is over-represented in this box";
    if (first.score <= 0) return [`${nothing}: all values have the share that they have ${against[0]}.`];
    return [`${nothing}. Closest: ${line(first, inside)}`, ...(unbounded ? [few] : [])];
  }

  // ---- What stands in the panel.
  const { make } = charting, element = (tag, text, more) => make(tag, more, text);
  function tableOf({ rows }) {
    const caption = "Values of labels, those that made more of the box than of the rest first; counts are exact, bounds hold 95 times in 100";
    const titles = ["label", "value", "in the box", "share", "outside", "share", "times", "bounds", "verdict"], isLeft = (at) => at < 2 || at === 8;
    const head = titles.map((name, at) => element("th", name, { scope: "col", className: isLeft(at) ? "left" : "" }));
    const body = rows.slice(0, SHOWN).map((row) => {
      const bounds = Number.isNaN(row.low) ? "–" : `${times(row.low)} to ${times(row.high)}`;
      const cells = [row.value || "-", number(row.counts[0]), percent(row.shares[0]), number(row.counts[1]), percent(row.shares[1]), times(row.lift), bounds, row.verdict];
      const line = cells.map((text, at) => element("td", text, { className: at ? (isLeft(at + 1) ? "left" : "") : "label left" }));
      return make("tr", { dataset: { lit: `${row.label}=${row.value}` } }, element("th", title(row.label), { scope: "row" }), ...line);
    });
    return make("table", { className: "rows" }, element("caption", caption), make("thead", {}, make("tr", {}, ...head)), make("tbody", {}, ...body));
  }
  const svg = (tag, more, text = "") => {
    const out = Object.assign(document.createElementNS("http://www.w3.org/2000/svg", tag), { textContent: text });
    for (const [name, value] of Object.entries(more)) out.setAttribute(name, value);
    return out;
  };
  // Two histograms, one upwards and one downwards, each as shares of its own: [{ x, width, up, down, boxed }], x and width as shares;
  // of the bars upwards `boxed` is the part that is in the box.
  function histograms(bars, ticks, says) {
    const top = ["up", "down"].map((side) => Math.max(...bars.map((bar) => bar[side]))), middle = HIGH / 2;
    const tall = (n, at) => (n ? Math.max(1.5, (middle - 1) * Math.sqrt(n / top[at])) : 0), place = (x) => WIDE * x;
    const rects = bars.flatMap(({ x, width, up, down, boxed = up }) => [[up, 0, "during"], [boxed, 0, "boxed"], [down, 1, "rest"]].filter(([n]) => n).map(([n, at, kind]) => {
      const height = tall(n, at);
      return svg("rect", { x: place(x), width: Math.max(1.5, place(width) - 0.5), height, y: at ? middle + 1 : middle - height, class: kind });
    }));
    const lines = ticks.flatMap(([x, text]) => [svg("line", { x1: place(x), x2: place(x), y1: 0, y2: HIGH }), svg("text", { x: place(x) + 3, y: HIGH + 14 }, text)]);
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH + 18}`, class: "boxed-latencies", role: "img", "aria-label": says });
    picture.append(...lines, ...rects, svg("line", { x1: 0, x2: WIDE, y1: middle, y2: middle }));
    const figure = element("figure", "", { className: "boxed-figure" });
    figure.append(picture, element("figcaption", `${says}.`));
    return figure;
  }
  // The latencies of the time of the box above, those in it in colour, of all other times below; of a box of all times: in it and outside.
  function pictureOf({ bins, inside }, edges) {
    const sum = (values) => values.reduce((all, n) => all + n, 0), { against: held } = now().state;
    const timed = sum(bins.other) > 0 && held !== "time", up = timed ? bins.during : bins.inside, down = timed && !held ? bins.other : bins.outside;
    const used = edges.slice(0, -1).map((_, bin) => bin).filter((bin) => up[bin] || down[bin]);
    const [least, most] = [Math.max(1, edges[used[0]]), edges[used.at(-1) + 1]], log = (ns) => Math.log(Math.max(ns, least) / least) / Math.log(most / least);
    const bars = used.map((bin) => ({ x: log(edges[bin]), width: log(edges[bin + 1]) - log(edges[bin]), up: up[bin], down: down[bin], boxed: Math.min(bins.inside[bin], up[bin]) }));
    const decades = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].filter((ns) => ns > least && ns < most).map((ns) => [log(ns), latency(ns)]);
    const what = timed ? `${counted(sum(up), "sample")} of its time above the line, ${number(inside)} of them in the box (in colour); ${number(sum(down))} ${held ? against[0] : "at other times"} below` : `${counted(inside, "sample")} of the box above the line, ${number(sum(down))} others below`;
    return histograms(bars, decades, `Latencies: ${what}; heights by square root of their share`);
  }
  // As ingest/view/boxes.py says it.
  function offsetsText({ inside, outside }) {
    const sums = [inside, outside].map((side) => side.reduce((sum, n) => sum + n, 0)), wide = 1000 / inside.length;
    if (!sums[0] || !sums[1]) return "";
    const shares = inside.map((n, row) => [n / sums[0], outside[row] / sums[1]]), row = shares.reduce((best, [a, b], at) => (a - b > shares[best][0] - shares[best][1] ? at : best), 0);
    const [here, there] = shares[row], expected = there * sums[0], [events, others] = sums.map((n) => counted(n, "event")), head = "Offsets within the second, of all latencies: ";
    const clear = here >= LEAST_TIMES * there && inside[row] - expected > LEAST_SPREADS * Math.sqrt(inside[row] + expected);
    if (!clear) return `${head}no ${wide} ms of it stand out in its time (${events}, ${others} at other times).`;
    return `${head}${row * wide} to ${(row + 1) * wide} ms have ${percent(here)} of the ${events} in its time, and ${percent(there)} of the ${others} at other times.`;
  }
  // The offsets of the time of the box beside those of all other times: of runs with single events.
  async function offsetsOf({ used }) {
    const { run, state, content } = now(), held = content.sections.offsets?.[run.name];
    if (!held || (used.from === null && used.to === null)) return [];
    const data = await offsetMap.unpackedOnce(held), ms = (s) => (s === null ? null : Math.round(1000 * (run.start + 1000 * s)) / 1000); // an edge of a second is that
    const groups = offsetMap.groupsOf(data).filter((group) => !state.op || data.groups[group].op === state.op);
    const sides = offsetMap.besideOf(data, groups, ms(used.from), ms(used.to)), text = offsetsText(sides), many = sides.inside.length;
    tailboard.boxOffsets = sides; // for tests: what was counted
    if (!text) return [];
    const bars = sides.inside.map((up, row) => ({ x: row / many, width: 1 / many, up, down: sides.outside[row] }));
    const how = "Above the line those in its time, below at other times; heights by square root of their share";
    return [histograms(bars, [0, 200, 400, 600, 800].map((at) => [at / 1000, `${at} ms`]), `${text} ${how}`)];
  }
  function leftOut({ left }) {
    return [now().state.host && "All hosts are counted, whatever host is chosen above.", left.length && `Not counted on this page: ${left.join(", ")}.`].filter(Boolean);
  }
  // From when to when it is, in the clock of the page.
  function timeOf({ from, to }) {
    const ms = (s) => now().run.start + 1000 * s, at = (s) => when({ t: ms(s) });
    return from === null || to === null ? range(from, to, at, "the whole run") : when({ t: ms(from), t2: ms(to) });
  }
  // The call that counts the same box in stored windows and bins; times are from the start of the run.
  function command({ from, to, low, high }) {
    const { run, state, defaults } = now(), at = (s) => (s === null ? "" : `+${Number(Math.max(0, s).toFixed(3))}s`), ms = (value) => (value === null ? "" : `${value}ms`);
    const quoted = (text) => (/^[\w./@:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const where = ["op", "kind"].filter((name) => state[name] && (name === "op" || state.kind !== defaults.kind)).map((name) => ` --where ${quoted(`${name}=${state[name]}`)}`).join("");
    return `tailboard explain SOURCE --run ${quoted(run.name)}${where} --box ${at(from)}..${at(to)},${ms(low)}..${ms(high)}${state.against && ` --against ${state.against}`}`;
  }
  async function contentOf(data, box, asked) {
    const { state } = now(), step = data.step, what = explained(data, box, (key) => key.kind === state.kind && (!state.op || key.op === state.op));
    const { used } = box, all = what.inside + what.outside, where = `${timeOf(used)}, ${range(used.low, used.high, latency, "all latencies")}`;
    const of = state.against ? `${counted(what.inside, "sample")}, held against ${number(what.outside)} ${against[0]}` : `${number(what.inside)} of ${counted(all, "sample")}${all ? ` (${percent(what.inside / all)} of all)` : ""}`;
    const said = sentences(what, data), verdicts = said.map((text) => element("p", text, { className: "verdict" }));
    answer(said, used);
    const facts = [`Counted: ${where}: ${of}, in ${counted(what.filled, "window")}. Edges are moved to the windows of ${seconds(step / 1000)} and bins that this page holds.`, ...leftOut(data)];
    const exact = element("p", "With all windows and bins: ", { className: "says" });
    exact.append(element("code", command(asked)));
    const more = what.rows.length > SHOWN ? [element("p", `${what.rows.length - SHOWN} more values: the call below has them all.`, { className: "says" })] : [];
    const table = element("div", "", { className: "table", tabIndex: 0, role: "region", ariaLabel: "Values of labels in the box" });
    table.append(tableOf(what));
    const figures = element("div", "", { className: "boxed-figures" });
    if (what.inside && what.outside) figures.append(pictureOf(what, data.edges), ...(await offsetsOf(box)));
    const body = what.inside && what.outside ? [...(what.rows.length ? [table] : []), ...more, figures] : [];
    return [...verdicts, ...facts.map((text) => element("p", text, { className: "says" })), ...body, exact];
  }
  // The answer where the box was drawn: beside it, on the side that has more room, over the map.
  function answer(said, { from, to }) {
    const place = find("boxed"), plot = find("heatmap").parentElement, view = now().page.views.heatmap;
    const chosen = document.activeElement?.name === "against" && place.contains(document.activeElement), more = element("button", "All that was counted", { type: "button" }), held = find("box-against").cloneNode(true);
    more.addEventListener("click", () => find("box-panel").scrollIntoView());
    Object.assign(held, { id: "", value: now().state.against });
    held.setAttribute("aria-label", "Held against");
    place.replaceChildren(...said.slice(0, 1).map((sentence) => element("p", sentence, { className: "verdict" })), element("label", "against "), more);
    place.querySelector("label").append(held);
    find("vg-tooltip-element")?.classList.remove("visible"); // what was said of the window under the hand lay where this is now
    if (chosen) held.focus();
    if (!view || !plot.matches(".plot")) return;
    if (place.parentElement !== plot) plot.append(place);
    const main = view.signal("main"), { left: pad } = view.padding(), x = (s, none) => (s === null ? none : Math.min(main, Math.max(0, view.scale("x")(now().run.start + 1000 * s))));
    const [left, right] = [x(from, 0), x(to, main)], wide = Math.min(WIDTH, plot.clientWidth - 2 * GAP), after = right <= main - left;
    const at = after ? pad + right + GAP : pad + left - wide - GAP;
    Object.assign(place.style, { width: `${wide}px`, left: `${Math.max(GAP, Math.min(at, plot.clientWidth - wide - GAP))}px` });
    if (document.activeElement === find("heatmap") && !find("heatmap").matches(":active")) place.scrollIntoView({ block: "nearest" }); // drawn, and by now no hand moves it
  }
  async function box() {
    const { run, state, content } = now(), held = content.sections.box?.[run.name], asked = parsed(state.box);
    find("box-panel").hidden = !held;
    if (!held || !asked) {
      for (const name of ["box", "boxed"]) find(name).replaceChildren();
      return {};
    }
    if (!unpacked.has(held)) unpacked.set(held, unpack(held));
    const data = await unpacked.get(held);
    against = AGAINST[state.against];
    find("box").replaceChildren(...(await contentOf(data, { ...snapped(data, asked, run.start), against: state.against }, asked)));
    return {};
  }

  // ---- The fields.
  const fields = () => FIELDS.map((name) => find(`box-${name}`));
  function shown() {
    const { state } = now();
    if (!parsed(state.box)) state.box = ""; // what no field can be set to, as an address may hold it
    const parts = (state.box || ",,,").split(",");
    fields().forEach((field, at) => { if (field !== document.activeElement || !field.value) field.value = parts[at] ?? ""; });
  }
  function typed() {
    const values = fields().map(({ value }) => (Number.isFinite(Number(value)) ? value : ""));
    const text = values.every((value) => value === "") ? "" : values.join(",");
    if (text && !parsed(text)) find("box").replaceChildren(element("p", "This box ends before it begins: change one of its ends.", { className: "says" }));
    else set({ box: text }); // what was typed stays until both ends fit
  }
  fields().forEach((field) => field.addEventListener("change", typed));
  find("box-clear").addEventListener("click", () => set({ box: "" }));
  return { panels: { box }, feeds: { box: ["box"], against: ["box"] }, shown };
});
