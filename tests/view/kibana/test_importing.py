"""The connection to Kibana and the import: ready or not, every refusal a sentence, every object accounted for."""

from __future__ import annotations

import base64
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import unquote

import pytest

from ingest.core.errors import StoreError, UsageError
from ingest.view.kibana.importing import (
    Connection,
    Imported,
    Refusal,
    SavedObject,
    checked_space,
    checked_url,
    dashboard_link,
    delete_gone,
    gone,
    import_body,
    import_objects,
    saved_object,
    shipped,
)
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.kibana import KibanaDouble
from tests.doubles.kibana.multipart import parts_of
from tests.doubles.tls import CERTIFICATE, TlsFront, fingerprint
from tools.kibana import objects


def importable(*words) -> SavedObject:
    """Return an object as `setup` has it: its line."""
    return saved_object(objects.line_text(objects.SavedObject(*words)))


def test_k6_a_link_shows_a_run_in_its_range_or_what_comes_in_now() -> None:
    """Of a finished run nothing is asked again; what a run may be called stands in the address as Kibana reads it."""
    now = "https://k:5601/s/perf/app/dashboards#/view/p-cluster-latency?_g=(refreshInterval:(pause:!f,value:10000),time:(from:%27now-15m%27,to:%27now%27))"
    assert dashboard_link("https://k:5601/s/perf/", "p") == now
    link = unquote(dashboard_link("http://k:5601", "tailboard", "it's !/a b&c#d", (1_795_183_200_000, 1_795_183_279_999)))
    span = "_g=(refreshInterval:(pause:!t,value:10000),time:(from:'2026-11-20T14:00:00.000Z',to:'2026-11-20T14:01:19.999Z'))"
    assert link.startswith(f"http://k:5601/app/dashboards#/view/tailboard-cluster-latency?{span}&_a=(filters:!((meta:(")
    assert link.endswith("query:(match_phrase:(run.id:'it!'s !!/a b&c#d')))))")
    assert "&c" not in dashboard_link("http://k:5601", "p", "b&c#d", (0, 1)).partition("_a=")[2]


VIEW = importable(
    "index-pattern", "tailboard-rollups", {"title": "tailboard-rollups-*", "name": "Rollups", "timeFieldName": "@timestamp"}
)
SEARCH = {"searchSourceJSON": {"query": {"query": "", "language": "kuery"}, "filter": []}}


def board(name: str, view: str = "tailboard-rollups", **attributes) -> SavedObject:
    """Return a dashboard without panels, with a control."""
    control = {
        "order": 0, "width": "medium", "grow": True, "type": "optionsListControl",
        "explicitInput": {"id": "run", "fieldName": "run.id", "title": "run"},
    }  # fmt: skip
    words = {
        "title": name.title(),
        "panelsJSON": [],
        "optionsJSON": {},
        "controlGroupInput": {"panelsJSON": {"run": control}},
        "kibanaSavedObjectMeta": SEARCH,
        **attributes,
    }
    control_view = objects.Reference("index-pattern", view, "controlGroup_run:optionsListDataView")
    return importable("dashboard", name, words, (control_view,))


OBJECTS = (VIEW, board("hosts"), board("größe"))


@pytest.fixture(autouse=True)
def quick(monkeypatch) -> None:
    """No patience longer than a test wants to wait, and nothing from the environment of whoever runs the tests."""
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "5")
    monkeypatch.setenv("TAILBOARD_KIBANA_TIMEOUT", "2")
    for server in ("ES", "KIBANA"):
        for name in ("API_KEY", "USER", "PASSWORD", "CA_FILE", "FINGERPRINT"):
            monkeypatch.delenv(f"TAILBOARD_{server}_{name}", raising=False)


@pytest.fixture
def kibana() -> Iterator[KibanaDouble]:
    with KibanaDouble(spaces=("default", "perf"), slow_seconds=3) as double:
        yield double
        assert double.refusals == []


def connected(url: str, space: str = "default", **words) -> Connection:
    connection = Connection(checked_url(url), space, **words)
    connection.open()
    return connection


