"""Loading runs while they grow: one cycle after another, files that arrive, rotate or go, and the end.

Loading runs while they grow: one cycle after another, and the end.

    cycle:  look at the files -> rotated, truncated, gone? -> new ones -> read what has come -> windows, rollups, checkpoints

Documents written live have the ids and the contents that a load gives them, so that the load which settles a source
changes nothing but its generation.
"""

from __future__ import annotations

import errno
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from ingest.core.errors import InputError, as_path, as_text, counted
from ingest.live.watch.end import settle
from ingest.live.watch.files import Fate, Gone, Head, Place, Print, Seen, scanned
from ingest.live.watch.state import Key, Watching, noted
from ingest.live.watch.tail import Tail
from ingest.load.load import NO_CLOCK, LoadAccount, load_found, no_room
from ingest.load.plan import digest_of, grown, in_own_windows, record_of
from ingest.read.copies import two_of_one
from ingest.read.sources import Found, Source
from ingest.store import Store
from ingest.store.live import NOTHING_LEFT, SILENT_NS
from ingest.store.records import COMPLETE, RunGoneError, RunRecord, SourceRecord, stored_samples

# Files that are new, or were not yet what they are now: read as they grow, or loaded once they are whole.


TOO_MANY = "more logs than may be open at once (ulimit -n): the others are read at the end"


def arrive(watching: Watching, files: Mapping[Path, Seen]) -> None:
    """Look at files that were not looked at as they are now; begin to read those that grow, wait for the others."""
    tailed = watching.tailed()
    unknown = [path for path, seen in files.items() if path not in tailed and path not in watching.waiting]
    unknown = [path for path in unknown if watching.judged.get(path) != files[path] and watching.may_look(path)]
    idle = any(tail.source is None and not tail.gone for tail in watching.tails.values())
    if not unknown and not watching.look and not idle:
        return
    watching.look = False
    watching.looked(unknown)
    discovered = watching.discovered(growing=True)
    by_run: dict[str, list[Source]] = {}
    for source in _with_known_hosts(watching, discovered.sources):
        by_run.setdefault(source.context.series.run, []).append(source)
    runs = sorted(_with_clocks(watching, by_run, files).items())
    for run, sources in runs:  # first of all runs: logs that get a clock move from one run to another
        # What was read under other labels than files have now: they were renamed, or their folder has got siblings.
        tailed = watching.tailed()
        keys = [(tailed.get(source.path), (run, source.identity)) for source in sources if watching.is_read(source)]
        watching.forget([before for before, now in keys if before is not None and before != now])
    for run, sources in runs:
        _arrived(watching, run, sources, discovered, files)
    taken = {source.path for source in discovered.sources}
    for path in unknown:
        if path not in taken:
            watching.judged[path] = files[path]
    # Tails whose files are there and are no sources any more: dumps of which histogram logs hold more. One that was renamed
    # or emptied since files were looked at is none of them.
    known = {(source.context.series.run, source.identity) for own in by_run.values() for source in own}
    there = {key for key, tail in watching.tails.items() if not tail.gone and tail.path in files and tail.is_there()}
    watching.replaced = there - known


def _with_clocks(
    watching: Watching, by_run: Mapping[str, Sequence[Source]], files: Mapping[Path, Seen]
) -> dict[str, Sequence[Source]]:
    """Return the runs that the store takes: where it needs a clock, those without one are refused beside others."""
    if not watching.store.needs_clock:
        return dict(by_run)
    good = {run for run, sources in by_run.items() if any(source.context.zero.epoch_ns is not None for source in sources)}
    for source in (undated for run, sources in by_run.items() if run not in good for undated in sources if good):
        if source.path in files:
            _refused(watching, source, files[source.path], NO_CLOCK)
    return {run: sources for run, sources in by_run.items() if run in good or not good}


def _with_known_hosts(watching: Watching, sources: Sequence[Source]) -> list[Source]:
    """Return the sources with the hosts that their folders stood for before.

    A folder stands for a host while a sibling holds a log of the same name: just after a rotation there may be none. What
    the folders stand for in the end is decided when the run is settled.
    """
    known = {tail.path.parent: key[1].split("|")[1] for key, tail in watching.tails.items()}
    hosted = list(sources)
    for place, source in enumerate(sources):
        host = known.get(source.path.parent, "")
        if host and not source.context.series.host and watching.is_read(source):
            series = source.context.series.replaced(host=host)
            offset = watching.options.read.host_offset_ns.get(host, 0)
            hosted[place] = replace(source, context=replace(source.context, series=series, offset_ns=offset))
    return hosted


