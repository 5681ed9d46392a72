"""What has become of the files that are read as they grow: rotated, copied and emptied, truncated, gone."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from ingest.core.errors import counted
from ingest.live.watch.files import Fate, Place, Seen
from ingest.live.watch.tail import Tail
from ingest.live.watch.watching import Key, Watching
from ingest.store.records import COMPLETE

KEPT = "~"
SEGMENTS_EACH = 1 << 20


def follow(watching: Watching, files: Mapping[Path, Seen]) -> None:
    """Act on every file that is not what it was; what a renamed one is called now is left to `arrive`."""
    names: dict[Place, Path] = {seen.place: path for path, seen in files.items()}
    fates = {key: tail.fate(files, names) for key, tail in watching.tails.items() if not tail.gone}
    gone = [key for key, tail in watching.tails.items() if tail.gone]
    for key, (fate, path) in fates.items():  # first the renamed ones: only then it is known which files are free
        tail = watching.tails[key]
        if fate is Fate.SAME and path in files and files[path].place != tail.place:
            _moved(tail, path)
        elif fate is Fate.MOVED:
            watching.say(f"{tail.path} was rotated: it is {path} now")
            watching.look = True
            _moved(tail, path)
    for key, (fate, _) in fates.items():
        if fate is Fate.REWRITTEN:
            _rewritten(watching, key, watching.tails[key], files)
        elif fate is Fate.GONE:
            watching.tails[key].gone = True  # what was written before it went is read once more
    for key in gone:
        _gone(watching, key, watching.tails[key], files)


def _moved(tail: Tail, path: Path) -> None:
    tail.path = path
    if tail.source is not None:
        with suppress(OSError):  # it has moved on already: what is held open is still it
            tail.attach(replace(tail.source, path=path))


def _rewritten(watching: Watching, key: Key, tail: Tail, files: Mapping[Path, Seen]) -> None:
    copy = _copy_of(watching, tail, files)
    watching.look = True
    if copy is not None:
        watching.say(f"{tail.path} was rotated: it was copied to {copy} and emptied")
        watching.judged.pop(copy, None)
        watching.forget([key])
    else:
        read = counted(tail.rows, "row that was read is", "rows that were read are")
        watching.say(f"{tail.path} was truncated or overwritten: the {read} kept")
        set_aside(watching, key)


def _gone(watching: Watching, key: Key, tail: Tail, files: Mapping[Path, Seen]) -> None:
    """Take a file that is gone for moved where a copy of it has come, or aside where another came in its place."""
    copy = _copy_of(watching, tail, files)
    if copy is not None:
        watching.say(f"{tail.path} was rotated: {copy} holds its rows")
        watching.judged.pop(copy, None)
        watching.look = True
        watching.forget([key])
    elif tail.path in files:
        read = counted(tail.rows, "row of the old one is", "rows of the old one are")
        watching.say(f"{tail.path} is a new file now: the {read} kept")
        watching.look = True
        set_aside(watching, key)


def _copy_of(watching: Watching, tail: Tail, files: Mapping[Path, Seen]) -> Path | None:
    """Return a file that begins as the file that was read, unless it is read by itself; None if there is none."""
    tailed = watching.tailed()
    others = (path for path in files if path != tail.path and path not in tailed)
    return next((path for path in others if tail.known.begins(path)), None)


def set_aside(watching: Watching, key: Key) -> None:
    """Keep what was read of a file that is no more as a source of its own, so that its name is free for another."""
    run, source = key
    tail = watching.tails.pop(key)
    tail.close()
    taken = {record.source for record in watching.store.sources(run)}
    number = next(number for number in range(1, len(taken) + 2) if f"{source}{KEPT}{number}" not in taken)
    note = f"{tail.path} was replaced while it was watched: what had been read of it"
    account = {**tail.account.as_dict(), "notes": [*tail.account.notes, note]}
    kept = replace(tail.record, source=f"{source}{KEPT}{number}", state=COMPLETE, account=account, digest=f"kept {number}")
    watching.live.set_aside(watching.runs[run], source, kept, number * SEGMENTS_EACH)
