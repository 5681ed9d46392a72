"""Verifying a store: whether what it holds fits together, in kinds of faults that are the same for every store.

A store finds `Finding`s (and with `mend` repairs them); here they are added up to one `Fault` a kind, with its words.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import field, replace
from typing import Any

from ingest.core.dataclass import dataclass
from ingest.core.errors import listed, plural
from ingest.store.coarsening import unfinished
from ingest.store.records import COMPLETE, WATCHED, RunRecord, SourceRecord

FILE, NO_RUN, NO_SOURCE, NO_SERIES = "file", "no run", "no source", "no series"
BINS, LAYOUTS, GENERATIONS, STEPS, SAMPLES, ROLLUPS, STATES = (
    "bins",
    "layouts",
    "generations",
    "steps",
    "samples",
    "rollups",
    "states",
)
NOT_READ = "not read:"  # begins the note of a source whose rows were counted and not stored
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
    example: str
    remedy: str
    mended: bool

    def __str__(self) -> str:
        """Return it as a line for people."""
        says = f"{self.count:,} {plural(self.count, KINDS[self.kind].one, KINDS[self.kind].many)}"
        where = f" in {listed(run for run in self.runs if run)}" if any(self.runs) else ""
        return f"{self.kind}: {says}{where}; the first: {self.example}; {'mended' if self.mended else self.remedy}"


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
        faults = [
            {
                "kind": fault.kind,
                "count": fault.count,
                "runs": fault.runs,
                "first": fault.example,
                "remedy": fault.remedy,
                "mended": fault.mended,
            }
            for fault in self.faults
        ]
        fields = {"runs": self.runs, "documents": self.documents, "faults": faults, "unfinished": self.unfinished}
        return {**fields, "load_again": sorted(self.again.values())}


def note_again(again: MutableMapping[tuple[str, str], SourceRecord], source: SourceRecord, generation: int = 0) -> None:
    """Note among those by run and name that a source has to be read again, above all its generations that were met."""
    known = again.get((source.run, source.source), source)
    again[source.run, source.source] = replace(known, generation=max(generation, known.generation))


def is_whole(record: RunRecord) -> bool:
    """Return whether nobody is writing to a run, and nothing of it is missing: its sums must be right then."""
    return record.state == COMPLETE


def unfinished_sentence(record: RunRecord, sources: Sequence[SourceRecord]) -> str:
    """Return the sentence about a run of which no sums were compared."""
    if known := unfinished(record):
        return f"{known}; its sums were not compared"
    if record.state == WATCHED:
        return f"{record.run} is being watched: its sums were not compared"
    paths = [source.path for source in sources if source.state != COMPLETE]
    files = f" ({listed(sorted(paths))})" if paths else ""
    return (
        f"{record.run} is being loaded, or its load was cut off (the same load completes it){files}: its sums were not compared"
    )


def counted(source: SourceRecord) -> int | None:
    """Return how many samples the load of a source has counted; None where its account has no count, or they were not stored."""
    notes: Iterable[object] = source.account.get("notes") or ()
    if "samples" not in source.account or any(str(note).startswith(NOT_READ) for note in notes):
        return None
    return int(source.account["samples"])


def samples_differ(source: SourceRecord, stored: int) -> str:
    """Return in words by how much the samples of a source differ from those that its load has counted; empty where they agree."""
    wanted = counted(source) if source.state == COMPLETE else None
    return "" if wanted is None or wanted == stored else f"{source.path} of {source.run}: {stored:,} stored, {wanted:,} counted"


def in_words(labels: Mapping[str, object]) -> str:
    """Return labels that are not empty, for people."""
    return " ".join(f"{name}={value}" for name, value in labels.items() if value != "")
