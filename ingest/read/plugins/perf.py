"""The text of `perf script`: block requests and system calls, and samples that have a time alone.

Lines of `perf script` -> samples in columns, block by block; a sample's frames stay with it, and only the first is looked at.

    swapper     0 [000]  5147.094131:   10101010 cpu-clock:
    <tab>ffffffff821f4dab pv_native_safe_halt+0xb ([kernel.kallsyms])

Most bytes are frames: they are separated from samples by the first byte of their line alone, and never parsed.

The beginning of a text of `perf script`: whether it is one, the host, and where its clock began.

    # hostname : vm
    # clockid: monotonic (1)
    # reference time: 2026-11-21 14:39:03.232775 = 1795271943.232775 (TOD) = 5467.257712166 (monotonic)

`perf script --header` prints it. The reference is there where `perf record` was given its clock (-k CLOCK_MONOTONIC): the same
moment by the time of day and by the clock of the stamps. `captured on` is no such thing: it has no zone, and means the file.

The text of `perf script`: block requests and system calls, each from its beginning to its end.

    fio 21038 [000]  5236.950129:    block:block_rq_issue: 254,0 RS 4096 () 433686456 + 8 0x2,0,4 [fio]
    swapper     0 [000]  5236.950301: block:block_rq_complete: 254,0 RS () 433686456 + 8 0x2,0,4 [0]
    bash 21000/21000 [001]  5234.069661:   syscalls:sys_enter_pread64: fd: 0x00000003, buf: 0x7ffffe1f73e0, ...
    bash 21000/21000 [001]  5234.069672:    syscalls:sys_exit_pread64: 0x310

A block request is known by device, action, sector and size: kind completion, the device is the volume, the process is who
issued it; one that completes in parts has completed with the last. A system call is known by its thread: kind service, the op
is its name. Stamps are seconds since the machine started, to the us (to the ns with --ns), so times are relative unless the
header has the start (see `header`). What is left alone at either end of the recording is counted: an end without a beginning,
a beginning without an end; of a request that was requeued the last beginning counts. Other events, and those of which the
recording has only one of the two, are moments (see `moments`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.events import Events
from ingest.core.intervals import Bool, Int
from ingest.core.labels import OFFSET, Series
from ingest.read.account import Account
from ingest.read.context import KEEP_IDLE, Context, TimeZero
from ingest.read.described.table import WholeLines, arrow, binary_lines, flags, lying, reject
from ingest.read.format_names import PERF
from ingest.read.formats import ROW_LABELS, Reader
from ingest.read.operations import DAY_NS, TOO_MANY_LABELS, SeriesTable, events_layout
from ingest.read.sources import Around, Source
from ingest.read.text import CRLF, LONGEST_LINE, NEWLINE, TRACE_ENDINGS, head, name_without, whole_blocks

SECOND, NS_DIGITS = 1_000_000_000, 9
LATEST_S = 4_000_000_000
MODE = "(?:[A-Za-z]{1,6} +)?"  # as -F +misc prints it
WHO = rf"(?:(?P<comm>[^ \t].*?) +)??(?:(?P<pid>-?\d{{1,10}})(?:/ *(?P<tid>-?\d{{1,10}}))? +{MODE})??(?:\[\d+\] +{MODE})?"
WHEN = r"(?P<seconds>\d{1,10})\.(?P<part>\d{6}(?:\d{3})?):"
SAMPLE = rf"^ *{WHO}{WHEN}(?: +\d+)? +(?P<event>[^ ]+?):(?P<rest> .*)?\r?\n$"
FRAME = r"^ +[0-9a-f]{4,16}(?: .*\)| \[unknown\])?\r?\n$|^  [^ ]+:\d+(?: \(inlined\))?\r?\n$"
FTRACE = r"-\d+ +(?:\([ \d-]+\) +)?\[\d+\] +[^ ]+$"  # what a name ends in where the kernel or trace-cmd wrote the line
OWN_RECORD = " PERF_RECORD_"
TAB, COMMENT, SPACE = 9, 35, 32
MOST_KEPT = 4 * LONGEST_LINE


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one block: a struct array of `comm`, `pid`, `tid`, `event` and `rest`, and the line of the first frame.

    Where a sample has no frame below it, its leaf is the rest of its own line.
    """

    fields: Any
    line: Int
    at_ns: Int
    leaf: Any

    def __len__(self) -> int:
        return len(self.line)

    def take(self, rows: Int) -> Samples:
        """Return the given samples."""
        return Samples(self.fields.take(rows), self.line[rows], self.at_ns[rows], self.leaf.take(rows))


