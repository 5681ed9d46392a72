"""A rejected line is a missing sample, in every format of lines, unless the format says that it costs none."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions

SECOND, MS = 10**9, 10**6
START_MS = 1_795_330_000_000
NUMBER = 300


def lines_of(shape: str) -> list[str]:
    """Return 300 operations of 1 ms, one each 50 ms, as lines of a format."""
    starts = [START_MS + 50 * number for number in range(NUMBER)]
    if shape == "operations":
        return [f"{start},1.0,read\n" for start in starts]
    if shape == "pgbench":
        return [f"0 {n} 1000 0 {(s + 1) // 1000} {(s + 1) % 1000 * 1000}\n" for n, s in enumerate(starts)]
    if shape == "chrome":
        return [f'{{"name":"read","ph":"X","pid":1,"tid":1,"ts":{start * 1000},"dur":1000}},\n' for start in starts]
    if shape == "described":
        return [f"{start + 1},1.0,read\n" for start in starts]
    if shape == "ndjson":
        return [json.dumps({"done_ms": start + 1, "took_ms": 1.0, "op": "read"}) + "\n" for start in starts]
    if shape == "smallfile":
        return [f"read,  {(start - START_MS) / 1000:.6f},  0.001000\n" for start in starts]
    if shape == "ycsb":
        return [f"READ,{start + 1},1000\n" for start in starts]
    assert shape == "perf"
    both = []
    for number, start in enumerate(starts):
        for name, at, rest in (("issue", start * 1000, "R 4096"), ("complete", start * 1000 + 1000, "R")):
            stamp = f"{at // 10**6}.{at % 10**6:06d}"
            both.append(f"fio 1 [000] {stamp}: block:block_rq_{name}: 8,0 {rest} () {8 * number} + 8 [0]\n")
    return both


HEADS = {"operations": "start_ms,latency_ms,op\n", "described": "done_ms,took_ms,op\n", "chrome": '{"traceEvents":[\n'}
HEADS["ycsb"] = "READ latency raw data: op, timestamp(ms), latency(us)\n"
ENDS = {"chrome": "{}]}\n"}
NAMES = {"pgbench": "pgbench_log.1", "smallfile": f"rsptimes_01_c7_read_{START_MS // 1000}.0000.csv"}
SHAPES = ("operations", "pgbench", "chrome", "described", "ndjson", "smallfile", "ycsb", "perf")


def answer_of(shape: str, lines: list[str], folder: Path, step: int = SECOND) -> Answer:
    path = folder / NAMES.get(shape, "x.log")
    tail = ENDS.get(shape, "")
    if shape == "chrome":
        lines[-1] = lines[-1].replace("},", "}")
        tail = "]}\n"
    path.write_text(HEADS.get(shape, "") + "".join(lines) + tail)
    description = None
    if shape in ("described", "ndjson"):
        (folder / "d.yml").write_text("time: done_ms\nlatency: took_ms\nlabels: {op: op}\n")
        description = description_of(str(folder / "d.yml"))
    return Files([path], ReadOptions(run="r", description=description), jobs=1).answer(Question(step=step))


def incomplete(answer: Answer) -> set[int]:
    """Return the windows that lack something, in s since the first operation."""
    table = percentiles(answer, Wanted(()))
    starts, complete = table.columns["start_ns"], table.columns["complete"]
    return {(int(start) - START_MS * MS) // SECOND for start, whole in zip(starts, complete, strict=True) if not whole}


@pytest.mark.parametrize("shape", SHAPES)
def test_n11_a_sound_file_lacks_nothing(shape: str, tmp_path: Path) -> None:
    answer = answer_of(shape, lines_of(shape), tmp_path)
    assert answer.missing == () and answer.caveats == ()
    assert sum(int(part.counts.sum()) for part in answer.parts) == NUMBER


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("shape", SHAPES)
def test_n11_a_line_that_cannot_be_read_is_missing_where_it_stood(shape: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = lines_of(shape)
    each = len(lines) // NUMBER
    bad = sorted(chance.sample(range(NUMBER), 15 if seed else 1))
    for number in bad:
        at = number * each + chance.randrange(each)
        garbage = '{"name":"read","ph":"X","pid":1,"tid":1,"ts":"x","dur":1000},\n' if shape == "chrome" else "9x," * 3 + "?\n"
        lines[at] = garbage if chance.random() < 0.5 or shape == "chrome" else lines[at].replace("0", "x")
    answer = answer_of(shape, lines, tmp_path)
    assert sum(int(part.counts.sum()) for part in answer.parts) == NUMBER - len(bad)
    assert sum(lack.entry.count for lack in answer.missing) == len(bad)
    lost = {number // 20 for number in bad}
    found = incomplete(answer)
    assert lost - found <= {number for number in lost if len([n for n in bad if n // 20 == number]) == 20}


@pytest.mark.parametrize("shape", ["operations", "pgbench", "described", "smallfile", "chrome"])
def test_n11_what_lies_far_from_a_rejected_line_is_complete(shape: str, tmp_path: Path) -> None:
    """Lines are placed by the blocks of 1 MiB around them; of an operation log by some hundred lines."""
    lines = []
    for more in range(400):
        part = lines_of(shape)
        seconds = more * NUMBER // 20
        lines += [_later(shape, line, seconds) for line in part]
    lines[len(lines) // 2] = lines[len(lines) // 2].replace("0", "x")
    answer = answer_of(shape, lines, tmp_path, step=60 * SECOND)
    found = incomplete(answer)
    middle, whole = 400 * 15 // 2, 400 * 15
    assert any(second <= middle < second + 60 for second in found)
    assert len(found) <= (2 if shape == "operations" else whole // 60 // 2)


def _later(shape: str, line: str, seconds: int) -> str:
    """Return a line of an operation that is so much later."""
    if shape == "smallfile":
        op, start, took = line.split(",")
        return f"{op},  {float(start) + seconds:.6f},{took}"
    if shape == "pgbench":
        cells = line.split()
        return " ".join([*cells[:4], str(int(cells[4]) + seconds), cells[5]]) + "\n"
    stamp = next(word for word in line.replace(":", ",").split(",") if word.startswith("17953"))
    unit = 1000 if len(stamp) == 13 else 10**6
    return line.replace(stamp, str(int(stamp) + seconds * unit))


def test_n11_what_no_recording_holds_from_its_beginning_to_its_end_costs_nothing(tmp_path: Path) -> None:
    """A request that was under way when perf began, and one that was when it stopped."""
    lines = lines_of("perf")
    answer = answer_of("perf", lines[1:-1], tmp_path)
    assert answer.missing == ()
    traced = lines_of("chrome")
    first, last = (
        '{"ph":"E","pid":2,"tid":2,"ts":%d},\n' % (START_MS * 1000),
        '{"name":"a","ph":"B","pid":2,"tid":2,"ts":%d},\n',
    )
    answer = answer_of("chrome", [first, *traced, last % (START_MS * 1000 + 10**6)], tmp_path)
    assert answer.missing == ()


def test_n11_a_trace_that_breaks_off_within_an_event_lacks_what_follows(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text(HEADS["chrome"] + "".join(lines_of("chrome"))[:-40])
    answer = Files([path], jobs=1).answer(Question(step=SECOND))
    assert "cut-short" in {caveat.code for caveat in answer.caveats}
    path.write_text(HEADS["chrome"] + "".join(lines_of("chrome")))  # Chrome does not always close its array
    assert Files([path], jobs=1).answer(Question(step=SECOND)).caveats == ()


@pytest.mark.parametrize("weighed", [True, False])
def test_n11_a_line_that_stands_for_many_is_missing_in_unknown_number(weighed: bool, tmp_path: Path) -> None:
    (tmp_path / "d.yml").write_text("time: done_ms\nlatency: took_ms\n" + ("weight: n\n" if weighed else ""))
    (tmp_path / "x.csv").write_text(
        "done_ms,took_ms,n\n" + "".join(f"{START_MS + n},{'1' if n != 5 else 'x'},7\n" for n in range(9))
    )
    options = ReadOptions(description=description_of(str(tmp_path / "d.yml")))
    answer = Files([tmp_path / "x.csv"], options, jobs=1).answer(Question(step="all"))
    assert [lack.entry.count for lack in answer.missing] == [None if weighed else 1]


# ---- histograms of polls ---------------------------------------------------------------------------------------------


def otlp(second: int, counts: list[int], temporality: int, name: str = "m") -> str:
    point = {
        "startTimeUnixNano": str(START_MS * MS if temporality == 2 else START_MS * MS + (second - 1) * SECOND),
        "timeUnixNano": str(START_MS * MS + second * SECOND),
        "count": str(sum(counts)),
        "explicitBounds": [1, 10],
        "bucketCounts": [str(number) for number in counts],
    }
    body = {"aggregationTemporality": temporality, "dataPoints": [point]}
    metric = {"name": name, "unit": "ms", "histogram": body}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


Damage = Callable[[str], str]
DAMAGES: list[Damage] = [lambda line: line[: len(line) // 2] + "\n", lambda line: line[: len(line) // 2], lambda line: "x\n"]


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("names", [("m",), ("m", "n")])
def test_n11_a_broken_last_document_is_missing_though_counts_are_since_a_start(
    damage: Damage, names: tuple[str, ...], tmp_path: Path
) -> None:
    path = tmp_path / "a.jsonl"
    lines = [otlp(second, [second, second, 0], 2, name) for second in range(1, 11) for name in names]
    path.write_text("".join(lines))
    assert Files([path], jobs=1).answer(Question(step=SECOND)).missing == ()
    path.write_text("".join([*lines[:-1], damage(lines[-1])]))
    answer = Files([path], jobs=1).answer(Question(step=SECOND))
    found = incomplete(answer)
    assert answer.missing and (len(names) == 1 or 9 in found) and not found & set(range(8))


@pytest.mark.parametrize("damage", [DAMAGES[0], DAMAGES[2]])
def test_n11_a_broken_document_in_the_middle_costs_nothing_where_a_later_one_counts_on(damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [otlp(second, [second, second, 0], 2) for second in range(1, 11)]
    path.write_text("".join([*lines[:4], damage(lines[4]), *lines[5:]]))
    assert Files([path], jobs=1).answer(Question(step="all")).missing == ()


@pytest.mark.parametrize("damage", [DAMAGES[0], DAMAGES[2]])
@pytest.mark.parametrize("at", range(1, 9))
def test_n11_a_broken_document_of_an_interval_is_missing_where_it_stood(at: int, damage: Damage, tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    lines = [otlp(second, [3, 4, 0], 1, name) for second in range(1, 11) for name in ("m", "n")]
    lines[2 * at] = damage(lines[2 * at])
    path.write_text("".join(lines))
    found = incomplete(Files([path], jobs=1).answer(Question(step=SECOND)))
    assert at in found and found <= {at - 1, at, at + 1}


def test_n11_a_last_scrape_that_is_no_sample_is_missing(tmp_path: Path) -> None:
    lines = []
    for second in range(1, 6):
        for edge, count in (("0.001", second), ("0.01", 2 * second), ("+Inf", 2 * second)):
            lines.append(f'rpc_seconds_bucket{{le="{edge}"}} {count} {START_MS + 1000 * second}\n')
    (tmp_path / "a.prom").write_text("".join(lines))
    assert Files([tmp_path / "a.prom"], jobs=1).answer(Question(step="all")).missing == ()
    (tmp_path / "a.prom").write_text("".join(lines) + "rpc_seconds_bucket{le=\n")
    assert Files([tmp_path / "a.prom"], jobs=1).answer(Question(step="all")).missing
    (tmp_path / "a.prom").write_text("".join([*lines[:6], "rpc_seconds_bucket{le=\n", *lines[6:]]))
    assert Files([tmp_path / "a.prom"], jobs=1).answer(Question(step="all")).missing == ()
