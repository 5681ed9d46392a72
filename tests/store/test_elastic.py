"""The Elasticsearch store on its own: nothing lost and nothing twice whatever fails, one sentence for each failure, few requests."""

from __future__ import annotations

import base64
import json
import os
import random
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, UsageError
from ingest.http import Answer
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.elastic.client import parse_address
from ingest.store.elastic.templates import differences
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.fault_proxy import ALL, FaultProxy
from tests.doubles.tls import CERTIFICATE, TlsFront, fingerprint
from tests.effort import figure
from tests.query.test_unlike_bins import OTEL, hdr_log, listed
from tests.store.grounds import SERVER, SERVERS, ElasticGround, grounds, loaded, loads_at_once, logs_by_host, many_logs
from tests.store.test_contract import EXAMPLE, SECOND, ZERO, a_log, csv

pytestmark = pytest.mark.contract


@pytest.fixture
def double():
    with ElasticsearchDouble(version=SERVER) as found:
        yield found
        assert not found.refusals, found.refusals


@pytest.fixture
def ground(double) -> ElasticGround:
    return ElasticGround(double.url)


def through(proxy: FaultProxy, ground: ElasticGround) -> str:
    return f"{proxy.url}?index_prefix={ground.prefix}"


@pytest.fixture(scope="module")
def clean():
    """What a load that nothing disturbed leaves."""
    with ElasticsearchDouble(version=SERVER) as found:
        ground = ElasticGround(found.url)
        loaded(ground.url, [EXAMPLE])
        yield ground.documents(), ground.rollups()


@pytest.mark.slow
@pytest.mark.ordeal
@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.soak) for seed in range(1, 8))])
def test_faults_in_a_third_of_all_calls_lose_and_double_nothing(ground, clean, monkeypatch, seed: int) -> None:
    monkeypatch.setenv("TAILBOARD_ES_TIMEOUT", "4")
    monkeypatch.setattr("ingest.store.elastic.bulk.BODY_BYTES", 1 << 16)  # many requests, each of which may fail
    with FaultProxy(ground.server, seed=seed, share=0.3, only=lambda method, path: path != "/") as proxy:
        account = loaded(through(proxy, ground), [EXAMPLE])
        assert sum(proxy.injected.values()) >= 5
    assert (ground.documents(), ground.rollups()) == clean
    delivered = account.delivered
    assert delivered["sent"] == sum(delivered[name] for name in ("created", "updated", "deleted", "superseded", "rejected"))
    with open_store(ground.url) as store:
        assert {record.state for record in store.runs()} == {"complete"}


@pytest.mark.cases(7)
@pytest.mark.slow
@pytest.mark.ordeal
@pytest.mark.parametrize("fault", ALL, ids=str)
def test_each_fault_alone_is_survived(ground, monkeypatch, tmp_path: Path, fault: str) -> None:
    monkeypatch.setenv("TAILBOARD_ES_TIMEOUT", "0.3")
    monkeypatch.setattr("ingest.store.elastic.bulk.BODY_BYTES", 4000)
    logs = a_log(tmp_path / "logs")
    with FaultProxy(ground.server, seed=1, share=0.25, faults=[fault], only=lambda method, path: path != "/") as proxy:
        loaded(through(proxy, ground), [logs], reading=ZERO)
        assert set(proxy.injected) == {fault}
    faulty = ground.documents(), ground.rollups()
    loaded(ground.url, [logs], run="other", reading=ZERO)
    assert [{**one, "run": "r"} for one in ground.documents() if one["run"] == "other"] == faulty[0]
    assert [("r", *row[1:]) for row in ground.rollups() if row[0] == "other"] == faulty[1]


def load_command(logs: Path, url: str, *more: str) -> list[str]:
    return [sys.executable, "-m", "ingest", "load", str(logs), "--run", "r", "--store", url, "--t0", "1789999200", *more]


