"""When each job of a fio run began, from its JSON alone: fio before 3.36 says only when the run ended.

fio begins jobs in the order of their numbers (backend.c, run_threads): a job with `startdelay` once that much of the run has
passed, a job with `wait_for` once that job has ended, a job with `stonewall` once nothing runs; all others at once. It looks
every 100 ms, and a job that was begun runs 100 ms later. Runtimes are in the JSON, so the run can be played again, and its end
is the time stamp. Measured with fio 3.33 against `log_unix_epoch`, 13 runs of 2 to 4 jobs: within 100 ms.

Traps: `stonewall` stands in no JSON: another `groupid` means it unless the job has `new_group`. `startdelay` counts from the
start of the run, not of the group. `elapsed` (whole seconds of the run, rounded up) contradicts where something else went on,
such as a job that is not in the JSON: then when jobs began cannot be determined.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

POLL_MS = 100
AFTER_JOB_MS = 150  # what is left of a poll, 50 ms on average, and the poll that begins the next job
AFTER_WALL_MS = 250  # the same and one poll more: fio looks for finished jobs at the end of a poll
SLACK_MS = 300
FACTORS = {"us": 0.001, "ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}


@dataclass(frozen=True, slots=True)
class Entry:
    """What the JSON says of one job (or sum of a group's jobs); `delay_ms` is None where fio drew it at random."""

    name: str
    group: int
    runtime_ms: int
    ramp_ms: int = 0
    delay_ms: int | None = 0
    waits_for: str = ""
    new_group: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """When jobs began to count time, and when the last ended, in ms since the first began."""

    zeros_ms: tuple[int, ...]
    end_ms: int


def milliseconds(text: str) -> int | None:
    """Return a time as fio's options give it, in seconds unless it says otherwise; None for a range or no time."""
    match = re.fullmatch(r"(\d+)(us|ms|s|m|h|d)?", text.strip())
    return int(int(match[1]) * FACTORS[match[2] or "s"]) if match else None


def entry_of(name: str, group: int, runtime_ms: int, options: Mapping[str, str]) -> Entry:
    """Return the options that time a job, those of all jobs included."""
    delay = options.get("startdelay", options.get("start_delay", "0"))
    return Entry(
        name=name,
        group=group,
        runtime_ms=runtime_ms,
        ramp_ms=milliseconds(options.get("ramp_time", "0")) or 0,
        delay_ms=milliseconds(delay),
        waits_for=options.get("wait_for", ""),
        new_group=options.get("new_group", "0") not in ("0", "false"),
    )


def staged(entries: Sequence[Entry]) -> bool:
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
    for walls in dict.fromkeys((_walls(entries), _walls(entries, all_of_them=True))):
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
        _begin(entries, walls, now, begun, ended)
        if len(begun) == len(entries):
            first = min(begun.values())
            zeros = tuple(begun[number] - first + entry.ramp_ms for number, entry in enumerate(entries))
            return Plan(zeros, max(ended[number] for number, entry in enumerate(entries) if entry.runtime_ms) - first)
        waits = [entry.delay_ms or 0 for entry in entries]
        waits += [end + late - POLL_MS for end in ended.values() for late in (AFTER_JOB_MS, AFTER_WALL_MS)]
        now = min((moment for moment in waits if moment > now), default=None)
    return None


def _begin(entries: Sequence[Entry], walls: Sequence[bool], now: int, begun: dict[int, int], ended: dict[int, int]) -> None:
    """Begin, as fio does in one poll at `now` (ms since the start of the run), the jobs that need not wait."""
    for number, entry in enumerate(entries):
        if number in begun or (entry.delay_ms or 0) > now:
            continue
        if walls[number] and max(ended.values(), default=-AFTER_WALL_MS) + AFTER_WALL_MS - POLL_MS > now:
            return
        if entry.waits_for and _running(entry.waits_for, entries, now, ended):
            continue
        begun[number] = now + POLL_MS
        ended[number] = begun[number] + (entry.ramp_ms + entry.runtime_ms if entry.runtime_ms else 0)


def _running(name: str, entries: Sequence[Entry], now: int, ended: Mapping[int, int]) -> bool:
    """Return whether a job of this name has not ended, or not begun."""
    numbers = [number for number, entry in enumerate(entries) if entry.name == name]
    return any(number not in ended or ended[number] + AFTER_JOB_MS - POLL_MS > now for number in numbers)
