"""What a load has to do: which sources to read, which the store holds already, which contradict those that it holds.

The run record freezes everything that the numbers depend on (step, start of the run, offsets, units, attribution); a load that
differs is refused. A source is identified by format and labels, and by a digest of its content: one that the store holds
already is skipped, one that grew or was repaired is read again in a new generation, any other under the same name is refused.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from ingest.core.coverage import Caveat, KindsRecorded, Missing, is_held, median_width
from ingest.core.errors import InputError, StoreError, UsageError, as_text, counted
from ingest.core.grid import SECOND, stored_step
from ingest.core.labels import IN_FLIGHT
from ingest.core.pool import fork_map
from ingest.core.stated import Stated
from ingest.load.aggregation import Part, members_of, parts_of
from ingest.query.aggregate import run_starts
from ingest.query.windows import check_step
from ingest.read.context import OWN_STAMPS
from ingest.read.copies import labels_in, rival, two_formats, two_of_one
from ingest.read.discovery import processes
from ingest.read.format_names import AVERAGED, HIST, PLAIN_JSON, RAW
from ingest.read.missing import own_step, row_width
from ingest.read.placement import UNDATED, apart
from ingest.read.sources import PREFER_HIST, Found, ReadOptions, Source
from ingest.read.text import open_plain, size_of
from ingest.store import Store
from ingest.store.coverage import ADD_UP, check_same
from ingest.store.lifecycle import COLUMNS, FORCED, MEANING, NOT_OF_READING, OF_LOGS, STEP_TOLD, check_addable
from ingest.store.lifecycle import check_step as check_stored
from ingest.store.records import COMPLETE, STEP, UNKNOWN_ZERO, RunRecord, SourceRecord, StoredRun, stored_samples

NOT_READ = "not read: "
HASH_BLOCK = 1 << 18
DIGEST_SIZE = 16
MOST_LABELS = 32


@dataclass(frozen=True, slots=True)
class LoadOptions:
    """How a load is to be done, beside how files are read. `step_ns` None takes the step that the rows suggest.

    `jobs` is how many processes read, None as `processes` has it. With `offsets` single events are stored by their offset
    within each second, too. The logs of a host are added up over the labels `add_up` before they are stored.
    """

    read: ReadOptions
    step_ns: int | None = None
    force: bool = False
    attribution: str = "completion"
    labels: Mapping[str, str] = field(default_factory=dict)
    replace: bool = False
    jobs: int | None = None
    offsets: bool = True
    add_up: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be done for one run: its record and the sources to read, each with its record.

    `held` are the samples of those of its sources that the store holds already and that are not read again.
    What no source of the run can hold is `missing`, and what its tools state of jobs without a source `stated`: both are kept in
    the account of the `carrier`, if that is read; `caveats` of the run as a whole are kept with the first source that is read;
    `kinds` are those that files have of their jobs, kept with each. `others` are the accounts of sources that are not read again.
    Sources that are added up are one in `work`, under the identity of one of the `parts`. `known` is the record of the run that
    the store has.
    """

    record: RunRecord
    work: tuple[tuple[Source, SourceRecord], ...]
    held: int = 0
    carrier: Path | None = None
    missing: tuple[Missing, ...] = ()
    stated: tuple[Stated, ...] = ()
    caveats: tuple[Caveat, ...] = ()
    others: tuple[Mapping[str, Any], ...] = ()
    kinds: Mapping[Path, KindsRecorded] = field(default_factory=dict)
    parts: Mapping[str, Part] = field(default_factory=dict)
    known: RunRecord | None = None

    @property
    def paths(self) -> list[Path]:
        """Return the files to read."""
        return [source.path for number in range(len(self.work)) for source in self.files(number)]

    def files(self, number: int) -> tuple[Source, ...]:
        """Return the files of an entry of `work`: one, or those that are added up."""
        source, record = self.work[number]
        return _files(source, self.parts.get(record.source))


def _files(source: Source, part: Part | None) -> tuple[Source, ...]:
    return (source,) if part is None else tuple(log for log, _ in part.logs)


