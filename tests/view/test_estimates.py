"""What averaging would have said, in the report: the panel's numbers are those of the query layer, its sentence that of the data."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.estimates import estimated
from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.view.page.panels import estimates as estimate_section
from ingest.view.page.report import parts_from, run_names
from ingest.view.page.template import page_of
from tests.browsing import shown
from tests.doubles.origin import SECOND, ZERO, Made, series
from tests.view.page import choose, rows_of, settle

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
CBT = ROOT / "tests" / "data" / "estimates" / "cbt"
FOLDER = Path(estimate_section.__file__).parents[1]
NODE = shutil.which("node")


def js(code: str, given):
    """Return what the code returns in Node; `e` is estimates.js, `given` the value that is handed over."""
    if NODE is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test estimates.js")
        pytest.skip("node is not here")
    program = f"""
        globalThis.tailboard = {{ sections: [] }};
        const e = require({json.dumps(str(FOLDER / "panels/estimates.js"))}), given = JSON.parse(process.argv[1]);
        process.stdout.write(JSON.stringify((() => {{ {code} }})()));"""
    done = subprocess.run([NODE, "-e", program, json.dumps(given)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def told_of(path: Path, **words) -> tuple[dict, Files]:
    files = Files([path], jobs=1)
    question = Question(**words)
    runs = overviews(files, files.run_names, question)
    (section,) = estimate_section.sections(runs, files, question)
    (told,) = section.content
    return told, files


def test_the_panel_holds_what_the_query_layer_answers() -> None:
    told, files = told_of(CBT)
    assert told["step"] == 1000 and told["kind"] == "completion" and told["series"] == 4
    wanted = parse_percentiles("50,90,95,99,99.9")
    question = Question(step=SECOND)
    answer = files.answer(question)
    table = percentiles(answer, Wanted(wanted))
    names = ("cbt", "mean-of-means", "mean-of-percentiles")
    found = {one.name: one for one in estimated(files, question, answer, table, wanted, names)}
    assert told["t"] == [start / 1e6 for start in table.columns["start_ns"].tolist()]
    assert told["n"] == table.columns["count"].tolist()
    for percentile in wanted:
        name = percentile.name
        lines = {"exact": table.columns[name], f"mean of {name}": found["mean-of-percentiles"].columns[name]}
        lines |= {f"{name} of means": found["mean-of-means"].columns[name], "CBT": found["cbt"].columns[name]}
        assert list(told["p"][percentile.text]) == list(lines)
        for label, values in lines.items():
            assert told["p"][percentile.text][label] == [None if np.isnan(value) else round(value) for value in values.tolist()]


def test_the_example_has_no_line_of_cbt_and_is_off_in_every_window() -> None:
    told, _ = told_of(EXAMPLE)
    assert list(told["p"]["99"]) == ["exact", "mean of p99", "p99 of means"]  # ten of its twelve jobs have no _clat log
    points = js("return e.pointsOf(given, '99', -Infinity, Infinity)", told)
    assert len(points) == sum(value is not None for values in told["p"]["99"].values() for value in values)
    top = js("return e.furthest(given)", points)
    ratio = {(one["t"], one["label"]): one["v"] / one["truth"] for one in points if one["label"] != "exact"}
    far = max(ratio, key=lambda key: abs(np.log(ratio[key])))
    assert (top["t"], top["label"]) == far and top["off"] == "7.9 times too high"
    for label, share in js("return e.typical(given)", points):
        ratios = sorted(value for (_, other), value in ratio.items() if other == label)
        assert share == ratios[(len(ratios) - 1) // 2]


def test_words_of_errors_and_the_nearest_percentile() -> None:
    cases = [[6, 30], [90, 30], [61, 60], [1000, 10], [30, 30], [59.9, 30]]
    assert js("return given.map(([v, truth]) => e.offBy(v, truth))", cases) == [
        "80 % too low", "3.0 times too high", "1.7 % too high", "100 times too high", "right", "100 % too high",
    ]  # fmt: skip
    assert js("return given.map((p) => e.nearest(['50', '90', '95', '99', '99.9'], p))", ["50", "97", "100", "98"]) == [
        "50",
        "95",
        "99.9",
        "99",
    ]


def test_points_out_of_view_and_of_windows_without_a_truth() -> None:
    told = {
        "t": [0, 1000, 2000],
        "n": [5, 6, 7],
        "step": 1000,
        "p": {"99": {"exact": [None, 20, 30], "mean of p99": [7, 10, None]}},
    }
    points = js("return e.pointsOf(given, '99', 0, 2000)", told)
    assert [(one["t"], one["label"], one["v"], one["off"]) for one in points] == [
        (1000, "exact", 20, "exact"), (0, "mean of p99", 7, ""), (1000, "mean of p99", 10, "50 % too low"),
    ]  # fmt: skip
    assert js("return e.furthest(given)?.v", points) == 10
    assert js("return e.furthest(given)", points[:1]) is None


def many(threads: int, slow: int) -> Made:
    """Return threads of which the last one is slow."""
    rows = []
    for thread in range(threads):
        bins = {900: 99, 1200 if thread == threads - 1 and slow else 905: 40}
        rows += [(series(host=f"h{thread % 3}", job=str(thread)), at, bins) for at in range(5)]
    return Made(rows)


def test_there_is_no_panel_where_nothing_is_off_and_of_many_threads_no_means() -> None:
    even, uneven = many(4, slow=0), many(40, slow=1)
    assert estimate_section.sections(even.overviews(), even, Question()) == []
    (section,) = estimate_section.sections(uneven.overviews(), uneven, Question())
    (told,) = section.content
    assert list(told["p"]) == ["50", "99"] and list(told["p"]["99"]) == ["exact", "mean of p99"]
    table = percentiles(uneven.answer(Question(step=int(told["step"] * 1e6))), Wanted(parse_percentiles("99")))
    assert told["p"]["99"]["exact"] == table.columns["p99"].tolist()
    assert told["t"][0] * 1e6 == ZERO
    whole = uneven.overviews(step="all")
    assert estimate_section.sections(whole, uneven, Question(step="all")) == []


def test_a_report_of_files_has_the_panel_at_its_end_and_a_live_page_none() -> None:
    files = Files([CBT], jobs=1)
    with_panel = parts_from(files, run_names(files), Question(), estimates=True)
    assert with_panel.sections[-1] == "estimates" and "estimates" not in parts_from(files, run_names(files), Question()).sections
    page = page_of(with_panel)
    assert page.index('id="distribution"') < page.index('id="estimates"') < page.index("<footer>")


@pytest.mark.slow
def test_the_panel_in_a_browser(browser, tmp_path) -> None:
    files = Files([CBT], jobs=1)
    path = tmp_path / "report.html"
    path.write_text(page_of(parts_from(files, run_names(files), Question(), estimates=True)), encoding="utf-8")
    told, _ = told_of(CBT)
    with shown(browser, path) as page:
        assert {(row["t"], row["label"], row["v"]) for row in rows_of(page, "estimates")} == {
            (t, label, v)
            for label, values in told["p"]["99"].items()
            for t, v in zip(told["t"], values, strict=True)
            if v is not None
        }
        says = page.locator("#estimates-says")
        assert "where the p99 of means says 3.084 ms and p99 is 33.42 ms (91 % too low)" in says.inner_text()
        assert "Off by more than 10 % in 11 of 11 windows of 1 s, of 4 series." in says.inner_text()
        choose(page, "p", "97")
        assert "shown: p95" in says.inner_text() and {row["label"] for row in rows_of(page, "estimates")} == set(told["p"]["95"])
        choose(page, "from", "2")
        choose(page, "to", "5")
        settle(page)
        assert len({row["t"] for row in rows_of(page, "estimates")}) in (3, 4)
