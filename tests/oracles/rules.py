"""What a damaged file shows of itself, worked out without the code under test: totals, checksums and rules that sound files keep.

Each rule takes the bytes of a file and yields what is not as its format has it: nothing of a sound file. `Total` is of files
beside which, or in which, the tool says how much there was: whatever becomes of their samples is seen.
"""

from __future__ import annotations

import base64
import binascii
import json
import re
import struct
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from itertools import pairwise

Rule = Callable[[bytes], Iterator[str]]
HDR_COMPRESSED = (0x1C849309, 0x1C849302, 0x1C849304)  # of versions 0 to 2; the last digit but one is a word size


def nothing(_: bytes) -> Iterator[str]:
    """A file of which any line may be gone."""
    return iter(())


def total(_: bytes) -> Iterator[str]:
    """What lies beside it says how much there was."""
    yield "a total beside it"


def ended(content: bytes) -> Iterator[str]:
    """Tools end their last line."""
    if not content.rstrip(b" ").endswith(b"\n"):
        yield "its last line has no end"


def columns(pattern: str, passed: str = "") -> Rule:
    """All lines have a form, but those that begin with `passed`."""

    def rule(content: bytes) -> Iterator[str]:
        yield from ended(content)
        for line in content.split(b"\n")[:-1]:
            text = line.decode("latin-1").rstrip("\r")
            if not (re.fullmatch(pattern, text) or (passed and re.match(passed, text))):
                yield f"no line of its form: {text[:60]!r}"

    return rule


def fio_rows(content: bytes) -> Iterator[str]:
    """Rows of whole numbers, as many in each; no three of them twice."""
    yield from columns(r"\d+, [0-2], \d+(, \d+)+")(content)
    lines = content.replace(b"\r", b"").split(b"\n")[:-1]
    if len({line.count(b",") for line in lines}) > 1:
        yield "rows of unlike length"
    stretches = Counter(tuple(lines[at : at + 3]) for at in range(len(lines) - 2) if len(set(lines[at : at + 3])) == 3)
    if any(times > 1 for times in stretches.values()):
        yield "rows that come again"


def of_documents(check: Callable[[dict], Iterator[str]]) -> Rule:
    """A JSON object a line, each of which `check` looks at."""

    def rule(content: bytes) -> Iterator[str]:
        for line in filter(bytes.strip, content.split(b"\n")):
            try:
                document = json.loads(line)
            except ValueError:
                yield "no JSON"
                continue
            if not isinstance(document, dict):
                yield "no object"
                continue
            try:
                yield from check(document)
            except (KeyError, TypeError, ValueError, AttributeError, IndexError) as error:
                yield f"not as it must be: {error!r}"

    return rule


def fio_json(content: bytes) -> Iterator[str]:
    """The bins of each direction add up to its N."""
    try:
        document = json.loads(content[content.index(b"{") :])
        for job in document["jobs"]:
            for op in ("read", "write", "trim"):
                clat = job.get(op, {}).get("clat_ns", {})
                if clat.get("N", 0) != sum(clat.get("bins", {}).values()):
                    yield "bins are not N"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"no JSON of fio: {error!r}"


def hdr_payload(text: bytes) -> bool:
    """Whether a compressed histogram has its length and its checksum."""
    try:
        raw = base64.b64decode(text, validate=True)
        cookie, length = struct.unpack_from(">ii", raw)
        return cookie & ~0xF0 in HDR_COMPRESSED and len(zlib.decompress(raw[8 : 8 + length])) >= 24
    except (binascii.Error, struct.error, zlib.error, ValueError):
        return False


def hdr_log(content: bytes) -> Iterator[str]:
    """Each line ends in a histogram with its checksum; those of a tag are in order of time, none of them twice."""
    yield from ended(content)
    starts = defaultdict(list)
    for line in content.replace(b"\r", b"").split(b"\n"):
        cells = line.split(b",")
        if not line.strip() or line.startswith((b"#", b'"')):
            continue
        tag = cells.pop(0) if cells[0].startswith(b"Tag=") else b""
        numbers = [re.fullmatch(rb"\d+\.\d+", cell) for cell in cells[:3]]
        if len(cells) != 4 or not all(numbers) or not hdr_payload(cells[-1]):
            yield "no histogram of HdrHistogram"
        elif numbers[0]:
            starts[tag].append(float(numbers[0][0]))
    if any(later <= earlier for some in starts.values() for earlier, later in pairwise(some)):
        yield "intervals that begin before those before them"


def again(content: bytes) -> Iterator[str]:
    """A stretch of 40 lines that comes again, of logs in which stamps tell one line from another."""
    lines = [line.rstrip(b"\r") for line in content.split(b"\n")]
    met = Counter(tuple(lines[at : at + 40]) for at in range(len(lines) - 40))
    if any(times > 1 and len(set(some)) > 20 for some, times in met.items()):
        yield "lines that come again in a row"


