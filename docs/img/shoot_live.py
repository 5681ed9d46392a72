"""Take the pictures of docs/guides/serve.md: the controls of a live page light and dark, in Chromium.

    python docs/img/shoot_live.py [FOLDER]

Of two runs of the example the newer one is shown.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import Browser, sync_playwright

from ingest.cli import run

ROOT = Path(__file__).parents[2]
EXAMPLE = str(ROOT / "examples" / "cbt-archive")
SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"
SCHEMES = {"live": "light", "live-dark": "dark"}


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        store = f"sqlite:{Path(folder) / 'live.db'}"
        status = run(["load", EXAMPLE, "--run", "nightly-42", "--store", store])
        status = status or run(["load", EXAMPLE, "--run", "nightly-43", "--host-alias", "ceph-a=ceph-d", "--store", store])
        if status:
            sys.exit(status)
        line = [sys.executable, "-m", "ingest", "serve", store, "--port", "0", "--refresh", "1s"]
        with subprocess.Popen(line, stderr=subprocess.PIPE, text=True) as server:  # noqa: S603  # our own command
            told = server.stderr.readline() if server.stderr else ""
            browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
            for name, scheme in SCHEMES.items():
                shot(browser, told.split(" ")[1], target / f"{name}.png", scheme)
            browser.close()
            server.terminate()


def shot(browser: Browser, address: str, target: Path, scheme: str) -> None:
    """Take a picture of the controls and the first panel, with the list of runs open."""
    page = browser.new_page(viewport={"width": 1160, "height": 760}, color_scheme="dark" if scheme == "dark" else "light")
    page.goto(address)
    page.evaluate(SETTLED)
    page.wait_for_timeout(2500)
    page.locator(".controls").evaluate("panel => scrollTo(0, panel.offsetTop)")
    page.locator("#choose summary").click()
    page.evaluate(SETTLED)
    page.screenshot(path=target)
    page.close()


if __name__ == "__main__":
    main()
