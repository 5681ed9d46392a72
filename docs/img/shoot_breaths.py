"""Take the pictures of docs/guides/snabb.md: panels of breaths in the report and on the page of a comparison, in Chromium.

    python docs/img/shoot_breaths.py [FOLDER]

The timelines are written by the tests: nobody can record a good and a bad process at will. Kibana has shoot_kibana.py.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from ingest.cli import run  # noqa: E402  # the checkout first
from tests.breath_rings import PICTURED, Work, rings  # noqa: E402

SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
NIGHTS = {
    "good": {"router": Work(breaths=6000), "tunnel": Work(base=3000, slope=45, breaths=6000)},
    "bad": {"router": Work(stalls=0.01, breaths=6000), "tunnel": Work(base=3000, slope=80, breaths=6000)},
}


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        report = written(folder / "report.html", "report", str(rings(folder / "rings", **PICTURED)))
        shot(browser, report, {panel: panel for panel in ("breaths", "density", "costs")}, target)
        sides = [str(rings(folder / night, **works)) for night, works in NIGHTS.items()]
        page = written(folder / "compare.html", "compare", *sides, "--baseline", "good", "--run", "bad")
        shot(browser, page, {"breaths": "compare-breaths"}, target)
        browser.close()


def written(path: Path, *words: str) -> Path:
    """Return the page that a command writes."""
    if status := run([*words, "-o", str(path)]):
        sys.exit(status)
    return path


def shot(browser: Browser, path: Path, panels: dict[str, str], target: Path) -> None:
    """Take panels of a page under other names."""
    page = browser.new_page(viewport={"width": 1100, "height": 1500}, color_scheme="light")
    page.goto(f"{path.as_uri()}#open={','.join(panels)}")
    page.evaluate(SETTLED)
    for panel, name in panels.items():
        page.locator(f".panel:has(#{panel}), #{panel}.panel").first.screenshot(path=target / f"{name}.png")
    page.close()


main()
