"""docs/guides/security.md: its bodies are JSON, name the indices that templates exist for, ask for privileges that exist, and not for more."""

from __future__ import annotations

import json
import os
import re
from fnmatch import fnmatchcase
from pathlib import Path

import pytest

from ingest.http import Client
from ingest.store.elastic.client import ELASTICSEARCH
from ingest.store.elastic.templates import Site, templates

ROOT = Path(__file__).parents[1]
TEXT = (ROOT / "docs" / "guides" / "security.md").read_text()
# Of Elastic's reference, "Elasticsearch privileges": what concerns documents, indices and templates. Broad ones are left out on purpose.
CLUSTER = {"monitor", "manage_index_templates"}
INDEX = {
    "auto_configure",
    "create_index",
    "index",
    "create_doc",
    "read",
    "delete",
    "maintenance",
    "view_index_metadata",
    "monitor",
}
NAMES = [
    "tailboard-intervals-*",
    "tailboard-rollups-*",
    "tailboard-points-*",
    "tailboard-runs",
    "tailboard-marks",
    "tailboard-episodes",
    "tailboard-findings",
]


def requests() -> dict[str, dict]:
    found = {}
    for block in re.findall(r"```json\n(.*?)```", TEXT, re.DOTALL):
        first, body = block.split("\n", 1)
        assert re.fullmatch(r"(PUT|POST|DELETE) \S+", first)
        found[first] = json.loads(body)
    return found


def roles() -> dict[str, dict]:
    every = requests()
    found = {path.rsplit("/", 1)[1]: body for path, body in every.items() if path.startswith("PUT /_security/role/")}
    found |= {"key": every["POST /_security/api_key"]["role_descriptors"]["tailboard_load"]}
    return found | {"kibana": every["PUT kbn:/api/security/role/tailboard_kibana_reader"]["elasticsearch"]}


def test_all_roles_are_there() -> None:
    assert set(roles()) == {"tailboard_setup", "tailboard_load", "tailboard_read", "key", "kibana"}


@pytest.mark.parametrize("name", ["tailboard_setup", "tailboard_load", "tailboard_read", "key", "kibana"])
def test_a_role_has_known_privileges_on_our_indices_alone(name: str) -> None:
    role = roles()[name]
    assert set(role) == {"cluster", "indices"}
    assert set(role["cluster"]) <= CLUSTER
    (entry,) = role["indices"]
    assert entry["names"] == NAMES
    assert set(entry["privileges"]) <= INDEX
    assert len(set(entry["privileges"])) == len(entry["privileges"])


def test_each_role_may_do_its_own_alone() -> None:
    may = {name: set(role["indices"][0]["privileges"]) for name, role in roles().items()}
    assert may["key"] == may["tailboard_load"]
    assert may["kibana"] == may["tailboard_read"] == {"read", "view_index_metadata"}
    assert not may["tailboard_setup"] & {"read", "index", "delete"}
    assert "manage_index_templates" not in roles()["tailboard_load"]["cluster"]
    explained = set(re.findall(r"^\| `(\w+)`", TEXT.split("### load")[1].split("### read")[0], re.MULTILINE))
    assert explained == may["tailboard_load"] | set(roles()["tailboard_load"]["cluster"])


def test_the_names_cover_every_index_that_setup_makes_a_template_for() -> None:
    patterns = [
        pattern
        for (kind, _), body in templates(Site("tailboard")).items()
        if kind == "index"
        for pattern in body["index_patterns"]
    ]
    assert patterns
    assert [pattern for pattern in patterns if not any(fnmatchcase(pattern, name) for name in NAMES)] == []


def test_the_variables_are_those_that_the_code_reads(monkeypatch) -> None:
    asked: set[str] = set()

    class Environment(dict[str, str]):
        def get(self, name: str, default: str | None = None) -> str | None:
            asked.add(name)
            return super().get(name, default)

    monkeypatch.setattr(os, "environ", Environment(TAILBOARD_ES_USER="ann"))  # whose password is asked for
    Client("https://127.0.0.1:9200", ELASTICSEARCH)
    monkeypatch.undo()
    assert set(re.findall(r"TAILBOARD_ES_\w+", TEXT)) == asked - {"TAILBOARD_ES_PATIENCE", "TAILBOARD_ES_TIMEOUT"}


POLICY = (ROOT / "SECURITY.md").read_text()


def test_the_policy_says_what_the_code_does() -> None:
    code = {path: path.read_text() for path in (ROOT / "ingest").rglob("*.py")}
    assert [path.name for path, text in code.items() if re.search(r"yaml\.(unsafe_load|load)\(|\beval\(|\bexec\(", text)] == []
    assert [path.name for path, text in code.items() if "pickle.loads" in text] == ["workers.py"]
    unchecked = [
        path.name
        for path, text in code.items()
        for _ in re.findall(r"verify_certs\s*=\s*False|CERT_NONE|_create_unverified", text)
    ]
    assert unchecked == [
        "http.py"
    ]  # to find the certificate that a fingerprint names: tests/test_http.py shows that nothing is sent
    assert "make audit" in POLICY and "audit:" in (ROOT / "Makefile").read_text()
    for link in re.findall(r"\]\((?!http)([^)#]+)", POLICY):
        assert (ROOT / link).exists()
