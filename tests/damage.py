"""What becomes of an answer when a file is damaged: each kind of damage done to a recorded file of each format, and what is said.

    python -m tests.damage       prints the table of docs/reference/damage.md

A trial is one place of one kind of damage. It ends in one of four ways:

    the same      the number of samples is what it was, and nothing is said
    told          something is said that is not said of the sound file
    refused       the file is refused, with a reason
    not seen      the number of samples is another, and nothing is said
"""

from __future__ import annotations

import lzma
import random
import shutil
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

DATA = Path(__file__).parent / "data"
SAME, TOLD, REFUSED, NOT_SEEN = "the same", "told", "refused", "not seen"
PLACES = 5


@dataclass(frozen=True)
class Recorded:
    """A recorded file that is damaged, `beside` what lies with it; `whole`: it or what lies beside it says how much there was."""

    path: str
    beside: tuple[str, ...] = ()
    whole: bool = False
    name: str = ""
    unit_ns: int | None = None
    preset: str = ""


FORMATS: Mapping[str, Recorded] = {
    "fio histogram log, with fio's JSON": Recorded("fio/stall-burst/a_clat_hist.1.log", ("fio/stall-burst/a.json",), whole=True),
    "fio histogram log alone": Recorded("fio/stall-burst/a_clat_hist.1.log"),
    "fio raw log, with fio's JSON": Recorded("raw/offset/a_clat.1.log", ("raw/offset/a.json",), whole=True),
    "fio json+": Recorded("fio/coarse-6/a.json", whole=True),
    "HdrHistogram log": Recorded("hdr/1.2.1-2-digits.hlog", unit_ns=1000),
    "YCSB raw": Recorded("raw/ycsb/raw.csv"),
    "pgbench log": Recorded("histograms/pgbench15_plain.log", name="pgbench_log.1"),
    "OpenTelemetry, delta": Recorded("histograms/otlp_delta.jsonl"),
    "OpenTelemetry, cumulative": Recorded("histograms/otlp_cumulative.jsonl"),
    "Prometheus, classic (dump)": Recorded("histograms/prom242_tsdb_dump_classic.txt"),
    "Prometheus, native (API)": Recorded("histograms/prom242_native_range_vector.json"),
    "Ceph perf histogram": Recorded("histograms/ceph_perf_histogram_synthetic.ndjson"),
    "cockroach workload": Recorded("histograms/hdr_snapshot_ticks.ndjson"),
    "asbench": Recorded("histograms/asbench_histogram.txt"),
    "sysbench --histogram": Recorded("histograms/sysbench1020_histogram.txt", preset="sysbench"),
    "Redis LATENCY HISTOGRAM": Recorded("histograms/redis70_latency_histogram.ndjson", preset="redis-latency"),
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
    content = (DATA / recorded.path).read_bytes()
    return lzma.decompress(content) if recorded.path.endswith(".xz") else content


def told(recorded: Recorded, content: bytes) -> Told:
    """Return what is answered of a folder with this content in place of the file's own."""
    with tempfile.TemporaryDirectory(prefix="damage-") as place:
        folder = Path(place) / "run"
        folder.mkdir()
        for other in recorded.beside:
            shutil.copy(DATA / other, folder)
        (folder / (recorded.name or Path(recorded.path).name)).write_bytes(content)
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


def outcome(before: Told, after: Told) -> str:
    """Return how a trial ends."""
    if after.samples is None:
        return REFUSED
    if after.sentences - before.sentences:
        return TOLD
    return SAME if after.samples == before.samples else NOT_SEEN


def trials(name: str, kind: str, places: int = PLACES) -> Counter[str]:
    """Return how trials end, at places that are drawn from the names."""
    recorded = FORMATS[name]
    content = content_of(recorded)
    before = told(recorded, content)
    chance = random.Random(f"{name} {kind}")
    ends: Counter[str] = Counter()
    for _ in range(1 if kind == "line ends of Windows" else places):
        at = chance.randrange(len(content) // 20, len(content) * 19 // 20)
        ends[outcome(before, told(recorded, DAMAGE[kind](content, at)))] += 1
    return ends


def cell(ends: Counter[str]) -> str:
    """Return a cell of the table: the ways in which trials end, the most frequent first, with how many where there are several."""
    if len(ends) == 1:
        return next(iter(ends))
    return ", ".join(f"{way} {times}" for way, times in ends.most_common())


def table() -> str:
    """Return the table as Markdown."""
    lines = ["| | " + " | ".join(DAMAGE) + " |", "|---" * (len(DAMAGE) + 1) + "|"]
    for name in FORMATS:
        lines.append(f"| {name} | " + " | ".join(cell(trials(name, kind)) for kind in DAMAGE) + " |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")
