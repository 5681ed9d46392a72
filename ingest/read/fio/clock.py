"""Which clock a fio log's stamps are of: fio's own (ms since the job began), real time, or another one; how wide rows are.

    2076031, 2008932, 0, 4096, 0         log_alternate_epoch=1, log_alternate_epoch_clock_id=1: ms since the machine started

`log_unix_epoch`, and `log_alternate_epoch` with a real-time clock, stamp in ms since 1970. Any other clock says nothing of the
time of day. Such stamps are counted from the first one, which lies within ms of the job's beginning, and are then like fio's
own. They are known by the option, or by a first stamp that lies beyond the whole run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from ingest.core.intervals import Bool, Int, median
from ingest.core.units import MOST_NS, number
from ingest.read.context import Context
from ingest.read.text import blocks

MS = 1_000_000
LAST_STAMP_MS = MOST_NS // MS
STAMP_DIGITS = len(str(LAST_STAMP_MS))
NOT_A_ROW = "not a row of plain integers"
DIRECTION = "direction is not 0, 1 or 2"
STAMP = "time stamp past the year 2115"
REAL_CLOCKS = ("0", "5", "8")  # CLOCK_REALTIME, _COARSE, _ALARM of clock_gettime
UNIX_MS = (10**12, 4 * 10**12)
BEYOND_RUN_MS = 1000
LATE_MS = 60_000
SPANS = 10
DAY_MS = 86_400_000
DEFAULT_WIDTH_MS = 1000
NEAR_START = 3  # rows
SURELY_DENSE = 4  # samples of a row: fio's clock for rows does not begin with an I/O of its first ms, but with the next
ONE_AFTER_ANOTHER = "fio JSON timestamp - runtimes of jobs one after another"
ONE_AFTER_ANOTHER_CLIENT = "fio --client timestamp (1 s) + runtimes of jobs before"
STAGED = (ONE_AFTER_ANOTHER, ONE_AFTER_ANOTHER_CLIENT)
MTIME = "file time (--t0 mtime)"
UNPLACED = "fio JSON without job_start, whose jobs began at different times: when cannot be determined"
SHARED = "fio JSON: the jobs that share this log (per_job_logs=0) began at different times"
UNKNOWN = (UNPLACED, SHARED)
REMEDY = "times are elapsed; --t0 says when it began, log_unix_epoch=1 writes it into the log"


def typical_width_ms(steps_ms: Int | Sequence[int], options: Mapping[str, str]) -> int:
    """Return how wide rows are meant to be: log_hist_msec if known, else what the steps between rows suggest.

    A stall leaves one wide row and hundreds of narrow ones behind, so no plain median: either the width that half of the
    time is covered by, or the mean step (fio's clock for rows advances by log_hist_msec a row), whichever is smaller.
    0 if it cannot be determined.
    """
    option = options.get("log_hist_msec", "")
    if option.isdigit() and int(option):
        return int(option)
    steps = np.sort(np.asarray(steps_ms, np.int64))
    steps = steps[slice(*np.searchsorted(steps, (0, DAY_MS)))]
    covered = np.cumsum(steps)
    if not len(covered) or not (whole := int(covered[-1])):
        return 0
    half = int(steps[np.searchsorted(covered, -(-whole // 2))])
    return min(half, max(1, round(whole / len(steps))))


def interval_ms(steps_ms: Int, several: Bool, width_ms: int, options: Mapping[str, str]) -> int:
    """Return log_hist_msec: as the options say, else what rows of `several` samples are wide (median), at most `width_ms`.

    Rows of one sample catch up after a stall; `width_ms` is the typical width of all rows, which a late stall makes larger.
    """
    if options.get("log_hist_msec", "").isdigit():
        return width_ms
    wide = steps_ms[several & (steps_ms > 0)]
    return min(width_ms, int(median(wide))) if len(wide) else width_ms


def dense_width_ms(stamps_ms: Int, samples: Int, width_ms: int) -> int:
    """Return how wide dense rows of an op are (median) where that is more than the rows of all ops are: others catch up."""
    dense = np.diff(stamps_ms)[samples[1:] >= SURELY_DENSE]
    return max(width_ms, int(median(dense))) if len(dense) else width_ms


def first_row(stamps_ms: Int, samples: Int, width_ms: int, earliest_ms: int) -> tuple[int, bool]:
    """Return where the first row of an op begins, in the time of stamps, and whether it comes so late that this is a guess.

    fio begins it at the first I/O of the op, and ends it with the first I/O that completes a row's time later or more (stat.c,
    all versions). So in a dense row that comes late, all but the last completed within a row's time. Its clock for
    rows goes on by a row's time with each, so that rows which follow a late one sooner show how late it was: `stamps_ms`
    are those of the first rows, the first alone where a row's time is not known. A rare op shows itself by its next rows, which
    hold few samples: nothing was lost before a first row of no more than they explain.
    """
    latest = max(0, int((stamps_ms - width_ms * np.arange(1, len(stamps_ms) + 1)).min()))
    few = samples[1:].mean() if len(samples) > 1 else 0
    rare = few < SURELY_DENSE and int(samples[0]) * width_ms <= 2 * few * int(stamps_ms[0] - earliest_ms)
    if samples[0] < SURELY_DENSE or rare or latest - earliest_ms <= (NEAR_START - 1) * width_ms:
        return min(earliest_ms, latest), False
    return latest, True


def row_starts(
    before: Int, stamps: Int, began: Bool, width_ms: int, firsts: Mapping[int, int | None], *, unix: bool
) -> tuple[Int, Int]:
    """Return where each row of a chain begins (file ms), and which had to be narrowed after a clock jump.

    `before` is the stamp before each, `began` says where time begins anew, `firsts` where rows at such places begin, if known.
    """
    guess = np.maximum(stamps - width_ms, 0)
    start = np.where(began, guess if unix else 0, before)
    later = began & (stamps > NEAR_START * width_ms) & (not unix)
    for place, begin in firsts.items():
        if begin is not None:
            start[place], later[place] = begin, False
    jumped = later | (stamps - start > DAY_MS)
    return np.where(jumped, guess, start), np.flatnonzero(jumped)


def real_clock(options: Mapping[str, str], option: str) -> bool:
    """Return whether an option that names a clock names one of real time, which it does where it is not given."""
    return options.get(option, "0") in REAL_CLOCKS


def _given(options: Mapping[str, str], option: str) -> bool:
    return options.get(option, "0") not in ("0", "false")


def another_clock(options: Mapping[str, str]) -> bool:
    """Return whether the job options say that stamps are of a clock other than fio's own and real time."""
    alternate = _given(options, "log_alternate_epoch") or _given(options, "log_unix_epoch")  # one option since 3.36
    return alternate and not real_clock(options, "log_alternate_epoch_clock_id")


