"""ES|QL over plain fields: recorded once on 8.19.21 (STATS MAX ... BY), the rest follows the documentation, `filter` (a query of the
search API that rows must match before anything else) too. On 9.x a percentile of histograms is one of exponential buckets, no more
than 320 for a group: that answers are off by up to 2.5 % was measured, they themselves are not recorded.

Rows are kept in the order of documents, groups in the order of their first row: a server promises neither, so sort. Work figures
(`documents_found`, `values_loaded`) count source rows and number values read. A histogram column is refused as measured on 8.19.21.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any

import numpy as np

from tests.doubles.elasticsearch import queries
from tests.doubles.elasticsearch.columns import View
from tests.doubles.elasticsearch.dates import text_of
from tests.doubles.elasticsearch.errors import CannotDo, refuse
from tests.doubles.elasticsearch.esql_parse import AGGREGATES, parse
from tests.doubles.elasticsearch.esql_table import NUMBERS, WHOLE, Column, Table, evaluate
from tests.doubles.elasticsearch.esql_words import Command, Node
from tests.doubles.elasticsearch.hdr import java_double
from tests.doubles.elasticsearch.node import Answer, Request
from tests.doubles.elasticsearch.node import Node as Server

Json = Any


def _stats(command: Command, table: Table) -> Table:
    keys = [(name, *_group(node, table)) for name, node in command.groups]
    groups: dict[tuple[Any, ...], list[int]] = {}
    for row in range(table.size):
        groups.setdefault(tuple(values[row] for _, _, values in keys), []).append(row)
    if not keys:
        groups = {(): list(range(table.size))}
    columns: dict[str, Column] = {}
    for name, node in command.items:
        kind, values = _aggregate(node, table, list(groups.values()))
        columns[name] = (kind, values)
    for place, (name, kind, _) in enumerate(keys):
        columns[name] = (kind, [group[place] for group in groups])
    found = Table(table.query, None, len(groups), columns, table.major)
    found.loaded = table.loaded
    return found


def _group(node: Node, table: Table) -> Column:
    if node.kind != "BUCKET":
        return evaluate(node, table)
    if len(node.parts) != 2 or node.parts[1].kind != "duration":
        raise CannotDo("ES|QL BUCKET with other than a date and a duration")
    kind, values = evaluate(node.parts[0], table)
    if kind != "date":
        raise CannotDo(f"ES|QL BUCKET of {kind}")
    step = node.parts[1].value
    return "date", [None if value is None else value // step * step for value in values]


def _aggregate(node: Node, table: Table, groups: list[list[int]]) -> Column:
    if node.kind not in AGGREGATES:
        raise CannotDo(f"ES|QL STATS of {node.text}")
    if not node.parts:
        return "long", [len(rows) for rows in groups]
    kind, values = evaluate(node.parts[0], table)
    chosen = [[values[row] for row in rows if values[row] is not None] for rows in groups]
    if node.kind == "COUNT":
        return "long", [len(some) for some in chosen]
    if node.kind == "PERCENTILE" and kind == "exponential_histogram" and node.parts[1].kind == "literal":
        return "double", [_percentile(some, node.parts[1].value) for some in chosen]
    if node.kind == "PERCENTILE" or kind not in NUMBERS and not (kind == "date" and node.kind in ("MAX", "MIN")):
        raise CannotDo(f"ES|QL {node.kind} of {kind}")
    if node.kind in ("MAX", "MIN"):
        best: Callable[[list[Any]], Any] = max if node.kind == "MAX" else min
        return kind, [best(some) if some else None for some in chosen]
    totals = [(sum(some) if kind in WHOLE else math.fsum(some)) if some else None for some in chosen]
    if node.kind == "AVG":
        return "double", [None if total is None else float(total) / len(some) for total, some in zip(totals, chosen)]
    return ("long" if kind in WHOLE else "double"), totals


def _percentile(histograms: list[Any], percent: float) -> float | None:
    """Return the middle of the bucket, of the finest scale at which all take at most 320, that holds the rank."""
    values, counts = (np.concatenate(parts) for parts in zip(*histograms)) if histograms else (np.zeros(0), np.zeros(0))
    if not counts.sum():
        return None
    some = values > 0
    for scale in range(20, -11, -1):
        buckets = np.ceil(np.log2(values, where=some, out=np.full(len(values), -np.inf)) * 2.0**scale) - 1
        if not some.any() or np.ptp(buckets[some]) < 320:
            break
    order = np.argsort(buckets, kind="stable")
    held = order[np.searchsorted(np.cumsum(counts[order]), percent / 100 * (counts.sum() - 1), side="right")]
    base = 2.0 ** (2.0**-scale)
    return float(base ** buckets[held] * 2 * base / (base + 1)) if some[held] else 0.0


def _sort(command: Command, table: Table) -> Table:
    rows = list(range(table.size))
    for node, down, nulls_first in reversed(command.items):
        values = evaluate(node, table)[1]
        some = sorted((row for row in rows if values[row] is not None), key=lambda row, values=values: values[row], reverse=down)  # type: ignore[misc]
        none = [row for row in rows if values[row] is None]
        rows = none + some if nulls_first else some + none
    return table.kept(rows)


def _keep(command: Command, table: Table) -> Table:
    chosen: dict[str, Column] = {}
    for pattern in command.items:
        names = [name for name in sorted(table.columns) if fnmatchcase(name, pattern)] if "*" in pattern else [pattern]
        if "*" in pattern and table.view is not None:
            raise CannotDo("ES|QL KEEP with a pattern over source fields")
        for name in names:
            chosen.setdefault(name, table.column(name, table.query.find(name)))
    found = Table(table.query, None, table.size, chosen, table.major)
    found.loaded = table.loaded
    return found


def run(query: str, view: View, major: int, chosen: list[int] | None = None) -> tuple[Table, int, bool]:
    """Return the resulting table, the source rows it was made from, and whether a limit was given; `chosen`: of these rows alone."""
    _, commands = parse(query)
    if not any(command.name in ("KEEP", "STATS") for command in commands):
        raise CannotDo("ES|QL without KEEP or STATS: its columns would be all fields")
    table = Table(query, view, len(view), {}, major)
    table.load(commands)
    if chosen is not None:
        table = table.kept(chosen)
    found, limited, source = table.size, False, True
    for command in commands:
        if command.name == "WHERE":
            kind, values = evaluate(command.items[0], table)
            if kind != "boolean":
                raise CannotDo("ES|QL WHERE with other than a condition")
            table = table.kept([row for row, value in enumerate(values) if value])
            found = table.size if source else found
        elif command.name == "EVAL":
            for name, node in command.items:
                table.columns[name] = evaluate(node, table)
        elif command.name == "LIMIT":
            limited = True
            if command.items[0] > 10_000:
                raise CannotDo("ES|QL LIMIT above 10000")
            table = table.kept(list(range(min(table.size, command.items[0]))))
        else:
            table = {"STATS": _stats, "SORT": _sort, "KEEP": _keep}[command.name](command, table)
        source = source and command.name == "WHERE"
    return (table if limited else table.kept(list(range(min(table.size, 1000))))), found, limited


def _shown(kind: str, value: Any) -> Any:
    return text_of(value) if kind == "date" and value is not None else value


def _csv(table: Table) -> bytes:
    def cell(value: Any) -> str:
        if value is None:
            return ""
        text = str(value).lower() if isinstance(value, bool) else java_double(value) if isinstance(value, float) else str(value)
        return '"' + text.replace('"', '""') + '"' if any(char in text for char in ',"\n\r') else text

    rows = [[cell(name) for name in table.columns]]
    rows += [[cell(_shown(kind, values[row])) for kind, values in table.columns.values()] for row in range(table.size)]
    return "".join(",".join(row) + "\r\n" for row in rows).encode()


def query(node: Server, request: Request) -> Answer:
    """Answer `POST _query`."""
    body = request.json(required=True)
    if not {"query"} <= set(body) <= {"query", "filter"}:
        raise CannotDo(f"_query with {sorted(set(body) - {'query', 'filter'})}")
    form = request.parameters.get("format", "json")
    if form not in ("json", "csv"):
        raise CannotDo(f"_query with format={form}")
    begin = time.monotonic()
    text = body["query"]
    pattern, _ = parse(text)
    indices = node.indices.select(pattern, ignore_unavailable=True)
    if not indices:
        raise refuse(400, "verification_exception", f"Found 1 problem\nline 1:1: Unknown index [{pattern}]")
    view, chosen = View(node.readers(indices)), None
    if "filter" in body:
        chosen = np.flatnonzero(queries.parse(body["filter"], request.text, node.millis()).mask(view)).tolist()
    table, found, limited = run(text, view, node.major, chosen)
    headers = {}
    if not limited:
        headers["warning"] = (
            f'299 Elasticsearch-{node.version}-{node.build["build_hash"]} "No limit defined, adding default limit of [1000]"'
        )
    if form == "csv":
        return 200, (_csv(table), {**headers, "content-type": "text/csv; charset=utf-8; header=present"})
    answer = {
        "documents_found": found, "values_loaded": table.loaded, "took": int((time.monotonic() - begin) * 1000), "is_partial": False,
        "columns": [{"name": name, "type": kind} for name, (kind, _) in table.columns.items()],
        "values": [[_shown(kind, values[row]) for kind, values in table.columns.values()] for row in range(table.size)],
    }  # fmt: skip
    return 200, (answer, headers)
