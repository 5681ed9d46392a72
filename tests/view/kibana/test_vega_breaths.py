"""The panels of breaths draw what the query layer finds of the same runs in SQLite: cells, lines, a sample of single ones."""

from __future__ import annotations

import uuid
from dataclasses import replace

import pytest

from breath_rings import BAD, GOOD, Work, rings
from ingest.core.breaths import CELLS
from ingest.query.breaths import breath_rows, costs, density, fits
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.capabilities import breaths_from_store
from tests.view.kibana.conftest import MINUTE, Served, loaded
from tests.view.kibana.lens_rows import asked_rows
from tools.kibana.asked import Shown, chosen
from tools.kibana.compile import compiled
from tools.kibana.lint.budget import buckets

PROCESSES = {
    "bad": BAD,
    "constant": Work(burst=0, breaths=300),
    "good": GOOD,
    "none": Work(slope=0, breaths=250),
    "tiny": Work(breaths=12),
}


@pytest.fixture(scope="module")
def timelines(server, tmp_path_factory) -> Served:
    """Two runs; the one that began last has five processes, one of them with link statistics."""
    folder = tmp_path_factory.mktemp("rings")
    rings(folder / "five", **PROCESSES)
    rings(folder / "more", counted=Work(counters=True, breaths=200))
    later = ("--host", "h", "--host-offset", "h=60000")
    loads = {"earlier": (str(folder / "more"),), "run": (str(folder / "five"), str(folder / "more"), *later)}
    return loaded(server, folder, f"breaths-{uuid.uuid4().hex[:8]}", loads, "points")


def kept(served: Served, **where: str):
    with open_store(served.sqlite) as store:
        return breaths_from_store(store, Question(where={"run": "run", **where}))


def drawn(page, served: Served, picture: str, shown: Shown | None = None) -> list[str]:
    page.draw(served.answered(served.spec(picture, index="points"), shown))
    return [row["facet"] for row in page.table("facets")]


def named(series) -> str:
    """Return how a panel calls a process: with its host."""
    return f"{series.host} {series.process}"


@pytest.mark.slow
def test_cells_are_those_of_the_query(page, timelines) -> None:
    facets = drawn(page, timelines, "breath-density")
    windows = breath_rows(kept(timelines).windows)
    most = sorted(costs(windows, named), key=lambda cost: -cost.cycles)[:3]
    assert facets == [cost.name for cost in most]
    found = density(windows, named)
    groups = [found.groups[code] for code in found.group.tolist()]
    expected = sorted(
        row
        for row in zip(
            groups,
            found.packets.tolist(),
            found.packets_to.tolist(),
            found.cycles.tolist(),
            found.cycles_to.tolist(),
            found.n.tolist(),
        )
        if row[0] in facets
    )
    rows = page.table("cells")
    assert sorted((row["facet"], row["x"], row["x2"], row["y"], row["y2"], row["n"]) for row in rows) == expected
    assert len(page.marks("heat")) == len(rows) > 50
    assert "the 3 of 6 processes with the most cycles; exact counts" in page.signal("heading")
    assert page.signal("heading").startswith("run run (began last of 2: choose above), breaths;")


@pytest.mark.slow
def test_lines_are_those_of_the_query(page, timelines) -> None:
    facets = drawn(page, timelines, "breaths")
    windows = breath_rows(kept(timelines).windows)
    expected = fits(windows, named)
    rows, notes = page.table("processes"), {row["facet"]: row["note"] for row in page.table("facets")}
    assert len(facets) == 4 and {row["facet"] for row in rows} == set(facets)
    for row in rows:
        fit = expected[row["facet"]]
        assert row["drawn"] == (not fit.why)
        if fit.why:
            assert any(word in notes[row["facet"]] for word in ("no line", "too few"))
            continue
        assert (row["base"], row["slope"], row["explained"]) == pytest.approx((fit.base, fit.slope, fit.explained), rel=1e-6)
        assert row["error"] == pytest.approx(fit.error, rel=1e-6)
    lines = page.table("lines")
    assert {row["facet"] for row in lines} == {name for name in facets if not expected[name].why}
    for row in lines:
        assert row["v"] == pytest.approx(expected[row["facet"]].base + expected[row["facet"]].slope * row["x"], rel=1e-6)