def real_time(options: Mapping[str, str], first_ms: int) -> bool:
    """Return whether stamps are ms since 1970: by the job options, else by the first of them."""
    if another_clock(options):
        return _given(options, "log_unix_epoch") and not _given(options, "log_alternate_epoch") and _since_1970(first_ms)
    return _given(options, "log_alternate_epoch") or _given(options, "log_unix_epoch") or _since_1970(first_ms)


def _since_1970(stamp_ms: int) -> bool:
    return UNIX_MS[0] <= stamp_ms < UNIX_MS[1]


class Base(NamedTuple):
    """The stamp that stands for the beginning of the job, 0 in fio's own clock, and a sentence where it is another clock."""

    ms: int = 0
    note: str = ""


OWN = Base()


def base_of(first_ms: int, context: Context, last_ms: Callable[[], int]) -> Base:
    """Return where stamps of a log that are not of real time begin.

    `first_ms` is where the first rows begin; `last_ms` gives the last stamp of the log.
    """
    runtime_ms = context.runtime_ns // MS
    placed = "they are counted from the first, which is taken for the beginning of the job"
    begin = f"stamps begin at {number(first_ms / 1000)} s"
    if another_clock(context.options):
        clock_id = context.options["log_alternate_epoch_clock_id"]
        return Base(first_ms, f"stamps are of another clock (log_alternate_epoch_clock_id={clock_id}): {placed}")
    if runtime_ms:
        beyond = first_ms > runtime_ms + BEYOND_RUN_MS
        note = f"{begin} in a run of {number(runtime_ms / 1000)} s, so they are of another clock: {placed}"
        return Base(first_ms, note) if beyond else OWN
    if first_ms <= LATE_MS or context.zero.epoch_ns is not None or first_ms <= SPANS * (last_ms() - first_ms):
        return OWN
    late = f"{begin}, more than {SPANS} times as late as the log is long"
    return Base(first_ms, f"{late}: another clock (log_alternate_epoch), or the end of a log; they are counted from the first")


def surely_own(stamp_ms: int, context: Context) -> bool:
    """Return whether a stamp among the first of a log shows that stamps are of fio's own clock: `base_of` would say so."""
    if stamp_ms > LATE_MS or another_clock(context.options):
        return False
    return not context.runtime_ns or stamp_ms <= context.runtime_ns // MS + BEYOND_RUN_MS


def zero_ns(context: Context, base: int) -> int:
    """Return the epoch ns of the beginning of the job, 0 if it is not known; `--t0 mtime` gives that of the stamps."""
    zero = context.zero.epoch_ns or 0
    return zero + base * MS if context.zero.origin == MTIME else zero


def stamp_in(cell: bytes) -> int | None:
    """Return a time stamp in ms, None if the cell holds none that a row can have."""
    return stamp if cell.isdigit() and len(cell) <= STAMP_DIGITS and (stamp := int(cell)) < LAST_STAMP_MS else None


def last_stamp_ms(path: Path) -> int:
    """Return the largest stamp of a log's last lines in ms."""
    largest = 0
    for block in blocks(path):
        stamps = [stamp_in(line.split(b",", 1)[0]) for line in bytes(block).split(b"\n")[-8:]]
        largest = max((stamp for stamp in stamps if stamp is not None), default=largest)
    return largest
