"""Percentiles at a fixed step straight from long logs: each window is answered and let go as soon as it is whole.

What is held does not grow with the length of the logs or their number, and the bins of a window are never copied twice.
The numbers are those of `Files.answer` and `percentiles`, to the last digit. Where that is not possible (windows that come
late, bins of unlike layouts, kinds or runs that have to be added up), None is returned and the ordinary way is open.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from ingest.core.errors import CapacityError
from ingest.core.series import IN_FLIGHT, LAYER
from ingest.query.missing import with_complete
from ingest.query.percentiles import Wanted, seconds_covered, spans_of
from ingest.query.plan import Sums, answer_of
from ingest.query.precision import together
from ingest.query.question import Answer, Question, check_labels
from ingest.query.spans import spanned
from ingest.query.steps import check_step
from ingest.query.streaming.gathered import Gathered
from ingest.query.streaming.in_ranges import in_one_layout, in_ranges
from ingest.query.streaming.long_logs import entries_at_once, streams
from ingest.query.streaming.union import union
from ingest.query.summed import all_of, median_width
from ingest.query.table import Table, concatenated
from ingest.read.account import Account
from ingest.read.sources import Source

if TYPE_CHECKING:
    from ingest.query.files import Files

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
    before = [list(source.context.account.notes) for source in sources]
    check_labels(question, files.found.labels)
    width = median_width(sources)
    finer = check_step(question.step, width, force=question.force)
    gathered = Gathered((RUN, KIND, *question.by), question.step, wanted)
    try:
        met = in_ranges(files, question, gathered, sources, width) or _in_one(files, question, gathered, sources)
        sums = gathered.sums if met else []
    except CapacityError:  # of the whole range, perhaps, and not of any window
        met = None
    if met is None:
        for source, notes in zip(sources, before, strict=True):
            source.context.account.replace(Account(path=str(source.path), notes=notes))
        return None
    if not gathered.tables:
        return None
    met.parts = spanned(sums)
    answer = answer_of(files.merged_of(met, question, question.step, sources, apart, finer=finer), question)
    if LAYER in answer.by and LAYER not in question.by:
        return None  # several layers have a column, which windows that are let go do not bear
    if any(lack.entry.count is not None for lack in answer.missing):
        return None  # percentiles of windows that are let go cannot become ranges any more
    return with_complete(_named(gathered.tables, answer), answer), answer


def _in_one(files: Files, question: Question, gathered: Gathered, sources: Sequence[Source]) -> Sums | None:
    """Return what was met where all windows came in order and in one layout, and were gathered; else None."""
    step = question.step if isinstance(question.step, int) else 0
    logs, adding = streams(files, question, step, sources)
    if gathered.take(union(logs, entries_at_once(sources), slack_ns=step)) is None:
        return None
    met = all_of(adding)
    return met if in_one_layout(met) else None


def _named(tables: Sequence[Table], answer: Answer) -> Table:
    """Return all rows of the kinds that an answer takes, with its labels.

    Rates are those of the time that there is data of, which is known only now.
    """
    columns = {name: np.concatenate([table.columns[name] for table in tables]) for name in tables[0].columns}
    order = np.argsort(columns["start_ns"], kind="stable")
    if (order[1:] < order[:-1]).any():
        columns = {name: column[order] for name, column in columns.items()}
    pairs = list(zip(columns[RUN].tolist(), columns[KIND].tolist(), strict=True))
    places = {pair: place for place, pair in enumerate(dict.fromkeys(pairs))}
    of_rows = np.array([places[pair] for pair in pairs])
    spans = spans_of((run if "run" in answer.by else None for run, _ in places), answer.covered)
    columns["rate"] = columns["count"] / seconds_covered(columns["start_ns"], columns["end_ns"], spans[of_rows])
    runs, _ = columns.pop(RUN), columns.pop(KIND)
    if "run" in answer.by and "run" not in columns:
        columns = {"start_ns": columns.pop("start_ns"), "end_ns": columns.pop("end_ns"), "run": runs, **columns}
    table = Table(columns, answer.by, together(table.precision for table in tables))
    keep = np.array([pair in answer.layouts for pair in places])[of_rows]
    table = table if keep.all() else table.take(np.flatnonzero(keep))
    return concatenated([table]) if answer.by else table
