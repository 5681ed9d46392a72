"""Text files in bounded blocks, plain or compressed."""

from __future__ import annotations

import codecs
import gzip
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any, BinaryIO, Self, cast

from ingest.core.errors import InputError
from ingest.read.account import Account

BLOCK = 1 << 20
SMALLEST_BLOCK = 1 << 12  # a file that grows, and a pipe, have more than their size says
HEAD_SIZE = 1 << 16
LONGEST_LINE = 1 << 20
NEWLINE = 10
GONE = "has gone since files were listed: what it held is missing, unless it has another name now"
CUT_OFF = "last line breaks off without a newline"
NULS = "NUL bytes: a hole left by a crash or a partial copy"
CRLF = "carriage returns (CRLF) were taken off the ends of lines"
ZSTANDARD_BLOCK = 1 << 17
COMPRESSED = (".gz", ".xz", ".zst")
MAGIC = {".gz": b"\x1f\x8b", ".xz": b"\xfd7zXZ\0", ".zst": b"\x28\xb5\x2f\xfd"}
# By PowerShell's `>` and `Out-File`, and by HdrHistogram for .NET.
MARKS = {b"\xef\xbb\xbf": "utf-8", b"\xff\xfe": "utf-16-le", b"\xfe\xff": "utf-16-be"}
MARK_SIZE = 3
MOST_OF_NOTHING = 512  # bytes of a file that may hold nothing: a gzip header has the file's name
RECODED_AT_ONCE = 1 << 17
TRACE_ENDINGS = (".gz", ".json", ".txt", ".log", ".out", ".perf", ".script", ".stacks", ".trace")
TABLE_ENDINGS = (".log", ".csv", ".txt", ".json", ".ndjson", ".jsonl", ".raw", ".out", ".dat", ".tsv")
PLAIN_NUMBER = re.compile(r"\s*[-+]?(?:(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:e[-+]?[0-9]+)?|inf(?:inity)?|nan)\s*", re.IGNORECASE)
CORRUPT = (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile)


# Files come and go while they are read. What readers learn of one from the system comes through here, so that it is a sentence.


def open_input(path: Path) -> BinaryIO:
    """Return the file opened for reading bytes, decompressed by its ending; InputError says why it cannot be."""
    ending = path.suffix
    with _in_words(path):
        if ending == ".gz":
            return cast("BinaryIO", gzip.open(path, "rb"))
        if ending == ".xz":
            return cast("BinaryIO", lzma.open(path, "rb"))
        return _zstandard(path) if ending == ".zst" else open_plain(path)


def open_plain(path: Path) -> BinaryIO:
    """Return the file opened for reading its bytes as they are, without a buffer; InputError says why it cannot be."""
    with _in_words(path):
        return cast("BinaryIO", path.open("rb", buffering=0))


def changed_ns(path: Path) -> int:
    """Return when a file was written to last, in epoch ns; InputError where it has gone."""
    with _in_words(path):
        return path.stat().st_mtime_ns


def size_of(path: Path) -> int:
    """Return how many bytes a file holds, 0 of one that has gone: whoever reads it says so."""
    try:
        return path.stat().st_size
    except OSError:
        return 0


@contextmanager
def _in_words(path: Path) -> Iterator[None]:
    """Raise what the system says of a file as InputError."""
    try:
        yield
    except FileNotFoundError:
        raise InputError(GONE, path) from None
    except PermissionError:
        raise InputError("no permission to read it: check owner and mode", path) from None
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}", path) from None


def mark_of(start: bytes) -> bytes:
    """Return the byte order mark that data begins with, empty where there is none."""
    return next((mark for mark in MARKS if start.startswith(mark)), b"")


def is_plain(path: Path) -> bool:
    """Return whether readers are given the bytes of a file as they are: it is not compressed, and has no byte order mark."""
    if path.suffix in COMPRESSED:
        return False
    try:
        with open_plain(path) as stream:
            return not mark_of(stream.read(MARK_SIZE) or b"")
    except (InputError, OSError):  # whoever reads it says so
        return True


