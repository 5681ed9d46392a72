"""Texts of `perf script`, held against a plain loop over their lines and against fio's raw log of the same run."""

from __future__ import annotations

import lzma
import random
import re
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read import events_of
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions
from oracles import events as oracle
from tests.effort import figure
from tests.mutations import mutated, mutations

PERF = Path(__file__).parent.parent / "data" / "raw" / "perf"
LINE = re.compile(r"^ *(.+?) +(\d+)(?:/(\d+))? +\[\d+\] +(\d+)\.(\d+): +(\S+): (.*)$")
Paired = tuple[str, str, str, str, int, int]  # op, kind, volume, process, end, latency


def text_of(name: str) -> str:
    return lzma.open(PERF / f"{name}.txt.xz").read().decode()


def paired(text: str) -> tuple[list[Paired], Counter[str]]:
    """Return the requests and calls of a recording, and how many lines could not be paired."""
    begun: dict[tuple[str, ...], tuple[int, str, str, str, str]] = {}
    found, left = [], Counter[str]()
    for line in text.splitlines():
        match = LINE.match(line)
        if not match or line.startswith("\t"):
            continue
        comm, pid, tid, seconds, part, event, rest = match.groups()
        at = int(seconds) * 10**9 + int(part.ljust(9, "0"))
        if event.startswith("block:"):
            cells = rest.split()
            if not re.match(r"\d+,\d+ [A-Z]+ (\d+ )?\(\) \d+ \+ \d+", rest):
                left["arguments"] += 1
                continue
            op = "trim" if "D" in cells[1] else "write" if "W" in cells[1] else "read" if "R" in cells[1] else "flush"
            sector, size = rest.split("() ")[1].split()[0:3:2]
            key: tuple[str, ...] = (cells[0], sector, size, op if int(size) else "flush")
            mark, begins = (at, op, "completion", cells[0], comm), event.endswith("issue")
        elif event.startswith("syscalls:"):
            name = event.split("_", 2)[2]
            key, mark, begins = (tid or pid, name), (at, name, "service", "", comm), "enter" in event
        else:
            left["other"] += 1
            continue
        if begins:
            left["again"] += key in begun
            begun[key] = mark
        elif key in begun:
            start, op, kind, volume, process = begun.pop(key)
            found.append((op, kind, volume, process, at, at - start))
        else:
            left["no beginning"] += 1
    left["no end"] = len(begun)
    return sorted(found), +left


def taken(path: Path) -> tuple[list[Paired], Any]:
    [source] = discover([path], ReadOptions()).sources
    assert source.format == "perf-script"
    found = []
    for chunk in events_of(source):
        for code, end, latency in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
            series = chunk.table[code]
            found.append((series.op, series.kind, series.volume, series.process, end, latency))
    return sorted(found), source.context.account


@pytest.mark.parametrize("name", ["us", "ns", "stacks"])
def test_recorded_traces_are_paired_as_by_a_loop(name: str) -> None:
    truth, left = paired(text_of(name))
    found, account = taken(PERF / f"{name}.txt.xz")
    assert found == truth and len(truth) > 3
    assert account.accepted == 2 * len(truth) + left["other"]
    reasons = {
        "arguments of a block request that are not device, flags, sector": left["arguments"],
        "begun again before it ended (requeued): the later beginning counts": left["again"],
        "an end whose beginning is not in the recording": left["no beginning"],
        "a beginning whose end is not in the recording": left["no end"],
    }
    assert account.rejected == {reason: count for reason, count in reasons.items() if count}


def test_system_calls_are_the_ios_that_fio_timed() -> None:
    """fio's psync engine makes one call for each I/O, and times a little more than the call: each fits its own I/O."""
    found, _ = taken(PERF / "ns.txt.xz")
    raw = oracle.fio_events(lzma.open(PERF / "a_lat.1.log.xz").read().decode())
    for call, op in (("pread64", "read"), ("pwrite64", "write")):
        told = [latency for label, _, latency in raw if label == op]
        calls = [
            latency
            for _, _, latency in sorted(
                (end, 0, latency) for name, _, _, comm, end, latency in found if (name, comm) == (call, "fio")
            )
        ]
        calls = calls[-len(told) :]
        assert len(told) == len(calls) > 90
        assert all(call_ns <= told_ns for call_ns, told_ns in zip(calls, told, strict=True))
        assert sum(told) - sum(calls) < 200_000 * len(told)


def test_traces_can_be_asked_like_any_log() -> None:
    files = Files([PERF / "us.txt.xz"], jobs=1)
    table = percentiles(
        files.answer(Question(step="all", by=("op",), where={"kind": "completion"})), Wanted(parse_percentiles("50"))
    ).columns
    truth, _ = paired(text_of("us"))
    for row, op in enumerate(table["op"].tolist()):
        values = [latency for name, kind, *_, latency in truth if (name, kind) == (op, "completion")]
        assert (table["count"][row], table["min"][row], table["max"][row]) == (len(values), min(values), max(values))
        middle = oracle.midpoint(oracle.index_of(oracle.nearest_rank(values, "50")))
        assert table["p50"][row] == max(min(values), min(max(values), middle))


