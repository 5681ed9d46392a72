"""The report's page in Chromium: its size, how long it takes to open, and how long a frame takes when controls are moved.

    python benchmarks/report_page.py [--data FOLDER] [--page FILE] [--rounds N]

Made from the store of 128 threads, an hour, reads and writes (generate.py). Opening ends when every panel is drawn; `first` is
when the first one is: the heat map. A frame is what the page does in one go: the numbers of a panel, or its picture
(`tailboard.frames` in draw.js). As many small frames would lower the percentile of all, `longest` tells of the longest frame of
each change of a control. `heat map` is the same of the heat map alone: its longest frame of each change, and all of its frames
(`whole`). `heap` is what the page holds after garbage was collected, objects and the numbers of its arrays, in bytes: once it is
drawn and after all changes. Times are by the clock; `cpu` are ms of the page's main thread, which a busy machine lengthens less:
until all is drawn, and of each change.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
SLIDER = """(p) => { const slider = document.getElementById("percentile"); slider.value = p;
  slider.dispatchEvent(new Event("input", { bubbles: true })); }"""
SELECT = """([name, value]) => { const control = document.querySelector(`select[name=${name}]`); control.value = value;
  control.dispatchEvent(new Event("change", { bubbles: true })); }"""
MARKS = """() => Object.fromEntries(Object.entries(tailboard.views).map(([name, view]) => {
  const count = (item) => (item.items ?? []).reduce((sum, one) => sum + (one.items ? count(one) : 1), 0);
  return [name, count(view.scenegraph().root)]; }))"""
ZOOM = """([from, to]) => { for (const [name, value] of [["from", from], ["to", to]]) {
  const control = document.querySelector(`input[name=${name}]`); control.value = value;
  control.dispatchEvent(new Event("change", { bubbles: true })); } }"""
HEAT = "tailboard.frames.filter((one) => one.name.startsWith('heatmap')).map((one) => one.ms)"
ZOOMS = [(f"{step * 70:.0f}", f"{3600 - step * 90:.0f}") for step in range(16)]
SLIDES = [f"{99 - 0.37 * step:.2f}" for step in range(24)]
KINDS = ("slider", "filter", "zoom", "drag")
LIMITS = {"size": 6e6, "first": 700.0, "open": 2000.0, "frame": 50.0, "marks": 20_000, "heap": 60e6}
DRAGS = [(0.1 + 0.02 * step, 0.5 + 0.02 * step) for step in range(8)]


def main() -> None:
    """Measure the page, print what was found, and fail where a limit of the issue is passed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data", help="folder for what is generated")
    parser.add_argument("--page", type=Path, help="a report to measure, instead of making one")
    parser.add_argument("--rounds", type=int, default=3, help="how often the page is opened")
    parser.add_argument("--chromium", default="/usr/bin/chromium")
    words = parser.parse_args()
    page = words.page or made(words.data)
    print(f"{len(os.sched_getaffinity(0))} cores, load {os.getloadavg()[0]:.1f} at the start")
    rounds = [measured(page.resolve(), words.chromium) for _ in range(words.rounds)]
    found: dict[str, Any] = {"size": page.stat().st_size, "marks": max(rounds[-1]["marks"].values())}
    for name in ("first", "open", "heap", "heap after all", "cpu"):
        found[name] = statistics.median(one[name] for one in rounds)
    found["heat map"] = {}
    for kind in KINDS:
        changes = [change for one in rounds for change in one[kind]]
        every, longest = [ms for change in changes for ms in change], [max(change) for change in changes]
        cpu = [ms for one in rounds for ms in one[f"cpu of {kind}"]]
        found[kind] = {**spread(every), "longest": spread(longest), "cpu": spread(cpu)}
        heat = [change for one in rounds for change in one[f"{kind} of the heat map"]]
        longest, whole = [max(frames) for frames in heat], [sum(frames) for frames in heat]
        found["heat map"][kind] = {"longest": spread(longest), "whole": spread(whole)}
    print(json.dumps({"page": page.name, **found, "panels": rounds[-1]["marks"]}, indent=2))
    found["heap"] = max(found["heap"], found["heap after all"])
    over = [name for name in ("size", "first", "open", "marks", "heap") if found[name] > LIMITS[name]]
    over += [kind for kind in KINDS if found[kind]["p95"] > LIMITS["frame"]]
    if over:
        sys.exit(f"over the limit: {', '.join(over)}")


