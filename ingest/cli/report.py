"""report: one offline HTML file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from ingest.cli import options
from ingest.cli.check import violations
from ingest.cli.pages import written as write_page
from ingest.cli.queries import asked, parse_step


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("-o", "--output", default="report.html", show_default=True, metavar="FILE", help="Where to; - is stdout.")
@click.option("--sla", metavar="LATENCY", help="Draw a line at this latency, as in 5ms.")
@click.option(
    "--objectives",
    metavar="SLA.yml",
    type=click.Path(path_type=Path),
    help="Draw when these were violated, as check finds it [default: what check --record has kept].",
)
@click.option("--full", is_flag=True, help="All windows, hosts and threads, whatever the size of the page.")
@options.marks_option
@options.step_options
@options.selecting_options
@options.reading_options
def report(sources: tuple[str, ...], **words: Any) -> None:
    """One HTML file that shows where the tail came from; opens offline.

    \b
    Examples:
      tailboard report ./cbt-archive -o report.html
      tailboard report --run 'nightly-42*' --by host --sla 5ms -o nightly-42.html
      tailboard report ./cbt-archive --marks gc.log --marks deploys.csv

    Percentiles over time, hosts and threads over time, the worst windows and who made them, a latency heat map, subsecond
    offsets of single events, rates, the distribution, and the facts of the run; of several runs the load curve. Filters and
    zoom work in the page itself.
    """
    written(sources, words, words["output"])


def written(sources: tuple[str, ...], words: dict[str, Any], output: str) -> None:
    """Write the report of a selection to a file, or to stdout."""
    write_page(page_of(sources, words), output)


def page_of(sources: tuple[str, ...], words: dict[str, Any]) -> str:
    """Return the report of a selection as HTML."""
    from ingest.cli.marks import read_all
    from ingest.cli.origins import opened
    from ingest.query.means import MeansAloneError
    from ingest.timing import parse_duration
    from ingest.view.page.contents import means_from, parts_from, run_names
    from ingest.view.page.report import page_of as page

    question = asked(words, parse_step(words["step"]))
    sla = parse_duration(words["sla"]) if words.get("sla") else 0
    marks = read_all(words.get("marks", ()))
    with opened(sources, words) as origin:
        episodes = violations(origin, words["objectives"], question) if words.get("objectives") else None
        names = run_names(origin)
        told = {"sla_ns": sla, "full": words.get("full", False), "offsets": True, "episodes": episodes, "given": marks}
        try:
            return page(parts_from(origin, names, question, estimates=True, **told))
        except MeansAloneError:
            return means_from(origin, names, question)
