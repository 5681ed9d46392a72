"""Watching many growing HdrHistogram logs at once: CPU share, lag and memory of `tailboard load --follow`.

    benchmarks/watch.py [--logs 128] [--seconds 60] [--tags 2] [--store sqlite:...]

A process of its own appends a line a tag and second to each log, spread over the second as hosts are, with stamps of now. What
is printed was measured by the kernel (CPU, memory) and by the watch (lag: from the end of a row to when it is in the store
with its rollups). Prints the load average: other work on the machine makes lag, not CPU.
"""

from __future__ import annotations

import argparse
import base64
import json
import os
import random
import struct
import subprocess
import sys
import tempfile
import time
import zlib
from pathlib import Path

BINS = 120
VARIANTS = 40


def payload(rng: random.Random) -> str:
    """Return a histogram of 2 digits with about BINS occupied bins, as a log line holds it."""
    words = bytearray()
    at = 0
    for index in sorted(rng.sample(range(1200, 1200 + 3 * BINS), BINS)):
        words += word(-(index - at)) + word(rng.randint(1, 200))
        at = index + 1
    body = struct.pack(">IIIIqqd", 0x1C849313, len(words), 0, 2, 1, 3_600_000_000_000, 1.0) + bytes(words)
    data = zlib.compress(body)
    return base64.b64encode(struct.pack(">II", 0x1C849314, len(data)) + data).decode()


def word(number: int) -> bytes:
    """Return a number as a ZigZag LEB128 word."""
    left, out = (number << 1) ^ (number >> 63), bytearray()
    while left >= 0x80:
        out.append(left & 0x7F | 0x80)
        left >>= 7
    return bytes([*out, left])


def feed(folder: Path, logs: int, tags: int, seconds: int) -> None:
    """Append to all logs, each at its own moment of the second."""
    rng = random.Random(1)
    payloads = [payload(rng) for _ in range(VARIANTS)]
    names = ["read-st", "write-st", "read-rt", "write-rt"][:tags]
    begun = int(time.time())
    streams = []
    for number in range(logs):
        path = folder / f"h{number:03d}" / "bench.hlog"
        path.parent.mkdir()
        stream = path.open("ab", buffering=0)
        stream.write(f"#[Logged with jHiccup]\n#[StartTime: {begun}.000 (seconds since epoch)]\n".encode())
        streams.append(stream)
    for second in range(seconds):
        for number, stream in enumerate(streams):
            time.sleep(max(0.0, begun + second + 1 + number / logs - time.time()))
            start = second + number / logs
            lines = [f"Tag={name},{start:.3f},1.000,0.0,{rng.choice(payloads)}\n" for name in names]
            stream.write("".join(lines).encode())


def main() -> None:
    """Print what a watch of growing logs costs."""
    words = argparse.ArgumentParser()
    words.add_argument("--logs", type=int, default=128)
    words.add_argument("--seconds", type=int, default=60)
    words.add_argument("--tags", type=int, default=2)
    words.add_argument("--store", default="")
    told = words.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "logs").mkdir()
        store = told.store or f"sqlite:{folder / 'watch.db'}"
        command = [sys.executable, "-m", "ingest", "watch", str(folder / "logs"), "--run", "bench", "--store", store]
        with (folder / "cycles").open("wb") as out:
            watch = subprocess.Popen([*command, "--json"], stdout=out, stderr=subprocess.DEVNULL)
            feed(folder / "logs", told.logs, told.tags, told.seconds)
            time.sleep(2)
            usage = Path(f"/proc/{watch.pid}/stat").read_text(encoding="ascii").rsplit(")", 1)[1].split()
            memory = Path(f"/proc/{watch.pid}/status").read_text(encoding="ascii")
            watch.kill()
            watch.wait()
        cycles = [json.loads(line) for line in (folder / "cycles").read_text(encoding="utf-8").splitlines()]
    ticks = (int(usage[11]) + int(usage[12])) / os.sysconf("SC_CLK_TCK")
    lags = sorted(one["lag_ns"] / 1e9 for one in cycles if one["lag_ns"] is not None)
    spent = sorted(one["seconds"] for one in cycles)
    peak = next(line.split()[1] for line in memory.splitlines() if line.startswith("VmHWM"))
    rows = sum(one["rows"] for one in cycles)
    print(f"{told.logs} logs x {told.tags} tags, {told.seconds} s: {rows} rows read of {told.logs * told.tags * told.seconds}")
    print(f"CPU {ticks:.1f} s: {ticks / told.seconds:.0%} of a core; peak memory {int(peak) / 1024:.0f} MB")
    print(f"lag of the last log: {quantiles(lags)} s; a cycle: {quantiles(spent)} s; {len(cycles)} cycles")
    print(f"load average {os.getloadavg()[0]:.1f}, {os.cpu_count()} cores")


def quantiles(values: list[float]) -> str:
    """Return median, 95 % and maximum of sorted values."""
    if not values:
        return "none"
    return f"median {values[len(values) // 2]:.2f}, 95 % {values[int(len(values) * 0.95)]:.2f}, max {values[-1]:.2f}"


if __name__ == "__main__":
    main()
