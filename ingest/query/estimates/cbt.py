"""What CBT's own post-processing reports for the same logs (time series of 2026), window by window.

1. Of each fio process (volume) the rows of its `_clat` logs are taken as they stand, whether they are averaged or one for
   each I/O; rows of one ms and direction are added.
2. A percentile of a second is the interpolated quantile of these rows, its mean their sum.
3. Over the volumes of a host: the mean of those quantiles, weighted by the sum of the rows of the `_iops` logs.
4. Hosts are not combined: the one that is read last takes the place of the others.

CBT takes seconds since the start of each fio and has p50, p95, p99; here the formulas are held against the exact windows that
were asked for (sums are then those of a second on average), and any percentile. Which host is last is up to the file system:
here it is the last by name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from ingest.core.errors import InputError, plural
from ingest.core.grid import window_start
from ingest.core.intervals import Int
from ingest.core.ranks import Percentile, extremes
from ingest.core.series import OPS, Group, Series
from ingest.query.estimates.rows import Estimate, Float, Places, Sorted, means_of
from ingest.query.files import Files
from ingest.query.question import Answer, Question
from ingest.query.summed import run_starts
from ingest.query.table import Table
from ingest.read import read
from ingest.read.account import Account
from ingest.read.fio import time_series
from ingest.read.fio.time_series import LATENCIES, RATES, beside
from ingest.read.format_names import HIST, RAW
from ingest.read.sources import COMPLETION, Source
from ingest.read.text import COMPRESSED

MS = 1_000_000
SECOND = 1e9
NAME = "cbt"
COMPRESSED_TIMES = 16

Process = tuple[str, str, str, str]
Find = Callable[[Sequence[Series], Int, Int], Int]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows of one process: the table's row of each, its ms, direction and latency."""

    at: Int
    ms: Int
    direction: Int
    value: Float

    @property
    def summed(self) -> tuple[Int, Float]:
        """Return place and value of rows with those of equal ms and direction added."""
        order = np.lexsort((self.direction, self.ms, self.at))
        at, ms, direction, value = self.at[order], self.ms[order], self.direction[order], self.value[order]
        same = (at[1:] == at[:-1]) & (ms[1:] == ms[:-1]) & (direction[1:] == direction[:-1])
        new = np.flatnonzero(np.append(True, ~same)[: len(at)])
        return at[new], np.add.reduceat(value, new) if len(new) else value


def _together(parts: Sequence[_Rows]) -> _Rows:
    none = np.zeros(0, np.int64)
    return _Rows(
        np.concatenate([none, *(part.at for part in parts)]),
        np.concatenate([none, *(part.ms for part in parts)]),
        np.concatenate([none, *(part.direction for part in parts)]),
        np.concatenate([np.zeros(0), *(part.value for part in parts)]),
    )


@dataclass(slots=True)
class _Tally:
    """What the notes are made of: how many logs were read as what, and why others were not."""

    logs: int = 0
    made: int = 0
    counted: int = 0
    faults: Counter[str] = field(default_factory=Counter)

    def notes(self) -> Iterator[str]:
        """Yield what a reader of the numbers must know."""
        for reason, count in sorted(self.faults.items()):
            yield f"{NAME}: {count} {plural(count, 'log')} left out: {reason}"
        if self.made:
            yield (
                f"{NAME}: {self.made} of {self.logs} jobs have no _clat log beside their histogram log: their rows are the "
                "means of its intervals, as log_avg_msec of that width would have logged them"
            )
        if self.counted:
            yield f"{NAME}: {self.counted} of {self.logs} jobs have no _iops log: weighted by their I/Os instead"


