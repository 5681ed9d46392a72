"""Windows in time order, added up over all logs, as an interval log has them: from files as they are read, or from any origin."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING

from ingest.core.coverage import sentences
from ingest.core.errors import InputError
from ingest.core.grid import MS, coarsened
from ingest.core.intervals import IN_MEMORY, Intervals, Sum, in_time_order
from ingest.core.labels import Group
from ingest.core.layout import Layout, LogLinear, hdr_half, hdr_layout, parse_layout
from ingest.core.units import UNITS_NS
from ingest.query.coverage import folded
from ingest.query.means import REMEDY
from ingest.query.origin import INTERVAL_LOG, Origin
from ingest.query.plan import settled
from ingest.query.question import ALL, Answer, Question, check_labels, shown_beside, steady_words
from ingest.query.streaming import union
from ingest.query.windows import check_step, of_places

if TYPE_CHECKING:
    from ingest.query.files import Files

DIGITS = {hdr_half(digits): digits for digits in range(6)}
NAMED = {UNITS_NS[name]: name for name in ("ns", "us", "ms", "s")}

NS = 1


@dataclass(frozen=True, slots=True)
class IntervalLog:
    """Windows in time order, the names of their labels, the unit, the start, and their warnings once all are taken."""

    windows: Iterator[Intervals[Group]]
    names: tuple[str, ...]
    unit_ns: int
    start_ns: int | None
    warnings: Callable[[], Sequence[str]]


def interval_log(origin: Origin, question: Question) -> IntervalLog:
    """Return the windows of a question in time order: as they are read where the origin can do that, else all at once.

    A `step` of auto is the stored one. Memory stays flat where files are asked, whatever their number and length. Raises what
    `origin.answer` raises.
    """
    question, direct = settled(origin, question), origin.offers.get(INTERVAL_LOG)
    return from_answers(origin, question) if direct is None or question.step == ALL else direct(question)


def _names(question: Question, runs: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that keep lines apart: kinds are never added up, runs only when asked."""
    run = ("run",) if len(runs) > 1 and not question.merge_runs and "run" not in question.by else ()
    kind = () if "kind" in question.by else ("kind",)
    return (*run, *question.by, *kind)


def _unit(layouts: Iterable[Layout]) -> int:
    """Return the unit that all layouts share, else ns."""
    units = {form_of(layout).unit_ns for layout in layouts}
    return units.pop() if len(units) == 1 else NS


def from_files(files: Files, question: Question) -> IntervalLog:
    """Return the windows of files, added up over all of them as they are read."""
    from ingest.query.aggregate import beside_entries, run_starts
    from ingest.query.streaming import entries_at_once, streams

    check_labels(question, files.found.labels)
    sources, apart = files.choice(question)
    runs = sorted({source.context.series.run for source in sources})
    names = _names(question, runs)
    places = [(("run", "kind", *question.by)).index(name) for name in names]
    stored = max(files.stored[run] for run in runs)
    step = question.step if isinstance(question.step, int) and question.step else stored
    if step != stored:
        check_step(step, files.widths_asked(question), force=question.force)
    logs, _ = streams(files, question, step, sources)
    parts = [(of_places(part, places) for part in log) for log in logs]
    known = all(source.context.zero.epoch_ns is not None for source in sources)
    starts = run_starts(sources)
    start = min(starts.values()) // MS * MS if known else None
    unit = _unit(parse_layout(source.layout) for source in sources if source.layout)
    windows = union(parts, entries_at_once(sources))

    def warnings() -> Sequence[str]:
        said = (steady_words(question, run, starts[run]) for run in runs)
        lacks = folded(entry.caveat for source in sources for entry in source.context.account.missing)
        return [*filter(None, said), *apart, *beside_entries(sources, files.found), *sentences(lacks)]

    return IntervalLog(windows, names, unit, start, warnings)


def from_answers(origin: Origin, question: Question) -> IntervalLog:
    """Return the windows of a store, or those of the whole range: added up before the first is written."""
    every = replace(question, where={"kind": "*", **question.where})
    answer = _dated(origin.answer(replace(every, by=_names(question, ()), step="all" if question.step != "auto" else "auto")))
    start = None if answer.relative else answer.start_of // MS * MS
    if question.step == ALL:
        unit = _unit(part.layout for part in answer.parts)
        return IntervalLog(iter(answer.parts), answer.by, unit, start, lambda: answer.warnings)
    names = _names(question, answer.runs)
    places = [(("run", "kind", *question.by)).index(name) for name in names]
    total: Sum[Group] = Sum()
    step = question.step
    for part in origin.windows(question):
        rows = of_places(_of_runs(part, answer.runs), places)
        total.add(coarsened(rows, step) if isinstance(step, int) else rows)
    parts = total.parts()
    unit = _unit(part.layout for part in parts)
    windows = (piece for part in parts for _, piece in in_time_order(part).pieces(IN_MEMORY))
    return IntervalLog(windows, names, unit, start, lambda: answer.warnings)


def _dated(answer: Answer) -> Answer:
    """Return the answer without the runs that have no clock where others have one: a log has one start."""
    if not answer.undated:
        return answer
    place = answer.by.index("run")
    runs = tuple(run for run in answer.runs if run not in answer.undated)
    parts = tuple(rows for part in answer.parts if len(rows := _of_runs(part, runs, place)))
    notes = tuple(f"{run} has no start time, so it is left out of this log: export it alone" for run in sorted(answer.undated))
    starts = {run: start for run, start in answer.run_start_ns.items() if run not in answer.undated}
    kept = replace(answer, parts=parts, runs=runs, run_start_ns=starts, undated=frozenset())
    return replace(kept, warnings=(*notes, *(text for text in answer.warnings if text not in shown_beside(answer.undated))))


def _of_runs(part: Intervals[Group], runs: Collection[str], place: int = 0) -> Intervals[Group]:
    """Return the rows of some runs; `place` is that of the run in their keys."""
    return part.where(lambda key: key[place] in runs)


@dataclass(frozen=True, slots=True)
class Form:
    """How a layout is written: digits, bins of 2^magnitude units, and the unit in ns."""

    digits: int
    magnitude: int
    unit_ns: int

    @property
    def layout(self) -> LogLinear:
        """Return the layout that these bins have."""
        return hdr_layout(self.digits, self.magnitude, self.unit_ns)


@lru_cache(maxsize=64)
def form_of(layout: Layout) -> Form:
    """Return the form of a layout's own bins, or, where HdrHistogram has none such, of ns bins at least as fine.

    InputError for means without a histogram.
    """
    if not layout.has_bins:
        raise InputError(f"means without a histogram cannot be written as one: {REMEDY}")
    if isinstance(layout, LogLinear) and layout.half in DIGITS and not layout.coarseness and layout.reports == "highest":
        for unit in (layout.recorded_unit, *NAMED):
            times, rest = divmod(layout.unit_ns, unit)
            if unit in NAMED and not rest and not times & (times - 1):
                return Form(DIGITS[layout.half], times.bit_length() - 1, unit)
    fine = (digits for half, digits in sorted(DIGITS.items()) if half >= layout.octave)
    return Form(next(fine, max(DIGITS.values())), 0, 1)
