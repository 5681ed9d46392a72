"""The double of Kibana against what Kibana's source and documentation say; nothing of it is recorded."""

from __future__ import annotations

import base64
import http.client
import json
import time
from collections.abc import Iterator
from contextlib import closing
from urllib.parse import urlsplit

import pytest

from tests.doubles.kibana import KibanaDouble
from tests.doubles.kibana.proofs.asking import FORM, XSRF, dashboard, data_view, everything, form, imported, lens, send

pytestmark = [pytest.mark.contract, pytest.mark.slow]
IMPORT = "/api/saved_objects/_import?overwrite=true"
RULE = "/api/alerting/rule/5031f8f0-629a-51eb-b500-d1931a8e5df7"


@pytest.fixture
def kibana() -> Iterator[KibanaDouble]:
    with KibanaDouble(spaces=("default", "perf")) as double:
        yield double
        assert double.refusals == []


def refused(kibana: KibanaDouble, method: str, path: str, body=None, headers=None) -> tuple[int, str]:
    """Return status and message of a refusal, in the one form that Kibana has for them."""
    status, answer = send(kibana, method, path, body, headers)
    assert answer["statusCode"] == status
    assert answer["error"] == http.client.responses[status]
    return status, answer["message"]


# ---- status, credentials, spaces -------------------------------------------------------------------------------------


def test_a_starting_kibana_answers_in_plain_text_then_tells_its_levels() -> None:
    with KibanaDouble(starting=2, levels=("unavailable", "degraded", "available")) as kibana:
        for _ in range(2):
            assert send(kibana, "GET", "/api/status") == (503, "Kibana server is not ready yet")
        told = [send(kibana, "GET", "/api/status") for _ in range(4)]
    assert [(status, answer["status"]["overall"]["level"]) for status, answer in told] == [
        (503, "unavailable"), (200, "degraded"), (200, "available"), (200, "available"),
    ]  # fmt: skip
    assert told[0][1]["version"]["number"] == "9.5.3"


def test_credentials_come_before_the_xsrf_header_and_status_is_short_without() -> None:
    with KibanaDouble(api_key="cmlnaHQ6a2V5", basic=("elastic", "pass:word")) as kibana:
        assert send(kibana, "GET", "/api/status", headers={}) == (200, {"status": {"overall": {"level": "available"}}})
        assert refused(kibana, "POST", IMPORT, headers={})[0] == 401
        assert refused(kibana, "GET", "/api/status", headers={"authorization": "ApiKey wrong"})[0] == 401
        assert refused(kibana, "POST", IMPORT, headers={"authorization": "ApiKey cmlnaHQ6a2V5"}) == (
            400, "Request must contain a kbn-xsrf header.",
        )  # fmt: skip
        login = base64.b64encode(b"elastic:pass:word").decode()
        assert send(kibana, "GET", "/api/spaces/space/default", headers={"authorization": f"Basic {login}"})[0] == 200
        assert kibana.refusals == []


def test_spaces_are_known_by_their_id_and_imports_do_not_ask_for_them(kibana: KibanaDouble) -> None:
    assert send(kibana, "GET", "/api/spaces/space/perf")[1]["id"] == "perf"
    assert refused(kibana, "GET", "/api/spaces/space/nowhere") == (404, "Not Found")
    assert imported(kibana, [data_view()], space="/s/nowhere")["success"] is True
    assert set(kibana.objects("nowhere")) == {("index-pattern", "rollups")}
    assert kibana.objects() == {}


def test_a_base_path_is_part_of_every_path() -> None:
    with KibanaDouble(base_path="/kibana") as kibana:
        assert kibana.url.endswith("/kibana")
        assert send(kibana, "GET", "/api/status")[0] == 200
        with closing(http.client.HTTPConnection("127.0.0.1", urlsplit(kibana.url).port)) as connection:
            connection.request("GET", "/api/status")
            assert connection.getresponse().status == 404


# ---- import ----------------------------------------------------------------------------------------------------------


