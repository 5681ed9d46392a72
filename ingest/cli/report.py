"""report: one offline HTML file."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from ingest.cli import options
from ingest.cli.queries import asked, parse_step
from ingest.errors import InputError


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="Where to; - is stdout.")
@options.step_options
@options.selecting_options
@options.reading_options
def report(sources: tuple[str, ...], **words: Any) -> None:
    """One HTML file with percentiles over time, a latency heat map and the facts of the run; opens offline.

    \b
    Examples:
      tailboard report ./cbt-archive -o report.html
      tailboard report --run 'nightly-42*' --by host -o nightly-42.html
    """
    written(sources, words, words["output"])


def written(sources: tuple[str, ...], words: dict[str, Any], output: str) -> None:
    """Write the report of a selection to a file, or to stdout."""
    from ingest.cli.origins import opened
    from ingest.view.report import report as page

    by = words["by"] or "op"
    question = asked({**words, "by": by}, parse_step(words["step"]))
    with opened(sources, words) as origin:
        answer = origin.answer(question)
        html = page(answer, origin.facts(answer), origin.marks(answer))
    if output == "-":
        sys.stdout.write(html)
        return
    try:
        Path(output).write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", output) from None
    print(f"tailboard: wrote {output} ({len(html.encode()) / 1e6:.1f} MB, opens offline)", file=sys.stderr)
