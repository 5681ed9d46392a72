"""What commands write: files that are whole or not there, and what to say where nothing can be written."""

from __future__ import annotations

import errno
import os

from ingest.core.errors import InputError

FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def write_whole(output: str, text: str | bytes) -> None:
    """Write a file whole, or leave what was there before. InputError where it cannot be written."""
    import shutil
    from pathlib import Path  # --help does without both

    content = text.encode() if isinstance(text, str) else text
    path = Path(os.path.realpath(output))  # a circle of links is an error of writing
    try:
        if (path.exists() and not path.is_file()) or not os.access(path.parent, os.W_OK):
            path.write_bytes(content)  # a pipe, or a file in a folder that takes no other
            return
        unfinished = path.with_name(f".{path.name}.{os.getpid()}")
        try:
            unfinished.write_bytes(content)
            if path.exists():
                shutil.copymode(path, unfinished)
            unfinished.replace(path)
        finally:
            unfinished.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"cannot be written: {error.strerror or error}", output) from None


def of_the_system(error: OSError) -> str:
    """Return a sentence for output that finds no room, or for a file that the system refuses; empty text for another error."""
    if error.errno in FULL:
        return f"the output cannot be written: {error.strerror}"
    return f"{os.fsdecode(error.filename)}: {error.strerror}" if isinstance(error.filename, str | bytes) else ""
