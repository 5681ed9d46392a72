"""What is under the given paths: which file is read by which reader, with which labels, time zero and summaries.

Nothing is read here beyond the heads of files and the tools' own summaries. Files that belong together are joined by
folder: a log takes its job's summary from the fio JSON beside it (or above it), its run and settings from CBT's
`benchmark_config.yaml`, its host from the file name, or from the folder where sibling folders hold logs of equal names.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ingest.errors import InputError
from ingest.layout import NO_BINS
from ingest.read import cbt
from ingest.read.account import Account
from ingest.read.chrome.objects import looks_like_chrome
from ingest.read.context import Context, TimeZero
from ingest.read.fio import hist as fio_hist
from ingest.read.fio.names import LogName, parse_log_name
from ingest.read.fio.summaries import FioSummaries
from ingest.read.folders import files_under, root_of
from ingest.read.hdr.names import looks_like_hdr, looks_like_hgrm, looks_like_operations
from ingest.read.perf.header import looks_like_perf
from ingest.read.smallfile import looks_like_smallfile, parse_name
from ingest.read.snabb.names import looks_like_timeline
from ingest.read.sources import (
    AVERAGED,
    CHROME,
    DESCRIBED,
    HDR,
    HIST,
    JSON,
    OPERATIONS,
    PERF,
    PLAIN_JSON,
    RAW,
    SMALLFILE,
    SNABB,
    YCSB,
    Found,
    ReadOptions,
    Skipped,
    Source,
)
from ingest.read.text import head, plain_name
from ingest.read.ycsb_raw import looks_like_ycsb
from ingest.series import Series

MS = 1_000_000
RAW_TYPES = ("clat", "lat", "slat")


def discover(paths: Sequence[Path], options: ReadOptions) -> Found:
    """Return the sources and skipped files under `paths`, in path order.

    Raises InputError for a path that does not exist or cannot be listed, or where nothing under them can be read.
    """
    files = list(files_under(paths))
    root = root_of(paths)
    base = options.run or root.name or "run"
    skipped: list[Skipped] = []
    logs: dict[Path, LogName] = {}
    summaries: list[Path] = []
    others: dict[str, list[Path]] = {kind: [] for kind in (HDR, OPERATIONS, SMALLFILE, YCSB, PERF, CHROME, SNABB, DESCRIBED)}
    for path in files:
        _sort_file(path, options, logs, summaries, others, skipped)
    fio = FioSummaries.of(summaries, logs, lambda path, reason: skipped.append(Skipped(path, "refused", reason)))
    hosts = _folder_hosts(logs)
    runs = {path: cbt.run_of(path, root, base, cbt_named=name.cbt) for path, name in logs.items()}

    def series_of(path: Path, name: LogName) -> Series:
        return _series(runs[path], options.host or name.host or hosts.get(path.parent, ""), name, options)

    sources: list[Source] = []
    raw = {path: name for path, name in logs.items() if name.type != "clat_hist"}
    for path, name in logs.items():
        source = _log_source(path, name, series_of(path, name), fio, options, skipped) if path not in raw else None
        if source:
            sources.append(source)
    if raw or any(others[kind] for kind in (SMALLFILE, YCSB, PERF, CHROME, DESCRIBED)):
        from ingest.read import event_sources, trace_sources

        sources.extend(event_sources.raw_sources(raw, series_of, fio, options, skipped))
        sources = event_sources.once(sources, options, skipped)
        sources.extend(event_sources.other_sources(others, base, options, skipped))
        sources.extend(trace_sources.sources(others, base, options, skipped))
        sources = event_sources.readable(sources, fio, skipped)
    means = {source.path for source in sources if source.format == AVERAGED}
    sources.extend(_json_sources(summaries, fio, means, root, base, options, skipped))
    if others[HDR] or others[OPERATIONS]:
        from ingest.read.hdr import sources as hdr_sources  # few loads have them, and start-up is small

        sources.extend(hdr_sources.sources(others[HDR], base, options, skipped))
        sources.extend(hdr_sources.operation_sources(others[OPERATIONS], base, options, skipped))
    if others[SNABB]:
        from ingest.read.snabb import sources as snabb_sources

        sources.extend(snabb_sources.sources(others[SNABB], base, options, skipped))
    sources = [_told(source, options) for source in sources] if options.told else sources
    _check_readable(paths, sources, skipped)
    labels: dict[str, Mapping[str, str]] = {}
    for path, run in runs.items():
        if run not in labels:
            labels[run] = cbt.settings_of(path, root)
    for source in sources:
        labels.setdefault(source.context.series.run, {"target_rate": options.rate} if options.rate else {})
    return Found(tuple(sorted(sources, key=lambda s: s.path)), tuple(sorted(skipped, key=lambda s: s.path)), labels)


def _told(source: Source, options: ReadOptions) -> Source:
    return replace(source, context=replace(source.context, options={**source.context.options, **options.told}))


def _sort_file(
    path: Path,
    options: ReadOptions,
    logs: dict[Path, LogName],
    summaries: list[Path],
    others: Mapping[str, list[Path]],
    skipped: list[Skipped],
) -> None:
    name = parse_log_name(path)
    wanted = options.input_format
    hist = wanted == HIST or (not wanted and name is not None and name.type == "clat_hist")
    raw = wanted == RAW or (not wanted and name is not None and name.type in RAW_TYPES)
    if name and name.deflated and (hist or raw):
        reason = "log_store_compressed: decode it with fio --inflate-log, or run fio without log_compression"
        skipped.append(Skipped(path, "refused", reason))
    elif hist or raw:
        plain = name or LogName(path.stem, "", "", "", "", cbt=False, deflated=False)
        kind = "clat_hist" if hist else plain.type if plain.type in RAW_TYPES else "clat"
        logs[path] = replace(plain, type=kind)
    elif name and not wanted:
        counts = "counts the means of averaged logs beside it"
        skipped.append(Skipped(path, "context", f"fio {name.type} log: a mean over time, not latencies; {counts}"))
    else:
        _sort_other(path, options, summaries, others, skipped)


def _sort_other(
    path: Path, options: ReadOptions, summaries: list[Path], others: Mapping[str, list[Path]], skipped: list[Skipped]
) -> None:
    try:
        start = head(path)
    except InputError as error:
        skipped.append(Skipped(path, "refused", error.reason))
        return
    kind = _content_kind(path, start, options)
    if kind == DESCRIBED and options.description and plain_name(path) == Path(options.description.path).name:
        return
    if kind == JSON:
        summaries.append(path)
    elif kind:
        others[kind].append(path)
    elif plain_name(path) in cbt.SETTINGS_FILES:
        skipped.append(Skipped(path, "context", "CBT settings"))
    elif not start:
        skipped.append(Skipped(path, "skipped", "empty file"))
    elif looks_like_hgrm(start):
        skipped.append(Skipped(path, "skipped", "a percentile distribution: for display only, see distribution --hgrm"))
    else:
        reason = "neither a fio histogram log by name nor fio JSON by content, nor an HdrHistogram log"
        skipped.append(Skipped(path, "skipped", reason))


def _content_kind(path: Path, start: bytes, options: ReadOptions) -> str:
    """Return the format of a file by what was said of it, else by its beginning; empty text if it is none of them."""
    if options.description is not None:
        return DESCRIBED
    if options.input_format:
        return options.input_format
    looks = (
        (JSON, b'"fio version"' in start or (cbt.is_summary_name(path) and b"fio" in start)),
        (SNABB, looks_like_timeline(path, start)),
        (SMALLFILE, parse_name(path) is not None and looks_like_smallfile(start)),
        (YCSB, looks_like_ycsb(start)),
        (PERF, looks_like_perf(start)),
        (CHROME, looks_like_chrome(start)),
        (HDR, looks_like_hdr(start)),
        (OPERATIONS, looks_like_operations(start)),
    )
    return next((kind for kind, found in looks if found), "")


def _folder_hosts(logs: Mapping[Path, LogName]) -> dict[Path, str]:
    """Return the host of each folder whose logs are named like those of a sibling folder, or that stands in `clients/`."""
    folders: dict[tuple[Path, str], set[Path]] = defaultdict(set)
    for path, name in logs.items():
        if not name.host:
            folders[path.parent.parent, plain_name(path)].add(path.parent)
    hosts = {}
    for (parent, _), siblings in folders.items():
        for folder in siblings:
            if len(siblings) > 1 or parent.name == "clients":
                hosts[folder] = folder.name
    return hosts


def _series(run: str, host: str, name: LogName, options: ReadOptions) -> Series:
    host = options.host_alias.get(host, host)
    return Series(run=run, host=host, volume=name.volume, job=name.job, process=name.process, kind="completion")


def _log_source(
    path: Path, name: LogName, series: Series, fio: FioSummaries, options: ReadOptions, skipped: list[Skipped]
) -> Source | None:
    context = Context(
        series=series,
        offset_ns=options.host_offset_ns.get(series.host, 0),
        version=options.fio_version,
        recorded_unit_ns=options.recorded_unit_ns,
        account=Account(path=str(path)),
    )
    try:
        context = fio.context_of(path, name, context)
        peeked = fio_hist.peek(path, context)
    except InputError as error:
        fio.forget(path)
        skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
        return None
    if not name.job:
        context = replace(context, segments=fio_hist.segments_of(path))
    elif "latency_target" in context.options and not peeked.unix and context.zero.epoch_ns is not None:
        # fio's JSON counts time from its reset; the log begins before that.
        restart = fio_hist.restart_ms(path) * MS
        zero = replace(context.zero, epoch_ns=context.zero.epoch_ns - restart)
        context = replace(context, zero=zero, restart_ns=restart)
    zero = _time_zero(path, context, peeked, options)
    return Source(path, HIST, replace(context, zero=zero), peeked.width_ms * MS, str(peeked.layout))


def _time_zero(path: Path, context: Context, peeked: fio_hist.Peeked, options: ReadOptions) -> TimeZero:
    if isinstance(options.t0, int):
        return TimeZero(options.t0, "--t0")
    if options.t0 == "mtime":
        last = fio_hist.last_stamp_ms(path)
        return TimeZero(path.stat().st_mtime_ns - (0 if peeked.unix else last * MS), "file time (--t0 mtime)")
    if peeked.unix:
        zero = context.zero.epoch_ns or (peeked.first_ms - peeked.width_ms) * MS
        return TimeZero(zero, "epoch stamps in the log")
    return context.zero


def _json_sources(
    summaries: Iterable[Path],
    fio: FioSummaries,
    means: set[Path],
    root: Path,
    base: str,
    options: ReadOptions,
    skipped: list[Skipped],
) -> Iterable[Source]:
    """Yield a source for each fio JSON that holds what no log does; `means` are the averaged logs."""
    claimed: set[tuple[Path, str, str]] = set()
    # CBT keeps a process's JSON twice: cut out as json_output.* (which sorts first) and within output.*
    for path in sorted(summaries):
        from ingest.read.fio import json_plus as fio_json
        from ingest.read.fio import plain_json

        document = fio.documents.get(path)
        if document is None:
            continue
        named = cbt.is_summary_name(path)
        volume, host = cbt.summary_labels(path)
        if named and (path.parent, volume, host) in claimed:
            skipped.append(Skipped(path, "skipped", "the same fio summary as the json_output file beside it"))
            continue
        if named:
            claimed.add((path.parent, volume, host))
        logs = tuple(sorted(fio.told.get(path, ())))
        has_bins = any(summary.bins for job in document.jobs for summary in job.summaries.values())
        if logs and not (means >= set(logs) and plain_json.left_of(document, logs)):
            skipped.append(Skipped(path, "context", "fio's own totals, time zero and options"))
            continue
        if not has_bins and not plain_json.left_of(document, logs):
            skipped.append(Skipped(path, "skipped", "fio JSON without a latency"))
            continue
        host = options.host or host
        series = Series(
            run=cbt.run_of(path, root, base, cbt_named=named),
            host=options.host_alias.get(host, host),
            volume=volume,
            process="" if named else plain_name(path).split(".")[0],
        )
        found = document.zero_ms(document.jobs[0])
        zero = TimeZero(found[0] * MS, found[1]) if found else TimeZero()
        if isinstance(options.t0, int):
            zero = TimeZero(options.t0, "--t0")
        context = Context(
            series=series,
            zero=zero,
            offset_ns=options.host_offset_ns.get(series.host, 0),
            version=document.version,
            siblings=logs,
            account=Account(path=str(path)),
        )
        width = fio_json.typical_width_ns(path)
        if not has_bins:
            yield Source(path, PLAIN_JSON, context, width, str(NO_BINS))
            continue
        yield Source(path, JSON, context, width, str(fio_json.NANOSECONDS))


def _check_readable(paths: Sequence[Path], sources: Sequence[Source], skipped: Sequence[Skipped]) -> None:
    if sources:
        return
    refused = [entry for entry in skipped if entry.action == "refused"]
    if refused:
        first = refused[0]
        more = f" (and {len(refused) - 1} more files refused: tailboard inspect lists them)" if len(refused) > 1 else ""
        raise InputError(first.reason + more, first.path, first.line)
    if len(skipped) == 1 and not paths[0].is_dir():
        raise InputError(skipped[0].reason, skipped[0].path)
    names = ", ".join(str(path) for path in paths)
    seen = f"{len(skipped)} files, none of them" if skipped else "no file there is"
    looked = "looked for fio *_clat_hist*.log and *_lat*.log, fio json+, HdrHistogram logs, smallfile and YCSB raw files"
    raise InputError(f"{seen} a latency histogram ({looked}); name the format with --input-format", names)
