"""B2: a run that goes while it is written to ends the writer with a sentence, and leaves nothing behind that a later load would count."""

from __future__ import annotations

import json
import random
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError
from ingest.load import plan as load_plan
from ingest.query.episodes import Episode
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic import runs
from ingest.store.elastic import store as elastic_store
from ingest.store.elastic.lifecycle import Coarsening
from ingest.store.elastic.rollups import RollupWriter, versions_of
from ingest.store.elastic.runs import Records, Sweeper
from ingest.store.elastic.store import ElasticStore
from ingest.store.sqlite.store import SqliteStore
from tests.databases import database
from tests.live.feeding import EPOCH, Clock, Writer, begun
from tests.oracles import hdr
from tests.store.grounds import FIO, ElasticGround, SqliteGround, grounds, loaded
from tests.store.test_contract import ZERO
from tests.store.test_overtaken import once

Ground = SqliteGround | ElasticGround
STEPS = ["write", *(pytest.param(step, marks=pytest.mark.slow) for step in ("finish_source", "finish_run"))]
GONE = "r was deleted while it was written to"


@pytest.fixture(params=["sqlite", "double"])
def ground(request: Any, tmp_path: Path) -> Iterator[Ground]:
    with grounds(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def logs(tmp_path: Path) -> list[Path]:
    """Two logs of one run, on two hosts."""
    found = []
    for host in ("h1", "h2"):
        (tmp_path / host).mkdir()
        found.append(Path(shutil.copy(FIO / "coarse-3" / "a_clat_hist.1.log", tmp_path / host)))
    return found


def left_of(ground: Ground, run: str) -> dict[str, int]:
    """How much a store holds of a run, by table or index; read by a way of its own."""
    found = {}
    if isinstance(ground, SqliteGround):
        with database(ground.path) as db:
            query = (
                "SELECT m.name FROM sqlite_master m JOIN pragma_table_info(m.name) c WHERE m.type = 'table' AND c.name = 'run'"
            )
            for (table,) in db.execute(query).fetchall():
                found[table] = db.execute(f"SELECT count(*) FROM {table} WHERE run = ?", (run,)).fetchone()[0]
            alone = "SELECT count(*) FROM intervals WHERE id >> 36 NOT IN (SELECT id FROM series)"
            found["intervals"] = db.execute(alone).fetchone()[0]
    else:
        for hit in ground.hits("*"):
            one = hit["_source"]
            if one["run"]["id"] == run and one.get("record") != "tombstone":
                index = hit["_index"].removeprefix(ground.prefix)
                found[index] = found.get(index, 0) + 1
    return {name: count for name, count in found.items() if count}


def deleted(ground: Ground, run: str = "r") -> None:
    assert command(["runs", "delete", run, "--yes", "--force", "--store", ground.url]) == 0


@pytest.mark.parametrize("step", STEPS)
def test_b2_a_run_that_is_deleted_while_it_is_loaded_leaves_nothing(ground: Ground, logs, monkeypatch, step: str) -> None:
    store = SqliteStore if isinstance(ground, SqliteGround) else ElasticStore
    once(store, step, lambda: deleted(ground), monkeypatch)
    with pytest.raises(StoreError, match=GONE):
        loaded(ground.url, logs, reading=ZERO)
    monkeypatch.undo()
    assert left_of(ground, "r") == {}
    with open_store(ground.url) as there:
        assert there.runs() == []


@pytest.mark.parametrize("step", STEPS)
def test_b2_a_run_deleted_and_loaded_anew_has_nothing_of_the_first_load(
    ground: Ground, logs, monkeypatch, tmp_path: Path, step: str
) -> None:
    """27.6 M samples were counted where 9.6 M were loaded."""
    other = tmp_path / "other" / "h1"
    other.mkdir(parents=True)
    lines = logs[0].read_text().splitlines(keepends=True)
    (other / logs[0].name).write_text("".join(lines[: len(lines) // 2]))

    def anew() -> None:
        deleted(ground)
        loaded(ground.url, [other], reading={**ZERO, "host": "h1"})

    store = SqliteStore if isinstance(ground, SqliteGround) else ElasticStore
    once(store, step, anew, monkeypatch)
    with pytest.raises(StoreError, match=GONE):
        loaded(ground.url, logs, reading=ZERO)
    monkeypatch.undo()
    if isinstance(ground, ElasticGround):  # what the first load has overwritten there is read again
        loaded(ground.url, [other], reading={**ZERO, "host": "h1"})
    with grounds("sqlite", tmp_path) as clean:
        loaded(clean.url, [other], reading={**ZERO, "host": "h1"})
        assert ground.documents() == clean.documents()
        assert ground.rollups() == clean.rollups()
    with open_store(ground.url) as there:
        assert [one.state for one in there.runs()] == ["complete"]
        assert [one.state for one in there.sources("r")] == ["complete"]


def test_b2_a_run_that_somebody_may_be_writing_to_is_not_deleted_unasked(ground: Ground, logs, capsys) -> None:
    loaded(ground.url, logs[:1], run="whole", reading=ZERO)
    loaded(ground.url, logs, reading=ZERO)
    with open_store(ground.url, write=True) as store:
        (record,) = (one for one in store.runs() if one.run == "r")
        store.begin(record, store.sources("r"))
    assert command(["runs", "delete", "*", "--yes", "--store", ground.url]) == 4
    told = capsys.readouterr().err
    assert "r is being loaded, or a load of it was cut off" in told and "tailboard runs delete 'r' --force" in told
    assert "deleted whole: " in told, "it does not hold up the others"
    with open_store(ground.url) as store:
        assert [one.run for one in store.runs()] == ["r"]
    assert command(["runs", "delete", "r", "--yes", "--force", "--store", ground.url]) == 0
    assert left_of(ground, "r") == {}


def test_b2_a_run_that_is_watched_is_not_deleted_unasked_and_its_watch_ends(ground: Ground, tmp_path: Path, capsys) -> None:
    writer, clock = Writer(tmp_path / "logs" / "x.hlog", random.Random(1), rows=20), Clock()
    with open_store(ground.url, write=True) as store:
        watch = begun(tmp_path / "logs", store, clock)
        grow(writer, 0.5)
        watch.cycle()
        assert command(["runs", "delete", "r", "--yes", "--store", ground.url]) == 4
        assert "r is being watched" in capsys.readouterr().err
        deleted(ground)
        writer.rest()
        clock.seconds += 1
        with pytest.raises(StoreError, match=GONE):
            watch.cycle()
        assert left_of(ground, "r") == {}
        with pytest.raises(StoreError, match=GONE):
            watch.settle()
    writer.stream.close()
    assert left_of(ground, "r") == {}
    with open_store(ground.url) as store:
        assert store.runs() == []


@pytest.mark.slow
def test_b2_a_watch_ends_where_its_run_goes_in_the_middle_of_a_cycle(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        assert isinstance(ground, ElasticGround)
        writer, clock = Writer(tmp_path / "logs" / "x.hlog", random.Random(1), rows=20), Clock()
        with open_store(ground.url, write=True) as store:
            watch = begun(tmp_path / "logs", store, clock)
            for step, owner in (("standings", Records), ("write", Records), ("write_at_once", RollupWriter)):
                watch = begun(tmp_path / "logs", store, clock)
                grow(writer, 0.15)
                watch.cycle()
                grow(writer, 0.15)
                once(owner, step, lambda: deleted(ground), monkeypatch)
                clock.seconds += 1
                with pytest.raises(StoreError, match=GONE):
                    watch.cycle()
                monkeypatch.undo()
                assert left_of(ground, "r") == {}, step
        writer.stream.close()


@pytest.mark.slow
def test_b2_a_run_that_goes_while_it_is_coarsened_leaves_nothing(tmp_path: Path, logs, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        for step, owner in (("_write", Coarsening), ("sweep_steps", Sweeper), ("write", RollupWriter)):
            loaded(ground.url, logs, reading=ZERO)
            once(owner, step, lambda: deleted(ground), monkeypatch)
            assert command(["runs", "coarsen", "r", "--step", "10s", "--store", ground.url]) == 4
            monkeypatch.undo()
            assert left_of(ground, "r") == {}, step


@pytest.mark.parametrize("what", ["mark", "keep_episodes"])
def test_b2_marks_and_episodes_of_a_run_that_goes_leave_nothing(ground: Ground, logs, monkeypatch, what: str) -> None:
    loaded(ground.url, logs, reading=ZERO)
    with open_store(ground.url, write=True) as store:
        if what == "mark":
            step = "keep_marks"
            write = lambda: store.mark("r", ZERO["t0"] + 10**9, "osd.3 down")  # noqa: E731
        else:
            step = "keep_episodes"
            episode = Episode(
                "p99", "r", (), "completion", "99", 1, 10**9, ZERO["t0"], ZERO["t0"] + 10**9, 5, False, 1, 1, 0, 0, "", "ended"
            )
            write = lambda: store.keep_episodes("r", "p99", [episode])  # noqa: E731
        if isinstance(ground, ElasticGround):  # between its check and its writing
            real = getattr(elastic_store, step)
            monkeypatch.setattr(elastic_store, step, lambda *words: (deleted(ground), real(*words)))
        else:
            deleted(ground)
        with pytest.raises(StoreError, match=GONE):
            write()
    assert left_of(ground, "r") == {}


def test_b2_dead_letters_of_a_run_that_has_gone_are_dropped(tmp_path: Path, logs, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_DEAD_LETTERS", str(tmp_path / "letters.ndjson"))
    with grounds("double", tmp_path) as ground:
        assert isinstance(ground, ElasticGround)
        loaded(ground.url, logs, reading=ZERO)
        hits = [hit for index in ("intervals-*", "rollups-*") for hit in ground.hits(index)]
        lines = [
            json.dumps(
                {
                    "status": 400,
                    "reason": "",
                    "action": {"index": {"_index": one["_index"], "_id": one["_id"]}},
                    "document": one["_source"],
                }
            )
            for one in hits
        ]
        deleted(ground)
        for anew in (False, True):
            if anew:
                loaded(ground.url, logs[:1], reading=ZERO)
            before = ground.documents(), ground.rollups()
            letters = tmp_path / "letters.ndjson"
            letters.write_text("\n".join(lines) + "\n")
            assert command(["replay", str(letters), "--store", ground.url]) == 0
            told = capsys.readouterr().err
            assert f"{len(hits)} documents were dropped: their sources or runs have been read again or deleted since" in told
            assert not letters.exists()
            assert (ground.documents(), ground.rollups()) == before


def test_b2_a_deletion_that_was_cut_off_goes_on_and_a_load_waits_for_it(tmp_path: Path, logs, monkeypatch, capsys) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, logs, reading=ZERO)
        with monkeypatch.context() as patch, open_store(ground.url, write=True) as store:
            patch.setattr(runs, "bury", cut_off)
            with pytest.raises(KeyboardInterrupt):
                store.delete_run("r")
        with open_store(ground.url) as store:
            assert [one.state for one in store.runs()] == ["deleting"]
        with pytest.raises(
            StoreError, match="r is being deleted, or its deletion was cut off: tailboard runs delete 'r' completes it"
        ):
            loaded(ground.url, logs, reading=ZERO)
        assert command(["runs", "delete", "r", "--yes", "--store", ground.url]) == 0
        assert left_of(ground, "r") == {}
        loaded(ground.url, logs[:1], reading=ZERO)
        with grounds("sqlite", tmp_path) as clean:
            loaded(clean.url, logs[:1], reading=ZERO)
            assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())


def grow(writer: Writer, share: float) -> None:
    size = int(len(writer.text) * share)
    writer.stream.write(writer.text[writer.written : writer.written + size])
    writer.written += size


def cut_off(*_: Any) -> None:
    raise KeyboardInterrupt


def test_b2_a_later_run_of_a_deleted_name_begins_above_it(tmp_path: Path, logs) -> None:
    """A server knows versions of deleted documents for a minute: rollups of the next run, not above them, were lost silently."""
    with grounds("double", tmp_path) as ground:
        highest, rollups = 0, []
        for _ in range(2):
            assert loaded(ground.url, logs, reading=ZERO).loaded == 2
            assert loaded(ground.url, logs, reading=ZERO).loaded == 0
            with open_store(ground.url) as store:
                generations = {one.generation for one in store.sources("r")}
            assert min(generations) > highest
            highest = max(generations)
            rollups.append(ground.rollups())
            assert rollups[0] == rollups[-1] != []
            assert command(["runs", "delete", "r", "--yes", "--store", ground.url]) == 0, "it is complete"
            with open_store(ground.url) as store:
                assert store.runs() == [] and left_of(ground, "r") == {}


def test_b2_a_log_that_grows_while_a_load_looks_at_it_is_read_again_by_the_next(tmp_path: Path, logs, monkeypatch) -> None:
    """Size and digest were of two moments: the next load then took the log for another one of these labels."""
    ground, log = SqliteGround(tmp_path), logs[0]
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:-3]))
    real = load_plan._digests

    def digests(*words: Any) -> Any:
        found = real(*words)
        log.write_bytes(b"".join(lines))
        return found

    monkeypatch.setattr(load_plan, "_digests", digests)
    loaded(ground.url, [log], reading=ZERO)
    monkeypatch.undo()
    assert loaded(ground.url, [log], reading=ZERO).loaded == 1
    assert loaded(ground.url, [log], reading=ZERO).loaded == 0
    clean = SqliteGround(tmp_path)
    loaded(clean.url, [log], reading=ZERO)
    assert (ground.documents(), ground.rollups()) == (clean.documents(), clean.rollups())


def test_rollups_of_more_samples_than_a_generation_has_room_for_do_not_outlive_it(tmp_path: Path) -> None:
    """A window of 2^52 samples had the version of the sixteenth generation after it: what came later was refused."""
    versions = [versions_of(generation, np.array([0, 1, 2**47 - 1, 2**47, 2**53, 2**62])) for generation in (1, 2, 3)]
    assert (np.diff(np.concatenate(versions)) > 0).all()
    head = f"#[Logged with jHiccup]\n#[StartTime: {EPOCH}.000 (seconds since epoch)]\n"
    log = tmp_path / "x.hlog"
    with grounds("double", tmp_path) as ground:
        for count in (2**52, 3):
            log.write_text(head + hdr.line("0.000", "1.000", {300: count}, digits=2))
            loaded(ground.url, [log], "r", jobs=1)
            with open_store(ground.url, write=True) as store:
                assert store.answer(Question(step=10**9)).samples == count
                if count > 3:
                    store.delete_run("r")
