"""The tool that wrote an HdrHistogram log: its unit, and how its tags and columns become op, kind and tag.

The tool that wrote an HdrHistogram log, its unit, and the meaning of its tags: op, kind, tag.

    #[Logged with jHiccup version 2.0.7-SNAPSHOT]                ns, kind lag: how late a sleeping thread woke up
    #Logging op latencies for Cassandra Stress                   ns, tags insert-st, insert-rt, insert-wt
    #[Logging for: Intended-READ]                                YCSB: us; READ is service time, Intended-READ response time
    #[Logged by wrk2]                                            us
    #[Logged with Latte 0.28.2]                                  ns, tags cycles and requests, of which one holds the other
    #[Logged with Cql-stress 0.2.2]                              ns, tags of cassandra-stress
    #Logging op latencies for scylla-bench                       cql-stress: tags raw and co-fixed
    #[Logged with Gatling DSE Plugin v1.3.0]                     ns
    #[Latency histograms for TEST.PROBE]                         Hazelcast Simulator: ns
    #[2026-11-24T18:30:00Z]                                      Aerospike's asbench: us, the op is in the file's name
    #Units: microseconds                                         as it says (the profiler of ChartFX)
    #UNITS: StartTimestamp = ..., values in the histogram = nanoseconds            the same of NoSQLBench
    #[Written by tailboard; recorded unit us]                    what `tailboard export --format hlog` says of itself

A log nowhere states its unit otherwise: its column of maxima is the recorded maximum divided by 10^6, whatever that means.
A tag `<op>-st`, `-rt`, `-wt` (any case) names service, response and wait time of an operation; any other tag stays a tag.
`FILE::insert-st` is a union's tag of a file before the tag of the line.

scylla-bench writes the comment of cassandra-stress; its tags are `raw` and `co-fixed`, the same operations by service and
by response time, and with a mixed load also `raw-read`, `co-fixed-write` and so on, which the first two hold once more. Its
unit (-hdr-latency-units) shows in the lowest value of its histograms: 50 us.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import takewhile

from ingest.core.errors import shown
from ingest.core.labels import failed_kind
from ingest.core.units import UNITS_NS
from ingest.read.hdr.clock import (
    BY_END,
    DATE,
    DATED_NS,
    SCYLLA,
    TAG,
    USUAL,
    WITH_END,
    Clock,
    StampError,
    rounding_of,
    seconds_ns,
    split_line,
)
from ingest.read.hdr.payload import PayloadError, payload_of
from ingest.read.text import HEAD_SIZE

# What HdrHistogram logs, percentile distributions and operation logs look like, and how tags and columns are named.


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
    return "::".join([re.sub(r"[, \r\n]", "_", word) for word in (tag, op, kind) if word])


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


NS, US, MS = UNITS_NS["ns"], UNITS_NS["us"], UNITS_NS["ms"]
INTENDED, FAILED_OP = "intended-", "-failed"
TIMED = re.compile(r"^(?P<op>.+)-(?P<kind>st|rt|wt)$", re.IGNORECASE)
SCYLLAS = re.compile(r"^(?P<kind>raw|co-fixed)(?:-(?P<op>read|write))?$", re.IGNORECASE)
SCYLLA_KINDS = {"raw": "service", "co-fixed": "response"}
SCYLLA_LOWEST = {15: NS, 5: US, 0: MS}  # 50 us in each unit, as a power of two
OURS = re.compile(r"#\[Written by tailboard.*; recorded unit (?P<unit>ns|us|ms|s)\]")
YCSB = re.compile(r"#\[Logging for: (?P<form>Hdr(?=Intended-|[A-Z]))?(?P<op>[^\]\s]+)\]")
UNITS = re.compile(r"#\s*Units?:\s*(?:.*\bvalues in the histogram\s*=\s*)?(?P<unit>nano|micro|milli)seconds\s*$", re.IGNORECASE)
SPOKEN = {"nano": NS, "micro": US, "milli": MS}
BEFORE_LINES = (b"#", b'"', b"", b"\r")  # what lines begin with before the first interval
LEGEND_OF_ENDS = b'"EndTimestamp"'
ENOUGH = 4  # lines: from then on ends of a log that begins at 0 are longer than what lies between them
C_VERSION = re.compile(rb"^#\[Histogram log format version 1\.[2-9]", re.MULTILINE)
DAY_NS = 86_400 * 10**9
DEFAULT_NS = "taken as ns, the unit that cql-stress writes unless -hdr-latency-units says another: if so, give --recorded-unit"


@dataclass(frozen=True, slots=True)
class Origin:
    """The origin of a log by its beginning: the tool, its unit in ns (None if unknown), and the op and kind of all lines.

    `stamps` is what its lines hold in place of start and length (see `stamps`), `adrift` whether they count from a moment that
    the log does not say (see `Clock`), `totals` are tags whose samples other tags hold, too, and `doubt` is what is to be said
    where --recorded-unit does not set the unit. `settled` says that what follows in the log will not change any of it,
    `in_two_forms` that its tool wrote the same operations in another form, too.
    """

    tool: str = ""
    unit_ns: int | None = None
    op: str = ""
    kind: str = ""
    stamps: str = USUAL
    adrift: bool = False
    totals: frozenset[bytes] = frozenset()
    doubt: str = ""
    settled: bool = True
    in_two_forms: bool = False


CASSANDRA = Origin("cassandra-stress", NS)
CQL_BENCH = Origin("cql-stress-scylla-bench", NS, stamps=WITH_END, doubt=DEFAULT_NS)
SCYLLA_TOOLS = ("scylla-bench", CQL_BENCH.tool)
ASBENCH = Origin("asbench", US, kind="service", stamps=WITH_END, adrift=True)
LATTE = Origin("Latte", NS)
BY_COMMENT = (
    ("#[Logged with jHiccup", Origin("jHiccup", NS, kind="lag")),
    ("#Logging op latencies for Cassandra Stress", CASSANDRA),
    ("#Logging op latencies for scylla-bench", CQL_BENCH),
    ("#[Logged with Cql-stress", Origin("Cql-stress", NS, stamps=BY_END)),
    ("#[Logged with Latte", LATTE),
    ("#[Logged with Gatling DSE Plugin v1.3", Origin("Gatling DSE Plugin", NS)),
    ("#[Latency histograms for ", Origin("Hazelcast Simulator", NS)),
)


def origin_of(head: bytes) -> Origin:
    """Return the origin of a log by its beginning."""
    origin = _by_tool(head)
    if origin is ASBENCH and (LEGEND_OF_ENDS not in head or _told(head).dated):
        origin = Origin()  # another program with a date in its head
    return _by_legend(head, origin) if origin.stamps == USUAL and LEGEND_OF_ENDS in head else origin


def _told(head: bytes) -> Clock:
    """Return what the comments before the first interval say of its stamps, if these may count since a machine was started."""
    clock = Clock(adrift=True)
    for line in takewhile(lambda line: line[:1] in BEFORE_LINES, head.split(b"\n")):
        if not DATE.match(line):
            clock.comment(line)
    return clock


def _by_legend(head: bytes, origin: Origin) -> Origin:
    """Return the origin of a log whose legend speaks of ends, by its lines without a tag.

    Java's first versions wrote that legend above lengths; the C library does, too, but `hdr_log_write` writes ends, by any clock.
    A length longer than what lies between two lines is an end. One line alone is one of C's where Java writes another legend
    by then (version 1.2), and else where its length would be longer than a day.
    """
    spans: list[tuple[int, int]] = []
    as_lengths = as_ends = True
    for line in head[: head.rfind(b"\n") + 1].split(b"\n"):
        if line[:1] in (b"#", b'"', b"") or line.startswith(TAG):
            continue
        try:
            _, start_text, second_text, _ = split_line(line)
            start, second = seconds_ns(start_text), seconds_ns(second_text)
        except StampError:
            continue
        if spans and start >= spans[-1][0]:  # else another log was appended
            before, told = spans[-1]
            as_lengths &= start >= before + told - rounding_of(told)
            as_ends &= start >= told - rounding_of(told - before)
        as_ends &= second >= start
        spans.append((start, second))
    if len(spans) == 1 and (spans[0][0] >= DAY_NS or C_VERSION.search(head)):
        as_lengths = not as_ends
    if as_lengths or not as_ends:
        open_still = len(spans) < 2 or (as_lengths and as_ends and len(spans) < ENOUGH)
        return replace(origin, settled=origin.settled and not open_still)
    start, end = spans[0]
    clock = _told(head)
    adrift = clock.base is None and start < DATED_NS and (not clock.dated or start > 2 * (end - start))
    return replace(origin, stamps=WITH_END, adrift=adrift, settled=origin.settled and len(spans) > 1)


def _by_tool(head: bytes) -> Origin:
    """Return the origin of a log by its comments and tags."""
    comments = takewhile(lambda line: line[:1] in BEFORE_LINES, head.split(b"\n"))
    origins = (_by_comment(line.decode("utf-8", "replace")) for line in comments)
    origin = next((origin for origin in origins if origin is not None), Origin())
    return _scylla_bench(head) or origin if origin is CASSANDRA else origin


def _by_comment(line: str) -> Origin | None:
    """Return the origin that a comment names, if any."""
    if match := OURS.match(line):
        return Origin("tailboard", UNITS_NS[match["unit"]])
    if match := YCSB.match(line):
        op = match["op"].lower()
        kind = "response" if op.startswith(INTENDED) else "service"
        kind = failed_kind(kind) if op.endswith(FAILED_OP) else kind
        return Origin("YCSB", US, op.removeprefix(INTENDED).removesuffix(FAILED_OP), kind, in_two_forms=bool(match["form"]))
    if DATE.match(line.encode()):
        return ASBENCH
    if match := UNITS.match(line):
        return Origin(unit_ns=SPOKEN[match["unit"].lower()])
    wrk2 = Origin("wrk2", US) if line.startswith("#") and "wrk2" in line.lower() else None
    return next((origin for mark, origin in BY_COMMENT if line.startswith(mark)), wrk2)


def in_further_head(comment: bytes, origin: Origin) -> Origin | None:
    """Return the origin that a comment behind intervals names: the given one where it is of the same, None if it names none."""
    told = _by_comment(comment.decode("utf-8", "replace"))
    if told is None or told is ASBENCH:  # a date alone is no tool
        return None
    same = (told.tool, told.unit_ns, told.op, told.kind) == (origin.tool, origin.unit_ns, origin.op, origin.kind)
    return origin if same or (told is CASSANDRA and origin.tool in SCYLLA_TOOLS) else told


def _scylla_bench(head: bytes) -> Origin | None:
    """Return the origin of a log with the comment of cassandra-stress and the tags of scylla-bench."""
    tags: dict[str, bytes] = {}
    starts: set[bytes] = set()
    unit = None
    for line in head.split(b"\n")[:-1]:
        if not line.startswith(TAG):
            continue
        try:
            tag, start, _, payload = split_line(line)
            if not SCYLLAS.match(text := tag.decode("utf-8", "replace")):
                continue
            tags[text.lower()] = tag
            starts.add(start)
            unit = unit or SCYLLA_LOWEST.get(payload_of(payload).geometry.unit_magnitude)
        except (StampError, PayloadError):
            continue
    if not tags:
        return None
    totals = {tags[kind] for kind in SCYLLA_KINDS if kind in tags and {f"{kind}-read", f"{kind}-write"} & tags.keys()}
    whole = len(starts) > 1 or len(head) >= HEAD_SIZE  # only then all tags have been seen
    return Origin("scylla-bench", unit, stamps=SCYLLA, totals=frozenset(totals), settled=whole)


def named(tag: str, origin: Origin) -> tuple[str, str, str]:
    """Return op, kind and tag of a line's tag (empty text if it has none)."""
    front, mark, last = tag.rpartition("::")
    if match := TIMED.match(last if mark else tag):
        return match["op"].lower(), KINDS[match["kind"].lower()], front
    match = SCYLLAS.match(last if mark else tag)
    if match and (origin.tool in SCYLLA_TOOLS or match["kind"].lower() != "raw"):
        return (match["op"] or "").lower(), SCYLLA_KINDS[match["kind"].lower()], front
    return origin.op, origin.kind, tag
