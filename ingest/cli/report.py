"""report: one offline HTML file."""

from __future__ import annotations

from pathlib import Path

from ingest.cli.answers import asked
from ingest.cli.options import FORCE, MARKS, STEP, Asking, command, option
from ingest.cli.output import write_page
from ingest.cli.sources import as_typed, marks_of, opened


class Options(Asking):
    """What a call of report says."""

    output: str = option("-o", "--output", default="report.html", metavar="FILE", help="File to write; - for stdout.")
    sla: str | None = option(
        "--sla",
        metavar="[P<]LATENCY",
        help="Draw a line at this latency, such as 5ms; 'p99<5ms' also marks the capacity in the load curve.",
    )
    objectives: Path | None = option(
        "--objectives",
        metavar="SLA.yml",
        help="Show when these objectives were violated [default: what check --record has saved].",
    )
    full: bool = option("--full", help="Include all windows, hosts and threads, however large the page gets.")
    marks: tuple[Path, ...] = MARKS
    step: str = STEP
    force: bool = FORCE


@command(Options)
def report(options: Options) -> None:
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
    from ingest.view.page.report import report_of

    question, marks = asked(options, options.step, force=options.force), marks_of(options.marks)
    with opened(options) as origin:
        episodes = None
        if options.objectives:
            from ingest.cli.check import violations

            episodes = violations(origin, options.objectives, question, marks)
        html = report_of(
            origin, question, sla=options.sla or "", full=options.full, episodes=episodes, marks=marks, named=as_typed(options)
        )
    write_page(html, options.output)
