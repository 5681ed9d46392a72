"""Histograms that YCSB prints at the end of a run: `measurementtype=histogram`, newer ones with `measurement.histogram.verbose`.

    [OVERALL], RunTime(ms), 80.0
    [UPDATE], Operations, 531
    [UPDATE], Return=0, 531
    [UPDATE], 0, 530
    [UPDATE], 1, 1
    ...
    [UPDATE], >1000, 0

`1, 1` is one operation from 1 ms to just below 2 ms; `>1000` are those from 1,000 ms on. The run ended when the file was
written, which a caveat says. `Intended-READ` (measurement.interval) is the response time of reads.

Source: brianfrankcooper/YCSB, OneMeasurementHistogram.java; YCSB did not run here.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path

from ingest.core.caveats import Caveat
from ingest.core.errors import InputError
from ingest.core.series import Series
from ingest.core.timing import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import YCSB_HISTOGRAM
from ingest.read.formats import AGAIN, Reader
from ingest.read.histograms.description import NDJSON, HistogramDescription
from ingest.read.histograms.file_bins import OPEN, FileBin, FileHistogram, in_bins
from ingest.read.histograms.lines import lines_of, readers
from ingest.read.histograms.polls import Lost, Polls
from ingest.read.histograms.prints import BY_FILE

MS = UNITS_NS["ms"]
LINE = re.compile(r"^\[([A-Za-z][\w-]*)\], (>?\d{1,6}|Operations|Return=[\w-]+|RunTime\(ms\)), (\d{1,18})(\.\d+)?$")
INTENDED = "intended-"
FINE = ("Return=0", "Return=OK")
NOTHING = "holds no histogram: YCSB writes them with measurementtype=histogram"
AT_THE_END = "nothing says when its run ended: the time of the file is taken"
COPY = "copy it with cp -p"
NO_END = "a histogram without its last line (>1000): it breaks off"
WRONG_SUM = "its buckets do not add up to its Operations"
SEVERAL_RUNS = "several runs, and nothing says when each ended: keep the output of each in a file of its own"


@dataclass(slots=True)
class _Op:
    """What stands under the name of an operation: the line it begins in, its buckets, and how many operations it says."""

    line: int
    counts: dict[int, int] = field(default_factory=dict)
    above: tuple[int, int] | None = None
    operations: int | None = None
    failed: int = 0


def polls(path: Path, context: Context) -> Polls:
    """Return the histograms of a file; InputError where it holds several runs."""
    held = Polls(context)
    ops: dict[str, _Op] = {}
    length_ns: int | None = None
    for number, line, _ in lines_of(path, context):
        match = LINE.match(line.decode("utf-8", "replace").rstrip())
        if match is None:
            continue  # what else YCSB prints
        name, what, count = match[1], match[2], int(match[3])
        op = ops.setdefault(name, _Op(number))
        if what == "RunTime(ms)":
            if length_ns is not None:
                raise InputError(SEVERAL_RUNS, path, number)
            length_ns = int(Decimal(match[3] + (match[4] or "")) * MS)
        elif what == "Operations":
            op.operations = count
        elif what.startswith("Return="):
            op.failed += count if what not in FINE else 0
        elif what.startswith(">"):
            op.above = int(what[1:]), count
        elif not match[4]:
            op.counts[int(what)] = count
    end = path.stat().st_mtime_ns
    _add({name: op for name, op in ops.items() if op.counts or op.above}, (end - (length_ns or 0), end), context, held)
    return held


def _add(ops: dict[str, _Op], times: tuple[int, int], context: Context, held: Polls) -> None:
    """Add the histograms of all operations, with the bins of the longest."""
    found: list[FileHistogram] = []
    for name, op in ops.items():
        series = _series(context.series, name)
        reason = NO_END if op.above is None else WRONG_SUM if op.operations not in (None, _samples(op)) else ""
        if op.above is None or reason:
            held.reject(reason, op.line, Lost(series, *times, op.operations if op.above is None else None))
            continue
        bins = [FileBin(low * MS - 1, (low + 1) * MS - 1, count) for low, count in op.counts.items()]
        bins.append(FileBin(op.above[0] * MS - 1, OPEN, op.above[1]))
        found.append(FileHistogram(op.line, series, *times, bins, total=False))
        if op.failed:
            context.account.note(f"{name}: YCSB says of {op.failed:,} operations that they failed; they may be among these")
    if found:
        most = max(op.above[0] for op in ops.values() if op.above)
        rule = tuple(low * MS - 1 for low in range(1, most + 1))
        in_bins(found, HistogramDescription("", NDJSON, "", rule=rule, is_open=True), context, held)
        context.account.caveats.append(Caveat(BY_FILE, context.account.path, AT_THE_END, COPY))


def _samples(op: _Op) -> int:
    return sum(op.counts.values()) + (op.above[1] if op.above else 0)


def _series(base: Series, name: str) -> Series:
    op = name.lower()
    return base.replaced(op=op.removeprefix(INTENDED), kind="response" if op.startswith(INTENDED) else "service")


locate, rows = readers(YCSB_HISTOGRAM, polls, NOTHING)
READER = Reader(locate, rows=rows, grows=AGAIN)
