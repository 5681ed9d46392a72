"""Recorded CBT archives in every store against what fio's own JSON says: by run, host, volume and op, loaded once."""

from __future__ import annotations

import json
import os
import shutil
import tarfile
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.read.test_placing import BY, CBT, counts, truth, truth_of
from tests.store.grounds import grounds, loaded

KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
AVERAGED = ("C", "A")
MEANS = {"kind": "completion.mean"}
WINDOW = 100_000_000


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of the recorded archives A, B and C."""
    folder = tmp_path_factory.mktemp("archives")
    for name in "ABC":
        with tarfile.open(CBT / f"{name}.tar.xz") as tar:
            tar.extractall(folder, filter="data")
    return folder


@pytest.fixture(params=KINDS, scope="module")
def store_of(request, tmp_path_factory, unpacked):
    """Return the function that loads an archive, if it is not there yet, and returns the store's URL."""
    there: set[str] = set()
    with grounds(request.param, tmp_path_factory.mktemp("truth")) as found:

        def url_with(archive: str) -> str:
            if archive not in there:
                account = loaded(found.url, [unpacked / archive], run=archive, jobs=1)
                assert account.caveats == [] and account.documents > 0
                there.add(archive)
            return found.url

        yield url_with


def of_archive(store, archive: str) -> tuple[str, ...]:
    return tuple(record.run for record in store.runs() if record.run.partition("/")[0] == archive)


@pytest.mark.cases(2)
@pytest.mark.parametrize("archive", "CBA")
def test_a_store_holds_what_fio_counted_by_run_host_volume_and_op(store_of, archive: str) -> None:
    with open_store(store_of(archive)) as store:
        question = Question(runs=of_archive(store, archive), by=BY, step="all")
        table = percentiles(store.answer(question), Wanted(parse_percentiles("99"))).columns
    found = dict(zip(zip(*(table[name].tolist() for name in BY), strict=True), table["count"].tolist(), strict=True))
    assert found == truth(archive)


@pytest.mark.cases(2)
@pytest.mark.parametrize("archive", AVERAGED)
def test_the_mean_of_a_run_is_fios_own_and_the_heading_says_that_windows_are_approximate(store_of, archive: str) -> None:
    with open_store(store_of(archive)) as store:
        question = Question(runs=of_archive(store, archive), by=BY, step="all", where=MEANS)
        whole, windows = store.answer(question), store.answer(replace(question, step=WINDOW))
    table = percentiles(whole, Wanted(())).columns
    found = dict(zip(zip(*(table[name].tolist() for name in BY), strict=True), table["mean"].tolist(), strict=True))
    assert found == pytest.approx(means(archive), rel=1e-6)
    assert "approximate" in windows.warnings[0] and "no percentiles can be made of them" in windows.warnings[0]
    table = percentiles(windows, Wanted(())).columns
    keys = list(zip(*(table[name].tolist() for name in BY), strict=True))
    sums: dict[tuple[str, ...], float] = dict.fromkeys(keys, 0.0)
    samples = dict.fromkeys(keys, 0)
    for key, count, mean in zip(keys, table["count"].tolist(), table["mean"].tolist(), strict=True):
        if count:
            sums[key] += count * mean
            samples[key] += count
    assert samples == truth(archive)
    assert {key: sums[key] / samples[key] for key in sums} == pytest.approx(means(archive), rel=0.1)


def means(archive: str) -> dict[tuple[str, ...], float]:
    """Return fio's own means by run, host, volume and op: each volume is one job with one log."""
    entries = json.loads((CBT / "truth.json").read_text())[archive]
    keys = [truth_of(archive, entry) for entry in entries]
    assert len(set(keys)) == len(keys)
    return {key: entry["mean_ns"] for key, entry in zip(keys, entries, strict=True)}


@pytest.mark.cases(2)
@pytest.mark.parametrize("archive", AVERAGED)
def test_windows_are_the_rows_of_the_log(store_of, unpacked: Path, archive: str) -> None:
    for log in sorted((unpacked / archive).rglob("output.1_clat.1.log*"))[:3]:
        rows = [[int(cell) for cell in line.split(",")[:3]] for line in log.read_text().splitlines()]
        [source] = discover([log], ReadOptions()).sources
        series = source.context.series
        where = {"host": series.host, "volume": "1", **MEANS}
        run = series.run.partition("/")[2]
        with open_store(store_of(archive)) as store:
            question = Question(runs=(f"{archive}/{run}",), by=("op",), step=WINDOW, where=where)
            table = percentiles(store.answer(question), Wanted(())).columns
        for code, op in enumerate(("read", "write")):
            logged = [value for _, value, direction in rows if direction == code]
            stored = [mean for mean, name in zip(table["mean"].tolist(), table["op"].tolist(), strict=True) if name == op]
            assert stored == pytest.approx(logged, rel=1e-9), (log, op)


@pytest.mark.cases(3)
@pytest.mark.parametrize("archive", "CBA")
def test_a_second_load_is_nothing_new(store_of, unpacked: Path, archive: str) -> None:
    for given in (unpacked / archive, unpacked / archive / "results"):
        again = loaded(store_of(archive), [given], run=archive, jobs=1)
        assert (again.loaded, again.documents) == (0, 0)
        assert sum(again.duplicate.values()) > 0


@pytest.mark.slow
@pytest.mark.parametrize("archive", AVERAGED)
def test_an_averaged_archive_is_the_same_whichever_of_its_folders_is_named(unpacked: Path, tmp_path: Path, archive: str) -> None:
    shutil.copytree(unpacked / archive, tmp_path / archive)
    expected = truth(archive)
    [*ids] = (tmp_path / archive / "results" / "00000000").glob("id-*")
    for given in (tmp_path, tmp_path / archive, tmp_path / archive / "results"):
        assert counts(Files([given], jobs=1), *BY) == expected
    for one in ids:
        own = Counter({key: count for key, count in expected.items() if key[0].split("/")[2] == one.name})
        assert own and counts(Files([one], jobs=1), *BY) == own
        for workload in sorted({key[0].split("/")[3] for key in own} if archive == "A" else ()):
            folders = sorted(one.glob(f"{workload}.client*"))
            assert counts(Files(folders, jobs=1), *BY) == {key: n for key, n in own.items() if f"/{workload}/" in key[0]}
