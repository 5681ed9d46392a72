"""report: one offline HTML file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import asked
from ingest.cli.shared.help import Command, file_names
from ingest.cli.shared.pages import written as write_page
from ingest.cli.shared.values import parse_step


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking):
    """What a call of report says."""

    output: str
    sla: str | None
    objectives: Path | None
    full: bool
    marks: tuple[Path, ...]
    step: str
    force: bool


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option(
    "-o",
    "--output",
    default="report.html",
    show_default=True,
    metavar="FILE",
    shell_complete=file_names,
    help="File to write; - for stdout.",
)
@click.option(
    "--sla",
    metavar="[P<]LATENCY",
    help="Draw a line at this latency, such as 5ms; 'p99<5ms' also marks the capacity in the load curve.",
)
@click.option(
    "--objectives",
    metavar="SLA.yml",
    type=click.Path(path_type=Path),
    help="Show when these objectives were violated [default: what check --record has saved].",
)
@click.option("--full", is_flag=True, help="Include all windows, hosts and threads, however large the page gets.")
@shared.marks_option
@shared.step_options
@shared.selecting_options
@shared.reading_options
@shared.typed(Options)
def report(sources: tuple[str, ...], options: Options) -> None:
    """Write one HTML file, which opens offline, that shows when the tail was bad, on which host, and why.

    \b
    Examples:
      tailboard report ./cbt-archive -o report.html
      tailboard report --run 'nightly-42*' --by host --sla 5ms -o nightly-42.html
      tailboard report ./cbt-archive --marks gc.log --marks deploys.csv

    The page shows percentiles over time, hosts and threads over time, the worst windows and which host contributed most, a
    latency heat map, offsets within the second of single operations, rates, the distribution and facts about the run; for
    several runs also the load curve. Filters and zoom work in the page itself.
    """
    write_page(page_of(sources, options), options.output)


def page_of(sources: tuple[str, ...], options: Options) -> str:
    """Return the report of a selection as HTML."""
    from ingest.cli.shared.marks import read_all
    from ingest.cli.shared.sources import as_typed, opened
    from ingest.core.timing import parse_duration
    from ingest.query.means import MeansAloneError
    from ingest.view.page.report.contents import means_from, parts_from, run_names
    from ingest.view.page.template import page_of as page

    question = asked(options, parse_step(options.step), force=options.force)
    objective = None
    if options.sla and "<" in options.sla:
        from ingest.query.capacity import parse_sla

        objective = parse_sla(options.sla)
    sla = objective.limit_ns if objective else parse_duration(options.sla) if options.sla else 0
    marks = read_all(options.marks)
    with opened(sources, options) as origin:
        episodes = None
        if options.objectives:
            from ingest.cli.check import violations

            episodes = violations(origin, options.objectives, question, marks)
        names = run_names(origin)
        try:
            parts = parts_from(
                origin,
                names,
                question,
                estimates=True,
                sla_ns=sla,
                objective=objective,
                full=options.full,
                offsets=True,
                episodes=episodes,
                given=marks,
                named=as_typed(sources, options, options.where),
            )
            return page(parts)
        except MeansAloneError:
            return means_from(origin, names, question)
