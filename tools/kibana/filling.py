"""A picture of kibana/vega/ with its holes filled, inputs for what a reader may choose, and a heading from the answer.

    top level     inputs, data, and one group as large as the panel
      group       all that follows from the data: signals, scales, axes, legends, heading, marks

Kibana asks again at every refresh, and then puts back the signals of the top level alone, where a spec asks for it
(`restoreSignalValuesOnRefresh`). So nothing but inputs stands there: a range of the data before would be put back, too.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from ingest.core.errors import UsageError
from ingest.view.specs import read
from ingest.view.vega import spec
from tools.kibana import requests
from tools.kibana.tables import Entry, entry

Spec = dict[str, Any]
Signal = dict[str, Any]

KIBANA = {"controlsLocation": "top", "controlsDirection": "horizontal", "hideWarnings": True}
RESTORED = {"restoreSignalValuesOnRefresh": True}
WHOLE_PANEL = {"width": {"signal": "width"}, "height": {"signal": "height"}}
CATEGORY = ("#3b82d6", "#e8175d", "#b7791f", "#2a9d62", "#8e5bd0", "#0e9aa7", "#d9622b", "#7a869a")
FONT = {"labelFontSize": 12, "titleFontSize": 12, "titleFontWeight": 400}
CONFIG = {"background": "transparent", "axis": FONT, "range": {"category": list(CATEGORY)}}
# Kibana does not tell a spec whether it is light or dark: shades are the more opaque the more there is, on either ground.
OPACITIES = (0.12, 0.3, 0.48, 0.66, 0.83, 1)
THEMED: dict[str, Any] = {
    "ramp": [f"rgba(43,112,196,{opacity})" for opacity in OPACITIES],
    "hot": [f"rgba(214,51,24,{opacity})" for opacity in OPACITIES],
    "ink": "#808080",
}
RED, THEMED_RED = "#c92a2a", "#e03e3e"  # of objectives: the first is hardly seen on a dark ground
# The clock of Lens panels, where Kibana's setting dateFormat:tz is as it is at first: the browser's.
CLOCK = (
    {"name": "clock", "value": "local"},
    {"name": "zone", "update": "timeFormat(begin, '%Z') == '+0000' ? 'UTC' : 'UTC' + timeFormat(begin, '%Z')"},
    {"name": "origin", "update": "timezoneoffset(begin) * 6e4"},
)
OVERVIEW_MS = 10_000  # windows of overviews are not narrower
GROUND = re.compile(r"(?<![:@\w])pointerdown")
FAILED = (
    "(data('answer')[0] && data('answer')[0]._shards && data('answer')[0]._shards.failed > 0 ? 'INCOMPLETE: '"
    " + data('answer')[0]._shards.failed + ' of ' + data('answer')[0]._shards.total + ' shards failed; ' : '')"
    " + (data('answer')[0] && data('answer')[0].timed_out ? 'INCOMPLETE: the server ran out of time; ' : '')"
)
PARTS = {
    "axis": ("axis", "domain", "grid", "labels", "ticks", "title"),
    "legend": ("legend", "gradient", "labels", "symbols", "title"),
}
LACKING = {"type": "filter", "expr": "datum.lacking"}
APPROXIMATE = {"type": "filter", "expr": "datum.approximate"}
TRY = "try another time range, run or filter"
NOTHING = f"no completions here: {TRY}"


def filled(
    name: str,
    data: Sequence[Entry],
    inputs: Sequence[Signal],
    note: str,
    *,
    width: bool = True,
    whole: bool = False,
    nothing: str = NOTHING,
    picture: Mapping[str, Any] | None = None,
) -> Spec:
    """Return the picture `name` as Kibana takes it: holes replaced by `data`, signals by `inputs`, headed, sized by its panel.

    `picture` is its spec where it is not one of kibana/vega/; `nothing` the heading where there is no data.

    `note` is a Vega expression that says what the values are; with `width` the heading shows the width of windows; with `whole`
    it is the note alone. UsageError where a hole is not filled.
    """
    picture = spec(name) if picture is None else picture
    picture = orjson.loads(orjson.dumps(picture).replace(RED.encode(), THEMED_RED.encode()))
    holes = {table["name"] for table in picture["data"] if table.keys() == {"name"}}
    names = {table["name"] for table in data}
    missing = holes - names
    if missing:
        raise UsageError(f"picture {name} needs {', '.join(sorted(missing))}")
    drawn = [table for table in picture["data"] if table.keys() != {"name"} and table["name"] not in names]
    asked = {signal["name"] for signal in picture["signals"]}
    given = [*inputs, *(signal for signal in CLOCK if asked >= {"begin", str(signal["name"])})]
    preset = {signal["name"] for signal in given}
    presets = [_themed(signal) for signal in picture["signals"] if signal["name"] not in preset]
    said = {"name": "heading", "update": f"{FAILED} + ({note})"} if whole else heading(note, width=width, nothing=nothing)
    signals = [_heard(signal) for signal in (*given, *presets, said)]
    flagged = (entry("lacking", "chosen", LACKING), entry("approximate", "chosen", APPROXIMATE))
    tables = [*data, *(distinct(label) for label in ("run", "kind")), *flagged, *drawn]
    return _enclosed({**picture, "data": tables, "signals": signals})


def _enclosed(picture: Mapping[str, Any]) -> Spec:
    """Return a picture with its inputs and data at the top level, all else in one group."""
    inputs = [signal for signal in picture["signals"] if "bind" in signal]
    derived = [signal for signal in picture["signals"] if "bind" not in signal]
    inner = _inner(picture["data"], {signal["name"] for signal in derived})
    marks = [_clipped(mark) for mark in picture["marks"]]
    if "layout" in picture:  # its signals are looked up outside of the group that it lays out
        marks = [{"type": "group", "layout": picture["layout"], "marks": marks}]
    return read(
        "kibana-panel",
        description=picture["description"],
        padding=picture["padding"],
        inputs=inputs,
        outer=[table for table in picture["data"] if table["name"] not in inner],
        derived=derived,
        inner=[table for table in picture["data"] if table["name"] in inner],
        marks=marks,
        scales=picture.get("scales", []),
        axes=[_of_data(axis, "axis") for axis in picture.get("axes", [])],
        legends=[_of_data(_never_empty(legend), "legend") for legend in picture.get("legends", [])],
        config={**picture.get("config", {}), **CONFIG, "kibana": {**KIBANA, **(RESTORED if inputs else {})}},
    )


def _clipped(mark: Mapping[str, Any]) -> dict[str, Any]:
    """Return a mark that never reaches beyond its plot, which `fit` would shrink to make room for it; texts may.

    What is clipped is drawn within its group alone: a group without a size, which one of a facet has, would show nothing.
    """
    if mark["type"] == "group":
        encode = mark.get("encode", {})
        sized = {**encode, "update": {**WHOLE_PANEL, **encode.get("update", {})}}
        return {**mark, "encode": sized, "marks": [_clipped(inside) for inside in mark.get("marks", [])]}
    return dict(mark) if mark["type"] == "text" else {**mark, "clip": True}


def _of_data(guide: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Return an axis or a legend that is not seen where there is no data: it would tell a time of 1970."""
    encode = guide.get("encode", {})
    own = encode.get(kind, {}).get("update", {}).get("opacity", {"signal": "1"})
    hidden = {}
    for part in PARTS[kind]:  # what a group holds is seen whatever its own opacity is
        update = encode.get(part, {}).get("update", {})
        seen = f"length(data('chosen')) ? {update.get('opacity', own)['signal']} : 0"
        faded = {name: {"signal": seen} for name in ("opacity", *(("fillOpacity",) if part == "labels" else ()))}
        hidden[part] = {**encode.get(part, {}), "update": {**update, **faded}}  # Vega itself sets opacity of labels apart
    return {**guide, "encode": {**encode, **hidden}}


