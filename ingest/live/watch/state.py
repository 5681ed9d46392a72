"""What a watch knows: its runs, the files that it reads as they grow, those that it waits for, and what it has to say."""

from __future__ import annotations

import os
import socket
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from ingest.core.errors import InputError, as_text, counted
from ingest.core.labels import IN_FLIGHT
from ingest.live.watch.files import Gone, Print, Seen
from ingest.live.watch.tail import ReadAgain, Tail
from ingest.load.plan import LoadOptions
from ingest.read.account import Account
from ingest.read.format_names import HDR
from ingest.read.formats import AGAIN, PIECES, reader_of
from ingest.read.placement import discover
from ingest.read.sources import Found, Source
from ingest.read.text import is_plain
from ingest.store import Store, live_store
from ingest.store.live import NOTHING_FINAL, NOTHING_LEFT, SILENT_NS, Checkpoint, LiveStore, Watch
from ingest.store.records import COMPLETE, RunRecord, SourceRecord

SILENT_SECONDS = SILENT_NS / 1e9
FIRST_LOOK = 0.1
MOST_GONE = 1000

Key = tuple[str, str]


def noted(record: SourceRecord, note: str) -> SourceRecord:
    """Return the record of a source whose file is no more, as the store has it, with a note."""
    account = {**Account(path=record.path).as_dict(), **record.account}
    return replace(record, account={**account, "notes": [*account["notes"], note]})


