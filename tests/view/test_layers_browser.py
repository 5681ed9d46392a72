"""Layers one under another in a report, as a browser shows them: each cell that the page holds is drawn, in its layer's band."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from ingest.query.overview import overviews
from ingest.query.question import Question
from ingest.view.page.panels import layers
from tests.browsing import shown
from tests.view.page import items_of, rows_of


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("width", [1280, 400])
def test_each_layer_is_drawn_in_its_band(browser: Any, tmp_path: Path, width: int) -> None:
    import sys

    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))  # scripts, no package
    from made_clusters import cluster

    from ingest.view.page.report import parts_of
    from ingest.view.page.template import page_of

    made = cluster("disk", 60_001)
    runs = overviews(made, ["synthetic"], Question())
    [section] = layers.sections(runs)
    [content] = json.loads(json.dumps(section.content))
    path = tmp_path / "r.html"
    path.write_text(page_of(parts_of(runs)))
    with shown(browser, path, size={"width": width, "height": 800}) as page:
        rows = rows_of(page, "layers", "points")
        assert len(rows) == sum(len(each["t"]) for each in content["layers"]) == len(items_of(page, "layers", "heat"))
        tops = {each["layer"]: [] for each in content["layers"]}
        for item in items_of(page, "layers", "heat"):
            tops[item["datum"]["row"]].append(sorted((item["y"], item["y"] + item["height"])))
        spans = [(min(top for top, _ in edges), max(bottom for _, bottom in edges)) for edges in tops.values()]
        assert all(above[1] <= below[0] for above, below in zip(spans, spans[1:], strict=False)), spans
        said = page.locator("#layers-says").inner_text()
        assert "error of a percentile" in said and "clock of each host" in said
