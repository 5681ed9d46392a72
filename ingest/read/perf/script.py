"""The text of `perf script`: block requests and system calls, each from its beginning to its end.

    fio 21038 [000]  5236.950129:    block:block_rq_issue: 254,0 RS 4096 () 433686456 + 8 0x2,0,4 [fio]
    swapper     0 [000]  5236.950301: block:block_rq_complete: 254,0 RS () 433686456 + 8 0x2,0,4 [0]
    bash 21000/21000 [001]  5234.069661:   syscalls:sys_enter_pread64: fd: 0x00000003, buf: 0x7ffffe1f73e0, ...
    bash 21000/21000 [001]  5234.069672:    syscalls:sys_exit_pread64: 0x310

A block request is known by device and sector: kind completion, the device is the volume, the process is who issued it. A
system call is known by its thread: kind service, the op is its name. Stamps are seconds since the machine started, to the us
(to the ns with --ns), so times are relative unless the header has the start (see `header`). What is left alone at either end of
the recording is counted: an end without a beginning, a beginning without an end; of a request that was requeued the last
beginning counts. Other events, and those of which the recording has only one of the two, are moments (see `moments`).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.events import Events
from ingest.core.intervals import Bool, Int
from ingest.core.series import Series
from ingest.read.account import Account
from ingest.read.context import KEEP_IDLE, Context
from ingest.read.delimited.arrow_lines import arrow, flags, reject
from ingest.read.event_labels import TOO_MANY, SeriesTable
from ingest.read.events import DAY_NS
from ingest.read.perf import moments as perf_moments
from ingest.read.perf.lines import Samples, samples
from ingest.read.text import whole_blocks

BLOCK = r"^ *(?P<device>\d+,\d+) (?P<flags>[A-Z]+) (?:\d+ )?\([^)]*\) (?P<sector>\d{1,15}|18446744073709551615) \+ \d+"
ISSUE, COMPLETE = "block:block_rq_issue", "block:block_rq_complete"
NO_SECTOR = str(2**64 - 1)
ENTER, EXIT = "syscalls:sys_enter_", "syscalls:sys_exit_"
NO_BEGINNING = "an end whose beginning is not in the recording"
NO_END = "a beginning whose end is not in the recording"
AGAIN = "begun again before it ended (requeued): the later beginning counts"
OTHER_ARGUMENTS = "arguments of a block request that are not device, flags, sector"
TOO_LONG = "a latency of more than a day, or below zero"
PAIRS = ((ISSUE, COMPLETE), (ENTER, EXIT))
MOST_OPEN = 1 << 20


@dataclass(slots=True)
class _Marks:
    """Beginnings and ends in the order of the file: of which operation (`key`), when, in which line, of which series."""

    key: Int
    at_ns: Int
    line: Int
    ends: Int
    series: Int

    def take(self, rows: Int) -> _Marks:
        """Return the given marks in the given order."""
        return _Marks(self.key[rows], self.at_ns[rows], self.line[rows], self.ends[rows], self.series[rows])

    def after(self, before: _Marks) -> _Marks:
        """Return these marks behind those of `before`."""
        pairs = ((getattr(before, name), getattr(self, name)) for name in ("key", "at_ns", "line", "ends", "series"))
        return _Marks(*(np.concatenate(pair) for pair in pairs))


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the requests and calls that began and ended in the recording, and its other samples as moments of kind offset.

    Times are as exact as perf's stamps. Samples of idle CPUs are skipped unless the context says otherwise, and counted;
    everything else is counted with its line. InputError where pyarrow is missing.
    """
    pa = arrow(path)
    trace, paired = _Trace(context), _BothEnds(path)
    moments = perf_moments.Moments(context, keep_idle=bool(context.options.get(KEEP_IDLE)))
    for chunk in samples(path, context.account):
        timed = paired.of(pa, chunk)
        yield trace.events(chunk.take(np.flatnonzero(timed)))
        yield moments.events(pa, chunk.take(np.flatnonzero(~timed)))
    trace.finish()
    perf_moments.note_left_out(context.account)


