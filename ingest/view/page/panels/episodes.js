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
  function chosen(all, { run, state }) {
    const place = (seconds, none) => (seconds === "" ? none : run.start + 1000 * Number(seconds));
    const from = place(state.from, -Infinity), to = place(state.to, Infinity);
    const fits = (own, wanted) => !own || !wanted || own === wanted;
    return all.filter((episode) => episode.t < to && episode.t2 > from && fits(episode.kind, state.kind) && fits(episode.host, state.host) && fits(episode.op, state.op));
  }

  tailboard.sections.push(({ now, find, when, isOurs }) => {
    let view = null;
    const shownRows = () => {
      const page = now();
      return chosen((page.content.sections.episodes ?? []).filter(isOurs), page).map((episode) => ({ ...episode, when: when(episode) }));
    };
    const bands = () => view?.data("episodes", inLanes(shownRows()));
    return {
      panels: {
        episodes() {
          const rows = shownRows().map((episode) => charting.rowOf(CELLS.map((name) => episode[name]), (at) => !NUMBERS.includes(CELLS[at])));
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
