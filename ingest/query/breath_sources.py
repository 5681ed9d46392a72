"""Where breaths come from: timelines read now, or what a store keeps of them; the same rows from both."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.breaths import BreathWindows, Kept, Rows, joined, nothing, taken
from ingest.core.errors import InputError
from ingest.core.grid import SECOND
from ingest.core.parallel import fork_map
from ingest.core.series import ASKABLE, RunLabels, Series
from ingest.query.origin import BREATHS, Origin
from ingest.query.question import Question
from ingest.query.summed import run_starts
from ingest.read.format_names import SNABB

if TYPE_CHECKING:
    from ingest.query.files import Files
    from ingest.read import Source

OF_BREATHS = ("run", "host", "process")


def kept_from(origin: Origin, question: Question) -> Kept:
    """Return what is kept of the breaths in files or a store, of the runs, hosts, processes and the time that are asked."""
    breaths = origin.offers.get(BREATHS)
    return breaths(question) if breaths else nothing()


def from_files(files: Files, question: Question) -> Kept:
    """Return what is kept of the timelines among files, of the runs, hosts, processes and the time that are asked."""
    key = selected(question, files.found.labels)
    sources = [source for source in files.found.sources if source.format == SNABB and key(source.context.series)]
    if not sources:
        return nothing()
    from ingest.read.snabb.work import kept_of  # before processes are forked

    starts = run_starts(sources)

    def work(source: Source) -> Iterator[Kept | None]:
        try:
            yield kept_of(source)
        except InputError as error:
            source.context.account.note(f"not read: {error.reason}")

    kept_parts = [(number, kept) for number, kept in fork_map(work, sources, files.jobs, joining=True) if kept is not None]
    parts = [
        in_range(kept, question, starts[sources[number].context.series.run])
        for number, kept in sorted(kept_parts, key=lambda numbered: sources[numbered[0]].context.series)
    ]
    return together(parts)


def selected(question: Question, labels: RunLabels) -> Callable[[Series], bool]:
    """Return whether a question asks for a series; what it says of ops, kinds, jobs and tags is not about breaths."""
    mine = {name: glob for name, glob in question.where.items() if name in OF_BREATHS or name not in ASKABLE}
    key = replace(question, where=mine, by=()).key(labels)
    return lambda series: key(series) is not None


def in_range(kept: Kept, question: Question, start_ns: int) -> Kept:
    """Return what lies in the windows that begin in [floor(begin), end)."""
    if question.begin is None and question.end is None:
        return kept
    low = -math.inf if question.begin is None else question.begin.epoch_ns(start_ns) // SECOND * SECOND
    high = math.inf if question.end is None else question.end.epoch_ns(start_ns)
    starts = kept.windows.start_ns
    moments = (kept.sample.at_ns - 1) // SECOND * SECOND
    return Kept(
        taken(kept.windows, np.flatnonzero((starts >= low) & (starts < high))),
        taken(kept.sample, np.flatnonzero((moments >= low) & (moments < high))),
    )


def together(parts: Sequence[Kept]) -> Kept:
    """Return several parts as one, series in order."""
    if not parts:
        return nothing()
    return Kept(ordered(joined([part.windows for part in parts])), ordered(joined([part.sample for part in parts])))


def ordered(rows: Rows) -> Rows:
    """Return the rows by series, rate and time (those of a sample: by series and order), under a table in order."""
    used = sorted({rows.table[code] for code in np.unique(rows.series)})
    place = {series: number for number, series in enumerate(used)}
    codes = np.array([place.get(series, -1) for series in rows.table], np.int64)[rows.series]
    moved = replace(rows, table=tuple(used), series=codes)
    if isinstance(moved, BreathWindows):
        return taken(moved, np.lexsort((moved.start_ns, moved.rate, moved.series)))
    return taken(moved, np.lexsort((moved.at_ns, moved.order, moved.series)))
