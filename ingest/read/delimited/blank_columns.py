"""Columns that blanks part, any number of them: `delimiter: whitespace` of a description.

    Tracing ext4 operations slower than 10 ms
    TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
    0.000004    supervise      1950   xvda1   W 13092560   4096      0.01    0.74
    0.000178    tmux: server   1951   xvda1   W 13092432   4096      0.02    0.61

Blocks are brought into lines with one mark between two columns before they are parsed. One column may hold blanks: what
stands before it is counted from the left, what stands behind it from the right.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np
from numpy.typing import NDArray

from ingest.read.text import NEWLINE

WHITESPACE = "whitespace"
MARK = "\x1f"
BLANK = ord(" ")
ONE_BLANK = bytes.maketrans(b"\t\v\f\x1f", b"   ?")
LINES_AHEAD = 100


def fields(line: bytes, width: int = 0, blanks: int | None = None) -> list[str]:
    """Return the columns of a line; of more than `width` those from column `blanks` on are put together."""
    columns = [word.decode("utf-8", "replace") for word in line.translate(ONE_BLANK, b"\0").split()]
    more = len(columns) - width
    if blanks is None or more <= 0:
        return columns
    return [*columns[:blanks], " ".join(columns[blanks : blanks + more + 1]), *columns[blanks + more + 1 :]]


def header_at(lines: Sequence[bytes], wanted: Collection[str]) -> int:
    """Return which of the first lines names all wanted columns, 0 if none does."""
    for number, line in enumerate(lines[:LINES_AHEAD]):
        if wanted and set(wanted) <= set(fields(line)):
            return number
    return 0


def data_at(lines: Sequence[bytes], numbers: Collection[str]) -> int:
    """Return which of the first lines begins a number in each of these columns, which are numbered from 1; 0 if none does."""
    places = [int(number) - 1 for number in numbers if number.isdigit()]
    for number, line in enumerate(lines[:LINES_AHEAD]):
        cells = fields(line)
        if cells and all(0 <= place < len(cells) and cells[place].lstrip("-.")[:1].isdigit() for place in places):
            return number
    return 0


def marked(data: NDArray[np.uint8], width: int, blanks: int | None) -> NDArray[np.uint8]:
    """Return whole lines with a mark between columns: runs of blanks are one mark, those at both ends of a line are none.

    Of lines with more than `width` columns those from column `blanks` on are one, parted by single blanks. There are as many
    lines as before.
    """
    plain = np.frombuffer(data.tobytes().translate(ONE_BLANK), np.uint8)
    blank = plain == BLANK
    keep = ~blank
    keep[1:] |= keep[:-1] & (plain[:-1] != NEWLINE)  # the first blank of a run, but for those that begin a line
    text = plain[keep].tobytes()
    if b" \n" in text or b" \r\n" in text:
        text = text.replace(b" \n", b"\n").replace(b" \r\n", b"\r\n")
    if blanks is None:
        return np.frombuffer(text.replace(b" ", MARK.encode()), np.uint8)
    parted = np.frombuffer(text, np.uint8).copy()
    places = np.flatnonzero(parted == BLANK)
    ends = np.flatnonzero(parted == NEWLINE)
    until = np.searchsorted(places, ends)
    counts = np.diff(until, prepend=0)
    more = counts - (width - 1)
    if (more > 0).any():
        first = np.repeat(until - counts, counts)
        over = np.repeat(np.maximum(more, 0), counts)
        ordinal = np.arange(len(places)) - first
        places = places[(ordinal < blanks) | (ordinal >= blanks + over)]
    parted[places] = ord(MARK)
    return parted
