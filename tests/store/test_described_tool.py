"""One more tool by its description alone: nginx's traffic status (nginx-module-vts), of which nothing in tailboard knows.

`curl -s http://host/status/format/json`, asked by `tailboard record sample`: counts up to each edge, since the server's start. The lines
below are all that is added; they work in questions, load, watch and report, from files and from either store.
"""

from __future__ import annotations

import csv
import json
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.live.feeding import Clock, begun
from tests.store.grounds import grounds
from tests.store.test_contract import KINDS
from tests.store.test_contract import csv as as_csv

pytestmark = pytest.mark.contract
DESCRIPTION = """\
histogram: json
each: serverZones.{op}.requestBuckets
bins: arrays
upper: msecs
count: counters
edge: le
unit: ms
over_time: total
"""
EDGES, POLLS = [5, 10, 50, 250], 12
S, MS = 10**9, 10**6


def counted(zone: int, poll: int) -> list[int]:
    """Requests of one zone since the start, of each bin by itself."""
    return [7 * poll + zone, 3 * poll, poll * poll, zone * (poll // 4)]


def line(poll: int) -> str:
    zones = {}
    for number, zone in enumerate(("shop.example", "api.example")):
        upto = [sum(counted(number, poll)[: place + 1]) for place in range(len(EDGES))]
        zones[zone] = {"requestCounter": upto[-1], "requestBuckets": {"msecs": EDGES, "counters": upto}}
    said = {"hostName": "web1", "nowMsec": 1, "serverZones": zones}
    body = {"sampled_at": 1_700_000_000 + poll, "record": "poll", "host": "web1", "command": "curl", "status": 0, "said": said}
    return json.dumps(body, separators=(",", ":")) + "\n"


def wanted() -> dict[tuple[str, int], list[int]]:
    """The counts between two polls by zone and second: brute force."""
    return {
        (zone, poll - 1): [b - a for a, b in zip(counted(number, poll - 1), counted(number, poll), strict=True)]
        for number, zone in enumerate(("shop.example", "api.example"))
        for poll in range(1, POLLS)
    }


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


@pytest.mark.slow
def test_a_tool_that_nobody_knows_is_asked_loaded_watched_and_reported(ground, tmp_path: Path, capsys) -> None:
    folder, description = tmp_path / "polls", tmp_path / "vts.yml"
    folder.mkdir()
    description.write_text(DESCRIPTION)
    path = folder / "web1.ndjson"
    path.write_text("".join(map(line, range(POLLS))))
    files = Files([path], ReadOptions(run="r", description=description_of(str(description))), jobs=1)
    by_zone = Question(by=("op", "host"), step=S)
    rows = {}
    for part in files.answer(by_zone).parts:
        for at in range(len(part)):
            inside = slice(part.indptr[at], part.indptr[at + 1])
            bins = dict(zip(part.layout.values[part.bins[inside]].tolist(), part.counts[inside].tolist(), strict=True))
            zone, host = part.table[part.series[at]]
            assert host == "web1"
            rows[zone, int(part.start_ns[at]) // S - 1_700_000_000] = [bins.get(edge * MS, 0) for edge in EDGES]
    assert rows == wanted()

    words = ["--input-format", str(description)]
    assert tailboard(["load", str(path), *words, "--run", "loaded", "--step", "1s", "--store", ground.url]) == 0
    lines = path.read_text().splitlines(keepends=True)
    path.write_text("".join(lines[:4]))
    clock = Clock()
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock, reading={"description": description_of(str(description))}, run="watched")
        for upto in (4, 7, POLLS):
            path.write_text("".join(lines[:upto]))
            watch.cycle()
            clock.seconds += 60
        watch.cycle(last=True)
    with open_store(ground.url) as store:
        for question in (by_zone, Question(step="all"), Question(by=("op",), step=5 * S)):
            for run in ("loaded", "watched"):
                own = replace(question, runs=(run,))
                assert as_csv(store.answer(own)) == as_csv(files.answer(question)), run

    capsys.readouterr()
    assert tailboard(["percentiles", ground.url, "--run", "watched", "--step", "all", "--by", "op", "--format", "csv"]) == 0
    told = {row["op"]: int(row["count"]) for row in csv.DictReader(capsys.readouterr().out.splitlines())}
    assert told == {zone: sum(sum(counts) for (name, _), counts in wanted().items() if name == zone) for zone, _ in wanted()}
    for source in ([ground.url, "--run", "loaded"], [str(path), *words]):
        page = tmp_path / "report.html"
        assert tailboard(["report", *source, "-o", str(page)]) == 0
        assert "shop.example" in page.read_text() and page.stat().st_size > 10_000
    assert "Traceback" not in capsys.readouterr().err
