"""The panel of a sweep draws the percentiles of whole runs over their depth; over what they achieved where they are no sweep."""

from __future__ import annotations

import json
import uuid
from dataclasses import replace

import pytest

from tests.view.kibana.conftest import EXAMPLE, Served, loaded
from tests.view.kibana.test_vega_panels import answer, ranked
from tools.kibana.asked import chosen

LOGS = next((EXAMPLE / "results").rglob("benchmark_config.yaml")).parent
DEPTHS = {"shallow": ("ceph-a", 4), "middle": ("ceph-b", 16), "deep": ("ceph-c", 128)}


@pytest.fixture(scope="module")
def sweep(server, tmp_path_factory) -> Served:
    """Three runs of a host each, at three depths."""
    loads = {}
    for name, (host, depth) in DEPTHS.items():
        paths = [str(path) for path in sorted(LOGS.glob(f"*{host}*")) if "clat_hist" in path.name or "json" in path.name]
        loads[name] = (*paths, "--label", f"total_iodepth={depth}")
    return loaded(server, tmp_path_factory.mktemp("sweep"), f"sweep-{uuid.uuid4().hex[:8]}", loads)


@pytest.mark.cases(1)
@pytest.mark.slow
def test_a_sweep_is_drawn_over_its_depth(page, sweep) -> None:
    page.draw(sweep.answered(sweep.spec("load", scope="host", level="run")))
    points = page.table("points")
    assert {(row["run"].split("/")[0], row["x"]) for row in points} == {(name, depth) for name, (_, depth) in DEPTHS.items()}
    assert page.signal("across") == "requests at once: total_iodepth"
    assert page.signal("heading").startswith("3 runs, completion; whole runs, p99 at the nearest rank")
    expected = {group: value for (_, group), value in ranked(answer(sweep, step="all", by=("run", "op")), 99).items()}
    assert len(expected) == len(points) == len(page.marks("dots")) == 6
    for row in points:
        [value] = [value for group, value in expected.items() if {row["run"], row["label"].split(" ")[0]} <= set(group)]
        assert row["v"] == value


@pytest.mark.slow
def test_runs_that_are_no_sweep_are_drawn_over_what_they_achieved(page, sweep) -> None:
    page.draw(sweep.answered(sweep.spec("load", scope="host", level="run")))
    [run] = {row["run"] for row in page.table("points") if row["x"] == 128}
    alone = replace(sweep.shown, filters=[chosen("run.id", [run])])
    page.draw(sweep.answered(sweep.spec("load", scope="host", level="run"), alone))
    assert page.signal("across") == "I/Os a second"
    points = page.table("points")
    assert len(points) == 2 and all(row["x"] == row["rate"] > 1 for row in points)
    labels = [
        item
        for one in page.picture()["seen"]
        if (item := json.loads(one))[0] == "axis-label" and item[8] and item[-1].endswith("s")
    ]
    heights = sorted((item[4], item[5]) for item in labels)
    assert len(heights) > 1 and all(above[1] <= below[0] for above, below in zip(heights, heights[1:])), "no label over another"
    assert sum(row["rate"] for row in points) == pytest.approx(sum(row["n"] for row in points) / 80, rel=0.1)
