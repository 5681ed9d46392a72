"""The capacity by an objective in the load curve of a report: a band over the loads that its interval holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ingest.core.labels import Group, default_kind
from ingest.query.capacity import ACHIEVED, BRACKETED, Capacity, Load, Sla, capacities, tested_in
from ingest.query.compare import kinds_of
from ingest.query.overview import Overview
from ingest.query.sweeps import Sweep
from ingest.query.windows import regrouped
from ingest.view import vega
from ingest.view.page.tables import of_kind
from ingest.view.terminal.capacity import sentence


def capacities_of(runs: Sequence[Overview], sweep: Sweep | None, sla: Sla) -> list[dict[str, Any]]:
    """Return a row for each line of the load curve: label, text, whether it has a capacity, and its load, low and high."""
    tested: dict[tuple[str, Group], list[Load]] = {}
    for run in runs:
        load, line = sweep.places[run.run] if sweep else (float("nan"), "")
        whole = regrouped(of_kind(run.cluster, default_kind(kinds_of(run.cluster))), ())  # all of its default kind added up
        for group, point in tested_in(whole, run.cluster.runs[0], load, [sla]).items():
            tested.setdefault((line, group), []).append(point)
    return [_row(capacity) for [capacity] in capacities(tested, sweep.label if sweep else ACHIEVED, [sla])]


def _row(capacity: Capacity) -> dict[str, Any]:
    known = capacity.verdict == BRACKETED
    edges = {name: getattr(capacity, name) if known else 0.0 for name in ("load", "low", "high")}
    text = f"{capacity.line}: {sentence(capacity)}" if capacity.line else sentence(capacity)
    return {"label": vega.printable(capacity.line or "all"), "text": vega.printable(text), "known": int(known), **edges}
