"""The layer that a user says a source was timed at (`--label layer=device`): its rows, and what it lacks, bear it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from ingest.core.errors import UsageError
from ingest.core.intervals import Intervals
from ingest.core.missing import Missing
from ingest.core.nearest import choices
from ingest.core.series import LAYERS, OFFSET, Series, in_layer
from ingest.read.sources import Source


def layer_named(text: str) -> str:
    """Return the layer that a user names; UsageError where there is no such layer."""
    if text not in LAYERS:
        raise UsageError(f"no layer {text!r}: {choices(text, LAYERS, most=len(LAYERS))}")
    return text


def in_their_layer(source: Source, rows: Iterator[Intervals[Series]]) -> Iterator[Intervals[Series]]:
    """Yield the rows of a source in the layer that the user said, as they are where he said none; offsets have none.

    Once all are read, what the source lacks is of that layer, too.
    """
    layer, account = source.context.layer, source.context.account
    if not layer:
        yield from rows
        return
    for part in rows:
        yield part.relabelled(
            lambda series: series if series.kind == OFFSET else series.replaced(kind=in_layer(series.kind, layer))
        )
    account.missing = [_below(entry, layer) for entry in account.missing]
    for stated in (*account.whole_runs, *account.whole_rows):
        if stated.get("kind"):
            stated["kind"] = in_layer(stated["kind"], layer)


def _below(entry: Missing, layer: str) -> Missing:
    kind = entry.labels.get("kind")
    return entry if not kind else replace(entry, labels={**entry.labels, "kind": in_layer(kind, layer)})
