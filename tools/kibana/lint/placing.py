"""Rules for files, references and places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

from tools.kibana.asked_lens import lens_layers
from tools.kibana.config import COLUMNS
from tools.kibana.lint.objects import FOLDER, Objects, Problem
from tools.kibana.objects import SavedObject


def file_name(objects: Objects) -> Iterator[Problem]:
    """Yield objects whose file bears another name than theirs."""
    for path, saved in objects.files.items():
        if path != f"{FOLDER}{saved.path}":
            yield saved.id, f"its file is {path}, not {FOLDER}{saved.path}"


def references(objects: Objects) -> Iterator[Problem]:
    """Yield references to what is not there, and names that no reference explains."""
    for saved in objects.files.values():
        for reference in saved.references:
            if objects.get(reference.type, reference.id) is None:
                yield saved.id, f"there is no {reference.type} {reference.id}"
        needed, given = set(_needed(saved)), {reference.name for reference in saved.references}
        for name in sorted(needed - given):
            yield saved.id, f"no reference is named {name}"
        for name in sorted(given - needed):
            yield saved.id, f"nothing uses the reference {name}"


def grid(objects: Objects) -> Iterator[Problem]:
    """Yield panels that lie outside of the grid, or on others."""
    for saved in objects.of("dashboard"):
        panels = saved.attributes["panelsJSON"]
        for panel in panels:
            at = panel["gridData"]
            if at["x"] < 0 or at["y"] < 0 or at["w"] < 1 or at["h"] < 1 or at["x"] + at["w"] > COLUMNS:
                yield saved.id, f"panel {panel['panelIndex']} is outside of the {COLUMNS} columns"
        for first, other in combinations(panels, 2):
            if first["panelIndex"] == other["panelIndex"]:
                yield saved.id, f"two panels are called {first['panelIndex']}"
            elif _overlap(first["gridData"], other["gridData"]):
                yield saved.id, f"panel {first['panelIndex']} lies on panel {other['panelIndex']}"


def _needed(saved: SavedObject) -> Iterator[str]:
    """Yield the names under which an object refers to others."""
    if saved.type == "dashboard":
        for panel in saved.attributes["panelsJSON"]:
            if "panelRefName" in panel:
                yield f"{panel['panelIndex']}:{panel['panelRefName']}"
        for name in saved.attributes.get("controlGroupInput", {}).get("panelsJSON", {}):
            yield f"controlGroup_{name}:optionsListDataView"
    if saved.type == "links":
        yield from (link["destinationRefName"] for link in saved.attributes["links"])
    if saved.type == "lens":
        for layer in lens_layers(saved):
            yield f"indexpattern-datasource-layer-{layer}"


def _overlap(place: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(
        place[start] < other[start] + other[width] and other[start] < place[start] + place[width]
        for start, width in (("x", "w"), ("y", "h"))
    )
