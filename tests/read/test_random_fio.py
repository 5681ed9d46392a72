"""What tailboard answers of real fio runs of random job files, held against logs of every I/O and against json+."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
import pytest

from tests.effort import figure
from tests.read import random_fio as fio
from tests.read.test_real_tools import needs

# Faults (random_fio.faults) that are known to be wrong without a word: who mends one takes it out.
KNOWN = {"N4"}  # N4: times of what groups of --client did after their last rows
SEED = 20261127
# Shares of all that may be right but with a caveat that is none. The aim is 1 % of runs, 3 % of variants; of 40 one is 2.5 %.
MOST_RUNS, MOST_VARIANTS = 0.03, 0.03


def real(test: Callable[..., None]) -> Callable[..., None]:
    """Mark a test that runs fio."""
    marked: Callable[..., None] = pytest.mark.slow(pytest.mark.tools(needs("fio")(test)))
    return marked


def held(judged: Iterable[fio.Judged], most: float = 1) -> None:
    """Fail where an answer is wrong without a word, but for the faults that are known, or where too many right ones have a caveat."""
    every = list(judged)
    wrong = [each for each in every if any(not may_be & KNOWN for may_be in each.wrong())]
    assert not wrong, "\n".join(fio.shown(each) for each in wrong)
    doubted = [each for each in every if fio.worst(each.found) == "caveat"]
    assert len(doubted) <= most * len(every), "\n".join(fio.shown(each) for each in doubted)


@real
def test_random_runs(tmp_path: Path) -> None:
    runs = fio.recordings([fio.random_case(SEED + number) for number in range(figure(4, 6))], tmp_path)
    assert runs
    held(fio.judged(runs, 0, SEED))


@real
def test_random_variants(tmp_path: Path) -> None:
    runs = fio.recordings([fio.random_case(SEED + 100 + number) for number in range(figure(4, 6))], tmp_path)
    assert runs
    held(fio.judged(runs, len(runs), SEED))


@real
def test_fio_stopped_for_some_seconds(tmp_path: Path) -> None:
    runs = fio.recordings([fio.gap_case(SEED + number) for number in range(2)], tmp_path)
    assert runs
    held(fio.judged(runs, 0, SEED))


@pytest.mark.soak
@real
def test_many_random_runs_and_variants(tmp_path: Path) -> None:
    number = figure(20, 40, 300)
    runs = fio.recordings([fio.random_case(SEED + 1000 + each) for each in range(number)], tmp_path)
    gaps = fio.recordings([fio.gap_case(SEED + 1000 + each) for each in range(number // 8)], tmp_path)
    assert len(runs) >= 0.95 * number
    held(fio.judged(runs, 0, SEED), MOST_RUNS)
    held(fio.judged(runs, number, SEED), MOST_VARIANTS)
    held(fio.judged(gaps, 0, SEED))


def case(**changes: object) -> fio.Case:
    """Return a case without anything unusual, but for the changes."""
    plain = {
        "seed": 0, "job": "", "jobs": 1, "every_ms": 500, "coarseness": 0, "mixed": False, "hist": True, "raw": False, "grouped": False,
        "shared_group": False, "folders": False, "servers": 0, "unified": False, "per_job": True, "aligned": True, "epoch": False,
    }  # fmt: skip
    return fio.Case(**{**plain, **changes})  # type: ignore[arg-type]


def test_bins_are_those_of_fio() -> None:
    values = np.array([0, 127, 128, 129, 130, 255, 256, 511, 512, 1000, 10_000, 100_000, 10**6, 10**9, 17_179_869_183])
    assert fio.bins(values).tolist() == [0, 127, 128, 128, 129, 191, 192, 255, 256, 317, 526, 737, 954, 1591, 1855]
    assert fio.edges(np.array([0, 63, 127, 128, 255, 256, 928, 954, 1855])).tolist() == [
        *(0, 63, 127, 128, 508, 512, 786_432, 999_424, 17_045_651_456)
    ]


def test_the_oracle_takes_the_nearest_rank() -> None:
    truth = fio.Truth.of(np.arange(1, 201)[::-1])
    assert [truth.percentile(p) for p in (50, 99, 99.9)] == [100, 198, 200]
    row = {"count": 200, "max": 200, "mean": 100.5, "p50": 100, "p99": 198, "p99.9": None}
    assert truth.unlike(row, 0) == []
    assert truth.unlike(row | {"count": 199, "p50": 101}, 0) == ["count 199 for 200", "p50 101 for 100"]


def test_in_a_long_row_nothing_completes_between_its_first_interval_and_its_stamp() -> None:
    stamps = np.array([*range(0, 1000, 10), 1200, 5005, 5006, *range(5010, 5500, 10)])
    latencies = np.where(stamps == 5005, 4_000_000_000, 1000)
    log = fio.Log({"read": stamps}, {"read": latencies}, {"read": np.array([500, 1000, 5005, 5505])})
    bounds = {at: fio.bounds(case(), log, "read", at) for at in (2000, 4900, 1200, 5300)}
    assert bounds == {2000: (101, 101), 4900: (101, 101), 1200: (100, 101), 5300: (101, len(stamps))}
    highest = [fio.highest(case(), log, "read", start, start + 500) for start in (1000, 2000, 4500, 5000)]
    assert highest == [1000, 0, 0, 4_000_000_000]


@pytest.mark.parametrize("seed", range(20))
def test_a_seed_is_a_case(seed: int) -> None:
    assert fio.random_case(seed) == fio.random_case(seed)
    assert fio.gap_case(seed) == fio.gap_case(seed)


def test_a_variant_changes_one_thing(tmp_path: Path) -> None:
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "out.json").write_text("{}")
    (tmp_path / "run" / "h_clat_hist.1.log").write_text("500, 0, 4096, 1, 2\n" * 9)
    before = {path.name: path.read_bytes() for path in (tmp_path / "run").iterdir()}
    for number in range(30):
        target = tmp_path / str(number)
        said, _ = fio.vary(tmp_path / "run", target, random.Random(number))
        after = {str(path.relative_to(target)): path.read_bytes() for path in target.rglob("*") if path.is_file()}
        assert after != before, said
