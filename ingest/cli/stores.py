"""mark, export: what happened in a run, and everything that is stored, as csv or as logs of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.origins import opened
from ingest.cli.queries import asked
from ingest.cli.saying import say
from ingest.errors import InputError, UsageError, listed

if TYPE_CHECKING:
    from ingest.intervals import Intervals
    from ingest.query.origin import Origin
    from ingest.store import RunRecord, Store
    from ingest.view.text import Stamp

store_option = click.option("--store", metavar="URL", help="Store [default: $TAILBOARD_STORE, else sqlite:tailboard.db].")


def opened_store(url: str | None, *, write: bool = False) -> Store:
    """Return the store that --store names, else the default one."""
    from ingest.store import open_store

    return open_store(options.store_url(url), write=write)


@contextmanager
def letters_named(store: Store) -> Iterator[None]:
    """Say, where what is done inside fails, in which file the documents lie that the server has refused before."""
    try:
        yield
    except BaseException:
        refused, sentence = store.refusals()
        if refused:
            say(sentence)
        raise


def chosen(store: Store, globs: tuple[str, ...]) -> list[RunRecord]:
    """Return the records of the runs that globs select; InputError where there is none."""
    from ingest.series import run_matches

    records = store.runs()
    found = [record for record in records if run_matches(record.run, globs)]
    if globs and not found:
        have = listed(record.run for record in records) or "none"
        raise InputError(f"no run matches {' '.join(globs)}; the store holds {have}")
    return found


@click.command()
@click.argument("text", required=False)
@click.option("--run", "run", required=True, metavar="GLOB", help="Run that it happened in.")
@click.option("--at", "at", metavar="T", help="When: ISO 8601, epoch s or ms, +90s (from the start), now-15m.")
@click.option("--end", "until", metavar="T", help="Until when it lasted, likewise.")
@click.option(
    "--marks",
    "marks",
    metavar="FILE",
    multiple=True,
    type=click.Path(path_type=Path),
    help="Many at once, in place of TEXT: lines of time,text or time,end,text, or a JVM's GC log (-Xlog:gc*).",
)
@store_option
def mark(text: str | None, run: str, at: str | None, until: str | None, marks: tuple[Path, ...], store: str | None) -> None:
    """Note what happened at a time of a run; reports draw it.

    \b
    Examples:
      tailboard mark --run nightly-42 --at +33s "osd.3 down"
      tailboard mark --run nightly-42 --at +33s --end +44s "recovery"
      tailboard mark --run nightly-42 --marks gc.log --marks operations.csv

    Marks of a file go to the runs that they overlap, those from +90s to every run; the same mark again is noted once.
    """
    if marks:
        if text is not None or at or until:
            raise UsageError("--marks takes times and texts from files: leave out TEXT, --at and --end")
        _mark_all(run, marks, store)
        return
    if text is None or not at:
        raise UsageError("a mark needs --at T and its text, or --marks FILE")
    from ingest.marks import checked
    from ingest.timing import parse_instant
    from ingest.view.text import utc

    one = checked(parse_instant(at), parse_instant(until) if until else None, text)
    with opened_store(store, write=True) as store_:
        for record in chosen(store_, (run,)):
            stamp = one.at.epoch_ns(record.start_ns)
            store_.mark(record.run, stamp, one.text, None if one.end is None else one.end.epoch_ns(record.start_ns))
            say(f"marked {record.run} at {utc(stamp)}")


def _mark_all(run: str, paths: tuple[Path, ...], store: str | None) -> None:
    from ingest.cli.marks import keep, read_all

    found = read_all(paths)
    with opened_store(store, write=True) as store_:
        keep(store_, [record.run for record in chosen(store_, (run,))], found)


@click.command()
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@options.selecting_options
@click.option("--step", metavar="S|all", help="Width of an interval (hlog) [default: the stored step].")
@options.reading_options
@options.hgrm_options
@click.option("--format", type=click.Choice(["csv", "hlog", "hgrm", "documents"]), default="csv", show_default=True)
def export(sources: tuple[str, ...], **words: Any) -> None:
    """Everything that is stored, at the stored step: as csv, or as a log that HdrHistogram's own tools read.

    \b
    Examples:
      tailboard export --run nightly-42 > nightly-42.csv
      tailboard export gen1/ gen2/ --format hlog > union.hlog
      tailboard export stress.hdr --where op=insert --where kind=response --format hlog > insert-rt.hlog
      tailboard export stress.hdr --by op,kind --format hgrm --unit ms > stress.hgrm
      tailboard export sqlite:x.db --run nightly-42 --format documents > bulk.ndjson

    csv: one row per series, window and occupied bin: start,end (UTC; +12.5s where no start is known), all labels, lower,upper
    (ns), count.
    hlog: one line per window and tag, added up over all logs; --by op,kind,tag unless it says otherwise.
    hgrm: the percentile distribution of each --by group over the whole range, in --unit (ns).
    documents: complete runs of a store, as the bulk requests that bring them into Elasticsearch (set up, period month).
    """
    if words["format"] == "documents":
        _export_documents(sources, asked(words, "auto").runs)
        return
    if words["format"] == "hlog":
        from ingest.cli.hlog import export_hlog

        export_hlog(sources, words)
        return
    if words["format"] == "hgrm":
        from ingest.cli.queries import answered, warn
        from ingest.view.hgrm import texts
        from ingest.view.text import UNITS

        answer = answered(sources, words, asked(words, "all"))
        warn(answer)
        sys.stdout.writelines(texts(answer, UNITS[words["unit"]], words["ticks"]))
        return
    from ingest.series import LABELS

    question = asked({**words, "by": ",".join(LABELS)}, "auto")
    parts = (_csv_rows(windows, clocks) for windows, clocks in _exported(sources, words, question))
    first = next(parts, ())  # a heading alone would look like a store that is empty
    sys.stdout.write(",".join(("start", "end", *LABELS, "lower", "upper", "count")) + "\n")
    for rows in chain([first], parts):
        sys.stdout.writelines(rows)


def _export_documents(sources: tuple[str, ...], globs: Sequence[str]) -> None:
    stores, _ = options.split_sources(sources)
    if not stores:
        raise UsageError("documents are exported from a store: load the files first")
    from ingest.store import open_store
    from ingest.store.elastic.connection import DEFAULT_PREFIX
    from ingest.store.elastic.export import bulk_lines
    from ingest.store.elastic.names import Names
    from ingest.store.records import UNKNOWN_ZERO

    names = Names(os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    with open_store(stores[0]) as store:
        records = chosen(store, tuple(globs))
        undated = [record for record in records if record.zero == UNKNOWN_ZERO]
        if len(undated) < len(records):
            for record in undated:
                say(f"{record.run} is left out: no start time, so its documents have no real times")
            records = [record for record in records if record not in undated]
        for line in bulk_lines(store, records, names):
            sys.stdout.write(line.decode())


def _exported(sources: tuple[str, ...], words: dict[str, Any], question: Any) -> Iterator[tuple[Intervals, Mapping[str, Stamp]]]:
    """Yield the selected windows at the stored step, in bounded batches, and how times of runs without a clock are written."""
    with opened(sources, words) as origin:
        clocks = _elapsed_stamps(origin)
        for windows in origin.windows(question):
            yield windows, clocks


def _elapsed_stamps(origin: Origin) -> dict[str, Stamp]:
    """Return, for each run without a clock, the function that writes its times: +12.5s."""
    from ingest.query.clocks import since

    def stamp(start: int) -> Stamp:
        return lambda stamp_ns: since(stamp_ns - start)

    return {one.run: stamp(one.start_ns) for one in origin.runs() if one.relative}


def _csv_rows(windows: Intervals, clocks: Mapping[str, Stamp]) -> Iterator[str]:
    from ingest.view.text import utc

    edges = windows.layout.edges
    lower, upper = edges[windows.bins].tolist(), edges[windows.bins + 1].tolist()
    if not windows.layout.has_bins:  # counts of means: nothing is known of where their samples lie
        lower = upper = [""] * len(windows.bins)
    counts, pointers = windows.counts.tolist(), windows.indptr.tolist()
    keys = windows.groups
    labels = [",".join(_quoted(label) for label in key[2:]) for key in keys]
    stamps = [clocks.get(key[0], utc) for key in keys]
    for row, (code, start, end) in enumerate(
        zip(windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist(), strict=True)
    ):
        front = f"{stamps[code](start)},{stamps[code](end)},{labels[code]}"
        for entry in range(pointers[row], pointers[row + 1]):
            yield f"{front},{lower[entry]},{upper[entry]},{counts[entry]}\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell
