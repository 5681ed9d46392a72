"""Take the pictures of the pages of compare and trend, in Chromium. Run it after a change of these pages.

    python docs/img/shoot_compare.py [FOLDER]

The runs are those of the tests (tests/query/nights.py): in the bad night the slowest tenth of the writes of h2 take 30 % longer;
of eleven nights those from the seventh on are a third slower.
"""

from __future__ import annotations

import sys
import tempfile
from contextlib import chdir
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

ROOT = Path(__file__).parents[2]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from ingest.cli import run  # noqa: E402  # the checkout first
from tests.query.nights import drawn, written  # noqa: E402

SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
NIGHTS, FIRST_SLOW = 11, 7
COMPARE = {"ratios": "compare-ratios", "movers-host-op": "compare-movers", "shifts": "compare-shifts", "maps": "compare-maps"}


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = (Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent).resolve()
    with tempfile.TemporaryDirectory() as folder, chdir(folder), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        written(Path("good"), drawn(101), 20)
        written(Path("bad"), drawn(102, slow=("h2", "write")), 21)
        names = [f"nightly-{number}" for number in range(1, NIGHTS + 1)]
        for place, name in enumerate(names):
            written(Path(name), drawn(place, 600, by=1.35 if place + 1 >= FIRST_SLOW else 1.0), place)
        page_of("compare", "good", "bad", "--baseline", "good", "--run", "bad", "--by", "host,op", "-o", "compare.html")
        page_of("trend", *names, "--by", "op", "-p", "50,99", "-o", "trend.html")
        shot(browser, Path("compare.html"), target, COMPARE, "host h2, op write")
        shot(browser, Path("trend.html"), target, {"trend-0": "trend"})
        browser.close()


def page_of(*words: str) -> None:
    """Write a page."""
    if status := run(list(words)):
        sys.exit(status)


def shot(browser: Browser, path: Path, target: Path, panels: dict[str, str], group: str = "") -> None:
    """Take some panels of a page without their tables, each under a name; `group` is that of the distributions."""
    page = browser.new_page(viewport={"width": 1100, "height": 900}, color_scheme="light")
    page.goto(f"{path.resolve().as_uri()}#open={','.join(panels)}")
    if group:
        page.locator("[name=group]").select_option(label=group)
    page.add_style_tag(content=".table { display: none }")
    page.evaluate(SETTLED)
    for panel, name in panels.items():
        page.locator(f"#panel-{panel}").screenshot(path=target / f"{name}.png")
    page.close()


main()
