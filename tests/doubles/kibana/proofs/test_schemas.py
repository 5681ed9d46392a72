"""The schemas of saved objects: good ones have no problem, and each mistake has one of its own."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import pytest

from tests.doubles.kibana.proofs.asking import dashboard, data_view, everything, lens, vega
from tests.doubles.kibana.schemas import problems

pytestmark = [pytest.mark.contract, pytest.mark.slow]
Json = Any


def test_good_objects_have_no_problems() -> None:
    for line in everything():
        assert problems(line) == []
    formats = {"latency.p99": {"id": "duration", "params": {"inputFormat": "nanoseconds"}}}
    assert problems(data_view(name="runs", fieldFormatMap=json.dumps(formats), allowNoIndex=True)) == []


def by_value() -> Json:
    line = dashboard("cluster")
    text = {"type": "markdown", "params": {"markdown": "hello"}, "data": {"aggs": [], "searchSource": {}}}
    panel = {
        "type": "visualization", "gridData": {"x": 0, "y": 0, "w": 48, "h": 3, "i": "links"}, "panelIndex": "links",
        "embeddableConfig": {"savedVis": text},
    }  # fmt: skip
    line["attributes"]["panelsJSON"] = json.dumps([panel])
    return line


def test_panels_by_value_need_no_reference() -> None:
    assert problems(by_value()) == []


def in_text(name: str, change: Callable[[Json], Any]) -> Callable[[Json], None]:
    """Return a change of what a text of JSON among the attributes holds."""

    def changed(line: Json) -> None:
        place = line["attributes"]
        *outer, last = name.split(".")
        for step in outer:
            place = place[step]
        value = json.loads(place[last])
        change(value)
        place[last] = json.dumps(value)

    return changed


def set_at(*path: Any, value: Json) -> Callable[[Json], None]:
    """Return a change of one place in an object."""

    def changed(line: Json) -> None:
        for step in path[:-1]:
            line = line[step]
        line[path[-1]] = value

    return changed


def gone(*path: Any) -> Callable[[Json], None]:
    def changed(line: Json) -> None:
        for step in path[:-1]:
            line = line[step]
        del line[path[-1]]

    return changed


BOARD = dashboard("cluster", lens("worst"), vega("surface"))
LAYERS = ("attributes", "state", "datasourceStates", "formBased", "layers")


@pytest.mark.parametrize(
    ("line", "change", "told"),
    [
        (BOARD, set_at("type", value="canvas"), "there is no schema of type canvas"),
        (BOARD, set_at("id", value="Two Words"), "'Two Words' is no stable id"),
        (BOARD, set_at("colour", value=1), "colour is no word of a saved object"),
        (BOARD, gone("typeMigrationVersion"), "without typeMigrationVersion all migrations would run"),
        (BOARD, set_at("typeMigrationVersion", value="10.3.0"), "dashboard 10.3.0 is newer than what every Kibana knows (10.2.0)"),
        (BOARD, set_at("attributes", "colour", value="red"), "[attributes.colour]: definition for this key is missing"),
        (BOARD, set_at("attributes", "panelsJSON", value=[]), "[attributes.panelsJSON]: expected value of type [str] but got [list]"),
        (BOARD, set_at("attributes", "refreshInterval", "pause", value=0), "[attributes.refreshInterval.pause]: expected value of type [bool]"),
        (BOARD, set_at("attributes", "refreshInterval", "value", value=True), "[attributes.refreshInterval.value]: expected value of type [int]"),
        (BOARD, gone("attributes", "title"), "[attributes.title]: expected value of type [string]"),
        (BOARD, gone("attributes", "optionsJSON"), "the attribute optionsJSON is missing"),
        (BOARD, set_at("attributes", "panelsJSON", value="[{]"), "panelsJSON is not JSON"),
        (BOARD, set_at("attributes", "optionsJSON", value='{"useMargins": 1}'), "optionsJSON holds other than true and false"),
        (BOARD, set_at("attributes", "kibanaSavedObjectMeta", "searchSourceJSON", value="{}"), "searchSourceJSON holds a query"),
        (BOARD, gone("attributes", "timeTo"), "timeRestore without timeFrom, timeTo and refreshInterval"),
        (BOARD, in_text("panelsJSON", set_at(0, "gridData", "x", value=40)), "panel worst leaves the grid of 48 columns"),
        (BOARD, in_text("panelsJSON", set_at(0, "gridData", "i", value="other")), "gridData of panel worst is x, y, w, h and i"),
        (BOARD, in_text("panelsJSON", set_at(0, "panelRefName", value="panel_1")), "panelRefName of panel worst is not panel_worst"),
        (BOARD, in_text("panelsJSON", set_at(0, "type", value="visualization")), "panel worst is a visualization, its reference a lens"),
        (BOARD, in_text("panelsJSON", gone(0, "panelRefName")), "panel worst holds no attributes of Lens"),
        (BOARD, in_text("panelsJSON", set_at(0, "colour", value=1)), "panel worst has not the words of a panel"),
        (BOARD, in_text("panelsJSON", lambda panels: panels.append(panels[0])), "two panels have the same panelIndex"),
        (BOARD, in_text("panelsJSON", lambda panels: panels.pop(0)), "nothing uses the reference worst:panel_worst"),
        (BOARD, lambda line: line["references"].pop(0), "panel worst has no reference worst:panel_worst"),
        (BOARD, lambda line: line["references"].pop(), "control run has no reference controlGroup_run:optionsListDataView"),
        (BOARD, lambda line: line["references"].append(line["references"][0]), "two references are called worst:panel_worst"),
        (BOARD, set_at("references", 0, "id", value=""), "a reference is a type, an id and a name"),
        (BOARD, in_text("controlGroupInput.panelsJSON", set_at("run", "explicitInput", "id", value="x")), "explicitInput of control run needs"),
        (BOARD, in_text("controlGroupInput.panelsJSON", set_at("run", "type", value="slider")), "control run is no options list"),
        (by_value(), in_text("panelsJSON", gone(0, "embeddableConfig", "savedVis")), "panel links holds no savedVis"),
        (by_value(), in_text("panelsJSON", set_at(0, "type", value="map")), "panel links of type map refers to nothing"),
        (vega("a"), set_at("attributes", "visState", value="{"), "visState is not JSON"),
        (vega("a"), in_text("visState", gone("params")), "visState needs title, type and params"),
        (vega("a"), in_text("visState", set_at("params", "spec", value="{data: []}")), "the Vega spec is not JSON"),
        (vega("a"), in_text("visState", set_at("params", "spec", value="{}")), "the Vega spec has no $schema, which Kibana demands"),
        (vega("a"), in_text("visState", gone("aggs")), "a Vega visState has an empty list aggs"),
        (vega("a"), set_at("references", value=[{"type": "index-pattern", "id": "r", "name": "x"}]), "nothing uses the reference x"),
        (lens("a"), gone("attributes", "state", "filters"), "state.filters is missing"),
        (lens("a"), set_at(*LAYERS, value={}), "there is no layer"),
        (lens("a"), set_at("references", value=[]), "there is no reference indexpattern-datasource-layer-one"),
        (lens("a"), lambda line: line["references"].append({"type": "tag", "id": "t", "name": "x"}), "nothing uses the reference x"),
        (lens("a"), set_at(*LAYERS, "one", "columnOrder", value=["a", "b"]), "columnOrder of layer one is not its columns"),
        (lens("a"), gone(*LAYERS, "one", "columns", "a", "dataType"), "column a of layer one lacks dataType"),
        (lens("a"), set_at("attributes", "state", "visualization", "layerId", value="two"), "the visualization does not show layer one"),
        (data_view(), set_at("attributes", "fieldFormatMap", value="x"), "fieldFormatMap is not JSON"),
        (data_view(), set_at("attributes", "fieldFormatMap", value='{"a": {}}'), "the format of a has no id"),
        (data_view(), gone("attributes", "title"), "[attributes.title]: expected value of type [string]"),
        (data_view(), set_at("references", value=[{"type": "lens", "id": "r", "name": "x"}]), "a data view refers to nothing"),
    ],
)  # fmt: skip
def test_each_mistake_is_found(line: Json, change: Callable[[Json], Any], told: str) -> None:
    assert problems(line) == []
    bad = copy.deepcopy(line)
    change(bad)
    assert any(text.startswith(told) for text in problems(bad)), problems(bad)
