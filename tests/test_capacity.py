"""Sums never wrap: what cannot be added up is refused with a sentence, all else is exact, near 2^63 too."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from pathlib import Path
from subprocess import CompletedProcess

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from commands import tailboard as command
from event_files import description, event_file
from ingest.core.errors import CapacityError
from ingest.core.grid import in_flight
from ingest.core.intervals import MOST_SAMPLES, Exact, Sum, merged, total
from ingest.core.layout import fio_layout
from ingest.core.quantiles import Ranked, extremes, parse_percentiles, percentile_values
from oracles import hdr
from strategies import made

NS = fio_layout(29, 1)
BIG = 1 << 61
ROW = 2**53 - 1  # the most samples of a row of an HdrHistogram log

huge = st.dictionaries(st.integers(0, 1800), st.one_of(st.integers(1, 9), st.integers(1 << 58, 1 << 59)), min_size=1, max_size=6)


@pytest.mark.slow
@given(st.lists(huge, min_size=1, max_size=12), st.sampled_from(["0", "1", "50", "99", "99.999", "100"]))
def test_b3_ranks_are_exact_however_many_samples_all_rows_hold(held: list[dict[int, int]], text: str) -> None:
    """All rows together pass 2^63, each of them does not: the running total over all rows wrapped."""
    rows = made(NS, [(0, number, number + 1, counts) for number, counts in enumerate(held)])
    (percentile,) = parse_percentiles(text)
    assert rows.samples.tolist() == [sum(counts.values()) for counts in held]
    found = percentile_values(rows, percentile)
    for counts, value in zip(held, found.tolist(), strict=True):
        count = sum(counts.values())
        if math.isnan(value):
            assert not percentile.carried(np.array([count]))[0]
            continue
        rank, passed = max(math.ceil(Fraction(count) * Fraction(text) / 100), 1), 0
        for slot in sorted(counts):
            passed += counts[slot]
            if passed >= rank:
                break
        assert value == NS.values[slot]


@given(st.lists(st.integers(1, 1 << 62), min_size=1, max_size=8))
def test_b3_merging_is_exact_or_refused(counts: list[int]) -> None:
    parts = [made(NS, [(0, 0, 1, {500: count})]) for count in counts]
    running = Sum(1)
    if sum(counts) > MOST_SAMPLES:
        for add in (lambda: merged(parts), lambda: [running.add(part) for part in parts] and running.parts()):
            with pytest.raises(CapacityError, match="more than 2\\^62 samples"):
                add()
        return
    assert merged(parts).counts.tolist() == [sum(counts)]
    for part in parts:
        running.add(part)
    assert running.parts()[0].counts.tolist() == [sum(counts)]


@given(st.lists(st.integers(0, 2**63 - 1), max_size=40))
def test_b3_totals_are_exact(counts: list[int]) -> None:
    assert total(np.array(counts, np.int64)) == sum(counts)


@pytest.mark.parametrize("spent", [1 << 40, 1 << 61, (1 << 62) - 1])
def test_b3_sums_of_latencies_that_cannot_be_known_are_not_known(spent: int) -> None:
    """10^10 samples of a second pass 2^63 ns: the mean is then that of the bins."""
    exact = Exact(np.array([200]), np.array([300]), np.array([spent]), np.array([True]))
    parts = [replace(made(NS, [(0, 0, 1, {200: 1})]), exact=exact) for _ in range(3)]
    rows = merged(parts)
    assert rows.exact is not None
    known = 3 * spent <= 1 << 62
    assert rows.exact.known.tolist() == [known]
    assert rows.exact.sum_ns.tolist() == [3 * spent if known else 0]
    assert extremes(rows)[2][0] == (spent if known else NS.values[200])


def test_b3_weights_in_flight_that_cannot_be_added_up_are_refused() -> None:
    with pytest.raises(CapacityError, match="in flight: 2\\^46"):
        in_flight(made(NS, [(0, 0, 10**9, {500: (1 << 46) + 1})]), 10**9)
    rows = in_flight(made(NS, [(0, 0, 10**9, {500: 1 << 46})]), 10**9)
    assert total(rows.counts) == 1 << 62


def test_b3_ranked_rows_of_wrapping_totals_interpolate() -> None:
    rows = made(NS, [(0, number, number + 1, {200: BIG, 300: BIG}) for number in range(9)])
    every = np.arange(9)
    assert Ranked(rows).interpolated(every, np.full(9, BIG)).tolist() == [float(NS.edges[201])] * 9


def tailboard(*words: object, status: int = 0) -> CompletedProcess:
    done = command(*words)
    assert done.returncode == status, done.stderr
    return done


def _log(path: Path, rows: int, start: int = 0) -> Path:
    lines = [hdr.line(f"{start + at}.000", "1.000", {at % 3 + 5: ROW}, digits=2) for at in range(rows)]
    path.write_text(hdr.log(lines))
    return path


@pytest.mark.slow
def test_b3_a_log_of_more_than_can_be_added_up_is_refused_by_its_line(tmp_path: Path) -> None:
    """4.6e18 was said for 2.3e19, with exit status 0; and a load of it never completed."""
    log = _log(tmp_path / "a.hlog", 520)
    load = ("load", log, "--run", "r", "--store", f"sqlite:{tmp_path}/s.db")
    for words in (("percentiles", log, "--step", "all"), ("percentiles", log, "--step", "10s"), load):
        done = tailboard(*words, status=3)
        assert f"{log}:516: from here on the log holds more than 2^62 samples, which cannot be added up" in done.stderr
        assert not done.stdout


@pytest.mark.slow
def test_b3_two_logs_that_together_are_too_many(tmp_path: Path) -> None:
    logs = [_log(tmp_path / f"{name}.hlog", 400, start) for name, start in (("a", 0), ("b", 1000))]
    assert "cannot be added up: choose fewer with" in tailboard("percentiles", *logs, "--step", "all", status=3).stderr
    shown = tailboard("percentiles", *logs, "--step", "600s", "-p", "50", "--format", "csv").stdout
    assert sum(int(line.split(",")[2]) for line in shown.splitlines()[1:]) == 800 * ROW
    store = ("--store", f"sqlite:{tmp_path}/s.db")
    tailboard("load", logs[0], "--run", "r", *store)
    done = tailboard("load", logs[1], "--run", "r", *store, status=3)
    assert f"{logs[1]}: with it r would hold more than 2^62 samples" in done.stderr
    whole = tailboard("percentiles", f"sqlite:{tmp_path}/s.db", "--step", "all", "-p", "50", "--format", "csv").stdout
    assert f",{400 * ROW}," in whole


def test_b3_weights_of_single_operations_are_added_up_or_refused(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    for times, status in ((3, 0), (9, 3)):
        rows = [(10**9 + at, 1, "h", "p", "read", 1 << 60) for at in range(times)]
        log = event_file(tmp_path, rows)
        done = tailboard(
            "percentiles",
            log,
            "--input-format",
            description(tmp_path),
            "--step",
            "all",
            "-p",
            "50",
            "--format",
            "csv",
            status=status,
        )
        assert f",{times << 60}," in done.stdout if not status else "cannot be added up" in done.stderr
