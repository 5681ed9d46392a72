"""docker-compose.yml: pinned, on loopback alone, with passwords, health checks and bounded memory; its shell lines are run.

No container daemon is needed: the file is read as YAML, its shell lines run with a `curl` of our own, and what the service
`tailboard` does runs for real, from a wheel made of what the Dockerfile copies, against the doubles of both servers.
"""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
import subprocess
import sys
import time
import zipfile
from fnmatch import fnmatch
from pathlib import Path

import pytest
import yaml

from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.comparing import recorded
from tests.doubles.elasticsearch.proofs.replaying import exchange
from tests.doubles.kibana import KibanaDouble
from tests.store.grounds import SERVER
from tools.kibana.compile import compiled

ROOT = Path(__file__).parent.parent
FILE = ROOT / "docker-compose.yml"
PINNED = "9.5.3"
SECRETS = {"ELASTIC_PASSWORD", "KIBANA_SYSTEM_PASSWORD", "KIBANA_ENCRYPTION_KEY"}


@pytest.fixture(scope="module")
def services() -> dict[str, dict]:
    return yaml.safe_load(FILE.read_text())["services"]


def run(command: list[str], tmp_path: Path, *, answer: str = "", status: int = 0, **env: str) -> tuple[int, list[str]]:
    """Run a command with a curl that prints an answer and writes its arguments down; return its status and these."""
    curl = tmp_path / "curl"
    curl.write_text(f"#!/bin/sh\nprintf '%s\\0' \"$@\" >> {tmp_path}/said\nprintf '%s' '{answer}'\nexit {status}\n")
    curl.chmod(0o755)
    done = subprocess.run(command, env={"PATH": f"{tmp_path}:{os.environ['PATH']}", **env}, check=False, capture_output=True)
    said = tmp_path / "said"
    return done.returncode, said.read_text().split("\0")[:-1] if said.exists() else []


def plain(text: str) -> str:
    """Return a string as the container gets it: $$ is compose's $."""
    return text.replace("$$", "$")


def test_all_images_are_one_pinned_version(services: dict[str, dict]) -> None:
    images = {name: service["image"] for name, service in services.items() if "build" not in service}
    assert set(services) - set(images) == {"tailboard"}
    assert {image.rsplit(":", 1)[1] for image in images.values()} == {PINNED}
    assert {image.rsplit(":", 1)[0] for image in images.values()} == {
        "docker.elastic.co/elasticsearch/elasticsearch",
        "docker.elastic.co/kibana/kibana",
    }
    assert re.fullmatch(r"\d+\.\d+\.\d+", PINNED)


def test_every_published_port_is_on_loopback(services: dict[str, dict]) -> None:
    ports = {name: service["ports"] for name, service in services.items() if "ports" in service}
    assert set(ports) == {"elasticsearch", "kibana"}
    for published in ports.values():
        assert published
        for port in published:
            assert re.fullmatch(r"127\.0\.0\.1:\$\{[A-Z_]+:-\d+\}:\d+", port), port
    assert all("network_mode" not in service for service in services.values())


def test_security_is_on_and_every_secret_is_demanded_with_a_sentence(services: dict[str, dict]) -> None:
    settings = services["elasticsearch"]["environment"]
    assert settings["xpack.security.enabled"] == "true"
    assert settings["discovery.type"] == "single-node"
    assert services["kibana"]["environment"]["ELASTICSEARCH_USERNAME"] == "kibana_system"
    text = "\n".join(line.split("#")[0] for line in FILE.read_text().splitlines())
    used = re.findall(r"(?<!\$)\$\{([A-Z_]+)([^}]*)\}", text)
    demanded = {name for name, rule in used if name in SECRETS}
    assert demanded == SECRETS
    assert all(re.match(r":\?set \w+, .{10,}", rule) for name, rule in used if name in SECRETS)
    assert all(rule.startswith(":-") for name, rule in used if name not in SECRETS)
    for service in services.values():
        for name, value in service["environment"].items():
            assert "PASSWORD" not in name.upper() or value.startswith("${"), f"{name} is written down"


