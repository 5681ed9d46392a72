"""Attacks on all readers and commands: none ends in an internal error or hangs, and no samples change in silence."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from ingest.cli import run
from ingest.query.files import Files
from ingest.query.question import Question
from tests.attacks import attacked
from tests.damage import DATA, FORMATS, content_of, told
from tests.effort import figure

FOUND = {  # what an attack of before has found: a format, what stood there, what came in its place
    "thousands of digits of a count": ("bpftrace", b" |@@", b"1" * 5000 + b" |@@"),
    "a client beyond 64 bits": ("pgbench log", b"\n", b"\n" + b"9" * 30),
    "a hexadecimal value": ("fio log of means, with fio's JSON", b", ", b", 0x1f, "),
}


@pytest.mark.parametrize("name", FOUND)
def test_what_is_no_number_is_a_rejected_line(name: str) -> None:
    """Each was an internal error: of all files, not of the one."""
    recorded, (_, old, new) = FORMATS[FOUND[name][0]], FOUND[name]
    content = content_of(recorded)
    place = content.index(old, len(content) // 2)
    before, after = told(recorded, content), told(recorded, content[:place] + new + content[place + len(old) :])
    if "means" in FOUND[name][0]:  # its counts are those of the log of IOPS beside it, and of fio's JSON
        assert after.samples == before.samples
    else:
        assert after.samples != before.samples and after.sentences - before.sentences


OF_ANOTHER_TYPE = [  # a format, what stood there, what came in its place; each changed the number of samples without a word
    ("OpenTelemetry, cumulative", '"stringValue": "read"', '"stringValue": true'),
    ("OpenTelemetry, cumulative", '"scopeMetrics"', '"scopeMetriss"'),
    ("OpenTelemetry, cumulative", '"value": {', '"velue": {'),
    (
        "OpenTelemetry, cumulative",
        '"aggregationTemporality": "AGGREGATION_TEMPORALITY_CUMULATIVE"',
        '"aggregationTemporality": true',
    ),
    ("OpenTelemetry, delta", '"exponentialHistogram": {', '"5": {'),
    ("OpenTelemetry, delta", '"unit": "ms"', '"unit": ["ms"]'),
    ("memtier", '"Gets": {', '"Gets": null, "Totals": {'),
    ("Redis LATENCY HISTOGRAM", '"r":{"get":{', '"r":{"get":true,"old":{'),
    ("Redis LATENCY HISTOGRAM", '"host":"h1"', '"host":["h1"]'),
    ("Redis LATENCY HISTOGRAM", '"4":', '"1":'),
    ("bpftrace", "|@@\n", "|@@" + 20 * "\x00"),
    ("cockroach workload", '"Name":"read"', '"Name":5'),
    ("Prometheus, native (API)", '"op":"', '"op":true,"was":"'),
    ("Ceph perf histogram", '"host":"', '"host":true,"was":"'),
    ("fio json+", '"bins" : {', '"bins" : null, "was" : {'),
    ("YCSB histograms", "[OVERALL], RunTime(ms), 10000\n", ""),
]


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [pytest.param(*case, marks=pytest.mark.slow if place > 1 else ()) for place, case in enumerate(OF_ANOTHER_TYPE)],
)
def test_n13_a_value_of_another_type_or_name_is_told(name: str, old: str, new: str) -> None:
    """A label that is no text names another series: of counts since a start all are counted again."""
    recorded = FORMATS[name]
    content = content_of(recorded)
    place = content.index(old.encode(), 0 if name.startswith(("YCSB", "Prom")) else len(content) // 3)
    damaged = content[:place] + new.encode() + content[place + len(old) :]
    assert told(recorded, damaged).samples is None or told(recorded, damaged).sentences - told(recorded, content).sentences


SOUND = (
    '{"resource": {}}',  # protobuf's JSON leaves empty arrays out
    '{"resource": {"attributes": []}, "scopeMetrics": [{"scope": {}}]}',
    '{"scopeMetrics": [{"metrics": [{"name": "x", "histogram": {"aggregationTemporality": 2}}, {"name": "y", "gauge": {}}]}]}',
    '{"scopeMetrics": [], "entityRefs": [1]}',  # of a newer version
)


def test_what_opentelemetry_leaves_out_or_adds_is_no_damage() -> None:
    recorded = FORMATS["OpenTelemetry, delta"]
    content = content_of(recorded)
    added = content.replace(b'"resourceMetrics": [', b'"resourceMetrics": [' + ", ".join(SOUND).encode() + b", ")
    assert added != content
    assert told(recorded, added) == told(recorded, content)


def test_a_snapshot_of_too_many_counts_is_rejected() -> None:
    """1,206 samples instead of 1,200: `0` had become `1,5`, and all after it lay one bin higher."""
    recorded = FORMATS["cockroach workload"]
    lines = content_of(recorded).splitlines(keepends=True)
    changed = json.loads(lines[3])
    changed["Hist"]["Counts"].insert(100, 5)
    lines[3] = json.dumps(changed).encode() + b"\n"
    found = told(recorded, b"".join(lines))
    assert any("not as many counts as its highest value needs" in text for text in found.sentences)


def test_a_file_whose_name_is_no_unicode_is_read(tmp_path: Path) -> None:
    """Series that go on in other files are told apart by their names: an internal error."""
    content = (DATA / "histograms/prom242_native_range_vector.json").read_bytes()
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff\xfe\nx.json")).write_bytes(content)
    files = Files([tmp_path], jobs=1)
    assert files.answer(Question(step="all")).samples
    assert run(["load", str(tmp_path), "--run", "r", "--store", f"sqlite:{tmp_path / 's.db'}"]) == 0


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMATS)
def test_attacks(name: str) -> None:
    faults = [fault for seed in range(figure(1, 2, 20)) for fault in attacked(name, seed)]
    assert not faults, faults
