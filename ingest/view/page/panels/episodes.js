// Episodes in the report: bands behind the percentiles, and a table of those in view; see episodes.py.
const episodes = (() => {
  const CELLS = ["objective", "group", "promise", "when", "lasted", "peak", "samples", "worst", "state"];
  const NUMBERS = ["lasted", "peak", "samples"];

  // The lane of each band, so that names of bands that overlap lie below one another.
  function inLanes(bands) {
    const ends = [];
    return bands.map((band) => {
      const free = ends.findIndex((end) => end <= band.t), lane = free < 0 ? ends.length : free;
      ends[lane] = band.t2;
      return { ...band, lane };
    });
  }

  // The episodes of a run under the filters; one of no certain host or operation is of all.
  function chosen(all, { run, state, content }) {
    const place = (seconds, none) => (seconds === "" ? none : run.start + 1000 * Number(seconds));
    const from = place(state.from, -Infinity), to = place(state.to, Infinity);
    const fits = (own, wanted) => !own || !wanted || own === wanted;
    const ours = ({ run: name }) => content.runs.length === 1 || name === run.name;
    const inView = ({ t, t2 }) => t < to && t2 > from;
    return all.filter((one) => ours(one) && inView(one) && fits(one.kind, state.kind) && fits(one.host, state.host) && fits(one.op, state.op));
  }

  tailboard.sections.push(({ now, find, when }) => {
    let view = null;
    const shownRows = () => {
      const told = now();
      return chosen(told.content.sections.episodes ?? [], told).map((one) => ({ ...one, when: when(one) }));
    };
    const bands = () => view?.data("episodes", inLanes(shownRows()));
    return {
      panels: {
        episodes() {
          const rows = shownRows().map((one) => {
            const line = document.createElement("tr");
            for (const name of CELLS) {
              const cell = line.insertCell();
              cell.textContent = one[name];
              cell.classList.toggle("left", !NUMBERS.includes(name));
            }
            return line;
          });
          find("episodes-rows").replaceChildren(...rows);
          return {};
        },
      },
      opened(name, drawn) {
        if (name !== "percentiles") return;
        view = drawn;
        bands();
        view.runAsync();
      },
      shown: bands,
    };
  });
  return { inLanes, chosen };
})();
if (typeof module !== "undefined") module.exports = episodes;