class _BothEnds:
    """Finds the samples that are a beginning or an end; a file is searched for the other one when the first of a pair is met."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._known: dict[tuple[str, str], bool] = {}

    def of(self, pa: Any, chunk: Samples) -> Bool:
        """Return which samples are of pairs that the file holds both ends of."""
        event = pa.compute.struct_field(chunk.fields, "event")
        timed = np.zeros(len(chunk), np.bool_)
        for pair in PAIRS:
            mine = flags(pa.compute.starts_with(event, pair[0])) | flags(pa.compute.starts_with(event, pair[1]))
            if mine.any() and self._both(pair):
                timed |= mine
        return timed

    def _both(self, pair: tuple[str, str]) -> bool:
        if pair not in self._known:
            missing = {word.encode() for word in pair}
            for block in whole_blocks(self.path, Account()):
                text = bytes(block)
                missing -= {word for word in missing if word in text}
                if not missing:
                    break
            self._known[pair] = not missing
        return self._known[pair]


class _Trace:
    """What is known of one recording so far: its series, devices and calls, and beginnings that still have no end."""

    def __init__(self, context: Context) -> None:
        self.pa = arrow()
        self.context = context
        self.series = SeriesTable(self._series)
        self.keys: dict[str, int] = {}
        none = np.zeros(0, np.int64)
        self.open = _Marks(none, none, none, none, none)

    def _series(self, labels: Mapping[str, str]) -> Series | None:
        event, process = labels["event"], labels["comm"]
        base = self.context.series
        if event.startswith((ENTER, EXIT)):
            op = event.removeprefix(ENTER).removeprefix(EXIT)
            return base.replaced(op=op, kind="service", process=process)
        words = labels["flags"]
        op = "trim" if "D" in words else "write" if "W" in words else "read" if "R" in words else "flush"
        return base.replaced(op=op, kind="completion", volume=labels["device"], process=process)

    def events(self, chunk: Samples) -> Events:
        """Return what ended among the beginnings and ends of a block."""
        compute, pa = self.pa.compute, self.pa
        event = compute.struct_field(chunk.fields, "event").dictionary_encode()
        names = [_word(name) for name in event.dictionary.to_pylist()]
        codes = np.frombuffer(event.indices.buffers()[1], np.int32)[: len(event)] if len(event) else chunk.line
        block = np.array([name in (ISSUE, COMPLETE) for name in names], np.bool_)
        arguments = compute.extract_regex(compute.struct_field(chunk.fields, "rest"), BLOCK)
        is_block = block[codes] if len(codes) else np.zeros(0, np.bool_)
        odd = is_block & ~flags(arguments.is_valid())
        reject(self.context.account, OTHER_ARGUMENTS, chunk.line[odd])
        keep = np.flatnonzero(~odd)
        chunk, arguments, is_block, codes = chunk.take(keep), arguments.take(pa.array(keep)), is_block[keep], codes[keep]
        columns = {
            "event": compute.struct_field(chunk.fields, "event").dictionary_encode(),
            "comm": compute.struct_field(chunk.fields, "comm").dictionary_encode(),
            "device": compute.struct_field(arguments, "device").dictionary_encode(),
            "flags": compute.struct_field(arguments, "flags").dictionary_encode(),
        }
        series = self.series.codes(columns, len(keep))
        ends = np.array([name == COMPLETE or name.startswith(EXIT) for name in names], np.bool_)
        key = np.where(is_block, self._requests(arguments, columns["device"]), self._calls(chunk.fields, names, codes))
        ended = ends[codes].astype(np.int64) if len(codes) else key
        return self._paired(_Marks(key, chunk.at_ns, chunk.line, ended, series))

    def _requests(self, arguments: Any, device: Any) -> Int:
        """Return a number for each block request: of its device and sector."""
        words = [_word(word) for word in device.dictionary.to_pylist()] + [""]
        codes = np.array([self.keys.setdefault(f"device {word}", len(self.keys)) for word in words], np.int64)
        place = np.frombuffer(device.indices.fill_null(len(words) - 1).buffers()[1], np.int32)[: len(device)]
        return (codes[place] << 52) + _whole(self.pa, arguments, "sector")

    def _calls(self, fields: Any, names: list[str], codes: Any) -> Int:
        """Return a number for each system call: of its thread and its name."""
        calls = [name.removeprefix(ENTER).removeprefix(EXIT) for name in names]
        known = np.array([self.keys.setdefault(f"call {call}", len(self.keys)) for call in calls], np.int64)
        pid, tid = _whole(self.pa, fields, "pid"), _whole(self.pa, fields, "tid")
        thread = np.where(tid > 0, tid, pid)
        return -1 - ((known[codes] << 40) + thread) if len(codes) else thread

    def _paired(self, marks: _Marks) -> Events:
        """Return what ended among these marks; beginnings without an end stay open, ends without a beginning are rejected."""
        account = self.context.account
        marks = marks.after(self.open)
        order = np.argsort(marks.key, kind="stable")
        marks = marks.take(order)
        same = np.append(marks.key[1:] == marks.key[:-1], False)
        begins = (marks.ends == 0) & same & np.append(marks.ends[1:] == 1, False)
        first = np.flatnonzero(begins)
        paired = np.zeros(len(marks.key), np.bool_)
        paired[first] = True
        paired[first + 1] = True
        left = np.flatnonzero(~paired & (marks.ends == 0) & ~same)
        reject(account, NO_BEGINNING, np.sort(marks.line[~paired & (marks.ends == 1)]))
        reject(account, AGAIN, np.sort(marks.line[~paired & (marks.ends == 0) & same]))
        self.open = self._bounded(marks.take(left))
        latency = marks.at_ns[first + 1] - marks.at_ns[first]
        codes = marks.series[first]
        wrong, many = (latency < 0) | (latency > DAY_NS), codes < 0
        for reason, bad in ((TOO_LONG, wrong), (TOO_MANY, many & ~wrong)):
            reject(account, reason, np.sort(np.concatenate([marks.line[first[bad]], marks.line[first[bad] + 1]])))
        good = first[~wrong & ~many]
        account.accept(2 * len(good))
        base = (self.context.zero.epoch_ns or 0) + self.context.offset_ns
        end = marks.at_ns[good + 1] + base
        return Events(self.series.table, marks.series[good], end, marks.at_ns[good + 1] - marks.at_ns[good])

    def _bounded(self, begun: _Marks) -> _Marks:
        """Return what may still end; of more than a million beginnings the oldest are given up."""
        if len(begun.key) <= MOST_OPEN:
            return begun
        order = np.argsort(begun.line, kind="stable")
        reject(self.context.account, NO_END, begun.line[order[:-MOST_OPEN]])
        return begun.take(np.sort(order[-MOST_OPEN:]))

    def finish(self) -> None:
        """Count what has no end."""
        reject(self.context.account, NO_END, np.sort(self.open.line))


def _whole(pa: Any, fields: Any, name: str) -> Int:
    """Return a field of digits as numbers, 0 where there is none, and -1 for the sector of a request that has none."""
    text = pa.compute.struct_field(fields, name).cast(pa.string())
    text = pa.compute.if_else(pa.compute.equal(text, ""), "0", text).fill_null("0")
    values = pa.compute.if_else(pa.compute.equal(text, NO_SECTOR), "-1", text).cast(pa.int64())
    return np.frombuffer(values.buffers()[1], np.int64)[values.offset : values.offset + len(values)]


def _word(word: Any) -> str:
    return word.decode("utf-8", "replace") if isinstance(word, bytes) else str(word)
