"use strict";
// A page that keeps up with its source: asks the server it came from for news, has them drawn, and says how old they are.
// What is asked for (runs, range, step) stands in the query of the address, what is chosen in the page behind its #.
(() => {
  const HIDDEN = 6, SLOWEST = 60_000, PATIENCE = 30_000, LATE = 3, CHOOSING = "tailboard-choosing"; // of a page in the background; ms; ms; refreshes
  const find = (id) => document.getElementById(id);
  const main = document.querySelector("main"), { shape } = main.dataset;
  const page = { tag: main.dataset.tag, asked: 0, taken: 0, failed: 0, drawn: 0 }; // for tests: what was asked and drawn
  let offered, section, timer = 0, turn = 0, paused = false, pressed = false, at = Date.now(), since = Date.now(), trouble = "";

  // ---- Asking.
  const every = () => Math.min(Math.max(SLOWEST, section.refresh), section.refresh * (document.hidden ? HIDDEN : 1));
  async function ask() {
    clearTimeout(timer);
    const mine = ++turn;
    if (!paused) {
      page.asked++;
      try {
        const headers = page.tag ? { "If-None-Match": `"${page.tag}"` } : {};
        const answer = await fetch(`data${location.search}`, { headers, cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
        const body = answer.status === 200 ? await answer.json() : answer.status === 304 ? null : await answer.text();
        if (mine === turn) await take(answer, body);
      } catch {
        page.failed++;
        trouble = "tailboard report --live does not answer";
      }
    }
    if (mine !== turn) return;
    say();
    timer = setTimeout(ask, every());
  }
  async function take(answer, body) {
    const seen = Date.now() - 1000 * Number(answer.headers.get("Age") ?? 0);
    if (!answer.ok && answer.status !== 304) {
      page.failed++;
      trouble = body.trim();
      return;
    }
    if (body && body.shape !== shape) {
      if (Date.now() - since <= section.refresh) return;
      sessionStorage.setItem(CHOOSING, String(find("choose").open));
      return location.reload(); // there are panels that this page does not have
    }
    if (body) {
      while (pressed) await new Promise((done) => setTimeout(done, 50)); // a zoom is being drawn
      for (const [id, html] of Object.entries(body.html)) if (find(id) && find(id).dataset.is !== html) fill(find(id), html);
      document.title = document.querySelector("h1").textContent;
      await offered.renewed(body.data);
      page.tag = answer.headers.get("ETag")?.replaceAll(/^W\/|"/g, "") ?? "";
      page.taken++;
    }
    at = Math.max(seen, 0);
    trouble = Date.now() - at > Math.max(LATE * every(), 5000) ? "the source does not answer in time" : "";
    page.drawn = Date.now();
  }
  function fill(element, html) {
    element.innerHTML = html; // of our own server, which has escaped every label in it
    element.dataset.is = html;
  }

  // ---- Saying.
  const clock = (ms) => (offered.now().state.clock === "utc" ? `${new Date(ms).toISOString().slice(11, 19)} UTC` : new Date(ms).toTimeString().slice(0, 8));
  function ago(ms) {
    const seconds = Math.max(0, Math.round(ms / 1000));
    return seconds < 120 ? `${seconds} s ago` : seconds < 7200 ? `${Math.round(seconds / 60)} min ago` : `${Math.round(seconds / 3600)} h ago`;
  }
  function put(element, text) {
    if (element.textContent !== text) element.textContent = text;
  }
  function say() {
    const mood = paused ? "paused" : trouble ? "lost" : "fresh";
    find("pulse").dataset.mood = mood;
    put(find("updated"), paused ? `paused: data of ${clock(at)}` : trouble ? `last data of ${clock(at)}` : `updated ${ago(Date.now() - at)}`);
    put(find("trouble"), trouble && !paused ? `${trouble.replace(/\.$/, "")}: last data of ${clock(at)}.` : "");
    find("trouble").hidden = !trouble || paused;
  }

  // ---- Choosing.
  const words = () => new URLSearchParams(location.search);
  function choose(change) {
    const query = words();
    for (const [name, values] of Object.entries(change)) {
      query.delete(name);
      for (const value of values) query.append(name, value);
    }
    history.replaceState(null, "", `${location.pathname}${String(query) && `?${query}`}${location.hash}`);
    page.tag = "";
    return ask();
  }
  function option(select, values, value) {
    const known = values.some(([key]) => key === value) ? values : [...values, [value, value]];
    offered.offer(select, known.map(([key, shown]) => new Option(shown, key)));
    if (select !== document.activeElement || select.value !== value) select.value = value;
  }
  const states = { complete: "", loading: "being loaded", watched: "being watched" };
  function show() {
    section = offered.now().content.sections.live;
    const shown = section.runs.filter((run) => run.shown), query = words();
    put(find("chosen"), `${shown.length} of ${section.runs.length + section.more}${shown.length === 1 ? `, ${shown[0].name}` : ""}`);
    const begun = shown.filter(({ state }) => state !== "complete"), known = begun.filter(({ final }) => final !== undefined);
    const elapsed = offered.now().state.clock === "elapsed", [first] = known.sort((a, b) => a.final - b.final);
    const place = first && (elapsed ? `${((first.final - first.start) / 1000).toFixed(1)} s elapsed` : clock(first.final));
    const until = known.length === begun.length && first ? `final up to ${place}` : "";
    put(find("final"), begun.length ? until || `${states[begun[0].state] ?? begun[0].state}: all of it is provisional` : "");
    find("known").hidden = !section.known.length;
    put(find("known"), `Percentiles are known, so far: ${section.known.join("; ")} (95 % bounds, from the windows).`);
    find("newest").checked = !section.own;
    const names = JSON.stringify(section.runs);
    if (find("offered").dataset.is !== names) {
      const focused = document.activeElement?.closest("#offered") && document.activeElement.value;
      find("offered").replaceChildren(...section.runs.map(({ name, state, start, shown }) => {
        const note = [start && new Date(start).toISOString().slice(0, 16).replace("T", " "), states[state] ?? state].filter(Boolean).join(", "), { make } = charting;
        return make("label", {}, make("input", { type: "checkbox", value: name, checked: shown }), ` ${name} `, make("small", {}, note));
      }));
      find("offered").dataset.is = names;
      if (focused) [...find("offered").querySelectorAll("input")].find(({ value }) => value === focused)?.focus();
    }
    find("unlisted").hidden = !section.more;
    put(find("unlisted"), `${section.more} older ones are not listed: ?run=NAME in the address shows them.`);
    const from = query.get("from") ?? "";
    option(find("reach"), [...find("reach").options].map(({ value, text }) => [value, text]), from);
    option(find("width"), [["", "auto"], ...section.steps.map((step) => [step, step])], query.get("step") ?? "");
  }
  function listen() {
    find("pause").addEventListener("click", () => {
      paused = !paused;
      find("pause").setAttribute("aria-pressed", String(paused));
      find("pause").textContent = paused ? "Go on" : "Pause";
      if (paused) say();
      else ask();
    });
    find("reach").addEventListener("change", ({ target }) => choose({ from: target.value ? [target.value] : [], to: [] }));
    find("width").addEventListener("change", ({ target }) => choose({ step: target.value ? [target.value] : [] }));
    find("newest").addEventListener("change", ({ target }) => choose({ run: target.checked ? [] : section.runs.filter((run) => run.shown).map(({ name }) => name) }));
    find("offered").addEventListener("change", () => choose({ run: [...find("offered").querySelectorAll(":checked")].map(({ value }) => value) }));
    document.addEventListener("click", ({ target }) => target.closest("#choose") ?? find("choose").removeAttribute("open"));
    document.addEventListener("keydown", ({ key }) => key === "Escape" && find("choose").removeAttribute("open"));
    document.addEventListener("visibilitychange", () => document.hidden || paused || ask());
    addEventListener("pointerdown", () => (pressed = true), true);
    for (const name of ["pointerup", "pointercancel", "blur"]) addEventListener(name, () => (pressed = false), true);
    setInterval(() => document.hidden || say(), 1000);
  }
  tailboard.sections.push((words) => {
    offered = words;
    return {
      panels: {},
      shown() {
        const begun = Boolean(section);
        show();
        if (begun) return;
        find("choose").open = sessionStorage.getItem(CHOOSING) === "true"; // as it was on the page before this one
        sessionStorage.removeItem(CHOOSING);
        listen();
        say();
        timer = setTimeout(ask, section.refresh);
      },
    };
  });
  tailboard.live = page;
})();