def _arrived(watching: Watching, run: str, sources: Sequence[Source], discovered: Found, files: Mapping[Path, Seen]) -> None:
    grow = {source.path for source in sources if watching.is_read(source)}
    for source in sources:
        if source.path not in grow and watching.judged.get(source.path) != files.get(source.path):
            watching.waiting.setdefault(source.path, Seen((0, 0), -1, 0))
    if not grow:
        return
    # A watch of weeks has thousands of sources behind it: records are read of those alone that are in question.
    wanted = [source.identity for source in sources if source.path in grow]
    stored = {source_record.source: source_record for source_record in watching.store.sources(run, wanted)}
    there = {record.run: record for record in watching.store.runs()}.get(run)
    any_left = stored or run in watching.names() or watching.store.sources(run)
    known = there if any_left else None  # all that it held has other labels now: it is another run
    labels = {**discovered.labels.get(run, {}), **watching.options.labels}
    record = record_of(run, sources, labels, known, watching.options)
    begun: dict[str, Tail] = {}
    for source in sources:
        seen = files.get(source.path)
        if source.path not in grow or seen is None or watching.judged.get(source.path) == seen:
            continue
        if source.identity in begun:
            _refused(watching, source, seen, two_of_one(source, str(begun[source.identity].path)))
            continue
        own = _own_record(watching, record, source, seen, stored.get(source.identity), begun)
        tail = watching.tail_of(source, record, own) if own is not None else None
        if tail is not None and _attached(watching, tail, source):
            begun[source.identity] = tail
    if begun:
        watching.store.begin(record, [tail.record for tail in begun.values()], anew=there is not known)
        watching.live.note_watch(watching.provisional(run))
    watching.runs[run] = record
    for identity, tail in begun.items():
        watching.tails[run, identity] = tail
        watching.looks.pop(tail.path, None)


def _attached(watching: Watching, tail: Tail, source: Source) -> bool:
    """Return whether a tail reads a source now; a file that has gone meanwhile is looked at again."""
    try:
        tail.attach(source)
    except (OSError, InputError) as error:
        reason = error.reason if isinstance(error, InputError) else error.strerror
        many = isinstance(error, OSError) and error.errno == errno.EMFILE
        watching.say_once(TOO_MANY if many else f"{source.path} cannot be read: {reason}")
        return False
    return True


def _own_record(
    watching: Watching, run: RunRecord, source: Source, seen: Seen, stored: SourceRecord | None, begun: Mapping[str, Tail]
) -> SourceRecord | None:
    """Return the record of a source that is to be read from its beginning; None where it is read, or not to be read."""
    key = (run.run, source.identity)
    tail = watching.tails.get(key)
    if tail is not None:  # read on where another process stopped, or under another name with the same labels
        if tail.gone:
            watching.look = True  # what is left of it is read first
        elif tail.path != source.path:
            _refused(watching, source, seen, two_of_one(source, str(tail.path)))
        elif tail.source is None:
            _attached(watching, tail, source)
        return None
    if (copied := _copied_from(watching, key, source, begun)) is not None:
        watching.say_once(f"{source.path} is a copy of {copied}, which is being read: left out while that is there")
        watching.judged[source.path] = seen
        return None
    if stored is not None and _was_of_another(watching, key, source.path, stored):
        stored = None
    generation = watching.store.first_generation(run.run)
    if stored is not None and stored.state == COMPLETE:
        if stored.digest == digest_of(source.path, None):
            watching.judged[source.path] = seen
            return None
        if not grown(source.path, stored):
            _refused(watching, source, seen, two_of_one(source, stored.path))
            return None
        generation = stored.generation + 1
    elif stored is not None:
        if not _taken_over(watching, run.run, source.identity):
            _refused(watching, source, seen, "another watch reads a source of these labels: use --host")
            return None
        generation = stored.generation + 1
    record = SourceRecord(run.run, source.identity, as_text(source.path), 0, watching.digest, generation=generation)
    return in_own_windows(record, [source], run, stored)


