"""report: one offline HTML file."""

from __future__ import annotations

from pathlib import Path

from ingest.cli.answers import asked
from ingest.cli.options import FORCE, MARKS, STEP, Asking, command, option
from ingest.cli.output import write_page
from ingest.cli.sources import as_typed, marks_of, opened
from ingest.core.errors import UsageError
from ingest.core.objective import ANY_LATENCY
from ingest.core.units import parse_duration


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
    from ingest.query.means import MeansAloneError
    from ingest.view.page.report import means_from, parts_from, run_names
    from ingest.view.page.template import page_of

    question = asked(options, options.step, force=options.force)
    objective = None
    if options.sla and "<" in options.sla:
        from ingest.query.capacity import parse_sla

        objective = parse_sla(options.sla)
        if objective.limit_ns == ANY_LATENCY:
            raise UsageError(f"--sla {options.sla}: a line is drawn at a latency, as of 'p99<5ms'")
    sla = objective.limit_ns if objective else parse_duration(options.sla) if options.sla else 0
    marks = marks_of(options.marks)
    with opened(options) as origin:
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
                named=as_typed(options),
            )
            html = page_of(parts)
        except MeansAloneError:
            html = means_from(origin, names, question)
    write_page(html, options.output)
