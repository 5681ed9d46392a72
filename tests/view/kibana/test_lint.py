"""Rules for saved objects: each finds its own bad example, says the exact sentence, and finds nothing in the others or in ours."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tools.kibana.compile import kibana_files
from tools.kibana.data_views import data_views
from tools.kibana.lint import RULES, problems
from tools.kibana.lint.budget import Buckets, buckets
from tools.kibana.objects import file_text

BAD = Path(__file__).parent / "bad"
ROOT = Path(__file__).parents[3]
COUNTS = "counts documents, not I/Os: the sum of latency.count does"

EXPECTED = {
    "file-name": [
        "tailboard-point: file-name: its file is saved_objects/index-pattern/tailboard-points.json, not saved_objects/index-pattern/tailboard-point.json"
    ],
    "references": [
        "tailboard-d: references: there is no lens tailboard-d-gone",
        "tailboard-d: references: no reference is named bare:panel_bare",
        "tailboard-d: references: no reference is named controlGroup_run:optionsListDataView",
        "tailboard-d: references: nothing uses the reference extra:panel_extra",
    ],
    "grid": [
        "tailboard-d: grid: panel c is outside of the 48 columns",
        "tailboard-d: grid: panel a lies on panel b",
        "tailboard-d: grid: two panels are called c",
    ],
    "operation": ["tailboard-p: operation: the data that last_value requests cannot be determined"],
    "field": ["tailboard-p: field: rollups have no field latency.p98"],
    "scope-and-step": [
        "tailboard-p: scope-and-step: latency.p99 is not limited to one scope",
        "tailboard-q: scope-and-step: latency.count is not limited to one step",
    ],
    "kinds": ["tailboard-p: kinds: latency.p99 mixes kinds"],
    "document-count": [f"tailboard-p: document-count: v {COUNTS}", f"tailboard-v: document-count: doc_count of t {COUNTS}"],
    "t-digest": [
        "tailboard-p: t-digest: v (percentile) is a t-digest",
        "tailboard-v: t-digest: p (percentiles) has no hdr: it is a t-digest",
    ],
    "budget": [
        "tailboard-v: budget: 1,400 HDR histograms at worst, more than 1,200",
        "tailboard-v: budget: 100,020 buckets at worst, more than 65,536",
        "tailboard-v: budget: the number of buckets of significant_terms cannot be determined",
    ],
    "filters": [
        "tailboard-v: filters: deaf does not follow the time range: it has no %timefield%",
        "tailboard-v: filters: deaf does not follow the filters: it has no %context%",
        "tailboard-v: filters: emptied is empty when host.name is chosen: runs have no such field",
        "tailboard-p: filters: it is empty when host.name is chosen: marks have no such field (`unfiltered` says why)",
        "tailboard-q: filters: it does not follow the filters and does not say why",
        "tailboard-r: filters: it is empty when a host is chosen and does not say so (choose no host)",
    ],
    "vega": [
        "tailboard-v: vega: its $schema is https://vega.github.io/schema/vega/v6.json, not https://vega.github.io/schema/vega/v5.json",
        "tailboard-v: vega: c has a transform without a type",
        "tailboard-v: vega: it has a loader",
        "tailboard-v: vega: it calls Function",
        "tailboard-v: vega: it loads data/cars.json",
        "tailboard-v: vega: it loads {'%type%': 'url', 'index': 'tailboard-marks*'}",
    ],
    "external-url": [
        "tailboard-d: external-url: description holds an address: see //example.org/x",
        "tailboard-d: external-url: markdown holds an address: ![](https://example.org/a.png)",
    ],
}


def test_every_rule_has_a_bad_example() -> None:
    assert list(EXPECTED) == list(RULES)
    assert {path.stem for path in BAD.iterdir()} == set(RULES)


@pytest.mark.parametrize("rule", EXPECTED)
def test_a_bad_example_breaks_its_rule_alone(rule: str) -> None:
    content = yaml.safe_load((BAD / f"{rule}.yml").read_text())
    views = {f"saved_objects/{view.path}": file_text(view) for view in data_views("tailboard")}
    assert problems({**views, **{path: json.dumps(one) for path, one in content.items()}}) == EXPECTED[rule]


def test_what_is_compiled_breaks_none() -> None:
    files = kibana_files()
    assert sum(path.startswith("saved_objects/lens/") for path in files) >= 12
    assert problems(files) == []


def test_buckets_are_counted_at_worst() -> None:
    hdr = {"percentiles": {"field": "latency.histogram", "hdr": {}}}
    windows = {"date_histogram": {"field": "@timestamp", "interval": {"%autointerval%": 10}}}
    assert buckets({"n": {"sum": {"field": "latency.count"}}}) == Buckets(0, 0)
    assert buckets({"t": {**windows, "aggs": {"p": hdr, "q": hdr}}}) == Buckets(70, 140)
    assert buckets({"f": {"filter": {}, "aggs": {"h": {"terms": {"size": 3}, "aggs": {"t": windows, "p": hdr}}}}}) == Buckets(
        3 + 210, 3
    )
    assert buckets({"h": {"terms": {}, "aggs": {"r": {"range": {"ranges": [{}, {}]}}}}}) == Buckets(10 + 20, 0)
    assert buckets({"t": {"date_histogram": {"fixed_interval": "1s"}}}, windows=300) == Buckets(300, 0)
    assert buckets({"t": {"date_histogram": {"interval": "auto"}}}) == Buckets(52, 0)
    assert buckets({"t": {"date_histogram": {"interval": "10s"}, "aggs": {"p": hdr}}}) == Buckets(5000, 5000)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name in ("ingest", "tools", "mappings", "kibana", "docs"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    assert built(tmp_path)[0] == 0
    return tmp_path


def built(checkout: Path, *words: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "tools.build", *words]
    done = subprocess.run(command, cwd=checkout, env={"PYTHONPATH": str(checkout)}, capture_output=True, text=True)
    return done.returncode, done.stderr


@pytest.mark.slow
def test_build_writes_objects_and_removes_those_that_are_no_longer_made(checkout: Path) -> None:
    assert built(checkout, "--check") == (0, "")
    objects = checkout / "kibana" / "saved_objects"
    lines = [json.loads(line) for line in (checkout / "kibana" / "tailboard.ndjson").read_text().splitlines()]
    assert {f"{one['type']}/{one['id']}.json" for one in lines} == {
        path.relative_to(objects).as_posix() for path in objects.rglob("*.json")
    }
    stray = objects / "index-pattern" / "tailboard-old.json"
    stray.write_text("{}")
    status, told = built(checkout, "--check")
    assert (status, stray.is_file()) == (1, True)
    assert "not up to date: tailboard-old.json; run `make build`" in told
    assert built(checkout)[0] == 0
    assert not stray.exists()
    assert built(checkout, "--check") == (0, "")


@pytest.mark.slow
def test_build_names_each_rule_that_is_broken(checkout: Path) -> None:
    dashboard = checkout / "kibana" / "dashboards" / "heat-maps.yml"
    dashboard.write_text(dashboard.read_text().replace("at: [0, 22, ", "at: [1, 21, "))
    for words in ((), ("--check",)):
        status, told = built(checkout, *words)
        assert status == 1
        assert "tailboard-heat-maps: grid: panel overview is outside of the 48 columns\n" in told
        assert "tailboard-heat-maps: grid: panel detail lies on panel overview\n" in told
        assert told.endswith("2 problems in what is built from kibana/dashboards\n")