def cbt(files: Files, question: Question, answer: Answer, table: Table, places: Places, wanted: Sequence[Percentile]) -> Estimate:
    """Return what CBT reports for each row of a table; empty where the sources are not logs of fio."""
    tally = _Tally()
    processes = _processes(files, question, answer, tally)
    find = _finder(files, question, answer, places)
    names = ["mean", *(percentile.name for percentile in wanted)]
    columns = {name: np.full(places.size, np.nan) for name in names}
    hosts = sorted({process[:2] for process in processes})
    several = False
    for host in hosts:
        values = _of_host([sources for process, sources in processes.items() if process[:2] == host], find, places, wanted, tally)
        groups = np.unique(places.group[_there(values)])
        replaced = np.isin(places.group, groups)
        several |= bool((_there(columns) & replaced).any())
        for name in names:
            columns[name] = np.where(replaced, values[name], columns[name])
    columns["mean"] /= np.asarray(table.columns["end_ns"] - table.columns["start_ns"], np.float64) / SECOND
    notes = [*tally.notes()]
    if several:
        notes.append(f"{NAME}: hosts are not combined: of each group the last by name is shown, as CBT keeps the last it reads")
    if not processes:
        notes.append(f"{NAME}: cannot be computed here: needs logs of fio, of completion latency (--where kind=completion)")
    return Estimate(NAME, columns, tuple(notes))


def effort(files: Files, question: Question) -> int | None:
    """Return about how many bytes of `_clat` logs `cbt` reads, compressed ones as what they hold; None where one is missing."""
    sources = [source for process in _processes(files, question, None, _Tally()).values() for source in process]
    paths = [source.path if source.format == RAW else beside(source.path, LATENCIES) for source in sources]
    known = [path for path in paths if path is not None]
    if not known or len(known) < len(files.selected(question)):
        return None
    return sum(path.stat().st_size * (COMPRESSED_TIMES if path.suffix in COMPRESSED else 1) for path in known)


def _there(columns: dict[str, Float]) -> np.ndarray[tuple[int, ...], np.dtype[np.bool_]]:
    return ~np.isnan(columns["mean"])


def _processes(files: Files, question: Question, answer: Answer | None, tally: _Tally) -> dict[Process, list[Source]]:
    """Return the sources that are logs of fio's completion latencies, by (run, host, volume, process)."""
    processes: dict[Process, list[Source]] = {}
    for source in files.selected(question):
        series = source.context.series
        if source.format not in (HIST, RAW):
            tally.faults[f"{source.format} is not a log that CBT reads"] += 1
        elif series.kind != COMPLETION or (answer is not None and COMPLETION not in answer.kind.split(", ")):
            continue
        else:
            processes.setdefault((series.run, series.host, series.volume, series.process), []).append(source)
    return processes


def _finder(files: Files, question: Question, answer: Answer, places: Places) -> Find:
    """Return the function that finds the table's row of values of some series (by code) that are stamped at some ns."""
    key = question.key(files.found.labels)
    starts = run_starts(files.selected(question))

    def find(series: Sequence[Series], codes: Int, stamps_ns: Int) -> Int:
        groups: list[Group | None] = []
        for stream in series:
            group = key(stream)
            labels = None if group is None else dict(zip(("run", "kind", *question.by), group, strict=True))
            groups.append(None if labels is None else tuple(labels[name] for name in answer.by))
        window = window_start(stamps_ns, places.step_ns) if places.step_ns else stamps_ns
        at = places.rows(groups, codes, window)
        start = starts[series[0].run]
        begin = question.begin.epoch_ns(start) if question.begin else None
        end = question.end.epoch_ns(start) if question.end else None
        inside = np.ones(len(at), np.bool_)
        if begin is not None:
            inside &= stamps_ns > begin
        if end is not None:
            inside &= stamps_ns <= end
        return np.where(inside, at, -1)

    return find


def _of_host(
    processes: Sequence[Sequence[Source]], find: Find, places: Places, wanted: Sequence[Percentile], tally: _Tally
) -> dict[str, Float]:
    """Return the means over the processes of a host, weighted by their rates."""
    names = ["mean", *(percentile.name for percentile in wanted)]
    weighted, weights = {name: np.zeros(places.size) for name in names}, np.zeros(places.size)
    plain: dict[str, list[tuple[Int, Float]]] = {name: [] for name in names}
    for sources in processes:
        rows, rate = _of_process(sources, find, places.size, tally)
        at, values = rows.summed
        ordered = Sorted.of(at, values, places.size)
        columns = {
            "mean": np.full(places.size, np.nan),
            **{percentile.name: ordered.interpolated(percentile) for percentile in wanted},
        }
        columns["mean"][ordered.rows] = np.bincount(at, weights=values, minlength=places.size)[ordered.rows]
        there = np.flatnonzero(_there(columns))
        weights[there] += rate[there]
        for name in names:
            weighted[name][there] += columns[name][there] * rate[there]
            plain[name].append((there, columns[name][there]))
    averages = {}
    for name in names:
        at = np.concatenate([np.zeros(0, np.int64), *(where for where, _ in plain[name])])
        means = means_of(at, np.concatenate([np.zeros(0), *(values for _, values in plain[name])]), places.size)
        np.divide(weighted[name], weights, out=means, where=weights > 0)
        averages[name] = means
    return averages


