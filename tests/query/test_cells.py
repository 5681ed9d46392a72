"""The cells of heat maps held against slow counts: nested and equal rows, columns, what is dropped, ranges, what is highlighted."""

from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

from ingest.core.errors import InputError, UsageError
from ingest.core.layout import LogLinear, fio_layout
from ingest.query.heatmap import Rows, cells, heatmap, in_windows, split, with_labels
from ingest.query.question import Question
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series
from tests.oracles.heat import equal, nested_row, spread

ROWS = random_rows(8)
ORIGIN = Made(ROWS)
SAMPLES = sum(sum(bins.values()) for _, _, bins in ROWS)


def counted(found) -> dict:
    """Cells by (window, lower, upper)."""
    keys = zip(((found.start_ns - ZERO) // SECOND).tolist(), found.lower.tolist(), found.upper.tolist(), strict=True)
    return dict(zip(keys, found.count.tolist(), strict=True))


def by_window(k: int = 1) -> dict[int, Counter]:
    """The bins of each window of k seconds."""
    out: dict[int, Counter] = {}
    for _, at, bins in ROWS:
        start = ((ZERO // SECOND + at) // k * k) - ZERO // SECOND
        out.setdefault(start, Counter()).update(bins)
    return out


@pytest.mark.parametrize("half", [1, 2, 8, 64])
@pytest.mark.parametrize("k", [1, 3])
def test_nested_rows_equal_a_count_of_every_bin(half, k):
    expected: Counter = Counter()
    for at, bins in by_window(k).items():
        for place, count in bins.items():
            expected[(at, *nested_row(int(NS.edges[place]), half))] += count
    found = cells(ORIGIN.answer(Question(step=k * SECOND)), Rows(octave=half))
    assert counted(found) == expected
    assert found.count.dtype == np.int64
    assert (found.below, found.above, found.left_out) == (0, 0, 0)


def test_no_rows_asked_is_every_bin():
    answer = ORIGIN.answer(Question(by=("host",), step=SECOND))
    ours, table = cells(answer).table(dropped=False), heatmap(answer)
    assert {name: ours.columns[name].tolist() for name in ours.columns} == {
        name: table.columns[name].tolist() for name in table.columns
    }


@pytest.mark.parametrize(("low", "high", "rows"), [(0, 2_000_000, 50), (100_000, 900_000, 7), (3_000_000, 3_100_000, 3)])
def test_equal_rows_equal_a_spread_of_every_bin(low, high, rows):
    found = cells(ORIGIN.answer(Question(step=SECOND)), Rows("linear", low, high, rows))
    edges = equal(low, high, rows)
    total = {}
    for at, bins in by_window().items():
        ranges = [(int(NS.edges[place]), int(NS.edges[place + 1]), count) for place, count in bins.items()]
        for row, count in enumerate(spread(ranges, edges)):
            if count:
                total[at, float(edges[row]), float(edges[row + 1])] = float(count)
        whole = sum(bins.values())
        mine = (found.start_ns - ZERO) // SECOND == at
        assert found.n[mine].tolist() == pytest.approx([whole] * int(mine.sum()))
    assert counted(found) == pytest.approx(total)
    assert found.count.sum() + found.below + found.above == pytest.approx(SAMPLES)
    finer = Fraction(high - low, rows) < max(
        np.diff(NS.edges)[place] for _, _, bins in ROWS for place in bins if low < NS.edges[place + 1] and NS.edges[place] < high
    )
    assert bool(found.notes) == finer


def test_columns_that_are_no_multiple_of_windows_share_them_by_overlap():
    answer = ORIGIN.answer(Question(step=SECOND))
    begin, end = min(at for _, at, _ in ROWS), max(at for _, at, _ in ROWS) + 1
    found = cells(answer, Rows(octave=1), columns=13)
    edges = [begin + Fraction(end - begin) * column / 13 for column in range(14)]
    sums = np.zeros(13)
    np.add.at(sums, np.searchsorted(found.starts, found.start_ns), found.count)
    ranges = [(at, at + 1, sum(bins.values())) for at, bins in by_window().items()]
    assert sums.tolist() == pytest.approx([float(count) for count in spread(ranges, edges)])
    assert sums.sum() == pytest.approx(SAMPLES)
    with pytest.raises(UsageError, match="would be narrower than the windows, and invent detail"):
        cells(answer, columns=end - begin + 1)


@pytest.mark.parametrize("axis", ["log", "linear"])
@pytest.mark.parametrize("drop", [Fraction(1, 50), Fraction(1, 20), Fraction(1, 2)])
def test_what_is_dropped_lies_in_one_row_and_is_at_most_the_share(axis, drop):
    found = cells(ORIGIN.answer(Question(step=SECOND)), Rows(axis, octave=8 if axis == "log" else 0, drop=drop))
    over = found.over > 0
    (limit,) = set(found.lower[over].tolist())
    assert found.count.sum() == pytest.approx(SAMPLES)
    above = sum(count for bins in by_window().values() for place, count in bins.items() if NS.edges[place] >= limit)
    assert found.left_out <= drop * SAMPLES
    assert len(set(zip(found.start_ns[over].tolist(), found.group[over].tolist(), strict=True))) == over.sum()
    assert found.cum[over].tolist() == pytest.approx(found.n[over].tolist())
    if axis == "log":
        assert found.left_out == above
        highest = found.lower[~over].max()
        row = sum(count for bins in by_window().values() for place, count in bins.items() if NS.edges[place] >= highest)
        assert row > drop * SAMPLES


def test_a_range_has_rows_as_fine_as_bins_and_counts_the_rest():
    answer = ORIGIN.answer(Question(step=SECOND))
    low, high = int(NS.edges[900]), int(NS.edges[920])
    found = cells(answer, Rows(low_ns=low, high_ns=high))
    expected = {
        (at, int(NS.edges[place]), int(NS.edges[place + 1])): count
        for at, bins in by_window().items()
        for place, count in bins.items()
        if 900 <= place < 920
    }
    assert counted(found) == expected
    assert found.edges.tolist() == NS.edges[900:921].tolist()
    below = sum(count for bins in by_window().values() for place, count in bins.items() if place < 900)
    assert (found.below, found.above) == (below, SAMPLES - below - sum(expected.values()))
    for at, bins in by_window().items():
        for (t, lower, _), cum, n in zip(counted(found), found.cum.tolist(), found.n.tolist(), strict=True):
            if t == at:
                assert cum == sum(count for place, count in bins.items() if NS.edges[place] <= lower)
                assert n == sum(bins.values())
    assert len(cells(answer, Rows(low_ns=low, high_ns=high, most=6)).edges) - 1 <= 6


def test_ranges_and_rows_that_cannot_be():
    answer = ORIGIN.answer(Question(step=SECOND))
    for rows in (Rows(low_ns=10**12), Rows(high_ns=3), Rows("linear", 10**12, 2 * 10**12)):
        with pytest.raises(UsageError, match="no samples in the range of --latency: they lie between"):
            cells(answer, rows)
    with pytest.raises(UsageError, match=r"--rows 2: \d+ rows are the least on a logarithmic axis here"):
        cells(answer, Rows(most=2))


def test_the_open_bin_is_never_spread():
    origin = Made([(series(), 0, {1000: 3, 1855: 2})])
    answer = origin.answer(Question(step=SECOND))
    for rows in (Rows(octave=8), Rows("linear", most=10)):
        found = cells(answer, rows)
        assert found.count.tolist() == [3, 2]
        assert found.open.tolist() == [0, 1]


@pytest.mark.parametrize("axis", ["log", "linear"])
def test_what_is_highlighted_is_what_a_filter_answers(axis):
    question = Question(by=("op",), step=SECOND)
    chosen = {"host": "h1", "job": "0"}
    total, lit = split(ORIGIN.answer(with_labels(question, chosen)), question, chosen)
    rows = Rows(axis, octave=8, drop=Fraction(1, 100)) if axis == "log" else Rows(axis, 0, 4_000_000, 40)
    found = cells(total, rows, lit)
    alone = ORIGIN.answer(Question(by=("op",), where=chosen, step=SECOND))
    assert counted(found) == counted(cells(ORIGIN.answer(question), rows))
    expected: dict = {}
    table = heatmap(alone).columns
    for start, op, lower, upper, count in zip(
        *(table[name].tolist() for name in ("start_ns", "op", "lower", "upper", "count")), strict=True
    ):
        expected.setdefault((start, op), []).append((lower, upper, count))
    for at in range(len(found)):
        ranges = expected.get((int(found.start_ns[at]), found.groups[found.group[at]][0]), [])
        top = 1 << 62 if found.over[at] else found.upper[at]
        (wanted,) = spread(ranges, [Fraction(float(found.lower[at])), Fraction(float(top))])
        assert found.lit[at] == pytest.approx(float(wanted))
        assert 0 <= found.lit[at] <= found.count[at] + 1e-9


def test_highlights_that_cannot_be():
    question = Question(step=SECOND)
    with pytest.raises(UsageError, match="kinds are never added up"):
        with_labels(question, {"kind": "total"})
    with pytest.raises(InputError, match="nothing matches --highlight host=nobody: there are h0, h1, h2"):
        split(ORIGIN.answer(with_labels(question, {"host": "nobody"})), question, {"host": "nobody"})
    two = Made([(series(run=run), 0, {900: 5}) for run in ("a", "b")])
    with pytest.raises(UsageError, match="these are 2 runs; --merge-runs adds them up"):
        split(two.answer(with_labels(question, {"run": "a"})), question, {"run": "a"})
    merged = Question(step=SECOND, merge_runs=True)
    total, lit = split(two.answer(with_labels(merged, {"run": "a"})), merged, {"run": "a"})
    assert (total.samples, lit.samples) == (10, 5)


def test_unlike_layouts_have_the_rows_of_their_common_one():
    layouts = {
        "read": NS,
        "write": fio_layout(19, 1000, 2),
        "trim": LogLinear(128, 128 * 20, 1000, reports="highest", open_ended=False),
    }
    origin = Made(
        [(series(op), at, {place: 3 + at}) for at in range(6) for op, place in (("read", 1100), ("write", 120), ("trim", 300))],
        layout=layouts,
    )
    answer = origin.answer(Question(by=("op",), step=2 * SECOND))
    found = cells(answer, Rows(octave=4))
    assert found.count.sum() == answer.samples
    assert len(found.groups) == 3


def test_in_flight_weights_are_shares_of_operations():
    answer = ORIGIN.answer(Question(step=SECOND, attribution="in-flight"))
    assert cells(answer).count.sum() == pytest.approx(SAMPLES)


def test_more_windows_than_can_be_drawn_are_added_up():
    answer = ORIGIN.answer(Question(step=SECOND))
    shown = in_windows(answer, 10)
    assert shown.samples == SAMPLES
    assert len(cells(shown).starts) <= 10
    assert in_windows(answer, 1000) is answer