def request(number: int, at: int, sector: int, *, end: bool = False) -> str:
    what = "complete: 8,0 R () " if end else "issue: 8,0 R 4096 () "
    return f"fio {number} [000] {at // 10**6}.{at % 10**6:06d}: block:block_rq_{what}{sector} + 8 [fio]"


@pytest.mark.slow
def test_pairs_lie_across_blocks_and_late_ends_are_kept_apart(log: Any) -> None:
    """30,000 requests that overlap, 3 MB: many begin in one block of the file and end in the next."""
    generator = random.Random(9)
    marks = []
    for number in range(30_000):
        start = number * 100
        marks.append((start, request(1, start, number % 997)))
        end = start + 1 + generator.randrange(90_000)
        marks.append((end, request(0, end, number % 997, end=True)))
    text = "# a comment\n" + "\n".join(line for _, line in sorted(marks, key=lambda mark: mark[0])) + "\n"
    path = log(text, "trace.txt")
    truth, left = paired(text)
    found, account = taken(path)
    assert found == truth and len(truth) > 20_000
    assert account.rows == 60_000 == account.accepted + account.rows_rejected
    assert account.rejected["begun again before it ended (requeued): the later beginning counts"] == left["again"]


def test_names_with_spaces_and_digits_and_lines_that_are_none(log: Any) -> None:
    lines = [
        "Web Content 2 77/78 [001] 5.000001: syscalls:sys_enter_read: fd: 0x3",
        "Web Content 2 77/78 [001] 5.000004: syscalls:sys_exit_read: 0x10",
        "hello",
        "x 1 [000] 6.1: syscalls:sys_enter_read: fd: 0x3",
        "x 1 [000] 6.000000: cycles: 55",
        "x 1 [000] 6.000000: block:block_rq_issue: nonsense",
        "x 1 [000] 6.000000: block:block_rq_complete: nonsense",
    ]
    path = log("\n".join(lines) + "\n" + lines[0][:30], "trace.txt")
    found, account = taken(path)
    assert found == [
        ("cycles", "offset", "", "x", 6_000_000_000, 0),
        ("read", "service", "", "Web Content 2", 5_000_004_000, 3000),
    ]
    assert account.rejected == {
        "not a line of perf script": 2,
        "arguments of a block request that are not device, flags, sector": 2,
        "last line breaks off without a newline": 1,
    }
    assert not account.notes


def test_samples_alone_have_no_latency(log: Any) -> None:
    path = log("python 1 [000] 5.000001: 10101 cpu-clock: \n\t  aa f+0x1 (x)\n\n" * 5, "trace.txt")
    with pytest.raises(InputError, match=r"nothing here has a latency: .*trace.txt: 5 samples are moments"):
        Files([path], jobs=1).answer(Question(step="all"))
    found, _ = taken(path)
    assert found == [("cpu-clock", "offset", "", "python", 5_000_001_000, 0)] * 5


STACK = "\tffffffff821f4dab pv_native_safe_halt+0xb ([kernel.kallsyms])\n\t564e3c497b7c [unknown] (/usr/bin/dd)\n\n"
HEADER = "# ========\n# captured on: Tue Nov 24 12:00:00 2026\n# hostname : vm\n# ========\n#\n"


@pytest.mark.parametrize(
    "text",
    [
        f"dd 29776 cpu-clock: \n{STACK}" * 3,
        f"{HEADER}dd 29776/29776 [001] cycles:ppp:\n{STACK}" * 2,
        f"Web Content 2 77 10101 page-faults:\n{STACK}".replace("\t", ""),
        re.sub(r" +\d+\.\d{6}:", "", text_of("us")),
    ],
)
def test_samples_without_time_stamps_are_refused_with_what_to_print(log: Any, text: str) -> None:
    path = log(text, "stacks.txt")
    for form in ("", "perf-script"):
        with pytest.raises(InputError, match=r"samples of perf script without their time stamps: .*`perf script -F \+time`"):
            discover([path], ReadOptions(input_format=form))
    timed = log("dd 29776 5.000001: cpu-clock: \n" + STACK + text, "timed.txt")
    assert len(discover([timed], ReadOptions()).sources) == 1


def test_text_that_resembles_samples_is_not_taken_for_them(log: Any) -> None:
    path = log("worker 12 started: yes\nstep 3 done:\nabcdef here\n" * 3, "notes.txt")
    with pytest.raises(InputError, match="no latency log of a known format"):
        discover([path], ReadOptions())


CONTENT = "".join(line + "\n" for line in text_of("us").splitlines()[-60:]).encode()


@pytest.mark.slow
@settings(max_examples=figure(150, 250, 1000))
@given(mutations("flip delete insert truncate nul".split(), 8000, 150, st.binary(max_size=6)))
def test_mutated_traces_never_crash_and_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, bytes]]
) -> None:
    if not hasattr(paired, "folder"):
        paired.folder = tmp_path_factory.mktemp("perf")
    content = mutated(CONTENT, steps)
    path = paired.folder / "trace.txt"
    path.write_bytes(content)
    try:
        files = Files([path], ReadOptions(input_format="perf-script"), jobs=1)
        files.answer(Question(step="all"))
    except TailboardError:
        return
    account = files.account
    assert account.rows == account.accepted + account.rows_rejected == account.accepted + sum(account.rejected.values())
