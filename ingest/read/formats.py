"""The table of formats: which file each is known by, and the module that reads it.

A line holds the name for `--input-format`, what people call it, the module, and a cheap test of a file's name and its first
bytes; the module is imported when a file passes the test. Everything else of a format stands in its module, as one value
`READER`. A new format is that module and one line here: recognition, `--input-format`, refusals, standard input, compressed
files, `watch` and the list in docs/formats.md follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ingest.intervals import Intervals
    from ingest.read.context import Context
    from ingest.read.events import Events
    from ingest.read.sources import Around, Source

HIST, RAW, JSON, HDR, OPERATIONS = "fio-hist", "fio-raw", "fio-json", "hdr-log", "operations"
AVERAGED, PLAIN_JSON = "fio-averaged", "fio-plain-json"
SMALLFILE, YCSB, PERF, CHROME, SNABB, DESCRIBED = "smallfile", "ycsb-raw", "perf-script", "chrome-trace", "snabb", "described"

WHOLE, AGAIN, PIECES = "whole", "again", "pieces"
ROW_LABELS = ("op", "kind", "job", "tag")
STDIN = "stdin"


@dataclass(frozen=True, slots=True)
class Reader:
    """How a format is read; each of its modules has one, called READER.

    `locate` returns the source that a file is, with its labels and time zero, or raises InputError with the reason why it is
    refused. `rows` yields its histograms, or `events` its single operations: a format has one of the two. `accepts` decides
    where the test in the table is only a first look. `row_labels` are those that only its rows hold. `grows` says how `watch`
    reads a file that is still written: in PIECES, AGAIN from its beginning, or once it is WHOLE. `folder_is_host` is false for
    files whose folder never stands for a host. `arrow` is set where pyarrow is needed.
    """

    locate: Callable[[Path, Around], Source]
    rows: Callable[[Path, Context], Iterator[Intervals]] | None = None
    events: Callable[[Path, Context], Iterator[Events]] | None = None
    accepts: Callable[[Path, bytes], bool] | None = None
    row_labels: tuple[str, ...] = ROW_LABELS
    grows: str = WHOLE
    folder_is_host: Callable[[Path], bool] | None = None
    arrow: bool = False


@dataclass(frozen=True, slots=True)
class Format:
    """One line of the table. `names` and `head` are patterns of a file's name and of its first 64 KiB; either is enough.

    With `named_only` the first bytes count only for a file that the user named, not for one that a folder holds: rows of four
    numbers may be anything.
    """

    name: str
    title: str
    module: str
    names: str = ""
    head: bytes = b""
    named_only: bool = False

    def by_name(self, name: str) -> bool:
        """Return whether a file's name, with its folder's and without a compression ending, is one of this format."""
        return bool(self.names) and re.search(self.names, name) is not None

    def by_head(self, path: Path, start: bytes, *, named: bool) -> bool:
        """Return whether the first bytes of a file are those of this format; `named` files were named by the user."""
        if not self.head or (self.named_only and not named) or re.search(self.head, start) is None:
            return False
        accepts = reader_of(self.name).accepts
        return accepts is None or accepts(path, start)


INTEGER_ROW = rb"(?m)^[ \t]*\d{1,19}[ \t]*,[ \t]*-?\d{1,20}[ \t]*,"

TABLE: list[Format] = [
    Format(
        HIST,
        "fio histogram log",
        "fio.readers.HISTOGRAMS",
        r"[^/]_clat_hist(\.\d+)?\.log(\..+)?$",
        rb"(?m)^\d{1,13}, ?[012], ?\d+(, ?\d+){19}",
    ),
    Format(
        RAW,
        "fio latency log",
        "fio.readers.LATENCIES",
        r"[^/]_(clat|lat|slat)(\.\d+)?\.log(\..+)?$",
        INTEGER_ROW,
        named_only=True,
    ),
    Format(JSON, "fio JSON", "fio.readers.SUMMARIES", head=rb'"fio version"'),
    Format(AVERAGED, "fio latency log of means", "fio.readers.AVERAGES"),  # named as RAW, told from it by its rows
    Format(PLAIN_JSON, "fio JSON without bins", "fio.readers.TOTALS"),  # a JSON like another, told from it by its content
    Format(SNABB, "Snabb timeline", "snabb.reader", r"\.timeline$|^engine/timeline$", rb"\A\x01\x00\x1d\x44"),
    Format(SMALLFILE, "smallfile response times", "smallfile", head=rb"(?m)^ *[-A-Za-z_]+, +\d+\.\d{6}, +\d+\.\d{6}\r?$"),
    Format(YCSB, "YCSB raw measurements", "ycsb_raw", head=rb" latency raw data: op, timestamp\(ms\), latency\(us\)"),
    Format(PERF, "perf script", "perf.reader", head=rb"\d\.\d{6}|\A# ==="),
    Format(CHROME, "Chrome trace", "chrome.reader", head=rb'"ph"\s*:'),
    Format(HDR, "HdrHistogram log", "hdr.reader", head=rb"(?m)^#\[|StartTimestamp|HIST|DHIS"),
    Format(OPERATIONS, "operation log", "operations", head=rb"\A[^\n]*,"),
    Format(DESCRIBED, "file described in YAML", "described"),
]


def format_of(name: str) -> Format:
    """Return the line of a format; KeyError where there is none of that name."""
    return {line.name: line for line in TABLE}[name]


def names() -> list[str]:
    """Return the formats that `--input-format` takes by name."""
    return [line.name for line in TABLE if line.name != DESCRIBED]


def titles() -> str:
    """Return what the formats are called, for a sentence."""
    return ", ".join(line.title for line in TABLE if line.name != DESCRIBED)


@cache
def _reader(place: str) -> Reader:
    """Return the reader at a place below this package: a module, or a name in it that is written in capitals."""
    module, _, name = place.rpartition(".") if place.rpartition(".")[2].isupper() else (place, "", "READER")
    full = module if module.startswith("/") else f"ingest.read.{module}"
    found: Reader = getattr(import_module(full.removeprefix("/")), name)
    return found


def reader_of(name: str) -> Reader:
    """Return the reader of a format; its module is imported when it is asked for first."""
    return _reader(format_of(name).module)
