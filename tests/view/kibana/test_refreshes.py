"""A panel after a refresh is a fresh panel: as large, with the same heading, axes, legends and marks. Findings E1, E2.

Kibana makes a new view at each refresh and sets the signals of the top level of the view before, where the spec asks for it.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from tests.browsing import missing
from tests.effort import figure
from tests.vega.drawn import DARK, LIGHT, drawing, installed
from tests.view.kibana.conftest import EXAMPLE, ROOT, Served, loaded
from tools.kibana.asked import Shown, chosen
from tools.kibana.compile import compiled
from tools.kibana.config import dashboards
from tools.kibana.filling import CATEGORY, NOTHING, TRY

HOUR = 3_600_000
SIZES = ((1322, 269), (920, 269))  # what Kibana gives a panel of a whole row at 1440 and 1024 px
PANELS = sorted(
    {f"{dashboard.id}-{panel.id}" for dashboard in dashboards() for panel in dashboard.panels if panel.kind == "vega"}
)
CHOOSING = [name for name in PANELS if name.endswith(("percentiles", "-runs", "heatmap", "lags", "-load", "-maps", "-gap"))]
CHOICES: dict[str, Any] = {"percentile": 99.9, "sla_ms": 20, "shading": "linear", "axis": "linear", "number": "p50", "drop": 1}


@dataclass(frozen=True)
class Panel:
    """A panel on its data: `views` are what a dashboard shows of it, by name."""

    served: Served
    spec: dict[str, Any]
    views: dict[str, Shown]

    def answered(self, name: str) -> dict[str, Any]:
        return self.served.answered(self.spec, self.views[name])


@pytest.fixture(scope="module")
def two_runs(server, tmp_path_factory) -> Served:
    """The example, and a run of three kinds a minute later."""
    folder = tmp_path_factory.mktemp("refreshes")
    subprocess.run([sys.executable, str(ROOT / "examples" / "coordinated-omission" / "simulate.py"), str(folder)], check=True)
    loads = {"stall": (str(folder / "fixed.csv"), "--rate", "1000"), "nightly": (str(EXAMPLE),)}
    return loaded(server, folder, f"refreshes-{uuid.uuid4().hex[:8]}", loads)


@pytest.fixture(scope="module", params=[pytest.param(5, marks=pytest.mark.slow), 6])
def majors(request, browser) -> Iterator[dict[str, Any]]:
    """Pages with a light and a dark theme."""
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    with drawing(browser, request.param, LIGHT) as light, drawing(browser, request.param, DARK) as dark:
        yield {"light": light, "dark": dark}


def panel_of(served: Served, identity: str) -> Panel:
    """Return a panel, and views of the run `nightly`, of parts of it, and of the run `stall`."""
    [saved] = [saved for saved in compiled(served.prefix) if saved.id == f"{served.prefix}-{identity}"]
    spec = json.loads(json.dumps(saved.attributes["visState"]["params"]["spec"]))
    span = {"first": {"min": {"field": "@timestamp"}}, "last": {"max": {"field": "@timestamp"}}}
    asked = {"size": 0, "aggs": {"runs": {"terms": {"field": "run.id"}, "aggs": span}}}
    buckets = served.search(f"{served.prefix}-rollups-*", asked)["aggregations"]["runs"]["buckets"]
    ends = {bucket["key"]: (int(bucket["first"]["value"]), int(bucket["last"]["value"])) for bucket in buckets}
    [nightly] = [run for run in ends if run.startswith("nightly")]
    (first, last), run, stall = ends[nightly], chosen("run.id", [nightly]), chosen("run.id", ["stall"])
    whole = Shown(first - 20_000, last + 20_000, (run,))
    other = Shown(ends["stall"][0] - 20_000, ends["stall"][1] + 20_000, (stall,))
    views = {
        "whole": whole,
        "nothing": Shown(0, HOUR, (run,)),
        "wide": Shown(first - 30 * HOUR, last + 30 * HOUR, (run,)),
        "narrow": Shown(first + 20_000, first + 40_000, (run,)),
        "host": replace(whole, filters=(run, chosen("host.name", ["ceph-b"]))),
        "run": other,
        "kind": replace(other, filters=(stall, chosen("latency.kind", ["service"]))),
    }
    return Panel(served, spec, views)


ACTIONS = {
    "nothing then data": ("nothing", "whole"),
    "data then nothing": ("whole", "nothing"),
    "zoom out": ("whole", "wide"),
    "zoom in": ("whole", "narrow"),
    "a host": ("whole", "host"),
    "another run": ("whole", "run"),
    "another kind": ("run", "kind"),
}


def refreshed_is_fresh(page: Any, panel: Panel, action: str, size: tuple[int, int]) -> None:
    """Draw before, then after with what Kibana keeps, then after afresh with the same inputs; AssertionError where they differ."""
    before, after = ACTIONS[action]
    width, height = size
    inputs = {signal["name"]: signal["value"] for signal in panel.spec["signals"]}
    choices = {name: value for name, value in CHOICES.items() if name in inputs}
    restored = panel.spec["config"]["kibana"].get("restoreSignalValuesOnRefresh", False)
    page.draw(panel.answered(before), width=width, height=height)
    page.choose(**choices)
    page.draw(panel.answered(after), width=width, height=height, restored=page.signals() if restored else None)
    second = page.picture()
    preset = [{**signal, "value": choices.get(signal["name"], signal["value"])} for signal in panel.spec["signals"]]
    page.draw({**panel.answered(after), "signals": preset}, width=width, height=height)
    fresh = page.picture()
    differing = {key: [second[key], fresh[key]] for key in fresh if key != "seen" and second[key] != fresh[key]}
    assert not differing, (action, size)
    assert sorted(set(second["seen"]) ^ set(fresh["seen"]))[:6] == [], (action, size)
    assert fresh["width"] > 0.6 * width and fresh["height"] > 0.3 * height, (action, size, fresh)
    assert fresh["heading"]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("identity", PANELS)
def test_e1_e2_a_panel_after_a_refresh_is_a_fresh_one(majors, two_runs, identity) -> None:
    """Some panels once; each with every action, theme and size in soak."""
    panel, number = panel_of(two_runs, identity), PANELS.index(identity)
    names = list(ACTIONS)
    some = [names[(number + turn) % len(names)] for turn in range(figure(1, 1, len(names)))]
    for turn, action in enumerate(some):
        for place in range(figure(1, 1, 4)):
            theme = ("light", "dark")[(number + turn + place) % 2]
            refreshed_is_fresh(majors[theme], panel, action, SIZES[(number + turn + place // 2) % 2])


@pytest.mark.cases(6)
@pytest.mark.slow
@pytest.mark.parametrize("identity", CHOOSING)
def test_k4_k5_a_choice_is_one_picture_however_kibana_sets_it(majors, two_runs, identity) -> None:
    """Made by hand, put back before the first run of a view (as today), or after it (as in Kibana's coming sandbox)."""
    page, panel = majors["light"], panel_of(two_runs, identity)
    spec = panel.answered("run" if "omission" in identity else "whole")
    names = {signal["name"] for signal in spec["signals"]}
    choices = {name: value for name, value in CHOICES.items() if name in names}
    size = {"width": SIZES[0][0], "height": SIZES[0][1]}
    page.draw(spec, **size)
    page.choose(**choices)
    by_hand, signals = page.picture(), page.signals()
    for late in (False, True):
        page.draw(spec, **size, restored=signals, late=late)
        assert page.picture() == by_hand, late
    preset = [{**signal, "value": choices.get(signal["name"], signal["value"])} for signal in spec["signals"]]
    page.draw({**spec, "signals": preset}, **size)
    assert page.picture() == by_hand


@pytest.mark.cases(11)
@pytest.mark.slow
@pytest.mark.parametrize("identity", PANELS)
def test_k4_a_panel_without_data_has_no_axis_no_legend_and_moves_nothing(majors, two_runs, identity) -> None:
    page, panel = majors["light"], panel_of(two_runs, identity)
    page.draw(panel.answered("nothing"), width=1000, height=300)
    place = page.page.locator("#place canvas").bounding_box()
    page.page.mouse.move(place["x"] + 300, place["y"] + 180)
    page.page.mouse.down()
    page.page.mouse.move(place["x"] + 500, place["y"] + 180, steps=3)
    page.page.mouse.up()
    assert page.called() == []
    if identity.endswith("all-runs"):
        return  # whatever time range is chosen
    assert inked_from(page, 24) == 0, "the canvas itself: an item may be seen though the group that holds it is not"
    said = page.signal("heading")
    assert said.startswith("no ") and said.endswith(f": {TRY}")


def inked_from(page: Any, top: int) -> int:
    """Return how many dots of the picture from a height on are not empty ground."""
    return page.page.evaluate(
        """(top) => {
            const canvas = document.querySelector('#place canvas');
            const dots = canvas.getContext('2d').getImageData(0, top, canvas.width, canvas.height - top).data;
            let count = 0;
            for (let at = 3; at < dots.length; at += 4) count += dots[at] > 0;
            return count;
        }""",
        top,
    )


@pytest.mark.cases(3)
@pytest.mark.slow
@pytest.mark.parametrize("width", [560, 620, 700, 1000])
def test_k4_half_a_row_has_room_for_its_legend(majors, two_runs, width) -> None:
    """On a screen of 1,100 to 1,440 px."""
    page, spec = majors["light"], panel_of(two_runs, "cluster-latency-distribution").answered("whole")
    for more in ([], ["engine.got_monotonic_time", "flush"]):
        [answer] = [one["values"] for one in spec["data"] if one["name"] == "answer"]
        operations = answer["aggregations"]["picked"]["runs"]["buckets"][0]["kinds"]["buckets"][0]["operations"]["buckets"]
        operations += [{**operations[0], "key": name} for name in more]
        page.draw(spec, width=width, height=300)
        seen = [json.loads(one) for one in page.picture()["seen"]]
        legend, titles = ([item for item in seen if item[0] == role] for role in ("legend-label", "title-text"))
        assert len(legend) == 2 + len(more) and {"read", "write"} <= {item[-1] for item in legend}
        assert all(0 <= item[2] and item[3] <= width and item[8] == 1 for item in legend)
        assert all(title[5] <= item[4] for title in titles for item in legend), (titles, legend)
        edge = page.page.evaluate("() => view.padding().top")
        assert all(edge + item[4] >= 0 for item in [*titles, *legend]), "nothing is cut off at the top"


@pytest.mark.slow
@pytest.mark.parametrize(
    "identity",
    [
        "cluster-latency-percentiles",
        "compare-runs-runs",
        pytest.param("cluster-latency-heatmap", marks=pytest.mark.soak),  # its thousands of items take 90 s
    ],
)
def test_k4_an_sla_moves_no_heading(majors, two_runs, identity) -> None:
    page, spec = majors["light"], panel_of(two_runs, identity).answered("whole")
    page.draw(spec)
    places = set()
    for sla in (0, 20, 123_456, 0.001):
        page.choose(sla_ms=sla)
        [heading] = [item for one in page.picture()["seen"] if page.signal("heading")[:20] in (item := json.loads(one))[-1]]
        places.add(tuple(heading[2:6]))
    assert len(places) == 1, places


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("identity", ["cluster-latency-heatmap", "cluster-latency-percentiles"])
def test_e1_a_refresh_during_a_drag_ends_the_drag(majors, two_runs, identity) -> None:
    page, panel = majors["light"], panel_of(two_runs, identity)
    page.draw(panel.answered("whole"), width=1000, height=300)
    fresh = page.picture()
    place = page.page.locator("#place canvas").bounding_box()
    page.page.mouse.move(place["x"] + 300, place["y"] + 180)
    page.page.mouse.down()
    page.page.mouse.move(place["x"] + 500, place["y"] + 180, steps=3)
    assert page.signal("drag") is not None
    page.draw(panel.answered("whole"), width=1000, height=300, restored=page.signals())
    page.page.mouse.up()
    assert page.called() == []
    assert page.picture() == fresh


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["cluster-latency-heatmap", "compare-runs-runs"])
def test_a_panel_that_is_resized_is_a_fresh_one_of_that_size(majors, two_runs, identity) -> None:
    page, panel = majors["light"], panel_of(two_runs, identity)
    page.draw(panel.answered("whole"), width=1322, height=269)
    page.resize(920, 400)
    resized = page.picture()
    page.draw(panel.answered("whole"), width=920, height=400)
    assert resized == page.picture()