def plans(
    discovered: Found, store: Store, options: LoadOptions, duplicates: Counter[str], shadowed: Counter[str] | None = None
) -> list[Plan]:
    """Return the plan of each run; sources that the store holds already are counted in `duplicates`. Writes nothing.

    Undated logs of a run that the store holds with a clock are a run of their own, as they are beside dated logs. Logs of
    I/Os that the store holds from another log are counted in `shadowed`.

    Raises InputError for a source that contradicts another, StoreError for a run with other parameters, UsageError for a
    step that cannot be.
    """
    discovered, held = _beside_held(discovered, store, options)
    digests = _digests(discovered.sources, options.jobs)
    by_run: dict[str, list[Source]] = {}
    for source in discovered.sources:
        by_run.setdefault(source.context.series.run, []).append(source)
    planned = []
    caveats = _caveats_by_run(discovered)
    kinds = {source.path: of_job for source, of_job in discovered.kinds_held()}
    for run, sources in sorted(by_run.items()):
        known = held[run].record
        record = record_of(run, sources, {**discovered.labels.get(run, {}), **options.labels}, known, options)
        known_ios = Counter[str]() if shadowed is None else shadowed
        records, first = held[run].sources, held[run].first_generation
        logs = {log.source: log for stored in records for log in members_of(stored)}
        lacking = tuple(entry for entry in discovered.missing if entry.run == run and not is_held(entry, logs))
        stated = tuple(entry for entry in discovered.stated if entry.labels["run"] == run)
        carrier = min(source.path for source in sources) if lacking or stated else None
        work = _to_do(sources, digests, (logs, first), options, (duplicates, known_ios), (carrier, (*lacking, *stated)))
        parts = parts_of(run, sources, work, records, first, duplicates) if options.add_up else []
        read = {log.source for part in parts for _, log in part.logs} or {log.source for _, log in work}
        samples = sum(stored_samples(log) for name, log in logs.items() if name not in read)
        if options.add_up:
            work = tuple((part.source, part.record) for part in parts)
        named = {part.record.source: part for part in parts}
        there = {} if options.replace else {known.source: known for known in records}
        work = tuple(
            (source, in_own_windows(log, _files(source, named.get(log.source)), record, there.get(log.source)))
            for source, log in work
        )
        if known and not options.replace:
            check_addable(known, len(work))
        if options.replace and known:
            _check_all_replaced(known, record, work, held[run])
        begun = {log.source for _, log in work}
        others = tuple(log.account for log in records if log.source not in begun)
        planned.append(Plan(record, work, samples, carrier, lacking, stated, caveats[run], others, kinds, named, known))
    return planned


def _beside_held(discovered: Found, store: Store, options: LoadOptions) -> tuple[Found, dict[str, StoredRun]]:
    """Return what was discovered, undated logs of runs with a clock apart, and what the store holds of these runs."""
    names = sorted({source.context.series.run for source in discovered.sources})
    held = store.held([*names, *(f"{name}/{UNDATED}" for name in names)]) if names else {}
    if not options.replace:
        dated = {run for run, there in held.items() if there.record and there.record.zero != UNKNOWN_ZERO}
        discovered = apart(discovered, dated)
        more = sorted({source.context.series.run for source in discovered.sources} - held.keys())
        held |= store.held(more) if more else {}
    return discovered, held


def _caveats_by_run(discovered: Found) -> dict[str, tuple[Caveat, ...]]:
    """Return the caveats of each run: those that name its files or their folders, and those that name no file at all."""
    places: dict[str, set[str]] = {}
    for source in discovered.sources:
        places.setdefault(source.context.series.run, set()).update((str(source.path), str(source.path.parent)))
    kept: dict[str, list[Caveat]] = {run: [] for run in places}
    for caveat in discovered.caveats:
        named = [run for run, mine in places.items() if any(place in caveat.subject for place in mine)]
        for run in named or places:
            kept[run].append(caveat)
    return {run: tuple(discovered.caveats) if len(places) == 1 else tuple(mine) for run, mine in kept.items()}


def record_of(
    run: str, sources: Sequence[Source], labels: Mapping[str, str], known: RunRecord | None, options: LoadOptions
) -> RunRecord:
    """Return the record of a run: the known one if this load fits it, else a new one."""
    if len(labels) > MOST_LABELS:
        raise UsageError(f"{len(labels)} labels are too many: at most {MOST_LABELS}")
    widths = [row_width(source) for source in sources]
    step = options.step_ns or (known.step_ns if known and not options.replace else stored_step(median_width(widths)))
    check_stored(step)
    warning = check_step(step, widths, force=options.force) if options.step_ns else ""
    starts = run_starts(sources)
    relative = all(source.context.zero.epoch_ns is None for source in sources)
    new = RunRecord(
        run=run,
        load=as_text(options.read.run),
        step_ns=step,
        attribution=options.attribution,
        start_ns=min(starts[run], known.start_ns) if known and not options.replace else starts[run],
        zero=UNKNOWN_ZERO if relative else ", ".join(sorted({source.context.zero.origin for source in sources})),
        parameters={
            **_parameters(options.read, warning),
            **({STEP_TOLD: True} if options.step_ns else {}),
            **({} if options.offsets else {"offsets": "left out"}),
            **({ADD_UP: list(options.add_up)} if options.add_up else {}),
        },
        labels={**(known.labels if known else {}), **labels},
    )
    if known:
        check_same(known, new)
    if known and not options.replace:
        # The step before a coarsening is not an option of reading.
        kept = {name: value for name, value in known.parameters.items() if name in NOT_OF_READING}
        if OWN_STAMPS in (known.zero, new.zero):  # one of the two are histograms, of which the options of logs say nothing
            kept |= {name: value for name, value in known.parameters.items() if name in OF_LOGS and name not in new.parameters}
            told = {name: value for name, value in new.parameters.items() if name in OF_LOGS and name not in known.parameters}
            known = replace(known, parameters={**known.parameters, **told})
        own = {name: value for name, value in new.parameters.items() if name != STEP_TOLD}
        new = replace(new, parameters={**own, **kept})
        _check_same(known, new)
    return new


