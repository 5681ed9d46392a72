"""pgbench: every transaction counts once; with a rate its time holds the lag, which is how long it waited."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as tailboard
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import text
from ingest.read.plugins import pgbench
from ingest.read.sources import ReadOptions
from tests.effort import figure
from tests.read.test_histograms import DATA, rows

PLAIN, RATE = DATA / "pgbench15_plain.log", DATA / "pgbench15_rate.log"


def test_each_transaction_is_there_once() -> None:
    """Independent: the columns by awk's rules."""
    told = [line.split() for line in PLAIN.read_text().splitlines()]
    found, account = rows(PLAIN)
    assert account.samples == len(told) and {series.kind for series, *_ in found} == {"service"}
    [answer] = Files([PLAIN], ReadOptions(run="r"), jobs=1).answer(Question(step="all")).parts
    assert int(answer.exact.sum_ns[0]) == 1000 * sum(int(cells[2]) for cells in told)
    assert int(answer.exact.max_ns[0]) == 1000 * max(int(cells[2]) for cells in told)


def test_a_rate_gives_response_wait_and_service() -> None:
    told = [line.split() for line in RATE.read_text().splitlines()]
    answer = Files([RATE], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("kind",), where={"kind": "*"}))
    sums = {part.table[code][0]: int(part.exact.sum_ns[at]) for part in answer.parts for at, code in enumerate(part.series)}
    took, lag = (1000 * sum(int(cells[column]) for cells in told) for column in (2, 6))
    assert sums == {"response": took, "wait": lag, "service": took - lag}


@pytest.mark.parametrize("word", ["skipped", "failed", "serialization", "deadlock"])
def test_transactions_without_a_time_are_counted(tmp_path: Path, word: str) -> None:
    path = tmp_path / "pgbench_log.12"
    path.write_text(RATE.read_text() + f"0 135 {word} 0 1795329758 461283 0 0\n0 136 1 0 1795329758 461284 9 0\nx y\n0 137 5")
    _, account = rows(path)
    assert account.samples == 60 and sum(account.skipped.values()) == 1
    assert len(account.rejected) == 3  # a lag that is longer than its time, no transaction, the end of the file


def test_seven_columns_are_lags_or_retries(tmp_path: Path) -> None:
    lag, retries = tmp_path / "pgbench_log.1", tmp_path / "pgbench_log.2"
    lag.write_text("".join(f"0 {n} 900 0 1795329757 {n} {50 + n}\n" for n in range(9)))
    retries.write_text("".join(f"0 {n} 900 0 1795329757 {n} {n % 3}\n" for n in range(9)))
    for path, kinds, word in (
        (lag, {"service", "response", "wait"}, "lag of -R, since"),
        (retries, {"service"}, "number of tries of"),
    ):
        found, account = rows(path)
        assert {series.kind for series, *_ in found} == kinds
        [caveat] = account.caveats
        assert caveat.code == "seventh-column" and word in caveat.sentence
    assert rows(PLAIN)[1].caveats == []


def test_what_a_reader_guesses_is_in_every_answer(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """From files, by several processes, while loading and from the store; inspect and --json have it, too."""
    for number in (1, 2):
        lines = "".join(f"0 {at} 900 0 1795329757 {at} {50 + at * number}\n" for at in range(9))
        (tmp_path / f"pgbench_log.{number}").write_text(lines)
    store = f"sqlite:{tmp_path / 'x.db'}"
    for words in (
        ["percentiles", str(tmp_path)],
        ["percentiles", str(tmp_path), "--jobs", "2"],
        ["inspect", str(tmp_path)],
        ["load", str(tmp_path), "--run", "r", "--store", store],
        ["percentiles", store],
    ):
        assert tailboard(words) == 0
        told = "".join(capsys.readouterr())
        for number in (1, 2):
            assert f"pgbench_log.{number}: its seventh column is taken as the lag of -R" in told, words


ODD = (
    "garbage",
    "{line} \t",
    "{line}\r",
    "",
    "{line} é",
    "0 1 skipped 0 1795329757 5 0 0",
    "0 1 99999999999999 0 1795329757 5 0 0",
    "0 1 5 0 9999999999 5 1 0",
)
LINE = re.compile(r"\d+ \d+ (\d+) (\d+) (\d{9,10}) (\d{1,6}) (\d+) \d+\s*$", re.ASCII)


@pytest.mark.slow
@settings(max_examples=figure(25, 100, 2000), deadline=None)
@given(st.data())
def test_blocks_of_lines_are_read_as_line_by_line(tmp_path_factory, data) -> None:
    """Brute force: a pattern a line. Odd lines between, several scripts, and blocks that are added up one after the other."""
    cells = st.tuples(
        st.integers(0, 9), st.integers(0, 60_000), st.sampled_from([2, 0, 11]), st.integers(0, 5_000_000), st.integers(0, 70_000)
    )
    lines = []
    for client, took, script, at, lag in data.draw(st.lists(cells, min_size=1, max_size=40)):
        line = f"{client} 7 {took} {script} {1_795_329_757 + at // 10**6} {at % 10**6} {lag} 0"
        lines.append(data.draw(st.sampled_from([line] * 6 + list(ODD))).format(line=line))
    path = tmp_path_factory.mktemp("p") / "pgbench_log.1"
    path.write_text("".join(f"{line}\n" for line in ["0 7 900 0 1795329757 0 50 0", *lines]))
    wanted: dict[tuple, list[int]] = {}
    for line in path.read_text().split("\n"):
        match = LINE.match(line)
        if match and int(match[5]) <= int(match[1]) < 86_400 * 10**6 and int(match[3]) < 4 * 10**9:
            second = (int(match[3]) * 10**6 + int(match[4]) - 1) // 10**6  # windows are (start, end]
            took, lag = int(match[1]) * 1000, int(match[5]) * 1000
            for kind, value in (("service", took - lag), ("response", took), ("wait", lag)):
                wanted.setdefault((kind, int(match[2]), second), []).append(value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pgbench, "MOST_WAITING", data.draw(st.sampled_from([1, 7, 1 << 18])))
        patch.setattr(text, "BLOCK", 1 << 8)
        patch.setattr(text, "SMALLEST_BLOCK", 1 << 8)
        files = Files([path], ReadOptions(run="r"), jobs=1)
        [source] = files.found.sources
        parts = list(pgbench.read(path, source.context))
    several = len({script for _, script, _ in wanted}) > 1
    found = {}
    for part in parts:
        for row in range(len(part)):
            series, exact = part.table[part.series[row]], part.exact
            count = int(part.counts[part.indptr[row] : part.indptr[row + 1]].sum())
            script = int(series.op.removeprefix("script ")) if several else next(iter(wanted))[1]
            found[series.kind, script, int(part.start_ns[row]) // 10**9] = (
                count,
                int(exact.min_ns[row]),
                int(exact.max_ns[row]),
                int(exact.sum_ns[row]),
            )
    assert found == {key: (len(values), min(values), max(values), sum(values)) for key, values in wanted.items()}
    assert source.context.account.samples == sum(len(values) for (kind, *_), values in wanted.items() if kind == "service")
