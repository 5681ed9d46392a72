"use strict";
// Legends of lines: buttons that switch series on and off, beside a chart or, where it is narrow, below. Follows overlay.js in the
// same script.
const legends = (() => {
  const { page, now, find } = chosen, { make, dotOf } = charting;
  const MOST = 60;

  const offOf = () => new Set(now.state.off ? JSON.parse(now.state.off) : []);
  function toggled(label) {
    const off = offOf();
    if (!off.delete(label)) off.add(label);
    controls.set({ off: off.size ? JSON.stringify([...off].sort()) : "" });
  }
  function button(label, color) {
    const entry = make("button", { type: "button", title: label, dataset: { series: label, lit: `${now.state.by}=${label}` } }, dotOf(color), label);
    entry.addEventListener("click", () => toggled(label));
    return entry;
  }
  // Called once a chart is drawn: its series, in the colours that it gave them.
  function drawn(name, series) {
    const plot = find(name).parentElement, view = page.views[name];
    let legend = plot.querySelector(".legend");
    if (!series) return void legend?.remove();
    legend ??= plot.appendChild(make("div", { className: "legend", role: "group", ariaLabel: `Series of: ${find(name).dataset.title}` }));
    const color = view.scale("color"), shown = series.slice(0, MOST), known = JSON.stringify([now.state.by, shown.map((label) => [label, color(label)])]);
    if (legend.dataset.is !== known) legend.replaceChildren(...shown.map((label) => button(label, color(label))));
    legend.dataset.is = known;
    const off = offOf();
    for (const entry of legend.children) entry.setAttribute("aria-pressed", String(!off.has(entry.dataset.series)));
    const beside = view.signal("main") < view.width();
    legend.classList.toggle("beside", beside);
    Object.assign(legend.style, beside ? { left: `${view.padding().left + view.signal("main") + 10}px`, maxHeight: `${find(name).clientHeight}px` } : { left: "", maxHeight: "" });
  }
  return { drawn };
})();
