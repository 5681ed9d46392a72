"""By which labels two runs are compared beside one another: operations, hosts, and what was asked for, from one answer each.

An answer by all of these labels is asked once; sums over some of them are exact, so what is regrouped here is what a question by
those labels alone is answered.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.core.series import LAG, Group
from ingest.query.compare import SAME_WITHIN, Pair, Sides, kinds_of, paired
from ingest.query.question import Answer
from ingest.query.regrouped import regrouped
from ingest.query.sweeps import PERMUTATION

USUAL = ("op", "host")
APART = ("kind", PERMUTATION)
UNLIKE_EVENTS = "lags of unlike events are counted as they were stored, at unlike rates: --by op keeps events apart"


def labels_of(by: Sequence[str]) -> tuple[str, ...]:
    """Return the labels of an answer of which all groupings can be made: those asked for, operation and host."""
    return tuple(dict.fromkeys((*by, *USUAL)))


def is_lag(*answers: Answer) -> bool:
    """Return whether the answers are about lags: those of unlike events are stored at unlike rates, and are not added up."""
    return all(kinds_of(answer) == {LAG} for answer in answers)


def groupings(baseline: Answer, run: Answer, by: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the labels to compare by, one after the other: operation, host, each that was asked for, and these together.

    Left out is what has one value in both runs; of lags what does not keep operations apart.
    Kinds and pairs of runs stay apart in all.
    """
    kind = tuple(name for name in by if name in APART)
    asked = tuple(name for name in by if name not in APART)
    wanted = [*((name,) for name in USUAL), *((name,) for name in asked), asked]
    lags = is_lag(baseline, run)
    label_sets = []
    for labels in dict.fromkeys(names for names in wanted if names):
        values = groups_of(baseline, labels) | groups_of(run, labels)
        if len(values) > 1 and (not lags or "op" in labels):
            label_sets.append((*kind, *labels))
    return label_sets


def groups_of(answer: Answer, by: Sequence[str]) -> set[Group]:
    """Return the groups that an answer has by some of its labels."""
    places = [answer.by.index(name) for name in by]
    keys = {key for part in answer.parts for key in part.table}
    return {tuple(key[place] for place in places) for key in keys}


def grouped(
    baseline: Answer,
    run: Answer,
    by: Sequence[str],
    windows: Sides = ((), ()),
    *,
    unlike: bool = False,
    same_within: float = SAME_WITHIN,
) -> Pair:
    """Return two answers and their windows as a pair by some of their labels, and by kind where one holds several.

    UsageError for unlike kinds, unless `unlike`.
    """
    kept = by if "kind" in by or "kind" not in baseline.by else ("kind", *by)
    pair = paired(regrouped(baseline, kept), regrouped(run, kept), by, unlike=unlike, windows=windows)
    unlike_events = is_lag(baseline, run) and "op" not in by
    notes = (*pair.notes, UNLIKE_EVENTS) if unlike_events else pair.notes
    return replace(pair, notes=notes, same_within=same_within)


def alone_in(pair: Pair, group: Group) -> Pair:
    """Return what a pair has of one group, without labels."""
    first, second = (tuple(_only(each, group) for each in side) for side in pair.windows)
    return replace(pair, baseline=_only(pair.baseline, group), run=_only(pair.run, group), windows=(first, second))


def _only(answer: Answer, group: Group) -> Answer:
    parts = []
    for part in answer.parts:
        chosen = part.relabelled(lambda key: () if key == group else None)
        if len(chosen):
            parts.append(chosen)
    return replace(answer, parts=tuple(parts), by=())
