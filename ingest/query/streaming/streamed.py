"""Percentiles at a fixed step straight from long logs: each window is answered and let go as soon as it is whole.

What is held does not grow with the length of the logs or their number, and the bins of a window are never copied twice.
The numbers are those of `Files.answer` and `percentiles`, to the last digit. Where that is not possible (windows that come
late, bins of unlike layouts, kinds or runs that have to be added up), None is returned and the ordinary way is open.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from ingest.core.errors import CapacityError
from ingest.core.intervals import Intervals
from ingest.core.series import IN_FLIGHT, LAYER, Group, Series, run_and_kind
from ingest.query.files import Files, beside_entries, median_width
from ingest.query.missing import of_kinds, with_complete
from ingest.query.other_kinds import left_out
from ingest.query.percentiles import Wanted, seconds_covered, spans_of
from ingest.query.precision import together
from ingest.query.question import (
    Answer,
    NothingMatchesError,
    Question,
    check_labels,
    moved_edges,
    shape_of,
    with_caveats,
    with_layers,
)
from ingest.query.spans import Span, covered_by, reach_inside, spanned
from ingest.query.steps import check_step
from ingest.query.streaming.gathered import Gathered
from ingest.query.streaming.in_ranges import in_ranges
from ingest.query.streaming.long_logs import entries_at_once, streams
from ingest.query.streaming.union import union
from ingest.query.table import Table, concatenated
from ingest.read.account import Account
from ingest.read.format_names import HDR
from ingest.read.sources import Source

RUN, KIND = "\0run", "\0kind"


def streamed(files: Files, question: Question, wanted: Wanted) -> tuple[Table, Answer] | None:
    """Return the table of percentiles and the facts about it (parts: the whole range), or None where it has to be done at once.

    Raises what `Files.answer` raises.
    """
    if not isinstance(question.step, int) or question.attribution == IN_FLIGHT:
        return None
    if question.merge_runs or ("kind" in question.where and "kind" not in question.by):
        return None
    sources, apart = files.choice(question)
    if any(source.format != HDR for source in sources):
        return None
    by = (RUN, KIND, *question.by)
    before = [list(source.context.account.notes) for source in sources]
    check_labels(question, files.found.labels)
    width = median_width(sources)
    warning = check_step(question.step, width, force=question.force)
    gathered = Gathered(by, question.step, wanted)
    try:
        done = in_ranges(files, question, gathered, sources, width) or _in_one(files, question, gathered, sources)
        sums = gathered.sums if done else None
    except CapacityError:  # of the whole range, perhaps, and not of any window
        sums = None
    if sums is None:
        for source, notes in zip(sources, before, strict=True):
            source.context.account.replace(Account(path=str(source.path), notes=notes))
        return None
    tables = gathered.tables
    if not tables:
        return None
    starts = files.starts_of(sources)
    bounds = files.bounds_of(question, question.step, starts)
    moved = {moved_edges(question, start, files.grain(run, question.step)) for run, start in starts.items()}
    texts = beside_entries(sources, files.found)
    missing = files.lacks(sources, question, bounds)
    if any(lack.entry.count is not None for lack in missing):
        return None  # percentiles of windows that are let go cannot become ranges any more
    facts = Answer(
        parts=tuple(spanned(sums)),
        by=question.by,
        step_ns=question.step,
        kind="",
        runs=(),
        run_start_ns=starts,
        relative=all(source.context.zero.epoch_ns is None for source in sources),
        series=len(sources),
        warnings=tuple(text for text in (warning, *sorted(moved), *apart, *texts) if text),
        missing=missing,
        caveats=files.found.caveats,
    )
    return _finished(tables, question, facts, reach_inside(gathered.noted.reach, bounds), gathered.noted.series)


def _in_one(files: Files, question: Question, gathered: Gathered, sources: Sequence[Source]) -> bool:
    """Return whether all windows came in order and in one layout, and were gathered."""
    step = question.step if isinstance(question.step, int) else 0
    logs = streams(files, question, step, gathered.noted)
    for part in union(logs, entries_at_once(sources), slack_ns=step):
        if not gathered.follows(part):
            return False
        gathered.answer(part)
        gathered.sum(part)
    return len(gathered.noted.layouts) <= 1


def _finished(
    tables: Sequence[Table],
    question: Question,
    facts: Answer,
    reach: Mapping[tuple[str, str], Span],
    series: Iterable[Series],
) -> tuple[Table, Answer] | None:
    """Return all rows as `finish` would have them: each run's default kind taken, runs named where there are several.

    Rates are those of the time that there is data of, which is known only now.
    """
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    order = np.argsort(columns["start_ns"], kind="stable")
    if (order[1:] < order[:-1]).any():
        columns = {name: column[order] for name, column in columns.items()}
    pairs = dict.fromkeys(zip(columns[RUN].tolist(), columns[KIND].tolist(), strict=True))
    places = {pair: place for place, pair in enumerate(pairs)}
    of_rows = np.array([places[pair] for pair in zip(columns[RUN].tolist(), columns[KIND].tolist(), strict=True)])
    kinds: dict[str, set[str]] = {}
    for run, kind in pairs:
        kinds.setdefault(run, set()).add(kind)
    shape = shape_of(question, kinds)
    if LAYER in shape.named:
        return None  # several layers have a column, which windows that are let go do not bear
    covered = covered_by(reach, shape.taken, all_kinds=False)
    spans = spans_of((run if "run" in shape.by else None for run, _ in pairs), covered)
    columns["rate"] = columns["count"] / seconds_covered(columns["start_ns"], columns["end_ns"], spans[of_rows])
    named: dict[str, object] = {}
    for name, column in columns.items():
        if name == RUN and "run" in shape.named:
            named["run"] = column
        elif name not in (RUN, KIND):
            named[name] = column
    table = Table(named, shape.by, together(table.precision for table in tables))
    keep = np.array([kind in shape.taken[run] for run, kind in pairs])[of_rows]
    table = table if keep.all() else table.take(np.flatnonzero(keep))
    if not len(table):
        raise NothingMatchesError(question, list(facts.run_start_ns), missing=facts.missing)
    if len(shape.by):
        table = concatenated([table])
    parts = tuple(_of_kinds(part, shape.taken) for part in facts.parts)
    layouts = {(run, kind): tuple({part.layout for part in parts}) for run, took in shape.taken.items() for kind in took}
    answer = replace(facts, by=shape.by, parts=parts, kind=shape.kind, runs=shape.runs, covered=covered, layouts=layouts)
    answer = with_caveats(with_layers(answer, kinds, question), of_kinds(facts.missing, shape.taken))
    answer = replace(answer, warnings=(*left_out(series, kinds, shape.taken, answer.missing), *answer.warnings))
    return with_complete(table, answer), answer


def _of_kinds(part: Intervals[Group], taken: Mapping[str, Sequence[str]]) -> Intervals[Group]:
    """Return the rows of the kinds that are taken of each run."""

    def is_taken(key: Group) -> bool:
        run, kind = run_and_kind(key)
        return kind in taken[run]

    return part.where(is_taken)
