"""Runs that know when they began and runs that do not share no axis of time.

An answer over time is given on the clock: runs without one are left out of it, and a sentence names them. Asked alone they are
answered on their own axis, in seconds since their start. Without an axis of time (`--step all`) both are in one answer, each
run with a range of its own; there times without a clock are written as `+12.5s`, as --from and --to take them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from ingest.core.errors import listed
from ingest.query.question import ALL, Answer, Question

if TYPE_CHECKING:  # stores ask by clocks, too, and need no reader for that
    from ingest.read.sources import Source

SECOND = 1e9
ABSOLUTE = "this run has no start time, so its times are elapsed: give --from and --to as +90s, or give --t0"


def is_absolute(question: Question) -> bool:
    """Return whether a question gives a time of the clock as an end of its range."""
    return any(edge is not None and not edge.relative for edge in (question.begin, question.end))


def undated_runs(sources: Iterable[Source]) -> dict[str, bool]:
    """Return, per run, whether none of its sources has a start time."""
    undated: dict[str, bool] = {}
    for source in sources:
        run = source.context.series.run
        undated[run] = undated.get(run, True) and source.context.zero.epoch_ns is None
    return undated


def left_out(question: Question, undated: Mapping[str, bool]) -> frozenset[str]:
    """Return the runs that an answer leaves out: the undated ones where others have a clock, if their times are looked at.

    `undated` says of each run that is asked for whether it has no clock.
    """
    without = frozenset(run for run, is_undated in undated.items() if is_undated)
    if len(without) == len(undated):
        return frozenset()
    return without if question.step != ALL or question.merge_runs or is_absolute(question) else frozenset()


def beside(undated: Mapping[str, bool]) -> frozenset[str]:
    """Return the undated runs of an answer where others have a clock."""
    without = frozenset(run for run, is_undated in undated.items() if is_undated)
    return without if len(without) < len(undated) else frozenset()


def logs_left_out(names: Sequence[str], logs: int, runs: Collection[str]) -> str:
    """Return the sentence about logs that an answer leaves out, of so many that were selected."""
    which = f"{len(names)} of {logs} logs ({listed(sorted(names))})"
    clause = "has no start time, so it is" if len(names) == 1 else "have no start time, so they are"
    return f"{which} {clause} left out here: ask for the run {listed(sorted(runs))} alone, or give --t0"


def run_left_out(run: str, samples: int) -> str:
    """Return the sentence about a run of a store that an answer leaves out."""
    return f"{run} has no start time, so its {samples:,} samples are left out here: ask for this run alone"


def shown_beside(undated: Collection[str]) -> list[str]:
    """Return the sentence about undated runs that an answer shows beside dated ones; none where there are none."""
    if not undated:
        return []
    clause = "has no start time: it is a run of its own, and its" if len(undated) == 1 else "have no start time: their"
    return [f"{listed(sorted(undated))} {clause} times are elapsed seconds, as +12.5s"]


def stamps_beside(answer: Answer) -> dict[int, str]:
    """Return how the times of undated runs are written beside those of dated ones, by their ns: +12.5s."""
    if not answer.undated or "run" not in answer.by:
        return {}
    place = answer.by.index("run")
    stamps: dict[int, str] = {}
    for part in answer.parts:
        names = [key[place] for key in part.table]
        for code, *edges in zip(part.series.tolist(), part.start_ns.tolist(), part.end_ns.tolist(), strict=True):
            if names[code] in answer.undated:
                stamps |= {edge: since(edge - answer.run_start_ns[names[code]]) for edge in edges}
    return stamps


def since(elapsed_ns: int) -> str:
    """Return a time without a clock as it is written beside others that have one: +12.5s."""
    return f"{'-' if elapsed_ns < 0 else '+'}{abs(elapsed_ns) / SECOND:.12g}s"


def named(stamp: Callable[[int], str], known: Mapping[int, str]) -> Callable[[int], str]:
    """Return a function that writes times as `stamp` does, but for those that are `known`."""
    return (lambda stamp_ns: known.get(stamp_ns) or stamp(stamp_ns)) if known else stamp