# ---- what is imported ------------------------------------------------------------------------------------------------


def test_the_form_is_what_kibana_reads() -> None:
    body, kind = import_body(OBJECTS)
    (part,) = parts_of(kind, body)
    assert (part.name, part.filename, part.kind) == ("file", "tailboard.ndjson", "application/ndjson")
    assert len(part.content.decode().splitlines()) == 3


def test_objects_are_created_then_overwritten_and_never_copied(kibana: KibanaDouble) -> None:
    connection = connected(kibana.url)
    first = import_objects(connection, OBJECTS)
    assert first.imported == tuple(Imported(one.type, one.id, one.title) for one in OBJECTS)
    assert first.failed == ()
    second = import_objects(connection, OBJECTS)
    assert all(one.overwritten and not one.destination for one in second.imported)
    assert set(kibana.objects()) == {(one.type, one.id) for one in OBJECTS}
    assert kibana.requests[-1].path == "/api/saved_objects/_import?overwrite=true"
    assert kibana.objects()["dashboard", "größe"]["attributes"]["title"] == "Größe"
    connection.close()


def test_panels_of_earlier_versions_are_deleted_and_no_others(kibana: KibanaDouble) -> None:
    """Of the same prefix; ids of what is imported are kept."""
    connection = connected(kibana.url)
    ours = shipped("tailboard")
    old = [(one["type"], one["id"]) for one in gone("tailboard")]
    kept = {("lens", "mine"), ("lens", "other-cluster-latency-p50")}
    like = {kind: next(one for one in ours if one.type == kind) for kind in ("lens", "visualization")}
    former = [saved_object(like[kind].text.replace(f'"{like[kind].id}"', f'"{name}"')) for kind, name in [*old, *kept]]
    import_objects(connection, [*ours, *former])
    assert delete_gone(connection, "tailboard") == [f"{kind} {name} of an earlier version is deleted" for kind, name in old]
    assert set(kibana.objects()) == {(one.type, one.id) for one in ours} | kept
    assert delete_gone(connection, "tailboard") == []
    connection.close()


def test_what_cannot_be_deleted_is_told(kibana: KibanaDouble, monkeypatch) -> None:
    connection = connected(kibana.url)
    several = {"statusCode": 400, "message": "Unable to delete saved object that exists in multiple namespaces"}
    bad = {"statuses": [{"type": "lens", "id": "x", "success": False, "error": several}]}
    monkeypatch.setattr(connection, "call", lambda *_: bad)
    assert delete_gone(connection, "tailboard") == [f"lens x of an earlier version stays: {several['message']} (400)"]

    def refused(*_):
        raise Refusal(404, "Not Found")

    monkeypatch.setattr(connection, "call", refused)
    assert delete_gone(connection, "tailboard") == [
        "panels of earlier versions stay: Kibana refuses to delete them (404: Not Found)"
    ]
    connection.close()


def test_a_second_space_has_ids_of_its_own_and_links_to_ours_lead_there(kibana: KibanaDouble) -> None:
    import_objects(connected(kibana.url), OBJECTS)
    connection = connected(kibana.url, "perf")
    first = import_objects(connection, OBJECTS)
    destinations = {(one.type, one.id): one.destination for one in first.imported}
    assert set(kibana.objects("perf")) == {(kind, name) for (kind, _), name in destinations.items()}
    assert kibana.aliases("perf") == destinations
    second = import_objects(connection, OBJECTS)
    assert {(one.type, one.id): one.destination for one in second.imported} == destinations
    assert all(one.overwritten for one in second.imported)
    assert len(kibana.objects("perf")) == len(kibana.objects()) == 3


def test_a_refused_object_is_named_and_the_others_are_in(kibana: KibanaDouble) -> None:
    account = import_objects(connected(kibana.url), (*OBJECTS, board("red", colour="red")))
    (failed,) = account.failed
    assert (failed.type, failed.id, failed.title) == ("dashboard", "red", "Red")
    assert failed.reason == "[attributes.colour]: definition for this key is missing: Bad Request (400)"
    assert len(account.imported) == len(kibana.objects()) == 3


