"""Single exchanges recorded on 9.5.3, in the order their indices allow; what was not recorded before them is made here."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.comparing import differences, recorded
from tests.doubles.elasticsearch.proofs.replaying import Answered, send
from tests.doubles.elasticsearch.shards import shard_number

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any
ONE = {(one["name"], one["path"].split("/")[1]): one for one in recorded("single-9.5.3")}
SINGLE = {one["name"]: one for one in recorded("single-9.5.3")}
BULK = """bulk_mixed bulk_filter_path bulk_refresh_wait_for bulk_broken_source_json bulk_index_overwrite bulk_auto_id if_seq_no_conflict update get_doc mget
delete_doc delete_doc_404 update_404 get_doc_404 bulk_autocreate autocreate_mapping bulk_bad_action bulk_broken_action_json
bulk_empty bulk_invalid_index_name bulk_nan bulk_newline_in_source bulk_newline_only bulk_no_trailing_newline bulk_require_alias
bulk_wrong_content_type create_index_exists mapping_conflict delete_by_query_module_missing""".split()
TEMPLATES = """put_component put_component_settings put_component_bad_param put_component_bad_type put_index_template
put_index_template_missing_component put_index_template_priority_conflict get_component get_index_template get_index_template_404
delete_component_in_use simulate_template put_strict bulk_from_template bulk_strict_unknown_field bulk_strict_unknown_object""".split()
REFUSED = """agg_auto_date_histogram agg_boxplot agg_cardinality agg_composite agg_extended_stats agg_median_absolute_deviation agg_missing
agg_rate agg_significant_terms agg_stats agg_string_stats agg_t_test agg_terms agg_top_metrics agg_variable_width_histogram
date_histogram_on_h hdr6 hdr_and_tdigest histogram_subagg missing_param percents_unsorted range_subagg from_size_too_deep size_too_big
search_bad_json search_unknown_key unknown_query_param count_bad_query unmapped_field""".split()
NODE = """wrong_method no_handler license_module_missing delete_wildcard delete_index_404 head_index_404 ds_get ds_delete search_404
search_ignore_unavailable search_wildcard_none cluster_health_missing_index head_index refresh cluster_health_index get_settings""".split()
RANGES: dict[str, list[Json]] = {  # the values of the documents, told by names and answers; a list in a list is a document of its own
    "zero_only": [0], "zero_1": [0, 1], "zero_1h": [0, 1, 3.6e12], "zero_1e15": [0, 1e15], "1ns_1h": [1, 3.6e12], "sub_ns_and_hours": [0.5, 3.6e12],
    "1e-3_1e12": [1e-3, 1e12], "1e-9_1e9": [1e-9, 1e9], "1e-12_1e9": [1e-12, 1e9], "1_1e300": [1, 1e300], "1e300": [1e300], "one_1e15": [1, 1e15],
    "one_1e18": [1, 1e18], "one_1e15_d5": [1, 1e15], "one_1e17_d5": [1, 1e17], "negative": [-1, 1], "negative_only": [-5], "infinity_like": [1, 1e308],
    "separate_docs_1e-9_then_1e12": [[1e-9], [1e12]], "separate_docs_1e12_then_1e-9": [[1e12], [1e-9]],
}  # fmt: skip
COUNTS = {"count_gt_2_53": [2**53 + 1, 1], "bigcount": [1, 2**62], "bigcount63": [2**62, 2**62]}  # of the values 5 and 6
KINDS = {"k": "keyword", "t": "date", "h": "histogram", "op": "keyword"}


def mapped(server: ElasticsearchDouble, name: str, *, shards: int = 1, replicas: int = 0) -> None:
    """Make an index that was made by a request that is not recorded."""
    properties = {field: {"type": kind} for field, kind in KINDS.items()}
    body = {"settings": {"number_of_shards": shards, "number_of_replicas": replicas}, "mappings": {"properties": properties}}
    assert send(server, "PUT", f"/{name}", body).status == 200


def replay(server: ElasticsearchDouble, one: Json) -> Answered:
    """Return the answer to a recorded request."""
    headers = {"Content-Type": "text/plain"} if "content_type" in one["name"] else {}
    return send(server, one["method"], one["path"], one["body"], headers)


def agree(server: ElasticsearchDouble, one: Json) -> None:
    """Assert that the double answers a recorded request as recorded."""
    answer = replay(server, one)
    assert (answer.status, differences(one["response"], answer.body)) == (one["status"], []), one["name"]


@pytest.fixture(scope="module")
def writing() -> Iterator[ElasticsearchDouble]:
    """Return a double in the midst of the recorded writes to b1."""
    with ElasticsearchDouble("9.5.3") as double:
        agree(double, ONE["create_index", "b1"])
        yield double
        assert double.refusals == []


def test_writing(writing: ElasticsearchDouble) -> None:
    for name in BULK:  # in this order: each is of what the one before has left
        agree(writing, SINGLE[name])


@pytest.fixture(scope="module")
def templating() -> Iterator[ElasticsearchDouble]:
    """Return a double in the midst of the recorded templates."""
    with ElasticsearchDouble("9.5.3") as double:
        yield double
        assert double.refusals == []


def test_templates(templating: ElasticsearchDouble) -> None:
    for name in TEMPLATES:  # in this order
        agree(templating, SINGLE[name])


@pytest.fixture(scope="module")
def searching() -> Iterator[ElasticsearchDouble]:
    """Return a double with the index `acc`, mapped as recorded, without its 3,840 documents, which were not."""
    with ElasticsearchDouble("9.5.3") as double:
        body = ONE["get_mapping", "acc"]["response"]["acc"]
        send(double, "PUT", "/acc", {**body, "settings": {"number_of_replicas": 0, "number_of_shards": 1}})
        yield double
        assert double.refusals == []


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_search_is_refused_for(searching: ElasticsearchDouble, name: str) -> None:
    one = SINGLE[name]
    if name == "unmapped_field":
        one["response"]["hits"]["total"]["value"] = 0  # of documents that were not recorded
    agree(searching, one)


@pytest.mark.parametrize("name", NODE)
def test_node_and_indices(searching: ElasticsearchDouble, name: str) -> None:
    agree(searching, SINGLE[name])


def hdr_only(one: Json) -> Json:
    """Return a request and its answer without the t-digest, which the double refuses."""
    body, response = dict(one["body"], aggs=dict(one["body"]["aggs"])), one["response"]
    for name in [name for name, given in body["aggs"].items() if "percentiles" in given and "hdr" not in given["percentiles"]]:
        del body["aggs"][name]
        response.get("aggregations", {}).pop(name, None)
    return {**one, "body": body, "response": response}


DYNAMIC = [name for name, one in SINGLE.items() if one["path"] == "/dr/_search"]
DYNAMIC += ["count_gt_2_53"] if "count_gt_2_53" not in DYNAMIC else []


@pytest.mark.parametrize("name", sorted(DYNAMIC))
def test_dynamic_range_of_hdr(name: str) -> None:
    short = name.removesuffix("_ranks")
    values: list[Json] = RANGES.get(short, [5, 6])
    documents = values if isinstance(values[0], list) else [values]
    one = hdr_only(ONE[name, "dr"])
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "dr")
        for number, bins in enumerate(documents):
            body = {"h": {"values": bins, "counts": COUNTS.get(short, [1] * len(bins))}}
            assert send(double, "PUT", f"/dr/_doc/{number}?refresh=true", body).status == 201
        one["response"].get("hits", {}).get("total", {}).update(value=len(documents))
        agree(double, one)
        assert double.refusals == []


@pytest.mark.parametrize("number", [1, 2, 3, 7, 10, 100, 333, 1000])
def test_ranks_of_few_samples(number: int) -> None:
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "small")
        body = {"h": {"values": list(range(1, number + 1)), "counts": [1] * number}}
        assert send(double, "PUT", "/small/_doc/1?refresh=true", body).status == 201
        agree(double, hdr_only(SINGLE[f"small_N{number}"]))


def test_documents_that_count_for_many() -> None:
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "dcount", replicas=1)
        for name in ("doc_count_index", "doc_count_zero", "doc_count"):
            agree(double, SINGLE[name])


def test_a_shard_that_fails() -> None:
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "part", shards=2)
        bad, *good = sorted((str(number) for number in range(12)), key=lambda name: shard_number(name, 2))
        assert shard_number(bad, 2) == 0
        for name in [one for one in good if shard_number(one, 2) == 1][:3]:
            send(double, "PUT", f"/part/_doc/{name}", {"h": {"values": [1, 3], "counts": [0, 2]}})
        send(double, "PUT", f"/part/_doc/{bad}?refresh=true", {"h": {"values": [-1], "counts": [1]}})
        send(double, "POST", "/part/_refresh")
        one = SINGLE["partial_shard_failure"]
        answer = replay(double, one)
        one["response"]["aggregations"]["p"] = {"values": {"50.0": 3.0}}  # a single value: its own lower edge is the lowest
        assert (answer.status, differences(one["response"], answer.body)) == (200, [])
        agree(double, SINGLE["partial_shard_failure_disallowed"])


@pytest.mark.parametrize("name", ["413_1x100", "413_800x1000", "413_1100x1000", "413_3000x1000"])
def test_bodies_that_are_too_large(name: str) -> None:
    one = SINGLE[name]
    rows = int(name[4:].split("x", maxsplit=1)[0])
    lines = one["body"].split("\n")
    padding = json.loads(lines[1])["p"]
    pairs = [
        (json.dumps({"create": {"_index": "lim", "_id": f"{rows}-{n}"}}), json.dumps({"n": n, "p": padding})) for n in range(rows)
    ]
    body = "".join(f"{a}\n{b}\n" for a, b in pairs)
    with ElasticsearchDouble("9.5.3", max_content_length=1 << 20) as double:
        mapped(double, "lim")
        answer = send(double, "POST", "/_bulk", body)
        assert answer.status == one["status"]
        if answer.status == 413:
            assert answer.body is None
            assert answer.headers == {"content-length": "0", "connection": "close"}
            assert one["response_headers"] == {}
            assert send(double, "GET", "/").status == 200
        else:
            assert [next(iter(item.values()))["status"] for item in answer.body["items"]] == [201] * rows
        assert double.requests[-1].status in (200, 413)


def test_pressure_on_the_whole_request() -> None:
    one = SINGLE["pressure_1100x1000"]
    body = '{"index":{"_index":"lim","_id":"1"}}\n{"k":"a"}\n'
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "lim")
        double.reject_next(whole=1)
        answer = send(double, "POST", "/_bulk", body)
        assert (answer.status, differences(one["response"], answer.body)) == (429, [])
        assert send(double, "POST", "/_bulk", body).body["errors"] is False


def test_pressure_on_single_items() -> None:
    recorded_item = SINGLE["queue_0"]["response"]["items"][0]
    body = "".join(f'{{"create":{{"_index":"lim","_id":"0-{n}"}}}}\n{{"k":"a"}}\n' for n in range(4))
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "lim")
        double.reject_next(items=0.5)
        answer = send(double, "POST", "/_bulk", body)
        assert answer.status == 200
        assert answer.body["errors"] is True
        assert [item["create"]["status"] for item in answer.body["items"]] == [201, 429, 201, 429]
        want = {**recorded_item, "create": {**recorded_item["create"], "_id": "0-1"}}
        assert differences(want, answer.body["items"][1]) == []
        again = send(double, "POST", "/_bulk", body)
        assert [item["create"]["status"] for item in again.body["items"]] == [409, 201, 409, 201]


def test_hits_are_counted_to_ten_thousand() -> None:
    body = "".join(f'{{"index":{{"_index":"sz_default","_id":"{n}"}}}}\n{{"k":"a"}}\n' for n in range(10_001))
    with ElasticsearchDouble("9.5.3") as double:
        mapped(double, "sz_default")
        send(double, "POST", "/_bulk?refresh=true", body)
        agree(double, SINGLE["total_hits_cap"])
