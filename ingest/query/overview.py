"""What a report is made of: each run's cluster, hosts and threads, as fine as a page can hold them.

A page holds bins of the cluster in at most 720 windows, bins of at most 16 hosts in at most 360, and of every thread count,
p50, p99 and max in at most 180; of 16 threads or fewer their bins as well, in the windows of the hosts. `full` lifts all of
it. Several runs share the windows of two.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np

from ingest.errors import InputError, listed
from ingest.intervals import Intervals
from ingest.query.question import MULTIPLES, Answer, Question, regrouped, widened
from ingest.ranks import parse_percentiles, percentile_values
from ingest.series import Group, run_matches
from ingest.timing import format_duration

CLUSTER_WINDOWS, HOST_WINDOWS, THREAD_WINDOWS = 720, 360, 180
LEAST_WINDOWS = 60
MOST_HOSTS = MOST_THREADS = 16
FEW_SERIES = 64
UNLIMITED = 1 << 40
THREAD = ("host", "volume", "job", "process", "tag")
P99 = parse_percentiles("99")[0]

Ask = Callable[[Question], Answer]


@dataclass(frozen=True, slots=True)
class Overview:
    """One run (or several added up): its answers at three scopes, each by the labels in its `by`, op and kind among them.

    `hosts` has bins of the hosts that a page can hold, made from `fine`; `tails` of all hosts where they are more, `threads`
    of every thread. `notes` says what was left out or widened. `reach` is the exact range of the rows in ns, where runs are
    compared.
    """

    run: str
    cluster: Answer
    fine: Answer
    hosts: Answer
    threads: Answer
    tails: Answer | None = None
    extra: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    reach: tuple[int, int] | None = None

    @property
    def span(self) -> tuple[int, int]:
        """Return the start of the first and the end of the last window in ns."""
        return span_of(self.cluster.parts)


def span_of(parts: Sequence[Intervals]) -> tuple[int, int]:
    """Return the start of the first and the end of the last row in ns."""
    return min(int(part.start_ns.min()) for part in parts), max(int(part.end_ns.max()) for part in parts)


def overviews(ask: Ask, runs: Sequence[str], question: Question, *, full: bool = False) -> list[Overview]:
    """Return an overview of each selected run, in the order of their names; of all together with `merge_runs`.

    `ask` answers a question, `runs` are the names that there are. InputError where nothing is selected.
    """
    wanted = question.where.get("run", "*")
    chosen = [run for run in runs if run_matches(run, question.runs) and fnmatchcase(run, wanted)]
    if not chosen:
        raise InputError(f"no run matches {' '.join(question.runs) or wanted}; there are {listed(runs)}")
    if question.merge_runs or len(chosen) == 1:
        return [_overview(ask, ", ".join(chosen), question, full=full, runs=len(chosen))]
    found = []
    for run in chosen:
        one = replace(question, runs=(), where={**question.where, "run": literal(run)})
        try:
            found.append(_overview(ask, run, one, full=full, shared_by=len(chosen)))
        except InputError:
            if question.begin is None and question.end is None and not question.where:
                raise
    if not found:
        raise InputError("nothing matches the question in any of the runs")
    return found


def literal(text: str) -> str:
    """Return the glob that matches exactly this text."""
    return "".join(f"[{letter}]" if letter in "*?[" else letter for letter in text)


def _overview(ask: Ask, run: str, question: Question, *, full: bool, runs: int = 1, shared_by: int = 1) -> Overview:
    most = UNLIMITED if full else max(LEAST_WINDOWS, min(CLUSTER_WINDOWS, 2 * CLUSTER_WINDOWS // shared_by))
    extra = tuple(name for name in question.by if name not in ("run", "kind", "op", "host"))
    merged_runs = replace(question, merge_runs=runs > 1, windows=most)
    fine, notes = fitted(ask(replace(merged_runs, by=("host", "op", "kind", *extra))), most)
    cluster = regrouped(fine, ("op", "kind", *extra))
    hosts, _ = fitted(fine, most if full else most * HOST_WINDOWS // CLUSTER_WINDOWS)
    every, tails = hosts, None
    names = {key[0] for part in hosts.parts for key in part.table if isinstance(key, tuple)}
    if len(names) > MOST_HOSTS and not full:
        tails = _in_windows(hosts, THREAD_WINDOWS)
        fine = _worst_hosts(fine)
        hosts = replace(hosts, parts=tuple(widened(fine.parts, hosts.step_ns or 1 << 62)))
        notes += (f"{len(names)} hosts: bins of the {MOST_HOSTS} with the highest p99; of the others p50, p99 and max",)
    few = full or fine.series <= FEW_SERIES
    step = every.step_ns if few else _in_windows(every, max(LEAST_WINDOWS, most * THREAD_WINDOWS // CLUSTER_WINDOWS)).step_ns
    threads = ask(replace(merged_runs, by=(*THREAD, "op", "kind"), step=step or "all"))
    reach = span_of(ask(replace(merged_runs, by=("op", "kind"), step="all")).parts) if shared_by > 1 else None
    return Overview(run, cluster, fine, hosts, threads, tails, extra, notes, reach)


def fitted(answer: Answer, most: int) -> tuple[Answer, tuple[str, ...]]:
    """Return the answer in at most `most` windows, and a sentence where its windows had to be widened."""
    shown = _in_windows(answer, most)
    if shown.step_ns == answer.step_ns:
        return answer, ()
    wide, narrow = format_duration(shown.step_ns), format_duration(answer.step_ns)
    return shown, (f"windows widened from {narrow} to {wide}: a report holds {most} at most (--full lifts that)",)


def _in_windows(answer: Answer, most: int) -> Answer:
    low, high = span_of(answer.parts)
    step = answer.step_ns
    if not step or high - low <= most * step:
        return answer
    multiples = (*sorted({*MULTIPLES, 3, 4, 6, 8, 12}), -(-(high - low) // (max(1, most - 2) * step)))
    wider = next(n * step for n in multiples if -(-high // (n * step)) - low // (n * step) <= most)
    return replace(answer, parts=tuple(widened(answer.parts, wider)), step_ns=wider)


def _worst_hosts(hosts: Answer) -> Answer:
    """Return the answer with those hosts only whose p99 over everything is highest."""
    highest: dict[str, float] = {}
    for part in replace(hosts, parts=tuple(widened(hosts.parts, 1 << 62))).parts:
        values = percentile_values(part, P99)
        for code, value in zip(part.series.tolist(), values.tolist(), strict=True):
            host = str(part.table[code][0]) if isinstance(part.table[code], tuple) else ""
            highest[host] = max(highest.get(host, 0.0), value if value == value else 0.0)  # noqa: PLR0124  # NaN
    kept = set(sorted(highest, key=lambda host: (-highest[host], host))[:MOST_HOSTS])
    return replace(hosts, parts=tuple(_with_hosts(part, kept) for part in hosts.parts))


def _with_hosts(part: Intervals, kept: set[str]) -> Intervals:
    inside = np.array([isinstance(key, tuple) and key[0] in kept for key in part.table], np.bool_)
    return part.take(np.flatnonzero(inside[part.series]))


def thread_name(labels: Group) -> str:
    """Return the text of a thread's labels (host, volume, job, process, tag): those that are told."""
    words = zip(("", "vol ", "job ", "process ", "tag "), labels, strict=True)
    return " ".join(f"{word}{label}" for word, label in words if label) or "-"
