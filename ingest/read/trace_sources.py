"""What surrounds a trace (`perf script`, Chrome trace events): its host, what tells it from others, its time zero."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ingest.errors import InputError
from ingest.read.account import Account
from ingest.read.chrome import trace as chrome_trace
from ingest.read.context import KEEP_IDLE, Context, TimeZero
from ingest.read.events import events_layout
from ingest.read.hdr.sources import folder_hosts
from ingest.read.perf import header as perf_header
from ingest.read.sources import CHROME, PERF, ReadOptions, Skipped, Source
from ingest.read.text import plain_name
from ingest.series import Series

ENDINGS = (".gz", ".json", ".txt", ".log", ".out", ".perf", ".script", ".stacks", ".trace")


def sources(paths: Mapping[str, Sequence[Path]], run: str, options: ReadOptions, skipped: list[Skipped]) -> Iterator[Source]:
    """Yield a source for each trace; those that cannot be read are added to `skipped` with the reason.

    The job is the name of the recording. Its host is what was said, else what the header says, else the folder.
    """
    for kind in (PERF, CHROME):
        hosts = folder_hosts(paths.get(kind, ()))
        for path in paths.get(kind, ()):
            try:
                told = perf_header.header_of(path) if kind == PERF else perf_header.Header(zero_ns=chrome_trace.zero_of(path))
                host = options.host or told.host or hosts.get(path.parent, "")
                host = options.host_alias.get(host, host)
                context = Context(
                    series=Series(run=run, host=host, job=_recording(path)),
                    offset_ns=options.host_offset_ns.get(host, 0),
                    digits=options.digits,
                    options={KEEP_IDLE: "yes"} if options.keep_idle and kind == PERF else {},
                    account=Account(path=str(path)),
                )
                zero = _zero(path, kind, told, options)
            except InputError as error:
                skipped.append(Skipped(path, "refused" if path.stat().st_size else "skipped", error.reason, error.line))
                continue
            yield Source(path, kind, replace(context, zero=zero), layout=str(events_layout(options.digits)))


def _recording(path: Path) -> str:
    """Return what tells recordings of one host apart: the name of the file without its endings."""
    name = plain_name(path)
    while ending := next((ending for ending in ENDINGS if name.endswith(ending) and name != ending), ""):
        name = name.removesuffix(ending)
    return name


def _zero(path: Path, kind: str, told: perf_header.Header, options: ReadOptions) -> TimeZero:
    if told.zero_ns == 0:
        return TimeZero(0, "epoch stamps in the log")
    if isinstance(options.t0, int):
        return TimeZero(options.t0, "--t0")
    if options.t0 == "mtime":
        last = perf_header.last_ns(path) if kind == PERF else chrome_trace.last_ns(path)
        return TimeZero(path.stat().st_mtime_ns - last, "file time (--t0 mtime)")
    return TimeZero(told.zero_ns, told.origin)
