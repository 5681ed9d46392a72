"""Lags of sampled events: raw counts within one event, weights where events of unlike rates come together.

A Snabb timeline stores an event of rate r with probability 5^(r-9). The tag of its series holds level, rate and anchor:
`3,3 after app.push app=tee`. Within one rate the weights cancel: counts are those of stored events, which is what percentiles
and their bounds can carry. Rates a second stand for all events, stored or not: each counts 5^(9-r) times. Where rates are
mixed in one group, so does each count of its histogram; the group's count stays that of stored events.

Only the sum over all anchors of an event stands for all its occurrences: each of its pairs stands for those that had this
anchor among the stored events.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

import numpy as np

from ingest.core.grid import WEIGHT_BITS
from ingest.core.intervals import Bool, Int, Intervals
from ingest.core.labels import LAG, Group
from ingest.query.origin import WEIGHED, Origin
from ingest.query.question import Answer, Question
from ingest.query.windows import regrouped, weights_in

SAMPLED = r"(\d),(\d) after "
ALWAYS, FIFTH = 9, 5
TAG = "tag"
MIXED = (
    "events of unlike rates are added up: an event of rate r counts 5^(9-r) times, count is what was sampled; "
    "--by op keeps events apart"
)
ANCHORS = "lags since unlike events are added up: --by op,job,tag keeps them apart"

Ask = Callable[[Question], Answer]


def weight_of(tag: str) -> int:
    """Return how many events a stored one stands for by the tag of its series; 1 where it was not sampled."""
    match = re.match(SAMPLED, tag)
    return FIFTH ** (ALWAYS - int(match[2])) if match else 1


def weighed(ask: Ask, question: Question) -> Answer:
    """Return the answer with `weights` where it holds sampled events, and with weighed counts where rates are mixed.

    `ask` is asked for the tags beside the labels that are wanted. UsageError where rates would be mixed in flight.
    """
    named = TAG in question.by
    fine = ask(question if named else replace(question, by=(*question.by, TAG)))
    by = fine.by if named else tuple(name for name in fine.by if name != TAG)
    place = fine.by.index(TAG)
    groups = [key for part in fine.parts for key in part.table]
    if not any(re.match(SAMPLED, key[place]) for key in groups):
        return fine if named else regrouped(fine, by)
    fine = replace(fine, weights={key: weight_of(key[place]) for key in groups})
    answer = fine if named else regrouped(fine, by)
    if any(mixed_rows(answer, part).any() for part in answer.parts):
        return replace(answer, warnings=(*answer.warnings, MIXED))
    together = sum(len(part.table) for part in fine.parts) > sum(len(part.table) for part in answer.parts)
    return replace(answer, warnings=(*answer.warnings, ANCHORS)) if together else answer


def mixed_rows(answer: Answer, rows: Intervals[Group]) -> Bool:
    """Return which rows of an answer hold events of unlike rates, so that their counts are weights of 2^-16."""
    weights = answer.weights
    if weights is None:
        return np.zeros(len(rows), np.bool_)
    return np.array([key not in weights for key in rows.table], np.bool_)[rows.series]


def events_of(answer: Answer, rows: Intervals[Group], count: Int) -> Int:
    """Return how many events the `count` stored ones of each row stand for."""
    weights = answer.weights
    if weights is None:
        return count
    each = weights_in(rows, weights)
    return np.where(each > 0, count * each, rows.samples >> WEIGHT_BITS)


def whole_counts(answer: Answer) -> tuple[Intervals[Group], ...]:
    """Return the parts of an answer; where rates are mixed with whole counts, of all events by estimate, for weights."""
    return tuple(
        replace(part, counts=part.counts >> WEIGHT_BITS, completions=None) if mixed_rows(answer, part).any() else part
        for part in answer.parts
    )


def in_events(answer: Answer) -> tuple[Intervals[Group], ...]:
    """Return the parts of an answer with counts of all events by estimate, so that unlike groups can stand beside one another."""
    if answer.weights is None:
        return answer.parts
    parts = []
    for part in answer.parts:
        each = weights_in(part, answer.weights)[part.row]
        counts = np.where(each > 0, part.counts * each, part.counts >> WEIGHT_BITS)
        parts.append(replace(part, counts=counts, completions=None, exact=None))
    return tuple(parts)


def answered(origin: Origin, question: Question) -> Answer:
    """Return what files or a store answer, events that were stored at unlike rates weighed where they come together."""
    ask_weighed = origin.offers.get(WEIGHED)
    return asked_weighed(origin.answer, question) if ask_weighed is None else ask_weighed(question)


def asked_weighed(ask: Ask, question: Question) -> Answer:
    """Return the answer, of lags weighed: of these a question is asked again with the tag that holds their rates."""
    answer = ask(question)
    if LAG not in answer.kind.split(", "):
        return answer
    return weighed(ask, replace(question, step=answer.step_ns or "all", force=True))
