"""What surrounds a source: its labels, its start and where that was taken from, and what the tool itself reported of the run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from ingest.core.coverage import WholeRun
from ingest.core.errors import InputError
from ingest.core.intervals import Histogram
from ingest.core.labels import Series
from ingest.core.units import OUT_OF_RANGE, is_instant
from ingest.core.values import Value
from ingest.read.account import Account

if TYPE_CHECKING:
    from ingest.read.described.description import Description, HistogramDescription


# What surrounds a source: its labels, its start and where that was taken from, and what the tool itself reported.


EXPECTED, RATE, INTENDED = "tailboard.expected_interval_ns", "tailboard.rate", "tailboard.intended_column"
FAILED_LABELS = "tailboard.failed"  # a line for each label=glob
TSC_HZ = "tailboard.tsc_hz"
FORM = "tailboard.form"  # of a source whose tool wrote the same operations in another form, too: the ops in it
SPANS = "tailboard.spans"  # of each series of a source: whether its histograms are native, from when to when it has polls
SHADOWING = "tailboard.shadowing"  # of a source of polls: such spans of other sources, which are taken for its own
COARSEST = "tailboard.coarsest"  # of a log that jobs of unlike log_hist_coarseness share: the largest of them
KEEP_IDLE = "tailboard.keep_idle"
OWN_STAMPS = "time stamps in the file"  # where a start was taken from: each record says its real time, and --t0 is not for it
YEAR_NS = 365 * 86_400 * 10**9  # stamps from a year after 1970 on are real times, others count from a start
NOT_REAL = "a time near 1970 in a log of real times: a line that was cut, or a clock that was not set"
NOT_RELATIVE = "a real time in a log of times since its start: another clock"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TimeZero(Value):
    """The epoch ns that a source's relative stamps count from; None where they are unknown.

    `origin` says where they were taken from. InputError for a time that cannot be counted with.
    """

    epoch_ns: int | None = None
    origin: str = "unknown"

    def __post_init__(self) -> None:
        if self.epoch_ns is not None and not is_instant(self.epoch_ns):
            raise InputError(f"its start ({self.origin}) is {OUT_OF_RANGE}: give another with --t0")


class Part(NamedTuple):
    """What a run takes of a source of several, in ns: rows that overlap (begin, end), with their middle in (after, before]."""

    begin_ns: int
    end_ns: int
    after_ns: int
    before_ns: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Context(Value):
    """All that a reader needs beside the file. `account` is where it counts what it did.

    `jobs` are the tool's own summaries, by (op, kind), of the jobs whose measurements the file holds: one for an ordinary
    log, several where jobs share a log, none where the tool's output is not at hand. `spans` say from when to when, in ns of
    the run, an (op, kind) ran that did not run all the time. `segments` counts, by op, how often
    time begins anew in a shared log. Where the tool reported only sums of job groups, `grouped` is the number of jobs in
    them and `group` the sums that the log's samples are counted in; one log of them carries these as its `jobs`, with the other
    logs as `siblings`, and in `absent` the numbers of the jobs that no log is there of. The jobs of a sum differ in the labels
    `summed_over`. `stages` says of a log that jobs share which did not begin together from when to when each of them ran, ()
    where that is unknown. `of_no_entry` says that the tool counts nothing of a log beside its output. `offset_ns` is added to
    stamps, `restart_ns` to those of segments after the first (a latency_target reset begins time anew).
    `version` is that of the tool, `since` the earliest it can be where only that is known.
    `digits` 0 bins single events as finely as fio, `shadowed` are the ops that another source of the same I/Os is taken for,
    `description` gives the columns of a file that no reader knows. Of a log of lines that is still written, the first `upto`
    bytes are read: up to the end of its last whole line.
    `layer` is where the user said that all of it was timed; empty leaves that to the reader. `part` is what is taken of its rows,
    None for all. `host_alias` are other names of hosts that rows name.
    Of a file of fio's JSON, `left_out` are the first and last numbers of the documents of runs that other files are read for, and
    `described` the averaged logs of the other runs by the number of their first document.
    `options` are the tool's own, and under the names above what the user said: how requests were sent, how fast a counter ran.
    """

    series: Series = field(default_factory=Series)
    zero: TimeZero = field(default_factory=TimeZero)
    offset_ns: int = 0
    version: tuple[int, ...] | None = None
    since: tuple[int, ...] | None = None
    options: Mapping[str, str] = field(default_factory=dict)
    layer: str = ""
    through_client: bool = False
    jobs: tuple[Job, ...] = ()
    runtime_ns: int = 0
    spans: Mapping[tuple[str, str], tuple[int, int]] = field(default_factory=dict)
    segments: Mapping[str, int] = field(default_factory=dict)
    grouped: int = 0
    group: tuple[Job, ...] = ()
    of_no_entry: bool = False
    siblings: tuple[Path, ...] = ()
    summed_over: tuple[str, ...] = ("job",)
    described: Mapping[int, tuple[Path, ...]] = field(default_factory=dict)
    left_out: tuple[tuple[int, int], ...] = ()
    absent: tuple[int, ...] = ()
    stages: tuple[tuple[int, int], ...] | None = None
    restart_ns: int = 0
    recorded_unit_ns: int | None = None
    digits: int = 0
    shadowed: frozenset[str] = frozenset()
    description: Description | HistogramDescription | None = None
    upto: int | None = None
    part: Part | None = None
    host_alias: Mapping[str, str] = field(default_factory=dict)
    account: Account = field(default_factory=Account)


# What a tool itself reported of a whole run, beside its logs; a call that reads no such report does without this module.


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Summary(Value):
    """What the tool itself reports of one job (or group of jobs), op and kind, over the whole run.

    `bins` is None unless the tool wrote its histogram (fio json+). `percentiles` are (text, ns) as the tool printed them. `bytes`
    are those that all its I/Os of the op moved, None where the tool does not say. `span_ns` is from when to when of its job's
    time the op ran, None where that is all of it. `entry` tells it from all other summaries: what is read is held against it
    (`core/stated.py`). `unbinned` is how many samples the tool counts more than its bins hold, in a file that was damaged.
    """

    count: int
    runtime_ns: int
    min_ns: int
    max_ns: int
    mean_ns: float
    percentiles: tuple[tuple[str, int], ...] = ()
    bins: Histogram | None = None
    bytes: int | None = None
    span_ns: tuple[int, int] | None = None
    entry: str = ""
    unbinned: int = 0

    def whole_run(self, series: Series) -> WholeRun:
        """Return this of a series, as the account of its source keeps it."""
        numbers = (self.count, self.min_ns, self.max_ns, self.mean_ns, self.percentiles)
        return WholeRun(series, *numbers, has_bins=self.bins is not None, bytes=self.bytes)


Job = Mapping[tuple[str, str], Summary]
