"""Loading runs while they grow: one cycle after another, and the end.

    cycle:  look at the files -> rotated, truncated, gone? -> new ones -> read what has come -> windows, rollups, checkpoints

Documents written live have the ids and the contents that a load gives them, so that the load which settles a source
changes nothing but its generation.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from ingest.core.errors import InputError
from ingest.live.watch.arrive import arrive, load_whole
from ingest.live.watch.files import Seen, scanned
from ingest.live.watch.follow import follow
from ingest.live.watch.settle import settle
from ingest.live.watch.tail import Tail
from ingest.live.watch.watching import Watching
from ingest.load.load import LoadAccount, no_room
from ingest.store import Store
from ingest.store.live import NOTHING_LEFT

HEARTBEAT_NS = 10 * 1_000_000_000
MOST_BYTES = 4 << 20  # of logs, read in one cycle: what it holds in memory is some ten times that

After = Callable[[Store, str], None]


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


class Watch:
    """A watch of some paths: `cycle` after cycle, then `settle`. `after` is called for each run whose rollups have changed."""

    def __init__(self, watching: Watching, after: After | None = None) -> None:
        self.watching = watching
        self._after = after
        self._ours: dict[Path, Seen] = {}
        self._counted: Counter[str] = Counter()
        self._beside: dict[str, int] = {}

    def cycle(self, *, last: bool = False) -> Cycle:
        """Return what one cycle did; the `last` one takes rows that are cut off, too, as a load would."""
        began, watching = time.monotonic(), self.watching
        files = scanned(watching.paths)
        self._counted = Counter()
        follow(watching, files)
        arrive(watching, files)
        heard = [tail for run in sorted({run for run, _ in watching.tails}) for tail in self._keep(run, files, last=last)]
        changed = {tail.run.run for tail in heard}
        loaded = load_whole(watching, files)
        rows = loaded.rows
        self._counted.update(documents=loaded.documents, rows=rows.rows, rejected=rows.rows_rejected, samples=rows.samples)
        if self._after is not None:
            for run in sorted({*changed, *loaded.runs}):
                self._after(watching.store, run)
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
        news, heard = [], []
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
        if heard:
            for tail in watching.fallen_silent(run):
                tail.fall_silent()
                news.append(tail.news([], watching.name))
        watch = watching.marks(run)
        told = watching.told.get(run)
        late = told is None or watch.told_ns - told.told_ns >= HEARTBEAT_NS  # others have not heard of it for long
        if not news and not late and told is not None and watch.final_ns == told.final_ns:
            return heard
        watching.told[run] = watch
        if heard:
            self._check_room(run, heard[-1].path)
        self._counted["documents"] += watching.live.keep(watching.runs[run], news, watch)
        return heard

    def _check_room(self, run: str, path: Path) -> None:
        """Raise CapacityError where a run would hold more samples than its store can add up; a load checks what it reads."""
        watching, tails = self.watching, self.watching.of(run)
        if run not in self._beside:
            mine = {tail.record.source for tail in tails}
            others = [record for record in watching.store.sources(run) if record.source not in mine]
            self._beside[run] = sum(int(record.account.get("samples", 0)) for record in others)
        most = watching.store.most_samples
        if self._beside[run] + sum(tail.account.samples for tail in tails) > most:
            raise no_room(path, run, most)

    def settle(self) -> LoadAccount:
        """Return the account of the load that settles all sources: the end of the watch."""
        return settle(self.watching)


def _counts(tail: Tail) -> dict[str, int]:
    """Return the rows, rejected rows and samples of a tail so far."""
    account = tail.account
    return {"rows": account.rows, "rejected": account.rows_rejected, "samples": account.samples}