def spread(values: list[float]) -> dict[str, float]:
    """Return the median, the 95th percentile and the most."""
    return {"median": statistics.median(values), "p95": sorted(values)[len(values) * 95 // 100], "most": max(values)}


def made(data: Path) -> Path:
    """Return the report of the generated store."""
    sys.path.insert(0, str(HERE))
    from generate import store

    data.mkdir(parents=True, exist_ok=True)
    page = data / "report.html"
    source = store(data / "report.db")
    begun = time.perf_counter()
    subprocess.run([sys.executable, "-m", "ingest", "report", f"sqlite:{source}", "-o", str(page)], check=True)
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    seconds = time.perf_counter() - begun
    print(f"report written in {seconds:.1f} s, {peak:.0f} MB resident at most, pages of the store's file among them")
    return page


def measured(path: Path, chromium: str) -> dict[str, Any]:
    """Return ms until all panels were drawn, ms of each frame under every control, marks a panel, heap, and CPU."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_page(viewport={"width": 1280, "height": 800})
        page.set_default_timeout(300_000)
        cpu = clock_of(browser.new_browser_cdp_session())
        before = cpu()
        page.goto(path.as_uri())
        page.evaluate(SETTLED)
        found: dict[str, Any] = {"open": page.evaluate("tailboard.frames.at(-1).end"), "marks": page.evaluate(MARKS)}
        found["cpu"] = cpu() - before
        found["first"] = page.evaluate("tailboard.frames.find((one) => one.name === 'heatmap').end")
        found["heap"] = heap_of(page)
        hosts = page.evaluate("[...document.querySelector('select[name=host]').options].slice(1, 4).map((one) => one.value)")
        filters = [*(("op", op) for op in ("read", "write", "")), *(("host", host) for host in (*hosts, "")), ("by", "host")]
        changes: dict[str, list[Callable[[], Any]]] = {
            "slider": [partial(page.evaluate, SLIDER, p) for p in SLIDES],
            "filter": [partial(page.evaluate, SELECT, list(one)) for one in filters],
            "zoom": [partial(page.evaluate, ZOOM, list(ends)) for ends in ZOOMS],
            "drag": [partial(dragged, page, ends) for ends in DRAGS],
        }
        for kind, acts in changes.items():
            frames, heat, spent = [], [], []
            for act in acts:
                page.evaluate("() => { tailboard.frames.length = 0; }")
                before = cpu()
                act()
                page.evaluate(SETTLED)
                spent.append(cpu() - before)
                frames.append(page.evaluate("tailboard.frames.map((one) => one.ms)"))
                heat.append(page.evaluate(HEAT))
            found[kind] = [change for change in frames if change]
            found[f"{kind} of the heat map"] = [change for change in heat if change]
            found[f"cpu of {kind}"] = spent
        found["heap after all"] = heap_of(page)
        browser.close()
    return found


def dragged(page: Any, ends: tuple[float, float]) -> None:
    """Drag over the axis of the percentiles, from one share of its width to another, then back to the whole range."""
    page.keyboard.press("Escape")
    page.evaluate(SETTLED)
    page.locator("#percentiles").evaluate("chart => chart.scrollIntoView({ block: 'center' })")
    box = page.locator("#percentiles canvas").first.bounding_box()
    x, y = box["x"] + 132 + ends[0] * (box["width"] - 280), box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    page.mouse.down()
    for step in range(1, 9):
        page.mouse.move(x + step / 8 * (ends[1] - ends[0]) * (box["width"] - 280), y)
    page.mouse.up()


def heap_of(page: Any) -> int:
    """Return the bytes that a page holds once its garbage is collected: objects, and the numbers of its arrays."""
    session = page.context.new_cdp_session(page)
    for _ in range(3):
        session.send("HeapProfiler.collectGarbage")
    used = session.send("Runtime.getHeapUsage")
    session.detach()
    return int(used["usedSize"] + used.get("backingStorageSize", 0))


def clock_of(session: Any) -> Callable[[], float]:
    """Return what gives the ms of CPU that the main threads of a browser's pages have taken."""

    def cpu() -> float:
        pages = [
            process["id"] for process in session.send("SystemInfo.getProcessInfo")["processInfo"] if process["type"] == "renderer"
        ]
        return sum(int(Path(f"/proc/{pid}/schedstat").read_text().split()[0]) for pid in pages) / 1e6

    return cpu


if __name__ == "__main__":
    main()
