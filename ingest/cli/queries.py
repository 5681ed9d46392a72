"""percentiles, heatmap, distribution: questions to files or a store, answered as table, csv or ndjson."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.errors import UsageError

if TYPE_CHECKING:
    from ingest.query.question import Answer, Question

MOST_BELOW = 50


def asked(words: dict[str, Any], step: int | str) -> Question:
    """Return the question that the selecting words of a call ask."""
    from ingest.query.question import Question
    from ingest.timing import parse_instant

    by = tuple(dict.fromkeys(name.strip() for name in words["by"].split(",") if name.strip()))
    return Question(
        runs=words["runs"],
        where=options.pairs(words["where"], "--where"),
        by=by,
        step=step,
        begin=parse_instant(words["begin"]) if words["begin"] else None,
        end=parse_instant(words["end"]) if words["end"] else None,
        merge_runs=words["merge_runs"],
        force=words.get("force", False),
        attribution=words["attribution"],
    )


def parse_step(text: str) -> int | str:
    """Return the step: ns, or the words auto and all."""
    from ingest.timing import parse_duration

    return text if text in ("auto", "all") else parse_duration(text)


def answered(sources: tuple[str, ...], words: dict[str, Any], question: Question) -> Answer:
    """Return what files or a store answer."""
    from ingest.cli.origins import opened

    with opened(sources, words) as origin:
        return origin.answer(question)


def write(table: Any, answer: Answer, words: dict[str, Any], what: str) -> None:
    """Print a table in the format that was asked for."""
    from ingest.view import text

    base = words["time_base"] or ("elapsed" if answer.relative else "utc")
    if base != "elapsed" and answer.relative:
        raise UsageError("this run has no time zero, so its times are elapsed; give --t0 to have a clock")
    stamp = {"utc": text.utc, "local": text.local, "elapsed": text.elapsed(answer.start_of)}[base]
    form = words["format"]
    if form == "table":
        from ingest.view.terminal import heading, print_table

        print_table(table, heading(answer, what), stamp)
        return
    warn(answer)
    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}
    if form in lines:
        sys.stdout.writelines(line + "\n" for line in lines[form](table, stamp, words["unit"]))
    else:
        names = [name for name in table.columns if name[0] == "p" and name[1:2].isdigit() and "_" not in name]
        zero = answer.start_of if base == "elapsed" else 0
        sys.stdout.writelines(line + "\n" for line in text.fiologparser_lines(table, zero, names))


def warn(answer: Answer) -> None:
    """Print what a reader of the numbers must know to stderr."""
    for line in answer.warnings:
        print(f"tailboard: {line}", file=sys.stderr)


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option("-p", "wanted", default="50,95,99,99.9", show_default=True, metavar="LIST", help="Percentiles, 0 to 100.")
@options.step_options
@options.selecting_options
@click.option("--accuracy", metavar="10%", help="Widen the step until the highest percentile is this certain (95 %).")
@click.option("--below", default="", metavar="LIST", help="Shares of samples below these latencies, as in 1ms,5ms.")
@click.option("--interpolate", is_flag=True, help="Spread samples evenly within a bin instead of its reported value.")
@options.reading_options
@options.time_option
@options.unit_option
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "ndjson", "fiologparser"]),
    default="table",
    show_default=True,
    help="fiologparser is the format of fio's fiologparser_hist.py.",
)
def percentiles(sources: tuple[str, ...], **words: Any) -> None:
    """Latency percentiles over time, by nearest rank from exactly merged histograms.

    \b
    Examples:
      tailboard percentiles ./cbt-archive -p 50,95,99,99.9 --step 10s --by op
      tailboard percentiles ./cbt-archive --by host --where op=read --from +30s --to +60s
      tailboard percentiles --run 'nightly-*' --step all --format csv > nightly.csv

    csv and ndjson have start,end, the --by labels, count,rate,min,mean,max,exact, then p50, p99.9, ... in --unit (ns).
    A cell is empty where there are too few samples to carry it: above p50 at least one sample must lie beyond.
    """
    from ingest.query.percentiles import Wanted, narrowed
    from ingest.query.percentiles import percentiles as rows_of
    from ingest.ranks import parse_percentiles
    from ingest.timing import parse_duration

    chosen = parse_percentiles(words["wanted"])
    below = [parse_duration(part) for part in words["below"].split(",") if part.strip()]
    if len(below) > MOST_BELOW:
        raise UsageError(f"--below takes at most {MOST_BELOW} latencies")
    accuracy = _accuracy(words["accuracy"])
    answer = answered(sources, words, asked(words, parse_step(words["step"])))
    if accuracy:
        answer = narrowed(answer, max(chosen), accuracy)
    table = rows_of(answer, Wanted(chosen, below, words["interpolate"], bounds=bool(accuracy)))
    write(table, answer, words, "percentiles")


def _accuracy(text: str | None) -> float:
    if not text:
        return 0.0
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        share = 0.0
    if not 0 < share < 1:
        raise UsageError(f"--accuracy takes a percentage such as 10%, not {text!r}")
    return share


plain_format = click.option("--format", type=click.Choice(["table", "csv", "ndjson"]), default="table", show_default=True)


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.step_options
@options.selecting_options
@options.reading_options
@options.time_option
@options.unit_option
@plain_format
def heatmap(sources: tuple[str, ...], **words: Any) -> None:
    """Counts by window and latency bin: what a latency heat map is drawn from.

    \b
    Examples:
      tailboard heatmap ./cbt-archive --step 1s --where op=read --format csv
      tailboard heatmap --run nightly-42 --by host --format ndjson

    One row per window, group and occupied bin: start,end, the --by labels, lower,upper (in --unit), count.
    """
    from ingest.query.heatmap import heatmap as rows_of

    answer = answered(sources, words, asked(words, parse_step(words["step"])))
    write(rows_of(answer), answer, words, "heat map")


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.selecting_options
@options.reading_options
@options.unit_option
@plain_format
def distribution(sources: tuple[str, ...], **words: Any) -> None:
    """How latencies are distributed over the whole range.

    \b
    Examples:
      tailboard distribution ./cbt-archive --by host --format csv
      tailboard distribution --run nightly-42 --where op=write --unit us

    One row per group and occupied bin: the --by labels, lower,upper (in --unit), count, cumulative.
    """
    from ingest.query.heatmap import distribution as rows_of

    answer = answered(sources, words, asked(words, "all"))
    write(rows_of(answer), answer, {**words, "time_base": None}, "distribution")
