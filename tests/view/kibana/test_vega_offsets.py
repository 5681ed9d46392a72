"""The panel of subsecond offsets draws what `tailboard show offsets` counts of the same run in SQLite."""

from __future__ import annotations

import csv
import io
import uuid
from dataclasses import replace
from datetime import datetime

import pytest

from ingest.cli import run as command
from tests.view.kibana.conftest import ROOT, Served, loaded
from tools.kibana.asked import Shown, chosen, vega_requests

SAMPLES = ROOT / "tests" / "data" / "traces" / "cpu.txt.xz"


@pytest.fixture(scope="module")
def sampled(server, tmp_path_factory) -> Served:
    """Samples of processors."""
    words = (str(SAMPLES), "--t0", "2026-11-01T00:00:00Z", "--host", "h1")
    found = loaded(server, tmp_path_factory.mktemp("samples"), f"samples-{uuid.uuid4().hex[:8]}", {"perf": words}, "intervals")
    return replace(found, shown=Shown(found.shown.begin_ms, found.shown.end_ms))


def told(served: Served, capsys, *words: str) -> list[tuple]:
    """Return (start ms, lower, upper, count) of the cells that the command tells."""
    capsys.readouterr()
    assert command(["offsets", served.sqlite, "--format", "csv", *words]) == 0
    rows = csv.DictReader(io.StringIO(capsys.readouterr().out))
    moments = [(round(datetime.fromisoformat(row["start"]).timestamp() * 1000), row) for row in rows]
    return sorted(
        (t, int(row["offset_lower"]), int(row["offset_upper"]), int(row["count"])) for t, row in moments if int(row["count"])
    )


def seconds(page, spec) -> list[tuple]:
    page.draw(spec)
    return sorted((row["t"], row["lower"], row["upper"], row["c"]) for row in page.table("cells"))


@pytest.mark.slow
def test_cells_are_those_of_the_command(page, sampled, capsys) -> None:
    spec = sampled.answered(sampled.spec("offsets", index="intervals"))
    cells = seconds(page, spec)
    assert cells == told(sampled, capsys)
    assert len(cells) > 10
    assert len(page.marks("heat")) == len(cells)
    assert "counts by offset within the second" in page.signal("heading")


@pytest.mark.slow
def test_a_process_alone(page, sampled, capsys) -> None:
    ask = [one for one in vega_requests(sampled.spec("offsets", index="intervals"), sampled.shown) if one.name == "answer"]
    named = {"names": {"terms": {"field": "process.name", "size": 50}}}
    buckets = sampled.search(ask[0].index, {"size": 0, "query": {"term": {"kind": "offset"}}, "aggs": named})["aggregations"][
        "names"
    ]["buckets"]
    for name in [one["key"] for one in buckets][:3]:
        shown = replace(sampled.shown, filters=[chosen("process.name", [name])])
        assert seconds(page, sampled.answered(sampled.spec("offsets", index="intervals"), shown)) == told(
            sampled, capsys, "--where", f"process={name}"
        )


@pytest.mark.slow
def test_a_run_without_single_events_is_said(page, served) -> None:
    page.draw(served.answered(served.spec("offsets", index="intervals"), Shown(0, 3_600_000)))
    assert page.signal("heading").startswith("no single events here (raw logs and traces have them)")
