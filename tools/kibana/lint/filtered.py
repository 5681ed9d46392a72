"""The rule that a panel follows what is chosen on its dashboard or says why not; no choice of a host empties one silently."""

from __future__ import annotations

from collections.abc import Iterator

from tools.kibana.asked_lens import lens_layer
from tools.kibana.data_views import index_of, view_fields
from tools.kibana.lint.objects import Objects, Problem, entries
from tools.kibana.lint.reading import SCOPE, measuring
from tools.kibana.objects import SavedObject

OF_RUNS = frozenset({"marks", "findings", "episodes"})
FREE = "whatever is chosen above"
HOST = "host.name"
CLUSTER = "cluster"
TIMES = "%timefilter%"
CLAUSE = "%dashboard_context-filter_clause%"
SAID = "choose no host"


def filters(objects: Objects) -> Iterator[Problem]:
    """Yield panels that a choice leaves as they are, or would empty."""
    for dashboard in objects.of("dashboard"):
        chosen = [
            control["explicitInput"]["fieldName"] for control in dashboard.attributes["controlGroupInput"]["panelsJSON"].values()
        ]
        for reference in dashboard.references:
            saved = objects.get(reference.type, reference.id)
            if saved is not None and saved.type == "visualization":
                yield from _vega(saved, chosen, objects)
            elif saved is not None and saved.type == "lens":
                yield from _lens(saved, chosen)
            if (
                saved is not None
                and HOST in chosen
                and FREE not in saved.attributes.get("description", "")
                and _of_cluster(saved, objects)
                and SAID not in saved.attributes["description"]
            ):
                yield saved.id, f"it is empty when a host is chosen and does not say so ({SAID})"


def _vega(saved: SavedObject, chosen: list[str], objects: Objects) -> Iterator[Problem]:
    for entry in entries(saved):
        url, name = entry["url"], entry["name"]
        index = objects.index(url.get("index", ""))
        if FREE in saved.attributes.get("description", ""):
            continue
        if "%timefield%" not in url and TIMES not in str(url.get("body")):
            yield saved.id, f"{name} does not follow the time range: it has no %timefield%"
        measured = ",".join(one for one in index.split(",") if one not in OF_RUNS)
        if url.get("%context%") is not True and CLAUSE not in str(url["body"].get("query")):
            yield saved.id, f"{name} does not follow the filters: it has no %context%"
        elif missing := _missing(measured, chosen):
            yield saved.id, f"{name} is empty when {missing} is chosen: {measured} have no such field"


def _lens(saved: SavedObject, chosen: list[str]) -> Iterator[Problem]:
    index = index_of(saved.references[0].id)
    missing, free = _missing(index, chosen), lens_layer(saved)["ignoreGlobalFilters"]
    if missing and not free:
        yield saved.id, f"it is empty when {missing} is chosen: {index} have no such field (`unfiltered` says why)"
    if free and not (missing and saved.attributes["description"]):
        yield saved.id, "it does not follow the filters and does not say why"


def _of_cluster(saved: SavedObject, objects: Objects) -> bool:
    """Return whether all numbers of a panel are of the cluster, which has no host."""
    scopes = [node.pinned.get(SCOPE) for read in objects.reads() if read.panel == saved.id for node in measuring(read)]
    return bool(scopes) and set(scopes) == {CLUSTER}


def _missing(index: str, chosen: list[str]) -> str:
    """Return the first field that can be chosen and that documents of an index do not have."""
    known = view_fields(index)
    return next((name for name in chosen if name not in known), "")
