"use strict";
// How numbers are said on the report's page. Follows theme.js in the same script; all pure.
const words = (() => {
  const NOTABLE = 2;
  const what = (p) => (p === "100" ? "max" : `p${p}`);
  // Of cells that are all about as high, that; else nothing. The highest is held against one that is higher than a tenth of them: of
  // two hosts one may be slower throughout.
  function alike(points) {
    const values = points.map(({ v }) => v).sort((a, b) => a - b), [least, most] = [values[0], values.at(-1)];
    return values.length > 1 && most < NOTABLE * values[Math.floor(values.length / 10)] ? `Nothing stands out: all lie between ${latency(least)} and ${latency(most)}.` : "";
  }
  // A colour scale that noise cannot fill: a decade wide at least, with what is shown in its middle.
  function decade([low, high]) {
    const least = Math.max(1, low), most = Math.max(least, high), middle = Math.sqrt(least * most);
    const half = Math.max(Math.sqrt(most / least), Math.sqrt(10));
    return [middle / half, middle * half];
  }
  function latency(ns) {
    const rounded = Number(ns.toPrecision(4)); // 999,960 ns is 1 ms, not 1000 µs
    const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([least]) => rounded >= least) ?? [1, "ns"];
    return `${Number((ns / scale).toPrecision(4))} ${unit}`;
  }
  const atLeast = ({ v, open }) => (open ? "≥ " : "") + latency(v);
  const number = (value) => Number(value.toPrecision(12)).toLocaleString("en");
  // How events that were stored at unlike rates come together (ingest/query/lags.py).
  const WEIGHED = "one of rate r counts 5^(9-r) times.";
  const mixedIn = ({ mixed }) => mixed.some(Boolean) && `Events of unlike rates: ${WEIGHED}`;
  const percent = (share, digits = 3) => `${Number((100 * share).toPrecision(digits))} %`;
  const sentences = (...all) => all.filter(Boolean).join(" ");
  const tooFew = (p, cells) => (cells.length ? `No window has enough samples for ${what(p)}.` : "Nothing to show.");
  return { percent, sentences, what, alike, decade, latency, atLeast, number, WEIGHED, mixedIn, tooFew };
})();
if (typeof module !== "undefined") module.exports = words;
