"""YCSB: raw measurements (`measurementtype=raw`) and the histograms that it prints at the end of a run.

Histograms that YCSB prints at the end of a run: `measurementtype=histogram`, newer ones with `measurement.histogram.verbose`.

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

Raw measurements of YCSB: `measurementtype=raw`, to a file (`measurement.raw.output_file`) or among its standard output.

    READ latency raw data: op, timestamp(ms), latency(us)
    READ,1700000000123,845
    [READ], Total Operations, 1000

A line is stamped in ms since 1970 when it was measured, that is when the operation had completed. Each op has a section of
its own, from the beginning of the run, with its number of operations behind it: what the lines hold less or more than that is
missing, or counted twice. `Intended-READ` (measurement.interval) is the response time of reads. What else YCSB
prints between the sections is passed over.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path

import numpy as np

from ingest.core.coverage import AGAIN as COPY_AGAIN
from ingest.core.coverage import Caveat, Missing, labels_of
from ingest.core.errors import InputError, listed
from ingest.core.events import Events
from ingest.core.labels import Series, failed_kind
from ingest.core.units import UNITS_NS
from ingest.read.account import Account
from ingest.read.context import FORM, Context, TimeZero
from ingest.read.described.description import NDJSON, HistogramDescription
from ingest.read.described.table import Form, Lines, arrow, nanoseconds, sound_rows, tables
from ingest.read.format_names import YCSB, YCSB_HISTOGRAM
from ingest.read.formats import AGAIN, Reader
from ingest.read.missing import CUT_SHORT, unlike_total
from ingest.read.operations import DAY_NS, TOO_MANY_LABELS, SeriesTable, events_layout
from ingest.read.plugins.prints import BY_FILE
from ingest.read.polls import OPEN, FileBin, FileHistogram, Lost, Polls, in_bins, lines_of, polled
from ingest.read.sources import Around, Source
from ingest.read.text import TABLE_ENDINGS, changed_ns, head, name_without, whole_blocks

MS = UNITS_NS["ms"]
LINE = re.compile(r"^\[([A-Za-z][\w-]*)\], (>?[0-9]{1,6}|Operations|Return=[\w-]+|RunTime\(ms\)), ([0-9]{1,18})(\.[0-9]+)?$")
INTENDED, FAILED_OP = "intended-", "-failed"  # of READ-FAILED: its status was none of success
TWO_FORMS = re.compile(r"(?:Raw|Bucket|Hdr)(?=Intended-|[A-Z])")  # of measurementtype=hdrhistogram+raw, hdrhistogram+histogram
NAMES = re.compile(rb"^(?:((?:Raw|Bucket)[A-Z][\w-]*) latency raw data:|\[((?:Raw|Bucket)[A-Z][\w-]*)\], 0, )", re.MULTILINE)
FINE = ("Return=0", "Return=OK")
AT_THE_END = "nothing says when its run ended: the time of the file is taken"
NO_BEGINNING = "YCSB's RunTime is not there: the beginning of its output is gone, and operations may be with it"
COPY = "copy it with cp -p"
SEVERAL_RUNS = "several runs, and nothing says when each ended: keep the output of each in a file of its own"


@dataclass(slots=True)
class _Op:
    """What stands under the name of an operation: the line it begins in, its buckets, and how many operations it says."""

    line: int
    counts: dict[int, int] = field(default_factory=dict)
    above: tuple[int, int] | None = None
    operations: int | None = None
    failed: int = 0


def read_histograms(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`; InputError where it holds several runs."""
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
    end = changed_ns(path)
    if length_ns is None:
        caveat = Caveat(CUT_SHORT, context.account.path, NO_BEGINNING, COPY_AGAIN)
        context.account.lack(Missing(labels_of(context.series, unknown=("op", "kind")), None, None, None, 0, None, caveat))
    counted = {name: op for name, op in ops.items() if op.counts or op.above or op.operations}
    _add(counted, (end - (length_ns or 0), end), context, held)


def _add(ops: dict[str, _Op], times: tuple[int, int], context: Context, held: Polls) -> None:
    """Add the histograms of all operations, with the bins of the longest."""
    found: list[FileHistogram] = []
    for name, op in ops.items():
        series = _series(context.series, name)
        if op.above is None:
            held.reject("a histogram without its last line (>1000): it breaks off", op.line, Lost(series, *times, op.operations))
            continue
        if op.operations is None and op.counts.keys() != set(range(op.above[0])):
            held.reject("some of its lines are not there", op.line, Lost(series, *times))
            continue
        if op.operations not in (None, sum(op.counts.values()) + op.above[1]):
            held.reject("its buckets do not add up to its Operations", op.line, Lost(series, *times))
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


def _series(base: Series, name: str) -> Series:
    op = TWO_FORMS.sub("", name, count=1).lower() if TWO_FORMS.match(name) else name.lower()
    kind = "response" if op.startswith(INTENDED) else "service"
    kind = failed_kind(kind) if op.endswith(FAILED_OP) else kind
    return base.replaced(op=op.removeprefix(INTENDED).removesuffix(FAILED_OP), kind=kind)


