"""The slowest single operations in the report: a table, where a log has single operations, by the clock of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ingest.core.units import elapsed, latency, spaced, utc
from ingest.query.slowest import SlowOperation
from ingest.view.page.panels.marks import Shown
from ingest.view.page.template import AFTER_PERCENTILES, Section, exact, text
from ingest.view.vega import MS, printable

LABELS = ("host", "volume", "job", "process", "tag", "op")


def sections(runs: Sequence[Shown], slowest: Mapping[str, Sequence[SlowOperation]]) -> list[Section]:
    """Return the section where a run has single operations; columns that all rows leave empty are not there."""
    rows = [(run, _cells(operation), operation) for run in runs for operation in slowest.get(run.run, ())]
    if not rows:
        return []
    names = [name for name in (*LABELS, "offset", "size") if any(cells[name] for _, cells, _ in rows)]
    worst = max((operation for _, _, operation in rows), key=lambda operation: operation.latency_ns)
    who = " ".join(filter(None, (printable(worst.series.host), printable(worst.series.op))))
    filling = {
        "head": "".join(f'<th scope="col"{_left(name)}>{name}</th>' for name in names),
        "rows": "".join(_row(run, cells, operation, names) for run, cells, operation in rows),
        "said": text(f"Slowest: {spaced(latency(worst.latency_ns))}, {who}.".replace(", .", ".")),
    }
    return [Section("slowest", AFTER_PERCENTILES, html_filling=filling)]


def _cells(operation: SlowOperation) -> dict[str, str]:
    labels = {name: printable(str(getattr(operation.series, name) or "")) for name in LABELS}
    offset, size = ("" if number is None else f"{number:,}" for number in (operation.offset, operation.size))
    return {**labels, "offset": offset, "size": size}


def _left(name: str) -> str:
    return ' class="left"' if name in LABELS else ""


def _row(run: Shown, cells: Mapping[str, str], operation: SlowOperation, names: Sequence[str]) -> str:
    """Return a row; its time is that of those without a script, and becomes a link to it."""
    stamps = (operation.start_ns, operation.end_ns)
    begin, end = map(elapsed(run.start_ns), stamps) if run.relative else (utc(stamp)[11:23] for stamp in stamps)
    when = f"{begin} to {end} {'s elapsed' if run.relative else 'UTC'}"
    times = " ".join(f'data-{name}="{stamp / MS}"' for name, stamp in zip(("t", "t2"), stamps, strict=True))
    more = "".join(f"<td{_left(name)}>{text(cells[name])}</td>" for name in names)
    lasted = exact(operation.latency_ns, spaced(latency(operation.latency_ns)))
    return f'<tr data-run="{text(run.run)}"><td class="left"><a {times}>{when}</a></td>{lasted}{more}</tr>'
