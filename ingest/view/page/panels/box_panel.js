"use strict";
// The panel of a box: its four fields, who is over-represented in it, its latencies beside those of the rest. Follows box.js in the
// same script; panels.js hands over what is chosen on the page. The box is state `box`: "from,to,low,high" in s and ms.
(() => {
  const { unpack, parsed, snapped, explained } = boxes;
  const FIELDS = ["from", "to", "low", "high"], SAID = 3, SHOWN = 12, FEW = 5, LEAST_TIMES = 1.5, LEAST_SCORE = 0.1;
  const WIDE = 640, HIGH = 120, TITLES = { op: "operation" };
  const unpacked = new WeakMap();
  let now, set, find, number, latency; // what panels.js offers
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
    const shares = `${percent(row.shares[0])}, of all others ${percent(row.shares[1])}`;
    return `${title(row.label)} ${row.value || "-"} made ${number(row.counts[0])} of the ${counted(inside, "sample")} in the box (${shares}): ${times(row.lift)} times its share elsewhere${bounds}.`;
  }
  // As ingest/view/boxes.py says it.
  function sentences({ inside, outside, filled, rows }, { step, left }) {
    if (!inside) return ["No sample lies in this box."];
    if (!outside) return ["All samples lie in this box: there is no rest to compare it with."];
    if (!rows.length) return [`Every label ${left.length ? "that this page holds" : ""} has one value here: there is nothing to tell apart.`.replace("  ", " ")];
    const over = rows.filter(({ verdict, score }) => verdict === "more" && score > 0), [first] = rows, unbounded = Number.isNaN(first.low);
    if (over.length) return over.slice(0, SAID).map((row) => line(row, inside));
    const few = `They lie in ${counted(filled, "window")} of ${seconds(step / 1000)}${filled >= FEW ? ", which resemble their neighbours" : ""}: ${first.out ? "all this may be a single event, so whether it tends to happen there cannot be told." : "too few to tell whether chance alone does this."}`;
    if (unbounded && first.lift >= LEAST_TIMES && first.score >= LEAST_SCORE) return [line(first, inside), few];
    const nothing = "Nothing is over-represented in this box";
    if (first.score <= 0) return [`${nothing}: all values have the share that they have elsewhere.`];
    return [`${nothing}. Closest: ${line(first, inside)}`, ...(unbounded ? [few] : [])];
  }

  // ---- What stands in the panel.
  function element(tag, text, more = {}) {
    return Object.assign(document.createElement(tag), { textContent: text }, more);
  }
  function tableOf({ rows }) {
    const table = element("table", "", { className: "rows" }), head = table.createTHead().insertRow(), body = table.createTBody();
    table.append(element("caption", "Values of labels, those that made more of the box than of the rest first; counts are exact, bounds hold 95 times in 100"));
    for (const [name, left] of [["label", 1], ["value", 1], ["in the box"], ["share"], ["outside"], ["share"], ["times"], ["bounds"], ["verdict", 1]]) {
      head.append(element("th", name, { scope: "col", className: left ? "left" : "" }));
    }
    for (const row of rows.slice(0, SHOWN)) {
      const bounds = Number.isNaN(row.low) ? "–" : `${times(row.low)} to ${times(row.high)}`, tr = body.insertRow();
      tr.append(element("th", title(row.label), { scope: "row" }));
      const cells = [row.value || "-", number(row.counts[0]), percent(row.shares[0]), number(row.counts[1]), percent(row.shares[1]), times(row.lift), bounds, row.verdict];
      cells.forEach((text, at) => tr.append(element("td", text, { className: at === 0 ? "label left" : at === 7 ? "left" : "" })));
    }
    return table;
  }
  // Two histograms over latency: the samples of the box upwards, all others downwards, each as shares of its own.
  function pictureOf({ bins, inside, outside }, edges) {
    const used = edges.slice(0, -1).map((_, bin) => bin).filter((bin) => bins.inside[bin] || bins.outside[bin]);
    const [least, most] = [Math.max(1, edges[used[0]]), edges[used.at(-1) + 1]], log = (ns) => Math.log(Math.max(ns, least) / least) / Math.log(most / least);
    const svg = (tag, more, text) => {
      const out = document.createElementNS("http://www.w3.org/2000/svg", tag);
      for (const [name, value] of Object.entries(more)) out.setAttribute(name, value);
      if (text) out.textContent = text;
      return out;
    };
    const top = [bins.inside, bins.outside].map((side) => Math.max(...side)), middle = HIGH / 2;
    const bars = used.flatMap((bin) => [bins.inside, bins.outside].map((side, at) => {
      const x = WIDE * log(edges[bin]), width = Math.max(1.5, WIDE * (log(edges[bin + 1]) - log(edges[bin])) - 0.5), height = side[bin] ? Math.max(1.5, (middle - 1) * Math.sqrt(side[bin] / top[at])) : 0;
      return svg("rect", { x, width, height, y: at ? middle + 1 : middle - height, class: at ? "rest" : "boxed" });
    }));
    const decades = [1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10].filter((ns) => ns > least && ns < most);
    const ticks = decades.flatMap((ns) => [svg("line", { x1: WIDE * log(ns), x2: WIDE * log(ns), y1: 0, y2: HIGH }), svg("text", { x: WIDE * log(ns) + 3, y: HIGH + 14 }, latency(ns))]);
    const says = `Latencies: ${counted(inside, "sample")} of the box above the line, ${number(outside)} others below; heights by square root of their share`;
    const picture = svg("svg", { viewBox: `0 0 ${WIDE} ${HIGH + 18}`, class: "boxed-latencies", role: "img", "aria-label": says });
    picture.append(...ticks, ...bars, svg("line", { x1: 0, x2: WIDE, y1: middle, y2: middle }));
    const figure = element("figure", "", { className: "boxed-figure" });
    figure.append(picture, element("figcaption", `${says}.`));
    return figure;
  }
  function leftOut({ left }) {
    const { run, content, state } = now(), phases = content.sections.offsets?.[run.name] ? ["offsets within the second (they are kept without latencies)"] : [];
    const names = [...left, ...phases];
    return [state.host && "All hosts are counted, whatever host is chosen above.", names.length && `Not counted on this page: ${names.join(", ")}.`].filter(Boolean);
  }
  // The call that counts the same box in stored windows and bins; times are from the start of the run.
  function command({ from, to, low, high }) {
    const { run, state, defaults } = now(), at = (s) => (s === null ? "" : `+${Number(Math.max(0, s).toFixed(3))}s`), ms = (value) => (value === null ? "" : `${value}ms`);
    const quoted = (text) => (/^[\w./@:=-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
    const where = ["op", "kind"].filter((name) => state[name] && (name === "op" || state.kind !== defaults.kind)).map((name) => ` --where ${quoted(`${name}=${state[name]}`)}`).join("");
    return `tailboard explain SOURCE --run ${quoted(run.name)}${where} --box ${at(from)}..${at(to)},${ms(low)}..${ms(high)}`;
  }
  function contentOf(data, box, asked) {
    const { state } = now(), step = data.step, what = explained(data, box, (key) => key.kind === state.kind && (!state.op || key.op === state.op));
    const { used } = box, all = what.inside + what.outside, where = `${range(used.from, used.to, seconds, "the whole run")}, ${range(used.low, used.high, latency, "all latencies")}`;
    const share = all ? ` (${percent(what.inside / all)} of all)` : "";
    const verdicts = sentences(what, data).map((text) => element("p", text, { className: "verdict" }));
    const facts = [`Counted: ${where}: ${number(what.inside)} of ${counted(all, "sample")}${share}, in ${counted(what.filled, "window")}. Edges are moved to the windows of ${seconds(step / 1000)} and bins that this page holds.`, ...leftOut(data)];
    const exact = element("p", "With all windows and bins: ", { className: "says" });
    exact.append(element("code", command(asked)));
    const more = what.rows.length > SHOWN ? [element("p", `${what.rows.length - SHOWN} more values: the call below has them all.`, { className: "says" })] : [];
    const table = element("div", "", { className: "table", tabIndex: 0, role: "region", ariaLabel: "Values of labels in the box" });
    table.append(tableOf(what));
    const body = what.inside && what.outside ? [...(what.rows.length ? [table] : []), ...more, pictureOf(what, data.edges)] : [];
    return [...verdicts, ...facts.map((text) => element("p", text, { className: "says" })), ...body, exact];
  }
  async function box() {
    const { run, state, content } = now(), held = content.sections.box?.[run.name], asked = parsed(state.box);
    find("box-panel").hidden = !held;
    if (!held || !asked) {
      find("box").replaceChildren();
      return {};
    }
    if (!unpacked.has(held)) unpacked.set(held, unpack(held));
    const data = await unpacked.get(held);
    find("box").replaceChildren(...contentOf(data, snapped(data, asked, run.start), asked));
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
    set({ box: values.every((value) => value === "") ? "" : values.join(",") });
  }
  function begun() {
    fields().forEach((field) => field.addEventListener("change", typed));
    find("box-clear").addEventListener("click", () => set({ box: "" }));
  }
  tailboard.sections.push((offered) => {
    ({ now, set, find, number, latency } = offered);
    begun();
    return { panels: { box }, feeds: { box: ["box"] }, shown };
  });
})();
