"""Callbacks of apps in a Snabb timeline: what each cost and what it moved, where its events show it.

    3,3|app.pull app=nic:   inpackets inbytes outpackets outbytes droppackets dropbytes
    3,3|app.pulled app=nic: inpackets inbytes outpackets outbytes droppackets dropbytes

The arguments are counters of all links of the app: what a callback moved is by how much they grew from its first event to its
second, the larger of in and out. Events have borne them until December 2022; newer ones show only how long it took.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ingest.core.dataclass import dataclass
from ingest.core.intervals import Int
from ingest.read.snabb.breaths import Float, grown
from ingest.read.snabb.lags import COUNTED, Lags
from ingest.read.snabb.messages import Message
from ingest.read.snabb.timeline import Timeline

CALLBACKS = {"app.pulled": "app.pull", "app.pushed": "app.push"}
IN, OUT = ("inpackets", "inbytes"), ("outpackets", "outbytes")


@dataclass(frozen=True, slots=True)
class Callbacks:
    """Callbacks in order: the event that ended each (index into the timeline), the cycles that it took, what it moved.

    `packets` and `bytes` are NaN where the events do not show them. They are a sample: of `rate`, one in 5^(9-rate) was stored.
    """

    end: Int
    cycles: Int
    packets: Float
    bytes: Float
    rate: Int

    def __len__(self) -> int:
        return len(self.end)


def callbacks(timeline: Timeline, lags: Lags) -> Callbacks:
    """Return the callbacks of a timeline, oldest first: those of which both events are there, one right within the other's."""
    ends = timeline.named(*CALLBACKS)
    begins = lags.anchor[ends]
    starts = _starts(timeline.messages)
    mine = (lags.fault[ends] == COUNTED) & (starts[timeline.codes[ends]] >= 0)
    mine[mine] = timeline.codes[begins[mine]] == starts[timeline.codes[ends[mine]]]
    end, start = ends[mine], begins[mine]
    rates = np.array([message.rate for message in timeline.messages], np.int64)
    packets, volume = (
        np.fmax(grown(timeline, start, end, inward), grown(timeline, start, end, outward))
        for inward, outward in zip(IN, OUT, strict=True)
    )
    return Callbacks(end, lags.cycles[end], packets, volume, np.minimum(rates[timeline.codes[start]], rates[timeline.codes[end]]))


def _starts(messages: Sequence[Message]) -> Int:
    """Return, of each message that ends a callback, which message begins one of the same app; -1 for all others."""
    known = {(message.name.lower(), message.attributes): code for code, message in enumerate(messages)}
    wanted = [(CALLBACKS.get(message.name.lower(), ""), message.attributes) for message in messages]
    return np.array([known.get(key, -1) if key[0] else -1 for key in wanted], np.int64)
