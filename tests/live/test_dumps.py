"""Status dumps of a recorded fio, written in pieces cut anywhere: at any moment as if the whole documents had been loaded."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.store import open_store
from tests.live.feeding import Clock, answers, batch, begun
from tests.store.grounds import FIO, grounds

[DUMPS] = (FIO / "status-interval").glob("*.json")


def whole_documents(data: bytes) -> bytes:
    return data[: data.rfind(b"\n}\n") + 3] if b"\n}\n" in data else b""


def fed(seed: int, content: bytes, url: str, scratch: Path) -> None:
    """Feed a file in pieces, with watches that are killed in between; compare after each piece."""
    rng, clock = random.Random(seed), Clock()
    folder, copy = scratch / "out", scratch / "copy"
    folder.mkdir()
    copy.mkdir()
    store = open_store(url, write=True)
    watch = begun(folder, store, clock)
    written = 0
    with (folder / "fio.json").open("ab", buffering=0) as out:
        while written < len(content):
            size = rng.choice((1, 40, 3000, 30_000))
            out.write(content[written : written + size])
            written += size
            if rng.random() < 0.1:
                store.__exit__(None, None, None)
                store = open_store(url, write=True)
                watch = begun(folder, store, clock)
            clock.seconds += 100  # long enough to look again at what was no dump yet
            watch.cycle()
            if rng.random() < 0.4 and (whole := whole_documents(content[:written])):
                (copy / "fio.json").write_bytes(whole)
                assert answers(url) == answers(batch(copy, scratch / "batch.db")), (seed, written)
    watch.cycle(last=True)
    watch.settle()
    assert not [text for text in watch.watching.said if "read live" in text]
    store.__exit__(None, None, None)
    assert answers(url) == answers(batch(folder, scratch / "batch.db"))


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("kind", "seed"),
    [("sqlite", 0), pytest.param("sqlite", 1, marks=pytest.mark.slow), pytest.param("double", 2, marks=pytest.mark.slow)],
)
def test_dumps_in_pieces(kind: str, seed: int, tmp_path: Path) -> None:
    with grounds(kind, tmp_path) as ground:
        fed(seed, DUMPS.read_bytes(), ground.url, tmp_path)


@pytest.mark.slow
def test_another_run_that_is_appended_is_a_run_of_its_own(tmp_path: Path) -> None:
    """The same documents again: counts go back, and their times lie over those of the first run."""
    with grounds("sqlite", tmp_path) as ground:
        fed(3, DUMPS.read_bytes() * 2, ground.url, tmp_path)
        with open_store(ground.url) as store:
            [source] = store.sources("r")
            rows, samples = source.account["rows"], source.account["samples"]
    alone = tmp_path / "alone"
    alone.mkdir()
    (alone / "fio.json").write_bytes(DUMPS.read_bytes())
    with open_store(batch(alone, tmp_path / "alone.db")) as store:
        [source] = store.sources("r")
        assert (rows, samples) == (2 * source.account["rows"], 2 * source.account["samples"])
        from ingest.query.question import Question

        once = store.answer(Question(step="all", where={"kind": "completion"})).samples
    with open_store(f"sqlite:{tmp_path / 'batch.db'}") as store:
        assert store.answer(Question(step="all", where={"kind": "completion"})).samples == 2 * once
