"""check: objectives held against runs; when did the problem start and end."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.help import Choice, Command, file_names
from ingest.cli.shared.marks import read_all
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import opened, split_sources
from ingest.cli.shared.streams import verdict_stands
from ingest.cli.shared.values import pairs
from ingest.core.errors import DeliveryError, UsageError, counted

if TYPE_CHECKING:
    from ingest.core.marks import Mark
    from ingest.core.objective import Objective
    from ingest.core.series import RunLabels
    from ingest.objectives.check import Checked
    from ingest.objectives.webhook import Webhook
    from ingest.query.origin import Origin
    from ingest.query.question import Question
    from ingest.query.verdicts import Episode

VIOLATED, CANNOT_TELL = 1, 5


@dataclass(frozen=True, slots=True)
class Judged:
    """What answers, the labels of the runs that it has, and up to when runs that are being watched are final."""

    origin: Origin
    runs: RunLabels
    finals: dict[str, int]


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Reading, shared.Showing):
    """What a call of check says."""

    runs: tuple[str, ...]
    where: tuple[str, ...]
    begin: str | None
    end: str | None
    record: bool
    allow_unknown: bool
    webhook: str | None
    marks: tuple[Path, ...]


@click.command(cls=Command)
@click.argument("sla", metavar="SLA.yml", type=click.Path(path_type=Path))
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@click.option("--run", "runs", metavar="GLOB", multiple=True, help="Only runs whose name matches GLOB.")
@click.option("--where", metavar="K=GLOB", multiple=True, help="Only data whose label K matches GLOB.")
@click.option(
    "--from",
    "begin",
    metavar="T",
    help="Start of the range: ISO 8601, epoch s or ms, +90s (after the start of each run), now-15m.",
)
@click.option("--to", "end", metavar="T", help="End of the range, in the same forms.")
@click.option("--record", is_flag=True, help="Save the episodes in the store, for reports and dashboards.")
@click.option("--allow-unknown", is_flag=True, help="Exit with status 0 in place of 5 if missing samples leave a verdict open.")
@click.option("--webhook", metavar="URL", help="POST each episode as JSON to URL; env:NAME reads the URL from the environment.")
@shared.marks_for(
    "File of marks for the words during, outside, before, after of objectives; beside those of the store; may be repeated."
)
@shared.reading_options
@shared.time_option
@shared.unit_option
@click.option("--format", type=Choice(["table", "csv", "ndjson", "junit"]), default="table", show_default=True)
@shared.typed(Options)
def check(sla: Path, sources: tuple[str, ...], options: Options) -> int:
    """Check runs against objectives: when a promised latency was exceeded, for how long, and which host contributed most.

    \b
    Examples:
      tailboard check SLA.yml ./cbt-archive
      tailboard check SLA.yml --run 'nightly-42*' --record
      tailboard check SLA.yml http://host:9200 --run 'nightly-*' --format junit > sla.xml
      tailboard check SLA.yml ./cbt-archive --marks operations.csv

    SLA.yml holds objectives: name, percentile, threshold, window; for, hold, no_data, budget, where, by, and for parts of a run
    during, outside, before, after with the text of a mark (docs/guides/check.md).
    csv and ndjson have one line per episode: objective, the by labels, start,end, peak (in --unit, ns), samples, worst_host,
    state (open, ended, or provisional while windows can still change). Exit status: 1 if an objective is violated, 5 if missing
    samples could change the verdict ("cannot tell"; --allow-unknown makes it 0), 4 if the webhook could not be reached.
    """
    from ingest.objectives.check import check as verdicts_of
    from ingest.objectives.check import keep
    from ingest.objectives.webhook import webhook
    from ingest.query.lags import answered
    from ingest.query.phases import noted_in

    hook = webhook(options.webhook) if options.webhook else None
    selection, marks = _selection(options), read_all(options.marks)
    with _opened(sources, options) as judged:
        objectives, noted = _objectives(sla, judged.runs), noted_in(judged.origin, marks)
        checked = verdicts_of(partial(answered, judged.origin), judged.runs, objectives, selection, sla, judged.finals, noted)
        if options.record:
            keep(judged.origin, checked)  # type: ignore[arg-type]  # _opened gives a store where it is to be written
        belonging = _belonging(judged.origin, checked, selection) if options.format == "table" else []
    with verdict_stands():
        _write(checked, sla, options, belonging)
    return _sent(hook, checked) or _status(checked, allow_unknown=options.allow_unknown)


def _status(checked: Checked, *, allow_unknown: bool) -> int:
    """Return the exit status of verdicts: violated, cannot tell (unless that is allowed), or 0."""
    if checked.violated:
        return VIOLATED
    return 0 if checked.met or allow_unknown else CANNOT_TELL


def _selection(options: Options) -> Question:
    """Return the answers to judge; UsageError where only a part of a run would be kept as the whole, or I/Os are shares."""
    from ingest.core.timing import parse_instant
    from ingest.query.question import Question

    if options.attribution != "completion":
        raise UsageError("objectives count whole I/Os, in-flight weights are shares of them: leave out --attribution")
    if options.record and (options.where or options.begin or options.end):
        raise UsageError("--record keeps what whole runs show: leave out --where, --from and --to")
    if options.record and options.marks:
        raise UsageError("--record judges by the marks of the store: note them first (tailboard mark --run GLOB --marks FILE)")
    return Question(
        runs=options.runs,
        where=pairs(options.where, "--where"),
        begin=parse_instant(options.begin) if options.begin else None,
        end=parse_instant(options.end) if options.end else None,
    )


@contextmanager
def _opened(sources: tuple[str, ...], options: Options) -> Iterator[Judged]:
    """Give the files or the store that are asked, a store to be written with --record."""
    from ingest.core.errors import StoreError
    from ingest.store import open_store

    stores = split_sources(sources)[0] if options.record else []  # it reads standard input, which is there once
    if options.record and not stores:
        raise UsageError("--record keeps episodes in a store: load the files first, then check the store")
    with opened(sources, options) as origin:
        judged = _judged(origin)
        if not judged.runs:
            raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
        if not options.record:
            yield judged
            return
    with open_store(stores[0], write=True) as store:
        yield _judged(store)


def _judged(origin: Origin) -> Judged:
    """Return what files or a store hold of their runs."""
    from ingest.objectives.check import finals_of, labels_of

    runs = origin.runs()
    return Judged(origin, labels_of(runs), finals_of(runs))


def violations(origin: Origin, path: Path, question: Question, marks: Sequence[Mark] = ()) -> list[Episode]:
    """Return the episodes of objectives in the runs, series and range of a question, for a page that draws them.

    `marks` are given beside those that the origin keeps.
    What could not be judged is said on stderr. InputError as `check` raises it.
    """
    from ingest.objectives.check import check as verdicts_of
    from ingest.query.lags import answered
    from ingest.query.phases import noted_in
    from ingest.query.question import Question as Selection
    from ingest.view.terminal.episodes import notes, unjudged_windows

    judged = _judged(origin)
    selection = Selection(question.runs, question.where, begin=question.begin, end=question.end)
    ask, noted = partial(answered, judged.origin), noted_in(origin, marks)
    checked = verdicts_of(ask, judged.runs, _objectives(path, judged.runs), selection, path, judged.finals, noted)
    for note in (*notes(checked), *unjudged_windows(checked)):
        say(note)
    return [each for verdict in checked.verdicts for each in verdict.episodes]


def _objectives(path: Path, runs: RunLabels) -> Sequence[Objective]:
    from ingest.objectives.objectives import read_objectives

    return read_objectives(path, {name for labels in runs.values() for name in labels})


def _belonging(origin: Origin, checked: Checked, selection: Question) -> list[str]:
    """Return which findings of the runs their episodes belong to, in sentences."""
    from ingest.objectives.findings import belongings
    from ingest.query.findings.story import story

    return belongings(checked.verdicts, lambda run: story(origin, selection.about([run])))


def _write(checked: Checked, path: Path, options: Options, belonging: Sequence[str]) -> None:
    """Print the verdicts in the format that was asked for."""
    from ingest.objectives.junit import junit
    from ingest.objectives.words import stamp_of
    from ingest.view import text
    from ingest.view.terminal.episodes import episode_rows, notes, print_checked, unjudged_windows

    form, base = options.format, _clock(checked, options)
    if form == "table":
        print_checked(checked, base, belonging)
        return
    for note in (*notes(checked), *unjudged_windows(checked)):
        say(note)
    if form == "junit":
        sys.stdout.write(junit(checked, path.name, base))
        return
    lines = {"csv": text.csv_lines, "ndjson": text.ndjson_lines}[form]
    rows, stamp = episode_rows(checked.verdicts, base, options.unit), stamp_of(base, checked.verdicts)
    sys.stdout.writelines(line + "\n" for line in lines(rows, stamp))


def _clock(checked: Checked, options: Options) -> str:
    """Return how times are shown; UsageError where a clock is asked that no run has."""
    relative = all(verdict.relative for verdict in checked.verdicts)
    base: str = options.time_base or ("elapsed" if relative else "utc")
    if base != "elapsed" and relative:
        raise UsageError("the start of a run is not known, so its times are elapsed; give --t0 for times of the clock")
    return base


def _sent(hook: Webhook | None, checked: Checked) -> int:
    """Tell the webhook of every episode that is certain; return the exit status, 0 where all went well."""
    from ingest.objectives.check import certain

    if hook is None:
        return 0
    episodes = sorted((each for verdict in checked.verdicts for each in certain(verdict)), key=lambda each: each.start_ns)
    try:
        count = hook.tell(episodes, {verdict.run: verdict.relative for verdict in checked.verdicts})
    except DeliveryError as error:
        say(error)
        return error.exit_status
    say(f"sent {hook.host} {counted(count, 'episode')}")
    return 0