@pytest.fixture(scope="module")
def killing_ground(tmp_path_factory):
    logs = many_logs(tmp_path_factory.mktemp("kill") / "logs", turns=20)
    with ElasticsearchDouble(version=SERVER) as found:
        ground = ElasticGround(found.url)
        began = time.monotonic()
        subprocess.run(load_command(logs, ground.url), check=True, stderr=subprocess.DEVNULL)
        yield logs, found, time.monotonic() - began, (ground.documents(), ground.rollups())


def killed_and_completed(seed: int, logs: Path, double, seconds: float, clean, replace: bool = False) -> int:
    chance = random.Random(seed)
    ground = ElasticGround(double.url)
    if replace:
        subprocess.run(load_command(logs, ground.url, "--step", "5s"), check=True, stderr=subprocess.DEVNULL)
    words = ("--replace", "--step", "1s") if replace else ()
    hits = 0
    for _ in range(3):
        process = subprocess.Popen(load_command(logs, ground.url, *words), stderr=subprocess.DEVNULL, start_new_session=True)
        began = time.monotonic()
        try:
            process.wait(timeout=seconds * chance.uniform(0.35, 0.98))
            seconds = min(seconds, time.monotonic() - began)  # loads are quicker than they were: aim anew
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            hits += 1
        process.wait()
        known = {repr(one) for one in clean[0]}
        if not replace:
            assert {repr(one) for one in ground.documents()} <= known, "a document in a killed store is not whole"
    subprocess.run(load_command(logs, ground.url, *words), check=True, stderr=subprocess.DEVNULL)
    assert (ground.documents(), ground.rollups()) == clean
    ground.drop()
    return hits


@pytest.mark.slow
@pytest.mark.ordeal
def test_killed_at_random_moments_a_load_is_completed_exactly(killing_ground) -> None:
    hits = seed = 0
    while seed < figure(1, 1, 5) or hits < figure(1, 1, 5):  # now and then a load has ended before it is killed
        hits += killed_and_completed(seed, *killing_ground, replace=seed == 1)
        seed += 1
        assert seed < 30


@pytest.mark.ordeal
@pytest.mark.soak
def test_killed_fifty_times(killing_ground) -> None:
    assert sum(killed_and_completed(seed, *killing_ground, replace=seed % 5 == 4) for seed in range(100, 150)) >= 50


@pytest.mark.slow
@pytest.mark.ordeal
def test_killed_and_faulty_at_once(killing_ground, monkeypatch) -> None:
    logs, double, seconds, clean = killing_ground
    monkeypatch.setenv("TAILBOARD_ES_TIMEOUT", "4")
    for seed in range(figure(1, 1, 50)):
        ground = ElasticGround(double.url)
        with FaultProxy(double.url, seed=seed, share=0.3, only=lambda method, path: path != "/") as proxy:
            url = through(proxy, ground)
            process = subprocess.Popen(load_command(logs, url), stderr=subprocess.DEVNULL, start_new_session=True)
            time.sleep(2 * seconds * random.Random(seed).uniform(0.3, 1))
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            subprocess.run(load_command(logs, url), check=True, stderr=subprocess.DEVNULL)
        assert (ground.documents(), ground.rollups()) == clean
        ground.drop()


def same_as_one_by_one(ground: ElasticGround, hosts: list[Path]) -> None:
    """Hold what is there against loads of the hosts one after another."""
    clean = ElasticGround(ground.server)
    for host in hosts:
        loaded(clean.url, [host], reading={**ZERO, "host": host.name})
    assert ground.documents() == clean.documents()
    assert ground.rollups() == clean.rollups()


@pytest.mark.soak
@pytest.mark.ordeal
def test_eight_loads_of_one_run_at_once(ground, tmp_path: Path) -> None:
    hosts = logs_by_host(tmp_path, 8, turns=20)
    loads_at_once([load_command(host, ground.url, "--host", host.name) for host in hosts])
    same_as_one_by_one(ground, hosts)


@pytest.mark.soak
@pytest.mark.ordeal
def test_a_correction_while_other_hosts_load(ground, tmp_path: Path) -> None:
    hosts = logs_by_host(tmp_path, 4, turns=20)
    loaded(ground.url, [hosts[0]], reading={**ZERO, "host": "h1"})
    log = hosts[0] / "a_clat_hist.1.log"
    log.write_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[:-30]))
    commands = [load_command(host, ground.url, "--host", host.name) for host in hosts]
    commands[0].append("--replace")
    loads_at_once(commands)
    same_as_one_by_one(ground, hosts)


