"""Logs of fio that hold no line, without fio's JSON: missing where logs of other jobs beside them hold something."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.core.coverage import EMPTY_LOG
from ingest.query.files import Files
from ingest.query.origin import Origin
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from oracles import logs
from tests.store.grounds import grounds, loaded

ROWS = "".join(f"{at}, {90_000 + at}, 0, 4096, 0, 0\n" for at in range(10, 3000, 10))
BINS = logs.text([(1000, 0, {200: 9}), (2000, 0, {210: 9})], 1856)
ALL = Question(step="all", by=("host",))
OPTIONS = {"run": "r", "t0": 1_793_491_200_000_000_000}


def written(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / f"{name.replace('__', '/')}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def empty_ones(origin: Origin) -> list[tuple[str, str, str]]:
    """Return host, job and kind of logs without rows that an answer names."""
    lacking = [lack.entry for lack in origin.answer(ALL).missing]
    return [tuple(entry.labels[name] for name in ("host", "job", "kind")) for entry in lacking if entry.caveat.code == EMPTY_LOG]


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        ({"h1__a_lat.1": "", "h1__a_lat.2": ROWS, "h2__a_lat.1": ROWS}, [("h1", "1", "total")]),
        ({"h1__a_clat_hist.1": "", "h1__a_clat_hist.2": BINS, "h2__a_clat_hist.1": BINS}, [("h1", "1", "completion")]),
        ({"h1__a_clat.1": "", "h1__a_clat.2": ROWS, "h1__a_lat.2": ROWS, "h1__a_lat.1": ROWS}, []),  # of another kind than asked
        ({"h1__a_clat_hist.1": "", "h1__a_clat_hist.2": BINS, "h1__a_clat.1": ROWS}, []),  # the job has single operations
        (
            {"h1__a_slat.1": "", "h1__a_slat.2": ROWS, "h1__a_lat.1": ROWS, "h1__a_lat.2": ROWS},
            [],
        ),  # an engine without submission
        ({"h1__a_lat.1": "", "h1__b_lat.1": ROWS, "h2__a_lat.1": ROWS}, []),  # another fio of the folder
    ],
    ids=["raw", "histograms", "other kind", "raw beside", "submission", "alone"],
)
def test_an_empty_log_beside_others_is_missing(
    tmp_path: Path, files: dict[str, str], expected: list[tuple[str, str, str]]
) -> None:
    """An archive copied from a full disk: `complete: true` without one of two jobs."""
    written(tmp_path, **files)
    assert empty_ones(Files([tmp_path], ReadOptions(**OPTIONS))) == expected


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a_store_knows_it_until_a_load_brings_the_log(tmp_path: Path, store: str) -> None:
    folder = written(tmp_path / "logs", **{"h1__a_lat.1": "", "h1__a_lat.2": ROWS, "h2__a_lat.1": ROWS})
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder], run="r", reading={"t0": OPTIONS["t0"]})
        with open_store(ground.url) as kept:
            assert empty_ones(kept) == [("h1", "1", "total")]
        written(folder, **{"h1__a_lat.1": ROWS})
        loaded(ground.url, [folder], run="r", reading={"t0": OPTIONS["t0"]})
        with open_store(ground.url) as kept:
            assert empty_ones(kept) == [] and kept.answer(ALL).samples == 3 * ROWS.count("\n")