def test_memory_and_heap_are_bounded(services: dict[str, dict]) -> None:
    java = services["elasticsearch"]["environment"]["ES_JAVA_OPTS"]
    assert java == "-Xms${ES_HEAP:-1g} -Xmx${ES_HEAP:-1g}"
    assert services["elasticsearch"]["mem_limit"] == "${ES_MEMORY:-2g}"
    assert "--max-old-space-size" in services["kibana"]["environment"]["NODE_OPTIONS"]
    assert services["kibana"]["mem_limit"].startswith("${KIBANA_MEMORY:-")


def test_data_lies_in_a_named_volume(services: dict[str, dict]) -> None:
    volumes = yaml.safe_load(FILE.read_text())["volumes"]
    (mount,) = services["elasticsearch"]["volumes"]
    assert mount.split(":") == [next(iter(volumes)), "/usr/share/elasticsearch/data"]


def test_kibana_starts_after_a_healthy_node_and_its_password(services: dict[str, dict]) -> None:
    wanted = {
        "elasticsearch": {"condition": "service_healthy"},
        "kibana-password": {"condition": "service_completed_successfully"},
    }
    assert services["kibana"]["depends_on"] == wanted
    assert services["kibana-password"]["depends_on"] == {"elasticsearch": {"condition": "service_healthy"}}
    assert services["kibana-password"]["restart"] == "no"
    assert set(services["kibana"]["environment"]["ELASTICSEARCH_PASSWORD"].split(":")) == set(
        services["kibana-password"]["environment"]["KIBANA_SYSTEM_PASSWORD"].split(":")
    )


@pytest.mark.parametrize(
    ("answer", "status", "healthy"),
    [('{"status":"green","timed_out":false}', 0, True), ('{"status":"red","timed_out":true}', 0, False), ("", 22, False)],
)
def test_the_nodes_health_check(services: dict[str, dict], tmp_path: Path, answer: str, status: int, healthy: bool) -> None:
    kind, command = services["elasticsearch"]["healthcheck"]["test"]
    assert kind == "CMD-SHELL"
    got, said = run(["/bin/sh", "-c", plain(command)], tmp_path, answer=answer, status=status, ELASTIC_PASSWORD="a b$c'd")
    assert (got == 0) == healthy
    assert said[said.index("--user") + 1] == "elastic:a b$c'd"
    assert said[-1] == "http://127.0.0.1:9200/_cluster/health?wait_for_status=yellow&timeout=5s"


@pytest.mark.parametrize(("answer", "healthy"), [("200", True), ("503", False), ("000", False), ("302", False)])
def test_kibanas_health_check(services: dict[str, dict], tmp_path: Path, answer: str, healthy: bool) -> None:
    _, command = services["kibana"]["healthcheck"]["test"]
    got, said = run(["/bin/sh", "-c", plain(command)], tmp_path, answer=answer)
    assert (got == 0) == healthy
    assert said[-1] == "http://127.0.0.1:5601/api/status"


def test_the_password_of_kibanas_user_is_set_as_json(services: dict[str, dict], tmp_path: Path) -> None:
    service = services["kibana-password"]
    (script,) = service["command"]
    command = [*service["entrypoint"], plain(script)]
    secret = "it's $1 & `x`; 100%"
    got, said = run(command, tmp_path, ELASTIC_PASSWORD="top secret", KIBANA_SYSTEM_PASSWORD=secret)
    assert got == 0
    assert json.loads(said[said.index("--data") + 1]) == {"password": secret}
    assert said[said.index("--user") + 1] == "elastic:top secret"
    assert said[-1] == "http://elasticsearch:9200/_security/user/kibana_system/_password"