@pytest.mark.slow
def test_single_breaths_are_the_first_of_the_sample_and_the_longest(page, timelines) -> None:
    facets = drawn(page, timelines, "breaths")
    sample = kept(timelines).sample
    for facet in facets:
        mine = [
            (packets, cycles)
            for code, packets, cycles in zip(sample.series.tolist(), sample.packets.tolist(), sample.cycles.tolist())
            if named(sample.table[code]) == facet
        ]
        points = sorted((row["x"], row["y"]) for row in page.table("points") if row["facet"] == facet)
        longest = sorted(y for _, y in mine)[-20:]
        assert sorted(y for _, y in points) == sorted([*(y for _, y in mine[:100]), *longest])
        assert set(points) <= set(mine)
    assert len(page.marks("breaths")) == len(page.table("points"))


@pytest.mark.slow
def test_a_chosen_run_and_a_time_range(page, timelines) -> None:
    earlier = replace(timelines.shown, filters=[chosen("run.id", ["earlier"])])
    assert drawn(page, timelines, "breath-density", earlier) == ["counted"]
    assert "run earlier, breaths;" in page.signal("heading")
    first = int(breath_rows(kept(timelines).windows).start_ns.min()) // 10**6
    drawn(page, timelines, "breath-density", Shown(first, first + 999))
    with open_store(timelines.sqlite) as store:
        windows = breath_rows(breaths_from_store(store, Question(where={"run": "run"})).windows)
    names = {row["facet"] for row in page.table("facets")}
    second = [
        int(windows.counts[windows.indptr[row] : windows.indptr[row + 1]].sum())
        for row in range(len(windows))
        if windows.start_ns[row] // 10**6 == first and named(windows.table[windows.series[row]]) in names
    ]
    assert sum(row["n"] for row in page.table("cells")) == sum(second) > 0


@pytest.mark.slow
def test_panels_of_numbers_are_sums_of_the_query(timelines) -> None:
    own = {
        saved.id: saved
        for saved in compiled(timelines.prefix)
        if saved.type == "lens" and saved.references[0].id.endswith("-points")
    }
    assert len(own) == 3
    shown = replace(timelines.shown, filters=[chosen("run.id", ["run"])])
    rows = {name: asked_rows(timelines, saved, shown) for name, saved in own.items()}
    windows = breath_rows(kept(timelines).windows)
    found = {cost.name.split(" ")[1]: cost for cost in costs(windows, named)}
    for panel, number in (("packets", "all_packets"), ("breath-rate", "all_breaths")):
        told: dict[str, float] = {}
        for row in rows[f"{timelines.prefix}-snabb-timeline-{panel}"]:
            [value] = [value for name, value in row.items() if name in ("packets", "breaths")]
            told[row["process.name"]] = told.get(row["process.name"], 0) + (value or 0)
        assert told == {name: getattr(cost, number) for name, cost in found.items()}
    table = {row["process"]: row for row in rows[f"{timelines.prefix}-snabb-timeline-processes"]}
    assert {
        name: (row["stored breaths"], row["without packets"] or 0, row["longest breath (cycles)"]) for name, row in table.items()
    } == {name: (cost.n, cost.idle, cost.longest) for name, cost in found.items()}


@pytest.mark.slow
def test_nothing_there_is_said(page, timelines) -> None:
    for picture in ("breaths", "breath-density"):
        assert drawn(page, timelines, picture, Shown(0, MINUTE)) == []
        assert page.signal("heading").startswith("no breaths here (timelines of Snabb have them)")


@pytest.mark.slow
def test_a_site_without_snabb_has_no_index_to_ask(page, timelines) -> None:
    other = replace(timelines, prefix=f"{timelines.prefix}-none")
    for picture in ("breaths", "breath-density"):
        assert drawn(page, other, picture) == []
        assert page.signal("heading").startswith("no breaths here (timelines of Snabb have them)")


def test_a_histogram_is_counted_by_the_largest_value_of_its_field() -> None:
    cells = {"histogram": {"field": "breath.cells", "interval": 1, "min_doc_count": 1}}
    assert buckets({"p": {"terms": {"field": "process.name", "size": 3}, "aggs": {"cells": cells}}}).all == 3 * (CELLS + 1)
    with pytest.raises(ValueError, match="the number of buckets of histogram cannot be determined"):
        buckets({"cells": {"histogram": {"field": "latency.count", "interval": 1}}})