class _Unmarked:
    """What is read of a stream behind its byte order mark, UTF-16 as UTF-8; what is no such text becomes U+FFFD."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._fresh = True
        self._decoder: codecs.IncrementalDecoder | None = None
        self._rest = b""

    def into(self, view: memoryview) -> int:
        """Return how many bytes were read into `view`; raises what reading the stream raises."""
        if self._fresh:
            self._fresh = False
            got = _read_into(self._stream, view)
            mark = mark_of(bytes(view[: min(got, MARK_SIZE)]))
            if not mark:
                return got
            if MARKS[mark] != "utf-8":
                self._decoder = codecs.getincrementaldecoder(MARKS[mark])("replace")
            self._rest = self._as_utf8(bytes(view[len(mark) : got]))
        elif self._decoder is None and not self._rest:
            return _read_into(self._stream, view)
        piece = bytearray(RECODED_AT_ONCE)
        while not self._rest:
            got = _read_into(self._stream, memoryview(piece))
            self._rest = self._as_utf8(bytes(piece[:got]))
            if not got:
                break
        data, self._rest = self._rest[: len(view)], self._rest[len(view) :]
        view[: len(data)] = data
        return len(data)

    def _as_utf8(self, data: bytes) -> bytes:
        return data if self._decoder is None else self._decoder.decode(data, final=not data).encode("utf-8", "replace")


def _zstandard(path: Path) -> BinaryIO:
    """Return a file compressed as .zst, opened; Python reads it by itself only since 3.14, so this takes pyarrow."""
    try:
        import pyarrow as pa
    except ImportError:
        raise InputError("reading .zst needs pyarrow, which is not installed: pip install pyarrow", path) from None
    return cast("BinaryIO", _Zstandard(pa.CompressedInputStream(path.open("rb"), "zstd")))


class _Zstandard:
    """What is read of Arrow's stream; where the data is damaged or cut off it says so as Python's own streams do."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stream.close()

    def readinto(self, view: memoryview) -> int:
        """Return how many bytes were read into `view`; EOFError where the data is cut off or damaged."""
        try:
            data = self.stream.read(min(len(view), ZSTANDARD_BLOCK))
        except OSError as error:
            raise EOFError(str(error)) from None
        view[: len(data)] = data
        return len(data)


def blocks(path: Path, upto: int | None = None) -> Iterator[memoryview]:
    """Yield whole lines of a file, or of its first `upto` bytes, in blocks of up to 1 MiB; the last may lack its newline.

    A block is valid until the next is asked for: all share one buffer, because fresh memory for each costs more than
    parsing it. A line longer than 1 MiB is yielded in pieces, so that no input can grow the buffer without bound. A
    compressed file that breaks off or is damaged yields what came out before that, then raises InputError.
    """
    filled, left = 0, 1 << 62 if upto is None else upto
    with open_input(path) as stream:
        # Of a small plain file one byte more than it holds, so that its end is seen.
        size = os.fstat(stream.fileno()).st_size if isinstance(stream, io.FileIO) else BLOCK
        buffer = bytearray(min(BLOCK, max(size, SMALLEST_BLOCK) + 1))
        text = _Unmarked(stream)
        while True:
            try:
                got = text.into(memoryview(buffer)[filled : filled + left])
            except CORRUPT as error:
                if filled:
                    yield memoryview(buffer)[:filled]
                raise InputError(f"compressed data is damaged or cut off ({error})", path) from None
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", path) from None
            if not got:
                break
            filled += got
            left -= got
            cut = buffer.rfind(b"\n", 0, filled) + 1
            if not cut and filled < len(buffer):
                continue
            if not cut and len(buffer) < LONGEST_LINE:
                buffer = buffer + bytes(len(buffer))
                continue
            cut = cut or filled
            yield memoryview(buffer)[:cut]
            buffer[: filled - cut] = buffer[cut:filled]
            filled -= cut
    if filled:
        yield memoryview(buffer)[:filled]


