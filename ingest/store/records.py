"""What a store keeps about runs, sources and series, which rollups it keeps, and which runs a question is about."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from ingest import __version__
from ingest.core.errors import InputError, StoreError, choices, listed
from ingest.core.grid import SECOND
from ingest.core.labels import IN_FLIGHT, LABELS, OFFSET, Series, runs_asked
from ingest.core.layout import Layout
from ingest.query.question import Question, left_out_by_clock, where_words

# What a store keeps about runs, sources and series, and which rollups it keeps.


Spans = Mapping[Series, tuple[int, int]]

LOADING, COMPLETE, WATCHED, DELETING = "loading", "complete", "watched", "deleting"
UNKNOWN_ZERO = "unknown"
STEP = "step_ns"  # in the account of a source whose windows are narrower than those of its run: how wide they are
SINCE = "since"  # in the account of a source that is being read: from which generation on its documents count
HOST, CLUSTER = "host", "cluster"
WHOLE_RUN = 0
COARSE_STEPS = (10 * SECOND, 60 * SECOND)


def rollup_steps(step_ns: int) -> tuple[int, ...]:
    """Return the steps that rollups are kept at: the stored one, 10 s and 1 min if they are multiples of it, the whole run."""
    coarse = [step for step in COARSE_STEPS if step > step_ns and step % step_ns == 0]
    return (step_ns, *coarse, WHOLE_RUN)


def step_of(table: Iterable[Series], step_ns: int) -> int:
    """Return the width of the windows of some series in a run that is stored at `step_ns`: offsets are always in seconds."""
    return SECOND if any(series.kind == OFFSET for series in table) else step_ns


def overview_step(step_ns: int) -> int:
    """Return the step that dashboards read rollups at: 10 s, or the stored step where that is wider."""
    return max(step_ns, COARSE_STEPS[0])


@dataclass(frozen=True, slots=True)
class StoredSeries:
    """A series with its number, its layout, whether it has exact values, and from when to when it reaches (if known).

    Its documents are those of the generations from `since` on: what its source was before is no part of it any more. Their
    windows are of `step_ns`, 0 where that is the step of the run.
    """

    number: int
    series: Series
    layout: Layout
    exact: bool
    first_ns: int | None = None
    last_ns: int | None = None
    since: int = 0
    step_ns: int = 0

    @property
    def weighted(self) -> bool:
        """Return whether its counts are in-flight weights."""
        return self.series.kind.endswith(IN_FLIGHT)


@dataclass(frozen=True, slots=True)
class RunRecord:
    """A run as its first load froze it: step, attribution, time zero, reading parameters, labels.

    While it is watched, windows that end by `final_ns` are final and have their rollups; the others are provisional.
    """

    run: str
    load: str
    step_ns: int
    attribution: str = "completion"
    start_ns: int = 0
    zero: str = UNKNOWN_ZERO
    parameters: Mapping[str, Any] = field(default_factory=dict)
    labels: Mapping[str, str] = field(default_factory=dict)
    state: str = LOADING
    loaded: str = ""
    final_ns: int | None = None

    @property
    def relative(self) -> bool:
        """Return whether its start is not known, so that its times are elapsed."""
        return self.zero == UNKNOWN_ZERO


def began_ns(record: RunRecord) -> int | None:
    """Return when a run began in epoch ns; where its times are relative, when it was loaded; None if neither is known."""
    if record.zero != UNKNOWN_ZERO:
        return record.start_ns
    try:
        loaded = datetime.fromisoformat(record.loaded.partition(" ")[0])
    except ValueError:
        return None
    return int(loaded.timestamp()) * SECOND


@dataclass(frozen=True, slots=True)
class SourceRecord:
    """A source of a run: its identity, where it was read, digests of its content and of all that was read with it."""

    run: str
    source: str
    path: str
    size: int
    digest: str
    context: str = ""
    state: str = LOADING
    generation: int = 1
    account: Mapping[str, Any] = field(default_factory=dict)

    @property
    def step_ns(self) -> int:
        """Return how wide its windows are in ns, 0 as wide as those of its run."""
        return int(self.account.get(STEP, 0))


def stored_samples(source: SourceRecord) -> int:
    """Return how many samples of all kinds the documents of a source hold by its account, of older versions those of its file."""
    return int(source.account.get("stored", source.account.get("samples", 0)))


@dataclass(frozen=True, slots=True)
class StoredRun:
    """What a store holds of a run of some name: its record if there is one, the first generation of new sources, its sources."""

    record: RunRecord | None
    first_generation: int
    sources: list[SourceRecord]


def counting_since(source: SourceRecord, there: SourceRecord | None, *, anew: bool) -> SourceRecord:
    """Return the record of a source that is about to be read, with the generation from which on its documents count.

    Those of the reading before (`there`) go on counting while the same rows are read again in the same way. Else the record
    would give them another meaning: they count no more, from now on.
    """
    if there is None or (there.generation < source.generation and (anew or not goes_on(there, source))):
        return source
    return replace(source, account={**source.account, SINCE: there.account.get(SINCE, there.generation)})


def goes_on(there: SourceRecord, source: SourceRecord) -> bool:
    """Return whether a source is read again in the way that it was, and holds all that it held: else a plan has refused it."""
    followed = not there.context  # a watch has read it, row by row
    return followed or (there.context == source.context and (there.state == COMPLETE or there.digest == source.digest))


def check_unclaimed(source: SourceRecord, there: SourceRecord | None) -> None:
    """Raise StoreError where another load has claimed a source with other content since this one was planned.

    `there` is what the store has under its identity.
    """
    if there and there.generation >= source.generation and there.digest != source.digest:
        raise StoreError(
            f"{source.path} and {there.path} are being loaded at once under the same labels, with other content: give them "
            "--host or another --run, or load one after the other"
        )


def not_there(source: SourceRecord, written: int, held: int) -> StoreError:
    """Return the error of a source that was read again and of which a store does not hold what was written."""
    return StoreError(
        f"{source.path}: {written:,} samples were written and {held:,} are in the store: nothing of what was there before "
        "was deleted; run the same load again"
    )


def loaded_now() -> str:
    """Return when a load has ended, and by which version: now, by this one."""
    when = datetime.now(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return f"{when} by tailboard {__version__}"


class RunGoneError(StoreError):
    """A run, or a source of it, was deleted while it was written to."""

    def __init__(self, run: str) -> None:
        super().__init__(
            f"{run} was deleted while it was written to: later documents were not kept; load it again if you want it"
        )
        self.run = run

    def __reduce__(self) -> tuple[object, ...]:
        """Return what pickling needs."""
        return (RunGoneError, (self.run,))


def record_named(run: str, records: Iterable[RunRecord]) -> RunRecord:
    """Return the record of a run; RunGoneError where it is not there any more."""
    match = next((record for record in records if record.run == run), None)
    if match is None:
        raise RunGoneError(run)
    return match


def check_deletable(record: RunRecord, unfinished: str = "") -> None:
    """Raise StoreError where somebody may be writing to a run: it is being loaded, watched or coarsened, or that was cut off.

    `unfinished` is what is known of a coarsening. A run of which a deletion was cut off is deleted to its end.
    """
    if record.state in (COMPLETE, DELETING):
        return
    forced = f"tailboard runs delete '{record.run}' --force deletes it anyway"
    if record.state == WATCHED:
        raise StoreError(
            f"{record.run} is being watched (its watch reported within the last minute): stop the watch first; {forced}"
        )
    if unfinished:
        raise StoreError(f"{unfinished}; {forced}")
    raise StoreError(
        f"{record.run} is being loaded, or a load of it was cut off. Where a load or a replay by tailboard "
        f"of it still runs on any host, wait for its end; where none does, {forced}"
    )


# What series of a store reach, and what they have in common.


def time_range_of(series: Iterator[StoredSeries] | Sequence[StoredSeries]) -> tuple[int, int] | None:
    """Return from when to when the series reach, before they were cut into windows."""
    known = [(stored.first_ns, stored.last_ns) for stored in series if stored.first_ns is not None and stored.last_ns is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def alike(series: Sequence[StoredSeries], borne: Collection[str]) -> dict[str, str]:
    """Return the labels that all series have alike, without those that are `borne` anyway."""
    values = {label: {getattr(stored.series, label) for stored in series} for label in LABELS if label not in borne}
    return {label: next(iter(found)) for label, found in values.items() if len(found) == 1}


def check_latencies(series: Sequence[StoredSeries], records: Sequence[RunRecord]) -> None:
    """Raise InputError where runs hold only the times of events, and no latency."""
    if series and all(stored.series.kind == OFFSET for stored in series):
        runs = listed(record.run for record in records)
        raise InputError(f"{runs}: only the times of events, no latencies; tailboard show offsets shows them")


# Which runs of a store a question is about.


def selected_records(
    records: Sequence[RunRecord], globs: Sequence[str], where: Mapping[str, str] | None = None
) -> list[RunRecord]:
    """Return the records that a question names, also by labels of runs in `where`.

    StoreError where there is none at all, InputError where none matches by name.
    """
    if not records:
        raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
    labels = {record.run: record.labels for record in records} if where else {}
    named = set(runs_asked((record.run for record in records), globs, where or {}, labels))
    chosen = [record for record in records if record.run in named]
    if not chosen:
        asked = [*globs, *where_words(where or {})]
        raise InputError(f"no run matches {' '.join(asked)}: {choices(asked[0], (record.run for record in records))}")
    return chosen


def on_one_clock(records: Sequence[RunRecord], question: Question) -> tuple[list[RunRecord], list[RunRecord]]:
    """Return the runs that an answer is about, and the undated ones that it leaves out beside them."""
    apart = left_out_by_clock(question, {record.run: record.zero == UNKNOWN_ZERO for record in records})
    return [record for record in records if record.run not in apart], [record for record in records if record.run in apart]
