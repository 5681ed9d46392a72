"""load: log files into a store."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.api import words
from ingest.api.words import paths_of
from ingest.cli.options import FORCE, MARKS, PATHS, Reading, command, option, reading_of
from ingest.cli.output import Progress, say
from ingest.cli.sources import check_files, keep_marks, letters_named, marks_of
from ingest.core.errors import InputError, StoreError, TailboardError, UsageError, listed
from ingest.query.origin import is_server, store_url

if TYPE_CHECKING:
    from ingest.load.load import LoadAccount
    from ingest.load.plan import LoadOptions
    from ingest.store import Store


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
    return words.load_options(
        options.run,
        reading_of(options),
        what,
        step=options.step,
        force=options.force,
        attribution=options.attribution,
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
    from ingest.load.load import sentences_of
    from ingest.store import open_store

    began = time.monotonic()
    with open_store(url, write=True) as store, letters_named(store), Progress("loading") as bar:
        account = load_all(files, store, chosen, lambda done, total: bar(done, total, rate(store, began)))
        refused, sentence = store.refusals()
        links = kibana_links(store, url, account.runs) if account.runs else []
    account.seconds = time.monotonic() - began
    for line in (*sentences_of(account, url), *links):
        say(line)
    if refused:
        return account, StoreError(sentence)
    if strict and (account.rows.rejected or account.refused):
        return account, InputError("rows were rejected or files refused, and --strict was given")
    return account, None


def kibana_links(store: Store, url: str, runs: Sequence[str] = ()) -> list[str]:
    """Return a sentence with Kibana's address for each run, without runs for what comes in now.

    None where $TAILBOARD_KIBANA does not say where Kibana is, or `url` is no server's.
    """
    kibana = os.environ.get("TAILBOARD_KIBANA", "")
    if not kibana or not is_server(url):
        return []
    from ingest.core.grid import MS
    from ingest.store.elastic.client import parse_address
    from ingest.store.records import overview_step
    from ingest.view.kibana.importing import dashboard_link

    prefix = parse_address(url).prefix
    if not runs:
        return [f"Kibana: {dashboard_link(kibana, prefix)}"]
    catalogue, links = store.catalogue(), []
    for record in catalogue.records:
        ends = [stored.last_ns for stored in catalogue.latencies(record.run) if stored.last_ns is not None]
        if record.run in runs and ends:
            step = overview_step(record.step_ns)  # panels take the windows that begin in the range
            span = (record.start_ns // step * step // MS, -(-max(ends) // step) * step // MS - 1)
            links.append(f"Kibana: {dashboard_link(kibana, prefix, record.run, span)}")
    return links


def rate(store: Store, began: float) -> str:
    """Return how many documents were sent so far and how fast, for the progress bar; nothing where none are sent."""
    sent = store.delivered().get("sent", 0)
    return f"loading: {sent:,} documents, {sent / max(time.monotonic() - began, 0.1):,.0f} a second" if sent else ""
