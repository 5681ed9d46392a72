"""The nouns of findings: `Ground` is what detectors look at, `Claim` what one of them says, `Finding` and `Story` what is shown.

    answer by host, op --> Ground --> detectors: Ground -> list[Claim] --> each window's excess to one claim --> Story

Definitions, thresholds and measured error rates: docs/explanation/findings.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ingest.core.intervals import Bool, Int, Intervals
from ingest.core.missing import Missing
from ingest.core.series import Group
from ingest.query.spans import pieces

Float = NDArray[np.float64]
Labels = tuple[tuple[str, str], ...]

STALL, SLOW_MEMBER, THROTTLED, EPISODE, STEP, DRIFT = "stall", "slow member", "throttled", "episode", "step", "drift"
RHYTHM, MODES, IMBALANCE, OMISSION, EDGE = "rhythm", "modes", "imbalance", "omission", "edge"
KINDS = (STALL, SLOW_MEMBER, THROTTLED, EPISODE, STEP, DRIFT, RHYTHM, MODES, IMBALANCE, OMISSION, EDGE)
SECOND = 1_000_000_000
MEMBER = ("host", "volume", "job", "process")  # what tells the members of a layer apart


@dataclass(frozen=True, slots=True)
class Ground:
    """One run in windows of equal width: G groups (members: host, op and what else was asked) by T windows, dense.

    `groups` are labels of each group; `start_ns` (T) the starts of windows, `step_ns` their width. Of each group and window:
    `samples`, `p50_ns`, `p99_ns`, `top_ns` (the largest value) and `mean_ns`, NaN where nothing completed; `excess_ns`, the
    one-sided area between its quantile function and the reference's times its samples, in ns summed over samples. `whole` are
    windows that lie wholly within the data of the run (the first and the last are parts). `reference` has a row for each group:
    its windows at or below their median p99, merged. `rows` are the windows themselves, `group_of` and `window_of` say where
    each row of it belongs. `warnings` are those of the answer that it was made of,
    `missing` are the samples that it lacks, `lacks` says so; `partly` that this is more than what came after the last row of a
    log. `covered_ns` is from when to when it has data.
    """

    run: str
    groups: tuple[Labels, ...]
    start_ns: Int
    step_ns: int
    zero_ns: int
    relative: bool
    samples: Int
    p50_ns: Float
    p99_ns: Float
    top_ns: Float
    mean_ns: Float
    excess_ns: Float
    whole: Bool
    rows: Intervals[Group]
    group_of: Int
    window_of: Int
    occupied: Int
    reference: Intervals[Group]
    warnings: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    missing: tuple[Missing, ...] = ()
    partly: bool = False
    covered_ns: tuple[int, int] = (-(1 << 62), 1 << 62)

    @property
    def shape(self) -> tuple[int, int]:
        """Return how many groups and windows there are."""
        return len(self.groups), len(self.start_ns)

    def by_bin(self, of_row: Int, codes: int) -> Int:
        """Return the counts by occupied bin of so many codes, (codes, bins): `of_row` has that of each row, -1 for none.

        Quickest where the rows of a group, in time order, have codes that are near each other. Exact below 2^53.
        """
        width = len(self.occupied)
        place = np.zeros(self.rows.layout.bins, np.int64)
        place[self.occupied] = np.arange(width)
        total = np.zeros(codes * width, np.int64)
        for piece, rows in pieces(self.rows):
            kept = np.flatnonzero(of_row[piece] >= 0)
            part = rows.take(kept)
            cell = np.repeat(of_row[piece][kept] * width, np.diff(part.indptr))
            if not len(cell):
                continue
            cell += place[part.bins]
            low = int(cell.min())
            sums = np.bincount(cell - low, part.counts).astype(np.int64)
            total[low : low + len(sums)] += sums
        return total.reshape(codes, width)

    def counts(self, groups: Int, windows: Int) -> Int:
        """Return the counts by bin (all bins of the layout) of some groups in some windows together."""
        chosen = np.zeros(self.shape, np.bool_)
        chosen[np.ix_(groups, windows)] = True
        part = self.rows.take(np.flatnonzero(chosen[self.group_of, self.window_of]))
        held: Int = np.bincount(part.bins, part.counts, self.rows.layout.bins).astype(np.int64)  # exact below 2^53
        return held


@dataclass(frozen=True, slots=True)
class Claim:
    """What a detector says: a kind, who, when, how bad; `cells` (G, T) are the windows whose excess it explains.

    `value_ns` is what was reached, `times` that against what is typical. `certainty` orders claims of one kind: excess of a
    window goes to the first claim in the order of `PRECEDENCE`, then of certainty. `latency_ns` is where in the heat map it
    lies. `details` holds what the sentence of its kind names further (see words.py).
    """

    kind: str
    who: Labels
    start_ns: int
    end_ns: int
    cells: Bool
    value_ns: float | None = None
    times: float | None = None
    samples: int = 0
    missing: float = 0.0
    certainty: float = 0.0
    latency_ns: tuple[int, int] | None = None
    against: str = ""
    details: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class Below:
    """What is seen of a finding in a layer below the client: a verdict (seen, not seen, cannot tell), in words in `text`.

    `members` (host, volume, job, process) are those named. `least` and `most` are bounds, by the layer's bins, of the share of
    the clients' excess that these (or where none is named, all) took longer in the same windows; both at most 1.
    """

    layer: str
    verdict: str
    members: tuple[Group, ...]
    least: float
    most: float
    text: str

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        who = [{name: label for name, label in zip(MEMBER, member, strict=True) if label} for member in self.members]
        shares = {"least": round(self.least, 6), "most": round(self.most, 6)}
        return {"layer": self.layer, "verdict": self.verdict, "who": who, **shares, "text": self.text}

    @staticmethod
    def of(told: Mapping[str, Any]) -> Below:
        """Return what `as_dict` gave."""
        members = tuple(tuple(str(labels.get(name, "")) for name in MEMBER) for labels in told["who"])
        return Below(told["layer"], told["verdict"], members, told["least"], told["most"], told["text"])


@dataclass(frozen=True, slots=True)
class Finding:
    """What happened: a claim with its share of all excess latency, and its words.

    `missing` are completions that did not happen, an estimate (rate of the reference times the gap), `missing_share` that against
    those of the whole run. `consistent` says what it is consistent with, `against` what speaks against it, `command` shows its
    numbers. `below` says of each layer below the client whether it is seen there.
    """

    kind: str
    run: str
    who: Labels
    start_ns: int
    end_ns: int
    text: str
    value: str
    times: float | None
    samples: int
    excess_ns: float
    share: float
    missing: float
    missing_share: float
    latency_ns: tuple[int, int] | None
    consistent: str
    against: str
    command: str
    below: tuple[Below, ...] = ()

    def as_dict(self, zero_ns: int) -> dict[str, Any]:
        """Return it as JSON has it; times are seconds from `zero_ns`, the start of the run."""
        return {
            "kind": self.kind,
            "run": self.run,
            "text": self.text,
            "who": dict(self.who),
            "from_s": round((self.start_ns - zero_ns) / SECOND, 6),
            "to_s": round((self.end_ns - zero_ns) / SECOND, 6),
            "latency_ns": None if self.latency_ns is None else list(self.latency_ns),
            "value": self.value,
            "times": self.times,
            "samples": self.samples,
            "excess_ns": round(self.excess_ns),
            "share": round(self.share, 6),
            "missing": round(self.missing),
            "missing_share": round(self.missing_share, 6),
            "consistent": self.consistent,
            "against": self.against,
            "command": self.command,
            **({"below": [each.as_dict() for each in self.below]} if self.below else {}),
        }


@dataclass(frozen=True, slots=True)
class Story:
    """What happened in a run: findings, those that account for most first; `unexplained` is the share of excess of none of them.

    Shares of findings and `unexplained` add up to 1 where there is any excess. `nothing` is the sentence where nothing was
    found, `reference` says what is taken for typical, `lacks` what of the run is not known: no finding can be about that.
    """

    run: str
    findings: Sequence[Finding]
    excess_ns: float
    unexplained: float
    nothing: str
    reference: str
    zero_ns: int
    step_ns: int
    relative: bool
    caveats: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        """Return it as JSON has it."""
        return {
            "run": self.run,
            "findings": [finding.as_dict(self.zero_ns) for finding in self.findings],
            "excess_ns": round(self.excess_ns),
            "unexplained": round(self.unexplained, 6),
            "nothing": self.nothing,
            "reference": self.reference,
            "window_s": self.step_ns / SECOND,
            "caveats": list(self.caveats),
            "lacks": list(self.lacks),
        }