@dataclass(slots=True)
class Watching:
    """The state of a watch. `tails` are by run and source; `judged` are files that have been looked at as they are now.

    `files` are all as the last cycle saw them. `gone` are the last files of those that were read to their end and are there no
    more: any of them may come back, perhaps under another name. Of earlier ones the store alone knows.
    """

    paths: Sequence[Path]
    store: Store
    live: LiveStore
    options: LoadOptions
    name: str
    clock: Callable[[], float] = time.monotonic
    now_ns: Callable[[], int] = time.time_ns
    runs: dict[str, RunRecord] = field(default_factory=dict)
    tails: dict[Key, Tail] = field(default_factory=dict)
    gone: dict[Key, Gone] = field(default_factory=dict)
    waiting: dict[Path, Seen] = field(default_factory=dict)
    judged: dict[Path, Seen] = field(default_factory=dict)
    files: Mapping[Path, Seen] = field(default_factory=dict)
    replaced: set[Key] = field(default_factory=set)
    look: bool = True
    looks: dict[Path, tuple[int, float]] = field(default_factory=dict)
    once: set[str] = field(default_factory=set)
    said: list[str] = field(default_factory=list)
    told: dict[str, Watch] = field(default_factory=dict)
    took: dict[Path, float] = field(default_factory=dict)
    kept_aside: dict[Key, int] = field(default_factory=dict)

    @staticmethod
    def begun(
        paths: Sequence[Path],
        store: Store,
        options: LoadOptions,
        clock: Callable[[], float] = time.monotonic,
        now_ns: Callable[[], int] = time.time_ns,
    ) -> Watching:
        """Return a watch that goes on where one of the same paths on this host was cut off."""
        name = f"{socket.gethostname()}:{' '.join(sorted(as_text(os.path.realpath(path)) for path in paths))}"
        watching = Watching(paths, store, live_store(store), options, name, clock, now_ns)
        base = options.read.run
        for record in store.runs():
            if record.run == base or record.run.startswith(f"{base}/"):
                watching.resume(record)
        return watching

    def resume(self, record: RunRecord) -> None:
        """Take over the tails that this watch has left in a run."""
        checkpoints = [checkpoint for checkpoint in self.live.checkpoints(record.run) if checkpoint.watch == self.name]
        sources = {stored.source: stored for stored in self.store.sources(record.run)}
        begun = {name for name, stored in sources.items() if stored.state != COMPLETE and stored.digest == self.digest}
        lone = sorted(begun - {checkpoint.source for checkpoint in checkpoints})
        if lone:  # killed before their first checkpoint: their files may bear other labels by now
            self.live.forget(record, lone, self.provisional(record.run))
        taken = 0
        for checkpoint in checkpoints:
            source = sources.get(checkpoint.source)
            if source is not None and source.state != COMPLETE:
                tail = self.left(record, source, checkpoint)
                tail.heard = self.clock()
                self.tails[record.run, checkpoint.source] = tail
                self.runs[record.run] = record
                taken += 1
        if taken:
            self.say(f"continues where the last watch of {record.run} ended: {counted(taken, 'file')}")
        elif not lone and any(watch.watch == self.name for watch in self.live.watches(record.run)):
            self.live.leave(record.run, self.name)  # all was settled, and it was killed before it could say so

    def left(self, record: RunRecord, source: SourceRecord, checkpoint: Checkpoint) -> Tail:
        """Return a tail as another process has left it."""
        if not checkpoint.state.get("again"):
            return Tail.left(record, source, checkpoint)
        tail = ReadAgain.left(record, source, checkpoint)
        tail.in_flight, tail.took = self.options.attribution == IN_FLIGHT, self.took
        return tail

    def tail_of(self, source: Source, run: RunRecord, record: SourceRecord) -> Tail:
        """Return a tail of a source that nothing was read of yet."""
        if self.grows(source):
            return Tail(run, record, source.path, heard=self.clock())
        by_share = self.options.attribution == IN_FLIGHT
        return ReadAgain(run, record, source.path, heard=self.clock(), in_flight=by_share, took=self.took)

    def grows(self, source: Source) -> bool:
        """Return whether a source is read piece by piece while it grows: no row of it depends on what is still to come."""
        whole = self.options.attribution != IN_FLIGHT and not source.context.left_out
        return whole and reader_of(source.format).grows == PIECES and self._is_open(source)

    def is_read(self, source: Source) -> bool:
        """Return whether a source is read while it grows: piece by piece, or anew each time where it has lines."""
        by_lines = reader_of(source.format).grows == AGAIN or source.format == HDR
        return self.grows(source) or (by_lines and self._is_open(source))

    def _is_open(self, source: Source) -> bool:
        """Return whether a file can be read before it is whole: it is plain, and its stamps do not hang on the file's time."""
        return is_plain(source.path) and self.options.read.t0 != "mtime"

    @property
    def digest(self) -> str:
        """Return what stands for the digest of a source while it is read as it grows."""
        return f"read while it grew by {self.name}"

    def see(self, files: Mapping[Path, Seen]) -> None:
        """Note the files that there are now; of those that have gone nothing is kept."""
        for path in self.files.keys() - files.keys():
            self.judged.pop(path, None)
            self.looks.pop(path, None)
        self.files = files

    def say(self, text: str) -> None:
        """Keep a sentence for people."""
        self.said.append(text)

    def say_once(self, text: str) -> None:
        """Keep a sentence that was not said before."""
        if text not in self.once:
            self.once.add(text)
            self.say(text)

    def may_look(self, path: Path) -> bool:
        """Return whether to look at a file again: the longer it has been nothing to read, the less often."""
        times, last = self.looks.get(path, (0, 0.0))
        return not times or self.clock() - last >= min(FIRST_LOOK * 2**times, SILENT_SECONDS)

    def looked(self, paths: Iterable[Path]) -> None:
        """Note that files were looked at."""
        for path in paths:
            self.looks[path] = (min(self.looks.get(path, (0, 0.0))[0] + 1, 16), self.clock())

    def tailed(self) -> dict[Path, Key]:
        """Return the files that are read as they grow."""
        return {tail.path: key for key, tail in self.tails.items() if not tail.gone}

    def names(self) -> list[str]:
        """Return the runs of which files are, or were read as they grow."""
        return sorted({run for run, _ in (*self.tails, *self.gone)})

    def let_go(self, key: Key) -> None:
        """Know nothing of a source any more, and let go of its file."""
        if tail := self.tails.pop(key, None):
            tail.close()
            self.took.pop(tail.path, None)
        self.gone.pop(key, None)

    def leave(self, key: Key, gone: Gone) -> None:
        """Keep of a file that is gone and was read to its end no more than what it is known by, as the source of that name."""
        self.let_go(key)
        self.gone[key] = gone
        if len(self.gone) > MOST_GONE:
            del self.gone[next(iter(self.gone))]

    def begun_of(self, run: str) -> list[SourceRecord]:
        """Return the sources of a run that this watch has begun to read and that are not settled yet."""
        return [record for record in self.store.sources(run) if record.state != COMPLETE and record.digest == self.digest]

    def gone_as(self, record: SourceRecord) -> Print | None:
        """Return what the file was known by of a source that this watch has begun to read and reads no more, else None."""
        if record.state == COMPLETE or record.digest != self.digest:
            return None
        if gone := self.gone.get((record.run, record.source)):
            return gone.known
        mine = (kept for kept in self.live.checkpoints(record.run) if (kept.source, kept.watch) == (record.source, self.name))
        return next((Print.from_state(kept.state["print"]) for kept in mine), None)

    def of(self, run: str) -> list[Tail]:
        """Return the tails of a run."""
        return [tail for (name, _), tail in self.tails.items() if name == run]

    def discovered(self, *, growing: bool = False) -> Found:
        """Return what is under the paths that are there, or of `growing` logs their whole lines; nothing if there is none yet."""
        there = [path for path in self.paths if path.exists()]
        try:
            return discover(there, replace(self.options.read, growing=growing), among=False) if there else Found((), (), {})
        except InputError as error:
            self.say_once(f"nothing to read yet: {error}")
            return Found((), (), {})

    def final_until(self, run: str) -> Watch:
        """Return up to when the windows of a run are final: what all its live series have reported, less the largest latency."""
        tails, before = self.of(run), self.told.get(run)
        largest = max([before.largest_ns if before else 0, *(tail.largest_ns for tail in tails)])
        hosts: dict[str, int] = {}
        for tail in tails:
            reported = tail.reported_ns
            if tail.gone or reported is None or self.clock() - tail.heard >= SILENT_SECONDS:
                continue
            for host in {series.host for series in tail.spans}:
                hosts[host] = min(hosts.get(host, NOTHING_LEFT), reported - largest)
        return Watch(run, self.name, min(hosts.values(), default=NOTHING_LEFT), largest, self.now_ns(), hosts)

    def fallen_silent(self, run: str) -> list[Tail]:
        """Return the tails of a run that are not waited for any more, of which the store does not know it yet."""
        now = self.clock()
        waited = [tail for tail in self.of(run) if not tail.gone and tail.silent is None and tail.reported_ns is not None]
        return [tail for tail in waited if tail.spans and now - tail.heard >= SILENT_SECONDS]

    def provisional(self, run: str) -> Watch:
        """Return marks that call all of a run provisional: while some of it is read anew."""
        before = self.told.get(run)
        return Watch(run, self.name, NOTHING_FINAL, before.largest_ns if before else 0, self.now_ns())

    def forget(self, keys: Iterable[Key]) -> None:
        """Delete what was read of tails: it comes again under another name, or from better logs."""
        by_run: dict[str, list[str]] = {}
        for run, source in keys:
            by_run.setdefault(run, []).append(source)
            self.let_go((run, source))
            self.replaced.discard((run, source))
        for run, sources in by_run.items():
            self.live.forget(self.runs[run], sources, self.provisional(run))
            self.told.pop(run, None)
