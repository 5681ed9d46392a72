"""Delimited lines as Arrow columns, block by block, with the line of each row, and exact numbers in them.

Columns that blanks part, any number of them: `delimiter: whitespace` of a description.

    Tracing ext4 operations slower than 10 ms
    TIME(s)     COMM           PID    DISK    T SECTOR     BYTES  QUE(ms) LAT(ms)
    0.000004    supervise      1950   xvda1   W 13092560   4096      0.01    0.74
    0.000178    tmux: server   1951   xvda1   W 13092432   4096      0.02    0.61

Blocks are brought into lines with one mark between two columns before they are parsed. One column may hold blanks: what
stands before it is counted from the left, what stands behind it from the right.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import InputError
from ingest.core.intervals import Bool, Int
from ingest.core.units import MOST_NS
from ingest.read.account import FINDINGS_KEPT, Account
from ingest.read.integers import PlainIntegers
from ingest.read.text import CRLF, CUT_OFF, LONGEST_LINE, NEWLINE, NULS, whole_blocks

WHITESPACE = "whitespace"
MARK = "\x1f"
BLANK = ord(" ")
ONE_BLANK = bytes.maketrans(b"\t\v\f\x1f", b"   ?")


def fields(line: bytes, width: int = 0, blanks: int | None = None) -> list[str]:
    """Return the columns of a line; of more than `width` those from column `blanks` on are put together."""
    columns = [word.decode("utf-8", "replace") for word in line.translate(ONE_BLANK, b"\0").split()]
    more = len(columns) - width
    if blanks is None or more <= 0:
        return columns
    return [*columns[:blanks], " ".join(columns[blanks : blanks + more + 1]), *columns[blanks + more + 1 :]]


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


# Delimited lines as Arrow columns, block by block, with the line of each row; other lines are counted with their reason.
#
# A block goes to Arrow's CSV parser as it is. Only where that refuses it, or counts other rows than there are line ends, each
# line is held against a pattern first, all of them at once, and the lines that fit are parsed alone: one bad line costs only
# itself, and a file of nothing but bad lines no more than a few passes over it.


MOST_TRIES = 4096
QUOTE = ord('"')
LONGEST_RECORD = 1 << 16  # of a row with line ends inside of quotes
RECORD = re.compile(rb'[^"\n]*(?:"[^"]*"[^"\n]*)*\n')
NOT_WANTED = "lines that the description does not take (where)"
MISSING = "needs pyarrow, which is not installed: pip install pyarrow"
TOO_LONG = "a line of more than 1 MiB"
LOOKED_AT = 200  # lines by which it is decided how many columns a table without a head has
WHICH = ": if a name contains blanks, name its column (blanks:)"


def arrow(path: Path | None = None) -> ModuleType:
    """Return pyarrow with its csv and compute modules; InputError says how to install it where it is missing."""
    try:
        import pyarrow as pa
        import pyarrow.compute
        import pyarrow.csv  # reached as pa.csv
    except ImportError:
        raise InputError(MISSING, path) from None
    module: ModuleType = pa
    return module


@dataclass(frozen=True, slots=True)
class Form:
    """What a line of a file is: its columns' names, and the Arrow types of those that are wanted.

    `tiers` are patterns of whole lines, each with the types that lines of it are read as where a block has a fault.
    `not_a_row` is the reason given for a line that has all columns and fits none. Lines that fit `passed` are passed over
    without a word. `texts` are patterns that columns of text must fit. Where `hexadecimal` is not set, 0x numbers are no
    numbers, though Arrow would take them. `marked` says that runs of blanks part the columns, of which that at place `blanks`
    may hold some. Of a line that is no row `unwanted` says by its cells whether it was to be passed over anyway.
    """

    names: Sequence[str]
    types: Mapping[str, Any]
    tiers: Sequence[tuple[str, Mapping[str, Any]]]
    not_a_row: str
    delimiter: str = ","
    quoted: bool = False
    texts: Mapping[str, str] = field(default_factory=dict)
    hexadecimal: bool = False
    passed: str = r"^[ \t\r]*\n$"
    marked: bool = False
    blanks: int | None = None
    unwanted: Callable[[list[str]], bool] | None = None


def usual_width(widths: Iterable[int], least: int = 0) -> int:
    """Return how many columns most lines have of those with at least so many, if there are any; 0 where there is no line."""
    counted = Counter(widths)
    enough = Counter({width: number for width, number in counted.items() if width >= least})
    return (enough or counted).most_common(1)[0][0] if counted else 0


class WholeLines:
    """Takes the whole lines out of the blocks of one file in turn; `line` is the number of the next line."""

    def __init__(self, account: Account, skipped: int = 0) -> None:
        self.account = account
        self.line = 1
        self._skip = skipped
        self._open = False

    def of(self, block: memoryview) -> NDArray[np.uint8]:
        """Return the whole lines of a block; the rest of a line that was given up is passed over, and half a line rejected."""
        data = np.frombuffer(block, np.uint8)
        while self._open or self._skip:
            at = np.flatnonzero(data[:LONGEST_LINE] == NEWLINE)
            if not len(at):
                return data[:0]
            data = data[at[0] + 1 :]
            self._skip -= 0 if self._open else 1
            self._open = False
            self.line += 1
        if not len(data) or data[-1] == NEWLINE:
            return data
        ends = np.flatnonzero(data == NEWLINE)
        whole = data[: ends[-1] + 1] if len(ends) else data[:0]
        rest = data[len(whole) :]
        if rest.tobytes().strip(b" \t\r"):
            reason = TOO_LONG if len(rest) >= LONGEST_LINE else CUT_OFF
            self.account.reject(reason, [self.line + len(ends)])
        self._open = True
        return whole


class Lines:
    """Parses the blocks of one file in turn."""

    def __init__(self, form: Form, account: Account, *, skipped: int = 0, whole: WholeLines | None = None) -> None:
        """Parse lines of `form` from line 1 + `skipped` on, or the next that `whole` gives; pyarrow must be there."""
        self.pa = arrow()
        self.form = form
        self.account = account
        self.whole = whole or WholeLines(account, skipped)
        self._held = np.empty(0, np.uint8)
        self._row = re.compile(form.tiers[-1][0].encode()) if form.quoted and form.tiers else None
        self._parse = self.pa.csv.ParseOptions(
            delimiter=form.delimiter, quote_char='"' if form.quoted else False, ignore_empty_lines=False
        )
        self._quick = self._converted(form.types)
        self._tiers = [(pattern, self._converted(types)) for pattern, types in form.tiers]

    def _converted(self, types: Mapping[str, Any]) -> Any:
        return self.pa.csv.ConvertOptions(
            column_types=dict(types), include_columns=list(types), null_values=[], strings_can_be_null=False
        )

    def rows(self, data: NDArray[np.uint8], block: memoryview, *, last: bool = False) -> Iterator[tuple[Any, Int]]:
        """Yield the columns of the rows in the whole lines of a block (a table of one chunk) with their line numbers.

        A row of which a quoted cell goes on in the next block is kept until then, unless this is the `last`.
        """
        starts: Int | None = None
        if self.form.marked:
            data = marked(data, len(self.form.names), self.form.blanks)
        returns, quoted = _holds(block, b"\r"), self.form.quoted and (len(self._held) > 0 or _holds(block, b'"'))
        # A line end inside of quotes ends no row, so where there are as many rows as lines there is none: most blocks.
        table = None if len(self._held) or (quoted and returns) else self._whole_table(data, block)
        if table is None and quoted:
            data = np.concatenate([self._held, data]) if len(self._held) else data
            data, starts = self._unbroken(data, last=last)
            block = memoryview(data.tobytes()) if starts is not None else block
            returns = _holds(block, b"\r")
            table = self._whole_table(data, block) if len(data) else None
        if not len(data):
            return
        count = int(np.count_nonzero(data == NEWLINE)) if table is None else len(table)
        numbers = self.whole.line + (np.arange(count) if starts is None else starts[:-1])
        if table is not None:
            if returns:
                self.account.note(CRLF)
            yield table, numbers
        else:
            yield from self._sifted(data, numbers)
        self.whole.line += count if starts is None else int(starts[-1])

    def _whole_table(self, data: NDArray[np.uint8], block: memoryview) -> Any:
        """Return the columns of whole lines where each line is a row; a carriage return inside a line would make two of it."""
        odd = _holds(block, b"\0") or (not self.form.hexadecimal and _holds(block, b"x"))
        table = None if odd else self.table(self.pa.py_buffer(data))
        fits = table is not None and len(table) == np.count_nonzero(data == NEWLINE) and self._fits(table, data)
        return table if fits else None

    def _unbroken(self, data: NDArray[np.uint8], *, last: bool) -> tuple[NDArray[np.uint8], Int | None]:
        """Return lines in which a blank stands for each line end inside of quotes, and the place of each line, and of the end.

        None where there are no such line ends. What may go on in the next block is held. A quote that is never closed, or only
        by a line that is a row by itself, is damage of its own line.
        """
        self._held = data[:0]
        quotes, ends = np.flatnonzero(data == QUOTE), np.flatnonzero(data == NEWLINE)
        odd = np.flatnonzero(np.diff(np.searchsorted(quotes, ends), prepend=0) % 2)
        if not len(odd):
            return data, None
        inside: list[int] = []
        text, after = data.tobytes(), 0
        for line in odd.tolist():
            begin = int(ends[line - 1]) + 1 if line else 0
            if begin < after:
                continue
            match = RECORD.match(text, begin, begin + LONGEST_RECORD)
            if match is None:
                if not last and len(text) - begin < LONGEST_RECORD and text.find(b'"', int(ends[line])) < 0:
                    self._held, data, ends = data[begin:], data[:begin], ends[:line]
                    break
            elif self._is_one(match[0]):
                after = match.end()
                inside += range(line, int(np.searchsorted(ends, after - 1)))
        data = data.copy()
        data[ends[inside]] = BLANK
        return data, np.append(np.delete(np.arange(len(ends)), np.array(inside, np.int64) + 1), len(ends))

    def _is_one(self, record: bytes) -> bool:
        """Return whether lines are one row, of which a quoted cell holds line ends: none behind the first is a row by itself."""
        lines = record.splitlines(keepends=True)
        joined = b" ".join(line.rstrip(b"\r\n") for line in lines) + b"\n"
        if self._row is None or len(lines) == 1 or any(self._row.match(line.replace(b"\r\n", b"\n")) for line in lines[1:]):
            return False
        return self._row.match(joined) is not None

    def _fits(self, table: Any, data: NDArray[np.uint8]) -> bool:
        """Return whether columns of text fit their patterns, and 0x numbers are in them alone: Arrow would take others, too."""
        compute, texts = self.pa.compute, self.form.texts
        if not all(compute.all(compute.match_substring_regex(table.column(name), texts[name])).as_py() for name in texts):
            return False
        if not (self.form.hexadecimal and texts):
            return True
        inside = sum(compute.sum(compute.count_substring(table.column(name), b"x")).as_py() or 0 for name in texts)
        return inside == int(np.count_nonzero(data == ord("x")))

    def table(self, buffer: Any, convert: Any = None) -> Any:
        """Return the columns of whole lines (bytes), None where Arrow refuses them; `convert` are other types than the form's."""
        options = self.pa.csv.ReadOptions(column_names=list(self.form.names), use_threads=False, block_size=len(buffer) + 1)
        try:
            return self.pa.csv.read_csv(self.pa.BufferReader(buffer), options, self._parse, convert or self._quick)
        except (self.pa.ArrowInvalid, self.pa.ArrowKeyError):
            return None

    def _sifted(self, data: NDArray[np.uint8], numbers: Int) -> Iterator[tuple[Any, Int]]:
        """Yield the rows of a block with a fault in it: the lines that fit the pattern.

        A line that is rejected is so before the rows are yielded that it stands among.
        """
        compute, count = self.pa.compute, len(numbers)
        lines = binary_lines(self.pa, data, count)
        crlf = compute.ends_with(lines, b"\r\n")
        if compute.any(crlf).as_py():
            self.account.note(CRLF)
            lines = compute.if_else(crlf, compute.binary_join_element_wise(compute.binary_slice(lines, 0, -2), b"\n", b""), lines)
        bad = np.ones(count, np.bool_)
        pieces: list[tuple[Any, Int]] = []
        for pattern, convert in self._tiers:
            fitting = np.flatnonzero(bad & flags(compute.match_substring_regex(lines, pattern)))
            for table, good in self._halved(lines, fitting, convert):
                bad[good] = False
                pieces.append((table, good))
        faults, upto = self._faults(lines, bad) if bad.any() else [], 0
        for table, good in sorted(pieces, key=lambda piece: int(piece[1][-1])):
            self._reject(faults, numbers, upto, upto := int(good[-1]))
            yield table, numbers[good]
        self._reject(faults, numbers, upto, count)

    def _halved(self, lines: Any, fitting: Int, convert: Any) -> Iterator[tuple[Any, Int]]:
        """Yield the rows of lines that fit a pattern, halved until what Arrow refuses (the 30th of February) stands alone."""
        stack, tries = [fitting], 0
        while stack and tries < MOST_TRIES:
            good = stack.pop()
            table = self.table(_text(lines.take(self.pa.array(good))), convert) if len(good) else None
            if table is not None and len(table) == len(good):
                yield table, good
            elif len(good) > 1:
                stack += [good[len(good) // 2 :], good[: len(good) // 2]]
            tries += 1

    def _faults(self, lines: Any, bad: NDArray[np.bool_]) -> list[tuple[str, Int]]:
        """Return the places of the bad lines by reason."""
        compute, form = self.pa.compute, self.form
        left = bad & ~flags(compute.match_substring_regex(lines, form.passed))
        if form.unwanted is not None:
            cells_of = partial(csv.reader, delimiter=form.delimiter, quoting=csv.QUOTE_MINIMAL if form.quoted else csv.QUOTE_NONE)
            for place in np.flatnonzero(left).tolist():
                line = lines[place].as_py().decode("utf-8", "replace").replace("\0", "\ufffd").replace("\r", " ")
                if form.unwanted([cell.strip() for cell in next(cells_of([line]), [])]):
                    left[place] = False
                    self.account.skip(NOT_WANTED, 1)
        if not left.any():
            return []
        counted = compute.count_substring(lines, form.delimiter.encode())
        cells = lying(counted, np.int32) + 1
        width, which = len(form.names), WHICH if form.marked else ""
        found = []
        for reason, faulty in (
            (NULS, flags(compute.match_substring(lines, b"\0"))),
            (f"fewer columns than the rows of this log ({width})", cells < width),
            (f"more columns than the rows of this log ({width}){which}", (cells > width) & (not form.quoted)),
            (form.not_a_row, np.ones(len(bad), np.bool_)),
        ):
            found.append((reason, np.flatnonzero(left & faulty)))
            left &= ~faulty
        return found

    def _reject(self, faults: Sequence[tuple[str, Int]], numbers: Int, begin: int, end: int) -> None:
        """Count the bad lines of some places by reason."""
        for reason, at in faults:
            reject(self.account, reason, numbers[at[(at >= begin) & (at < end)]])


class IntegerLines:
    """Parses the blocks of one file of integers in turn; Arrow, whose import takes 0.1 s, only those that are not plain."""

    def __init__(self, names: Sequence[str], form: Callable[[], Form], account: Account) -> None:
        """Parse lines of so many integers; `form` says what they are where they have to be looked at closely."""
        self.names = names
        self._form = form
        self._whole = WholeLines(account)
        self._plain = PlainIntegers(len(names))
        self._closely: Lines | None = None

    def columns(self, block: memoryview) -> Iterator[tuple[Mapping[str, Int], Int]]:
        """Yield the columns of the rows in a block with their line numbers; columns of text are checked and left out."""
        data = self._whole.of(block)
        columns = self._plain.columns(data)
        if columns is None:
            if self._closely is None:
                self._closely = Lines(self._form(), self._whole.account, whole=self._whole)
            form = self._closely.form
            for table, lines in self._closely.rows(data, block):
                yield {name: lying(combined(table.column(name))) for name in form.types if name not in form.texts}, lines
            return
        first = self._whole.line
        self._whole.line += len(columns[0])
        yield dict(zip(self.names, columns, strict=True)), np.arange(first, self._whole.line)


def binary_lines(pa: ModuleType, data: NDArray[np.uint8], count: int) -> Any:
    """Return whole lines, each with its newline, as an Arrow array over the same bytes."""
    ends = np.zeros(count + 1, np.int32)
    ends[1:] = np.flatnonzero(data == NEWLINE) + 1
    buffers = [None, pa.py_buffer(ends), pa.py_buffer(np.ascontiguousarray(data))]
    return pa.Array.from_buffers(pa.binary(), count, buffers)


def reject(account: Account, reason: str, lines: Int) -> None:
    """Count rejected lines; the first of them are named."""
    if len(lines):
        account.reject(reason, lines[:FINDINGS_KEPT].tolist(), more=len(lines) - FINDINGS_KEPT)


def sound_rows(account: Account, lines: Int, faults: Iterable[tuple[str, Bool]]) -> Int:
    """Return the rows without any of the faults, which are accepted; each other row is rejected for the first that it has."""
    left = np.ones(len(lines), np.bool_)
    for reason, bad in faults:
        reject(account, reason, lines[left & bad])
        left &= ~bad
    good = np.flatnonzero(left)
    account.accept(len(good))
    return good


def _holds(block: memoryview, byte: bytes) -> bool:
    """Return whether a byte occurs in a block; searched where it lies, at the speed of memory."""
    whole = block.obj
    return whole.find(byte, 0, len(block)) >= 0 if isinstance(whole, (bytes, bytearray)) else byte in bytes(block)


def _text(lines: Any) -> Any:
    """Return the bytes of an array of lines after one another, as they lie in it."""
    _, offsets, data = lines.buffers()
    places = np.frombuffer(offsets, np.int32)[lines.offset : lines.offset + len(lines) + 1]
    return data.slice(int(places[0]), int(places[-1] - places[0]))


def combined(column: Any) -> Any:
    """Return the values of a column as one array."""
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def lying(values: Any, kind: Any = np.int64) -> NDArray[Any]:
    """Return the numbers of an array where they lie; Arrow's own conversion would import pandas where there is one."""
    return np.frombuffer(values.buffers()[1], kind)[values.offset : values.offset + len(values)]


def flags(values: Any) -> NDArray[np.bool_]:
    """Return an array of Arrow's truth values, of which none is missing."""
    bits = np.frombuffer(values.buffers()[1], np.uint8)
    truths = np.unpackbits(bits, bitorder="little", count=values.offset + len(values))
    return truths[values.offset :].view(np.bool_)


def tables(path: Path, lines: Lines, upto: int | None = None) -> Iterator[tuple[Any, Int]]:
    """Yield the columns of all rows of a file, or of its first `upto` bytes; damage at its end is noted, the rest kept."""
    for block in whole_blocks(path, lines.account, upto):
        yield from lines.rows(lines.whole.of(block), block)
    yield from lines.rows(np.empty(0, np.uint8), memoryview(b""), last=True)


# Numbers in text -> integer nanoseconds: decimals exactly, never by way of a float where that can be avoided.
#
# A column is read as integers, or as decimals with as many places as make whole ns; what has more places is rounded down.
# Only numbers with an exponent, or with more places than that, are read as floats and rounded to the nearest ns.


MORE_PLACES = 9
PRECISION = 38
DECIMAL = rf"-?\d{{1,19}}(?:\.\d{{0,{MORE_PLACES}}})?"
FLOAT = r"-?(?:\d{1,25}(?:\.\d{0,40})?|\.\d{1,40})(?:[eE][-+]?\d{1,2})?"


def places(unit_ns: int) -> int:
    """Return how many decimal places of a unit (ns, us, ms, s) make whole ns."""
    return len(str(unit_ns)) - 1


def types(pa: ModuleType, unit_ns: int) -> list[Any]:
    """Return the Arrow types that numbers of a unit are tried as, in order."""
    whole = places(unit_ns)
    return [pa.int64(), pa.decimal128(PRECISION, whole), pa.decimal128(PRECISION, whole + MORE_PLACES), pa.float64()]


def nanoseconds(pa: ModuleType, column: Any, unit_ns: int) -> tuple[Int, Bool]:
    """Return a column of numbers as ns, and which of them there are: neither missing nor past 146 years."""
    values = combined(column)
    there = flags(values.is_valid()) if values.null_count else np.ones(len(values), np.bool_)
    values = values.cast(pa.int64()) if pa.types.is_timestamp(values.type) else values
    if pa.types.is_decimal(values.type):
        ns, sure = _of_decimals(pa, values, unit_ns)
    elif pa.types.is_floating(values.type):
        with np.errstate(over="ignore"):
            real = lying(values.fill_null(0), np.float64) * float(unit_ns)
        sure = np.abs(real) < MOST_NS
        ns = np.rint(np.where(sure, real, 0)).astype(np.int64)
    else:
        whole = lying(values.fill_null(0) if values.null_count else values)
        sure = (whole < MOST_NS // unit_ns) & (whole > -MOST_NS // unit_ns)
        ns = np.where(sure, whole, 0) * unit_ns if not sure.all() else whole * unit_ns
    return ns, there & sure


def _of_decimals(pa: ModuleType, values: Any, unit_ns: int) -> tuple[Int, Bool]:
    """Return decimals as ns, rounded down; their bytes are 128-bit integers of ns once they have as many places."""
    whole = places(unit_ns)
    if values.type.scale != whole:
        values = pa.compute.round(values, ndigits=whole, round_mode="down").cast(pa.decimal128(PRECISION, whole))
    words = np.frombuffer(values.buffers()[1], np.int64).reshape(-1, 2)[values.offset : values.offset + len(values)]
    low, high = words[:, 0], words[:, 1]
    sure = (high == low >> 63) & (low < MOST_NS) & (low > -MOST_NS)
    return np.where(sure, low, 0), sure


# Durations as Go and others write them: 1.5ms, 850µs, 1m2.25s, 0s.


DURATION = r"(?:(?P<h>\d{1,4})h)?(?:(?P<m>\d{1,6})m)?(?:(?P<n>\d{1,12}(?:\.\d{0,12})?)(?P<u>ns|us|µs|μs|ms|s))?"
DURATION_NS = {"ns": 1, "us": 10**3, "µs": 10**3, "μs": 10**3, "ms": 10**6, "s": 10**9}


def durations(column: Any) -> tuple[Int, Bool]:
    """Return a column of texts such as 1.5ms in ns, rounded to the nearest, and which of them are durations."""
    pa = arrow()
    texts = combined(column)
    if pa.types.is_dictionary(texts.type):
        ns, sure = durations(texts.dictionary)
        codes = lying(texts.indices.fill_null(0), np.int32)
        return (ns[codes], sure[codes] & flags(texts.is_valid())) if len(ns) else (np.zeros(len(codes), np.int64), codes < 0)
    texts = texts.cast(pa.string()).fill_null("")
    parts = pa.compute.extract_regex(texts, f"^{DURATION}$")
    sure = flags(parts.is_valid()) & (lying(pa.compute.binary_length(texts), np.int32) > 0)
    number = {key: pa.compute.struct_field(parts, [key]).fill_null("") for key in "hmnu"}
    ns = np.zeros(len(texts), np.int64)
    for key, unit in (("h", 3600 * 10**9), ("m", 60 * 10**9), ("n", 0)):
        there = pa.compute.not_equal(number[key], "")
        values = lying(pa.compute.if_else(there, number[key], "0").cast(pa.float64()), np.float64)
        scale: Any = unit
        if not unit:
            places = pa.compute.index_in(number["u"], value_set=pa.array(list(DURATION_NS))).fill_null(len(DURATION_NS))
            scale = np.array([*DURATION_NS.values(), 1])[lying(places, np.int32)]
        ns += np.rint(values * scale).astype(np.int64)
    return ns, sure
