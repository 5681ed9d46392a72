"use strict";
// What every page's script begins with: the colours as Vega takes them, and what is said where charts cannot be drawn.
function themeOf(root) {
  const APART = 6, END = innerWidth < 640 ? 24 : 0; // px: labels that are nearer to one another are left out; so near to an end of its axis one stays within it, where there is no room beyond
  const value = (name) => getComputedStyle(root).getPropertyValue(`--${name}`).trim();
  const list = (name) => value(name).split(",").map((color) => color.trim());
  const [ink, soft, line] = ["ink", "soft", "line"].map(value);
  const text = { labelColor: soft, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 };
  const axis = { ...text, domainColor: line, tickColor: line, gridColor: line, labelPadding: 6, titlePadding: 8 };
  const legend = { ...text, labelColor: ink, gradientStrokeWidth: 0, labelSeparation: APART };
  const range = { category: list("series") }, font = "system-ui, sans-serif";
  const axisBottom = { labelSeparation: APART, labelFlush: END }, axisLeft = { labelOverlap: true };
  const config = { background: "transparent", font, axis, axisBottom, axisLeft, legend, title: { color: ink }, range };
  const verdicts = { slower: value("slower"), faster: value("faster"), unsure: value("unsure"), ink };
  return { config, colors: { ramp: list("ramp"), rainbow: list("rainbow"), hues: list("hues"), panel: value("panel"), other: list("other"), hot: list("hot"), line: value("mark"), ...verdicts } };
}
function failed(error) {
  const notice = document.getElementById("failed"), can = "A current Firefox, Chrome, Edge or Safari can.";
  notice.textContent = `The charts cannot be drawn here (${error.message}). ${can}`;
  notice.hidden = false;
}
