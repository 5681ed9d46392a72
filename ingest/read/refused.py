"""Files that are known and not read: what each is, and what to do instead. Refusals have their sentences here, once."""

from __future__ import annotations

import re
from collections.abc import Collection
from functools import cache
from pathlib import Path
from typing import NamedTuple

from ingest.core.errors import InputError
from ingest.read import formats
from ingest.read.archives import cbt
from ingest.read.sources import CONTEXT, REFUSED, SKIPPED
from ingest.read.text import COMPRESSED, TABLE_ENDINGS, ending_of, head, plain_name

MEANS = "a mean over time, not latencies; gives the counts behind the means of averaged logs beside it"
DESCRIBE = "describe its columns in a few lines of YAML: --input-format events.yml (docs/reference/formats.md)"
BINARY = "a binary file of no known format"
HOW = f"; {DESCRIBE}, or name the format with --input-format"
FEWEST_COLUMNS = 2
LONGEST_CELL = 30
BACKUP_MARKS = ("~", ".bak", ".backup", ".old", ".orig", ".save", ".tmp", ".temp", ".part", ".swp", "copy")
BACKUP = (  # `a.bak`, `a.bak.1`, `a~`, then as file managers call copies: `a (copy).log`, `a (3rd copy).log`,
    # `a - Copy.log`, `a - Copy (2).log`, `a copy 2.log`, `Copy of a.log`
    r"(?P<name>.+?)(?P<end>)(~|\.(bak|backup|old|orig|save|saved|tmp|temp|part|partial|swp)\d*)+(\.\d+)?",
    r"(?P<name>.+?) \((\w+ )?copy( \d+)?\)(?P<end>\..+)?",
    r"(?P<name>.+?) (- )?copy( \(?\d+\)?)?(?P<end>\..+)?",
    r"copy of (?P<name>.+)(?P<end>)",
)
UNFINISHED = re.compile(r"\..+\.[A-Za-z0-9]{6}")  # as rsync calls a file until all of it is there
NOT_YET = "a copy that is not whole yet, by its name (rsync): its samples are missing until it has its own name"
NO_TEXT = re.compile(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]")


class RefusedFormat(NamedTuple):
    """A file that is no source: patterns of its name and its first bytes, what becomes of it, and the sentence.

    `tool` is the name of one that has percentiles only.
    """

    action: str
    sentence: str
    name: str = ""
    head: bytes = b""
    tool: str = ""


ONLY = "percentiles only, which cannot be added up or put on one time axis"
BY_NAME = (
    RefusedFormat(CONTEXT, f"fio bw log: {MEANS}", r"_bw(\.\d+)?\.log(\..+)?$"),
    RefusedFormat(CONTEXT, f"fio iops log: {MEANS}", r"_iops(\.\d+)?\.log(\..+)?$"),
    RefusedFormat(CONTEXT, "CBT settings", r"^(benchmark_config|cbt_config)\.yaml$"),
)
UNNAMED = RefusedFormat(
    REFUSED, "compressed, but not called .gz, .xz or .zst: rename it", head=rb"\A(\x1f\x8b|\xfd7zXZ\0|\x28\xb5\x2f\xfd)"
)


@cache
def tools() -> tuple[RefusedFormat, ...]:
    """Return what is known by its first bytes, as refused.yml has it."""
    from ingest.read.described.description import yaml_in

    entries = yaml_in(Path(__file__).with_name("refused.yml"))
    return (UNNAMED, *(_entry(**entry) for entry in entries))


def _entry(head: str, tool: str = "", ask: str = "", say: str = "", name: str = "", action: str = REFUSED) -> RefusedFormat:
    return RefusedFormat(action, say or f"{tool}: {ONLY}; {ask}", name, head.encode(), tool)


