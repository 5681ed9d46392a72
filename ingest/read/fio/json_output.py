"""fio's JSON output: the documents in a text, the summary of a finished run, and when each of its jobs began.

The JSON documents in a text: fio's own, whatever stands around them, and those that others wrapped or sent through a log.

    some text of a shell>{                      [                       [pod/fio] {
      "fio version" : "fio-3.33",                 {                     [pod/fio]   "fio version" : "fio-3.33",
      ...                                           "fio version": ..     ...
    }                                             }                     [pod/fio] }
                                                ]

fio puts the outer braces on lines of their own and indents all between them, as all do that write JSON for people. So a document
ends with the first line that begins with its closing brace. Others write a document, or many of them, into one line.
Traps: what stands in front of the first brace may be some text that was printed before, or stand in front of every line; a time
stamp there has other digits in each line, but as many of them.

fio's JSON output: the summary of a finished run, and the documents that a running fio appends.

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
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import orjson

from ingest.core.errors import InputError, as_text
from ingest.core.intervals import Histogram, Int
from ingest.core.labels import MIXED, OPS
from ingest.core.layout import fio_layout
from ingest.read.context import Summary, TimeZero
from ingest.read.fio import clock
from ingest.read.fio.clock import MS
from ingest.read.text import blocks

LARGEST_DOCUMENT = 256 << 20
TOO_LARGE = (
    "a JSON document of more than 256 MB; of many in one, take them apart: "
    """jq -c '.. | objects | select(has("fio version"))' FILE > fio.json"""
)
BEHIND = "fio's JSON behind something on each line, which is not of one width: cut it off, as with sed 's/^.*Z //' FILE"
BROKEN = "document breaks off before the next begins"
CUT_OFF = "last document breaks off: fio was still writing, or the copy is partial"
INDENT = (b" ", b"\t")  # what lines inside a document begin with
STRETCH = re.compile(rb"([ \t][^\n]*+(?:\n[ \t][^\n]*+)*+|[^\n]*+)\n?")
OF_FIO = b'"fio version"'
NAMED = re.compile(rb'"fio version"\s*:\s*"')
COMPACT = re.compile(rb'(?:\[\s*)?\{\s*"fio version"\s*:')
COMMENTS = (b"", b"//", b"#", b"*", b"--")  # in front of each line of an example in a program: no log of a run
CLOSING = {b"{": b"}", b"[": b"]"}
DIGITS = bytes(ord("0") if chr(byte).isdigit() and byte < 128 else byte for byte in range(256))


def texts(
    chunks: Iterable[memoryview | bytes], path: Path, bad: list[tuple[str, int]], lines_before: int = 0
) -> Iterator[tuple[int, bytes]]:
    """Yield (line, text) of each document in blocks of lines, which `lines_before` others precede.

    What breaks off goes to `bad`, with its line. InputError for a document that is too large to be held.
    """
    scan = _Scan(bad, lines_before)
    for block in _whole_lines(chunks, path):
        for raw in _stretches(block):
            yield from scan.take(raw)
        if scan.size > LARGEST_DOCUMENT:
            raise InputError(TOO_LARGE, path, scan.begin)
    yield from scan.rest()


class _Scan:
    """Takes the lines of a text in order. `begin` is the line that the open document begins with, `size` its length so far."""

    def __init__(self, bad: list[tuple[str, int]], lines_before: int) -> None:
        self.begin = self.size = 0
        self._number = lines_before
        self._bad = bad
        self._lines: list[bytes] = []
        self._closing = b"}"
        self._guessed = False  # a brace behind other text: a document only if it says that it is of fio
        self._prefix: bytes | None = None  # what stands in front of each line, digits as 0
        self._passed = False  # whether a line without it came in between
        self._before: tuple[bytes, int] | None = None  # a line that may begin a document, if the next one is of it

    def take(self, raw: bytes) -> Iterator[tuple[int, bytes]]:
        """Yield the documents that end with a line, or with neighbours that are indented."""
        inner = raw.count(b"\n")
        self._number += 1 + inner
        if self._prefix is not None:
            width = len(self._prefix)
            if raw[:width].translate(DIGITS) != self._prefix:  # a line of another log, or one that is empty
                self._passed |= bool(raw.strip())
                return
            raw = raw[width:]
        if self._before is not None and self._begins(raw, self._number - inner):
            return
        if self._lines and raw[:1] in INDENT:
            self._lines.append(raw)
            self.size += len(raw) - inner
            return
        line = raw.rstrip()
        if not self._lines:
            yield from self._outside(line, inner)
        elif line.startswith(self._closing):
            yield from self._close()
            if line.endswith(b"{"):
                self._before = (line[1:], self._number)
        elif line == b"{":
            if not self._guessed or any(OF_FIO in line for line in self._lines):
                self._bad.append((BROKEN, self.begin))
            self._open(line, self._number)
        else:
            self._lines.append(line)
            self.size += len(line)

    def _outside(self, line: bytes, inner: int) -> Iterator[tuple[int, bytes]]:
        """Yield the document that a line outside of any holds; one that goes on in the next lines is open then."""
        if line.startswith(b"{"):
            if end := _end_of(line):
                yield self._number, line[:end]
            else:
                self._open(line, self._number)
        elif line.startswith(b"[") and line.endswith(b"]") and OF_FIO in line:
            yield self._number, line
        elif found := COMPACT.search(line):
            whole = line[found.start() :]
            yield self._number - inner + line.count(b"\n", 0, found.start()), whole[: _end_of(whole) or len(whole)]
        elif line == b"[" or line.endswith(b"{"):
            self._before = (line, self._number)
        elif OF_FIO in line and line[:1] not in INDENT and NAMED.search(line):
            self._bad.append((BEHIND, self._number))

    def _begins(self, raw: bytes, number: int) -> bool:
        """Return whether the line after one that may begin a document is of it: then it is open."""
        before, begin = self._before or (b"", 0)
        self._before = None
        first = raw.partition(b"\n")[0]
        inside = CLOSING if before == b"[" else (b'"',)
        if raw[:1] in INDENT and first.lstrip()[:1] in inside:
            self._open(before[-1:], begin, guessed=True)
            self._lines.append(raw)
            self.size += len(raw)
            return True
        width = len(before) - 1
        shape = before[:width].translate(DIGITS)
        if before[:width].strip() in COMMENTS:
            return False
        if first[:width].translate(DIGITS) == shape and first[width:].lstrip()[:1] == b'"' and number == begin + 1:
            self._open(b"{", begin, guessed=True)
            self._prefix = shape
            self._lines.append(first[width:])
            return True
        return False

    def _open(self, line: bytes, number: int, *, guessed: bool = False) -> None:
        self.begin, self._lines, self.size = number, [line], len(line)
        self._closing, self._guessed, self._prefix = CLOSING[line[:1]], guessed, None
        self._passed = False

    def _close(self) -> Iterator[tuple[int, bytes]]:
        text = b"\n".join([*self._lines, self._closing])
        if self._passed and not _is_json(text):
            self._bad.append((BEHIND, self.begin))
        elif not self._guessed or OF_FIO in text:
            yield self.begin, text
        self._lines, self._prefix, self.size = [], None, 0

    def rest(self) -> Iterator[tuple[int, bytes]]:
        """Yield the document that is open at the end of a text if it is whole."""
        if not self._lines:
            return
        text = b"\n".join(self._lines)
        if _is_json(text):
            yield self.begin, text
        elif not self._guessed or OF_FIO in text:
            self._bad.append((BEHIND if self._passed else CUT_OFF, self.begin))


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True


def _end_of(line: bytes) -> int:
    """Return where the document that a line begins with ends in it, 0 where it goes on in the next lines."""
    if len(line) == 1 or OF_FIO not in line:
        return len(line) if len(line) > 1 and line.endswith(b"}") else 0
    if line.endswith((b"}", b"]")):
        return len(line)
    text = line.decode("utf-8", "surrogateescape")
    try:
        end = json.JSONDecoder().raw_decode(text)[1]
    except ValueError:
        return 0
    return len(text[:end].encode("utf-8", "surrogateescape"))


def _whole_lines(chunks: Iterable[memoryview | bytes], path: Path) -> Iterator[bytes]:
    """Yield blocks of whole lines: a line that is longer than a block comes in several."""
    pieces: list[bytes] = []
    for chunk in chunks:
        pieces.append(bytes(chunk))
        if pieces[-1].endswith(b"\n"):
            yield b"".join(pieces) if len(pieces) > 1 else pieces[0]
            pieces = []
        elif sum(map(len, pieces)) > LARGEST_DOCUMENT:
            raise InputError(TOO_LARGE, path)
    if pieces:
        yield b"".join(pieces)


def _stretches(block: bytes) -> Iterator[bytes]:
    """Yield the lines of a block; neighbours that are indented come as one, as they are almost all."""
    if b"\r" in block:
        yield from block.splitlines()
        return
    at = 0
    while at < len(block) and (match := STRETCH.match(block, at)):
        yield match[1]
        at = match.end()


# When each job of a fio run began, from its JSON alone: fio before 3.36 says only when the run ended.
#
# fio begins jobs in the order of their numbers (backend.c, run_threads): a job with `startdelay` once that much of the run has
# passed, a job with `wait_for` once that job has ended, a job with `stonewall` once nothing runs; all others at once. It looks
# every 100 ms, and a job that was begun runs 100 ms later. Runtimes are in the JSON, so the run can be played again, and its
# end is the time stamp. Measured with fio 3.33 against `log_unix_epoch`, 13 runs of 2 to 4 jobs: within 100 ms.
#
# Traps: `stonewall` stands in no JSON: another `groupid` means it unless the job has `new_group`, which is there only as
# `new_group=1`. So groups for which one after another there was no time ran together. `startdelay` counts from the start of the
# run, not of the group. `elapsed` (whole seconds of the run, rounded up) contradicts where something else went on,
# such as a job that is not in the JSON: then when jobs began cannot be determined.


POLL_MS = 100
AFTER_JOB_MS = 150  # what is left of a poll, 50 ms on average, and the poll that begins the next job
AFTER_WALL_MS = 250  # the same and one poll more: fio looks for finished jobs at the end of a poll
SLACK_MS = 300
FACTORS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


class Entry(NamedTuple):
    """What the JSON says of one job (or sum of a group's jobs); `delay_ms` is None where fio drew it at random."""

    name: str
    group: int
    runtime_ms: int
    ramp_ms: int = 0
    delay_ms: int | None = 0
    waits_for: str = ""
    new_group: bool = False


class Plan(NamedTuple):
    """When jobs began to count time, and when the last ended, in ms since the first began."""

    zeros_ms: tuple[int, ...]
    end_ms: int


def milliseconds(text: str) -> int | None:
    """Return a time as fio's options give it, in seconds unless it says otherwise; None for a range or no time."""
    match = re.fullmatch(r"(\d{1,18})(us|ms|s|m|h|d)?", text.strip())
    return int(int(match[1]) * FACTORS[match[2] or "s"]) if match else None


def entry_of(name: str, group: int, runtime_ms: int, options: Mapping[str, str]) -> Entry:
    """Return the options that time a job, those of all jobs included."""
    delay_ms = milliseconds(options.get("startdelay", options.get("start_delay", "0")))
    ramp_ms, new_group = milliseconds(options.get("ramp_time", "0")) or 0, options.get("new_group", "0") not in ("0", "false")
    return Entry(name, group, runtime_ms, ramp_ms, delay_ms, options.get("wait_for", ""), new_group)


def in_stages(entries: Sequence[Entry]) -> bool:
    """Return whether jobs may have begun at different times, or counted time from different moments."""
    timings = {(entry.group, entry.ramp_ms, entry.delay_ms, entry.waits_for) for entry in entries}
    return len(timings) > 1 or (len(entries) > 1 and entries[0].delay_ms is None)


@lru_cache(maxsize=4)  # asked for each log of a run
def plan_of(entries: tuple[Entry, ...], elapsed_s: int) -> Plan | None:
    """Return when the jobs of a run began; None where what the JSON says does not fit together.

    `elapsed_s` is how long the run took, 0 if that is not known: then nothing contradicts.
    """
    if any(entry.delay_ms is None for entry in entries) or not any(entry.runtime_ms for entry in entries):
        return None
    none = (False,) * len(entries)
    for walls in dict.fromkeys((_walls(entries), _walls(entries, all_of_them=True), none)):
        plan = _played(entries, walls)
        stages = 1 + sum(walls)
        if plan is not None and (
            not elapsed_s or (-SLACK_MS * stages <= (elapsed_s * 1000) - plan.end_ms <= 1000 + SLACK_MS * stages)
        ):
            return plan
    return None


def _walls(entries: Sequence[Entry], *, all_of_them: bool = False) -> tuple[bool, ...]:
    """Return which jobs wait until nothing runs: the first of each group, but for those of `new_group`."""
    groups = [entry.group for entry in entries]
    return tuple(
        number > 0 and groups[number] != groups[number - 1] and (all_of_them or not entry.new_group)
        for number, entry in enumerate(entries)
    )


def _played(entries: Sequence[Entry], walls: Sequence[bool]) -> Plan | None:
    """Return the run played again; None where a job waits for what never comes."""
    begun: dict[int, int] = {}
    ended: dict[int, int] = {}
    now: int | None = 0
    while now is not None:
        for number, entry in enumerate(entries):  # what fio does in one poll: it begins the jobs that need not wait
            if number in begun or (entry.delay_ms or 0) > now:
                continue
            if walls[number] and max(ended.values(), default=-AFTER_WALL_MS) + AFTER_WALL_MS - POLL_MS > now:
                break
            if entry.waits_for and _running(entry.waits_for, entries, now, ended):
                continue
            begun[number] = now + POLL_MS
            ended[number] = begun[number] + (entry.ramp_ms + entry.runtime_ms if entry.runtime_ms else 0)
        if len(begun) == len(entries):
            first = min(begun.values())
            zeros = tuple(begun[number] - first + entry.ramp_ms for number, entry in enumerate(entries))
            return Plan(zeros, max(ended[number] for number, entry in enumerate(entries) if entry.runtime_ms) - first)
        waits = [entry.delay_ms or 0 for entry in entries]
        waits += [end + late - POLL_MS for end in ended.values() for late in (AFTER_JOB_MS, AFTER_WALL_MS)]
        now = min((moment for moment in waits if moment > now), default=None)
    return None


def _running(name: str, entries: Sequence[Entry], now: int, ended: Mapping[int, int]) -> bool:
    """Return whether a job of this name has not ended, or not begun."""
    numbers = [number for number, entry in enumerate(entries) if entry.name == name]
    return any(number not in ended or ended[number] + AFTER_JOB_MS - POLL_MS > now for number in numbers)


KINDS = {"clat": "completion", "lat": "total", "slat": "submission"}
NANOSECONDS = fio_layout(29, 1)
MICROSECONDS = fio_layout(19, 1000)
LARGEST, MOST_BYTES = 2**43, 2**53
TOGETHER_MS = 1000
SERVER = ("hostname", "port")
NO_GROUP = 2**32 - 1  # of an entry that fio leaves empty, as it has made one of several sections
ALL_CLIENTS = "All clients"
UNVERIFIED, WRITES_ALONE = ("0", "none", "null"), ("write", "randwrite")
OWN_KEYS = "FIO_"  # begin the keys of a histogram that are no bins: versions before 3 wrote its geometry among them


class Job(NamedTuple):
    """One entry of `jobs` or `client_stats`: its options (globals included) and summaries by (op, kind).

    `runtime_ms` is how long it ran: its longest direction, or both of them where what was written was then read and verified
    (`_course`). `elapsed_s` is how long the whole run took, rounded up, 0 where that is not printed (--client). `errors` is how
    many I/Os failed, which fio counts with continue_on_error. `all_ran_ms` is how long all jobs that an entry stands for ran,
    added up.
    """

    name: str
    group: int
    host: str
    options: Mapping[str, str]
    runtime_ms: int
    start_ms: int | None
    summaries: Mapping[tuple[str, str], Summary]
    elapsed_s: int = 0
    errors: int = 0
    all_ran_ms: int = 0


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
        if self.is_staged((job,)):
            plan = plan_of(entries, job.elapsed_s)
            if plan is None:
                return None
            zero = plan.zeros_ms[next(number for number, other in enumerate(jobs) if other is job)]
            if self.through_client:
                return self.timestamp_ms + zero, clock.ONE_AFTER_ANOTHER_CLIENT
            return self.timestamp_ms - plan.end_ms + zero, clock.ONE_AFTER_ANOTHER
        if self.through_client:
            return self.timestamp_ms + entries[0].ramp_ms, "fio --client timestamp (1 s)"
        runtime = max(entry.runtime_ms for entry in entries)
        return (self.timestamp_ms - runtime, "fio JSON timestamp - runtime") if runtime else None

    def zero_of(self, jobs: Sequence[Job]) -> TimeZero:
        """Return the start of a log that these jobs share; unknown, with the reason if it can be given, where it has none."""
        zeros = [self.zero_ms(job) for job in jobs]
        known = [zero for zero in zeros if zero is not None]
        if len(known) < len(zeros):
            return TimeZero(None, clock.UNPLACED) if self.timestamp_ms and self.is_staged(jobs) else TimeZero()
        moments = [zero for zero, _ in known]
        if max(moments) - min(moments) > TOGETHER_MS:
            return TimeZero(None, clock.SHARED)
        return TimeZero(known[0][0] * MS, known[0][1])

    def is_staged(self, jobs: Sequence[Job]) -> bool:
        """Return whether jobs may have begun at different times, as by stonewall, startdelay, wait_for or ramps."""
        for job in jobs:
            _, entries = self._played_with(job)
            if in_stages(entries):
                plan = plan_of(entries, job.elapsed_s)
                if plan is None or any(plan.zeros_ms):
                    return True
        return False

    def stages_ns(self, jobs: Sequence[Job]) -> tuple[tuple[int, int], ...] | None:
        """Return from when to when each of some jobs ran (epoch ns), () where that is unknown; None where all began together."""
        zeros = [self.zero_ms(job) for job in jobs] if self.is_staged(jobs) else []
        begins = [zero[0] * MS for zero in zeros if zero is not None and not self.through_client]
        if not zeros or (len(begins) == len(jobs) and len(set(begins)) == 1):
            return None
        if len(begins) < len(jobs):
            return ()
        return tuple((begin, begin + job.runtime_ms * MS) for begin, job in zip(begins, jobs, strict=True))

    def _played_with(self, job: Job) -> tuple[list[Job], tuple[Entry, ...]]:
        """Return the jobs of the fio process of a job, and what starts of jobs are worked out from."""
        jobs = [other for other in self.jobs if other.host == job.host]
        return jobs, tuple(entry_of(each.name, each.group, each.runtime_ms, each.options) for each in jobs)


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
                yield _document(raw, place, path)
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
        except (ValueError, RecursionError):  # brackets by the thousand
            return
        yield value
        at += len(line[at:]) - len(line[at:].lstrip(" ,\t"))


def no_document(path: Path, rejected: Sequence[tuple[str, int]]) -> InputError:
    """Return the error for a file that holds no document, but perhaps broken ones."""
    reason, line = rejected[0] if rejected else ("no JSON document in it", 1)
    return InputError(f"{reason}; expected the output of fio --output-format=json+", path, line)


def _document(raw: dict[str, Any], line: int, path: Path) -> Document:
    version = tuple(int(part) for part in re.findall(r"\d+", str(raw["fio version"]))[:3])
    entries = raw.get("client_stats", raw.get("jobs", []))
    named = (entry for entry in entries if entry.get("jobname") != ALL_CLIENTS and entry.get("groupid") != NO_GROUP)
    stamp = _whole(raw.get("timestamp_ms", _whole(raw.get("timestamp", 0)) * 1000))
    place = as_text(f"{path.absolute().parent.name}/{path.name}")
    jobs = tuple(_job(entry, _common(raw, entry), f"{place}:{stamp}:{number}") for number, entry in enumerate(named))
    return Document(version, stamp, "client_stats" in raw, jobs, line, 1 if "timestamp_ms" in raw else 1000)


def _common(raw: dict[str, Any], entry: dict[str, Any]) -> dict[str, str]:
    """Return the options that all jobs of an entry's process have.

    fio --client prints an array of them since 3.39, an object for each server, with its name and port; of one server no array.
    """
    common = raw.get("global options", {})
    if isinstance(common, list):
        server = [(name, entry.get(name)) for name in SERVER]
        common = next((each for each in common if all(each.get(name) == value for name, value in server)), {})
    return {str(name): str(value) for name, value in common.items() if name not in SERVER}


def _job(entry: dict[str, Any], common: dict[str, str], place: str) -> Job:
    options = {**common, **{str(k): str(v) for k, v in entry.get("job options", {}).items()}}
    ops = tuple(op for op in OPS if entry.get(op, {}) != {}) or (MIXED,)
    runtimes = {op: _whole(entry.get(op, {}).get("runtime", 0)) for op in ops}
    all_ran_ms = _whole(entry.get("job_runtime", 0))
    runtime, spans = _course(runtimes, all_ran_ms, options)
    summaries = {
        (op, kind): summary
        for op in ops
        for name, kind in KINDS.items()
        if (summary := _summary(entry.get(op, {}), name, f"{place}:{op}:{kind}", spans.get(op))) is not None
    }
    if len({summary.bins is None for (_, kind), summary in summaries.items() if kind == KINDS["clat"]}) > 1:
        raise ValueError("bins of one direction alone")
    start = entry.get("job_start")
    name, host, group = str(entry.get("jobname", "")), str(entry.get("hostname", "")), int(entry.get("groupid", 0))
    start_ms, elapsed_s = _whole(start) if start else None, _whole(entry.get("elapsed", 0))
    errors = _whole(entry.get("total_err", 0))
    return Job(name, group, host, options, runtime, start_ms, summaries, elapsed_s, errors, all_ran_ms)


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


def _summary(direction: dict[str, Any], name: str, place: str, span_ms: tuple[int, int] | None = None) -> Summary | None:
    """Return what fio counts of a direction, of the kind that it calls `name`; None where it counts nothing.

    `place` names the file, the document, the number of its job, the direction and the kind.
    """
    unit = 1 if f"{name}_ns" in direction else 1000
    raw = direction.get(f"{name}_ns", direction.get(name, {}))
    if raw == {} or not int(direction.get("total_ios", 0)):
        return None
    # Before N was printed (3.x), total_ios is the count of completions; later N is what the histogram holds.
    count = _whole(raw.get("N", int(direction["total_ios"]) if raw.get("max", 0) else 0))
    if not count:
        return None
    percentiles = tuple((text, int(value) * unit) for text, value in raw.get("percentile", {}).items())
    value = raw.get("mean", 0)
    _whole(value)
    bins = _histogram(raw.get("bins"), unit)
    moved = direction.get("io_bytes")  # before `io_kbytes` came (2.21) it was in KiB
    in_bytes = isinstance(moved, int) and "io_kbytes" in direction and 0 <= moved <= MOST_BYTES
    return Summary(
        count=count,
        runtime_ns=_whole(direction.get("runtime", 0)) * MS,
        min_ns=_whole(raw.get("min", 0)) * unit,
        max_ns=_whole(raw.get("max", 0)) * unit,
        mean_ns=float(value) * unit,
        percentiles=percentiles,
        bins=bins,
        bytes=moved if in_bytes else None,
        span_ns=None if span_ms is None else (span_ms[0] * MS, span_ms[1] * MS),
        entry=f"{place}:{count}:{value}",  # versions that print no time, and folders of one name
        unbinned=count - int(bins.counts.sum()) if bins is not None and "N" in raw else 0,
    )


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
