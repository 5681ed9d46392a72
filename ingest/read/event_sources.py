"""Which files hold single events, and what surrounds each: labels, time zero, and which of two logs of one I/O is taken."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path

from ingest.errors import InputError
from ingest.layout import NO_BINS
from ingest.read import ycsb_raw
from ingest.read.account import Account
from ingest.read.arrow_lines import MISSING
from ingest.read.context import YEAR_NS, Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.fio import averaged as fio_averaged
from ingest.read.fio import hist as fio_hist
from ingest.read.fio import raw_shape as fio_raw_shape
from ingest.read.fio.names import LogName
from ingest.read.fio.summaries import FioSummaries
from ingest.read.hdr.sources import folder_hosts
from ingest.read.smallfile import parse_name
from ingest.read.sources import (
    AVERAGED,
    COMPLETION,
    DESCRIBED,
    HIST,
    PREFER_RAW,
    RAW,
    SINGLE_EVENTS,
    SMALLFILE,
    YCSB,
    ReadOptions,
    Skipped,
    Source,
)
from ingest.read.text import blocks, plain_name
from ingest.series import OPS, Series, mean_kind

MS = 1_000_000
KINDS = {"clat": COMPLETION, "lat": "total", "slat": "submission"}
ENDINGS = (".log", ".csv", ".txt", ".json", ".ndjson", ".jsonl", ".raw", ".out", ".dat", ".tsv")
FILLED = b"123456789"


def raw_sources(
    logs: Mapping[Path, LogName],
    series_of: Callable[[Path, LogName], Series],
    fio: FioSummaries,
    options: ReadOptions,
    skipped: list[Skipped],
) -> Iterator[Source]:
    """Yield a source for each raw fio log that can be read; the others are added to `skipped` with the reason."""
    for path, name in logs.items():
        series = series_of(path, name).replaced(kind=KINDS.get(name.type, COMPLETION))
        try:
            context = fio.context_of(path, name, _context(path, series, options))
            if (averaged := fio_averaged.look(path, context)) is not None:
                yield _averaged_source(path, averaged, context, fio, options)
                continue
            shape = fio_raw_shape.shape_of(path, context)
        except InputError as error:
            fio.forget(path)
            skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
            continue
        unix = fio_raw_shape.is_epoch(shape, context)
        if name.job and "latency_target" in context.options and not unix and context.zero.epoch_ns is not None:
            restart = fio_hist.restart_ms(path) * MS  # as in a histogram log: fio's JSON counts time from its reset
            zero = replace(context.zero, epoch_ns=context.zero.epoch_ns - restart)
            context = replace(context, zero=zero, restart_ns=restart)
        zero = _raw_zero(path, context, shape.first_ms, options, unix=unix)
        yield Source(path, RAW, replace(context, zero=zero), layout=str(events_layout(options.digits)))


def _averaged_source(
    path: Path, found: fio_averaged.Averaged, context: Context, fio: FioSummaries, options: ReadOptions
) -> Source:
    """Return the source of an averaged log; fio's JSON stays one, too, where it has bins."""
    if any(summary.bins is not None for job in context.jobs for summary in job.values()):
        fio.forget(path)
    zero = _raw_zero(path, context, found.shape.first_ms, options, unix=found.unix)
    series = context.series.replaced(kind=mean_kind(context.series.kind))
    return Source(path, AVERAGED, replace(context, series=series, zero=zero), found.window_ms * MS, str(NO_BINS))


def _context(path: Path, series: Series, options: ReadOptions) -> Context:
    return Context(
        series=series,
        offset_ns=options.host_offset_ns.get(series.host, 0),
        version=options.fio_version,
        recorded_unit_ns=options.recorded_unit_ns,
        digits=options.digits,
        description=options.description,
        upto=options.upto(path),
        account=Account(path=str(path)),
    )


def _raw_zero(path: Path, context: Context, first_ms: int, options: ReadOptions, *, unix: bool) -> TimeZero:
    if isinstance(options.t0, int):
        return TimeZero(options.t0, "--t0")
    if options.t0 == "mtime":
        last = fio_hist.last_stamp_ms(path)
        return TimeZero(path.stat().st_mtime_ns - (0 if unix else last * MS), "file time (--t0 mtime)")
    if unix:
        return TimeZero(context.zero.epoch_ns or first_ms * MS, "epoch stamps in the log")
    return context.zero


