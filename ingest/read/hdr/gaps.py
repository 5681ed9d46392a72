"""Where lines of an HdrHistogram log were rejected: the stretches of time of which something is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from ingest.core.caveats import Caveat
from ingest.core.missing import Missing, labels_of
from ingest.read.context import Context
from ingest.read.formats import ROW_LABELS
from ingest.read.lacks import REJECTED

SENTENCE = "lines were rejected: their samples are missing"
MOST_GAPS = 64


class Gaps:
    """Keeps in the account the stretches between the lines before and after those that were rejected, in order of the log.

    After a line that was rejected before its time was known, all that follows may be missing until the next good one.
    `first_end_ns` is the end of the first good line, `last_ns` the start of the last.
    """

    def __init__(self, context: Context) -> None:
        self._context = context
        self.first_end_ns: int | None = None
        self.last_ns: int | None = None

    def open(self) -> None:
        """Note a line that was rejected before it was known when it was."""
        if self._opened is None:
            self._add(self.last_ns, None)

    def line(self, start_ns: int, end_ns: int) -> None:
        """Note a line that is good so far."""
        missing = self._context.account.missing
        if missing and (opened := self._opened) is not None:
            missing.remove(opened)
            self._add(opened.from_ns, end_ns)
        if self.first_end_ns is None:
            self.first_end_ns = end_ns
        self.last_ns = start_ns

    def lost(self, start_ns: int, end_ns: int) -> None:
        """Note a line of known time that was rejected."""
        self._add(start_ns, end_ns)

    @property
    def _own(self) -> list[Missing]:
        return [entry for entry in self._context.account.missing if entry.caveat.code == REJECTED]

    @property
    def _opened(self) -> Missing | None:
        """Return the entry of a stretch that has no end yet."""
        missing = self._context.account.missing
        return next((entry for entry in reversed(missing) if entry.caveat.code == REJECTED and entry.to_ns is None), None)

    def _add(self, from_ns: int | None, to_ns: int | None) -> None:
        """Keep a stretch; of very many all together."""
        account, own = self._context.account, self._own
        if len(own) >= MOST_GAPS:
            for old in own:
                account.missing.remove(old)
            begins, ends = [from_ns, *(gap.from_ns for gap in own)], [to_ns, *(gap.to_ns for gap in own)]
            from_ns = None if None in begins else min(begin for begin in begins if begin is not None)
            to_ns = None if None in ends else max(end for end in ends if end is not None)
        labels = labels_of(self._context.series, unknown=ROW_LABELS)
        account.lack(Missing(labels, from_ns, to_ns, None, 0, None, Caveat(REJECTED, account.path, SENTENCE)))


def joined(parts: Sequence[Sequence[Missing]], edges: Sequence[tuple[int | None, int | None]]) -> list[Missing]:
    """Return what parts of a log lack, in order: stretches that are open at the end of a part go on to the next good line.

    `edges` are the end of the first good line of each part and the start of its last.
    """
    all_missing: list[Missing] = []
    for number, missing in enumerate(parts):
        before = next((last for _, last in reversed(edges[:number]) if last is not None), None)
        after = next((first for first, _ in edges[number + 1 :] if first is not None), None)
        for entry in missing:
            gap = entry.caveat.code == REJECTED
            from_ns = before if gap and entry.from_ns is None else entry.from_ns
            to_ns = after if gap and entry.to_ns is None else entry.to_ns
            all_missing.append(replace(entry, from_ns=from_ns, to_ns=to_ns))
    return all_missing
