"""Everything that is compiled: data views, panels and dashboards as saved objects, and the files that hold them."""

from __future__ import annotations

from collections.abc import Iterable

from tools.kibana.config import Dashboard, Panel, dashboards
from tools.kibana.dashboards import dashboard_object, links_object
from tools.kibana.data_views import data_views
from tools.kibana.lens_panels import lens_object
from tools.kibana.objects import SavedObject, file_text, ndjson
from tools.kibana.vega_panels import vega_object

PREFIX = "tailboard"


def compiled(prefix: str = PREFIX, written: Iterable[Dashboard] | None = None) -> tuple[SavedObject, ...]:
    """Return all saved objects for the indices of a prefix: data views, each dashboard's panels and itself, links."""
    everyone = tuple(dashboards() if written is None else written)
    objects = list(data_views(prefix))
    for dashboard in everyone:
        own = {panel.id: panel_object(panel, dashboard, prefix) for panel in dashboard.panels}
        objects += [*own.values(), dashboard_object(dashboard, prefix, own)]
    return (*objects, links_object(everyone, prefix))


def panel_object(panel: Panel, dashboard: Dashboard, prefix: str) -> SavedObject:
    """Return the saved object of a panel, named by its dashboard and its id."""
    make = vega_object if panel.kind == "vega" else lens_object
    return make(panel, f"{prefix}-{dashboard.id}-{panel.id}", prefix)


def kibana_files() -> dict[str, str]:
    """Return the committed files under kibana/: one an object, and the one that Kibana imports."""
    objects = compiled()
    files = {f"saved_objects/{saved.path}": file_text(saved) for saved in objects}
    return {**files, "tailboard.ndjson": ndjson(objects).decode()}
