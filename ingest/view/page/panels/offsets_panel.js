"use strict";
// The panel of subsecond offsets: what is chosen in it, how a map is drawn, and what a cell shows. Follows offsets.js in the
// same script; panels.js hands over what is chosen on the page. Times are ms since 1970, offsets ns.
tailboard.sections.push(({ now, set, find, number, when, latency, atLeast, offer, theme, groupsOf: seriesOf }) => {
  const { LABELS, periodsOf, rowsOf, resampled, mapOf, summaryOf, shadesOf, cellAt, gapsOf, lateOf, groupsOf, nameOf, sharesOf } = offsetMap;
  const { merged, curveOf, valueOf, percentileOf } = tailboard, { make, dotOf } = charting, { percent, sentences } = words;
  const CHOICES = ["only", "not", "lit"], PARTS = 8, EACH = 24, SMALL = 300, BESIDE = 130, LOW = 170, TITLES = { op: "operation" };
  const title = (label) => TITLES[label] ?? label;

  // ---- Words.
  function offsetText(ns, period) {
    const part = (value, digits = 3) => String(Number(value.toFixed(digits)));
    if (period <= 1000) return `${part(ns / 1e6)} ms`;
    if (period <= 6e4) return `${part(ns / 1e9)} s`;
    const seconds = ns / 1e9, two = (value) => String(Math.floor(value)).padStart(2, "0");
    return `${two(seconds / 3600)}:${two((seconds / 60) % 60)}:${two(seconds % 60)}`;
  }
  const wide = (ms) => (ms < 1000 ? `${ms} ms` : ms % 6e4 ? `${ms / 1000} s` : ms % 36e5 ? `${ms / 6e4} min` : `${ms / 36e5} h`);

  // ---- The picture: a pixel a cell, which Vega draws as one image.
  function imageOf(map, shadeOf, base, hues = []) {
    const { counts, columns, rows } = map, image = new ImageData(columns, rows), pixels = new Uint32Array(image.data.buffer);
    const shade = Uint8Array.from(counts, (c) => (c ? 1 + Math.round(254 * shadeOf.get(c)) : 0)), colorOf = raster.colorsOf(map, shade, base, hues);
    for (let column = 0, at = 0; column < columns; column++) for (let row = 0; row < rows; row++, at++) pixels[(rows - 1 - row) * columns + column] = colorOf(at, column, row);
    const canvas = make("canvas", { width: columns, height: rows });
    canvas.getContext("2d").putImageData(image, 0, 0);
    return canvas;
  }

  const ticked = new Set();
  const events = (n) => `${number(n)} ${n === 1 ? "event" : "events"}`;
  let seen = { key: null };
  const packed = () => now().content.sections.offsets?.[now().run.name] ?? null;
  // What an address may hold as a choice: {label: [values]}.
  function chosen(text) {
    try {
      const entries = Object.entries(JSON.parse(text || "{}")).filter(([label, values]) => LABELS.includes(label) && Array.isArray(values));
      return Object.fromEntries(entries.map(([label, values]) => [label, values.map(String)]));
    } catch {
      return {};
    }
  }
  // The map that is asked for, with all that is drawn of it; null where the run has no offsets.
  async function shown() {
    const { run, state } = now(), held = packed();
    if (!held) return null;
    const data = await offsetMap.unpackedOnce(held), [only, not, lit] = CHOICES.map((name) => chosen(state[`offset_${name}`]));
    const [from, to] = [state.from, state.to].map((seconds) => (seconds === "" ? undefined : run.start + 1000 * seconds));
    const period = Number(state.offset_period), rows = Number(state.offset_rows), room = (find("offsets").clientWidth || 900) - 140 - BESIDE;
    const most = Math.min(720, Math.max(60, room)), key = JSON.stringify([period, rows, from, to, only, not, lit, state.host, state.op, most]);
    if (seen.key !== key || seen.data !== data) {
      const here = ({ host, op }) => (!state.host || host === state.host) && (!state.op || op === state.op);
      const passed = (a, b) => groupsOf(data, a, b).filter((group) => here(data.groups[group]));
      const groups = passed(only, not), named = Object.entries(lit).flatMap(([label, values]) => values.map((value) => ({ label, value })));
      const lights = named.slice(0, shades.MOST_HUES).map(({ label, value }) => ({ name: `${title(label)} ${value || "-"}`, groups: passed({ [label]: [value] }, {}).filter((group) => groups.includes(group)) }));
      const map = mapOf(data, { period, rows, from, to, most }, groups, lights.map((light) => light.groups));
      seen = { key, data, only, not, lights, every: passed({}, {}), groups, map, sums: summaryOf(map), period, rows };
    }
    return seen;
  }
  // The chosen cell of a map, as column and row; null where it is none of it.
  function cursor({ map }) {
    const { run, state } = now(), [seconds, row] = state.offset_cell.split(",").map(Number);
    const column = Math.floor((run.start + 1000 * seconds - map.begin + 1e-3) / map.width);
    const inside = state.offset_cell && column >= 0 && column < map.columns && Number.isInteger(row) && row >= 0 && row < map.rows;
    return inside ? { column, row } : null;
  }
  const choose = (map, column, row) => set({ offset_cell: `${(map.begin + column * map.width - now().run.start) / 1000},${row}` });
  const rowAt = (map, offset) => map.edges.findLastIndex((edge) => edge <= offset);

  // ---- The map.
  const listed = (choice) => Object.entries(choice).map(([label, values]) => `${title(label)} ${values.map((value) => value || "-").join(", ")}`).join("; ");
  function marked({ data, map, groups, period }) {
    const [begin, end] = [map.begin, map.end], here = ({ t, t2 }) => t2 > begin && t < end;
    return { gaps: gapsOf(data, period).filter(here), late: lateOf(data, period, groups).filter(here) };
  }
  const litIn = ({ lights }, counts) => lights.map(({ name }, at) => [name, number(counts[at])]);
  function says({ data, map, sums, only, not, period, rows, groups }, { gaps, late }) {
    const missing = gaps.reduce((sum, { t, t2 }) => sum + (t2 - t), 0) / period, behind = late.reduce((sum, { n }) => sum + n, 0);
    const fullest = sums.most ? map.counts.indexOf(sums.most) : -1, top = fullest < 0 ? null : cellAt(map, Math.floor(fullest / rows), fullest % rows);
    const finest = data.seconds > 1 && period === 1000 ? 1000 * data.seconds : period;
    const others = groups.some((group) => data.groups[group].rest);
    return sentences(
      top ? `${events(sums.total)} in view; fullest cell: ${number(top.c)}, ${when(top)}, ${offsetText(top.lower, period)} – ${offsetText(top.upper, period)}.` : "No event in view.",
      map.width > period && `A column is ${wide(map.width)}: neighbouring periods are added up; ${map.width > finest ? "zoom for finer ones" : "the page holds none finer"}.`,
      listed(only) && `Only ${listed(only)}.`,
      listed(not) && `Without ${listed(not)}.`,
      resampled(data, period, rows) && `${rows} rows do not match the ticks of ${data.tick} ms: counts are split by overlap.`,
      missing && `${number(missing)} whole ${missing > 1 ? "periods" : "period"} without any event of the run: shown in grey.`,
      behind && `${events(behind)} reported late: drawn at their own time.`,
      others && `“others” are ${number(data.folded)} threads with few events, added up for the size of the page.`,
    );
  }
  async function offsets() {
    const panel = find("offsets").closest("section");
    panel.hidden = !packed();
    const view = await shown();
    if (!view) return {};
    const { map, period } = view, { colors } = theme(), { state } = now(), at = cursor(view);
    const look = JSON.stringify([colors, state.offset_shading, state.offset_by, state.offset_each]);
    if (view.look !== look) Object.assign(view, { look, tables: looked(view, state.offset_shading, colors) });
    const signals = { period: period * 1e6, shading: state.offset_shading, pointed: at && cellAt(map, at.column, at.row) };
    return { data: view.tables, span: [map.begin, map.begin + (map.high - map.low) * map.unit], signals, says: says(view, view.marks) };
  }
  // What is drawn of a map in some colours: it stays the same while only the chosen cell changes.
  function looked(view, shading, colors) {
    const { map, sums } = view, { of, levels } = shadesOf([map], shading);
    const rows_of = Array.from(sums.sums, (c, row) => ({ lower: map.edges[row], upper: map.edges[row + 1], c })).filter(({ c }) => c);
    const hues = view.lights.map((_, at) => shades.rampOf(colors.hues[at], colors)), total = (counts) => counts.reduce((sum, n) => sum + n, 0);
    const picture = [{ t: map.begin, t2: map.end, image: imageOf(map, of, colors.ramp, hues) }];
    find("offset-lit").replaceChildren(...litIn(view, map.lit.map(({ counts }) => total(counts))).map(([name, many], at) => make("span", {}, dotOf(colors.hues[at]), `${name}: ${many} of ${events(sums.total)}`)));
    names(view);
    eachAlone(view, shading, colors);
    view.marks = marked(view);
    return { picture, pointed_at: [], levels: [levels], rows_of, total: [{ c: sums.total }], ...view.marks };
  }

  // ---- Whose events: a list to tick, the most first.
  function names({ data, every, map, groups }) {
    const { state } = now(), by = state.offset_by, shares = sharesOf(data, by, every, map), all = shares.reduce((sum, { count }) => sum + count, 0);
    const kept = new Set(groups.map((group) => nameOf(data.groups[group], by)));
    if (ticked.of !== by) ticked.clear();
    ticked.of = by;
    find("offset-names-title").textContent = `${shares.length} ${shares.length === 1 ? "value" : "values"} of ${title(by)}`;
    const items = shares.map(({ name, count }) => {
      const box = make("input", { type: "checkbox", value: name, checked: ticked.has(name) });
      box.addEventListener("change", () => (box.checked ? ticked.add(name) : ticked.delete(name)));
      return make("label", { className: kept.has(name) ? "" : "left-out" }, box, ` ${name || "-"} `, make("small", {}, `${number(Math.round(count))} (${percent(count / all)})`));
    });
    find("offset-list").replaceChildren(...items);
  }
  function pressed(act) {
    const { state } = now(), by = state.offset_by, values = [...ticked];
    ticked.clear();
    seen.look = null;
    if (act === "all") return set({ offset_only: "", offset_not: "", offset_lit: "" });
    if (!values.length) return null;
    const before = chosen(state[`offset_${act}`]), both = act === "not" ? [...new Set([...(before[by] ?? []), ...values])] : values;
    return set({ [`offset_${act}`]: JSON.stringify({ ...before, [by]: both }) });
  }

  // A small map of each value of the label that events are distinguished by, the most first, on the scales and shades of all.
  function eachAlone({ data, map, groups }, shading, colors) {
    const { state } = now(), by = state.offset_by, values = state.offset_each ? sharesOf(data, by, groups, map).slice(0, EACH) : [];
    const maps = values.map(({ name }) => {
      const mine = groups.filter((group) => nameOf(data.groups[group], by) === name);
      return { name, ...mapOf(data, { period: map.period, rows: map.rows, from: map.begin, to: map.begin + (map.high - map.low) * map.unit, most: SMALL }, mine) };
    });
    const sums = maps.map(summaryOf), { of } = shadesOf(maps, shading);
    find("offset-each").replaceChildren(...maps.map((small, at) => {
      const caption = `${small.name || "-"}: ${events(sums[at].total)}`, image = Object.assign(imageOf(small, of, colors.ramp), { role: "img", ariaLabel: `Subsecond offsets of ${caption}` });
      return make("figure", {}, make("figcaption", {}, caption), image);
    }));
  }

  // ---- What a cell holds.
  function shares(view, label, column, row, c) {
    const parts = sharesOf(view.data, label, view.groups, view.map, column, row), few = parts.slice(0, PARTS), whole = (n) => number(Number(n.toFixed(1)));
    const words = few.map(({ name, count }) => `${name || "-"} ${whole(count)} (${percent(count / c)})`).join(", ");
    return parts.some(({ name }) => name && name !== "others") ? `By ${title(label)}: ${words}${parts.length > few.length ? ` and ${parts.length - few.length} more` : ""}.` : "";
  }
  // Labels that say more about these groups than others do: a thread of which host and process alone are known is no news.
  const newsOf = ({ data }) => LABELS.filter((label) => label !== "thread" || data.groups.some(({ host, process, thread, rest }) =>
    !rest && thread !== ([host, process && `process ${process}`].filter(Boolean).join(" ") || "-")));
  async function offset_column() {
    const view = await shown(), at = view && cursor(view);
    find("offset-details").hidden = !at;
    if (!at) return {};
    const { map, period } = view, cell = cellAt(map, at.column, at.row), about = resampled(view.data, period, map.rows) ? "about " : "";
    const range = `${offsetText(cell.lower, period)} – ${offsetText(cell.upper, period)}`, what = map.width > period ? "column" : "period";
    const first = `${when(cell)}, ${range}: ${about}${events(cell.c)}${cell.n ? `, ${percent(cell.c / cell.n)} of the ${events(cell.n)} of its ${what}` : ""}.`;
    const lines = [first, ...litIn(view, cell.lit).map(([name, many]) => `${many} of them highlighted: ${name}.`), ...newsOf(view).map((label) => (cell.c ? shares(view, label, at.column, at.row, cell.c) : ""))];
    find("offset-cell").replaceChildren(...lines.filter(Boolean).map((text) => make("span", {}, `${text} `)));
    const points = Array.from({ length: map.rows }, (_, row) => cellAt(map, at.column, row))
      .map(({ lower, upper, c }) => ({ lower, upper, c, told: `${offsetText(lower, period)} – ${offsetText(upper, period)}` }));
    return { data: { points }, signals: { period: period * 1e6, chosen: cell.lower }, says: `${events(cell.n)} of ${when(cell)} by offset.` };
  }
  // The latencies of the windows that a column lies in, where the run has any.
  async function offset_latency() {
    const view = await shown(), at = view && cursor(view), { run, state, content } = now();
    find("offset-latency").hidden = true;
    if (!at || !run.levels.cluster) return {};
    const { t, t2 } = cellAt(view.map, at.column, at.row), { level, pick, names: groups } = seriesOf("");
    const [from, to] = tailboard.touched(level, { t, t2 }, [0, level.windows]);
    const table = from < to && groups.length ? merged(level, content.layouts, pick, from, to, 0) : { rows: 0 };
    if (!table.rows) return {};
    find("offset-latency").hidden = false;
    const [begin, end] = [from, to].map((window) => level.origin + window * level.step), finer = begin < t - 0.5 || end > t2 + 0.5;
    const values = ["50", "99", "100"].map((p) => [p === "100" ? "max" : `p${p}`, valueOf(table, 0, percentileOf(p))]).filter(([, value]) => value);
    const texts = values.map(([name, value]) => `${name} ${atLeast(value)}`).join(", ");
    const says = `Latency${state.kind && ` (${state.kind})`} of ${when({ t: begin, t2: end })}${finer ? ", the finest windows that the page holds" : ""}: ${number(table.done[0])} samples, ${texts}.`;
    return { data: { points: curveOf(table, groups).filter(({ v }) => v > 0) }, height: LOW, says };
  }

  // ---- Pointer and keys.
  function step(event) {
    const [across, up] = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[event.key] ?? [0, 0], { map } = seen;
    if ((!across && !up) || !map) return;
    event.preventDefault();
    const at = cursor(seen), filled = (column, row) => map.counts[column * map.rows + row] > 0, rows = Array.from({ length: map.rows }, (_, row) => row);
    if (!at) {
      const fullest = map.counts.indexOf(seen.sums.most);
      if (seen.sums.most) choose(map, Math.floor(fullest / map.rows), fullest % map.rows);
      return;
    }
    for (let { column, row } = at; ; ) {
      [column, row] = [column + across, row + up];
      if (column < 0 || column >= map.columns || row < 0 || row >= map.rows) return;
      const near = across ? rows.filter((other) => filled(column, other)).sort((a, b) => Math.abs(a - row) - Math.abs(b - row))[0] : filled(column, row) ? row : undefined;
      if (near !== undefined) return void choose(map, column, near);
    }
  }
  function under(place) {
    const { map } = seen, column = map && place ? Math.floor((place[0] - map.begin) / map.width) : -1;
    return column >= 0 && column < map.columns ? { column, row: Math.min(map.rows - 1, Math.max(0, rowAt(map, place[1]))) } : null;
  }
  function opened(name, view) {
    if (name !== "offsets") return;
    find("offsets").onkeydown = step;
    view.addSignalListener("clicked", (_, place) => {
      const at = under(place);
      if (at) choose(seen.map, at.column, at.row);
    });
    view.addSignalListener("hovered", (_, place) => {
      const at = under(place), cell = at && cellAt(seen.map, at.column, at.row), last = view.data("pointed_at")[0];
      if (cell?.t === last?.t && cell?.lower === last?.lower) return;
      view.data("pointed_at", cell?.c ? [{ ...cell, told: Object.fromEntries(litIn(seen, cell.lit)) }] : []).runAsync();
    });
    document.querySelectorAll("[data-offsets]").forEach((button) => (button.onclick = () => pressed(button.dataset.offsets)));
  }
  // The choices that there are of a run's ticks.
  function choices() {
    const held = packed(), { state } = now();
    if (!held) return;
    const options = (select, offered, value) => {
      offer(find("offsets").closest("section").querySelector(`[name=${select}]`), offered.map(([text, each]) => new Option(text, each)));
      if (!offered.some(([, each]) => String(each) === state[select])) state[select] = String(value ?? offered[0]?.[1]);
    };
    options("offset_period", periodsOf(held), 1000);
    const rows = rowsOf(held, Number(state.offset_period)).map((height) => [String(height), height]);
    options("offset_rows", rows, rows.some(([, height]) => height === 50) ? 50 : rows.at(-1)?.[1]);
  }
  const drawn = ["offsets", "offset_column", "offset_latency"], keys = ["period", "rows", "shading", "only", "not", "lit", "cell"];
  const feeds = { ...Object.fromEntries(keys.map((key) => [`offset_${key}`, key === "shading" ? ["offsets"] : drawn])), offset_by: ["offsets"], offset_each: ["offsets"] };
  return { panels: { offsets, offset_column, offset_latency }, feeds, top: { offsets: 64 }, opened, shown: choices, csv: { offsets: () => offsetMap.cellsOf(seen.map).map(({ lit, ...cell }) => ({ ...cell, ...Object.fromEntries(litIn(seen, lit)) })) } };
});
