"""--estimate of percentiles: the exact table with what averaging would have said beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.cli.percentiles import Options
    from ingest.query.estimates.rows import Estimate
    from ingest.query.percentiles import Wanted
    from ingest.query.question import Answer, Question
    from ingest.query.table import Table

FORMATS = ("table", "csv", "ndjson")


def asked_estimates(
    sources: tuple[str, ...], options: Options, question: Question, columns: Wanted, accuracy: float
) -> tuple[Table, list[Estimate], Answer]:
    """Return the percentiles of a question, the estimates that --estimate names, and the answer with the notes of both.

    UsageError for what cannot be.
    """
    from ingest.cli.shared.sources import opened
    from ingest.query.estimates.estimates import estimated, parse_estimates
    from ingest.query.lags import answered
    from ingest.query.percentiles import narrowed, percentiles

    names = parse_estimates(options.estimate or "")
    if options.format not in FORMATS:
        raise UsageError(f"--estimate goes with --format {', '.join(FORMATS)}, not {options.format}")
    with opened(sources, options) as origin:
        answer = answered(origin, question)
        if accuracy:
            answer = narrowed(answer, max(columns.percentiles), accuracy)
        table = percentiles(answer, columns)
        estimates = estimated(origin, question, answer, table, columns.percentiles, names)
    return (
        table,
        estimates,
        replace(answer, warnings=(*answer.warnings, *(note for estimate in estimates for note in estimate.notes))),
    )
