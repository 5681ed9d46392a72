"""fio's logs and JSON as sources: labels from their names, everything else of their jobs from the JSON that belongs to them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ingest.core.errors import InputError, counted
from ingest.core.labels import OPS, Series, mean_kind
from ingest.core.layout import NO_BINS
from ingest.read.context import COARSEST, Context, TimeZero
from ingest.read.fio import clock, histogram_log
from ingest.read.fio.clock import MS
from ingest.read.fio.join import log_name_of
from ingest.read.fio.names import LogName, parse_log_name, parse_summary_name
from ingest.read.format_names import AVERAGED, HIST, JSON, PLAIN_JSON, RAW
from ingest.read.formats import PIECES, Reader
from ingest.read.sources import COMPLETION, PREFER_RAW, SHADOWED, Around, Skipped, Source
from ingest.read.text import TABLE_ENDINGS, blocks, head, name_without

if TYPE_CHECKING:
    from ingest.read.context import Job
    from ingest.read.fio import json_output
    from ingest.read.fio.averaged_log import Averaged


KINDS = {"clat": COMPLETION, "lat": "total", "slat": "submission"}
NO_COUNT = (
    "fio JSON with latencies, but nothing says of how many I/Os (total_ios, which old versions such as 2.1.4 do not write): "
    "without it no two of them can be added up; run a newer fio with --output-format=json+"
)
MEAN = re.compile(rb'"[cs]?lat(_ns)?"\s*:\s*\{[^{}]*"mean"\s*:\s*[\d.]*[1-9]')
LONGEST_JSON = 8 << 20
FILLED = b"123456789"
SUMMARY_ENDINGS = (*TABLE_ENDINGS, ".js", ".fio")  # what people call fio's output


def kind_of_log(path: Path, wanted: str) -> str:
    """Return which of fio's logs a file is by its name: clat_hist, clat, lat or slat; as a `wanted` format says otherwise."""
    name = parse_log_name(path)
    kind = name.type if name else ""
    if wanted == HIST:
        return "clat_hist"
    return kind if kind in KINDS else "clat"


def locate_hist(path: Path, around: Around) -> Source:
    """Return the source of a histogram log; InputError where it is none."""
    name = _name(path, "clat_hist")
    context = _joined(path, name, around, COMPLETION)
    try:
        peeked = histogram_log.peek(path, context)
    except InputError:
        around.documents.forget(path)
        raise
    shared = not name.job
    if shared:
        context = replace(context, segments=histogram_log.segments_of(path))
        context = replace(context, grouped=histogram_log.segments_told(path, context))
    else:
        context = _restarted(path, context, unix=peeked.unix)
    context = _begun(path, context, around, peeked.first_ms - peeked.width_ms, unix=peeked.unix)
    return Source(path, HIST, context, peeked.width_ms * MS, str(peeked.layout))


def locate_raw(path: Path, around: Around) -> Source:
    """Return the source of a latency log with a line for each I/O; InputError where it is none, or its unit is not known."""
    from ingest.read.fio import averaged_log, latency_log
    from ingest.read.operations import events_layout  # for such logs alone: calls without them are quicker

    name = _name(path, kind_of_log(path, RAW))
    context = _joined(path, name, around, KINDS[name.type])
    if context.version is None and context.recorded_unit_ns is None:
        context = replace(context, since=histogram_log.since_beside(path, name))
    try:
        if (means := averaged_log.look(path, context)) is not None:
            return _averaged(path, context, means, around)
        shape = latency_log.shape_of(path, context)
    except InputError:
        around.documents.forget(path)
        raise
    unix = clock.real_time(context.options, shape.first_ms)
    if name.job:
        context = _restarted(path, context, unix=unix)
    context = _begun(path, context, around, shape.first_ms, unix=unix)
    return Source(path, RAW, context, layout=str(events_layout(around.options.digits)))


def _averaged(path: Path, context: Context, averaged: Averaged, around: Around) -> Source:
    """Return the source of a log of means; fio's JSON is read for itself, too, where it has bins."""
    around.documents.means.add(path)
    if any(summary.bins is not None for job in context.jobs for summary in job.values()):
        around.documents.forget(path)
    context = _begun(path, context, around, averaged.shape.first_ms, unix=averaged.unix)
    context = replace(context, series=context.series.replaced(kind=mean_kind(context.series.kind)))
    return Source(path, AVERAGED, context, averaged.window_ms * MS, str(NO_BINS))


def _begun(path: Path, context: Context, around: Around, first_ms: int, *, unix: bool) -> Context:
    """Return the context of a log with its start: by fio's JSON or as the user said, else its first stamp if that is `unix`.

    What fio's JSON lets one work out may be late, as by the pauses between jobs that began one after another: `unix` stamps
    show it.
    """
    first = first_ms * MS
    began = first if context.through_client else min(context.zero.epoch_ns or first, first)  # a client's time is of whole seconds
    own = TimeZero(began, "epoch stamps in the log") if unix else context.zero
    context = replace(context, stages=context.stages if unix else None)
    return replace(context, zero=around.zero(path, own, lambda: clock.last_stamp_ms(path) * MS, absolute=unix))


