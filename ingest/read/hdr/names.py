"""What HdrHistogram logs, percentile distributions and operation logs look like, and how tags and columns are named."""

from __future__ import annotations

import re

from ingest.core.plain import shown

KINDS = {"st": "service", "rt": "response", "wt": "wait"}
STARTS = ("start", "started", "begin", "start_time", "actual_start")
ENDS = ("end", "ended", "finish", "end_time", "finished")
LATENCIES = ("latency", "duration", "elapsed", "service", "service_time")
OPS, TAGS = ("op", "operation"), ("tag",)
COLUMN_UNIT = re.compile(r"^(?P<name>.+?)_(?P<unit>ns|us|ms|s)$")
HGRM = re.compile(r"Value\W+Percentile\W+TotalCount\W+1/\(1-Percentile\)")
HEAD = re.compile(rb"^#\[(Histogram log format version|StartTime: \d|Base[Tt]ime: \d)|^\"StartTimestamp\"", re.MULTILINE)
INTERVAL = re.compile(rb"^(Tag=[^, \r\n]*[, ])?-?[\d.]+[, ][\d.]+[, ][^, \r\n]+[, ](HIST|DHIS)", re.MULTILINE)


def tag_of(op: str, kind: str, tag: str) -> str:
    """Return the tag of a log line that `named` takes back apart: `<tag>::<op>-st`; empty text for none.

    An op without one of the three kinds, and a kind that has no ending, are put in as plain words.
    """
    endings = {name: ending for ending, name in KINDS.items()}
    op, kind, tag = (shown(word) for word in (op, kind, tag))  # a newline would end the line in the middle
    if op and kind in endings:
        op, tag = op.replace(",", "_"), tag.replace(",", "_")
        return f"{tag}::{op}-{endings[kind]}" if tag else f"{op}-{endings[kind]}"
    words = [re.sub(r"[, \r\n]", "_", word) for word in (tag, op, kind) if word]
    return "::".join(words)


def looks_like_hdr(start: bytes) -> bool:
    """Return whether the first bytes of a file are those of an interval log."""
    return HEAD.search(start) is not None or INTERVAL.search(start) is not None


def column_names(line: bytes) -> list[str]:
    """Return the names in the first line of an operation log."""
    return [name.strip().strip('"').lower() for name in line.decode("utf-8", "replace").strip("\ufeff\r\n").split(",")]


def plain_column(name: str) -> tuple[str, str]:
    """Return a column's name without its unit, and the unit (empty if it has none)."""
    match = COLUMN_UNIT.match(name)
    return (match["name"], match["unit"]) if match else (name, "")


def looks_like_operations(start: bytes) -> bool:
    """Return whether the first line of a file names the columns of an operation log."""
    plain = [plain_column(name)[0] for name in column_names(start.split(b"\n", 1)[0])]
    return len(plain) > 1 and any(name in STARTS for name in plain) and any(name in (*ENDS, *LATENCIES) for name in plain)
