"""G7: a page of very many runs: the newest have panels, all others a row, and the page says so."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.core.documents import pack
from ingest.core.grid import SECOND
from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import number
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import RunRecord, SourceRecord
from ingest.view.page.panels import others
from ingest.view.page.report import parts_from, run_names
from ingest.view.page.template import page_of

START_NS, RUNS, SHOWN = 1_795_000_000 * SECOND, 7, 3
NAMES = ["evil <b>", "n-3", "n-2", "n-1", "n-0", "z", "a"]  # in the order in which they began


def made(path: Path) -> str:
    """Return the URL of a store of tiny runs, each a minute after the one before and a little slower."""
    url = f"sqlite:{path}"
    with open_store(url, write=True) as store:
        for place, run in enumerate(NAMES):
            start = START_NS + 60 * place * SECOND
            record = RunRecord(run, run, SECOND, start_ns=start, zero="made")
            source = SourceRecord(run, "fio-hist|h", "h", 0, "0")
            begins = start + np.arange(10) * SECOND
            windows = Intervals(
                layout=fio_layout(29, 1),
                table=(Series(run=run, host="h", job="1", op="read", kind="completion"),),
                series=np.zeros(10, np.int64),
                start_ns=begins,
                end_ns=begins + SECOND,
                indptr=np.arange(11) * 2,
                bins=np.tile([700 + place, 710 + place], 10),
                counts=np.tile([50, 50], 10),
            )
            store.begin(record, [source])
            store.write(record, source, pack(windows))
            store.finish_source(source, {key: (first, last) for key, first, last in windows.reach()})
            store.finish_run(record)
    return url


@pytest.fixture(scope="module")
def url(tmp_path_factory) -> str:
    return made(tmp_path_factory.mktemp("many") / "x.db")


def page(url: str, question: Question, *, full: bool = False) -> tuple[str, tuple[str, ...]]:
    with open_store(url) as store:
        parts = parts_from(store, run_names(store), question, full=full)
        return page_of(parts), parts.sections


def test_g7_the_newest_runs_have_panels_and_the_others_a_row(url, monkeypatch) -> None:
    monkeypatch.setattr(others, "MOST_RUNS", SHOWN)
    text, sections = page(url, Question())
    assert "others" in sections
    assert f"{RUNS - SHOWN} of {RUNS} runs are not drawn" in text
    body = re.search(r'<tbody id="others-rows">(.*?)</tbody>', text, re.DOTALL)[1]
    rows = {html.unescape(name): line for name, line in re.findall(r'<tr><th scope="row">(.*?)</th>(.*?)</tr>', body)}
    assert sorted(rows) == sorted(NAMES[: RUNS - SHOWN])
    assert "<b>" not in body
    with open_store(url) as store:
        table = percentiles(store.answer(Question(by=("run",), step="all")), Wanted(parse_percentiles("99")))
    for run, p99, count in zip(table.columns["run"], table.columns["p99"], table.columns["count"], strict=True):
        if run in rows:
            cells = re.findall(r"<td[^>]*>(.*?)</td>", rows[run])
            assert cells[2] == f"{count:,}" == "1,000"
            assert any(cell.startswith(number(round(float(p99) / 1000))) for cell in cells[3:]), (run, p99, cells)
    title = re.search(r'<span id="title">(.*?)</span>', text)[1]
    assert all(name in title for name in NAMES[RUNS - SHOWN :])


def test_g7_a_page_that_holds_all_runs_leaves_none_out(url, monkeypatch) -> None:
    assert "others" not in page(url, Question())[1]
    monkeypatch.setattr(others, "MOST_RUNS", SHOWN)
    assert "others" not in page(url, Question(), full=True)[1]
    assert "others" not in page(url, Question(merge_runs=True))[1]
    assert "others" not in page(url, Question(runs=("n-*",), where={"run": "n-[123]"}))[1]


def test_g7_runs_without_a_clock_count_as_the_oldest() -> None:
    records = [RunRecord(name, name, SECOND, start_ns=place, zero="made") for place, name in enumerate("cab")]
    assert others.newest(records, ["a", "b", "c"], 2) == ["a", "b"]
    undated = replace(records[2], zero="unknown")
    assert undated.relative
    assert others.newest([*records[:2], undated], ["a", "b", "c"], 2) == ["a", "c"]
