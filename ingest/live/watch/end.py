"""The end of a watch: every source is loaded as `load` does it, and what was read live must have been the same."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace

from ingest.live.watch.files import scanned
from ingest.live.watch.state import Key, Watching, noted
from ingest.load.load import LoadAccount, load_found
from ingest.load.plan import digest_of
from ingest.read.sources import Found, Source
from ingest.read.text import size_of
from ingest.store.findings import write_findings
from ingest.store.live import NOTHING_LEFT

GONE = "the file is gone: the rows read from it are kept"


def settle(watching: Watching) -> LoadAccount:
    """Return the account of loading all sources in a new generation; afterwards the runs are as `load` leaves them.

    What was read of a file that is gone is kept as it is. Differences between what was read live and what the load found
    are said: there should be none.
    """
    files = scanned(watching.paths)
    discovered = _each_once(watching, watching.discovered())
    wanted = {(source.context.series.run, source.identity) for source in discovered.sources}
    left = {key: tail for key, tail in watching.tails.items() if key not in wanted}
    other = [key for key, tail in left.items() if not tail.gone and tail.path in files]  # that are no sources any more
    runs = set(watching.names())
    watching.forget([*other, *_copies(watching, wanted)])
    for run in runs:
        watching.live.note_watch(replace(watching.final_until(run), final_ns=NOTHING_LEFT))
        for record in watching.begun_of(run):
            if (run, record.source) not in wanted:
                watching.live.finish(replace(noted(record, GONE), digest=GONE))
    account = load_found(discovered, watching.store, watching.options) if discovered.sources else LoadAccount()
    for run in sorted(runs - set(account.runs)):
        watching.store.finish_run(watching.runs[run])
        account.caveats += write_findings(watching.store, run)
        account.runs.append(run)
    for text in _differences(watching, wanted):
        watching.say(text)
    for run in runs:
        watching.live.leave(run, watching.name)
    for key in (*watching.tails, *watching.gone):
        watching.let_go(key)
    return account


def _each_once(watching: Watching, discovered: Found) -> Found:
    """Return what was found without files that were refused because another one with their labels is read."""
    kept: dict[Key, Source] = {}
    for source in discovered.sources:
        key = (source.context.series.run, source.identity)
        tail = watching.tails.get(key)
        if key not in kept or (tail is not None and tail.path == source.path):
            kept[key] = source
    return replace(discovered, sources=tuple(sorted(kept.values(), key=lambda entry: entry.path)))


def _copies(watching: Watching, wanted: set[Key]) -> list[Key]:
    """Return the tails of logs that are there twice, under labels that differ by the process alone: a load takes the first."""
    alike: dict[tuple[str, str, int], list[Key]] = defaultdict(list)
    for key in sorted(wanted & set(watching.tails), key=lambda identity: watching.tails[identity].path):
        run, source = key
        alike[run, source.rpartition("|")[0], size_of(watching.tails[key].path)].append(key)
    copies = []
    for keys in alike.values():
        known: set[str] = set()
        for key in keys if len(keys) > 1 else ():
            digest = digest_of(watching.tails[key].path, None)
            if digest in known:
                copies.append(key)
            known.add(digest)
    return copies


def _differences(watching: Watching, wanted: set[Key]) -> Iterator[str]:
    """Yield a sentence for each source of which the load has counted other rows or samples than were read live."""
    for run in sorted({run for run, _ in watching.tails}):
        settled = {record.source: record.account for record in watching.store.sources(run)}
        for (name, source), tail in watching.tails.items():
            if name != run or (name, source) not in wanted:
                continue
            (rows, samples), now = (tail.account.rows, tail.account.samples), settled.get(source, {})
            loaded = (now.get("rows", 0), now.get("samples", 0))
            if loaded != (rows, samples):
                live = f"{rows} rows and {samples} samples were read live"
                yield f"{tail.path}: {live}, {loaded[0]} and {loaded[1]} are in it now"
