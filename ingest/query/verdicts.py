"""Whether an objective was met: a verdict for each group of a run, and the episodes in which it was violated."""

from __future__ import annotations

import hashlib
import json
from dataclasses import field
from fractions import Fraction
from typing import TYPE_CHECKING

from ingest.core.dataclass import dataclass

if TYPE_CHECKING:  # stores keep episodes, and need no reader of YAML for that
    from ingest.core.objective import Objective

OPEN, ENDED, PROVISIONAL = "open", "ended", "provisional"
MET, VIOLATED, UNKNOWN = "met", "violated", "cannot tell"
ID_BYTES = 15

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class Episode:
    """A stretch in which an objective was violated, from the start of its first violated window to the end of its last.

    `percentile` (as it was written), `threshold_ns` and `window_ns` are the promise, `kind` is what was timed. `peak_ns` is the
    highest percentile, None where nothing completed in any violated window; a lower bound if `peak_open`. `samples` completed
    between start and end. `windows` were violated: `silent` of them without completions, `thin` with too few to carry the
    percentile. `worst_host` made most samples above the threshold. `state` is open, ended or provisional. `phase` is the part of
    the run that was judged, in words; stores do not keep it.
    """

    objective: str
    run: str
    labels: Labels
    kind: str
    percentile: str
    threshold_ns: int
    window_ns: int
    start_ns: int
    end_ns: int
    peak_ns: int | None
    peak_open: bool
    samples: int
    windows: int
    silent: int
    thin: int
    worst_host: str
    state: str
    phase: str = field(default="", compare=False)

    @property
    def group(self) -> str:
        """Return the labels in words: host ceph-b, op read; `all` where there are none."""
        return ", ".join(f"{name} {value or '-'}" for name, value in self.labels) or "all"

    @property
    def id(self) -> str:
        """Return the identity of this episode: a digest of objective, run, labels and start, as 30 hex digits."""
        words = json.dumps([self.objective, self.run, self.labels, self.start_ns])
        return hashlib.blake2b(words.encode("utf-8", "surrogatepass"), digest_size=ID_BYTES).hexdigest()


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether one group of a run met an objective: how many final windows there were, how many were violated, the episodes.

    `silent` windows are without completions, `thin` ones too small to carry the percentile, `provisional` ones not final yet.
    `unknown` ones lack samples, so that it cannot be determined whether they are violated; `possible` says that there is an
    episode if they are. The episodes are those that are certain whatever is missing. `not_judged` final windows do not lie wholly
    in the phases of the objective.
    """

    objective: Objective
    run: str
    labels: Labels
    kind: str
    windows: int
    silent: int
    thin: int
    violated: int
    provisional: int
    episodes: tuple[Episode, ...]
    zero_ns: int = 0
    relative: bool = False
    unknown: int = 0
    possible: bool = False
    not_judged: int = 0

    @property
    def share(self) -> Fraction:
        """Return the share of windows that were violated, 0 where there is no window."""
        return Fraction(self.violated, self.windows or 1)

    @property
    def outcome(self) -> str:
        """Return met, violated, or "cannot tell" where missing samples decide.

        The promise is kept if the share of violated windows is within the budget, or without a budget if no episode is certain.
        """
        budget = self.objective.budget
        if budget is not None:
            if self.share > budget:
                return VIOLATED
            return UNKNOWN if Fraction(self.violated + self.unknown, self.windows or 1) > budget else MET
        if any(episode.state != PROVISIONAL for episode in self.episodes):
            return VIOLATED
        return UNKNOWN if self.possible else MET

    @property
    def met(self) -> bool:
        """Return whether it is certain that the promise was kept."""
        return self.outcome == MET
