"""Documents of an answer read as columns: what json gives of the same text, whatever stands in it and in whatever form."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import StoreError
from ingest.core.layout import Edges, Exponential, fio_layout, hdr_layout
from ingest.http import Answer, TransientError
from ingest.store.elastic import documents as columns
from ingest.store.elastic.documents import bins_of, columns_of
from tests.doubles.elasticsearch.proofs.comparing import recorded
from tests.effort import figure

HEADERS = {"content-type": "application/json"}
KINDS = ("latency", "in_flight", "offset")
PATHS = (("@timestamp",), ("latency", "count"), ("latency", "sum"), ("interval", "end_ns"), ("segment",))
NASTY = (
    "plain",
    'a "quoted" {"values":[1],"counts":[2]} label',
    '","sort":[1]},{"_index":"x","_source":{"n":1',
    'a":5',
    "a\\",
    'a\\":5,"count":7',
    "[",
    "]}",
    "{",
    "line\nbreak",
    '{"cut":null}',
    "\u00e4\u4e16 7",
)


def at(document, path):
    """Return what a document has at a path, None where it has nothing."""
    for step in path:
        document = document.get(step) if isinstance(document, dict) else None
    return document


def check(text: str) -> None:
    """Hold the columns of an answer against what json makes of it."""
    hits = json.loads(text)["hits"]["hits"]
    read = columns_of(Answer(200, HEADERS, text.encode()))
    assert len(read.bare) == len(hits) and list(read.after) == (hits[-1].get("sort", []) if hits else [])
    assert {**read.answer, "hits": None} == {**json.loads(text), "hits": None}
    place = 0
    for documents in read.documents():
        histograms = np.diff(documents.indptr).tolist()
        assert documents.indptr[-1] == len(documents.values) == len(documents.counts)
        found = {path: documents.column(*path) for path in PATHS}
        for row, width in enumerate(histograms):
            source, shape = hits[place]["_source"], documents.shapes[documents.shape[row]]
            for path, (numbers, known) in found.items():
                assert (int(numbers[row]) if known[row] else None) == at(source, path)
            for label in (("run", "id"), ("job", "id"), ("operation",), ("latency", "layout"), ("latency", "exact")):
                assert at(shape, label) == at(source, label)
            histogram = next((body["histogram"] for body in map(source.get, KINDS) if body and "histogram" in body), None)
            begin = documents.indptr[row]
            assert (documents.values[begin : begin + width].tolist(), documents.counts[begin : begin + width].tolist()) == (
                (histogram["values"], histogram["counts"]) if histogram else ([], [])
            )
            place += 1
    assert place == len(hits)


def text_of(value: object) -> str:
    return json.dumps(value, separators=(",", ":"))


def hit_of(choose: random.Random, number: int, words: str) -> dict:
    width, most = choose.choice([0, 1, 2, 30]), choose.choice([9, 10**6, 2**53, 2**63 - 1])
    values = sorted(choose.randint(0, most) for _ in range(width))
    histogram = {"values": values, "counts": [choose.randint(0, choose.choice([9, 99, 2**53])) for _ in range(width)]}
    source: dict = {
        "@timestamp": choose.choice([-5, 0, 1793491521000 + number]),
        "run": {"id": words},
        "job": {"id": str(number % 3)},
    }
    source |= {"operation": choose.choice(["read", words])} if number % 2 else {"segment": choose.randint(0, 12)}
    source["interval"] = {"end_ns": choose.randint(0, 2**62)}
    source["latency"] = {"layout": words, "error": 0.0078125, "count": choose.randint(0, 2**60)}
    source["latency"] |= choose.choice([{}, {"sum": choose.randint(0, 2**60), "exact": choose.choice([True, False])}])
    if choose.random() < 0.8:
        kind = choose.choice(KINDS)
        source[kind] = {**source.get(kind, {}), "histogram": histogram}
    head = {"_index": "x", "_id": "y", "_score": None}
    return {**head, **choose.choice([{}, {"_ignored": ["z"]}]), "_source": source, "sort": [number, choose.choice(["a", words])]}


@pytest.mark.parametrize("seed", range(figure(6, 60, 600)))
def test_columns_hold_what_json_holds(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    choose = random.Random(seed)
    monkeypatch.setattr(columns, "DOCUMENTS_AT_ONCE", choose.choice([1, 7, 1000]))
    hits = [hit_of(choose, number, choose.choice(NASTY)) for number in range(choose.choice([0, 1, 2, 60]))]
    answer = {"took": 1, "timed_out": False, "hits": {"max_score": None, "hits": hits}, "aggregations": {"first": {"value": 5}}}
    check(text_of(answer))
    check(json.dumps(answer, indent=1))


def test_answers_of_a_real_node_are_read_as_they_are_written() -> None:
    """Each recorded search whose hits are sorted is read without being decoded as a whole."""
    texts = [
        step["response"] for step in recorded("product-9.5.3") if "/_search" in step["path"] and '"sort":[' in step["response"]
    ]
    texts = [text for text in texts if '"_source":' in text]
    assert len(texts) > 50
    for text in texts:
        assert columns._columns(text.encode()) is not None
        check(text)


ODD = {
    "blanks": '{"values": [1, 2], "counts": [3, 4]}',
    "blanks within": '{"values":[1, 2],"counts":[3,4]}',
    "another order": '{"counts":[3,4],"values":[1,2]}',
    "fractions that are whole": '{"values":[1.0,2],"counts":[3,4]}',
    "an exponent": '{"values":[1,2e3],"counts":[3,4]}',
    "counts as fractions": '{"values":[1,2],"counts":[3.0,4]}',
    "more": '{"values":[1,2],"counts":[3,4],"sum":5}',
    "empty": '{"values":[],"counts":[]}',
}
WRONG = {
    "a fraction": '{"values":[1,2.5],"counts":[3,4]}',
    "a fraction of a count": '{"values":[1,2],"counts":[3,4.5]}',
    "more values than counts": '{"values":[1,2],"counts":[3]}',
    "a count below 0": '{"values":[1,2],"counts":[3,-4]}',
    "no counts": '{"values":[1,2]}',
    "a word": '{"values":[1,"x"],"counts":[3,4]}',
}
PLAIN = '{"values":[10,20],"counts":[1,2]}'


def answer_with(histogram: str, others: int) -> str:
    bodies = [PLAIN] * others + [histogram, PLAIN]
    hits = [f'{{"_index":"x","_source":{{"latency":{{"histogram":{body}}}}},"sort":[{n}]}}' for n, body in enumerate(bodies)]
    return f'{{"hits":{{"hits":[{",".join(hits)}]}}}}'


@pytest.mark.parametrize("odd", list(ODD))
@pytest.mark.parametrize("others", [0, 3])
def test_what_is_written_otherwise_is_decoded_as_any_json(odd: str, others: int) -> None:
    check(answer_with(ODD[odd], others))


@pytest.mark.parametrize("wrong", list(WRONG))
def test_what_is_no_histogram_of_whole_numbers_is_refused(wrong: str) -> None:
    with pytest.raises(StoreError, match="not written by tailboard"):
        list(columns_of(Answer(200, HEADERS, answer_with(WRONG[wrong], 2).encode())).documents())


@pytest.mark.parametrize(
    "moved",
    [
        lambda hit: {"_source": hit["_source"], "_index": "x", "sort": hit["sort"]},
        lambda hit: {"_index": "x", "sort": hit["sort"], "_source": hit["_source"]},
        lambda hit: {**hit, "fields": {"n": [1]}},
        lambda hit: {"_index": "x", "_source": hit["_source"], "fields": {"n": [1]}, "sort": hit["sort"]},
        lambda hit: {"_index": "x", "_source": hit["_source"], "sort": hit["sort"], "matched_queries": ["q"]},
        lambda hit: {"_index": "x", "_source": hit["_source"]},
        lambda hit: {**hit, "_source": dict(reversed(hit["_source"].items()))},
    ],
)
def test_hits_in_another_order_or_with_more_are_read_all_the_same(moved) -> None:
    choose = random.Random(7)
    hits = [moved(hit_of(choose, number, "plain")) for number in range(20)]
    check(text_of({"hits": {"hits": hits}}))


def test_a_number_of_another_kind_is_refused() -> None:
    for wrong in (5.5, "5", [5], True):
        text = text_of({"hits": {"hits": [{"_index": "x", "_source": {"latency": {"count": wrong}}, "sort": [1]}]}})
        [documents] = columns_of(Answer(200, HEADERS, text.encode())).documents()
        with pytest.raises(StoreError, match="as latency.count: it was not written by tailboard"):
            documents.column("latency", "count")
        with pytest.raises(StoreError, match="has no @timestamp"):
            documents.known_column("@timestamp")


def test_an_answer_that_is_cut_off_is_asked_again() -> None:
    choose = random.Random(3)
    text = text_of({"took": 1, "hits": {"hits": [hit_of(choose, number, "plain") for number in range(3)]}})
    for cut in range(1, len(text)):
        with pytest.raises(TransientError, match="cut off"):
            columns_of(Answer(200, HEADERS, text[:cut].encode()))


NUMBERS = st.one_of(st.integers(0, 9), st.integers(0, 120), st.integers(0, 99_999), st.integers(0, 2**63 - 1))


@given(st.lists(NUMBERS, min_size=1, max_size=60), st.sampled_from([1, 3, 1 << 15]))
def test_numbers_are_what_int_makes_of_them(numbers: list[int], at_once: int) -> None:
    text = b"".join(b"%d," % number for number in numbers)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(columns, "COUNTS_AT_ONCE", at_once)
        counts = columns._counts(text, commas_in(text))
    for read in (counts, columns._numbers(text + columns.LAST, len(numbers))):
        assert read is not None and read.tolist() == numbers
    assert columns._numbers(text + columns.LAST, len(numbers) + 1) is None
    assert columns._numbers(text + columns.LAST, len(numbers) - 1) is None


def commas_in(text: bytes) -> np.ndarray:
    return np.flatnonzero(np.frombuffer(text, np.uint8) == ord(","))


@given(st.lists(st.sampled_from([b"0", b"7", b"31", b"12345", b"9" * 18, b"%d" % (2**63 - 1)]), max_size=20), st.data())
def test_what_is_no_count_is_none(numbers: list[bytes], data: st.DataObject) -> None:
    wrong = data.draw(
        st.sampled_from([b"", b"-1", b"1.5", b"1e3", b" 1", b"1 2", b"x", b'"1"', b"%d" % 2**63, b"9" * 19, b"1" * 20])
    )
    numbers.insert(data.draw(st.integers(0, len(numbers))), wrong)
    text = b"".join(number + b"," for number in numbers)
    assert columns._counts(text, commas_in(text)) is None


LAYOUTS = [
    *(fio_layout(29, 1, coarseness) for coarseness in range(7)),
    fio_layout(29, 1000, 0),
    *(hdr_layout(digits, 0, 1000) for digits in (1, 2, 3)),
    Exponential(0, 1),
    Exponential(3, 1000),
    Exponential(8, 1),
    Edges((0, 1, 2, 1000, 1001, 10**9, 2**62)),
]


@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_values_come_to_their_bins(layout) -> None:
    every = np.arange(layout.bins)
    assert np.array_equal(bins_of(layout, layout.keys), every)
    shuffled = np.random.default_rng(1).permutation(every)
    assert np.array_equal(bins_of(layout, layout.keys[shuffled]), shuffled)
    known = set(layout.keys.tolist())
    near = {int(key) + off for key in layout.keys[::37].tolist() for off in (-1, 1)} | {0, 2**62, 2**63 - 1, -1, -(2**40)}
    for value in sorted(value for value in near if value not in known and value < 2**63)[:200]:
        with pytest.raises(StoreError, match="not written by tailboard"):
            bins_of(layout, np.array([layout.keys[0], value], np.int64))
