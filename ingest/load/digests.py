"""What files hold, by the SHA-256 of it: up to four files side by side where the processor can, else one after the other.

A step of SHA-256 waits for the step before it, so that a processor with instructions for it does nothing most of the time: four
files together take not much more than half as long as one after another. hashlib is the judge.
"""

from __future__ import annotations

import hashlib
from collections.abc import Generator, Iterator, Sequence
from pathlib import Path

import numpy as np

from ingest.core import kernel
from ingest.core.errors import InputError, as_text
from ingest.core.pool import fork_map
from ingest.read.discovery import processes
from ingest.read.text import open_plain

NOT_READ = "not read: "
HASH_BLOCK = 1 << 18
TOGETHER, CHUNK, LENGTH = 4, 64, 8  # files that are hashed side by side; bytes that SHA-256 takes at once, and of a length
BEGIN = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)


def digests_of(paths: Sequence[Path], jobs: int | None) -> dict[Path, tuple[str, int]]:
    """Return what `digested` gives of each of some files."""
    jobs = processes(jobs, paths)
    most = max(1, min(TOGETHER, len(paths) // jobs)) if _hashes_together() else 1
    shares = [paths[first : first + most] for first in range(0, len(paths), most)]

    def work(share: Sequence[Path]) -> Iterator[list[tuple[str, int]]]:
        yield _together(share) if len(share) > 1 else [digested(path, None) for path in share]

    found = fork_map(work, shares, jobs, joining=True)
    return {path: digest for number, digests in found for path, digest in zip(shares[number], digests, strict=True)}


def digest_of(path: Path, size: int | None) -> str:
    """Return the SHA-256 of a file, or of its first `size` bytes."""
    return digested(path, size)[0]


def digested(path: Path, size: int | None) -> tuple[str, int]:
    """Return the SHA-256 of a file, or of its first `size` bytes, and of how many bytes it is: the file may grow meanwhile.

    One that has gone, or cannot be read, has a digest that no other has, of 0 bytes: who reads it says so.
    """
    digest = hashlib.sha256()
    left, taken = size if size is not None else 2**62, 0
    view = memoryview(bytearray(HASH_BLOCK))
    try:
        with open_plain(path) as stream:
            while left and (got := stream.readinto(view[: min(HASH_BLOCK, left)])):  # type: ignore[attr-defined]
                digest.update(view[:got])
                left -= got
                taken += got
    except (InputError, OSError):
        return _not_read(path)
    return digest.hexdigest(), taken


def _not_read(path: Path) -> tuple[str, int]:
    return f"{NOT_READ}{as_text(path)}", 0


def _hashes_together() -> bool:
    """Return whether `_together` can be."""
    return kernel.hash_rows is not None and bool(kernel.hash_rows(bytearray(), b"", np.empty(0, np.int64)))


def _together(paths: Sequence[Path]) -> list[tuple[str, int]]:
    """Return what `digested` gives of up to four files."""
    assert kernel.hash_rows is not None
    states, texts = np.tile(np.array(BEGIN, np.uint32), (len(paths), 1)), np.empty((len(paths), HASH_BLOCK + 2 * CHUNK), np.uint8)
    reading = dict(enumerate(_chunks(path, row.data) for path, row in zip(paths, texts, strict=True)))
    found = [_not_read(path) for path in paths]
    chunks = np.zeros(len(paths), np.int64)
    while reading:
        for number, stream in [*reading.items()]:
            chunks[number] = 0
            try:
                chunks[number] = next(stream)
            except StopIteration as end:
                found[number] = states[number].astype(">u4").tobytes().hex(), end.value
                del reading[number]
            except (InputError, OSError):
                del reading[number]
        kernel.hash_rows(states, texts, chunks)
    return found


def _chunks(path: Path, row: memoryview) -> Generator[int, None, int]:
    """Yield how many chunks of a file lie in `row` next, those of the end that SHA-256 gives a text included; return its size."""
    size = filled = 0
    with open_plain(path) as stream:
        while got := stream.readinto(row[filled:HASH_BLOCK]):  # type: ignore[attr-defined]
            size, filled = size + got, filled + got
            if filled == HASH_BLOCK:
                yield HASH_BLOCK // CHUNK
                filled = 0
    end = -(-(filled + 1 + LENGTH) // CHUNK) * CHUNK
    row[filled:end] = b"\x80" + bytes(end - filled - 1 - LENGTH) + (8 * size).to_bytes(LENGTH)
    yield end // CHUNK
    return size
