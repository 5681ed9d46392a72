"""What it costs to say what happened in a run that a store keeps without findings: three shapes."""

from __future__ import annotations

import os
import subprocess

import generate
from generate import StoreSet
from measure import MB, Bench, met, peak, print_table

SHAPES = {  # and at most how many CPU s and MB
    "20 hosts x 1 h": (StoreSet(hosts=20, jobs=1, story=True), 0.7, None),
    "100 hosts x 240 windows": (StoreSet(hosts=100, jobs=1, seconds=240, story=True), 1.5, None),
    "one host of 160 jobs x 20 min": (StoreSet(hosts=1, jobs=160, seconds=1200, story=True), 1.0, 100),
}


def explain(bench: Bench) -> None:
    """Print the CPU seconds of `explain`, the fewest of all rounds as other work only adds to them, and its peak memory."""
    rows = []
    for name, (wanted, most_s, most_mb) in SHAPES.items():
        path = generate.store(bench.folder / f"story-{wanted.hosts}-{wanted.jobs}.db", wanted)
        command = [bench.tailboard, "explain", f"sqlite:{path}", "--json"]
        spent = min(_cpu(bench, command) for _ in range(bench.rounds))
        held = peak(bench, name, command).pss / MB
        verdicts = met(spent, most_s, at_least=False), met(held, most_mb, at_least=False)
        rows.append([name, f"{spent:.2f}", f"{most_s:g}", verdicts[0], f"{held:.0f}", f"{most_mb or ''}", verdicts[1]])
    headings = ("reads and writes of", "CPU s", "at most", "verdict", "peak MB", "at most", "verdict")
    print_table("explain of a stored run without findings", headings, rows)


def _cpu(bench: Bench, command: list[str]) -> float:
    """Return user and system time of a command, start included."""
    process = subprocess.Popen(command, env=bench.env, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    process.returncode = status
    if status:
        raise subprocess.CalledProcessError(status, command)
    return usage.ru_utime + usage.ru_stime
