"""The nouns of discovery: how files are to be read, the sources that were found, and the files that were not taken."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ingest.read.context import EXPECTED, INTENDED, RATE, TSC_HZ, Context
from ingest.read.description import Description
from ingest.read.text import COMPRESSED, last_line_end

HIST, JSON, HDR, OPERATIONS = "fio-hist", "fio-json", "hdr-log", "operations"
RAW, SMALLFILE, YCSB, PERF, DESCRIBED = "fio-raw", "smallfile", "ycsb-raw", "perf-script", "described"
CHROME = "chrome-trace"
AVERAGED, PLAIN_JSON = "fio-averaged", "fio-plain-json"
SNABB = "snabb"
SINGLE_EVENTS = (RAW, SMALLFILE, YCSB, PERF, CHROME, DESCRIBED, SNABB)
FORMATS = (HIST, RAW, JSON, HDR, OPERATIONS, SMALLFILE, YCSB, PERF, CHROME, SNABB)
COMPLETION = "completion"
ROW_LABELS = ("op", "kind", "job", "tag")
TOLD_BY_ROWS = {PERF: ("process", "volume"), CHROME: ("process",)}
PREFER_HIST, PREFER_RAW = "hist", "raw"


@dataclass(frozen=True, slots=True)
class ReadOptions:
    """How files are to be read: what the user said of them. `t0` is epoch ns, or "mtime".

    `rate` is the schedule of requests per second as a decimal number, `expected_interval_ns` that of a histogram's samples.
    `digits` 0 bins single events as finely as fio; `prefer` names the log to take where a histogram and a raw log hold the
    same I/Os; `keep_idle` takes samples of idle CPUs, too; `description` tells the columns of files that no reader knows.
    `tsc_hz` is the frequency of a timeline's counter, 0 where its own clock tells. `growing` logs of single operations are still
    written: they end with their last whole line.
    """

    run: str = ""
    input_format: str = ""
    host: str = ""
    host_alias: Mapping[str, str] = field(default_factory=dict)
    host_offset_ns: Mapping[str, int] = field(default_factory=dict)
    t0: int | str | None = None
    recorded_unit_ns: int | None = None
    expected_interval_ns: int = 0
    rate: str = ""
    intended_column: str = ""
    digits: int = 0
    prefer: str = PREFER_HIST
    keep_idle: bool = False
    fio_version: tuple[int, ...] | None = None
    description: Description | None = None
    tsc_hz: int = 0
    growing: bool = False

    @property
    def told(self) -> Mapping[str, str]:
        """Return what the user said of how requests were sent, as options of a context."""
        words = {
            EXPECTED: str(self.expected_interval_ns or ""),
            RATE: self.rate,
            INTENDED: self.intended_column,
            TSC_HZ: str(self.tsc_hz or ""),
        }
        return {name: value for name, value in words.items() if value}


    def upto(self, path: Path) -> int | None:
        """Return up to where a log of single operations is read: None for all of it, 0 of one that has gone meanwhile."""
        if not self.growing or path.suffix in COMPRESSED:
            return None
        try:
            return last_line_end(path)
        except OSError:
            return 0


@dataclass(frozen=True, slots=True)
class Source:
    """A file that will be read: its format, its context, and the median width of its first rows (0 if unknown)."""

    path: Path
    format: str
    context: Context
    width_ns: int = 0
    layout: str = ""

    @property
    def identity(self) -> str:
        """Return what the source is, whatever it is called: its labels and format."""
        series = self.context.series
        kind = f":{series.kind}" if self.format in (RAW, AVERAGED) else ""  # one job has raw logs of several kinds
        return f"{self.format}{kind}|{series.host}|{series.volume}|{series.job}|{series.process}"

    @property
    def single_events(self) -> bool:
        """Return whether the file holds single operations: their moments are known, so any step can be asked."""
        return self.format in SINGLE_EVENTS

    @property
    def row_labels(self) -> tuple[str, ...]:
        """Return the labels that only the rows of the file may tell: whether they match is not known before it is read."""
        told = self.context.description
        described = () if told is None else (*told.labels, *told.fixed)
        return (*ROW_LABELS, *TOLD_BY_ROWS.get(self.format, ()), *described)

    @property
    def twins(self) -> tuple[str, ...]:
        """Return the identities of sources that would hold the same I/Os: the other log of a histogram and a raw log."""
        series = self.context.series
        labels = f"{series.host}|{series.volume}|{series.job}|{series.process}"
        if self.format == RAW and series.kind == COMPLETION:
            return (f"{HIST}|{labels}",)
        return (f"{RAW}:{COMPLETION}|{labels}",) if self.format == HIST else ()


@dataclass(frozen=True, slots=True)
class Skipped:
    """A file that is not read: `action` is skipped, refused, shadowed, or context where its facts are used."""

    path: Path
    action: str
    reason: str
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Found:
    """All sources and all other files under the given paths; `labels` holds the settings of each run."""

    sources: tuple[Source, ...]
    skipped: tuple[Skipped, ...]
    labels: Mapping[str, Mapping[str, str]]