def test_a_missing_reference_leaves_nothing_imported_whatever_the_answer_lists(kibana: KibanaDouble) -> None:
    account = import_objects(connected(kibana.url), (*OBJECTS, board("lost", view="nowhere")))
    assert [(one.id, one.reason) for one in account.failed] == [
        ("lost", "it refers to index-pattern nowhere, which Kibana does not have")
    ]
    assert account.imported == ()
    assert kibana.objects() == {}


def test_types_that_kibana_lacks_are_named() -> None:
    with KibanaDouble(known={"index-pattern": "8.0.0"}) as kibana:
        account = import_objects(connected(kibana.url), OBJECTS)
    assert [(one.id, one.reason) for one in account.failed] == [
        ("hosts", "this Kibana cannot import objects of its type"), ("größe", "this Kibana cannot import objects of its type"),
    ]  # fmt: skip
    assert [one.id for one in account.imported] == ["tailboard-rollups"]


ANSWERS = {
    "conflict": "it conflicts with an object that is there",
    "ambiguous_conflict": "several objects there stem from it (a, b): delete all but one",
}


@pytest.mark.parametrize("kind", ANSWERS)
def test_conflicts_are_told_in_words(kibana: KibanaDouble, monkeypatch, kind: str) -> None:
    error = {"type": kind, "destinations": [{"id": "a"}, {"id": "b"}]}
    answer = {"success": False, "errors": [{"type": "dashboard", "id": "hosts", "error": error}], "successResults": []}
    connection = connected(kibana.url)
    monkeypatch.setattr(Connection, "call", lambda *words, **more: answer)
    assert [one.reason for one in import_objects(connection, OBJECTS).failed] == [ANSWERS[kind]]


def test_an_object_that_kibana_passes_over_is_no_success(kibana: KibanaDouble, monkeypatch) -> None:
    told = [{"type": one.type, "id": one.id, "meta": {}} for one in OBJECTS[:2]]
    connection = connected(kibana.url)
    monkeypatch.setattr(Connection, "call", lambda *words, **more: {"success": True, "successCount": 2, "successResults": told})
    with pytest.raises(StoreError, match="does not report the result for dashboard größe"):
        import_objects(connection, OBJECTS)


def test_kibanas_warnings_are_handed_on(kibana: KibanaDouble, monkeypatch) -> None:
    told = [{"type": one.type, "id": one.id, "meta": {}} for one in OBJECTS]
    warnings = [{"type": "simple", "message": "mind the gap"}]
    connection = connected(kibana.url)
    monkeypatch.setattr(
        Connection, "call", lambda *words, **more: {"success": True, "successResults": told, "warnings": warnings}
    )
    assert import_objects(connection, OBJECTS).warnings == ("mind the gap",)


@pytest.mark.parametrize(
    ("double", "told"),
    [
        ({"max_import_bytes": 500}, "refuses the import (413: Payload content length greater than maximum allowed: 500): the file is"),
        ({"known": {"dashboard": "10.1.0", "index-pattern": "8.0.0"}}, 'refuses the import (422: Document "hosts" belongs to a more recent version'),
        ({"denied": ["_import"]}, "Kibana refuses this request (403: API [POST /api/saved_objects/_import] is unauthorized for user): docs/guides/kibana.md"),
    ],
)  # fmt: skip
def test_an_import_that_is_refused_as_a_whole_is_a_sentence(double: dict, told: str) -> None:
    with KibanaDouble(**double) as kibana, pytest.raises(StoreError) as error:
        import_objects(connected(kibana.url), OBJECTS)
    assert told in str(error.value)
    assert "\n" not in str(error.value)
    assert kibana.objects() == {}


def test_two_objects_of_one_id_are_refused_with_kibanas_reason(kibana: KibanaDouble) -> None:
    with pytest.raises(
        StoreError, match=r"refuses the import \(400: Non-unique import objects detected: \[index-pattern:tailboard-rollups\]\)"
    ):
        import_objects(connected(kibana.url), (VIEW, VIEW))