def _was_of_another(watching: Watching, key: Key, path: Path, stored: SourceRecord) -> bool:
    """Return whether a source was of a file that is gone: what was read is kept aside, or forgotten if this is that file."""
    known = watching.gone_as(stored)
    if known is None:
        return False
    if known.begins(path):
        watching.say(f"{path} is there again: it is read anew")
        watching.forget([key])
    else:
        _kept_aside(watching, key, known, "is a new file now", "of the old one")
    return True


def _refused(watching: Watching, source: Source, seen: Seen, reason: str) -> None:
    watching.say_once(f"refused {source.path}: {reason}")
    watching.judged[source.path] = seen


def _copied_from(watching: Watching, key: Key, source: Source, begun: Mapping[str, Tail]) -> Path | None:
    """Return the file that is being read of which this one is a copy under labels that differ by the process alone."""
    run, measured = key[0], key[1].rpartition("|")[0]
    own = {identity: tail for (name, identity), tail in watching.tails.items() if name == run and not tail.gone}
    for identity, tail in {**own, **begun}.items():
        if identity.rpartition("|")[0] == measured and tail.path != source.path and tail.print.begins(source.path):
            return tail.path
    return None


def _taken_over(watching: Watching, run: str, source: str) -> bool:
    """Return whether a source that was begun is ours to read: no other watch that is heard has a checkpoint of it."""
    owners = {checkpoint.watch for checkpoint in watching.live.checkpoints(run) if checkpoint.source == source} - {watching.name}
    heard = {watch.watch: watching.now_ns() - watch.told_ns < SILENT_NS for watch in watching.live.watches(run)}
    return not any(heard.get(owner, False) for owner in owners)


def load_whole(watching: Watching, files: Mapping[Path, Seen]) -> LoadAccount:
    """Return the account of loading the files that have not changed since the last cycle."""
    ready = [path for path, seen in watching.waiting.items() if files.get(path) == seen]
    for path in list(watching.waiting):
        if path not in files:
            del watching.waiting[path]
        else:
            watching.waiting[path] = files[path]
    still = len(watching.waiting) > len(ready)
    if not ready and (still or not watching.replaced):
        return LoadAccount()
    discovered = watching.discovered()
    chosen = tuple(source for source in discovered.sources if source.path in ready)
    if not still:
        for key in watching.replaced:
            watching.say(f"{watching.tails[key].path} is replaced by the logs beside it")
        watching.forget(list(watching.replaced))
    for path in ready:
        watching.judged[path] = files[path]
        del watching.waiting[path]
    if not chosen:
        return LoadAccount()
    try:
        return load_found(Found(chosen, (), discovered.labels, kinds=discovered.kinds), watching.store, watching.options)
    except InputError as error:
        watching.say(f"refused {error}")
    return LoadAccount()


# What has become of the files that are read as they grow: rotated, copied and emptied, truncated, gone.


KEPT = "~"
SEGMENTS_EACH = 1 << 20
COPIED = "{} holds its rows"


def follow(watching: Watching, files: Mapping[Path, Seen]) -> None:
    """Act on every file that is not what it was; what a renamed one is called now is left to `arrive`."""
    names: dict[Place, Path] = {seen.place: path for path, seen in files.items()}
    fates = {key: tail.fate(files, names) for key, tail in watching.tails.items() if not tail.gone}
    for key, (fate, path) in fates.items():  # first the renamed ones: only then it is known which files are free
        tail = watching.tails[key]
        if fate is Fate.SAME and path in files and files[path].place != tail.place:
            _moved_tail(tail, path)
        elif fate is Fate.MOVED:
            watching.say(f"{tail.path} was rotated: it is {path} now")
            watching.look = True
            _moved_tail(tail, path)
    tailed = watching.tailed()
    free = [path for path in files if path not in tailed]
    fresh = [path for path in free if watching.files.get(path) != files[path]]
    watching.see(files)
    for key, (fate, _) in fates.items():
        tail = watching.tails[key]
        if fate is Fate.REWRITTEN and not _is_copied(watching, key, tail, free, "it was copied to {} and emptied"):
            _kept_aside(watching, key, tail.known, "was truncated or overwritten", "that {} read")
        elif fate is Fate.GONE and not _is_copied(watching, key, tail, free, COPIED):
            tail.gone = True  # what was written before it went is read once more
    heads = {path: Head(path) for path in fresh} if watching.gone else {}
    for key, gone in list(watching.gone.items()):
        _is_copied(watching, key, gone, [path for path in fresh if heads[path].may_be(gone.known)], COPIED)


