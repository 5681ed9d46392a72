"""The files under the paths of a call, the folder that they have in common, and how many processes read them."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from ingest.core.errors import InputError
from ingest.read.text import COMPRESSED, size_of

# The files under the paths of a call, and the folder that they have in common.


ODD = "a named pipe, a socket or a device"
NOWHERE = "a link that leads nowhere: what it stands for is missing"
TOO_DEEP = "its path is too long for this system, so its files are missing: name a folder below, or move it up"
LONGEST_PATH = 4096  # Linux' PATH_MAX; others have less
OWN_STREAMS = ("/dev/fd/", "/dev/stdin", "/proc/")  # opened by the caller already, as <(...) of a shell is


def files_under(
    paths: Iterable[Path],
    closed: list[Path] | None = None,
    linked: list[Path] | None = None,
    odd: list[Path] | None = None,
) -> Iterator[Path]:
    """Yield all files under the paths once, those of a folder in order; what is no file there is added to `odd`.

    A folder that two paths lead to, one by a link as `results/latest`, is one folder: its files have the name that comes first.
    Folders below them that cannot be listed are added to `closed`, links to folders to `linked`. InputError for a path that is
    not there, closed, or no file.
    """
    seen: set[Path] = set()
    folders: dict[Path, Path] = {}
    for path in paths:
        try:
            mode = path.stat().st_mode
        except OSError as error:
            gone = error.errno in (errno.ENOENT, errno.ENOTDIR)
            denied = "no permission to look at it: check the folders above it"
            reason = denied if isinstance(error, PermissionError) else "no such file or folder" if gone else error.strerror
            raise InputError(str(reason), path) from None
        if not stat.S_ISDIR(mode) and not stat.S_ISREG(mode):
            raise InputError(f"{ODD}: read it with `cat FILE | tailboard ... -`", path)
        if stat.S_ISDIR(mode) and not os.access(path, os.R_OK | os.X_OK):
            raise InputError("no permission to list this folder: check owner and mode", path)
        for file in listed_files(path, closed, linked, odd) if stat.S_ISDIR(mode) else [path]:
            folder = folders.get(file.parent) or folders.setdefault(file.parent, file.parent.resolve())
            place = folder / file.name
            if place not in seen:
                seen.add(place)
                yield file


def check_is_file(path: Path) -> None:
    """Raise InputError for a pipe, socket or device, which might be read without end; a path that is not there passes."""
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode) or str(path).startswith(OWN_STREAMS)):
        raise InputError(f"{ODD}: name a file", path)


def check_is_there(path: Path) -> None:
    """Raise InputError for a file that the user names and that is not there, or that might be read without end."""
    check_is_file(path)
    if not path.exists():
        raise InputError("there is no such file", path)


def listed_files(
    folder: Path, closed: list[Path] | None = None, linked: list[Path] | None = None, odd: list[Path] | None = None
) -> list[Path]:
    """Return the paths of all files under a folder, in the order of their parts.

    Links to folders are not entered, but added to `linked`. Folders that cannot be listed are added to `closed`: without
    permission, or nested past the longest path of the system. What is no file is added to
    `odd`: pipes, sockets, devices, links that lead nowhere.
    The entries of a folder are believed: only links are looked at.
    """
    files: list[str] = []
    left = [str(folder)]  # text: a path for each entry takes three times as long as listing
    while left:
        here = left.pop()
        try:
            with os.scandir(here) as entries:
                for entry in entries:
                    if entry.is_dir(follow_symlinks=False):
                        left.append(entry.path)
                    elif _is(entry.is_file):  # a pipe without a writer would be waited for without end
                        files.append(entry.path)
                    elif _is(entry.is_dir):
                        if linked is not None:
                            linked.append(Path(entry.path))
                    elif odd is not None:
                        odd.append(Path(entry.path))
        except OSError as error:
            if closed is not None and error.errno in (errno.EACCES, errno.EPERM, errno.ENAMETOOLONG):
                closed.append(Path(here))  # else it is gone meanwhile
    # As paths are sorted, in a quarter of the time that comparing paths takes.
    files.sort(key=lambda file: file.split(os.sep))  # noqa: PTH206  # a path for each is what takes the time
    return list(map(Path, files))


def names_in(folder: Path) -> list[str]:
    """Return the names of the files of a folder itself, in order; the entries of the folder are believed as in `listed_files`."""
    try:
        with os.scandir(folder) as entries:
            return sorted(entry.name for entry in entries if _is(entry.is_file))
    except OSError:  # it has gone, as its files have: whoever reads them says so
        return []


def why_closed(folder: Path) -> str:
    """Return the sentence about a folder that could not be listed."""
    long = len(os.fsencode(folder)) >= LONGEST_PATH
    return TOO_DEEP if long else "no permission to list this folder: its files are missing"


def why_odd(path: Path) -> str:
    """Return the sentence about what lies in a folder and is no file."""
    if not path.is_symlink():
        return f"{ODD}, which is not read"
    try:
        path.stat()
    except FileNotFoundError:
        return NOWHERE
    except OSError as error:
        return f"a link that cannot be followed ({error.strerror}): what it stands for is missing"
    return f"a link to {ODD}, which is not read"


def _is(looks: Callable[[], bool]) -> bool:
    """Return what an entry, or what it is a link to, looks like; False for a link to itself, or past a folder that is closed."""
    try:
        return looks()
    except OSError:
        return False


def leading_out(links: Iterable[Path], paths: Iterable[Path]) -> list[Path]:
    """Return the links to folders that are not among the paths of the call, nor below one of them."""
    ordered = sorted(links)
    roots = {path.resolve() for path in paths} if ordered else set()
    targets = {link: link.resolve() for link in ordered}
    return [link for link, target in targets.items() if not roots.intersection((target, *target.parents))]


def root_of(paths: Sequence[Path]) -> Path:
    """Return the folder that names of runs and hosts are counted from."""
    folders = [str((path if path.is_dir() else path.parent).resolve()) for path in paths]
    return Path(os.path.commonpath(folders))


# How many processes read some files.


WORTH_WORKERS = 256 << 10  # bytes of logs: fewer are read here before workers would have started and ended
EXPANDED = 20  # times as large are logs once they are decompressed, about


def processes(asked: int | None, paths: Iterable[Path]) -> int:
    """Return how many processes are to read files: as asked, else one for each core, and this one alone where they are small."""
    if asked:
        return asked
    total = 0
    for path in paths:
        total += size_of(path) * (EXPANDED if path.suffix in COMPRESSED else 1)
        if total >= WORTH_WORKERS:
            return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return 1
