"""Vega panels: which picture a panel is, and the saved object that holds its spec.

- {id: percentiles, title: Percentiles over time, at: [0, 0, 48, 16], vega: percentiles, scope: host, level: overview}
  `level`: overview (10 s or more), stored (for minutes), run, or finest: stored where all lies in the last minutes, else overview
- {id: threads, title: Threads, at: [0, 16, 48, 16], vega: threads, index: intervals}
  `about`: what the panel shows, for its tooltip, where that is not the description of its picture
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ingest.core.errors import UsageError
from tools.kibana import breath_pictures, comparisons, layer_maps, load_curves, offset_maps, omissions, pictures, stories
from tools.kibana.config import LEVELS, Panel
from tools.kibana.filling import Spec
from tools.kibana.objects import SavedObject

SCOPES = ("host", "cluster")
FINEST = "finest"
FIELDS = {**LEVELS, FINEST: {**LEVELS["overview"], **LEVELS["stored"]}}
PICTURES: dict[str, Callable[[str, Mapping[str, Any]], Spec]] = {
    "percentiles": pictures.percentiles,
    "lags": pictures.lags,
    "lag-curves": pictures.lag_curves,
    "surface": pictures.surface,
    "heatmap": pictures.heatmap,
    "hosts": pictures.hosts,
    "layers": layer_maps.layers,
    "threads": pictures.threads,
    "distribution": pictures.distribution,
    "runs": comparisons.runs,
    "maps": comparisons.maps,
    "curves": comparisons.curves,
    "load": load_curves.load,
    "kinds": omissions.kinds,
    "gap": omissions.gap,
    "kind-curves": omissions.kind_curves,
    "offsets": offset_maps.offsets,
    "story": stories.story,
    "worst": stories.worst,
    "all-runs": stories.runs,
    "breaths": breath_pictures.scatter,
    "breath-density": breath_pictures.density,
}


def vega_object(panel: Panel, identity: str, prefix: str) -> SavedObject:
    """Return the saved object of a Vega panel; UsageError for an unknown picture, word, scope or level."""
    if panel.picture not in PICTURES:
        raise UsageError(f"panel {panel.id}: there is no picture {panel.picture!r}: {', '.join(PICTURES)}")
    unknown = sorted(panel.words.keys() - {"scope", "level", "index", "about"})
    if unknown:
        raise UsageError(f"panel {panel.id}: unknown key {unknown[0]!r} in a Vega panel")
    made = PICTURES[panel.picture](prefix, where(panel))
    attributes = {
        "title": panel.title,
        "description": panel.described(panel.words.get("about", f"{made['description']}.")),
        "visState": {"title": panel.title, "type": "vega", "aggs": [], "params": {"spec": made}},
        "uiStateJSON": {},
        "version": 1,
        "kibanaSavedObjectMeta": {"searchSourceJSON": {"query": {"query": "", "language": "kuery"}, "filter": []}},
    }
    return SavedObject("visualization", identity, attributes)


def where(panel: Panel) -> dict[str, Any]:
    """Return the fields that a panel's documents must have: scope and step of rollups, nothing for intervals and points."""
    if panel.words.get("index", "rollups") in ("intervals", "points"):
        return {}
    scope, level = panel.words.get("scope"), panel.words.get("level")
    if scope not in SCOPES or level not in FIELDS:
        raise UsageError(f"panel {panel.id}: rollups need `scope` ({', '.join(SCOPES)}) and `level` ({', '.join(FIELDS)})")
    return {"rollup.scope": scope, **FIELDS[str(level)]}
