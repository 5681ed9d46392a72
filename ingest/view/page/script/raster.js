"use strict";
// The picture of a heat map: one pixel a column, so many as the axis is high up and down, drawn in one go and stretched over the time axis.
// Follows shades.js in the same script. What Vega draws over it has the same axes.
const raster = (() => {
  const { tableOf, blend, shadesOf } = shades;

  // Where latencies lie on the axis from the top of a picture on, as the scale of the spec has them (symlog).
  function heightOf([low, high], constant, height) {
    const symlog = (v) => Math.sign(v) * Math.log1p(Math.abs(v) / constant), [bottom, top] = [low, high].map(symlog);
    return (v) => height * (1 - (symlog(v) - bottom) / (top - bottom));
  }
  // Lines over a plot that is 1 wide and 1 high, of windows in order: of each label a path of the levels, and one of what joins neighbours.
  function pathsOf(points, [begin, end], at) {
    const lines = new Map(), x = (t) => ((t - begin) / (end - begin)).toFixed(5), y = (v) => at(v).toFixed(5);
    for (const { label, t, t2, v } of points) {
      const line = lines.get(label) ?? { label, levels: "", joins: "M0,0" };
      if (line.t2 === t && line.v !== v) line.joins += `M${x(t)},${y(line.v)}V${y(v)}`;
      lines.set(label, Object.assign(line, { t2, v, levels: `${line.levels}M${x(t)},${y(v)}H${x(t2)}` }));
    }
    return [...lines.values()];
  }
  // Draws rows of cells (the first is the lowest) between pixels: tops[row + 1] to below tops[row]. A row that is less than a pixel high has what
  // its neighbours leave free.
  function fill(context, { columns, stride, first, rows }, tops, colorOf) {
    const { width, height } = context.canvas, picture = context.createImageData(width, height), pixels = new Uint32Array(picture.data.buffer);
    const line = new Uint32Array(columns), thin = [];
    for (let row = 0; row < rows; row++) {
      const [top, bottom] = [Math.max(0, tops[row + 1]), Math.min(height, tops[row])];
      if (bottom < 0 || top > height) continue;
      if (top >= bottom) thin.push([row, Math.min(top, height - 1)]);
      for (let column = 0; column < columns; column++) line[column] = colorOf(column * stride + first + row, column, first + row);
      for (let y = top; y < bottom; y++) pixels.set(line, y * width);
    }
    for (const [row, y] of thin) {
      for (let column = 0; column < columns; column++) pixels[y * width + column] ||= colorOf(column * stride + first + row, column, first + row);
    }
    context.putImageData(picture, 0, 0);
  }
  function canvasOf(width, height) {
    const canvas = charting.make("canvas", { width: Math.max(1, width), height: Math.max(1, height) });
    return canvas.getContext("2d", { willReadFrequently: true });
  }
  // The color of each cell, as a canvas holds it: that of its shade, mixed with that of the highlight that has most of it.
  function colorsOf(map, shade, base, hues) {
    const { rows, counts, dropped, lit } = map, table = tableOf(base), warm = hues.map(tableOf);
    const opaque = (red, green, blue) => (0xff000000 | (blue << 16) | (green << 8) | red) >>> 0;
    const plain = Uint32Array.from({ length: 256 }, (_, at) => (at ? opaque(table[3 * at], table[3 * at + 1], table[3 * at + 2]) : 0));
    if (!lit.length) return (at) => plain[shade[at]];
    const of = (part, column, row) => (row === rows ? part.dropped[column] : part.counts[column * rows + row]);
    return (at, column, row) => {
      if (!shade[at]) return 0;
      const parts = lit.map((part) => of(part, column, row));
      if (!parts.some(Boolean)) return plain[shade[at]];
      const hue = parts.indexOf(Math.max(...parts)), share = blend(parts[hue], row === rows ? dropped[column] : counts[column * rows + row]), place = 3 * shade[at];
      const mixed = [0, 1, 2].map((channel) => share * warm[hue][place + channel] + (1 - share) * table[place + channel]);
      return opaque(...mixed.map(Math.round));
    };
  }
  // The pictures of a map, its rows and what was dropped above them, and the legend of its shades. `axis` is log or linear, `domain` its
  // range in ns, `constant` that of its scale, `height` so many pixels.
  function drawn(map, { axis, shading, domain, constant, height, base, hues }) {
    const { columns, rows, edges } = map, { shade, ...legend } = shadesOf(map, axis, shading), stride = rows + 1;
    const colorOf = colorsOf(map, shade, base, hues), at = heightOf(domain, constant, height);
    const inside = canvasOf(columns, height), outside = canvasOf(columns, 1);
    if (columns) {
      fill(inside, { columns, stride, first: 0, rows }, Int32Array.from(edges, (edge) => Math.round(at(edge))), colorOf);
      fill(outside, { columns, stride, first: rows, rows: 1 }, [1, 0], colorOf);
    }
    return { image: inside.canvas, above: outside.canvas, shade, legend };
  }
  return { heightOf, pathsOf, colorsOf, drawn };
})();
if (typeof module !== "undefined") module.exports = raster;
