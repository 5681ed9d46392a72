"""Take the pictures of subsecond offsets in the report: the patterns of examples/subsecond-offsets, in Chromium.

python docs/img/shoot_offsets.py [FOLDER]
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from contextlib import chdir
from pathlib import Path
from urllib.parse import urlencode

from playwright.sync_api import sync_playwright

from ingest.cli import run

SIMULATE = Path(__file__).parents[2] / "examples" / "subsecond-offsets" / "simulate.py"
SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
VIEWS = {
    "offsets": {},
    "offsets-cell": {
        "offset_lit": json.dumps({"process": ["backup", "collector"]}),
        "from": "60",
        "to": "90",
        "offset_cell": "71,20",
    },
}


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        subprocess.run([sys.executable, SIMULATE, folder], check=True)  # noqa: S603  # our own script
        with chdir(folder):  # sources are named as they are given
            if status := run(["report", "events.csv", "--input-format", "events.yml", "-o", "offsets.html"]):
                sys.exit(status)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for name, view in VIEWS.items():
            page = browser.new_page(viewport={"width": 1100, "height": 2200}, color_scheme="light")
            page.goto(f"{(Path(folder) / 'offsets.html').as_uri()}#{urlencode({'open': 'offsets', **view})}")
            page.evaluate(SETTLED)
            page.evaluate("document.querySelector('.controls').style.position = 'static'")  # it would lie over the panel
            page.locator(".panel:has(#offsets)").screenshot(path=target / f"{name}.png")
            page.close()
        browser.close()


main()
