// What is chosen on the report's page, and what the page holds. What is not as it was at first stands in the address behind its #.
// Follows numbers.js in the same script. Times are ms, latencies ns.
const chosen = (() => {
  const page = (window.tailboard = Object.assign(tailboard, { views: {}, frames: [], state: null, ready: Promise.resolve() }));
  const now = { content: null, state: null, defaults: null, run: null }; // the data, what is chosen, what it was at first, the run shown
  const WHOLE = { from: "", to: "", least: "", most: "" }, MOST_KEPT = 60, THEME = JSON.stringify("theme");
  const cache = new Map();
  const DAY = 864e5;
  const { latency, atLeast } = words;
  const { find, every } = charting;

  // ---- What was worked out, by what it was made of.
  function memo(key, make) {
    const name = JSON.stringify(key);
    if (!cache.has(name)) cache.set(name, make());
    return cache.get(name);
  }
  const held = (key) => cache.has(JSON.stringify(key));
  const theme = () => memo("theme", () => themeOf(document.documentElement));
  const forgetTheme = () => cache.delete(THEME);
  const forgetData = () => cache.forEach((_, key) => key !== THEME && cache.delete(key));

  // ---- Times and sentences.
  const clockOf = () => (now.run.relative ? "elapsed" : now.state.clock); // a run without a clock has its own seconds alone
  const zero = () => ({ elapsed: now.run.start, local: new Date(now.run.begin).getTimezoneOffset() * 6e4 })[clockOf()] ?? 0;
  const zone = () => (now.state.clock === "local" ? Intl.DateTimeFormat().resolvedOptions().timeZone : "UTC");
  // Dates are said of a run that is longer than a day: times alone would say several of its moments alike.
  const dated = () => now.run.end - now.run.begin > DAY;
  function when({ t, t2 }) {
    const seconds = (ms) => ((ms - now.run.start) / 1000).toFixed(1), both = (shown) => [t, t2 ?? t].map(shown);
    const range = ([begin, end]) => (t2 === undefined ? begin : `${begin} – ${end}`);
    if (clockOf() === "elapsed") return `${range(both(seconds))} s elapsed`;
    const [first, last] = both((ms) => new Date(ms - zero()).toISOString().replace("T", " ").replace(/(\.000)?Z$/, ""));
    const day = dated() ? 0 : 11, end = first.slice(0, 10) === last.slice(0, 10) ? last.slice(11) : last;
    return `${range([first.slice(day), dated() ? end : last.slice(day)])} ${zone()}`;
  }
  // A time as the sentences of the story have it (moment in words.py), in the clock that is chosen.
  function moment(ms) {
    if (clockOf() === "elapsed") return `${((ms - now.run.start) / 1000).toFixed(1)} s`;
    return new Date(100 * Math.round(ms / 100) - zero()).toISOString().slice(ms - now.run.start < DAY ? 11 : 0, 21);
  }
  // A sentence whose times, in UTC, are those of the chosen clock; `exact` are edges that are known better than to a tenth, in ms.
  const MOMENT = /(?:(\d{4}-\d\d-\d\d)T)?(\d\d:\d\d:\d\d\.\d)(?!\d)/g;
  function inClock(sentence, ...exact) {
    return sentence.replace(MOMENT, (_, day, clock) => {
      const said = Date.parse(`${day ?? new Date(now.run.start).toISOString().slice(0, 10)}T${clock}Z`);
      const ms = day || said > now.run.start - 100 ? said : said + DAY;
      return moment(exact.find((edge) => Math.abs(edge - ms) <= 50) ?? ms);
    });
  }
  // `none` is what is said without any points.
  function sayHighestOr(none, points, ...more) {
    const top = points.reduce((most, point) => (point.v > most.v ? point : most), { v: -1 });
    const first = top.v < 0 ? none : `Highest: ${atLeast(top)}, ${top.label ? `${top.label}, ` : ""}${when(top)}.`;
    return [first, ...more].filter(Boolean).join(" ");
  }
  const sayHighest = (points, ...more) => sayHighestOr("Nothing to show.", points, ...more);

  // ---- What is chosen.
  const changes = () => Object.entries(now.state).filter(([key, value]) => value !== now.defaults[key]);
  function change(wanted) {
    const { state } = now;
    if ("run" in wanted) Object.assign(wanted, { from: "", to: "", box: "" });
    Object.assign(state, wanted);
    if (cache.size > MOST_KEPT) cache.clear();
  }
  // What no control can be set to, as an address may hold it, is as it was at first.
  function correct({ name, type, tagName, options }) {
    const { state, defaults } = now;
    if (!(name in state)) return;
    const offered = tagName === "SELECT" ? [...options].map(({ value }) => value)
      : type === "radio" ? [...document.querySelectorAll(`[name=${name}]`)].map(({ value }) => value) : null;
    const inside = name !== "p" || (Number(state.p) >= 50 && Number(state.p) <= 100);
    const able = offered?.includes(state[name]) ?? (type === "checkbox" || (Number.isFinite(Number(state[name])) && inside));
    if (!able) state[name] = defaults[name];
    if (type === "checkbox") state[name] = state[name].split(",").filter((p) => p === "mean" || (Number(p) >= 50 && Number(p) <= 100)).join(",");
  }
  function fromAddress() {
    const { state, defaults } = now;
    const address = Object.fromEntries([...new URLSearchParams(location.hash.slice(1))].filter(([key]) => key in defaults));
    return Object.assign(state, defaults, address);
  }
  // The address of what is chosen, with some of it otherwise.
  function addressOf(wanted = {}) {
    const { state, defaults } = now, next = Object.entries({ ...state, ...wanted });
    return `#${new URLSearchParams(next.filter(([key, value]) => key in defaults && value !== defaults[key]))}`;
  }
  // Every choice is a step that Back goes back by; while a slider is `moving`, all of its way is one.
  let slid = null;
  function toAddress(moving = null) {
    const address = addressOf(), again = moving !== null && moving === slid;
    slid = moving;
    if (address === (location.hash || "#")) return;
    if (again) history.replaceState(null, "", address);
    else history.pushState(null, "", address);
  }
  const settled = () => (slid = null);
  const isOurs = ({ run }) => now.content.runs.length === 1 || run === now.run.name; // a mark or an episode
  const keysOf = () => Object.values(now.run.levels).flatMap((level) => level.keys);
  const chooseRun = () => (now.run = now.content.runs.find(({ name }) => name === now.state.run) ?? now.content.runs[0]);

  // ---- Data.
  async function unpacked() {
    now.content = await tailboard.unpack(find("data").textContent);
    find("data").remove();
    Object.assign(now, { state: {}, defaults: now.content.state });
    Object.assign(page, { content: now.content, state: now.state });
    fromAddress();
  }
  // Other data of the same page: what was chosen stays, and the run that is shown, whichever has the worst finding by now.
  function replaced(next) {
    const kept = [...changes(), ...["run"].filter((name) => now.state[name]).map((name) => [name, now.state[name]])];
    Object.assign(now, { content: (page.content = next), defaults: next.state });
    forgetData();
    Object.assign(now.state, now.defaults, Object.fromEntries(kept.filter(([key]) => key in now.defaults)));
  }
  return {
    page, now, WHOLE, find, every, memo, held, theme, forgetTheme, clockOf, zero, zone, when, inClock, sayHighestOr, sayHighest, change, correct, fromAddress, toAddress, addressOf, settled, dated,
    chooseRun, isOurs, keysOf, unpacked, replaced,
  };
})();