def _never_empty(legend: Mapping[str, Any]) -> dict[str, Any]:
    """Return a legend with an entry without a name where there is none: Vega 5 gives one without any entry no place at all.

    The plot would then have no size.
    """
    scales = [legend[channel] for channel in ("fill", "stroke", "strokeDash") if channel in legend]
    if legend.get("type") == "gradient" or "values" in legend or not scales:
        return dict(legend)
    domain = f"domain('{scales[0]}')"
    return {**legend, "values": {"signal": f"length({domain}) ? {domain} : ['']"}}


def _inner(tables: Sequence[Entry], signals: set[str]) -> set[str]:
    """Return the names of the tables that use a signal of the group, a scale, or one of these tables."""
    inner: set[str] = set()
    for table in tables:
        text = orjson.dumps(table.get("transform", [])).decode()
        words = set(re.findall(r"(?<![\w.'])[A-Za-z_]\w*", text))
        sources = table.get("source", ())
        asked = {*re.findall(r"data\('(\w+)'\)", text), *([sources] if isinstance(sources, str) else sources)}
        froms = {step["from"] for step in table.get("transform", []) if "from" in step}
        if words & signals or "scale" in words or (asked | froms) & inner:
            inner.add(table["name"])
    return inner


def distinct(name: str) -> Entry:
    """Return the entry with the runs or kinds that are shown."""
    return entry(f"{name}s_named", "chosen", {"type": "aggregate", "groupby": [name]})