# ---- ready, patient ----------------------------------------------------------------------------------------------


def test_readiness_is_waited_for_and_told_once() -> None:
    told: list[str] = []
    with KibanaDouble(starting=2, levels=("unavailable", "degraded", "available")) as kibana:
        connection = connected(kibana.url, tell=told.append)
    assert connection.version == "9.5.3"
    assert connection.retried == 4
    assert told == [f"waiting for {kibana.url}: it answers 503: Kibana server is not ready yet"]


@pytest.mark.parametrize(
    ("double", "reason"),
    [
        ({"starting": 10**6}, "it answers 503: Kibana server is not ready yet"),
        ({"levels": ["unavailable"]}, "Kibana says that it is unavailable (1 service is unavailable: alerting)"),
    ],
)
def test_patience_ends_with_a_sentence(monkeypatch, double: dict, reason: str) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.5")
    with KibanaDouble(**double) as kibana, pytest.raises(StoreError) as error:
        connected(kibana.url)
    assert str(error.value) == f"{kibana.url} was not ready within 0.5 s: {reason}"


def test_a_kibana_that_stays_degraded_is_used_in_the_end(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.5")
    told: list[str] = []
    with KibanaDouble(levels=["degraded"]) as kibana:
        import_objects(connected(kibana.url, tell=told.append), OBJECTS)
        assert len(kibana.objects()) == 3
    assert told[-1].endswith(
        "Kibana says that it is degraded (1 service is degraded: alerting), and has been for 0.5 s; going on"
    )


@pytest.mark.parametrize(
    "faults",
    [["503"], ["502"], ["504"], ["429"], ["reset"], ["reset_after"], ["slow"], ["half"], ["reset", "503", "half", "429"]],
)
def test_what_passes_is_tried_again(kibana: KibanaDouble, monkeypatch, faults: list[str]) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "20")
    connection = connected(kibana.url)
    kibana.fail_next(*faults)
    account = import_objects(connection, OBJECTS)
    assert len(account.imported) == len(kibana.objects()) == 3
    assert connection.retried == len(faults)


@pytest.mark.parametrize(("double", "status"), [({"denied": ["/api/saved"]}, 403), ({"max_import_bytes": 9}, 413)])
def test_what_does_not_pass_is_asked_once(double: dict, status: int) -> None:
    with KibanaDouble(**double) as kibana:
        connection = connected(kibana.url)
        with pytest.raises(StoreError):
            import_objects(connection, OBJECTS)
        assert [one.status for one in kibana.requests if one.method == "POST"] == [status]
        with pytest.raises(Refusal):
            connection.call("GET", "/api/spaces/space/none")
        assert [one.status for one in kibana.requests].count(404) == 1