def test_an_import_creates_and_a_second_one_overwrites(kibana: KibanaDouble) -> None:
    lines = everything()
    first = imported(kibana, lines)
    assert (first["success"], first["successCount"], "errors" in first) == (True, 4, False)
    assert [(one["type"], one["id"], one["meta"]["title"], "overwrite" in one) for one in first["successResults"]] == [
        ("index-pattern", "rollups", "tailboard-rollups-*", False), ("lens", "worst", "Worst", False),
        ("visualization", "surface", "Surface", False), ("dashboard", "cluster", "Cluster", False),
    ]  # fmt: skip
    second = imported(kibana, [*lines, {"exportedCount": 4, "missingRefCount": 0}])
    assert all(one["overwrite"] for one in second["successResults"])
    assert len(kibana.objects()) == 4
    copies = imported(kibana, lines, query="?createNewCopies=true")
    assert all(one["destinationId"] != one["id"] for one in copies["successResults"])
    assert len(kibana.objects()) == 8


def test_without_overwrite_what_is_there_is_a_conflict_and_nothing_is_written(kibana: KibanaDouble) -> None:
    imported(kibana, [data_view()])
    answer = imported(kibana, [data_view(title="other-*"), lens("worst")], query="")
    assert answer["success"] is False
    assert [(one["id"], one["error"]) for one in answer["errors"]] == [("rollups", {"type": "conflict"})]
    assert [one["id"] for one in answer["successResults"]] == ["worst"]
    assert set(kibana.objects()) == {("index-pattern", "rollups")}
    assert kibana.objects()["index-pattern", "rollups"]["attributes"]["title"] == "tailboard-rollups-*"


def test_missing_references_keep_everything_out_and_only_data_views_count(kibana: KibanaDouble) -> None:
    answer = imported(kibana, [lens("worst", view="gone"), data_view("other")])
    assert answer["errors"][0]["error"] == {"type": "missing_references", "references": [{"type": "index-pattern", "id": "gone"}]}
    assert answer["successCount"] == 1
    assert kibana.objects() == {}
    alone = dashboard("cluster", {"type": "lens", "id": "nobody"})
    assert imported(kibana, [data_view(), alone])["success"] is True


def test_unknown_types_and_bad_attributes_fail_alone(kibana: KibanaDouble) -> None:
    other = {**data_view("x"), "type": "canvas-thing"}
    bad = dashboard("bad", colour="red")
    answer = imported(kibana, [data_view(), other, bad, dashboard("worse", timeRestore="yes")])
    assert {one["id"]: one["error"] for one in answer["errors"]} == {
        "x": {"type": "unsupported_type"},
        "bad": {"type": "unknown", "statusCode": 400, "error": "Bad Request", "message": "[attributes.colour]: definition for this key is missing: Bad Request"},
        "worse": {"type": "unknown", "statusCode": 400, "error": "Bad Request", "message": "[attributes.timeRestore]: expected value of type [bool] but got [str]: Bad Request"},
    }  # fmt: skip
    assert set(kibana.objects()) == {("index-pattern", "rollups")}


def test_a_newer_object_fails_the_whole_import(kibana: KibanaDouble) -> None:
    newer = {**dashboard("cluster"), "typeMigrationVersion": "10.3.0"}
    body = form("\n".join(json.dumps(line) for line in (data_view(), newer)))
    told = 'Document "cluster" belongs to a more recent version of Kibana [10.3.0] when the last known version is [10.2.0].'
    assert refused(kibana, "POST", IMPORT, body, FORM) == (422, told)
    assert kibana.objects() == {}


def test_a_second_space_gets_ids_of_its_own_and_finds_them_again(kibana: KibanaDouble) -> None:
    imported(kibana, everything())
    answer = imported(kibana, everything(), space="/s/perf", query="?overwrite=true&compatibilityMode=true")
    ids = {(one["type"], one["id"]): one["destinationId"] for one in answer["successResults"]}
    assert len(ids) == 4
    assert not any("overwrite" in one for one in answer["successResults"])
    there = kibana.objects("perf")
    assert set(there) == {(kind, ids[kind, name]) for kind, name in ids}
    board = there["dashboard", ids["dashboard", "cluster"]]
    assert {one["id"] for one in board["references"]} == {ids[key] for key in ids if key[0] != "dashboard"}
    assert kibana.aliases("perf") == ids
    again = imported(kibana, everything(), space="/s/perf")
    assert {(one["type"], one["id"]): one["destinationId"] for one in again["successResults"]} == ids
    assert all(one["overwrite"] for one in again["successResults"])
    assert len(kibana.objects("perf")) == len(kibana.objects()) == 4


