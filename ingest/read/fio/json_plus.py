"""fio's JSON output: the summary of a finished run, and the documents that a running fio appends.

    {
      "fio version" : "fio-3.33",
      "timestamp_ms" : 1795207146164,
      "global options" : { "write_hist_log" : "a", "log_hist_msec" : "1000" },
      "jobs" : [ { "jobname" : "j", "job_runtime" : 4501, "job options" : { ... },
          "read" : { "runtime" : 4500, "total_ios" : 900,
            "clat_ns" : { "min" : 41, "max" : 14539, "mean" : 1217.155556, "N" : 900,
              "percentile" : { "99.000000" : 2960 }, "bins" : { "41" : 1, "42" : 2, "14528" : 1 } } } } ]
    }

`--output-format=json+` adds `bins`: midpoint -> count, non-zero ones only, so the whole histogram of a job and direction.
With `--status-interval=1` fio appends one complete cumulative document a second to `--output`: `dumps` makes intervals
of them. `fio --client` writes `client_stats` with a host name each instead of `jobs`.

Traps: text may stand around the documents; `timestamp` is the end of a standalone run but the start of a --client run;
`bins` keys are ns since 2.99, us in 2.20 and 2.21, bin numbers with zeros from 2.2.12 to 2.19; `unified_rw_reporting=1` has
`mixed` in place of the directions, `both` has it beside them, where it repeats them, as the sum "All clients" does.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from ingest.core.errors import InputError
from ingest.core.intervals import Histogram, Int
from ingest.core.layout import fio_layout
from ingest.core.series import MIXED, OPS
from ingest.read.context import TimeZero
from ingest.read.fio import clock, starts
from ingest.read.fio.texts import NAMED, texts
from ingest.read.summary import Summary
from ingest.read.text import blocks

KINDS = {"clat": "completion", "lat": "total", "slat": "submission"}
NANOSECONDS = fio_layout(29, 1)
MICROSECONDS = fio_layout(19, 1000)
MS = 1_000_000
LARGEST, MOST_BYTES = 2**43, 2**53
TOGETHER_MS = 1000
ALL_CLIENTS = "All clients"
UNVERIFIED, WRITES_ALONE = ("0", "none", "null"), ("write", "randwrite")
OWN_KEYS = "FIO_"  # begin the keys of a histogram that are no bins: versions before 3 wrote its geometry among them


@dataclass(frozen=True, slots=True)
class Job:
    """One entry of `jobs` or `client_stats`: its options (globals included) and summaries by (op, kind).

    `runtime_ms` is how long it ran: its longest direction, or both of them where what was written was then read and verified
    (`_course`). `elapsed_s` is how long the whole run took, rounded up, 0 where that is not printed (--client).
    """

    name: str
    group: int
    host: str
    options: Mapping[str, str]
    runtime_ms: int
    start_ms: int | None
    summaries: Mapping[tuple[str, str], Summary]
    elapsed_s: int = 0


@dataclass(frozen=True, slots=True)
class Document:
    """One complete JSON document of fio. `timestamp_ms` is whole to `grain_ms`; it is 0 where the document says none."""

    version: tuple[int, ...]
    timestamp_ms: int
    through_client: bool
    jobs: tuple[Job, ...]
    line: int
    grain_ms: int = 1

    def zero_ms(self, job: Job) -> tuple[int, str] | None:
        """Return the epoch ms that the job's relative stamps count from, and its origin; None where that cannot be determined.

        Without job_start (before 3.36) the end of the run less the longest runtime of the job's group: jobs of one group
        start together, and fio writes the time stamp last, after its logs (measured 15 to 350 ms late with 3.33). Where
        jobs began one after another (stonewall, startdelay, wait_for, ramps) the run is played again.
        """
        if job.start_ms and clock.real_clock(job.options, "job_start_clock_id"):
            return job.start_ms, "fio JSON job_start"
        jobs, entries = self._played_with(job)
        if not self.timestamp_ms:
            return None
        if starts.staged(entries):
            plan = starts.plan_of(entries, job.elapsed_s)
            if plan is None:
                return None
            zero = plan.zeros_ms[next(number for number, other in enumerate(jobs) if other is job)]
            if self.through_client:
                return self.timestamp_ms + zero, starts.ONE_AFTER_ANOTHER_CLIENT
            return self.timestamp_ms - plan.end_ms + zero, starts.ONE_AFTER_ANOTHER
        if self.through_client:
            return self.timestamp_ms + entries[0].ramp_ms, "fio --client timestamp (1 s)"
        runtime = max(entry.runtime_ms for entry in entries)
        return (self.timestamp_ms - runtime, "fio JSON timestamp - runtime") if runtime else None

    def zero_of(self, jobs: Sequence[Job]) -> TimeZero:
        """Return the start of a log that these jobs share; unknown, with the reason if it can be given, where it has none."""
        zeros = [self.zero_ms(job) for job in jobs]
        known = [zero for zero in zeros if zero is not None]
        if len(known) < len(zeros):
            staged = any(starts.staged(self._played_with(job)[1]) for job in jobs)
            return TimeZero(None, clock.UNPLACED) if self.timestamp_ms and staged else TimeZero()
        moments = [zero for zero, _ in known]
        if max(moments) - min(moments) > TOGETHER_MS:
            return TimeZero(None, clock.SHARED)
        return TimeZero(known[0][0] * MS, known[0][1])

    def _played_with(self, job: Job) -> tuple[list[Job], tuple[starts.Entry, ...]]:
        """Return the jobs of the fio process of a job, and what starts of jobs are worked out from."""
        jobs = [other for other in self.jobs if other.host == job.host]
        return jobs, tuple(starts.entry_of(each.name, each.group, each.runtime_ms, each.options) for each in jobs)


def _whole(value: Any) -> int:
    """Return a number of ns, ms or samples; ValueError where no fio can have counted it."""
    number = int(value)
    if not 0 <= number < LARGEST:
        raise ValueError(f"{value!r} is no number that fio counts")
    return number


def _all_whole(numbers: Sequence[int]) -> Int:
    """Return numbers of ns or samples; ValueError as `_whole`."""
    for extreme in (min(numbers, default=0), max(numbers, default=0)):
        _whole(extreme)
    return np.array(numbers, np.int64)


def documents(path: Path, rejected: list[tuple[str, int]] | None = None) -> Iterator[Document]:
    """Yield the fio documents of a file in order; other text is skipped, a broken document goes to `rejected`."""
    yield from documents_in(blocks(path), path, rejected if rejected is not None else [])


def documents_in(
    text: Iterable[memoryview | bytes], path: Path, bad: list[tuple[str, int]], lines_before: int = 0
) -> Iterator[Document]:
    """Yield the fio documents of blocks of whole lines, which `lines_before` others precede."""
    for line, text_of in texts(text, path, bad, lines_before):
        try:
            values: list[Any] = [orjson.loads(text_of)]
        except orjson.JSONDecodeError as error:
            values = list(_one_after_another(text_of))
            if not values:
                bad.append((f"not JSON ({error})", line))
                continue
        found = list(_of_fio(values))
        if not found:
            bad.append(('JSON, but not of fio (no "fio version")', line))
            continue
        places = [line + text_of.count(b"\n", 0, match.start()) for match in NAMED.finditer(text_of)] if len(found) > 1 else []
        for raw, place in zip(found, places if len(places) == len(found) else [line] * len(found), strict=True):
            try:
                yield _document(raw, place)
            except (KeyError, TypeError, ValueError, AttributeError, OverflowError) as error:
                why = f" ({error})" if type(error) is ValueError else ""  # ours; others are words of Python
                bad.append((f"unlike fio's JSON{why}", place))


def _of_fio(value: Any) -> Iterator[dict[str, Any]]:
    """Yield the fio documents in a value: itself, or those that an array or an object of somebody else holds, at any depth."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict) and "fio version" in one:
            yield one
        elif isinstance(one, dict | list):
            left.extend(reversed(list(one.values() if isinstance(one, dict) else one)))