def _of_process(sources: Sequence[Source], find: Find, size: int, tally: _Tally) -> tuple[_Rows, Float]:
    """Return the rows of all jobs of a process, and the sum of its rates at each row of the table."""
    parts: list[_Rows] = []
    rate = np.zeros(size)
    seen: set[Path] = set()
    for source in sources:
        path = source.path if source.format == RAW else beside(source.path, LATENCIES)
        if path in seen:
            continue
        tally.logs += 1
        if path is not None:
            seen.add(path)
        try:
            made, count = _logged(source, path, find, size) if path else (None, None)
            rates = beside(source.path, RATES)
            if made is None or (count is None and rates is None):
                tally.made += made is None
                held, counted = _of_intervals(source, find, size)
                made, count = made or held, counted if count is None else count
            if rates is not None:
                count = _rates(source, rates, find, size)
            tally.counted += rates is None
            rate += 0 if count is None else count
        except InputError as error:
            tally.faults[error.reason] += 1
            continue
        parts.append(made)
    return _together(parts), rate


def _series_of(source: Source) -> list[Series]:
    return [source.context.series.replaced(op=op) for op in OPS]


def _placed(source: Source, rows: time_series.Rows, find: Find) -> Int:
    """Return the table's row of each row of a log, -1 where it has none."""
    context = source.context
    base = (0 if rows.unix else context.zero.epoch_ns or 0) + context.offset_ns
    known = (rows.direction >= 0) & (rows.direction < len(OPS))
    at = find(_series_of(source), np.where(known, rows.direction, 0), rows.stamp_ms * MS + base)
    return np.where(known, at, -1)


def _logged(source: Source, path: Path, find: Find, size: int) -> tuple[_Rows, Float | None]:
    """Return the rows of a `_clat` log, and how many I/Os they are where each is one."""
    rows = time_series.rows_of(path, source.context, latencies=True)
    at = _placed(source, rows, find)
    kept = np.flatnonzero(at >= 0)
    logged = _Rows(at[kept], rows.stamp_ms[kept], rows.direction[kept], rows.value[kept].astype(np.float64))
    return logged, None if rows.averaged else np.bincount(logged.at, minlength=size).astype(np.float64)


def _rates(source: Source, path: Path, find: Find, size: int) -> Float:
    """Return the sum of the rows of an `_iops` log at each row of the table."""
    rows = time_series.rows_of(path, source.context, latencies=False)
    at = _placed(source, rows, find)
    kept = np.flatnonzero(at >= 0)
    return np.bincount(at[kept], weights=rows.value[kept], minlength=size).astype(np.float64)


def _of_intervals(source: Source, find: Find, size: int) -> tuple[_Rows, Float]:
    """Return the means of a histogram log's intervals as rows, and how many I/Os they hold; of a raw log how many it has."""
    own = replace(source, context=replace(source.context, account=Account(path=str(source.path))))
    parts: list[_Rows] = []
    count = np.zeros(size)
    for chunk in read(own):
        rows = chunk.take(np.flatnonzero(chunk.samples > 0))
        series = rows.table
        at = find(series, rows.series, rows.end_ns) if len(rows) else rows.series
        kept = np.flatnonzero(at >= 0)
        rows, at = rows.take(kept), at[kept]
        direction = np.array([OPS.index(stream.op) if stream.op in OPS else 0 for stream in series], np.int64)[rows.series]
        parts.append(_Rows(at, rows.end_ns // MS, direction, extremes(rows)[2]))
        count += np.bincount(at, weights=rows.samples, minlength=size)
    return _together(parts), count
