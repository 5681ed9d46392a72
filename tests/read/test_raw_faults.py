"""Damaged raw logs: every fault is counted with its line, the rest is kept, nothing but a TailboardError ever comes out."""

from __future__ import annotations

import re
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError
from ingest.core.labels import OPS
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import read
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import events as oracle
from tests.effort import figure
from tests.mutations import Mutation, mutated
from tests.mutations import mutations as drawn

DATA = Path(__file__).parent.parent / "data" / "raw"
PRIORITY = ReadOptions(fio_version=(3, 33))
GOOD = "".join(f"{5 * number}, {1000 + number}, {number % 2}, 4096, 0\n" for number in range(40))
DAY = 86_400_000


def account_of(path: Path, options: ReadOptions = PRIORITY) -> Any:
    """Return the account of a log and how many samples came out of it."""
    [source] = discover([path], options).sources
    samples = sum(int(part.counts.sum()) for part in read(source))
    assert samples == source.context.account.samples == source.context.account.accepted
    return source.context.account


FAULTS = [
    pytest.param("NaN, 1, 0, 4096, 0", "not a row of plain integers", id="text"),
    pytest.param("1.5, 1, 0, 4096, 0", "not a row of plain integers", id="decimals"),
    pytest.param("+5, 1, 0, 4096, 0", "not a row of plain integers", id="plus"),
    pytest.param("0x10, 1, 0, 4096, 0", "not a row of plain integers", id="hexadecimal stamp"),
    pytest.param("5; 1; 0; 4096; 0", "fewer columns than the rows of this log (5)", id="other delimiter"),
    pytest.param("5, 1, 0, 4096", "fewer columns than the rows of this log (5)", id="missing column"),
    pytest.param("5, 1, 0, 4096, 0, 7", "more columns than the rows of this log (5)", id="column too many"),
    pytest.param("5, 1, 0, 4096, 0\0\0", "NUL bytes: a hole left by a crash or a partial copy", id="NUL"),
    pytest.param("5, 1, 3, 4096, 0", "direction is not 0, 1 or 2", id="direction"),
    pytest.param("5, -1, 0, 4096, 0", "a latency below zero", id="negative latency"),
    pytest.param("5, 999999999999999999, 0, 4096, 0", "a latency of more than a day: damage, or another unit", id="1e18"),
    pytest.param("5, 99999999999999999999, 0, 4096, 0", "not a row of plain integers", id="past 2^63"),
    pytest.param("-5, 1, 0, 4096, 0", "time stamp past the year 2115", id="negative stamp"),
    pytest.param("9999999999999, 1, 0, 4096, 0", "time stamp past the year 2115", id="huge stamp"),
    pytest.param("5, 1, 0, 0, 0", "block size 0: a mean over a window", id="a mean among single values"),
    pytest.param(f"{3 * DAY}, 1, 0, 4096, 0", "clock jump: its stamp lies more than a day", id="clock jump"),
]


@pytest.mark.parametrize("place", [0, 1, 20, 40])
@pytest.mark.parametrize(("line", "reason"), FAULTS)
def test_each_fault_is_named_with_its_line_and_the_rest_kept(log: Any, line: str, reason: str, place: int) -> None:
    lines = GOOD.splitlines()
    lines.insert(place, line)
    account = account_of(log("\n".join(lines) + "\n", "x_clat.1.log"))
    if reason.startswith("clock jump") and place == 40:  # nothing behind it says that the clock did not jump
        assert account.accepted == 41
        return
    assert (account.accepted, account.rows_rejected, account.rows) == (40, 1, 41)
    [(found, count)] = account.rejected.items()
    assert found.startswith(reason) and count == 1
    assert [finding.line for finding in account.findings] == [place + 1]


@pytest.mark.parametrize("place", [1, 20, 40])
def test_a_hexadecimal_stamp_is_no_number_beside_hexadecimal_priorities(log: Any, place: int) -> None:
    """Arrow would take 0x1f for 31."""
    lines = [line.rsplit(",", 1)[0] + ", 0x4001" for line in GOOD.splitlines()]
    lines.insert(place, "0x1f, 1, 0, 4096, 0x4001")
    account = account_of(log("\n".join(lines) + "\n", "x_clat.1.log"))
    assert (account.accepted, dict(account.rejected)) == (40, {"not a row of plain integers": 1})
    assert [finding.line for finding in account.findings] == [place + 1]