def other_sources(
    paths: Mapping[str, Sequence[Path]], run: str, options: ReadOptions, skipped: list[Skipped]
) -> Iterator[Source]:
    """Yield a source for each file of the other formats of events that can be read; the others go to `skipped`."""
    layout = str(events_layout(options.digits))
    hosts = {**folder_hosts(paths.get(YCSB, ())), **folder_hosts(paths.get(DESCRIBED, ()))}
    for kind, path in ((word, path) for word in (SMALLFILE, YCSB, DESCRIBED) for path in paths.get(word, ())):
        named = parse_name(path) if kind == SMALLFILE else None
        host = options.host or (named.host if named else hosts.get(path.parent, ""))
        host = options.host_alias.get(host, host)
        series = Series(run=run, host=host, job=named.thread if named else "", process=_process(path))
        context = _context(path, series, options)
        try:
            zero = _zero(path, kind, context, named.start_ns if named else None)
        except InputError as error:
            skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
            continue
        told = TimeZero(options.t0, "--t0") if isinstance(options.t0, int) else zero
        yield Source(path, kind, replace(context, zero=told), layout=layout)


def _process(path: Path) -> str:
    """Return what tells files of one folder apart: the name without its ending."""
    name = plain_name(path)
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def _zero(path: Path, kind: str, context: Context, start_ns: int | None) -> TimeZero:
    if kind == SMALLFILE:
        return TimeZero() if start_ns is None else TimeZero(start_ns, "start of the thread in the file name")
    if kind == YCSB:
        return TimeZero(ycsb_raw.first_ns(path, context), "epoch stamps in the log")
    from ingest.read import described

    told = context.description
    if told is None:
        raise InputError("no description of its columns: --input-format takes the path of one, such as events.yml", path)
    first = described.first_end_ns(path, replace(context, account=Account(path=str(path))), told)
    return TimeZero(first, "epoch stamps in the log") if first >= YEAR_NS else TimeZero()


def readable(sources: Sequence[Source], fio: FioSummaries, skipped: list[Skipped]) -> list[Source]:
    """Return the sources that can be read here; those that need pyarrow are refused where it is missing."""
    if importlib.util.find_spec("pyarrow") is not None:
        return list(sources)
    for source in sources:
        if source.format in SINGLE_EVENTS:
            fio.forget(source.path)
            skipped.append(Skipped(source.path, "refused", MISSING))
    return [source for source in sources if source.format not in SINGLE_EVENTS]


def once(sources: Sequence[Source], options: ReadOptions, skipped: list[Skipped]) -> list[Source]:
    """Return the sources so that each I/O is counted once.

    Of a histogram log and a raw log of the same (host, job, op, kind) the preferred one is taken; the other goes to `skipped`
    as shadowed, or leaves out the ops that both have.
    """
    known = {(source.context.series.run, source.identity): source for source in sources}
    shadowed: dict[Path, str] = {}
    partly: dict[Path, frozenset[str]] = {}
    for raw in sources:
        run = raw.context.series.run
        twins = [known[run, twin] for twin in raw.twins if raw.format == RAW and (run, twin) in known]
        for hist in twins:
            if options.prefer == PREFER_RAW:
                shadowed[hist.path] = "a raw log holds the same I/Os and is preferred (--prefer raw)"
                continue
            ops = _raw_ops(raw)
            both = _hist_ops(hist, ops)
            if both and ops <= both:
                shadowed[raw.path] = "a histogram log holds the same I/Os (--prefer raw turns it round)"
            elif both:
                partly[raw.path] = both
    with_bins = {_thread(source) for source in sources if source.format == HIST}
    for source in sources:
        if source.format == AVERAGED and _thread(source) in with_bins:
            shadowed[source.path] = "means over time: the histogram log of the same job holds more"
    skipped.extend(Skipped(path, "shadowed", reason) for path, reason in shadowed.items())
    return [
        replace(source, context=replace(source.context, shadowed=partly[source.path])) if source.path in partly else source
        for source in sources
        if source.path not in shadowed
    ]


def _thread(source: Source) -> Series:
    return source.context.series.replaced(op="", kind="", tag="")


def _raw_ops(raw: Source) -> set[str]:
    """Return the ops of a raw log: of fio's own count where it is known, else of its first lines."""
    told = {op for job in raw.context.jobs for op, kind in job if kind == raw.context.series.kind}
    return told or fio_raw_shape.ops_of_head(raw.path, raw.context)


def _hist_ops(hist: Source, wanted: set[str]) -> frozenset[str]:
    """Return the ops that a histogram log counts anything of: with json+ all that fio counts, else those of its rows."""
    summaries = [(op, summary) for job in hist.context.jobs for (op, kind), summary in job.items() if kind == COMPLETION]
    if summaries and all(summary.bins is not None for _, summary in summaries):
        return frozenset(op for op, _ in summaries)
    found: set[str] = set()
    lines = chain.from_iterable(bytes(block).split(b"\n") for block in blocks(hist.path))
    for line in lines:
        cells = line.split(b",", 3)
        if len(cells) == 4 and cells[1].strip() in (b"0", b"1", b"2") and any(digit in cells[3] for digit in FILLED):
            found.add(OPS[int(cells[1])])
            if wanted <= found:
                break
    return frozenset(found)