def known_by_name(path: Path) -> RefusedFormat | None:
    """Return what a file is by its name, where it is known and not read."""
    name = plain_name(path)
    if cbt.is_note(name):
        return RefusedFormat(SKIPPED, "CBT's notes about the cluster: not latencies")
    return next((entry for entry in BY_NAME if re.search(entry.name, name)), None)


def backup_of(path: Path, known: Collection[Path]) -> Path | None:
    """Return the file among the `known` ones that a file is a backup or a temporary copy of by its name, else None.

    `a_clat_hist.1.log.bak` would be a log of the host `bak`, whose I/Os count twice.
    """
    name = plain_name(path)
    if not any(mark in name.lower() for mark in BACKUP_MARKS):  # most names: patterns are not even compiled for them
        return None
    matches = [match for pattern in BACKUP if (match := re.fullmatch(pattern, name, re.IGNORECASE))]
    plain = [plain_name(path.with_name(match["name"] + (match["end"] or ""))) for match in matches]
    names = (path.with_name(name + ending) for name in plain for ending in ("", *COMPRESSED))
    return next((original for original in names if original in known), None)


def is_unfinished(path: Path) -> bool:
    """Return whether a file is a copy that is not whole yet, by its name."""
    return UNFINISHED.fullmatch(path.name) is not None and not path.name.endswith((*TABLE_ENDINGS, *COMPRESSED))


def compressed_inside(path: Path) -> RefusedFormat | None:
    """Return what a file is that its format cannot read because it is compressed and its name does not say so, else None."""
    try:
        return UNNAMED if ending_of(head(path, 8)) else None
    except InputError:  # why it cannot be read was said before
        return None


def known_by_head(path: Path, start: bytes) -> RefusedFormat:
    """Return what a file that no format takes is, by its first bytes; a sentence that says what to do in any case."""
    if not start:
        return RefusedFormat(SKIPPED, "empty file")
    from ingest.read.marks import looks_like_gc_log, looks_like_old_gc_log  # most calls meet no file that nobody knows
    from ingest.read.plugins.perf import NO_STAMPS, lacks_stamps

    name, whole, start = plain_name(path), start, start[: formats.BEGINNING]
    if looks_like_gc_log(start) or looks_like_old_gc_log(start):
        return RefusedFormat(SKIPPED, "a GC log of a JVM: give it with --marks (docs/guides/marks.md)")
    if lacks_stamps(whole):
        return RefusedFormat(REFUSED, NO_STAMPS)
    known = (entry for entry in tools() if re.search(entry.head, start) or (entry.name and re.search(entry.name, name)))
    what = _resembles(start)
    return next(known, None) or RefusedFormat(SKIPPED, what if what == BINARY else f"{what}{HOW}")


def without_advice(reason: str) -> tuple[str, str]:
    """Return the reason why a file was skipped, and of one of no known format which are read, and what to do."""
    if not reason.endswith((BINARY, HOW)):
        return reason, ""
    others = "".join(f"; {sentence}" for sentence in formats.others()[1])
    return reason.removesuffix(HOW), f"; tailboard reads {formats.titles()}, {HOW.removeprefix('; ')}{others}"


def _resembles(start: bytes) -> str:
    """Return what the first lines of an unknown file look like."""
    if NO_TEXT.search(start[:4096]):
        return BINARY
    line = next((line for line in start.splitlines() if line.strip() and not line.startswith(b"#")), b"")
    text = line.decode("utf-8", "replace").strip()
    for mark, word in ((",", "commas"), ("\t", "tabs"), (";", "semicolons")):
        stripped = map(str.strip, text.split(mark))
        cells = [cell if len(cell) <= LONGEST_CELL else f"{cell[:LONGEST_CELL]}..." for cell in stripped]
        if len(cells) >= FEWEST_COLUMNS and not text.startswith(("{", "[")):
            return f"looks like a table with {word} ({', '.join(cells[:4])}{', ...' if len(cells) > 4 else ''})"  # a line's worth
    if text.startswith(("{", "[")):
        return "looks like JSON of another tool"
    return "no latency log of a known format"
