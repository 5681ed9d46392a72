"""Snabb timelines: the largest ring (a million events, 65 MB) to stored documents, beside one NumPy pass over the file.

    python benchmarks/snabb.py [--data FOLDER] [--rounds N]

The ring is generated (seeded): a process with twelve apps that makes 300,000 breaths a second and stores them as Snabb does,
one in 5^(9-rate) of the events of a rate, for as long as the ring holds; it is full, and its writer stands in the middle.
Whole processes are timed in turn. The pass maps the file and reads stamp, message and arguments of every entry once.
"""

from __future__ import annotations

import argparse
import os
import statistics
import struct
import sys
import tempfile
from pathlib import Path

import numpy as np
from measure import FRESH, MB, Bench, by_turns, met, peak

HERE = Path(__file__).parent
ENTRIES, STRINGS = 1_000_000, 1_000_000
HZ, BREATHS, APPS = 2_600_000_000, 300_000, 12
BEGAN_NS = 1_700_000_000 * 10**9
MOST_SECONDS = 3.0
ENTRY = np.dtype([("tsc", "<f8"), ("message", "<u2"), ("core", "<u2"), ("reserved", "<u4"), ("arguments", "<f8", 6)])
PASS = f"""
import sys
import numpy as np
ring = np.memmap(sys.argv[1], {ENTRY.descr!r}, "r", 64, ({ENTRIES},))
print(ring["tsc"].max(), np.bincount(ring["message"]).argmax(), ring["arguments"].sum())
"""


def texts() -> tuple[list[str], list[tuple[int, ...]]]:
    """Return the texts of the messages, and the messages that a breath stores at each threshold from 1 to 5."""
    names = [
        "1,5|engine.breath_start: breath totalpackets totalbytes totaletherbits",
        "1,5|engine.breath_end: breath totalpackets totalbytes totaletherbits",
        "2,3|engine.got_monotonic_time: unixnanos",
        "2,4|engine.breath_pulled:",
        "2,4|engine.breath_pushed:",
        "1,4|engine.polled_timers:",
        "9,1|packet.packet_allocated:",
        "9,1|packet.packet_freed: length",
    ]
    apps = []
    for number in range(APPS):
        apps += [len(names), len(names) + 1]
        names += [f"3,3|app.push app=app{number}:\nprose", f"3,3|app.pushed app=app{number}:"]
    five, four = (0, 1), (0, 3, 4, 1, 5)
    three = (0, 2, 3, *apps, 4, 1, 5)
    one = (0, 2, *([6] * 100), 3, *apps, *([7] * 100), 4, 1, 5)
    return names, [one, three, three, four, five]


def ring() -> bytes:
    """Return the file: header, entries, strings."""
    names, stored = texts()
    table, numbers = b"", []
    for name in names:
        numbers.append(len(table) // 16)
        text = name.encode() + b"\0"
        table += text + bytes(-len(text) % 16)
    random = np.random.default_rng(9)
    lengths = np.array([len(events) for events in stored])
    share = np.array([5.0 ** (threshold - 9) for threshold in range(1, 6)])
    chance = np.diff(share, prepend=0) / share[-1]
    thresholds = random.choice(5, ENTRIES, p=chance)
    thresholds = thresholds[: int(np.searchsorted(np.cumsum(lengths[thresholds]), ENTRIES)) + 1]
    events = np.concatenate([stored[threshold] for threshold in thresholds.tolist()])[:ENTRIES]
    skipped = random.geometric(share[-1], len(thresholds))
    between = (skipped * (HZ / BREATHS)).astype(np.int64)
    steps = random.lognormal(5.5, 0.8, ENTRIES).astype(np.int64) + 60
    firsts = np.flatnonzero(events == 0)
    steps[firsts] = between[: len(firsts)]
    entries = np.zeros(ENTRIES, ENTRY)
    tsc = 10**13 + np.cumsum(steps)
    entries["tsc"], entries["core"] = tsc, 3
    entries["message"] = np.array(numbers)[events]
    breath = np.cumsum(np.bincount(firsts, skipped[: len(firsts)], ENTRIES))
    entries["arguments"][:, 0] = np.where(events == 2, BEGAN_NS + (tsc - 10**13) / HZ * 1e9, breath)
    entries["arguments"][:, 1] = 200 * breath
    head = struct.pack("<QHHII", 0xA3FF7223441D0001, 3, 0, 64 * ENTRIES, STRINGS)
    return head.ljust(64, b"\0") + np.roll(entries, ENTRIES // 2).tobytes() + table.ljust(STRINGS, b"\0")


def main() -> None:
    """Measure all."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, default=HERE / "data")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--tailboard", default=str(Path(sys.executable).with_name("tailboard")))
    words = parser.parse_args()
    words.data.mkdir(parents=True, exist_ok=True)
    path = words.data / "snabb.timeline"
    if not path.exists():
        path.write_bytes(ring())
    size = path.stat().st_size / MB
    print(f"{ENTRIES:,} events, {size:.0f} MB; load {os.getloadavg()[0]:.1f} at the start")
    with tempfile.TemporaryDirectory() as scratch:
        bench = Bench(words.data, Path(scratch), words.tailboard, Path(), words.rounds)
        load = [words.tailboard, "load", str(path), "--run", "r", "--store", f"sqlite:{FRESH}", "--json"]
        commands = {
            "one NumPy pass": [sys.executable, "-c", PASS, str(path)],
            "percentiles": [words.tailboard, "percentiles", str(path), "--by", "op", "--format", "csv"],
            "load": load,
        }
        times = by_turns(bench, commands)
        for name, one in times.items():
            ratios = one.over(times["one NumPy pass"])
            spread = f"{min(ratios):.1f} to {max(ratios):.1f}"
            print(f"{name}: {one.shown()} s, {statistics.median(ratios):.1f} times the pass ({spread})")
        seconds = times["load"].median
        print(f"load to stored documents: {seconds:.2f} s, under {MOST_SECONDS:g}: {met(seconds, MOST_SECONDS, at_least=False)}")
        found = peak(bench, "load", load)
        print(f"peak of the load {found.pss / MB:.0f} MB, {found.pss / MB / size:.1f} times the file")
    print(f"load {os.getloadavg()[0]:.1f} at the end")


if __name__ == "__main__":
    main()
