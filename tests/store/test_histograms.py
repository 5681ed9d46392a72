"""Histograms of other tools in every store: the same answers as from the files, and a file that grows ends as one loaded whole."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.live.feeding import Clock, begun
from tests.store.grounds import grounds, loaded
from tests.store.test_contract import KINDS, csv

pytestmark = pytest.mark.contract
DATA = Path(__file__).parents[1] / "data" / "histograms"
SECOND = 1_000_000_000
MADE_UP = """\
histogram: ndjson
each: polls.{op}
bins: arrays
upper: limits
edge: "(]"
count: hits
unit: ms
over_time: total
time: {at: meta.at, unit: s}
labels: {host: meta.box}
"""
SAMPLES = {
    "otlp_delta.jsonl": "",
    "otlp_cumulative.jsonl": "",
    "prom242_native_range_vector.json": "",
    "ceph_perf_histogram_synthetic.ndjson": "",
    "hdr_snapshot_ticks.ndjson": "",
    "pgbench15_rate.log": "",
    "redis70_latency_histogram.ndjson": "redis-latency",
    "sysbench1020_histogram.txt": "sysbench",
    "made.ndjson": "made",
    "sampled.ndjson": "",
}
QUICK = ("otlp_delta.jsonl", "made.ndjson", "sampled.ndjson")
SOME = [pytest.param(name, marks=() if name in QUICK else pytest.mark.slow) for name in SAMPLES]


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def made_lines(polls: int, first: int = 1) -> list[str]:
    """Polls of a made-up tool that nothing here knows, with keys inside of others."""
    return [
        f'{{"meta":{{"at":{1_700_000_000 + number},"box":"b1"}},"polls":{{"put":{{"limits":[1,2.5,10],"hits":[{5 * number},'
        f'{number * number},{number // 2},{number // 3}]}},"get":{{"limits":[1,2.5,10],"hits":[{9 * number},{number},0,0]}}}}}}\n'
        for number in range(first, first + polls)
    ]


def made(folder: Path) -> Path:
    (folder / "made.yml").write_text(MADE_UP)
    path = folder / "made.ndjson"
    path.write_text("".join(made_lines(12)))
    return path


def sampled(folder: Path) -> Path:
    """Polls of Redis, a second apart, with a reset and a poll that failed."""
    lines = []
    for second in range(12):
        counts = {op: {"1": 3 * second, "8": 5 * second if second < 7 else second, "132": 9 * second} for op in ("get", "set")}
        said = {op: {"calls": upto["132"], "histogram_usec": upto} for op, upto in counts.items()}
        more = {"error": "exit status 1"} if second == 4 else {"said": said}
        stamp = f"{1_700_000_000 + second}.250000000"
        lines.append(f'{{"sampled_at":{stamp},"record":"poll","host":"h1","command":"redis-cli",{json.dumps(more)[1:]}\n')
    path = folder / "sampled.ndjson"
    path.write_text("".join(lines))
    return path


def sample(name: str, folder: Path) -> tuple[Path, dict]:
    if name == "sampled.ndjson":
        return sampled(folder), {}
    if name == "made.ndjson":
        return made(folder), {"description": description_of(str(folder / "made.yml"))}
    return DATA / name, {"description": description_of(SAMPLES[name])} if SAMPLES[name] else {}


@pytest.mark.parametrize("name", ["otlp_delta.jsonl", "made.ndjson"])
def test_loading_again_is_nothing_new(ground, tmp_path: Path, name: str) -> None:
    path, reading = sample(name, tmp_path)
    loaded(ground.url, [path], reading=reading, step_ns=SECOND)
    before = ground.documents()
    again = loaded(ground.url, [path], reading=reading, step_ns=SECOND)
    assert ground.documents() == before
    assert (again.documents, dict(again.duplicate)) == (0, {"already loaded": 1})


def test_a_made_up_tool_is_watched_as_it_is_loaded(ground, tmp_path: Path) -> None:
    folder = tmp_path / "log"
    folder.mkdir()
    path, reading = sample("made.ndjson", folder)
    (folder / "made.yml").rename(tmp_path / "made.yml")
    lines = made_lines(12)
    path.write_text("".join(lines[:4]))
    clock = Clock()
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock, reading=reading, run="r")
        watch.cycle()
        for upto in (6, 9, 12):
            with path.open("a") as log:
                log.write("".join(lines[upto - 3 if upto > 6 else 4 : upto]))
            clock.seconds += 30
            watch.cycle()
        clock.seconds += 60
        watch.cycle(last=True)
    files = Files([path], ReadOptions(run="r", **reading), jobs=1)
    with open_store(ground.url) as store:
        for question in (Question(step=SECOND), Question(by=("op",), step="all")):
            assert csv(store.answer(question)) == csv(files.answer(question))


@pytest.mark.parametrize("name", [pytest.param(one, marks=() if one == "made.ndjson" else pytest.mark.slow) for one in SAMPLES])
def test_every_command_shows_them(tmp_path: Path, name: str, capsys) -> None:
    path, _ = sample(name, tmp_path)
    told = str(tmp_path / "made.yml") if name == "made.ndjson" else SAMPLES[name]
    words = [str(path), *(["--input-format", told] if told else [])]
    assert command(["percentiles", *words, "--step", "all"]) == 0
    assert command(["heatmap", *words, "--format", "csv"]) == 0
    assert command(["heatmap", *words, "--axis", "linear", "--format", "csv"]) == 0
    assert command(["inspect", *words]) == 0
    assert command(["report", *words, "-o", str(tmp_path / "r.html")]) == 0
    assert command(["export", *words, "-o", str(tmp_path / "x.hlog")]) in (0, 2)
    assert "Traceback" not in capsys.readouterr().err