def _name(path: Path, kind: str) -> LogName:
    name = log_name_of(path, kind)
    if name.deflated:
        raise InputError("log_store_compressed: decode it with fio --inflate-log, or run fio without log_compression", path)
    return name


def _joined(path: Path, name: LogName, around: Around, kind: str) -> Context:
    """Return the context of a log: its labels, and what fio's JSON says of its jobs."""
    context = around.context(path, host=name.host, volume=name.volume, job=name.job, process=name.process, kind=kind)
    process = around.documents.process_of(path, name, context.series.host)
    if process != name.process:
        around.why("process", process, "both prefixes are of one job in fio's JSON")
        context = replace(context, series=context.series.replaced(process=process))
    context = around.documents.context_of(path, name, context)
    joined = around.documents.joined(path, name, context.series.host)
    if joined is None and context.version is None and (version := around.documents.version_beside(path)) is not None:
        around.why("fio version", ".".join(map(str, version)), "fio's text output beside it")
        context = replace(context, version=version)
    if joined is not None:
        if not name.job and name.type == "clat_hist" and joined.hides_sections:
            widths = histogram_log.coarsenesses(path)
            context = replace(context, options={**context.options, COARSEST: max(widths)}) if len(widths) > 1 else context
        jobs = ", ".join(f"{number + 1} ({joined.jobs[number].name})" for number in joined.own)
        _note_errors(context, (joined.jobs[number] for number in joined.own))
        around.why("fio JSON", f"{joined.beside.path.name} job {jobs}" if jobs else joined.beside.path.name, joined.origin)
    return context


def _note_errors(context: Context, jobs: Iterable[json_output.Job]) -> None:
    """Note how many I/Os of jobs failed: fio says their number alone, and its logs hold none of them."""
    for job in jobs:
        if job.errors:
            number = counted(job.errors, "I/O")
            context.account.note(f"failed: fio counts {number} of {job.name} that failed, not when: they are in no percentile")


def _restarted(path: Path, context: Context, *, unix: bool) -> Context:
    """Return the context of a log that began before its latency_target reset: fio's JSON counts time from the reset."""
    if "latency_target" not in context.options or unix or context.zero.epoch_ns is None:
        return context
    restart = histogram_log.restart_ms(path) * MS
    return replace(context, zero=replace(context.zero, epoch_ns=context.zero.epoch_ns - restart), restart_ns=restart)