@pytest.mark.slow
def test_a_bad_document_costs_only_itself_and_is_replayed(ground, tmp_path: Path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    ground.client.indices.put_mapping(index=_made(ground), properties={"latency": {"properties": {"count": {"type": "long"}}}})
    monkeypatch.setattr("ingest.store.elastic.documents.labels_document", _spoiled)
    url = ground.url
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", url]) == 4
    monkeypatch.undo()
    monkeypatch.chdir(tmp_path)
    told = capsys.readouterr().err
    letters = tmp_path / "tailboard-dead-letters.ndjson"
    lines = [json.loads(line) for line in letters.read_text().splitlines()]
    assert f"{len(lines)} documents were refused by the server" in told
    assert "strict_dynamic_mapping_exception" in told
    with open_store(url) as store:
        assert {record.state for record in store.runs()} == {"loading"}
    for line in lines:
        line["document"].pop("spoiled")
    letters.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert command(["replay", str(letters), "--store", url]) == 0
    assert not letters.exists()
    assert "nothing is missing any more" in capsys.readouterr().err
    clean = ElasticGround(ground.server)
    loaded(clean.url, [EXAMPLE])
    assert ground.documents() == clean.documents()
    assert ground.rollups() == clean.rollups()
    with open_store(url) as store:
        assert {record.state for record in store.runs()} == {"complete"}


def _made(ground: ElasticGround) -> str:
    index = f"{ground.prefix}-intervals-2026.11"
    ground.client.indices.create(index=index)
    return index


def _spoiled(series):
    from ingest.store.elastic.documents import FIELDS

    found = {}
    for label, path in FIELDS.items():
        value = getattr(series, label)
        if value:
            place = found
            for step in path[:-1]:
                place = place.setdefault(step, {})
            place[path[-1]] = value
    return {**found, "spoiled": "1"} if series.host == "ceph-b" and series.op == "write" else found


def test_setup_compares_and_changes_only_what_it_is_told_to(double, capsys) -> None:
    words = ["setup", "--elasticsearch", double.url, "--index-prefix", "perf"]
    assert command([*words, "--dry-run"]) == 0
    assert "would be created" in capsys.readouterr().err
    assert command(words) == 0
    assert command(words) == 0
    assert "nothing to change" in capsys.readouterr().err
    assert command([*words, "--shards", "3"]) == 4
    told = capsys.readouterr().err
    assert 'template.settings.index.number_of_shards: "1" -> 3' in told
    assert "--overwrite changes them" in told
    assert command([*words, "--shards", "3", "--overwrite"]) == 0
    capsys.readouterr()
    assert command([*words, "--shards", "3"]) == 0
    assert "nothing to change" in capsys.readouterr().err
    ground = ElasticGround(double.url)
    ground.client.cluster.put_component_template(name="perf@custom", template={"settings": {"index.refresh_interval": "30s"}})
    assert command([*words, "--shards", "3", "--overwrite"]) == 0
    assert "30s" in str(ground.client.cluster.get_component_template(name="perf@custom"))
    body = ground.client.indices.get_index_template(name="perf-intervals")["index_templates"][0]["index_template"]
    known = {name: body[name] for name in ("index_patterns", "composed_of", "priority", "template")}
    ground.client.indices.put_index_template(name="perf-intervals", **known, version=99)
    capsys.readouterr()
    assert command([*words, "--overwrite"]) == 4
    assert "are of version 99, this tailboard supports" in capsys.readouterr().err


@pytest.mark.slow
def test_periods_name_the_indices_and_cannot_change_under_documents(double, capsys) -> None:
    words = ["setup", "--elasticsearch", double.url, "--index-prefix", "weekly", "--period", "week"]
    assert command(words) == 0
    loaded(f"{double.url}?index_prefix=weekly", [EXAMPLE])
    assert "weekly-intervals-2026.w47" in double.index_names()
    assert command([*words[:-1], "day", "--overwrite"]) == 4
    assert "with another period a load would store documents twice" in capsys.readouterr().err


def test_a_load_needs_a_server_that_was_set_up(double, capsys) -> None:
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", double.url]) == 4
    assert f"tailboard store setup --elasticsearch {double.url}" in capsys.readouterr().err


def test_a_run_without_time_zero_is_refused(ground, tmp_path: Path, capsys) -> None:
    assert command(["load", str(a_log(tmp_path / "logs")), "--run", "r", "--store", ground.url]) == 4
    assert "has no start time" in capsys.readouterr().err


WEB_PAGE = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 2\r\n\r\nhi"


def silent_server(answer: bytes = WEB_PAGE) -> tuple[socket.socket, int]:
    """A port that answers something else than Elasticsearch."""
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
    return listener, listener.getsockname()[1]


def test_unreachable_hosts_and_wrong_ports_give_one_sentence(capsys, monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "3000")  # which the first contact does not take
    monkeypatch.setattr("ingest.store.elastic.client.FIRST_CONTACT_SECONDS", 0.2)
    assert command(["percentiles", "http://127.0.0.1:1"]) == 4
    assert "connection refused: is Elasticsearch running there?" in capsys.readouterr().err
    assert command(["percentiles", "http://no-such-host.invalid:9200"]) == 4
    assert "the host is not known" in capsys.readouterr().err
    listener, port = silent_server()
    with listener:
        assert command(["percentiles", f"http://127.0.0.1:{port}"]) == 4
    told = capsys.readouterr().err
    assert "is not Elasticsearch: check host and port" in told
    assert told.count("\n") == 1


@pytest.mark.parametrize(
    ("url", "reason"),
    [
        ("http://elastic:secret@host:9200", "no user or password in a URL"),
        ("http://host:99999", "port"),
        ("http://host?index_prefix=UPPER", "is not an index prefix"),
        ("http://host?shards=3", "is not understood"),
        ("http://:9200", "names no host"),
        ("http://one:9200,two:99999", "port"),
        ("http://one:9200,elastic:secret@two:9200", "no user or password in a URL"),
        ("http://one:9200,http://two:9200", "several nodes as http://HOST1:9200,HOST2:9200"),
        ("http://one,", "names no host"),
        ("cloud:perf", "is not a Cloud ID"),
        ("cloud:perf:bm8gaG9zdHM=", "is not a Cloud ID with an Elasticsearch"),
    ],
)
def test_urls_that_cannot_be_are_refused(url: str, reason: str) -> None:
    with pytest.raises(UsageError, match=reason) as told:
        parse_address(url)
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    ("url", "nodes"),
    [
        ("http://a", ["http://a:9200"]),
        ("https://a,b:9201,[::1]:1/es?index_prefix=x", ["https://a:443/es", "https://b:9201/es", "https://[::1]:1/es"]),
        ("cloud:perf:dXMtZWFzdC0xLmF3cy5mb3VuZC5pbyRhYmMkZGVm?index_prefix=x", ["https://abc.us-east-1.aws.found.io:443"]),
        ("cloud:perf:ZWNlLmV4YW1wbGU6OTI0MyRhYmMk", ["https://abc.ece.example:9243"]),
    ],
)
def test_l3_urls_name_nodes(url: str, nodes: list[str]) -> None:
    address = parse_address(url)
    assert (address.nodes, address.prefix) == (nodes, "x" if "index_prefix" in url else "tailboard")
    assert parse_address(address.store) == address


