"""The page of `trend` in Chromium: its tables hold what the csv of the command holds, its charts draw it, labels are text."""

from __future__ import annotations

import csv
import io
import math
import shutil
from contextlib import redirect_stdout
from pathlib import Path

import pytest

from ingest.cli import run
from ingest.core.errors import shown as as_shown
from ingest.core.quantiles import parse_percentiles
from ingest.query.question import Question
from ingest.query.trend import Reference, alike, in_order, judged
from ingest.query.trend import trend as trended
from ingest.view.page.trend import trend_page
from tests.browsing import shown
from tests.cli.test_commands import FIO
from tests.doubles.origin import SECOND, ZERO, Made, series
from tests.query.nights import drawn, written
from tests.view.page import HOSTILE, hovered, items_of, rows_of
from tests.view.test_compare_page import CELLS, outside

FIRST_SLOW = 7


@pytest.fixture(scope="module")
def nights(tmp_path_factory) -> Path:
    """Eleven nights, from the seventh on a third slower."""
    folder = tmp_path_factory.mktemp("nights")
    for number in range(1, 12):
        written(folder / f"nightly-{number}", drawn(number - 1, 600, by=1.35 if number >= FIRST_SLOW else 1.0), number - 1)
    return folder


def of_nights(nights: Path, last: int = 11) -> list[str]:
    return [str(nights / f"nightly-{number}") for number in range(1, last + 1)]


@pytest.fixture(scope="module")
def trend_html(nights: Path) -> Path:
    pytest.importorskip("vl_convert")
    assert run(["trend", *of_nights(nights), "--by", "op", "-p", "50,99", "-o", str(nights / "trend.html")]) == 0
    return nights / "trend.html"


@pytest.fixture(scope="module")
def rows(nights: Path) -> list[dict[str, str]]:
    """The rows of the csv of the command."""
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["trend", *of_nights(nights), "--by", "op", "-p", "50,99", "--format", "csv"]) == 0
    return list(csv.DictReader(io.StringIO(out.getvalue())))


@pytest.mark.slow
def test_tables_hold_the_rows_of_the_csv(browser, trend_html: Path, rows: list):
    with shown(browser, trend_html) as page:
        for place, op in enumerate(("read", "write")):
            assert page.locator(f"#h-trend-{place}").inner_text() == f"Percentile by run: {op}"
            found = []
            for name, start, measure, value, (low, high), count, level, change in page.locator(
                f"#panel-trend-{place} tbody tr"
            ).evaluate_all(CELLS):
                found.append([op, name, start, measure.removeprefix("p"), value, low, high, count, level, change, measure])
            wanted = [list({**row, "start": row["start"][:16].replace("T", " ")}.values()) for row in rows if row["op"] == op]
            assert found == wanted
            assert len(found) == 22


