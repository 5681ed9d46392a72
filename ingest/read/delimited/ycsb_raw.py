"""Raw measurements of YCSB: `measurementtype=raw`, to a file (`measurement.raw.output_file`) or among its standard output.

    READ latency raw data: op, timestamp(ms), latency(us)
    READ,1700000000123,845
    [READ], Total Operations, 1000

A line is stamped in ms since 1970 when it was measured, that is when the operation had completed. Each op has a section of
its own, from the beginning of the run. `Intended-READ` (measurement.interval) is the response time of reads. What else YCSB
prints between the sections is passed over.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from ingest.core.events import Events
from ingest.core.series import Series
from ingest.read.context import Context, TimeZero
from ingest.read.delimited.arrow_lines import Form, Lines, arrow, sound_rows, tables
from ingest.read.delimited.arrow_numbers import nanoseconds
from ingest.read.event_labels import TOO_MANY, SeriesTable
from ingest.read.events import DAY_NS, events_layout
from ingest.read.format_names import YCSB
from ingest.read.formats import AGAIN, Reader
from ingest.read.sources import Around, Source
from ingest.read.text import TABLE_ENDINGS, head, name_without

MS, US = 1_000_000, 1000
INTENDED = "intended-"
FIRST = re.compile(rb"^[A-Za-z][-A-Za-z0-9_]*,(\d{1,15}),-?\d{1,15}$", re.MULTILINE)
NOT_A_ROW = "not op, time stamp (ms), latency (us) as YCSB writes them"
TOO_LONG = "a latency of more than a day, or below zero"
PASSED = (
    r"^(?:\[.*|\S+ latency raw data: op, timestamp\(ms\), latency\(us\)|Raw data measurement: .*|YCSB Client .*|Command line: .*"
    r"|Loading workload.*|Starting test.*|\d{4}-\d\d-\d\d .* sec: \d+ operations.*|[ \t]*)\r?\n$"
)


def first_ns(path: Path, context: Context) -> int:
    """Return the stamp of the first operation in the beginning of a file in ns, 0 where there is none."""
    match = FIRST.search(head(path, upto=context.upto))
    return int(match[1]) * MS if match else 0


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the operations of a log, kind service (of intended starts: response); rejected lines are counted."""
    pa = arrow(path)
    types = {"op": pa.dictionary(pa.int32(), pa.binary()), "time": pa.int64(), "latency": pa.int64()}
    pattern = r"^[A-Za-z][-A-Za-z0-9_]*,\d{1,15},-?\d{1,15}\n$"
    form = Form(("op", "time", "latency"), types, [(pattern, types)], NOT_A_ROW, passed=PASSED)

    def series_of(labels: Mapping[str, str]) -> Series:
        op = labels["op"].lower()
        kind = "response" if op.startswith(INTENDED) else "service"
        return context.series.replaced(op=op.removeprefix(INTENDED), kind=kind)

    series = SeriesTable(series_of)
    for table, lines in tables(path, Lines(form, context.account), context.upto):
        codes = series.codes({"op": table.column("op")}, len(table))
        end, sure = nanoseconds(pa, table.column("time"), MS)
        latency, known = nanoseconds(pa, table.column("latency"), US)
        faults = (
            (NOT_A_ROW, ~(sure & known) | (end < 0)),
            (TOO_LONG, (latency > DAY_NS) | (latency < 0)),
            (TOO_MANY, codes == -2),
        )
        rows = sound_rows(context.account, lines, faults)
        context.account.accept(len(rows))
        yield Events(series.table, codes, end + context.offset_ns, latency).take(rows)


def locate(path: Path, around: Around) -> Source:
    """Return the source of a file of raw measurements, which are stamped with real times."""
    context = around.context(path, process=name_without(path, TABLE_ENDINGS))
    own = TimeZero(first_ns(path, context), "epoch stamps in the log")
    zero = around.zero(path, own, lambda: 0, absolute=True)
    return Source(path, YCSB, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


READER = Reader(locate, events=read, grows=AGAIN, arrow=True)