def _parameters(reading: ReadOptions, warning: str) -> dict[str, Any]:
    parameters = {
        "t0": reading.t0,
        "host_offset_ns": dict(sorted(reading.host_offset_ns.items())),
        "recorded_unit_ns": reading.recorded_unit_ns,
        FORCED: warning,
        "digits": reading.digits or None,
        "prefer": reading.prefer if reading.prefer != PREFER_HIST else None,
        "fio_version": ".".join(map(str, reading.fio_version or ())),
        COLUMNS: reading.description.text if reading.description else "",
        "tsc_hz": reading.tsc_hz or None,
        "failed": dict(sorted(reading.failed.items())),
    }
    return {name: value for name, value in parameters.items() if value not in (None, {}, "")}


def _check_same(known: RunRecord, new: RunRecord) -> None:
    pairs = ((name, of(known), of(new)) for name, of in MEANING.items())
    if differ := [f"{name} ({before} then, {now} now)" for name, before, now in pairs if before != now]:
        raise StoreError(f"{known.run} was loaded with another {'; another '.join(differ)}: use --replace to load it anew")


def _check_all_replaced(known: RunRecord, new: RunRecord, work: Sequence[tuple[Source, SourceRecord]], held: StoredRun) -> None:
    """Raise StoreError if a run would end up with sources of unlike parameters."""
    try:
        _check_same(known, new)
    except StoreError as error:
        left = {record.source for record in held.sources} - {record.source for _, record in work}
        if left:
            reason = str(error).split(": use")[0]
            others = f"{counted(len(left), 'source')} of the run {'is' if len(left) == 1 else 'are'} not among these files"
            raise StoreError(f"{reason}; {others}: replace all or none") from None


def _to_do(
    sources: Sequence[Source],
    digests: Mapping[Path, tuple[str, int]],
    held: tuple[Mapping[str, SourceRecord], int],
    options: LoadOptions,
    counted: tuple[Counter[str], Counter[str]],
    carried: tuple[Path | None, tuple[Missing | Stated, ...]] = (None, ()),
) -> tuple[tuple[Source, SourceRecord], ...]:
    """Return the sources of a run that have to be read. What is there is skipped, what contradicts is refused.

    `held` are the records of its sources that the store holds, and the generation of a new one.
    """
    duplicates, shadowed = counted
    stored, first = held
    contents = {(record.digest, _measured(record.source)): record.source for record in stored.values()}
    claimed: dict[str, Source] = {}
    alike: dict[str, list[str]] = defaultdict(list)
    for name in stored:
        alike[labels_in(name)].append(name)
    work = []
    for source in sources:
        (digest, size), identity = digests[source.path], source.identity
        if identity in claimed:
            if digests[claimed[identity].path][0] == digest:
                duplicates["same content under another name"] += 1
                continue
            raise InputError(two_of_one(source, str(claimed[identity].path)), source.path)
        same_labels = labels_in(identity)
        if (other := rival(source, alike[same_labels])) is not None:
            there = claimed[other].path if other in claimed else stored[other].path
            raise InputError(two_formats(source, str(there)), source.path)
        claimed[identity] = source
        alike[same_labels].append(identity)
        old = stored.get(identity)
        if old is None and any(twin in stored for twin in source.twins):
            shadowed["the store holds the same I/Os from another log of this job"] += 1
            continue
        if contents.setdefault((digest, _measured(identity)), identity) != identity and not options.replace:
            duplicates["same content under another name"] += 1
            continue
        record = SourceRecord(
            run=source.context.series.run,
            source=identity,
            path=as_text(source.path),
            size=size,
            digest=digest,
            context=_context_digest(source, digests, carried[1] if source.path == carried[0] else ()),
            generation=old.generation + 1 if old else first,
        )
        if old is not None and digest.startswith(NOT_READ):
            duplicates["it has gone meanwhile, and what was loaded of it before is kept"] += 1
            continue
        if old is not None and not options.replace:
            same = (old.digest, old.context) == (digest, record.context)
            if same and old.state == COMPLETE:
                duplicates["already loaded"] += 1
                continue
            if old.digest != digest and old.state == COMPLETE and not grown(source.path, old):
                raise InputError(two_of_one(source, old.path), source.path)
            if same:
                # The same content gives the same documents: two loads of it at once write, and sweep, in one generation.
                record = replace(record, generation=old.generation)
        work.append((source, record))
    return tuple(work)


