// Marks in the report: a table of those in view; the panels draw them by themselves. See marks.py.
const marks = (() => {
  // The marks of a run in a range of epoch ms, in time order; of more than `most` those without an end, then the longest.
  function inView(all, run, alone, [from, to], most) {
    const ours = all.filter((one) => (alone || one.run === run) && one.t <= to && (one.t2 ?? one.t) >= from);
    const lasts = ({ t, t2 }) => (t2 === undefined ? Infinity : t2 - t);
    const longest = ours.length > most ? [...ours].sort((one, other) => lasts(other) - lasts(one) || one.t - other.t).slice(0, most) : ours;
    return { count: ours.length, shown: [...longest].sort((one, other) => one.t - other.t) };
  }

  tailboard.sections.push(({ now, find, when, latency, number }) => ({
    panels: {
      marks() {
        const { run, state, content } = now(), { most } = content.sections.marks;
        const place = (seconds, none) => (seconds === "" ? none : run.start + 1000 * Number(seconds));
        const range = [place(state.from, -Infinity), place(state.to, Infinity)];
        const { count, shown } = inView(content.marks, run.name, content.runs.length === 1, range, most);
        find("marks-rows").replaceChildren(...shown.map((one) => {
          const line = document.createElement("tr"), cells = [when(one), one.t2 === undefined ? "" : latency((one.t2 - one.t) * 1e6), one.text];
          for (const text of cells) {
            const cell = line.insertCell();
            cell.textContent = text;
            cell.className = "left";
          }
          return line;
        }));
        const more = count > shown.length ? `; the ${number(shown.length)} that lasted longest are listed` : "";
        find("marks-says").textContent = `${number(count)} marks in view${more}.`;
        return {};
      },
    },
  }));
  return { inView };
})();
if (typeof module !== "undefined") module.exports = marks;
