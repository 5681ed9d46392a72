"""Text from outside (names of files, labels) as it can be stored and shown.

b"caf\\xe9.log", which is no UTF-8       ->     caf\\xe9.log          stored, shown
"a\\x1b[31m.log", which colours a terminal ->     a\\x1b[31m.log        shown; csv, ndjson and stores have it as it is
"""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

BYTES_FROM, BYTES_TO = 0xDC80, 0xDCFF  # how Python keeps bytes of file names that are no UTF-8
NO_UNICODE = "[\ud800-\udfff]"
# Control characters, marks that turn the direction of text, separators of lines: they move the cursor or forge a line. Python
# calls none of them printable. XML has no control characters either, and its programs end where they meet one.
CONTROLS = "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
NUMBERED = rb"\\x([89a-f][0-9a-f])"

STANDS_FOR: dict[str, str] = {}  # what people know the files as that this program made, by path


def as_text(name: Path | str) -> str:
    """Return a name that is Unicode throughout: bytes that are no UTF-8 stand as their numbers."""
    text = str(name)
    return text if text.isascii() else re.sub(NO_UNICODE, lambda match: _number(match[0]), text)


def as_path(text: str) -> Path:
    """Return the path that `as_text` was given: as it is written, else with the bytes that its numbers stand for."""
    from pathlib import Path  # --help does without, and it takes 5 ms to import

    path = Path(text)
    if "\\x" not in text or path.exists():
        return path
    raw = re.sub(NUMBERED, lambda match: bytes([int(match[1], 16)]), text.encode("utf-8", "surrogatepass"))
    other = Path(os.fsdecode(raw))
    return other if other.exists() else path


def shown(text: object) -> str:
    """Return text for people, in one line: control characters stand as their numbers, so that none acts on the terminal."""
    plain = str(text)
    for path, name in STANDS_FOR.items():
        plain = plain.replace(path, name)
    return plain if plain.isprintable() else re.sub(CONTROLS, lambda match: _number(match[0]), plain)


def _number(character: str) -> str:
    code = ord(character)
    if BYTES_FROM <= code <= BYTES_TO:
        return f"\\x{code - 0xDC00:02x}"
    short = {"\n": "\\n", "\t": "\\t", "\r": "\\r"}.get(character)
    return short or (f"\\x{code:02x}" if code < 1 << 8 else f"\\u{code:04x}")
