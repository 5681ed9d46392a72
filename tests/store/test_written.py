"""What a load sends, against documents made plainly; what it keeps in memory, against what it would read back."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.intervals import Exact, Intervals
from ingest.core.labels import kind_preference
from ingest.query.files import Files
from ingest.query.question import Answer, Question
from ingest.query.story.story import computed
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.elastic import rollups
from ingest.store.elastic.documents import documents_of, interval_chunks
from ingest.store.elastic.rollups import OwnRollups
from ingest.store.elastic.store import ElasticStore
from ingest.store.elastic.templates import Names
from ingest.store.records import RunRecord, SourceRecord
from strategies import intervals
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.store.grounds import SERVER, ElasticGround, loaded, many_logs
from tests.store.test_contract import ZERO
from tests.store.test_requests import Counted

SECOND = 1_000_000_000
READ_BACK = "POST intervals-* _search"


@pytest.fixture
def ground() -> Iterator[ElasticGround]:
    with ElasticsearchDouble(version=SERVER) as running:
        found = ElasticGround(running.url)
        found.double = running
        yield found
        assert not running.refusals, running.refusals


@given(intervals(), st.booleans(), st.booleans())
def test_documents_are_the_bytes_of_plain_json(rows: Intervals, exact: bool, weighted: bool) -> None:
    starts = np.arange(len(rows), dtype=np.int64) * SECOND
    rows = rows.at(starts, starts + SECOND)
    if exact:
        known = np.arange(len(rows)) % 3 != 1
        rows = replace(rows, exact=Exact(np.where(known, 5, 0), np.where(known, 9, 0), np.where(known, 14, 0), known))
    if weighted:
        rows = replace(rows, completions=rows.samples + 1)
    run, source = RunRecord("r\u00e9", "", SECOND), SourceRecord("r\u00e9", 'a "log"', "", 0, "", generation=3)
    lines = [pair for chunk in interval_chunks(rows, run, source, Names("tailboard")) for pair in documents_of(chunk)]
    assert len(lines) == len(rows)
    for row, (action, document) in enumerate(lines):
        assert json.loads(action)["index"]["_index"] == "tailboard-intervals-1970.01"
        assert document == json.dumps(plain(rows, row, run, source), separators=(",", ":"), ensure_ascii=False).encode()


def plain(rows: Intervals, row: int, run: RunRecord, source: SourceRecord) -> dict:
    """Return a document made field by field, in the order in which they are stored."""
    series, entries = rows.table[rows.series[row]], slice(rows.indptr[row], rows.indptr[row + 1])
    histogram = {"values": rows.layout.keys[rows.bins[entries]].tolist(), "counts": rows.counts[entries].tolist()}
    weighted = rows.completions is not None
    count = rows.completions[row] if weighted else rows.counts[entries].sum()
    latency = {"layout": str(rows.layout), "error": float(rows.layout.error), "count": int(count)}
    if rows.exact is not None and rows.exact.known[row]:
        latency |= {"sum": int(rows.exact.sum_ns[row]), "min": int(rows.exact.min_ns[row]), "max": int(rows.exact.max_ns[row])}
    return {
        "@timestamp": int(rows.start_ns[row]) // 1_000_000,
        **_labels(series),
        "kind_preference": kind_preference(series.kind),
        "segment": series.segment,
        "source": {"id": source.source},
        "generation": 3,
        "interval": {"step_ms": run.step_ns // 1_000_000},
        "latency": latency if weighted else {**latency, "histogram": histogram},
        **({"in_flight": {"histogram": histogram}} if weighted else {}),
    }


def _labels(series) -> dict:
    named = {
        "run": {"id": series.run},
        "host": {"name": series.host},
        "volume": {"name": series.volume},
        "job": {"id": series.job},
        "operation": series.op,
        "kind": series.kind,
        "tag": series.tag,
        "process": {"name": series.process},
    }
    return {name: value for name, value in named.items() if (next(iter(value.values())) if isinstance(value, dict) else value)}


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [1, 2])
def test_f4_findings_by_job_of_a_load_that_is_alone_read_no_documents(ground, tmp_path: Path, monkeypatch, jobs: int) -> None:
    """72 MB for 19,264 documents before."""
    logs = many_logs(tmp_path / "logs", 3, turns=4)
    requests = Counted(ground.double, ground)
    loaded(ground.url, [logs], reading={**ZERO, "host": "h1"}, jobs=jobs)
    words = requests.words()
    assert READ_BACK not in words and not any("_pit" in word for word in words)
    monkeypatch.setattr(rollups, "MOST_KEPT", 1)
    requests = Counted(ground.double, ground)
    loaded(ground.url, [logs], run="read back", reading={**ZERO, "host": "h1"}, jobs=jobs)
    assert READ_BACK in requests.words(), "too many for memory: documents are read"
    kept, read = (
        sorted(
            (hit["finding"]["rank"], hit.get("text", ""), repr(hit.get("interval"))) for hit in found if hit["run"]["id"] == run
        )
        for found in [[hit["_source"] for hit in ground.hits("findings")]]
        for run in ("r", "read back")
    )
    assert kept and [(*row[:1], row[1].replace("read back", "r"), *row[2:]) for row in read] == kept
    files = Files([logs], ReadOptions(run="r", **{"t0": None, **ZERO, "host": "h1"}))
    with open_store(ground.url) as store:
        told = computed(store, Question(runs=("r",)), "x")
    assert told == computed(files, Question(), "x")


@pytest.mark.parametrize("volumes", [1, 2])
def test_f4_findings_ask_for_jobs_at_once_where_there_is_one_volume(ground, tmp_path: Path, monkeypatch, volumes: int) -> None:
    logs, folder = many_logs(tmp_path / "logs", 2, turns=2), tmp_path / "named"
    folder.mkdir()
    for volume, log in product(range(volumes), sorted(logs.iterdir())):
        shutil.copy(log, folder / f"output.{volume}_clat_hist.{log.name.split('.')[1]}.log.h1")
    asked: list[tuple[str, ...]] = []
    answer = ElasticStore.answer

    def noted(store: ElasticStore, question: Question) -> Answer:
        asked.append(question.by)
        return answer(store, question)

    loaded(ground.url, [folder], reading=ZERO)
    monkeypatch.setattr(ElasticStore, "answer", noted)
    with open_store(ground.url) as store:
        told = computed(store, Question(), "x")
        assert asked[:2] == [("host", "op"), ("host", "job" if volumes == 1 else "volume", "op")]
        assert asked[2:] == ([] if volumes == 1 else [("host", "volume", "job", "op")]), "jobs are parts of volumes"
        assert told == computed(Files([folder], ReadOptions(run="r", **ZERO)), Question(), "x")


@pytest.mark.parametrize("labels", [("job",), ("volume", "process", "tag")], ids=str)
def test_f4_rollups_of_logs_that_are_added_up_are_made_from_memory(ground, tmp_path: Path, monkeypatch, labels) -> None:
    """They are those of the documents that are stored: read back by the load, and added up here."""
    alone = Counter[str]()
    real = OwnRollups.write_alone
    monkeypatch.setattr(OwnRollups, "write_alone", lambda *words, **named: (alone.update(["memory"]), real(*words, **named)))
    logs = many_logs(tmp_path / "logs", 3, turns=4)
    loaded(ground.url, [logs], reading={**ZERO, "host": "h1"}, add_up=labels)
    assert alone["memory"] == 1
    mine, documents = ground.rollups(), ground.documents()
    monkeypatch.setattr(rollups, "MOST_ENTRIES", 1)
    loaded(ground.url, [logs], run="read back", reading={**ZERO, "host": "h1"}, add_up=labels)
    assert alone["memory"] == 1, "nothing fits: documents are read back"
    assert mine == [("r", *row[1:]) for row in ground.rollups() if row[0] == "read back"]
    stored = Counter()
    for document in documents:
        for value, count in document["bins"].items():
            stored[document["op"], document["start"], value] += count
    held = {scope: Counter() for scope in ("host", "cluster")}
    for _, scope, _, step, start, op, *rest in mine:
        for value, count in rest[-1] if step == SECOND else ():
            held[scope][op, start, value] += count
    assert held["host"] == held["cluster"] == stored
