"""percentiles, distribution: questions to files or a store, answered as table, csv or ndjson."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.saying import say
from ingest.errors import UsageError, listed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ingest.query.question import Answer, Question
    from ingest.query.table import Table
    from ingest.ranks import Percentile

MOST_BELOW = 50
PICTURES = ("png", "svg")


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
    """Return what files or a store answer; UsageError for a range by the clock where no run has one."""
    from ingest.cli.origins import opened
    from ingest.query.lags import answered as answered_by

    with opened(sources, words) as origin:
        return in_range(answered_by(origin, question), question)


def in_range(answer: Answer, question: Question) -> Answer:
    """Return the answer; UsageError where it was asked for by times of the clock, and no run in it has one."""
    from ingest.query.clocks import ABSOLUTE, is_absolute

    if answer.relative and is_absolute(question):
        raise UsageError(ABSOLUTE)
    return answer


def write(table: Any, answer: Answer, words: dict[str, Any], what: str) -> None:
    """Print a table in the format that was asked for."""
    from ingest.view import text

    base, stamp = clock_of(answer, words), stamp_of(answer, words)
    form = words["format"]
    if form == "table":
        from ingest.query.precision import precision_from
        from ingest.view.terminal import heading, print_table

        bound = precision_from(answer.parts) if table.precision is None else table.precision
        print_table(table, heading(answer, what, bound), stamp)
        return
    warn(answer)
    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}
    if form in lines:
        sys.stdout.writelines(line + "\n" for line in lines[form](table, stamp, words["unit"]))
    else:
        names = [name for name in table.columns if name[0] == "p" and name[1:2].isdigit() and "_" not in name]
        zero = answer.start_of if base == "elapsed" else 0
        sys.stdout.writelines(line + "\n" for line in text.fiologparser_lines(table, zero, names))


def write_picture(spec: Any, answer: Answer, words: dict[str, Any]) -> None:
    """Write a filled spec as png or svg to stdout."""
    from ingest.view.pictures import drawn

    if words["format"] == "png" and sys.stdout.isatty():
        raise UsageError("a png is no text for a terminal: send it to a file, as in > picture.png")
    warn(answer)
    picture = drawn(spec, words["format"])
    sys.stdout.flush()
    sys.stdout.buffer.write(picture)


def one_axis(answer: Answer) -> None:
    """Raise UsageError for an answer that no picture over time can be drawn of: some of its runs have no clock."""
    if answer.undated:
        raise UsageError(f"{listed(sorted(answer.undated))}: no start time, so no axis with the other runs; choose with --run")


def clock_of(answer: Answer, words: dict[str, Any]) -> str:
    """Return how times are shown: utc, local or elapsed; UsageError where a clock is asked that the run does not have."""
    base: str = words.get("time_base") or ("elapsed" if answer.relative else "utc")
    if base != "elapsed" and answer.relative:
        raise UsageError("this run has no time zero, so its times are elapsed; give --t0 to have a clock")
    return base


def stamp_of(answer: Answer, words: dict[str, Any]) -> Any:
    """Return the function that writes a time as it was asked for; elapsed where only other runs of the answer have a clock."""
    from ingest.query.clocks import named, stamps_beside
    from ingest.view import text

    stamps = {"utc": text.utc, "local": text.local, "elapsed": text.elapsed(answer.start_of)}
    return named(stamps[clock_of(answer, words)], stamps_beside(answer))


def warn(answer: Answer) -> None:
    """Print what a reader of the numbers must know to stderr."""
    for line in answer.warnings:
        say(line)


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.percentiles_option
@options.step_options
@options.selecting_options
@click.option("--accuracy", metavar="10%", help="Widen the step until the highest percentile is this certain (95 %).")
@click.option("--bounds", is_flag=True, help="Columns p99_lo,p99_hi: the least and the most that missing samples leave possible.")
@click.option("--below", default="", metavar="LIST", help="Shares of samples below these latencies, as in 1ms,5ms.")
@click.option("--approx", is_flag=True, help="Let Elasticsearch estimate (hdr, at most +0.1 %, one rank low): less to read.")
@click.option("--interpolate", is_flag=True, help="Spread samples evenly within a bin instead of its reported value.")
@click.option("--estimate", metavar="LIST", help="What averaging would say: cbt, mean-of-means, mean-of-percentiles, histogram.")
@options.marks_option
@options.reading_options
@options.time_option
@options.unit_option
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "ndjson", "fiologparser", "png", "svg"]),
    default="table",
    show_default=True,
    help="fiologparser is the format of fio's fiologparser_hist.py; png and svg are pictures.",
)
def percentiles(sources: tuple[str, ...], **words: Any) -> None:
    """Latency percentiles over time, by nearest rank from exactly merged histograms.

    \b
    Examples:
      tailboard percentiles ./cbt-archive -p 50,95,99,99.9 --step 10s --by op
      tailboard percentiles ./cbt-archive --by host --where op=read --from +30s --to +60s
      tailboard percentiles --run 'nightly-*' --step all --format csv > nightly.csv

    csv and ndjson have start,end, the --by labels, count,rate,min,mean,max,exact,complete, then p50, p99.9, ... in --unit (ns);
    of means without a histogram mib_s (MiB a second) behind rate.
    A cell is empty where there are too few samples to carry it: above p50 at least one sample must lie beyond. With
    --estimate the usual wrong ways stand beside the exact columns (p99_cbt), each with its error as a share (p99_cbt_error).
    """
    from ingest.cli.origins import opened
    from ingest.query.percentiles import Wanted, narrowed, table_of
    from ingest.query.percentiles import percentiles as rows_of
    from ingest.ranks import parse_percentiles
    from ingest.timing import parse_duration

    chosen = parse_percentiles(words["wanted"])
    if words["marks"] and words["format"] not in PICTURES:
        raise UsageError("--marks draws: choose --format png or svg, or write a report")
    if words["approx"]:
        write(*_approximate(sources, words, chosen), words, "percentiles")
        return
    below = [parse_duration(part) for part in words["below"].split(",") if part.strip()]
    if len(below) > MOST_BELOW:
        raise UsageError(f"--below takes at most {MOST_BELOW} latencies")
    accuracy = _accuracy(words["accuracy"])
    question = asked(words, parse_step(words["step"]))
    if accuracy and words["bounds"]:
        raise UsageError("--accuracy and --bounds both give columns such as p99_lo,p99_hi: leave one out")
    columns = Wanted(chosen, below, words["interpolate"], bounds=bool(accuracy), possible=words["bounds"])
    if words["estimate"]:
        from ingest.cli.estimates import asked_estimates
        from ingest.query.estimates import with_estimates
        from ingest.view.estimates import print_estimates

        table, estimates, answer = asked_estimates(sources, words, question, columns, accuracy)
        if words["format"] == "table":
            print_estimates(table, estimates, chosen, answer, stamp_of(answer, words))
        else:
            write(with_estimates(table, estimates), answer, words, "percentiles")
        return
    if words["format"] in PICTURES:
        _percentiles_picture(sources, words, question, chosen, accuracy)
        return
    if accuracy:
        answer = narrowed(answered(sources, words, question), max(chosen), accuracy)
        write(rows_of(answer, columns), answer, words, "percentiles")
        return
    with opened(sources, words) as origin:
        table, answer = table_of(origin, question, columns)
    write(table, in_range(answer, question), words, "percentiles")


def _percentiles_picture(
    sources: tuple[str, ...], words: dict[str, Any], question: Question, chosen: Sequence[Percentile], accuracy: float
) -> None:
    """Write percentiles over time as a picture, with the marks of a store and of files."""
    from ingest.cli.marks import drawn, read_all
    from ingest.cli.origins import opened
    from ingest.query.lags import answered as answered_by
    from ingest.query.percentiles import narrowed
    from ingest.view.pictures import percentiles_picture

    marks = read_all(words["marks"])
    with opened(sources, words) as origin:
        answer = answered_by(origin, question)
        noted = drawn(answer, origin.marks(answer), marks)
    answer = narrowed(answer, max(chosen), accuracy) if accuracy else answer
    one_axis(answer)
    write_picture(percentiles_picture(answer, chosen, clock_of(answer, words), noted), answer, words)


def _approximate(sources: tuple[str, ...], words: dict[str, Any], chosen: Sequence[Percentile]) -> tuple[Table, Answer]:
    """Return the server's estimates; UsageError for what has none."""
    from ingest.cli.origins import opened
    from ingest.query.origin import APPROXIMATE, needed

    for option in ("accuracy", "bounds", "below", "interpolate", "estimate"):
        if words[option]:
            raise UsageError(f"--{option} needs whole histograms: leave out --approx")
    if words["format"] in PICTURES:
        raise UsageError(f"{words['format']} is drawn from whole histograms: leave out --approx")
    with opened(sources, words) as origin:
        return needed(origin, APPROXIMATE)(asked(words, parse_step(words["step"])), chosen)


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


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.selecting_options
@options.reading_options
@options.hgrm_options
@options.curve_options
@click.option(
    "--format",
    type=click.Choice(["table", "csv", "ndjson", "hgrm", "png", "svg"]),
    default="table",
    show_default=True,
    help="hgrm is the text that HdrHistogram prints; png and svg are pictures.",
)
def distribution(sources: tuple[str, ...], **words: Any) -> None:
    """How latencies are distributed over the whole range.

    \b
    Examples:
      tailboard distribution ./cbt-archive --by host --format csv
      tailboard distribution --run nightly-42 --where op=write --unit us
      tailboard distribution stress.hdr --by op,kind --curves --sla sla.txt:ms --format csv

    One row per group and occupied bin: the --by labels, lower,upper (in --unit), count, cumulative. With --curves one row
    per percentile level, doubling in 1/(1-q): curve, percentile, x = 1/(1-q), value (in --unit), count.
    """
    from ingest.query.heatmap import distribution as rows_of

    others = options.curve_files(words["hgrm"], words["sla"])
    answer = answered(sources, words, asked(words, "all"))
    if words["format"] in PICTURES:
        from ingest.view.pictures import distribution_picture

        write_picture(distribution_picture(answer), answer, words)
        return
    if words["format"] == "hgrm":
        from ingest.query.lags import whole_counts
        from ingest.view.hgrm import texts
        from ingest.view.text import UNITS

        warn(answer)
        sys.stdout.writelines(texts(replace(answer, parts=whole_counts(answer)), UNITS[words["unit"]], words["ticks"]))
        return
    if words["curves"] or others:
        from ingest.query.curves import curves

        write(curves(answer, others, words["ticks"]), answer, {**words, "time_base": None}, "percentile curves")
        return
    write(rows_of(answer), answer, {**words, "time_base": None}, "distribution")
