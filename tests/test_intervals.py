"""The waist: sums of rows, whatever the order, the path taken and the memory allowed."""

from __future__ import annotations

import pickle
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core import intervals as csr
from ingest.core.intervals import Exact, Intervals, Narrow, Sum, concatenate, merged, no_exact, row_sums, sum_rows
from ingest.core.labels import Series
from ingest.core.layout import fio_layout
from strategies import FIO_LAYOUTS, check, intervals, made, per_key, totals

COARSE = FIO_LAYOUTS[6]
FINE = FIO_LAYOUTS[4]


@given(intervals())
def test_merged_is_the_sum_by_key(rows: Intervals) -> None:
    result = merged([rows])
    check(result)
    assert per_key(result) == per_key(rows)
    keys = list(
        zip([result.table[code] for code in result.series], result.start_ns.tolist(), result.end_ns.tolist(), strict=True)
    )
    assert keys == sorted(keys) and len(set(keys)) == len(keys)


@given(st.lists(intervals(), min_size=2, max_size=4), st.randoms(use_true_random=False))
def test_merging_does_not_depend_on_order(parts: list[Intervals], random: object) -> None:
    shuffled = list(parts)
    random.shuffle(shuffled)
    expected = per_key(merged(parts))
    assert per_key(merged(shuffled)) == expected
    assert per_key(merged([merged(parts[:1]), merged(parts[1:])])) == expected


@given(st.lists(intervals(), min_size=1, max_size=4), st.sampled_from([1, 7, 64]), st.booleans(), st.booleans())
def test_parts_that_are_added_up_block_by_block_are_the_sum_by_key(
    parts: list[Intervals], cells: int, ordered: bool, large: bool
) -> None:
    each = [merged([part]) for part in parts] if ordered else parts  # as readers and loads have them, and in any order
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "DENSE_CELLS", cells)
        patch.setattr(csr, "WORTH_A_BLOCK", 0)
        patch.setattr(csr, "LARGE_CELLS", 1 << 21 if large else 0)
        patch.setattr(csr, "CELLS_AN_ENTRY", 1 << 21)
        result = merged(each)
    check(result)
    assert per_key(result) == per_key(concatenate(parts))


@given(
    st.lists(intervals(), min_size=1, max_size=4), st.randoms(use_true_random=False), st.sampled_from([1, 1 << 18]), st.booleans()
)
def test_rows_in_another_order_are_the_same_rows(parts: list[Intervals], random: object, piece: int, compiled: bool) -> None:
    rows = [
        tuple(zip(part.bins[a:b].tolist(), part.counts[a:b].tolist(), strict=True))
        for part in parts
        for a, b in pairwise(part.indptr.tolist())
    ]
    order = list(range(len(rows)))
    if len(order) > 1 and random.random() < 0.9:
        cut = random.randrange(len(order))
        order = order[cut:] + order[:cut]
    if random.random() < 0.3:
        random.shuffle(order)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "PIECE", piece)
        patch.setattr(csr.kernel, "lay_rows", csr.kernel.lay_rows if compiled else None)
        columns = [[getattr(part, name) for part in parts] for name in ("indptr", "bins", "counts")]
        indptr, bins, counts = csr.laid_out(*columns, np.array(order, np.int64))
    found = [tuple(zip(bins[a:b].tolist(), counts[a:b].tolist(), strict=True)) for a, b in pairwise(indptr.tolist())]
    assert found == [rows[row] for row in order] and indptr[-1] == len(bins) == len(counts)


@given(intervals(), intervals(layout=FINE))
def test_merging_unlike_layouts_keeps_every_count(one: Intervals, two: Intervals) -> None:
    result = merged([one, two])
    check(result)
    assert result.layout == COARSE
    assert result.counts.sum() == one.counts.sum() + two.counts.sum()


