"use strict";
// A page without anything to show yet: it asks for data until there are some, then is loaded anew.
(() => {
  const PAUSE = 2000;
  async function ask() {
    try {
      const answer = await fetch(`data${location.search}`, { method: "HEAD", cache: "no-store" });
      if (answer.ok) return location.reload();
      const sentence = await (await fetch(`data${location.search}`, { cache: "no-store" })).text();
      document.getElementById("reason").textContent = sentence;
    } catch {
      document.getElementById("reason").textContent = "tailboard report --live does not answer.";
    }
    setTimeout(ask, PAUSE);
  }
  setTimeout(ask, PAUSE);
})();
