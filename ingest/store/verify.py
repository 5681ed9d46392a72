"""Verifying a store: whether what it holds fits together, in kinds of faults that are the same for every store.

The rules stand here, in `Verifier`: owners, readings, steps, layouts, samples, rollups, and what is mended in which order. A
store says what it holds, looks for what can be wrong with its own documents alone, and deletes. `Finding`s are added up to one
`Fault` a kind, with its words.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any, NamedTuple

from ingest.core.coverage import REFUSED_FILE
from ingest.core.errors import listed, plural
from ingest.core.grid import SECOND
from ingest.core.labels import CORRECTED, OFFSET, bare_kind
from ingest.store.lifecycle import step_in, unfinished
from ingest.store.records import COMPLETE, DELETING, SINCE, WATCHED, RunRecord, SourceRecord, stored_samples

FILE, NO_RUN, NO_SOURCE, NO_SERIES = "file", "no run", "no source", "no series"
BINS, LAYOUTS, GENERATIONS = "bins", "layouts", "generations"
STEPS, SAMPLES, ROLLUPS, STATES = "steps", "samples", "rollups", "states"
TIMED = "service"  # kind of the operations that response and wait time by a schedule are derived from
NOT_READ = "not read:"  # begins the note of a source whose rows were counted and not stored, as older versions left it
Chosen = Callable[[str], bool]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of fault: what is wrong with one place, with several, and what mends it."""

    one: str
    many: str
    remedy: str


MEND = "--mend deletes them"
AGAIN = "--mend marks the sources incomplete, so that the next load reads them again"
KINDS = {
    FILE: Kind("place of the file is damaged", "places of the file are damaged", "load the logs into a new store"),
    NO_RUN: Kind(
        "document or record belongs to a run that does not exist", "documents or records belong to runs that do not exist", MEND
    ),
    NO_SOURCE: Kind(
        "document or record belongs to a source that does not exist",
        "documents or records belong to sources that do not exist",
        f"{MEND} and makes the rollups again",
    ),
    NO_SERIES: Kind("document belongs to no series", "documents belong to no series", MEND),
    BINS: Kind(
        "document has bins that cannot be read or do not add up to its count",
        "documents have bins that cannot be read or do not add up to their count",
        AGAIN,
    ),
    LAYOUTS: Kind(
        "series or document has several layouts, or values outside the bins of its layout",
        "series or documents have several layouts, or values outside the bins of their layout",
        AGAIN,
    ),
    GENERATIONS: Kind(
        "document does not come from the last reading of its source",
        "documents do not come from the last reading of their source",
        f"{MEND} and makes the rollups again",
    ),
    STEPS: Kind("document has a different step than its run", "documents have a different step than their run", MEND),
    SAMPLES: Kind(
        "source holds a different number of samples than its load counted",
        "sources hold a different number of samples than their load counted",
        AGAIN,
    ),
    ROLLUPS: Kind(
        "rollup differs from the documents that it is made of",
        "rollups differ from the documents that they are made of",
        "--mend makes the rollups again",
    ),
    STATES: Kind(
        "run is marked complete although some of its sources are not",
        "runs are marked complete although some of their sources are not",
        AGAIN,
    ),
}


@dataclass(frozen=True, slots=True)
class Finding:
    """`count` places of a run in which a fault of a kind was found, and the first of them in words."""

    kind: str
    run: str
    count: int
    example: str


@dataclass(frozen=True, slots=True)
class Fault:
    """A kind of fault in a store: in how many places, in which runs, the first of them, what to do, and whether it was mended."""

    kind: str
    count: int
    runs: tuple[str, ...]
    first: str
    remedy: str
    mended: bool

    def __str__(self) -> str:
        """Return it as a line for people."""
        says = f"{self.count:,} {plural(self.count, KINDS[self.kind].one, KINDS[self.kind].many)}"
        where = f" in {listed(run for run in self.runs if run)}" if any(self.runs) else ""
        return f"{self.kind}: {says}{where}; the first: {self.first}; {'mended' if self.mended else self.remedy}"


@dataclass(slots=True)
class Verification:
    """The outcome of a verification: faults, sentences about runs that are not whole, and what is left to do after mending."""

    runs: int = 0
    documents: int = 0
    findings: list[Finding] = field(default_factory=list)
    unfinished: list[str] = field(default_factory=list)
    again: dict[str, str] = field(default_factory=dict)
    mended: bool = False

    def found(self, kind: str, run: str, count: int, example: str) -> None:
        """Note a fault."""
        if count:
            self.findings.append(Finding(kind, run, count, example))

    def of(self, *kinds: str) -> list[Finding]:
        """Return the findings of some kinds."""
        return [finding for finding in self.findings if finding.kind in kinds]

    @property
    def faults(self) -> list[Fault]:
        """Return one fault for each kind of which something was found."""
        faults = []
        for kind, words in KINDS.items():
            mine = self.of(kind)
            if mine:
                runs = tuple(sorted({finding.run for finding in mine}))
                mended = self.mended and kind != FILE
                faults.append(Fault(kind, sum(finding.count for finding in mine), runs, mine[0].example, words.remedy, mended))
        return faults

    @property
    def settled(self) -> bool:
        """Return whether nothing is left to do."""
        return not self.again and all(fault.mended for fault in self.faults)

    def as_dict(self) -> dict[str, Any]:
        """Return it as `--json` prints it."""
        faults = [asdict(fault) for fault in self.faults]
        fields = {"runs": self.runs, "documents": self.documents, "faults": faults, "unfinished": self.unfinished}
        return {**fields, "load_again": sorted(self.again.values())}


