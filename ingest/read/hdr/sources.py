"""Which files are HdrHistogram logs, and what surrounds each: labels, time zero, recorded unit."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ingest.errors import InputError
from ingest.grid import SECOND
from ingest.layout import hdr_layout
from ingest.read import operations
from ingest.read.account import Account
from ingest.read.context import YEAR_NS, Context, TimeZero
from ingest.read.hdr import log as hdr_log
from ingest.read.sources import HDR, OPERATIONS, ReadOptions, Skipped, Source
from ingest.read.text import plain_name
from ingest.series import Series

ENDINGS = (".hlog", ".hdr", ".histo", ".log", ".csv", ".txt")
LARGE = {"ns": 1.0, "us": 1e3, "ms": 1e6}


def sources(paths: Sequence[Path], run: str, options: ReadOptions, skipped: list[Skipped]) -> Iterator[Source]:
    """Yield a source for each log that can be read; the others are added to `skipped` with the reason."""
    hosts = folder_hosts(paths)
    for path in paths:
        context = _context(path, run, hosts, options)
        try:
            peeked = hdr_log.peek(path, context)
        except InputError as error:
            skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
            continue
        unit = options.recorded_unit_ns or peeked.origin.unit_ns
        if unit is None:
            skipped.append(Skipped(path, "refused", f"{hdr_log.UNIT_UNKNOWN} ({_sizes(peeked.largest)})"))
            continue
        if options.recorded_unit_ns and peeked.origin.unit_ns not in (None, options.recorded_unit_ns):
            context.account.note(f"{peeked.origin.tool} records in another unit than --recorded-unit says: taken as told")
        yield Source(path, HDR, replace(context, zero=_zero(path, peeked, options)), peeked.width_ns, peeked.layout)


def operation_sources(paths: Sequence[Path], run: str, options: ReadOptions, skipped: list[Skipped]) -> Iterator[Source]:
    """Yield a source for each operation log that can be read; the others are added to `skipped` with the reason."""
    hosts = folder_hosts(paths)
    for path in paths:
        context = _context(path, run, hosts, options)
        try:
            first = operations.first_start_ns(path, context)
        except InputError as error:
            skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
            continue
        zero = TimeZero(first, "epoch stamps in the log") if first >= YEAR_NS else TimeZero()
        if isinstance(options.t0, int):
            zero = TimeZero(options.t0, "--t0")
        yield Source(path, OPERATIONS, replace(context, zero=zero), SECOND, str(hdr_layout(operations.DIGITS, 0, 1)))


def _context(path: Path, run: str, hosts: Mapping[Path, str], options: ReadOptions) -> Context:
    """Return what surrounds a log beside its time zero; `hosts` are those that folders stand for."""
    host = options.host or hosts.get(path.parent, "")
    host = options.host_alias.get(host, host)
    return Context(
        series=Series(run=run, host=host, process=_process(path)),
        offset_ns=options.host_offset_ns.get(host, 0),
        recorded_unit_ns=options.recorded_unit_ns,
        options=options.told,
        upto=options.upto(path),
        account=Account(path=str(path)),
    )


def _process(path: Path) -> str:
    """Return what tells logs of one folder apart: the file name without its ending."""
    name = plain_name(path)
    return next((name.removesuffix(ending) for ending in ENDINGS if name.endswith(ending)), name)


def folder_hosts(paths: Sequence[Path]) -> dict[Path, str]:
    """Return the host of each folder whose logs are named like those of a sibling folder."""
    folders: dict[tuple[Path, str], set[Path]] = defaultdict(set)
    for path in paths:
        folders[path.parent.parent, plain_name(path)].add(path.parent)
    return {folder: folder.name for found in folders.values() if len(found) > 1 for folder in found}


def _sizes(largest: float) -> str:
    """Return what the largest value at the beginning of a log would be in each unit: what people know it by."""
    sizes = [f"{largest * scale / 1e9:.3g} s in {unit}" for unit, scale in LARGE.items()]
    return f"its largest value at the beginning would be {', '.join(sizes)}"


def _zero(path: Path, peeked: hdr_log.Peeked, options: ReadOptions) -> TimeZero:
    if isinstance(options.t0, int):
        return TimeZero(options.t0, "--t0")
    if options.t0 == "mtime" and (peeked.zero_ns is None or peeked.base_ns):
        end = hdr_log.last_end_ns(path) - (peeked.zero_ns or 0)
        return TimeZero(path.stat().st_mtime_ns - end, "file time (--t0 mtime)")
    return TimeZero(peeked.zero_ns, peeked.zero_origin)
