"""--estimate of percentiles: the exact table with what averaging would have said beside it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ingest.errors import UsageError

if TYPE_CHECKING:
    from ingest.query.percentiles import Wanted
    from ingest.query.question import Question

FORMATS = ("table", "csv", "ndjson")


def write_estimates(
    sources: tuple[str, ...], words: dict[str, Any], question: Question, columns: Wanted, accuracy: float
) -> None:
    """Print the percentiles of a question with the estimates that --estimate names; UsageError for what cannot be."""
    from ingest.cli.origins import opened
    from ingest.cli.queries import answer_of, stamp_of, write
    from ingest.query.estimates import estimated, parse_estimates, with_estimates
    from ingest.query.percentiles import narrowed, percentiles

    names = parse_estimates(words["estimate"])
    if words["format"] not in FORMATS:
        raise UsageError(f"--estimate goes with --format {', '.join(FORMATS)}, not {words['format']}")
    with opened(sources, words) as origin:
        answer = answer_of(origin, question)
        if accuracy:
            answer = narrowed(answer, max(columns.percentiles), accuracy)
        table = percentiles(answer, columns)
        estimates = estimated(origin, question, answer, table, columns.percentiles, names)
    answer = replace(answer, warnings=(*answer.warnings, *(note for one in estimates for note in one.notes)))
    if words["format"] == "table":
        from ingest.view.estimates import print_estimates

        print_estimates(table, estimates, columns.percentiles, answer, stamp_of(answer, words))
        return
    write(with_estimates(table, estimates), answer, words, "percentiles")
