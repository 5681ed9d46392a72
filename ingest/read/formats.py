"""The table of formats: which file each is known by, and the module that reads it.

A line holds the name for `--input-format`, what people call it, the module, and a cheap test of a file's name and its first
bytes; the module is imported when a file passes the test. Everything else of a format stands in its module, as one value
`READER`. A new format is that module and one line here: recognition, `--input-format`, refusals, standard input, compressed
files, `watch` and the list in docs/reference/formats.md follow from it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.read.context import Context
from ingest.read.format_names import (
    ASBENCH,
    AVERAGED,
    BCC,
    BPFTRACE,
    CEPH,
    CHROME,
    DESCRIBED,
    DESCRIBED_HISTOGRAMS,
    HDR,
    HDR_SNAPSHOTS,
    HIST,
    JSON,
    MEMTIER,
    OPERATIONS,
    OTLP,
    PERF,
    PGBENCH,
    PLAIN_JSON,
    PROMETHEUS,
    RAW,
    SAMPLES,
    SMALLFILE,
    SNABB,
    SPANS,
    YCSB,
    YCSB_HISTOGRAM,
)
from ingest.read.sources import Around, Source

if TYPE_CHECKING:
    from ingest.core.events import Events


WHOLE, AGAIN, PIECES = "whole", "again", "pieces"
ROW_LABELS = ("op", "kind", "job", "tag")
STDIN = "stdin"
SMALL = 1 << 18  # a file of at most so many bytes is read with others of its kind where its reader can
FIRST_LINES, BEGINNING, WHOLE_HEAD = 1 << 11, 1 << 13, 1 << 16


class Reader(NamedTuple):
    """How a format is read; each of its modules has one, called READER.

    `locate` returns the source that a file is, with its labels and time zero, or raises InputError with the reason why it is
    refused. `rows` yields its histograms, or `events` its single operations: a format has one of the two. `accepts` decides
    where the test in the table is only a first look. `row_labels` are those that only its rows hold. `grows` says how `watch`
    reads a file that is still written: in PIECES, AGAIN from its beginning, or once it is WHOLE. `folder_is_host` is false for
    files whose folder never stands for a host. `arrow` is set where pyarrow is needed. `many` yields the histograms of many small
    files in one pass, and the numbers of those that are left to `rows`.

    A rejected line of single operations is a sample that the answer lacks, unless its reason is one of `harmless`: of lines that
    hold no operation which completed in the file. Readers of `rows` say themselves what they lack (`missing.RejectedLines`).
    `timed` formats measure service and response times, so that two of them under the same labels hold the same operations twice;
    it is false where a file is told by more than its labels. `by_second` says that `rows` are single operations which the reader
    adds up by the second.
    """

    locate: Callable[[Path, Around], Source]
    rows: Callable[[Path, Context], Iterator[Intervals[Series]]] | None = None
    events: Callable[[Path, Context], Iterator[Events]] | None = None
    accepts: Callable[[Path, bytes], bool] | None = None
    row_labels: tuple[str, ...] = ROW_LABELS
    grows: str = WHOLE
    folder_is_host: Callable[[Path], bool] | None = None
    arrow: bool = False
    harmless: frozenset[str] = frozenset()
    timed: bool = True
    many: Callable[[Sequence[tuple[Path, Context]]], tuple[list[Intervals[Series]], list[int]]] | None = None
    by_second: bool = False


class Format(NamedTuple):
    """One line of the table. `names` and `head` are patterns of a file's name and of its first 64 KiB; either is enough.

    `module` is a module of this package, or `MODULE:NAME` of any: a `Reader` under that name. With `named_only` the first bytes
    count only for a file that the user named, not for one that a folder holds: rows of four numbers may be anything. Only the
    first `reach` bytes are searched: a folder may hold thousands of files of no format. `known_by` and `holds` say it in words,
    for docs/reference/formats.md. The first bytes of a format that is `last` fit files of others, too: all others are asked
    first. `description` is the path of the YAML that a file is read by.
    """

    name: str
    title: str
    module: str
    names: str = ""
    head: bytes = b""
    named_only: bool = False
    reach: int = BEGINNING
    known_by: str = ""
    holds: str = ""
    last: bool = False
    description: str = ""

    def by_name(self, name: str) -> bool:
        """Return whether a file's name, with its folder's and without a compression ending, is one of this format."""
        return bool(self.names) and re.search(self.names, name) is not None

    def by_head(self, path: Path, start: bytes, *, named: bool) -> bool:
        """Return whether the first bytes of a file are those of this format; `named` files were named by the user."""
        if not self.head or (self.named_only and not named) or re.search(self.head, start[: self.reach]) is None:
            return False
        accepts = None if self.description else reader_of(self.name).accepts
        return accepts is None or accepts(path, start)


BY_DESCRIPTION = (DESCRIBED, DESCRIBED_HISTOGRAMS)
INTEGER_ROW = rb"(?m)^[ \t]*\d{1,19}[ \t]*,[ \t]*-?\d{1,20}[ \t]*,"

BPFTRACE_MAP = (
    rb'(?m)^[ \[]*\{\s*"type":\s*"(attached_probes|hist|lhist|printf|time)"'
    rb"|^(@\w*(\[[^\n]*\])?|[^\n]*\]):\s*\n[\[(](\.\.\.|-?\d)"
)
TABLE: list[Format] = [
    Format(
        HIST,
        "fio histogram log",
        "fio.reader.HISTOGRAMS",
        names=r"[^/]_clat_hist(\.\d+)?\.log(\..+)?$",
        head=rb"(?m)^\d{1,13}, ?[012], ?\d+(, ?\d+){19}",
        reach=FIRST_LINES,
        known_by="file name: `PREFIX_clat_hist[.N].log[.HOST]`; or rows of so many bins",
        holds="completion latencies per interval, job and direction",
    ),
    Format(
        RAW,
        "fio latency log",
        "fio.reader.LATENCIES",
        last=True,
        names=r"[^/]_(clat|lat|slat)(\.\d+)?\.log(\..+)?$",
        head=INTEGER_ROW,
        named_only=True,
        known_by="file name: `PREFIX_clat[.N].log[.HOST]`, also `lat`, `slat`; rows of integers in a file that is named itself",
        holds="single I/Os of a job",
    ),
    Format(
        JSON,
        "fio JSON",
        "fio.reader.SUMMARIES",
        head=rb'"fio version"',
        reach=WHOLE_HEAD,
        known_by='content: `"fio version"` (`--output-format=json+`); CBT\'s summary names',
        holds="the whole histogram of a run; with `--status-interval` one per interval",
    ),
    Format(
        AVERAGED,
        "fio latency log of means",
        "fio.reader.AVERAGES",
        known_by="as a fio latency log, with means in its rows (`log_avg_msec`)",
        holds="means over time, without percentiles",
    ),
    Format(
        PLAIN_JSON,
        "fio JSON without bins",
        "fio.reader.TOTALS",
        known_by="fio JSON without bins (`--output-format=json`)",
        holds="count, mean, minimum, maximum of a run, without percentiles",
    ),
    Format(
        SNABB,
        "Snabb timeline",
        "plugins.snabb.timeline",
        names=r"\.timeline$|^engine/timeline$",
        head=rb"\A\x01\x00\x1d\x44",
        known_by="content: its magic number; or a name that ends in `.timeline`",
        holds="events of one process, each with its lag",
    ),
    Format(
        SMALLFILE,
        "smallfile response times",
        "plugins.smallfile",
        names=r"/rsptimes_[^/]*\.csv$",
        known_by="file name `rsptimes_...csv`",
        holds="single operations of a thread",
    ),
    Format(
        YCSB,
        "YCSB raw measurements",
        "plugins.ycsb.RAW_MEASUREMENTS",
        head=rb" latency raw data: op, timestamp\(ms\), latency\(us\)",
        reach=WHOLE_HEAD,
        known_by="content: `latency raw data: op, timestamp(ms), latency(us)`",
        holds="single operations",
    ),
    Format(
        YCSB_HISTOGRAM,
        "YCSB histograms",
        "plugins.ycsb.HISTOGRAM",
        head=rb"(?m)^\[[A-Za-z][\w-]*\], 0, \d+\r?\n\[[A-Za-z][\w-]*\], 1, \d+\r?$",
        reach=WHOLE_HEAD,
        known_by="content: `[READ], 0, 530` and `[READ], 1, 7` (`measurementtype=histogram`)",
        holds="a histogram of each op over the whole run, in whole ms",
    ),
    Format(
        SAMPLES,
        "answers kept by tailboard record sample",
        "plugins.sample",
        head=rb'\A\{"sampled_at":[\d.]+,"record":"',
        known_by='content: `{"sampled_at":..,"record":..` (`tailboard record sample`)',
        holds="histograms of Ceph, Redis, Prometheus, OpenTelemetry, or as a `.yml` says, by poll",
    ),
    Format(
        OTLP,
        "OpenTelemetry metrics",
        "plugins.otlp",
        head=rb'"resourceMetrics"\s*:',
        known_by='content: `{"resourceMetrics":` (file exporter of the Collector, SDKs)',
        holds="histograms per interval or since a start, exponential or with bounds",
    ),
    Format(
        SPANS,
        "OpenTelemetry spans",
        "plugins.otlp.OF_SPANS",
        head=rb'\A\s*\{\s*"resourceSpans"\s*:',
        known_by='content: `{"resourceSpans":` (file exporter of the Collector, SDKs)',
        holds="single operations, and whether they failed",
    ),
    Format(
        PROMETHEUS,
        "Prometheus histograms",
        "plugins.prometheus",
        head=rb'_bucket\{[^\n]*(le|vmrange)="|"resultType"|\{__name__="',
        reach=WHOLE_HEAD,
        known_by="content: `NAME_bucket{...le=...}` (exposition, `promtool tsdb dump`), or an answer of the query API",
        holds="histograms since the start of a process, with bounds; over HTTP also native ones",
    ),
    Format(
        PGBENCH,
        "pgbench transactions",
        "plugins.pgbench",
        names=r"pgbench_log\.\d+(\.\d+)?$",
        head=rb"\A\d+ \d+ (\d+|skipped|failed|serialization|deadlock) \d+ \d{9,10} \d{1,6}\b",
        known_by="content: lines of `pgbench -l`; file name `pgbench_log.PID[.N]`",
        holds="single transactions; with `-R` their response, wait and service time",
    ),
    Format(
        CEPH,
        "Ceph histograms",
        "plugins.ceph",
        head=rb'(?s)"dump"\s*:.*"axes"\s*:',
        reach=WHOLE_HEAD,
        known_by='content: `{"sampled_at": .., "dump": {` and `"axes"`',
        holds="histograms of a daemon since its start, by latency",
    ),
    Format(
        HDR_SNAPSHOTS,
        "HdrHistogram snapshots",
        "plugins.hdr_snapshots",
        head=rb'"SignificantFigures"\s*:',
        known_by='content: `"SignificantFigures":` and `"Counts":` (cockroach workload)',
        holds="histograms per interval and op",
    ),
    Format(
        MEMTIER,
        "memtier_benchmark JSON",
        "plugins.memtier",
        head=rb'(?s)\A\s*[\[{].*"(ALL STATS|BEST RUN RESULTS|run information)"\s*:',
        reach=WHOLE_HEAD,
        known_by='content: JSON with `"run information":` or `"ALL STATS":` (`--json-out-file`)',
        holds="a histogram of each command over the whole run",
    ),
    Format(
        ASBENCH,
        "asbench histograms",
        "plugins.asbench",
        head=rb"(?m)^(read|write|udf)_hist(:\r?$| \d{4}-\d\d-\d\dT)",
        reach=WHOLE_HEAD,
        known_by="content: `read_hist:` or `write_hist 2026-..` (`asbench --output-file`)",
        holds="histograms per period and op",
    ),
    Format(
        BPFTRACE,
        "bpftrace histograms",
        "plugins.bpftrace",
        head=BPFTRACE_MAP,
        known_by='content: `@NAME:` and lines `[16, 32)  5 |@@ |`; with `-f json` `{"type": "hist"`',
        holds="histograms since the start of the script, or since they were cleared",
    ),
    Format(
        BCC,
        "bcc histograms",
        "plugins.bcc",
        head=rb"(?m)^ +[nmu]?secs +: count +distribution",
        known_by="content: a line `usecs : count distribution` (`biolatency -T` and other tools of bcc)",
        holds="histograms of the intervals between two prints",
    ),
    Format(
        PERF,
        "perf script",
        "plugins.perf",
        head=rb": ",
        known_by="content: a sample with a time stamp, or its header",
        holds="block requests and system calls; moments of samples",
    ),
    Format(
        CHROME,
        "Chrome trace",
        "plugins.chrome",
        head=rb'"ph"\s*:',
        reach=WHOLE_HEAD,
        known_by='content: an array, or `{"traceEvents": [`, of objects with `"ph"`',
        holds="single operations",
    ),
    Format(
        HDR,
        "HdrHistogram log",
        "hdr.log",
        head=rb"(?m)^#\[|StartTimestamp|HIST|DHIS",
        reach=FIRST_LINES,
        known_by="content: the format's comments or legend, or a line that ends in a histogram",
        holds="latencies per interval, op and kind",
    ),
    Format(
        OPERATIONS,
        "operation log",
        "operation_log",
        last=True,
        head=rb"\A[^\n]*,",
        known_by="content: a first line that names a start and an end or latency",
        holds="single operations; with a schedule their response and wait time",
    ),
    Format(
        DESCRIBED,
        "file described in YAML",
        "described.operations",
        known_by="never by itself: `--input-format FILE.yml`",
        holds="single operations, as the `.yml` says",
    ),
    Format(
        DESCRIBED_HISTOGRAMS,
        "histograms described in YAML",
        "described.histograms",
        known_by="never by itself: `--input-format FILE.yml`, or the name of a preset",
        holds="histograms, as the `.yml` says",
    ),
]


GROUP = "tailboard.formats"


@cache
def described() -> tuple[Format, ...]:
    """Return the formats that are descriptions which come with tailboard, and say by what a file is known."""
    from ingest.read.described.description import PRESETS, presets

    entries = (_described(name, PRESETS / f"{name}.yml") for name in presets())
    return tuple(entry for entry in entries if entry.head)


def _described(name: str, path: Path) -> Format:
    """Return the format that a description is; UsageError where it is none."""
    from ingest.read.described.description import description_of, yaml_in

    entries = yaml_in(path)
    description_of(str(path))
    shape = "described.histograms" if "histogram" in entries else "described.operations"
    title, head, known_by, holds = (str(entries.get(key, "")) for key in ("title", "head", "known_by", "holds"))
    return Format(name, title or name, shape, head=head.encode(), known_by=known_by, holds=holds, description=str(path))


@cache
def plugged() -> tuple[tuple[Format, ...], tuple[str, ...]]:
    """Return the formats of other distributions, and a sentence for each that cannot be taken.

    An entry point of the group `tailboard.formats` is a `Format`, or the path of a description.
    """
    from importlib.metadata import entry_points

    found: dict[str, Format] = {}
    wrong: list[str] = []
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: entry.name):
        try:
            said = entry.load()
            one = said._replace(name=entry.name) if isinstance(said, Format) else _described(entry.name, Path(said))
            if entry.name in found or any(line.name == entry.name for line in (*TABLE, *described())):
                raise ValueError("there is a format of this name")
            re.compile(one.head), re.compile(one.names)
            found[entry.name] = one
        except Exception as error:  # noqa: BLE001  # whatever the code of others raises, all other formats are read
            dist = entry.dist.name if entry.dist is not None else entry.value
            wrong.append(f"the format {entry.name} of {dist} cannot be used: {error}")
    return tuple(found.values()), tuple(wrong)


def all_formats() -> Iterator[Format]:
    """Yield all formats in the order in which they are asked whether a file is theirs; the later ones are loaded when asked."""
    yield from (line for line in TABLE if not line.last)
    yield from described()
    yield from plugged()[0]
    yield from (line for line in TABLE if line.last)


@cache
def format_of(name: str) -> Format:
    """Return the line of a format; KeyError where there is none of that name."""
    for line in (line for some in (lambda: TABLE, described, lambda: plugged()[0]) for line in some()):
        if line.name == name:
            return line
    raise KeyError(name)


def names() -> list[str]:
    """Return the formats that `--input-format` takes by name, but for descriptions."""
    return [line.name for line in (*TABLE, *plugged()[0]) if line.name not in BY_DESCRIPTION]


def titles() -> str:
    """Return what the formats are called, for a sentence."""
    return ", ".join(line.title for line in (*TABLE, *described(), *plugged()[0]) if line.name not in BY_DESCRIPTION)


@cache
def _reader(place: str) -> Reader:
    """Return the reader at a place: a module below this package, a name in it in capitals, or MODULE:NAME."""
    module, _, name = place.partition(":")
    if not name:
        module, _, name = place.rpartition(".") if place.rpartition(".")[2].isupper() else (place, "", "READER")
        module = f"ingest.read.{module}"
    reader: Reader = getattr(import_module(module), name)
    return reader


@cache
def reader_of(name: str) -> Reader:
    """Return the reader of a format; its module is imported when it is asked for first."""
    return _reader(format_of(name).module)


def is_timed(name: str) -> bool:
    """Return whether a format measures service and response times under its labels; not one that a later version has stored."""
    try:
        return reader_of(name).timed
    except KeyError:
        return False


def single_events(source: Source) -> bool:
    """Return whether a file holds single operations: their moments are known, so any step can be asked."""
    return reader_of(source.format).events is not None


def row_labels(source: Source) -> tuple[str, ...]:
    """Return the labels that only the rows of a file may show: whether they match is not known before it is read."""
    description, host = source.context.description, source.context.series.host
    named = tuple(name for name in reader_of(source.format).row_labels if name != "host" or not host)  # one that is known counts
    described = () if description is None else (*description.labels, *description.fixed)
    return (*named, *described)
