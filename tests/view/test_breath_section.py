"""Breath efficiency in the report: the numbers of breaths.js held against the query layer, then the page in Chromium."""

from __future__ import annotations

import json
import math
import os
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import numpy as np
import orjson
import pytest

from breath_rings import BAD, BEGAN, GOOD, Work, rings
from ingest.core.breaths import BREATH, LONGEST, only
from ingest.core.grid import SECOND
from ingest.core.units import parse_instant
from ingest.query.breaths import breath_rows, costs, density, fits, from_files, names_of
from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.page.panels import breaths as breath_section
from ingest.view.page.report import parts_from
from ingest.view.page.template import page_of
from oracles import snabb as oracle
from tests.browsing import shown
from tests.store.grounds import loaded
from tests.view.page import choose, items_of, rows_of, settle

FOLDER = Path(breath_section.__file__).parents[1]
NODE = shutil.which("node")
WORKS = {
    "bad": BAD,
    "constant": Work(burst=0, breaths=200),
    "counted": Work(counters=True, breaths=600),
    "good": GOOD,
    "none": Work(slope=0, breaths=250),
    "tiny": Work(breaths=12),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory) -> Files:
    return Files([rings(tmp_path_factory.mktemp("rings"), **WORKS)], ReadOptions(run="r"), jobs=1)


@pytest.fixture(scope="module")
def kept(files):
    return from_files(files, Question())


