"""The example run in the Elasticsearch double and in SQLite, and pages that draw what Kibana would draw of it."""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from tests.browsing import missing
from tests.doubles.elasticsearch import ElasticsearchDouble
from tests.vega.drawn import EACH_MAJOR, drawing, installed
from tools.kibana.asked import Shown, vega_requests
from tools.kibana.config import Grid, Panel
from tools.kibana.vega_panels import vega_object

ROOT = Path(__file__).parents[3]
EXAMPLE = ROOT / "examples" / "cbt-archive"
MINUTE = 60_000
JSON = {"accept": "application/json", "content-type": "application/json"}


@dataclass(frozen=True, slots=True)
class Served:
    """One run in both stores: the server (a real one with ELASTICSEARCH_URL), its prefix, the time range that holds the run."""

    client: Any
    prefix: str
    url: str
    sqlite: str
    shown: Shown

    def search(self, index: str, body: Any) -> Any:
        """Return the server's answer to a request of a panel."""
        target = f"/{index}/_search?ignore_unavailable=true&allow_no_indices=true"
        return self.client.perform_request("POST", target, headers=JSON, body=body).body

    def spec(self, picture: str, **words: Any) -> dict[str, Any]:
        """Return the spec of a panel, as compiled."""
        panel = Panel(picture, picture, Grid(0, 0, 48, 16), "vega", picture, words or {"scope": "host", "level": "overview"})
        return json.loads(json.dumps(vega_object(panel, picture, self.prefix).attributes["visState"]["params"]["spec"]))

    def answered(self, spec: dict[str, Any], shown: Shown | None = None) -> dict[str, Any]:
        """Return a spec with the server's answers in the place of its requests."""
        answers = {one.name: self.search(one.index, one.body) for one in vega_requests(spec, shown or self.shown)}
        data = [
            {**{key: value for key, value in one.items() if key != "url"}, "values": answers[one["name"]]}
            if one["name"] in answers
            else one
            for one in spec["data"]
        ]
        return {**spec, "data": data}


@pytest.fixture(scope="module", params=EACH_MAJOR)
def page(request, browser):
    """A page with Vega 5, then with 6."""
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    with drawing(browser, request.param) as found:
        yield found


@pytest.fixture(scope="session")
def server():
    """The server's address: a double, or the real one."""
    if url := os.environ.get("ELASTICSEARCH_URL"):
        yield url
        return
    with ElasticsearchDouble(version="9.5.3") as double:
        yield double.url
        assert not double.refusals, double.refusals


def loaded(server: str, folder: Path, prefix: str, loads: dict[str, tuple[str, ...]], index: str = "rollups") -> Served:
    """Return both stores after the loads (run: words of the command)."""
    from elasticsearch import Elasticsearch

    url, sqlite = f"{server}?index_prefix={prefix}", f"sqlite:{folder / prefix}.db"
    assert command(["setup", "--elasticsearch", server, "--index-prefix", prefix]) == 0
    for run, words in loads.items():
        for store in (url, sqlite):
            assert command(["load", *words, "--run", run, "--store", store]) == 0
    client = Elasticsearch(server)
    client.indices.refresh(index=f"{prefix}-*")
    ends = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    found = client.search(index=f"{prefix}-{index}-*", size=0, aggs=ends)["aggregations"]
    shown = Shown(int(found["first"]["value"]) - MINUTE, int(found["last"]["value"]) + MINUTE)
    return Served(client, prefix, url, sqlite, shown)


@pytest.fixture(scope="session")
def served(server, tmp_path_factory) -> Served:
    """The example archive."""
    return loaded(server, tmp_path_factory.mktemp("kibana"), "example", {"nightly": (str(EXAMPLE),)})
