"use strict";
// A page without anything to show yet: it asks for data until there are some, then is loaded anew.
(() => {
  const PAUSE = 2000;
  async function ask() {
    const answer = await fetch(`data${location.search}`, { cache: "no-store" }).catch(() => null);
    if (answer?.ok) return location.reload();
    document.getElementById("reason").textContent = answer ? await answer.text() : "tailboard report --live does not answer.";
    setTimeout(ask, PAUSE);
  }
  setTimeout(ask, PAUSE);
})();
