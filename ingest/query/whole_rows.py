"""Exact values of rows that windows cut: fio's json+ is one row of a whole run, and its parts no longer have them.

A row that crosses an edge of the stored grid loses its exact minimum, maximum and sum, in a store as in files. Over the whole
run they are what they were: the account of each source keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.core.intervals import Intervals, no_exact
from ingest.core.series import Group
from ingest.query.question import ALL, Key, Question

if TYPE_CHECKING:  # stores ask for whole rows, too, and need no reader for that
    from ingest.core.whole_runs import WholeRow  # and most runs have none: it is imported where there is one
    from ingest.read.sources import Source


def whole_rows_of(sources: Iterable[Source]) -> list[WholeRow]:
    """Return the exact values of whole rows of sources, known once these are read."""
    reported = [source for source in sources if source.context.account.whole_rows]
    if not reported:
        return []
    from ingest.core.whole_runs import whole_rows

    return [
        whole_row
        for source in reported
        for whole_row in whole_rows(source.context.series.run, [source.context.account.as_dict()])
    ]


def with_whole_rows(
    parts: Sequence[Intervals[Group]], question: Question, key: Key, exact_rows: Sequence[WholeRow]
) -> list[Intervals[Group]]:
    """Return parts of an answer about whole runs with the exact values of the rows that they were made of.

    Rows are keyed as `key` keys series. Where both count the same samples they are the same ones.
    """
    if question.step != ALL or question.begin is not None or question.end is not None or not exact_rows:
        return list(parts)
    groups: dict[Group, list[WholeRow]] = {}
    for whole_row in exact_rows:
        group = key(whole_row.series)
        if group is not None:
            groups.setdefault(group, []).append(whole_row)
    return [_replaced(part, groups) if part.layout.has_bins and part.completions is None else part for part in parts]


def _replaced(part: Intervals[Group], groups: dict[Group, list[WholeRow]]) -> Intervals[Group]:
    from ingest.core.whole_runs import replaced_rows

    rows = {}
    for row, (code, count) in enumerate(zip(part.series.tolist(), part.samples.tolist(), strict=True)):
        members = groups.get(part.table[code], [])
        if members and sum(member.count for member in members) == count:
            least, most = min(member.min_ns for member in members), max(member.max_ns for member in members)
            rows[row] = sum(member.sum_ns for member in members), least, most
    return replace(part, exact=replaced_rows(part.exact or no_exact(len(part)), rows)) if rows else part
