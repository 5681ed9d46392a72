"""Searches against plain Python: the same questions put to the double over a socket, and answered here with loops."""

from __future__ import annotations

import json
import math
from collections import defaultdict
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.asking import CUTS, MAPPINGS, T0, ask, listed, numbers, rows
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any


@pytest.fixture(scope="module")
def server() -> Any:
    """Return a double for all examples: each has indices of its own."""
    with ElasticsearchDouble() as double:
        yield double
        assert double.refusals == []


def bins(documents: list[Json]) -> dict[int, int]:
    """Return the merged bins of some documents."""
    found: dict[int, int] = defaultdict(int)
    for document in documents:
        one = document.get("h") or {"values": [], "counts": []}
        for value, count in zip(one["values"], one["counts"]):
            found[value] += count
    return found


def percentile(merged: dict[int, int], percent: float) -> Any:
    """Return the value at rank floor(p/100 * N + 1/2), which hdr reports a little above it."""
    total = sum(merged.values())
    if not total:
        return None
    rank = max(math.floor(Fraction(str(percent)) / 100 * total + Fraction(1, 2)), 1)
    seen = 0
    for value in sorted(merged):
        seen += merged[value]
        if seen >= rank:
            return value
    raise AssertionError


@pytest.mark.slow
@CUTS
@given(rows)
def test_metrics(server: ElasticsearchDouble, documents: list[Json]) -> None:
    metrics = {
        f"{kind}_{field}": {kind: {"field": field}} for kind in ("min", "max", "sum", "avg", "value_count") for field in "ndh"
    }
    metrics |= {
        "words": {"value_count": {"field": "k"}},
        "kinds": {"cardinality": {"field": "k"}},
        "numbers": {"cardinality": {"field": "n"}},
    }
    got = {name: one["value"] for name, one in ask(server, documents, {"size": 0, "aggs": metrics})["aggregations"].items()}
    for field in "ndh":
        weighted = (
            list(bins(documents).items())
            if field == "h"
            else [(value, 1) for document in documents for value in listed(document, field)]
        )
        plain = [value for value, count in weighted for _ in range(count)]
        assert got[f"min_{field}"] == (min(plain) if plain else None)
        assert got[f"max_{field}"] == (max(plain) if plain else None)
        assert got[f"sum_{field}"] == sum(plain)
        assert got[f"avg_{field}"] == (sum(plain) / len(plain) if plain else None)
        assert got[f"value_count_{field}"] == len(plain)
    times = {kind: {kind: {"field": "t"}} for kind in ("min", "max")}
    nowhere = {"none": {"filter": {"ids": {"values": []}}, "aggs": times}}
    stamps = ask(server, documents, {"size": 0, "aggs": {**times, **nowhere}})["aggregations"]
    assert stamps["none"] == {"doc_count": 0, "min": {"value": None}, "max": {"value": None}}
    assert [stamps[kind]["value"] for kind in times] == (
        [best(one["t"] for one in documents) for best in (min, max)] if documents else [None, None]
    )
    words = [word for document in documents for word in set(listed(document, "k"))]
    assert (got["words"], got["kinds"]) == (len(words), len(set(words)))
    assert got["numbers"] == len({value for document in documents for value in listed(document, "n")})


