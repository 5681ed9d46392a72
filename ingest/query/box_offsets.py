"""When within the second the events of a box's time happened, beside those of all other times: for sources of single events.

Offsets are kept without latencies, so these are events of all latencies in the seconds that the box touches. The page counts the
same from the ticks that it holds (view/page/panels/offsets.js).
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from ingest.core.dataclass import dataclass
from ingest.core.grid import MS, SECOND
from ingest.core.missing import ANY_TIME
from ingest.query.offsets.overview import OffsetOverview, offset_overviews
from ingest.query.origin import Origin
from ingest.query.question import Question
from ingest.query.spans import Bounds

Int = NDArray[np.int64]

ROWS = 50  # of 20 ms, which all resolutions divide
LEAST_TIMES, LEAST_SPREADS = 1.5, 4


@dataclass(frozen=True, slots=True)
class BoxOffsets:
    """Events by offset within the second, in ROWS rows: in the seconds that the box touches, and in all others of the runs."""

    inside: Int
    outside: Int

    @property
    def first(self) -> int | None:
        """Return the row that has most more of the events inside than of the others; None where none stands out.

        One stands out with 1.5 times the share, and more than is expected by four standard deviations of both, were events
        independent.
        """
        sums = int(self.inside.sum()), int(self.outside.sum())
        if not all(sums):
            return None
        shares = self.inside / sums[0], self.outside / sums[1]
        row = int(np.argmax(shares[0] - shares[1]))
        inside, expected = float(self.inside[row]), float(shares[1][row]) * sums[0]
        clear = shares[0][row] >= LEAST_TIMES * shares[1][row] and inside - expected > LEAST_SPREADS * (inside + expected) ** 0.5
        return row if clear else None


def box_offsets(origin: Origin, question: Question, spans: Mapping[str, Bounds]) -> BoxOffsets | None:
    """Return the offsets of a box that was used from when to when in each run (`Explained.spans`); None without single events.

    Runs and labels of the question select.
    """
    overviews = offset_overviews(origin, {run: run for run in spans}, question, full=True)
    if not overviews:
        return None
    sides = np.sum([_sides(overview, spans[overview.ticks.run]) for overview in overviews], axis=0)
    return BoxOffsets(*sides)


def _sides(overview: OffsetOverview, span: Bounds) -> Int:
    """Return the events of a run by row: inside, outside."""
    fine, index, count = overview.ticks.resolution, overview.ticks.fine.index, overview.ticks.fine.count
    column, within = np.divmod(index, 1000 // fine.tick_ms)
    begin, end = (edge if edge is not None else limit for edge, limit in zip(span, ANY_TIME, strict=True))
    start = column * fine.seconds * SECOND
    during = (start < end) & (start + fine.seconds * SECOND > begin)
    row = within * fine.tick_ms * ROWS // (SECOND // MS)
    sums = np.zeros((2, ROWS), np.int64)
    np.add.at(sums, (np.where(during, 0, 1), row), count)
    return sums
