"use strict";
// The panel of the latency heat map: which rows and columns, what is highlighted, and what a cell holds. Follows raster.js in the same
// script; panels.js hands over what is chosen, heat_hand.js has what the pointer and the keys do. Times are ms, latencies ns.
function heatPanel({ now, table, inView, heightOf, groupsOf, windowsOf, multipleOf, memo, find, theme, set, what, latency, when, number, tooFew, mixedIn, redraw }) {
  const { MOST, percentileOf, merged, pointsOf } = tailboard, { heatMap, cellAt, sumsOf, splitOf } = heat, { MOST_HUES } = shades, { make, dotOf } = charting, { sentences } = words;
  const LABELS = ["host", "thread", "op", "extra"], PARTS = 6, TALL = 1000, AUTO = { log: 0, linear: 0.1 }, NARROW = 560, LIT = 60, ROOM = 1.15; // LIT: ms after which what the pointer rests on is lit; ROOM: beyond the ends of the axis, so that what lies there stands free
  // The range of latency in ns that is set, in ms; null where none is, or none that can be.
  function rangeOf({ least, most }) {
    const [low, high] = [Number(least) * 1e6, most === "" ? Infinity : Number(most) * 1e6];
    return low >= 0 && low < high && (low > 0 || high < Infinity) ? [low, high] : null;
  }
  // A box of time and latency: [from, to] in seconds from the start of the run, [low, high] in ms, each "" where it is open.
  function boxOf({ box }) {
    const ends = box.split(",");
    return ends.length === 4 && ends.some((end) => end !== "") && ends.every((end) => Number.isFinite(Number(end))) ? ends : null;
  }
  // What is highlighted is a list: names that hold a comma have it as %2C.
  const listed = (text) => text.split(",").filter(Boolean).map((name) => name.replaceAll("%2C", ",").replaceAll("%25", "%"));
  const unlisted = (names) => names.map((name) => name.replaceAll("%", "%25").replaceAll(",", "%2C")).join(",");
  const percent = (share) => `${Number((100 * share).toPrecision(4))} %`;
  const whole = (n) => number(Number(n.toFixed(1))); // counts of events by weight have parts
  const shown = { map: null, line: null, cursor: null, image: null, shade: null }; // what is drawn, and the cell that is described

  // What was worked out last of each kind, by what it was made of: a map is too large to keep many.
  const last = {};
  const isLast = (kind, key) => last[kind]?.content === now().content && last[kind].name === JSON.stringify(key);
  function latest(kind, key, make) {
    if (!isLast(kind, key)) last[kind] = { name: JSON.stringify(key), content: now().content, value: make() };
    return last[kind].value;
  }

  // What can be highlighted: of each label that has several values, each.
  function choices() {
    const { run, state } = now(), { cluster, hosts, threads } = run.levels;
    const [host, thread, op] = [hosts, threads, cluster].map((level) => level?.keys ?? []), keys = { host, thread, op, extra: op }; // recordings of moments alone have no levels
    return LABELS.flatMap((label) => {
      const values = [...new Set(keys[label].filter((key) => key.kind === state.kind).map((key) => key[label]))].filter(Boolean).sort();
      return values.length > 1 ? values.map((value) => [`${label}=${value}`, `${label === "extra" ? "" : label} ${value}`.trim()]) : [];
    });
  }
  // What is highlighted and can be, with its name and its hue; and what is under the pointer somewhere else, as long as it is.
  let under = "", waiting = 0;
  function light(name) {
    if (name === under) return;
    under = name;
    clearTimeout(waiting);
    waiting = setTimeout(() => redraw("heatmap"), LIT);
  }
  function highlights() {
    const known = new Map(choices()), { hues } = theme().colors;
    return [...new Set([...listed(now().state.highlight), under])].filter((name) => known.has(name)).slice(0, MOST_HUES)
      .map((chosen, at) => ({ chosen, name: known.get(chosen), hue: hues[at], colors: shades.rampOf(hues[at], theme().colors) }));
  }
  // The list that adds a highlight, and a button for each that takes it away, with its hue: the legend of the hues.
  function offerHighlights(offer) {
    const automatic = document.querySelector("select[name=drop] option[value=auto]"), select = find("lit-add"), lit = highlights().filter(({ chosen }) => listed(now().state.highlight).includes(chosen)), taken = new Set(lit.map(({ chosen }) => chosen)), known = choices();
    if (!select) return;
    automatic.textContent = `automatic: ${AUTO[now().state.axis] ? `${AUTO[now().state.axis]} %` : "none"}`; // one outlier would press all else to the ground of a linear axis
    const free = known.filter(([value]) => !taken.has(value)), full = lit.length === MOST_HUES;
    offer(select, [new Option(full ? `at most ${MOST_HUES}` : lit.length ? "another one" : "nothing", ""), ...(full ? [] : free.map(([value, name]) => new Option(name, value)))]);
    select.value = "";
    select.closest("label").hidden = !known.length;
    const chips = lit.map(({ chosen, name, hue }) => {
      const onclick = () => set({ highlight: unlisted(lit.map((each) => each.chosen).filter((each) => each !== chosen)) });
      return make("button", { type: "button", className: "chip", ariaLabel: `No longer highlight ${name}`, onclick }, dotOf(hue), name, " ×");
    });
    find("lit").replaceChildren(...chips, make("span", {}, ...(lit.length ? [dotOf(theme().colors.ramp[2]), "all others"] : [])));
    find("lit").hidden = !lit.length;
  }
  function listen() {
    find("lit-add")?.addEventListener("change", ({ target }) => target.value && set({ highlight: unlisted([...listed(now().state.highlight), target.value]) }));
  }

  // As many columns as are drawn at least a pixel wide.
  function roomFor(element) {
    const wide = element.clientWidth || 600, plot = wide - (wide < 640 ? 88 : 140);
    return Math.max(60, Math.min(MOST.raster.columns, plot < NARROW ? plot : plot - 130));
  }
  // A table of all, and one of each highlight, in columns of the same times: of those that all their levels have windows for.
  function parted(lit, most) {
    const { content } = now(), all = groupsOf("");
    const parts = lit.map(({ chosen }) => {
      const at = chosen.indexOf("="), [label, value] = [chosen.slice(0, at), chosen.slice(at + 1)], some = groupsOf(label);
      const level = label === "op" || label === "extra" ? all.level : some.level, kept = level === all.level ? all.pick : some.pick;
      return { level, pick: level.keys.map((key, series) => (kept[series] >= 0 && key[label] === value ? 0 : -1)) };
    });
    let k = multipleOf(all, most);
    const fits = ({ level }) => Math.abs(((k * all.level.step) / level.step) % 1) < 1e-9;
    while (!parts.every(fits)) k++;
    const wide = k * all.level.step, [from, to] = all.windows, first = Math.floor((all.level.base + from) / k);
    const last = Math.ceil((all.level.base + to) / k), begin = all.level.origin + (first * k - all.level.base) * all.level.step;
    const columns = ({ level, pick }) => {
      const each = Math.round(wide / level.step), low = Math.max(0, first * each - level.base), high = Math.min(level.windows, last * each - level.base);
      return merged(level, content.layouts, pick, low, high, each);
    };
    return { total: columns(all), lit: parts.map(columns), span: [begin, begin + (last - first) * wide] };
  }
  // The tables of the map under the filters, all and what is highlighted.
  function tables(lit) {
    const { state, run } = now(), { level, windows } = groupsOf(""), most = roomFor(find("heatmap"));
    if (!lit.length) return { total: table("", most), lit: [] };
    const id = ["parted", run.name, state.kind, state.op, state.host, lit.map(({ chosen }) => chosen), windows, level.step, most];
    return memo(id, () => {
      const parts = parted(lit, most);
      return { total: { ...parts.total, id, names: [""], span: parts.span }, lit: parts.lit };
    });
  }
  const failedOf = (failed, n) => (n === null ? `${whole(failed)} operations failed, of how many the page does not hold` : `${whole(failed)} of ${whole(n)} operations failed (${percent(failed / n)})`);
  // The columns of a table in which operations failed under the same filters: how many, of how many (null: of a host that the page has no bins
  // of), and how a tooltip says so.
  function failuresIn(total) {
    const { run: { levels, tails }, state: { host: chosen } } = now(), isUnknown = chosen && tails.hosts && !levels.hosts.keys.some(({ host }) => host === chosen);
    if (!levels.failed) return [];
    const { level, pick } = groupsOf("failed"), { width, span: [begin, end] } = total, columnOf = (t) => Math.round((t - total.begin) / width);
    const [from, to] = tailboard.touched(level, { t: begin, t2: end }, [0, level.windows]), others = new Map(Array.from(total.t, (t, row) => [columnOf(t), total.n[row] / total.unit]));
    const table = merged(level, now().content.layouts, pick, from, to, Math.round(width / level.step));
    return Array.from(table.t, (at, row) => {
      const failed = table.n[row] / table.unit, n = isUnknown ? null : failed + (others.get(columnOf(at)) ?? 0), t = Math.max(at, begin), t2 = Math.min(at + width, end);
      return { t, t2, failed, n, share: n && failed / n, told: { window: when({ t, t2 }), failures: failedOf(failed, n) } };
    });
  }
  function told({ outside: [below, above], counts, dropped }, sums, lit, failures, n) {
    const sum = (values) => values.reduce((all, c) => all + c, 0), over = sum(dropped), all = sum(counts) + over;
    const outside = [[below, "below"], [above, "above"]].filter(([n]) => n).map(([n, where]) => `${whole(n)} ${where}`).join(" and ");
    const failed = failures.reduce((all, each) => all + each.failed, 0);
    return [
      failed && `${failedOf(failed, failures[0].n && failed + n)}: the row above the map.`,
      over && `${whole(over)} samples lie above the map.`,
      outside && `Samples not shown: ${outside} the range of latency.`,
      ...lit.map(({ name }, at) => `${name}: ${whole(sum(sums[at].counts) + sum(sums[at].dropped))} of ${whole(all)} samples in the map.`),
    ];
  }
  // The ends of the axis, its lowest latency above zero, and what makes its scale one of logarithms or of lengths.
  function domainOf({ rows, edges, reach }, axis) {
    const [bottom, high] = rows ? [edges[0], edges[rows]] : reach ?? [1, 10], low = bottom || (edges[1] ?? 2) / 2;
    const yd = axis === "log" ? (reach ? [low, high] : [low / ROOM, high * ROOM]) : [reach ? bottom : 0, high];
    return { low, high, yd, constant: axis === "log" ? low / 1e4 : high * 1e4 };
  }
  // The average rate of each row in a range of time, of all and of what is highlighted: one after the other.
  function averagesOf(map, seconds, lit) {
    const all = sumsOf(map, map.counts), parts = map.lit.map(({ counts }) => sumsOf(map, counts)), range = (row) => ({ lower: map.edges[row], upper: map.edges[row + 1] });
    const averages = [], stacked = [];
    for (let row = 0; row < map.rows; row++) {
      if (!all[row]) continue;
      averages.push({ ...range(row), c: all[row], rate: all[row] / seconds });
      parts.reduce((from, sums, at) => {
        const to = from + sums[row] / seconds;
        if (sums[row]) stacked.push({ ...range(row), from, to, color: lit[at].colors[2] });
        return to;
      }, 0);
    }
    return { averages, stacked };
  }
  // The box that is set, as far as it lies in the range; an open end is that of the map.
  function frameOf({ yd: [bottom, top] }, [begin, end]) {
    const { state, run } = now(), ends = boxOf(state);
    if (!ends) return null;
    const [t, t2] = ends.slice(0, 2).map((at, side) => (at === "" ? [begin, end][side] : run.start + 1000 * Number(at)));
    const [lower, upper] = ends.slice(2).map((at, side) => (at === "" ? [bottom, top][side] : 1e6 * Number(at)));
    const inside = t < end && t2 > begin && lower < top && upper > bottom;
    return inside ? { t, t2, lower: Math.max(lower, bottom), upper: Math.min(upper, top) } : null;
  }
  function* heatmap() {
    const { state, content } = now(), lit = highlights(), { total, lit: parts } = tables(lit), range = rangeOf(state), { axis, shading, palette } = state;
    const drop = state.drop === "auto" ? AUTO[axis] : Number(state.drop), height = heightOf(), sharp = Math.max(1, devicePixelRatio);
    const most = innerHeight * sharp < TALL ? MOST.raster.few : MOST.raster.rows, id = ["heat", total.id, axis, range ?? drop, most];
    if (!isLast("map", id)) yield;
    const map = latest("map", id, () => heatMap(total, axis, drop, range, parts, content.layouts, most)), { low, high, yd, constant } = domainOf(map, axis);
    const wanted = percentileOf(state.p), line = inView(""), points = pointsOf(line, [""], [wanted]), { colors } = theme();
    const base = palette === "single" ? (lit.length ? colors.ramp.slice(0, 5) : colors.ramp) : colors.rainbow;
    const hues = lit.map((each) => each.colors), pixels = Math.round(height * sharp), look = [...id, shading, base, hues, pixels], seconds = (total.span[1] - total.span[0]) / 1000;
    if (!isLast("picture", look)) yield;
    const { image, above, shade, legend, pictures } = latest("picture", look, () => {
      const drawn = raster.drawn(map, { axis, shading, domain: yd, constant, height: pixels, base, hues });
      return { ...drawn, pictures: [{ image: drawn.image, above: drawn.above, t: map.begin, t2: map.begin + map.columns * map.width }] };
    });
    const { averages, stacked } = latest("averages", [...id, hues, seconds], () => averagesOf(map, seconds, lit)), sum = (values) => values.reduce((all, c) => all + c, 0);
    const failures = latest("failures", [total.id], () => failuresIn(total));
    Object.assign(shown, { map, failures, line, image, shade, above });
    now().page.heat = shown; // for tests
    if (shown.cursor && !(shown.cursor.t >= total.span[0] && shown.cursor.t2 <= total.span[1])) shown.cursor = null;
    const width = `windows of ${line.width / 1000} s`, cells = line.width === total.width ? "" : `; its cells have ${total.width / 1000} s`;
    const said = points.length ? `The line is ${what(state.p)}; ${width}${cells}.` : map.columns && `Windows of ${total.width / 1000} s.`;
    const says = sentences(!points.length && tooFew(state.p, map.counts), said, ...told(map, map.lit, lit, failures, sum(total.n) / total.unit), mixedIn(total));
    const over = sum(map.dropped), all = sum(map.counts) + over;
    const signals = {
      axis, low, high, yd, zoomable: true, colors: base, stops: legend.stops, texts: legend.texts, meaning: legend.title, box: frameOf({ yd }, total.span),
      dropped: over ? `${whole(over)} above` : "", failed: failures.length ? `${whole(sum(failures.map((each) => each.failed)))} failed` : "", average: all ? `${number(Number((all / seconds).toPrecision(4)))} a second` : "",
    };
    return { merged: total, data: { pictures, failures, points, paths: raster.pathsOf(points, total.span, raster.heightOf(yd, constant, 1)), averages, lit_averages: stacked }, signals, says, height };
  }
  // Who made the samples of a cell by a label, where the page holds bins by it, and in which windows it holds them.
  function split(label, cell, upper) {
    const { content } = now(), { level, names, pick, windows } = groupsOf(label), [from, to] = tailboard.touched(level, cell, windows);
    if (from >= to) return null;
    const [t, t2] = [from, to].map((window) => level.origin + window * level.step);
    const parts = splitOf(merged(level, content.layouts, pick, from, to, 0), names, cell.lower, upper);
    return { parts, t, t2, exact: t >= cell.t - 0.5 && t2 <= cell.t2 + 0.5 };
  }
  function sharesBy(label, cell, upper) {
    const shares = split(label, cell, upper);
    if (!shares) return "";
    const { parts, exact } = shares, all = exact ? cell.c : parts.reduce((sum, { count }) => sum + count, 0);
    const rest = all - parts.reduce((sum, { count }) => sum + count, 0), few = parts.slice(0, PARTS);
    const others = rest > 1e-6 * all ? [{ name: "those that the page has no bins of", count: rest }] : [];
    const words = [...few, ...others].map(({ name, count }) => `${name || "-"} ${number(count)} (${percent(count / all)})`).join(", ");
    const more = parts.length > few.length ? ` and ${parts.length - few.length} more` : "";
    const { run } = now(), title = label === "extra" ? run.extra : label;
    return `By ${title}${exact ? "" : `, of ${when(shares)}, the finest that the page holds`}: ${words}${more}.`;
  }
  // Says what a cell of the map holds, and its split by host, thread, operation and what was asked beside them.
  function tell(cell) {
    const { run, page } = now(), above = cell.open || cell.over, upper = above ? Infinity : cell.upper;
    const range = above ? `≥ ${latency(cell.lower)}` : `${latency(cell.lower)} – ${latency(cell.upper)}`;
    const shares = `${percent(cell.c / cell.n)} of the window, ${percent(cell.cum / cell.n)} up to here`;
    const labels = LABELS.filter((label) => (label === "extra" ? run.extra : label !== "thread" || run.levels.threads));
    const first = `${when(cell)}, ${range}: ${number(cell.c)} samples, ${shares}.`;
    const lines = [first, ...labels.map((label) => sharesBy(label, cell, upper)), run.levels.threads ? "" : "The page holds no bins of threads."];
    find("cell").replaceChildren(...lines.filter(Boolean).map((text) => make("span", {}, `${text} `)));
    const { t, t2, lower } = (shown.cursor = cell);
    page.views.heatmap.signal("pointed", { t, t2, lower, upper: cell.upper }).runAsync();
  }
  // The filled cells as rows of a table, for csv, and then what failed, which is above all latencies.
  function rows() {
    const lit = highlights(), beyond = { lower: "inf", upper: "inf" }, named = (counts) => Object.fromEntries(lit.map(({ name }, at) => [name, counts[at]]));
    const cells = heat.cellsOf(shown.map).map(({ t, t2, lower, upper, c, n, cum, open, over, lit: counts }) => ({ t, t2, lower, upper, c, n, cum, open, over, ...named(counts) }));
    return [...cells, ...shown.failures.map(({ t, t2, failed: c, n }) => ({ t, t2, ...beyond, c, n, cum: n, open: 0, over: 0 }))];
  }
  // What a tooltip says of a cell.
  function brief(cell) {
    const above = cell.open || cell.over, lit = highlights();
    return {
      window: when(cell), latency: above ? `≥ ${latency(cell.lower)}` : `${latency(cell.lower)} – ${latency(cell.upper)}`, samples: whole(cell.c),
      "of its window": percent(cell.c / cell.n), "up to here": percent(cell.cum / cell.n), ...Object.fromEntries(lit.map(({ name }, at) => [name, whole(cell.lit[at] ?? 0)])),
    };
  }
  // Arrow keys go from cell to cell: up and down in a window, left and right to the nearest latency of the next window.
  function beside([across, up]) {
    const { map, cursor } = shown, { rows, columns, counts, dropped } = map;
    const filled = (column, row) => (row === rows ? dropped[column] : counts[column * rows + row]) > 0, middle = (row) => (row === rows ? map.over[0] : map.edges[row]);
    const column = cursor ? Math.round((cursor.t - map.begin) / map.width) : 0, row = !cursor ? -1 : cursor.over ? rows : heat.placeOf(map.edges, cursor.lower);
    if (!cursor) {
      for (let at = rows; at >= 0; at--) for (let to = 0; to < columns; to++) if (filled(to, at)) return cellAt(map, to, at);
      return null;
    }
    if (up) {
      for (let at = row + up; at >= 0 && at <= rows; at += up) if (filled(column, at)) return cellAt(map, column, at);
      return null;
    }
    for (let to = column + across; to >= 0 && to < columns; to += across) {
      let near = -1;
      for (let at = 0; at <= rows; at++) if (filled(to, at) && (near < 0 || Math.abs(middle(at) - cursor.lower) < Math.abs(middle(near) - cursor.lower))) near = at;
      if (near >= 0) return cellAt(map, to, near);
    }
    return null;
  }
  return { heatmap, shown, choices, light, offerHighlights, listen, tell, rows, brief, beside, boxOf, AUTO };
}
