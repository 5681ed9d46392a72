"""What became of everything that was there: rows accepted, repaired, rejected, each reason with path:line."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ingest.core.coverage import HELD, STATED, STRETCHES, Caveat, Missing
from ingest.core.errors import InputError
from ingest.core.intervals import Histogram

if TYPE_CHECKING:
    from ingest.core.stated import Stated

FINDINGS_KEPT = 5
NOT_PLAIN = ("totals", "last", "findings", "missing", "caveats", "stated", "_lines")


class Finding(NamedTuple):
    """One place where something was repaired or rejected; `action` is one of the two words."""

    action: str
    reason: str
    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}: {self.action}: {self.reason}"


@dataclass(slots=True)
class Account:
    """The running account of one source, or of many added together.

    `rows` is what was there; each row is accepted, repaired, rejected or skipped, and counted once. `repaired` and `rejected`
    count rows by reason (a row with two repairs counts under both), `skipped` those that were understood and left out.
    `shadowed` counts samples that were read and left out, because another log of the same I/Os is taken. `findings` keeps the
    first places of each reason, `totals` what a source held in all, by op, `last` the last row of a histogram log. `whole_runs`
    are what the tool itself says of whole runs that have no histogram, `whole_rows` the exact values of rows over a whole run, as
    plain values (see `whole_runs`), `schedule` what it shows of when requests were due (see `read/schedule.py`). `missing` are
    samples that completed and that the source does not hold, `cut_short` why its file ended early, `caveats` what holds for
    its run as a whole. `stated` is what its tool counts of it, and of jobs that have no source; of what is held against that
    `totals` are kept as counts. `stretches` are what single operations of other files are held against. `stored` are samples of
    all rows that went into documents, None where none are made: more than `samples` where rows of further kinds are derived from
    those of the file (response and wait time, corrected data).
    """

    path: str = ""
    rows: int = 0
    accepted: int = 0
    samples: int = 0
    saturated: int = 0
    shadowed: int = 0
    rows_repaired: int = 0
    rows_rejected: int = 0
    rows_skipped: int = 0
    repaired: Counter[str] = field(default_factory=Counter)
    rejected: Counter[str] = field(default_factory=Counter)
    skipped: Counter[str] = field(default_factory=Counter)
    notes: list[str] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    totals: dict[str, Histogram] = field(default_factory=dict)
    last: dict[str, Any] = field(default_factory=dict)
    whole_runs: list[dict[str, Any]] = field(default_factory=list)
    whole_rows: list[dict[str, Any]] = field(default_factory=list)
    schedule: list[str] = field(default_factory=list)
    missing: list[Missing] = field(default_factory=list)
    cut_short: str = ""
    caveats: list[Caveat] = field(default_factory=list)
    stated: list[Stated] = field(default_factory=list)
    stretches: list[dict[str, Any]] = field(default_factory=list)
    stored: int | None = None
    _lines: list[int] = field(default_factory=list)

    @property
    def taken(self) -> int:
        """Return how many rows were taken, repaired or as they were."""
        return self.accepted + self.rows_repaired

    def accept(self, rows: int) -> None:
        """Count rows that were taken as they are."""
        self.rows += rows
        self.accepted += rows

    def reject(self, reason: str, lines: Iterable[int], more: int = 0) -> None:
        """Count rows that were left out, at these line numbers, and `more` whose lines are not kept."""
        places = list(lines)
        self._lines.extend(places)
        self._record("rejected", reason, places, self.rejected, more)
        self.rows_rejected += len(places) + max(0, more)
        self.rows = self.accepted + self.rows_repaired + self.rows_rejected + self.rows_skipped

    def repair(self, rows: int, reasons: dict[str, list[int]]) -> None:
        """Count `rows` rows that were taken after a repair, with the line numbers of each reason."""
        self.rows_repaired += rows
        self.rows = self.accepted + self.rows_repaired + self.rows_rejected + self.rows_skipped
        for reason, lines in reasons.items():
            self._record("repaired", reason, lines, self.repaired)

    def skip(self, reason: str, rows: int) -> None:
        """Count rows that are what they should be and are left out all the same."""
        if rows:
            self.rows += rows
            self.rows_skipped += rows
            self.skipped[reason] += rows

    def note(self, text: str) -> None:
        """Keep a sentence about the whole source."""
        if text not in self.notes:
            self.notes.append(text)

    def lack(self, entry: Missing) -> None:
        """Keep what the source does not hold."""
        if entry not in self.missing:
            self.missing.append(entry)

    @property
    def rejected_lines(self) -> list[int]:
        """Return the lines that were rejected so far, in order."""
        return sorted(self._lines)

    def _record(self, action: str, reason: str, lines: Sequence[int], counter: Counter[str], more: int = 0) -> None:
        kept = max(0, FINDINGS_KEPT - counter[reason])
        self.findings.extend(Finding(action, reason, self.path, line) for line in lines[:kept])
        if lines or more > 0:
            counter[reason] += len(lines) + max(0, more)

    def add(self, other: Account) -> None:
        """Add the account of another source."""
        for name in ("rows", "accepted", "samples", "saturated", "shadowed", "rows_repaired", "rows_rejected", "rows_skipped"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        for total, more in ((self.repaired, other.repaired), (self.rejected, other.rejected), (self.skipped, other.skipped)):
            total.update(more)
        if other.stored is not None:
            self.stored = (self.stored or 0) + other.stored
        self.notes.extend(note if not other.path else f"{other.path}: {note}" for note in other.notes)
        for name in ("findings", "whole_runs", "whole_rows", "schedule", "missing"):
            getattr(self, name).extend(getattr(other, name))
        self.caveats.extend(caveat for caveat in other.caveats if caveat not in self.caveats)

    def replace(self, other: Account) -> None:
        """Become equal to the account that a worker process kept for the same source."""
        if other is not self:
            for name in self.__slots__:
                setattr(self, name, getattr(other, name))

    def to_dict(self) -> dict[str, Any]:
        """Return all of the account but `totals` as plain values, as `from_dict` takes them."""
        plain = {column.name: getattr(self, column.name) for column in fields(self) if column.name not in NOT_PLAIN}
        findings = [[finding.action, finding.reason, finding.path, finding.line] for finding in self.findings]
        missing = [[entry.run, entry.to_dict()] for entry in self.missing]
        return {**plain, "findings": findings, "missing": missing, "caveats": [caveat.to_dict() for caveat in self.caveats]}

    @staticmethod
    def from_dict(stored: Mapping[str, Any]) -> Account:
        """Return the account that `to_dict` gave."""
        counters = {name: Counter(stored[name]) for name in ("repaired", "rejected", "skipped")}
        missing = [Missing.from_dict(run, entry) for run, entry in stored.get("missing", ())]
        findings = [Finding(*finding) for finding in stored["findings"]]
        caveats = [Caveat.from_dict(caveat) for caveat in stored.get("caveats", ())]
        return Account(**{**stored, **counters, "findings": findings, "missing": missing, "caveats": caveats})

    def troubles(self) -> dict[str, Any]:
        """Return how many rows were repaired, rejected and skipped, by reason, as plain values."""
        return {name: dict(sorted(getattr(self, name).items())) for name in ("repaired", "rejected", "skipped")}

    def as_dict(self) -> dict[str, Any]:
        """Return the account as plain values, for run records and `--json`."""
        return {
            **{name: getattr(self, name) for name in ("rows", "accepted", "samples", "saturated", "shadowed")},
            **self.troubles(),
            "notes": list(self.notes),
            "findings": [str(finding) for finding in self.findings],
            "missing": {str(n): entry.to_dict() for n, entry in enumerate(self.missing, 1)},
            **({"caveats": {str(n): caveat.to_dict() for n, caveat in enumerate(self.caveats, 1)}} if self.caveats else {}),
            **({"schedule": list(self.schedule)} if self.schedule else {}),
            **({STATED: {str(n): entry.to_dict() for n, entry in enumerate(self.stated, 1)}} if self.stated else {}),
            **({HELD: {op: int(total.counts.sum()) for op, total in self.totals.items()}} if self.stated else {}),
            **({} if self.stored is None else {"stored": self.stored}),
            # By their number, since a server takes a list of objects for one with lists.
            **{
                name: {str(number): entry for number, entry in enumerate(entries, 1)}
                for name in ("whole_runs", "whole_rows", STRETCHES)
                if (entries := getattr(self, name))
            },
        }


def nothing_taken(account: Account, paths: Iterable[Path]) -> InputError:
    """Return the error for sources of which no row could be taken: a query on them is refused with it, and a load."""
    reasons = [*account.rejected, *filter(None, [account.cut_short]), *account.notes]
    detail = f": {reasons[0]}" if reasons else ""
    return InputError(f"no row could be taken{detail}", ", ".join(str(path) for path in paths))
