"""The page's heat map in Chromium for bins that are not log-linear: every sample is in a row, whose edges are edges of bins."""

from __future__ import annotations

import pytest

from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from tests.read.test_histograms import DATA

SAMPLES = {"otlp_delta.jsonl": "", "sysbench1020_histogram.txt": "sysbench", "redis70_latency_histogram.ndjson": "redis-latency"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=() if name.startswith("sysbench") else pytest.mark.slow) for name in SAMPLES]
)
def test_the_heat_map_holds_every_sample(opened, name: str) -> None:
    reading = {"description": description_of(SAMPLES[name])} if SAMPLES[name] else {}
    runs = list(overviews(Files([DATA / name], ReadOptions(run="r", **reading), jobs=1), ["r"], Question()))
    parts = [part for run in runs for part in run.cluster.parts]
    with opened(runs) as page:
        counts, rows = page.evaluate("[[...tailboard.heat.map.counts], [...tailboard.heat.map.edges]]")
    assert round(sum(counts)) == sum(int(part.samples.sum()) for part in parts)
    edges = {int(edge) for part in parts for layout in part.layout.members for edge in layout.edges.tolist()}
    assert len(rows) > 3 and {int(edge) for edge in rows} <= edges
