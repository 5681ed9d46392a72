"""How Snabb timelines are known and named: the first bytes, the file's name, the process."""

from __future__ import annotations

import struct
from pathlib import Path

from ingest.read.text import plain_name

MAGIC = 0xA3FF7223441D0001
MAGIC_BYTES = struct.pack("<Q", MAGIC)
ENDING = ".timeline"
OWN_NAMES = ("events.timeline", "timeline")  # PID/events.timeline; in older versions and Vita PID/engine/timeline


def looks_like_timeline(path: Path, start: bytes) -> bool:
    """Return whether a file begins as timelines do, or bears the name of one."""
    name = plain_name(path)
    return start.startswith(MAGIC_BYTES[:4]) or name.endswith(ENDING) or (name == "timeline" and path.parent.name == "engine")


def process_of(path: Path) -> str:
    """Return the Snabb process of a timeline: the folder of its number where it lies as Snabb keeps it, else the file's name."""
    name = plain_name(path)
    if name not in OWN_NAMES:
        return name.removesuffix(ENDING)
    folder = path.absolute().parent
    return folder.parent.name if folder.name == "engine" else folder.name
