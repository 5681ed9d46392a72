"""The breaths and callbacks of a source as they are kept: under labels, at the time of its run."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from ingest.core.breaths import BREATH, Float, Kept, Work, joined, sampled, windows_of
from ingest.core.series import Series
from ingest.read.context import TSC_HZ
from ingest.read.format_names import SNABB
from ingest.read.snabb.breaths import breaths
from ingest.read.snabb.callbacks import CALLBACKS, callbacks
from ingest.read.snabb.timeline import Timeline, timeline
from ingest.read.sources import Source

MOST_MOVED = 1 << 50


def kept_of(source: Source) -> Kept | None:
    """Return a source's breaths as they are kept; None where it is no timeline. InputError as `timeline`."""
    if source.format != SNABB:
        return None
    recorded = timeline(source.path, int(source.context.options.get(TSC_HZ, "0")))
    zero = 0 if recorded.real else (source.context.zero.epoch_ns or 0)
    shift, labels = zero + source.context.offset_ns, source.context.series.replaced(kind="")
    whole = breaths_of(recorded, labels, shift)
    parts = [windows_of(whole), *(windows_of(part) for part in callbacks_of(recorded, labels, shift))]
    return Kept(joined(parts), sampled(whole))


def breaths_of(recorded: Timeline, labels: Series, shift_ns: int) -> Work:
    """Return the breaths of a timeline; `shift_ns` is added to when they ended."""
    rows = breaths(recorded)
    return Work(
        table=(labels.replaced(op=BREATH),),
        series=np.zeros(len(rows), np.int64),
        rate=rows.rate,
        end_ns=rows.start_ns + rows.lasted_ns + shift_ns,
        number=rows.number,
        cycles=rows.cycles,
        packets=credible(rows.packets),
        bytes=credible(rows.bytes),
        bits=credible(rows.bits),
    )


def callbacks_of(recorded: Timeline, labels: Series, shift_ns: int) -> Iterator[Work]:
    """Yield the callbacks of a timeline whose packets are known, if there are any."""
    rows = callbacks(recorded, recorded.lags())
    packets = credible(rows.packets)
    counted = np.flatnonzero(~np.isnan(packets))
    if not len(counted):
        return
    table: dict[Series, int] = {}
    codes = np.full(len(recorded.messages), -1, np.int64)
    for code, message in enumerate(recorded.messages):
        if (name := message.name.lower()) in CALLBACKS:
            series = labels.replaced(op=name, job=message.app)
            codes[code] = table.setdefault(series, len(table))
    end = rows.end[counted]
    yield Work(
        table=tuple(table),
        series=codes[recorded.codes[end]],
        rate=rows.rate[counted],
        end_ns=recorded.stamp_ns[end] + shift_ns,
        number=recorded.place[end],
        cycles=rows.cycles[counted],
        packets=packets[counted],
        bytes=credible(rows.bytes[counted]),
        bits=np.full(len(counted), np.nan),
    )


def credible(moved: Float) -> Float:
    """Return packets or bytes in whole numbers, NaN for more than a breath can move: there an argument was damaged."""
    with np.errstate(invalid="ignore"):
        return np.where(moved < MOST_MOVED, np.floor(moved), np.nan)