@CUTS
@given(rows, st.sampled_from([1000, 7000, 30_000]), st.sampled_from([0, 1]), st.integers(0, 5000))
def test_windows_of_bins_and_percentiles(
    server: ElasticsearchDouble, documents: list[Json], step: int, least: int, offset: int
) -> None:
    ranges = [{"to": 5}, {"from": 5, "to": 20}, {"from": 10, "to": 12}, {"from": 20}]
    inner = {
        "b": {"range": {"field": "h", "ranges": ranges}},
        "p": {"percentiles": {"field": "h", "percents": [1, 50, 99.9], "hdr": {}}},
        "c": {"histogram": {"field": "h", "interval": 8}},
    }
    body = {
        "size": 0,
        "aggs": {
            "t": {
                "date_histogram": {"field": "t", "fixed_interval": f"{step}ms", "offset": f"{offset}ms", "min_doc_count": least},
                "aggs": inner,
            }
        },
    }
    got = ask(server, documents, body)["aggregations"]["t"]["buckets"]
    windows: dict[int, list[Json]] = defaultdict(list)
    for document in documents:
        windows[(document["t"] - offset) // step * step + offset].append(document)
    keys = sorted(windows)
    if least == 0 and keys:
        keys = list(range(keys[0], keys[-1] + 1, step))
    assert [bucket["key"] for bucket in got] == keys
    for bucket in got:
        inside = windows.get(bucket["key"], [])
        merged = bins(inside)
        assert bucket["doc_count"] == len(inside)
        counts = [one["doc_count"] for one in bucket["b"]["buckets"]]
        ordered = sorted(ranges, key=lambda one: (one.get("from", -math.inf), one.get("to", math.inf)))
        assert counts == [
            sum(n for v, n in merged.items() if one.get("from", -math.inf) <= v < one.get("to", math.inf)) for one in ordered
        ]
        for percent, value in bucket["p"]["values"].items():
            want = percentile(merged, float(percent))
            assert (value is None) if want is None else want <= value <= want * 1.001
        cells: dict[float, int] = defaultdict(int)
        for value, count in merged.items():
            cells[value // 8 * 8.0] += count
        shown = {one["key"]: one["doc_count"] for one in bucket["c"]["buckets"]}
        assert {key: count for key, count in shown.items() if count} == cells
        if cells:
            assert list(shown) == [float(key) for key in range(int(min(cells)), int(max(cells)) + 1, 8)]


@CUTS
@given(
    rows, st.integers(1, 3), st.sampled_from([("_key", "asc"), ("_key", "desc"), ("_count", "desc"), ("m", "asc")]), st.booleans()
)
def test_terms(server: ElasticsearchDouble, documents: list[Json], size: int, order: tuple[str, str], missing: bool) -> None:
    options = {"missing": "-"} if missing else {}
    body = {
        "size": 0,
        "aggs": {
            "k": {
                "terms": {"field": "k", "size": size, "order": dict([order]), **options},
                "aggs": {"m": {"sum": {"field": "n"}}},
            }
        },
    }
    got = ask(server, documents, body)["aggregations"]["k"]
    groups: dict[str, list[Json]] = defaultdict(list)
    for document in documents:
        for word in set(listed(document, "k")) or (["-"] if missing else []):
            groups[word].append(document)
    sums = {word: sum(sum(listed(one, "n")) for one in group) for word, group in groups.items()}
    sort: Any = {"_key": lambda word: word, "_count": lambda word: len(groups[word]), "m": lambda word: sums[word]}[order[0]]
    ordered = sorted(sorted(groups), key=sort, reverse=order[1] == "desc")
    assert [(one["key"], one["doc_count"], one["m"]["value"]) for one in got["buckets"]] == [
        (word, len(groups[word]), sums[word]) for word in ordered[:size]
    ]
    assert got["sum_other_doc_count"] == sum(len(groups[word]) for word in ordered[size:])


@CUTS
@given(rows, st.integers(1, 4), st.sampled_from(["asc", "desc"]), st.booleans())
def test_composite_pages(server: ElasticsearchDouble, documents: list[Json], size: int, way: str, missing: bool) -> None:
    name = f"c{next(numbers)}"
    send(server, "PUT", f"/{name}", {"mappings": MAPPINGS})
    lines = [f'{{"index":{{"_id":"{number}"}}}}\n{json.dumps(document)}\n' for number, document in enumerate(documents)]
    if lines:
        send(server, "POST", f"/{name}/_bulk?refresh=true", "".join(lines))
    window = {"date_histogram": {"field": "t", "fixed_interval": "20s", "order": way}}
    word = {"terms": {"field": "k", "missing_bucket": missing}}
    number = {"terms": {"field": "n", "order": "desc", "missing_bucket": missing}}
    want = composed(documents, way, missing)
    got: list[tuple[Any, int, float]] = []
    after: Json = {}
    while True:
        composite = {"size": size, "sources": [{"t": window}, {"k": word}, {"n": number}], **after}
        body = {"size": 0, "aggs": {"c": {"composite": composite, "aggs": {"s": {"sum": {"field": "d"}}}}}}
        answer = send(server, "POST", f"/{name}/_search", body).body["aggregations"]["c"]
        if not answer["buckets"]:
            assert "after_key" not in answer
            break
        assert len(answer["buckets"]) <= size
        got += [(tuple(one["key"].values()), one["doc_count"], one["s"]["value"]) for one in answer["buckets"]]
        after = {"after": answer["after_key"]}
    assert got == want


def composed(documents: list[Json], way: str, missing: bool) -> list[tuple[Any, int, float]]:
    """Return key, documents and sum of each bucket: what is missing comes first, or last where the order is turned round."""
    none = [None] if missing else []
    groups: dict[Any, list[Json]] = defaultdict(list)
    for document in documents:
        for word in set(listed(document, "k")) or none:
            for number in set(listed(document, "n")) or none:
                groups[document["t"] // 20_000 * 20_000, word, number].append(document)

    def place(key: Any) -> Any:
        window, word, number = key
        return (window if way == "asc" else -window, (word is not None, word or ""), (number is None, -(number or 0)))

    return [(key, len(groups[key]), sum(sum(listed(one, "d")) for one in groups[key])) for key in sorted(groups, key=place)]


def test_histograms_besidenumbers_and_objects(server: ElasticsearchDouble) -> None:
    kinds = {"hist": "histogram", "num": "double", "none": "keyword"}
    for name, kind in kinds.items():
        field = "z" if name == "none" else "h"
        send(server, "PUT", f"/mixed-{name}", {"mappings": {"properties": {field: {"type": kind}}}})
    send(server, "PUT", "/mixed-hist/_doc/1?refresh=true", {"h": {"values": [100, 200], "counts": [2, 3]}})
    send(server, "PUT", "/mixed-num/_doc/1?refresh=true", {"h": 5})
    send(server, "PUT", "/mixed-none/_doc/1?refresh=true", {"z": "a"})
    send(server, "PUT", "/mixed-obj/_doc/1?refresh=true", {"h": {"values": [1], "counts": [1]}})
    body = {
        "size": 0,
        "aggs": {"p": {"percentiles": {"field": "h", "hdr": {}, "percents": [0, 50, 100]}}, "c": {"value_count": {"field": "h"}}},
    }
    answer = send(server, "POST", "/mixed-*/_search", body).body
    assert answer["hits"]["total"]["value"] == 4
    assert answer["aggregations"]["c"]["value"] == 6
    low, middle, high = answer["aggregations"]["p"]["values"].values()
    assert (low, math.floor(middle), math.floor(high)) == (5.0, 100, 200)


def test_top_hits_of_each_bucket(server: ElasticsearchDouble) -> None:
    documents = [{"t": T0 + number * 1000, "k": "ab"[number % 2], "n": number} for number in range(9)]
    hits = {"top": {"top_hits": {"size": 2, "sort": [{"t": "desc"}], "_source": ["n"]}}}
    got = ask(server, documents, {"size": 0, "aggs": {"k": {"terms": {"field": "k"}, "aggs": hits}}})["aggregations"]["k"][
        "buckets"
    ]
    assert [[hit["_source"]["n"] for hit in one["top"]["hits"]["hits"]] for one in got] == [[8, 6], [7, 5]]
    assert [one["top"]["hits"]["total"]["value"] for one in got] == [5, 4]


ONE_MONTH, NEXT_MONTH = (
    {"a": (5, 1), "b": (3, 9), "c": (1, 2)},
    {"a": (1, 3), "b": (4, 4), "c": (2, 8)},
)  # documents, their highest n


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ({"size": 3}, ([("a", 6), ("b", 7), ("c", 3)], 0, 0)),
        ({"size": 1, "shard_size": 1}, ([("a", 5)], 9, 11)),  # b has more
        ({"size": 1, "shard_size": 2}, ([("b", 7)], 5, 9)),
        ({"size": 1, "shard_size": 1, "order": {"most": "desc"}}, ([("b", 3)], -1, 13)),
        ({"size": 2, "shard_size": 2, "order": {"_key": "desc"}}, ([("b", 7), ("c", 3)], 0, 6)),
    ],
)
def test_terms_are_the_best_of_each_shard(server: ElasticsearchDouble, words: Json, expected: Json) -> None:
    """Worked out by hand: what a shard does not answer is not counted, and a term may be missed that has the most of all."""
    name, mappings = f"m{next(numbers)}", {"properties": {"w": {"type": "keyword"}, "n": {"type": "long"}}}
    lines = []
    for month, held in enumerate((ONE_MONTH, NEXT_MONTH)):
        send(server, "PUT", f"/{name}-{month}", {"mappings": mappings})
        for word, (documents, most) in held.items():
            lines += [f'{{"index":{{"_index":"{name}-{month}"}}}}\n{{"w":"{word}","n":{most}}}\n'] * documents
    assert send(server, "POST", "/_bulk?refresh=true", "".join(lines)).body["errors"] is False
    aggs = {"of": {"terms": {"field": "w", **words}, "aggs": {"most": {"max": {"field": "n"}}}}}
    of = send(server, "POST", f"/{name}-*/_search", {"size": 0, "aggs": aggs}).body["aggregations"]["of"]
    buckets = sorted((bucket["key"], bucket["doc_count"]) for bucket in of["buckets"])
    assert (buckets, of["doc_count_error_upper_bound"], of["sum_other_doc_count"]) == expected
