"""ES|QL on plain fields, beyond the one recorded question: against answers worked out by hand, and in Python."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
T0 = 1_789_999_200_000
ROWS: list[Json] = [
    {
        "@timestamp": T0 + 1500 * number,
        "op": "read" if number % 3 else "write",
        "host": {"name": f"h{number % 4}"},
        "p99": number / 4,
        "n": number,
        "ok": number % 2 == 0,
    }
    for number in range(40)
] + [{"@timestamp": T0 + 70_000, "op": "trim"}]
KINDS = {"@timestamp": "date", "op": "keyword", "p99": "double", "n": "long", "ok": "boolean", "h": "histogram"}


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticsearchDouble]:
    """Return a double of 8.19.21 with rows in two indices."""
    with ElasticsearchDouble("8.19.21") as double:
        mappings = {
            "properties": {
                **{name: {"type": kind} for name, kind in KINDS.items()},
                "host": {"properties": {"name": {"type": "keyword"}}},
            }
        }
        for part in range(2):
            send(double, "PUT", f"/roll-{part}", {"mappings": mappings})
        for number, row in enumerate(ROWS):
            send(double, "PUT", f"/roll-{number // 20 % 2}/_doc/{number}", row)
        send(double, "POST", "/_refresh")
        yield double
        assert double.refusals == []


def ask(server: ElasticsearchDouble, query: str) -> Json:
    """Return the answer to a query."""
    answer = send(server, "POST", "/_query?format=json", {"query": query})
    assert answer.status == 200, answer.body
    return answer.body


@pytest.mark.parametrize(
    ("query", "columns", "values"),
    [
        ("FROM roll-* | STATS n = COUNT(*)", "n:long", [[41]]),
        ("from roll-* | stats COUNT(p99), m = max(p99), MIN(n), s = SUM(n), a = AVG(n)", "COUNT(p99):long m:double MIN(n):long s:long a:double", [[40, 9.75, 0, 780, 19.5]]),
        ("FROM roll-* | STATS c = COUNT(*) BY op | SORT op", "c:long op:keyword", [[26, "read"], [1, "trim"], [14, "write"]]),
        ('FROM roll-* | WHERE n >= 38 OR op == "trim" | SORT n DESC | KEEP n, op', "n:long op:keyword", [[None, "trim"], [39, "write"], [38, "read"]]),
        ('FROM roll-* | WHERE n >= 38 OR op == "trim" | SORT n | KEEP n', "n:long", [[38], [39], [None]]),
        ("FROM roll-* | SORT n DESC NULLS LAST | KEEP n | LIMIT 2", "n:long", [[39], [38]]),
        ('FROM roll-* | WHERE op LIKE "w*" AND NOT n > 5 | SORT n | KEEP n', "n:long", [[0], [3]]),
        ("FROM roll-* | WHERE n IN (1, 5, 99) AND ok == false | SORT n | KEEP n", "n:long", [[1], [5]]),
        ('FROM roll-* | WHERE op NOT IN ("read", "write") | KEEP op', "op:keyword", [["trim"]]),
        ("FROM roll-* | WHERE n IS NULL | KEEP op", "op:keyword", [["trim"]]),
        ("FROM roll-* | EVAL x = (n + 1) * 2 - 7 / 2, y = p99 * 2 | WHERE x > 75 AND y IS NOT NULL | SORT x | KEEP x, y", "x:long y:double", [[77, 19.5]]),
        ("FROM roll-* | STATS m = MAX(p99) BY t = BUCKET(@timestamp, 30 seconds) | SORT t | LIMIT 2", "m:double t:date", [[4.75, "2026-09-21T14:00:00.000Z"], [9.75, "2026-09-21T14:00:30.000Z"]]),
        ('FROM roll-* | WHERE @timestamp >= "2026-09-21T14:01:00Z" | STATS MIN(@timestamp)', "MIN(@timestamp):date", [["2026-09-21T14:01:10.000Z"]]),
        ('FROM roll-0, roll-1 | STATS c = COUNT(*) BY host.name, op | WHERE c > 6 AND host.name != "h9" | SORT c DESC, host.name | KEEP c, `host.name`', "c:long host.name:keyword", [[7, "h1"], [7, "h2"]]),
        ("FROM roll-* | WHERE n > 100 | STATS c = COUNT(*), m = MAX(n)", "c:long m:long", [[0, None]]),
        ("FROM roll-* | WHERE n > 100 | STATS c = COUNT(*) BY op", "c:long op:keyword", []),
    ],
)  # fmt: skip
def test_queries(server: ElasticsearchDouble, query: str, columns: str, values: Json) -> None:
    found = ask(server, query)
    assert " ".join(f"{one['name']}:{one['type']}" for one in found["columns"]) == columns
    assert found["values"] == values


def test_groups_add_up_as_in_python(server: ElasticsearchDouble) -> None:
    query = "FROM roll-* | WHERE p99 > 1 | STATS m = MAX(p99), s = SUM(p99), c = COUNT(*) BY op, t = BUCKET(@timestamp, 10 seconds) | SORT t, op"
    groups: dict[Any, list[float]] = {}
    for row in ROWS:
        if row.get("p99", 0) > 1:
            groups.setdefault((row["@timestamp"] // 10_000 * 10_000, row["op"]), []).append(row["p99"])
    want = [[max(some), math.fsum(some), len(some), op] for (_, op), some in sorted(groups.items())]
    assert [row[:4] for row in ask(server, query)["values"]] == want


def test_a_filter_comes_before_everything_else(server: ElasticsearchDouble) -> None:
    bounds = {"gt": "2026-09-21T14:00:03Z", "lte": "2026-09-21T14:00:09Z", "format": "strict_date_optional_time"}
    body = {
        "query": "FROM roll-* | STATS c = COUNT(*), m = MIN(n) BY op | SORT op | limit 1000",
        "filter": {"bool": {"filter": [{"range": {"@timestamp": bounds}}]}},
    }
    answer = send(server, "POST", "/_query", body)
    assert answer.body["values"] == [[2, 4, "read"], [2, 3, "write"]]  # rows 3 to 6, of which 3 and 6 are writes
    none = {**body, "filter": {"term": {"op": "nothing"}}}
    assert send(server, "POST", "/_query", none).body["values"] == []


def test_without_a_limit_a_header_warns(server: ElasticsearchDouble) -> None:
    query = {"query": "FROM roll-* | KEEP n"}
    assert "adding default limit of [1000]" in send(server, "POST", "/_query", query).headers["warning"]
    assert "warning" not in send(server, "POST", "/_query", {"query": "FROM roll-* | KEEP n | LIMIT 3"}).headers


def test_a_thousand_rows_at_most() -> None:
    with ElasticsearchDouble("8.19.21") as double:
        lines = "".join(f'{{"index":{{"_index":"x"}}}}\n{{"n":{number}}}\n' for number in range(1200))
        send(double, "POST", "/_bulk?refresh=true", lines)
        assert len(ask(double, "FROM x | SORT n | KEEP n")["values"]) == 1000
        assert len(ask(double, "FROM x | SORT n | KEEP n | LIMIT 1100")["values"]) == 1100


def test_csv(server: ElasticsearchDouble) -> None:
    query = {"query": 'FROM roll-* | WHERE n < 2 OR op == "trim" | SORT n | KEEP @timestamp, op, p99, n, ok | LIMIT 5'}
    answer = send(server, "POST", "/_query?format=csv", query)
    assert answer.headers["content-type"].startswith("text/csv")
    assert str(answer.body).split("\r\n") == [
        "@timestamp,op,p99,n,ok", "2026-09-21T14:00:00.000Z,write,0.0,0,true", "2026-09-21T14:00:01.500Z,read,0.25,1,false", "2026-09-21T14:01:10.000Z,trim,,,", "",
    ]  # fmt: skip


def test_a_histogram_column_is_refused_as_measured(server: ElasticsearchDouble) -> None:
    answer = send(server, "POST", "/_query", {"query": "FROM roll-* | STATS x = MAX(h)"})
    assert answer.status == 400
    assert answer.body["error"]["type"] == "verification_exception"
    assert answer.body["error"]["reason"] == "Found 1 problem\nline 1:29: Cannot use field [h] with unsupported type [histogram]"


@pytest.mark.parametrize(
    "query",
    [
        "FROM roll-* | KEEP n | DISSECT op",
        "FROM roll-* | EVAL x = ROUND(n) | KEEP x",
        "FROM roll-* | STATS MEDIAN(n)",
        "FROM roll-* | EVAL x = n / 0 | KEEP x",
        "FROM roll-* | WHERE n | KEEP n",
        "FROM roll-* | KEEP n extra",
        "FROM roll-* METADATA _id | KEEP n",
        "FROM roll-* | LIMIT 20000 | KEEP n",
        "FROM roll-* | STATS first = MIN(n)",
    ],
)
def test_what_is_not_understood_is_refused(query: str) -> None:
    with ElasticsearchDouble("8.19.21") as double:
        send(double, "PUT", "/roll-1/_doc/1?refresh=true", {"n": 1, "op": "a"})
        assert send(double, "POST", "/_query", {"query": query}).status == 501
        assert len(double.refusals) == 1
        assert "double broke" not in double.refusals[0]
