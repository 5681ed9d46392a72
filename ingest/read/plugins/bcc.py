"""Histograms that tools of bcc print: `biolatency -T 1`, with `-D` by disk or `-F` by flags, ext4dist, runqlat, funclatency.

    06:20:16
    disk = 'xvdb'
         usecs               : count     distribution
             0 -> 1          : 0        |                                        |
           128 -> 255        : 12       |**                                      |

Both ends are in the bin, and values were cut to the unit: 128 -> 255 us is from 128 us to just below 256. The tool clears its
counts at each print, so they are those since the print before. `biolatency` begins with `Tracing block device I/O...`: its
histograms are those of devices.

Source: iovisor/bcc, tools/biolatency_example.txt and table.py; no tool of bcc ran here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ingest.core.units import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import BCC
from ingest.read.plugins.prints import DAMAGED, NO_BIN, Print, Script, add, with_labels
from ingest.read.polls import FileBin, Lost, Polls, lines_of, polled
from ingest.read.text import CUT_OFF, changed_ns

HEAD = re.compile(r"^\s+([nmu]?secs)\s+: count\s+distribution\s*$")
BIN = re.compile(r"^\s*([0-9]{1,18}) -> ([0-9]{1,18})\s*: ([0-9]{1,18})\s+\|")
KEY = re.compile(r"^\s*(?:Bucket )?(?!avg = )([A-Za-z][\w ]*?) = (?:b?'([^']*)'|(.*?))\s*$")
AVERAGE = re.compile(r" \[AVG [0-9]+\]$")  # tcprtt, another at each print
UNITS = {"nsecs": "ns", "usecs": "us", "msecs": "ms", "secs": "s"}
FLAGS = "flags"  # of requests to block devices
LABELS = {"disk": "volume", FLAGS: "op", "operation": "op", "ptr": "volume"}


def read(path: Path, context: Context, held: Polls) -> None:
    """Add the histograms of a file to `held`."""
    script = Script(re.compile("Tracing "))
    add(list(_prints(path, context, held, script)), script.stamps, changed_ns(path), context, held, total=False)


def _prints(path: Path, context: Context, held: Polls, script: Script) -> Iterator[Print]:
    """Yield what was printed, and collect the times: all counts were cleared at the time before, whatever was printed then."""
    labels: dict[str, str] = {}
    unit, begun, bins = 0, 0, list[FileBin]()

    def printed() -> Iterator[Print]:
        if bins:
            stamp = script.newest
            since = None if stamp in (None, script.first) else stamp - 1
            series = with_labels(context.series, device=script.times_devices, **labels)
            yield Print(begun, series, bins, stamp, since)

    for number, line, ended in lines_of(path, context):
        text = line.decode("utf-8", "replace").rstrip()
        match = BIN.match(text)
        if match and unit and ended:
            low, high = int(match[1]) * unit, (int(match[2]) + 1) * unit
            bins.append(FileBin(low - 1, high - 1, int(match[3])))
            continue
        if not ended:
            context.account.reject(CUT_OFF, [number])
            continue
        if match or ((bins or unit) and DAMAGED.search(text)):
            held.reject(NO_BIN, number, Lost(context.series))
        if bins or not text:
            yield from printed()
            bins, unit = [], 0
        if head := HEAD.match(text):
            unit, begun = UNITS_NS[UNITS[head[1]]], number
        elif key := KEY.match(text):
            word = key[1].lower().removeprefix("bucket ")
            value = AVERAGE.sub("", key[2] or key[3] or "").strip()
            labels = {LABELS[word]: value} if word in LABELS else {"tag": f"{{{word}={value}}}"}
            script.times_devices |= word == FLAGS
        elif script.takes(text):
            labels = {}
    yield from printed()


READER = polled(BCC, read, "holds no histogram of latencies")
