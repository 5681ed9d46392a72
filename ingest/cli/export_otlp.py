"""export --format otlp: windows as OpenTelemetry metrics, written as they come."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.cli.shared.answers import asked
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import opened
from ingest.cli.shared.values import parse_step
from ingest.core.errors import InputError, UsageError

if TYPE_CHECKING:
    from ingest.cli.export import Options
    from ingest.core.intervals import Intervals
    from ingest.core.series import Group
    from ingest.query.origin import Origin
    from ingest.query.question import Question

Batches = Iterator[tuple["Intervals[Group]", Sequence[str]]]


def export_otlp(sources: tuple[str, ...], options: Options) -> None:
    """Print the metrics; without --by and --step they are those of each series, in bounded batches."""
    from ingest.core.series import IN_FLIGHT
    from ingest.query.means import REMEDY
    from ingest.view import otlp

    if options.attribution != "completion":
        raise UsageError("OpenTelemetry metrics hold whole samples: in-flight weights cannot be written")
    step = parse_step(options.step) if options.step else 0
    if step == "auto":
        raise UsageError("--step of an export is a width such as 10s, or all")
    written = means = weights = capped = 0
    with opened(sources, options) as origin:
        undated = {record.run for record in origin.runs() if record.relative}
        found = (
            _added_up(origin, asked(options, step or "auto")) if options.by or step else _series(origin, asked(options, "auto"))
        )
        for batch, names in found:
            run, kind = (names.index(name) if name in names else -1 for name in ("run", "kind"))
            rows = batch if run < 0 else batch.where(lambda key, at=run: key[at] not in undated)  # type: ignore[misc]
            whole = rows.where(lambda key, at=kind: not key[at].endswith(IN_FLIGHT))  # type: ignore[misc]
            weights += len(rows) - len(whole)
            if not whole.layout.has_bins:
                means += len(whole)
                continue
            capped += otlp.capped(whole)
            if len(whole) and int(whole.start_ns.min()) < 0:
                raise InputError("times before 1970 cannot be written as OpenTelemetry metrics")
            for line in otlp.lines(whole, names):
                written += 1
                sys.stdout.write(line.decode())
    for run_name in sorted(undated):
        say(f"{run_name} is left out: no start time is known, and metrics need one: give --t0 when you load or name its logs")
    if means:
        say(f"{means:,} windows of means without a histogram are left out")
    if weights:
        say(f"{weights:,} windows of in-flight weights are left out: they are no samples")
    if capped:
        say(f"{capped:,} samples lie in a last bin without an upper end: they count where it begins, and may be higher")
    if not written:
        raise InputError(f"nothing to write: {REMEDY}" if means else "nothing matches the question: no window to write")


def _series(origin: Origin, question: Question) -> Batches:
    """Yield the windows of each series at the stored step, and the names of their labels; says what is missing of them."""
    from ingest.core.series import LABELS

    for rows in origin.windows(replace(question, by=LABELS)):
        yield rows, ("run", "kind", *LABELS)
    for text in origin.answer(replace(question, step="all", where={"kind": "*", **question.where})).warnings:
        say(text)


def _added_up(origin: Origin, question: Question) -> Batches:
    """Yield the windows of groups, added up over their series, and the names of their labels."""
    from ingest.query.interval_log import interval_log

    log = interval_log(origin, question)
    for rows in log.windows:
        yield rows, log.names
    for text in log.warnings():
        say(text)
