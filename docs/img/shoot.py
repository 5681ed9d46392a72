"""Take the pictures of docs/img: each panel of the report of the example run, in Chromium. Run it after a change of the page.

    python docs/img/shoot.py [FOLDER]

The pictures of several runs show the hosts of the example, each loaded as a run of its own; those of coordinated omission the
stall of examples/coordinated-omission.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Mapping
from contextlib import chdir
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from ingest.cli import run

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "cbt-archive")
SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
PANELS = ("percentiles", "hosts", "worst", "heatmap", "threads", "rate", "surface", "distribution", "estimates")
HOSTS = ("ceph-a", "ceph-b", "ceph-c")
SIMULATE = ROOT / "examples" / "coordinated-omission" / "simulate.py"
PLAIN: Mapping[str, str] = {}
HEAT = {
    "heatmap-highlight": "#highlight=host%3Dceph-b&drop=0.1",
    "heatmap-range": "#highlight=host%3Dceph-c&least=2&most=20&shading=linear",
}
BOX = "#box=26,36,1000,"
CORRECTED = {"kinds": "corrected"}


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        example = written(Path(folder) / "example.html", EXAMPLE)
        shot(browser, example, target, PANELS)
        shot(browser, example, target, ("box",), view=BOX)
        for name, view in HEAT.items():
            shot(browser, example, target, ("heatmap",), {"heatmap": name}, view)
        several = written(Path(folder) / "several.html", loaded(Path(folder) / "hosts.db"))
        shot(browser, several, target, ("load", "runs", "maps"))
        fixed, closed = simulated(Path(folder))
        shot(browser, fixed, target, ("omission", "gap", "kinds"))
        shot(browser, closed, target, ("kinds",), CORRECTED)
        browser.close()


def simulated(folder: Path) -> tuple[Path, Path]:
    """Return reports of the stall: as the generator with a schedule saw it, and as the closed loop did, corrected afterwards."""
    subprocess.run([sys.executable, SIMULATE, folder], check=True)  # noqa: S603  # our own script
    with chdir(folder):  # sources are named as they are given
        fixed = written(folder / "fixed.html", "fixed.csv", "--rate", "1000")
        return fixed, written(folder / "closed.html", "throughput.csv", "--expected-interval", "1ms")


def loaded(path: Path) -> str:
    """Return a store with a run for each host of the example."""
    store = f"sqlite:{path}"
    logs = next((ROOT / "examples" / "cbt-archive" / "results").rglob("benchmark_config.yaml")).parent
    for host in HOSTS:
        files = [str(found) for found in sorted(logs.glob(f"*{host}*")) if "clat_hist" in found.name or "json" in found.name]
        status = run(["load", *files, "--run", f"hosts/{host}", "--store", store])
        if status:
            sys.exit(status)
    return store


def written(path: Path, *words: str) -> Path:
    """Return the report of some sources."""
    status = run(["report", *words, "-o", str(path)])
    if status:
        sys.exit(status)
    return path


def shot(
    browser: Browser, path: Path, target: Path, panels: tuple[str, ...], names: Mapping[str, str] = PLAIN, view: str = ""
) -> None:
    """Take the panels of a page, under their own names or others, and what is seen of it at first; `view` is its address."""
    page = browser.new_page(viewport={"width": 1100, "height": 1500}, color_scheme="light")
    page.goto(path.as_uri() + view)
    page.evaluate(SETTLED)
    for name in panels:
        panel = page.locator(f".panel:has(#{name}), #{name}.panel").first
        for button in panel.locator(".unfold[aria-expanded=false]").all():  # a line until it is opened
            button.click()
            page.evaluate(SETTLED)
        panel.screenshot(path=target / f"{names.get(name, name)}.png")
    if "percentiles" in panels:
        page.evaluate("scrollTo(0, 0)")
        page.screenshot(path=target / "report.png", clip={"x": 0, "y": 0, "width": 1100, "height": 1110})
    page.close()


main()
