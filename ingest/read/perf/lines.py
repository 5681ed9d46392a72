"""Lines of `perf script` -> samples in columns, block by block; a sample's frames stay with it, and only the first is looked at.

    swapper     0 [000]  5147.094131:   10101010 cpu-clock:
    <tab>ffffffff821f4dab pv_native_safe_halt+0xb ([kernel.kallsyms])

Most bytes are frames: they are separated from samples by the first byte of their line alone, and never parsed.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Int
from ingest.read.account import Account
from ingest.read.delimited.arrow_lines import WholeLines, arrow, binary_lines, flags, reject
from ingest.read.text import CRLF, LONGEST_LINE, NEWLINE, whole_blocks

SECOND, NS_DIGITS = 1_000_000_000, 9
LATEST_S = 4_000_000_000
MODE = "(?:[A-Za-z]{1,6} +)?"  # as -F +misc prints it
WHO = rf"(?:(?P<comm>[^ \t].*?) +)??(?:(?P<pid>-?\d{{1,10}})(?:/ *(?P<tid>-?\d{{1,10}}))? +{MODE})??(?:\[\d+\] +{MODE})?"
WHEN = r"(?P<seconds>\d{1,10})\.(?P<part>\d{6}(?:\d{3})?):"
SAMPLE = rf"^ *{WHO}{WHEN}(?: +\d+)? +(?P<event>[^ ]+?):(?P<rest> .*)?\r?\n$"
FRAME = r"^ +[0-9a-f]{4,16}(?: .*\)| \[unknown\])?\r?\n$|^  [^ ]+:\d+(?: \(inlined\))?\r?\n$"
FTRACE = r"-\d+ +(?:\([ \d-]+\) +)?\[\d+\] +[^ ]+$"  # what a name ends in where the kernel or trace-cmd wrote the line
OWN_RECORD = " PERF_RECORD_"
NOT_A_LINE = "not a line of perf script"
NO_TIME = "a time stamp past the year 2096"
OWN = "perf's own records of processes and mappings, not samples"
TAB, COMMENT, SPACE = 9, 35, 32
MOST_KEPT = 4 * LONGEST_LINE


@dataclass(frozen=True, slots=True)
class Samples:
    """Samples of one block: a struct array of `comm`, `pid`, `tid`, `event` and `rest`, and the line of the first frame.

    Where a sample has no frame below it, its leaf is the rest of its own line.
    """

    fields: Any
    line: Int
    at_ns: Int
    leaf: Any

    def __len__(self) -> int:
        return len(self.line)

    def take(self, rows: Int) -> Samples:
        """Return the given samples."""
        return Samples(self.fields.take(rows), self.line[rows], self.at_ns[rows], self.leaf.take(rows))


def samples(path: Path, account: Account) -> Iterator[Samples]:
    """Yield the samples of a file, times in ns of its own clock; other lines are counted with their reason."""
    pa = arrow(path)
    whole, kept, line = WholeLines(account), b"", 1
    for block in whole_blocks(path, account):
        data = whole.of(block).tobytes()
        if whole.line != line + kept.count(b"\n"):  # a line was given up: what was kept ends before it
            yield _samples(pa, kept, line, account)
            kept, line = b"", whole.line
        whole.line += data.count(b"\n")
        text = kept + data
        cut = _last_sample(text) if len(text) < MOST_KEPT else len(text)
        yield _samples(pa, text[:cut], line, account)
        kept, line = text[cut:], line + text.count(b"\n", 0, cut)
    yield _samples(pa, kept, line, account)


def _last_sample(text: bytes) -> int:
    """Return where the last line begins that may be a sample: the next block may hold its frames."""
    end = len(text)
    while end > 0:
        begin = text.rfind(b"\n", 0, end - 1) + 1
        if text[begin] not in (TAB, NEWLINE, COMMENT):
            return begin
        end = begin
    return 0


def _samples(pa: Any, text: bytes, line: int, account: Account) -> Samples:
    """Return the samples of whole lines, the first of which has the number `line`."""
    compute = pa.compute
    data = np.frombuffer(text, np.uint8)
    lines = binary_lines(pa, data, text.count(b"\n"))
    first = _first_bytes(data)
    place = np.flatnonzero(~np.isin(first, (TAB, NEWLINE, COMMENT)))
    if len(place) and text.find(b"\r\n", 0, 1 << 16) >= 0:
        account.note(CRLF)
    candidates = lines.take(pa.array(place))
    columns = compute.extract_regex(candidates, SAMPLE)
    own = flags(compute.match_substring(candidates, OWN_RECORD))
    good = flags(columns.is_valid()) & ~own
    names = compute.struct_field(columns, "comm").fill_null(b"")
    good &= ~flags(compute.match_substring_regex(names, FTRACE))
    left = ~good & ~own & ~flags(compute.match_substring_regex(candidates, FRAME + r"|^[ \t]*\r?\n$"))
    reject(account, NOT_A_LINE, line + place[left])
    account.skip(OWN, int(own.sum()))
    seconds = _number(pa, columns, "seconds", good)
    late = good & (seconds > LATEST_S)
    reject(account, NO_TIME, line + place[late])
    rows = np.flatnonzero(good & ~late)
    fields = columns.take(pa.array(rows))
    digits = np.frombuffer(compute.binary_length(compute.struct_field(fields, "part")).buffers()[1], np.int32)[: len(rows)]
    part = _number(pa, fields, "part", np.ones(len(rows), np.bool_)) * np.where(digits == NS_DIGITS, 1, 1000)
    leaf = _leaves(pa, lines, data, place[rows], compute.struct_field(fields, "rest"))
    return Samples(fields, line + place[rows], seconds[rows] * SECOND + part, leaf)


def _first_bytes(data: NDArray[np.uint8]) -> NDArray[np.uint8]:
    ends = np.flatnonzero(data == NEWLINE)
    return data[np.append(0, ends[:-1] + 1)] if len(ends) else data[:0]


def _leaves(pa: Any, lines: Any, data: NDArray[np.uint8], place: Int, rest: Any) -> Any:
    """Return the line below each sample where that is indented as frames are, else the rest of the sample's own line."""
    if not len(place):
        return rest
    first = np.append(_first_bytes(data), NEWLINE)
    below = np.isin(first[place + 1], (TAB, SPACE))
    taken = lines.take(pa.array(np.minimum(place + 1, len(lines) - 1)))
    below &= ~flags(pa.compute.match_substring_regex(taken, SAMPLE))
    return pa.compute.if_else(pa.array(below), taken, rest)


def _number(pa: Any, columns: Any, name: str, there: NDArray[np.bool_]) -> Int:
    """Return a field of digits as numbers, 0 where it is not there."""
    text = pa.compute.if_else(pa.array(there), pa.compute.struct_field(columns, name), b"0").cast(pa.string())
    return np.frombuffer(text.cast(pa.int64()).buffers()[1], np.int64)[: len(there)]
