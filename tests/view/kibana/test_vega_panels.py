"""The Vega panels: the server's answer, drawn by Vega 5 and 6 in Chromium, is what the report draws of the same run in SQLite.

Range, merged-histogram and rollup panels: equal, percentiles, too.
"""

from __future__ import annotations

import json
import math
import uuid
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from ingest.core.layout import LogLinear, fio_layout, hdr_layout
from ingest.core.quantiles import Ranked, parse_percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view import vega
from oracles.shades import by_rank
from tests.view.kibana.conftest import ROOT, loaded
from tools.kibana.asked import chosen
from tools.kibana.bins import layout_columns, snapped
from tools.kibana.compile import compiled
from tools.kibana.pictures import LAGS, SURFACE
from tools.kibana.requests import MOST_OF_RUN, PERCENTS, ranks
from tools.kibana.tables import percent_key

SECOND = 1_000_000_000
STEP = 10 * SECOND
LAYOUTS = [
    *(fio_layout(29, 1, coarseness) for coarseness in range(7)),
    fio_layout(19, 1000),
    hdr_layout(2, 0, 1000),
    hdr_layout(2, 9, 1),
    hdr_layout(1, 0, 1),
    LogLinear(64, 1200, reports="upper"),
    LogLinear(64, 1200, reports="upper", open_ended=False),
]
HALF = {"stored": ("stored", SECOND), "overview": ("overview", STEP)}


def answer(served, shown=None, **words):
    with open_store(served.sqlite) as store:
        return store.answer(Question(**{"step": STEP, **words}))


def ranked(found, percent: float) -> dict[tuple[int, tuple[str, ...]], int]:
    """Return by window and group the value at the nearest rank of a percentile."""
    [percentile] = parse_percentiles(f"{percent:g}")
    values = {}
    for part in found.parts:
        of_part = Ranked(part)
        told = of_part.values(np.arange(len(part)), percentile.ranks(of_part.samples)).tolist()
        for start, code, value in zip(part.start_ns.tolist(), part.series.tolist(), told):
            values[start // 1_000_000, part.table[code]] = value
    return values


def columns(table: dict[str, list], *names: str) -> list[tuple]:
    return sorted(zip(*(table[name] for name in names)))


def picked(rows: list[dict], *names: str) -> list[tuple]:
    return sorted(tuple(row[name] for name in names) for row in rows)


@pytest.mark.cases(8)
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=str)
def test_bins_in_a_panel_are_those_of_the_layout(page, layout) -> None:
    """Whatever lies within 0.8 % of what a bin reports is snapped to it, if its bin is not finer than that."""
    reported = layout.keys[layout.keys < 2**50]
    places = np.unique(np.linspace(0, len(reported) - 1, 900).astype(int))
    values = reported[places]
    wide = (np.diff(layout.edges)[: len(reported)] > 0.017 * reported)[places]
    factors = (1.0, 1.007, 0.995)
    rows = [{"layout": str(layout), "h": value * factor} for factor in factors for value in values.tolist()]
    data = [{"name": "rows", "values": rows, "transform": [*layout_columns("datum.layout"), *snapped("v", "datum.h")]}]
    page.draw({"$schema": "https://vega.github.io/schema/vega/v5.json", "data": data})
    found = np.array([row["v"] for row in page.table("rows")]).reshape(len(factors), -1)
    assert np.isin(found, layout.keys).all()
    assert (found[0] == values).all()
    assert (found[1:, wide] == values[wide]).all()
    assert wide.any()