@pytest.mark.slow
def test_l3_a_node_that_goes_leaves_the_load_to_the_others(ground, clean, monkeypatch) -> None:
    monkeypatch.setattr("ingest.store.elastic.bulk.BODY_BYTES", 1 << 16)
    gone = FaultProxy(ground.server, share=1, faults=["down"], only=lambda *_: gone.calls > 8, away=3600)
    with gone, FaultProxy(ground.server, share=0) as left:
        loaded(through(gone, ground).replace(gone.url, f"{gone.url},{left.url.removeprefix('http://')}"), [EXAMPLE])
        assert gone.injected["down"] and 0 < gone.calls < left.calls
    assert (ground.documents(), ground.rollups()) == clean


@pytest.mark.slow
def test_wrong_keys_and_missing_privileges_are_named(capsys, monkeypatch) -> None:
    with ElasticsearchDouble(version=SERVER, api_key="cmlnaHQ6a2V5") as double:
        assert command(["percentiles", double.url]) == 4
        assert (
            "Login failed (401). Set TAILBOARD_ES_API_KEY, or TAILBOARD_ES_USER and TAILBOARD_ES_PASSWORD"
            in capsys.readouterr().err
        )
        monkeypatch.setenv("TAILBOARD_ES_API_KEY", "d3Jvbmc6a2V5")
        assert command(["percentiles", double.url]) == 4
        told = capsys.readouterr().err
        assert "(401)" in told
        assert "d3Jvbmc6a2V5" not in told
        monkeypatch.setenv("TAILBOARD_ES_API_KEY", "cmlnaHQ6a2V5")
        assert command(["setup", "--elasticsearch", double.url]) == 0
        assert command(["load", str(EXAMPLE), "--run", "r", "--store", double.url]) == 0
    monkeypatch.delenv("TAILBOARD_ES_API_KEY")
    with ElasticsearchDouble(version=SERVER, basic=("loader", "s3cret")) as double:
        monkeypatch.setenv("TAILBOARD_ES_USER", "loader")
        monkeypatch.setenv("TAILBOARD_ES_PASSWORD", "s3cret")
        assert command(["setup", "--elasticsearch", double.url]) == 0
    capsys.readouterr()
    monkeypatch.delenv("TAILBOARD_ES_USER")
    with ElasticsearchDouble(version=SERVER, denied={"indices:data/write/bulk"}) as double:
        assert command(["setup", "--elasticsearch", double.url]) == 0
        capsys.readouterr()
        assert command(["load", str(EXAMPLE), "--run", "r", "--store", double.url]) == 4
        told = capsys.readouterr().err
        assert "no permission for the action indices:data/write/bulk" in told
        assert "privileges" in told
        assert told.count("\n") == 1


