"""Histograms of an answer read as columns: the same numbers as json gives, and other forms of JSON are decoded as any."""

from __future__ import annotations

import json
import random

import numpy as np
import pytest

from ingest.core.edges import Edges, Exponential
from ingest.core.errors import StoreError
from ingest.core.layout import fio_layout, hdr_layout
from ingest.http import Answer, TransientError
from ingest.store.elastic.columns import Columns, columns_of
from ingest.store.elastic.encoding import bins_of

HEADERS = {"content-type": "application/json"}


def columns(text: str) -> Columns:
    return columns_of(Answer(200, HEADERS, text.encode()))


def restored(value, histograms):
    """Return an answer with its histograms back in their places."""
    if isinstance(value, list):
        return [restored(each, histograms) for each in value]
    if not isinstance(value, dict):
        return value
    back = {}
    for name, inner in value.items():
        if name == "histogram" and isinstance(inner, int):
            indptr, values, counts = histograms.of([inner])
            assert indptr.tolist() == [0, len(values)]
            back[name] = {"values": values.tolist(), "counts": counts.tolist()}
        else:
            back[name] = restored(inner, histograms)
    return back


def answer_of(histograms: list[dict], words: str = "x") -> dict:
    kinds = ["latency", "in_flight", "offset"]
    hits = [
        {"_id": words, "_source": {"n": number, kinds[number % 3]: {"layout": words, "histogram": histogram}}, "sort": [number]}
        for number, histogram in enumerate(histograms)
    ]
    return {"took": 1, "hits": {"hits": hits}}


@pytest.mark.parametrize("seed", range(5))
def test_columns_hold_what_json_holds(seed: int) -> None:
    choose = random.Random(seed)
    made = []
    for _ in range(choose.choice([1, 7, 450])):
        width = choose.choice([0, 1, 2, 30])
        most = choose.choice([9, 10**6, 2**53, 2**63 - 1])
        values = sorted(choose.randint(0, most) for _ in range(width))
        made.append({"values": values, "counts": [choose.randint(0, choose.choice([9, 2**53])) for _ in range(width)]})
    whole = answer_of(made, 'a "quoted" {"values":[1],"counts":[2]} label')
    text = json.dumps(whole, separators=(",", ":"))
    read = columns(text)
    assert restored(read.answer, read.histograms) == whole and read.size == len(text)
    assert len(read.histograms.indptr) == len(made) + 1
    order = list(range(len(made)))
    choose.shuffle(order)
    indptr, values, counts = read.histograms.of(order)
    assert values.tolist() == [value for place in order for value in made[place]["values"]]
    assert counts.tolist() == [count for place in order for count in made[place]["counts"]]
    assert np.diff(indptr).tolist() == [len(made[place]["values"]) for place in order]


ODD = {
    "blanks": '{"values": [1, 2], "counts": [3, 4]}',
    "blanks within": '{"values":[1, 2],"counts":[3,4]}',
    "another order": '{"counts":[3,4],"values":[1,2]}',
    "fractions": '{"values":[1.0,2],"counts":[3,4]}',
    "a fraction at the end": '{"values":[1,2.5],"counts":[3,4]}',
    "an exponent": '{"values":[1,2e3],"counts":[3,4]}',
    "negative": '{"values":[-1,2],"counts":[3,4]}',
    "more": '{"values":[1,2],"counts":[3,4],"sum":5}',
    "unlike lengths": '{"values":[1,2],"counts":[3]}',
    "empty": '{"values":[],"counts":[]}',
    "text": '{"values":["1"],"counts":["2"]}',
}


@pytest.mark.parametrize("odd", list(ODD))
@pytest.mark.parametrize("others", [0, 3])
def test_what_is_written_otherwise_is_decoded_as_any_json(odd: str, others: int) -> None:
    plain = json.dumps({"values": [10, 20], "counts": [1, 2]}, separators=(",", ":"))
    bodies = ",".join(f'{{"_source":{{"latency":{{"histogram":{body}}}}}}}' for body in [plain] * others + [ODD[odd], plain])
    text = f'{{"hits":{{"hits":[{bodies}]}}}}'
    read = columns(text)
    assert restored(read.answer, read.histograms) == json.loads(text)


def test_an_answer_that_is_cut_off_is_asked_again() -> None:
    text = json.dumps(answer_of([{"values": [1, 2], "counts": [3, 4]}] * 3), separators=(",", ":"))
    for cut in range(1, len(text)):
        with pytest.raises(TransientError, match="cut off"):
            columns(text[:cut])


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