def samples(path: Path, account: Account) -> Iterator[Samples]:
    """Yield the samples of a file, times in ns of its own clock; other lines are counted with their reason."""
    pa = arrow(path)
    whole, kept, line = WholeLines(account), b"", 1
    for block in whole_blocks(path, account):
        data = whole.of(block).tobytes()
        if whole.line != line + kept.count(b"\n"):  # a line was given up: what was kept ends before it
            yield _samples(pa, kept, line, account)
            kept, line = b"", whole.line
        whole.line += data.count(b"\n")
        text = kept + data
        cut = _last_sample(text) if len(text) < MOST_KEPT else len(text)
        yield _samples(pa, text[:cut], line, account)
        kept, line = text[cut:], line + text.count(b"\n", 0, cut)
    yield _samples(pa, kept, line, account)


def _last_sample(text: bytes) -> int:
    """Return where the last line begins that may be a sample: the next block may hold its frames."""
    end = len(text)
    while end > 0:
        begin = text.rfind(b"\n", 0, end - 1) + 1
        if text[begin] not in (TAB, NEWLINE, COMMENT):
            return begin
        end = begin
    return 0


def _samples(pa: Any, text: bytes, line: int, account: Account) -> Samples:
    """Return the samples of whole lines, the first of which has the number `line`."""
    compute = pa.compute
    data = np.frombuffer(text, np.uint8)
    lines = binary_lines(pa, data, text.count(b"\n"))
    first = _first_bytes(data)
    place = np.flatnonzero(~np.isin(first, (TAB, NEWLINE, COMMENT)))
    if len(place) and text.find(b"\r\n", 0, 1 << 16) >= 0:
        account.note(CRLF)
    candidates = lines.take(pa.array(place))
    columns = compute.extract_regex(candidates, SAMPLE)
    own = flags(compute.match_substring(candidates, OWN_RECORD))
    good = flags(columns.is_valid()) & ~own
    names = compute.struct_field(columns, "comm").fill_null(b"")
    good &= ~flags(compute.match_substring_regex(names, FTRACE))
    left = ~good & ~own & ~flags(compute.match_substring_regex(candidates, FRAME + r"|^[ \t]*\r?\n$"))
    reject(account, "not a line of perf script", line + place[left])
    account.skip("perf's own records of processes and mappings, not samples", int(own.sum()))
    seconds = _number(pa, columns, "seconds", good)
    late = good & (seconds > LATEST_S)
    reject(account, "a time stamp past the year 2096", line + place[late])
    rows = np.flatnonzero(good & ~late)
    fields = columns.take(pa.array(rows))
    digits = lying(compute.binary_length(compute.struct_field(fields, "part")), np.int32)
    part = _number(pa, fields, "part", np.ones(len(rows), np.bool_)) * np.where(digits == NS_DIGITS, 1, 1000)
    leaf = _leaves(pa, lines, data, place[rows], compute.struct_field(fields, "rest"))
    return Samples(fields, line + place[rows], seconds[rows] * SECOND + part, leaf)


