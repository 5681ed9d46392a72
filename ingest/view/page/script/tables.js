// The rows of the report's page under what is chosen: added up by a label, and the percentiles of hosts or threads. Follows
// state.js in the same script. Times are ms, latencies ns.
const tables = (() => {
  const { MOST, MULTIPLES, percentileOf, pointsOf, thinOf, gapsOf, within } = tailboard;
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
  // The level that holds the groups of a label (or what failed, as one group), the names of its groups, the group of each series, and the windows.
  function groupsOf(by, of = now.run, kind = now.state.kind) {
    const { state } = now;
    const level = of.levels[by === "thread" ? "threads" : by === "failed" ? by : state.host || by === "host" ? "hosts" : "cluster"];
    const keys = level.keys.map((key) => (passes(key, state.op, kind) ? key[by] ?? "" : null));
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
  // ---- One width of windows for all panels over time.
  // It is as narrow as MOST.columns windows, and MOST.lines cells of the chosen lines, allow: of hosts and threads the page may hold
  // wider ones, and all take these while MOST.least of them are in view. What a page holds in wider windows only keeps its own.
  function viewStep(lines = 1) {
    const { cluster, hosts, threads } = now.run.levels, [from, to] = windowsOf(cluster), span = (to - from) * cluster.step;
    const others = [hosts, threads ?? now.run.tails.threads?.steps.at(-1)].filter(Boolean).map(({ step }) => step).filter((step) => span / step >= MOST.least);
    const most = Math.min(MOST.columns, Math.max(MOST.least, Math.floor(MOST.lines / lines)));
    const fits = (k) => (to - from) / k <= most && others.every((step) => Math.abs(((k * cluster.step) / step) % 1) < 1e-9);
    for (const k of MULTIPLES) if (fits(k)) return k * cluster.step;
    return cluster.step * Math.ceil((to - from) / most);
  }
  // How many lines the panel of percentiles draws.
  const linesOf = () => memo(["lines", now.run.name, now.state.by, now.state.op, now.state.host, now.state.kind, now.state.also], () =>
    Math.max(1, groupsOf(now.state.by === "run" || (now.state.by === "thread" && !now.run.levels.threads) ? "" : now.state.by).names.length) * (1 + now.state.also.split(",").filter(Boolean).length));
  // A run's rows in the windows of the view.
  function inView(by) {
    const { level: { step } } = groupsOf(by), wide = viewStep(linesOf());
    return table(by, 1, now.run, now.state.kind, Math.max(1, Math.ceil(wide / step - 1e-9)));
  }
  // How far the samples of each group of a label lie above a latency in a window: its own rows alone are added up.
  function excessIn(by, { t, t2 }, least) {
    const { level, names, pick, windows } = groupsOf(by), [from, to] = tailboard.touched(level, { t, t2 }, windows);
    if (from >= to) return [];
    return excess.excessBy(tailboard.merged(level, now.content.layouts, pick, from, to, 0), names, least);
  }
  // One percentile of every host or thread, the row with most above the typical cell, the median one, first. Where most windows have too few samples for it
  // their maximum is shown, which each has.
  function tailOf(scope) {
    const { run, state } = now, steps = run.tails[`${scope}s`]?.steps, of = (tail) => (steps ? tailOfTails(scope, steps, tail) : tailOfBins(scope, tail));
    let out = of(state.tail), { tail } = state;
    if (out.thin.length > out.points.length) [out, tail] = [of("100"), "100"];
    const cells = [...out.points, ...out.thin], typical = medianOf(out.points.length ? out.points : out.thin);
    const above = new Map(out.names.map((name) => [name, 0]));
    for (const { row, v, n } of cells) above.set(row, above.get(row) + n * Math.max(0, v - typical));
    const most = Math.max(MOST.least / 5, Math.min(MOST.rows, Math.floor(MOST.tails / out.columns)));
    const rows = [...above].sort((a, b) => b[1] - a[1]).slice(0, most).map(([row]) => ({ row }));
    const kept = new Set(rows.map(({ row }) => row));
    for (const name of ["points", "thin", "gaps"]) out[name] = out[name].filter(({ row }) => kept.has(row));
    return { ...out, rows, tail, typical };
  }
  const medianOf = (cells) => Float64Array.from(cells, ({ v }) => v).sort()[cells.length >> 1];
  function tailOfBins(scope, tail) {
    const merged = inView(scope), { names, span, columns, width } = merged, wanted = percentileOf(tail);
    const points = pointsOf(merged, names, [wanted]), thin = thinOf(merged, names, wanted);
    return { points, thin, gaps: gapsOf(merged, names, true), span, names, columns, width };
  }
  // From what the page holds of threads that are too many for bins, at the one of its steps that is nearer to that of the view.
  function tailOfTails(scope, steps, tail) {
    const { state, content } = now, wide = viewStep(linesOf()), far = ({ step }) => Math.abs(Math.log(step / wide));
    const level = far(steps.at(-1)) <= far(steps[0]) ? steps.at(-1) : steps[0], [from, to] = windowsOf(level);
    const op = state.op || (level.keys.some((key) => key.op === "*") ? "*" : ""), column = level[`p${tail}`];
    const out = { points: [], thin: [], gaps: [], span: spanOf(level, [from, to]), names: [], columns: to - from, width: level.step };
    level.keys.forEach((key, series) => {
      if (!passes(key, op)) return;
      const layout = content.layouts[level.layouts[series]], label = key[scope];
      out.names.push(label);
      for (let row = level.first[series]; row < level.first[series + 1]; row++) {
        if (level.window[row] < from || level.window[row] >= to) continue;
        const t = level.origin + level.window[row] * level.step, highest = tail === "100", n = level.count[row];
        const v = highest ? column[row] : within(layout.values[column[row] - 1], level.p0[row], level.p100[row]), open = Number(!highest && column[row] - 1 === layout.last);
        const cell = { t, t2: t + level.step, row: label, label, n, open };
        if (v === undefined) out.thin.push({ ...cell, v: level.p100[row] });
        else out.points.push({ ...cell, v });
      }
    });
    return out;
  }
  return { windowsOf, groupsOf, multipleOf, table, inView, viewStep, linesOf, excessIn, tailOf };
})();