def _one_after_another(text: bytes) -> Iterator[Any]:
    """Yield the values of a line that holds more than one, up to what is no JSON."""
    decoder, line, at = json.JSONDecoder(), text.decode("utf-8", "replace"), 0
    while at < len(line):
        try:
            value, at = decoder.raw_decode(line, at)
        except ValueError:
            return
        yield value
        at += len(line[at:]) - len(line[at:].lstrip(" ,\t"))


def no_document(path: Path, rejected: Sequence[tuple[str, int]]) -> InputError:
    """Return the error for a file that holds no document, but perhaps broken ones."""
    reason, line = rejected[0] if rejected else ("no JSON document in it", 1)
    return InputError(f"{reason}; expected the output of fio --output-format=json+", path, line)


def _document(raw: dict[str, Any], line: int) -> Document:
    version = tuple(int(part) for part in re.findall(r"\d+", str(raw["fio version"]))[:3])
    common = {str(k): str(v) for k, v in raw.get("global options", {}).items()}
    entries = raw.get("client_stats", raw.get("jobs", []))
    jobs = tuple(_job(entry, common) for entry in entries if entry.get("jobname") != ALL_CLIENTS)
    stamp = raw.get("timestamp_ms", _whole(raw.get("timestamp", 0)) * 1000)
    return Document(version, _whole(stamp), "client_stats" in raw, jobs, line, 1 if "timestamp_ms" in raw else 1000)


def _job(entry: dict[str, Any], common: dict[str, str]) -> Job:
    own = {str(k): str(v) for k, v in entry.get("job options", {}).items()}
    options = {**common, **own}
    ops = tuple(op for op in OPS if entry.get(op)) or (MIXED,)
    runtimes = {op: _whole((entry.get(op) or {}).get("runtime", 0)) for op in ops}
    runtime, spans = _course(runtimes, _whole(entry.get("job_runtime", 0)), options)
    summaries = {
        (op, kind): summary
        for op in ops
        for name, kind in KINDS.items()
        if (summary := _summary(entry.get(op) or {}, name, spans.get(op))) is not None
    }
    start = entry.get("job_start")
    return Job(
        name=str(entry.get("jobname", "")),
        group=int(entry.get("groupid", 0)),
        host=str(entry.get("hostname", "")),
        options=options,
        runtime_ms=runtime,
        start_ms=_whole(start) if start else None,
        summaries=summaries,
        elapsed_s=_whole(entry.get("elapsed", 0)),
    )


