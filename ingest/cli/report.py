"""report: one offline HTML file."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.answers import asked
from ingest.cli.options import FORCE, MARKS, STEP, Asking, command, option
from ingest.cli.output import say, write_page
from ingest.cli.sources import as_typed, marks_of, opened
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.units import Instant


OTHERS = {  # by the endings of files that hold no page
    "pdf": "a browser prints it",
    **dict.fromkeys(("png", "svg"), "tailboard report --card writes a picture"),
    **dict.fromkeys(("md", "txt"), "tailboard explain --format markdown writes sentences"),
    **dict.fromkeys(("csv", "json", "ndjson"), "tailboard percentiles writes numbers"),
}


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
    metrics: tuple[Path, ...] = option(
        "--metrics",
        metavar="FILE",
        help="File of what else was measured (iostat, CPU): lines of time,name,value; may be repeated.",
    )
    beside: str | None = option(
        "--beside", metavar="SOURCE", help="Draw the percentile of this run, of files or a store, as a line beside the others."
    )
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
      tailboard report ./cbt-archive --metrics iostat.csv
      tailboard report ./tonight --beside ./last-night

    The page shows percentiles over time, hosts and threads over time, the worst windows and which host contributed most, a
    latency heat map, offsets within the second of single operations, rates, the distribution and facts about the run; for
    several runs also the load curve. Filters and zoom work in the page itself.
    """
    from ingest.core.pool import freed_memory_given_back
    from ingest.view.page.report import report_of

    if other := OTHERS.get(options.output.rpartition(".")[2].lower()):
        raise UsageError(f"-o {options.output}: a report is one HTML page, such as report.html; {other}")
    metrics: dict[str, list[tuple[Instant, float]]] = {}
    for path in options.metrics:
        from ingest.read.metrics import read_metrics

        contents = read_metrics(path)
        for name, values in contents.values.items():
            metrics.setdefault(name, []).extend(values)
        for text in contents.said:
            say(text)
    question, marks = asked(options, options.step, force=options.force), marks_of(options.marks)
    with ExitStack() as stack:
        stack.enter_context(freed_memory_given_back())
        origin = stack.enter_context(opened(options))
        beside = stack.enter_context(opened(options.but(sources=(options.beside,), store=None))) if options.beside else None
        episodes = None
        if options.objectives:
            from ingest.cli.check import violations

            episodes = violations(origin, options.objectives, question, marks)
        html = report_of(
            origin,
            question,
            sla=options.sla or "",
            full=options.full,
            episodes=episodes,
            marks=marks,
            metrics=metrics,
            beside=beside,
            named=as_typed(options),
        )
    write_page(html, options.output)