def _moved_tail(tail: Tail, path: Path) -> None:
    tail.path = path
    if tail.source is not None:
        with suppress(OSError):  # it has moved on already: what is held open is still it
            tail.attach(replace(tail.source, path=path))


def _is_copied(watching: Watching, key: Key, file: Tail | Gone, files: Sequence[Path], copied: str) -> bool:
    """Return whether one of some files is a copy of one that is no more, and read instead; it may be back in its own place."""
    copy = next((path for path in files if file.known.begins(path)), None)
    if copy is None:
        return False
    back = copy == file.path
    watching.say(f"{copy} is there again: it is read anew" if back else f"{file.path} was rotated: {copied.format(copy)}")
    watching.look = True
    watching.judged.pop(copy, None)
    watching.forget([key])
    return True


def _kept_aside(watching: Watching, key: Key, known: Print, what: str, which: str) -> None:
    """Keep what was read of a file that is no more as a source of its own, so that its name is free for another.

    A copy of it may still come.
    """
    run, source = key
    before = next(iter(watching.store.sources(run, [source])), None)
    if before is None:
        raise RunGoneError(run)
    read = counted(before.account.get("rows", 0), f"row {which.format('was')} is", f"rows {which.format('were')} are")
    watching.say(f"{before.path} {what}: the {read} kept")
    watching.look = True
    watching.let_go(key)
    number = _free_number(watching, key)
    note = f"{before.path} was replaced while it was watched: what had been read of it"
    kept = replace(noted(before, note), source=f"{source}{KEPT}{number}", state=COMPLETE, digest=f"kept {number}")
    watching.live.set_aside(watching.runs[run], source, kept, number * SEGMENTS_EACH)
    watching.leave((run, kept.source), Gone(as_path(before.path), known))


def _free_number(watching: Watching, key: Key) -> int:
    """Return the number after those of all that was kept aside of a source, by this watch or by another."""
    run, source = key
    number, at_once = watching.kept_aside.get(key, 0), 64
    while True:
        names = {f"{source}{KEPT}{number + step}": number + step for step in range(1, at_once + 1)}
        taken = [names[record.source] for record in watching.store.sources(run, names)]
        number = max(taken, default=number)
        if len(taken) < at_once:
            watching.kept_aside[key] = number + 1
            return number + 1


HEARTBEAT_NS = 10 * 1_000_000_000
MOST_BYTES = 4 << 20  # of logs, read in one cycle: what it holds in memory is some ten times that


@dataclass(frozen=True, slots=True)
class Cycle:
    """What a cycle did: rows, samples and documents written, files loaded whole, and messages.

    `files` are read as they grow, `waiting` are not whole yet; `lag_ns` is how long ago the newest row ended, when all was
    written, of the log that is furthest behind; `final_ns` up to when windows are final, None where nothing is provisional.
    """

    files: int
    waiting: int
    rows: int
    rejected: int
    samples: int
    documents: int
    loaded: int
    lag_ns: int | None
    final_ns: int | None
    behind: bool
    news: bool
    said: tuple[str, ...]
    seconds: float


