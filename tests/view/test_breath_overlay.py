"""Breaths of two runs on the page of a comparison, from files and from a store: what is drawn is what the query layer finds."""

from __future__ import annotations

from pathlib import Path

import pytest

from breath_rings import Work, rings
from ingest.cli import run as command
from ingest.core.units import figure
from ingest.query.breaths import breath_rows, costs, fits, from_files
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.view.page.compare import TOGETHER, breath_panel
from tests.browsing import shown
from tests.view.page import rows_of, settle

BASELINE = {"one": Work(), "two": Work(breaths=700), "gone": Work(breaths=40)}
RUN = {"one": Work(stalls=0.01), "two": Work(slope=60, breaths=700), "new": Work(breaths=40)}


def kept(folder: Path, run: str = "r"):
    return from_files(Files([folder], ReadOptions(run=run)), Question())


@pytest.fixture(scope="module")
def sides(tmp_path_factory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("sides")
    return rings(folder / "good", **BASELINE), rings(folder / "bad", **RUN)


@pytest.fixture(params=["files", pytest.param("sqlite", marks=pytest.mark.slow)])
def page_of(request, sides, tmp_path) -> Path:
    path = tmp_path / "compare.html"
    sources = [str(side) for side in sides]
    if request.param == "sqlite":
        sources = [f"sqlite:{tmp_path / 's.db'}"]
        for side in sides:
            assert command(["load", str(side), "--run", side.name, "--store", sources[0]]) == 0
    assert command(["compare", *sources, "--baseline", "good", "--run", "bad", "-o", str(path)]) == 0
    return path


@pytest.mark.slow
def test_both_runs_are_drawn_with_their_lines(browser, page_of, sides) -> None:
    before, after = (breath_rows(kept(side).windows) for side in sides)
    lines = [fits(windows, lambda one: one.process) for windows in (before, after)]
    cost = [{one.name: one.cycles_a_packet for one in costs(windows, lambda one: one.process)} for windows in (before, after)]
    with shown(browser, page_of) as page:
        assert [row["facet"] for row in rows_of(page, "breaths", "facets")] == ["two", "one"]
        points = rows_of(page, "breaths")
        assert {row["label"] for row in points} == {"baseline good", "run bad"}
        for row in rows_of(page, "breaths", "lines"):
            fit = lines[row["label"] == "run bad"][row["facet"]]
            assert row["v"] == pytest.approx(fit.base + fit.slope * row["x"], rel=1e-9)
        for side, label in zip(sides, ("baseline good", "run bad")):
            sample = kept(side).sample
            known = {
                (sample.table[code].process, x, y)
                for code, x, y in zip(sample.series.tolist(), sample.packets.tolist(), sample.cycles.tolist())
            }
            mine = [(row["facet"], row["x"], row["y"]) for row in points if row["label"] == label]
            assert set(mine) <= known and len(mine) > 400
        table = page.locator("#panel-breaths tbody tr").all_inner_texts()
        assert [row.split("\t")[:4] for row in table] == [
            [name, f"{cost[0][name]:,.3g}", f"{cost[1][name]:,.3g}", f"{cost[1][name] / cost[0][name]:.3g}"]
            for name in ("two", "one")
        ]
        page.locator("input[name=axis][value=linear]").click()
        settle(page)
        assert page.evaluate("tailboard.views.breaths.signal('axis')") == "linear"


def test_c6_the_longest_breaths_are_drawn_listed_and_said(tmp_path) -> None:
    """Three breaths of half a million cycles among thousands: no percentile moves, no random sample of 1,500 shows all of them."""
    sides = [
        kept(
            rings(tmp_path / name, router=work, quiet=Work(breaths=600), **{f"p{place}": Work(breaths=60) for place in range(5)})
        )
        for name, work in (("good", Work(breaths=4000)), ("bad", Work(breaths=4000, slope=29, longest=(1003, 2001, 3333))))
    ]
    panel = breath_panel(*sides)
    assert panel is not None
    [view] = panel.charts[0].views.values()
    points = list(zip(*(view.tables["points"][name] for name in ("facet", "label", "y")), strict=True))
    extreme = sorted(y for facet, label, y in points if facet == "router" and label.startswith("run") and y > 400_000)
    assert len(extreme) == 3
    costs_of = [{cost.name: cost for cost in costs(breath_rows(side.windows), lambda one: one.process)} for side in sides]
    before, after = (cost["router"].longest for cost in costs_of)
    assert extreme[-1] == after > 500_000 > before
    assert (
        f"Longest breath of router: {before:,} cycles in the baseline, {after:,} in the run ({after / before:.3g} times)."
        in view.says
    )
    assert "router" in view.tables["facets"]["facet"] and len(view.tables["facets"]["facet"]) == 4
    row = next(line for line in panel.table.split("<tr>") if ">router<" in line)
    residuals = [fits(breath_rows(side.windows), lambda one: one.process)["router"].residual for side in sides]
    assert residuals[1] > 20 * residuals[0]
    for cell in (f"{before:,}", f"{after:,}", *(figure(residual, 4) for residual in residuals)):
        assert f"<td>{cell}</td>" in row


def test_processes_of_other_names_are_taken_together(tmp_path) -> None:
    before, after = (
        kept(rings(tmp_path / "a", p1=Work(breaths=300), p2=Work(breaths=200))),
        kept(rings(tmp_path / "b", q=Work(slope=90, breaths=300))),
    )
    panel = breath_panel(before, after)
    assert panel is not None
    [view] = panel.charts[0].views.values()
    assert view.tables["facets"]["facet"] == [TOGETHER]
    assert view.tables["facets"]["note"] == ["500 breaths and 300 breaths"]
    ratios = [
        sum(one.cycles for one in found) / sum(one.packets for one in found)
        for found in (costs(breath_rows(side.windows), lambda _: "x") for side in (before, after))
    ]
    assert f"({ratios[1] / ratios[0]:.3g} times)" in view.says


@pytest.mark.slow
def test_there_is_no_panel_unless_both_have_timelines(tmp_path) -> None:
    some = kept(rings(tmp_path / "a", p=Work(breaths=40)))
    fio = kept(Path(__file__).parents[1] / "data" / "fio" / "randrw")
    assert breath_panel(some, fio) is None and breath_panel(fio, some) is None
