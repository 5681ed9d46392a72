"use strict";
// The menu of each panel: how it is read, a link to what is shown, its numbers as csv, its picture as png. Follows draw.js in the same
// script. Times are ms, latencies ns.
const menus = (() => {
  const { now, find, every, dated, when } = chosen, { make } = charting, { viewStep, linesOf } = tables;
  const RENAMED = { label: "series", v: "latency_ns", lower: "lower_ns", upper: "upper_ns", c: "count", n: "samples" };
  const WHOLE = 1e6; // ns in a ms

  // ---- csv.
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const stamp = (ms) => String(BigInt(Math.round(ms * 1000)) * 1000n); // finer than a ms, and exact
  // The rows of a chart's table as csv, every number in full.
  function csvOf(rows, run, renamed = RENAMED) {
    const keys = [...new Set(rows.flatMap(Object.keys))].filter((key) => !["t", "t2", "run"].includes(key) && typeof rows.find((row) => key in row)[key] !== "object");
    const timed = rows.some((row) => "t" in row), head = [...(timed ? ["run", "start_ns", "end_ns"] : ["run"]), ...keys.map((key) => renamed[key] ?? key)];
    const lines = rows.map((row) => [
      row.run ?? run, ...(timed ? [stamp(row.t), stamp(row.t2 ?? row.t)] : []), ...keys.map((key) => String(row[key] ?? "")),
    ].map(quoted).join(","));
    return `${[head.join(","), ...lines].join("\r\n")}\r\n`;
  }
  function rowsOf(name) {
    const { cells, points = [], thin = [] } = drawing.tablesOf(name), own = Object.assign({ heatmap: panels.map.rows }, ...panels.sections.map(({ csv }) => csv))[name];
    return own?.() ?? cells ?? [...points.map((row) => ({ ...row, too_few: 0 })), ...thin.map((row) => ({ ...row, too_few: 1 }))];
  }
  const renamedOf = (name) => (name === "rate" ? { ...RENAMED, v: "rate" } : name.startsWith("metric") ? { ...RENAMED, v: "value" } : RENAMED);

  // ---- png.
  function pictureOf(name) {
    const chart = find(name), canvases = [...chart.querySelectorAll("canvas")], box = chart.getBoundingClientRect(), HEAD = 34;
    const scale = Math.max(1, canvases[0].width / canvases[0].getBoundingClientRect().width), style = getComputedStyle(document.documentElement);
    const picture = make("canvas", { width: Math.round(box.width * scale), height: Math.round((box.height + HEAD) * scale) });
    const pen = picture.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = style.getPropertyValue("--panel");
    pen.fillRect(0, 0, box.width, box.height + HEAD);
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.font = "14px system-ui, sans-serif";
    pen.fillText([`${chart.dataset.title}: ${now.run.name}`, find("view-says")?.textContent].filter(Boolean).join(", "), 8, 21, box.width - 16);
    for (const canvas of canvases) {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      pen.drawImage(canvas, left - box.left, top - box.top + HEAD, width, height);
    }
    return new Promise((done) => picture.toBlob(done, "image/png"));
  }

  // ---- Menus.
  function save(content, file) {
    const link = make("a", { href: URL.createObjectURL(content), download: file });
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
  }
  // Over http there is no clipboard but the old way.
  async function copied(text) {
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const box = make("textarea", { value: text });
      document.body.append(box);
      box.select();
      document.execCommand("copy");
      box.remove();
    }
  }
  const fileOf = (name, ending) => `${`${now.run.label}-${name}`.replace(/[^\w.-]+/g, "-")}.${ending}`;
  const ACTS = [
    ["Copy link", async (name, said) => { await copied(location.href); said.textContent = "Copied."; }],
    ["csv", (name) => save(new Blob([csvOf(rowsOf(name), now.run.name, renamedOf(name))], { type: "text/csv" }), fileOf(name, "csv"))],
    ["png", async (name) => save(await pictureOf(name), fileOf(name, "png"))],
  ];
  function menuOf(panel, chart) {
    const said = make("span", { role: "status" }), buttons = ACTS.map(([text, act]) => make("button", { type: "button", onclick: () => act(chart.id, said) }, text));
    const summary = make("summary", { ariaLabel: `How to read it, link, csv and png: ${chart.dataset.title}` }, "⋯"), hints = [...panel.children].filter((child) => child.matches(".hint"));
    return make("details", { className: "tools" }, summary, make("div", { className: "menu" }, ...hints, make("div", { className: "row" }, ...buttons, said)));
  }
  function listen() {
    every(".panel > header", (header) => {
      const panel = header.parentElement, chart = panel.querySelector(".chart");
      if (chart) header.append(menuOf(panel, chart));
    });
    document.addEventListener("click", ({ target }) => every(".tools[open]", (menu) => menu.contains(target) || menu.removeAttribute("open")));
    document.addEventListener("keydown", ({ key }) => key === "Escape" && every(".tools[open]", (menu) => menu.removeAttribute("open")));
  }
  // What all panels over time show: how wide a window is, and of which range.
  function view() {
    const says = find("view-says"), { run, state } = now;
    if (!says || !run.levels.cluster) return;
    const [from, to] = tables.windowsOf(run.levels.cluster).map((window) => run.levels.cluster.origin + window * run.levels.cluster.step);
    const day = dated() || run.relative || state.clock === "elapsed" ? "" : `, ${new Date(from - chosen.zero()).toISOString().slice(0, 10)}`;
    says.textContent = `${when({ t: from, t2: to })}${day}, windows of ${viewStep(linesOf()) / 1000} s`;
  }
  return { listen, view, csvOf, rowsOf };
})();
