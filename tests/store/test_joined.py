"""Loads that make rollups from memory, while somebody joins, leaves or deletes the run at any moment: as one after another."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError
from ingest.store import open_store
from ingest.store.elastic import rollups
from ingest.store.elastic.bulk import Sender
from ingest.store.elastic.rollups import OwnRollups, RollupWriter
from ingest.store.elastic.runs import Records
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.store.grounds import SERVER, ElasticGround, loaded, logs_by_host, many_logs
from tests.store.test_contract import ZERO
from tests.store.test_overtaken import once

pytestmark = pytest.mark.contract
STEPS = [(Records, "begin"), (Sender, "show"), (OwnRollups, "write_alone"), (RollupWriter, "check_sent"), (Records, "write")]


@pytest.fixture
def double() -> Iterator[ElasticsearchDouble]:
    with ElasticsearchDouble(version=SERVER) as running:
        yield running
        assert not running.refusals, running.refusals


def load_of(ground: ElasticGround, folder: Path, host: str, run: str = "r") -> None:
    loaded(ground.url, [folder], run=run, reading={**ZERO, "host": host})


def one_after_another(double: ElasticsearchDouble, loads: list[tuple[Path, str]]) -> ElasticGround:
    clean = ElasticGround(double.url)
    for folder, host in loads:
        load_of(clean, folder, host)
    return clean


def same(ground: ElasticGround, clean: ElasticGround) -> None:
    assert ground.documents() == clean.documents()
    assert ground.rollups() == clean.rollups()
    assert command(["runs", "check", "--store", ground.url]) == 0
    with open_store(ground.url) as store:
        assert [record.state for record in store.runs()] == ["complete"]


def jobs_of(folder: Path) -> tuple[Path, Path]:
    """Return the logs of two jobs of one host, which share all windows of its rollups."""
    logs = many_logs(folder / "both", 2, turns=1)
    first, second = folder / "first", folder / "second"
    for number, part in enumerate((first, second), 1):
        part.mkdir()
        (logs / f"a_clat_hist.{number}.log").rename(part / f"a_clat_hist.{number}.log")
    return first, second


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("shared", [False, True], ids=["other host", "same host"])
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0].__name__}.{step[1]}")
def test_f4_whoever_joins_while_a_load_works_alone_is_seen(
    double, tmp_path: Path, monkeypatch, step: tuple[type, str], shared: bool
) -> None:
    first, second = jobs_of(tmp_path) if shared else logs_by_host(tmp_path, 2, turns=1)
    hosts = ("h1", "h1") if shared else ("h1", "h2")
    ground, clean = ElasticGround(double.url), one_after_another(double, [(first, hosts[0]), (second, hosts[1])])
    once(*step, lambda: load_of(ground, second, hosts[1]), monkeypatch)
    load_of(ground, first, hosts[0])
    same(ground, clean)


@pytest.mark.parametrize("step", STEPS[1:], ids=lambda step: f"{step[0].__name__}.{step[1]}")
def test_f4_a_run_that_is_deleted_while_a_load_works_alone_stays_deleted(
    double, tmp_path: Path, monkeypatch, step: tuple[type, str]
) -> None:
    (first,) = logs_by_host(tmp_path, 1, turns=1)
    ground = ElasticGround(double.url)
    once(*step, lambda: _deleted(ground), monkeypatch)
    if step == (Records, "write"):  # it is begun after that
        load_of(ground, first, "h1")
        same(ground, one_after_another(double, [(first, "h1")]))
        return
    with pytest.raises(StoreError, match="was deleted while it was written to"):
        load_of(ground, first, "h1")
    assert ground.documents() == ground.rollups() == []


def _deleted(ground: ElasticGround) -> None:
    with open_store(ground.url, write=True) as store:
        store.delete_run("r", force=True)


@pytest.mark.cases(2)
@pytest.mark.parametrize("step", STEPS, ids=lambda step: f"{step[0].__name__}.{step[1]}")
def test_f4_a_load_that_ends_anywhere_is_completed_by_the_next(
    double, tmp_path: Path, monkeypatch, step: tuple[type, str]
) -> None:
    first, second = jobs_of(tmp_path)
    ground, clean = ElasticGround(double.url), one_after_another(double, [(first, "h1"), (second, "h1")])
    times = 2 if step[0] is Records and step[1] == "write" else 1
    for number in range(times):
        monkeypatch.setattr(*step, _cut_off(getattr(*step), number))
        with pytest.raises(KeyboardInterrupt):
            load_of(ground, first, "h1")
        monkeypatch.undo()
    load_of(ground, second, "h1")
    load_of(ground, first, "h1")
    same(ground, clean)


def _cut_off(real: Callable[..., object], after: int) -> Callable[..., object]:
    """Return a step that is cut off once it was done a number of times."""
    calls = [0]

    def step(*words: object, **named: object) -> object:
        calls[0] += 1
        if calls[0] > after:
            raise KeyboardInterrupt
        return real(*words, **named)

    return step


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("most", [1, 500])
def test_f4_windows_that_do_not_fit_into_memory_are_read_back(double, tmp_path: Path, monkeypatch, most: int) -> None:
    logs = many_logs(tmp_path / "logs", 2, turns=16)
    clean, ground = ElasticGround(double.url), ElasticGround(double.url)
    load_of(clean, logs, "h1")
    monkeypatch.setattr(rollups, "MOST_ENTRIES", most)
    load_of(ground, logs, "h1")
    same(ground, clean)


def test_f4_a_source_that_is_loaded_with_another_content_at_once_is_refused_and_withdrawn(double, tmp_path: Path) -> None:
    """What was begun in vain goes; what another load has begun stays."""
    first, second = logs_by_host(tmp_path, 2, turns=1)
    ground = ElasticGround(double.url)
    load_of(ground, first, "h1")
    with pytest.raises(StoreError, match="loaded with another attribution"):
        loaded(ground.url, [second], reading={**ZERO, "host": "h2"}, attribution="in-flight")
    same(ground, one_after_another(double, [(first, "h1")]))