@pytest.mark.slow
def test_dots_bounds_levels_and_changes_are_where_their_numbers_are(browser, trend_html: Path, rows: list):
    with shown(browser, trend_html) as page:
        for place, op in enumerate(("read", "write")):
            view, mine = f"trend-{place}", [row for row in rows if row["op"] == op]
            points = {(row["run"], row["label"]): row for row in rows_of(page, view)}
            assert set(points) == {(row["run"], f"p{row['percentile']}") for row in mine}
            low, high = page.evaluate(f"tailboard.views['{view}'].signal('yd')")
            height = page.evaluate(f"tailboard.views['{view}'].height()")

            def up(value: float, low=low, high=high, height=height) -> float:
                return height * (1 - math.log(value / low) / math.log(high / low))

            across = {}
            for dot, bound in zip(items_of(page, view, "dots"), items_of(page, view, "bounds"), strict=True):
                told = dot["datum"]
                (row,) = [row for row in mine if row["run"] == told["run"] and f"p{row['percentile']}" == told["label"]]
                assert [told[name] for name in ("v", "lo", "hi", "n", "level")] == [
                    float(row[name] or row["value"]) for name in ("value", "lo", "hi", "count", "level")
                ]
                assert dot["y"] == pytest.approx(up(float(row["value"])))
                if row["lo"] and row["hi"]:
                    assert sorted((bound["y"], bound["y2"])) == pytest.approx([up(float(row["hi"])), up(float(row["lo"]))])
                across.setdefault(told["run"], set()).add(dot["x"])
            assert sorted(across, key=lambda name: min(across[name])) == [f"nightly-{number}" for number in range(1, 12)]
            steps = items_of(page, view, "steps")
            assert {(item["datum"]["run"], item["datum"]["label"], f"{item['datum']['change']:.15g}") for item in steps} == {
                (row["run"], f"p{row['percentile']}", row["change"]) for row in mine if row["change"]
            }
            assert {item["datum"]["run"] for item in steps} == {f"nightly-{FIRST_SLOW}"}
            says = page.locator(f"#{view}-says").inner_text()
            assert f"p50 changed at nightly-{FIRST_SLOW}: 1.3" in says
        shown_text = page.evaluate(
            "tailboard.views['trend-0'].scenegraph().root.items[0].items.find((one) => one.name === 'level_texts').items.map(({ text }) => text)"
        )
        (change,) = [row for row in rows if row["op"] == "read" and row["percentile"] == "50" and row["change"]]
        before, after = float(change["level"]) / float(change["change"]), float(change["level"])
        assert f"{before / 1000:.3g} µs → {after / 1000:.3g} µs" in shown_text
        tip = hovered(page, "trend-0", "dots")
        assert "nightly-1" in tip and "95 % bounds" in tip and "level" in tip


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("last", "words", "status", "told"),
    [
        (7, ("-p", "50", "--fail-above", "1.2"), 1, "above 1.2: nightly-7: p50 is 1.3"),
        pytest.param(
            6,
            ("-p", "50", "--fail-above", "1.2"),
            0,
            "nightly-6: nothing is certain to be 1.2 times worse than the level before.",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            3,
            ("-p", "99.99", "--fail-above", "1.2"),
            0,
            "cannot tell: nothing of nightly-3 has a run before it",
            marks=pytest.mark.slow,
        ),
        pytest.param(7, ("-p", "50"), 0, "nightly-7 is slower than before: p50 is 1.3", marks=pytest.mark.slow),
        pytest.param(11, ("-p", "50"), 0, "p50 has been 1.3", marks=pytest.mark.slow),
        pytest.param(11, ("-p", "50", "--fail-above", "1.2"), 1, "above 1.2: p50 has been 1.3", marks=pytest.mark.slow),
        (11, ("-p", "50", "--fail-above", "1.2", "--accept", "nightly-7"), 0, "Closest: p50 is 1"),
    ],
)
def test_the_page_says_regression_or_not_as_the_command_does(
    nights: Path, tmp_path: Path, capsys, last: int, words: tuple, status: int, told: str
):
    pytest.importorskip("vl_convert")
    path = tmp_path / "x.html"
    assert run(["trend", *of_nights(nights, last), *words, "-o", str(path)]) == status
    out, errors = capsys.readouterr()
    html = path.read_text(encoding="utf-8")
    verdict = html[html.index('<section class="panel verdict') :].split("</section>")[0]
    assert told in verdict
    if "has been" in told:  # C7: the banner names the change that the panel shows, and since when
        assert "since nightly-7, at least 1." in verdict and "not accepted as normal; nightly-11 itself is 1.3" in verdict
    assert verdict.startswith('<section class="panel verdict bad"') == bool(status)
    assert (told in errors) == ("--fail-above" in words and "nothing is certain" not in told and "--accept" not in words)
    assert out == ""


@pytest.mark.soak
def test_throughput_and_shares_have_panels_of_their_own(browser, nights: Path, tmp_path: Path):
    pytest.importorskip("vl_convert")
    words = ("-p", "50,99", "--throughput", "--above", "300us,5ms")
    path = tmp_path / "x.html"
    assert run(["trend", *of_nights(nights), *words, "-o", str(path)]) == 0
    out = io.StringIO()
    with redirect_stdout(out):
        assert run(["trend", *of_nights(nights), *words, "--format", "csv"]) == 0
    csv_rows = list(csv.DictReader(io.StringIO(out.getvalue())))
    with shown(browser, path) as page:
        titles = [page.locator(f"#h-trend-{place}").inner_text() for place in range(3)]
        assert titles == ["Percentile by run", "Throughput by run", "Share of slow samples by run"]
        for place, names in enumerate((("p50", "p99"), ("throughput",), ("above 300us", "above 5ms"))):
            found = [
                (cells[0], cells[2], cells[3], cells[6])
                for cells in page.locator(f"#panel-trend-{place} tbody tr").evaluate_all(CELLS)
            ]
            assert found == [
                (row["run"], row["measure"], row["value"], row["level"]) for row in csv_rows if row["measure"] in names
            ]
            assert {dot["datum"]["label"] for dot in items_of(page, f"trend-{place}", "dots")} == set(names) - {"above 5ms"}
        assert "/s" in hovered(page, "trend-1", "dots")
        assert " %" in hovered(page, "trend-2", "dots")
        verdict = page.locator(".verdict").inner_text()
        assert verdict.startswith("nightly-11 is slower than before: p") and "above 300us has been " in verdict