def _read_into(stream: BinaryIO, view: memoryview) -> int:
    """Return how many bytes were read. Compressed streams are read piece by piece: none is lost before a fault."""
    if isinstance(stream, (gzip.GzipFile, lzma.LZMAFile)):
        data = stream.read1(len(view))
        view[: len(data)] = data
        return len(data)
    got: int = stream.readinto(view)  # type: ignore[attr-defined]  # a file opened without buffering has it
    return got


def head(path: Path, size: int = HEAD_SIZE, upto: int | None = None) -> bytes:
    """Return up to `size` (and `upto`) first bytes of a file, decompressed; of a damaged one what can be had, else InputError."""
    size = size if upto is None else min(size, upto)
    filled = 0
    with open_input(path) as stream:
        known = os.fstat(stream.fileno()).st_size if isinstance(stream, io.FileIO) else 0  # 0 of a pipe, too
        buffer = bytearray(max(min(size, known + 1) if known else size, MARK_SIZE))
        text = _Unmarked(stream)
        while filled < size:
            try:
                got = text.into(memoryview(buffer)[filled:])
            except CORRUPT as error:
                if not filled:
                    raise InputError(f"compressed data is damaged or cut off ({error})", path) from None
                break
            except OSError as error:
                raise InputError(f"cannot be read: {error.strerror or error}", path) from None
            if not got:
                break
            filled += got
    return bytes(buffer[: min(filled, size)])


def holds_nothing(path: Path) -> bool:
    """Return whether a file holds no text, also one that was compressed."""
    try:
        return size_of(path) <= MOST_OF_NOTHING and not head(path, 1)
    except InputError:  # damaged, or gone: there was something
        return False


def decimal_of(text: str) -> Decimal:
    """Return the number that a text is; ArithmeticError where it is none.

    Underscores between digits, and digits of other scripts, which Python takes, are none in any file.
    """
    if not PLAIN_NUMBER.fullmatch(text):
        raise InvalidOperation
    return Decimal(text)


def plain_name(path: Path) -> str:
    """Return the file name without a compression ending."""
    return path.stem if path.name.endswith(COMPRESSED) else path.name


def ending_of(start: bytes) -> str:
    """Return the compression ending that data should have by its first bytes; empty text for plain data."""
    return next((ending for ending, magic in MAGIC.items() if start.startswith(magic)), "")


def name_without(path: Path, endings: tuple[str, ...], *, every: bool = False) -> str:
    """Return the name by which files of one folder differ: without a compression ending and one of `endings`, or all of them."""
    name = plain_name(path)
    while ending := next((ending for ending in endings if name.endswith(ending) and name != ending), ""):
        name = name.removesuffix(ending)
        if not every:
            break
    return name


def last_line_end(path: Path) -> int:
    """Return the offset behind the last newline of a plain file, 0 where it has none."""
    with open_plain(path) as stream:
        end = stream.seek(0, os.SEEK_END)
        while end:
            begin = max(0, end - LONGEST_LINE)
            stream.seek(begin)
            if behind := (stream.read(end - begin) or b"").rfind(b"\n") + 1:
                return begin + behind
            end = begin
    return 0


def whole_blocks(path: Path, account: Account, upto: int | None = None) -> Iterator[memoryview]:
    """Yield the blocks of a file, or of its first `upto` bytes; damage cuts it short, what came before is kept."""
    seen = False
    try:
        for block in blocks(path, upto):
            seen = True
            yield block
    except InputError as error:
        if not seen:
            raise
        account.cut_short = error.reason


def numbered_lines(path: Path, account: Account) -> Iterator[tuple[int, bytes]]:
    """Yield the lines of a file with their numbers from 1; damage cuts it short, what came before is kept."""
    number = 0
    for block in whole_blocks(path, account):
        for line in bytes(block).removesuffix(b"\n").split(b"\n"):
            number += 1
            yield number, line
