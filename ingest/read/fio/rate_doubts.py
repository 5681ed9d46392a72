"""Why counts that come from fio's log of IOPS alone may be wrong by more than its rounding.

fio before 3.18 divides what was done since its last tick by the time since another moment: the start, moved on by a window at
each tick. Once a tick comes late (the start of a job, a busy machine), all rates after it are too low by the same factor, up to a
half: 377 ms in place of 250 ms make 5,898 I/Os 3,765. Neither the log nor that of bandwidth shows it: both are divided alike.

Source: fio stat.c (add_iops_samples, __add_samples), commit cdb8308d; measured on logs of fio 2.16.
"""

from __future__ import annotations

from ingest.core.caveats import Caveat
from ingest.core.intervals import Int
from ingest.core.missing import Missing, labels_of
from ingest.read.context import Context
from ingest.read.fio.window_counts import Beside

FROM_RATES = "counts come only from fio's log of IOPS"
CODE = "counts-from-rates"
EXACT_RATES_SINCE = (3, 18)
UNLIKE = 0.05
REMEDY = "keep fio's JSON (--output-format=json) in the folder of its logs"
TOO_LOW = "fio before 3.18 may write all of its rates too low, by up to a half"


def why(iops: Beside, bandwidth: Beside | None, direction: int, stamps_ms: Int, begin_ms: int, *, exact_rates: bool) -> str:
    """Return why the counts of a direction may be wrong; empty text where nothing speaks against the log of IOPS."""
    covered = iops.covered_ms(direction, stamps_ms, begin_ms)
    unlogged = iops.unlogged_ms(direction, stamps_ms, begin_ms)
    reasons = [] if exact_rates else [TOO_LOW]
    if unlogged > max(2 * iops.tick_ms(stamps_ms), UNLIKE * (covered + unlogged)):
        reasons.append(f"it lacks rows for {unlogged:,} ms in which there are latencies: a rate was taken for them")
    if bandwidth is not None:
        other = bandwidth.covered_ms(direction, stamps_ms, begin_ms)
        if abs(other - covered) > UNLIKE * max(other, covered):
            reasons.append(f"its rows are of {covered:,} ms, those of the log of bandwidth beside it of {other:,} ms")
    return "; ".join(reasons)


def entry(context: Context, op: str, span_ns: tuple[int, int], reason: str) -> Missing:
    """Return that I/Os of an op may be missing from counts, in unknown number, and why."""
    sentence = f"{op}: {FROM_RATES}: {reason}"
    caveat = Caveat(CODE, context.account.path, sentence, REMEDY)
    return Missing(labels_of(context.series.replaced(op=op)), *span_ns, None, 0, None, caveat)