def locate_json(path: Path, around: Around) -> Source:
    """Return the source of a JSON that holds what no log does: histograms, or totals alone; InputError where it holds neither."""
    from ingest.read.fio import json_intervals, json_output

    documents = around.documents
    runs = [run for run in documents.of_file[path] if run.key in documents.read]
    described = {run.first: tuple(sorted(documents.told.get(run.key, ()))) for run in runs}
    bins = any(summary.bins for run in runs for job in run.document.jobs for summary in job.summaries.values())
    if not bins and not any(json_intervals.left_of(run.document, described[run.first]) for run in runs):
        documents.read.difference_update(run.key for run in runs)
        text = head(path, LONGEST_JSON)
        raise InputError(NO_COUNT if b'"total_ios"' not in text and MEAN.search(text) else "fio JSON without a latency", path)
    document = runs[0].document
    name = parse_summary_name(path)
    process = "" if name else name_without(path, SUMMARY_ENDINGS)
    context = around.context(path, host=name.host if name else "", volume=name.volume if name else "", process=process)
    zero = around.zero(path, document.zero_of(document.jobs[:1]), lambda: max(job.runtime_ms for job in document.jobs) * MS)
    for run in runs:
        _note_errors(context, run.document.jobs)
    logs = tuple(sorted({log for some in described.values() for log in some}))
    others = tuple((run.first, run.last) for run in documents.of_file[path] if run.first not in described)
    context = replace(context, zero=zero, version=document.version, siblings=logs, described=described, left_out=others)
    name_of_format, layout = (JSON, json_output.NANOSECONDS) if bins else (PLAIN_JSON, NO_BINS)
    # A run whose logs were overwritten is one row as long as the run: it makes no window of the logs beside it wider.
    widths = sorted(0 if run.key in documents.overwritten else run.width_ns for run in runs)
    return Source(path, name_of_format, context, widths[len(runs) // 2], str(layout))


def is_histogram(path: Path, start: bytes) -> bool:
    """Return whether the first lines of a file of any name are rows of a fio histogram log."""
    try:
        histogram_log.layout_of_text(start, Context(), path)
    except InputError:
        return False
    return True


def is_latency_log(_: Path, start: bytes) -> bool:
    """Return whether the first lines of a file of any name are rows of a fio latency log."""
    from ingest.read.fio import latency_log

    return bool(latency_log.rows_of_text(start))


def counted_once(sources: list[Source], prefer: str, skipped: list[Skipped]) -> list[Source]:
    """Return the sources so that each I/O is counted once.

    Of a histogram log and a raw log of the same (host, job, op, kind) the preferred one is taken; the other goes to `skipped`
    as shadowed, or leaves out the ops that both have. A histogram log that fio damaged gives way to the raw log, and to means
    where nothing of it is sound.
    """
    if not any(source.format in (RAW, AVERAGED) for source in sources):
        return sources

    known = {(source.context.series.run, source.identity): source for source in sources}
    shadowed: dict[Path, str] = {}
    partly: dict[Path, frozenset[str]] = {}
    for raw in sources:
        run = raw.context.series.run
        for histogram in [known[run, twin] for twin in raw.twins if raw.format == RAW and (run, twin) in known]:
            if prefer == PREFER_RAW:
                shadowed[histogram.path] = "a raw log holds the same I/Os and is preferred (--prefer raw)"
            elif histogram_log.is_masked(histogram.path, histogram.context):
                shadowed[histogram.path] = "fio 3.6 to 3.16 damaged its bins from 786 us up; a raw log holds the same I/Os"
            else:
                from ingest.read.fio import latency_log

                ops = {op for job in _told(raw) for op, kind in job if kind == raw.context.series.kind}
                ops = ops or latency_log.ops_of_head(raw.path, raw.context)
                both = _hist_ops(histogram, ops)
                if both and ops <= both:
                    shadowed[raw.path] = "a histogram log holds the same I/Os (--prefer raw reverses this)"
                elif both:
                    partly[raw.path] = both
    shadowed.update(_beside_means([source for source in sources if source.path not in shadowed]))
    skipped.extend(Skipped(path, SHADOWED, reason) for path, reason in shadowed.items())
    return [
        replace(source, context=replace(source.context, shadowed=partly[source.path])) if source.path in partly else source
        for source in sources
        if source.path not in shadowed
    ]


def _beside_means(sources: Sequence[Source]) -> Iterator[tuple[Path, str]]:
    """Yield which of histogram logs and logs of means of the same job is left out, and why: means, unless they alone hold any."""
    means: dict[Series, list[Path]] = {}
    for source in sources:
        if source.format == AVERAGED:
            means.setdefault(_thread(source), []).append(source.path)
    for histogram in sources:
        if histogram.format != HIST or not (beside := means.get(_thread(histogram))):
            continue
        if reason := _emptiness(histogram):
            yield histogram.path, f"{reason}; means of the same job are read"
        else:
            yield from ((path, "means over time: the histogram log of the same job holds more") for path in beside)


def _emptiness(histogram: Source) -> str:
    """Return why a histogram log holds nothing that can be read; empty text where it holds something."""
    if histogram_log.is_masked(histogram.path, histogram.context):
        nothing = histogram_log.holds_nothing(histogram.path, histogram.context)
        return "fio 3.6 to 3.16 damaged its bins from 786 us up, and the others hold nothing" if nothing else ""
    return "" if _hist_ops(histogram, set()) else "it counts nothing"


def _thread(source: Source) -> Series:
    return source.context.series.replaced(op="", kind="", tag="")


def _told(source: Source) -> tuple[Job, ...]:
    """Return what fio counts of the jobs of a log, or of the group that it is part of."""
    return source.context.jobs or source.context.group


def _hist_ops(histogram: Source, wanted: set[str]) -> frozenset[str]:
    """Return the ops that a histogram log counts anything of: with json+ all that fio counts, else those of its rows."""
    summaries = [(op, summary) for job in _told(histogram) for (op, kind), summary in job.items() if kind == COMPLETION]
    if summaries and all(summary.bins is not None for _, summary in summaries):
        return frozenset(op for op, _ in summaries)
    ops: set[str] = set()
    for line in chain.from_iterable(bytes(block).split(b"\n") for block in blocks(histogram.path)):
        cells = line.split(b",", 3)
        if len(cells) == 4 and cells[1].strip() in (b"0", b"1", b"2") and any(digit in cells[3] for digit in FILLED):
            ops.add(OPS[int(cells[1])])
            if wanted <= ops:
                break
    return frozenset(ops)


def _late(module: str, name: str) -> Callable[[Path, Context], Iterator[Any]]:
    """Return a reader in a module here that is imported once it reads: some need pyarrow, and most calls meet few formats."""

    def read(path: Path, context: Context) -> Iterator[Any]:
        rows: Iterator[Any] = getattr(import_module(f"ingest.read.fio.{module}"), name)(path, context)
        return rows

    return read


HISTOGRAMS = Reader(locate_hist, timed=False, rows=histogram_log.read, accepts=is_histogram, many=histogram_log.read_many)
LATENCIES = Reader(locate_raw, timed=False, events=_late("latency_log", "read"), accepts=is_latency_log, arrow=True)
SUMMARIES = Reader(locate_json, timed=False, rows=_late("json_intervals", "read"), grows=PIECES)
AVERAGES = Reader(locate_raw, timed=False, rows=_late("averaged_log", "read"), accepts=is_latency_log)
TOTALS = Reader(locate_json, timed=False, rows=_late("json_intervals", "read_means"))
