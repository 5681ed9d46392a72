"""What becomes of an answer when a file is damaged: each kind of damage done to a recorded file of each format, and what is said.

    python -m tests.damage            prints the table of docs/reference/damage.md
    python -m tests.damage 2299009    the same at other places, which this seed draws

A trial is one place of one kind of damage. It ends in one of five ways:

    the same      the number of samples is what it was, and nothing is said
    told          something is said that is not said of the sound file
    refused       the file is refused, with a reason
    not seen      the number of samples is another, nothing is said, and nothing in the file shows it
    in silence    the same, though the file breaks a rule of its format (`tests.oracles.rules`): a fault
"""

from __future__ import annotations

import json
import lzma
import os
import random
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ingest.core.errors import TailboardError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from tests.oracles import hdr, rules
from tests.oracles.rules import Rule

DATA = Path(__file__).parent / "data"
SAME, TOLD, REFUSED, NOT_SEEN, SILENT = "the same", "told", "refused", "not seen", "in silence"
PLACES = 5
BEGAN = 1_790_000_000


@dataclass(frozen=True)
class Recorded:
    """A recorded file that is damaged, or one that is `made`; what lies `beside` it; the rule of its format."""

    path: str
    rule: Rule
    beside: tuple[str, ...] = ()
    made: Callable[[], str] | None = None
    name: str = ""
    unit_ns: int | None = None
    preset: str = ""

    @property
    def whole(self) -> bool:
        """Whether it or what lies beside it says how much there was."""
        return self.rule is rules.total


def operations() -> str:
    chance = random.Random(1)
    ends = [(BEGAN * 1000 + 17 * at, round(chance.lognormvariate(1, 1), 3)) for at in range(400)]
    return "start_ms,latency_ms,op\n" + "".join(f"{start},{took},{chance.choice(('read', 'write'))}\n" for start, took in ends)


def smallfile() -> str:
    chance = random.Random(2)
    return "".join(f"{'create':>8s}, {at * 0.013:9.6f}, {chance.lognormvariate(-6, 1):9.6f}\n" for at in range(400))


def ycsb_histogram() -> str:
    chance = random.Random(3)
    lines = ["YCSB Client 0.17.0", "[OVERALL], RunTime(ms), 10000", "[OVERALL], Throughput(ops/sec), 100.0"]
    for op, number in (("READ", 700), ("UPDATE", 300)):
        values = [min(int(chance.lognormvariate(1, 1)), 50) for _ in range(number)]
        lines += [f"[{op}], Operations, {number}", f"[{op}], AverageLatency(us), 3000.5", f"[{op}], Return=OK, {number}"]
        lines += [f"[{op}], {ms}, {values.count(ms)}" for ms in range(50)] + [f"[{op}], >50, {values.count(50)}"]
    return "\n".join(lines) + "\n"


def memtier() -> str:
    chance, stats = random.Random(4), {}
    for name, number in (("Sets", 90), ("Gets", 900)):
        values = [int(chance.lognormvariate(6, 1)) for _ in range(number)]
        text = hdr.line("0", "1", {hdr.index_of(value, 3): values.count(value) for value in set(values)}, digits=3)
        form = {"Compressed Histogram": text.rsplit(",", 1)[1].strip()}
        stats[name] = {"Count": number, "Percentile Latencies": {"p50.00": 0.4, "Histogram log format": form}}
    times = {"Start time": BEGAN * 1000, "Finish time": BEGAN * 1000 + 5000, "Total duration": 5000, "Time unit": "MILLISECONDS"}
    return json.dumps({"run information": {"Threads": 4}, "ALL STATS": {"Runtime": times, **stats}}, indent=1) + "\n"


def bpftrace() -> str:
    chance, text = random.Random(5), ""
    for at in range(8):
        bins = "".join(f"[{1 << power}, {2 << power})".ljust(16) + f"{chance.randint(0, 99):9d} |@@\n" for power in range(1, 9))
        text += f"06:20:{at:02d}\n@usecs:\n{bins}\n"
    return text


def bcc() -> str:
    chance, text = random.Random(6), "Tracing block device I/O... Hit Ctrl-C to end.\n"
    for at in range(8):
        text += f"\n06:20:{at:02d}\n     usecs               : count     distribution\n"
        edges = [(0, 1), *((1 << power, (2 << power) - 1) for power in range(1, 9))]
        text += "".join(f"{low:10d} -> {high:<10d} : {chance.randint(1, 99):<8d} |**|\n" for low, high in edges)
    return text


def perf() -> str:
    chance, lines = random.Random(7), []
    for at in range(200):
        for name, us, rest in (("issue", 0, "R 4096"), ("complete", chance.randint(100, 900), "R")):
            stamp = f"{5000 + at // 100}.{at % 100 * 10_000 + us:06d}"
            lines.append(f"fio 1 [000] {stamp}: block:block_rq_{name}: 8,0 {rest} () {8 * at} + 8 [0]\n")
    return "".join(lines)


