"""Which files are Snabb timelines, and what surrounds each: host, process, time zero."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from ingest.errors import InputError
from ingest.read.account import Account
from ingest.read.context import Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.hdr.sources import folder_hosts
from ingest.read.snabb import timeline as snabb
from ingest.read.snabb.names import OWN_NAMES, process_of
from ingest.read.sources import SNABB, ReadOptions, Skipped, Source
from ingest.read.text import plain_name
from ingest.series import Series


def sources(paths: Sequence[Path], run: str, options: ReadOptions, skipped: list[Skipped]) -> Iterator[Source]:
    """Yield a source for each timeline that can be read; the others are added to `skipped` with the reason."""
    hosts = folder_hosts([path for path in paths if plain_name(path) not in OWN_NAMES])
    for path in paths:
        host = options.host or hosts.get(path.parent, "")
        host = options.host_alias.get(host, host)
        context = Context(
            series=Series(run=run, host=host, process=process_of(path), kind=snabb.LAG),
            offset_ns=options.host_offset_ns.get(host, 0),
            digits=options.digits,
            options=options.told,
            account=Account(path=str(path)),
        )
        try:
            zero = _zero(path, options)
        except InputError as error:
            skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
            continue
        yield Source(path, SNABB, replace(context, zero=zero), layout=str(events_layout(options.digits)))


def _zero(path: Path, options: ReadOptions) -> TimeZero:
    found = snabb.timeline(path, options.tsc_hz)
    if found.real:
        return TimeZero(int(found.stamp_ns[0]), "clock readings in the timeline")
    if isinstance(options.t0, int):
        return TimeZero(options.t0, "--t0")
    if options.t0 == "mtime":
        return TimeZero(path.stat().st_mtime_ns - int(found.stamp_ns[-1]), "file time (--t0 mtime)")
    return TimeZero()
