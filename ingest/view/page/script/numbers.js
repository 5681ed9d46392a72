"use strict";
// The numbers of the report's page, all pure: what was packed, rows added up, ranks, and the flat tables of the specs. Tested
// in Node and held against the query layer. panels.js makes tables of them, draw.js draws these. Times are ms, latencies ns.
const tailboard = (() => {
  const MOST = { points: 640, columns: 180, least: 40, lines: 4000, cells: 2400, tails: 3000, rows: 40, curve: 900, worst: 8, sentences: 3, high: 140, raster: { columns: 720, rows: 200, few: 150 } };
  const MULTIPLES = [1, 2, 3, 4, 5, 6, 8, 10, 12, 15, 20, 30, 40, 60, 90, 120, 180, 240, 300, 600, 1200, 1800, 3600, 7200];

  // ---- What was packed: see ingest/view/page/packing.py.
  function bytesOf(text) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
    const letters = atob(text), bytes = new Uint8Array(letters.length); // a browser of before 2025: letter by letter, without a call for each
    for (let at = 0; at < bytes.length; at++) bytes[at] = letters.charCodeAt(at);
    return bytes;
  }
  async function inflated(text) {
    const stream = new Blob([bytesOf(text)]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Uint8Array(await new Response(stream).arrayBuffer());
  }
  // Gives the streams that begin at a place of some bytes, one after the other, in numbers of a kind; null: of the narrowest. A plane is a byte of
  // each number, which is laid into its memory: a page has millions of them.
  function reader(bytes, at = 0) {
    function laid(count, planes, Kind) {
      if (Kind === Uint8Array) return bytes.slice(at, (at += count * planes));
      const out = new Kind(count), raw = new Uint8Array(out.buffer), wide = Kind.BYTES_PER_ELEMENT;
      for (let plane = 0; plane < planes; plane++) for (let to = plane; to < raw.length; to += wide) raw[to] = bytes[at++];
      return out;
    }
    return (count, Kind = Float64Array) => {
      const planes = bytes[at++], low = laid(count, Math.min(4, planes), planes < 2 ? Uint8Array : planes < 3 ? Uint16Array : Uint32Array);
      if (planes < 5) return Kind === null ? low : new Kind(low);
      const high = laid(count, planes - 4, Uint32Array), out = new Float64Array(low);
      for (let place = 0; place < count; place++) out[place] += high[place] * 2 ** 32;
      return out;
    };
  }
  // Where parts of some sizes begin, one after the other, and where the last one ends.
  const starts = (sizes) => { let sum = 0; return Uint32Array.from([0, ...sizes], (size) => (sum += size)); };
  // Distances within such parts as the numbers that they lead to.
  function added(values, first) {
    for (let part = 0; part + 1 < first.length; part++) {
      for (let place = first[part] + 1; place < first[part + 1]; place++) values[place] += values[place - 1];
    }
    return values;
  }
  async function unpack(text) {
    const bytes = await inflated(text), at = 4 + new DataView(bytes.buffer).getUint32(0, true);
    const content = JSON.parse(new TextDecoder().decode(bytes.subarray(4, at))), take = reader(bytes, at);
    const Bins = content.layouts.every(({ values }) => values.length <= 65_536) ? Uint16Array : Uint32Array;
    for (const run of content.runs) {
      for (const level of ["cluster", "hosts", "failed", "threads"].map((scope) => run.levels[scope]).filter(Boolean)) {
        level.first = starts(level.rows);
        const rows = level.first.at(-1);
        level.window = added(take(rows, Uint32Array), level.first);
        level.ptr = starts(take(rows));
        level.bin = added(take(level.entries, Bins), level.ptr);
        level.count = take(level.entries, null);
        level.total = new Float64Array(rows);
        for (let row = 0; row < rows; row++) {
          for (let entry = level.ptr[row]; entry < level.ptr[row + 1]; entry++) level.total[row] += level.count[entry];
        }
        level.sum = level.total.reduce((sum, n) => sum + n, 0);
        [level.max, level.min] = level.exact ? [take(rows), take(rows)] : [null, null];
        level.done = level.weighted ? take(rows) : null;
      }
      for (const tail of ["threads", "hosts"].flatMap((scope) => run.tails[scope]?.steps ?? [])) {
        tail.first = starts(tail.rows);
        const rows = tail.first.at(-1);
        tail.window = added(take(rows, Uint32Array), tail.first);
        for (const column of ["count", "p50", "p99", "p100", "p0"]) tail[column] = take(rows, null);
      }
    }
    return content;
  }

  // ---- Numbers, as ingest/core/quantiles.py has them: nearest rank in exact integers.
  function percentileOf(text) {
    if (text === "mean") return { text, top: NaN, bottom: 1, mean: true };
    const bottom = 10 ** (String(text).split(".")[1] ?? "").length;
    return { text: String(text), top: Math.round(Number(text) * bottom), bottom };
  }
  function rankOf(n, { top, bottom }) {
    const divisor = 100 * bottom, product = n * top;
    if (product > Number.MAX_SAFE_INTEGER) return Number((BigInt(n) * BigInt(top) + BigInt(divisor - 1)) / BigInt(divisor));
    const quotient = Math.floor(product / divisor);
    return Math.max(1, quotient * divisor < product ? quotient + 1 : quotient);
  }
  function isCarried(samples, { top, bottom, mean }) {
    if (mean) return samples > 0;
    if (2 * top <= 100 * bottom || top === 100 * bottom) return samples > 0;
    return samples >= Math.ceil((100 * bottom) / (100 * bottom - top));
  }

  // The first column and how many there are: windows from..to-1 in columns of k, aligned as the query layer aligns them.
  function columnsOf(base, from, to, k) {
    const low = Math.floor((base + from) / k);
    return [low, Math.floor((base + to - 1) / k) - low + 1];
  }
  // Which rows of a level come together: of each slot (a column of a group) the first row, of each row the next one of its slot and
  // its series; and of each group the layouts and weights of its series.
  function chained(level, pick, [from, to], slotOf, slots, groups) {
    const heads = new Int32Array(slots).fill(-1), next = new Int32Array(level.window.length), owner = new Uint32Array(level.window.length);
    const [layouts, weights] = [0, 1].map(() => Array.from({ length: groups }, () => new Set()));
    let entries = 0, rows = 0;
    pick.forEach((group, series) => {
      if (group < 0) return;
      layouts[group].add(level.layouts[series]);
      weights[group].add(level.weights?.[series] ?? 1);
      for (let row = level.first[series]; row < level.first[series + 1]; row++) {
        if (level.window[row] < from || level.window[row] >= to) continue;
        const slot = slotOf(group, level.window[row]);
        if (heads[slot] < 0) rows++;
        next[row] = heads[slot];
        heads[slot] = row;
        owner[row] = series;
        entries += level.ptr[row + 1] - level.ptr[row];
      }
    });
    return { heads, next, owner, layouts, weights, entries, rows };
  }
  // Adds the bins of a row of a level to `dense`, which has something from `filled.least` to `most`; `into` moves them to another layout.
  function addBins({ ptr, bin: bins, count }, source, into, factor, dense, filled) {
    let { least, most } = filled;
    for (let entry = ptr[source], stop = ptr[source + 1]; entry < stop; entry++) {
      const bin = into ? into[bins[entry]] : bins[entry];
      dense[bin] += count[entry] * factor;
      if (bin < least) least = bin;
      if (bin > most) most = bin;
    }
    filled.least = least;
    filled.most = most;
  }
  // Writes the bins of a row of a level as running totals from `at` on; returns where they end.
  function copyBins(table, at, { ptr, bin: bins, count }, source, factor) {
    const { bin, cum } = table;
    for (let entry = ptr[source], stop = ptr[source + 1], total = 0; entry < stop; entry++, at++) {
      bin[at] = bins[entry];
      cum[at] = total += count[entry] * factor;
    }
    return at;
  }
  // The same of what was added up in `dense`, which is empty then.
  function moveBins(table, at, dense, { least, most }) {
    const { bin, cum } = table;
    for (let place = least, total = 0; place <= most; place++) {
      if (!dense[place]) continue;
      bin[at] = place;
      cum[at++] = total += dense[place];
      dense[place] = 0;
    }
    return at;
  }
  // The counts of a slot beside its bins: what completed, the events that it stands for, exact maximum and minimum.
  function countsOf(level, unit, sources, weightOf) {
    let done = 0, events = 0, highest = level.max ? 0 : NaN, lowest = level.max ? Infinity : NaN;
    for (const source of sources) {
      const weight = weightOf(source);
      if (level.max) highest = Math.max(highest, level.max[source] ? level.max[source] - 1 : NaN);
      if (level.max) lowest = Math.min(lowest, level.min[source] ? level.min[source] - 1 : NaN);
      done += unit > 1 || !weight ? level.done[source] : level.total[source];
      events += unit > 1 ? level.done[source] : level.total[source] * (weight || 1);
    }
    return { done, events, max: highest, min: lowest };
  }
  // As narrow as its numbers allow: a page holds several tables of millions of entries.
  function emptyTable(level, rows, entries, given) {
    const Sums = !level.weights && level.sum < 2 ** 32 ? Uint32Array : Float64Array;
    const table = { ...given, rows, ptr: new Uint32Array(rows + 1), bin: new level.bin.constructor(entries), cum: new Sums(entries) };
    for (const name of ["group", "t", "n", "done", "events", "max", "min"]) table[name] = new Float64Array(rows);
    return table;
  }
  // The rows of a level added up: series s goes to group pick[s] (-1: none), windows from..to-1 to columns of k
  // (k 0: one column). Counts become running totals, so that a rank is found by bisection. Of events that were stored at
  // unlike rates each counts by its weight, as in ingest/query/lags.py (0: its counts are weighed already).
  function merged(level, layouts, pick, from, to, k) {
    const groups = pick.reduce((most, group) => Math.max(most, group + 1), 0), base = k ? level.base : -from;
    k ||= to - from;
    const [low, columns] = columnsOf(base, from, to, k), slotOf = (group, window) => group * columns + Math.floor((base + window) / k) - low;
    const chains = chained(level, pick, [from, to], slotOf, groups * columns, groups), { heads, next, owner, weights } = chains;
    const unit = level.units[pick.findIndex((group) => group >= 0)] ?? 1, weightOf = (source) => level.weights?.[owner[source]] ?? 1;
    // A group of one layout keeps it; unlike layouts meet in the common one, which is the last.
    const kept = chains.layouts.map((own) => layouts[own.size === 1 ? [...own][0] : layouts.length - 1]);
    const own = (series) => layouts[level.layouts[series]];
    const moves = pick.map((group, series) => (group < 0 || kept[group] === own(series) ? null : own(series).into));
    const dense = new Float64Array(Math.max(0, ...kept.map((layout) => layout.values.length)));
    const mixed = weights.map((each) => each.size > 1 || each.has(0)), unlike = new Set(weights.flatMap((each) => [...each])).size > 1;
    const scale = weights.map(([first], group) => (unlike && !mixed[group] ? first : 1)); // of groups beside one another
    const begin = level.origin + (low * k - base) * level.step, width = k * level.step;
    const table = emptyTable(level, chains.rows, chains.entries, { layouts: kept, unit, groups, columns, width, begin, mixed, scale });
    for (let slot = 0, row = 0, at = 0; slot < heads.length; slot++) {
      if (heads[slot] < 0) continue;
      const sources = [], group = Math.floor(slot / columns), factor = (source) => (mixed[group] ? weightOf(source) || 1 : 1);
      for (let source = heads[slot]; source >= 0; source = next[source]) sources.push(source);
      const [first] = sources;
      if (sources.length === 1 && !moves[owner[first]]) at = copyBins(table, at, level, first, factor(first));
      else {
        const filled = { least: dense.length, most: -1 };
        for (const source of sources) addBins(level, source, moves[owner[source]], factor(source), dense, filled);
        at = moveBins(table, at, dense, filled);
      }
      const { done, events, max, min } = countsOf(level, unit, sources, weightOf), n = at > table.ptr[row] ? table.cum[at - 1] : 0;
      [table.group[row], table.t[row]] = [group, begin + (slot % columns) * width];
      [table.n[row], table.done[row], table.events[row], table.max[row], table.min[row]] = [n, done, events, max, min];
      table.ptr[++row] = at;
    }
    const entries = table.ptr[chains.rows];
    if (entries < chains.entries) [table.bin, table.cum] = [table.bin.slice(0, entries), table.cum.slice(0, entries)];
    return table;
  }

  // From which window of a level to which a range of times reaches, of those from `first` to before `last`.
  function touched({ origin, step }, { t, t2 }, [first, last]) {
    return [Math.max(first, Math.floor((t - origin) / step + 1e-6)), Math.min(last, Math.ceil((t2 - origin) / step - 1e-6))];
  }
  function entryOf(table, row, rank) {
    let low = table.ptr[row], high = table.ptr[row + 1] - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (table.cum[middle] < rank) low = middle + 1;
      else high = middle;
    }
    return low;
  }
  // The samples of a row that decide which percentiles it carries: what was stored, where it counts by weight.
  const samplesOf = (table, row) => (table.mixed?.[table.group[row]] ? table.done[row] : Math.ceil(table.n[row] / table.unit));
  const layoutOf = (table, row) => table.layouts[table.group[row]];
  // What a bin reports in a row: never below the row's exact minimum or above its exact maximum (NaN: not known).
  const within = (v, low, high) => (v > high ? high : v < low ? low : v);
  const reportedIn = (table, row, bin) => within(layoutOf(table, row).values[bin], table.min[row], table.max[row]);
  // The mean of what the bins of a row report: as far from that of its samples as a bin is wide.
  function meanOf(table, row) {
    let sum = 0, open = 0;
    for (let at = table.ptr[row], before = 0; at < table.ptr[row + 1]; before = table.cum[at++]) {
      sum += (table.cum[at] - before) * reportedIn(table, row, table.bin[at]);
      open = Number(table.bin[at] === layoutOf(table, row).last);
    }
    return { v: sum / table.n[row], open, beyond: table.n[row] };
  }
  // A row's percentile, null where its samples cannot carry it.
  function valueOf(table, row, wanted) {
    if (!isCarried(samplesOf(table, row), wanted)) return null;
    if (wanted.mean) return meanOf(table, row);
    const rank = rankOf(table.n[row], wanted), bin = table.bin[entryOf(table, row, rank)];
    const highest = wanted.top === 100 * wanted.bottom;
    const layout = layoutOf(table, row), v = highest && !Number.isNaN(table.max[row]) ? table.max[row] : reportedIn(table, row, bin);
    const above = table.mixed[table.group[row]] ? (table.done[row] * (table.n[row] - rank)) / table.n[row] : (table.n[row] - rank) / table.unit;
    const beyond = highest ? table.n[row] : Math.floor(above);
    return { v, open: Number(bin === layout.last), beyond };
  }
  const timesOf = (table, row) => ({ t: table.t[row], t2: table.t[row] + table.width });
  const HIGHEST = percentileOf("100");
  const labelOf = (name, p, several) => (several || !name ? `${name} ${p.mean ? "" : "p"}${p.text}`.trim() : name);
  function pointsOf(table, names, wanted) {
    const out = [];
    for (const p of wanted) {
      for (let row = 0; row < table.rows; row++) {
        const value = valueOf(table, row, p), name = names[table.group[row]];
        const label = labelOf(name, p, wanted.length > 1);
        if (value) out.push({ ...timesOf(table, row), label, row: name, ...value, n: table.done[row] });
      }
    }
    return out;
  }
  // The rows whose samples are too few for a percentile, with their maximum.
  function thinOf(table, names, p, several) {
    const out = [];
    for (let row = 0; row < table.rows; row++) {
      const name = names[table.group[row]];
      if (isCarried(samplesOf(table, row), p)) continue;
      const label = labelOf(name, p, several), n = table.done[row];
      out.push({ ...timesOf(table, row), label, row: name, ...valueOf(table, row, HIGHEST), n });
    }
    return out;
  }
  // Of a window that the data covers in part, the first or the last one, it is that part: as wide, and with its rate.
  function ratesOf(table, names, [first, last] = [-Infinity, Infinity]) {
    const label = (row) => names[table.group[row]] || "all";
    return Array.from(table.events, (n, row) => {
      const whole = timesOf(table, row), t = Math.max(whole.t, first), t2 = Math.min(whole.t2, last);
      const shown = t < t2 ? { t, t2 } : whole, part = Number(shown.t2 - shown.t < table.width);
      return { ...shown, label: label(row), v: n / ((shown.t2 - shown.t) / 1000), n, part };
    });
  }
  // Stretches of windows without any row: of all groups together, or (each) of every group.
  function gapsOf(table, names, each) {
    const out = [], filled = new Uint8Array(table.columns * (each ? table.groups : 1) + 1);
    const first = (row) => (each ? table.group[row] * table.columns : 0);
    table.t.forEach((t, row) => (filled[first(row) + Math.round((t - table.begin) / table.width)] = 1));
    for (let slot = 0, last = -2; slot < filled.length - 1; slot++) {
      if (filled[slot]) continue;
      const t = table.begin + (slot % table.columns) * table.width;
      if (last === slot - 1 && slot % table.columns) out.at(-1).t2 = t + table.width;
      else out.push({ t, t2: t + table.width, row: names[Math.floor(slot / table.columns)] });
      last = slot;
    }
    return out;
  }

  // The distribution of each row as steps: v up to x = 1 / (1 - q), the last at x = N; steps too near to be seen are left out.
  function curveOf(table, names, most = MOST.curve) {
    const out = [];
    for (let row = 0; row < table.rows; row++) {
      const n = table.n[row], layout = layoutOf(table, row), room = most / table.rows;
      const ratio = table.ptr[row + 1] - table.ptr[row] <= room ? 1 : Math.max(n / table.unit, 2) ** (1 / room);
      const label = names[table.group[row]] || "all", of = (cum) => ({ cum: cum / table.unit, n: n / table.unit });
      const value = (bin) => ({ v: reportedIn(table, row, bin), open: Number(bin === layout.last) });
      const step = (at, x, cum) => ({ label, x, ...value(table.bin[at]), ...of(cum) });
      out.push(step(table.ptr[row], 1, 0));
      for (let at = table.ptr[row], last = 0; at < table.ptr[row + 1]; at++) {
        const x = n / Math.max(n - table.cum[at], table.unit);
        if (x >= last * ratio || at + 1 === table.ptr[row + 1]) out.push(step(at, (last = x), table.cum[at]));
      }
    }
    return out;
  }
  // The same rows, those with the least and the most of anything first: the first few then span every scale of a picture.
  function widestFirst(rows) {
    const first = new Set();
    for (const name of Object.keys(rows[0] ?? {}).filter((key) => typeof rows[0][key] === "number")) {
      let [least, most] = [rows[0], rows[0]];
      for (const row of rows) {
        if (row[name] < least[name]) least = row;
        if (row[name] > most[name]) most = row;
      }
      first.add(least).add(most);
    }
    return [...first, ...rows.filter((row) => !first.has(row))];
  }
  const sections = []; // what their scripts add to the page: see section.py
  return {
    MOST, MULTIPLES, sections, inflated, reader, starts, added, unpack, percentileOf, rankOf, isCarried, merged, layoutOf, within, valueOf, pointsOf, thinOf, ratesOf, gapsOf,
    curveOf, widestFirst, reportedIn, timesOf, touched,
  };
})();
if (typeof module !== "undefined") module.exports = tailboard;
