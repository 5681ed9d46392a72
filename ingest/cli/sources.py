"""Where the answers of a call come from, and where its loads and marks go: files or a store, behind one face."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.api import words
from ingest.api.words import answering
from ingest.cli.options import Asking, InStore, read_options
from ingest.cli.output import Progress, say
from ingest.core.errors import InputError, UsageError, choices
from ingest.core.labels import run_matches
from ingest.query.origin import Origin, store_at, store_url

if TYPE_CHECKING:
    from ingest.core.marks import Mark
    from ingest.store import Store
    from ingest.store.records import RunRecord

LARGEST_INPUT, AT_ONCE = 16 << 30, 1 << 18  # bytes of standard input
ELSEWHERE = "write it into a file and name that"


def split_sources(sources: Iterable[str]) -> tuple[str, list[Path]]:
    """Return the URL of the store, empty without one, and the paths among the sources of a call; `-` is what is piped in."""
    return words.split_sources([_standard_input() if source == "-" else source for source in sources])


@contextmanager
def opened(asking: Asking) -> Iterator[Origin]:
    """Give the files or the store that the sources of a call name."""
    store, paths = split_sources(asking.sources)
    if store:
        with answering(store) as origin:
            yield origin
        return
    from ingest.query.files import Files

    with Progress("reading") as bar, answering(Files(paths, read_options(asking), asking.jobs, bar)) as origin:
        yield origin


def check_files(named: Iterable[str], command: str, *, piped: bool = False) -> None:
    """Raise UsageError where a command of files is given a store; or standard input, unless that may be `piped` into it."""
    for word in named:
        if store_at(word):
            store = shlex.quote(word)
            right = f"tailboard runs list {store} shows what it holds" if piped else f"--store {store} has {command} write to it"
            raise UsageError(f"{word} is a store, and {command} takes files and folders; {right}")
        if word == "-" and not piped:
            raise UsageError(f"{command} takes files and folders, not standard input: write it into a file")


def _standard_input() -> Path:
    """Return a temporary file with what standard input holds; readers look at a file twice, which a pipe cannot give.

    It and its folder are called stdin, so that runs and processes have the same names each time; compressed data gets its ending.
    Signals that end the process take it away, too. InputError where it would be larger than any log, or finds no room.
    """
    import atexit
    import shutil
    import tempfile

    from ingest.core.errors import STANDS_FOR
    from ingest.read.formats import STDIN
    from ingest.read.text import ending_of

    if sys.stdin.isatty():
        raise UsageError("- reads standard input, but nothing is piped into it")
    folder = Path(tempfile.mkdtemp(prefix="tailboard-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    _taken_away_by_signals(folder)
    path = folder / STDIN / STDIN
    path.parent.mkdir()
    try:
        with path.open("wb") as out:
            while out.tell() <= LARGEST_INPUT and (data := sys.stdin.buffer.read(AT_ONCE)):
                out.write(data)
            size = out.tell()
    except OSError as error:
        reason = f"standard input is copied to {folder.parent}, which fails ({error.strerror or error})"
        raise InputError(f"{reason}: {ELSEWHERE}, or set TMPDIR to a folder with room") from None
    if size > LARGEST_INPUT:
        raise InputError(f"standard input is longer than {LARGEST_INPUT >> 30} GiB: {ELSEWHERE}")
    if not size:
        raise InputError("standard input is empty")
    with path.open("rb") as check:
        ending = ending_of(check.read(8))
    path = path.rename(path.with_name(STDIN + ending)) if ending else path
    STANDS_FOR.update({str(path): "standard input", str(path.parent): "standard input"})
    return path


def _taken_away_by_signals(folder: Path) -> None:
    """Have a folder deleted where a signal ends this process; a signal that is ignored, or heeded otherwise, stays so."""
    import shutil
    import signal

    ours = os.getpid()

    def end(number: int, _: object) -> None:
        if os.getpid() == ours:  # a process that was forked to read leaves it
            shutil.rmtree(folder, ignore_errors=True)
        signal.signal(number, signal.SIG_DFL)
        os.kill(os.getpid(), number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, end)


def as_typed(asking: Asking) -> str:
    """Return the sources of a call as they are typed in a shell, with the options that say how they are read and what of them."""
    words = list(asking.sources)
    for name in (
        *("input_format", "host", "t0", "recorded_unit", "fio_version", "rate", "intended_start_column", "expected_interval"),
        *("host_alias", "host_offset", "where"),  # these may be given several times
    ):
        value = getattr(asking, name)
        for one in value if isinstance(value, tuple) else filter(None, [value]):
            words += [f"--{name.replace('_', '-')}", str(one)]
    return shlex.join(words)


@contextmanager
def opened_store(options: InStore, *, write: bool = False) -> Iterator[tuple[Store, tuple[str, ...]]]:
    """Give the store of a call, the default one where it names none, and the runs that it names; UsageError for two stores."""
    from ingest.store import open_store

    named = [store_url(options.store)] if options.store else []
    named += [url for word in options.named if (url := store_at(word))]
    if len(set(named)) > 1:
        raise UsageError(f"one store at a time: here are {' and '.join(dict.fromkeys(named))}")
    with open_store(named[0] if named else store_url(None), write=write) as store:
        yield store, tuple(word for word in options.named if not store_at(word))


@contextmanager
def letters_named(store: Store) -> Iterator[None]:
    """Where the code inside fails, say which file holds the documents that the server has refused before."""
    try:
        yield
    except BaseException:
        refused, sentence = store.refusals()
        if refused:
            say(sentence)
        raise


def chosen(store: Store, globs: tuple[str, ...], records: Sequence[RunRecord] | None = None) -> list[RunRecord]:
    """Return the records of the runs that globs select, among all unless `records` says of which; InputError for none."""
    records = store.runs() if records is None else records
    matching = [record for record in records if run_matches(record.run, globs)]
    if globs and not matching:
        raise InputError(f"no run matches {' or '.join(globs)}: {choices(globs[0], (record.run for record in records))}")
    return matching


def marks_of(paths: Iterable[Path]) -> list[Mark]:
    """Return the marks of files; marks that were left out are reported on stderr. InputError where one cannot be read."""
    if not (paths := list(paths)):
        return []
    from ingest.read.marks import read_marks

    marks: list[Mark] = []
    for path in paths:
        contents = read_marks(path)
        marks += contents.marks
        for text in contents.said:
            say(text)
    return marks


def keep_marks(store: Store, runs: Sequence[str], marks: Sequence[Mark]) -> None:
    """Put marks with the runs that they overlap, and report how many each got and how many belong to none."""
    if not marks:
        return
    from ingest.store.marks import keep_marks as kept

    for text in kept(store, runs, marks):
        say(text)