def sampled() -> str:
    lines = [json.loads(line) for line in (DATA / "histograms/ceph_perf_histogram_synthetic.ndjson").read_text().splitlines()]
    word = {"host": "h1", "command": "ceph daemon osd.3 perf histogram dump"}
    return "".join(
        json.dumps({"sampled_at": BEGAN + at, "record": "poll", **word, "status": 0, "said": line["dump"]}, separators=(",", ":"))
        + "\n"
        for at, line in enumerate(lines)
    )


FORMATS: Mapping[str, Recorded] = {
    "fio histogram log, with fio's JSON": Recorded("fio/stall-burst/a_clat_hist.1.log", rules.total, ("fio/stall-burst/a.json",)),
    "fio histogram log alone": Recorded("fio/coarse-6/a_clat_hist.1.log", rules.fio_rows),
    "fio raw log, with fio's JSON": Recorded("raw/offset/a_clat.1.log", rules.total, ("raw/offset/a.json",)),
    "fio raw log alone": Recorded("raw/offset/a_clat.1.log", rules.together(rules.columns(r"\d+(, \d+)+"), rules.again)),
    "fio json+": Recorded("fio/coarse-6/a.json", rules.fio_json),
    "fio log of means, with fio's JSON": Recorded(
        "fio/means-100/a_clat.1.log", rules.nothing, ("fio/means-100/a.json", "fio/means-100/a_iops.1.log")
    ),
    "HdrHistogram log": Recorded("hdr/1.2.1-2-digits.hlog", rules.hdr_log, unit_ns=1000),
    "HdrHistogram log with tags": Recorded("hdr/tagged.hlog", rules.hdr_log, unit_ns=1000),
    "operation log": Recorded(
        "x.csv", rules.together(rules.columns(r"\d+,[\d.]+,\w+", "start_ms"), rules.again), made=operations
    ),
    "smallfile": Recorded(
        "rsptimes_00_h_create_1790000000.5.csv",
        rules.together(rules.columns(r" *\w+, +[\d.]+, +[\d.]+"), rules.again),
        made=smallfile,
    ),
    "YCSB raw": Recorded(
        "raw/ycsb/raw.csv", rules.together(rules.columns(r"[\w-]+,\d+,\d+", r".* latency raw data:"), rules.again)
    ),
    "YCSB raw, with its summary": Recorded("raw/ycsb/stdout.txt", rules.ycsb_raw),
    "YCSB histograms": Recorded("x.dat", rules.ycsb_histogram, made=ycsb_histogram),
    "pgbench log": Recorded("histograms/pgbench15_plain.log", rules.pgbench, name="pgbench_log.1"),
    "perf script": Recorded("x.txt", rules.perf, made=perf),
    "Chrome trace": Recorded("traces/node.json.xz", rules.trace),
    "OpenTelemetry, delta": Recorded("histograms/otlp_delta.jsonl", rules.of_documents(rules.otlp)),
    "OpenTelemetry, cumulative": Recorded("histograms/otlp_cumulative.jsonl", rules.of_documents(rules.otlp)),
    "Prometheus, classic (dump)": Recorded("histograms/prom242_tsdb_dump_classic.txt", rules.prometheus_dump),
    "Prometheus, native (API)": Recorded("histograms/prom242_native_range_vector.json", rules.prometheus_native),
    "Ceph perf histogram": Recorded("histograms/ceph_perf_histogram_synthetic.ndjson", rules.of_documents(rules.ceph)),
    "cockroach workload": Recorded("histograms/hdr_snapshot_ticks.ndjson", rules.cockroach),
    "asbench": Recorded("histograms/asbench_histogram.txt", rules.asbench),
    "memtier": Recorded("x.json", rules.memtier, made=memtier),
    "bpftrace": Recorded("x.txt", rules.chained(r"\[(\d+), (\d+)\) +\d+ \|"), made=bpftrace),
    "bcc": Recorded("x.txt", rules.chained(r" +(\d+) -> (\d+) +: \d+ +\|"), made=bcc),
    "sysbench --histogram": Recorded("histograms/sysbench1020_histogram.txt", rules.sysbench, preset="sysbench"),
    "Redis LATENCY HISTOGRAM": Recorded(
        "histograms/redis70_latency_histogram.ndjson", rules.of_documents(rules.redis), preset="redis-latency"
    ),
    "tailboard record sample": Recorded("x.log", rules.of_documents(rules.polled_ceph), made=sampled),
}


def cut(text: bytes, at: int) -> bytes:
    """It ends in the middle of a line."""
    while at < len(text) and text[at : at + 1] in b"\n" or text[at - 1 : at] == b"\n":
        at += 1
    return text[:at]


def cut_at_a_line(text: bytes, at: int) -> bytes:
    """It ends between two lines."""
    return text[: text.index(b"\n", at) + 1] if b"\n" in text[at:-1] else text[:at]


def beginning_lost(text: bytes, at: int) -> bytes:
    """What stood before a line is gone."""
    return text[text.index(b"\n", at) + 1 :] if b"\n" in text[at:-1] else text[at:]


def bit_flipped(text: bytes, at: int) -> bytes:
    """One bit of a digit, a letter or a mark is another."""
    return text[:at] + bytes([text[at] ^ 1 << at % 7]) + text[at + 1 :]


