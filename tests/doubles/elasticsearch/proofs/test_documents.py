"""The two readers of documents against each other: what the fast one takes, the strict one takes, with the same values."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.elasticsearch import documents, fast, mapping
from tests.doubles.elasticsearch.tokens import Broken, parse
from tests.doubles.elasticsearch.values import Rejected

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
FIELDS = {
    "h": "histogram",
    "n": "long",
    "i": "integer",
    "d": "double",
    "k": "keyword",
    "t": "date",
    "b": "boolean",
    "f": "flattened",
}
MAPPING = mapping.parse(
    {
        "dynamic": "strict",
        "properties": {
            **{name: {"type": kind} for name, kind in FIELDS.items()},
            "o": {"properties": {"h": {"type": "histogram"}, "k": {"type": "keyword"}}},
        },
    }
)
PLAN = fast.plan_of(MAPPING)
numbers = st.one_of(
    st.integers(-3, 9),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([2**63, 2**63 - 1, -(2**63), 1e300, 0.0, -0.0, 2**53 + 1]),
)
odd = st.one_of(
    st.none(), st.booleans(), st.text(max_size=3), st.just("2026-09-21T14:00:00Z"), st.just("12"), st.just([]), st.just({})
)
bins = st.lists(st.one_of(numbers, numbers, numbers, odd), max_size=4)
histograms = st.one_of(
    st.lists(st.integers(0, 50), max_size=5).map(
        lambda values: {"values": sorted(values), "counts": [number % 3 for number in range(len(values))]}
    ),
    st.builds(lambda values, counts: {"values": values, "counts": counts}, bins, bins),
    st.dictionaries(st.sampled_from(["values", "counts", "x"]), bins, max_size=3),
    odd,
)
leaves = st.one_of(numbers, odd)
sources = st.fixed_dictionaries(
    {},
    optional={
        **{name: leaves for name in "nidktb"},
        "h": histograms,
        "f": st.one_of(leaves, st.dictionaries(st.sampled_from("ab"), leaves, max_size=2)),
        "o": st.one_of(leaves, st.fixed_dictionaries({}, optional={"h": histograms, "k": leaves, "z": leaves})),
        "x": st.recursive(
            leaves,
            lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
            max_leaves=5,
        ),
        "z": leaves,
    },
)


def same(one: Any, other: Any) -> bool:
    """Return whether two parsed values are the same, histograms included."""
    if isinstance(one, tuple):
        return isinstance(other, tuple) and all(
            a.dtype == b.dtype and np.array_equal(a, b) for a, b in zip(one, other, strict=True)
        )
    return type(one) is type(other) and one == other


@given(sources, st.sampled_from([(", ", ": "), (",", ":")]))
def test_what_is_read_fast_is_read_the_same_slowly(source: Json, separators: tuple[str, str]) -> None:
    text = json.dumps(source, separators=separators)
    quick = fast.read(text.encode(), PLAN, MAPPING.disabled)
    if quick is None:
        return
    slow = documents.read(text, MAPPING, "id")
    assert quick.fields.keys() == slow.fields.keys()
    assert all(same(quick.fields[name], slow.fields[name]) for name in quick.fields)
    assert (slow.ignored, slow.weight, slow.added) == ([], 1, {})


def test_the_fast_reader_takes_what_a_store_writes() -> None:
    source = {
        "t": 1789999200000,
        "k": "read",
        "o": {"h": {"values": [1, 2.5], "counts": [3, 4]}, "k": "x"},
        "n": 5,
        "d": 1,
        "f": {"a": "b"},
        "h": None,
    }
    assert fast.read(json.dumps(source).encode(), PLAN, MAPPING.disabled) is not None


@pytest.mark.parametrize(
    "text",
    [
        '{"k":"a","k":"b"}',
        '{"n":NaN}',
        '{"h":{"values":[true],"counts":[1]}}',
        '{"h":{"values":[1],"counts":[1]},"h":null}',
        '{"n":1',
        "[]",
        '{"k":5}',
        '{"n":1.5}',
        '{"d":1e999}',
        '{"o":1}',
        '{"t":"soon"}',
        '{"z":1}',
    ],
)
def test_the_fast_reader_leaves_doubts_to_the_strict_one(text: str) -> None:
    assert fast.read(text.encode(), PLAN, MAPPING.disabled) is None


@given(
    st.recursive(
        st.one_of(leaves, numbers),
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
        max_leaves=8,
    )
)
def test_tokens_mean_what_json_means(value: Json) -> None:
    assert parse(json.dumps(value)) == value
    assert parse(json.dumps(value, indent=2, ensure_ascii=False)) == value


@given(
    st.recursive(
        leaves,
        lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=2), inner, max_size=3)),
        max_leaves=8,
    ),
    st.data(),
)
def test_cut_json_is_broken(value: Json, data: st.DataObject) -> None:
    text = json.dumps([value])
    cut = data.draw(st.integers(0, len(text) - 1))
    with pytest.raises(Broken):
        parse(text[:cut])


@pytest.mark.parametrize(
    ("field", "value", "taken"),
    [
        ("n", "12", 12), ("n", 5.9, 5), ("n", "5.9", 5), ("n", "", None), ("n", True, None), ("n", 2**63, None), ("i", 2**31, None), ("d", "1e3", 1000.0),
        ("d", "x", None), ("k", 5, "5"), ("k", True, "true"), ("k", ["a", "b"], ["a", "b"]), ("t", "2026-09-21", 1789948800000), ("t", 1.0, 1),
        ("t", "2026-13-01", None), ("t", "2026-09-21T14:00:00.123456789+02:00", 1789992000123), ("b", "true", True), ("b", 1, None), ("o", [{"k": "a"}, {"k": "b"}], None),
    ],
)  # fmt: skip
def test_values_of_plain_fields(field: str, value: Json, taken: Any) -> None:
    text = json.dumps({field: value})
    if taken is None and field != "o":
        with pytest.raises(Rejected):
            documents.read(text, MAPPING, "id")
        return
    found = documents.read(text, MAPPING, "id").fields
    assert found == ({"o.k": ["a", "b"]} if field == "o" else {field: taken})
