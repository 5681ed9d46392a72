"""Who wrote an HdrHistogram log, in which unit, and what its tags say: op, kind, tag.

    #[Logged with jHiccup version 2.0.7-SNAPSHOT]                ns, kind lag: how late a sleeping thread woke up
    #Logging op latencies for Cassandra Stress                   ns, tags insert-st, insert-rt, insert-wt
    #[Logging for: Intended-READ]                                YCSB: us; READ is service time, Intended-READ response time
    #[Logged by wrk2]                                            us
    #[Written by tailboard; recorded unit us]                    what `tailboard export --format hlog` says of itself

A log nowhere states its unit otherwise: its column of maxima is the recorded maximum divided by 10^6, whatever that means.
A tag `<op>-st`, `-rt`, `-wt` (any case) names service, response and wait time of an operation; any other tag stays a tag.
`FILE::insert-st` is a union's tag of a file before the tag of the line.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from ingest.timing import UNITS_NS

KINDS = {"st": "service", "rt": "response", "wt": "wait"}
INTENDED = "intended-"
TIMED = re.compile(r"^(?P<op>.+)-(?P<kind>st|rt|wt)$", re.IGNORECASE)
OURS = re.compile(r"#\[Written by tailboard.*; recorded unit (?P<unit>ns|us|ms|s)\]")
YCSB = re.compile(r"#\[Logging for: (?P<op>[^\]\s]+)\]")
STARTS = ("start", "started", "begin", "start_time", "actual_start")
ENDS = ("end", "ended", "finish", "end_time", "finished")
LATENCIES = ("latency", "duration", "elapsed", "service", "service_time")
OPS, TAGS = ("op", "operation"), ("tag",)
COLUMN_UNIT = re.compile(r"^(?P<name>.+?)_(?P<unit>ns|us|ms|s)$")
HGRM = re.compile(r"Value\W+Percentile\W+TotalCount\W+1/\(1-Percentile\)")
HEAD = re.compile(rb"^#\[(Histogram log format version|StartTime: \d|BaseTime: \d)|^\"StartTimestamp\"", re.MULTILINE)
INTERVAL = re.compile(rb"^(Tag=[^, \r\n]*[, ])?-?[\d.]+[, ][\d.]+[, ][^, \r\n]+[, ](HIST|DHIS)", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Origin:
    """What the first comments of a log tell: the tool, its unit in ns (None if unknown), and the op and kind of all lines."""

    tool: str = ""
    unit_ns: int | None = None
    op: str = ""
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Named:
    """What a tag stands for."""

    op: str
    kind: str
    tag: str


def origin_of(head: str) -> Origin:
    """Return what the comments at the beginning of a log tell of its origin."""
    for line in head.splitlines():
        if not line.startswith("#"):
            break
        if found := OURS.match(line):
            return Origin("tailboard", UNITS_NS[found["unit"]])
        if found := YCSB.match(line):
            op = found["op"].lower()
            intended = op.startswith(INTENDED)
            return Origin("YCSB", UNITS_NS["us"], op.removeprefix(INTENDED), "response" if intended else "service")
        if line.startswith("#[Logged with jHiccup"):
            return Origin("jHiccup", UNITS_NS["ns"], kind="lag")
        if line.startswith("#Logging op latencies for Cassandra Stress"):
            return Origin("cassandra-stress", UNITS_NS["ns"])
        if "wrk2" in line.lower():
            return Origin("wrk2", UNITS_NS["us"])
    return Origin()


def named(tag: str, origin: Origin) -> Named:
    """Return op, kind and tag of a line's tag (empty text if it has none)."""
    front, mark, last = tag.rpartition("::")
    if found := TIMED.match(last if mark else tag):
        return Named(found["op"].lower(), KINDS[found["kind"].lower()], front)
    return Named(origin.op, origin.kind, tag)


def tag_of(op: str, kind: str, tag: str) -> str:
    """Return the tag of a log line that `named` takes back apart: `<tag>::<op>-st`; empty text for none.

    An op without one of the three kinds, and a kind that has no ending, are put in as plain words.
    """
    endings = {name: ending for ending, name in KINDS.items()}
    if op and kind in endings:
        return f"{tag}::{op}-{endings[kind]}" if tag else f"{op}-{endings[kind]}"
    words = [re.sub(r"[, \r\n]", "_", word) for word in (tag, op, kind) if word]
    return "::".join(words)


def looks_like_hdr(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of an interval log."""
    return HEAD.search(start) is not None or INTERVAL.search(start) is not None


def looks_like_hgrm(start: bytes) -> bool:
    """Return whether a file holds a percentile distribution."""
    return HGRM.search(start.decode("utf-8", "replace")) is not None


def column_names(line: bytes) -> list[str]:
    """Return the names in the first line of an operation log."""
    return [name.strip().strip('"').lower() for name in line.decode("utf-8", "replace").strip("\ufeff\r\n").split(",")]


def plain_column(name: str) -> tuple[str, str]:
    """Return a column's name without its unit, and the unit (empty if it has none)."""
    found = COLUMN_UNIT.match(name)
    return (found["name"], found["unit"]) if found else (name, "")


def looks_like_operations(start: bytes) -> bool:
    """Return whether the first line of a file names the columns of an operation log."""
    plain = [plain_column(name)[0] for name in column_names(start.split(b"\n", 1)[0])]
    return len(plain) > 1 and any(name in STARTS for name in plain) and any(name in (*ENDS, *LATENCIES) for name in plain)
