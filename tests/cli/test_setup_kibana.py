"""`tailboard store setup --kibana`: what people see, and the exit status, against the doubles of both servers."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.objectives.objectives import read_objectives
from ingest.store.elastic.templates import PERIODIC
from ingest.view.kibana.importing import SavedObject
from ingest.view.kibana.rules import question
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.doubles.elasticsearch.proofs.replaying import send
from tests.doubles.kibana import KibanaDouble
from tests.store.grounds import SERVER, loaded
from tests.view.kibana.test_importing import board, importable

EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"
VIEW = {"name": "Rollups", "timeFieldName": "@timestamp"}
SLA = """objectives:
  - {name: read p99, percentile: 99, threshold: 5ms, window: 10s, where: {op: read, kind: completion}, by: [host]}
  - {name: all of it, percentile: 99.5, threshold: 5ms, window: 10s, where: {op: read}, no_data: violate}
  - {name: one kernel, percentile: 99, threshold: 5ms, window: 1m, where: {op: read, kind: completion, kernel: "6.9"}}
"""


@pytest.fixture(autouse=True)
def alone(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "5")
    for name in (
        "TAILBOARD_STORE",
        "TAILBOARD_INDEX_PREFIX",
        *(f"TAILBOARD_{of}_{what}" for of in ("ES", "KIBANA") for what in ("API_KEY", "USER", "PASSWORD")),
    ):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture
def kibana() -> Iterator[KibanaDouble]:
    with KibanaDouble(spaces=("default", "perf")) as double:
        yield double
        assert double.refusals == []


@pytest.fixture
def elastic() -> Iterator[ElasticsearchDouble]:
    with ElasticsearchDouble(version=SERVER) as double:
        yield double
        assert double.refusals == []


@pytest.fixture
def made(monkeypatch) -> Callable[..., None]:
    """Return the function that puts other objects in the place of the compiled ones: a data view, a dashboard, and more."""

    def put(*more: SavedObject) -> None:
        def shipped(prefix: str) -> tuple[SavedObject, ...]:
            view = importable("index-pattern", f"{prefix}-rollups", {"title": f"{prefix}-rollups-*", **VIEW})
            return (view, board("hosts", view.id), *more)

        monkeypatch.setattr("ingest.view.kibana.importing.shipped", shipped)

    put()
    return put


@pytest.fixture
def sla(tmp_path: Path) -> str:
    path = tmp_path / "SLA.yml"
    path.write_text(SLA)
    return str(path)


def told(capsys) -> list[str]:
    """Return what was said on stderr; nothing goes to stdout."""
    out, err = capsys.readouterr()
    assert out == ""
    assert all(line.startswith("tailboard: ") for line in err.splitlines())
    return [line.removeprefix("tailboard: ") for line in err.splitlines()]


def test_kibana_alone_is_set_up_and_set_up_again(kibana, made, capsys) -> None:
    assert command(["setup", "--kibana", kibana.url]) == 0
    assert told(capsys) == [
        "index-pattern tailboard-rollups (Rollups) is created",
        "dashboard hosts (Hosts) is created",
        f"{kibana.url} (Kibana 9.5.3): 2 objects imported, 0 of them overwritten; look at {kibana.url}/app/dashboards",
        f"TAILBOARD_KIBANA={kibana.url} in the environment: a load prints the address of the dashboard that shows its run",
    ]
    assert command(["setup", "--kibana", kibana.url]) == 0
    assert told(capsys)[:2] == [
        "index-pattern tailboard-rollups (Rollups) is overwritten",
        "dashboard hosts (Hosts) is overwritten",
    ]
    assert len(kibana.objects()) == 2


@pytest.mark.slow
def test_everything_that_is_compiled_is_taken(kibana, capsys) -> None:
    from tools.kibana.compile import compiled

    assert command(["setup", "--kibana", kibana.url]) == 0
    lines = told(capsys)
    objects = compiled()
    assert len(lines) == len(objects) + 2
    assert set(kibana.objects()) == {(one.type, one.id) for one in objects}


def test_a_space_gets_its_own(kibana, made, capsys) -> None:
    assert command(["setup", "--kibana", kibana.url]) == 0
    assert command(["setup", "--kibana", kibana.url, "--space", "perf"]) == 0
    lines = told(capsys)
    ids = {kind: name for kind, name in kibana.objects("perf")}
    assert f"dashboard hosts (Hosts) is created as {ids['dashboard']}" in lines
    assert lines[-2].startswith(f"{kibana.url}/s/perf (Kibana 9.5.3): 2 objects imported")


@pytest.mark.parametrize(
    ("words", "store", "prefix"),
    [
        ([], "", "tailboard"),
        (["--index-prefix", "perf"], "http://es:9200?index_prefix=other", "perf"),
        ([], "http://es:9200?index_prefix=other", "other"),
        ([], "sqlite:x.db", "tailboard"),
    ],
)
def test_objects_are_for_the_indices_of_the_site(kibana, made, monkeypatch, words: list[str], store: str, prefix: str) -> None:
    monkeypatch.setenv("TAILBOARD_STORE", store)
    assert command(["setup", "--kibana", kibana.url, *words]) == 0
    assert kibana.objects()["index-pattern", f"{prefix}-rollups"]["attributes"]["title"] == f"{prefix}-rollups-*"


def test_both_servers_are_set_up_together(kibana, elastic, made, capsys) -> None:
    words = ["setup", "--elasticsearch", f"{elastic.url}?index_prefix=perf", "--kibana", kibana.url]
    assert command(words) == 0
    lines = told(capsys)
    assert "index template perf-intervals is created" in lines
    assert "index-pattern perf-rollups (Rollups) is created" in lines
    assert command([*words, "--shards", "3"]) == 4
    lines = told(capsys)
    assert "dashboard hosts (Hosts) is overwritten" in lines
    assert "templates differ from what was asked and were left unchanged: --overwrite changes them" in lines[-1]


def test_a_dry_run_shows_every_object_and_request_and_writes_nothing(kibana, elastic, made, sla, capsys) -> None:
    words = ["setup", "--elasticsearch", elastic.url, "--kibana", kibana.url, "--space", "perf", "--rules", sla, "--dry-run"]
    assert command(words) == 0
    lines = told(capsys)
    assert "index-pattern tailboard-rollups (Rollups) would be imported" in lines
    assert "dashboard hosts (Hosts) would be imported" in lines
    request = f"POST {kibana.url}/s/perf/api/saved_objects/_import?overwrite=true&compatibilityMode=true would send 2 objects as tailboard.ndjson"
    assert any(line.startswith(request) and line.endswith(" bytes") for line in lines)
    (rule,) = [number for number, line in enumerate(lines) if line.startswith(f"POST {kibana.url}/s/perf/api/alerting/rule/")]
    assert lines[rule].endswith(" would send the rule read p99")
    assert lines[rule + 1] == "    FROM tailboard-rollups-*"
    assert lines[-1] == f"{kibana.url}/s/perf: rules wanted: 1; objectives left to tailboard check: 2"
    assert {one.method for one in kibana.requests} == {"GET"}
    assert (kibana.objects("perf"), kibana.rules("perf"), elastic.index_names()) == ({}, {}, [])


def test_rules_are_installed_on_request_and_the_others_are_named(kibana, made, sla, capsys) -> None:
    assert command(["setup", "--kibana", kibana.url]) == 0
    assert kibana.rules() == {}
    told(capsys)
    assert command(["setup", "--kibana", kibana.url, "--rules", sla]) == 0
    lines = told(capsys)
    ((name, rule),) = kibana.rules().items()
    assert f"rule {name} (read p99) is created" in lines
    assert rule["name"] == "[tailboard] read p99"
    (left,) = [line for line in lines if line.startswith("the objective all of it gets no rule, tailboard check judges it: ")]
    assert left.count("; ") == 2
    assert any(line.endswith("check judges it: rollups do not distinguish one kernel from another (where)") for line in lines)
    assert lines[-1] == f"{kibana.url}: rules installed: 1; objectives left to tailboard check: 2"
    assert command(["setup", "--kibana", kibana.url, "--rules", sla]) == 0
    assert f"rule {name} (read p99) is there: nothing to change" in told(capsys)
    assert kibana.rules() == {name: rule}
    Path(sla).write_text(Path(sla).read_text().replace("5ms", "4ms"))
    assert command(["setup", "--kibana", kibana.url, "--rules", sla]) == 0
    assert f"rule {name} (read p99) is changed" in told(capsys)
    assert list(kibana.rules()) == [name]


# ---- what goes wrong -------------------------------------------------------------------------------------------------


def test_a_refused_object_ends_with_4_its_id_and_the_reason(kibana, made, sla, capsys) -> None:
    made(board("red", "tailboard-rollups", colour="red"), board("blue", "tailboard-rollups", timeRestore="yes"))
    assert command(["setup", "--kibana", kibana.url, "--rules", sla]) == 4
    lines = told(capsys)
    reason = "[attributes.colour]: definition for this key is missing: Bad Request (400)"
    assert f"dashboard red (Red) is refused: {reason}" in lines
    assert lines[-1] == f"{kibana.url} refuses dashboard red and 1 more: {reason}; 2 others are imported"
    assert kibana.rules() == {}


def test_where_nothing_is_imported_nothing_is_said_to_be(kibana, made, capsys) -> None:
    made(board("lost", "nowhere"))
    assert command(["setup", "--kibana", kibana.url]) == 4
    assert told(capsys) == [
        "dashboard lost (Lost) is refused: it refers to index-pattern nowhere, which Kibana does not have",
        f"{kibana.url} refuses dashboard lost: it refers to index-pattern nowhere, which Kibana does not have; nothing is imported",
    ]
    assert kibana.objects() == {}


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        (["--kibana", "http://elastic:secret@host:5601"], 2, "no user or password in a URL: set TAILBOARD_KIBANA_API_KEY, or"),
        (["--kibana", "host:5601"], 2, "--kibana takes http://HOST:5601, not 'host:5601'"),
        (["--kibana", "http://host:5601/s/perf"], 2, "give http://host:5601 and --space perf"),
        (["--kibana", "http://host:5601", "--space", "Perf"], 2, "'Perf' is not the id of a space"),
        (["--kibana", "http://host:5601", "--index-prefix", "UPPER"], 2, "'UPPER' is not an index prefix"),
        (["--kibana", "http://host:5601", "--rules", "nowhere.yml"], 3, "nowhere.yml: there is no such file"),
        (
            ["--kibana", "http://host:5601", "--elasticsearch", "es:9200"],
            2,
            "setup needs --elasticsearch http://HOST:9200, or --kibana",
        ),
        (
            ["--elasticsearch", "http://127.0.0.1:1", "--space", "perf"],
            2,
            "--space is about Kibana: give --kibana http://HOST:5601, too",
        ),
        (["--elasticsearch", "http://127.0.0.1:1", "--rules", "SLA.yml"], 2, "--rules is about Kibana: give --kibana"),
        ([], 2, "setup needs --elasticsearch http://HOST:9200, or --kibana http://HOST:5601"),
    ],
)
def test_words_that_do_not_fit_are_told_before_anything_is_sent(
    capsys, tmp_path, monkeypatch, words: list[str], status: int, reason: str
) -> None:
    monkeypatch.chdir(tmp_path)
    assert command(["setup", *words]) == status
    (line,) = told(capsys)
    assert reason in line
    assert "secret" not in line


def test_a_mistake_in_the_objectives_is_told_with_its_line_before_anything_is_sent(kibana, made, capsys, tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    path.write_text(SLA.replace("percentile: 99.5", "percentile: 995"))
    assert command(["setup", "--kibana", kibana.url, "--rules", str(path)]) == 3
    (line,) = told(capsys)
    assert line.startswith(f"{path}:3: '995' is not a percentile")
    assert not kibana.requests


def test_servers_that_do_not_answer_as_they_should_are_one_sentence(made, capsys, monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_KIBANA_PATIENCE", "0.3")
    with ElasticsearchDouble(version=SERVER) as elastic:
        assert command(["setup", "--kibana", elastic.url]) == 4
    assert "is Elasticsearch, not Kibana: give Kibana's own address" in told(capsys)[-1]
    assert command(["setup", "--kibana", "http://127.0.0.1:1"]) == 4
    waiting, failed = told(capsys)
    assert waiting == "waiting for http://127.0.0.1:1: connection refused: is Kibana running there? (docker compose up -d)"
    assert "was not ready within 0.3 s" in failed
    with KibanaDouble(starting=10**6) as kibana:
        assert command(["setup", "--kibana", kibana.url]) == 4
        assert told(capsys)[-1] == f"{kibana.url} was not ready within 0.3 s: it answers 503: Kibana server is not ready yet"
    with KibanaDouble(api_key="cmlnaHQ6a2V5") as kibana:
        monkeypatch.setenv("TAILBOARD_KIBANA_API_KEY", "d3Jvbmc6a2V5")
        assert command(["setup", "--kibana", kibana.url]) == 4
        (line,) = told(capsys)
        assert "Login failed (401). Set TAILBOARD_KIBANA_API_KEY, or" in line
        assert "d3Jvbmc6a2V5" not in line
    with KibanaDouble(max_import_bytes=100) as kibana:
        monkeypatch.delenv("TAILBOARD_KIBANA_API_KEY")
        assert command(["setup", "--kibana", kibana.url]) == 4
        (line,) = told(capsys)
        assert "refuses the import (413: " in line
        assert "savedObjects.maxImportPayloadBytes" in line
    with KibanaDouble() as kibana:
        assert command(["setup", "--kibana", kibana.url, "--space", "nowhere"]) == 4
        assert "has no space nowhere" in told(capsys)[-1]
        assert kibana.objects("nowhere") == {}


@pytest.mark.slow
def test_secrets_are_in_no_output_even_with_everything_logged(made, monkeypatch, tmp_path: Path) -> None:
    """A process of its own, with logging of all libraries turned up: neither key nor password may be printed."""
    script = tmp_path / "loud.py"
    script.write_text(
        "import logging, sys\nlogging.basicConfig(level=1)\nfrom ingest.cli import run\nsys.exit(run(sys.argv[1:]))\n"
    )
    with KibanaDouble(api_key="bXkta2V5OnNlY3JldA==", basic=("elastic", "pass-phrase")) as kibana:
        for env in (
            {"TAILBOARD_KIBANA_API_KEY": "bXkta2V5OnNlY3JldA=="},
            {"TAILBOARD_ES_USER": "elastic", "TAILBOARD_ES_PASSWORD": "pass-phrase"},
        ):
            done = subprocess.run(
                [sys.executable, str(script), "setup", "--kibana", kibana.url, "--dry-run"],
                env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "TAILBOARD_KIBANA_PATIENCE": "5", **env},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            for secret in ("bXkta2V5OnNlY3JldA==", "pass-phrase", "ZWxhc3RpYzpwYXNzLXBocmFzZQ=="):
                assert secret not in done.stdout + done.stderr
    assert {one.status for one in kibana.requests} == {200}


def test_e3_e8_tables_and_rules_find_empty_indices_before_the_first_load(elastic, kibana, sla) -> None:
    assert command(["setup", "--elasticsearch", elastic.url, "--kibana", kibana.url]) == 0
    kinds = {name.split("-")[1] for name in elastic.index_names()}
    assert kinds >= {"marks", "episodes", "findings", *PERIODIC}
    objective = read_objectives(Path(sla), None)[0]  # the others get no rule
    query = f"{question(objective, 'tailboard')} | limit 1000"
    answer = send(elastic, "POST", "/_query", {"query": query}, {"content-type": "application/json"})
    assert (answer.status, answer.body["values"]) == (200, [])
    assert "run.id" in [column["name"] for column in answer.body["columns"]]


@pytest.mark.slow
def test_a_period_may_change_while_nothing_is_stored(elastic, kibana, capsys) -> None:
    words = ["setup", "--elasticsearch", elastic.url, "--kibana", kibana.url, "--overwrite", "--period"]
    assert command([*words, "month"]) == 0
    indices = elastic.index_names()
    assert command([*words, "day"]) == 0
    assert elastic.index_names() == indices  # those of another period are enough for tables and rules
    loaded(elastic.url, [EXAMPLE])
    assert "tailboard-intervals-2026.11.20" in elastic.index_names()
    capsys.readouterr()
    assert command([*words, "week"]) == 4
    assert "hold data: with another period a load would store documents twice" in capsys.readouterr().err