@pytest.mark.parametrize("secret", ['a"b', "a\\b"])
def test_a_password_that_json_would_break_is_refused(services: dict[str, dict], tmp_path: Path, secret: str) -> None:
    service = services["kibana-password"]
    command = [*service["entrypoint"], plain(service["command"][0])]
    assert run(command, tmp_path, ELASTIC_PASSWORD="x", KIBANA_SYSTEM_PASSWORD=secret) == (1, [])


def test_a_refused_password_fails(services: dict[str, dict], tmp_path: Path) -> None:
    service = services["kibana-password"]
    command = [*service["entrypoint"], plain(service["command"][0])]
    assert run(command, tmp_path, status=22, ELASTIC_PASSWORD="x", KIBANA_SYSTEM_PASSWORD="y")[0] == 22


# ---- the service that sets up and loads the example ------------------------------------------------------------------


def copied() -> list[str]:
    """Return what the stages of the Dockerfile copy, each to the same place."""
    found: list[str] = []
    for line in (ROOT / "Dockerfile").read_text().splitlines():
        if line.startswith("COPY "):
            *sources, target = line.split()[1:]
            assert target in ("./", *sources)
            found += sources
    return list(dict.fromkeys(found))


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Path:
    """A folder as the image has it: what is copied, with the wheel of it installed in `site`, and a command `tailboard`."""
    folder = tmp_path_factory.mktemp("image")
    for name in copied():
        source, target = ROOT / name, folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copytree(source, target) if source.is_dir() else shutil.copy(source, target)
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", "made"], check=True, cwd=folder, capture_output=True
    )
    (wheel,) = (folder / "made").glob("tailboard-*.whl")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(folder / "site")
    for name in ("ingest", "mappings", "kibana"):
        shutil.rmtree(folder / name)
    script = folder / "bin" / "tailboard"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec {sys.executable} -P -m ingest "$@"\n')
    script.chmod(0o755)
    return folder


def test_the_image_is_small_pinned_and_without_root() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    assert "FROM python:3.11-slim" in lines
    assert [line for line in lines if line.startswith("USER ")] == ["USER tailboard"]
    assert not re.search(r"PASSWORD|KEY|SECRET", "\n".join(line.split("#")[0] for line in lines))
    first, *allowed = [line for line in (ROOT / ".dockerignore").read_text().splitlines() if line and not line.startswith("#")]
    assert first == "*"
    for name in copied():
        assert (ROOT / name).exists()
        assert any(fnmatch(name, line.removeprefix("!")) for line in allowed if line.startswith("!"))


def test_the_service_starts_when_both_servers_are_ready_and_runs_once(services: dict[str, dict]) -> None:
    service = services["tailboard"]
    assert service["build"] == "."
    assert service["depends_on"] == {name: {"condition": "service_healthy"} for name in ("elasticsearch", "kibana")}
    assert service["restart"] == "no"
    assert service["environment"]["TAILBOARD_ES_USER"] == "elastic"
    assert service["environment"]["TAILBOARD_ES_PASSWORD"] == services["elasticsearch"]["environment"]["ELASTIC_PASSWORD"]
    for name, host, port in (("TAILBOARD_STORE", "elasticsearch", 9200), ("KIBANA_URL", "kibana", 5601)):
        assert service["environment"][name] == f"http://{host}:{port}"


def up(services: dict[str, dict], image: Path, **answers: str) -> subprocess.CompletedProcess[str]:
    """Run what the service runs, in its folder and its environment, with other addresses and a password."""
    service = services["tailboard"]
    (script,) = service["command"]
    environment = {
        **service["environment"],
        "SETUP_OPTIONS": "",
        **answers,
        "PATH": f"{image / 'bin'}:/usr/bin:/bin",
        "PYTHONPATH": str(image / "site"),
    }
    command = [*service["entrypoint"], plain(script)]
    return subprocess.run(command, cwd=image, env=environment, capture_output=True, text=True, check=False)


