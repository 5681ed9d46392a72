"""Samples of `perf script` as moments, held against a plain loop over their lines."""

from __future__ import annotations

import lzma
import random
import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from ingest.core.errors import InputError, TailboardError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read import events_of
from ingest.read.placement import discover
from ingest.read.plugins.perf import op_of
from ingest.read.sources import ReadOptions, Source
from oracles.traces import Sample, is_idle, perf_samples
from tests.effort import figure
from tests.mutations import mutated, mutations

TRACES = Path(__file__).parent.parent / "data" / "traces"
RECORDED = ("boot", "cpu", "ns", "flat", "few", "records")
OWN_ONLY = ("records",)  # the recording of one program
IDLE = "samples of idle CPUs (--keep-idle keeps them)"
SECOND = 1_000_000_000
Moment = tuple[str, str, int]  # op, process, time


def text_of(name: str) -> str:
    return lzma.open(TRACES / f"{name}.txt.xz").read().decode()


def taken(path: Path, **words: Any) -> tuple[list[Moment], Source]:
    """Return the moments of a file in its order, and its source."""
    [source] = discover([path], ReadOptions(**words)).sources
    assert source.format == "perf-script"
    found = []
    for chunk in events_of(source):
        for code, end, latency in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
            series = chunk.table[code]
            assert (series.kind, latency) == ("offset", 0)
            found.append((series.op, series.process, end))
    return found, source


def moments(samples: list[Sample], zero_ns: int = 0) -> list[Moment]:
    return [(sample.event, sample.comm, sample.at_ns + zero_ns) for sample in samples]


def zero_of(text: str) -> int:
    """Return the epoch ns of the clock's zero as the header's reference has it, 0 without one."""
    told = re.search(r"(\d+)\.(\d+) \(TOD\) = (\d+)\.(\d+) \(monotonic\)", text)
    return int(told[1]) * SECOND + int(told[2]) * 1000 - int(told[3]) * SECOND - int(told[4]) if told else 0


@pytest.mark.parametrize("name", RECORDED)
def test_recorded_samples_are_those_of_a_loop(name: str) -> None:
    path, text = TRACES / f"{name}.txt.xz", text_of(name)
    truth, zero = perf_samples(text), zero_of(text)
    found, source = taken(path, keep_idle=True)
    account = source.context.account
    assert found == moments(truth, zero) and len(truth) > 20
    assert (
        account.accepted == len(truth)
        and not account.rejected
        and set(account.skipped) <= {"perf's own records of processes and mappings, not samples"}
    )
    assert account.rows_skipped == text.count("PERF_RECORD_")
    found, source = taken(path)
    busy = [sample for sample in truth if not is_idle(sample)]
    assert found == moments(busy, zero) and (len(busy) < len(truth) or name in OWN_ONLY)
    account = source.context.account
    assert account.skipped[IDLE] == len(truth) - len(busy)
    assert account.rows == account.accepted + account.rows_skipped
    assert (f"{len(truth) - len(busy):,} {IDLE}, left out" in account.notes) == (len(truth) > len(busy))