def test_half_a_last_line_is_rejected_and_blank_lines_are_passed_over(log: Any) -> None:
    account = account_of(log(GOOD + "\n  \n200, 5", "x_clat.1.log"))
    assert account.rejected == {"last line breaks off without a newline": 1}
    assert [finding.line for finding in account.findings] == [43] and account.accepted == 40


def test_carriage_returns_are_told_and_a_lone_one_is_a_fault(log: Any) -> None:
    account = account_of(log(GOOD.replace("\n", "\r\n"), "x_clat.1.log"))
    assert account.accepted == 40 and account.notes == ["carriage returns (CRLF) were taken off the ends of lines"]
    account = account_of(log(GOOD.replace("100, 1020, 0, 4096, 0\n", "100, 1020, 0, 4096, 0\r"), "x_clat.1.log"))
    assert account.accepted == 38 and account.rows == 39


def test_a_lasting_jump_of_the_clock_is_kept(log: Any) -> None:
    later = "".join(f"{3 * DAY + number}, 1000, 0, 4096, 0\n" for number in range(5))
    account = account_of(log(GOOD + later, "x_clat.1.log"))
    assert account.accepted == 45 and not account.rejected


@pytest.mark.slow
def test_faults_of_every_kind_in_a_log_of_many_blocks(log: Any) -> None:
    """300,000 lines, a fault in every thousandth: each costs only itself, whatever block it lies in."""
    lines = [f"{number}, {number % 9999 + 1}, {number % 2}, 4096, 0" for number in range(300_000)]
    bad = dict(zip(range(500, 300_000, 1000), [fault.values[0] for fault in FAULTS[:-1]] * 30, strict=False))
    for number, line in bad.items():
        lines[number] = line
    path = log("\n".join(lines) + "\n", "x_clat.1.log")
    account = account_of(path)
    assert account.rows == 300_000 and account.rows_rejected == len(bad) == sum(account.rejected.values())
    kept = [line for number, line in enumerate(lines) if number not in bad]
    [source] = discover([path], PRIORITY).sources
    found: Counter[tuple[str, int]] = Counter()
    for part in read(source):
        for row, total in enumerate(part.samples.tolist()):
            found[part.table[part.series[row]].op, oracle.window_of(int(part.end_ns[row]), 10**9)] += total
    assert found == Counter(
        {key: len(values) for key, values in oracle.by_window(oracle.fio_events("\n".join(kept)), 10**9).items()}
    )


def test_a_file_of_nothing_but_garbage_behind_its_head_is_quick_and_counted(log: Any) -> None:
    path = log(GOOD * 300 + "garbage, garbage\n" * 400_000, "x_clat.1.log")
    account = account_of(path)
    assert account.accepted == 12_000 and account.rows_rejected == 400_000
    assert len(account.rejected_lines) < 100, "only the first lines of a reason are kept"


def test_a_line_without_end_is_one_fault(log: Any) -> None:
    path = log(GOOD * 4000 + "7" * 5_000_000 + "\n" + GOOD, "x_clat.1.log")
    account = account_of(path)
    assert account.accepted == 4001 * 40 and account.rejected == {"a line of more than 1 MiB": 1}
    assert [finding.line for finding in account.findings] == [160_001]


def test_a_wrong_unit_is_doubted(log: Any) -> None:
    path = log("".join(f"{100 + number}, {5_000_000 + number}, 0, 4096, 0\n" for number in range(100)), "x_clat.1.log")
    account = account_of(path, ReadOptions(recorded_unit_ns=1000))
    [note] = account.notes
    assert note.startswith("100 of 100 I/Os would start before the log does (the first in line 1): is the unit right?")
    assert "--recorded-unit" in note
    assert not account_of(path, ReadOptions(recorded_unit_ns=1)).notes