@given(st.lists(intervals(most=6), min_size=2, max_size=6), st.randoms(), st.sampled_from([1, 3, 1 << 18]), st.booleans())
def test_rows_that_need_no_adding_up_keep_what_is_theirs_in_the_order_of_their_keys(
    parts: list, random, piece: int, weighted
) -> None:
    rows = concatenate(parts)
    times = np.array(random.sample(range(100), len(rows)), np.int64)  # no two rows of one key and time
    exact = Exact(times, times + 1, times + 2, times % 3 > 0, times + 3)
    rows = replace(rows, start_ns=times, end_ns=times + 1, exact=exact, completions=times + 4 if weighted else None)
    cuts = sorted(random.sample(range(len(rows) + 1), min(2, len(rows))))
    chunks = [rows.take(np.arange(*pair)) for pair in zip([0, *cuts], [*cuts, len(rows)], strict=True)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "PIECE", piece)
        result = merged(chunks)
    check(result)
    order = sorted(range(len(rows)), key=lambda row: (rows.table[rows.series[row]], rows.start_ns[row]))
    assert [len(chunk) for chunk in chunks] == np.diff([0, *cuts, len(rows)]).tolist()
    for row, place in enumerate(order):
        old, new = (slice(*each.indptr[at : at + 2]) for each, at in ((rows, place), (result, row)))
        assert result.table[result.series[row]] == rows.table[rows.series[place]]
        assert result.bins[new].tolist() == rows.bins[old].tolist() and result.counts[new].tolist() == rows.counts[old].tolist()
    assert result.start_ns.tolist() == times[order].tolist() and result.end_ns.tolist() == (times[order] + 1).tolist()
    assert result.exact is not None
    for name in ("min_ns", "max_ns", "sum_ns", "known", "bytes"):
        assert getattr(result.exact, name).tolist() == getattr(exact, name)[order].tolist()
    assert (result.completions is not None and result.completions.tolist() == (times[order] + 4).tolist()) == weighted


@given(intervals(), intervals())
def test_merging_leaves_its_operands_alone(one: Intervals, two: Intervals) -> None:
    before = [(part.bins.copy(), part.counts.copy(), part.start_ns.copy()) for part in (one, two)]
    merged([one, two])
    for part, (bins, counts, start) in zip((one, two), before, strict=True):
        assert np.array_equal(part.bins, bins) and np.array_equal(part.counts, counts) and np.array_equal(part.start_ns, start)


@given(
    st.lists(st.dictionaries(st.integers(0, 40), st.integers(1, 2**60), max_size=6), min_size=1, max_size=12),
    st.data(),
    st.sampled_from([1, 7, 64, 1 << 22]),
)
def test_sum_rows_equals_a_dictionary(rows: list[dict[int, int]], data: st.DataObject, cells: int) -> None:
    groups = data.draw(st.integers(1, 5))
    group = np.array([data.draw(st.integers(0, groups - 1)) for _ in rows], np.int64)
    expected: list[dict[int, int]] = [{} for _ in range(groups)]
    for row, place in zip(rows, group, strict=True):
        for slot, count in row.items():
            expected[place][slot] = (expected[place].get(slot, 0) + count) % 2**63
    if any(sum(counts.values()) >= 2**62 for counts in rows):
        rows = [{slot: count >> 4 for slot, count in row.items()} for row in rows]
        expected = [{} for _ in range(groups)]
        for row, place in zip(rows, group, strict=True):
            for slot, count in row.items():
                expected[place][slot] = expected[place].get(slot, 0) + count
    made_rows = made(COARSE, [(0, 0, 0, row) for row in rows])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csr, "DENSE_CELLS", cells)
        indptr, bins, counts = sum_rows(made_rows.indptr, made_rows.bins, made_rows.counts, group, groups)
    found = [
        dict(zip(bins[indptr[g] : indptr[g + 1]].tolist(), counts[indptr[g] : indptr[g + 1]].tolist(), strict=True))
        for g in range(groups)
    ]
    assert found == [{slot: count for slot, count in sorted(row.items()) if count} for row in expected]


@pytest.mark.slow
@given(st.lists(intervals(most=4), min_size=1, max_size=8), st.sampled_from([1, 5, 1000]))
def test_a_running_sum_is_the_sum_however_often_it_compacts(parts: list[Intervals], most: int) -> None:
    total = Sum(most_entries=most)
    for part in parts:
        total.add(part)
    [result] = total.parts()
    check(result)
    assert per_key(result) == per_key(concatenate(parts))
    assert per_key(total.parts()[0]) == per_key(result)


def test_a_running_sum_holds_no_more_than_its_result_and_a_half() -> None:
    total = Sum(most_entries=10)
    for number in range(50):
        total.add(made(COARSE, [(0, 0, 1, {slot: number + 1 for slot in range(8)})]))
        assert total._pending <= 20
    assert total.parts()[0].counts.tolist() == [sum(range(1, 51))] * 8