@pytest.mark.slow
def test_the_page_is_whole_in_itself(trend_html: Path):
    assert outside(trend_html.read_text(encoding="utf-8")) == []


@pytest.mark.slow
def test_runs_without_a_clock_and_too_few_of_them(browser, tmp_path: Path):
    for number in (10, 9, 1):
        (tmp_path / f"n{number}").mkdir()
        shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", tmp_path / f"n{number}")
    path = tmp_path / "x.html"
    assert run(["trend", *(str(tmp_path / f"n{number}") for number in (10, 9, 1)), "-o", str(path)]) == 0
    with shown(browser, path) as page:
        notes = page.locator(".notes").first.text_content()
        assert "no start time: the runs are in the order of their names" in notes
        assert "3 runs are too few to detect a change of level: it takes 10" in notes
        assert "not known of all: in the order of names" in page.locator("dl").text_content()
        assert [row["run"] for row in rows_of(page, "trend-0")] == ["n1", "n9", "n10"]


def made(runs: list[Made], by: tuple[str, ...], path: Path) -> Path:
    """Write the page of made runs."""
    answers = [one.answer(Question(by=by, step="all")) for one in runs]
    nights, notes = in_order(alike(answers))
    table = trended(nights, parse_percentiles("50,99"))
    path.write_text(
        trend_page(nights, table, judged(table, Reference([night.run for night in nights])), (), (*notes, HOSTILE[0])),
        encoding="utf-8",
    )
    return path


@pytest.mark.slow
def test_labels_are_text(browser, tmp_path: Path):
    def night(place: int) -> Made:
        name = f"{place} {HOSTILE[place % len(HOSTILE)]}"
        rows = [(series(label, run=name), 0, {900 + 5 * place + 40 * at: 300}) for at, label in enumerate(HOSTILE)]
        return Made(rows, zero=ZERO + place * 3600 * SECOND)

    with shown(browser, made([night(place) for place in range(12)], ("op",), tmp_path / "x.html")) as page:
        assert page.evaluate("() => typeof hacked") == "undefined"
        assert page.evaluate("() => document.images.length + document.querySelectorAll('main b, main script').length") == 0
        titles = [title.text_content() for title in page.locator("main h2").all()]
        assert sorted(titles) == sorted(f"Percentile by run: {as_shown(label)}" for label in HOSTILE)
        hovered(page, "trend-0", "dots")
        assert page.evaluate("() => document.querySelectorAll('#vg-tooltip-element :is(img, script, b)').length") == 0
        assert [row["run"] for row in rows_of(page, "trend-0") if row["label"] == "p50"] == [
            f"{place} {as_shown(HOSTILE[place % len(HOSTILE)])}" for place in range(12)
        ]


@pytest.mark.slow
def test_a_run_without_a_group_keeps_its_place_on_the_axis(browser, tmp_path: Path):
    def night(place: int) -> Made:
        ops = ("read", "write") if place != 2 else ("read",)
        return Made([(series(op, run=f"n{place}"), 0, {900: 300}) for op in ops], zero=ZERO + place * 3600 * SECOND)

    with shown(browser, made([night(place) for place in range(5)], ("op",), tmp_path / "x.html")) as page:
        assert page.evaluate("tailboard.views['trend-1'].scale('x').domain()") == [f"n{place}" for place in range(5)]
        assert [item["datum"]["run"] for item in items_of(page, "trend-1", "dots") if item["datum"]["label"] == "p50"] == [
            "n0",
            "n1",
            "n3",
            "n4",
        ]
        assert page.locator("#panel-trend-1 tbody tr").count() == 8
