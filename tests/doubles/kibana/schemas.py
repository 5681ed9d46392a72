"""What saved objects must be like: `problems(line)` of a line of an import file, decoded.

Two depths. `shape_problems` is what Kibana itself refuses when it stores an object: attributes that the type does not have or that
are of the wrong kind (shapes.py). `problems` is all that the facts sheet says of content that Kibana stores without looking, and
stumbles over when it is opened: texts that must parse, panels and their references one to one, a grid of 48 columns, layers and
columns of Lens, Vega in a visualization.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tests.doubles.kibana.shapes import SHAPES, shape_problems
from tests.doubles.kibana.state import KNOWN

Json = Any
Found = Iterator[str]
VERSION = re.compile(r"\d+\.\d+\.\d+")
COLUMNS = 48
LINE = {
    "id",
    "type",
    "attributes",
    "references",
    "coreMigrationVersion",
    "typeMigrationVersion",
    "managed",
    "created_at",
    "updated_at",
}
# Attributes that must be there for an object to work, whether or not Kibana asks for them.
NEEDED = {
    "dashboard": ("title", "panelsJSON", "optionsJSON", "kibanaSavedObjectMeta"),
    "visualization": ("title", "visState", "uiStateJSON", "kibanaSavedObjectMeta"),
    "lens": ("title", "visualizationType", "state"),
    "links": ("title", "links"),
    "index-pattern": ("title",),
}


def problems(line: Json) -> list[str]:
    """Return everything that is wrong with an object, in words; an empty list for a good one."""
    found = [*shape_problems(line), *_frame(line)]
    if not found:
        found = [*_references(line), *DEEP[line["type"]](line)]
    return found


def _frame(line: Json) -> Found:
    kind = line["type"]
    if kind not in SHAPES:
        yield f"there is no schema of type {kind}"
        return
    for name in set(line) - LINE:
        yield f"{name} is no word of a saved object"
    if not re.fullmatch(r"[a-z0-9][a-z0-9._-]*", str(line.get("id", ""))):
        yield f"{line.get('id')!r} is no stable id"
    for name in ("coreMigrationVersion", "typeMigrationVersion"):
        if not VERSION.fullmatch(str(line.get(name, ""))):
            yield f"without {name} all migrations would run"
    if _numbers(line.get("typeMigrationVersion", "")) > _numbers(KNOWN[kind]):
        yield f"{kind} {line['typeMigrationVersion']} is newer than what every Kibana knows ({KNOWN[kind]})"
    for name in NEEDED[kind]:
        if name not in line["attributes"]:
            yield f"the attribute {name} is missing"


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())


def _references(line: Json) -> Found:
    names = [one.get("name") for one in line["references"]]
    for one in line["references"]:
        if set(one) != {"type", "id", "name"} or not all(isinstance(value, str) and value for value in one.values()):
            yield f"a reference is a type, an id and a name: {one}"
    for name in {name for name in names if names.count(name) > 1}:
        yield f"two references are called {name}"


def _parsed(text: str, what: str, bad: list[str]) -> Json:
    """Return the value of a text of JSON, None (and a problem) where it is none."""
    try:
        return json.loads(text)
    except ValueError as error:
        bad.append(f"{what} is not JSON: {error}")
        return None


def _search(line: Json) -> Found:
    bad: list[str] = []
    source = _parsed(line["attributes"]["kibanaSavedObjectMeta"].get("searchSourceJSON", ""), "searchSourceJSON", bad)
    yield from bad
    if source is not None:
        if set(source.get("query", {})) != {"query", "language"} or not isinstance(source.get("filter"), list):
            yield "searchSourceJSON holds a query (query, language) and a list filter"


# ---- dashboards ------------------------------------------------------------------------------------------------------


def _dashboard(line: Json) -> Found:
    attributes, bad = line["attributes"], []  # type: ignore[var-annotated]
    yield from _search(line)
    panels = _parsed(attributes["panelsJSON"], "panelsJSON", bad)
    options = _parsed(attributes["optionsJSON"], "optionsJSON", bad)
    group = attributes.get("controlGroupInput", {})
    controls = _parsed(group.get("panelsJSON", "{}"), "controlGroupInput.panelsJSON", bad)
    ignored = _parsed(group.get("ignoreParentSettingsJSON", "{}"), "ignoreParentSettingsJSON", bad)
    yield from bad
    if bad:
        return
    for name, settings in (("optionsJSON", options), ("ignoreParentSettingsJSON", ignored)):
        if not all(isinstance(value, bool) for value in settings.values()):
            yield f"{name} holds other than true and false"
    if attributes.get("timeRestore") and not {"timeFrom", "timeTo", "refreshInterval"} <= set(attributes):
        yield "timeRestore without timeFrom, timeTo and refreshInterval"
    used: set[str] = set()
    indices = [panel.get("panelIndex") for panel in panels]
    if len(set(indices)) != len(indices):
        yield "two panels have the same panelIndex"
    for panel in panels:
        yield from _panel(panel, line, used)
    for name, control in controls.items():
        yield from _control(name, control, line, used)
    for one in line["references"]:
        if one["name"] not in used:
            yield f"nothing uses the reference {one['name']}"


def _panel(panel: Json, line: Json, used: set[str]) -> Found:
    index = panel.get("panelIndex")
    extra = set(panel) - {"type", "gridData", "panelIndex", "embeddableConfig", "panelRefName", "title", "version"}
    if extra or not {"type", "gridData", "panelIndex", "embeddableConfig"} <= set(panel):
        yield f"panel {index} has not the words of a panel"
        return
    grid = panel["gridData"]
    if set(grid) != {"x", "y", "w", "h", "i"} or grid["i"] != index:
        yield f"gridData of panel {index} is x, y, w, h and i, its panelIndex"
    elif min(grid["x"], grid["y"]) < 0 or min(grid["w"], grid["h"]) < 1 or grid["x"] + grid["w"] > COLUMNS:
        yield f"panel {index} leaves the grid of {COLUMNS} columns"
    by_name = {one["name"]: one for one in line["references"]}
    if "panelRefName" in panel:
        name = f"{index}:{panel['panelRefName']}"
        used.add(name)
        if panel["panelRefName"] != f"panel_{index}":
            yield f"panelRefName of panel {index} is not panel_{index}"
        if name not in by_name:
            yield f"panel {index} has no reference {name}"
        elif by_name[name]["type"] != panel["type"]:
            yield f"panel {index} is a {panel['type']}, its reference a {by_name[name]['type']}"
        return
    used |= {name for name in by_name if name.startswith(f"{index}:") and name != f"{index}:panel_{index}"}
    config = panel["embeddableConfig"]
    if panel["type"] == "visualization":
        saved = config.get("savedVis", {})
        if not {"type", "params", "data"} <= set(saved) or set(saved["data"]) != {"aggs", "searchSource"}:
            yield f"panel {index} holds no savedVis with type, params and data"
    elif panel["type"] == "lens":
        if not {"visualizationType", "state"} <= set(config.get("attributes", {})):
            yield f"panel {index} holds no attributes of Lens"
    else:
        yield f"panel {index} of type {panel['type']} refers to nothing"


def _control(name: str, control: Json, line: Json, used: set[str]) -> Found:
    wanted = f"controlGroup_{name}:optionsListDataView"
    used.add(wanted)
    given = control.get("explicitInput", {})
    if control.get("type") != "optionsListControl" or not {"order", "width", "grow"} <= set(control):
        yield f"control {name} is no options list"
    if given.get("id") != name or not given.get("fieldName") or not given.get("title"):
        yield f"explicitInput of control {name} needs its id, fieldName and title"
    if not any(one["name"] == wanted and one["type"] == "index-pattern" for one in line["references"]):
        yield f"control {name} has no reference {wanted} to a data view"


# ---- panels and data views -------------------------------------------------------------------------------------------


def _visualization(line: Json) -> Found:
    bad: list[str] = []
    yield from _search(line)
    state = _parsed(line["attributes"]["visState"], "visState", bad)
    _parsed(line["attributes"]["uiStateJSON"], "uiStateJSON", bad)
    if state is not None and not {"title", "type", "params"} <= set(state):
        bad.append("visState needs title, type and params")
    elif state is not None and state["type"] == "vega":
        spec = _parsed(state["params"].get("spec", ""), "the Vega spec", bad)
        if spec is not None and not str(spec.get("$schema", "")).startswith("https://vega.github.io/schema/vega"):
            bad.append("the Vega spec has no $schema, which Kibana demands")
        if state.get("aggs") != []:
            bad.append("a Vega visState has an empty list aggs")
    yield from bad
    for one in line["references"]:
        yield f"nothing uses the reference {one['name']}"


def _lens(line: Json) -> Found:
    state = line["attributes"]["state"]
    for name in ("datasourceStates", "visualization", "query", "filters"):
        if name not in state:
            yield f"state.{name} is missing"
            return
    layers = (state["datasourceStates"].get("formBased") or {}).get("layers") or {}
    if not layers:
        yield "there is no layer in state.datasourceStates.formBased"
    wanted = {f"indexpattern-datasource-layer-{name}" for name in layers}
    named = {one["name"] for one in line["references"] if one["type"] == "index-pattern"}
    for name in sorted(wanted - named):
        yield f"there is no reference {name} to a data view"
    for name in sorted({one["name"] for one in line["references"]} - wanted):
        yield f"nothing uses the reference {name}"
    shown = json.dumps(state["visualization"])
    for name, layer in layers.items():
        if sorted(layer.get("columnOrder", [])) != sorted(layer.get("columns", {})):
            yield f"columnOrder of layer {name} is not its columns"
        if f'"{name}"' not in shown:
            yield f"the visualization does not show layer {name}"
        for key, column in layer.get("columns", {}).items():
            gone = {"operationType", "dataType", "isBucketed", "label"} - set(column)
            if gone:
                yield f"column {key} of layer {name} lacks {', '.join(sorted(gone))}"


def _data_view(line: Json) -> Found:
    bad: list[str] = []
    attributes = line["attributes"]
    for name in ("fields", "fieldAttrs", "fieldFormatMap", "runtimeFieldMap", "sourceFilters", "typeMeta"):
        if name in attributes:
            _parsed(attributes[name], name, bad)
    formats = _parsed(attributes.get("fieldFormatMap", "{}"), "fieldFormatMap", [])
    bad += [f"the format of {field} has no id" for field, told in (formats or {}).items() if not told.get("id")]
    if line["references"]:
        bad.append("a data view refers to nothing")
    yield from bad


def _links(line: Json) -> Found:
    """Kibana's schema of links to dashboards."""
    names = {one["name"]: one["type"] for one in line["references"]}
    if line["attributes"].get("layout") not in ("horizontal", "vertical", None):
        yield "the layout of links is horizontal or vertical"
    for link in line["attributes"]["links"]:
        if set(link) - {"label"} != {"id", "order", "type", "destinationRefName", "options"} or link["type"] != "dashboardLink":
            yield f"a link to a dashboard has an id, an order, a destinationRefName and options: {link}"
        elif names.pop(link["destinationRefName"], None) != "dashboard":
            yield f"link {link['id']} has no reference to a dashboard"
        elif set(link["options"]) != {"openInNewTab", "useCurrentFilters", "useCurrentDateRange"}:
            yield f"link {link['id']}: options are openInNewTab, useCurrentFilters, useCurrentDateRange"
    for name in names:
        yield f"nothing uses the reference {name}"


DEEP: Mapping[str, Callable[[Json], Found]] = {
    "dashboard": _dashboard,
    "visualization": _visualization,
    "lens": _lens,
    "links": _links,
    "index-pattern": _data_view,
}