def _course(runtimes: Mapping[str, int], job_runtime: int, options: Mapping[str, str]) -> tuple[int, dict[str, tuple[int, int]]]:
    """Return how long a job ran in ms, and when the directions ran that did not run all the time.

    fio counts the time of each direction by itself. Almost always all run together, and each as long as the job. With
    `verify` a job that writes reads all of it afterwards; one that reads and writes does, too, and its reads ran all the time.
    With `loops` this goes in turns, with `verify_backlog` some is read between the writes. `job_runtime` is a sum where an
    entry stands for several jobs. Checked against fio 3.33, with its log of each I/O.
    """
    longest, read, written = max(runtimes.values()), runtimes.get("read", 0), runtimes.get("write", 0)
    if not (read and written) or options.get("verify", "none") in UNVERIFIED or options.get("do_verify") == "0":
        return longest, {}
    once = options.get("loops", "1") == "1" and "time_based" not in options
    writing = {"write": (0, written)} if once else {}
    if options.get("rw", options.get("readwrite", "")).partition(":")[0] not in WRITES_ALONE:
        return longest, writing
    alone = options.get("numjobs", "1") == "1" and "group_reporting" not in options
    length = job_runtime if alone and job_runtime >= longest else read + written
    if writing and options.get("verify_backlog", "0") == "0":
        return length, {**writing, "read": (written, max(length, written + read))}
    return length, writing


def _summary(direction: dict[str, Any], name: str, span_ms: tuple[int, int] | None = None) -> Summary | None:
    unit = 1 if f"{name}_ns" in direction else 1000
    raw = direction.get(f"{name}_ns", direction.get(name))
    if raw is None or not int(direction.get("total_ios", 0)):
        return None
    total = int(direction["total_ios"])
    # Before N was printed (3.x), total_ios is the count of completions; later N is what the histogram holds.
    count = _whole(raw.get("N", total if raw.get("max", 0) else 0))
    if not count:
        return None
    percentiles = tuple((text, int(value) * unit) for text, value in raw.get("percentile", {}).items())
    value = raw.get("mean", 0)
    _whole(value)
    return Summary(
        count=count,
        runtime_ns=_whole(direction.get("runtime", 0)) * MS,
        min_ns=_whole(raw.get("min", 0)) * unit,
        max_ns=_whole(raw.get("max", 0)) * unit,
        mean_ns=float(value) * unit,
        percentiles=percentiles,
        bins=_histogram(raw.get("bins"), unit),
        bytes=_bytes(direction),
        span_ns=None if span_ms is None else (span_ms[0] * MS, span_ms[1] * MS),
    )


def _bytes(direction: dict[str, Any]) -> int | None:
    """Return the bytes of a direction, None where fio does not say: before `io_kbytes` came (2.21) `io_bytes` was in KiB."""
    moved = direction.get("io_bytes")
    if not isinstance(moved, int) or "io_kbytes" not in direction or not 0 <= moved <= MOST_BYTES:
        return None
    return moved


def _histogram(bins: dict[str, Any] | None, unit: int) -> Histogram | None:
    if not bins:
        return None
    layout = NANOSECONDS if unit == 1 else MICROSECONDS
    by_number = OWN_KEYS in "".join(bins) and any(key.startswith(OWN_KEYS) for key in bins)
    keys, counts = _slow_cells(bins) if by_number else _cells(bins)
    index = keys if by_number else layout.index(keys * unit)
    if not (index[1:] > index[:-1]).all():
        order = np.argsort(index, kind="stable")
        index, counts = index[order], counts[order]
        if (np.diff(index) == 0).any():
            raise ValueError("two bins of one value")
    return Histogram(layout, index, counts)


def _cells(bins: dict[str, Any]) -> tuple[Int, Int]:
    """Return what `_slow_cells` does, which finds the faults; almost all files hold plain numbers alone."""
    try:
        keys, counts = np.fromiter(map(int, bins), np.int64, len(bins)), np.fromiter(bins.values(), np.int64, len(bins))
    except (TypeError, ValueError, OverflowError):
        return _slow_cells(bins)
    if min(keys.min(), counts.min()) < 0 or max(keys.max(), counts.max()) >= LARGEST:
        return _slow_cells(bins)
    filled = np.flatnonzero(counts)
    return keys[filled], counts[filled]


def _slow_cells(bins: dict[str, Any]) -> tuple[Int, Int]:
    """Return the keys and counts of bins that hold anything; ValueError where fio can have counted no such."""
    filled = {key: number for key, value in bins.items() if (number := int(value)) and not key.startswith(OWN_KEYS)}
    return _all_whole([int(key) for key in filled]), _all_whole(list(filled.values()))
