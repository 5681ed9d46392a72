"""report: one offline HTML file."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from ingest.cli import options
from ingest.cli.queries import asked, parse_step
from ingest.errors import InputError


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="Where to; - is stdout.")
@click.option("--sla", metavar="LATENCY", help="Draw a line at this latency, as in 5ms.")
@click.option("--full", is_flag=True, help="All windows, hosts and threads, whatever the size of the page.")
@options.step_options
@options.selecting_options
@options.reading_options
def report(sources: tuple[str, ...], **words: Any) -> None:
    """One HTML file that shows where the tail came from; opens offline.

    \b
    Examples:
      tailboard report ./cbt-archive -o report.html
      tailboard report --run 'nightly-42*' --by host --sla 5ms -o nightly-42.html

    Percentiles over time, hosts and threads over time, the worst windows and who made them, a latency heat map, rates, the
    distribution, and the facts of the run; of several runs the load curve. Filters and zoom work in the page itself.
    """
    written(sources, words, words["output"])


def written(sources: tuple[str, ...], words: dict[str, Any], output: str) -> None:
    """Write the report of a selection to a file, or to stdout."""
    html = page_of(sources, words)
    if output == "-":
        sys.stdout.write(html)
        return
    try:
        Path(output).write_text(html, encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", output) from None
    print(f"tailboard: wrote {output} ({len(html.encode()) / 1e6:.1f} MB, opens offline)", file=sys.stderr)


def page_of(sources: tuple[str, ...], words: dict[str, Any]) -> str:
    """Return the report of a selection as HTML."""
    from ingest.cli.origins import opened
    from ingest.query.files import Files
    from ingest.query.overview import overviews
    from ingest.timing import parse_duration
    from ingest.view.report import report as page

    question = asked(words, parse_step(words["step"]))
    sla = parse_duration(words["sla"]) if words.get("sla") else 0
    with opened(sources, words) as origin:
        names = origin.run_names if isinstance(origin, Files) else [record.run for record in origin.runs()]  # type: ignore[attr-defined]
        runs = overviews(origin.answer, names, question, full=words.get("full", False))
        chosen = replace(runs[0].cluster, runs=tuple(name for run in runs for name in run.cluster.runs))
        return page(runs, origin.facts(chosen), origin.marks(chosen), question.by, sla)