def test_a_running_sum_copies_no_parts_whose_rows_do_not_come_together() -> None:
    total = Sum(most_entries=10)
    parts = [made(COARSE, [(0, number, number + 1, {slot: 3 for slot in range(8)})]) for number in range(9, 0, -1)]
    for part in parts:
        total.add(part)
    assert [id(part) for part in total.pending] == [id(part) for part in parts]
    assert [result.start_ns.tolist() for result in total.parts()] == [list(range(1, 10))]


def test_a_running_sum_keeps_layouts_apart() -> None:
    total = Sum()
    total.add(made(COARSE, [(0, 0, 1, {1: 2})]))
    total.add(made(FINE, [(0, 0, 1, {1: 3})]))
    assert {str(part.layout): part.counts.tolist() for part in total.parts()} == {str(COARSE): [2], str(FINE): [3]}
    assert Sum().parts() == []


@given(intervals())
def test_row_sums_and_take(rows: Intervals) -> None:
    by_row = [sum(rows.counts[a:b].tolist()) for a, b in zip(rows.indptr[:-1], rows.indptr[1:], strict=True)]
    assert rows.samples.tolist() == by_row == row_sums(rows.indptr, rows.counts).tolist()
    turned = rows.take(np.arange(len(rows))[::-1])
    check(turned)
    assert totals(turned) == totals(rows)
    assert turned.samples.tolist() == by_row[::-1]


@given(st.lists(intervals(), min_size=1, max_size=3), st.sampled_from([1, 255, 256, 1 << 16, 1 << 20]))
def test_narrow_rows_are_the_same_rows_whatever_is_done_with_them(parts: list[Intervals[Series]], times: int) -> None:
    parts = [replace(part, counts=part.counts * times) for part in parts]
    wide, narrow = concatenate(parts), Narrow.of([*parts])
    first, held = wide.table[0] if wide.table else None, pickle.loads(pickle.dumps(narrow)).held
    for column in (*narrow.held, *held):  # in as few bytes as its largest number needs
        assert column.itemsize == next(size for size in (1, 2, 4, 8) if column.max(initial=0) < 1 << 8 * size)
    for same in (
        lambda rows: rows,
        lambda rows: rows.take(np.arange(len(rows))[::-1]),
        lambda rows: rows.relabelled(lambda key: None if key == first else (key.host, key.op)),
        lambda rows: rows.where(lambda key: key != first),
        lambda rows: rows.in_layout(COARSE),
        lambda rows: merged([rows, rows]),
    ):
        mine, theirs = same(narrow), same(wide)
        assert mine.bins.dtype == mine.counts.dtype == np.int64
        assert _cells(mine) == _cells(theirs) and [*mine.table] == [*theirs.table]
        assert mine.samples.tolist() == theirs.samples.tolist()


def test_a_sum_in_pieces_looks_at_the_keys_of_each_piece_alone(monkeypatch) -> None:
    """Of 10,000 hosts a piece of a sum is of some; to look at all of them in each was the square of the hosts."""
    looked_at: list[int] = []
    ranks = csr._table_ranks
    monkeypatch.setattr(csr, "PIECE", 100)
    monkeypatch.setattr(csr, "_table_ranks", lambda table: (looked_at.append(len(table)), ranks(table))[1])
    few = made(COARSE, [(0, at, at + 1, {5: 1}) for at in range(2)])
    keys = [Series(run="r", host=f"h{number:03}", op="read", kind="completion") for number in range(300)]
    total = merged([Narrow.of([few.keyed((key,), few.series) for key in some]) for some in (keys, keys[::-1])])
    assert total.samples.tolist() == [2] * 600
    assert [total.table[code] for code in total.series[::2].tolist()] == keys
    assert looked_at[0] == 300 and sum(looked_at[1:]) <= 600


def test_unlike_layouts_are_not_concatenated() -> None:
    with pytest.raises(ValueError, match="unlike layouts: .*c4.*c6"):
        concatenate([made(COARSE, [(0, 0, 1, {1: 2})]), made(FINE, [(0, 0, 1, {1: 3})])])


def test_exact_values_survive_only_where_all_rows_have_them() -> None:
    from dataclasses import replace

    known = Exact(np.array([5, 70]), np.array([9, 90]), np.array([14, 160]), np.array([True, True]))
    both = replace(made(COARSE, [(0, 0, 1, {0: 2}), (0, 0, 1, {1: 2})]), exact=known)
    result = merged([both])
    assert (result.exact.min_ns, result.exact.max_ns, result.exact.sum_ns, result.exact.known) == (5, 90, 174, True)
    plain = made(COARSE, [(0, 0, 1, {2: 1})])
    assert merged([plain]).exact is None
    mixed = merged([both, plain])
    assert mixed.exact.known.tolist() == [False] and mixed.exact.max_ns.tolist() == [0]
    assert not no_exact(3).known.any()


