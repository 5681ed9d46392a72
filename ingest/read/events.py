"""Single events: operations whose start and end are known, as raw logs and traces hold them, columnar like the waist.

A reader of events yields bounded chunks of them; `event_rows` makes histograms by window of them. What needs the moment of
each one (attribution while in flight, the offset within a second) is worked out from the same chunks, exactly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from ingest.core.errors import counted
from ingest.core.events import Events
from ingest.core.intervals import Int
from ingest.core.layout import LogLinear, hdr_half
from ingest.core.series import OFFSET
from ingest.read.account import Account

LATENCY_BITS = 47
DAY_NS = 86_400 * 10**9
FIO_HALF = 64
EXPONENT_BIAS, MANTISSA_BITS = 1023, 52
MOMENTS = "moments (when something was seen), not latencies: tailboard offsets shows them"


def latencies(chunks: Iterable[Events], account: Account) -> Iterator[Events]:
    """Yield the chunks without what has a time alone (kind offset); how much that was is noted in the account."""
    moments = 0
    for chunk in chunks:
        timed = np.array([series.kind != OFFSET for series in chunk.table], np.bool_)
        if timed.all():
            yield chunk
            continue
        kept = chunk.take(np.flatnonzero(timed[chunk.series]))
        moments += chunk.samples - kept.samples
        if len(kept):
            yield kept
    if moments:
        account.note(f"{counted(moments, 'sample is', 'samples are')} {MOMENTS}")


def events_layout(digits: int = 0) -> LogLinear:
    """Return the layout that events are binned in: nanoseconds, up to 39 hours, midpoints reported.

    Without digits as fio has it, 64 bins an octave (error 1/128), so that merging with fio's histograms is exact; else as
    fine as HdrHistogram with so many digits (2: 1/256, 3: 1/2048).
    """
    half = hdr_half(digits) if digits else FIO_HALF
    octaves = LATENCY_BITS - half.bit_length()
    return LogLinear(half, (octaves + 2) * half, open_ended=False)


def bin_of(latency_ns: Int, half: int) -> Int:
    """Return the bin of each latency in `events_layout`: the exponent and first bits of a float, exact below 2^53."""
    bits = half.bit_length() - 1
    bins: Int = latency_ns.astype(np.float64).view(np.int64)
    bins >>= MANTISSA_BITS - bits
    bins -= (EXPONENT_BIAS - 1 + bits) * half
    small = latency_ns < half
    if small.any():
        np.copyto(bins, latency_ns, where=small)
    return bins


def newest_ns(chunks: Iterable[Events]) -> int:
    """Return when the last operation ended, in ns of the stamps; 0 where there is none."""
    return max((int(events.end_ns.max()) for events in chunks if len(events)), default=0)