def together(*rules: Rule) -> Rule:
    """Several rules."""

    def rule(content: bytes) -> Iterator[str]:
        for one in rules:
            yield from one(content)

    return rule


def pgbench(content: bytes) -> Iterator[str]:
    """Each client numbers its transactions one by one, and the first is 1."""
    yield from columns(r"\d+ \d+ \d+ \d+ \d+ \d{1,6}( \d+)*")(content)
    expected: Counter[bytes] = Counter()
    for line in content.split(b"\n"):
        cells = line.split()
        if len(cells) > 1 and cells[1].isdigit():
            expected[cells[0]] += 1
            if int(cells[1]) != expected[cells[0]]:
                yield "a number is missing, or comes twice"
                return


def otlp_points(document: dict) -> Iterator[tuple[dict, str]]:
    for resource in document["resourceMetrics"]:
        for scope in resource["scopeMetrics"]:
            for metric in scope["metrics"]:
                for sort in ("histogram", "exponentialHistogram"):
                    for point in metric.get(sort, {}).get("dataPoints", ()):
                        yield point, metric["name"]


def otlp(document: dict) -> Iterator[str]:
    """The buckets of a point add up to its count."""
    found = 0
    for point, _ in otlp_points(document):
        found += 1
        counts = point["bucketCounts"] if "bucketCounts" in point else point["positive"]["bucketCounts"]
        if sum(map(int, counts)) + int(point.get("zeroCount", 0)) != int(point["count"]):
            yield "buckets are not the count"
    if not found:
        yield "no point"


def prometheus_dump(content: bytes) -> Iterator[str]:
    """Buckets rise with their bounds and the last is open; each bound of a series has the same times."""
    yield from columns(r"\{.*\} -?[0-9.e+]+ \d{13}")(content)
    series: dict[str, dict[str, dict[float, float]]] = defaultdict(lambda: defaultdict(dict))
    for line in content.decode("latin-1").split("\n"):
        match = re.fullmatch(r'\{(.*?)(?:, )?le="([^"]*)"\} ([0-9.e+]+) (\d{13})\r?', line)
        if match and "_bucket" in match[1]:
            series[match[1]][match[4]][float(match[2].replace("+Inf", "inf"))] = float(match[3])
    for of_time in series.values():
        bounds = {bound for buckets in of_time.values() for bound in buckets}
        for buckets in of_time.values():
            counts = [buckets[bound] for bound in sorted(buckets)]
            if set(buckets) != bounds or float("inf") not in buckets or counts != sorted(counts):
                yield "buckets that do not rise, or are not there"


def prometheus_native(content: bytes) -> Iterator[str]:
    """The buckets of each histogram add up to its count."""
    try:
        for result in json.loads(content)["data"]["result"]:
            for _, histogram in result["histograms"]:
                if sum(int(bucket[3]) for bucket in histogram["buckets"]) != int(histogram["count"]):
                    yield "buckets are not the count"
    except (ValueError, KeyError, TypeError, IndexError) as error:
        yield f"no answer of Prometheus: {error!r}"


def ceph(document: dict) -> Iterator[str]:
    """Counts are a table of the size of its axes."""
    float(document["sampled_at"])
    for counters in document["dump"].values():
        for body in counters.values():
            rows, columns_ = (len(axis["ranges"]) for axis in body["axes"])
            if len(body["values"]) != rows or any(len(row) != columns_ for row in body["values"]):
                yield "counts that do not fit the axes"


def cockroach(content: bytes) -> Iterator[str]:
    """A snapshot begins where the one before of its operation ended, and has as many counts as its bins."""
    sizes, before = set(), {}

    def check(document: dict) -> Iterator[str]:
        stamp = re.fullmatch(r"(.*T)(\d\d):(\d\d):(\d\d)\.?(\d*)(.*)", document["Now"])
        if stamp is None:
            yield "no time"
            return
        at = (int(stamp[2]) * 3600 + int(stamp[3]) * 60 + int(stamp[4])) * 10**9 + int(stamp[5].ljust(9, "0"))
        name, start = document["Name"], at - int(document["Elapsed"])
        if name in before and abs(start - before[name]) > 10**6:
            yield "a snapshot is missing, or comes twice"
        before[name] = at
        body = document["Hist"]
        sizes.add((body["LowestTrackableValue"], body["HighestTrackableValue"], body["SignificantFigures"], len(body["Counts"])))

    yield from of_documents(check)(content)
    if len(sizes) > 1:
        yield "snapshots of unlike size"


