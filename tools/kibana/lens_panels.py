"""Lens panels: the words of kibana/dashboards/*.yml -> a saved object of type lens with one form-based layer.

Numbers of rollups alone, no percentile of Lens: those are t-digests. Kinds are never mixed: a tile shows one kind and names it, a
table has a column for it, lines are drawn by kind, and a rate is divided by the number of kinds. Tiles and lines are of one run,
that of the pictures.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from ingest.core.errors import UsageError
from tools.kibana.config import Panel
from tools.kibana.data_views import view_id
from tools.kibana.kql import written
from tools.kibana.lens_columns import RUN, Column, layer, number_columns, terms_column, window_column
from tools.kibana.lens_words import Reading, Terms, Value, Windows, page, reading, taken, terms, value, values, windows
from tools.kibana.objects import Reference, SavedObject

LAYER = "layer"
KINDS = 8
KIND = "kind"
SERIES = {"lines": "line", "area": "area_stacked", "columns": "bar"}
LINES = 8
SHOWN = Terms(RUN, 1, "run", "began")
PREFERRED = Terms("kind_preference", 1, "preference", "latest", hidden=True)  # not by kind: a run may have none


# What a table says of operations that failed. Their kinds are below all others, so a row of another kind cannot count them, too.
OF_FAILED = {
    "preferred": "Operations that failed are not counted here: see Failed operations a second.",
    "each": "Operations that failed are rows of their own, whose kind ends in .failed.",
}


@dataclass(frozen=True, slots=True)
class Chart:
    """A panel's buckets and values by column id, and how they are shown."""

    type: str
    buckets: Mapping[str, Terms | Windows]
    values: Mapping[str, Value]
    shown: Mapping[str, Any]


def lens_object(panel: Panel, identity: str, prefix: str) -> SavedObject:
    """Return the saved object of a Lens panel; UsageError for a word, field or function that it cannot have."""
    if panel.picture not in CHARTS:
        raise UsageError(f"panel {panel.id}: there is no chart {panel.picture!r}: {', '.join(CHARTS)}")
    read, chart = CHARTS[panel.picture](panel)
    by = next((name for name, measure in chart.values.items() if measure.function != "rate"), None)
    columns: dict[str, Column] = {
        name: window_column(bucket) if isinstance(bucket, Windows) else terms_column(read.view, bucket, by)
        for name, bucket in chart.buckets.items()
    }
    for name, number in chart.values.items():
        columns.update(number_columns(read.view, name, number))
    state = {
        "datasourceStates": {"formBased": {"layers": {LAYER: layer(columns, unfiltered=bool(read.unfiltered))}}},
        "visualization": {"layerId": LAYER, "layerType": "data", **chart.shown} if "layers" not in chart.shown else chart.shown,
        "query": {"language": "kuery", "query": written(read.where)},
        "filters": [],
        "internalReferences": [],
        "adHocDataViews": {},
    }
    failed = OF_FAILED.get(read.kind or "", "") if panel.picture == "table" else ""
    unfiltered = read.unfiltered and f"The choices above do not apply: {read.unfiltered}."
    sentences = [text for text in (read.about, failed, unfiltered) if text]
    attributes = {
        "title": panel.title,
        "description": panel.described(" ".join(sentences)),
        "visualizationType": chart.type,
        "state": state,
    }
    reference = Reference("index-pattern", view_id(prefix, read.view), f"indexpattern-datasource-layer-{LAYER}")
    return SavedObject("lens", identity, attributes, (reference,))


def metric(panel: Panel) -> tuple[Reading, Chart]:
    """Return a tile: a number, perhaps a second one, of one kind, which is its title; of rollups of one run."""
    words = taken(panel, ["value"], ["secondary"])
    numbers = {"value": value(words["value"], panel)}
    if "secondary" in words:
        numbers["secondary"] = value(words["secondary"], panel)
    read = reading(panel, list(numbers.values()))
    if read.kind == "each":
        raise UsageError(f"panel {panel.id}: a tile shows one kind")
    shown: dict[str, Any] = {"metricAccessor": "value"}
    if "secondary" in numbers:
        shown["secondaryMetricAccessor"] = "secondary"
    buckets = _kinds(read)
    if buckets:
        shown |= {"breakdownByAccessor": KIND, "maxCols": 1}
    return read, Chart("lnsMetric", {"run": SHOWN, **buckets}, numbers, shown)


