"""export --format hlog: windows as an interval log, added up over all logs on the way."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ingest.cli.origins import Origin, opened
from ingest.cli.queries import asked, parse_step
from ingest.cli.saying import say
from ingest.errors import InputError, UsageError
from ingest.grid import MS, coarsened
from ingest.intervals import Intervals
from ingest.layout import LogLinear
from ingest.query.clocks import shown_beside
from ingest.query.files import Files
from ingest.query.question import Answer, Question

DEFAULT_BY = "op,kind,tag"
NS = 1


def export_hlog(sources: tuple[str, ...], words: dict[str, Any]) -> None:
    """Print the log; memory stays flat where files are asked, whatever their number and length."""
    import ingest
    from ingest.view import hlog

    if words["attribution"] != "completion":
        raise UsageError("hlog holds whole samples: in-flight weights cannot be written")
    step = parse_step(words["step"]) if words["step"] else 0
    if step == "auto":
        raise UsageError("--step of an export is a width such as 10s, or all")
    question = asked({**words, "by": words["by"] or DEFAULT_BY}, step or "auto")
    with opened(sources, words) as origin:
        found = _from_files(origin, question) if isinstance(origin, Files) and step != "all" else _from_answers(origin, question)
        written = False
        for windows in found.windows:
            if not written:
                sys.stdout.write(hlog.head(found.unit_ns, found.start_ns, ingest.__version__))
            written = True
            sys.stdout.writelines(hlog.lines(windows, found.names, found.start_ns or 0, found.unit_ns))
        if not written:
            raise InputError("nothing matches the question: no interval to write")
        for text in found.warnings():
            say(text)


@dataclass(frozen=True, slots=True)
class _Found:
    """What is to be written: windows in time order, the names of their labels, the unit, time zero, and what to say of it."""

    windows: Iterator[Intervals]
    names: tuple[str, ...]
    unit_ns: int
    start_ns: int | None
    warnings: Callable[[], Sequence[str]]


def _names(question: Question, runs: Sequence[str]) -> tuple[str, ...]:
    """Return the labels that tell lines apart: kinds are never added up, runs only when asked."""
    run = ("run",) if len(runs) > 1 and not question.merge_runs and "run" not in question.by else ()
    kind = () if "kind" in question.by else ("kind",)
    return (*run, *question.by, *kind)


def _unit(layouts: Iterable[LogLinear]) -> int:
    """Return the unit that all layouts share, else ns."""
    from ingest.view.hlog import form_of

    units = {form_of(layout).unit_ns for layout in layouts}
    return units.pop() if len(units) == 1 else NS


def _from_files(files: Files, question: Question) -> _Found:
    """Return the windows of files, added up over all of them as they are read."""
    from ingest.layout import parse_layout
    from ingest.query.files import median_width, run_starts, warnings_of
    from ingest.query.long_logs import entries_at_once, streams
    from ingest.query.question import check_labels, check_step
    from ingest.query.union import regrouped, union

    check_labels(question, files.found.labels)
    chosen, apart = files.choice(question)
    runs = sorted({source.context.series.run for source in chosen})
    names = _names(question, runs)
    places = [(("run", "kind", *question.by)).index(name) for name in names]
    stored = max(files.stored[run] for run in runs)
    step = question.step if isinstance(question.step, int) and question.step else stored
    check_step(step, median_width(chosen), force=question.force)
    parts = [(regrouped(part, places) for part in stream) for stream in streams(files, question, step, {})]
    known = all(source.context.zero.epoch_ns is not None for source in chosen)
    start = min(run_starts(chosen).values()) // MS * MS if known else None
    unit = _unit(parse_layout(source.layout) for source in chosen if source.layout)
    windows = union(parts, entries_at_once(chosen))

    def warnings() -> Sequence[str]:
        return [*apart, *warnings_of([source.context.account for source in chosen], files.found)]

    return _Found(windows, names, unit, start, warnings)


def _from_answers(origin: Origin, question: Question) -> _Found:
    """Return the windows of a store, or those of the whole range: added up before the first is written."""
    from ingest.intervals import Sum, in_time_order
    from ingest.query.union import regrouped

    every = replace(question, where={"kind": "*", **question.where})
    answer = _dated(origin.answer(replace(every, by=_names(question, ()), step="all" if question.step != "auto" else "auto")))
    start = None if answer.relative else answer.start_of
    if question.step == "all":
        unit = _unit(part.layout for part in answer.parts)
        return _Found(iter(answer.parts), answer.by, unit, start, lambda: answer.warnings)
    names = _names(question, answer.runs)
    places = [(("run", "kind", *question.by)).index(name) for name in names]
    total = Sum()
    step = question.step
    for part in origin.windows(question):
        rows = regrouped(_of_runs(part, answer.runs), places)
        total.add(coarsened(rows, step) if isinstance(step, int) else rows)
    parts = [in_time_order(part) for part in total.parts()]
    return _Found(iter(parts), names, _unit(part.layout for part in parts), start, lambda: answer.warnings)


def _dated(answer: Answer) -> Answer:
    """Return the answer without the runs that have no clock where others have one: a log has one start."""
    if not answer.undated:
        return answer
    place = answer.by.index("run")
    runs = tuple(run for run in answer.runs if run not in answer.undated)
    parts = tuple(rows for part in answer.parts if len(rows := _of_runs(part, runs, place)))
    told = tuple(f"{run} has no start time, so it is left out of this log: export it alone" for run in sorted(answer.undated))
    starts = {run: start for run, start in answer.run_start_ns.items() if run not in answer.undated}
    kept = replace(answer, parts=parts, runs=runs, run_start_ns=starts, undated=frozenset())
    return replace(kept, warnings=(*told, *(text for text in answer.warnings if text not in shown_beside(answer.undated))))


def _of_runs(part: Intervals, runs: Collection[str], place: int = 0) -> Intervals:
    """Return the rows of some runs; `place` is that of the run in their keys."""
    good = np.array([isinstance(key, tuple) and key[place] in runs for key in part.table], np.bool_)
    return part if good.all() else part.take(np.flatnonzero(good[part.series]))