def test_weights_are_never_added_to_counts() -> None:
    from dataclasses import replace

    plain = made(COARSE, [(0, 0, 1, {1: 2})])
    weights = replace(plain, completions=np.array([2]))
    with pytest.raises(ValueError, match="never added"):
        merged([plain, weights])


def test_relabelled_leaves_out_what_has_no_key() -> None:
    rows = made(fio_layout(29, 1, 6), [(0, 0, 1, {1: 2}), (1, 0, 1, {1: 3}), (2, 0, 1, {1: 5})])
    result = rows.relabelled(lambda series: (series.host,) if series.op == "read" else None)
    assert totals(result) == {(("a",), 1): 2, (("b",), 1): 5}


@given(intervals(), st.sets(st.integers(0, 3)))
def test_where_keeps_the_rows_of_wanted_keys_and_the_table(rows: Intervals[Series], wanted: set[int]) -> None:
    keys = {rows.table[code] for code in wanted}
    result = rows.where(lambda series: series in keys)
    check(result)
    mine = [row for row, code in enumerate(rows.series.tolist()) if code in wanted]
    assert result.table == rows.table
    assert _cells(result) == [cell for cell in _cells(rows) if cell[0] in wanted] and len(result) == len(mine)


def test_where_asks_once_a_key_whatever_the_rows() -> None:
    rows = made(COARSE, [(code % 4, number, number + 1, {1: 2}) for number, code in enumerate(range(40))])
    asked = []
    assert len(rows.where(lambda series: bool(asked.append(series)))) == 0
    assert asked == list(rows.table)
    nothing = made(COARSE, []).relabelled(lambda _: None)
    assert len(nothing.where(lambda _: True)) == 0 and not list(nothing.split(lambda key: key))


@given(intervals(), st.lists(st.sampled_from("xyz"), min_size=4, max_size=4))
def test_split_gives_each_row_once_by_the_value_of_its_key(rows: Intervals[Series], values: list[str]) -> None:
    of = dict(zip(rows.table, values, strict=True))
    parts = list(rows.split(of.__getitem__))
    assert [value for value, _ in parts] == list(dict.fromkeys(values))
    for value, part in parts:
        check(part)
        assert part.table == rows.table
        assert _cells(part) == [cell for cell in _cells(rows) if values[cell[0]] == value]


def _cells(rows: Intervals) -> list[tuple[int, int, int, dict[int, int]]]:
    edges = zip(rows.indptr[:-1].tolist(), rows.indptr[1:].tolist(), strict=True)
    bins = [dict(zip(rows.bins[a:b].tolist(), rows.counts[a:b].tolist(), strict=True)) for a, b in edges]
    return list(zip(rows.series.tolist(), rows.start_ns.tolist(), rows.end_ns.tolist(), bins, strict=True))


def test_a_large_sum_is_held_narrow_and_has_the_same_rows(monkeypatch) -> None:
    """Of 1,000 hosts an answer by host took 1.3 GB, of which 1 GB were the bins of windows that had been added up already."""
    rng = np.random.default_rng(3)

    def part(first: int) -> Intervals:
        columns = np.zeros(50, np.int64), first + np.arange(50) * 10, first + np.arange(50) * 10 + 10, np.arange(51) * 4
        bins = np.sort(rng.permuted(np.tile(np.arange(30), (50, 1)), axis=1)[:, :4]).ravel()
        return Intervals(fio_layout(29, 1), (("a",),), *columns, bins, rng.integers(1, 400, 200))

    parts = [part(first) for first in (0, 500, 250, 1000, 0)]
    monkeypatch.setattr(csr, "WIDE", 250)
    large, small = Sum(300), Sum(100_000)
    for each in parts:
        large.add(each), small.add(each)
    monkeypatch.setattr(csr, "WIDE", 250_000)
    (narrow,), (wide,) = large.parts(), small.parts()
    assert (type(narrow), type(wide)) == (Narrow, Intervals)
    for name in ("start_ns", "indptr", "bins", "counts"):
        np.testing.assert_array_equal(getattr(narrow, name), getattr(wide, name))
