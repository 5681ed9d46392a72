"""Logs that are read while they grow: at any moment the store answers as if what is there had been loaded at once."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pytest

from ingest.core.errors import UsageError
from ingest.core.grid import SECOND
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import COMPLETE, WATCHED
from tests.live.feeding import HLOG, Clock, Kind, Writer, answers, batch, begun, whole_lines
from tests.query.test_own_steps import hlog
from tests.store.grounds import grounds
from tests.store.test_sqlite import clean_documents, everything


def state_of(url: str, run: str = "r") -> str:
    with open_store(url) as store:
        return next(record.state for record in store.runs() if record.run == run)


def schedule(
    seed: int, folder: Path, url: str, scratch: Path, cycles: int, checks: int, log: Kind = HLOG, **words: object
) -> None:
    """Write, rotate, kill and go on at random; compare with a load of what is there at some of the moments, and at the end."""
    rng, clock = random.Random(seed), Clock()
    writers = [Writer(folder / host / log.name, rng, rows=40, kind=log) for host in ("h1", "h2")]
    store = open_store(url, write=True)
    watch = begun(folder, store, clock, **words)
    looked = sorted(rng.sample(range(cycles // 4, cycles), checks))
    for number in range(cycles):
        for writer in writers:
            if rng.random() < 0.9:
                writer.write()
        event = rng.random()
        writer = rng.choice(writers)
        if event < 0.04:
            rotated(rng, writer)
        elif event < 0.12:  # as if killed: nothing of what the process knew is left, but for what the system closes
            for tail in watch.watching.tails.values():
                tail.close()
            store.__exit__(None, None, None)
            store = open_store(url, write=True)
            watch = begun(folder, store, clock, **words)
        clock.seconds += 1
        watch.cycle()
        if number in looked and all(writer.path.read_bytes().count(b"\n") > 3 for writer in writers):
            # before their first rows logs of one name make no hosts of their folders: a load then calls them otherwise
            watch.cycle()  # a rotated log is read under its new name in the cycle after that which saw it go
            assert answers(url) == answers(batch(whole_lines(folder, scratch / "copy"), scratch / "batch.db", **words)), (
                seed,
                number,
            )
            if url.startswith("sqlite:"):
                assert clean_documents(Path(url[7:])) == clean_documents(scratch / "batch.db")
            assert state_of(url) == WATCHED
    for writer in writers:
        writer.rest()
        writer.stream.close()
    while watch.cycle().news:
        clock.seconds += 1
    assert not any("read live" in text for text in watch.watching.said)
    watch.cycle(last=True)
    watch.settle()
    assert not [text for text in watch.watching.said if "read live" in text], watch.watching.said
    store.__exit__(None, None, None)
    assert answers(url) == answers(batch(folder, scratch / "batch.db", **words)), seed
    assert state_of(url) == COMPLETE
    if url.startswith("sqlite:"):
        assert everything(Path(url[7:])) == everything(scratch / "batch.db")


def rotated(rng: random.Random, writer: Writer) -> None:
    """Rotate a log: renamed, or copied and emptied; another one goes on under its name. Older ones move on by one."""
    name = writer.path.name
    text = writer.kind.text(rng, 25, from_s=round(rng.uniform(0, 40), 3))
    writer.stream.write(
        writer.text[writer.written : writer.text.find(b"\n", writer.written) + 1]
    )  # a log is rotated between lines
    older = sorted(writer.path.parent.glob(f"{name}.*"), reverse=True)
    for path in older:
        path.rename(path.with_name(f"{name}.{int(path.suffix[1:]) + 1}"))
    first = writer.path.with_name(f"{name}.1")
    if rng.random() < 0.5:
        writer.path.rename(first)
        writer.anew(text)
    else:
        shutil.copy(writer.path, first)
        writer.emptied(text)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "seed"),
    [
        ("sqlite", 0),
        *(pytest.param(*one, marks=pytest.mark.soak) for one in (("sqlite", 1), ("sqlite", 2), ("double", 3), ("double", 4))),
    ],
)
def test_whatever_happens_to_the_logs_the_store_answers_as_a_load_of_them(kind: str, seed: int, tmp_path: Path) -> None:
    with grounds(kind, tmp_path) as ground:
        schedule(seed, tmp_path / "logs", ground.url, tmp_path, cycles=40, checks=4)


@pytest.mark.soak
@pytest.mark.parametrize(("kind", "seed"), [(kind, seed) for kind in ("sqlite", "double") for seed in range(100, 150)])
def test_whatever_happens_a_hundred_times(kind: str, seed: int, tmp_path: Path) -> None:
    with grounds(kind, tmp_path) as ground:
        schedule(seed, tmp_path / "logs", ground.url, tmp_path, cycles=60, checks=6)


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_a_watch_that_was_killed_when_all_was_settled_is_left_by_the_next(kind: str, tmp_path: Path, monkeypatch) -> None:
    """Its mark stayed for ever, and called the run watched for a minute."""
    with grounds(kind, tmp_path) as ground:
        writer, clock = Writer(tmp_path / "logs" / "x.hlog", random.Random(1), rows=5), Clock()
        writer.rest()
        writer.stream.close()
        with open_store(ground.url, write=True) as store:
            watch = begun(tmp_path / "logs", store, clock)
            watch.cycle()
            with monkeypatch.context() as patch:
                patch.setattr(type(watch.watching.live), "leave", lambda *_: None)
                watch.settle()
        assert state_of(ground.url) == WATCHED
        with open_store(ground.url, write=True) as store:
            watch = begun(tmp_path / "logs", store, clock)
            watch.cycle(last=True)
            watch.settle()
        assert state_of(ground.url) == COMPLETE


@pytest.mark.parametrize("ground", ["sqlite", "double"])
def test_r2_a_step_is_too_fine_for_the_rows_of_a_source_while_it_is_watched_too(tmp_path: Path, ground: str) -> None:
    rng, folder = random.Random(2), tmp_path / "logs"
    for name, width_ms, rows in (("h0", 1000, 30), ("h1", 1000, 30), ("wide", 2500, 12)):
        hlog(folder, name, width_ms, rows, rng)
    with grounds(ground, tmp_path) as there, open_store(there.url, write=True) as store:
        watch = begun(folder, store, Clock(), step_ns=None)
        watch.cycle()
        for ended in (False, True):
            if ended:
                (folder / "wide.hlog").unlink()  # what was read of it is kept
                watch.cycle(last=True)
                watch.settle()
            with open_store(there.url) as asked:
                asked.answer(Question(step=SECOND, where={"process": "h?"}))
                with pytest.raises(UsageError, match=r"a step of 1s is finer than the rows .*--force"):
                    asked.answer(Question(step=SECOND, where={"process": "wide"}))
                with pytest.raises(UsageError, match=r"finer than the rows of .*wide.hlog \(25\d\dms\)"):
                    asked.answer(Question(step=SECOND, by=("process",), force=True))
