"""Marks in the report, in a real Chromium: bands where they are, few names, a table of those in view, texts that do nothing."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.cli import run as command
from tests.browsing import shown
from tests.view.page import HOSTILE, choose, items_of, rows_of

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
BEGIN = 1795208405_000
PANELS = ("percentiles", "heatmap", "hosts", "rate", "surface")
PAUSES = 600


@pytest.fixture(scope="module")
def reported(tmp_path_factory) -> Path:
    """The report of the example with notes, a move of data, and 600 pauses of 1 to 60 ms."""
    folder = tmp_path_factory.mktemp("marks")
    lines = ["2026-11-20T21:00:34Z,,osd.3 down", "2026-11-20T21:00:34Z,2026-11-20T21:00:49Z,recovery", f"+70s,,{HOSTILE[1]}"]
    for number in range(PAUSES):
        at = BEGIN + 120 * number
        lines.append(f"{at},{at + 1 + number % 60},pause {number}")
    (folder / "my.csv").write_text("\n".join(lines))
    assert command(["report", str(EXAMPLE), "--marks", str(folder / "my.csv"), "-o", str(folder / "report.html")]) == 0
    return folder / "report.html"


def table_of(page) -> list[list[str]]:
    return page.eval_on_selector_all("#marks-rows tr", "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))")


@pytest.mark.slow
def test_bands_lie_where_the_marks_are_and_only_the_longest_are_drawn(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        assert len(rows_of(page, "percentiles", "marks")) == PAUSES + 3
        for name in PANELS:
            assert len(rows_of(page, name, "instants")) == 2
            bands = items_of(page, name, "lasted")
            assert len(bands) == 98
            low, high = page.evaluate(
                "([name, times]) => times.map(tailboard.views[name].scale('x'))", [name, [BEGIN, BEGIN + 60_000]]
            )
            slope = (high - low) / 60_000
            for band in bands:
                t, t2 = band["datum"]["t"], band["datum"]["t2"]
                assert band["x"] == pytest.approx(low + slope * (t - BEGIN), abs=0.01)
                assert band["width"] == pytest.approx(max(1.5, slope * (t2 - t)), abs=0.01)
            told = [row["t2"] - row["t"] for row in rows_of(page, name, "marks") if "t2" in row]
            drawn = [band["datum"]["t2"] - band["datum"]["t"] for band in bands]
            assert sorted(drawn) == sorted(told)[-98:]


@pytest.mark.slow
def test_notes_wide_bands_and_the_longest_are_named_and_names_do_not_overlap(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        names = [
            (item["datum"]["text"], item["datum"]["lane"], item["datum"]["left"])
            for item in items_of(page, "percentiles", "annotation_texts")
        ]
        assert {"osd.3 down", "recovery"} < {text for text, *_ in names}
        assert len(names) <= 6
        assert len({lane for _, lane, _ in names}) == len(names)
        assert [row["text"] for row in rows_of(page, "hosts", "named")] and all(
            "t2" not in row for row in rows_of(page, "hosts", "named")
        )


@pytest.mark.slow
def test_the_table_lists_what_is_in_view(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        assert len(table_of(page)) == 100
        assert page.inner_text("#marks-says") == "603 marks in view; the 100 that lasted longest are listed."
        assert ["21:00:34 – 21:00:49 UTC", "15 s", "recovery"] in table_of(page)
        assert ["21:00:34 UTC", "", "osd.3 down"] in table_of(page)
        choose(page, "from", "40")
        choose(page, "to", "41")
        rows = table_of(page)
        assert [row[2] for row in rows if not row[2].startswith("pause")] == ["recovery"]
        assert 7 <= len(rows) <= 11
        assert page.inner_text("#marks-says") == f"{len(rows)} marks in view."
        assert {row[2] for row in rows} <= {row["text"] for row in rows_of(page, "percentiles", "lasting")}, (
            "whole windows are drawn"
        )
        choose(page, "clock", "elapsed")
        assert all(row[0].endswith(" s elapsed") for row in table_of(page))


@pytest.mark.slow
def test_a_hostile_text_does_nothing(browser, reported: Path) -> None:
    with shown(browser, reported) as page:
        assert HOSTILE[1] in [row[2] for row in table_of(page)]
        assert page.evaluate("typeof hacked") == "undefined"
