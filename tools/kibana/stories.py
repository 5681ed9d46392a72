"""Panels of lines, of which each shows its time when it is clicked: what happened in a run, its worst windows, all runs.

    told    one row a line: place (from 0), t, t2 (what a click shows; null: nothing), when, says, and the numbers that it says

What was found, promised and noted is asked for in the search that finds the run of the pictures (requests.beside); what belongs
to that run is taken.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ingest import __version__
from tools.kibana import requests, tables
from tools.kibana.bins import Transform, formula
from tools.kibana.filling import Signal, Spec, filled, whole_windows
from tools.kibana.pictures import answered
from tools.kibana.tables import Entry, entry, flatten, keep, only

Fields = Mapping[str, Any]

MOST, WORST, RUNS = 2000, 20, 50
TOLD = f"indexof(datum._source.finding.stamp, 'version {__version__}') >= 0"
FINDINGS = ("run.id", "text", "finding.rank", "finding.end", "finding.share", "finding.stamp")
PROMISED = ("run.id", "objective.name", "objective.least_rate")
BROKEN = ("group", "end", "peak_ns", "peak_open", "samples", "worst_host", "state", "lowest_rate")
NUMBERS = ("p99", "max", "n")


def story(prefix: str, fields: Fields) -> Spec:
    """Return the findings of the run that the pictures show, its episodes and its marks."""
    unsaid = "'nothing is told of this run yet: the load that completes it does; until then tailboard explain STORE --run RUN'"
    data = [
        answered(_told_of(prefix, requests.body(fields, {"n": requests.samples()}))),
        *tables.chosen_runs(),
        tables.hits("notes"),
        _found(),
        *_noted(),
        entry("silent", "chosen", keep("!length(data('found_lines'))"), formula("t", "null"), formula("says", unsaid)),
        _told(("found_lines", "silent", "broken_lines", "noted_lines")),
    ]
    return filled("story", data, [_clicked("max(5000, (datum.t2 - datum.t) / 2)")], "'a click shows that time'", width=False)


def worst(prefix: str, fields: Fields) -> Spec:
    """Return the windows of each operation with the highest p99."""
    numbers = {"p99": requests.highest("latency.p99"), "max": requests.highest("latency.max"), "n": requests.samples()}
    numbers["t"] = requests.highest("@timestamp")
    ends = {"terms": {"field": "interval.end_ns", "size": WORST, "order": {"p99": "desc"}}, "aggs": numbers}
    operations = {"field": "operation", "missing": "-", "size": requests.OPERATIONS}
    asked = {"n": requests.samples(), "operations": {"terms": operations, "aggs": {"ends": ends}}}
    reached = f"({_shown('datum.p99')})"
    says = f"(datum.p99 ? 'p99 ' + {reached} : 'too few for p99') + ', max ' + ({_shown('datum.max')}) + ', '"
    rows = [
        flatten("of.operations.buckets", "part"),
        flatten("part.ends.buckets", "window"),
        formula("operation", "datum.part.key"),
        formula("t", "datum.window.t.value"),
        formula("t2", "datum.window.key / 1e6"),
        *(formula(name, f"datum.window.{name}.value") for name in NUMBERS),
        formula("says", f"{says} + format(datum.n, ',') + ' I/Os, ' + datum.operation"),
        {"type": "collect", "sort": {"field": ["p99", "t"], "order": ["descending", "ascending"]}},
    ]
    data = [
        answered(requests.url(prefix, "rollups", requests.body(fields, asked))),
        *tables.chosen_runs(),
        entry("windows", "chosen", rows),
        _told(("windows",), ("operation", *NUMBERS)),
    ]
    return filled("story", data, [_clicked("0")], "'a click shows that window'", width=False)


def runs(prefix: str, fields: Fields) -> Spec:
    """Return all runs, those that began last first, whatever is chosen."""
    ends = {"start": requests.highest("run.start"), "began": {"min": {"field": "@timestamp"}}}
    ends["ended"] = requests.highest("interval.end_ns")
    default = {"filter": {"term": {"rollup.default_kind": True}}, "aggs": {"n": requests.samples()}}
    run = {"field": "run.id", "size": RUNS, "order": [{"start": "desc"}, {"began": "desc"}]}
    picked = {"terms": run, "aggs": {**ends, "default": default, "failed": requests.failed(both=False)}}
    filters = [{"term": {field: value}} for field, value in fields.items()]
    asked = {"size": 0, "query": {"bool": {"filter": filters}}, "aggs": {"runs": picked}}
    span, lost = "(datum.t2 - datum.t) * 1e6", "datum.failed ? ', and ' + format(datum.failed, ',') + ' that failed' : ''"
    rows = [
        flatten("aggregations.runs.buckets", "one"),
        formula("run", "datum.one.key"),
        formula("t", "datum.one.began.value"),
        formula("t2", "datum.one.ended.value / 1e6"),
        formula("n", "datum.one.default.n.value"),
        formula("failed", "datum.one.failed.n.value / max(1, datum.one.failed.kinds.value)"),
        formula("says", f"datum.run + ': ' + format(datum.n, ',') + ' I/Os in ' + ({_shown(span)}) + ({lost})"),
    ]
    url = {"index": f"{prefix}-rollups-*", "body": asked}
    data = [
        {"name": "answer", "url": url, "transform": [keep("isValid(datum.aggregations)")]},
        entry("windows", "answer", rows),
        entry("chosen", "windows", formula("kind", "''"), formula("step", "0")),
        _told(("windows",), ("run", "n", "failed")),
    ]
    note = "length(data('told')) ? 'a click shows a run in its time range' : 'no run was loaded yet: tailboard load'"
    return filled("story", data, [_clicked("0")], note, whole=True)


def _told_of(prefix: str, asked: requests.Json) -> requests.Json:
    """Return the `url` of what asks for a run: also findings by rank, then episodes and marks by time."""
    names = [*FINDINGS, *PROMISED, *(f"episode.{name}" for name in BROKEN), "mark.duration_ns", "@timestamp"]
    by_rank = {"finding.rank": {"order": "asc", "missing": "_last", "unmapped_type": "long"}}
    told = {"size": MOST, "_source": names, "sort": [by_rank, {"@timestamp": "asc"}]}
    lasting = {"range": {"finding.end": {"gte": {"%timefilter%": "min"}, "format": "epoch_millis"}}}
    kinds = ("finding.rank", "objective.name", "mark.at_ns")
    return requests.beside(prefix, ("rollups", "findings", "marks", "episodes"), asked, kinds, told, lasting)


def _found() -> Entry:
    """Return the entry `found_lines`: the findings by rank, then what they leave open."""
    of = "datum._source.finding"
    stale = f"({TOLD} ? '' : '; told by another version: see tailboard explain')"
    left = f"{of}.share >= 0.01 ? format({of}.share, '.2~p') + ' of the excess latency is explained by none of these' : ''"
    return _of_run(
        "found_lines",
        keep("datum._source.finding"),
        formula("rank", f"{of}.rank || 1e9"),
        formula("t", "datum._source.text ? datum.t : null"),
        formula("t2", f"{of}.end"),
        formula("says", f"datum._source.text ? datum._source.text + {stale} : {left}"),
        {"type": "collect", "sort": {"field": "rank"}},
    )


def _noted() -> list[Entry]:
    """Return the entries `broken_lines`, the episodes of objectives, and `noted_lines`, the marks, in time order."""
    of = "datum._source.episode"
    rate = f"isValid(datum._source.objective.least_rate) ? 'lowest ' + format({of}.lowest_rate, ',.4~g') + '/s'"
    peak = f"{of}.peak_ns > 0 ? 'peak ' + ({of}.peak_open ? 'at least ' : '') + ({_shown(f'{of}.peak_ns')})"
    facts = [
        f"{of}.group",
        f"{rate} : {peak} : 'nothing completed'",
        f"{of}.worst_host ? 'worst host ' + {of}.worst_host : ''",
        f"format({of}.samples, ',') + ' samples'",
        f"{of}.state",
    ]
    named = "datum._source.objective.name + ': '"
    says = f"{of} && isValid({of}.samples) ? 'broken: ' + {named} + {_listed(', '.join(facts))} : null"
    lasted = "datum._source.mark && datum._source.mark.duration_ns ? datum.t + datum._source.mark.duration_ns / 1e6 : null"
    noted = f"{of} || datum._source.finding ? null : 'noted: ' + datum._source.text"
    return [
        _of_run("broken_lines", formula("t2", f"{of} ? {of}.end : null"), formula("says", says)),
        _of_run("noted_lines", formula("t2", lasted), formula("says", noted)),
    ]


def _of_run(name: str, *more: Transform) -> Entry:
    """Return an entry with the documents of the run that is shown which say something."""
    began = formula("t", "datum._source['@timestamp']")
    return entry(name, "notes", tables.KNOWN, keep("datum.known"), began, list(more), keep("datum.says"))


def _told(sources: Sequence[str], kept: Sequence[str] = ()) -> Entry:
    """Return the entry `told`: the lines of all sources, one after another."""
    moments = "timeFormat(datum.t, '%d %b %H:%M:%S') + (datum.t2 > datum.t ? ' to ' + timeFormat(datum.t2, '%H:%M:%S') : '')"
    return entry(
        "told",
        sources,
        {"type": "window", "ops": ["row_number"], "as": ["nth"]},
        formula("place", "datum.nth - 1"),
        formula("when", f"datum.t ? {moments} : ''"),
        only("place", "t", "t2", "when", "says", *kept),
    )


def _clicked(around: str) -> Signal:
    """Return the signal that shows the time of a line that is clicked, with some time around it."""
    begin, end = f"datum.t - {around}", f"(datum.t2 || datum.t) + {around}"
    return {"name": "clicked", "on": [{"events": "@targets:click", "update": f"datum.t ? {whole_windows(begin, end)} : null"}]}


def _listed(texts: str) -> str:
    """Return the expression for texts with commas between them, empty ones left out."""
    return f"replace(replace(join([{texts}], ', '), regexp('(, )+', 'g'), ', '), regexp('^, |, $', 'g'), '')"


def _shown(ns: str) -> str:
    """Return the expression for a duration with its unit."""
    return f"replace(format({ns} / 1e9, '.3~s'), regexp('([mµn]?)$'), ' $1s')"
