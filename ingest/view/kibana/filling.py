"""A picture of kibana/vega/ with its holes filled, inputs for what a reader may choose, and a heading from the answer.

Kibana asks again at every refresh and then puts back *all* signals of the panel before (`restoreSignalValuesOnRefresh`), also
those that follow the data: axes would stand still. `seen` notices new data half a second later, and every signal that follows
something is computed again when it changes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest.core.errors import UsageError
from ingest.view.kibana import requests
from ingest.view.kibana.tables import Entry, entry
from ingest.view.vega import spec

Spec = dict[str, Any]
Signal = dict[str, Any]

KIBANA = {
    "controlsLocation": "top",
    "controlsDirection": "horizontal",
    "restoreSignalValuesOnRefresh": True,
    "hideWarnings": True,
}
CATEGORY = ("#3b82d6", "#e8175d", "#b7791f", "#2a9d62", "#8e5bd0", "#0e9aa7", "#d9622b", "#7a869a")
FONT = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 400}
CONFIG = {"background": "transparent", "axis": FONT, "range": {"category": list(CATEGORY)}, "kibana": KIBANA}
ZOOM = "drag ? (kibanaSetTimeFilter(drag[0], drag[1]) ? null : null) : null"
NOTHING = "no completions here: try another time range, run or filter"


def filled(
    name: str, data: Sequence[Entry], inputs: Sequence[Signal], note: str, *, of: str = "windows", width: bool = True
) -> Spec:
    """Return the picture `name` as Kibana takes it: holes replaced by `data`, signals by `inputs`, headed, sized by its panel.

    `note` is a Vega expression that says what the values are. `of` is the table that shows new data; with `width` the
    heading shows the width of windows. UsageError where a hole is not filled.
    """
    picture = spec(name)
    holes = {table["name"] for table in picture["data"] if table.keys() == {"name"}}
    missing = holes - {table["name"] for table in data}
    if missing:
        raise UsageError(f"picture {name} needs {', '.join(sorted(missing))}")
    drawn = [table for table in picture["data"] if table.keys() != {"name"}]
    given = {signal["name"] for signal in inputs}
    followed = [
        _followed(signal)
        for signal in (
            *inputs,
            *(preset for preset in picture["signals"] if preset["name"] not in given),
            heading(note, width=width),
        )
    ]
    kept = {key: value for key, value in picture.items() if key not in ("width", "height")}
    return {
        **kept,
        "autosize": {"type": "fit", "contains": "padding"},
        "title": _title(),
        "data": [*data, fingerprint(of), *(distinct(name) for name in ("run", "kind")), *drawn],
        "signals": [seen(), *followed],
        "config": {**picture.get("config", {}), **CONFIG},
    }


def fingerprint(source: str) -> Entry:
    """Return the entry of one row that is another one when the data are."""
    sums = {"ops": ["count", "sum", "sum", "max"], "fields": [None, "n", "t", "t2"], "as": ["rows", "n", "t", "t2"]}
    return entry("fingerprint", source, {"type": "aggregate", **sums})


def distinct(name: str) -> Entry:
    """Return the entry with the runs or kinds that are shown."""
    return entry(f"{name}s_named", "chosen", {"type": "aggregate", "groupby": [name]})


def seen() -> Signal:
    """Return the signal that notices new data."""
    row = "data('fingerprint')[0]"
    change = f"length(data('fingerprint')) ? {row}.rows + ' ' + {row}.n + ' ' + {row}.t + ' ' + {row}.t2 : ''"
    return {"name": "seen", "value": "", "on": [{"events": {"type": "timer", "throttle": 500}, "update": change}]}


def heading(note: str, *, width: bool) -> Signal:
    """Return the signal with the panel's heading: run, kind, width of windows, and what the values are."""
    first, runs, kinds = "data('chosen')[0]", "data('runs_named')", "data('kinds_named')"
    other = f"({first}.several > length({runs}) ? ' (began last of ' + {first}.several + ': choose above)' : '')"
    names = f"join(pluck({runs}, 'run'), ' | ') + {other} + ', ' + join(pluck({kinds}, 'kind'), ', ')"
    wide = f" + ', windows of ' + format({first}.width / 1000, ',') + ' s'" if width else ""
    return {"name": "heading", "update": f"length(data('chosen')) ? 'run ' + {names}{wide} + '; ' + ({note}) : '{NOTHING}'"}


def _title() -> dict[str, Any]:
    size = {"anchor": "start", "fontSize": 12, "fontWeight": 400, "offset": 8, "limit": {"signal": "width"}}
    return {"text": {"signal": "heading"}, **size}


def _followed(signal: Mapping[str, Any]) -> Signal:
    """Return a signal that is computed again when new data was seen; a brush that sets Kibana's time range."""
    if signal["name"] == "drag":
        return {**signal, "on": [*signal["on"], {"events": "window:pointerup", "update": ZOOM}]}
    if "update" in signal and "on" not in signal:
        return {**signal, "update": f"[{signal['update']}, seen][0]"}
    return dict(signal)


def slider() -> list[Signal]:
    """Return the signals of the percentile slider: 25 places; `percentile` is the one that stands there."""
    last = len(requests.PERCENTS) - 1
    bind = {"input": "range", "min": 0, "max": last, "step": 1, "name": "percentile, 25 places "}
    place = {"name": "place", "value": requests.PERCENTS.index(99), "bind": bind}
    return [place, {"name": "percentile", "update": f"{list(requests.PERCENTS)}[place]"}]


def threshold() -> list[Signal]:
    """Return the signals of the SLA line: milliseconds, 0 for none."""
    bind = {"input": "number", "min": 0, "step": 0.1, "name": "SLA, ms "}
    return [{"name": "sla_ms", "value": 0, "bind": bind}, {"name": "sla", "update": "(toNumber(sla_ms) || 0) * 1e6"}]


def choice(name: str, value: Any, options: Sequence[Any], label: str) -> Signal:
    """Return the signal of a choice."""
    return {"name": name, "value": value, "bind": {"input": "select", "options": list(options), "name": f"{label} "}}


def named() -> Signal:
    """Return the signal with the name of the slider's percentile."""
    return {"name": "what", "update": "'p' + percentile"}


def clicked() -> Signal:
    """Return the signal that sets the time range to the window of a cell that is clicked."""
    return {"name": "clicked", "on": [{"events": "@heat:click", "update": "kibanaSetTimeFilter(datum.t, datum.t2)"}]}


def shades() -> list[Signal]:
    """Return the signals of a heat map's shading."""
    return [
        choice("shading", "rank", ["rank", "exponent", "linear"], "shade by"),
        choice("palette", "single", ["single", "false colour"], "colours"),
    ]
