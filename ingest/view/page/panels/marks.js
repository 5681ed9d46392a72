// Marks in the report: a table of those in view; the panels draw them by themselves. See marks.py.
const marks = (() => {
  // The marks in a range of epoch ms, in time order; of more than `most` those without an end, then the longest.
  function inView(all, [from, to], most) {
    const ours = all.filter((mark) => mark.t <= to && (mark.t2 ?? mark.t) >= from);
    const lasts = ({ t, t2 }) => (t2 === undefined ? Infinity : t2 - t);
    const longest = ours.length > most ? [...ours].sort((a, b) => lasts(b) - lasts(a) || a.t - b.t).slice(0, most) : ours;
    return { count: ours.length, shown: [...longest].sort((a, b) => a.t - b.t) };
  }

  tailboard.sections.push(({ now, find, when, latency, number, isOurs }) => ({
    panels: {
      marks() {
        const { run, state, content } = now(), { most } = content.sections.marks;
        const place = (seconds, none) => (seconds === "" ? none : run.start + 1000 * Number(seconds));
        const range = [place(state.from, -Infinity), place(state.to, Infinity)];
        const { count, shown } = inView(content.marks.filter(isOurs), range, most);
        const rows = shown.map((mark) => [when(mark), mark.t2 === undefined ? "" : latency((mark.t2 - mark.t) * 1e6), mark.text]);
        find("marks-rows").replaceChildren(...rows.map((cells) => charting.rowOf(cells, () => true)));
        const more = count > shown.length ? `; the ${number(shown.length)} that lasted longest are listed` : "";
        find("marks-says").textContent = `${number(count)} marks in view${more}.`;
        return {};
      },
    },
  }));
  return { inView };
})();
if (typeof module !== "undefined") module.exports = marks;