def in_two_forms(path: Path, context: Context) -> Context:
    """Return a context that names the ops of a file whose operations YCSB wrote as an HdrHistogram log, too."""
    if not NAMES.search(head(path, upto=context.upto)):
        return context
    found = {
        name.decode()
        for block in whole_blocks(path, Account(), context.upto)
        for pair in NAMES.findall(block)
        for name in pair
        if name
    }
    ops = " ".join(sorted({_series(Series(), name).op for name in found}))
    return replace(context, options={**context.options, FORM: ops})


def locate_histograms(path: Path, around: Around) -> Source:
    """Return the source of a file of histograms."""
    source = _POLLED.locate(path, around)
    return replace(source, context=in_two_forms(path, source.context))


_POLLED = polled(YCSB_HISTOGRAM, read_histograms, "holds no histogram: YCSB writes them with measurementtype=histogram")
HISTOGRAM = _POLLED._replace(locate=locate_histograms)


US = UNITS_NS["us"]
TOTAL = re.compile(rb"^\[([A-Za-z][\w-]*)\], Total Operations, ([0-9]{1,15})\r?$", re.MULTILINE)
FIRST = re.compile(rb"^[A-Za-z][-A-Za-z0-9_]*,(\d{1,15}),-?\d{1,15}$", re.MULTILINE)
NOT_A_ROW = "not op, time stamp (ms), latency (us) as YCSB writes them"
PASSED = (
    r"^(?:\[.*|\S+ latency raw data: op, timestamp\(ms\), latency\(us\)|Raw data measurement: .*|YCSB Client .*|Command line: .*"
    r"|Loading workload.*|Starting test.*|[0-9]{4}-[0-9][0-9]-[0-9][0-9] .* sec: [0-9]+ operations.*|[ \t]*)\r?\n$"
)


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the operations of a log, kind service (of intended starts: response); rejected lines are counted."""
    pa = arrow(path)
    types = {"op": pa.dictionary(pa.int32(), pa.binary()), "time": pa.int64(), "latency": pa.int64()}
    pattern = r"^[A-Za-z][-A-Za-z0-9_]*,[0-9]{1,15},-?[0-9]{1,15}\n$"
    form = Form(("op", "time", "latency"), types, [(pattern, types)], NOT_A_ROW, passed=PASSED)

    series = SeriesTable(lambda labels: _series(context.series, labels["op"]))
    held: Counter[Series] = Counter()
    for table, lines in tables(path, Lines(form, context.account), context.upto):
        codes = series.codes({"op": table.column("op")}, len(table))
        end, sure = nanoseconds(pa, table.column("time"), MS)
        latency, known = nanoseconds(pa, table.column("latency"), US)
        faults = (
            (NOT_A_ROW, ~(sure & known) | (end < 0)),
            ("a latency of more than a day, or below zero", (latency > DAY_NS) | (latency < 0)),
            (TOO_MANY_LABELS, codes == -2),
        )
        rows = sound_rows(context.account, lines, faults)
        counts = np.bincount(codes[rows], minlength=len(series.table)).tolist()
        held.update(dict(zip(series.table, counts, strict=False)))
        yield Events(series.table, codes, end + context.offset_ns, latency).take(rows)
    if context.upto is None and context.part is None:
        _hold_against_totals(path, context, held)


def _hold_against_totals(path: Path, context: Context, held: Mapping[Series, int]) -> None:
    """Keep what YCSB counts of each operation and the lines do not hold, or hold beyond it; rejected lines are known."""
    told: Counter[Series] = Counter()
    for block in whole_blocks(path, Account()):
        for match in TOTAL.finditer(block):
            told[_series(context.series, match[1].decode())] += int(match[2])
    path_text, rejected = context.account.path, context.account.rows_rejected  # lines of any operation, missing already
    fewer = [series for series, count in told.items() if count > held[series]]
    for some in [fewer] if rejected else [[series] for series in fewer]:
        counted, here = (sum(of[series] for series in some) for of in (told, held))
        if counted - here > rejected:
            labels = labels_of(some[0], unknown=("op", "kind") if len(some) > 1 else ())
            tool = f"{listed(sorted({one.op for one in some}))}: YCSB"
            context.account.lack(unlike_total(labels, path_text, tool, counted, here, rejected))
    for series, count in told.items():
        if held[series] > count:
            context.account.lack(unlike_total(labels_of(series), path_text, f"{series.op}: YCSB", count, held[series]))
    for series in held.keys() - told.keys() if told else ():
        caveat = Caveat(CUT_SHORT, path_text, f"{series.op}: YCSB's summary of it is not there: the file breaks off", COPY_AGAIN)
        context.account.lack(Missing(labels_of(series), None, None, None, 0, None, caveat))


def locate_raw(path: Path, around: Around) -> Source:
    """Return the source of a file of raw measurements, which are stamped with real times."""
    context = around.context(path, process=name_without(path, TABLE_ENDINGS))
    context = in_two_forms(path, context)
    first = FIRST.search(head(path, upto=context.upto))
    own = TimeZero(int(first[1]) * MS if first else 0, "epoch stamps in the log")
    zero = around.zero(path, own, lambda: 0, absolute=True)
    return Source(path, YCSB, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


RAW_MEASUREMENTS = Reader(locate_raw, events=read, grows=AGAIN, arrow=True)