LINE = json.dumps(data_view())


@pytest.mark.parametrize(
    ("path", "body", "kind", "status", "told"),
    [
        (IMPORT, b"{}", "application/json", 415, "Unsupported Media Type"),
        (IMPORT, form(LINE, filename="a.json"), None, 400, "Invalid file extension .json"),
        (IMPORT, form(LINE, name="data"), None, 400, "[request body.file]: expected value of type [Stream] but got [undefined]"),
        (IMPORT, form(LINE + "\n" + LINE), None, 400, "Non-unique import objects detected: [index-pattern:rollups]"),
        (IMPORT, form("{"), None, 400, "Unexpected token"),
        (IMPORT, form('{"id":"a","type":"lens"}'), None, 500, "An internal server error occurred."),
        (IMPORT, form(LINE)[:-4], None, 400, "Invalid multipart payload format"),
        (IMPORT, b"x" + form(LINE), None, 400, "Invalid multipart payload format"),
        (IMPORT, form(LINE).replace(b"form-data; ", b""), None, 400, "Invalid multipart payload format"),
        (IMPORT + "&createNewCopies=true", form(LINE), None, 400, "[request query]: cannot use [createNewCopies] with [overwrite]"),
        (IMPORT + "&dryRun=true", form(LINE), None, 400, "[request query.dryRun]: definition for this key is missing"),
        (IMPORT.replace("true", "yes"), form(LINE), None, 400, "[request query.overwrite]: expected value of type [boolean]"),
    ],
)  # fmt: skip
def test_requests_that_are_no_import_are_refused(
    kibana: KibanaDouble, path: str, body: bytes, kind, status: int, told: str
) -> None:
    headers = {**XSRF, "content-type": kind} if kind else FORM
    got, message = refused(kibana, "POST", path, body, headers)
    assert got == status
    assert message.startswith(told)
    assert kibana.objects() == {}


def test_what_is_too_large_is_refused() -> None:
    with KibanaDouble(max_import_bytes=100) as kibana:
        assert refused(kibana, "POST", IMPORT, form(LINE), FORM) == (
            413,
            "Payload content length greater than maximum allowed: 100",
        )


# ---- rules -----------------------------------------------------------------------------------------------------------


def rule(**words) -> dict:
    params = {
        "searchType": "esqlQuery",
        "esqlQuery": {"esql": "FROM x | STATS c = COUNT(*)"},
        "timeField": "@timestamp",
        "timeWindowSize": 5,
        "timeWindowUnit": "m",
        "size": 100,
        "threshold": [0],
        "thresholdComparator": ">",
        "groupBy": "row",
    }
    body = {"name": "a", "rule_type_id": ".es-query", "consumer": "stackAlerts", "schedule": {"interval": "1m"}, "params": params}
    return {**body, **{name: value for name, value in words.items() if name in ("name", "consumer", "schedule", "actions", "extra")},
            "params": {**params, **{name: value for name, value in words.items() if name in params or name == "colour"}}}  # fmt: skip


def test_a_rule_is_created_shown_changed_and_known_in_its_space_alone(kibana: KibanaDouble) -> None:
    assert refused(kibana, "GET", RULE)[0] == 404
    assert send(kibana, "POST", RULE, rule())[0] == 200
    status, shown = send(kibana, "GET", RULE)
    assert (status, shown["name"], shown["enabled"], shown["rule_type_id"]) == (200, "a", True, ".es-query")
    assert refused(kibana, "POST", RULE, rule()) == (409, "Saved object [alert/5031f8f0-629a-51eb-b500-d1931a8e5df7] conflict")
    assert refused(kibana, "POST", "/s/perf" + RULE, rule())[0] == 409
    assert refused(kibana, "GET", "/s/perf" + RULE)[0] == 404
    change = {name: value for name, value in rule(name="b").items() if name not in ("rule_type_id", "consumer")}
    action = {"group": "query matched", "id": "log", "params": {"message": "!"}}
    assert send(kibana, "PUT", RULE, {**change, "actions": [action]})[1]["actions"] == [
        {**action, "connector_type_id": ".server-log"}
    ]
    assert send(kibana, "PUT", RULE, change)[1]["actions"] == []
    assert kibana.rules()["5031f8f0-629a-51eb-b500-d1931a8e5df7"]["name"] == "b"


