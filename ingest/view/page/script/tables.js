// The rows of the report's page under what is chosen: added up by a label, and the percentiles of hosts or threads. Follows
// state.js in the same script. Times are ms, latencies ns.
const tables = (() => {
  const { MOST, MULTIPLES, carriedShare, percentileOf, pointsOf, thinOf, gapsOf, sharesOf, within } = tailboard;
  const { now, memo } = chosen;

  const passes = (key, op = now.state.op, kind = now.state.kind) =>
    key.kind === kind && (!op || key.op === op) && (!now.state.host || key.host === now.state.host);
  // The windows of a level in the chosen range, which is kept in seconds since the run's start.
  function windowsOf(level) {
    const { run, state } = now;
    const window = (seconds) => Number(((run.start + 1000 * seconds - level.origin) / level.step).toFixed(4)); // an end of a window is that
    const place = (seconds, round, none) => (seconds === "" ? none : round(window(seconds)));
    const from = Math.min(Math.max(0, place(state.from, Math.floor, 0)), level.windows - 1);
    return [from, Math.max(from + 1, Math.min(level.windows, place(state.to, Math.ceil, level.windows)))];
  }
  const spanOf = (level, windows) => windows.map((window) => level.origin + window * level.step);
  // The level that holds the groups of a label, the names of its groups, the group of each series, and the windows.
  function groupsOf(by, of = now.run, kind = now.state.kind) {
    const { state } = now;
    const level = of.levels[by === "thread" ? "threads" : state.host || by === "host" ? "hosts" : "cluster"];
    const keys = level.keys.map((key) => (passes(key, state.op, kind) ? (by ? key[by] : "") : null));
    const names = [...new Set(keys.filter((key) => key !== null))].sort();
    const pick = keys.map((key) => (key === null ? -1 : names.indexOf(key)));
    return { level, names, pick, windows: of === now.run ? windowsOf(level) : [0, level.windows] };
  }
  // How many windows a cell holds where there are to be at most `most` cells; 0: all of them.
  function multipleOf({ names, windows: [from, to] }, most) {
    const least = ((to - from) * names.length) / most;
    return most && (MULTIPLES.find((multiple) => multiple >= least) ?? Math.ceil(least));
  }
  // A run's rows of a kind added up by a label in at most `most` cells, or in cells of `fixed` windows; 0: over the whole range.
  function table(by, most, of = now.run, kind = now.state.kind, fixed = null) {
    const groups = groupsOf(by, of, kind), { level, names, pick, windows: [from, to] } = groups;
    const k = fixed ?? multipleOf(groups, most), id = [by, k, of.name, kind, now.state.op, now.state.host, from, to];
    const span = spanOf(level, [from, to]), { layouts } = now.content;
    return memo(id, () => ({ id, names, span, ...tailboard.merged(level, layouts, pick, from, to, k) }));
  }
  // Whose samples a window has from a latency up to below another: its own rows alone are added up.
  function sharesIn(by, { t, t2 }, lower, upper) {
    const { level, names, pick, windows } = groupsOf(by), place = (ms) => (ms - level.origin) / level.step;
    const from = Math.max(windows[0], Math.floor(place(t) + 1e-6)), to = Math.min(windows[1], Math.ceil(place(t2) - 1e-6));
    if (from >= to) return [];
    return sharesOf(tailboard.merged(level, now.content.layouts, pick, from, to, 0), names, -Infinity, Infinity, lower, upper);
  }
  // One percentile of every host or thread, the row with the highest cell first.
  function tailOf(scope) {
    const { run } = now;
    const out = run.tails[`${scope}s`] ? tailOfTails(scope, run.tails[`${scope}s`].steps) : tailOfBins(scope);
    const highest = new Map(out.names.map((name) => [name, 0]));
    for (const { row, v } of [...out.points, ...out.thin]) highest.set(row, Math.max(highest.get(row), v));
    const rows = [...highest].sort((a, b) => b[1] - a[1]).slice(0, MOST.rows).map(([row]) => ({ row }));
    const kept = new Set(rows.map(({ row }) => row));
    for (const name of ["points", "thin", "gaps"]) out[name] = out[name].filter(({ row }) => kept.has(row));
    return { ...out, rows };
  }
  // From bins: windows as fine as may be drawn of which at least four in five carry the percentile.
  function tailOfBins(scope) {
    const wanted = percentileOf(now.state.tail);
    const groups = groupsOf(scope), { level, pick, windows } = groups;
    const tries = [180, 90, 45, 22].map((columns) => Math.min(columns * (groups.names.length || 1), MOST.tails));
    const carried = (most) => carriedShare(level, pick, ...windows, multipleOf(groups, most), wanted) >= 0.8;
    const merged = table(scope, tries.find(carried) ?? tries.at(-1)), { names, span } = merged;
    const points = pointsOf(merged, names, [wanted]), thin = thinOf(merged, names, wanted);
    return { points, thin, gaps: gapsOf(merged, names, true), span, names };
  }
  // From what the page holds of threads that are too many for bins, at the one of its steps that fits.
  function tailOfTails(scope, steps) {
    const { state, content } = now;
    const wide = (step) => windowsOf(step)[1] - windowsOf(step)[0];
    const level = wide(steps[1]) * MOST.rows <= MOST.tails ? steps[1] : steps[0], [from, to] = windowsOf(level);
    const op = state.op || (level.keys.some((key) => key.op === "*") ? "*" : ""), column = level[`p${state.tail}`];
    const out = { points: [], thin: [], gaps: [], span: spanOf(level, [from, to]), names: [] };
    level.keys.forEach((key, series) => {
      if (!passes(key, op)) return;
      const layout = content.layouts[level.layouts[series]], label = key[scope];
      out.names.push(label);
      for (let row = level.first[series]; row < level.first[series + 1]; row++) {
        if (level.window[row] < from || level.window[row] >= to) continue;
        const t = level.origin + level.window[row] * level.step, highest = state.tail === "100", n = level.count[row];
        const v = highest ? column[row] : within(layout.values[column[row] - 1], level.p0[row], level.p100[row]), open = Number(!highest && column[row] - 1 === layout.last);
        const cell = { t, t2: t + level.step, row: label, label, n, open };
        if (v === undefined) out.thin.push({ ...cell, v: level.p100[row] });
        else out.points.push({ ...cell, v });
      }
    });
    return out;
  }
  return { windowsOf, groupsOf, multipleOf, table, sharesIn, tailOf };
})();