def in_own_windows(record: SourceRecord, sources: Sequence[Source], run: RunRecord, there: SourceRecord | None) -> SourceRecord:
    """Return the record of a source, or of several that are added up, with how wide its windows are.

    They are those that its rows suggest, where the run's are wider. A source that is `there` and is read again keeps the windows
    that it has: documents of both readings may count.
    """
    steps = [own_step(source) or SECOND for source in sources] if there is None else [there.step_ns or run.step_ns]
    of_run = STEP_TOLD in run.parameters or run.attribution == IN_FLIGHT or max(steps) >= run.step_ns
    return record if of_run else replace(record, account={**record.account, STEP: max(steps)})


def _measured(identity: str) -> str:
    """Return the measured part of an identity (format, host, volume, job), without the process's name."""
    return identity.rpartition("|")[0]


def _context_digest(source: Source, digests: Mapping[Path, tuple[str, int]], carried: tuple[Missing | Stated, ...]) -> str:
    """Return a digest of all that a source's record depends on beside its content: summaries, start time, repairs by version.

    `digests` are those of all sources, `carried` is what its account says of other files that are missing.
    """
    context = source.context
    facts = (
        context.zero.epoch_ns,
        context.offset_ns,
        context.version,
        sorted(context.options.items()),
        context.through_client,
        context.runtime_ns,
        sorted(context.segments.items()),
        [
            (key, summary.count, summary.runtime_ns, None if summary.bins is None else summary.bins.counts.tolist())
            for job in context.jobs
            for key, summary in sorted(job.items())
        ],
    )
    events = (context.digits, sorted(context.shadowed), context.description.text if context.description else "")
    facts = (
        *facts,
        *(events if any(events) else ()),
        *_read_beside(source, digests),
        *sorted(context.spans.items()),
        *context.left_out,
        *(entry.to_dict() for entry in carried),
    )
    return hashlib.blake2b(repr(facts).encode(), digest_size=DIGEST_SIZE).hexdigest()


def _read_beside(source: Source, digests: Mapping[Path, tuple[str, int]]) -> tuple[str, ...]:
    """Return digests of the logs that the counts of means come from, and of those of a group; nothing of other sources."""
    logs, absent = [*source.context.siblings], [f"absent {number}" for number in source.context.absent]
    if source.format in (AVERAGED, PLAIN_JSON):
        from ingest.read.fio.averaged_log import logs_beside

        logs, absent = [*logs, *(log for path in (source.path, *logs) for log in logs_beside(path))], []
    elif source.format not in (HIST, RAW):
        return ()
    known = {log: digests[log][0] if log in digests else digest_of(log, None) for log in logs}
    return (*(f"{log.name} {digest}" for log, digest in known.items()), *absent)


def _digests(sources: Sequence[Source], jobs: int | None) -> dict[Path, tuple[str, int]]:
    def work(path: Path) -> Iterator[tuple[str, int]]:
        yield digested(path, None)

    paths = [source.path for source in sources]
    return {paths[number]: digest for number, digest in fork_map(work, paths, processes(jobs, paths), joining=True)}


def digest_of(path: Path, size: int | None) -> str:
    """Return the SHA-256 of a file, or of its first `size` bytes."""
    return digested(path, size)[0]


def digested(path: Path, size: int | None) -> tuple[str, int]:
    """Return the SHA-256 of a file, or of its first `size` bytes, and of how many bytes it is: the file may grow meanwhile.

    One that has gone, or cannot be read, has a digest that no other has, of 0 bytes: who reads it says so.
    """
    digest = hashlib.sha256()
    left, taken = size if size is not None else 2**62, 0
    view = memoryview(bytearray(HASH_BLOCK))
    try:
        with open_plain(path) as stream:
            while left and (got := stream.readinto(view[: min(HASH_BLOCK, left)])):  # type: ignore[attr-defined]
                digest.update(view[:got])
                left -= got
                taken += got
    except (InputError, OSError):
        return f"{NOT_READ}{as_text(path)}", 0
    return digest.hexdigest(), taken


def grown(path: Path, old: SourceRecord) -> bool:
    """Return whether a file has the content that was loaded before, with something appended; any has where that was nothing."""
    return size_of(path) > old.size and (not old.size or digest_of(path, old.size) == old.digest)
