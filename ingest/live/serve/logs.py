"""Logs behind a live page: a process of its own keeps a store up with them, which goes when the page does."""

from __future__ import annotations

import os
import shutil
import signal
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from pathlib import Path

from ingest.core.errors import TailboardError
from ingest.live.watch.cycle import Watch
from ingest.live.watch.files import hold_many_files, scanned
from ingest.live.watch.watching import Watching
from ingest.load.plan import LoadOptions
from ingest.store import Store, open_store

PACE_SECONDS = 0.5
QUIET_SECONDS = 3.0
PATIENCE_SECONDS = 5.0

Say = Callable[[str], None]


@contextmanager
def as_store(paths: Sequence[Path], options: LoadOptions, say: Say) -> Iterator[str]:
    """Give the URL of a store that is kept up with logs; afterwards it is deleted. `say` gets sentences for people."""
    folder = Path(tempfile.mkdtemp(prefix="tailboard-"))
    url = f"sqlite:{folder / 'logs.db'}"
    try:
        with open_store(url, write=True):
            pass
        process = get_context("spawn").Process(target=keep_up, args=(paths, url, options, os.getpid(), say))
        process.start()
        try:
            yield url
        finally:
            process.terminate()
            process.join(PATIENCE_SECONDS)
            process.kill()
            process.join()
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def keep_up(paths: Sequence[Path], url: str, options: LoadOptions, parent: int, say: Say) -> None:
    """Watch logs into a store, settle them when they are quiet, begin again when they change; end when `parent` has ended."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for who serves, and ends this one
    hold_many_files()
    with open_store(url, write=True) as store:
        settled = None
        while os.getppid() == parent:
            if scanned(paths) == settled:
                time.sleep(PACE_SECONDS)
                continue
            try:
                settled = _until_quiet(paths, store, options, parent, say)
            except TailboardError as error:
                say(str(error))
                time.sleep(PATIENCE_SECONDS)
    shutil.rmtree(Path(url.removeprefix("sqlite:")).parent, ignore_errors=True)  # nobody is left who would


def _until_quiet(paths: Sequence[Path], store: Store, options: LoadOptions, parent: int, say: Say) -> object:
    """Watch until nothing has come for a while, then settle; return the files as they were just before."""
    watch, heard = Watch(Watching.begun(paths, store, options)), time.monotonic()
    while time.monotonic() - heard < QUIET_SECONDS and os.getppid() == parent:
        done = watch.cycle()
        for text in done.said:
            say(text)
        if done.news:
            heard = time.monotonic()
        if not done.behind:
            time.sleep(PACE_SECONDS)
    files = scanned(paths)
    watch.cycle(last=True)
    watch.settle()
    for text in watch.watching.said:
        say(text)
    return files
