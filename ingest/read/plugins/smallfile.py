"""Response times of smallfile: `--response-times Y` writes one file a thread, one line a file operation.

    rsptimes_01_client-7.example.com_create_1609459200.1234.csv
      create,  0.000312,  0.001718           op, start since the thread's own start (s), duration (s)

The name holds thread, host, the test's op and the thread's start in epoch seconds on the host's clock; each thread has its
own start. An op may be a part of the test's op (`ls-l-stat`). Lines stand in order of starts, so completions may run back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from fractions import Fraction
from pathlib import Path

from ingest.core.events import Events
from ingest.read.account import Account
from ingest.read.context import Context, TimeZero
from ingest.read.described.table import Form, Lines, arrow, nanoseconds, sound_rows, tables
from ingest.read.format_names import SMALLFILE
from ingest.read.formats import AGAIN, Reader
from ingest.read.operations import DAY_NS, TOO_MANY_LABELS, SeriesTable, events_layout, newest_ns
from ingest.read.sources import Around, Source
from ingest.read.text import TABLE_ENDINGS, name_without, plain_name

SECOND = 1_000_000_000
NAME = re.compile(r"^rsptimes_(?P<thread>\d+)_(?P<host>.+)_[-,a-zA-Z]+_(?P<start>\d{1,12}(?:\.\d{1,12})?)\.csv$")
LINE = re.compile(rb"^ *[-A-Za-z_]+, +\d+\.\d{6}, +\d+\.\d{6}\r?$")
OP = r"[-A-Za-z_][-A-Za-z0-9_]*"
NUMBER = r"\d{1,10}\.\d{1,9}"
NOT_A_ROW = "not op, start, duration as smallfile writes them"


def read(path: Path, context: Context) -> Iterator[Events]:
    """Yield the operations of a file, kind service (smallfile has no schedule); times as written. Rejected lines are counted."""
    pa = arrow(path)
    types = {"op": pa.dictionary(pa.int32(), pa.binary())} | dict.fromkeys(("start", "duration"), pa.decimal128(38, 9))
    pattern = rf"^[ \t]*{OP}[ \t]*,[ \t]*{NUMBER}[ \t]*,[ \t]*{NUMBER}[ \t]*\n$"
    form = Form(("op", "start", "duration"), types, [(pattern, types)], NOT_A_ROW)
    series = SeriesTable(lambda labels: context.series.replaced(op=labels["op"].lower(), kind="service"))
    base = (context.zero.epoch_ns or 0) + context.offset_ns
    for table, lines in tables(path, Lines(form, context.account), context.upto):
        codes = series.codes({"op": table.column("op")}, len(table))
        start, sure = nanoseconds(pa, table.column("start"), SECOND)
        latency, known = nanoseconds(pa, table.column("duration"), SECOND)
        faults = (
            (NOT_A_ROW, ~(sure & known) | (latency < 0) | (start < 0) | (codes == -1)),
            ("a duration of more than a day", latency > DAY_NS),
            (TOO_MANY_LABELS, codes == -2),
        )
        rows = sound_rows(context.account, lines, faults)
        yield Events(series.table, codes, start + latency + base, latency).take(rows)


def locate(path: Path, around: Around) -> Source:
    """Return the source of a file of response times; its name holds host, thread and the thread's start."""
    named = NAME.match(plain_name(path))
    host, job = (named["host"], named["thread"]) if named else ("", "")
    context = around.context(path, host=host, job=job, process=name_without(path, TABLE_ENDINGS))
    own = TimeZero(int(Fraction(named["start"]) * SECOND), "start of the thread in the file name") if named else TimeZero()
    quiet = replace(context, account=Account(path=str(path)), zero=TimeZero(0), offset_ns=0)
    zero = around.zero(path, own, lambda: newest_ns(read(path, quiet)))
    return Source(path, SMALLFILE, replace(context, zero=zero), layout=str(events_layout(around.options.digits)))


def accepts(path: Path, start: bytes) -> bool:
    """Return whether a file bears such a name, and one of its first lines is op, start, duration as smallfile prints them."""
    return NAME.match(plain_name(path)) is not None and any(LINE.match(line) for line in start.split(b"\n")[:10])


READER = Reader(locate, events=read, accepts=accepts, grows=AGAIN, arrow=True)