@pytest.mark.parametrize(
    ("path", "body", "status", "told"),
    [
        (
            RULE[:-1],
            rule(),
            400,
            "Predefined IDs are not allowed for saved objects with encrypted attributes unless the ID is a UUID.",
        ),
        (RULE, rule(consumer="nobody"), 403, "Unauthorized"),
        (RULE, {**rule(), "colour": "red"}, 400, "[request body.colour]: definition for this key is missing"),
        (
            RULE,
            {name: value for name, value in rule().items() if name != "consumer"},
            400,
            "[request body.consumer]: expected value",
        ),
        (RULE, rule(schedule={"interval": "0s"}), 400, "[request body.schedule.interval]: string is not a valid duration: 0s"),
        (
            RULE,
            rule(actions=[{"id": "x", "connector_type_id": ".index"}]),
            400,
            "[request body.actions.0.connector_type_id]: definition",
        ),
        (RULE, rule(colour="red"), 400, "params invalid: [colour]: definition for this key is missing"),
        (RULE, rule(thresholdComparator=">="), 400, "params invalid: [thresholdComparator]: is required to be greater than"),
        (RULE, rule(threshold=[1]), 400, "params invalid: [threshold]: is required to be 0"),
        (RULE, rule(timeField=""), 400, "params invalid: [timeField]: is required"),
        (RULE, rule(timeWindowUnit="w"), 400, "params invalid: [timeWindowUnit]: invalid timeWindowUnit"),
        (RULE, rule(timeWindowSize=0), 400, "params invalid: [timeWindowSize]: Value must be"),
        (RULE, rule(groupBy="each"), 400, 'params invalid: [groupBy]: invalid groupBy: "each"'),
        (RULE, rule(esqlQuery={"esql": ""}), 400, "params invalid: [esqlQuery.esql]"),
        (RULE, rule(size=True), 400, "params invalid: [size]: expected value of type [int] but got [bool]"),
        (RULE, rule(size=10_001), 400, "params invalid: [size]: Value must be equal to or lower than [10000]"),
    ],
)
def test_rules_that_kibana_would_not_take_are_refused(kibana: KibanaDouble, path: str, body, status: int, told: str) -> None:
    got, message = refused(kibana, "POST", path, body)
    assert got == status
    assert message.startswith(told)
    assert kibana.rules() == {}


def test_put_takes_only_what_may_change(kibana: KibanaDouble) -> None:
    send(kibana, "POST", RULE, rule())
    assert refused(kibana, "PUT", RULE, rule()) == (400, "[request body.rule_type_id]: definition for this key is missing")


def test_alerts_by_row_came_with_9_2() -> None:
    for version, status in (("9.1.4", 400), ("9.2.0", 200), ("8.19.21", 400)):
        with KibanaDouble(version) as kibana:
            assert send(kibana, "POST", RULE, rule())[0] == status


# ---- faults ----------------------------------------------------------------------------------------------------------


def test_faults_come_one_after_the_other_and_lost_answers_are_done() -> None:
    with KibanaDouble(slow_seconds=0.3) as kibana:
        kibana.fail_next("503", "reset", "reset_after", "half", "slow")
        assert send(kibana, "GET", "/api/status")[0] == 503
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            imported(kibana, [data_view("one")])
        assert kibana.objects() == {}
        with pytest.raises((ConnectionError, http.client.RemoteDisconnected)):
            imported(kibana, [data_view("two")])
        assert set(kibana.objects()) == {("index-pattern", "two")}
        with pytest.raises(http.client.IncompleteRead):
            send(kibana, "GET", "/api/status")
        began = time.monotonic()
        assert send(kibana, "GET", "/api/status")[0] == 200
        assert time.monotonic() - began >= 0.3
        assert [one.status for one in kibana.requests] == [503, 200, 200]


def test_what_it_cannot_do_is_refused_loudly() -> None:
    with KibanaDouble() as kibana:
        for method, path in (("GET", "/api/dashboards/x"), ("POST", "/api/spaces/space/default"), ("DELETE", RULE)):
            assert send(kibana, method, path)[0] in (404, 501)
        send(kibana, "POST", RULE, rule())
        assert send(kibana, "DELETE", RULE)[0] == 501
        assert len(kibana.refusals) == 3