def heading(note: str, *, width: bool, nothing: str = NOTHING) -> Signal:
    """Return the signal with the panel's heading: what could not be answered, run, kind, width of windows, what values are."""
    first, runs, kinds = "data('chosen')[0]", "data('runs_named')", "data('kinds_named')"
    other = f"({first}.several > length({runs}) ? ' (began last of ' + {first}.several + ': choose above)' : '')"
    listed = f"length({runs}) > 2 ? length({runs}) + ' runs' : 'run ' + join(pluck({runs}, 'run'), ' | ')"
    names = f"({listed}) + {other} + ', ' + join(pluck({kinds}, 'kind'), ', ')"
    lacking = "length(data('lacking')) ? 'SAMPLES ARE MISSING (see Complete windows); ' : ''"
    those = "' operations FAILED: slower than any, and in no percentile here; '"
    failed = f"({first}.failed && indexof({first}.kind, 'failed') < 0 ? format({first}.failed, ',') + {those} : '')"
    wide = f" + ', windows of ' + format({first}.width / 1000, ',') + ' s'" if width else ""
    approximate = "length(data('approximate')) ? 'APPROXIMATE: samples stand where their wide bins report them; ' : ''"
    shown = f"length(data('chosen')) ? ({lacking}) + ({approximate}) + {failed} + {names}{wide} + '; ' + ({note}) : '{nothing}'"
    return {"name": "heading", "update": f"{FAILED} + ({shown})"}


def _themed(signal: Mapping[str, Any]) -> Signal:
    return {**signal, "value": THEMED[signal["name"]]} if signal["name"] in THEMED else dict(signal)


def _heard(signal: Mapping[str, Any]) -> Signal:
    """Return a signal as it hears in a group; that of a brush sets Kibana's time range when the pointer is released.

    Where nothing is said of the source, a group hears only of its own items: not of the empty ground between them.
    """
    heard = [{**when, "events": GROUND.sub("view:pointerdown", when["events"])} for when in signal.get("on", ())]
    zoom = f"drag && length(data('chosen')) ? ({whole_windows('drag[0]', 'drag[1]')} ? null : null) : null"
    zoomed = [{"events": "window:pointerup", "update": zoom}] if signal["name"] == "drag" else []
    return {**signal, **({"on": heard + zoomed} if heard else {})}


def percentile(percents: Sequence[float] = requests.PERCENTS) -> Signal:
    """Return the signal of the percentile that is chosen, one of those that the request asks for."""
    bind = {
        "input": "select",
        "options": list(percents),
        "labels": [f"p{percent:g}" for percent in percents],
        "name": "percentile ",
    }
    return {"name": "percentile", "value": 99, "bind": bind}


def threshold(*, kept: bool = False) -> list[Signal]:
    """Return the signals of the SLA line: milliseconds, 0 for none.

    Where `kept`, without a number it is the lowest threshold that the run was held against at the percentile that is chosen.
    """
    bind = {"input": "number", "min": 0, "step": 0.1, "name": "SLA, ms "}
    lowest = "length(data('promised')) ? data('promised')[0].threshold : 0" if kept else "0"
    return [{"name": "sla_ms", "value": 0, "bind": bind}, {"name": "sla", "update": f"toNumber(sla_ms) * 1e6 || ({lowest})"}]


def promised() -> Entry:
    """Return the entry with the objectives of the percentile that is chosen, the lowest threshold first."""
    return entry("promised", "promises", {"type": "filter", "expr": "datum.percentile == percentile"})


def choice(name: str, value: Any, options: Sequence[Any], label: str) -> Signal:
    """Return the signal of a choice."""
    return {"name": name, "value": value, "bind": {"input": "select", "options": list(options), "name": f"{label} "}}


def named() -> Signal:
    """Return the signal with the name of the percentile that is chosen."""
    return {"name": "what", "update": "'p' + percentile"}


def clicked() -> Signal:
    """Return the signal that sets the time range to the window of a cell that is clicked."""
    return {"name": "clicked", "on": [{"events": "@heat:click", "update": whole_windows("datum.t", "datum.t2")}]}


def whole_windows(begin: str, end: str) -> str:
    """Return the expression that sets Kibana's time range to the whole windows of overviews that two times lie in.

    Kibana takes documents that begin at the end of its range, too: so it is a millisecond less.
    """
    wide = f"max({OVERVIEW_MS}, length(data('chosen')) ? data('chosen')[0].step : 0)"
    return f"kibanaSetTimeFilter(floor(({begin}) / {wide}) * {wide}, ceil(({end}) / {wide}) * {wide} - 1)"


def shades() -> list[Signal]:
    """Return the signals of a heat map's shading."""
    return [
        choice("shading", "rank", ["rank", "exponent", "linear"], "shading"),
        choice("palette", "single", ["single", "false colour"], "colours"),
    ]
