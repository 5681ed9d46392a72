"""check: objectives held against runs; when did the problem start and end."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.api.sides import EMPTY
from ingest.cli.answers import asked, print_rows
from ingest.cli.options import BEGIN_OF_EACH, TIME_BASE, UNIT, Asking, Showing, argument, command, formats, marks_for, option
from ingest.cli.output import say, verdict_stands
from ingest.cli.sources import marks_of, opened, split_sources
from ingest.core.errors import DeliveryError, UsageError, counted
from ingest.core.units import parse_duration
from ingest.query.origin import is_store

if TYPE_CHECKING:
    from ingest.core.marks import Mark
    from ingest.objectives.check import Checked
    from ingest.objectives.webhook import Webhook
    from ingest.query.episodes import Episode
    from ingest.query.origin import Origin
    from ingest.query.question import Question

VIOLATED, CANNOT_TELL = 1, 5


class Options(Asking, Showing):
    """What a call of check says."""

    sources: tuple[str, ...] = argument("[SLA.yml] [SOURCE]...", required=False, files=True)
    promises: tuple[str, ...] = option(
        "--sla",
        metavar="OBJECTIVE",
        help="Objective in place of a file, such as 'p99<5ms', 'max<1s', 'rate>=5000/s', or against a run: 'p99 at most 10% "
        "above nightly-41', 'rate at most 5% below nightly-41'; may be repeated.",
    )
    window: str | None = option("--window", metavar="S", help="Width of the windows of --sla, such as 1s [default: 10s].")
    by: str = ""
    begin: str | None = BEGIN_OF_EACH
    merge_runs: bool = False
    record: bool = option("--record", help="Save the episodes in the store, for reports and dashboards.")
    allow_unknown: bool = option(
        "--allow-unknown", help="Exit with status 0 in place of 5 if missing samples leave a verdict open."
    )
    webhook: str | None = option(
        "--webhook", metavar="URL", help="POST each episode as JSON to URL; env:NAME reads the URL from the environment."
    )
    marks: tuple[Path, ...] = marks_for(
        "File of marks for the words during, outside, before, after of objectives; beside those of the store; may be repeated."
    )
    time_base: str | None = TIME_BASE
    unit: str = UNIT
    format: str = formats("table", "csv", "ndjson", "markdown", "junit")


@command(Options)
def check(options: Options) -> int:
    """Check runs against objectives: when a promise was broken, for how long, and which host contributed most.

    \b
    Examples:
      tailboard check --sla 'p99<5ms' --sla 'rate>=5000/s' ./cbt-archive
      tailboard check --sla 'rate at most 5% below nightly-41' --run nightly-42
      tailboard check SLA.yml ./cbt-archive
      tailboard check SLA.yml --run 'nightly-42*' --record
      tailboard check SLA.yml http://host:9200 --run 'nightly-*' --format junit > sla.xml
      tailboard check SLA.yml ./cbt-archive --marks operations.csv

    SLA.yml holds objectives: name, window, percentile with threshold, good or rate; for, hold, no_data, budget, where, by, and
    for parts of a run during, outside, before, after with the text of a mark (docs/guides/check.md). A run is compared with a
    baseline as a whole, by the bounds of compare; that has no episodes.
    csv and ndjson have one line per episode: objective, the by labels, start,end, peak (in --unit, ns), lowest_rate if an
    objective is about a rate, samples, worst_host, state (open, ended, or provisional while windows can still change). Exit
    status: 1 if an objective is violated, 5 if missing samples or wide bounds leave the verdict open ("cannot tell";
    --allow-unknown makes it 0), 4 if the webhook could not be reached.
    """
    from ingest.objectives.check import check_in, keep
    from ingest.objectives.objectives import objective_of
    from ingest.objectives.webhook import webhook

    hook = webhook(options.webhook) if options.webhook else None
    path, options = _file_first(options)
    window_ns = parse_duration(options.window or "10s")
    selection, marks = _selection(options), marks_of(options.marks)
    with _opened(options) as origin:
        checked = check_in(origin, path, selection, marks, [objective_of(text, window_ns) for text in options.promises])
        if options.record:
            keep(origin, checked)  # type: ignore[arg-type]  # _opened gives a store where it is to be written
        belonging = []
        if options.format == "table":  # which findings of the runs the episodes belong to
            from ingest.objectives.check import belongings
            from ingest.query.story.story import story

            belonging = belongings(checked.verdicts, lambda run: story(origin, selection.about([run])))
    with verdict_stands():
        _write(checked, options, path.name if path else "--sla", belonging)
    if not_sent := _sent(hook, checked):
        return not_sent
    if checked.violated:
        return VIOLATED
    return 0 if checked.met or options.allow_unknown else CANNOT_TELL


def _file_first(options: Options) -> tuple[Path | None, Options]:
    """Return the file of objectives that stands before the sources, if there is one, and the call without it."""
    first = options.sources[0] if options.sources else ""
    if options.promises:
        path = Path(first) if first.endswith((".yml", ".yaml")) else None
    elif options.window:
        raise UsageError("--window is for --sla: objectives in a file say how wide their windows are")
    elif not first or is_store(first) or Path(first).is_dir():
        sources = shlex.join(options.sources)
        example = f"tailboard check --sla 'p99<5ms' {sources}".rstrip()
        raise UsageError(
            f"check needs objectives: {example}, or a file of them first: {f'tailboard check SLA.yml {sources}'.rstrip()}"
        )
    else:
        path = Path(first)
    return path, options.but(sources=options.sources[1:]) if path else options


def _selection(options: Options) -> Question:
    """Return the answers to judge; UsageError where only a part of a run would be kept as the whole, or I/Os are shares."""
    if options.attribution != "completion":
        raise UsageError("objectives count whole I/Os, in-flight weights are shares of them: leave out --attribution")
    if options.failures == "apart":
        raise UsageError("an objective says which operations it is about: where: {outcome: ok} in a file, or --failures ignore")
    if options.record and (options.where or options.begin or options.end or options.failures == "ignore"):
        raise UsageError("--record keeps what whole runs show: leave out --where, --from, --to and --failures")
    if options.record and options.marks:
        raise UsageError(
            "--record judges by the marks of the store: note them first (tailboard runs mark --run GLOB --marks FILE)"
        )
    return asked(options, "auto")


@contextmanager
def _opened(options: Options) -> Iterator[Origin]:
    """Give the files or the store that are asked, a store to be written with --record."""
    from ingest.core.errors import StoreError
    from ingest.store import open_store

    url = split_sources(options.sources)[0] if options.record else ""  # it reads standard input, which is there once
    if options.record and not url:
        raise UsageError("--record keeps episodes in a store: load the files first, then check the store")
    with opened(options) as origin:
        if not origin.runs():
            raise StoreError(EMPTY)
        if not options.record:
            yield origin
            return
    with open_store(url, write=True) as store:
        yield store


def violations(origin: Origin, path: Path, question: Question, marks: Sequence[Mark] = ()) -> list[Episode]:
    """Return the episodes of objectives in the runs, series and range of a question, for a page that draws them.

    `marks` are given beside those that the origin keeps.
    What could not be judged is said on stderr. InputError as `check` raises it.
    """
    from ingest.objectives.check import check_in
    from ingest.query.question import Question as Selection

    selection = Selection(question.runs, question.where, begin=question.begin, end=question.end)
    checked = check_in(origin, path, selection, marks)
    _say_notes(checked)
    return [each for verdict in checked.verdicts for each in verdict.episodes]


def _say_notes(checked: Checked) -> None:
    from ingest.view.terminal.episodes import comparison_lines, notes, unjudged_windows

    for note in (*comparison_lines(checked), *notes(checked), *unjudged_windows(checked)):
        say(note)


def _write(checked: Checked, options: Options, suite: str, belonging: Sequence[str]) -> None:
    """Print the verdicts in the format that was asked for; UsageError where a clock is asked that no run has."""
    from ingest.objectives.junit import junit
    from ingest.objectives.objectives import stamp_of
    from ingest.view.terminal.episodes import episode_rows, print_checked

    relative = bool(checked.verdicts) and all(verdict.relative for verdict in checked.verdicts)
    form, base = options.format, options.time_base or ("elapsed" if relative else "utc")
    if base != "elapsed" and relative:
        raise UsageError("the start of a run is not known, so its times are elapsed; give --t0 for times of the clock")
    if form == "table":
        print_checked(checked, base, belonging)
        return
    _say_notes(checked)
    if form == "junit":
        sys.stdout.write(junit(checked, suite, base))
        return
    print_rows(episode_rows(checked.verdicts, base, options.unit), form, stamp_of(base, checked.verdicts))


def _sent(hook: Webhook | None, checked: Checked) -> int:
    """Tell the webhook of every episode that is certain; return the exit status, 0 where all went well."""
    from ingest.objectives.check import certain
    from ingest.query.episodes import VIOLATED as BROKEN

    if hook is None:
        return 0
    episodes = sorted((each for verdict in checked.verdicts for each in certain(verdict)), key=lambda each: each.start_ns)
    worse = [each for each in checked.compared if each.outcome == BROKEN]
    try:
        count = hook.tell([*episodes, *worse], {verdict.run: verdict.relative for verdict in checked.verdicts})
    except DeliveryError as error:
        say(error)
        return error.exit_status
    say(f"sent {hook.host} {counted(count, 'message')}")
    return 0
