"""export: everything that is stored, as csv or as logs of other tools."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import TYPE_CHECKING

from ingest import __version__
from ingest.cli.answers import answered, asked, warn
from ingest.cli.options import TICKS, UNIT, Asking, Showing, command, formats, option
from ingest.cli.output import say
from ingest.cli.sources import chosen, opened, split_sources
from ingest.core.errors import InputError, UsageError
from ingest.core.labels import IN_FLIGHT, LABELS, Group

if TYPE_CHECKING:
    from ingest.core.intervals import Intervals
    from ingest.core.units import Stamp
    from ingest.query.origin import Origin
    from ingest.query.question import Question


DEFAULT_BY = "op,kind,tag"  # of hlog
Batches = Iterator[tuple["Intervals[Group]", Sequence[str]]]


class Options(Asking, Showing):
    """What a call of export says."""

    step: str | None = option("--step", metavar="S|all", help="Width of an interval (hlog, otlp) [default: the stored step].")
    unit: str = UNIT
    ticks: int = TICKS
    format: str = formats("csv", "parquet", "hlog", "hgrm", "otlp", "documents")


@command(Options)
def export(options: Options) -> None:
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
    parquet: the same rows as a file for pandas, polars, duckdb and others, into -o FILE.
    otlp: OpenTelemetry's exponential histograms as JSON lines, one point per window and series; --by and --step add up. Each
    metric states its error. Buckets that a tool listed (Ceph, Prometheus) stay as they are, as explicit histograms.
    documents: complete runs of a store, as bulk requests that load them into Elasticsearch (after setup, period month).
    """
    others = {"documents": _export_documents, "hlog": _export_hlog, "otlp": _export_otlp, "parquet": _export_parquet}
    if options.format in others:
        others[options.format](options)
        return
    if options.format == "hgrm":
        from ingest.core.units import UNITS_NS
        from ingest.view.hlog import texts

        answer = answered(options, asked(options, "all"))
        warn(answer)
        sys.stdout.writelines(texts(answer, UNITS_NS[options.unit], options.ticks))
        return

    parts = (_csv_rows(windows, clocks) for windows, clocks in _exported(options, _every_series(options)))
    first = next(parts, ())  # a heading alone would look like a store that is empty
    sys.stdout.write(",".join(("start", "end", *LABELS, "lower", "upper", "count")) + "\n")
    for rows in chain([first], parts):
        sys.stdout.writelines(rows)


def _export_parquet(options: Options) -> None:
    """Write a file of Parquet."""
    from ingest.query.plan import settled
    from ingest.view.arrow import write_parquet

    if not sys.stdout.seekable():
        raise UsageError("parquet goes into a file: -o x.parquet")
    with opened(options) as origin:
        question = settled(origin, _every_series(options))
        write_parquet(origin, question, sys.stdout.buffer)
        _say_what_is_missing(origin, question)


def _every_series(options: Options) -> Question:
    """Return the question for the windows of each series."""
    return asked(options.but(by=",".join(LABELS)))


