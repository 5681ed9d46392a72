"""export: everything that is stored, as csv or as logs of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.answers import asked
from ingest.cli.shared.help import Choice, Command, file_names
from ingest.cli.shared.say import say
from ingest.cli.shared.sources import opened, split_sources
from ingest.cli.shared.stores import chosen
from ingest.core.errors import UsageError

if TYPE_CHECKING:
    from ingest.core.intervals import Intervals
    from ingest.core.series import Group
    from ingest.core.writing import Stamp
    from ingest.query.origin import Origin
    from ingest.query.question import Question


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options(shared.Asking, shared.Showing):
    """What a call of export says."""

    step: str | None
    ticks: int


@click.command(cls=Command)
@click.argument("sources", nargs=-1, metavar="[SOURCE]...", shell_complete=file_names)
@shared.selecting_options
@click.option("--step", metavar="S|all", help="Width of an interval (hlog, otlp) [default: the stored step].")
@shared.reading_options
@shared.hgrm_options
@click.option("--format", type=Choice(["csv", "hlog", "hgrm", "otlp", "documents"]), default="csv", show_default=True)
@shared.typed(Options)
def export(sources: tuple[str, ...], options: Options) -> None:
    """Export all data at the stored step: as csv, as a log that HdrHistogram's own tools read, or as OpenTelemetry metrics.

    \b
    Examples:
      tailboard export --run nightly-42 > nightly-42.csv
      tailboard export gen1/ gen2/ --format hlog > union.hlog
      tailboard export stress.hdr --where op=insert --where kind=response --format hlog > insert-rt.hlog
      tailboard export stress.hdr --by op,kind --format hgrm --unit ms > stress.hgrm
      tailboard export sqlite:x.db --run nightly-42 --format otlp > nightly-42.jsonl
      tailboard export sqlite:x.db --run nightly-42 --format documents > bulk.ndjson

    csv: one row per series, window and occupied bin: start,end (UTC; +12.5s where no start is known), all labels, lower,upper
    (ns), count.
    hlog: one line per window and tag, merged over all logs; --by op,kind,tag by default.
    hgrm: the percentile distribution of each --by group over the whole range, in --unit (ns).
    otlp: OpenTelemetry's exponential histograms as JSON lines, one point per window and series; --by and --step add up. Each
    metric states its error. Buckets that a tool listed (Ceph, Prometheus) stay as they are, as explicit histograms.
    documents: complete runs of a store, as bulk requests that load them into Elasticsearch (after setup, period month).
    """
    if options.format == "documents":
        _export_documents(sources, asked(options, "auto").runs)
        return
    if options.format == "hlog":
        from ingest.cli.export_hlog import export_hlog

        export_hlog(sources, options)
        return
    if options.format == "otlp":
        from ingest.cli.export_otlp import export_otlp

        export_otlp(sources, options)
        return
    if options.format == "hgrm":
        from ingest.cli.shared.answers import answered, warn
        from ingest.view.hgrm import texts
        from ingest.view.text import UNITS

        answer = answered(sources, options, asked(options, "all"))
        warn(answer)
        sys.stdout.writelines(texts(answer, UNITS[options.unit], options.ticks))
        return
    from ingest.core.series import LABELS

    question = asked(replace(options, by=",".join(LABELS)), "auto")
    parts = (_csv_rows(windows, clocks) for windows, clocks in _exported(sources, options, question))
    first = next(parts, ())  # a heading alone would look like a store that is empty
    sys.stdout.write(",".join(("start", "end", *LABELS, "lower", "upper", "count")) + "\n")
    for rows in chain([first], parts):
        sys.stdout.writelines(rows)


def _export_documents(sources: tuple[str, ...], globs: Sequence[str]) -> None:
    stores, _ = split_sources(sources)
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


def _exported(
    sources: tuple[str, ...], options: Options, question: Question
) -> Iterator[tuple[Intervals[Group], Mapping[str, Stamp]]]:
    """Yield the selected windows at the stored step, in bounded batches, and how times of runs without a clock are written."""
    with opened(sources, options) as origin:
        clocks = _elapsed_stamps(origin)
        for windows in origin.windows(question):
            yield windows, clocks


def _elapsed_stamps(origin: Origin) -> dict[str, Stamp]:
    """Return, for each run without a clock, the function that writes its times: +12.5s."""
    from ingest.query.clocks import since

    def stamp(start: int) -> Stamp:
        return lambda stamp_ns: since(stamp_ns - start)

    return {record.run: stamp(record.start_ns) for record in origin.runs() if record.relative}


def _csv_rows(windows: Intervals[Group], clocks: Mapping[str, Stamp]) -> Iterator[str]:
    from ingest.core.writing import utc

    edges = windows.layout.edges
    lower, upper = edges[windows.bins].tolist(), edges[windows.bins + 1].tolist()
    if not windows.layout.has_bins:  # counts of means: nothing is known of where their samples lie
        lower = upper = [""] * len(windows.bins)
    counts, pointers = windows.counts.tolist(), windows.indptr.tolist()
    keys = windows.table
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
