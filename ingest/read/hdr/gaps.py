"""Where lines of an HdrHistogram log were rejected: the stretches of time of which something is missing."""

from __future__ import annotations

from ingest.caveats import Caveat
from ingest.missing import Missing, labels_of
from ingest.read.context import Context
from ingest.read.formats import ROW_LABELS

REJECTED = "rejected-rows"
SENTENCE = "lines were rejected: what they held is missing"
MOST_GAPS = 64


class Gaps:
    """Keeps the stretches between the lines before and after those that were rejected, in order of the log."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._last: int | None = None
        self._open = False
        self._spans: list[tuple[int | None, int | None]] = []

    @property
    def any(self) -> bool:
        """Return whether a line was rejected."""
        return self._open or bool(self._spans)

    def open(self) -> None:
        """Note a line that was rejected before it was known when it was."""
        self._open = True

    def line(self, start_ns: int, end_ns: int) -> None:
        """Note a line that is good so far."""
        if self._open:
            self._spans.append((self._last, end_ns))
            self._open = False
        self._last = start_ns

    def lost(self, start_ns: int, end_ns: int) -> None:
        """Note a line of known time that was rejected."""
        self._spans.append((start_ns, end_ns))

    def settle(self) -> None:
        """Keep all stretches in the account, many as one; nothing comes after the last line."""
        if self._open:
            self._spans.append((self._last, None))
            self._open = False
        spans = list(dict.fromkeys(self._spans))
        if len(spans) > MOST_GAPS:
            lows, highs = ([span[edge] for span in spans] for edge in (0, 1))
            known_lows, known_highs = ([one for one in ends if one is not None] for ends in (lows, highs))
            low = None if None in lows else min(known_lows)
            spans = [(low, None if None in highs else max(known_highs))]
        labels = labels_of(self._context.series, unknown=ROW_LABELS)
        caveat = Caveat(REJECTED, self._context.account.path, SENTENCE)
        for low, high in spans:
            self._context.account.lack(Missing(labels, low, high, None, 0, None, caveat))