def _first_bytes(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    ends = np.flatnonzero(data == NEWLINE)
    return data[np.append(0, ends[:-1] + 1)] if len(ends) else data[:0]


def _leaves(pa: Any, lines: Any, data: NDArray[np.uint8], place: Int, rest: Any) -> Any:
    """Return the line below each sample where that is indented as frames are, else the rest of the sample's own line."""
    if not len(place):
        return rest
    first = np.append(_first_bytes(data), NEWLINE)
    below = np.isin(first[place + 1], (TAB, SPACE))
    taken = lines.take(pa.array(np.minimum(place + 1, len(lines) - 1)))
    below &= ~flags(pa.compute.match_substring_regex(taken, SAMPLE))
    return pa.compute.if_else(pa.array(below), taken, rest)


def _number(pa: Any, columns: Any, name: str, there: NDArray[np.bool_]) -> Int:
    """Return a field of digits as numbers, 0 where it is not there."""
    text = pa.compute.if_else(pa.array(there), pa.compute.struct_field(columns, name), b"0").cast(pa.string())
    return lying(text.cast(pa.int64()))


ANY_SAMPLE = re.compile(SAMPLE.encode())
OTHERS = re.compile(FTRACE.encode())
HOSTNAME = re.compile(rb"^# hostname ?: (\S+)", re.MULTILINE)
REFERENCE = re.compile(rb"^# reference time: .* = (\d{1,10})\.(\d{1,9}) \(TOD\) = (\d{1,10})\.(\d{1,9}) \((\S+)\)", re.MULTILINE)
CAPTURED = b"# captured on"
STAMPED, BEGINNING = re.compile(rb"\d\.\d{6}(?:\d{3})?: "), 1 << 13  # a cheap test before each line is held against a pattern
EPOCH_S = 20 * 365 * 86_400  # no machine has been up for so long: such stamps count from 1970
UNTIMED = re.compile(
    rb"^ *\S[^\n]{0,99}? +\d{1,10}(?:/ *\d{1,10})? +(?:\[\d+\] +)?(?:\d+ +)?"  # name, process, CPU, period
    rb"(?:[\w-]+(?::[\w-]*)*: *\r?\n[ \t]*[0-9a-f]{4,16} [^\n]*\([^\n]*\)\r?$"  # a frame below it
    rb"|(?:block|sched|syscalls|probe\w*):\w+: )",  # or a tracepoint
    re.MULTILINE,
)
NO_STAMPS = (
    "samples of perf script without their time stamps: print them with `perf script -F +time` "
    "(where perf has none, record with `perf record -T`)"
)
LINES_LOOKED_AT, LONGEST_HEAD = 2000, 1 << 12


def looks_like_perf(start: bytes) -> bool:
    """Return whether a file begins like the text of `perf script`."""
    if start.startswith(b"# ===") and CAPTURED in start[:400]:
        return not lacks_stamps(start)
    return STAMPED.search(start[:BEGINNING]) is not None and next(_sample_heads(start), None) is not None


def lacks_stamps(start: bytes) -> bool:
    """Return whether a file begins like the text of `perf script -F -time`: samples, none of them with a time stamp."""
    return UNTIMED.search(start) is not None and next(_sample_heads(start), None) is None


def header_of(path: Path) -> tuple[str, int | None, str]:
    """Return by the beginning of a file the host, when the clock of its stamps was zero in epoch ns, and what told that.

    The host is empty text where it is unknown, the time None.
    """
    start = head(path)
    named = HOSTNAME.search(start)
    host = named[1].decode("utf-8", "replace") if named else ""
    first = next(_sample_heads(start), None)
    if first and int(first["seconds"]) >= EPOCH_S:
        return host, 0, "epoch stamps in the log"
    match = REFERENCE.search(start)
    if not match:
        return host, None, "unknown"
    day, clock = (
        int(seconds) * SECOND + int(part.ljust(NS_DIGITS, b"0")) for seconds, part in ((match[1], match[2]), (match[3], match[4]))
    )
    return host, day - clock, "reference time in the header"


def last_ns(path: Path) -> int:
    """Return the stamp of the newest sample in ns of the file's clock, 0 if there is none; reads all of it."""
    return max((int(chunk.at_ns.max()) for chunk in samples(path, Account(path=str(path))) if len(chunk)), default=0)


def _sample_heads(start: bytes) -> Iterator[re.Match[bytes]]:
    """Yield the samples among the first lines."""
    lines = start.split(b"\n", LINES_LOOKED_AT)
    for line in lines[:-1]:
        if line[:1] in (b"\t", b"#", b"") or len(line) > LONGEST_HEAD:
            continue
        match = ANY_SAMPLE.match(line + b"\n")
        if match and not OTHERS.search(match["comm"] or b""):
            yield match


# Samples of `perf script` that have a time alone: events of kind offset, of latency 0, never shown as latencies.
#
# What ran where no work was to be done is left out: samples of the idle task whose first frame is one of idling, and samples of
# any task that wait in the kernel's idle loop (idle injection). Interrupts that the idle task was taken away for are work, and
# so is whatever a tracepoint prints.


IDLE_TASK = r"^swapper(?:/\d+)?$"
IDLING = r"idle|mwait|halt|hypercall_sched_op|hypercall_vcpu_op|cpu_startup_entry|\bwfi|\[unknown\] \(|^[ \t]*[0-9a-f]*\s*$"
IDLE_LOOP = r"^\s*[0-9a-f]+ \S*(?:cpuidle|mwait)\S* \(\["
TRACEPOINT = r"^[A-Za-z0-9_\-]+:[A-Za-z0-9_]{3,}$"
PRECISION = re.compile(r":([a-zA-Z]*)$")
IDLE = "samples of idle CPUs (--keep-idle keeps them)"


def moments(pa: Any, samples: Samples, series: SeriesTable, context: Context) -> Events:
    """Return the samples of a block, each at its own time; those of idle CPUs are counted as skipped, unless they are kept."""
    left = np.ones(len(samples), np.bool_) if context.options.get(KEEP_IDLE) else ~idle_of(pa, samples)
    context.account.skip(IDLE, int(np.count_nonzero(~left)))
    columns = {name: pa.compute.struct_field(samples.fields, name).dictionary_encode() for name in ("event", "comm")}
    codes = series.codes(columns, len(samples))
    many = left & (codes < 0)
    reject(context.account, TOO_MANY_LABELS, samples.line[many])
    rows: Int = np.flatnonzero(left & ~many)
    context.account.accept(len(rows))
    at = samples.at_ns[rows] + (context.zero.epoch_ns or 0) + context.offset_ns
    return Events(series.table, codes[rows], at, np.zeros(len(rows), np.int64))


def idle_of(pa: Any, samples: Samples) -> Bool:
    """Return which samples are of idle CPUs."""
    compute = pa.compute

    def fits(column: Any, pattern: str) -> Bool:
        return flags(compute.match_substring_regex(column, pattern))

    def field(name: str) -> Any:
        return compute.struct_field(samples.fields, name)

    if not len(samples):
        return np.zeros(0, np.bool_)
    task = flags(compute.equal(field("pid"), b"0")) | fits(field("comm"), IDLE_TASK)
    idle: Bool = (task & fits(samples.leaf, IDLING)) | fits(samples.leaf, IDLE_LOOP)
    return idle & ~fits(field("event"), TRACEPOINT)


def op_of(event: str) -> str:
    """Return the op of an event: its name in lower case, without how precisely it was to be sampled (cycles:ppp is cycles)."""
    match = PRECISION.search(event)
    if match and set(match[1]) <= set("ukhpPGHSDI"):
        kept = "".join(mark for mark in match[1] if mark not in "pP")
        event = event[: match.start()] + (f":{kept}" if kept else "")
    return event.lower()


SECTORS = r"(?P<sector>\d{1,15}|18446744073709551615) \+ (?P<size>\d{1,10})"
BLOCK = rf"^ *(?P<device>\d+,\d+) (?P<flags>[A-Z]+) (?:\d+ )?\([^)]*\) {SECTORS}"
ISSUE, COMPLETE = "block:block_rq_issue", "block:block_rq_complete"
NO_SECTOR = str(2**64 - 1)
ENTER, EXIT = "syscalls:sys_enter_", "syscalls:sys_exit_"
NO_BEGINNING = "an end whose beginning is not in the recording"
NO_END = "a beginning whose end is not in the recording"
PARTS = "parts of block requests before their last, which is when they completed"
BEGUN_AGAIN = "begun again before it ended (requeued): the later beginning counts"
TOO_LONG = "a latency of more than a day, or below zero"
PAIRS = ((ISSUE, COMPLETE), (ENTER, EXIT))
MOST_OPEN = 1 << 20


# A beginning or an end, in the order of the file: of which operation, when, in which line, of which series.
# A request is known by where it ends on its device, as its last part does, too; `begins` is where it begins.
MARK = np.dtype([(name, np.int64) for name in ("key", "begins", "at_ns", "line", "series")] + [("ends", np.bool_)], align=True)
Marks = NDArray[Any]


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the requests and calls that began and ended in the recording, and its other samples as moments of kind offset.

    Times are as exact as perf's stamps. Samples of idle CPUs are skipped unless the context says otherwise, and counted;
    everything else is counted with its line. InputError where pyarrow is missing.
    """
    pa, account = arrow(path), context.account
    trace = _Trace(context)

    def moment(labels: Mapping[str, str]) -> Series:
        return context.series.replaced(op=op_of(labels["event"]), kind=OFFSET, process=labels["comm"])

    seen = SeriesTable(moment)

    @cache
    def both_ends(pair: tuple[str, str]) -> bool:
        """Return whether the file has both events of a pair: it is searched when the first of them is met."""
        missing = {word.encode() for word in pair}
        for block in whole_blocks(path, Account()):
            text = bytes(block)
            missing -= {word for word in missing if word in text}
            if not missing:
                return True
        return False

    for chunk in samples(path, account):
        event = pa.compute.struct_field(chunk.fields, "event")
        timed = np.zeros(len(chunk), np.bool_)
        for pair in PAIRS:
            mine = flags(pa.compute.starts_with(event, pair[0])) | flags(pa.compute.starts_with(event, pair[1]))
            if mine.any() and both_ends(pair):
                timed |= mine
        yield trace.events(chunk.take(np.flatnonzero(timed)))
        yield moments(pa, chunk.take(np.flatnonzero(~timed)), seen, context)
    reject(account, NO_END, np.sort(trace.open["line"]))
    if account.skipped[IDLE]:
        account.note(f"{account.skipped[IDLE]:,} {IDLE}, left out")


class _Trace:
    """What is known of one recording so far: its series, devices and calls, and beginnings that still have no end."""

    def __init__(self, context: Context) -> None:
        self.pa = arrow()
        self.context = context
        self.series = SeriesTable(self._series)
        self.keys: dict[str, int] = {}
        self.open = np.empty(0, MARK)

    def _series(self, labels: Mapping[str, str]) -> Series | None:
        event, process = labels["event"], labels["comm"]
        base = self.context.series
        if event.startswith((ENTER, EXIT)):
            op = event.removeprefix(ENTER).removeprefix(EXIT)
            return base.replaced(op=op, kind="service", process=process)
        return base.replaced(op=_action(labels["flags"]), kind="completion", volume=labels["device"], process=process)

    def events(self, chunk: Samples) -> Events:
        """Return what ended among the beginnings and ends of a block."""
        compute, pa = self.pa.compute, self.pa
        event = compute.struct_field(chunk.fields, "event").dictionary_encode()
        names = [_word(name) for name in event.dictionary.to_pylist()]
        codes = lying(event.indices, np.int32) if len(event) else chunk.line
        block = np.array([name in (ISSUE, COMPLETE) for name in names], np.bool_)
        arguments = compute.extract_regex(compute.struct_field(chunk.fields, "rest"), BLOCK)
        is_block = block[codes] if len(codes) else np.zeros(0, np.bool_)
        odd = is_block & ~flags(arguments.is_valid())
        reject(self.context.account, "arguments of a block request that are not device, flags, sector", chunk.line[odd])
        keep = np.flatnonzero(~odd)
        chunk, arguments, is_block, codes = chunk.take(keep), arguments.take(pa.array(keep)), is_block[keep], codes[keep]
        held = {"event": chunk.fields, "comm": chunk.fields, "device": arguments, "flags": arguments}
        columns = {name: compute.struct_field(fields, name).dictionary_encode() for name, fields in held.items()}
        series = self.series.codes(columns, len(keep))
        ends = np.array([name == COMPLETE or name.startswith(EXIT) for name in names], np.bool_)
        calls, (first, last) = self._calls(chunk.fields, names, codes), self._requests(arguments, columns)
        marks = np.empty(len(keep), MARK)
        marks["begins"], marks["key"] = np.where(is_block, first, calls), np.where(is_block, last, calls)
        marks["at_ns"], marks["line"], marks["series"] = chunk.at_ns, chunk.line, series
        marks["ends"] = ends[codes] if len(codes) else False
        return self._paired(marks)

    def _requests(self, arguments: Any, columns: Mapping[str, Any]) -> tuple[Int, Int]:
        """Return numbers for where each block request begins and ends: of its device, action and sectors."""
        devices, actions = (self._words(columns[name]) for name in ("device", "flags"))
        size = _whole(self.pa, arguments, "size")
        kinds = [*map(_action, actions[0]), "flush"]  # a write without sectors flushes, whatever its end is called
        action = np.where(size > 0, actions[1], len(kinds) - 1)
        met, where = np.unique(np.stack([devices[1], action]), axis=1, return_inverse=True)
        names = [f"device {devices[0][device]} {kinds[action]}" for device, action in met.T.tolist()]
        codes = np.array([self.keys.setdefault(name, len(self.keys)) for name in names], np.int64)[where.reshape(-1)] << 52
        sector = _whole(self.pa, arguments, "sector")
        return codes + sector, codes + sector + size

    @staticmethod
    def _words(column: Any) -> tuple[list[str], Int]:
        """Return the words of a column, the last of them for what is missing, and which of them each row has."""
        words = [_word(word) for word in column.dictionary.to_pylist()] + [""]
        return words, lying(column.indices.fill_null(len(words) - 1), np.int32).astype(np.int64)

    def _calls(self, fields: Any, names: list[str], codes: Any) -> Int:
        """Return a number for each system call: of its thread and its name."""
        calls = [name.removeprefix(ENTER).removeprefix(EXIT) for name in names]
        known = np.array([self.keys.setdefault(f"call {call}", len(self.keys)) for call in calls], np.int64)
        pid, tid = _whole(self.pa, fields, "pid"), _whole(self.pa, fields, "tid")
        thread = np.where(tid > 0, tid, pid)
        return -1 - ((known[codes] << 40) + thread) if len(codes) else thread

    def _paired(self, marks: Marks) -> Events:
        """Return what ended among these marks; beginnings without an end stay open, ends without a beginning are rejected."""
        account = self.context.account
        marks = np.concatenate([self.open, marks])
        marks = marks[np.argsort(marks["key"], kind="stable")]
        key, at_ns, line, ends = (marks[name] for name in ("key", "at_ns", "line", "ends"))
        same = np.append(key[1:] == key[:-1], False)
        first = np.flatnonzero(~ends & same & np.append(ends[1:], False))
        alone = np.ones(len(marks), np.bool_)
        alone[first] = alone[first + 1] = False
        places, where = np.unique(marks["begins"], return_inverse=True)
        farthest = np.full(len(places), np.iinfo(np.int64).min)
        np.maximum.at(farthest, where.reshape(-1)[~ends], key[~ends])
        part = alone & ends & (key < farthest[where.reshape(-1)])
        account.skip(PARTS, int(np.count_nonzero(part)))
        reject(account, NO_BEGINNING, np.sort(line[alone & ends & ~part]))
        reject(account, BEGUN_AGAIN, np.sort(line[alone & ~ends & same]))
        self.open = self._bounded(marks[alone & ~ends & ~same])
        latency, codes = at_ns[first + 1] - at_ns[first], marks["series"][first]
        wrong, many = (latency < 0) | (latency > DAY_NS), codes < 0
        for reason, bad in ((TOO_LONG, wrong), (TOO_MANY_LABELS, many & ~wrong)):
            reject(account, reason, np.sort(np.concatenate([line[first[bad]], line[first[bad] + 1]])))
        good = np.flatnonzero(~wrong & ~many)
        account.accept(2 * len(good))
        base = (self.context.zero.epoch_ns or 0) + self.context.offset_ns
        return Events(self.series.table, codes[good], at_ns[first[good] + 1] + base, latency[good])

    def _bounded(self, begun: Marks) -> Marks:
        """Return what may still end; of more than a million beginnings the oldest are given up."""
        if len(begun) <= MOST_OPEN:
            return begun
        order = np.argsort(begun["line"], kind="stable")
        reject(self.context.account, NO_END, begun["line"][order[:-MOST_OPEN]])
        return begun[np.sort(order[-MOST_OPEN:])]


def _whole(pa: Any, fields: Any, name: str) -> Int:
    """Return a field of digits as numbers, 0 where there is none, and -1 for the sector of a request that has none."""
    text = pa.compute.struct_field(fields, name).cast(pa.string())
    text = pa.compute.if_else(pa.compute.equal(text, ""), "0", text).fill_null("0")
    return lying(pa.compute.if_else(pa.compute.equal(text, NO_SECTOR), "-1", text).cast(pa.int64()))


def _action(flags: str) -> str:
    """Return what a block request does, by its flags."""
    return "trim" if "D" in flags else "write" if "W" in flags else "read" if "R" in flags else "flush"


def _word(word: Any) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)


# The text of `perf script` as a source: host, what distinguishes recordings, start.


def locate(path: Path, around: Around) -> Source:
    """Return the source of a recording; its job is the name of the file. InputError where samples have no time."""
    if lacks_stamps(head(path)):
        raise InputError(NO_STAMPS, path)
    host, zero_ns, origin = header_of(path)
    job = name_without(path, TRACE_ENDINGS, every=True)
    context = around.context(path, host=host, origin="header of the recording", job=job)
    kept = {**context.options, **({KEEP_IDLE: "yes"} if around.options.keep_idle else {})}
    zero = around.zero(path, TimeZero(zero_ns, origin), lambda: last_ns(path), absolute=zero_ns == 0)
    return Source(path, PERF, replace(context, zero=zero, options=kept), layout=str(events_layout(around.options.digits)))


READER = Reader(
    locate,
    harmless=frozenset({NO_BEGINNING, NO_END, BEGUN_AGAIN}),
    timed=False,
    events=read,
    accepts=lambda _, start: looks_like_perf(start),
    row_labels=(*ROW_LABELS, "process", "volume"),
    arrow=True,
)
