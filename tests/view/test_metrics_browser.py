"""Metrics on the page: their own pictures on the axis of time of all panels, with exactly the values of their file."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.units import Instant
from ingest.view.page.panels.marks import Shown
from ingest.view.page.panels.metrics import MOST, MOST_VALUES, sections
from tests.browsing import shown
from tests.doubles.origin import SECOND
from tests.view.page import HOSTILE, rows_of, settle

VALUES = {"ceph-b sdb %util": {0: 12.5, 5: 99.9, 40: 3.0}, "temperature <b>": {-5: 1.0, 10: -4.0, 20: 7.0, 900: 1.0}}


@pytest.mark.slow
def test_each_metric_is_a_picture_on_the_axis_of_time(browser, archive, tmp_path: Path, capsys) -> None:
    path, file = tmp_path / "report.html", tmp_path / "iostat.csv"
    lines = [f"{at:+d}s,{name},{value}" for name, values in VALUES.items() for at, value in values.items()]
    file.write_text("\n".join([*lines, "+1s,elsewhere", "2020-01-01T00:00:00Z,long ago,1"]), encoding="utf-8")
    assert command(["report", str(archive), "--metrics", str(file), "-o", str(path)]) == 0
    assert f"{file}:8: " in capsys.readouterr().err  # the line that is no value
    with shown(browser, path, folded=True) as page:
        start = page.evaluate("tailboard.content.runs[0].start")
        for place, (name, values) in enumerate(VALUES.items()):
            inside = {at: value for at, value in values.items() if 0 <= at < 76}
            assert page.locator(f"#h-metric{place}").inner_text() == name
            rows = rows_of(page, f"metric{place}")
            assert {round((row["t"] - start) / 1000): row["v"] for row in rows} == inside
            assert [row["t2"] for row in rows[:-1]] == [row["t"] for row in rows[1:]]  # it holds until the next one
            scale = "([name]) => [tailboard.content.runs[0].begin + 20000].map((t) => tailboard.views[name].scale('x')(t))"
            assert page.evaluate(scale, [f"metric{place}"]) == page.evaluate(scale, ["percentiles"])
        assert "Highest: 99.9, 21:00:09.458 – 21:00:44.458 UTC; lowest 3." in page.locator("#metric0-says").inner_text()
        low, high = page.evaluate("tailboard.views.metric1.scale('y').domain()")
        assert low < -4 < 7 < high
        page.evaluate("controls.set({ from: '30' })")
        settle(page)
        assert [row["v"] for row in rows_of(page, "metric0")] == [99.9, 3.0]
        with page.expect_download() as download:
            page.locator(".panel:has(#metric0) .tools summary").click()
            page.locator(".panel:has(#metric0) .tools").get_by_role("button", name="csv").click()
        saved = list(csv.DictReader(io.StringIO(Path(download.value.path()).read_text(encoding="utf-8"))))
        assert [(row["series"], float(row["value"])) for row in saved] == [("ceph-b sdb %util", 99.9), ("ceph-b sdb %util", 3.0)]
        assert "long ago has no value in the time of a run" in page.locator("#notes").text_content()


def test_a_page_holds_the_first_metrics_and_the_highest_of_many_values() -> None:
    run = Shown("r", 0, 10_000 * SECOND)
    values = [(Instant(at * SECOND), float(at % 7)) for at in range(2 * MOST_VALUES - 1)]
    made = sections([run], dict.fromkeys((f"m{place}" for place in range(MOST + 2)), values))
    assert len(made) == MOST and "shows 12 of 14 metrics" in made[0].notes[0]
    content = made[0].content["runs"][0]
    assert content["of"] == 2 and len(content["t"]) == MOST_VALUES
    assert content["v"][:4] == [1.0, 3.0, 5.0, 6.0] and content["t"][:2] == [0, 2000]


def test_hostile_names_stay_text() -> None:
    made = sections([Shown("r", 0, SECOND)], {name: [(Instant(0), 1.0)] for name in HOSTILE})
    assert not any("<" in section.html_filling["name"] for section in made)
