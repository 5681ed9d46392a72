"""doctor: each line of it, well and not, on stores in which the fault was made; the remedy is tried where it can be.

`_nodes/stats/fs` and `_security/user/_has_privileges` are not recorded. What the double answers was held against Elasticsearch's reference
(nodes stats API: `nodes.*.fs.total` with total_in_bytes, free_in_bytes, available_in_bytes, `timestamp` and `name` of a node; has privileges
API: username, has_all_requested, cluster, index by name and privilege, application) and against the source that writes them (FsInfo.Path,
which leaves out a number that is not known, and HasPrivilegesResponse): they agreed. Neither was run on 8.19 or 9.x.
"""

from __future__ import annotations

import json
import re
import sqlite3
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core import kernel
from ingest.core.schema import elasticsearch_mappings
from ingest.store.elastic.doctor import least_free
from ingest.store.sqlite.file import SCHEMA_VERSION
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.api_cluster import WATERMARK
from tests.store.grounds import FIO, SERVER, loaded

LOG = FIO / "randrw" / "a_clat_hist.1.log"
READING = {"reading": {"t0": 1_790_000_000 * 10**9}}
GB = 1 << 30
DISK = (500 * GB, 400 * GB)
NAMES = ["server", "templates", "mappings", "write blocks", "shards", "disk", "privileges", "clock", "what is stored"]


@pytest.fixture(scope="module")
def server() -> Iterator[ElasticsearchDouble]:
    """A server that was set up and loaded into; each test leaves it well."""
    with ElasticsearchDouble(version=SERVER) as found:
        assert command(["setup", "--elasticsearch", found.url]) == 0
        loaded(found.url, [LOG], **READING)
        yield found
        assert not found.refusals, found.refusals


@pytest.fixture
def double(server) -> Iterator[ElasticsearchDouble]:
    """The server; what a test says of its disk and its clock is taken back."""
    yield server
    server.node.disk, server.node.cluster_settings, server.node.ahead = DISK, {}, 0.0


def asked(url: str, capsys) -> tuple[int, dict[str, dict[str, str]]]:
    """Return exit status and lines of the store by name, those that are not well before others."""
    capsys.readouterr()
    status = command(["doctor", url, "--json"])
    own, *lines = json.loads(capsys.readouterr().out)
    assert own == {"name": "readers", "state": "ok", "text": kernel.in_words(), "remedy": ""}
    return status, {line["name"]: line for line in sorted(lines, key=lambda line: line["state"] != "ok")}


