"""Logs of a run that was timed at several layers: fio's, an OSD's polls, a disk's histograms that a description explains."""

from __future__ import annotations

import json
import random
from pathlib import Path

START = 1_795_330_000
SECONDS, RATE = 12, 40
DISKS = """histogram: ndjson
each: hist
bins: list
lower: min
upper: max
edge: "[]"
count: count
unit: us
time: {at: t, unit: s}
every: 1s
labels: {host: host, volume: disk, op: =write, layer: =device}
"""


def layered(parent: Path, *, seconds: int = SECONDS, rate: int = RATE, slow: range = range(0)) -> Path:
    """Return a folder in `parent` with a client's log and an OSD's polls; `disks` beside it has a disk's histograms.

    In the seconds `slow` the disk takes eight times as long, and all above it as much more.
    """
    folder, rolled = parent / "run", random.Random(7)
    (folder.parent / "disks").mkdir()
    folder.mkdir()
    longer = [8 if at // rate in slow else 1 for at in range(seconds * rate)]
    took = [int(rolled.lognormvariate(0, 0.4) * 2_000_000 * factor) for factor in longer]
    step = 1000 // rate
    lines = [f"{at * step + step - 1}, {latency}, 1, 4096, 0, 0" for at, latency in enumerate(took)]
    (folder / "fio_clat.1.log").write_text("\n".join(lines) + "\n")
    ends = [100_000 << power for power in range(31)]
    ranges = [
        {"max": -1},
        {"min": 0, "max": ends[0] - 1},
        *({"min": low, "max": 2 * low - 1} for low in ends[:-1]),
        {"min": ends[-1]},
    ]
    counts, polls, disks = [0] * len(ranges), [], []
    for second in range(seconds + 1):
        here = [] if not second else took[(second - 1) * rate : second * rate]
        for latency in here:
            counts[1 + sum(latency // 2 >= end for end in ends)] += 1
        axes = [{"name": "Latency (usec)", "ranges": ranges}]
        dump = {"osd": {"op_w_latency_in_bytes_histogram": {"axes": axes, "values": counts}}}
        polls.append(json.dumps({"sampled_at": START + second, "host": "ceph1", "daemon": "osd.0", "dump": dump}))
        low = 512 if second - 1 not in slow else 4096
        bins = [
            {"min": low << at, "max": (2 * low << at) - 1, "count": number} for at, number in enumerate((rate // 2, rate // 4))
        ]
        disks += [json.dumps({"t": START + second, "host": "ceph1", "disk": "sdb", "hist": bins})] if second else []
    (folder / "osd.ndjson").write_text("\n".join(polls) + "\n")
    (folder.parent / "disks" / "disks.ndjson").write_text("\n".join(disks) + "\n")
    (folder.parent / "disks" / "disks.yml").write_text(DISKS)
    return folder
