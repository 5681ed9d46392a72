"""The first screens of six runs at 1,280 x 800, as the gallery shows them.

    python docs/img/shoot_first.py [FOLDER]

Five are made by benchmarks/story_runs.py, one was recorded (tests/data/three-hosts).
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from ingest.cli import run

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "benchmarks"))
from story_runs import Cause, Scene, made, write  # noqa: E402  # of the folder above

SETTLED = "async () => { let seen; do { seen = tailboard.ready; await seen; } while (seen !== tailboard.ready); }"


def scene(name: str, number: int, hosts: int, *causes: Cause, ops: int = 1, form: str = "hdr") -> Scene:
    """Return a run of five minutes with some causes."""
    for cause in causes:
        cause.core = cause.from_s, cause.to_s
    told = {"seed": (77, number, 0), "length": 300.0, "rate": 100.0, "noise": "white", "phi": 0.0, "deviation": 0.0}
    plain = {"volumes": 1, "jobs": 1, "closed": False, "paced": False, "uneven": True, "weak": False}
    return Scene(name=name, hosts=hosts, ops=ops, form=form, causes=list(causes), **told, **plain)  # type: ignore[arg-type]  # by name


SCENES = (
    scene("quiet", 1, 50),
    scene("plateau", 2, 3, Cause("plateau", "host", {"host": "host-003"}, 100, 200, factor=8)),
    scene(
        "two-causes",
        3,
        10,
        Cause("outage", "host", {"host": "host-002"}, 60, 66),
        Cause("plateau", "op", {"op": "write"}, 150, 230, factor=6),
        ops=2,
        form="fio",
    ),
    scene("all-hosts", 4, 10, Cause("plateau", "all", {}, 120, 160, factor=20)),
    scene("before", 5, 3),
    scene("two-runs", 6, 3, Cause("plateau", "host", {"host": "host-002"}, 50, 110, factor=5)),
)


def main() -> None:
    """Write the pictures to the folder that is named, by default the one of this script."""
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parent
    with tempfile.TemporaryDirectory() as name, sync_playwright() as playwright:
        folder = Path(name)
        for one in SCENES:
            (folder / one.name).mkdir()
            write(made(one), folder / one.name)
        shutil.unpack_archive(ROOT / "tests" / "data" / "three-hosts" / "results.tar.xz", folder / "three-hosts", filter="data")
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=["--no-sandbox", "--disable-gpu"])
        for shown in (*(one.name for one in SCENES if one.name != "before"), "three-hosts"):
            beside = ["--beside", str(folder / "before")] if shown == "two-runs" else []
            if status := run(["report", str(folder / shown), *beside, "-o", str(folder / "report.html")]):
                sys.exit(status)
            page = browser.new_page(viewport={"width": 1280, "height": 800}, color_scheme="light")
            page.goto((folder / "report.html").as_uri())
            page.evaluate(SETTLED)
            page.screenshot(path=target / f"first-{shown}.png")
            page.close()
        browser.close()


main()