def zeros(text: bytes, at: int) -> bytes:
    """64 bytes are zeros, as of a block that was never written."""
    return text[:at] + bytes(min(64, len(text) - at)) + text[at + 64 :]


def garbage(text: bytes, at: int) -> bytes:
    """A line of something else stands in it."""
    begin = text.rfind(b"\n", 0, at) + 1
    return text[:begin] + b"Connection to bench01 closed.\n" + text[begin:]


def line_lost(text: bytes, at: int) -> bytes:
    """A line is gone."""
    begin = text.rfind(b"\n", 0, at) + 1
    end = text.find(b"\n", at)
    return text[:begin] + (text[end + 1 :] if end >= 0 else b"")


def part_twice(text: bytes, at: int) -> bytes:
    """A third of its lines stand there again, at its end."""
    lines = text.splitlines(keepends=True)
    first = len(lines) * at // (2 * len(text))
    return b"".join([*lines, *lines[first : first + max(1, len(lines) // 3)]])


def line_ends(text: bytes, _: int) -> bytes:
    """Its lines end as Windows ends them."""
    return text.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


DAMAGE: Mapping[str, Callable[[bytes, int], bytes]] = {
    "cut off in a line": cut,
    "cut off between lines": cut_at_a_line,
    "beginning lost": beginning_lost,
    "a bit flipped": bit_flipped,
    "64 bytes of zeros": zeros,
    "a strange line": garbage,
    "a line lost": line_lost,
    "a part twice": part_twice,
    "line ends of Windows": line_ends,
}


@dataclass(frozen=True)
class Told:
    """How many samples a folder is answered with, None where it is refused, and all that is said."""

    samples: int | None
    sentences: frozenset[str]


def content_of(recorded: Recorded) -> bytes:
    """Return the sound content of a file."""
    if recorded.made is not None:
        return recorded.made().encode()
    content = (DATA / recorded.path).read_bytes()
    return lzma.decompress(content) if recorded.path.endswith(".xz") else content


def told(recorded: Recorded, content: bytes, ending: str = "") -> Told:
    """Return what is answered of a folder with this content in place of the file's own, which has one more ending."""
    with tempfile.TemporaryDirectory(prefix="damage-") as place:
        folder = Path(place) / "run"
        folder.mkdir()
        for other in recorded.beside:
            shutil.copy(DATA / other, folder)
        path = folder / f"{recorded.name or Path(recorded.path).name.removesuffix('.xz')}{ending}"
        path.write_bytes(content)
        os.utime(path, (BEGAN + 3600, BEGAN + 3600))
        try:
            described = description_of(recorded.preset) if recorded.preset else None
            options = ReadOptions(run="r", recorded_unit_ns=recorded.unit_ns, description=described)
            files = Files([folder], options, jobs=1)
            answer = files.answer(Question(step="all", where={"kind": "*"}, force=True))
        except TailboardError as error:
            return Told(None, frozenset({str(error)}))
        account = files.account
        troubles = (f"{name} {reason}" for name in ("repaired", "rejected") for reason in getattr(account, name))
        skipped = (f"{one.path.name}: {one.reason}" for one in files.found.skipped)
        said = (*answer.warnings, *account.notes, *troubles, *skipped)
        return Told(answer.samples, frozenset(text.replace(place, "") for text in said))


def outcome(rule: Rule, content: bytes, before: Told, after: Told) -> str:
    """Return how a trial ends, of which this is the damaged content."""
    if after.samples is None:
        return REFUSED
    if after.sentences - before.sentences:
        return TOLD
    if after.samples == before.samples:
        return SAME
    return SILENT if any(rule(content)) else NOT_SEEN


def trials(name: str, kind: str, places: int = PLACES, seed: str = "") -> Counter[str]:
    """Return how trials end, at places that are drawn from the names and a seed."""
    recorded = FORMATS[name]
    content = content_of(recorded)
    before = told(recorded, content)
    chance = random.Random(f"{name} {kind} {seed}".rstrip())
    ends: Counter[str] = Counter()
    for _ in range(1 if kind == "line ends of Windows" else places):
        at = chance.randrange(len(content) // 20, len(content) * 19 // 20)
        damaged = DAMAGE[kind](content, at)
        ends[outcome(recorded.rule, damaged, before, told(recorded, damaged))] += 1
    return ends


def cell(ends: Counter[str]) -> str:
    """Return a cell of the table: the ways in which trials end, the most frequent first, with how many where there are several."""
    if len(ends) == 1:
        return next(iter(ends))
    return ", ".join(f"{way} {times}" for way, times in ends.most_common())


def table(seed: str = "") -> str:
    """Return the table as Markdown."""
    lines = ["| | " + " | ".join(DAMAGE) + " |", "|---" * (len(DAMAGE) + 1) + "|"]
    for name in FORMATS:
        lines.append(f"| {name} | " + " | ".join(cell(trials(name, kind, seed=seed)) for kind in DAMAGE) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(*sys.argv[1:2]), end="")
