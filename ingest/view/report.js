"use strict";
// Puts the tables into the specs, draws the views, and keeps the controls, the views and the read-out in step.
(() => {
  const views = {};
  const tailboard = (window.tailboard = { views, ready: null });
  const root = document.documentElement;
  const find = (id) => document.getElementById(id);
  const renderers = { percentiles: "svg" };
  const drawn = {};
  let content, state;

  async function unpacked() {
    const packed = Uint8Array.from(atob(find("data").textContent), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
    return new Response(stream).json();
  }

  function rows(columns) {
    const names = Object.keys(columns);
    return columns[names[0]].map((_, at) => {
      const row = {};
      for (const name of names) row[name] = columns[name][at];
      return row;
    });
  }

  // The same holes that ingest.view.vega.with_values fills.
  function filled(spec) {
    const hole = (entry) => Object.keys(entry).length === 1;
    return {
      ...spec,
      data: spec.data.map((entry) => (hole(entry) ? { ...entry, values: rows(content.tables[entry.name]) } : entry)),
      signals: spec.signals.map((signal) => (signal.name in state ? { ...signal, value: state[signal.name] } : signal)),
    };
  }

  function theme() {
    const style = getComputedStyle(root);
    const value = (name) => style.getPropertyValue(`--${name}`).trim();
    const list = (name) => value(name).split(",").map((color) => color.trim());
    const [ink, soft, line] = [value("ink"), value("soft"), value("line")];
    const text = { labelColor: soft, titleColor: soft, labelFontSize: 12, titleFontSize: 12, titleFontWeight: 400 };
    return {
      background: "transparent",
      font: "system-ui, sans-serif",
      axis: { ...text, domainColor: line, tickColor: line, gridColor: line, labelPadding: 6, titlePadding: 10 },
      legend: { ...text, labelColor: ink, titlePadding: 6, gradientStrokeWidth: 0, offset: 10 },
      title: { color: ink, fontSize: 13, fontWeight: 600, subtitleColor: soft, subtitleFontSize: 12, subtitlePadding: 4 },
      range: { category: list("series"), heatmap: { scheme: list("ramp") } },
    };
  }

  async function draw() {
    const config = theme();
    for (const [name, spec] of Object.entries(content.specs)) {
      drawn[name]?.finalize();
      drawn[name] = await vegaEmbed(find(name), filled(spec), {
        mode: "vega",
        ast: true, // the interpreter: the page's policy has no unsafe-eval
        actions: false,
        renderer: renderers[name] ?? "canvas",
        defaultStyle: false,
        config,
        tooltip: { disableDefaultStyle: true },
      });
      views[name] = drawn[name].view;
      await fit(name);
    }
    readOut();
  }

  // Twice, as the rows of the legend depend on the width, and the title's place on the rows of the legend.
  async function fit(name) {
    const view = await views[name].width(find(name).clientWidth || content.specs[name].width).runAsync();
    await view.resize().runAsync();
  }

  function latency(ns) {
    const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find(([least]) => ns >= least) ?? [1, "ns"];
    return `${Number((ns / scale).toPrecision(4))} ${unit}`;
  }

  function readOut() {
    const whole = views.percentiles.data("whole");
    const found = new Map(whole.map((row) => [row.group, (row.open ? "≥ " : "") + latency(row.v)]));
    const color = views.percentiles.scale("color");
    const parts = content.groups.map((group) => {
      const [part, dot, value] = ["span", "i", "b"].map((tag) => document.createElement(tag));
      dot.style.background = color(group);
      value.textContent = found.get(group) ?? "too few samples";
      part.append(dot, `${group} `, value);
      return part;
    });
    const words = `p${state.percentile} of the whole range`;
    find("readout").replaceChildren(`${words}:`, ...parts);
    find("percentile").setAttribute("aria-valuetext", `${words}: ${parts.map((part) => part.textContent).join(", ")}`);
    for (const button of document.querySelectorAll("[data-percentile]")) {
      button.setAttribute("aria-pressed", String(Number(button.dataset.percentile) === state.percentile));
    }
  }

  async function apply() {
    for (const [name, view] of Object.entries(views)) {
      for (const signal of content.specs[name].signals) {
        if (signal.name in state) view.signal(signal.name, state[signal.name]);
      }
      await view.runAsync();
    }
    readOut();
  }

  function set(change) {
    Object.assign(state, change);
    tailboard.ready = tailboard.ready.then(apply);
  }

  function choose(wanted) {
    const percentile = Math.min(99.99, Math.max(50, Math.round(100 * wanted) / 100)) || state.percentile;
    find("percentile").value = find("exact").value = percentile;
    set({ percentile });
  }

  function listen() {
    find("percentile").addEventListener("input", (event) => choose(Number(event.target.value)));
    find("exact").addEventListener("change", (event) => choose(Number(event.target.value || NaN)));
    for (const button of document.querySelectorAll("[data-percentile]")) {
      button.addEventListener("click", () => choose(Number(button.dataset.percentile)));
    }
    for (const control of document.querySelectorAll("[name=clock], [name=shading], [name=series]")) {
      control.addEventListener("change", () => set({ [control.name]: control.value }));
    }
    const redraw = () => (tailboard.ready = tailboard.ready.then(draw));
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
    addEventListener("beforeprint", () => { root.classList.add("print"); redraw(); });
    addEventListener("afterprint", () => { root.classList.remove("print"); redraw(); });
    const resized = new ResizeObserver((entries) => {
      for (const { target } of entries) tailboard.ready = tailboard.ready.then(() => fit(target.id));
    });
    for (const name of Object.keys(views)) resized.observe(find(name));
  }

  async function start() {
    content = await unpacked();
    state = content.state;
    await draw();
  }

  tailboard.ready = start().then(listen).catch((error) => {
    find("failed").textContent = `The charts cannot be drawn here (${error.message}). A current Firefox, Chrome, Edge or Safari can.`;
    find("failed").hidden = false;
  });
})();
