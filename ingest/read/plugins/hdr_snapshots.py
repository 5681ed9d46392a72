"""HdrHistogram snapshots as JSON: `cockroach workload run ... --histograms FILE`.

    {"Name": "read", "Hist": {"LowestTrackableValue": 100000, "HighestTrackableValue": 100000000000, "SignificantFigures": 1,
      "Counts": [0, 3, ...]}, "Elapsed": 1000001000, "Now": "2026-11-22T06:00:01Z"}

Values are in ns; counts are those of [Now - Elapsed, Now), by bins of HdrHistogram: the first are 2^floor(log2(lowest)) wide.

Source: HdrHistogram's hdr.go (Snapshot, Import), cockroach's histogram.SnapshotTick; a generator of the same library was run.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from ingest.core.coverage import AGAIN, Caveat, Missing, labels_of
from ingest.core.intervals import Int
from ingest.core.layout import Layout, hdr_half, hdr_layout
from ingest.core.units import UNITS_NS, iso_ns
from ingest.read.context import Context
from ingest.read.format_names import HDR_SNAPSHOTS
from ingest.read.polls import Lost, Poll, Polls, WrongError, count, objects_of, polled, sparse, whole, word
from ingest.read.sample_file import LOST

GAP = "between two snapshots of an operation at least one is not there: what was counted then is missing"
MOST_DIGITS, MOST_LOWEST = 5, 1 << 40


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the snapshots of a file to `held`."""
    for line, entry in objects_of(path, context):
        lost = Lost(context.series)
        try:
            series = context.series.replaced(op=word(entry.get("Name")), kind="service")
            lost = Lost(series)
            stamp, elapsed = iso_ns(str(entry.get("Now"))), count(entry.get("Elapsed"))
            if stamp is None:
                raise WrongError("Now is no time")
            lost = Lost(series, stamp - elapsed, stamp)
            body = entry.get("Hist")
            if not isinstance(body, dict):
                raise WrongError("no histogram in it")
            held.add(Poll(line, series, stamp - elapsed, stamp, *_snapshot(body), total=False))
        except WrongError as error:
            held.reject(str(error), line, lost)
    if not context.account.rejected:
        _look_for_gaps(context, held)


def _look_for_gaps(context: Context, held: Polls) -> None:
    """Keep what is missing where a snapshot does not begin where the one before of its operation ended: each interval has one."""
    for polls in held.by_series():
        ends = sorted((poll.end_ns, poll.start_ns) for poll in polls if poll.start_ns is not None)
        for (before_ns, _), (_, start_ns) in pairwise(ends):
            if start_ns - before_ns > UNITS_NS["ms"]:
                caveat = Caveat(LOST, context.account.path, GAP, AGAIN)
                span = before_ns + context.offset_ns, start_ns + context.offset_ns
                context.account.lack(Missing(labels_of(polls[0].series), *span, None, 0, None, caveat))


def _snapshot(body: Mapping[str, Any]) -> tuple[Layout, Int, Int]:
    numbers = body.get("Counts")
    lowest, digits = whole(body.get("LowestTrackableValue")), whole(body.get("SignificantFigures"))
    if not isinstance(numbers, list) or not 1 <= digits <= MOST_DIGITS or not 1 <= lowest < MOST_LOWEST:
        raise WrongError("no snapshot of HdrHistogram")
    try:
        layout = hdr_layout(digits, lowest.bit_length() - 1, 1)
    except ValueError as error:
        raise WrongError(str(error)) from None
    counts = [count(number) for number in numbers]
    octaves, reach, highest = 1, 2 * hdr_half(digits) << lowest.bit_length() - 1, whole(body.get("HighestTrackableValue"))
    while reach < highest:  # so hdrhistogram-go counts them; Java's goes on where they are equal
        octaves, reach = octaves + 1, reach << 1
    if len(counts) != (octaves + 1) * hdr_half(digits):
        raise WrongError("not as many counts as its highest value needs")
    if any(counts[layout.bins :]):
        raise WrongError("counts past the end of its bins")
    kept = counts[: layout.bins]
    return layout, *sparse(np.arange(len(kept), dtype=np.int64), kept)


READER = polled(HDR_SNAPSHOTS, read, "holds no snapshot of a histogram")
