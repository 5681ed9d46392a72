"""Two loads of one growing file at the same time, one slower than the other: nothing older stays as complete."""

from __future__ import annotations

from contextlib import nullcontext
from pathlib import Path

import pytest

from ingest.core.errors import StoreError
from ingest.store.elastic.runs import Sweeper
from ingest.store.elastic.store import ElasticStore
from ingest.store.sqlite.store import SqliteStore
from tests.store.grounds import ElasticGround, grounds, loaded
from tests.store.test_contract import ZERO, a_log


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def once(cls: type, name: str, between, monkeypatch) -> None:
    """Do something between two steps of the first load that gets there."""
    real, turns = getattr(cls, name), []

    def slow(self, *words, **more):
        if not turns:
            turns.append(1)
            between()
        return real(self, *words, **more)

    monkeypatch.setattr(cls, name, slow)


@pytest.mark.parametrize("step", ["write", "finish_source", "finish_run"])
def test_a_slow_load_of_the_older_content_does_not_win(ground, tmp_path: Path, monkeypatch, step: str) -> None:
    logs = a_log(tmp_path / "logs", slice(0, 4))
    store = SqliteStore if ground.url.startswith("sqlite") else ElasticStore

    def overtake() -> None:
        a_log(logs)
        loaded(ground.url, [logs], reading=ZERO)

    once(store, step, overtake, monkeypatch)
    told = "was loaded by another program at the same time: run the same load again"
    with nullcontext() if store is SqliteStore else pytest.raises(StoreError, match=told):
        loaded(ground.url, [logs], reading=ZERO)
    monkeypatch.undo()
    loaded(ground.url, [logs], reading=ZERO)
    same_as_clean(ground, logs, tmp_path)


def test_a_quick_load_sees_what_a_slow_one_has_overwritten(tmp_path: Path, monkeypatch) -> None:
    logs = a_log(tmp_path / "logs", slice(0, 4))
    with grounds("double", tmp_path) as ground:
        assert isinstance(ground, ElasticGround)
        loaded(ground.url, [logs], reading=ZERO)
        older = ground.hits("intervals-*")

        def overwrite() -> None:
            for hit in older:
                ground.client.index(index=hit["_index"], id=hit["_id"], document=hit["_source"], refresh=True)

        a_log(logs)
        once(Sweeper, "sweep", overwrite, monkeypatch)
        with pytest.raises(StoreError, match="was loaded by another program at the same time: run the same load again"):
            loaded(ground.url, [logs], reading=ZERO)
        assert loaded(ground.url, [logs], reading=ZERO).loaded == 1, "it counts as loading"
        same_as_clean(ground, logs, tmp_path)


def same_as_clean(ground, logs: Path, tmp_path: Path) -> None:
    with grounds("sqlite", tmp_path) as clean:
        loaded(clean.url, [logs], reading=ZERO)
        assert ground.documents() == clean.documents()
        assert ground.rollups() == clean.rollups()


def test_two_files_of_one_name_at_once_are_told(ground, tmp_path: Path, monkeypatch) -> None:
    """Both were planned against an empty store."""
    first, other = a_log(tmp_path / "one"), a_log(tmp_path / "two", source="coarse-3")
    store = SqliteStore if ground.url.startswith("sqlite") else ElasticStore
    once(store, "begin", lambda: loaded(ground.url, [other], reading=ZERO), monkeypatch)
    with pytest.raises(StoreError, match="are being loaded at once under the same labels, with other content"):
        loaded(ground.url, [first], reading=ZERO)
    same_as_clean(ground, other, tmp_path)