def test_the_same_recording_in_other_fields_has_the_same_moments() -> None:
    plain = [(op, comm, at - zero_of(text_of("cpu"))) for op, comm, at in taken(TRACES / "cpu.txt.xz")[0]]
    exact = taken(TRACES / "ns.txt.xz")[0]
    assert [(op, comm, at // 1000 * 1000) for op, comm, at in exact] == plain
    assert any(at % 1000 for _, _, at in exact)
    assert taken(TRACES / "flat.txt.xz")[0] == plain


def test_host_and_time_zero_come_from_the_header() -> None:
    text = text_of("cpu")
    _, source = taken(TRACES / "cpu.txt.xz")
    assert source.context.series.host == re.search(r"# hostname : (\S+)", text)[1]
    assert (source.context.series.job, source.context.series.process) == ("cpu", "")
    zero = source.context.zero
    assert (zero.epoch_ns, zero.origin) == (zero_of(text), "reference time in the header")
    captured = datetime.strptime(re.search(r"captured on *: (.*)", text)[1], "%a %b %d %H:%M:%S %Y").replace(tzinfo=UTC)
    last = perf_samples(text)[-1].at_ns + zero.epoch_ns
    assert abs(last / SECOND - captured.timestamp()) % 3600 < 60  # but for whole hours of a zone
    _, source = taken(TRACES / "boot.txt.xz")
    assert source.context.zero.epoch_ns is None
    found, source = taken(TRACES / "boot.txt.xz", t0=17 * 10**17, host="h", host_offset_ns={"h": 5})
    assert (source.context.series.host, source.context.zero.origin) == ("h", "--t0")
    busy = [sample for sample in perf_samples(text_of("boot")) if not is_idle(sample)]
    assert found == moments(busy, 17 * 10**17 + 5)


def test_file_times_and_epoch_stamps(log: Any) -> None:
    path = log("a 1 [000] 10.000000: cycles: \nb 2 [000] 12.500000: cycles: \n", "trace.txt")
    found, source = taken(path, t0="mtime")
    assert source.context.zero.origin == "file time (--t0 mtime)"
    assert found[-1][2] == path.stat().st_mtime_ns and found[0][2] == found[-1][2] - 2_500_000_000
    path = log("a 1 [000] 1700000000.000001: cycles: \n", "trace.txt")
    found, source = taken(path, t0=5)
    assert found == [("cycles", "a", 1_700_000_000_000_001_000)]
    assert (source.context.zero.epoch_ns, source.context.zero.origin) == (0, "epoch stamps in the log")


def test_one_of_a_pair_alone_is_a_moment() -> None:
    found, source = taken(TRACES / "issues.txt.xz")
    assert found == moments(perf_samples(text_of("issues"))) and len(found) > 3
    assert not source.context.account.rejected


def frame(symbol: str, place: str = "[kernel.kallsyms]") -> str:
    return f"\tffffffff81051586 {symbol} ({place})\n"


# The moments, processes and idle samples of FlameScope's example, whose own answer puts two of them a row too low.
FLAMESCOPE = [
    ("java  8192", "5076.100000", ""),
    ("swapper     0", "5076.836353", frame("native_safe_halt")),
    ("swapper     0", "5077.040428", frame("native_safe_halt")),
    ("java  7866", "5086.200000", ""),
    ("java  7866", "5096.300000", ""),
    ("java  7866", "5106.400000", ""),
    ("java  7866", "5116.500000", ""),
    ("swapper     0", "5117.200000", frame("native_safe_halt")),
    ("swapper     0", "5117.999999", frame("native_safe_halt")),
]


def test_moments_of_flamescopes_example_fall_into_exact_rows(log: Any) -> None:
    text = "".join(f"{who} [000]  {at}: cpu-clock: \n{leaf or frame('Interpreter', '/x.map')}\n" for who, at, leaf in FLAMESCOPE)
    found, source = taken(log(text, "perf.stacks"))
    assert source.context.account.skipped == {IDLE: 4}
    cells = [(at // SECOND - 5076, 50 - at % SECOND * 50 // SECOND - 1) for _, _, at in found]
    assert cells == [(0, 44), (10, 39), (20, 34), (30, 29), (40, 24)]


@pytest.mark.parametrize(
    ("who", "event", "leaf", "idle"),
    [
        pytest.param("swapper     0", "cycles", frame("intel_idle"), True, id="idle routine"),
        pytest.param("swapper/3     0/0", "cpu-clock", frame("mwait_idle_with_hints.constprop.0"), True, id="mwait"),
        pytest.param("swapper     0", "cpu-clock", "", True, id="no stack"),
        pytest.param("swapper     0", "cpu-clock", frame("[unknown]", "[unknown]"), True, id="symbols hidden"),
        pytest.param("swapper     0", "cpu-clock", frame("net_rx_action") + frame("cpuidle_enter"), False, id="interrupt"),
        pytest.param("swapper     0", "irq:irq_handler_entry", " irq=4 name=idle\n", False, id="tracepoint"),
        pytest.param("idle_inject/0    23", "cycles", frame("mwait_idle"), True, id="idle injection"),
        pytest.param("java    23", "cycles", frame("mwait_loop", "/usr/lib/x.so"), False, id="a program's own mwait"),
        pytest.param("java    23", "cycles", frame("do_idle_work"), False, id="idle in a name"),
        pytest.param("java    23", "cycles", "", False, id="busy without stack"),
    ],
)
def test_what_is_idle(log: Any, who: str, event: str, leaf: str, idle: bool) -> None:
    other = "x 1 [000] 4.000000: cycles: \n\n"
    body = leaf if leaf.startswith("\t") or not leaf else ""
    rest = leaf if leaf and not leaf.startswith("\t") else "\n"
    path = log(f"{who} [001]  5.000001:  10101 {event}:{rest}{body}\n{other}", "trace.txt")
    found, source = taken(path)
    assert len(found) == (1 if idle else 2)
    assert source.context.account.skipped[IDLE] == idle
    assert len(taken(path, keep_idle=True)[0]) == 2


@pytest.mark.parametrize(
    ("line", "comm"),
    [
        ("Web Content 12  7983 [001] 5.000001:  1 cycles: ", "Web Content 12"),
        ("kworker/0:1H-kb    54/54    [000] 5.000001: cycles: 5", "kworker/0:1H-kb"),
        ("   :-1    -1 [000] 5.000001: cycles: ", ":-1"),
        ("              dd  7983 5.000001: cycles: ", "dd"),
        ("dd 5.000001: cycles: ", "dd"),
        ("  7983 5.000001: cycles: ", ""),
        (" 5.000001: cycles: ", ""),
        ("a 1 2 [3] 4.5: 77 [001] K 5.000001: 12 cycles:  ffff (x)", "a 1 2 [3] 4.5:"),
        ("a b 7 [001] 5.000001: cycles: 6.000001: x:", "a b"),
    ],
)
def test_names_and_sets_of_fields(log: Any, line: str, comm: str) -> None:
    assert taken(log(f"{line}\n", "trace.txt"))[0] == [("cycles", comm, 5_000_001_000)]


@pytest.mark.parametrize(
    ("event", "op"),
    [("cycles:ppp", "cycles"), ("cycles:P", "cycles"), ("cycles:up", "cycles:u"), ("sched:sched_switch", "sched:sched_switch"),
     ("cpu_core/cycles/P", "cpu_core/cycles/p"), ("r1A8", "r1a8")],
)  # fmt: skip
def test_ops_are_names_without_their_precision(event: str, op: str) -> None:
    assert op_of(event) == op


def test_lines_that_are_none_are_named(log: Any) -> None:
    lines = [
        "x 1 [000] 6.000000: cycles: ",
        "\tffff f (x)",
        "",
        "x 1 [000] 6.00: cycles: ",
        "              dd  7983  5147.0x9416: cycles: ",
        "    ffffffff81051586 frame_with_spaces ([kernel.kallsyms])",
        "x 1 [000] 9999999999.000000: cycles: ",
        "y 1 [000] 7.000000: cycles: ",
    ]
    found, source = taken(log("\n".join(lines) + "\nx 1 [000] 8.0", "trace.txt"))
    assert found == [("cycles", "x", 6 * SECOND), ("cycles", "y", 7 * SECOND)]
    account = source.context.account
    assert sorted((finding.line, finding.reason) for finding in account.findings) == [
        (4, "not a line of perf script"),
        (5, "not a line of perf script"),
        (7, "a time stamp past the year 2096"),
        (9, "last line breaks off without a newline"),
    ]
    assert account.rows == 6


def test_lines_of_the_kernel_itself_are_none_of_perf(log: Any) -> None:
    line = "            bash-1977    (   1977) [000] d..1. 17284.993652: sys_close: fd: 3\n"
    with pytest.raises(InputError, match="no latency log of a known format"):
        discover([log(line * 3, "trace.txt")], ReadOptions())
    found, source = taken(log(line + "x 1 [000] 6.000000: cycles: \n", "trace.txt"))
    assert len(found) == 1 and source.context.account.rejected == {"not a line of perf script": 1}


def test_frames_lie_in_the_next_block_and_requests_stand_between_samples(log: Any) -> None:
    """4 MB of samples with stacks: each block of the file ends somewhere within one."""
    generator = random.Random(4)
    parts, truth, requests = [], [], Counter[str]()
    for number in range(6000):
        at = number * 1000
        stamp = f"{at // 10**6}.{at % 10**6:06d}"
        idle = generator.random() < 0.5
        symbols = ["default_idle" if idle else "work", *("f" * generator.randrange(60) + "_idle" for _ in range(12))]
        parts.append(f"swapper     0 [000]  {stamp}: cpu-clock: \n" + "".join(frame(symbol) for symbol in symbols) + "\n")
        truth += [] if idle else [("cpu-clock", "swapper", at * 1000)]
        if number % 10 == 0:
            parts.append(f"fio 9 [000]  {stamp}: block:block_rq_issue: 8,0 R 4096 () {number} + 8 [fio]\n\n")
        if number % 10 == 5:
            parts.append(f"swapper 0 [000]  {stamp}: block:block_rq_complete: 8,0 R () {number - 5} + 8 [0]\n\n")
            requests["read"] += 1
    path = log("".join(parts), "trace.txt")
    assert path.stat().st_size > 3_000_000
    [source] = discover([path], ReadOptions()).sources
    chunks = list(events_of(source))
    found = [
        (chunk.table[code].op, chunk.table[code].process, end)
        for chunk in chunks
        for code, end in zip(chunk.series.tolist(), chunk.end_ns.tolist(), strict=True)
        if chunk.table[code].kind == "offset"
    ]
    assert found == truth
    latencies = [at for chunk in chunks for at in chunk.latency_ns[chunk.latency_ns > 0].tolist()]
    assert latencies == [5_000_000] * requests["read"]
    assert source.context.account.skipped[IDLE] == 6000 - len(truth)
    files = Files([path], jobs=1)
    answer = files.answer(Question(step="all"))
    assert sum(int(part.counts.sum()) for part in answer.parts) == requests["read"]
    assert f"{path}: {len(truth):,} samples are moments" in " ".join(answer.warnings)


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("size", [301, 64, 4096])
@pytest.mark.parametrize("name", ["cpu", "records", "flat"])
def test_the_size_of_blocks_changes_nothing(monkeypatch: pytest.MonkeyPatch, name: str, size: int) -> None:
    whole, source = taken(TRACES / f"{name}.txt.xz")
    monkeypatch.setattr("ingest.read.text.BLOCK", size)
    found, again = taken(TRACES / f"{name}.txt.xz")
    assert found == whole
    assert source.context.account.as_dict() == again.context.account.as_dict()


def test_latencies_are_never_made_of_moments() -> None:
    with pytest.raises(InputError, match=r"nothing here has a latency: .* samples are moments"):
        Files([TRACES / "cpu.txt.xz"], jobs=1).answer(Question(step="all"))


CONTENT = "\n".join(text_of("cpu").split("\n")[20:140]).encode() + b"\n"


@pytest.mark.slow
@example(steps=[("flip", 1474, 2, b"")])
@example(steps=[("crlf", 0, 21, b""), ("flip", 1079, 0, b"")])
@settings(max_examples=figure(150, 250, 1000))
@given(mutations("flip delete insert truncate nul crlf".split(), len(CONTENT), 150, st.binary(max_size=6)))
def test_mutated_samples_never_crash_and_every_line_is_accounted_for(
    tmp_path_factory: pytest.TempPathFactory, steps: list[tuple[str, int, int, bytes]]
) -> None:
    if not hasattr(moments, "folder"):
        moments.folder = tmp_path_factory.mktemp("perf")
    content = mutated(CONTENT, steps)
    path = moments.folder / "trace.txt"
    path.write_bytes(content)
    try:
        [source] = discover([path], ReadOptions(input_format="perf-script")).sources
        total = sum(len(chunk) for chunk in events_of(source))
    except TailboardError:
        return
    account = source.context.account
    assert account.accepted == total
    assert account.rows == account.accepted + account.rows_rejected + account.rows_skipped
    own = [
        line
        for line in content.split(b"\n")
        if line.strip(b" \t\r") and not line.startswith((b"\t", b"#")) and not re.match(rb" +[0-9a-f]{4,16}| {2}[^ ]+:\d+", line)
    ]
    assert account.rows >= len(own)
