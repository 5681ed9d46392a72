"""Another run beside those of a page: its percentile is a grey line at the same time since the start, as the query layer has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query.files import Files
from ingest.query.question import Question
from tests.browsing import shown
from tests.view.page import answered, choose, rows_of

ROOT = Path(__file__).parents[2]
EARLIER = ROOT / "tests" / "data" / "fio" / "randrw"


@pytest.fixture(scope="module")
def reported(archive, tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("beside") / "report.html"
    assert command(["report", str(archive), "--beside", str(EARLIER), "-o", str(path)]) == 0
    return path


@pytest.mark.slow
def test_the_line_of_another_run_is_its_percentile_at_the_same_time_since_the_start(browser, reported: Path) -> None:
    earlier = Files([EARLIER])
    (record,) = earlier.runs()
    with shown(browser, reported) as page:
        start, name = page.evaluate("[tailboard.content.runs[0].start, tailboard.state.beside]")
        assert name == record.run and page.evaluate("tailboard.state.run") != name
        for p, op in (("99", ""), ("90", "read")):
            choose(page, "p", p)
            choose(page, "op", op)
            width = page.evaluate("tables.viewStep(tables.linesOf())")
            where = {"kind": page.evaluate("tailboard.state.kind"), **({"op": op} if op else {})}
            answer = earlier.answer(Question(by=("op",) if op else (), step=int(width) * 1_000_000, where=where))
            expected = {(t - record.start_ns / 1e6): value for (t, _), value in answered(answer, p).items()}
            found = {round(row["t"] - start, 3): row["v"] for row in rows_of(page, "percentiles", "ghost")}
            assert found and found == {round(t, 3): value for t, value in expected.items() if t < 76_000}
        assert f"Grey: p90 of {record.run}" in page.locator("#percentiles-says").inner_text()
        low, high = page.evaluate("tailboard.views.percentiles.signal('yd')")
        assert all(low < value < high for value in found.values())
        choose(page, "beside", "")
        assert rows_of(page, "percentiles", "ghost") == [] and "Grey" not in page.locator("#percentiles-says").inner_text()


@pytest.mark.slow
def test_only_one_run_can_be_beside_and_the_same_name_is_told_apart(archive, tmp_path: Path, browser, capsys) -> None:
    path, store = tmp_path / "report.html", f"sqlite:{tmp_path / 'two.db'}"
    for run in ("one", "two"):
        assert command(["load", str(EARLIER), "--run", run, "--store", store]) == 0
    assert command(["report", str(archive), "--beside", store, "-o", str(path)]) == 2
    assert "--beside takes one run, and there are 2: one, two" in capsys.readouterr().err
    assert command(["report", str(EARLIER), "--beside", str(EARLIER), "-o", str(path)]) == 0
    with shown(browser, path) as page:
        names = page.evaluate("tailboard.content.runs.map(({ name }) => name)")
        assert names[1] == f"{names[0]} (beside)"
        own = {round(row["t"]): row["v"] for row in rows_of(page, "percentiles", "ghost")}
        choose(page, "by", "")
        assert own == {round(row["t"]): row["v"] for row in rows_of(page, "percentiles")}
