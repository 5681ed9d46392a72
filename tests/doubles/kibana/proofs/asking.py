"""Plain requests to the double, written by hand: no code of ours that it is to judge."""

from __future__ import annotations

import http.client
import json
from typing import Any
from urllib.parse import urlsplit

from tests.doubles.kibana import KibanaDouble

Json = Any
XSRF = {"kbn-xsrf": "true"}
FORM = {**XSRF, "content-type": "multipart/form-data; boundary=7e1"}


def send(
    kibana: KibanaDouble, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None
) -> tuple[int, Json]:
    """Return status and decoded body of one request on a connection of its own."""
    parts = urlsplit(kibana.url)
    connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=30)
    raw = body if isinstance(body, bytes) or body is None else json.dumps(body).encode()
    try:
        connection.request(method, parts.path + path, raw, XSRF if headers is None else headers)
        response = connection.getresponse()
        content = response.read()
        return response.status, json.loads(content) if "json" in response.headers["content-type"] else content.decode()
    finally:
        connection.close()


def form(content: str, *, filename: str = "a.ndjson", name: str = "file") -> bytes:
    """Return a form with one file, as RFC 7578 shows it."""
    return (
        f'--7e1\r\nContent-Disposition: form-data; name="{name}"; filename="{filename}"\r\n'
        f"Content-Type: application/ndjson\r\n\r\n{content}\r\n--7e1--\r\n"
    ).encode()


def imported(kibana: KibanaDouble, lines: list[Json], space: str = "", query: str = "?overwrite=true") -> Json:
    """Return what the double says of an import that it takes."""
    body = form("".join(json.dumps(line) + "\n" for line in lines))
    status, answer = send(kibana, "POST", f"{space}/api/saved_objects/_import{query}", body, FORM)
    assert status == 200, answer
    return answer


def data_view(name: str = "rollups", **attributes: Json) -> Json:
    """Return a data view as Kibana exports it."""
    told = {"title": f"tailboard-{name}-*", "timeFieldName": "@timestamp", **attributes}
    return {
        "id": name,
        "type": "index-pattern",
        "attributes": told,
        "references": [],
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": "8.0.0",
    }


def lens(name: str, view: str = "rollups", **words: Json) -> Json:
    """Return a Lens panel with one layer."""
    columns = {
        "a": {"operationType": "max", "dataType": "number", "isBucketed": False, "label": "p99", "sourceField": "latency.p99"}
    }
    state = {
        "datasourceStates": {"formBased": {"layers": {"one": {"columnOrder": ["a"], "columns": columns}}}},
        "visualization": {"layerId": "one", "layerType": "data", "metricAccessor": "a"},
        "query": {"query": "", "language": "kuery"},
        "filters": [],
    }
    return {
        "id": name,
        "type": "lens",
        "attributes": {"title": name.title(), "visualizationType": "lnsMetric", "state": state},
        "references": [{"type": "index-pattern", "id": view, "name": "indexpattern-datasource-layer-one"}],
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": "8.9.0",
        **words,
    }


def vega(name: str, spec: Json = None) -> Json:
    """Return a Vega panel."""
    text = json.dumps(spec or {"$schema": "https://vega.github.io/schema/vega/v5.json", "marks": []})
    state = {"title": name, "type": "vega", "aggs": [], "params": {"spec": text}}
    search = {"query": {"query": "", "language": "kuery"}, "filter": []}
    return {
        "id": name,
        "type": "visualization",
        "attributes": {
            "title": name.title(),
            "visState": json.dumps(state),
            "uiStateJSON": "{}",
            "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(search)},
        },
        "references": [],
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": "8.5.0",
    }


def dashboard(name: str, *panels: Json, **attributes: Json) -> Json:
    """Return a dashboard with a control and the panels side by side."""
    shown = [
        {
            "type": panel["type"],
            "gridData": {"x": 12 * place, "y": 0, "w": 12, "h": 8, "i": panel["id"]},
            "panelIndex": panel["id"],
            "panelRefName": f"panel_{panel['id']}",
            "embeddableConfig": {},
        }
        for place, panel in enumerate(panels)
    ]
    control = {
        "order": 0, "width": "medium", "grow": True, "type": "optionsListControl",
        "explicitInput": {"id": "run", "fieldName": "run.id", "title": "run"},
    }  # fmt: skip
    search = {"query": {"query": "", "language": "kuery"}, "filter": []}
    references = [{"type": panel["type"], "id": panel["id"], "name": f"{panel['id']}:panel_{panel['id']}"} for panel in panels]
    return {
        "id": name,
        "type": "dashboard",
        "attributes": {
            "title": name.title(),
            "panelsJSON": json.dumps(shown),
            "optionsJSON": json.dumps({"useMargins": True}),
            "timeRestore": True,
            "timeFrom": "now-15m",
            "timeTo": "now",
            "refreshInterval": {"pause": False, "value": 10000},
            "controlGroupInput": {"panelsJSON": json.dumps({"run": control}), "controlStyle": "oneLine"},
            "kibanaSavedObjectMeta": {"searchSourceJSON": json.dumps(search)},
            **attributes,
        },
        "references": [*references, {"type": "index-pattern", "id": "rollups", "name": "controlGroup_run:optionsListDataView"}],
        "coreMigrationVersion": "8.8.0",
        "typeMigrationVersion": "10.2.0",
    }


def everything() -> list[Json]:
    """Return a data view, two panels and their dashboard."""
    panels = [lens("worst"), vega("surface")]
    return [data_view(), *panels, dashboard("cluster", *panels)]
