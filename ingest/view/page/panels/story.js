"use strict";
// The story at the head of the report: sentences that lead to their place, and the events that the pictures mark; see story.py.
const story = (() => {
  const SENTENCES = 3, ROOM = 0.75, MOST = 0.8; // of an event's length, shown before and after it; from this share of a run on all of it

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
  const unexplained = (share) => (share > 0 ? `${Math.round(100 * share)} % of the excess latency is left unexplained.` : "");

  tailboard.sections.push(({ now, find, when, addressOf, highlights }) => {
    const part = (tag, ...content) => {
      const element = document.createElement(tag);
      element.append(...content);
      return element;
    };
    function sentence(finding) {
      const { run, state } = now(), wanted = placeOf(finding, (run.end - run.start) / 1000, highlights());
      const link = Object.assign(part("a", finding.text), { href: addressOf(wanted) });
      const here = Object.entries(wanted).every(([name, value]) => state[name] === value) && Object.values(wanted).some(Boolean);
      if (here) link.setAttribute("aria-current", "true");
      return part("li", link);
    }
    // What stands behind a finding, in the words of the terminal; its times are those of the axes.
    function reasons({ text, below, consistent, against, command, from_s: from, to_s: to }) {
      const { run } = now(), lines = [["times", when({ t: run.start + 1000 * from, t2: run.start + 1000 * to })], ["consistent with", consistent], ["against", against]];
      const said = [...(below || []).map((each) => each.text), ...lines.filter(([, line]) => line).map((line) => line.join(": "))].map((line) => part("dd", line));
      return part("div", part("dt", text), ...said, ...(command ? [part("dd", "see: ", part("code", command))] : []));
    }
    // A list that says the same keeps its links: one may have the focus, or be under a pointer that goes down.
    function fill(element, nodes) {
      const [old, links] = [element, part("div", ...nodes)].map((list) => [...list.querySelectorAll("a")]);
      if (element.textContent !== nodes.map(({ textContent }) => textContent).join("") || old.length !== links.length) return element.replaceChildren(...nodes);
      old.forEach((link, at) => {
        link.href = links[at].href;
        link.toggleAttribute("aria-current", links[at].hasAttribute("aria-current"));
        if (link.hasAttribute("aria-current")) link.setAttribute("aria-current", "true");
      });
    }
    function shown() {
      const told = now().run.story, findings = told?.findings ?? [];
      find("story").hidden = !told;
      if (!told) return;
      const sentences = findings.slice(0, SENTENCES).map(sentence), more = findings.length - sentences.length;
      fill(find("story-sentences"), sentences.length ? sentences : [part("li", told.nothing)]);
      const also = more > 0 && `${more} more ${more === 1 ? "finding stands" : "findings stand"} in the list of the worst.`;
      find("story-rest").textContent = [also, findings.length && unexplained(told.unexplained ?? 0)].filter(Boolean).join(" ");
      find("story-more").hidden = !findings.length && !told.reference;
      fill(find("story-reasons"), [...findings.map(reasons), part("div", part("dd", told.reference))]);
    }
    return { panels: {}, shown };
  });
  return { placeOf, unexplained };
})();
if (typeof module !== "undefined") module.exports = story;
