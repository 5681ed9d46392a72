"use strict";
// How numbers are said on the report's page. Follows theme.js in the same script; all pure.
const words = (() => {
  const what = (p) => (p === "100" ? "max" : `p${p}`);
  function latency(ns) {
    const [scale, unit] = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"]].find(([least]) => ns >= least) ?? [1, "ns"];
    return `${Number((ns / scale).toPrecision(4))} ${unit}`;
  }
  const atLeast = ({ v, open }) => (open ? "≥ " : "") + latency(v);
  const number = (value) => Number(value.toPrecision(12)).toLocaleString("en");
  // How events that were stored at unlike rates come together (ingest/query/lags.py).
  const WEIGHED = "one of rate r counts 5^(9-r) times.";
  const mixedIn = ({ mixed }) => mixed.some(Boolean) && `Events of unlike rates: ${WEIGHED}`;
  const tooFew = (p, cells) => (cells.length ? `No window has samples enough for ${what(p)}.` : "Nothing to show.");
  return { what, latency, atLeast, number, WEIGHED, mixedIn, tooFew };
})();
if (typeof module !== "undefined") module.exports = words;