def told(double: ElasticsearchDouble, method: str, path: str, body: Any = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(double.url + path, data, {"content-type": "application/json"}, method=method)
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def obey(double: ElasticsearchDouble, remedy: str) -> None:
    """Do what a remedy says, if it is a request."""
    found = re.match(r"(PUT|POST) (/\S+) (\{.*\})", remedy)
    assert found, remedy
    told(double, found[1], found[2], json.loads(found[3]))


def test_a_server_that_is_well(double, capsys) -> None:
    before = len(double.requests)
    status, lines = asked(double.url, capsys)
    assert status == 0 and list(lines) == NAMES and {line["state"] for line in lines.values()} == {"ok"}
    assert lines["server"]["text"].startswith(f"Elasticsearch {SERVER}")
    assert lines["what is stored"]["text"].startswith("1 run, ")
    changing = [seen for seen in list(double.requests)[before:] if "_bulk" in seen.path or seen.method in ("PUT", "DELETE")]
    assert not [seen for seen in changing if seen.path != "/_pit"]
    assert command(["doctor", double.url]) == 0
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 1 + len(NAMES) and all(line.startswith("ok        ") for line in printed)


def test_nobody_answers_and_another_version(capsys, monkeypatch) -> None:
    monkeypatch.setattr("ingest.store.elastic.client.FIRST_CONTACT_SECONDS", 0.2)
    status, lines = asked("http://127.0.0.1:9", capsys)
    assert status == 1 and list(lines) == ["server"] and "127.0.0.1:9" in lines["server"]["text"]
    with ElasticsearchDouble(version=SERVER) as old:
        old.node.version = "7.17.0"
        status, lines = asked(old.url, capsys)
    assert status == 1 and lines["server"]["text"].endswith("is Elasticsearch 7.17.0; tailboard supports 8.x and 9.x")


@pytest.mark.slow
def test_templates_that_are_missing_old_or_too_new(double, capsys) -> None:
    told(double, "DELETE", "/_index_template/tailboard-marks")
    status, lines = asked(double.url, capsys)
    assert status == 1 and lines["templates"]["text"].startswith("tailboard-marks: missing")
    assert lines["templates"]["remedy"] == f"tailboard store setup --elasticsearch {double.url}"
    assert command(lines["templates"]["remedy"].split()[1:]) == 0
    body = told(double, "GET", "/_component_template/tailboard-runs-mappings")["component_templates"][0]["component_template"]
    body = {name: body[name] for name in ("template", "version", "_meta")}
    changed = {**body, "version": body["version"] - 1}
    told(double, "PUT", "/_component_template/tailboard-runs-mappings", changed)
    status, lines = asked(double.url, capsys)
    assert status == 1 and "not those of this version: tailboard-runs-mappings (version: " in lines["templates"]["text"]
    assert lines["templates"]["remedy"].endswith(" --overwrite") and command(lines["templates"]["remedy"].split()[1:]) == 0
    assert asked(double.url, capsys)[0] == 0
    told(double, "PUT", "/_component_template/tailboard-runs-mappings", {**body, "version": body["version"] + 1})
    _, lines = asked(double.url, capsys)
    assert lines["templates"]["state"] == "wrong" and lines["templates"]["remedy"] == "upgrade tailboard"
    told(double, "PUT", "/_component_template/tailboard-runs-mappings", body)
    assert asked(double.url, capsys)[0] == 0


def test_a_server_that_was_not_set_up(capsys) -> None:
    with ElasticsearchDouble(version=SERVER) as empty:
        status, lines = asked(empty.url, capsys)
        assert status == 1 and "has no index template tailboard-intervals" in lines["templates"]["text"]
        assert lines["templates"]["remedy"] == f"tailboard store setup --elasticsearch {empty.url}"
        assert lines["mappings"]["text"] == "no index is there yet"


@pytest.mark.slow
def test_an_index_whose_fields_are_others(double, capsys) -> None:
    """An index that was made by another program, and one of an earlier version that lacks a field."""
    wanted = elasticsearch_mappings("rollups")
    properties = json.loads(json.dumps(wanted["properties"]))
    del properties["rollup"]["properties"]["complete"]
    told(double, "PUT", "/old-1", {"mappings": {"properties": properties}})
    with double.node.lock:  # as if the template had been an earlier one
        index = double.node.indices.by_name.pop("old-1")
        index.name = "tailboard-rollups-2020.01"
        double.node.indices.by_name[index.name] = index
    status, lines = asked(double.url, capsys)
    assert status == 1 and lines["mappings"]["text"].startswith("tailboard-rollups-2020.01 has no field rollup.complete")
    obey(double, lines["mappings"]["remedy"])
    assert asked(double.url, capsys)[0] == 0
    properties["latency"]["properties"]["count"] = {"type": "keyword"}
    told(double, "PUT", "/odd-1", {"mappings": {"properties": properties}})
    with double.node.lock:
        index = double.node.indices.by_name.pop("odd-1")
        index.name = "tailboard-rollups-2020.02"
        double.node.indices.by_name[index.name] = index
    status, lines = asked(double.url, capsys)
    assert status == 1 and lines["mappings"]["text"] == "tailboard-rollups-2020.02: latency.count is keyword, not long"
    assert lines["mappings"]["remedy"].startswith("DELETE /tailboard-rollups-2020.02, ")
    told(double, "DELETE", "/tailboard-rollups-2020.02")


@pytest.mark.slow
@pytest.mark.parametrize("block", ["write", "read_only_allow_delete"])
def test_an_index_that_takes_no_documents(double, capsys, block: str) -> None:
    name = next(name for name in double.index_names() if "intervals" in name)
    told(double, "PUT", f"/{name}/_settings", {f"index.blocks.{block}": True})
    status, lines = asked(double.url, capsys)
    line = lines["write blocks"]
    assert status == 1 and line["text"].startswith(f"{name} takes no documents (index.blocks.{block}")
    assert ("its disk is full" in line["text"]) == (block != "write")
    obey(double, line["remedy"])
    assert asked(double.url, capsys)[0] == 0


def test_shards_that_are_missing(double, capsys, monkeypatch) -> None:
    from tests.doubles.elasticsearch import api_admin, routes

    def red(node: Any, request: Any) -> Any:
        status, answer = api_admin.health(node, request)
        return status, {**answer, "status": "red"}

    altered = [
        route.__class__(**{**_fields(route), "handler": red}) if route.parts == ("_cluster", "health") else route
        for route in routes.ROUTES
    ]
    monkeypatch.setattr(routes, "ROUTES", altered)
    status, lines = asked(double.url, capsys)
    assert status == 1 and lines["shards"]["text"].startswith("red: ") and "allocation/explain" in lines["shards"]["remedy"]


def _fields(route: Any) -> dict[str, Any]:
    return {name: getattr(route, name) for name in route.__slots__}


@pytest.mark.parametrize(
    ("free", "settings", "mark"),
    [
        (76 * GB, {}, ""),
        (74 * GB, {}, "low"),
        (49 * GB, {}, "high"),
        (24 * GB, {}, "flood_stage"),
        (24 * GB, {f"{WATERMARK}.flood_stage": "10gb", f"{WATERMARK}.high": "0.96", f"{WATERMARK}.low": "20gb"}, ""),
        (9 * GB, {f"{WATERMARK}.flood_stage": "10gb", f"{WATERMARK}.high": "15gb", f"{WATERMARK}.low": "20gb"}, "flood_stage"),
        (1 * GB, {"cluster.routing.allocation.disk.threshold_enabled": "false"}, ""),
    ],
)
def test_a_disk_that_is_nearly_full(double, capsys, free: int, settings: dict[str, str], mark: str) -> None:
    double.node.disk, double.node.cluster_settings = (500 * GB, free), settings
    status, lines = asked(double.url, capsys)
    assert (status, lines["disk"]["state"]) == ((1, "wrong") if mark else (0, "ok"))
    if mark:
        assert f"past the {mark} watermark" in lines["disk"]["text"]
        assert lines["disk"]["remedy"].endswith(
            f"the setting is {WATERMARK}.{mark}: {settings.get(f'{WATERMARK}.{mark}', {'low': '85%', 'high': '90%', 'flood_stage': '95%'}[mark])}"
        )


@pytest.mark.parametrize(
    ("mark", "headroom", "total", "least"),
    [
        ("90%", "150gb", 1000 * GB, 100 * GB),
        ("90%", "150gb", 10_000 * GB, 150 * GB),
        ("90%", "-1", 10_000 * GB, 1000 * GB),
        ("0.9", "-1", 1000 * GB, 100 * GB),
        ("500mb", "150gb", 1000 * GB, 500 << 20),
        ("1.5gb", "-1", 1000 * GB, 3 * GB // 2),
        ("odd", "-1", 1000 * GB, 0),
    ],
)
def test_watermarks_as_the_server_reads_them(mark: str, headroom: str, total: int, least: int) -> None:
    assert least_free(mark, headroom, total) == pytest.approx(least, abs=1)


@pytest.mark.parametrize(
    ("denied", "state", "said", "role"),
    [
        pytest.param((), "ok", "elastic may ask and load", "", marks=pytest.mark.slow),
        (
            ("indices:admin/auto_create",),
            "wrong",
            "elastic may not load: it lacks auto_configure on tailboard-intervals-*",
            "tailboard_load",
        ),
        (("indices:data/write/bulk",), "wrong", "may not load: it lacks index on ", "tailboard_load"),
        (("indices:admin/mappings/get",), "wrong", "may not ask: it lacks view_index_metadata on ", "tailboard_read"),
    ],
)
def test_what_the_login_may_not_do(capsys, monkeypatch, denied: tuple[str, ...], state: str, said: str, role: str) -> None:
    monkeypatch.setenv("TAILBOARD_ES_USER", "elastic")
    monkeypatch.setenv("TAILBOARD_ES_PASSWORD", "secret")
    with ElasticsearchDouble(version=SERVER, basic=("elastic", "secret"), denied=denied) as guarded:
        assert command(["setup", "--elasticsearch", guarded.url]) == 0
        status, lines = asked(guarded.url, capsys)
        assert lines["privileges"]["state"] == state and said in lines["privileges"]["text"]
        assert role in lines["privileges"]["remedy"] and status == (state == "wrong")
        if "mappings/get" in str(denied):
            assert lines["mappings"]["state"] == "not seen" and "no permission" in lines["mappings"]["text"]
        monkeypatch.setenv("TAILBOARD_ES_PASSWORD", "wrong")
        status, lines = asked(guarded.url, capsys)
        assert status == 1 and list(lines) == ["server"] and "401" in lines["server"]["text"]


@pytest.mark.parametrize(("seconds", "said"), [(90, "90 s ahead of"), (-3600, "3,600 s behind"), (2, "")])
def test_clocks_that_differ(double, capsys, seconds: int, said: str) -> None:
    double.advance(seconds)
    status, lines = asked(double.url, capsys)
    assert status == bool(said) and said in lines["clock"]["text"]
    assert ("timedatectl" in lines["clock"]["remedy"]) == bool(said)


def test_documents_without_a_run(double, capsys) -> None:
    before = told(double, "POST", "/tailboard-runs/_search", {"query": {"bool": {"filter": [{"term": {"record": "run"}}]}}})[
        "hits"
    ]["hits"]
    for hit in before:
        told(double, "DELETE", f"/tailboard-runs/_doc/{hit['_id']}?refresh=true")
    status, lines = asked(double.url, capsys)
    line = lines["what is stored"]
    assert status == 1 and line["text"].startswith("no run: ") and line["remedy"].startswith("tailboard runs check --mend")
    assert command(line["remedy"].replace("'", "").split()[1:]) == 0
    assert asked(double.url, capsys)[0] == 0
    loaded(double.url, [LOG], **READING)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    loaded(f"sqlite:{path}", [LOG], **READING)
    return path


def test_a_file_that_is_well(file: Path, capsys) -> None:
    status, lines = asked(f"sqlite:{file}", capsys)
    assert status == 0 and list(lines) == ["file", "version", "writing", "disk", "integrity", "what is stored"]
    assert {line["state"] for line in lines.values()} == {"ok"}


def test_a_file_that_is_not_there_or_something_else(file: Path, tmp_path: Path, capsys) -> None:
    status, lines = asked(f"sqlite:{tmp_path / 'none.db'}", capsys)
    assert status == 1 and list(lines) == ["file"] and "tailboard load PATH" in lines["file"]["remedy"]
    assert not (tmp_path / "none.db").exists()
    (tmp_path / "x.db").write_text("something else " * 1000)
    status, lines = asked(f"sqlite:{tmp_path / 'x.db'}", capsys)
    assert status == 1 and "not a database" in lines["file"]["text"]
    assert command(["doctor", str(tmp_path)]) == 2


@pytest.mark.parametrize(
    ("version", "status", "said"), [(99, 1, f"found 99, need {SCHEMA_VERSION}"), (5, 0, "the next load brings it up")]
)
def test_a_file_of_another_version(file: Path, capsys, version: int, status: int, said: str) -> None:
    db = sqlite3.connect(file)
    db.execute(f"PRAGMA user_version = {version}")
    db.commit()
    db.close()
    found, lines = asked(f"sqlite:{file}", capsys)
    assert found == status and said in lines["version" if status == 0 else "file"]["text"]


def test_a_disk_without_room_and_a_log_of_writes_that_waits(file: Path, capsys, monkeypatch) -> None:
    from ingest.store.sqlite import doctor

    monkeypatch.setattr(doctor, "LEAST_FREE", 1 << 62)
    status, lines = asked(f"sqlite:{file}", capsys)
    assert status == 1 and lines["disk"]["state"] == "wrong" and "runs delete" in lines["disk"]["remedy"]
    monkeypatch.setattr(doctor, "LEAST_FREE", 0)
    monkeypatch.setattr(doctor, "LARGE_WAL", 10)
    reader, writer = sqlite3.connect(file), sqlite3.connect(file)
    reader.execute("BEGIN")
    reader.execute("SELECT count(*) FROM runs").fetchall()
    writer.execute("INSERT INTO marks (run, at_ns, text) VALUES ((SELECT run FROM runs), 1, 'x')")
    writer.commit()
    status, lines = asked(f"sqlite:{file}", capsys)
    reader.close()
    writer.close()
    assert status == 1 and "wait in s.db-wal" in lines["journal"]["text"] and "fuser" in lines["journal"]["remedy"]


def test_a_file_with_damage_or_without_a_run(file: Path, capsys) -> None:
    db = sqlite3.connect(file)
    db.execute("DELETE FROM runs")
    db.commit()
    db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    db.close()
    status, lines = asked(f"sqlite:{file}", capsys)
    assert status == 1 and lines["what is stored"]["text"].startswith("no run: ")
    assert lines["what is stored"]["remedy"] == f"tailboard runs check --mend --store 'sqlite:{file}'"
    data = bytearray(file.read_bytes())
    data[4096 * 3 : 4096 * 6] = b"\x07" * (4096 * 3)
    file.write_bytes(data)
    status, lines = asked(f"sqlite:{file}", capsys)
    assert status == 1 and "wrong" in {lines[name]["state"] for name in ("file", "integrity") if name in lines}
