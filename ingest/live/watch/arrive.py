"""Files that are new, or were not yet what they are now: read as they grow, or loaded once they are whole."""

from __future__ import annotations

import errno
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.plain import as_text
from ingest.live.watch.files import Seen
from ingest.live.watch.tail import Tail
from ingest.live.watch.watching import Key, Watching
from ingest.load.load import NO_CLOCK, LoadAccount, load_found
from ingest.load.plan import digest_of, grown, record_of
from ingest.read import Found, Source
from ingest.read.copies import two_of_one
from ingest.store.live import SILENT_NS
from ingest.store.records import COMPLETE, RunRecord, SourceRecord

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
    # Tails whose files are there and are no sources any more: dumps of which histogram logs hold more.
    known = {(source.context.series.run, source.identity) for own in by_run.values() for source in own}
    there = {key for key, tail in watching.tails.items() if not tail.gone and tail.path in files}
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
    hosted = []
    for source in sources:
        host = known.get(source.path.parent, "")
        if host and not source.context.series.host and watching.is_read(source):
            series = source.context.series.replaced(host=host)
            offset = watching.options.read.host_offset_ns.get(host, 0)
            hosted.append(replace(source, context=replace(source.context, series=series, offset_ns=offset)))
        else:
            hosted.append(source)
    return hosted


def _arrived(watching: Watching, run: str, sources: Sequence[Source], discovered: Found, files: Mapping[Path, Seen]) -> None:
    grow = {source.path for source in sources if watching.is_read(source)}
    for source in sources:
        if source.path not in grow and watching.judged.get(source.path) != files.get(source.path):
            watching.waiting.setdefault(source.path, Seen((0, 0), -1, 0))
    if not grow:
        return
    stored = {source_record.source: source_record for source_record in watching.store.sources(run)}
    there = {record.run: record for record in watching.store.runs()}.get(run)
    known = there if stored else None  # all that it held has other labels now: it is another run
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
    watching: Watching,
    run: RunRecord,
    source: Source,
    seen: Seen,
    stored: SourceRecord | None,
    begun: Mapping[str, Tail],
) -> SourceRecord | None:
    """Return the record of a source that is to be read from its beginning; None where it is read, or not to be read."""
    key = (run.run, source.identity)
    tail = watching.tails.get(key)
    if tail is not None:
        _met_again(watching, tail, source, seen)
        return None
    if (copied := _copied_from(watching, key, source, begun)) is not None:
        watching.say_once(f"{source.path} is a copy of {copied}, which is being read: left out while that is there")
        watching.judged[source.path] = seen
        return None
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
    return SourceRecord(run.run, source.identity, as_text(source.path), 0, watching.digest, generation=generation)


def _met_again(watching: Watching, tail: Tail, source: Source, seen: Seen) -> None:
    """Read on in a file that is known: where another process stopped, or under another name with the same labels."""
    if tail.gone:
        watching.look = True  # it is taken aside first
    elif tail.path != source.path:
        _refused(watching, source, seen, two_of_one(source, str(tail.path)))
    elif tail.source is None:
        _attached(watching, tail, source)


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
