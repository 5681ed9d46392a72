"""KQL: what is written is read back as it was meant, whatever values hold, and nothing else is taken for it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import UsageError
from tools.kibana.kql import Above, Below, parsed, query, written

VALUES = st.one_of(
    st.text(), st.booleans(), st.integers(0, 10**12), st.sampled_from(["or", "and", "true", "7", "a b", 'say "so"', "\\"])
)


@given(
    st.dictionaries(st.sampled_from(["kind", "run.id", "@timestamp", "rollup.step_ms"]), st.lists(VALUES, min_size=1, max_size=3))
)
def test_what_is_written_is_read_back(terms) -> None:
    assert parsed(written(terms)) == terms


def test_it_reads_like_kql() -> None:
    terms = {"rollup.overview": True, "rollup.scope": ["cluster", "host"], "rollup.step_ms": 0, "run.id": "nightly/1"}
    text = 'rollup.overview: true and rollup.scope: (cluster or host) and rollup.step_ms: 0 and run.id: "nightly/1"'
    assert written(terms) == text


def test_it_asks_for_documents_with_one_of_the_values_in_each_field() -> None:
    assert query("kind: (total or wait) and final: true") == {
        "bool": {
            "filter": [
                {"bool": {"should": [{"term": {"kind": "total"}}, {"term": {"kind": "wait"}}], "minimum_should_match": 1}},
                {"bool": {"should": [{"term": {"final": True}}], "minimum_should_match": 1}},
            ]
        }
    }


def test_it_asks_for_numbers_below_or_above_one() -> None:
    assert written({"latency.count": Above(0)}) == "latency.count > 0"
    assert query("latency.count > 0")["bool"]["filter"][0]["bool"]["should"] == [{"range": {"latency.count": {"gt": 0}}}]
    text = written({"final": True, "kind_preference": Below(-15)})
    assert text == "final: true and kind_preference < -15"
    assert parsed(text) == {"final": [True], "kind_preference": [-15]}
    assert query(text)["bool"]["filter"][1]["bool"]["should"] == [{"range": {"kind_preference": {"lt": -15}}}]


@pytest.mark.parametrize(
    "text", ["kind: total or op: read", "not kind: total", "kind: tot*", "latency.p99 >= 5", "kind: a and kind: b", "kind: a and"]
)
def test_other_kql_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match="KQL of a form that is not supported here"):
        parsed(text)
