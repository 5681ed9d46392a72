"""Files that are written whole, or not at all."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ingest.core.errors import InputError

if TYPE_CHECKING:
    from pathlib import Path


@contextmanager
def replacing(output: str) -> Iterator[Path]:
    """Give the file to write in place of one, which is it once that is whole; without, what was there before stays."""
    import shutil
    from pathlib import Path  # --help does without both

    path = Path(os.path.realpath(output))  # a circle of links is an error of writing
    # Not so a pipe, or a file in a folder that takes no other.
    itself = (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK)
    unfinished = path if itself else path.with_name(f".{path.name}.{os.getpid()}")
    try:
        yield unfinished
        if not itself:
            if path.exists():
                shutil.copymode(path, unfinished)
            unfinished.replace(path)
    finally:
        if not itself:
            unfinished.unlink(missing_ok=True)


def write_whole(output: str, text: str | bytes) -> None:
    """Write a file whole, or leave what was there before. InputError where it cannot be written."""
    try:
        with replacing(output) as unfinished:
            unfinished.write_bytes(text.encode() if isinstance(text, str) else text)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", output) from None