class Reading(NamedTuple):
    """Documents of one reading of a source, of one series, layout and step: how many, and how many samples they count.

    `step_ns` is None where windows stand in the step of their run by their ids. `binned` are the samples in their bins; None
    where the store looks at every document itself. `place` is what it deletes once a later reading has taken their place.
    """

    run: str
    source: str
    series: object
    words: str
    kind: str
    layout: str
    step_ns: int | None
    generation: int
    documents: int
    samples: int
    binned: int | None
    place: Any


class Verifier(ABC):
    """Verifies the runs of a store that `chosen` accepts, and mends them."""

    one_moment: bool  # whether all that it reads is as of one moment, also of runs that are being written

    def __init__(self, chosen: Chosen) -> None:
        self.chosen = chosen
        self.found = Verification()
        self.every: set[str] = set()
        self.runs: dict[str, RunRecord] = {}
        self.sources: dict[tuple[str, str], SourceRecord] = {}
        self.again: dict[tuple[str, str], SourceRecord] = {}
        self.rolled: set[str] = set()
        self.steps: set[str] = set()  # runs that hold documents of another step
        self.before: Counter[str] = Counter()  # documents by run that no answer takes: of readings before the one under way

    @abstractmethod
    def records(self) -> tuple[Iterable[RunRecord], Iterable[SourceRecord]]:
        """Return the records of all runs, and of the sources of those that are chosen."""

    @abstractmethod
    def unowned(self) -> Iterator[tuple[str, str, int, str]]:
        """Yield kind, run, number and words of what belongs to no run, source or series (`owner`): it is to be deleted."""

    @abstractmethod
    def readings(self) -> Iterator[Reading]:
        """Yield all that is held of readings that have an owner; faults of single documents are noted on the way."""

    @abstractmethod
    def misstated(self) -> None:
        """Note the runs that are marked complete and are not."""

    @abstractmethod
    def unlike_rollups(self, record: RunRecord) -> Iterator[tuple[int, str]]:
        """Yield how many rollups of a whole run differ from its documents, and the first of them in words."""

    @abstractmethod
    def drop(self, reading: Reading, source: SourceRecord) -> None:
        """Note that the documents of an older reading are to be deleted."""

    @abstractmethod
    def delete(self) -> None:
        """Delete all that was noted."""

    @abstractmethod
    def reopen(self, source: SourceRecord) -> None:
        """Mark a source incomplete, so that the next load reads it again, above the generation of this record."""

    @abstractmethod
    def roll(self, run: str) -> None:
        """Make all rollups of a run again, if the run is there."""

    def verify(self) -> Verification:
        """Return the faults; nothing is changed."""
        records, sources = self.records()
        by_name = {record.run: record for record in records}
        self.every, self.runs = set(by_name), {run: record for run, record in by_name.items() if self.chosen(run)}
        self.sources = {(source.run, source.source): source for source in sources}
        self.found.runs = len(self.runs)
        for kind, run, count, example in self.unowned():
            self.found.found(kind, run, count, example)
            if kind != NO_RUN:
                self.rolled.add(run)
        self.misstated()
        whole = {run: record for run, record in self.runs.items() if is_whole(record)}
        samples: defaultdict[tuple[str, str], Counter[str]] = defaultdict(Counter)
        layouts: dict[object, set[str]] = {}
        for reading in self.readings():
            if self._is_sound(reading, layouts.setdefault(reading.series, set())):
                samples[reading.run, reading.source][bare_kind(reading.kind)] += reading.samples
        for record in self.runs.values():
            if record.run not in whole:
                own = [source for (run, _), source in self.sources.items() if run == record.run]
                self.found.unfinished.append(unfinished_sentence(record, own, self.before[record.run]))
        for (run, name), source in self.sources.items():
            if run in whole and (text := samples_differ(source, samples[run, name])):
                self.found.found(SAMPLES, run, 1, text)
                self.read_again(source)
        for record in whole.values():
            for count, example in self.unlike_rollups(record):
                self.found.found(ROLLUPS, record.run, count, example)
                self.rolled.add(record.run)
        return self.found

    def mend(self) -> None:
        """Repair the faults: what is wrong is deleted, sources are marked to be read again, rollups are made again."""
        self.delete()
        for source in self.again.values():
            self.reopen(source)
            self.found.again[source.source] = source.path
        for run in sorted(self.rolled | {run for run, _ in self.again}):
            self.roll(run)
        self.found.mended = True

    def owner(self, run: str, source: str | None) -> str:
        """Return which kind of owner is missing: that of a run, of a source where one is named, or none."""
        if not self.chosen(run):
            return ""
        if run not in self.every:
            return NO_RUN
        gone = source is not None and (run, source) not in self.sources and self.runs[run].state != DELETING
        return NO_SOURCE if gone else ""

    def read_again(self, source: SourceRecord, generation: int = 0) -> None:
        """Note that a source has to be read again, above all its generations that were met."""
        known = self.again.get((source.run, source.source), source)
        self.again[source.run, source.source] = replace(known, generation=max(generation, known.generation))

    def _is_sound(self, reading: Reading, layouts: set[str]) -> bool:
        """Return whether the samples of a reading count; `layouts` are those of its series so far."""
        record, source = self.runs[reading.run], self.sources[reading.run, reading.source]
        if reading.step_ns not in (None, SECOND if reading.kind == OFFSET else step_in(record, source.step_ns)):
            text = f"{reading.words}, step {(reading.step_ns or 0) // 10**6} ms"
            self.found.found(STEPS, record.run, reading.documents, text)
            self.steps.add(record.run)
            self.rolled.add(record.run)
            return False
        if reading.generation != source.generation:
            later = reading.generation > source.generation
            if source.state != COMPLETE and reading.generation < source.account.get(SINCE, source.generation):
                self.before[record.run] += reading.documents
            if (is_whole(record) and source.state == COMPLETE) or (later and self.one_moment):
                self.found.found(GENERATIONS, record.run, reading.documents, f"{reading.words}, from {source.path}")
                self.rolled.add(record.run)
                if later:
                    self.read_again(source, reading.generation)
                else:
                    self.drop(reading, source)
            return False
        if reading.kind == OFFSET:
            return False
        if reading.binned is not None and reading.binned != reading.samples:
            text = f"{reading.words}: bins hold {reading.binned:,}, the documents say {reading.samples:,}"
            self.found.found(BINS, record.run, 1, text)
            self.read_again(source)
        layouts.add(reading.layout)
        if len(layouts) > 1:
            self.found.found(LAYOUTS, record.run, 1, f"{reading.words}: {' and '.join(sorted(layouts))}")
            self.read_again(source)
        return True