@pytest.mark.slow
def test_a_full_disk_gives_one_sentence(ground, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_ES_PATIENCE", "0.3")
    index = _made(ground)
    ground.client.indices.put_settings(index=index, settings={"index.blocks.read_only_allow_delete": True})
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", ground.url]) == 4
    told = capsys.readouterr().err
    assert "its disk is full: free some space there, then run the same load again" in told
    assert told.count("\n") == 1
    ground.client.indices.put_settings(index=index, settings={"index.blocks.read_only_allow_delete": None})
    assert command(["load", str(EXAMPLE), "--run", "r", "--store", ground.url]) == 0
    with open_store(ground.url) as store:
        assert store.answer(Question(step="all")).samples == 59015


@pytest.mark.slow
def test_overload_of_both_forms_is_waited_for(double, ground, clean) -> None:
    double.reject_next(whole=3)
    double.reject_next(items=0.5, requests=6)
    account = loaded(ground.url, [EXAMPLE])
    assert account.delivered["retried"] > 0
    assert (ground.documents(), ground.rollups()) == clean


@pytest.mark.parametrize("major", SERVERS)
def test_servers_of_both_majors_are_spoken_to(capsys, tmp_path: Path, major: str) -> None:
    logs, shown = str(a_log(tmp_path / "logs")), []
    with ElasticsearchDouble(version=SERVERS[major]) as double:
        assert command(["setup", "--elasticsearch", double.url]) == 0
        for store in (double.url, f"sqlite:{tmp_path / 'x.db'}"):
            assert command(["load", logs, "--run", "r", "--store", store, "--t0", "1789999200"]) == 0
            capsys.readouterr()
            assert command(["percentiles", store, "--step", "all", "--format", "csv"]) == 0
            shown.append(capsys.readouterr().out)
        assert not double.refusals
    assert shown[0] == shown[1]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (
            b'x-elastic-product: Elasticsearch\r\n\r\n{"version":{"number":"7.17.29"}}',
            "is Elasticsearch 7.17.29; tailboard supports 8.x and 9.x",
        ),
        (b'x-elastic-product: Elasticsearch\r\n\r\n{"version":{}}', "is not Elasticsearch: check host and port"),
        (b'\r\n{"version":{"number":"9.5.3"}}', "is not Elasticsearch: check host and port"),
        (
            b'\r\n{"version":{"number":"2.19.1","distribution":"opensearch"}}',
            "is OpenSearch, which has no histogram fields: take",
        ),
        (
            b'x-elastic-product: Elasticsearch\r\n\r\n{"version":{"number":"8.11.0","build_flavor":"serverless"}}',
            "is a serverless project, which refuses settings of indices that tailboard needs: take",
        ),
    ],
)
def test_other_majors_and_other_products_are_refused(capsys, answer: bytes, reason: str) -> None:
    listener, port = silent_server(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n" + answer)
    with listener:
        assert command(["percentiles", f"http://127.0.0.1:{port}"]) == 4
    assert reason in capsys.readouterr().err


@pytest.mark.slow
def test_a_cluster_query_takes_few_requests(double, ground) -> None:
    loaded(ground.url, [EXAMPLE])
    for question in (Question(by=("op",), step=SECOND), Question(by=("host",), step=10 * SECOND), Question(step="all")):
        before = len(double.requests)
        with open_store(ground.url) as store:
            assert csv(store.answer(question))
        assert len(double.requests) - before <= 8


def test_differences_are_readable() -> None:
    wanted = {"settings": {"index.codec": "best_compression", "index": {"number_of_shards": 3}}, "composed_of": ["a", "b"]}
    found = {"settings": {"index": {"codec": "best_compression", "number_of_shards": "1"}}, "composed_of": ["a"], "priority": 300}
    assert list(differences(wanted, found)) == [
        'composed_of: ["a"] -> ["a", "b"]',
        "priority: 300 -> nothing",
        'settings.index.number_of_shards: "1" -> 3',
    ]


def test_shards_that_fail_are_never_silent(ground, monkeypatch) -> None:
    loaded(ground.url, [EXAMPLE])
    with open_store(ground.url) as store:
        real = store.connection.call

        def partial(method, path, body=None, **params):
            if not path.endswith("_search"):
                return real(method, path, body, **params)
            assert params["allow_partial_search_results"] is False
            decode = params.pop("decode")
            answer = real(method, path, body, **params)
            text = json.dumps({**answer, "_shards": {**answer["_shards"], "failed": 1}})
            return decode(Answer(200, {"content-type": "application/json"}, text.encode()))

        monkeypatch.setattr(type(store.connection), "call", lambda self, *words, **params: partial(*words, **params))
        with pytest.raises(StoreError, match="part of the data only"):
            store.answer(Question(step="all"))


def test_tls_needs_a_certificate_that_is_trusted(ground, capsys, monkeypatch, tmp_path: Path) -> None:
    loaded(ground.url, [a_log(tmp_path / "logs")], reading=ZERO)
    capsys.readouterr()
    with TlsFront(ground.server) as front:
        words = ["percentiles", f"{front.url}?index_prefix={ground.prefix}", "--step", "all", "--format", "csv"]
        assert command(words) == 4
        told = capsys.readouterr().err
        assert "check TAILBOARD_ES_CA_FILE or TAILBOARD_ES_FINGERPRINT" in told
        assert told.count("\n") == 1
        monkeypatch.setenv("TAILBOARD_ES_CA_FILE", str(CERTIFICATE))
        assert command(words) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        monkeypatch.delenv("TAILBOARD_ES_CA_FILE")
        monkeypatch.setenv("TAILBOARD_ES_FINGERPRINT", fingerprint())
        assert command(words) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        other = "11" if fingerprint().startswith("00") else "00"
        monkeypatch.setenv("TAILBOARD_ES_FINGERPRINT", other + fingerprint()[2:])
        assert command(words) == 4
        assert "the TLS connection fails" in capsys.readouterr().err
        monkeypatch.delenv("TAILBOARD_ES_FINGERPRINT")
        monkeypatch.setenv("TAILBOARD_ES_CA_FILE", "/no/such/file.pem")
        assert command(words) == 4
        assert "TAILBOARD_ES_CA_FILE: there is no file" in capsys.readouterr().err


CLOUD_HOST, KEY = "abc.cloud.example", "cmlnaHQ6a2V5"
WAYS = {  # what security.md and elasticsearch.md name: the variable that trusts the server, and how its URL is written
    "authority": ("CA_FILE", str(CERTIFICATE), "https://127.0.0.1:{port}"),
    "fingerprint": ("FINGERPRINT", fingerprint(), "https://127.0.0.1:{port}"),
    "several": ("FINGERPRINT", fingerprint().lower().replace(":", ""), "https://127.0.0.1:{gone},127.0.0.1:{port}"),
    "cloud": ("FINGERPRINT", fingerprint(), "cloud:perf:{cloud}"),
}


@pytest.mark.parametrize("way", WAYS)
def test_l3_each_way_to_a_server_that_the_pages_name_is_one(way: str, tmp_path: Path, capsys, monkeypatch) -> None:
    """Over TLS and with an API key: set up, load, ask. A Cloud ID names the host, which is this machine here."""
    variable, text, url = WAYS[way]
    asked = socket.getaddrinfo
    monkeypatch.setattr(socket, "getaddrinfo", lambda host, *rest: asked(*("127.0.0.1" if host == CLOUD_HOST else host, *rest)))
    monkeypatch.setenv(f"TAILBOARD_ES_{variable}", text)
    monkeypatch.setenv("TAILBOARD_ES_API_KEY", KEY)
    with ElasticsearchDouble(version=SERVER, api_key=KEY) as double, TlsFront(double.url) as front, socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        port, domain = front.url.rpartition(":")[2], CLOUD_HOST.partition(".")[2]
        cloud = base64.b64encode(f"{domain}:{port}$abc$".encode()).decode()
        named = url.format(port=port, gone=nobody.getsockname()[1], cloud=cloud)
        assert command(["setup", "--elasticsearch", named]) == 0
        loaded(named, [a_log(tmp_path / "logs")], reading=ZERO)
        capsys.readouterr()
        assert command(["percentiles", named, "--step", "all", "--format", "csv"]) == 0
        assert len(capsys.readouterr().out.splitlines()) == 2
        monkeypatch.setenv("TAILBOARD_ES_API_KEY", KEY[:-1] + "A")
        assert command(["percentiles", named]) == 4
        assert "(401)" in capsys.readouterr().err


@pytest.mark.parametrize("order", [("h1", "h2", "h3"), ("h2", "h1", "h3"), ("h3", "h2", "h1")], ids=" ".join)
def test_k3_every_rollup_says_when_its_run_began_and_whether_its_kind_is_the_default(
    order: tuple[str, ...], tmp_path: Path
) -> None:
    """A panel that chose a run by the times of its windows took another run from another shard. Whichever load came first."""
    for host, write, later in (("h1", listed(OTEL), True), ("h2", hdr_log(3), False), ("h3", listed(OTEL), True)):
        (tmp_path / host).mkdir()
        write(tmp_path / host, [[10**7] * 5] * 3, "completion")
        log = tmp_path / host / "x.log"
        log.write_text(log.read_text().replace("17900000", "17900006") if later else log.read_text())
    with grounds("double", tmp_path) as ground:
        for done in range(1, len(order) + 1):
            loaded(ground.url, [tmp_path / order[done - 1]], reading={"host": order[done - 1]})
            there = order[:done]
            start, kind = (1_790_000_000, "service") if "h2" in there else (1_790_000_600, "completion")
            told = {
                (one["run"]["start"], one["kind"], one["rollup"]["default_kind"])
                for one in (hit["_source"] for hit in ground.hits("rollups-*"))
            }
            kinds = {"service" if host == "h2" else "completion" for host in there}
            assert told == {(start * 1000, each, each == kind) for each in kinds}, there
        with open_store(ground.url) as store:
            assert not store.verify(lambda _run: True).findings
