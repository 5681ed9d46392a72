"use strict";
// What every page does with its charts: Vega draws them, those in sight first, and anew in another size, in other colours and on
// paper. Follows theme.js in the same script.
const charting = (() => {
  const NARROW = 640; // px
  const find = (id) => document.getElementById(id);
  const every = (selector, act) => document.querySelectorAll(selector).forEach(act);
  // An element with what is set of it (of objects, such as style and dataset, their entries) and what is in it.
  function make(tag, set = {}, ...content) {
    const element = document.createElement(tag);
    for (const [name, value] of Object.entries(set)) typeof value === "object" ? Object.assign(element[name], value) : (element[name] = value);
    element.append(...content);
    return element;
  }
  // A row of a table, cell by cell; those of `left` are words.
  const rowOf = (cells, left = () => false) => make("tr", {}, ...cells.map((cell, at) => make("td", left(at) ? { className: "left" } : {}, cell)));
  const dotOf = (background) => make("i", { style: { background } });

  // Fixed room for axes: a layout that fits itself would draw all twice, and axes of charts below one another would not be in line.
  function roomOf(element, high, top, bottom = 46) {
    const wide = element.clientWidth || 600, left = wide < NARROW ? 80 : 132;
    element.style.height = `${high + top + bottom}px`;
    return { fixed: { autosize: "none", padding: { left, right: 8, top, bottom } }, size: [wide - left - 8, high] };
  }
  // Pictures in a grid lay themselves out.
  const fittedRoom = (element, spec) => ({ fixed: {}, size: [element.clientWidth || 600, spec.height] });
  // Draws a spec in its room, with tables for the data that it leaves open and values for its signals.
  function embedded(element, spec, tables, values, { fixed, size: [width, height] }, config, tooltip) {
    const hole = (entry) => entry.name in tables && !entry.source, given = (signal) => signal.name in values && !signal.update;
    const data = spec.data.map((entry) => (hole(entry) ? { ...entry, values: tables[entry.name] } : entry));
    const signals = spec.signals.map((signal) => (given(signal) ? { ...signal, value: values[signal.name] } : signal));
    const how = { mode: "vega", ast: true, actions: false, renderer: "canvas", defaultStyle: false, config, tooltip };
    return vegaEmbed(element, { ...spec, ...fixed, width, height, data, signals }, how); // ast: the page's policy has no unsafe-eval
  }
  // What a chart is to who does not see it: Vega has set words of its own.
  function described(element, says) {
    element.setAttribute("role", "img");
    element.setAttribute("aria-label", `${element.dataset.title}. ${says}`);
    element.removeAttribute("aria-roledescription");
  }
  const frame = () => new Promise((done) => [requestAnimationFrame(done), setTimeout(done, 50)]);
  // Draws what is dirty until nothing is, by name, those in sight first from the top down; what changes meanwhile is drawn in the same go.
  async function drained(dirty, draw) {
    const away = (name) => ((box) => (box.bottom > 0 && box.top < innerHeight ? box.top : Infinity))(find(name).getBoundingClientRect());
    while (dirty.size) {
      const name = [...dirty].map((each) => [away(each), each]).reduce((first, each) => (each[0] < first[0] ? each : first))[1];
      dirty.delete(name);
      await draw(name);
    }
  }
  // Has charts drawn anew: all of them in other colours and on paper, which cannot be unfolded; one that `isDrawn` in another width.
  function listen({ refresh, redraw, isDrawn, unfold }) {
    const { classList } = document.documentElement;
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("beforeprint", () => { classList.add("print"); unfold(true); redraw(); });
    addEventListener("afterprint", () => { classList.remove("print"); unfold(false); redraw(); });
    const sizes = new Map(), resized = new ResizeObserver((entries) => {
      for (const { target: { id, clientWidth } } of entries) {
        if (isDrawn(id) && sizes.get(id) !== clientWidth) refresh(id);
        sizes.set(id, clientWidth);
      }
    });
    every(".chart", (chart) => (sizes.set(chart.id, chart.clientWidth), resized.observe(chart)));
  }
  // ---- Panels below the first screen are a line each until they are opened; `open` lists the names of those that are.
  const folds = new Map();
  function foldable(toggled) {
    every(".panels > .panel", (panel) => {
      const name = panel.getAttribute("aria-labelledby").slice(2), title = panel.querySelector("h2"), onclick = () => toggled(name, panel);
      title.before(make("button", { type: "button", className: "unfold", onclick }));
      Object.assign(title, { onclick });
      folds.set(name, panel);
    });
  }
  function fold(isOpen) {
    for (const [name, panel] of folds) {
      panel.classList.toggle("folded", !isOpen(name));
      Object.assign(panel.querySelector(".unfold"), { ariaExpanded: String(isOpen(name)), ariaLabel: panel.querySelector("h2").textContent });
    }
  }
  const listed = (open) => open.split(",").filter(Boolean);
  const otherwise = (open, name) => (listed(open).includes(name) ? listed(open).filter((each) => each !== name) : [...listed(open), name]).join(",");
  return { foldable, fold, listed, otherwise, NARROW, find, every, make, rowOf, dotOf, roomOf, fittedRoom, embedded, described, frame, drained, listen };
})();