def test_at_the_top_level_are_inputs_and_data_alone() -> None:
    for saved in compiled():
        if saved.type == "visualization":
            spec = saved.attributes["visState"]["params"]["spec"]
            assert all("bind" in signal for signal in spec["signals"]), saved.id
            assert spec["config"]["kibana"].get("restoreSignalValuesOnRefresh", False) == bool(spec["signals"])
            assert [mark["type"] for mark in spec["marks"]] == ["group"]
            assert not spec.keys() & {"scales", "axes", "legends", "title", "layout"}
            assert all(mark.get("clip") for mark in drawn(spec["marks"])), saved.id


def drawn(marks: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Yield all marks but groups and texts, at any depth."""
    for mark in marks:
        if mark["type"] == "group":
            yield from drawn(mark.get("marks", []))
        elif mark["type"] != "text":
            yield mark


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["cluster-latency-distribution", "coordinated-omission-curves"])
def test_e1_clipped_lines_are_seen(majors, two_runs, identity) -> None:
    """What is clipped by a group without a size is in the scene, but not in the picture."""
    page, panel = majors["light"], panel_of(two_runs, identity)
    page.draw(panel.answered("run" if "omission" in identity else "whole"))
    shades = [[int(colour[at : at + 2], 16) for at in (1, 3, 5)] for colour in CATEGORY]
    inked = page.page.evaluate(
        """(shades) => {
            const canvas = document.querySelector('#place canvas'), width = Math.floor(canvas.width * 0.8);
            const dots = canvas.getContext('2d').getImageData(0, 0, width, canvas.height).data;
            let count = 0;
            for (let at = 0; at < dots.length; at += 4)
                count += shades.some((shade) => shade.every((part, place) => dots[at + place] === part));
            return count;
        }""",
        shades,
    )
    assert inked > 200


@pytest.mark.slow
def test_e7_failed_shards_are_said(majors, two_runs) -> None:
    page, panel = majors["light"], panel_of(two_runs, "cluster-latency-percentiles")
    spec = panel.answered("whole")
    data = [
        {**table, "values": {**table["values"], "_shards": {"total": 3, "successful": 2, "failed": 1}}}
        if table["name"] == "answer"
        else table
        for table in spec["data"]
    ]
    page.draw({**spec, "data": data})
    assert page.signal("heading").startswith("INCOMPLETE: 1 of 3 shards failed; run nightly")
    bare = [
        {**table, "values": {"_shards": {"total": 3, "failed": 3}}} if table["name"] == "answer" else table
        for table in spec["data"]
    ]
    page.draw({**spec, "data": bare})
    assert page.signal("heading") == f"INCOMPLETE: 3 of 3 shards failed; {NOTHING}"


@pytest.mark.slow
def test_e5_axes_have_the_browsers_clock_as_lens_has(browser, two_runs) -> None:
    if not installed():
        missing("the Vega of npm (npm ci --prefix tests/vega)")
    panel = panel_of(two_runs, "cluster-latency-heatmap")
    shown = {}
    for zone in ("UTC", "Asia/Kolkata"):
        with drawing(browser, 6, zone=zone) as page:
            page.draw(panel.answered("whole"))
            axes = [json.loads(item) for item in page.picture()["seen"]]
            shown[zone] = sorted(item[-1] for item in axes if item[0] in ("axis-label", "axis-title"))
            begin = page.signal("begin")
    utc, india = shown["UTC"], shown["Asia/Kolkata"]
    assert any(text.startswith("UTC, 20") for text in utc) and any(text.startswith("UTC+0530, 20") for text in india)
    hour = datetime.fromtimestamp(begin / 1000, UTC)
    assert any(text.startswith(f"{hour:%H:}") for text in utc)
    assert any(text.startswith(f"{hour + timedelta(hours=5, minutes=30):%H:}") for text in india)


@pytest.mark.slow
@pytest.mark.parametrize("identity", ["hosts-and-threads-hosts", "cluster-latency-heatmap"])
def test_e11_more_stands_out_more_on_light_and_on_dark_ground(majors, two_runs, identity) -> None:
    page = majors["dark"]
    page.draw(panel_of(two_runs, identity).answered("whole"))
    fills = {mark["fill"] for mark in page.marks("heat")}
    drawn = sorted(tuple(float(part) for part in re.findall(r"[\d.]+", fill)) for fill in fills)
    inks = sorted(((*ink, 1.0)[:4] for ink in drawn), key=lambda ink: ink[3])  # rgb() is opaque
    for theme in (LIGHT, DARK):
        ground = [int(theme["background"][at : at + 2], 16) for at in (1, 3, 5)]
        contrasts = [ink[3] * sum(abs(value - under) for value, under in zip(ink, ground, strict=False)) for ink in inks]
        assert contrasts == sorted(contrasts) and contrasts[-1] > 2 * contrasts[0] > 0


@pytest.mark.slow
@pytest.mark.parametrize(("identity", "width_s"), [("cluster-latency-heatmap", 1), ("hosts-and-threads-hosts", 5)])
def test_e11_the_stall_of_the_example_shows(majors, two_runs, identity, width_s) -> None:
    """For 4 s one host completes nothing: windows of 10 s hid it."""
    page, panel = majors["light"], panel_of(two_runs, identity)
    stalled = replace(panel.views["whole"], filters=(*panel.views["whole"].filters, chosen("host.name", ["ceph-b"])))
    page.draw(panel.served.answered(panel.spec, stalled))
    assert f", windows of {width_s} s;" in page.signal("heading")
    held = {row["t"]: row["n"] for row in page.table("windows")}
    counts = [held.get(at, 0) for at in range(min(held), max(held) + 1, 1000 * width_s)]
    assert sum(count < sorted(counts)[len(counts) // 2] / 2 for count in counts[2:-2]) == max(1, 4 // width_s)
    page.draw(panel.answered("wide"))
    assert ", windows of 3,600 s;" in page.signal("heading") or ", windows of 10,800 s;" in page.signal("heading")


@pytest.mark.slow
def test_e11_a_run_of_which_a_part_lies_before_the_last_minutes_is_whole(majors, two_runs) -> None:
    """Nothing is left out where the stored step is asked for the end of the time range alone."""
    page, panel = majors["light"], panel_of(two_runs, "cluster-latency-heatmap")
    whole = panel.views["whole"]
    totals = set()
    for later_s in (0, 240, 400):
        page.draw(panel.served.answered(panel.spec, replace(whole, end_ms=whole.end_ms + later_s * 1000)))
        totals.add(sum(row["c"] for row in page.table("cells")))
    assert len(totals) == 1 and totals.pop() > 0
