"""Names of indices and documents: an index ends in a period of the document's own time, an id identifies the document.

An index: `tailboard-intervals-2026.11` with period month, `...-2026.w47` with week, `...-2026.11.20` with day. An id:
`u1Zc3gJ0sV6m8Wm5b4Yq1db3b6e8`, a digest of run, labels, segment and step, then the window's number in hex.
"""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.errors import InputError
from ingest.core.intervals import Int
from ingest.core.series import LABELS, Series

PERIODIC = ("intervals", "rollups", "points")
PERIODS = ("month", "week", "day")
DAY_NS = 86_400_000_000_000
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DIGEST_BYTES = 15
LAST_DAY = 2_932_896  # 9999-12-31


@dataclass(frozen=True, slots=True)
class Names:
    """The names of a site's indices: their prefix, and the period that each of them covers."""

    prefix: str
    period: str = "month"

    def all(self, index: str) -> str:
        """Return the pattern of all indices of a kind that ends in a period."""
        return f"{self.prefix}-{index}-*"

    def one(self, index: str) -> str:
        """Return the name of an index that is the only one of its kind, or of its template."""
        return f"{self.prefix}-{index}"

    def pattern(self, index: str) -> str:
        """Return the pattern of all indices of a kind, whether it ends in a period or not."""
        return self.all(index) if index in PERIODIC else self.one(index)

    def of(self, index: str, start_ns: Int) -> list[str]:
        """Return the index of each window start; InputError for a time outside the years 1 to 9999."""
        days, place = np.unique(start_ns // DAY_NS, return_inverse=True)
        names = [f"{self.prefix}-{index}-{self._period(int(day))}" for day in days.tolist()]
        return [names[at] for at in place.tolist()]

    def _period(self, day: int) -> str:
        if not -719_162 <= day <= LAST_DAY:
            raise InputError("a time stamp lies outside the years 1 to 9999: check the clock of the source, or give --t0")
        date = EPOCH + timedelta(days=day)
        if self.period == "week":
            year, week, _ = date.isocalendar()
            return f"{year:04d}.w{week:02d}"
        return date.strftime("%Y.%m.%d" if self.period == "day" else "%Y.%m")


def digest(words: Sequence[object]) -> str:
    """Return 20 characters that stand for the words."""
    text = "\x1f".join(str(word) for word in words)
    hashed = hashlib.blake2b(text.encode("utf-8", "surrogateescape"), digest_size=DIGEST_BYTES)
    return base64.urlsafe_b64encode(hashed.digest()).decode()


def series_digest(series: Series, step_ns: int) -> str:
    """Return the digest that identifies the documents of a series: of run, labels, segment ordinal, step."""
    return digest([*(getattr(series, label) for label in LABELS), series.segment, step_ns])


def window_ids(prefixes: Sequence[str], series: Int, start_ns: Int, step_ns: int) -> list[str]:
    """Return the id of each window of the series that `series` are codes of."""
    windows = (start_ns // step_ns).tolist() if step_ns else [0] * len(start_ns)
    return [f"{prefixes[code]}{window:x}" for code, window in zip(series.tolist(), windows, strict=True)]
