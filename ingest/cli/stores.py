"""mark, export: what happened in a run, and everything that is stored, as csv or as logs of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import click

from ingest.cli import options
from ingest.cli.origins import opened
from ingest.cli.queries import asked
from ingest.errors import InputError, UsageError, listed

if TYPE_CHECKING:
    from ingest.intervals import Intervals
    from ingest.store import RunRecord, Store

store_option = click.option("--store", metavar="URL", help="Store [default: $TAILBOARD_STORE, else sqlite:tailboard.db].")


def opened_store(url: str | None, *, write: bool = False) -> Store:
    """Return the store that --store names, else the default one."""
    from ingest.store import open_store

    return open_store(options.store_url(url), write=write)


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
@click.argument("text")
@click.option("--run", "run", required=True, metavar="GLOB", help="Run that it happened in.")
@click.option("--at", "at", required=True, metavar="T", help="When: ISO 8601, epoch s or ms, +90s (from the start), now-15m.")
@store_option
def mark(text: str, run: str, at: str, store: str | None) -> None:
    """Note what happened at a time of a run; reports draw it.

    \b
    Example:
      tailboard mark --run nightly-42 --at +33s "osd.3 down"
    """
    from ingest.timing import parse_instant
    from ingest.view.text import utc

    when = parse_instant(at)
    with opened_store(store, write=True) as store_:
        for record in chosen(store_, (run,)):
            stamp = when.epoch_ns(record.start_ns)
            store_.mark(record.run, stamp, text)
            print(f"tailboard: marked {record.run} at {utc(stamp)}", file=sys.stderr)


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

    csv: one row per series, window and occupied bin: start,end (UTC), all labels, lower,upper (ns), count.
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

    sys.stdout.write(",".join(("start", "end", *LABELS, "lower", "upper", "count")) + "\n")
    question = asked({**words, "by": ",".join(LABELS)}, "auto")
    for windows in _exported(sources, words, question):
        sys.stdout.writelines(_csv_rows(windows))


def _export_documents(sources: tuple[str, ...], globs: Sequence[str]) -> None:
    stores, _ = options.split_sources(sources)
    if not stores:
        raise UsageError("documents are exported from a store: load the files first")
    from ingest.store import open_store
    from ingest.store.elastic.connection import DEFAULT_PREFIX
    from ingest.store.elastic.export import bulk_lines
    from ingest.store.elastic.names import Names

    names = Names(os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    with open_store(stores[0]) as store:
        for line in bulk_lines(store, chosen(store, tuple(globs)), names):
            sys.stdout.write(line.decode())


def _exported(sources: tuple[str, ...], words: dict[str, Any], question: Any) -> Iterator[Intervals]:
    """Yield the selected windows at the stored step, in bounded batches."""
    with opened(sources, words) as origin:
        yield from origin.windows(question)


def _csv_rows(windows: Intervals) -> Iterator[str]:
    from ingest.view.text import utc

    edges = windows.layout.edges
    lower, upper = edges[windows.bins].tolist(), edges[windows.bins + 1].tolist()
    if not windows.layout.has_bins:  # counts of means: nothing is known of where their samples lie
        lower = upper = [""] * len(windows.bins)
    counts, pointers = windows.counts.tolist(), windows.indptr.tolist()
    labels = [",".join(_quoted(label) for label in key[2:]) for key in windows.table if isinstance(key, tuple)]
    for row, (code, start, end) in enumerate(
        zip(windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist(), strict=True)
    ):
        front = f"{utc(start)},{utc(end)},{labels[code]}"
        for entry in range(pointers[row], pointers[row + 1]):
            yield f"{front},{lower[entry]},{upper[entry]},{counts[entry]}\n"


def _quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"' if any(mark in cell for mark in ',"\n\r') else cell
