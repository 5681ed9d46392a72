"""The histogram field, case by case as recorded on 9.5.3: what is taken, what is refused and why, what is counted then."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.comparing import differences, recorded
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
RECORDED = recorded("single-9.5.3")
WRITES = [one for one in RECORDED if one["path"].startswith(("/val/_create/", "/val_im/_create/"))]
STRICT = [one for one in WRITES if one["path"].startswith("/val/")]
LOOSE = [one for one in WRITES if one["path"].startswith("/val_im/")]
LATER = [one for one in RECORDED if one["path"] in ("/val/_search", "/val_im/_search", "/val/_mapping")]


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticsearchDouble]:
    """Return a double with both indices, all documents sent in the order they were taken."""
    with ElasticsearchDouble("9.5.3") as double:
        for one in RECORDED:
            if one["path"] in ("/val", "/val_im"):
                assert send(double, one["method"], one["path"], one["body"]).status == one["status"]
        yield double
        assert double.refusals == []


@pytest.fixture(scope="module")
def answers(server: ElasticsearchDouble) -> dict[str, Any]:
    """Return the answers to all writes by path."""
    ordered = sorted(WRITES, key=lambda one: one["response"].get("_seq_no", 999))
    found = {one["path"]: send(server, one["method"], one["path"], one["body"]) for one in ordered}
    send(server, "POST", "/_refresh")
    return found


def test_the_whole_table_is_there() -> None:
    assert len(STRICT) == 36
    assert len(LOOSE) == 36


@pytest.mark.parametrize("case", WRITES, ids=[one["path"][1:].replace("/_create/", "-") for one in WRITES])
def test_write(answers: dict[str, Any], case: Json) -> None:
    answer = answers[case["path"]]
    assert (answer.status, differences(case["response"], answer.body)) == (case["status"], [])


@pytest.mark.parametrize("case", LATER, ids=[one["name"] for one in LATER])
def test_then(server: ElasticsearchDouble, answers: dict[str, Any], case: Json) -> None:
    body = case["body"]
    if case["name"] == "docvalue_fields":  # which hit came first depended on segments: ask for the one recorded
        body = {**body, "size": 17}
    answer = send(server, case["method"], case["path"], body)
    if case["name"] == "docvalue_fields":
        wanted = case["response"]["hits"]["hits"][0]
        answer.body["hits"]["hits"] = [hit for hit in answer.body["hits"]["hits"] if hit["_id"] == wanted["_id"]]
    assert (answer.status, differences(case["response"], answer.body)) == (case["status"], [])