@pytest.mark.slow
def test_k1_of_any_number_of_samples_one_percentile_that_is_asked_has_the_nearest_rank(page) -> None:
    """The server takes the rank floor(p / 100 * n + 0.5) in double precision, but at least the first."""
    rng = np.random.default_rng(48)
    many = [*range(1, 400), *np.exp(rng.uniform(np.log(400), np.log(MOST_OF_RUN), 1500)).astype(np.int64).tolist(), MOST_OF_RUN]
    percents = sorted({*PERCENTS, *SURFACE, *LAGS})
    rows = [{"p": percent, "n": n} for percent in percents for n in many]
    key = {"type": "formula", "as": "key", "expr": percent_key("datum.p")}
    page.draw(
        {"$schema": "https://vega.github.io/schema/vega/v5.json", "data": [{"name": "rows", "values": rows, "transform": [key]}]}
    )
    asked = {percent: {repr(one) for one in ranks([percent], MOST_OF_RUN)["percentiles"]["percents"]} for percent in percents}
    for row in page.table("rows"):
        assert row["key"] in asked[row["p"]], row
        nearest = math.ceil(Fraction(str(row["p"])) * row["n"] / 100)
        assert max(1, int(float(row["key"]) / 100 * row["n"] + 0.5)) == nearest, row


@pytest.mark.slow
def test_k1_of_more_samples_than_reckoned_with_the_heading_says_what_the_rank_is(page, served) -> None:
    spec = served.answered(served.spec("percentiles"))
    page.draw(spec)
    assert page.signal("heading").endswith("at the nearest rank")
    told = [row for row in page.table("points") if row["label"] != "max"]
    [answer_] = [one for one in spec["data"] if one["name"] == "answer"]
    [kind] = answer_["values"]["aggregations"]["picked"]["runs"]["buckets"][0]["kinds"]["buckets"]
    for window in kind["over_time"]["buckets"]:
        window["n"]["value"] = window["n"]["value"] * 1_000_000_000 + 1
    page.draw(spec)
    assert page.signal("heading").endswith("at the nearest rank, or one below it")
    assert {(row["t"], row["label"]) for row in told} <= {
        (row["t"], row["label"]) for row in page.table("points") if row["v"] > 0
    }


@pytest.mark.slow
@pytest.mark.parametrize(("level", "step"), HALF.values(), ids=HALF)
def test_the_heat_map(page, served, level, step) -> None:
    page.draw(served.answered(served.spec("heatmap", scope="host", level=level)))
    found = answer(served, step=step)
    names = ("t", "t2", "lower", "upper", "c", "n", "cum")
    report = vega.cells(found)
    assert picked(page.table("cells"), *names) == columns(report, *names)
    expected = by_rank(report["c"])
    assert all(row["shade"] == pytest.approx(expected[row["c"]]) for row in page.table("shown"))
    assert len(page.marks("heat")) == len(report["c"])
    for row in page.table("points"):
        assert row["v"] == ranked(found, 99)[row["t"], ()]


@pytest.mark.slow
def test_the_marks_of_the_heat_map_are_those_of_the_report(page, served) -> None:
    spec = served.answered(served.spec("heatmap"))
    tables = {"cells": vega.cells(answer(served)), "gaps": vega.gaps(answer(served))}
    rows = {name: vega.rows(table) for name, table in tables.items()}
    same = [one for one in spec["signals"] if one["name"] != "heading"] + [{"name": "heading", "value": "one and the same"}]
    page.draw({**spec, "signals": same})
    ours = {name: page.marks(name) for name in ("heat", "rows", "no_completions")}
    inside = [one for one in spec["data"] if one["name"] not in rows]
    page.draw({**spec, "signals": same, "data": [*({"name": name, "values": values} for name, values in rows.items()), *inside]})
    assert len(ours["heat"]) > 500
    for name, marks in ours.items():
        key = lambda mark: (mark["x1"], mark["y1"], mark["y2"])
        assert sorted(marks, key=key) == sorted(page.marks(name), key=key)


