"""Which fio wrote a log without a version in its JSON: files beside the log show the version, or the earliest it can be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.layout import LogLinear
from ingest.read.context import Context
from ingest.read.fio.hist import peek
from ingest.read.fio.names import LogName
from ingest.read.text import COMPRESSED, head, plain_name

NANOSECONDS_SINCE = (2, 99)
PRINTED_AS = (".out", ".txt", ".log", ".output")
BANNER = rb"(?m)^fio-(\d{1,3})\.(\d{1,3})(?:\.(\d{1,3}))?(?:-[\w.+-]*)?\r?$"


def version_of_text(text: bytes) -> tuple[int, ...] | None:
    """Return the version that fio's normal output begins with, a line of its own such as `fio-3.33`; None without one."""
    match = re.search(BANNER, text)
    return tuple(int(part) for part in match.groups() if part is not None) if match else None


@lru_cache(256)
def version_printed_for(folder: Path) -> tuple[int, ...] | None:
    """Return the version in fio's text output that lies beside a folder of logs and has its name; None without one."""
    own = folder.resolve()
    for file in (own.with_name(own.name + ending) for ending in PRINTED_AS if own.name):
        if file.is_file() and (version := version_of_text(head(file))) is not None:
            return version
    return None


def since_of_layout(layout: LogLinear) -> tuple[int, ...] | None:
    """Return the earliest version that writes histograms of this layout: ns bins came with 2.99; None where any can."""
    return NANOSECONDS_SINCE if layout.unit_ns == 1 else None


def since_beside(path: Path, name: LogName) -> tuple[int, ...] | None:
    """Return the earliest version that can have written the histogram log of the same job in the folder of a raw log."""
    for other in _histogram_logs(path, name):
        try:
            return since_of_layout(peek(other, Context()).layout)
        except InputError:
            continue
    return None


def _histogram_logs(path: Path, name: LogName) -> Iterator[Path]:
    job, host = (f".{part}" if part else "" for part in (name.job, name.host))
    plain = f"{name.prefix}_clat_hist{job}.log{host}"
    if plain != plain_name(path):
        yield from (log for ending in ("", *COMPRESSED) if (log := path.with_name(plain + ending)).is_file())
