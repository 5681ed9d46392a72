"""HdrHistogram interval logs as sources: labels, start, recorded unit."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

from ingest.core.errors import InputError
from ingest.core.writing import figure
from ingest.read.context import TimeZero
from ingest.read.format_names import HDR
from ingest.read.formats import PIECES, Reader
from ingest.read.hdr import log
from ingest.read.hdr.names import looks_like_hdr
from ingest.read.hdr.origin import ASBENCH
from ingest.read.sources import Around, Source
from ingest.read.text import name_without

ENDINGS = (".hlog", ".hdrhist", ".hdr", ".histo", ".log", ".csv", ".txt")
ASBENCH_NAME = re.compile(r"(?P<op>read|write|udf)_")
NOT_YET = "its first lines do not tell yet what their numbers are: it is read once there are more"
LARGE = {"ns": 1.0, "100ns": 1e2, "us": 1e3, "ms": 1e6}


def locate(path: Path, around: Around) -> Source:
    """Return the source of a log; InputError where it holds no interval, or its unit is not known."""
    context = around.context(path, process=name_without(path, ENDINGS))
    peeked = log.peek(path, context)
    if peeked.origin is ASBENCH and (match := ASBENCH_NAME.match(path.name)):
        context = replace(context, series=context.series.replaced(op=match["op"]))
    asked = around.options.recorded_unit_ns
    if (asked or peeked.origin.unit_ns) is None:
        sizes = [f"{figure(peeked.largest * scale / 1e9)} s in {unit}" for unit, scale in LARGE.items()]
        raise InputError(f"{log.UNIT_UNKNOWN} (its largest value at the beginning would be {', '.join(sizes)})", path)
    if around.options.growing and not peeked.origin.settled:
        raise InputError(NOT_YET, path)
    if asked and peeked.origin.unit_ns not in (None, asked):
        context.account.note(f"{peeked.origin.tool} records in another unit than --recorded-unit says: --recorded-unit was used")
    dated = peeked.zero_ns is not None and not peeked.base_ns  # its stamps are real times
    own = TimeZero(peeked.zero_ns, peeked.zero_origin)
    absolute = dated and not isinstance(around.options.t0, int)
    zero = around.zero(path, own, lambda: log.last_end_ns(path) - (peeked.zero_ns or 0), absolute=absolute)
    return Source(path, HDR, replace(context, zero=zero), peeked.width_ns, peeked.layout)


READER = Reader(locate, rows=log.read, accepts=lambda _, start: looks_like_hdr(start), grows=PIECES)
