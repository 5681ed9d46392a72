"""The report in a real Chromium: what it draws is what the queries answer, exactly, and it asks the network for nothing."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.grid import in_flight
from ingest.intervals import merged
from ingest.layout import fio_layout
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.ranks import parse_percentiles
from ingest.view.report import MOST_WINDOWS, report
from ingest.view.vega import row_layout
from strategies import made

CHROMIUM = Path("/usr/bin/chromium")
FLAGS = ["--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"]
HOSTILE = ("</script><script>hacked = 1</script>", "<img src=x onerror='hacked = 1'>", "<b>bold</b>", "\u2028'\"&")
SECOND = 1_000_000_000
ZERO = 1_795_208_404 * SECOND
NS = fio_layout(29, 1)


def missing(what: str) -> None:
    """Skip, or fail where CI is to have everything."""
    if os.environ.get("CI"):
        pytest.fail(f"{what} is not here, and CI is to test the page")
    pytest.skip(f"{what} is not here")


@pytest.fixture(scope="module")
def browser():
    try:
        import vl_convert  # noqa: F401
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        missing(str(error.name))
    if not CHROMIUM.is_file():
        missing(str(CHROMIUM))
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=str(CHROMIUM), args=FLAGS)
        yield chromium
        chromium.close()


@pytest.fixture
def opened(browser, tmp_path):
    """Return the context manager that opens the report of an answer, and in the end finds no error and no request."""

    @contextmanager
    def page_of(answer: Answer, facts=(), marks=(), **context) -> Iterator:
        path = tmp_path / "report.html"
        path.write_text(report(answer, facts, marks), encoding="utf-8")
        heard, asked = [], []
        window = browser.new_context(viewport={"width": 1200, "height": 900}, **context)
        page = window.new_page()
        page.on("console", lambda message: heard.append(f"{message.type}: {message.text}"))
        page.on("pageerror", lambda error: heard.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri())
        settle(page)
        yield page
        settle(page)
        assert page.locator("#failed").is_hidden()
        window.close()
        assert heard == []
        assert asked == [path.as_uri()]

    return page_of


def settle(page) -> None:
    """Wait until the page has drawn what it was last told."""
    page.evaluate("window.tailboard.ready")


def move(page, percentile: str) -> None:
    """Move the slider."""
    page.locator("input[type=range]").fill(percentile)
    settle(page)


def rows_of(page, view: str, data: str) -> list[dict]:
    """Return the rows of a data set of a view."""
    return page.evaluate("([view, data]) => window.tailboard.views[view].data(data).map(row => ({...row}))", [view, data])


def keyed(rows: list[dict], *names: str) -> dict:
    """Return the drawn values by the named columns."""
    found = {tuple(row[name] for name in names): row["v"] for row in rows}
    assert len(found) == len(rows)
    return found


def drawn(page) -> dict:
    """Return the drawn percentiles by (window start in ms, group)."""
    return keyed(rows_of(page, "percentiles", "points"), "t", "group")


def drawn_over(page) -> dict:
    """Return the percentiles drawn over the heat map by (window start in ms,)."""
    return keyed(rows_of(page, "heatmap", "points"), "t")


def answered(answer: Answer, percentile: str) -> dict:
    """Return what the query answers by (window start in ms, *labels), where it has a value."""
    table = percentiles(answer, Wanted(parse_percentiles(percentile)))
    labels = [table.columns[name] for name in answer.by]
    values = zip(table.columns["start_ns"] // 1_000_000, *labels, table.columns[f"p{percentile}"], strict=True)
    return {(int(t), *group): int(value) for t, *group, value in values if not np.isnan(value)}


def hovered(page, chart: str) -> str:
    """Return the text of a tooltip of the chart: the pointer is moved over its first drawn item."""
    mark = "targets" if chart == "#percentiles" else "heat"
    x, y = page.evaluate(
        """([name, mark]) => { const view = window.tailboard.views[name], [left, top] = view.origin(), pad = view.padding();
        const box = view.scenegraph().root.items[0].items.find(found => found.name === mark).items[0].bounds;
        return [pad.left + left + (box.x1 + box.x2) / 2, pad.top + top + (box.y1 + box.y2) / 2]; }""",
        [chart[1:], mark],
    )
    page.locator(chart).evaluate("chart => chart.scrollIntoView({block: 'center'})")
    place = page.locator(f"{chart} svg, {chart} canvas").first.bounding_box()
    for step in (-1, 0, 0.4):
        page.mouse.move(place["x"] + x + step, place["y"] + y)
        settle(page)
    page.locator("#vg-tooltip-element.visible").wait_for()
    return page.locator("#vg-tooltip-element").inner_text()


def answer_of(rows, groups=(("read",), ("write",)), **words) -> Answer:
    """Return an answer of (group, window, {bin: count}) rows, in windows of a second."""
    part = made(NS, [(code, ZERO + at * SECOND, ZERO + (at + 1) * SECOND, bins) for code, at, bins in rows])
    known = {"by": ("op",), "step_ns": SECOND, "kind": "completion", "runs": ("r",), "run_start_ns": {"r": ZERO}}
    known |= {"relative": False, "series": 2}
    return Answer((merged([replace(part, table=groups)]),), **(known | words))


@pytest.fixture(scope="module")
def files(archive) -> Files:
    return Files([archive])


@pytest.fixture(scope="module")
def example(files) -> Answer:
    return files.answer(Question(by=("op",), step="auto"))


def test_lines_are_what_the_query_answers(opened, example, files):
    whole = files.answer(Question(by=("op",), step="all"))
    together = files.answer(Question(step=example.step_ns))
    with opened(example) as page:
        assert drawn(page) == answered(example, "99")
        for percentile in ("50", "99", "99.9", "75", "50.01", "98.37", "99.5", "99.83", "99.99"):
            move(page, percentile)
            assert drawn(page) == answered(example, percentile), percentile
            assert drawn_over(page) == answered(together, percentile), percentile
            expected = {(group,): value for (_, group), value in answered(whole, percentile).items()}
            assert keyed(rows_of(page, "percentiles", "whole"), "group") == expected, percentile


def test_ranks_are_exact_whatever_the_counts(opened):
    random = np.random.default_rng(20_261_120)
    sizes = [1, 2, 3, 10, 99, 100, 101, 999, 1000, 1001, 9999, 10_000, 10_001, 123_457, 9_999_999_937]
    rows = []
    for at, size in enumerate(sizes):
        for code in (0, 1):
            cuts = np.unique(random.integers(0, size + 1, 40))
            counts = np.diff([0, *cuts, size])
            places = 600 + np.sort(random.choice(900, len(counts), replace=False))
            rows.append((code, at * 2, {int(p): int(c) for p, c in zip(places, counts, strict=True) if c}))
    answer = answer_of(rows)
    with opened(answer) as page:
        for percentile in ("50", "90", "99", "99.9", "99.99", "50.01", "66.67", "58.07", "99.29", "97.49", "99.01", "83.33"):
            move(page, percentile)
            assert drawn(page) == answered(answer, percentile), percentile


def test_weights_are_ranked_like_counts(opened):
    rows = [
        (code, ZERO + at * SECOND, ZERO + (at + 1) * SECOND, {1000: 60, 1300: 30 + at, 1500: 11, 1640: 3})
        for at in range(4)
        for code in (0, 1)
    ]
    part = replace(in_flight(made(NS, rows), SECOND), table=(("read",), ("write",), ("",), ("",)))
    answer = replace(answer_of([(0, 0, {1: 1})]), parts=(merged([part]),))
    with opened(answer) as page:
        for percentile in ("50", "90", "95.5", "99", "99.9"):
            move(page, percentile)
            assert drawn(page) == answered(answer, percentile), percentile


def test_heat_map_holds_every_sample(opened, example, fio):
    total = "() => window.tailboard.views.heatmap.data('shown').reduce((sum, cell) => sum + cell.c, 0)"
    for answer in (example, Files([fio / "randrw"]).answer(Question(by=("op",)))):
        counts = {
            key[0]: int(part.samples[part.series == code].sum()) for part in answer.parts for code, key in enumerate(part.table)
        }
        with opened(answer) as page:
            assert page.evaluate(total) == answer.samples
            for op, count in counts.items():
                page.locator("select[name=series]").select_option(op)
                settle(page)
                assert page.evaluate(total) == count
                assert drawn_over(page) == {(t,): value for (t, group), value in answered(answer, "99").items() if group == op}


def test_shading_is_rank_or_proportion(opened):
    answer = answer_of([(0, 0, {700: 1, 800: 1, 900: 2, 1000: 8})])
    fills = """() => window.tailboard.views.heatmap.scenegraph().root.items[0].items.find(mark => mark.name === "heat")
        .items.map(item => [item.datum.c, item.datum.rank / item.datum.cells, item.fill])"""
    with opened(answer) as page:
        by_rank = page.evaluate(fills)
        assert sorted((count, rank) for count, rank, _ in by_rank) == [(1, 0.5), (1, 0.5), (2, 0.75), (8, 1)]
        page.get_by_label("linear").check()
        settle(page)
        in_proportion = page.evaluate(fills)
        assert {count: fill for count, _, fill in by_rank}[8] == {count: fill for count, _, fill in in_proportion}[8]
        assert {count: fill for count, _, fill in by_rank}[1] != {count: fill for count, _, fill in in_proportion}[1]


def test_a_window_without_completions_is_a_gap(opened):
    answer = answer_of([(code, at, {900: 400}) for code in (0, 1) for at in (0, 1, 4, 5)])
    with opened(answer) as page:
        for view in ("percentiles", "heatmap"):
            assert [row["t"] for row in rows_of(page, view, "gaps")] == [ZERO // 1_000_000 + at * 1000 for at in (2, 3)]
        assert sum(row["last_t2"] == row["t"] for row in rows_of(page, "percentiles", "points")) == 4


def test_a_window_with_too_few_samples_is_a_gap(opened):
    answer = answer_of([(0, 0, {900: 999}), (0, 1, {900: 1000}), (0, 2, {900: 1})])
    with opened(answer) as page:
        for percentile, windows in (("50", 3), ("99", 2), ("99.9", 1), ("99.91", 0), ("99.99", 0)):
            move(page, percentile)
            assert len(drawn(page)) == windows
        assert "too few samples" in page.locator("#readout").inner_text()


def test_labels_are_text(opened):
    groups = tuple((label,) for label in HOSTILE)
    answer = answer_of(
        [(code, at, {900 + 60 * code: 500}) for code in range(4) for at in range(4)], groups, runs=HOSTILE, warnings=HOSTILE
    )
    marks = [{"run": "r", "at_ns": ZERO + SECOND, "text": HOSTILE[1]}]
    with opened(answer, [(HOSTILE[1], HOSTILE[0])], marks) as page:
        assert page.evaluate("() => typeof hacked") == "undefined"
        assert page.evaluate("() => document.images.length + document.querySelectorAll('main b b').length") == 0
        for label in HOSTILE[:3]:
            assert label in page.locator("h1").inner_text()
            assert label in page.locator("#readout").inner_text()
            assert label in page.locator("#percentiles svg").text_content()
        assert page.locator("select[name=series] option").count() == 5
        tip = hovered(page, "#percentiles")
        assert any(label in tip for label in HOSTILE[:3])
        assert page.evaluate("() => document.querySelectorAll('#vg-tooltip-element :is(img, script, b)').length") == 0


def test_tooltips_tell_the_exact_range(opened):
    rows = row_layout(NS)
    (at,) = rows.index(NS.edges[954:955])
    assert rows.edges[at : at + 2].tolist() == [983_040, 1_048_576]
    with opened(answer_of([(0, 0, {954: 3, 956: 1}), (1, 0, {1500: 196})])) as page:
        tip = hovered(page, "#heatmap")
        assert "983.04 µs – 1.048576 ms" in tip
        assert "4" in tip.split()
        assert "2%" in tip.split()
        assert "21:00:04 – 21:00:05 UTC" in tip
        page.get_by_label("elapsed").check()
        settle(page)
        assert "0.0 – 1.0 s elapsed" in hovered(page, "#heatmap")
        assert "write" in hovered(page, "#percentiles")


def test_keyboard_reaches_the_slider(opened, example):
    with opened(example) as page:
        slider = page.get_by_role("slider", name="Percentile")
        slider.focus()
        page.keyboard.press("ArrowLeft")
        settle(page)
        assert slider.input_value() == "98.99"
        assert drawn(page) == answered(example, "98.99")
        assert "p98.99" in page.locator("#readout").inner_text()
        assert "p98.99" in slider.get_attribute("aria-valuetext")
        page.keyboard.press("Home")
        settle(page)
        assert drawn(page) == answered(example, "50")
        page.get_by_label("Percentile as a number").fill("99.5")
        page.keyboard.press("Enter")
        settle(page)
        assert slider.input_value() == "99.5"
        assert drawn(page) == answered(example, "99.5")


def test_dark_narrow_relative_and_printed(opened, example):
    with opened(replace(example, relative=True), color_scheme="dark") as page:
        page.set_viewport_size({"width": 390, "height": 800})
        settle(page)
        assert page.evaluate("() => document.documentElement.scrollWidth") == 390
        assert page.locator("[name=clock]").count() == 0
        page.emulate_media(color_scheme="light")
        settle(page)
        assert page.pdf().startswith(b"%PDF")
        settle(page)
        assert drawn(page) == answered(example, "99")


def test_one_window(opened, files):
    answer = files.answer(Question(by=("op",), step="all"))
    with opened(answer) as page:
        assert drawn(page) == answered(answer, "99")


def test_most_windows(opened):
    answer = answer_of([(0, at, {1000 + at % 40: 100 + at, 1200: 3}) for at in range(2 * MOST_WINDOWS)])
    with opened(answer) as page:
        assert len(drawn(page)) == MOST_WINDOWS
        assert "widened" in page.locator(".notes").inner_text()