class WatchCycle:
    """A watch of some paths: `cycle` after cycle, then `settle`. `after` are called for each run whose rollups have changed."""

    def __init__(self, watching: Watching, after: Sequence[Callable[[Store, str], None]] = ()) -> None:
        self.watching = watching
        self._after = after
        self._ours: dict[Path, Seen] = {}
        self._counted: Counter[str] = Counter()
        self._most: dict[str, int] = {}

    def cycle(self, *, last: bool = False) -> Cycle:
        """Return what one cycle did; the `last` one takes rows that are cut off, too, as a load would."""
        began, watching = time.monotonic(), self.watching
        files = scanned(watching.paths)
        self._counted = Counter()
        follow(watching, files)
        arrive(watching, files)
        heard = [tail for run in watching.names() for tail in self._keep(run, files, last=last)]
        changed = {tail.run.run for tail in heard}
        loaded = load_whole(watching, files)
        rows = loaded.rows
        self._counted.update(documents=loaded.documents, rows=rows.rows, rejected=rows.rows_rejected, samples=rows.samples)
        for run in sorted({*changed, *loaded.runs}):
            for look in self._after:
                look(watching.store, run)
        ours = {path: files[path] for path in (*watching.tailed(), *watching.waiting) if path in files}
        news = ours != self._ours or bool(changed or loaded.loaded)
        self._ours = ours
        said, watching.said = tuple(watching.said), []
        finals = [watch.final_ns for watch in watching.told.values()]
        return Cycle(
            files=len(watching.tailed()),
            waiting=len(watching.waiting),
            rows=self._counted["rows"],
            rejected=self._counted["rejected"],
            samples=self._counted["samples"],
            documents=self._counted["documents"],
            loaded=loaded.loaded,
            lag_ns=max((watching.now_ns() - end for tail in heard if (end := tail.newest_ns) is not None), default=None),
            final_ns=min(finals, default=NOTHING_LEFT) if finals and min(finals) < NOTHING_LEFT else None,
            behind=any(tail.behind for tail in watching.tails.values()),
            news=news,
            said=said,
            seconds=time.monotonic() - began,
        )

    def _keep(self, run: str, files: dict[Path, Seen], *, last: bool) -> list[Tail]:
        """Read the new data of a run and store them; return the tails that had new data."""
        watching = self.watching
        news, heard, gone = [], [], list[Tail]()
        for tail in sorted(watching.of(run), key=lambda candidate: candidate.reported_ns or 0):
            seen = files.get(tail.path)
            if self._counted["bytes"] >= MOST_BYTES and tail.has_grown(seen):
                tail.behind = True
                continue
            before, offset = _counts(tail), tail.known.offset
            try:
                windows = tail.read(None if tail.gone else seen, last=last or tail.gone)
            except OSError as error:  # of a network's file system, perhaps: the next cycle tries again
                watching.say_once(f"{tail.path} cannot be read: {error.strerror or error}")
                continue
            except InputError as error:
                watching.say_once(f"{tail.path} is not read any further: {error.reason}")
                continue
            if tail.rests:
                tail.heard = watching.clock()
            now = _counts(tail)
            self._counted["bytes"] += tail.known.offset - offset
            if windows or now != before:
                self._counted.update({name: count - before[name] for name, count in now.items()})
                tail.heard = watching.clock()
                tail.speak()
                news.append(tail.news(windows, watching.name))
                heard.append(tail)
            if tail.gone and not tail.behind:
                gone.append(tail)
        if heard:
            for tail in watching.fallen_silent(run):
                tail.fall_silent()
                news.append(tail.news([], watching.name))
        watch = watching.final_until(run)
        told = watching.told.get(run)
        late = told is None or watch.told_ns - told.told_ns >= HEARTBEAT_NS  # others have not heard of it for long
        if news or late or told is None or watch.final_ns != told.final_ns:
            watching.told[run] = watch
            if heard:
                self._check_room(run, heard[-1].path)
            self._counted["documents"] += watching.live.keep(watching.runs[run], news, watch)
        for tail in gone:
            watching.leave((run, tail.record.source), Gone(tail.path, tail.known))
        return heard

    def _check_room(self, run: str, path: Path) -> None:
        """Raise CapacityError where a run would hold more samples than its store can add up; a load checks what it reads."""
        watching, most = self.watching, self.watching.store.most_samples
        self._most[run] = self._most.get(run, most) + self._counted["stored"]  # of all runs: at most so many are in it by now
        if self._most[run] <= most:
            return
        tails = watching.of(run)
        mine = {tail.record.source for tail in tails}
        others = sum(stored_samples(record) for record in watching.store.sources(run) if record.source not in mine)
        self._most[run] = others + sum(tail.account.stored or 0 for tail in tails)
        if self._most[run] > most:
            raise no_room(path, run, most)

    def settle(self) -> LoadAccount:
        """Return the account of the load that settles all sources: the end of the watch."""
        return settle(self.watching)


def _counts(tail: Tail) -> dict[str, int]:
    """Return the rows, rejected rows and samples of a tail so far, and the samples that are stored of it."""
    account = tail.account
    counts = {"rows": account.rows, "rejected": account.rows_rejected, "samples": account.samples}
    return {**counts, "stored": account.stored or 0}
