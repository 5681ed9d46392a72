"""What a fio histogram log lacks, as entries of its account: damaged bins, the last interval, rows that were rejected."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from ingest.core.caveats import Caveat
from ingest.core.missing import Missing, labels_of
from ingest.core.series import MIXED, Series
from ingest.read.context import Context
from ingest.read.fio import repairs
from ingest.read.lacks import AGAIN, ALL_LOGS

if TYPE_CHECKING:
    from ingest.read.summary import Summary

MASKED, UNWRITTEN, NO_SUMMARY, REJECTED = "damaged-bins", "last-interval", "no-summary", "rejected-rows"
LOST, LATE, DOUBTFUL, UNPLACED = "lost-rows", "late-first-row", "perhaps-compounded", "long-last-interval"
ABSENT = "jobs-without-log"
KEEP_JSON = "keep fio's JSON (json+) in the folder of its logs"
WITH_BINS = "run fio with --output-format=json+"
NEWER = "run fio 3.17 or later, or log each I/O as well (write_lat_log)"
NO_LAST = "I/Os that completed after the last row are missing: only fio's JSON shows how many"
LONG_LAST = (
    "its last row ends long before the run: what fio's JSON counts beyond the rows is spread evenly over that time; "
    "rows were lost at the end of the log, or nothing completed"
)
LATE_FIRST = (
    "its first row is stamped long after the beginning: it is taken to be as wide as a row is; rows were lost before it, "
    "or it began so late"
)
PLACE = "their samples are missing there, or counted at the end where fio's JSON has them"
MOST_GAPS = 64

Span = tuple[int, int]


class Lacks:
    """Keeps in the account what a log lacks. `span` of each entry is (from, to) in ns."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._account = context.account

    def damaged(self, op: str, span: Span, lost: int, from_ns: int, summaries: Sequence[Summary], sentence: str) -> None:
        """Keep samples in damaged bins: so many, of `from_ns` or more."""
        self._keep(MASKED, op, span, lost, (from_ns, _highest(summaries)), (sentence, NEWER))

    def damaged_unknown(self, op: str, span: Span, from_ns: int) -> None:
        """Keep samples in damaged bins in unknown number."""
        self._keep(MASKED, op, span, None, (from_ns, None), (repairs.LOST_UNKNOWN, NEWER))

    def doubtful(self, op: str, span: Span) -> None:
        """Keep that the rows may count samples of earlier rows again, so that no count of them is sure."""
        self._keep(DOUBTFUL, op, span, None, (0, None), (repairs.DOUBTFUL, ""))

    def unwritten(self, op: str, span: Span, count: int, summaries: Sequence[Summary], sentence: str) -> None:
        """Keep samples that fio counted and that no row holds; only their extremes are known."""
        least = min(summary.min_ns for summary in summaries)
        self._keep(UNWRITTEN, op, span, count, (least, _highest(summaries)), (sentence, WITH_BINS))

    def of_absent(self, op: str, span: Span, count: int | None, summaries: Sequence[Summary], sentence: str) -> None:
        """Keep samples of a group of jobs of which a log is not there: their extremes are known, perhaps their number."""
        bounds = min(summary.min_ns for summary in summaries), _highest(summaries)
        self._keep(ABSENT, op, span, count, bounds, (sentence, ALL_LOGS))

    def after_last(self, op: str, span: Span) -> None:
        """Keep what completed after the last row of a log without fio's JSON."""
        self._keep(NO_SUMMARY, op, span, None, (0, None), (NO_LAST, KEEP_JSON))

    def rejected(self, op: str, spans: Iterable[Span], summaries: Sequence[Summary] = ()) -> None:
        """Keep what rows held that were rejected, in unknown number; many stretches are kept as one."""
        self._keep_gaps(REJECTED, op, spans, summaries, (f"{op}: rows were rejected: their samples are missing", ""))

    def lost(self, op: str, spans: Iterable[Span], summaries: Sequence[Summary] = ()) -> None:
        """Keep what rows held that the log lacks, in unknown number; many stretches are kept as one."""
        self._keep_gaps(LOST, op, spans, summaries, (f"{op}: rows that fio wrote are not in the log: {PLACE}", AGAIN))

    def late(self, op: str, spans: Iterable[Span], summaries: Sequence[Summary] = ()) -> None:
        """Keep that the first row came so late that others may have been before it, or that what it holds may be older."""
        self._keep_gaps(LATE, op, spans, summaries, (f"{op}: {LATE_FIRST}", AGAIN))

    def unplaced(self, op: str, span: Span, summaries: Sequence[Summary]) -> None:
        """Keep that the last interval is too long to be one: its samples are counted, and when they completed is not known."""
        least = min((summary.min_ns for summary in summaries), default=0)
        self._keep(UNPLACED, op, span, None, (least, _highest(summaries)), (f"{op}: {LONG_LAST}", AGAIN))

    def _keep_gaps(self, code: str, op: str, spans: Iterable[Span], summaries: Sequence[Summary], words: tuple[str, str]) -> None:
        gaps = sorted(set(spans))
        if len(gaps) > MOST_GAPS:
            gaps = [(gaps[0][0], max(high for _, high in gaps))]
        bounds = min((summary.min_ns for summary in summaries), default=0), _highest(summaries)
        for span in gaps:
            self._keep(code, op, span, None, bounds, words)

    def _keep(
        self, code: str, op: str, span: Span, count: int | None, bounds: tuple[int, int | None], words: tuple[str, str]
    ) -> None:
        series: Series = self._context.series.replaced(op="" if op in (MIXED, "all") else op, kind="completion")
        in_group = self._context.siblings or self._context.absent
        unknown = ("job",) if in_group else ()  # the sum of a group of jobs is that of none of them
        caveat = Caveat(code, self._account.path, *words)
        labels = labels_of(series, unknown=unknown)
        low, high = bounds
        if high is not None:
            high = max(low, high)
        self._account.lack(Missing(labels, span[0], max(span), count, low, high, caveat))


def _highest(summaries: Sequence[Summary]) -> int | None:
    return max((summary.max_ns for summary in summaries), default=None)
