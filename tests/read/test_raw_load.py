"""Raw logs in a store: the same numbers as from the files, each I/O once, whatever was loaded before."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from ingest.core.errors import StoreError
from ingest.load.load import LoadAccount, load
from ingest.load.plan import LoadOptions
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import events as oracle
from oracles.per_io import histogram_files
from tests.commands import tailboard

RAW = Path(__file__).parent.parent / "data" / "raw"
SECOND = 1_000_000_000


def loaded(paths: list[Path], store: Path, **words: Any) -> LoadAccount:
    options = {name: words.pop(name) for name in ("step_ns", "attribution", "replace") if name in words}
    with open_store(f"sqlite:{store}", write=True) as opened:
        return load(paths, opened, LoadOptions(read=ReadOptions(run="r", **words), **options))


@pytest.mark.slow
@pytest.mark.parametrize("step", [SECOND, SECOND // 10])
def test_in_flight_weights_are_stored_as_they_are(tmp_path: Path, step: int) -> None:
    loaded([RAW / "both"], tmp_path / "s.db", prefer="raw", attribution="in-flight", step_ns=step)
    files = Files([RAW / "both"], ReadOptions(run="r", prefer="raw"))
    question = Question(step=step, by=("op",), where={"kind": "total"}, attribution="in-flight")
    with open_store(f"sqlite:{tmp_path / 's.db'}") as store:
        stored = store.answer(Question(step=step, by=("op",), where={"kind": "total.in-flight"}))
        [ours], [theirs] = stored.parts, files.answer(question).parts
        assert (ours.counts == theirs.counts).all() and (ours.bins == theirs.bins).all()
        assert (ours.completions == theirs.completions).all() and (ours.start_ns == theirs.start_ns).all()


def test_a_step_of_100_ms_is_no_invention(tmp_path: Path) -> None:
    """Rows of 1 s cannot be cut finer, single I/Os can, from the files and into a store."""
    shutil.copy(RAW / "unix-epoch" / "a_lat.1.log", tmp_path)
    account = loaded([tmp_path], tmp_path / "s.db", step_ns=SECOND // 10, recorded_unit_ns=1)
    text = (tmp_path / "a_lat.1.log").read_text()
    windows = oracle.by_window(oracle.fio_events(text, epoch=True), SECOND // 10)
    assert account.documents == len(windows)
    answer = Files([tmp_path / "a_lat.1.log"], ReadOptions(recorded_unit_ns=1)).answer(Question(step=SECOND // 100))
    assert sum(len(part) for part in answer.parts) == len(
        {key[1] for key in oracle.by_window(oracle.fio_events(text, epoch=True), SECOND // 100)}
    )


def test_the_account_counts_what_was_shadowed(tmp_path: Path) -> None:
    account = loaded([RAW / "both"], tmp_path / "s.db").as_dict()
    assert account["shadowed"] == {"a histogram log holds the same I/Os (--prefer raw reverses this)": 1}
    assert account["sources"] == 3 and account["refused"] == {}


def test_an_io_is_stored_once_also_when_its_logs_come_one_after_another(tmp_path: Path) -> None:
    raw = [RAW / "both" / "a_clat.1.log.xz", RAW / "both" / "a.json"]
    store = tmp_path / "s.db"
    loaded(histogram_files(RAW / "both"), store)
    account = loaded(raw, store)
    assert account.shadowed == {"the store holds the same I/Os from another log of this job": 1} and account.loaded == 0
    other = tmp_path / "t.db"
    loaded(raw, other)
    account = loaded(histogram_files(RAW / "both"), other)
    assert account.shadowed == {"the store holds the same I/Os from another log of this job": 1} and account.loaded == 0


def test_a_run_keeps_the_precision_and_the_preference_it_was_loaded_with(tmp_path: Path) -> None:
    loaded([RAW / "both"], tmp_path / "s.db", digits=3)
    for words in ({"digits": 2}, {"digits": 3, "prefer": "raw"}):
        with pytest.raises(StoreError, match="loaded with another reading options"):
            loaded([RAW / "both"], tmp_path / "s.db", **words)
    assert loaded([RAW / "both"], tmp_path / "s.db", digits=3).duplicate == {"already loaded": 3}


def test_a_histogram_log_and_a_raw_log_of_unlike_jobs_are_merged(tmp_path: Path) -> None:
    """Bins of the raw log nest in fio's: merged at fio's own layout, nothing is lost."""
    shutil.copy(RAW / "both" / "a.json", tmp_path)
    shutil.copy(RAW / "both" / "a_clat_hist.1.log.xz", tmp_path / "a_clat_hist.1.log.h1.xz")
    shutil.copy(RAW / "both" / "a_clat.1.log.xz", tmp_path / "a_clat.1.log.h2.xz")
    files = Files([tmp_path], ReadOptions(run="r"))
    hist, raw, both = (files.answer(Question(step="all", by=("op",), where={"host": host})) for host in ("h1", "h2", "*"))
    assert both.samples == hist.samples + raw.samples
    [one], [two] = hist.parts, both.parts
    assert two.layout == one.layout and (two.counts == 2 * one.counts).all()


def test_inspect_says_what_each_file_is_taken_for() -> None:
    done = tailboard("inspect", RAW / "both", "--format", "ndjson")
    assert done.returncode == 0, done.stderr
    found = {Path(row["path"]).name: row for row in map(json.loads, done.stdout.splitlines())}
    assert found["a_clat.1.log.xz"]["format"] == "shadowed"
    assert found["a_lat.1.log.xz"]["format"] == "fio-raw" and found["a_lat.1.log.xz"]["kind"] == "total"
    assert found["a_lat.1.log.xz"]["samples"] == 17600 and found["a_lat.1.log.xz"]["ops"] == ["read", "write"]
    assert found["a_slat.1.log.xz"]["kind"] == "submission"
