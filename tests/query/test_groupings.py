"""Labels by which two runs are compared beside one another; what is regrouped is what a question by those labels is answered."""

from __future__ import annotations

import numpy as np
import pytest

from ingest.core.errors import UsageError
from ingest.core.labels import Series
from ingest.core.quantiles import parse_percentiles
from ingest.query.compare import UNLIKE_EVENTS, alone_in, compare, grouped, groupings, labels_of
from ingest.query.question import Question
from tests.doubles.origin import Made, random_rows, series

PS = parse_percentiles("50,99,100")


def both(by: tuple[str, ...], first: Made, second: Made, **words):
    return [one.answer(Question(by=labels_of(by), step="all", **words)) for one in (first, second)]


def table(pair) -> list:
    found = compare(pair, PS)
    return [[cell if isinstance(cell, str) else float(cell) for cell in row] for row in zip(*found.columns.values(), strict=True)]


@pytest.mark.parametrize("by", [(), ("op",), ("host",), ("job",), ("host", "job"), ("job", "op", "host")])
def test_sums_of_one_answer_are_what_is_asked_directly(by: tuple[str, ...]):
    made = Made(random_rows(1)), Made(random_rows(2))
    direct = grouped(*(one.answer(Question(by=by, step="all")) for one in made), by)
    np.testing.assert_equal(table(grouped(*both(("job",), *made), by)), table(direct))


def test_what_has_one_value_in_both_is_left_out():
    one, other = Made([(series("read", "a"), 0, {900: 1})]), Made([(series("read", "b"), 0, {900: 1})])
    assert groupings(*both((), one, other), ()) == [("host",)]
    assert groupings(*both(("job",), one, other), ("job",)) == [("host",)]
    wide = Made(random_rows(3))
    assert groupings(*both(("job", "op"), wide, wide), ("job", "op")) == [("op",), ("host",), ("job",), ("job", "op")]
    assert groupings(*both(("host", "op"), wide, wide), ("host", "op")) == [("op",), ("host",), ("host", "op")]


def test_kinds_stay_apart():
    rows = [
        (series("read", host, kind=kind), 0, {900 + 50 * at: 9})
        for at, kind in enumerate(("service", "response"))
        for host in "ab"
    ]
    sides = both(("kind",), Made(rows), Made(rows))
    assert groupings(*sides, ("kind",)) == [("kind", "host")]
    assert [row[:2] for row in table(grouped(*sides, ("kind", "host")))[:2]] == [["response", "a"], ["response", "a"]]
    globbed = both((), Made(rows), Made(rows), where={"kind": "*"})
    with pytest.raises(UsageError, match="several kinds here"):
        grouped(*globbed, ("host",))
    other = [(series("read", "a", kind="completion"), 0, {900: 1})]
    with pytest.raises(UsageError, match="unlike kinds are not compared"):
        grouped(*both((), Made(rows), Made(other)), ())
    assert len(table(grouped(*both((), Made(rows), Made(other)), (), unlike=True))) == 3


def test_lags_are_compared_event_by_event():
    rows = [
        (Series(run="r", op=op, host=host, kind="lag", tag=tag), 0, {900: 5})
        for op, tag in (("a", "3,3 after b"), ("b", "1,5 after a"))
        for host in "xy"
    ]
    sides = both(("tag",), Made(rows), Made(rows))
    assert groupings(*sides, ("tag",)) == [("op",)]
    assert groupings(*sides, ("op", "tag")) == [("op",), ("op", "tag")]
    assert UNLIKE_EVENTS in grouped(*sides, ("host",)).notes
    assert UNLIKE_EVENTS not in grouped(*sides, ("op",)).notes


def test_one_group_alone_is_the_pair_of_that_group():
    made = Made(random_rows(4)), Made(random_rows(5))
    sides = both((), *made)
    direct = grouped(*(one.answer(Question(where={"host": "h1", "op": "write"}, step="all")) for one in made), ())
    np.testing.assert_equal(table(alone_in(grouped(*sides, ("op", "host")), ("write", "h1"))), table(direct))
