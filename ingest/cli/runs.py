"""runs: shows, deletes and coarsens the runs of a store."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import click

from ingest.cli.help import Group
from ingest.cli.mark import mark
from ingest.cli.options import OUTPUT, InStore, command, formats, option
from ingest.cli.output import say
from ingest.cli.sources import chosen, letters_named, opened_store
from ingest.core.errors import StoreError, TailboardError, UsageError, choices, counted, listed
from ingest.core.labels import run_matches
from ingest.core.units import format_duration, parse_duration

if TYPE_CHECKING:
    from ingest.store import Store
    from ingest.store.lifecycle import CoarserBins
    from ingest.store.records import RunRecord


@click.group(cls=Group)
def runs() -> None:
    """List, show, verify, delete, coarsen and mark the runs of a store.

    \b
    Examples:
      tailboard runs list
      tailboard runs show nightly-42
      tailboard runs check
      tailboard runs delete 'nightly-4*' --yes
      tailboard runs delete --older-than 400d --yes
      tailboard runs coarsen 'nightly-*' --step 1m --older-than 30d
      tailboard runs mark --run nightly-42 --at +33s "osd.3 down"
    """


runs.add_command(mark)


class Listing(InStore):
    """What a call of runs list says."""

    form: str = formats("table", "ndjson")
    output: str | None = OUTPUT


@command(Listing, "list", group=runs)
def list_(options: Listing) -> None:
    """List runs, all of them where none is named: state, step, sources, samples, start time, time of loading.

    \b
    JSON has more of each: the end of its last sample, the kind that is taken where none is asked for, and what its tools
    say that they counted beside what is stored of that, by kind and operation.

    Of a run that an older version has loaded, a line says what loading it again adds.
    """
    from ingest.core.coverage import means_alone
    from ingest.core.stated import stored_counts
    from ingest.core.units import utc
    from ingest.store.answers import lacked_by
    from ingest.store.coverage import logs_in
    from ingest.store.rollups import default_kind_of

    def row_of(record: RunRecord) -> dict[str, Any]:
        accounts, latencies = catalogue.accounts.get(record.run, ()), catalogue.latencies(record.run)
        ends = [stored.last_ns for stored in latencies if stored.last_ns is not None]
        counts = stored_counts(record.run, accounts)
        return {
            "run": record.run,
            "state": record.state,
            "step": format_duration(record.step_ns),
            "sources": sum(map(logs_in, accounts)),
            "samples": sum(int(account.get("samples", 0)) for account in accounts),
            "start": None if record.relative else utc(record.start_ns),
            "end": None if record.relative or not ends else utc(max(ends)),
            "kind": default_kind_of(latencies) if latencies else None,
            "loaded": record.loaded,
            "means_alone": means_alone(accounts),
            "counted": [
                {"kind": kind, "op": op, "tool": stated, "stored": held} for (kind, op), (stated, held) in sorted(counts.items())
            ],
            "reload_adds": lacked_by(catalogue, record),
        }

    with opened_store(options) as (store, globs):
        catalogue = store.catalogue()
        rows = [row_of(record) for record in chosen(store, globs, catalogue.records)]
    if options.form == "ndjson":
        sys.stdout.writelines(json.dumps(row) + "\n" for row in rows)
        return
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from ingest.view.terminal.tables import escape, people

    table = Table(box=SIMPLE_HEAD, pad_edge=False)
    for name in ("run", "state", "step", "sources", "samples", "start", "loaded"):
        table.add_column(name, justify="right" if name in ("sources", "samples") else "left", overflow="fold")
    older: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        row["state"] += ", means alone" if row["means_alone"] else ""
        shown = {**row, "samples": f"{row['samples']:,}", "start": row["start"] or "unknown"}
        table.add_row(*(escape(str(shown[str(column.header)])) for column in table.columns))
        older.setdefault(tuple(row["reload_adds"]), []).append(row["run"])
    people().print(table)
    for lacked, names in older.items():
        if lacked:
            say(f"{listed(names)}: loaded by an older version; loading again with --replace adds {' and '.join(lacked)}")


@command(InStore, group=runs)
def show(options: InStore) -> None:
    """Show one run as JSON: parameters, labels, start time, marks, and each source with its summary."""
    from dataclasses import asdict

    with opened_store(options) as (store, globs):
        shown = []
        if not globs:
            raise UsageError(f"runs show takes a run: {choices('', (record.run for record in store.runs()))}")
        for record in chosen(store, globs):
            sources = [asdict(source) for source in store.sources(record.run)]
            shown.append({**asdict(record), "sources": sources, "marks": list(store.marks_of([record.run]))})
    print(json.dumps(shown if len(shown) > 1 else shown[0], indent=2))


class Checking(InStore):
    """What a call of runs check says."""

    mend: bool = option("--mend", help="Repair what can be repaired.")
    as_json: bool = option("--json", help="Print the faults as JSON.")


@command(Checking, group=runs)
def check(options: Checking) -> int:
    """Verify that a store is consistent, name what is not, and repair it on request.

    \b
    Examples:
      tailboard runs check
      tailboard runs check 'nightly-*' --store http://host:9200 --json
      tailboard runs check --mend

    Prints one line for each kind of fault: how often, where, the first place, what to do. Exit status: 0 if there is no fault,
    4 if there is one (with --mend: if something is left to do, such as loading a file again). Nothing is changed without
    --mend. Of runs that are being loaded or watched only the owners of data are checked (docs/guides/scale.md).
    """
    from ingest.core.errors import shown

    mend = options.mend
    with opened_store(options, write=mend) as (store, globs):
        verified = store.verify(lambda run: not globs or (bool(run) and run_matches(run, globs)), mend=mend)
    if options.as_json:
        print(json.dumps(verified.as_dict(), indent=2))
    else:
        for fault in verified.faults:
            print(shown(str(fault)))
        if not verified.faults:
            print(f"no fault in {counted(verified.runs, 'run')}, {counted(verified.documents, 'document')}")
    for text in verified.unfinished:
        say(text)
    for path in sorted(verified.again.values()) if mend else ():
        say(f"to be loaded again: {path}")
    return StoreError.exit_status if verified.faults and not (mend and verified.settled) else 0


class Selecting(InStore):
    """Which runs of which store are deleted or coarsened."""

    age: str | None = option(
        "--older-than",
        metavar="D",
        help="Only runs that began longer ago, such as 30d (runs without a start time: that were loaded).",
    )
    dry_run: bool = option("--dry-run", help="Only show what would be done.")


class Deleting(Selecting):
    """What a call of runs delete says."""

    yes: bool = option("--yes", help="Do not ask for confirmation.")
    force: bool = option("--force", help="Also delete runs that are being loaded or watched, or whose load was interrupted.")


@command(Deleting, group=runs)
def delete(options: Deleting) -> int:
    """Delete runs with all their data: documents, rollups, sources, marks.

    \b
    Examples:
      tailboard runs delete nightly-42
      tailboard runs delete 'nightly-*' --older-than 400d --yes

    RUN is a name or a glob; without it --older-than selects among all runs. After an interruption the same command continues.
    A SQLite file keeps its size: later loads use the free space. A run that is being loaded is not deleted (exit status 4); with
    --force it is deleted, and a load that still writes to it ends with an error.
    """
    with opened_store(options, write=not options.dry_run) as (store, globs):
        records = _selected(store, globs, options.age)
        names = ", ".join(record.run for record in records)
        if not records or options.dry_run:
            say(f"would delete {names}" if records else f"no run is older than {options.age}: nothing to delete")
            return 0
        if not options.yes:
            if not sys.stdin.isatty():
                raise UsageError(f"deleting {names} needs --yes when there is no terminal to ask on")
            click.confirm(f"Delete {names}?", abort=True, err=True)

        def deleted(record: RunRecord) -> None:
            say(f"deleted {record.run}: {counted(store.delete_run(record.run, force=options.force), 'document')}")

        return _each(store, records, deleted)


class Coarsening(Selecting):
    """What a call of runs coarsen says."""

    step: str | None = option("--step", metavar="S", help="New width of windows: 1s, 5s, 10s, 30s, 1m, 5m, 10m, 30m, 1h.")
    digits: int | None = option("--digits", metavar="N", help="Wider bins of HdrHistogram data: N significant digits, 0 to 4.")
    coarseness: int | None = option("--coarseness", metavar="N", help="Wider bins of fio data: 2^N bins become one, 1 to 6.")


@command(Coarsening, group=runs)
def coarsen(options: Coarsening) -> int:
    """Merge the windows of runs, or the bins of their histograms, into wider ones. All samples stay.

    \b
    Examples:
      tailboard runs coarsen nightly-42 --step 1m
      tailboard runs coarsen 'nightly-*' --step 5m --older-than 30d
      tailboard runs coarsen 'nightly-*' --step 1h --digits 2 --coarseness 3 --older-than 90d

    With --step, questions at the new step have the same answers as before; detail finer than it is lost; offsets within the
    second stay. With --digits and --coarseness percentiles get a larger error bound, which every answer states (a table of
    space and error: docs/explanation/numbers.md). After an interruption the same command completes the work. Loading the
    same files again is skipped, other files are refused for this run, and load --replace loads it anew.
    """
    from ingest.store.lifecycle import COARSENING, CoarserBins, check_step

    bins = CoarserBins(options.digits, options.coarseness)
    step_ns = parse_duration(options.step) if options.step else 0
    if step_ns:
        check_step(step_ns)
    elif bins == CoarserBins():
        raise UsageError("give --step, --digits or --coarseness")
    with opened_store(options, write=not options.dry_run) as (store, globs):
        records = _selected(store, globs, options.age)
        if not records:
            say(f"no run is older than {options.age}: nothing to coarsen")

        def coarsened(record: RunRecord) -> None:
            if options.dry_run and bins != CoarserBins():
                say(f"would coarsen the bins of {record.run}: {bins}")
            done = record.step_ns >= step_ns and COARSENING not in record.parameters  # a coarsening may have been cut off
            if step_ns and done:
                say(f"{record.run} is stored at {format_duration(record.step_ns)} already")
            elif step_ns and options.dry_run:
                say(f"would coarsen {record.run} from {format_duration(record.step_ns)} to {format_duration(step_ns)}")
            elif step_ns:
                _coarsen(store, record, step_ns)
            if bins != CoarserBins() and not options.dry_run:
                _widen(store, record, bins)

        return _each(store, records, coarsened)


def _each(store: Store, records: Sequence[RunRecord], work: Callable[[RunRecord], None]) -> int:
    """Do something with each run, say what fails, and return the exit status: a run that is being loaded holds up no other."""
    failed: list[TailboardError] = []
    for record in records:
        try:
            with letters_named(store):
                work(record)
        except TailboardError as error:
            say(error)
            failed.append(error)
    return failed[0].exit_status if failed else 0


def _coarsen(store: Store, record: RunRecord, step_ns: int) -> None:
    done = store.coarsen(record.run, step_ns)
    if done.from_ns == done.to_ns:
        say(f"{record.run} is stored at {format_duration(step_ns)} already")
        return
    steps = f"from {format_duration(done.from_ns)} to {format_duration(done.to_ns)}"
    removed = f"{counted(done.before, 'old document')} removed"
    counts = f"{counted(done.before, 'document')} before, {done.after:,} after" if done.after else removed
    say(f"coarsened {record.run} {steps}: {counts}")


def _widen(store: Store, record: RunRecord, bins: CoarserBins) -> None:
    done = store.widen(record.run, bins)
    if not done.documents:
        say(f"the bins of {record.run} are as wide as {bins} already, or of another kind")
        return
    counts = f"{done.before:,} bins in {counted(done.documents, 'document')} before, {done.after:,} after"
    say(f"coarsened the bins of {record.run} ({bins}): {counts}")


def _selected(store: Store, globs: tuple[str, ...], age: str | None) -> list[RunRecord]:
    """Return the records of the runs that a glob selects and that are older than an age."""
    import time

    from ingest.store.records import began_ns

    if not globs and age is None:
        raise UsageError("give a run, a glob, or --older-than")
    before = time.time_ns() - parse_duration(age) if age else None
    records = chosen(store, globs)
    if before is None:
        return records
    return [record for record in records if (began := began_ns(record)) is not None and began < before]
