"""Which fio wrote a log without a version in its JSON: files beside the log show the version, or the earliest it can be."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.layout import LogLinear
from ingest.read.context import Context
from ingest.read.fio.hist import peek
from ingest.read.fio.names import LogName
from ingest.read.text import COMPRESSED, plain_name

NANOSECONDS_SINCE = (2, 99)


def since_of_layout(layout: LogLinear) -> tuple[int, ...] | None:
    """Return the earliest version that writes histograms of this layout: ns bins came with 2.99; None where any can."""
    return NANOSECONDS_SINCE if layout.unit_ns == 1 else None


def since_beside(path: Path, name: LogName) -> tuple[int, ...] | None:
    """Return the earliest version that can have written the histogram log of the same job in the folder of a raw log."""
    job, host = (f".{part}" if part else "" for part in (name.job, name.host))
    plain = f"{name.prefix}_clat_hist{job}.log{host}"
    for ending in ("", *COMPRESSED) if plain != plain_name(path) else ():
        if (log := path.with_name(plain + ending)).is_file():
            with suppress(InputError):
                return since_of_layout(peek(log, Context()).layout)
    return None
