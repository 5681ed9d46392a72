"""The files under the paths of a call, and the folder that they have in common."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from ingest.errors import InputError


def files_under(paths: Iterable[Path]) -> Iterator[Path]:
    """Yield all files under the paths once, those of a folder in order; InputError for a path that is not there or closed."""
    seen = set()
    for path in paths:
        if not path.exists():
            raise InputError("no such file or folder", path)
        if path.is_dir() and not os.access(path, os.R_OK | os.X_OK):
            raise InputError("no permission to list this folder: check owner and mode", path)
        found = sorted(child for child in path.rglob("*") if child.is_file()) if path.is_dir() else [path]
        for file in found:
            if file not in seen:
                seen.add(file)
                yield file


def root_of(paths: Sequence[Path]) -> Path:
    """Return the folder that names of runs and hosts are counted from."""
    folders = [str((path if path.is_dir() else path.parent).resolve()) for path in paths]
    return Path(os.path.commonpath(folders))