@pytest.mark.slow
def test_without_pyarrow_a_sentence_says_how_to_install_it(tmp_path: Path) -> None:
    """In a process of its own, where importing pyarrow fails as if it were not there."""
    (tmp_path / "x_clat.1.log").write_text(GOOD)
    code = f"""
import sys, importlib.util
real = importlib.util.find_spec
importlib.util.find_spec = lambda name, *rest: None if name.startswith("pyarrow") else real(name, *rest)
sys.modules["pyarrow"] = None
from ingest.cli import main
sys.argv = ["tailboard", "percentiles", {str(tmp_path)!r}, "--fio-version", "3.33"]
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 3 and "Traceback" not in done.stderr
    assert "needs pyarrow, which is not installed: pip install pyarrow" in done.stderr


# Random damage ----------------------------------------------------------------------------------------------

NUMBER = re.compile(rb"-?\d{1,18}")
PRIORITY_OF_THE_LOG = re.compile(rb"0x[0-9a-fA-F]{1,8}|\d{1,18}")
NUMBERS = [
    b"18446744073709551615",
    b"9223372036854775807",
    b"9223372036854775808",
    b"-1",
    b"1e9",
    b"",
    b"000",
    b"0x1f",
    b"86400000000001",
]
CONTENTS = {
    "clat": b"".join((DATA / "unix-epoch" / "a_clat.1.log").read_bytes().splitlines(keepends=True)[:60]),
    "offset": b"".join((DATA / "offset-priority" / "a_clat.1.log").read_bytes().splitlines(keepends=True)[:60]),
    "plain": GOOD.encode(),
}
KINDS = ["flip", "delete", "insert", "truncate", "swap", "duplicate", "nul", "number", "crlf"]
mutations = drawn(KINDS, 2**16, 200, st.one_of(st.sampled_from(NUMBERS), st.binary(max_size=6)))


def plain_rows(content: bytes, columns: int) -> int:
    """Return how many lines must be taken: all columns plain numbers of fio, whatever their neighbours are."""
    good = 0
    for line in content.split(b"\n")[:-1]:
        cells = [cell.strip(b" \t") for cell in line.removesuffix(b"\r").split(b",")]
        numbers = cells[:-1]
        priority = PRIORITY_OF_THE_LOG.fullmatch(cells[-1]) or (columns == 5 and NUMBER.fullmatch(cells[-1]))
        if len(cells) != columns or not priority or not all(NUMBER.fullmatch(cell) for cell in numbers):
            continue
        stamp, value, direction, size = map(int, cells[:4])
        good += 0 <= stamp < 2**62 // 10**6 and 0 <= value <= 86_400 * 10**9 and 0 <= direction < len(OPS) and size > 0
    return good


@pytest.mark.slow
@settings(max_examples=figure(150, 250, 1000))
@given(st.sampled_from(sorted(CONTENTS)), mutations)
@example("plain", [("truncate", 0, 0, b"")])
@example("plain", [("duplicate", 3, 200, b""), ("nul", 500, 20, b"")])
def test_mutated_logs_never_crash_and_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, source: str, steps: list[Mutation]
) -> None:
    if not hasattr(mutated, "folder"):
        mutated.folder = tmp_path_factory.mktemp("raw")
    content = mutated(CONTENTS[source], steps)
    path = mutated.folder / "x_clat.1.log"
    path.write_bytes(content)
    try:
        files = Files([path], PRIORITY, jobs=1)
        files.answer(Question(step="all"))
    except TailboardError:
        return
    account = files.account
    assert account.rows == account.accepted + account.rows_rejected
    assert account.rows_rejected == sum(account.rejected.values())
    filled = sum(bool(line.strip(b" \t\r")) for line in content.split(b"\n"))
    assert account.rows == filled
    columns = 6 if source == "offset" else 5
    jumps = sum(count for reason, count in account.rejected.items() if reason.startswith("clock jump"))
    assert account.accepted + jumps == plain_rows(content, columns)


@pytest.mark.slow
@settings(max_examples=figure(30, 60))
@given(mutations)
def test_mutated_logs_beside_their_json_and_histogram_log(
    tmp_path_factory: pytest.TempPathFactory, steps: list[Mutation]
) -> None:
    folder = tmp_path_factory.mktemp("beside")
    for name in ("a.json", "a_clat_hist.1.log.xz"):
        (folder / name).write_bytes((DATA / "both" / name).read_bytes())
    (folder / "a_clat.1.log").write_bytes(mutated(CONTENTS["plain"], steps))
    for prefer in ("hist", "raw"):
        files = Files([folder], ReadOptions(prefer=prefer), jobs=1)
        with suppress(InputError):  # nothing but this may come out
            files.answer(Question(step="all"))
        for source in files.found.sources:
            account = source.context.account
            assert account.rows == account.accepted + account.rows_repaired + account.rows_rejected
