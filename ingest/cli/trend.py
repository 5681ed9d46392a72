"""trend: percentiles, throughput and shares above a latency over many runs."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import click

from ingest.api.sides import asks_of, labels_of, undated_beside
from ingest.cli import by_run
from ingest.cli.answers import PICTURES, write_picture
from ingest.cli.completion import run_names
from ingest.cli.options import Showing, command, option
from ingest.cli.output import say, verdict_stands, write_page
from ingest.core.errors import UsageError, choices, listed
from ingest.core.labels import RunLabels
from ingest.core.marks import accepts
from ingest.core.units import number, parse_duration
from ingest.query.origin import is_store
from ingest.read.placement import undated_part_of

if TYPE_CHECKING:
    from ingest.api.sides import Ask
    from ingest.core.quantiles import Percentile
    from ingest.query.question import Question
    from ingest.query.table import Table
    from ingest.query.trend import Judgement, Night

    Places = Mapping[str, tuple[str, str]]

MOST_ABOVE = 5
WINDOWS = 100  # of each run, for the bounds of its percentiles: half of what compare takes, as there are many runs


class Options(by_run.EachRun):
    """What a call of trend says."""

    runs: tuple[str, ...] = option(
        "--run", metavar="GLOB", shell_complete=run_names, help="Only runs whose name matches GLOB [default: all]."
    )
    wanted: str = option("-p", default="99", metavar="LIST", help="Percentiles, 0 to 100, such as 99 (not 0.99).")
    throughput: bool = option("--throughput", help="Also completions a second of each run; here a fall is a regression.")
    above: str = option(
        "--above", default="", metavar="LIST", help="Also the share of samples above these latencies, such as 5ms,20ms."
    )
    least_change: str = option(
        "--least-change", default="10%", metavar="SHARE", help="Smallest change of level that is reported."
    )
    fail_above: str | None = option(
        "--fail-above",
        metavar="RATIO",
        help="Exit with status 1 if the newest run, or the level it belongs to, is certain to be worse than the level before by "
        "this ratio, until that is accepted.",
    )
    accept: tuple[str, ...] = option(
        "--accept",
        metavar="RUN",
        help="Take the level of this run as normal from now on; in a store tailboard runs mark --accept notes that for good.",
    )
    last: int | None = option(
        "--last",
        type=click.IntRange(1, 10_000),
        help="Hold the newest run against the median of this many runs before it: what is slow for long enough counts as normal.",
    )


@command(Options)
def trend(options: Options) -> int:
    """Show percentiles of each run, in the order in which runs began, with bounds, change points and a verdict on the newest.

    \b
    Examples:
      tailboard compare --trend --run 'nightly-*' -p 99 --by op
      tailboard compare --trend --run 'nightly-*' -p 50,99 --throughput --above 5ms --fail-above 1.2
      tailboard compare --trend --run 'nightly-*' --fail-above 1.2 --accept nightly-48
      tailboard compare --trend ./nights/* -p 50,99 -o trend.html

    Of several paths each is a run, named after the path. Archives of CBT with many runs give one line for each kind of run, with
    a label `permutation`. csv and ndjson have the --by labels, then run,start,percentile,value,lo,hi,count,level,change,measure:
    value in --unit (ns) with its 95 % bounds, level the median since the last change, change the ratio of levels where a new
    level begins. measure is p99, throughput (value and level in completions a second) or `above 5ms` (shares); the last two have
    no percentile.
    --fail-above 1.2: p99 at least 1.2 times the level before, or a share above 5 ms at least 1.2 times as large, or a throughput
    that fell to the level / 1.2. The spread between runs must leave no doubt (99.5 %).
    """
    from ingest.core.quantiles import parse_percentiles
    from ingest.query.trend import COLUMNS, Reference, judged
    from ingest.query.trend import trend as rows_of

    limit, percentiles = by_run.ratio_limit(options.fail_above), parse_percentiles(options.wanted)
    least = by_run.least_ratio(options.least_change, "--least-change")
    if options.last and options.accept:
        raise UsageError("--last forgets by itself, so there is nothing to accept: leave out --accept or --last")
    above = sorted({parse_duration(text) for text in options.above.split(",") if text.strip()})
    output, form = options.output, by_run.beside_page(options)
    question = by_run.question_of(options, (*COLUMNS, "start"))
    with by_run.opened_origins(options) as origins:
        asks, of_runs = asks_of(origins), labels_of(origins)
        names = by_run.chosen(asks, options.runs)
        nights, notes, found_in = _nights(asks, names, of_runs, question, percentiles)
        asked_of = replace(nights[0].answer, runs=tuple(names))
        noted = (mark for origin in dict.fromkeys(origins.values()) for mark in origin.marks(asked_of))
        marked = {str(mark["run"]) for mark in noted if accepts(mark)}
    table = rows_of(nights, percentiles, least, throughput=options.throughput, above_ns=above)
    notes = (*notes, *(f"{night.answer.runs[0]}: {text}" for night in nights for text in night.answer.warnings))
    order = [night.run for night in nights]
    places = found_in or {}
    named, marked = ({places[run][0] if run in places else run for run in runs} for runs in (options.accept, marked))
    if strange := sorted(named - set(order)):
        raise UsageError(f"--accept {strange[0]}: no run of that name is in this trend: {choices(strange[0], order)}")
    accepted, labels = named | marked, _labels_of(order, of_runs, places)
    judgements = judged(table, Reference(order, accepted, labels, options.last, least))
    status, sentences = _verdict(judgements, order[-1], limit, stored=not options.sources or is_store(options.sources[0]))
    if output:
        from ingest.view.page.trend import trend_page

        calm = f"{order[-1]}: nothing is certain to be {number(limit)} times worse than the level before."
        said = sentences or ([calm] if limit < math.inf else [])
        write_page(trend_page(nights, table, judgements, said, notes, bad=bool(status), labels=labels), output)
    if form:
        with verdict_stands():
            _write(nights, table, judgements, notes, Showing(format=form, unit=options.unit))
    for line in sentences:
        say(line)
    return status


def _nights(
    asks: Mapping[str, Ask], names: Sequence[str], labels: RunLabels, question: Question, percentiles: Sequence[Percentile]
) -> tuple[list[Night], tuple[str, ...], Places | None]:
    """Return the runs in order, notes on them, and what each is in its archive where they are runs of archives."""
    from ingest.query.compare import labelled
    from ingest.query.question import AUTO
    from ingest.query.sweeps import PERMUTATION, permutations
    from ingest.query.trend import alike, bounds_of, by_archive, in_order

    over_time = replace(question, step=AUTO, windows=WINDOWS, narrow=True)
    dated = [name for name in names if undated_part_of(name) not in names]
    places = permutations(dated, labels)
    if not places:
        answers = alike([asks[name](question.about([name])) for name in names])
        bounds = {
            name: bounds_of([asks[name](over_time.about([name]))], answer.by, percentiles)
            for name, answer in zip(names, answers, strict=True)
        }
        return (*in_order(answers, bounds), None)
    answers = [labelled(asks[name](question.about([name])), PERMUTATION, places[name][1]) for name in dated]
    archives, bounds = alike(by_archive(answers, places)), {}
    for answer in archives:
        mine = [name for name in dated if places[name][0] == answer.runs[0]]
        windows = [labelled(asks[name](over_time.about([name])), PERMUTATION, places[name][1]) for name in mine]
        bounds[answer.runs[0]] = bounds_of(windows, answer.by, percentiles)
        del windows  # before those of the next are read
    nights, notes = in_order(archives, bounds)
    return nights, (_permutations_note(places), *undated_beside(names, dated), *notes), places


def _labels_of(order: Sequence[str], labels: RunLabels, found_in: Places) -> dict[str, dict[str, str]]:
    """Return the labels of each run, of an archive those that all its runs have in common."""
    of_runs: dict[str, dict[str, str]] = {}
    for run in labels:
        name, own = found_in[run][0] if run in found_in else run, dict(labels[run])
        of_runs[name] = {key: value for key, value in of_runs.get(name, own).items() if own.get(key) == value}
    return {run: of_runs.get(run, {}) for run in order}


def _permutations_note(permutations: Mapping[str, tuple[str, str]]) -> str:
    """Return the sentence about archives that hold many runs."""
    many, archives = len({what for _, what in permutations.values()}), {archive for archive, _ in permutations.values()}
    if len(archives) == 1:
        which = f"{min(archives)} is one archive of {many} unlike runs"
        return f"{which}, a series with one point each: a trend needs several archives"
    return f"{len(archives)} archives of {many} unlike runs: a series each, by what they are below their archives"


def _write(
    nights: Sequence[Night], table: Table, judgements: Sequence[Judgement], notes: Sequence[str], showing: Showing
) -> None:
    from ingest.core.units import utc
    from ingest.query.trend import LATENCIES
    from ingest.view.terminal import trend as view

    form = showing.format
    sentences = [*notes, *view.notes(nights, table)]
    if form == "table":
        view.print_trend(nights, table, sentences, judgements)
        return
    for line in sentences:
        say(line)
    if form in PICTURES:
        if not view.of_latencies(table).all():
            say("the picture shows percentiles alone: throughput and shares are in the table, csv and the page (-o)")
        write_picture(view.trend_picture(nights, table), replace(nights[-1].answer, warnings=()), showing)
        return
    scaled = view.in_unit(table, LATENCIES, showing.unit)
    by_run.write_rows(scaled, form, "ns", (), lambda stamp_ns: utc(stamp_ns) if stamp_ns else "")


def _verdict(judgements: Sequence[Judgement], run: str, limit: float, *, stored: bool) -> tuple[int, list[str]]:
    """Return the exit status, 1 where the newest run is certain to be above the limit, and what to say; up to five are named."""
    from ingest.view.terminal.trend import judgement_text, series_text

    if limit == math.inf:
        return 0, []
    sentences = [] if judgements else [f"cannot tell: nothing of {run} has a run before it, so nothing was judged"]
    unknown = [judgement for judgement in judgements if math.isnan(judgement.certain()) and not judgement.accepted]
    above = sorted((each for each in judgements if each.certain() > limit), key=lambda each: -each.certain())
    few = [series_text(judgement) for judgement in unknown if judgement.earlier > 1 or math.isnan(judgement.ratio)]
    if few:
        sentences.append(f"cannot tell: too little data for a lower bound of {listed(f'{name} of {run}' for name in few)}")
    if len(few) < len(unknown):
        sentences.append("cannot tell: one run before the newest does not show how much runs differ; it takes two")
    if any(judgement.accepted == run for judgement in judgements):
        sentences.append(f"{run} is accepted: later runs are held against it")
    if above:
        sentences += [f"above {number(limit)}: {judgement_text(judgement)}" for judgement in above[:MOST_ABOVE]]
        sentences += [f"above {number(limit)}: {len(above) - MOST_ABOVE} more"] if len(above) > MOST_ABOVE else []
        begun = [judgement.since.run for judgement in above if judgement.since]
        how = f"tailboard runs mark --accept --run {begun[0]}" if begun and stored else f"--accept {begun[0]}" if begun else ""
        sentences += [f"if that is the new normal: {how}"] if how else []
    return by_run.REGRESSED if above else 0, sentences