def _export_documents(options: Options) -> None:
    """Print runs of a store as bulk requests."""
    if options.begin or options.end or options.where or options.by or options.step:
        raise UsageError("documents are those of whole runs, as --run chooses them: csv, hlog and otlp take a part")
    url, _ = split_sources(options.sources)
    if not url:
        raise UsageError("documents are exported from a store: load the files first")
    from ingest.store import open_store
    from ingest.store.elastic.client import DEFAULT_PREFIX
    from ingest.store.elastic.export import bulk_lines
    from ingest.store.elastic.templates import Names
    from ingest.store.records import UNKNOWN_ZERO

    names = Names(os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    with open_store(url) as store:
        records = chosen(store, options.runs)
        undated = [record for record in records if record.zero == UNKNOWN_ZERO]
        if len(undated) < len(records):
            for record in undated:
                say(f"{record.run} is left out: no start time, so its documents have no real times")
            records = [record for record in records if record not in undated]
        for line in bulk_lines(store, records, names):
            sys.stdout.write(line.decode())


def _exported(options: Options, question: Question) -> Iterator[tuple[Intervals[Group], Mapping[str, Stamp]]]:
    """Yield the selected windows at the stored step, in bounded batches, and how times of runs without a clock are written.

    Where what is printed cannot be written, the windows end before their store is closed.
    """
    from ingest.query.plan import settled

    with opened(options) as origin:
        clocks = {record.run: _elapsed_stamp(record.start_ns) for record in origin.runs() if record.relative}
        question = settled(origin, question)
        for windows in origin.windows(question):
            yield windows, clocks
        _say_what_is_missing(origin, question)


def _elapsed_stamp(start_ns: int) -> Stamp:
    """Return the function that writes the times of a run without a clock: +12.5s."""
    from ingest.query.question import since

    return lambda stamp_ns: since(stamp_ns - start_ns)


def _csv_rows(windows: Intervals[Group], clocks: Mapping[str, Stamp]) -> Iterator[str]:
    from ingest.core.units import utc
    from ingest.view.text import quoted

    lower, upper = (edges[windows.bins].tolist() for edges in (windows.layout.lower, windows.layout.upper))
    if not windows.layout.has_bins:  # counts of means: nothing is known of where their samples lie
        lower = upper = [""] * len(windows.bins)
    counts, pointers = windows.counts.tolist(), windows.indptr.tolist()
    keys = windows.table
    labels = [",".join(quoted(label) for label in key[2:]) for key in keys]
    stamps = [clocks.get(key[0], utc) for key in keys]
    columns = (windows.series.tolist(), windows.start_ns.tolist(), windows.end_ns.tolist())
    for row, (code, start, end) in enumerate(zip(*columns, strict=True)):
        front = f"{stamps[code](start)},{stamps[code](end)},{labels[code]}"
        for entry in range(pointers[row], pointers[row + 1]):
            yield f"{front},{lower[entry]},{upper[entry]},{counts[entry]}\n"


def _step(options: Options) -> str:
    """Return the width that --step says, empty for the stored one."""
    if options.step == "auto":
        raise UsageError("--step of an export is a width such as 10s, or all")
    return options.step or ""


def _export_hlog(options: Options) -> None:
    """Print windows as an interval log, added up over all logs on the way.

    Memory stays flat where files are asked, whatever their number and length.
    """
    from ingest.query.interval_log import interval_log
    from ingest.view import hlog

    if options.attribution != "completion":
        raise UsageError("hlog holds whole samples: in-flight weights cannot be written")
    step = _step(options)
    question = asked(options.but(by=options.by or DEFAULT_BY), step or "auto")
    with opened(options) as origin:
        log = interval_log(origin, question)
        written = False
        for windows in log.windows:
            if not written:
                sys.stdout.write(hlog.head(log.unit_ns, log.start_ns, __version__))
            written = True
            sys.stdout.writelines(hlog.lines(windows, log.names, log.start_ns or 0, log.unit_ns))
        if not written:
            raise InputError("nothing matches the question: no interval to write")
        for text in log.warnings():
            say(text)


def _export_otlp(options: Options) -> None:
    """Print windows as OpenTelemetry metrics, as they come: without --by and --step those of each series, in bounded batches."""
    from ingest.query.means import REMEDY
    from ingest.query.plan import settled
    from ingest.view import otlp

    if options.attribution != "completion":
        raise UsageError("OpenTelemetry metrics hold whole samples: in-flight weights cannot be written")
    step = _step(options)
    written = means = weights = capped = 0
    with opened(options) as origin:
        undated = {record.run for record in origin.runs() if record.relative}
        question = settled(origin, asked(options, step or "auto"))
        for batch, names in (_added_up if options.by or step else _series)(origin, question):
            run, kind = (names.index(name) if name in names else -1 for name in ("run", "kind"))
            rows = batch if run < 0 else batch.where(lambda key, at=run: key[at] not in undated)  # type: ignore[misc]
            whole = rows.where(lambda key, at=kind: not key[at].endswith(IN_FLIGHT))  # type: ignore[misc]
            weights += len(rows) - len(whole)
            if not whole.layout.has_bins:
                means += len(whole)
                continue
            capped += otlp.capped(whole)
            if len(whole) and int(whole.start_ns.min()) < 0:
                raise InputError("times before 1970 cannot be written as OpenTelemetry metrics")
            for line in otlp.lines(whole, names):
                written += 1
                sys.stdout.write(line.decode())
    for run_name in sorted(undated):
        say(f"{run_name} is left out: no start time is known, and metrics need one: give --t0 when you load or name its logs")
    if means:
        say(f"{means:,} windows of means without a histogram are left out")
    if weights:
        say(f"{weights:,} windows of in-flight weights are left out: they are no samples")
    if capped:
        say(f"{capped:,} samples lie in a last bin without an upper end: they count where it begins, and may be higher")
    if not written:
        raise InputError(f"nothing to write: {REMEDY}" if means else "nothing matches the question: no window to write")


def _series(origin: Origin, question: Question) -> Batches:
    """Yield the windows of each series at the stored step, and the names of their labels; says what is missing of them."""
    for rows in origin.windows(replace(question, by=LABELS)):
        yield rows, ("run", "kind", *LABELS)
    _say_what_is_missing(origin, question)


def _say_what_is_missing(origin: Origin, question: Question) -> None:
    """Print what an answer about all that was written says: windows by themselves do not show what they lack."""
    for text in origin.answer(replace(question, step="all", where={"kind": "*", **question.where})).warnings:
        say(text)


def _added_up(origin: Origin, question: Question) -> Batches:
    """Yield the windows of groups, added up over their series, and the names of their labels."""
    from ingest.query.interval_log import interval_log

    log = interval_log(origin, question)
    for rows in log.windows:
        yield rows, log.names
    for text in log.warnings():
        say(text)
