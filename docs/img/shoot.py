"""Take docs/img/report.png: the report of the example run in Chromium. Run it after a change of the page."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from ingest.cli import run

ROOT = Path(__file__).parents[2]


def main() -> None:
    """Write the picture."""
    with tempfile.TemporaryDirectory() as folder:
        page_file = Path(folder) / "report.html"
        status = run(["report", str(ROOT / "examples" / "cbt-archive"), "-o", str(page_file)])
        if status:
            sys.exit(status)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
            page = browser.new_page(viewport={"width": 1100, "height": 900})
            page.goto(page_file.as_uri())
            page.wait_for_timeout(2000)
            page.screenshot(path=Path(__file__).parent / "report.png", full_page=True)
            browser.close()


main()