def asbench(content: bytes) -> Iterator[str]:
    """The buckets of a line add up to its count, and each is one of those that the head names."""
    yield from ended(content)
    for line in content.decode("latin-1").split("\n"):
        match = re.fullmatch(r"(read|write)_hist \d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ, [\d.]+s, (\d+)((?:, \d+:\d+)*)\r?", line)
        if match is None and (line[:1].strip() and not re.fullmatch(r"(read|write)_hist:\r?", line)):
            yield "no line of its form"
        elif match and sum(int(cell.split(":")[1]) for cell in match[3].split(", ")[1:]) != int(match[2]):
            yield "buckets are not the count"


def sysbench(content: bytes) -> Iterator[str]:
    """The counts add up to the number of events."""
    text = content.decode("latin-1")
    events = re.search(r"^ +total number of events: +(\d+)\r?$", text, re.MULTILINE)
    counts = re.findall(r"^ *\d+\.\d+ \|\**\s+(\d+)\s*$", text, re.MULTILINE)
    if events is None or sum(map(int, counts)) != int(events[1]):
        yield "counts are not the number of events"


def redis(document: dict) -> Iterator[str]:
    """Counts up to an edge rise to the number of calls."""
    float(document["t"])
    for body in document["r"].values():
        counts = [body["histogram_usec"][key] for key in sorted(body["histogram_usec"], key=int)]
        if counts != sorted(counts) or counts[-1:] != [body["calls"]]:
            yield "counts do not rise to the calls"


def polled_ceph(document: dict) -> Iterator[str]:
    """An answer of Ceph that `tailboard record sample` kept."""
    yield from ceph({"sampled_at": document["sampled_at"], "dump": document["said"]})


def ycsb_raw(content: bytes) -> Iterator[str]:
    """Each operation has its summary behind its lines, which says how many there are, or none has one."""
    text = content.decode("latin-1")
    rows = Counter(re.findall(r"^([A-Z][\w-]*),\d+,\d+\r?$", text, re.MULTILINE))
    totals = {op: int(count) for op, count in re.findall(r"^\[([\w-]+)\], Total Operations, (\d+)\r?$", text, re.MULTILINE)}
    if totals and rows != totals:
        yield "lines are not the total"


def ycsb_histogram(content: bytes) -> Iterator[str]:
    """The buckets of an operation add up to what it counts, and none is left out."""
    counts: dict[str, dict[str, int]] = defaultdict(dict)
    for name, what, count in re.findall(r"^\[(\w+)\], (>?\d+|Operations), (\d+)\r?$", content.decode("latin-1"), re.MULTILINE):
        counts[name][what] = int(count)
    for of_op in counts.values():
        operations = of_op.pop("Operations", None)
        if operations is None or sum(of_op.values()) != operations:
            yield "buckets are not the operations"


def memtier(content: bytes) -> Iterator[str]:
    """Each command has a histogram with its checksum."""
    try:
        for name, body in json.loads(content)["ALL STATS"].items():
            if name != "Runtime" and not hdr_payload(
                body["Percentile Latencies"]["Histogram log format"]["Compressed Histogram"].encode()
            ):
                yield "no histogram"
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        yield f"no JSON of memtier: {error!r}"


def trace(content: bytes) -> Iterator[str]:
    """A trace of events is JSON to its end."""
    try:
        events = json.loads(content)["traceEvents"]
    except (ValueError, KeyError, TypeError) as error:
        yield f"no trace: {error!r}"
        return
    told = [json.dumps(event, sort_keys=True) for event in events if event.get("ph") == "X"]
    yield from again("\n".join(told).encode())


def perf(content: bytes) -> Iterator[str]:
    """Each request that was issued is completed."""
    pattern = r".* \[\d{3}\] +\d+\.\d{6}: block:block_rq_(issue|complete): (\d+,\d+) (\w+)(?: \d+)? \(\) (\d+) \+ (\d+) .*"
    yield from columns(pattern)(content)
    names: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for line in content.decode("latin-1").split("\n"):
        if match := re.fullmatch(pattern, line.rstrip("\r")):
            names[match.groups()[1:]].append(match[1])
    if any(some != ["issue", "complete"] for some in names.values()):
        yield "a request without its issue or its completion"


def chained(pattern: str) -> Rule:
    """Bins of a printed histogram each begin where the one above ends; a line that is cut is none."""

    def rule(content: bytes) -> Iterator[str]:
        before: int | None = None
        for line in content.decode("latin-1").split("\n"):
            match = re.match(pattern, line)
            if match is None:
                if before is not None and line.strip():
                    yield "a line within a histogram that is no bin"
                before = None
                continue
            low, high = int(match[1]), int(match[2])
            if before is not None and low != before:
                yield "a bin is missing"
            before = high + (match[0].lstrip()[0] != "[")

    return rule