def over_time(panel: Panel) -> tuple[Reading, Chart]:
    """Return values over time, perhaps a line for each value of a field."""
    words = taken(panel, ["values"], ["by", "size", "every"])
    numbers = {f"value_{place}": number for place, number in enumerate(values(words["values"], panel))}
    read = reading(panel, list(numbers.values()))
    by = words.get("by")
    if read.kind is not None and by != KIND and any(number.function != "rate" for number in numbers.values()):
        raise UsageError(f"panel {panel.id}: kinds would be mixed: lines need `by: kind`")
    buckets: dict[str, Terms | Windows] = {"run": SHOWN}
    if by not in (None, KIND) and read.kind == "preferred":
        buckets["preference"] = PREFERRED
    if by is not None:
        buckets["by"] = terms({"terms": by, "size": words.get("size", LINES), "label": by}, panel)
    buckets["time"] = windows(panel)
    drawn = {"layerId": LAYER, "layerType": "data", "seriesType": SERIES[panel.picture], "xAccessor": "time"}
    split = {"splitAccessor": "by"} if by is not None else {}
    shown = {
        "preferredSeriesType": SERIES[panel.picture],
        "legend": {"isVisible": True, "position": "right", "showSingleSeries": True},
        "valueLabels": "hide",
        "fittingFunction": "None",
        "axisTitlesVisibilitySettings": {"x": False, "yLeft": True, "yRight": True},
        "yTitle": ", ".join(number.label for number in numbers.values()),
        "layers": [{**drawn, **split, "accessors": list(numbers)}],
    }
    return read, Chart("lnsXY", buckets, numbers, shown)


def table(panel: Panel) -> tuple[Reading, Chart]:
    """Return a table: rows by one field after another, a column for each value; kinds are rows of their own."""
    words = taken(panel, ["rows", "columns", "sort"], ["page"])
    numbers = {f"value_{place}": number for place, number in enumerate(values(words["columns"], panel))}
    read = reading(panel, list(numbers.values()))
    rows = {f"row_{place}": terms(row, panel) for place, row in enumerate(words["rows"])}
    runs = {name: row for name, row in rows.items() if row.order == "began"}
    buckets = {**runs, **_kinds(read), **{name: row for name, row in rows.items() if name not in runs}}
    labels = {
        **{bucket.label: name for name, bucket in buckets.items()},
        **{number.label: name for name, number in numbers.items()},
    }
    if len(labels) < len(buckets) + len(numbers):
        raise UsageError(f"panel {panel.id}: two columns have one label")
    if words["sort"] not in labels:
        raise UsageError(f"panel {panel.id}: `sort` is the label of a column: {', '.join(labels)}")
    hidden = {name for name, row in buckets.items() if row.hidden}
    sorting = labels[words["sort"]]
    shown = {
        "columns": [{"columnId": name, "hidden": True} if name in hidden else {"columnId": name} for name in labels.values()],
        "sorting": {"columnId": sorting, "direction": "asc" if sorting in buckets else "desc"},
        "paging": {"size": page(panel), "enabled": True},
    }
    return read, Chart("lnsDatatable", buckets, numbers, shown)


def _kinds(read: Reading) -> dict[str, Terms]:
    """Return the buckets that keep kinds apart: the preferred one of those that are chosen, or each."""
    if read.kind is None:
        return {}
    preferred = {"preference": PREFERRED} if read.kind == "preferred" else {}
    return {**preferred, KIND: Terms(KIND, KINDS, "kind")}


CHARTS: dict[str, Callable[[Panel], tuple[Reading, Chart]]] = {
    "metric": metric,
    **dict.fromkeys(SERIES, over_time),
    "table": table,
}
