"""load: log files into a store."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.cli.options import FORCE, MARKS, PATHS, Reading, command, option, pairs, parse_step, read_options
from ingest.cli.output import Progress, say
from ingest.cli.sources import check_files, keep_marks, letters_named, marks_of, paths_of
from ingest.core.errors import InputError, StoreError, TailboardError, UsageError, listed, plural
from ingest.core.labels import LAYER
from ingest.query.origin import store_url

if TYPE_CHECKING:
    from ingest.load.load import LoadAccount
    from ingest.load.plan import LoadOptions
    from ingest.store import Store

SHOWN_FINDINGS = 20


class Loading(Reading):
    """What is loaded into which store, and how: for load and watch."""

    paths: tuple[str, ...] = PATHS
    run: str = option("--run", metavar="ID", help="Name of the run; in an archive of several runs each adds its path.")
    store: str | None = option(
        "--store", metavar="URL", help="Store to write to [default: $TAILBOARD_STORE, else sqlite:tailboard.db]."
    )
    step: str | None = option(
        "--step", metavar="S", help="Width of stored windows: 100ms, 1s, 5s, 10s, ... 1h [default: the interval of the logs]."
    )
    force: bool = FORCE
    labels: tuple[str, ...] = option(
        "--label",
        metavar="K=V",
        help="Label of the run, for --by and --where; layer=client, service or device: where these files timed operations.",
    )
    offsets: bool = option(
        "--offsets/--no-offsets", default=True, help="Also store when within its second each single operation happened."
    )
    replace: bool = False
    marks: tuple[Path, ...] = MARKS


class Options(Loading):
    """What a call of load says."""

    each: bool = option("--each", help="Load each PATH as a run of its own, named RUN/FOLDER: for several archives at once.")
    replace: bool = option(
        "--replace", help="Replace what is in the store: for another step, unit or host offset, or for corrected files."
    )
    add_up: str = option(
        "--add-up",
        metavar="LABELS",
        default="",
        help="Add up the logs of each host before they are stored: job, or job,volume,process,tag; these cannot be asked then.",
    )
    strict: bool = option("--strict", help="Exit with status 3 if any row is rejected or any file refused.")
    as_json: bool = option("--json", help="Print the summary as JSON on stdout.")


@command(Options)
def load(options: Options) -> int:
    """Load log files and folders into a store; each sample is counted exactly once.

    \b
    Examples:
      tailboard load ./cbt-archive --run nightly-42
      tailboard load h1/ h2/ --run test-7 --store sqlite:/data/latency.db --label kernel=6.9
      tailboard load ./corrected --run nightly-42 --replace
      tailboard load archives/2026-* --run nightly --each --jobs 4
      tailboard load ./cbt-archive --run nightly-42 --marks gc.log

    Run it again after an interruption, or when files have grown: data that is in the store already is skipped. With --each
    an archive that is refused is named, the others are loaded, and the first refusal gives the exit status. The summary at
    the end accounts for every file and row.
    """
    from ingest.load.aggregation import labels_in

    check_files(options.paths, "load")
    chosen = replace(load_options(options, "a load"), add_up=labels_in(options.add_up))
    url = store_url(options.store)
    marks, runs = marks_of(options.marks), list[str]()
    accounts: dict[str, Any] = {}
    failed: list[tuple[str, TailboardError]] = []
    for run, files in _loads(options.run, paths_of(options.paths), each=options.each):
        try:
            account, wrong = _loaded(files, replace(chosen, read=replace(chosen.read, run=run)), url, strict=options.strict)
            accounts[run] = account.as_dict()
            runs += account.runs
        except (InputError, StoreError) as error:
            if not options.each:
                raise
            wrong = error
        if wrong:
            failed.append((run, wrong))
    if marks and runs:
        from ingest.store import open_store

        with open_store(url, write=True) as store:
            keep_marks(store, runs, marks)
    if options.as_json:
        import json

        print(json.dumps(accounts if options.each else accounts[options.run], indent=2))
    if not failed:
        return 0
    if not options.each:
        raise failed[0][1]
    for run, wrong in failed:
        say(f"{run}: {wrong}")
    say(f"{len(failed)} of {len(options.paths)} archives are not loaded whole")
    return failed[0][1].exit_status


def load_options(options: Loading, what: str) -> LoadOptions:
    """Return how a call says to load; `what` is called so in errors."""
    from ingest.load.plan import LoadOptions

    if not options.run.strip() or any(mark in options.run for mark in "*?[\n"):
        raise UsageError("--run takes a plain name, without * ? [")
    step = parse_step(options.step) if options.step else None
    if isinstance(step, str):
        raise UsageError(f"--step of {what} is a width such as 1s")
    labels = pairs(options.labels, "--label")
    labels.pop(LAYER, None)  # of the files, not of the run
    return LoadOptions(
        read=read_options(options, options.run, loads=True),
        step_ns=step,
        force=options.force,
        attribution=options.attribution,
        labels=labels,
        replace=options.replace,
        offsets=options.offsets,
        jobs=options.jobs,
    )


def _loads(run: str, paths: Sequence[Path], *, each: bool) -> Iterator[tuple[str, list[Path]]]:
    """Yield the name of each load and its paths; UsageError where two archives would have one name."""
    if not each:
        yield run, list(paths)
        return
    names = [path.resolve().name for path in paths]
    twice = listed(sorted({name for name in names if names.count(name) > 1}))
    if twice:
        raise UsageError(f"--each names loads after folders, and more than one is called {twice}: load them one by one")
    odd = listed(name for name in names if set(name) & set("*?[\n"))
    if odd:
        raise UsageError(f"--each names loads after folders, and a run takes no * ? [ in its name: {odd}")
    yield from ((f"{run}/{name}", [path]) for name, path in zip(names, paths, strict=True))


def _loaded(files: list[Path], chosen: LoadOptions, url: str, *, strict: bool) -> tuple[LoadAccount, TailboardError | None]:
    """Print and return the account of one load, and what is wrong with it all the same: refused documents or rows."""
    from ingest.load.load import load as load_all
    from ingest.store import open_store

    began = time.monotonic()
    with open_store(url, write=True) as store, letters_named(store), Progress("loading") as bar:
        account = load_all(files, store, chosen, lambda done, total: bar(done, total, rate(store, began)))
        refused, sentence = store.refusals()
    account.seconds = time.monotonic() - began
    print_account(account, url)
    if refused:
        return account, StoreError(sentence)
    if strict and (account.rows.rejected or account.refused):
        return account, InputError("rows were rejected or files refused, and --strict was given")
    return account, None


def rate(store: Store, began: float) -> str:
    """Return how many documents were sent so far and how fast, for the progress bar; nothing where none are sent."""
    sent = store.delivered().get("sent", 0)
    return f"loading: {sent:,} documents, {sent / max(time.monotonic() - began, 0.1):,.0f} a second" if sent else ""


def _notes(account: LoadAccount) -> Iterator[str]:
    """Yield the notes on logs, each once for all logs that it concerns, up to SHOWN_FINDINGS of them."""
    from ingest.core.coverage import OMISSION
    from ingest.read.schedule import sentences

    accounts = [source.context.account for source in account.sources]
    schedules = sentences((of_source.path, digest) for of_source in accounts for digest in of_source.schedule)
    said: dict[str, list[str]] = {}
    for of_source in accounts:
        for note in of_source.notes:
            said.setdefault(note, []).append(of_source.path)
    lines = [*sorted(schedules, key=lambda sentence: OMISSION not in sentence)]  # warnings first
    for note, paths in said.items():
        lines.append(f"{paths[0]}: {note}" if len(paths) == 1 else f"{len(paths)} logs, {min(paths)} the first: {note}")
    yield from lines[:SHOWN_FINDINGS]
    if (left := len(lines) - SHOWN_FINDINGS) > 0:
        yield f"... and {left} more {plural(left, 'note')} (--json has them all)"


def print_account(account: LoadAccount, url: str) -> None:
    """Print the account of a load for people, to stderr."""
    from ingest.read.totals import reconciled, skew

    rows = account.rows
    known = account.duplicate.total()
    if known and not account.loaded and not account.refused:
        sources = "the source" if known == 1 else f"all {known:,} sources"
        say(f"nothing new: 0 documents, {sources} of {', '.join(account.runs)} {plural(known, 'is', 'are')} in {url} already")
        return
    passed = f", {rows.rows_skipped} skipped" if rows.rows_skipped else ""
    done = {"source": account.loaded, "row": rows.rows, "sample": rows.samples, "document": account.documents}
    sources, taken, samples, documents = (f"{number} {plural(number, noun)}" for noun, number in done.items())
    of_rows = f"{rows.accepted} accepted, {rows.rows_repaired} repaired, {rows.rows_rejected} rejected{passed}"
    runs = f"{plural(len(account.runs), 'run')} {', '.join(account.runs)}"
    say(f"{sources}, {taken} ({of_rows}), {samples}, {documents} into {url} in {account.seconds:.1f} s; {runs}")
    for beside, number, what in (
        ("offsets", account.offset_documents, "for tailboard show offsets (--no-offsets leaves them out)"),
        ("breaths", account.breath_documents, "for the report and Kibana"),
    ):
        if number:
            say(f"{number} {plural(number, 'document')} of {beside} beside them, {what}")
    if account.delivered:
        kinds = (f"{count} {name}" for name, count in account.delivered.items() if count)
        say(f"documents with those of rollups: {', '.join(kinds)}")
    for name, counter in (("skipped", account.skipped), ("shadowed", account.shadowed), ("duplicate", account.duplicate)):
        for reason, count in sorted(counter.items()):
            say(f"{count} {plural(count, 'file')} {name}: {reason}")
    by_reason: dict[str, list[str]] = {}
    for path, reason in account.refused.items():
        by_reason.setdefault(reason, []).append(path)
    refusals = [f"refused {listed(paths)}: {reason}" for reason, paths in by_reason.items()]
    for text in dict.fromkeys((*refusals, *account.caveats, *map(str, rows.caveats), *_notes(account))):
        say(text)
    for finding in rows.findings[:SHOWN_FINDINGS]:
        say(str(finding))
    left = sum(rows.repaired.values()) + sum(rows.rejected.values()) - min(len(rows.findings), SHOWN_FINDINGS)
    if left > 0:
        say(f"... and {left} more repairs and rejects (--json counts them by reason)")
    for text in (*reconciled(account.sources), *skew(account.sources)):
        say(text)
