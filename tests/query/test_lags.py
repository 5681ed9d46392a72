"""Weights of sampled events, against sums by hand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import UsageError
from ingest.core.grid import in_flight
from ingest.core.intervals import Intervals, merged
from ingest.core.labels import Series
from ingest.core.layout import LogLinear
from ingest.core.quantiles import parse_percentiles
from ingest.query.heatmap import distribution, heatmap
from ingest.query.lags import weighed, weight_of, whole_counts
from ingest.query.percentiles import Wanted, narrowed, percentiles
from ingest.query.question import Answer, Question, finish
from ingest.query.windows import regrouped
from tests.effort import figure

LAYOUT = LogLinear(64, 64 * 40, open_ended=False)
STEP = 10**9

series = st.builds(
    Series,
    run=st.just("r"),
    op=st.sampled_from(["a", "b", "c"]),
    kind=st.just("lag"),
    job=st.sampled_from(["", "x"]),
    tag=st.sampled_from(["3,3 after a", "1,5 after b", "1,5 after c x=1", "9,1 after a", "0,9 after b", ""]),
)
rows = st.lists(
    st.tuples(series, st.integers(0, 3), st.dictionaries(st.integers(0, 300), st.integers(1, 40), min_size=1, max_size=4)),
    min_size=1,
    max_size=25,
)


def asked(made: list) -> tuple:
    """Return the function that answers a question from these rows, as files and stores do."""
    table = tuple(dict.fromkeys(one for one, _, _ in made))
    indptr = np.cumsum([0, *(len(counts) for _, _, counts in made)])
    part = Intervals(
        LAYOUT,
        table,
        np.array([table.index(one) for one, _, _ in made]),
        np.array([window * STEP for _, window, _ in made]),
        np.array([(window + 1) * STEP for _, window, _ in made]),
        indptr,
        np.array([number for _, _, counts in made for number in sorted(counts)]),
        np.array([counts[number] for _, _, counts in made for number in sorted(counts)]),
    )
    facts = Answer((), (), STEP, "", ("r",), {"r": 0}, True, len(table))

    def ask(question: Question) -> Answer:
        return finish([merged([part.relabelled(question.key({}))])], question, replace(facts, by=question.by))

    return ask


def rate(tag: str) -> int | None:
    return int(tag[2]) if " after " in tag else None


def weight(tag: str) -> int:
    return 1 if rate(tag) is None else 5 ** (9 - rate(tag))


@pytest.mark.slow
@settings(max_examples=figure(100, 300))
@given(made=rows, by=st.sampled_from([(), ("op",), ("op", "job"), ("tag",), ("op", "tag", "job")]))
def test_groups_of_one_rate_keep_their_counts_and_mixed_ones_are_weighed(made: list, by: tuple[str, ...]) -> None:
    answer = weighed(asked(made), Question(by=by, step=STEP))
    groups = {tuple(getattr(one, name) for name in by) for one, _, _ in made}
    weights = {
        group: {weight(one.tag) for one, _, _ in made if tuple(getattr(one, name) for name in by) == group} for group in groups
    }
    sampled = any(rate(one.tag) is not None for one, _, _ in made)
    assert answer.weights == ({group: min(found) for group, found in weights.items() if len(found) == 1} if sampled else None)
    wanted: dict = {}
    stored: Counter = Counter()
    for one, window, counts in made:
        group = tuple(getattr(one, name) for name in by)
        times = weight(one.tag) if len(weights[group]) > 1 else 1
        for number, count in counts.items():
            wanted.setdefault((group, window), Counter())[number] += times * count
            stored[group, window] += count
    found = {}
    for part in whole_counts(answer):
        for row in range(len(part)):
            entries = slice(part.indptr[row], part.indptr[row + 1])
            found[part.table[part.series[row]], int(part.start_ns[row]) // STEP] = dict(
                zip(part.bins[entries].tolist(), part.counts[entries].tolist())
            )
    assert found == wanted
    table = percentiles(answer, Wanted(parse_percentiles("50,99")))
    keys = list(
        zip(
            zip(*(table.columns[name].tolist() for name in by)) if by else [()] * len(table),
            (table.columns["start_ns"] // STEP).tolist(),
        )
    )
    for place, key in enumerate(keys):
        assert table.columns["count"][place] == stored[key]
        events = sum(
            weight(one.tag) * sum(counts.values())
            for one, window, counts in made
            if (tuple(getattr(one, name) for name in by), window) == key
        )
        assert table.columns["rate"][place] == pytest.approx(events)
        total = sum(wanted[key].values())
        rank = -(-total // 2)
        at = next(
            number
            for number in sorted(wanted[key])
            if sum(count for other, count in wanted[key].items() if other <= number) >= rank
        )
        assert table.columns["p50"][place] == LAYOUT.values[at]
        assert np.isnan(table.columns["p99"][place]) == (stored[key] < 100), "what was sampled decides, not its weight"


def test_maps_and_distributions_count_events_where_rates_are_mixed() -> None:
    made = [
        (Series(run="r", op="a", kind="lag", tag="3,3 after b"), 0, {5: 2}),
        (Series(run="r", op="b", kind="lag", tag="1,5 after a"), 0, {5: 1, 9: 3}),
    ]
    answer = weighed(asked(made), Question(step=STEP))
    for table in (heatmap(answer), distribution(answer)):
        assert table.columns["count"].tolist() == [2 * 5**6 + 5**4, 3 * 5**4]
    assert answer.samples == 6
    with pytest.raises(UsageError, match="one rate"):
        narrowed(answer, parse_percentiles("99")[0], 0.1)
    alone = weighed(asked(made), Question(by=("op",), step=STEP))
    assert heatmap(alone).columns["count"].tolist() == [2, 1, 3]


def test_events_of_unlike_rates_are_not_added_up_in_flight() -> None:
    made = [
        (Series(run="r", op="a", kind="lag", tag="3,3 after b"), 0, {5: 2}),
        (Series(run="r", op="b", kind="lag", tag="1,5 after a"), 0, {5: 1}),
    ]

    def ask(question: Question) -> Answer:
        answer = asked(made)(question)
        return replace(answer, parts=tuple(in_flight(part, STEP) for part in answer.parts))

    with pytest.raises(UsageError, match="in flight: add --by op"):
        weighed(ask, Question(step=STEP))
    alone = percentiles(weighed(ask, Question(by=("op",), step=STEP)), Wanted(()))
    assert alone.columns["count"].tolist() == [2, 1] and alone.columns["rate"].tolist() == [2 * 5**6, 5**4]


@pytest.mark.slow
@settings(max_examples=figure(60, 200))
@given(made=rows)
def test_groups_may_be_joined_step_by_step(made: list) -> None:
    """Whether rates come together at once or one label after the other: the same counts."""
    if not any(rate(one.tag) is not None for one, _, _ in made):
        return
    fine = weighed(asked(made), Question(by=("op", "job", "tag"), step=STEP))
    at_once, by_steps = regrouped(fine, ()), regrouped(regrouped(regrouped(fine, ("op", "job")), ("op",)), ())
    for answer in (at_once, by_steps):
        assert answer.samples == sum(sum(counts.values()) for _, _, counts in made)
    counts = [Counter() for _ in range(2)]
    for total, answer in zip(counts, (at_once, by_steps)):
        for part in whole_counts(answer):
            for row, start in enumerate(part.start_ns.tolist()):
                for entry in range(part.indptr[row], part.indptr[row + 1]):
                    total[start, int(part.bins[entry])] += int(part.counts[entry])
    several = len({weight(one.tag) for one, _, _ in made}) > 1
    wanted: Counter = Counter()
    for one, window, found in made:
        for number, count in found.items():
            wanted[window * STEP, number] += count * (weight(one.tag) if several else 1)
    assert counts == [wanted, wanted]


def test_weights_are_read_from_tags_alone() -> None:
    assert [weight_of(tag) for tag in ("1,9 after a", "1,5 after a", "9,1 after x y=z", "", "1,5", "insert-st")] == [
        1,
        625,
        5**8,
        1,
        1,
        1,
    ]


def test_mean_of_mixed_rates_is_that_of_the_events() -> None:
    made = [
        (Series(run="r", op="a", kind="lag", tag="3,3 after b"), 0, {10: 1}),
        (Series(run="r", op="b", kind="lag", tag="1,9 after a"), 0, {100: 4}),
    ]
    [mean] = percentiles(weighed(asked(made), Question(step=STEP)), Wanted(())).columns["mean"].tolist()
    assert mean == pytest.approx(float(Fraction(5**6 * 10 + 4 * 100, 5**6 + 4)))