@pytest.mark.slow
@pytest.mark.parametrize("drop", [0.01, 1, 5])
def test_what_the_heat_map_leaves_out(page, served, drop) -> None:
    page.draw(served.answered(served.spec("heatmap")))
    every = page.table("cells")
    page.choose(drop=drop)
    kept, over = [[row for row in page.table("cells") if row["over"] == flag] for flag in (0, 1)]
    total = sum(row["c"] for row in every)
    assert sum(row["c"] for row in kept) + sum(row["c"] for row in over) == total
    top = max(row["upper"] for row in kept)
    above = sum(row["c"] for row in every if row["upper"] > top)
    row_of_top = sum(row["c"] for row in every if row["upper"] == top)
    assert above <= total * drop / 100 < above + row_of_top
    assert {row["lower"] for row in over} == {top}
    assert len(page.marks("above")) == len(over)


@pytest.mark.slow
def test_what_is_chosen_and_what_is_excluded(page, served) -> None:
    for filters, words in (
        ([chosen("host.name", ["ceph-b"])], {"where": {"host": "ceph-b"}}),
        ([chosen("host.name", ["ceph-b"], excluded=True)], {"where": {"host": "ceph-[ac]"}}),
        (
            [chosen("host.name", ["ceph-a", "ceph-c"]), chosen("operation", ["write"])],
            {"where": {"host": "ceph-[ac]", "op": "write"}},
        ),
    ):
        page.draw(served.answered(served.spec("heatmap"), replace(served.shown, filters=filters)))
        names = ("t", "lower", "c")
        assert picked(page.table("cells"), *names) == columns(vega.cells(answer(served, **words)), *names)
    page.draw(served.answered(served.spec("percentiles"), replace(served.shown, filters=[chosen("host.name", ["elsewhere"])])))
    assert page.signal("heading") == "no completions here: try another time range, run or filter"


@pytest.mark.slow
def test_a_percentile_that_cannot_be_carried_is_never_drawn(page, served) -> None:
    page.draw(served.answered(served.spec("percentiles")))
    page.choose(percentile=99.999)
    assert {row["label"] for row in page.table("points")} == {"p50", "max"}
    assert page.marks("few")
    assert all(math.isfinite(mark["x1"]) for mark in page.marks("few"))


@pytest.mark.cases(1)
@pytest.mark.slow
def test_every_compiled_panel_is_answered_and_drawn(page, served) -> None:
    """The panels as they are imported, on this site's indices: no warning of Vega, a heading, and marks where there are samples."""
    for saved in compiled(served.prefix):
        if saved.type == "visualization":
            page.draw(served.answered(json.loads(json.dumps(saved.attributes["visState"]["params"]["spec"]))))
            # Fio times no service or response, and no lags; its raw logs lie beside histogram logs and are not taken.
            empty = any(name in saved.id for name in ("coordinated-omission", "subsecond-offsets", "snabb-timeline"))
            said = "a click shows" if saved.id.endswith("all-runs") else "no " if empty else "run nightly/"
            assert page.signal("heading").startswith(said), saved.id
            drawn = {"maps": "cells", "offsets": "cells", "density": "cells", "story": "told", "windows": "told"}
            name = "told" if saved.id.endswith("all-runs") else drawn.get(saved.id.rsplit("-", 1)[-1], "points")
            assert len(page.table(name)) > 0 or empty, saved.id


@pytest.mark.slow
def test_bins_that_are_not_the_panels_are_called_approximate(page, server, served, tmp_path) -> None:
    """Ceph's octaves in rows of an eighth of one: each sample stands at the value that its bin reports."""
    polls = ROOT / "tests" / "data" / "histograms" / "ceph_perf_histogram_synthetic.ndjson"
    ceph = loaded(server, tmp_path, f"ceph{uuid.uuid4().hex[:8]}", {"ceph": (str(polls),)})
    page.draw(ceph.answered(ceph.spec("heatmap")))
    assert page.signal("heading").startswith(
        "APPROXIMATE: samples stand where their wide bins report them; run ceph, service:service"
    )
    with open_store(ceph.sqlite) as store:
        assert sum(cell["c"] for cell in page.table("cells")) == store.answer(Question(step="all")).samples
    page.draw(served.answered(served.spec("heatmap")))
    assert page.signal("heading").startswith("run nightly")
