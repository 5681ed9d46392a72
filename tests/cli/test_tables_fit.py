"""D15: what a table shows fits on a screen and says what it left out; csv, ndjson and pipes have every row."""

from __future__ import annotations

import csv
import io
import os
import pty
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from ingest.core.quantiles import parse_percentiles
from ingest.core.units import elapsed, utc
from ingest.query.heatmap import LADDERS, distribution, ranges
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import ALL, Question
from ingest.view.terminal.tables import MOST_ROWS, print_table, since
from tests.commands import tailboard
from tests.doubles.origin import NS, SECOND, ZERO, Made, series

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"
CONTROL = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
STAMP = re.compile(r"^ ?\d\d:\d\d:\d\d", re.MULTILINE)


def on_terminal(*words: object) -> str:
    """Return what a command prints on a terminal of 120 columns."""
    mine, its = pty.openpty()
    env = {**os.environ, "COLUMNS": "120", "TERM": "xterm"}
    with subprocess.Popen(
        [sys.executable, "-m", "ingest", *map(str, words)], stdout=its, stderr=subprocess.DEVNULL, env=env, cwd=ROOT
    ) as process:
        os.close(its)
        printed = b""
        while True:
            try:
                part = os.read(mine, 1 << 16)
            except OSError:  # the other end has gone
                break
            if not part:
                break
            printed += part
    os.close(mine)
    assert process.returncode == 0, printed
    return CONTROL.sub("", printed.decode()).replace("\r\n", "\n")


def rows_of(text: str) -> int:
    return len(STAMP.findall(text))


def test_d15_a_table_of_percentiles_has_about_20_windows() -> None:
    table, every = (tailboard("percentiles", EXAMPLE, *words).stdout for words in ((), ("--all",)))
    lines = tailboard("percentiles", EXAMPLE, "--format", "csv").stdout.splitlines()
    assert 8 <= rows_of(table) <= 20
    assert "step 5s" in table
    assert rows_of(every) == len(lines) - 1 == 76
    counts = [int(row.split()[1].replace(",", "")) for row in table.splitlines() if STAMP.match(row)]
    assert sum(counts) == sum(int(row["count"]) for row in csv.DictReader(io.StringIO("\n".join(lines)))) == 59_015


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--format", "csv"), ("--format", "ndjson"), ("--step", "1s"), ("--all",)])
def test_d15_a_pipe_has_every_row(words: tuple[str, ...]) -> None:
    done = tailboard("percentiles", EXAMPLE, "--by", "host", *words)
    rows = (
        rows_of(done.stdout) if "csv" not in words and "ndjson" not in words else len(done.stdout.splitlines()) - ("csv" in words)
    )
    assert rows == 3 * 76 - 3  # nothing of ceph-b completed in the three windows of its stall
    assert "rows" not in done.stdout


@pytest.mark.slow
def test_d15_a_terminal_has_the_worst_rows_and_says_so() -> None:
    short = on_terminal("percentiles", EXAMPLE, "--by", "host", "--step", "1s", "-p", "50,99")
    assert rows_of(short) == MOST_ROWS
    assert "60 of 225 rows, those with the highest p99; --all shows all, --step and --where choose" in short
    assert len(short.splitlines()) < MOST_ROWS + 12
    done = tailboard("percentiles", EXAMPLE, "--by", "host", "--step", "1s", "-p", "50,99", "--format", "csv").stdout
    rows = list(csv.DictReader(io.StringIO(done)))
    value = {(row["start"][11:19], row["host"]): float(row["p99"] or row["max"]) for row in rows}
    there = {tuple(line.split()[:2]) for line in short.splitlines() if STAMP.match(line)}
    assert len(there) == MOST_ROWS
    left_out = [number for key, number in value.items() if key not in there]
    assert min(value[key] for key in there) >= max(left_out) and max(value.values()) > 4e9
    assert rows_of(on_terminal("percentiles", EXAMPLE, "--by", "host", "--step", "1s", "--all")) == 225


@pytest.mark.slow
def test_d15_a_distribution_has_a_screen_of_ranges() -> None:
    table = tailboard("distribution", EXAMPLE).stdout
    shown = [line for line in table.splitlines() if re.match(r"^ +[\d.]+(ns|µs|ms|s) ", line)]
    assert 15 <= len(shown) <= 30
    assert shown[-1].split()[-2:] == ["100", "%"] and "59,015" in shown[-1]
    every = tailboard("distribution", EXAMPLE, "--all").stdout.splitlines()
    bins = tailboard("distribution", EXAMPLE, "--format", "csv").stdout.splitlines()
    assert len(bins) - 1 > 300
    assert sum(bool(re.match(r"^ +[\d.]+(ns|µs|ms|s) ", line)) for line in every) == len(bins) - 1


@pytest.mark.slow
@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.dictionaries(st.integers(0, 1500), st.integers(1, 1000), min_size=1, max_size=40), min_size=1, max_size=5),
    st.integers(1, 40),
)
def test_d15_ranges_hold_the_counts_of_their_bins(groups: list[dict[int, int]], most: int) -> None:
    rows = [(series(host=f"h{number}"), 0, bins) for number, bins in enumerate(groups)]
    answer = Made(rows).answer(Question(by=("host",), step=ALL))
    table, whole = ranges(answer, most), distribution(answer)
    for number, bins in enumerate(groups):
        mine = np.flatnonzero(table.columns["host"] == f"h{number}")
        lower, upper, counts, cumulative = (table.columns[name][mine] for name in ("lower", "upper", "count", "cumulative"))
        for low, high, count in zip(lower, upper, counts, strict=True):  # brute force: a bin is in the range that it begins in
            assert count == sum(times for place, times in bins.items() if low <= NS.edges[place] < high)
            assert low in NS.edges and high in NS.edges and count > 0
        assert cumulative.tolist() == np.cumsum(counts).tolist() and counts.sum() == sum(bins.values())
        assert (lower[1:] >= upper[:-1]).all()
    assert len(table) <= len(whole)
    coarsest = len(ranges(answer, 1))
    assert len(table) <= max(2 * most, coarsest)


def test_ladders_rise_and_are_finer_first() -> None:
    assert all(list(ladder) == sorted(set(ladder)) and ladder[0] == 1 and ladder[-1] < 10 for ladder in LADDERS)
    assert [len(ladder) for ladder in LADDERS] == sorted((len(ladder) for ladder in LADDERS), reverse=True)


def test_d4_times_of_more_than_a_day_have_their_days() -> None:
    rows = [(series(), at * 3600, {900: 200}) for at in range(0, 30, 3)]
    table = percentiles(Made(rows).answer(Question(step=3600 * SECOND)), Wanted(parse_percentiles("50")))
    for stamp, day, first, last in (
        (utc, "2026-11-20 to 2026-11-22, UTC", "11-20 21:00:00", "11-22 00:00:00"),
        (elapsed(ZERO), "times from the start of the run", "-0d 00:00:04", "1d 02:59:56"),
    ):
        out = io.StringIO()
        print_table(table, [], stamp, console=Console(file=out, width=120))
        lines = [line.strip() for line in out.getvalue().splitlines() if line.strip()]
        assert lines[0] == day
        assert lines[3].startswith(first) and lines[-1].startswith(last), lines
    assert {since(at) for at in (0, 86_399, 86_400, 90_061)} == {"0d 00:00:00", "0d 23:59:59", "1d 00:00:00", "1d 01:01:01"}
