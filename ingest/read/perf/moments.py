"""Samples of `perf script` that have a time alone: events of kind offset, of latency 0, never shown as latencies.

What ran where no work was to be done is left out: samples of the idle task whose first frame is one of idling, and samples of
any task that wait in the kernel's idle loop (idle injection). Interrupts that the idle task was taken away for are work, and so
is whatever a tracepoint prints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from ingest.core.events import Events
from ingest.core.intervals import Bool, Int
from ingest.core.series import OFFSET, Series
from ingest.read.account import Account
from ingest.read.context import Context
from ingest.read.delimited.arrow_lines import flags, reject
from ingest.read.event_labels import TOO_MANY, SeriesTable
from ingest.read.perf.lines import Samples

IDLE_TASK = r"^swapper(?:/\d+)?$"
IDLING = r"idle|mwait|halt|hypercall_sched_op|hypercall_vcpu_op|cpu_startup_entry|\bwfi|\[unknown\] \(|^[ \t]*[0-9a-f]*\s*$"
IDLE_LOOP = r"^\s*[0-9a-f]+ \S*(?:cpuidle|mwait)\S* \(\["
TRACEPOINT = r"^[A-Za-z0-9_\-]+:[A-Za-z0-9_]{3,}$"
PRECISION = re.compile(r":([a-zA-Z]*)$")
IDLE = "samples of idle CPUs (--keep-idle keeps them)"


class Moments:
    """Makes events of the samples of one recording that have no latency."""

    def __init__(self, context: Context, *, keep_idle: bool = False) -> None:
        self.context = context
        self.keep_idle = keep_idle
        self.series = SeriesTable(self._series)

    def _series(self, labels: Mapping[str, str]) -> Series:
        return self.context.series.replaced(op=op_of(labels["event"]), kind=OFFSET, process=labels["comm"])

    def events(self, pa: Any, samples: Samples) -> Events:
        """Return the samples of a block, each at its own time; those of idle CPUs are counted as skipped."""
        account, compute = self.context.account, pa.compute
        left = np.ones(len(samples), np.bool_)
        if not self.keep_idle:
            idle = idle_of(pa, samples)
            account.skip(IDLE, int(idle.sum()))
            left &= ~idle
        columns = {name: compute.struct_field(samples.fields, name).dictionary_encode() for name in ("event", "comm")}
        codes = self.series.codes(columns, len(samples))
        many = left & (codes < 0)
        reject(account, TOO_MANY, samples.line[many])
        rows: Int = np.flatnonzero(left & ~many)
        account.accept(len(rows))
        at = samples.at_ns[rows] + (self.context.zero.epoch_ns or 0) + self.context.offset_ns
        return Events(self.series.table, codes[rows], at, np.zeros(len(rows), np.int64))


def idle_of(pa: Any, samples: Samples) -> Bool:
    """Return which samples are of idle CPUs."""
    compute = pa.compute

    def fits(column: Any, pattern: str) -> Bool:
        return flags(compute.match_substring_regex(column, pattern))

    def field(name: str) -> Any:
        return compute.struct_field(samples.fields, name)

    if not len(samples):
        return np.zeros(0, np.bool_)
    task = flags(compute.equal(field("pid"), b"0")) | fits(field("comm"), IDLE_TASK)
    idle: Bool = (task & fits(samples.leaf, IDLING)) | fits(samples.leaf, IDLE_LOOP)
    return idle & ~fits(field("event"), TRACEPOINT)


def op_of(event: str) -> str:
    """Return the op of an event: its name in lower case, without how precisely it was to be sampled (cycles:ppp is cycles)."""
    match = PRECISION.search(event)
    if match and set(match[1]) <= set("ukhpPGHSDI"):
        kept = "".join(mark for mark in match[1] if mark not in "pP")
        event = event[: match.start()] + (f":{kept}" if kept else "")
    return event.lower()


def note_left_out(account: Account) -> None:
    """Say in the account how many samples of idle CPUs were left out."""
    if account.skipped[IDLE]:
        account.note(f"{account.skipped[IDLE]:,} {IDLE}, left out")