def js(code: str, given):
    """Return what the code returns in Node; `b` is breaths.js, `given` the value that is handed over."""
    if NODE is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test breaths.js")
        pytest.skip("node is not here")
    program = f"""
        globalThis.tailboard = require({json.dumps(str(FOLDER / "script/numbers.js"))});
        const b = require({json.dumps(str(FOLDER / "panels/breaths.js"))});
        let text = ""; process.stdin.on("data", (part) => text += part).on("end", () => {{
          const given = JSON.parse(text);
          process.stdout.write(JSON.stringify((() => {{ {code} }})()));
        }});"""
    text = orjson.dumps(given, option=orjson.OPT_SERIALIZE_NUMPY).decode()
    done = subprocess.run([NODE, "-e", program], input=text, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def summed(told, begin=None, end=None) -> dict:
    code = """const all = b.addedUp(given.told, b.windowsIn(given.told, given.begin, given.end));
        return all.map((one) => ({ ...one, cells: b.cellsOf(one, given.told.edges), fit: b.fitOf(one) }));"""
    return {one["name"]: one for one in js(code, {"told": told, "begin": begin, "end": end})}


def in_cells(windows, name) -> dict:
    """Return (count, stored) by group and edges of the cell."""
    found = density(windows, name)
    columns = (found.packets, found.packets_to, found.cycles, found.cycles_to, found.count, found.n)
    rows = zip(found.group.tolist(), *(column.tolist() for column in columns))
    return {(found.groups[group], *edges): (count, n) for group, *edges, count, n in rows}


def check(told: dict, windows) -> None:
    """Hold what the page adds up against the query layer."""
    name = names_of(windows)
    lines = fits(windows, name)
    costs_of = {cost.name: cost for cost in costs(windows, name)}
    assert {one for one, row in told.items() if row["n"]} == costs_of.keys()
    cells = {
        (row["facet"], row["x"], row["x2"], row["y"], row["y2"]): (row["c"], row["n"])
        for one in told.values()
        for row in one["cells"]
    }
    assert cells == in_cells(windows, name)
    for one, cost in costs_of.items():
        row, fit = told[one], lines[one]
        assert (row["n"], row["known"], row["idle"], row["longest"], row["estimated"]) == (
            cost.n,
            cost.known,
            cost.idle,
            cost.longest,
            cost.all_breaths,
        )
        assert row["sums"][:2] == [cost.packets, cost.cycles]
        assert ("why" in row["fit"]) == bool(fit.why), one
        if fit.why and not math.isnan(fit.residual):
            assert row["fit"]["residual"] == pytest.approx(fit.residual, rel=1e-6, abs=1e-3), one
        assert ("residual" in row["fit"]) == (not math.isnan(fit.residual)), one
        if not fit.why:
            numbers = [row["fit"][word] for word in ("base", "slope", "error", "explained", "residual")]
            assert numbers == pytest.approx([fit.base, fit.slope, fit.error, fit.explained, fit.residual], rel=1e-6)


def test_sums_cells_and_lines_are_those_of_the_query(kept) -> None:
    told = breath_section.content_of(kept)
    assert told["step"] == 1000
    check(summed(told), kept.windows)
    reasons = {name: one["fit"].get("why", "") for name, one in summed(told).items()}
    assert (
        "too few" in reasons["tiny"]
        and "every breath moved 0 packets" in reasons["constant"]
        and "not certain" in reasons["none"]
    )


def test_a_time_range_takes_its_windows(files, kept) -> None:
    told = breath_section.content_of(kept)
    begin, end = told["origin"] + 1000, told["origin"] + 2000
    question = Question(begin=parse_instant(f"{begin:.0f}"), end=parse_instant(f"{end:.0f}"))
    part = from_files(files, question)
    assert 0 < part.windows.count.sum() < kept.windows.count.sum()
    check(summed(told, begin, end), part.windows)


def test_breaths_of_unlike_rates_count_by_their_weight(kept) -> None:
    """Two rates in one process: half of the windows stand for five times as many."""
    rates = np.where(np.arange(len(kept.windows)) % 2, 6, 5)
    mixed = replace(kept.windows, rate=rates)
    told = breath_section.content_of(replace(kept, windows=mixed))
    check(summed(told), mixed)
    assert any(one.get("mixed") for one in summed(told).values())


def test_windows_are_added_up_for_the_size_of_the_page(kept, monkeypatch) -> None:
    monkeypatch.setattr(breath_section, "MOST_CELLS", 300)
    told = breath_section.content_of(kept)
    assert told["step"] > 1000 and len(told["windows"]["cell"]) < len(kept.windows.cells)
    check(summed(told), kept.windows)
    few = breath_section.thinned(kept.sample, 60)
    assert (np.diff(few.at_ns) >= 0).all()
    for code, series in enumerate(few.table):
        mine = kept.sample.series == kept.sample.table.index(series)
        order, cycles, second = (
            column[mine] for column in (kept.sample.order, kept.sample.cycles, (kept.sample.at_ns - 1) // SECOND)
        )
        first = set(np.sort(order)[:10].tolist())
        longest = set(order[np.argsort(-cycles, kind="stable")[:LONGEST]].tolist())
        drawn = set(few.order[few.series == code].tolist())
        assert first | longest <= drawn
        most = {int(cycles[second == each].max()) for each in np.unique(second)}
        assert most <= set(few.cycles[few.series == code].tolist())
        assert len(drawn) <= 10 + LONGEST + len(most)


@pytest.fixture
def opened(browser, tmp_path):
    def page(files: Files, fragment: str = "", **context):
        path = tmp_path / "report.html"
        path.write_text(page_of(parts_from(files, files.run_names, Question())), encoding="utf-8")
        return shown(browser, path, fragment, **context)

    return page


def says(page, name: str) -> str:
    return page.locator(f"#{name}-says").inner_text()


def names(page, view: str) -> list[str]:
    return [row["facet"] for row in rows_of(page, view, "facets")]


@pytest.mark.slow
def test_the_panels_hold_what_the_query_finds(opened, files, kept) -> None:
    windows = breath_rows(kept.windows)
    name = names_of(kept.windows)
    worst = [cost.name for cost in costs(windows, name)]
    with opened(files) as page:
        assert names(page, "breaths") == names(page, "density") == worst[:4]
        cells = in_cells(windows, name)
        expected = sorted((*key, *found) for key, found in cells.items() if key[0] in worst[:4])
        drawn = rows_of(page, "density", "cells")
        assert sorted((row["facet"], row["x"], row["x2"], row["y"], row["y2"], row["c"], row["n"]) for row in drawn) == expected
        assert len(items_of(page, "density", "heat")) == len(drawn)
        points = rows_of(page, "breaths")
        for facet in worst[:4]:
            mine = {
                (int(x), int(y))
                for code, x, y in zip(kept.sample.series, kept.sample.packets, kept.sample.cycles)
                if name(kept.sample.table[code]) == facet
            }
            assert {(row["x"], row["y"]) for row in points if row["facet"] == facet} <= mine
        assert "The 4 of 6 processes with the most cycles a packet." in says(page, "breaths")
        rows = page.locator("#costs-rows tr").all_inner_texts()
        assert [row.split("\t")[0] for row in rows] == worst
        assert any("too few for a line" in row for row in rows)
        calls = page.locator("#callbacks-rows tr").all_inner_texts()
        assert {row.split("\t")[0] for row in calls} == {
            cost.name for cost in costs(only(kept.windows, lambda series: series.op != BREATH), name)
        }
        assert page.locator("#callbacks-none").is_hidden()


@pytest.mark.slow
def test_a_process_is_chosen_and_axes_are_changed(opened, files) -> None:
    with opened(files) as page:
        choose(page, "process", "bad")
        assert names(page, "breaths") == names(page, "density") == ["bad"]
        assert says(page, "breaths").startswith("bad takes ")
        choose(page, "process", "")
        choose(page, "pictures", "6")
        assert len(names(page, "density")) == 6
        choose(page, "spread", "linear")
        begin, _ = page.evaluate("tailboard.views.density.signal('xd')")
        assert begin == 0
        assert "spread=linear" in page.url and "pictures=6" in page.url


@pytest.mark.slow
def test_every_cell_and_dot_is_where_its_number_is(opened, files) -> None:
    with opened(files) as page:
        choose(page, "process", "good")
        (low, high), (bottom, top) = (page.evaluate(f"tailboard.views.density.signal('{name}')") for name in ("xd", "yd"))
        main, tall = (page.evaluate(f"tailboard.views.density.signal('{name}')") for name in ("main", "tall"))
        for item in items_of(page, "density", "heat"):
            row = item["datum"]
            x, x2 = (main * np.log((edge - 0.5) / low) / np.log(high / low) for edge in (row["x"], row["x2"]))
            y, y2 = (tall * (1 - np.log(edge / bottom) / np.log(top / bottom)) for edge in (row["y2"], row["y"]))
            assert [item["x"], item["x"] + item["width"], item["y"], item["y"] + item["height"]] == pytest.approx(
                [x, x2, y, y2], abs=1.1
            )
        (_, high), (bottom, top) = (page.evaluate(f"tailboard.views.breaths.signal('{name}')") for name in ("xd", "yd"))
        for item in items_of(page, "breaths", "breaths"):
            row = item["datum"]
            place = (main * row["x"] / high, tall * (1 - np.log(row["y"] / bottom) / np.log(top / bottom)))
            assert (item["x"], item["y"]) == pytest.approx(place, abs=1)


@pytest.mark.slow
def test_a_click_on_a_cell_tells_its_counts(opened, files) -> None:
    with opened(files) as page:
        choose(page, "process", "good")
        page.locator("#density").evaluate("chart => chart.scrollIntoView({block: 'center'})")
        found = page.evaluate("""() => { const view = tailboard.views.density, [left, top] = view.origin(), pad = view.padding();
            const box = view.scenegraph().root.items[0].items.find((one) => one.name === 'heat').items.find(({ datum }) => datum.n > 20);
            return [pad.left + left + (box.bounds.x1 + box.bounds.x2) / 2, pad.top + top + (box.bounds.y1 + box.bounds.y2) / 2, {...box.datum}]; }""")
        box = page.locator("#density canvas").bounding_box()
        page.mouse.click(box["x"] + found[0], box["y"] + found[1])
        settle(page)
        told = page.locator("#breath-cell").inner_text()
        assert told.startswith("good, ") and f"{found[2]['n']:,} breaths" in told


@pytest.mark.slow
def test_the_time_range_of_the_page_is_obeyed(opened, files, kept) -> None:
    start = kept.windows.start_ns.min()
    with opened(files) as page:
        run_start = page.evaluate("tailboard.content.runs[0].start")
        begin = (int(start) // 10**6 + 1000 - run_start) / 1000
        page.evaluate(f"location.hash = 'from={begin}&to={begin + 1}&pictures=6'")
        settle(page)
        question = Question(
            begin=parse_instant(f"{int(start) // 10**6 + 1000}"), end=parse_instant(f"{int(start) // 10**6 + 2000}")
        )
        expected = breath_rows(from_files(files, question).windows)
        assert sum(row["n"] for row in rows_of(page, "density", "cells")) == expected.counts.sum() > 0


@pytest.mark.slow
def test_each_run_of_a_report_has_its_own_breaths(browser, tmp_path) -> None:
    """A run without breaths hides the panels, a chosen process is that of the run."""
    silent = oracle.Writer(64)
    for number in range(20):
        silent.event("2,3|engine.got_monotonic_time: unixnanos", 10**12 + number * 10**6, 0, BEGAN + number * 10**6 // 2)
        silent.event("3,3|app.push app=x:", 10**12 + number * 10**6 + 100)
    runs = {"bad": {"a": Work(breaths=100), "b": Work(slope=60, breaths=100)}, "good": {"a": Work(breaths=80)}}
    folders = {run: rings(tmp_path / run, **works) for run, works in runs.items()}
    (tmp_path / "none").mkdir()
    (tmp_path / "none" / "x.timeline").write_bytes(silent.data())
    for run, folder in {**folders, "none": tmp_path / "none"}.items():
        loaded(f"sqlite:{tmp_path / 's.db'}", [folder], run=run)
    path = tmp_path / "report.html"
    with open_store(f"sqlite:{tmp_path / 's.db'}") as store:
        path.write_text(page_of(parts_from(store, ["bad", "good", "none"], Question())), encoding="utf-8")
    with shown(browser, path) as page:
        for run, processes in (("bad", ["b", "a"]), ("good", ["a"]), ("none", []), ("bad", ["b", "a"])):
            choose(page, "run", run)
            assert page.locator("#breaths").is_visible() == bool(processes)
            assert not processes or names(page, "breaths") == processes
            assert page.locator("select[name=process] option").count() == 1 + len(processes)


@pytest.mark.slow
def test_names_of_processes_are_shown_and_do_nothing(opened, tmp_path) -> None:
    hostile = ["<img src=x onerror='hacked = 1'>", "<b>bold & 'quoted'", "x" * 120]
    files = Files([rings(tmp_path / "rings", **{name: Work(breaths=60) for name in hostile})], ReadOptions(run="r"), jobs=1)
    with opened(files, "#spread=linear") as page:
        assert sorted(names(page, "breaths")) == sorted(hostile)
        assert sorted(page.locator("#costs-rows th").all_inner_texts()) == sorted(hostile)
        choose(page, "process", hostile[0])
        assert names(page, "density") == [hostile[0]]
        assert page.evaluate("typeof hacked") == "undefined"


@pytest.mark.slow
def test_a_report_without_timelines_has_no_such_panel() -> None:
    fio = Files([Path(__file__).parents[1] / "data" / "fio" / "randrw"], ReadOptions(run="r"))
    [run] = overviews(fio, fio.run_names, Question())
    assert breath_section.sections_of(from_files(fio, Question()), [run.run]) == []
