"""What fio printed as text, without its JSON: the version alone, for logs that lie beside it or below it."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path

from ingest.read.text import head

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
