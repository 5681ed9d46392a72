"use strict";
// The story at the head of the report: sentences that lead to their place, and the events that the pictures mark; see story.py.
const story = (() => {
  const ROOM = 0.75, MOST = 0.8; // of an event's length, shown before and after it; from this share of a run on all of it

  // What a click on a finding chooses: from and to in seconds, with some room, and what is highlighted.
  function placeOf({ who, from_s: from, to_s: to }, seconds, choices) {
    const room = Math.max(ROOM * (to - from), 0.02 * seconds), whole = to - from >= MOST * seconds;
    const place = (value) => String(Number(value.toFixed(2)));
    const label = ["host", "thread", "op"].map((name) => `${name}=${who[name]}`).find((name) => choices.includes(name));
    return {
      from: whole || from - room <= 0 ? "" : place(from - room), to: whole || to + room >= seconds ? "" : place(to + room),
      ...(label && { highlight: label }),
    };
  }
  // The share that no finding accounts for, in words.
  const unexplained = (share) => `Bars: shares of all excess latency${share > 0 ? `; ${Math.round(100 * share)} % is left unexplained` : ""}.`;

  tailboard.sections.push(({ now, find, inClock, addressOf, highlights }) => {
    const part = (tag, ...content) => charting.make(tag, {}, ...content);
    const told = ({ from_s: from, to_s: to }, text) => inClock(text, ...[from, to].map((seconds) => now().run.start + 1000 * seconds));
    // How much of the excess latency it accounts for, as a bar.
    function shareOf({ share }) {
      const bar = charting.make("span", { className: "share", title: "share of all excess latency" }, `${share > 0 && share < 0.005 ? "< 1" : Math.round(100 * share)} %`);
      bar.style.setProperty("--share", share);
      return bar;
    }
    function sentence(finding) {
      const { run, state } = now(), wanted = placeOf(finding, (run.end - run.start) / 1000, highlights()), { text, tail = "" } = finding;
      const said = told(finding, text.slice(0, text.length - tail.length)), first = said.search(/: |, and |$/);
      const here = Object.entries(wanted).every(([name, value]) => state[name] === value) && Object.values(wanted).some(Boolean);
      const link = charting.make("a", { href: addressOf(wanted), title: told(finding, text), ...(here && { ariaCurrent: "true" }) }, part("b", said.slice(0, first)), said.slice(first));
      return part("li", shareOf(finding), link);
    }
    // Who it was: all jobs, 2 of 3 hosts (the text says of how many), ceph-b write, job 3.
    function nameOf({ who = {}, text }) {
      const several = /^(all|[\d,]+ of [\d,]+) \S+/.exec(text)?.[0], labels = Object.entries(who).map(([name, value]) => (["host", "op"].includes(name) ? value : `${name} ${value}`));
      return [several, ...labels].filter(Boolean).join(" ") || "the run";
    }
    // What each may come from, said once where several may come from the same.
    function whyOf(findings) {
      const names = (reason) => findings.filter(({ consistent }) => consistent === reason).map(nameOf);
      const reasons = [...new Set(findings.map(({ consistent }) => consistent))].filter(Boolean).map((reason) => `${reason} (${names(reason).join(", ")})`);
      return reasons.length > 0 && `Consistent with ${reasons.join("; ")}.`;
    }
    // What stands behind a finding, in the words of the terminal.
    function reasons(finding) {
      const { text, below, consistent, against, command } = finding, lines = [["consistent with", consistent], ["against", against]];
      const said = [...(below || []).map((each) => each.text), ...lines.filter(([, line]) => line).map((line) => line.join(": "))].map((line) => part("dd", line));
      return part("div", part("dt", told(finding, text)), ...said, ...(command ? [part("dd", "see: ", part("code", command))] : []));
    }
    // A list that says the same keeps its links: one may have the focus, or be under a pointer that goes down.
    function fill(element, nodes) {
      const [old, links] = [element, part("div", ...nodes)].map((list) => [...list.querySelectorAll("a")]);
      if (element.textContent !== nodes.map(({ textContent }) => textContent).join("") || old.length !== links.length) return element.replaceChildren(...nodes);
      old.forEach((link, at) => Object.assign(link, { href: links[at].href, ariaCurrent: links[at].ariaCurrent }));
    }
    function shown() {
      const { story } = now().run, findings = story?.findings ?? [];
      find("story").hidden = !story;
      if (!story) return;
      const sentences = findings.slice(0, tailboard.MOST.sentences).map(sentence), more = findings.length - sentences.length;
      fill(find("story-sentences"), sentences.length ? sentences : [part("li", story.nothing)]);
      const also = more > 0 && `${more} more ${more === 1 ? "finding stands" : "findings stand"} in the list of the worst.`;
      const rest = [whyOf(findings.slice(0, sentences.length)), also, findings.length && unexplained(story.unexplained ?? 0)].filter(Boolean).join(" ");
      Object.assign(find("story-rest"), { textContent: rest, title: rest }); // a line is too short for all of it
      find("story-more").hidden = !findings.length && !story.reference;
      fill(find("story-reasons"), [...findings.map(reasons), part("div", part("dd", story.reference))]);
    }
    return { panels: {}, shown };
  });
  return { placeOf, unexplained };
})();
if (typeof module !== "undefined") module.exports = story;
