"""Loading: log files -> documents of a store, each source whole, once, and completed by running the load again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.breaths import StoredBreaths
from ingest.core.coverage import KINDS, OMISSION, POLLED, REFUSED_FILE, WIDTHS, Caveat
from ingest.core.documents import Whole, check_storable
from ingest.core.errors import CapacityError, InputError, StoreError, TailboardError, as_text, listed, plural
from ingest.core.events import Events
from ingest.core.grid import WEIGHT_BITS, cut_down, window_sums
from ingest.core.grid import in_flight as shared
from ingest.core.intervals import MOST_SAMPLES, Intervals, Segments, merged, of_all_segments
from ingest.core.intervals import total as sum_of
from ingest.core.labels import IN_FLIGHT, Series, in_flight_kind
from ingest.core.layout import Layout
from ingest.core.offsets import Stored, is_offsets
from ingest.core.pool import fork_map
from ingest.core.stated import may_show_together, shown_together
from ingest.load.aggregation import LogAggregation, Part, account_of, check_claims
from ingest.load.plan import LoadOptions, Plan, plans
from ingest.read import is_small, offset_sources, once, read, read_many
from ingest.read.account import Account, nothing_taken
from ingest.read.context import SPANS
from ingest.read.discovery import processes
from ingest.read.format_names import SNABB
from ingest.read.formats import SHARES
from ingest.read.missing import CUT_SHORT, own_step, row_width, unreadable
from ingest.read.operations import Windows
from ingest.read.placement import discover
from ingest.read.polled_series import told_to_others
from ingest.read.sources import Found, Source
from ingest.read.totals import stated_of
from ingest.store import Gatherer, Store
from ingest.store.findings import EarlyStory, write_findings
from ingest.store.lifecycle import STEP_TOLD, step_in
from ingest.store.records import COMPLETE, STEP, UNKNOWN_ZERO, RunRecord, SourceRecord, Spans

DOCUMENTS_A_CHUNK = 20_000
TOGETHER_BYTES = 1 << 25  # of small logs that are read in one pass
NO_CLOCK = "no start time, and Elasticsearch needs real times: give --t0 TIME, or --t0 mtime"


@dataclass(slots=True)
class LoadAccount:
    """What a load did: the account of all rows, what was done with the files, and how many documents were written."""

    rows: Account = field(default_factory=Account)
    files: int = 0
    documents: int = 0
    offset_documents: int = 0
    breath_documents: int = 0
    loaded: int = 0
    skipped: Counter[str] = field(default_factory=Counter)
    refused: dict[str, str] = field(default_factory=dict)
    duplicate: Counter[str] = field(default_factory=Counter)
    shadowed: Counter[str] = field(default_factory=Counter)
    runs: list[str] = field(default_factory=list)
    new_runs: list[str] = field(default_factory=list)
    sources: list[Source] = field(default_factory=list)
    caveats: list[str] = field(default_factory=list)
    lacks: dict[Caveat, None] = field(default_factory=dict)  # each once, in order
    delivered: Mapping[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    full: CapacityError | None = None  # of the first source that was left out, as its samples could not be added up

    def as_dict(self) -> dict[str, Any]:
        """Return the account as `--json` prints it."""
        rows = self.rows.as_dict()
        return {
            "runs": self.runs,
            "files": self.files,
            "sources": self.loaded,
            **{name: rows[name] for name in ("rows", "accepted", "samples", "saturated")},
            "windows": self.documents,
            **{name: getattr(self, name) for name in ("documents", "offset_documents", "breath_documents")},
            **{name: rows[name] for name in ("repaired", "rejected")},
            "skipped": dict(sorted(self.skipped.items())),
            "skipped_rows": rows["skipped"],
            "refused": self.refused,
            "shadowed": dict(sorted(self.shadowed.items())),
            "shadowed_samples": rows["shadowed"],
            "duplicate": dict(sorted(self.duplicate.items())),
            "caveats": self.caveats,
            "lacks": [caveat.to_dict() for caveat in self.lacks],
            "notes": rows["notes"],
            "findings": rows["findings"],
            **({"delivered": dict(self.delivered)} if self.delivered else {}),
            "seconds": round(self.seconds, 3),
        }


Progress = Callable[[int, int], None]


def load(paths: Sequence[Path], store: Store, options: LoadOptions, progress: Progress | None = None) -> LoadAccount:
    """Return the account of loading all sources under `paths` into `store`.

    Nothing is written before every source was checked. Raises InputError for a source that cannot be read or is refused, also
    where no row of any source could be taken (nothing new is then left in the store), StoreError where a run was loaded with
    other parameters, UsageError for a step that cannot be.
    """
    account = _loaded(discover(paths, options.read), store, options, progress)
    if (account.loaded or account.full) and not account.rows.taken:
        for run in account.new_runs:
            store.delete_run(run)
        raise account.full or nothing_taken(account.rows, [source.path for source in account.sources])
    if account.full:
        raise account.full
    return account


def load_found(discovered: Found, store: Store, options: LoadOptions, progress: Progress | None = None) -> LoadAccount:
    """Return the account of loading the discovered sources into `store`; raises as `load` does, but where no row was taken."""
    account = _loaded(discovered, store, options, progress)
    if account.full:
        raise account.full
    return account


def _loaded(discovered: Found, store: Store, options: LoadOptions, progress: Progress | None) -> LoadAccount:
    """Return the account of loading the discovered sources into `store`, without any that made it `full`."""
    account = LoadAccount(files=len(discovered.sources) + len(discovered.skipped))
    for entry in discovered.skipped:
        if entry.action == "refused":
            account.refused[as_text(entry.path)] = entry.reason
        elif entry.action == "shadowed":
            account.shadowed[entry.reason] += 1
        elif entry.action != "context":
            account.skipped[entry.reason] += 1
    account.caveats = [str(caveat) for caveat in discovered.of_all()]
    todo = _storable(plans(discovered, store, options, account.duplicate, account.shadowed), store, account)
    offsets = {source.path for source in offset_sources(discovered.sources)} if options.offsets else set()
    total = sum(len(plan.work) for plan in todo)
    done = 0
    for plan in todo:
        account.runs.append(plan.record.run)
        account.new_runs += [plan.record.run] if plan.known is None else []
        if not plan.work:
            if plan.known is not None and plan.known.state != COMPLETE:
                store.finish_run(plan.record)
                account.caveats += write_findings(store, plan.record.run)
            continue
        for finished in _load_run(plan, store, options, account, offsets):
            done += finished
            if progress:
                progress(done, total)
    account.delivered = store.delivered()
    return account


def _storable(todo: list[Plan], store: Store, account: LoadAccount) -> list[Plan]:
    """Return the runs that the store takes; logs of those without a clock are refused where it needs one and has others to load.

    Where all runs are without a clock, all are returned: the store then refuses them with a sentence.
    """
    timeless = [plan for plan in todo if store.needs_clock and plan.record.zero == UNKNOWN_ZERO]
    if len(timeless) == len(todo):
        return todo
    for plan in timeless:
        account.refused |= {as_text(source.path): NO_CLOCK for source, _ in plan.work}
    return [plan for plan in todo if not store.needs_clock or plan.record.zero != UNKNOWN_ZERO]


def _load_run(plan: Plan, store: Store, options: LoadOptions, account: LoadAccount, offsets: Collection[Path]) -> Iterator[int]:
    """Write the sources of a run as their documents come from the readers, then its rollups; yield how many are finished.

    The events of files in `offsets` are written by their offset, too. A source whose samples cannot be added up, in itself or
    with all others of the run, is taken out again and makes the account `full`; the run is then complete without it, and says so.
    """
    store.begin(plan.record, [record for _, record in plan.work], anew=options.replace)
    _check_claims(plan, store)

    jobs = processes(options.jobs, plan.paths)
    shares = _shares(plan, options, jobs)
    handed: list[Any] = []
    packer = _Packer(plan, store, store.gatherer(plan.record, jobs))
    most = store.most_samples
    if options.attribution == IN_FLIGHT:
        most = min(most, MOST_SAMPLES >> WEIGHT_BITS)
    writer = _Writer(plan, store, account, most)
    for share, pieces in fork_map(lambda numbers: _read_share(numbers, packer, options, offsets), shares, jobs, packer.rest):
        if share == len(shares):
            handed.append(pieces)
            continue
        with store.at_once() if len(pieces) > 1 else nullcontext():  # others may write between the pieces of a large log
            for number, piece in pieces:
                writer.take(number, *piece)
        if finished := sum(rows is not None for _, (_, _, rows, _) in pieces):
            yield finished
    packer.take(handed)
    together = shown_together(plan.record.run, (*plan.others, *writer.kept))
    account.lacks.update(dict.fromkeys(entry.caveat for entry in together))
    with EarlyStory(store.foreseen(plan.record)) as early:
        store.finish_run(plan.record)
        account.caveats += write_findings(store, plan.record.run, early)


class _Writer:
    """Writes what is read of the sources of a run that may hold `most` samples; `kept` are the accounts of the read ones."""

    def __init__(self, plan: Plan, store: Store, account: LoadAccount, most: int) -> None:
        self._plan, self._store, self._account, self._most = plan, store, account, most
        self._held = plan.held
        self._written_of: Counter[int] = Counter()
        self._left_out: set[int] = set()
        self.kept: list[Mapping[str, Any]] = []

    def take(self, number: int, packed: Any, samples: int | None, rows: Sequence[Account] | None, spans: Spans) -> None:
        """Write a piece of an entry of the work of the plan."""
        if number in self._left_out:
            return
        plan, store, account = self._plan, self._store, self._account
        source, record = plan.work[number]
        self._held += samples or 0
        self._written_of[number] += samples or 0
        if isinstance(packed, CapacityError) or self._held > self._most:
            error = packed if isinstance(packed, CapacityError) else no_room(source.path, plan.record.run, self._most)
            account.full = account.full or error
            account.refused[as_text(source.path)] = str(error)
            self._left_out.add(number)
            self._held -= self._written_of[number]
            _take_out(plan, number, store, error)
            return
        if isinstance(packed, StoredBreaths):
            account.breath_documents += store.write_breaths(record, packed)
        elif packed is not None:
            written = store.write(plan.record, record, packed)
            account.documents += 0 if samples is None else written
            account.offset_documents += written if samples is None else 0
        if rows is not None:
            own = _finish_source(plan, number, rows, spans, store, account)
            self.kept += [own] if may_show_together(own) else []


def _finish_source(
    plan: Plan, number: int, rows: Sequence[Account], spans: Spans, store: Store, account: LoadAccount
) -> Mapping[str, Any]:
    """Note that an entry of the work of a plan is read, with the account of each of its files; return the one that is kept."""
    record = plan.work[number][1]
    for file, own in zip(plan.files(number), rows, strict=True):
        own.stated = stated_of(file)
        file.context.account.replace(own)
        account.rows.add(own)
        account.lacks.update(dict.fromkeys(entry.caveat for entry in own.missing))
    _carry(plan, number, rows)
    account.loaded += len(rows)
    account.sources += plan.files(number)
    part = plan.parts.get(record.source)
    kept = rows[0].as_dict() if part is None else account_of(part, rows)
    kept |= {STEP: record.step_ns} if record.step_ns else {}
    kept[WIDTHS] = {str(place): row_width(file).to_dict() for place, file in enumerate(plan.files(number), 1)}
    polled = [told_to_others(file.path, file.context) for file in plan.files(number) if SPANS in file.context.options]
    kept |= {POLLED: {str(place): entry for place, entry in enumerate(polled, 1)}} if polled else {}
    held = [plan.kinds[file.path] for file in plan.files(number) if file.path in plan.kinds]
    if held:
        kept[KINDS] = {str(place): kinds.to_dict() for place, kinds in enumerate(held, 1)}
    for own in rows:
        if not own.stated:  # nothing is held against them
            own.totals, own.last = {}, {}
    store.finish_source(replace(record, account=kept), spans)
    return kept


_Piece = tuple[Any, int | None, Sequence[Account] | None, Spans]


@dataclass(frozen=True, slots=True)
class _Packer:
    """Packs windows in a reading process; `sums` adds them up, for a store that needs that."""

    plan: Plan
    store: Store
    sums: Gatherer | None

    def pieces(self, windows: Intervals[Series], record: SourceRecord) -> Iterator[_Piece]:
        """Yield windows as documents of a source, at most DOCUMENTS_A_CHUNK at a time."""
        if self.sums is not None:
            self.sums.add(windows)
        for first in range(0, len(windows), DOCUMENTS_A_CHUNK):
            chunk = windows.take(np.arange(first, min(first + DOCUMENTS_A_CHUNK, len(windows))))
            counts = chunk.counts if chunk.completions is None else chunk.completions
            samples = None if is_offsets(chunk) else sum_of(counts)
            yield self.store.packed(self.plan.record, record, chunk), samples, None, {}

    def rest(self) -> Any:
        """Return what the process has added up over all that it read."""
        return None if self.sums is None else self.sums.sums()

    def take(self, handed: Sequence[Any]) -> None:
        """Take what reading processes have added up, after the last of them was forked: none is to begin with it."""
        if self.sums is not None:
            for sums in handed:
                self.sums.take(sums)


def _shares(plan: Plan, options: LoadOptions, jobs: int) -> list[list[int]]:
    """Return the numbers of the entries of a plan's work, in order; neighbours that `_read_together` takes are one share."""
    most = max(1, len(plan.work) // (SHARES * jobs))
    shares: list[list[int]] = []
    before, size = None, 0
    for number, (source, record) in enumerate(plan.work):
        small = options.attribution != IN_FLIGHT and record.source not in plan.parts and is_small(source)
        alike = (source.format, own_step(source), record.step_ns) if small else None
        size += record.size
        if alike is None or alike != before or size > TOGETHER_BYTES or len(shares[-1]) == most:
            shares.append([])
            before, size = alike, record.size
        shares[-1].append(number)
    return shares


def _read_share(
    numbers: Sequence[int], packer: _Packer, options: LoadOptions, offsets: Collection[Path]
) -> Iterator[list[tuple[int, _Piece]]]:
    """Yield what is to be written of a share of a plan's work, each piece with the number of its entry, some of them at once."""
    plan = packer.plan
    done: list[tuple[int, _Piece]] = []
    for number, together in zip(numbers, _read_together([plan.work[number] for number in numbers], packer), strict=True):
        if together is not None:
            done += ((number, piece) for piece in together)
            continue
        if done:
            yield done
        done, (source, record) = [], plan.work[number]
        part = plan.parts.get(record.source)
        if part is not None:
            pieces = _read_added_up(part, record, packer, options, offsets)
        else:
            pieces = _read(source, record, packer, options, events=source.path in offsets)
        yield from ([(number, piece)] for piece in pieces)
    if done:
        yield done


def _read_together(some: Sequence[tuple[Source, SourceRecord]], packer: _Packer) -> list[list[_Piece] | None]:
    """Return what `_read` yields of each of some logs of one step that are read in one pass; None of those that are not."""
    if len(some) == 1:
        return [None]
    run, sources = packer.plan.record, [source for source, _ in some]
    run = replace(run, step_ns=step_in(run, some[0][1].step_ns))
    left: list[Source] = []
    spans: dict[Series, dict[Series, tuple[int, int]]] = {}
    parts: dict[Layout, list[Intervals[Series]]] = {}
    notes = [[*source.context.account.notes] for source in sources]
    try:
        for rows in read_many(sources, left):
            _note_reach(rows, lambda series: spans.setdefault(_of_file(series), {}))
            parts.setdefault(rows.layout, []).extend(stored_parts(rows, sources[0], run))
        windows = {file: rows for alike in parts.values() for file, rows in merged(alike).split(_of_file) if len(rows)}
    except CapacityError:  # of one of them
        for source, said in zip(sources, notes, strict=True):
            source.context.account.replace(Account(path=source.context.account.path, notes=said))
        return [None] * len(some)
    read: list[list[_Piece] | None] = []
    for source, record in some:
        if any(source is each for each in left):
            read.append(None)
            continue
        file, account = _of_file(source.context.series), source.context.account
        pieces: list[_Piece] = []
        account.stored = 0
        try:
            if file in windows:
                check_storable([windows[file]], run.step_ns, source.path)
                pieces += packer.pieces(windows[file], record)
                account.stored = sum(samples or 0 for _, samples, _, _ in pieces)
        except InputError as error:
            _not_read(source, error)
        read.append([*pieces, (None, 0, [account], of_all_segments(spans.get(file, {})))])
    return read


def _of_file(series: Series) -> Series:
    """Return the labels that all rows of a log have in common."""
    return series.replaced(op="", kind="", segment=0)


def _read(source: Source, record: SourceRecord, packer: _Packer, options: LoadOptions, *, events: bool) -> Iterator[_Piece]:
    """Yield what is to be written of a source: documents, how many samples of latencies they hold; last its account, its reach.

    With `events` offsets, too. CapacityError is yielded, not raised: it concerns this source alone.
    """
    spans: dict[Series, tuple[int, int]] = {}
    stored = Stored() if events else None
    try:
        run, weighed = packer.plan.record, options.attribution == IN_FLIGHT
        run = replace(run, step_ns=step_in(run, record.step_ns))
        for windows in whole_windows(source, run, spans, stored, in_flight=weighed):
            yield from packer.pieces(windows, record)
        if source.format == SNABB:
            from ingest.read.plugins.snabb.breaths import kept_of

            yield kept_of(source), 0, None, {}
    except CapacityError as error:
        yield error, 0, None, {}
    except InputError as error:
        _not_read(source, error)
    yield None, 0, [source.context.account], of_all_segments(spans)


def _read_added_up(
    part: Part, record: SourceRecord, packer: _Packer, options: LoadOptions, offsets: Collection[Path]
) -> Iterator[_Piece]:
    """Yield what `_read` does, of the logs of a part, added up; a log that cannot be read to its end is left there."""
    run, weighed = packer.plan.record, options.attribution == IN_FLIGHT
    run = replace(run, step_ns=step_in(run, record.step_ns))
    sources, spans = [source for source, _ in part.logs], [dict[Series, tuple[int, int]]() for _ in part.logs]
    total = LogAggregation(options.add_up, part.first_segment, run.step_ns)

    def windows(source: Source, own: dict[Series, tuple[int, int]]) -> Iterator[Intervals[Series]]:
        stored = Stored() if source.path in offsets else None
        try:
            yield from whole_windows(source, run, own, stored, in_flight=weighed)
        except InputError as error:
            _not_read(source, error)

    try:
        for rows in total.windows([windows(*each) for each in zip(sources, spans, strict=True)]):
            yield from packer.pieces(rows, record)
    except CapacityError as error:
        yield error, 0, None, {}
    yield None, 0, [source.context.account for source in sources], total.reach(spans)


def _not_read(source: Source, error: InputError) -> None:
    """Note in the account of a source that it was not read to its end."""
    source.context.account.lack(unreadable(source, error.reason))


def _carry(plan: Plan, number: int, accounts: Sequence[Account]) -> None:
    """Add to the account of a source of a run what is said of the run as a whole, where it is the one to keep that."""
    for source, account in zip(plan.files(number), accounts, strict=True):
        if source.path == plan.carrier:
            for entry in plan.missing:
                account.lack(entry)
            account.stated += plan.stated
    if number == 0:
        accounts[0].caveats += plan.caveats


def _take_out(plan: Plan, number: int, store: Store, error: TailboardError) -> None:
    """Take back what a load has written of a source: a later reading of it, without a row, replaces that."""
    source, record = plan.work[number]
    emptied = replace(record, generation=record.generation + 1, account={})
    store.begin(plan.record, [emptied])
    account = Account(path=source.context.account.path)
    account.note(f"not read: {error}")
    logs: Mapping[str, Any] = {}
    if isinstance(error, CapacityError):  # else another load has them
        account.lack(unreadable(source, str(error)))
        _carry(plan, number, [account] * len(plan.files(number)))
        logs = record.account
    store.finish_source(replace(emptied, account={**account.as_dict(), **logs}), {})


def _check_claims(plan: Plan, store: Store) -> None:
    """Raise StoreError where another load that began at the same time adds up logs of this one: this one takes back its claim."""
    if plan.parts and (sentence := check_claims(store, plan.record.run, plan.parts)):
        error = StoreError(sentence)
        for number in range(len(plan.work)):
            _take_out(plan, number, store, error)
        store.finish_run(plan.record)
        raise error


def no_room(path: Path, run: str, most: int) -> CapacityError:
    """Return the error of a source with which a run would hold more samples than its store can add up."""
    return CapacityError(
        f"{path}: with it {run} would hold more than 2^{most.bit_length() - 1} samples, more than "
        "this store can add up: load it as a run of its own (--run)"
    )


def whole_windows(
    source: Source, run: RunRecord, spans: dict[Series, tuple[int, int]], offsets: Stored | None = None, *, in_flight: bool
) -> Iterator[Intervals[Series]]:
    """Yield the windows of a source once they are whole; note in `spans` from when to when its series reach.

    Windows of `offsets`, where they are wanted, come between those of latencies. The account counts what is `stored`: the samples
    of latencies in all windows. InputError where it is not what it claims.
    """

    def seen(chunk: Events) -> None:
        if offsets is not None:
            offsets.add(once(source, chunk))

    whole: Whole[Series] = Whole()
    segments, account, step_ns = Segments(), source.context.account, run.step_ns
    account.stored = 0
    for chunk in read(source, Windows(step_ns, in_flight=in_flight), seen):
        rows = segments.apart(chunk.relabelled(in_flight_kind) if in_flight else chunk)
        account.stored += sum_of(rows.counts if rows.completions is None else rows.completions)
        _note_reach(rows, lambda _: spans)
        if in_flight:
            parts = [rows if rows.completions is not None else shared(rows, step_ns)]
            check_storable(parts, step_ns, source.path)
            yield from whole.add_all(parts)
        else:
            parts = stored_parts(rows, source, run)
            check_storable(parts, step_ns, source.path)
            yield from whole.add(parts)
        if offsets is not None:
            yield from offsets.whole()
    yield from whole.rest()
    if offsets is not None:
        yield from offsets.rest()


def _note_reach(rows: Intervals[Series], spans_of: Callable[[Series], dict[Series, tuple[int, int]]]) -> None:
    """Note from when to when the series of rows reach, each where `spans_of` has it."""
    for series, first, last in rows.reach():
        spans = spans_of(series)
        low, high = spans.get(series, (first, last))
        spans[series] = (min(low, first), max(high, last))


def stored_parts(rows: Intervals[Series], source: Source, run: RunRecord) -> list[Intervals[Series]]:
    """Return the rows of a source in windows of its run, in parts that are only good for adding up.

    Where the first load of the run was not told its step, they are cut as if each source was stored at its own: another load
    might have been the first.
    """
    own = own_step(source)
    finest = run.step_ns if STEP_TOLD in run.parameters else min(own or run.step_ns, run.step_ns)
    return window_sums(cut_down(rows, own, finest), run.step_ns, finest)


# What a load did, for people.


SHOWN_FINDINGS = 20


def _notes(account: LoadAccount) -> Iterator[str]:
    """Yield the notes on logs, each once for all logs that it concerns, up to SHOWN_FINDINGS of them."""
    from ingest.read.schedule import sentences

    accounts = [source.context.account for source in account.sources]
    schedules = sentences((of_source.path, digest) for of_source in accounts for digest in of_source.schedule)
    said: dict[str, list[str]] = {}
    for of_source in accounts:
        for note in of_source.notes:
            said.setdefault(note, []).append(of_source.path)
    lines = [*sorted(schedules, key=lambda sentence: OMISSION not in sentence)]  # warnings first
    for note, paths in said.items():
        lines.append(f"{paths[0]}: {note}" if len(paths) == 1 else f"{len(paths)} logs, {min(paths)} the first: {note}")
    yield from lines[:SHOWN_FINDINGS]
    if (left := len(lines) - SHOWN_FINDINGS) > 0:
        yield f"... and {left} more {plural(left, 'note')} (--json has them all)"


def sentences_of(account: LoadAccount, url: str) -> Iterator[str]:
    """Yield the account of a load into a store for people, line by line."""
    from ingest.read.totals import reconciled, skew

    rows = account.rows
    known = account.duplicate.total()
    if known and not account.loaded and not account.refused:
        sources = "the source" if known == 1 else f"all {known:,} sources"
        yield f"nothing new: 0 documents, {sources} of {', '.join(account.runs)} {plural(known, 'is', 'are')} in {url} already"
        return
    passed = f", {rows.rows_skipped} skipped" if rows.rows_skipped else ""
    done = {"source": account.loaded, "row": rows.rows, "sample": rows.samples, "document": account.documents}
    sources, taken, samples, documents = (f"{number} {plural(number, noun)}" for noun, number in done.items())
    of_rows = f"{rows.accepted} accepted, {rows.rows_repaired} repaired, {rows.rows_rejected} rejected{passed}"
    runs = f"{plural(len(account.runs), 'run')} {', '.join(account.runs)}"
    yield f"{sources}, {taken} ({of_rows}), {samples}, {documents} into {url} in {account.seconds:.1f} s; {runs}"
    for beside, number, what in (
        ("offsets", account.offset_documents, "for tailboard show offsets (--no-offsets leaves them out)"),
        ("breaths", account.breath_documents, "for the report and Kibana"),
    ):
        if number:
            yield f"{number} {plural(number, 'document')} of {beside} beside them, {what}"
    if account.delivered:
        kinds = (f"{count} {name}" for name, count in account.delivered.items() if count)
        yield f"documents with those of rollups: {', '.join(kinds)}"
    for name, counter in (("skipped", account.skipped), ("shadowed", account.shadowed), ("duplicate", account.duplicate)):
        for reason, count in sorted(counter.items()):
            yield f"{count} {plural(count, 'file')} {name}: {reason}"
    by_reason: dict[str, list[str]] = {}
    for path, reason in account.refused.items():
        by_reason.setdefault(reason, []).append(path)
    refusals = [f"refused {listed(paths)}: {reason}" for reason, paths in by_reason.items()]
    cut_short = [str(caveat) for caveat in account.lacks if caveat.code in (CUT_SHORT, REFUSED_FILE)]
    for text in dict.fromkeys((*refusals, *account.caveats, *map(str, rows.caveats), *cut_short, *_notes(account))):
        yield text
    for finding in rows.findings[:SHOWN_FINDINGS]:
        yield str(finding)
    left = sum(rows.repaired.values()) + sum(rows.rejected.values()) - min(len(rows.findings), SHOWN_FINDINGS)
    if left > 0:
        yield f"... and {left} more repairs and rejects (--json counts them by reason)"
    for text in (*reconciled(account.sources), *skew(account.sources)):
        yield text
