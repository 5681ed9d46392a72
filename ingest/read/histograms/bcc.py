"""Histograms that tools of bcc print: `biolatency -T 1`, with `-D` by disk or `-F` by flags, ext4dist, runqlat, funclatency.

    06:20:16
    disk = 'xvdb'
         usecs               : count     distribution
             0 -> 1          : 0        |                                        |
           128 -> 255        : 12       |**                                      |

Both ends are in the bin, and values were cut to the unit: 128 -> 255 us is from 128 us to just below 256. The tool clears its
counts at each print, so they are those since the print before.

Source: iovisor/bcc, tools/biolatency_example.txt and table.py; no tool of bcc ran here.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from ingest.core.timing import UNITS_NS
from ingest.read.context import Context
from ingest.read.format_names import BCC
from ingest.read.formats import AGAIN, Reader
from ingest.read.histograms.file_bins import FileBin
from ingest.read.histograms.lines import lines_of, readers
from ingest.read.histograms.polls import Polls
from ingest.read.histograms.prints import Print, Stamp, add, stamp_of, with_labels
from ingest.read.text import CUT_OFF

NOTHING = "holds no histogram of latencies"
HEAD = re.compile(r"^\s+([nmu]?secs)\s+: count\s+distribution\s*$")
BIN = re.compile(r"^\s*(\d{1,18}) -> (\d{1,18})\s*: (\d{1,18})\s+\|")
KEY = re.compile(r"^\s*(?:Bucket )?([A-Za-z][\w ]*?) = (?:b?'([^']*)'|(.*?))\s*$")
UNITS = {"nsecs": "ns", "usecs": "us", "msecs": "ms", "secs": "s"}
LABELS = {"disk": "volume", "flags": "op", "operation": "op", "ptr": "volume"}


def polls(path: Path, context: Context) -> Polls:
    """Return the histograms of a file."""
    held = Polls(context)
    add(list(_prints(path, context)), path.stat().st_mtime_ns, context, held, total=False)
    return held


def _prints(path: Path, context: Context) -> Iterator[Print]:
    stamp: Stamp | None = None
    labels: dict[str, str] = {}
    unit, begun, bins = 0, 0, list[FileBin]()

    def printed() -> Iterator[Print]:
        if bins:
            yield Print(begun, with_labels(context.series, **labels), bins, stamp)

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
        if bins or not text:
            yield from printed()
            bins, unit = [], 0
        if head := HEAD.match(text):
            unit, begun = UNITS_NS[UNITS[head[1]]], number
        elif key := KEY.match(text):
            word = key[1].lower().removeprefix("bucket ")
            labels = {LABELS.get(word, "tag"): (key[2] or key[3] or "").strip()}
        elif new := stamp_of(text):
            stamp, labels = new, {}
    yield from printed()


locate, rows = readers(BCC, polls, NOTHING)
READER = Reader(locate, rows=rows, grows=AGAIN)
