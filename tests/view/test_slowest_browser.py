"""The slowest single operations on the page: the rows of the query layer, by the clock of the page, each a link to its time."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.slowest import MOST, slowest_operations
from ingest.read.sources import ReadOptions
from tests.browsing import shown
from tests.query.test_slowest import MS, ZERO, written
from tests.view.page import choose, settle

STATED = ["--t0", str(ZERO // 10**9), "--fio-version", "3.33"]


@pytest.mark.slow
def test_the_slowest_operations_are_listed_and_lead_to_their_time(browser, tmp_path: Path) -> None:
    for run in ("one", "two"):
        (tmp_path / "logs" / run).mkdir(parents=True)
        written(tmp_path / "logs" / run, hosts=2)
    files = Files([tmp_path / "logs"], ReadOptions(t0=ZERO, fio_version=(3, 33)))
    path = tmp_path / "report.html"
    assert command(["report", str(tmp_path / "logs"), *STATED, "-o", str(path)]) == 0
    found = slowest_operations(files, {run: run for run in files.run_names}, Question())
    with shown(browser, path) as page:
        run = page.evaluate("tailboard.state.run")
        rows = page.locator("#slowest-rows tr:visible")
        cells = [row.locator("td").all_inner_texts() for row in rows.all()]
        assert len(cells) == MOST and page.locator("#slowest-rows tr").count() == MOST * len(files.run_names)
        heads = page.locator("#slowest thead th").all_inner_texts()
        for texts, one in zip(cells, found[run], strict=True):
            told = dict(zip(heads, texts, strict=True))
            assert (told["host"], told["op"]) == (one.series.host, one.series.op)
            assert (told["offset"], told["size"]) == (f"{one.offset:,}", f"{one.size:,}")
            assert told["lasted"].split(" ")[1] == "ms"
            assert abs(float(told["lasted"].split(" ")[0]) - one.latency_ns / MS) < 0.6
            assert told["when"].endswith(" UTC")
        choose(page, "clock", "elapsed")
        first = rows.first.locator("a")
        start = found[run][0].start_ns - page.evaluate("tailboard.content.runs[0].start") * MS
        assert first.inner_text().startswith(f"{start / 1e9:.1f} – ") and first.inner_text().endswith(" s elapsed")
        first.click()
        settle(page)
        begin, end = (float(page.evaluate(f"tailboard.state.{name}") or wide) for name, wide in (("from", "-1"), ("to", "9e9")))
        assert begin <= start / 1e9 <= end
        other = next(name for name in files.run_names if name != run)
        choose(page, "run", other)
        assert rows.count() == MOST and {row.get_attribute("data-run") for row in rows.all()} == {other}


@pytest.mark.slow
def test_logs_without_single_operations_have_no_such_panel(browser, archive, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    for log in archive.rglob("*clat_hist*"):
        (tmp_path / "logs" / log.name).write_bytes(log.read_bytes())
    assert command(["report", str(tmp_path / "logs"), "-o", str(tmp_path / "report.html")]) == 0
    with shown(browser, tmp_path / "report.html", folded=True) as page:
        assert page.locator("#slowest").count() == 0