def test_patience_ends_for_an_import_too(kibana: KibanaDouble, monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.3")
    connection = connected(kibana.url)
    kibana.fail_next(*["502"] * 500)
    with pytest.raises(StoreError, match="it answers 502"):
        import_objects(connection, OBJECTS)


# ---- who answers -----------------------------------------------------------------------------------------------------


def web_server(answer: bytes) -> tuple[socket.socket, str]:
    listener = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        while True:
            try:
                other, _ = listener.accept()
            except OSError:
                return
            other.recv(4096)
            other.sendall(answer)
            other.close()

    threading.Thread(target=serve, daemon=True).start()
    return listener, f"http://127.0.0.1:{listener.getsockname()[1]}"


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", "answers, but is no Kibana: check host, port and path"),
        (b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n", "answers, but is no Kibana: check host, port and path"),
        (b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n[]", "answers, but is no Kibana"),
        (b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 14\r\n\r\n{"status":"ok"', "was not ready within 0.5 s: an answer was cut off"),
        (b"HTTP/1.1 302 Found\r\nLocation: https://sso.example.org/login\r\nContent-Length: 0\r\n\r\n", "sends us on to https://sso.example.org/login: give Kibana's own address"),
        (b"HTTP/1.1 500 Oops\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi", "does not report its state (500: without a reason)"),
    ],
)  # fmt: skip
def test_whoever_is_no_kibana_is_told_from_one(monkeypatch, answer: bytes, told: str) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.5")
    listener, url = web_server(answer)
    with listener, pytest.raises(StoreError) as error:
        connected(url)
    assert told in str(error.value)


@pytest.mark.parametrize("words", [{}, {"api_key": "cmlnaHQ6a2V5"}])
def test_elasticsearch_is_not_kibana(words: dict) -> None:
    with (
        ElasticsearchDouble(**words) as double,
        pytest.raises(StoreError, match="is Elasticsearch, not Kibana: give Kibana's own address"),
    ):
        connected(double.url)


def test_nobody_there(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.5")
    with pytest.raises(StoreError, match="was not ready within 0.5 s: connection refused: is Kibana running there"):
        connected("http://127.0.0.1:1")
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "3000")  # which a name that is not known does not take
    with pytest.raises(StoreError, match="not known|the connection failed"):
        connected("http://no-such-host.invalid:5601")


def test_a_base_path_is_kept() -> None:
    with KibanaDouble(base_path="/kibana") as kibana:
        assert len(import_objects(connected(f"{kibana.url}/"), OBJECTS).imported) == 3
        with pytest.raises(StoreError, match=r"has no /api/status: give Kibana's address with its base path \(server.basePath\)"):
            connected(kibana.url.removesuffix("/kibana"))


def test_a_space_that_is_not_there_is_never_imported_into(kibana: KibanaDouble) -> None:
    with pytest.raises(StoreError, match=r"has no space nowhere: create it there \(Stack Management > Spaces\)"):
        connected(kibana.url, "nowhere")
    assert kibana.objects("nowhere") == {}


# ---- who we are ------------------------------------------------------------------------------------------------------


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("variables", "sent"),
    [
        ({"KIBANA_API_KEY": "a2V5", "KIBANA_USER": "u", "KIBANA_PASSWORD": "p"}, "ApiKey a2V5"),
        ({"ES_API_KEY": "ZXM="}, "ApiKey ZXM="),
        ({"ES_API_KEY": "ZXM=", "KIBANA_API_KEY": "a2V5"}, "ApiKey a2V5"),
        ({"ES_API_KEY": "ZXM=", "KIBANA_USER": "u", "KIBANA_PASSWORD": "p"}, basic("u", "p")),
        ({"ES_USER": "elastic", "ES_PASSWORD": "ö:1"}, basic("elastic", "ö:1")),
        ({"ES_USER": "elastic", "ES_PASSWORD": "p", "KIBANA_USER": "u"}, basic("u", "p")),
        ({"ES_USER": "elastic", "ES_PASSWORD": "p", "KIBANA_PASSWORD": "q"}, basic("elastic", "q")),
        ({}, ""),
    ],
)  # fmt: skip
def test_secrets_come_from_the_environment_with_those_of_elasticsearch_behind(
    monkeypatch, tmp_path: Path, variables: dict[str, str], sent: str
) -> None:
    from ingest.view.kibana.importing import KIBANA

    monkeypatch.setenv("HOME", str(tmp_path))
    for name, value in variables.items():
        monkeypatch.setenv(f"TAILBOARD_{name}", value)
    assert KIBANA.login("kibana").get("authorization", "") == sent


def test_netrc_is_the_last_to_be_asked(monkeypatch, tmp_path: Path) -> None:
    from ingest.view.kibana.importing import KIBANA

    (tmp_path / ".netrc").write_text("machine kibana.example.org\n  login ann\n  password b\n")
    (tmp_path / ".netrc").chmod(0o600)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert KIBANA.login("kibana.example.org")["authorization"] == basic("ann", "b")
    assert KIBANA.login("elsewhere") == {}
    (tmp_path / ".netrc").write_text("machinery\n")
    with pytest.raises(StoreError, match="the netrc file is not used"):
        KIBANA.login("kibana.example.org")


@pytest.mark.parametrize("name", ["TAILBOARD_KIBANA_API_KEY", "TAILBOARD_ES_API_KEY"])
@pytest.mark.parametrize("secret", ["c2Vj\ncmV0", "c2VjcmV0 ", "sécret"])
def test_a_broken_key_is_told_without_telling_it(kibana: KibanaDouble, monkeypatch, name: str, secret: str) -> None:
    monkeypatch.setenv(name, secret)
    with pytest.raises(StoreError, match=f"{name} holds a space, a line break or a character that no key has") as error:
        connected(kibana.url)
    assert secret not in str(error.value)


def test_wrong_keys_and_none_are_told_alike(monkeypatch) -> None:
    with KibanaDouble(api_key="cmlnaHQ6a2V5") as kibana:
        for key in ("", "d3Jvbmc6a2V5"):
            monkeypatch.setenv("TAILBOARD_KIBANA_API_KEY", key)
            with pytest.raises(StoreError, match=r"Login failed \(401\)\. Set TAILBOARD_KIBANA_API_KEY, or") as error:
                connected(kibana.url)
            assert "d3Jvbmc6a2V5" not in str(error.value)
        monkeypatch.setenv("TAILBOARD_KIBANA_API_KEY", "cmlnaHQ6a2V5")
        assert connected(kibana.url).version == "9.5.3"


def test_tls_is_trusted_as_for_elasticsearch(kibana: KibanaDouble, monkeypatch) -> None:
    with TlsFront(kibana.url) as front:
        with pytest.raises(StoreError, match="check TAILBOARD_KIBANA_CA_FILE or TAILBOARD_KIBANA_FINGERPRINT"):
            connected(front.url)
        monkeypatch.setenv("TAILBOARD_ES_CA_FILE", str(CERTIFICATE))
        assert connected(front.url).version == "9.5.3"
        monkeypatch.setenv("TAILBOARD_KIBANA_CA_FILE", "/no/such/file.pem")
        with pytest.raises(StoreError, match="TAILBOARD_KIBANA_CA_FILE: there is no file"):
            connected(front.url)
        monkeypatch.delenv("TAILBOARD_ES_CA_FILE")
        monkeypatch.delenv("TAILBOARD_KIBANA_CA_FILE")
        monkeypatch.setenv("TAILBOARD_KIBANA_FINGERPRINT", fingerprint())
        assert connected(front.url).version == "9.5.3"
        monkeypatch.setenv("TAILBOARD_KIBANA_FINGERPRINT", fingerprint()[:-2] + ("00" if fingerprint()[-2:] != "00" else "11"))
        with pytest.raises(StoreError, match="the TLS connection fails"):
            connected(front.url)


@pytest.mark.parametrize(
    ("url", "told"),
    [
        ("http://elastic:secret@host:5601", "no user or password in a URL"),
        ("http://elastic:secret@host:99999", "port"),
        ("http://host:99999", "'http://host:99999': the port is not a number from 1 to 65535"),
        ("host:5601", "--kibana takes http://HOST:5601, not 'host:5601'"),
        ("http://:5601", "--kibana takes http://HOST:5601"),
        ("http://host:5601/?a=b", "give only Kibana's address"),
        ("http://host:5601/s/perf/app/dashboards", "give http://host:5601 and --space perf"),
        ("http://host:5601/base/app/home", "give http://host:5601/base"),
    ],
)  # fmt: skip
def test_urls_that_cannot_be_are_refused(url: str, told: str) -> None:
    with pytest.raises(UsageError) as error:
        checked_url(url)
    assert told in str(error.value)
    assert "secret" not in str(error.value)


@pytest.mark.parametrize("space", ["", "Perf", "a b", "../x", "x" * 201])
def test_spaces_that_cannot_be_are_refused(space: str) -> None:
    with pytest.raises(UsageError, match="is not the id of a space"):
        checked_space(space)


@pytest.mark.parametrize("text", ["soon", "-1", "nan", "inf", "0"])
def test_times_in_the_environment_are_numbers_of_seconds(monkeypatch, text: str) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", text)
    with pytest.raises(UsageError, match="TAILBOARD_KIBANA_PATIENCE must be a number of seconds"):
        Connection("http://host:5601")