def loaded(elastic: ElasticsearchDouble) -> tuple[int, list[int]]:
    """Return the samples of all intervals, and the ages in s of all windows that hold some."""
    documents = elastic.documents("tailboard-intervals-*").values()
    now = time.time()
    rollups = [one for one in elastic.documents("tailboard-rollups-*").values() if one["latency"]["count"]]
    ages = [now - one["@timestamp"] / 1000 for one in (*documents, *rollups)]
    return sum(one["latency"]["count"] for one in documents), [int(age) for age in ages]


@pytest.mark.slow
def test_up_ends_in_filled_dashboards_and_may_be_repeated(services: dict[str, dict], image: Path) -> None:
    login = ("elastic", 'p$ss w"rd')
    with (
        ElasticsearchDouble(version=SERVER, modules=("reindex",), basic=login) as elastic,
        KibanaDouble(basic=login) as kibana,
    ):
        answers = {"TAILBOARD_STORE": elastic.url, "KIBANA_URL": kibana.url, "TAILBOARD_ES_PASSWORD": login[1]}
        for turn in range(2):
            done = up(services, image, **answers)
            assert done.returncode == 0, done.stderr
            assert login[1] not in done.stdout + done.stderr
            samples, ages = loaded(elastic)
            assert samples == 59_015
            assert 0 <= min(ages) <= 60, "the newest window does not end now"
            assert max(ages) <= 15 * 60, "dashboards show the last 15 minutes"
            assert set(kibana.objects()) == {(one.type, one.id) for one in compiled()}
            assert done.stderr.count("is overwritten" if turn else "is created") >= len(kibana.objects())
        assert (elastic.refusals, kibana.refusals) == ([], [])


@pytest.mark.soak
def test_f3_up_after_an_upgrade_and_with_compact_indices(services: dict[str, dict], image: Path) -> None:
    """Templates and documents of d8e7fed, as its recorded requests put them, with the prefix of the recording."""
    with (
        ElasticsearchDouble(version="9.5.3", modules=("reindex",)) as elastic,
        KibanaDouble(version="9.5.3") as kibana,
    ):
        connection = http.client.HTTPConnection("127.0.0.1", int(elastic.url.rpartition(":")[2]), timeout=60)
        for step in recorded("product-9.5.3")[:100]:
            if step["method"] == "PUT" or "/_bulk" in step["path"]:
                kind = "x-ndjson" if "/_bulk" in step["path"] else "json"
                media = f"application/vnd.elasticsearch+{kind};compatible-with=9"
                exchange(connection, step["method"], step["path"], step["request"], {"Accept": media, "Content-Type": media})
        connection.close()
        before = elastic.documents("rec-*")
        answers = {"TAILBOARD_STORE": f"{elastic.url}?index_prefix=rec", "KIBANA_URL": kibana.url}
        for options in ("", "", "--compact", "--compact"):
            done = up(services, image, SETUP_OPTIONS=options, **answers)
            assert done.returncode == 0, done.stderr
            assert (
                before.items() <= {key: document for key, document in elastic.documents("rec-*").items() if key in before}.items()
            )
            demo = [one for one in elastic.documents("rec-intervals-*").values() if one["run"]["id"].startswith("demo")]
            assert sum(one["latency"]["count"] for one in demo) == 59_015
        assert (elastic.refusals, kibana.refusals) == ([], [])


@pytest.mark.slow
def test_up_fails_with_a_sentence_where_something_is_wrong(services: dict[str, dict], image: Path) -> None:
    with ElasticsearchDouble(version=SERVER) as elastic, KibanaDouble(basic=("elastic", "right")) as kibana:
        done = up(services, image, TAILBOARD_STORE=elastic.url, KIBANA_URL=kibana.url, TAILBOARD_ES_PASSWORD="wrong")
    assert done.returncode == 4
    assert "Login failed (401). Set TAILBOARD_KIBANA_API_KEY" in done.stderr.splitlines()[-1]
    assert "loaded" not in done.stderr
    assert elastic.documents("tailboard-intervals-*") == {}
