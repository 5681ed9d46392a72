"""Every page for every reader: axe finds nothing in light or dark; a keyboard alone reaches and uses the first screen and the box."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run
from tests.browsing import blank_page, missing, shown
from tests.doubles.origin import SECOND
from tests.live.serving import plain, put, serving
from tests.query.nights import drawn, written
from tests.vega.drawn import MODULES
from tests.view.page import settle

AXE = MODULES / "axe-core" / "axe.min.js"
EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"
SCREEN = {"width": 1280, "height": 800}
BOX = "#box=25,36,1000,"
FOUND = """async () => (await axe.run(document, { resultTypes: ["violations"] })).violations.map(({ id, nodes }) =>
  [id, nodes.map(({ target, failureSummary }) => `${target.join(" ")}: ${failureSummary}`)])"""
STOP = """() => { const at = document.activeElement, box = at.getBoundingClientRect(), style = getComputedStyle(at);
  const labelled = [...(at.labels ?? [])].map((label) => label.textContent).join(" ");
  const name = (at.getAttribute("aria-label") || labelled || at.textContent || at.title || "").trim();
  return { id: at.id || at.name || "", tag: at.tagName, name, ring: style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0,
    seen: box.width > 0 && box.height > 0 && box.bottom > 0 && box.top < innerHeight }; }"""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Callable[[str], Path]:
    """Return the function that gives the page of a kind, made once."""
    pytest.importorskip("vl_convert")
    folder, pages = tmp_path_factory.mktemp("pages"), {}

    def page_of(kind: str) -> Path:
        if kind not in pages:
            path = folder / f"{kind}.html"
            nights = [
                folder / f"n{number}" if kind == "report" else written(folder / kind / f"n{number}", drawn(number, 300), number)
                for number in range(4)
            ]
            words = {
                "report": ["report", EXAMPLE],
                "compare": ["compare", *nights[:2], "--baseline", "n0", "--run", "n1", "--by", "host,op"],
                "trend": ["trend", *nights, "-p", "50,99"],
            }
            assert run([str(word) for word in (*words[kind], "-o", path)]) == 0
            pages[kind] = path
        return pages[kind]

    return page_of


def looked_at(page: Any) -> None:
    """Find nothing that axe objects to, with all that is folded away open."""
    if not AXE.is_file():
        missing("axe-core of npm (npm ci --prefix tests/vega)")
    page.evaluate("() => document.querySelectorAll('details:not(.tools)').forEach((fold) => (fold.open = true))")
    settle(page)
    page.evaluate(f"{AXE.read_text(encoding='utf-8')};0")
    found = page.evaluate(FOUND)
    assert found == [], json.dumps(found, indent=1)


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["report", "compare", "trend"])
def test_axe_finds_nothing_on_any_page(browser, made, kind: str, scheme: str) -> None:
    with shown(browser, made(kind), BOX if kind == "report" else "", scheme=scheme, size=SCREEN) as page:
        looked_at(page)


@pytest.mark.slow
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_on_the_live_page(browser, tmp_path: Path, scheme: str) -> None:
    url = f"sqlite:{tmp_path / 'a.db'}"
    put(url, plain(range(30)) + plain(range(30), "write", "h2", base=1100))
    with serving(url, refresh_ns=600 * SECOND) as port, blank_page(browser, scheme=scheme, size=SCREEN) as page:
        page.goto(f"http://127.0.0.1:{port}/#box=5,15,,")
        settle(page)
        looked_at(page)


@pytest.mark.slow
def test_a_keyboard_alone_walks_the_first_screen_and_makes_a_box(browser, made) -> None:
    with shown(browser, made("report"), size=SCREEN) as page:
        stops = []
        while not stops or stops[-1]["id"] != "box-clear":
            page.keyboard.press("Tab")
            stops.append(page.evaluate(STOP))
            assert stops[-1]["tag"] != "BODY" and len(stops) < 80, "the box was not reached"
        assert [stop for stop in stops if not (stop["name"] and stop["seen"] and stop["ring"])] == []
        order = [stop["id"] for stop in stops]
        wanted = [
            "percentile",
            "exact",
            "op",
            "host",
            "heatmap",
            "hosts",
            "box-from",
            "box-to",
            "box-low",
            "box-high",
            "box-clear",
        ]
        assert [name for name in order if name in wanted] == wanted
        assert [stop["name"][:14] for stop in stops if stop["tag"] == "A"][:2] == ["ceph-b stalled", "ceph-c looks t"]
        for _ in stops[next(at for at, stop in enumerate(stops) if stop["tag"] == "A") + 1 :]:
            page.keyboard.press("Shift+Tab")  # back to the first sentence
        page.keyboard.press("Enter")
        settle(page)
        assert page.evaluate("[tailboard.state.highlight, tailboard.state.from !== '']") == ["host=ceph-b", True]
        page.keyboard.press("Escape")
        settle(page)
        while page.evaluate(STOP)["id"] != "percentile":
            page.keyboard.press("Tab")
        page.keyboard.press("Home")
        settle(page)
        assert page.evaluate("tailboard.state.p") == "50"
        while page.evaluate(STOP)["id"] != "heatmap":
            page.keyboard.press("Tab")
        for key in ("ArrowRight", "ArrowDown", "b", "ArrowRight", "ArrowRight", "b"):
            page.keyboard.press(key)
        settle(page)
        assert len(page.evaluate("tailboard.state.box").split(",")) == 4
        assert " sample" in page.locator("#box .says").first.inner_text()
        while page.evaluate(STOP)["id"] != "box-clear":
            page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        settle(page)
        assert page.evaluate("tailboard.state.box") == "" and page.inner_text("#box") == ""
