"use strict";
// What the pointer and the keys do on the heat map: they read cells, draw a box, drag the line, zoom and pan. Follows heat_panel.js in the
// same script. While a hand moves only the map follows, a frame behind; what is chosen is set when it rests. Times are ms, latencies ns.
function heatHand(offered, panel) {
  const { placeOf } = heat, NEAR = 5, MOVED = 4, STEP = 1.25, PAN = 0.2, QUIET = 160, SCROLLING = 350, LEAST_WINDOWS = 2, LEAST_BINS = 3, FOOT = 46;
  let hand = null, begun = null, waiting = null, timer = 0, drawing = false, scrolled = -Infinity, around = null, zoomed = false, tipped = "";
  const chart = () => offered.find("heatmap"), view = () => offered.page.views.heatmap;
  const clamp = (low, value, high) => Math.min(high, Math.max(low, value));

  // ---- Places.
  // Where an event is in the plot: pixels, how large it is, and the time and the latency there.
  function placeIn(event) {
    const { left, top } = chart().querySelector("canvas").getBoundingClientRect(), [x0, y0] = view().origin(), pad = view().padding();
    const x = event.clientX - left - pad.left - x0, y = event.clientY - top - pad.top - y0, [wide, tall] = [view().signal("main"), view().signal("height")];
    const t = view().scale("x").invert(clamp(0, x, wide)), v = view().scale("y").invert(clamp(0, y, tall));
    return { x, y, wide, tall, t, v, inside: x >= 0 && x <= wide && y >= 0 && y <= tall, above: x >= 0 && x <= wide && y >= -14 && y < -4 };
  }
  // The cell of the map at a place; null where there is none.
  function cellIn({ t, v, above }) {
    const { map } = panel.shown, column = Math.floor((t - map.begin) / map.width);
    if (!map.columns || column < 0 || column >= map.columns) return null;
    const row = above ? map.rows : placeOf(map.edges, v), cell = (above ? map.over : true) && heat.cellAt(map, column, row);
    return cell && cell.c > 0 && (above || (v >= cell.lower && v <= cell.upper)) ? cell : null;
  }
  // The window of the line at a time: its row, and how far below or above a place it runs, in pixels.
  function lineIn({ t, y }) {
    const { line } = panel.shown;
    for (let row = 0; row < (line?.rows ?? 0); row++) {
      if (t < line.t[row] || t >= line.t[row] + line.width) continue;
      const point = tailboard.valueOf(line, row, tailboard.percentileOf(offered.now().state.p));
      return point ? { row, far: Math.abs(view().scale("y")(point.v) - y) } : null;
    }
    return null;
  }
  // The percentile that a latency is in a window: the share of its samples up to there.
  function percentileAt(row, v) {
    const { line } = panel.shown, [layout] = line.layouts;
    let at = line.ptr[row];
    while (at + 1 < line.ptr[row + 1] && layout.edges[line.bin[at]] < v && layout.edges[line.bin[at + 1]] <= v) at++;
    return String(clamp(50, Math.floor((1e4 * line.cum[at]) / line.n[row]) / 100, 100));
  }

  // ---- What is set.
  // Has the map follow at once, and all else when nothing has come for a while.
  function soon(wanted) {
    waiting = { ...waiting, ...wanted };
    Object.assign(offered.now().state, wanted);
    clearTimeout(timer);
    timer = setTimeout(settle, QUIET);
    inFrame("heatmap");
  }
  function inFrame(name) {
    if (!drawing) requestAnimationFrame(() => offered.redraw(name).finally(() => (drawing = false)));
    drawing = true;
  }
  function settle() {
    clearTimeout(timer);
    const wanted = waiting;
    waiting = null;
    return wanted && offered.set(wanted);
  }
  const inSeconds = (ms) => String(Number(((ms - offered.now().run.start) / 1000).toFixed(6)));
  const inMilliseconds = (ns) => String(Number((ns / 1e6).toPrecision(5)));
  const exactly = (ns) => String(Number((ns / 1e6).toPrecision(12))); // the edge of a bin, and not a part of the next one

  // ---- Zoom.
  // The windows that are shown from which to which at a place and a factor, of all that there are.
  function windowsAt(t, factor) {
    const { level, windows: [from, to] } = offered.groupsOf(""), at = clamp(from, (t - level.origin) / level.step, to), wide = to - from;
    const wanted = clamp(Math.min(LEAST_WINDOWS, level.windows), factor < 1 ? Math.floor(wide * factor) : Math.max(wide + 1, Math.round(wide * factor)), level.windows);
    const first = clamp(0, Math.round(at - (wanted * (at - from)) / wide), level.windows - wanted);
    return ranged(level, first, first + wanted);
  }
  const ranged = ({ origin, step, windows }, from, to) => ({ from: from <= 0 ? "" : inSeconds(origin + from * step), to: to >= windows ? "" : inSeconds(origin + to * step) });
  // Latencies as the axis has them evenly, and back.
  const curves = () => (offered.now().state.axis === "log" ? [Math.log, Math.exp] : [(v) => v, (v) => v]);
  function latenciesAt(v, factor) {
    const { whole, edges, rows } = panel.shown.map, [bent, back] = curves(), [low, high] = axisRange(), [bottom, top] = [low, high].map(bent);
    const at = bent(clamp(low, v, high)), least = LEAST_BINS * (bent(edges[Math.min(rows, placeOf(edges, v) + 1)]) - bent(Math.max(edges[placeOf(edges, v)], 1)));
    const [lowest, highest] = whole.map((end) => bent(Math.max(end, 1))), wanted = Math.max((top - bottom) * factor, factor < 1 ? Math.min(least, top - bottom) : 0);
    const wide = Math.min(wanted, highest - lowest), from = clamp(lowest, at - (wide * (at - bottom)) / (top - bottom), highest - wide);
    return limited(back(from), back(from + wide), whole);
  }
  // The axis from its lowest latency above zero to its highest; as it is about to be drawn, where a hand was faster.
  function axisRange() {
    const { state } = offered.now(), drawn = view().signal("yd"), { whole } = panel.shown.map;
    const ends = ["least", "most"].map((name, side) => (state[name] !== "" ? 1e6 * Number(state[name]) : zoomed ? whole[side] : drawn[side]));
    if (!(ends[0] < ends[1])) [ends[0], ends[1]] = drawn;
    return [state.axis === "log" ? Math.max(ends[0], 1) : ends[0], ends[1]];
  }
  const limited = (low, high, whole) => ({ least: low <= whole[0] * 1.0001 ? "" : inMilliseconds(low), most: high >= whole[1] * 0.9999 ? "" : inMilliseconds(high) });
  function zoom({ t, v }, factor, { time, latency }) {
    if (!panel.shown.map?.columns) return false;
    const wanted = { ...(time ? windowsAt(t, factor) : {}), ...(latency ? latenciesAt(v, factor) : {}) };
    const { state } = offered.now(), differs = Object.entries(wanted).some(([key, value]) => state[key] !== value);
    if (differs) soon(wanted);
    zoomed ||= differs;
    return differs;
  }
  // Moves what is shown by shares of it, as far as there is something.
  function pan(across, up, from = null) {
    const { map } = panel.shown;
    if (!map?.columns) return;
    const { level, windows } = offered.groupsOf(""), [first, last] = from?.windows ?? windows, wide = last - first;
    const begin = clamp(0, first + Math.round(across * wide) || first + (from ? 0 : Math.sign(across)), level.windows - wide), wanted = across ? ranged(level, begin, begin + wide) : {};
    if (up) {
      const [bent, back] = curves(), [bottom, top] = (from?.latencies ?? axisRange()).map(bent), [least, most] = map.whole.map((v) => bent(Math.max(v, 1)));
      const by = clamp(Math.min(0, least - bottom), up * (top - bottom), Math.max(0, most - top));
      if (by) Object.assign(wanted, limited(back(bottom + by), back(top + by), map.whole));
    }
    soon(wanted);
  }

  // ---- A box.
  // A box between two places, as whole cells; what reaches the end of the axis of latency is open there.
  function boxBetween(one, other) {
    const { map } = panel.shown, [bottom, top] = view().signal("yd"), column = (t) => clamp(0, Math.floor((t - map.begin) / map.width), map.columns - 1);
    const [first, last] = [one.t, other.t].map(column).sort((a, b) => a - b), [low, high] = [one.v, other.v].sort((a, b) => a - b).map((v) => placeOf(map.edges, v));
    const [t, t2] = [map.begin + first * map.width, map.begin + (last + 1) * map.width];
    const open = { lower: Math.min(one.v, other.v) <= bottom * (1 + 1e-9), upper: Math.max(one.v, other.v) >= top * (1 - 1e-9) };
    const [lower, upper] = [open.lower ? bottom : map.edges[low], open.upper ? top : map.edges[high + 1]];
    const text = [inSeconds(t), inSeconds(t2), open.lower ? "" : exactly(lower), open.upper ? "" : exactly(upper)].join(",");
    return { text, frame: { t, t2, lower: Math.max(lower, bottom), upper: Math.min(upper, top) } };
  }
  const sketch = (frame) => view().signal("box", frame).runAsync();
  // Has the answer follow a box that is being drawn; what is chosen stays as it was.
  function following(text) {
    Object.assign(offered.now().state, { box: text });
    inFrame("box");
  }
  function cleared() {
    const had = begun || offered.now().state.box;
    begun = null;
    if (had) offered.set({ box: "" });
    return Boolean(had);
  }
  const isIn = (frame, { t, v }) => frame && t >= frame.t && t <= frame.t2 && v >= frame.lower && v <= frame.upper;

  // ---- The pointer.
  function pressed(event) {
    if (event.button || !event.isPrimary || event.target.tagName !== "CANVAS" || !view()) return;
    const at = placeIn(event), line = at.inside && lineIn(at);
    if (at.above) return void told(cellIn(at));
    if (!at.inside || !panel.shown.map.columns) return;
    const { windows } = offered.groupsOf("");
    hand = { at, event, moved: false, does: event.shiftKey ? "pan" : line && line.far <= NEAR ? "line" : "box", row: line?.row, windows, latencies: axisRange(), before: offered.now().state.box };
    event.target.closest(".chart").focus({ preventScroll: true });
  }
  function moved(event) {
    if (!hand) return hovered(event);
    hand.moved ||= Math.hypot(event.clientX - hand.event.clientX, event.clientY - hand.event.clientY) >= MOVED;
    if (!hand.moved) return;
    const to = placeIn(event);
    tip(null);
    if (hand.does === "line") soon({ p: percentileAt(hand.row, to.v) });
    else if (hand.does === "pan") pan((hand.at.x - to.x) / to.wide, (to.y - hand.at.y) / to.tall, hand);
    else {
      sketch((hand.box = boxBetween(hand.at, to)).frame);
      following(hand.box.text);
    }
  }
  function released(event) {
    const was = hand;
    hand = null;
    if (!was) return;
    if (!was.moved) {
      if (offered.now().state.box && !isIn(view().signal("box"), was.at)) cleared();
      told(cellIn(placeIn(event)));
    } else if (was.does === "box") offered.set({ box: was.box.text });
    else settle();
  }
  const told = (cell) => cell && panel.tell(cell);
  function hovered(event) {
    if (event.buttons || event.target.tagName !== "CANVAS" || !event.target.closest("#heatmap") || !view() || !panel.shown.map) return void (tipped && tip(null));
    const at = placeIn(event), line = at.inside && lineIn(at), cell = at.inside || at.above ? cellIn(at) : null;
    chart().style.cursor = line && line.far <= NEAR ? "ns-resize" : at.inside ? "crosshair" : at.y > at.tall && at.y <= at.tall + FOOT && at.x >= 0 ? "ew-resize" : at.x < 0 && at.y >= 0 && at.y <= at.tall ? "ns-resize" : "";
    tip(cell && panel.brief(cell), event);
  }
  // The tooltip of the other pictures, with what a cell holds.
  function tip(value, event) {
    if (!value && !tipped) return;
    tipped = value ? JSON.stringify(value) : "";
    overlay.hint("heatmap", value && event, value);
  }
  // A wheel over the plot zooms both axes, with shift time alone, over an axis that one. A page that is being scrolled goes on.
  function wheeled(event) {
    const on = event.target.tagName === "CANVAS" && event.target.closest("#heatmap") && view() ? placeIn(event) : null;
    const amount = event.deltaY || event.deltaX, fresh = event.timeStamp - scrolled > SCROLLING;
    const over = on && { time: on.x >= 0 && on.x <= on.wide && on.y >= 0 && on.y <= on.tall + FOOT, latency: on.x <= on.wide && on.y >= 0 && on.y <= on.tall && !event.shiftKey };
    const still = around && on && around.range === rangeText() && Math.hypot(on.x - around.x, on.y - around.y) < MOVED;
    if (on && !still) around = on; // what is under the pointer stays there, also before it is drawn
    if (over && amount && fresh && (over.time || over.latency) && (zoom(around, STEP ** clamp(-3, amount / 100, 3), over) || waiting)) event.preventDefault();
    else scrolled = event.timeStamp;
    if (around) around.range = rangeText();
  }
  const rangeText = () => ["from", "to", "least", "most"].map((name) => offered.now().state[name]).join();

  // ---- The keys.
  function keyed(event) {
    const { key } = event, arrow = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, 1], ArrowDown: [0, -1] }[key];
    if (event.ctrlKey || event.altKey || event.metaKey || !view() || !panel.shown.map) return;
    const { cursor, map } = panel.shown, middle = () => {
      if (cursor) return { t: (cursor.t + cursor.t2) / 2, v: (cursor.lower + cursor.upper) / 2 };
      const [bent, back] = curves(), [low, high] = axisRange().map(bent);
      return { t: map.begin + (map.columns * map.width) / 2, v: back((low + high) / 2) };
    };
    if (arrow && event.shiftKey) pan(...arrow.map((way) => way * PAN));
    else if (arrow) {
      told(panel.beside(arrow));
      if (begun && panel.shown.cursor) sketch(boxBetween(begun, centre(panel.shown.cursor)).frame);
    } else if (["+", "="].includes(key)) zoom(middle(), 1 / STEP ** 2, { time: true, latency: true });
    else if (key === "-" || key === "_") zoom(middle(), STEP ** 2, { time: true, latency: true });
    else if (key === "b") boxed();
    else return;
    event.preventDefault();
  }
  const centre = ({ t, t2, lower, upper }) => ({ t: (t + t2) / 2, v: (lower + upper) / 2 });
  // Begins a box at the cell that is described, or ends it there.
  function boxed() {
    if (!panel.shown.cursor) told(panel.beside([0, 1]));
    const { cursor } = panel.shown;
    if (!cursor) return;
    const { text, frame } = boxBetween(begun ?? centre(cursor), centre(cursor));
    if (begun) {
      begun = null;
      offered.set({ box: text });
    } else {
      begun = centre(cursor);
      sketch(frame);
    }
  }
  // Escape ends what was begun first, then takes away the box; after that it is the page's.
  function escaped(event) {
    if (event.key !== "Escape") return;
    const drawn = hand?.moved && hand.does === "box" ? hand : null;
    if (drawn) [hand] = [null, sketch(null), following(drawn.before)];
    const had = drawn || cleared();
    if (had) event.stopImmediatePropagation();
    else panel.shown.cursor = null;
  }
  function listen() {
    if (!chart()) return;
    chart().addEventListener("pointerdown", pressed);
    chart().addEventListener("pointerleave", () => tip(null));
    chart().addEventListener("keydown", keyed);
    addEventListener("pointermove", moved);
    addEventListener("pointerup", released);
    addEventListener("pointercancel", () => (hand = null));
    addEventListener("wheel", wheeled, { passive: false });
    addEventListener("keydown", escaped, true);
  }
  return { listen, settle };
}
