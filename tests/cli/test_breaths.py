"""events --breaths and --callbacks as their user runs them, and what a load says of breaths."""

from __future__ import annotations

import csv
import io
import json
import lzma
import subprocess
from pathlib import Path

import pytest

from breath_rings import Work, ring
from oracles import breaths as costs
from oracles import snabb as oracle
from tests import commands

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "snabb" / "cut" / "real.timeline.xz"


def tailboard(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = commands.tailboard(*words, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture(scope="module")
def decoded() -> list[dict]:
    return oracle.decode(lzma.open(SAMPLE).read())


def lines(*words: object) -> list[dict]:
    return [json.loads(line) for line in tailboard("events", *words, "--format", "ndjson").stdout.splitlines()]


@pytest.mark.slow
def test_every_breath_of_the_real_timeline(decoded) -> None:
    expected = oracle.breaths(decoded)
    found = lines(SAMPLE, "--breaths")
    assert [(one["breath"], one["cycles"], one["packets"], one["bytes"], one["bits"]) for one in found] == [
        (one["number"], one["cycles"], one["packets"], one["bytes"], one["bits"]) for one in expected
    ]
    assert {(one["core"], one["node"], one["rate"]) for one in found} == {(1, 0, 5)}
    assert all(one["cycles_a_packet"] == round(one["cycles"] / 204, 3) for one in found)
    table = tailboard("events", SAMPLE, "--breaths", "--format", "csv").stdout
    assert [{name: str(value) for name, value in one.items()} for one in found] == list(csv.DictReader(io.StringIO(table)))


def test_a_table_and_a_range() -> None:
    words = ("events", SAMPLE, "--breaths", "--from", "+1s", "--to", "+2s")
    shown = tailboard(*words, "--limit", 3).stdout.splitlines()
    assert shown[0].split() == "elapsed breath core node cycles ns packets bytes bits cycles a packet rate".split()
    assert len(shown) == 5
    found = lines(*words[1:])
    assert 400 < len(found) < 700 and all(1 <= one["elapsed"] <= 2 for one in found)
    none = tailboard("events", SAMPLE, "--breaths", "--from", "+1000s", "--format", "csv")
    assert none.stdout == "elapsed\n" and "none of its breaths is selected" in none.stderr


def test_callbacks_tell_what_they_moved_where_events_do(tmp_path, decoded) -> None:
    path = tmp_path / "old.timeline"
    path.write_bytes(ring(Work(counters=True, breaths=300), 5))
    expected = costs.callbacks(oracle.decode(path.read_bytes()))
    found = lines(path, "--callbacks")
    assert [(one["app"], one["callback"], one["cycles"], one["packets"]) for one in found] == [
        (one["app"], "push", one["cycles"], one["packets"]) for one in expected
    ]
    assert len(found) == 24 and all(one["bytes"] == 64 * one["packets"] for one in found)
    done = tailboard("events", SAMPLE, "--callbacks", "--format", "ndjson")
    assert "no callback of this timeline tells what it moved" in done.stderr
    real = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(real) == len(costs.callbacks(decoded)) > 0
    assert {one["packets"] for one in real} == {None}


@pytest.mark.parametrize(
    ("words", "reason"),
    [
        (("--breaths", "--callbacks"), "--breaths and --callbacks are two tables: ask for one"),
        (("--format", "csv"), "--format csv is for --breaths and --callbacks"),
        (("--breaths", "--level", "3"), "--level chooses events: leave it out with --breaths"),
        (("--callbacks", "--name", "app.*"), "--name chooses events: leave it out with --callbacks"),
    ],
)
def test_what_cannot_be_meant_is_refused(words, reason) -> None:
    assert reason in tailboard("events", SAMPLE, *words, status=2).stderr


def test_a_load_tells_of_breaths(tmp_path) -> None:
    done = tailboard("load", SAMPLE, "--run", "r", "--store", f"sqlite:{tmp_path / 's.db'}", "--json")
    account = json.loads(done.stdout)
    assert account["breath_documents"] == 4 + 1553
    assert "1557 documents of breaths beside them, for the report and Kibana" in done.stderr
