"""export --format documents: what a load would send, byte for byte the same documents, and a run that can be sent on."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query import interval_log
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view import hlog
from tests.store.grounds import FIO, ElasticGround, SqliteGround, grounds, loaded
from tests.store.test_contract import EXAMPLE, SECOND, answered
from tests.store.test_offsets import made, store_of

pytestmark = pytest.mark.contract
TIMELINE = Path(__file__).parents[1] / "data" / "snabb" / "cut" / "real.timeline.xz"
SLA = "objectives:\n  - {name: reads, percentile: 99, threshold: 1ms, window: 1s, where: {op: read}, by: [host]}\n"
VARYING = ("loaded", "path", "generation", "stamp")


@pytest.fixture
def double(tmp_path: Path):
    with grounds("double", tmp_path) as found:
        yield found


def exported(url: str, prefix: str, capsys, monkeypatch, *more: str) -> list[tuple[dict, dict]]:
    """(action, document) pairs."""
    monkeypatch.setenv("TAILBOARD_INDEX_PREFIX", prefix)
    capsys.readouterr()
    assert command(["export", url, "--format", "documents", *more]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    monkeypatch.delenv("TAILBOARD_INDEX_PREFIX")
    return list(zip(lines[::2], lines[1::2], strict=True))


def test_an_interval_log_of_a_store_is_made_in_pieces(tmp_path: Path, monkeypatch, capsys) -> None:
    """100,000 windows of one host were 584 MB at their full width."""
    url, told, pieces, lines = f"sqlite:{tmp_path / 's.db'}", [], {}, hlog.lines
    loaded(url, [FIO / "randrw"], run="r")
    for most in (1 << 20, 300):
        mine = pieces.setdefault(most, [])
        monkeypatch.setattr(hlog, "lines", lambda rows, *asked, mine=mine: (mine.append(len(rows.bins)), lines(rows, *asked))[1])
        monkeypatch.setattr(interval_log, "IN_MEMORY", most)
        capsys.readouterr()
        assert command(["export", url, "--format", "hlog"]) == 0
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] and max(pieces[300]) <= 300 < min(pieces[1 << 20])


def by_id(pairs: list[tuple[dict, dict]]) -> dict[tuple[str, str], dict]:
    found = {(action["index"]["_index"], action["index"]["_id"]): without(document) for action, document in pairs}
    assert len(found) == len(pairs)
    return found


def without(document: dict) -> dict:
    return {name: without(value) if isinstance(value, dict) else value for name, value in document.items() if name not in VARYING}


def there(ground: ElasticGround) -> dict[tuple[str, str], dict]:
    """What the double holds; cells of rollups without any sample are no part of a run."""
    indices = ("intervals-*", "rollups-*", "points-*", "marks", "episodes", "findings", "runs")
    hits = [hit for index in indices for hit in ground.hits(index)]
    return {(hit["_index"], hit["_id"]): without(hit["_source"]) for hit in hits}


def filled(ground, tmp_path: Path) -> None:
    loaded(ground.url, [EXAMPLE], run="cbt")
    store_of(ground.url, tmp_path / "events", made(), run="events")
    loaded(ground.url, [FIO / "coarse-3" / "a_clat_hist.1.log"], run="weights", reading={"t0": 10**18}, attribution="in-flight")
    loaded(ground.url, [TIMELINE], run="snabb", reading={"t0": 1_789_999_200 * SECOND})
    with open_store(ground.url, write=True) as store:
        store.mark("events", 1_789_999_203 * SECOND, "osd.3 down")
    told = tmp_path / "SLA.yml"
    told.write_text(SLA)
    assert command(["check", str(told), ground.url, "--run", "cbt", "--record"]) == 1


@pytest.mark.slow
def test_both_stores_export_what_a_load_sends(double, tmp_path: Path, capsys, monkeypatch) -> None:
    sqlite = SqliteGround(tmp_path)
    filled(sqlite, tmp_path)
    filled(double, tmp_path)
    expected = there(double)
    assert len(expected) > 3000
    assert {index.split("-")[2] for index, _ in expected} >= {
        "intervals",
        "rollups",
        "points",
        "marks",
        "episodes",
        "findings",
        "runs",
    }
    assert by_id(exported(sqlite.url, double.prefix, capsys, monkeypatch)) == expected
    assert by_id(exported(double.url, double.prefix, capsys, monkeypatch)) == expected


@pytest.mark.slow
def test_sent_to_another_server_the_run_is_there(double, tmp_path: Path, capsys, monkeypatch) -> None:
    sqlite = SqliteGround(tmp_path)
    filled(sqlite, tmp_path)
    pairs = exported(sqlite.url, double.prefix, capsys, monkeypatch, "--run", "cbt")
    answer = double.client.bulk(operations=[line for pair in pairs for line in pair], refresh=True)
    assert not answer["errors"]
    for question in (Question(by=("host", "op"), step=10 * SECOND), Question(by=("volume",), step="all")):
        assert answered(double.url, question) == answered(sqlite.url, replace(question, runs=("cbt",)))
    again = loaded(double.url, [EXAMPLE], run="cbt")
    assert (again.documents, dict(again.duplicate)) == (0, {"already loaded": 12})


def test_what_cannot_be_sent_is_refused(tmp_path: Path, capsys) -> None:
    ground = SqliteGround(tmp_path)
    alone = shutil.copy(FIO / "coarse-3" / "a_clat_hist.1.log", tmp_path)  # its JSON beside it would tell the time zero
    loaded(ground.url, [Path(alone)], run="relative")
    assert command(["export", ground.url, "--format", "documents"]) == 4
    assert "relative has no start time" in capsys.readouterr().err
    with open_store(ground.url, write=True) as store:
        store.begin(store.runs()[0], store.sources("relative"))
    assert command(["export", ground.url, "--format", "documents"]) == 4
    assert "is not complete" in capsys.readouterr().err
    assert command(["export", str(EXAMPLE), "--format", "documents"]) == 2
    assert "documents are exported from a store" in capsys.readouterr().err
    for part in (
        ["--from", "steady"],
        ["--from", "+1s"],
        ["--to", "+9s"],
        ["--where", "op=read"],
        ["--by", "op"],
        ["--step", "all"],
    ):
        assert command(["export", ground.url, "--format", "documents", *part]) == 2
        assert "documents are those of whole runs" in capsys.readouterr().err