def is_whole(record: RunRecord) -> bool:
    """Return whether nobody is writing to a run, and nothing of it is missing: its sums must be right then."""
    return record.state == COMPLETE


def unfinished_sentence(record: RunRecord, sources: Sequence[SourceRecord], before: int = 0) -> str:
    """Return the sentence about a run of which no sums were compared; `before` documents of it are of earlier readings."""
    if known := unfinished(record):
        return f"{known}; its sums were not compared"
    if record.state == WATCHED:
        return f"{record.run} is being watched: its sums were not compared"
    paths = [source.path for source in sources if source.state != COMPLETE]
    files = f" ({listed(sorted(paths))})" if paths else ""
    counted = f"; {before:,} {plural(before, 'document', 'documents')} of readings before count no more, and it deletes them"
    return (
        f"{record.run} is being loaded, or its load was cut off (the same load completes it){files}: its sums were not compared"
        f"{counted if before else ''}"
    )


def samples_differ(source: SourceRecord, stored: Mapping[str, int]) -> str:
    """Return in words by how much the samples of a source differ from those that its load has counted; empty where they agree.

    `stored` are the samples in its documents by kind, without layers. Nothing is said of a source that is not complete, of which
    rows were counted and not stored, or whose account has no count.
    """
    account, held = source.account, sum(stored.values())
    refused = any(entry["caveat"]["code"] == REFUSED_FILE for entry in account.get("missing", {}).values())
    refused |= any(str(note).startswith(NOT_READ) for note in account.get("notes") or ())
    if source.state != COMPLETE or "samples" not in account or refused:
        return ""
    wanted, possible = stored_samples(source), {held}
    if "stored" not in account:  # of older versions: the samples of the file alone, not those of kinds that are derived from them
        measured = {tuple(kind.split(".")): number for kind, number in stored.items() if CORRECTED not in kind.split(".")}
        possible = {sum(measured.values()), sum(number for kind, number in measured.items() if kind[0] == TIMED)}
    return "" if wanted in possible else f"{source.path} of {source.run}: {held:,} stored, {wanted:,} counted"


def in_words(labels: Mapping[str, object]) -> str:
    """Return labels that are not empty, for people."""
    return " ".join(f"{name}={value}" for name, value in labels.items() if value != "")
