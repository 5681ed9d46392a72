"use strict";
// How the cells of a heat map are shaded: what a shade means, what its legend says, and the colours. Follows heat.js in the same script;
// all pure, tested in Node. A shade is 0 where there is nothing, else from 1 (faint) to 255.
const shades = (() => {
  const DARKEST = 255, LABELS = 5, RARE = 200, FAINT = 0.35, COUNTED = 2 ** 22, MOST_HUES = 6;

  // The weight of each row: how tall it is, of those with samples the middle one being 1. Rows are whole bins, and those of one octave are not
  // equally tall on a logarithmic axis: by their counts alone a smooth distribution would have a step at each power of two.
  function heightsOf({ rows, edges, counts, columns }, axis) {
    const filled = new Uint8Array(rows), heights = new Float64Array(rows);
    for (let column = 0, at = 0; column < columns; column++) for (let row = 0; row < rows; row++) if (counts[at++]) filled[row] = 1;
    for (let row = 0; row < rows; row++) {
      const [lower, upper] = [edges[row], edges[row + 1]];
      heights[row] = axis === "log" && lower > 0 ? Math.log2(upper / lower) : axis === "log" ? 1 : upper - lower;
    }
    const seen = heights.filter((_, row) => filled[row]).sort(), middle = seen[seen.length >> 1] || 1;
    return heights.map((height) => height / middle);
  }
  // What each cell is shaded by: its count as a row of usual height would have it, whole where counts are; what was dropped by its count.
  function weighedIn(map, axis) {
    const { rows, columns, counts, dropped, weighed } = map, heights = heightsOf(map, axis), out = new Float64Array(columns * (rows + 1));
    for (let column = 0, at = 0, to = 0; column < columns; column++) {
      for (let row = 0; row < rows; row++, at++, to++) {
        if (counts[at]) out[to] = weighed ? counts[at] / heights[row] : Math.max(1, Math.round(counts[at] / heights[row]));
      }
      out[to++] = dropped[column];
    }
    return out;
  }
  // The distinct values above zero, ascending, how many there are of each, and of what is whole and not too large its place among them.
  function distinct(values) {
    let most = 0, isWhole = true;
    for (let at = 0; at < values.length; at++) {
      if (values[at] > most) most = values[at];
      if (values[at] % 1) isWhole = false;
    }
    const each = [], cells = [];
    if (isWhole && most < COUNTED) {
      const times = new Uint32Array(most + 1), place = new Uint32Array(most + 1);
      for (let at = 0; at < values.length; at++) times[values[at]]++;
      for (let value = 1; value <= most; value++) {
        if (!times[value]) continue;
        place[value] = each.push(value) - 1;
        cells.push(times[value]);
      }
      return { each, cells, placeOf: (value) => place[value] };
    }
    const sorted = values.filter((value) => value > 0).sort();
    for (let at = 0; at < sorted.length; at++) {
      if (at && sorted[at] === sorted[at - 1]) cells[cells.length - 1]++;
      else cells.push((each.push(sorted[at]), 1));
    }
    const place = new Map(each.map((value, at) => [value, at]));
    return { each, cells, placeOf: (value) => place.get(value) };
  }
  // Whether at least half of the cells hold the same value: ranks would then tell apart what is nearly alike.
  const isEven = (cells) => 2 * Math.max(0, ...cells) >= cells.reduce((sum, n) => sum + n, 0);
  // The value that all but a share of the cells do not exceed.
  function reached({ each, cells }, share) {
    let left = share * cells.reduce((sum, n) => sum + n, 0), at = each.length - 1;
    while (at > 0 && (left -= cells[at]) >= 0) at--;
    return each[at];
  }
  const whole = (value) => (value < 10 && value % 1 ? String(Number(value.toPrecision(2))) : value < 1e4 ? Math.round(value).toLocaleString("en")
    : ((unit) => `${Number((value / 10 ** unit).toPrecision(3))}${{ 3: "k", 6: "M", 9: "G" }[unit]}`)(value < 999500 ? 3 : value < 999.5e6 ? 6 : 9));
  const percent = (share) => `${Number((100 * share).toPrecision(2))} %`;
  // Labels of a legend at the shades of some values, those that are alike once; Vega leaves out what would touch another.
  function labelled(values, shadeOf, textOf) {
    const all = values.map((value, at) => [shadeOf(value), textOf(value, at)]), [, most] = all.at(-1);
    const kept = all.filter(([, text], at) => (text === most ? at === all.length - 1 : all.findIndex(([, other]) => other === text) === at));
    return { stops: kept.map(([stop]) => stop), texts: kept.map(([, text]) => text) };
  }
  const steps = (low, high, labels = LABELS) => Array.from({ length: labels }, (_, at) => low + ((high - low) * at) / (labels - 1));
  function byRank({ each, placeOf }) {
    const last = Math.max(1, each.length - 1);
    const values = steps(0, each.length - 1).map((at) => each[Math.round(at)]);
    return { shadeOf: (value) => placeOf(value) / last, values, title: `samples, by rank of ${each.length} counts` };
  }
  function byPart({ each }, root, title) {
    const most = each.at(-1), curve = root ? Math.sqrt : (part) => part;
    const values = steps(0, 1).map((part) => Math.max(each[0], most * (root ? part * part : part)));
    return { shadeOf: (value) => (most > each[0] ? curve(Math.min(1, value / most)) : FAINT), values: values.map((value) => (value > 2 ? Math.round(value) : value < 1 ? value : Math.floor(value))), title };
  }
  // The least and the most samples that a cell has.
  function rangeOf({ counts, dropped }) {
    let [least, most] = [Infinity, 0];
    for (const values of [counts, dropped]) {
      for (let at = 0; at < values.length; at++) {
        if (values[at] > most) most = values[at];
        if (values[at] > 0 && values[at] < least) least = values[at];
      }
    }
    return [least, most];
  }
  const EVEN = "samples, in proportion";
  // How a map is shaded: the function of a cell's value, what its legend says (stops from 0 to 1, texts, title), and the values.
  function scaleOf(map, axis, shading) {
    const values = weighedIn(map, axis), { rows, columns, n } = map;
    if (shading === "column") {
      for (let column = 0, at = 0; column < columns; column++) for (let row = 0; row <= rows; row++) values[at++] /= n[column] || 1;
    }
    const found = distinct(values), { each, cells } = found;
    if (!each.length) return { values, shadeOf: () => 0, stops: [], texts: [], title: "" };
    if (shading === "column") {
      const top = reached(found, 1 / RARE), most = each.at(-1);
      const text = (value) => (value === top && most > top ? `≥ ${percent(value)}` : percent(value));
      const shadeOf = (value) => Math.min(1, value / top);
      return { values, shadeOf, ...labelled(steps(each[0], top, LABELS - 1), shadeOf, text), title: "share of its window" };
    }
    const many = `${EVEN}: at least half of the cells hold ${whole(each[cells.indexOf(Math.max(...cells))])}`;
    const { shadeOf, values: shown, title } = shading === "rank" && !isEven(cells) ? byRank(found)
      : byPart(found, shading === "exponent", shading === "exponent" ? "samples, by square root" : shading === "rank" ? many : EVEN);
    const [least, most] = rangeOf(map);
    const textOf = (value, at) => whole(at === 0 ? least : at === shown.length - 1 ? most : Math.min(most, Math.max(least, value)));
    return { values, shadeOf, ...labelled(shown, shadeOf, textOf), title };
  }
  // The shade of each cell, a column after the other, of each column what was dropped last; and the legend.
  function shadesOf(map, axis, shading) {
    const { values, shadeOf, stops, texts, title } = scaleOf(map, axis, shading), shade = new Uint8Array(values.length);
    for (let at = 0; at < values.length; at++) if (values[at]) shade[at] = 1 + Math.round((DARKEST - 1) * shadeOf(values[at]));
    return { shade, stops, texts, title };
  }

  // ---- Colours.
  const channels = (color) => [1, 3, 5].map((at) => parseInt(color.slice(at, at + 2), 16));
  // The colour at a place from 0 to 1 among those of a list, evenly between them, as red, green and blue.
  function colorOf(colors) {
    const stops = colors.map(channels);
    return (share) => {
      const place = Math.min(1, Math.max(0, share)) * (stops.length - 1), at = Math.min(stops.length - 2, Math.floor(place)), part = place - at;
      return stops[at].map((value, channel) => value * (1 - part) + stops[at + 1][channel] * part);
    };
  }
  // The colours of the shades 0 to 255, as red, green and blue.
  function tableOf(colors) {
    const color = colorOf(colors), out = new Uint8Array(3 * (DARKEST + 1));
    for (let shade = 1; shade <= DARKEST; shade++) out.set(color((shade - 1) / (DARKEST - 1)).map(Math.round), 3 * shade);
    return out;
  }
  // The colours of a hue from faint to strong: from that of the panel through its own towards that of the ink.
  function rampOf(hue, { panel, ink }) {
    const mix = (from, to, part) => `#${channels(from).map((value, at) => Math.round(value * (1 - part) + channels(to)[at] * part).toString(16).padStart(2, "0")).join("")}`;
    return [mix(panel, hue, 0.35), mix(panel, hue, 0.7), hue, mix(hue, ink, 0.16), mix(hue, ink, 0.34)];
  }
  // So much of a cell's colour is that of what is highlighted: a part can be told from none and from all.
  const blend = (lit, all) => (lit <= 0 ? 0 : lit >= all * (1 - 1e-9) ? 1 : 0.15 + 0.7 * (lit / all));
  return { MOST_HUES, heightsOf, weighedIn, distinct, isEven, whole, shadesOf, channels, colorOf, tableOf, rampOf, blend };
})();
if (typeof module !== "undefined") module.exports = shades;
