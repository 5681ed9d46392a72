"""A dashboard as a saved object: panels on a grid, controls, links to the others, time and refresh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tools.kibana.config import COLUMNS, CONTROLS, Dashboard, Panel
from tools.kibana.objects import Reference, SavedObject

REFRESH_MS = 10_000
TIME_FROM, TIME_TO = "now-15m", "now"
LINKS, LINKS_HEIGHT = "links", 2
NO_SEARCH = {"query": {"query": "", "language": "kuery"}, "filter": []}


def dashboard_object(dashboard: Dashboard, prefix: str, objects: Mapping[str, SavedObject]) -> SavedObject:
    """Return a dashboard's saved object; `objects` are its panels' own, by panel id."""
    panels = [_links_panel(), *(_panel(panel, objects[panel.id]) for panel in dashboard.panels)]
    references = [
        Reference(objects[panel.id].type, objects[panel.id].id, f"{panel.id}:panel_{panel.id}") for panel in dashboard.panels
    ]
    references.append(Reference(LINKS, f"{prefix}-{LINKS}", f"{LINKS}:panel_{LINKS}"))
    references += [
        Reference("index-pattern", f"{prefix}-{dashboard.view}", f"controlGroup_{name}:optionsListDataView")
        for name in dashboard.controls
    ]
    attributes = {
        "title": f"[{prefix}] {dashboard.title}",
        "description": dashboard.description,
        "panelsJSON": panels,
        "optionsJSON": {
            "useMargins": True,
            "syncColors": False,
            "syncCursor": True,
            "syncTooltips": False,
            "hidePanelTitles": False,
        },
        "timeRestore": True,
        "timeFrom": TIME_FROM,
        "timeTo": TIME_TO,
        "refreshInterval": {"pause": False, "value": REFRESH_MS},
        "controlGroupInput": _controls(dashboard),
        "kibanaSavedObjectMeta": {"searchSourceJSON": NO_SEARCH},
        "version": 1,
    }
    return SavedObject("dashboard", f"{prefix}-{dashboard.id}", attributes, tuple(references))


def _panel(panel: Panel, saved: SavedObject) -> dict[str, Any]:
    at = panel.at
    return {
        "type": saved.type,
        "gridData": {"x": at.x, "y": at.y + LINKS_HEIGHT, "w": at.width, "h": at.height, "i": panel.id},
        "panelIndex": panel.id,
        "panelRefName": f"panel_{panel.id}",
        "title": panel.title,
        "embeddableConfig": {"enhancements": {}},
    }


def links_object(everyone: Sequence[Dashboard], prefix: str) -> SavedObject:
    """Return the panel of links to all dashboards, the same on each; they take along the time range and what is chosen."""
    links = [
        {
            "id": dashboard.id,
            "order": order,
            "type": "dashboardLink",
            "label": dashboard.title,
            "destinationRefName": f"link_{dashboard.id}_dashboard",
            "options": {"openInNewTab": False, "useCurrentFilters": True, "useCurrentDateRange": True},
        }
        for order, dashboard in enumerate(everyone)
    ]
    references = [
        Reference("dashboard", f"{prefix}-{dashboard.id}", str(link["destinationRefName"]))
        for dashboard, link in zip(everyone, links, strict=True)
    ]
    title = {"title": f"[{prefix}] Dashboards", "description": "All dashboards of tailboard."}
    return SavedObject(LINKS, f"{prefix}-{LINKS}", {**title, "layout": "horizontal", "links": links}, tuple(references))


def _links_panel() -> dict[str, Any]:
    return {
        "type": LINKS,
        "gridData": {"x": 0, "y": 0, "w": COLUMNS, "h": LINKS_HEIGHT, "i": LINKS},
        "panelIndex": LINKS,
        "panelRefName": f"panel_{LINKS}",
        "embeddableConfig": {"enhancements": {}, "hidePanelTitles": True},
    }


def _controls(dashboard: Dashboard) -> dict[str, Any]:
    """Return the options lists; each narrows those after it."""
    panels = {
        name: {
            "order": order,
            "width": "medium",
            "grow": True,
            "type": "optionsListControl",
            "explicitInput": {
                "id": name,
                "fieldName": CONTROLS[name],
                "title": name,
                "selectedOptions": [],
                "singleSelect": name == "kind",
                "enhancements": {},
            },
        }
        for order, name in enumerate(dashboard.controls)
    }
    ignored = {"ignoreFilters": False, "ignoreQuery": False, "ignoreTimerange": False, "ignoreValidations": False}
    return {
        "chainingSystem": "HIERARCHICAL",
        "controlStyle": "oneLine",
        "showApplySelections": False,
        "ignoreParentSettingsJSON": ignored,
        "panelsJSON": panels,
    }
