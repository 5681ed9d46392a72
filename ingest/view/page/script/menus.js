"use strict";
// The menu of each panel, on every page: how it is read, a link to what is shown, its numbers as csv, its picture as png. Follows
// charting.js in the same script. Times are ms, latencies ns.
const menus = (() => {
  const { every, make } = charting;
  const RENAMED = { label: "series", v: "latency_ns", lower: "lower_ns", upper: "upper_ns", c: "count", n: "samples" };
  const HEAD = 34; // px above a picture, for its title

  // ---- csv.
  const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  const joined = (rows) => `${rows.map((cells) => cells.map(quoted).join(",")).join("\r\n")}\r\n`;
  const stamp = (ms) => String(BigInt(Math.round(ms * 1000)) * 1000n); // finer than a ms, and exact
  // The rows of a chart's table as csv, every number in full.
  function csvOf(rows, run, otherwise = {}) {
    const keys = [...new Set(rows.flatMap(Object.keys))].filter((key) => !["t", "t2", "run"].includes(key) && typeof rows.find((row) => key in row)[key] !== "object");
    const timed = rows.some((row) => "t" in row), named = keys.map((key) => otherwise[key] ?? RENAMED[key] ?? key);
    const times = (row) => (timed ? [stamp(row.t), stamp(row.t2 ?? row.t)] : []);
    return joined([["run", ...(timed ? ["start_ns", "end_ns"] : []), ...named], ...rows.map((row) => [row.run ?? run, ...times(row), ...keys.map((key) => String(row[key] ?? ""))])]);
  }
  // A table of the page: what its cells hold, which is in full where they show less.
  const csvOfTable = (table) => joined([...table.rows].filter((row) => !row.hidden).map((row) => [...row.cells].map((cell) => String(cell.querySelector("data, a")?.value ?? cell.textContent))));

  // ---- png.
  function pictureOf(chart, headed) {
    const canvases = [...chart.querySelectorAll("canvas")], box = chart.getBoundingClientRect();
    const scale = Math.max(1, canvases[0].width / canvases[0].getBoundingClientRect().width), style = getComputedStyle(document.documentElement);
    const picture = make("canvas", { width: Math.round(box.width * scale), height: Math.round((box.height + HEAD) * scale) });
    const pen = picture.getContext("2d");
    pen.scale(scale, scale);
    pen.fillStyle = style.getPropertyValue("--panel");
    pen.fillRect(0, 0, box.width, box.height + HEAD);
    pen.fillStyle = style.getPropertyValue("--ink");
    pen.font = "14px system-ui, sans-serif";
    pen.fillText(`${chart.dataset.title}: ${headed.filter(Boolean).join(", ")}`, 8, 21, box.width - 16);
    for (const canvas of canvases) {
      const { left, top, width, height } = canvas.getBoundingClientRect();
      pen.drawImage(canvas, left - box.left, top - box.top + HEAD, width, height);
    }
    return new Promise((done) => picture.toBlob(done, "image/png"));
  }

  // ---- Menus.
  function save(content, file) {
    const link = make("a", { href: URL.createObjectURL(content), download: file.replace(/[^\w.-]+/g, "-") });
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
  // `csvOf` gives that of a chart by its id, `named` begins the names of files, `headed` ends the title of pictures. What a panel has as a
  // table is saved as that, unless it has a picture that the page holds more of.
  function listen({ csvOf: ofChart, named, headed, tablesFirst = false }) {
    every(".panel > header", (header) => {
      const panel = header.parentElement, chart = panel.querySelector(".chart"), name = chart?.id ?? header.querySelector("h2").id.slice(2);
      if (!chart && !panel.querySelector("table, #box")) return;
      const said = make("span", { role: "status" }), table = () => (!chart || tablesFirst) && panel.querySelector("table");
      const acts = {
        "Copy link": async () => { await copied(location.href); said.textContent = "Copied."; },
        csv: () => (chart || table() ? save(new Blob([table() ? csvOfTable(table()) : ofChart(name)], { type: "text/csv" }), `${named()}-${name}.csv`) : (said.textContent = "There is no table yet.")),
        ...(chart && { png: async () => save(await pictureOf(chart, headed()), `${named()}-${name}.png`) }),
      };
      const buttons = Object.entries(acts).map(([text, onclick]) => make("button", { type: "button", onclick }, text)), hints = [...panel.children].filter((child) => child.matches(".hint:not([id])"));
      const title = chart?.dataset.title ?? header.querySelector("h2").textContent, summary = make("summary", { ariaLabel: `How to read it, link and files: ${title}` }, "⋯");
      header.append(make("details", { className: "tools" }, summary, make("div", { className: "menu" }, ...hints, make("div", { className: "row" }, ...buttons, said))));
    });
    document.addEventListener("click", ({ target }) => every(".tools[open]", (menu) => menu.contains(target) || menu.removeAttribute("open")));
    document.addEventListener("keydown", ({ key }) => key === "Escape" && every(".tools[open]", (menu) => menu.removeAttribute("open")));
  }
  return { listen, csvOf };
})();
