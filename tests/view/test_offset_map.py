"""Maps of offsets that the page makes of its ticks: held cell by cell against the query layer, and against plain counts."""

from __future__ import annotations

import json
import os
import random
import shutil
import subprocess
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from event_files import event_file, reading
from ingest.core.offsets import Periods
from ingest.core.units import parse_instant
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query import offsets as offset_overview
from ingest.query import offsets as offset_resolution
from ingest.query import offsets as offset_ticks
from ingest.query.files import Files
from ingest.query.offsets import (
    OffsetMap,
    OffsetOverview,
    WantedOffsets,
    from_files,
    highlighted,
    joined,
    lit_counts,
    offset_overviews,
    shown_names,
)
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import offsets as stored_offsets
from ingest.store import open_store
from ingest.store.offsets import from_store
from ingest.view.page.panels import offsets as offset_section
from oracles import offsets as oracle
from oracles import per_io
from tests.store.grounds import grounds

MS, SECOND = oracle.MS, oracle.SECOND
ZERO = 1_789_999_200 * SECOND
FOLDER = Path(offset_section.__file__).parents[1]
NODE = shutil.which("node")
RAW = Path(__file__).parents[1] / "data" / "raw" / "both"
PERIODS = [
    (SECOND, 50),
    (SECOND, 49),
    (SECOND, 99),
    (100 * MS, 50),
    (100 * MS, 49),
    (60 * SECOND, 60),
    (3600 * SECOND, 50),
    (86_400 * SECOND, 24),
]


def js(code: str, given):
    """Return what the code returns in Node; `o` is offsets.js, `run` the unpacked run that `given` holds."""
    if NODE is None:
        if os.environ.get("CI"):
            pytest.fail("node is not here, and CI is to test offset_map.js")
        pytest.skip("node is not here")
    program = f"""
        globalThis.tailboard = require({json.dumps(str(FOLDER / "script/numbers.js"))});
        const o = require({json.dumps(str(FOLDER / "panels/offsets.js"))});
        let text = ""; process.stdin.on("data", (part) => text += part).on("end", async () => {{
          const given = JSON.parse(text), run = await o.unpack(given.run);
          process.stdout.write(JSON.stringify(await (async () => {{ {code} }})()));
        }});"""
    done = subprocess.run([NODE, "-e", program], input=json.dumps(given), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


MAPS = """return given.asked.map(({ period, rows, only, not, lit, from, to, most }) => {
  const groups = o.groupsOf(run, only, not), map = o.mapOf(run, { period, rows, from, to, most }, groups, lit ? [o.groupsOf(run, lit).filter((one) => groups.includes(one))] : []);
  return { cells: o.cellsOf(map).map((cell) => ({ ...cell, lit: cell.lit[0] })), gaps: o.gapsOf(run, period), late: o.lateOf(run, period, groups), resampled: o.resampled(run, period, rows), begin: map.begin };
});"""


def told_of(found: OffsetOverview) -> dict:
    (told,) = offset_section.section([found]).content.values()
    return json.loads(json.dumps(told))


def maps(found: OffsetOverview, *asked: dict) -> list[dict]:
    return js(MAPS, {"run": told_of(found), "asked": [{"only": {}, "not": {}, "lit": None, **one} for one in asked]})


def in_page(period: int, rows: int, **words) -> dict:
    return {"period": period // MS, "rows": rows, **words}


def made(seconds: int = 400, seed: int = 4, many: int = 5_000) -> list[tuple]:
    """Events of 3 hosts and 9 processes with weights; gaps, and a stretch that is reported late."""
    dice = random.Random(seed)
    rows = []
    for _ in range(many):
        second = dice.choice([at for at in range(seconds) if at % 37 not in (5, 6)])
        end = ZERO + second * SECOND + dice.randrange(SECOND)
        rows.append(
            (
                end,
                dice.randrange(MS),
                f"h{dice.randrange(3)}",
                f"p{dice.randrange(9)}",
                dice.choice(["read", "write"]),
                dice.randrange(1, 9),
            )
        )
    rows.sort()
    return rows[200:] + rows[:200]


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("ticks")
    event_file(path, made())
    return path


def files_of(folder: Path, **words) -> Files:
    return Files([folder / "events.csv"], reading(folder, **words), jobs=1)


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def stored(request, folder: Path):
    with grounds(request.param, folder) as ground:
        with open_store(ground.url, write=True) as store:
            load([folder / "events.csv"], store, LoadOptions(read=replace(reading(folder), run="r"), jobs=1))
        with open_store(ground.url) as store:
            yield store


def overview(origin, question: Question | None = None, **words) -> OffsetOverview:
    (found,) = offset_overviews(origin, {"r": "r"}, question or Question(), **words)
    return found


def cells_of(answer: OffsetMap) -> Counter:
    """Return the count of each cell by (start in ms, lower edge in ns), after neighbours were added up as a page does."""
    cells = joined(answer, 720)[0].cells
    edges = answer.periods.edges
    return Counter(
        {
            (int(t) // MS, int(edges[row])): int(c)
            for t, row, c in zip(cells.start_ns[cells.row], cells.bins, cells.counts, strict=True)
        }
    )


def shown(found: dict, what: str = "c") -> Counter:
    return Counter({(cell["t"], cell["lower"]): cell[what] for cell in found["cells"] if cell[what]})


def same_marks(found: dict, answer: OffsetMap) -> None:
    assert [(gap["t"] * MS, gap["t2"] * MS) for gap in found["gaps"]] == list(map(tuple, answer.missing_ns.T.tolist()))
    assert [(late["t"] * MS, late["n"]) for late in found["late"]] == list(
        zip(answer.late_ns.tolist(), answer.late.tolist(), strict=True)
    )


@pytest.mark.slow
def test_every_cell_is_that_of_a_store(folder: Path, stored) -> None:
    """Of files and of stores the page holds the same ticks; whole or resampled, its maps are those that a store answers."""
    from_logs, from_documents = overview(files_of(folder)), overview(stored)
    assert told_of(from_logs) == told_of(from_documents)
    for (period, rows), found in zip(PERIODS, maps(from_logs, *(in_page(*one) for one in PERIODS)), strict=True):
        answer = from_store(stored, WantedOffsets(periods=Periods(period, rows)))
        assert sum(shown(found).values()) == answer.samples and shown(found) == cells_of(answer)
        assert found["resampled"] == answer.periods.resampled
        same_marks(found, answer)
        if not answer.periods.resampled:
            assert shown(found) == cells_of(from_files(files_of(folder), WantedOffsets(periods=Periods(period, rows))))


@pytest.mark.slow
def test_isolated_excluded_highlighted(folder: Path, stored) -> None:
    asked = [
        ({"process": ["p1", "p4"]}, {}, {"isolate": {"process": "p1\np4"}}),
        (
            {"host": ["h0"]},
            {"process": ["p1"], "op": ["read"]},
            {"isolate": {"host": "h0", "process": "!p1", "op": "!read"}},
        ),
    ]
    found = overview(files_of(folder))
    for rows in (50, 49):
        for (*_, words), one in zip(
            asked,
            maps(found, *(in_page(SECOND, rows, only=a, **{"not": b}, lit={"host": ["h0"]}) for a, b, _ in asked)),
            strict=True,
        ):
            answer = from_store(stored, WantedOffsets(periods=Periods(SECOND, rows), **words))
            lit = from_store(stored, WantedOffsets(periods=Periods(SECOND, rows), lit={"host": "h0"}, **words))
            assert shown(one) == cells_of(answer) and shown(one, "lit") == cells_of(lit)
            assert sum(shown(one, "lit").values()) == int(lit_counts(highlighted(answer, lit)).sum())
            same_marks(one, answer)


def test_a_range_and_labels_of_the_call(folder: Path, stored) -> None:
    question = Question(
        begin=parse_instant(f"{ZERO // MS + 20_500}"), end=parse_instant(f"{ZERO // MS + 300_250}"), where={"host": "h[12]"}
    )
    wanted = WantedOffsets(replace(question, where={}), isolate={"host": "h[12]"})
    answer = from_files(files_of(folder), wanted)
    (found,) = maps(overview(files_of(folder), question), in_page(SECOND, 50))
    assert shown(found) == cells_of(answer)
    same_marks(found, answer)
    assert told_of(overview(stored, question)) == told_of(overview(files_of(folder), question))


def test_zooming_gives_finer_columns(folder: Path, tmp_path: Path) -> None:
    rows = [(ZERO + at * 1_300 * MS,) for at in range(2_000)]
    event_file(tmp_path, rows)
    found = overview(files_of(tmp_path))
    begin, end = ZERO // MS + 700_000, ZERO // MS + 950_000
    whole, part, few = maps(
        found, in_page(SECOND, 50), in_page(SECOND, 50, **{"from": begin, "to": end}), in_page(SECOND, 50, most=100)
    )
    assert {cell["t2"] - cell["t"] for cell in whole["cells"]} == {4_000}
    assert shown(whole) == cells_of(from_files(files_of(tmp_path), WantedOffsets()))
    expected = oracle.cells([("", row[0], 1) for row in rows if begin <= row[0] // MS // 1000 * 1000 < end], SECOND, 50)
    assert shown(part) == Counter({(t // MS, row * 20 * MS): c for (_, t, row), c in expected.items()})
    assert len({cell["t"] for cell in few["cells"]}) <= 100 and sum(shown(few).values()) == 2_000


@pytest.mark.slow
@pytest.mark.parametrize(("most", "by_host"), [(14_000, True), (3_500, False)])
def test_what_there_is_no_room_for_is_coarser_and_said(folder: Path, monkeypatch, most: int, by_host: bool) -> None:
    """Seconds are added up offset by offset, rare threads by host; no event is lost, and what is told apart is right."""
    monkeypatch.setattr(offset_resolution, "MOST_ENTRIES", most)
    monkeypatch.setattr(offset_resolution, "COLUMNS", 40)
    monkeypatch.setattr(offset_resolution, "FEWER", (16, 8, 4, 2, 1))
    found = overview(files_of(folder))
    fine = found.ticks.resolution
    assert fine.by_host == by_host and fine.threads is not None
    for host in ("h0", "h1", "h2") if by_host else ():
        (one,) = maps(found, in_page(SECOND, 50, only={"host": [host]}))
        assert sum(shown(one).values()) == sum(row[5] for row in made() if row[2] == host)
    (rest,) = maps(found, in_page(SECOND, 50, only={"host": ["others"]}))
    assert bool(rest["cells"]) != by_host
    assert fine.seconds == 10 and fine.tick_ms == 20 and fine.wide_ms and found.ticks.folded == 54 - len(fine.threads)
    assert found.ticks.samples == sum(row[5] for row in made())
    expected: Counter = Counter()
    for end, _, _, _, _, weight in made():
        expected[end // (10 * SECOND) * 10_000, end % SECOND // (20 * MS) * 20 * MS] += weight
    second, minutes = maps(found, in_page(SECOND, 50), in_page(60 * SECOND, 10))
    assert shown(second) == expected
    assert shown(minutes) == cells_of(from_files(files_of(folder), WantedOffsets(periods=Periods(60 * SECOND, 10))))
    kept = next(key for key in fine.threads)
    (mine,) = maps(found, in_page(SECOND, 50, only={"host": [kept[1]], "process": [kept[4]], "op": [kept[6]]}))
    assert sum(shown(mine).values()) == sum(row[5] for row in made() if row[2:5] == (kept[1], kept[4], kept[6]))
    (note,) = offset_section.section([found]).notes
    assert "ticks of 20 ms, 10 seconds added up in a column, by the" in note and "others added up" in note
    assert offset_section.section([overview(files_of(folder), full=True)]).notes == []


def test_a_second_pass_holds_the_same(folder: Path, stored, monkeypatch) -> None:
    held: list[bool] = []
    kept_of = offset_ticks.kept_of

    def noted(*words, **more):
        kept, there = kept_of(*words, **more)
        held.append(there)
        return kept, there

    for asker in (offset_overview, stored_offsets):  # of files, of stores
        monkeypatch.setattr(asker, "kept_of", noted)
    at_once = overview(files_of(folder))
    monkeypatch.setattr(offset_ticks.Met, "__init__", limited(offset_ticks.Met.__init__))
    assert told_of(overview(files_of(folder))) == told_of(at_once) == told_of(overview(stored))
    assert held == [True, False, False]


def limited(init):
    def less(self, *args, **words) -> None:
        init(self, *args, **words)
        self.most = 100

    return less


def test_raw_logs_that_histograms_take_the_place_of_are_read_for_their_moments() -> None:
    files = Files([RAW], ReadOptions(run="r"), jobs=1)
    assert {source.format for source in files.found.sources} != {"fio-raw"}
    (found,) = maps(overview(files), in_page(SECOND, 50))
    answer = from_files(Files([RAW], ReadOptions(run="r", prefer="raw"), jobs=1), WantedOffsets())
    assert shown(found) == cells_of(answer) and sum(shown(found).values()) == 17_600


@pytest.mark.slow
def test_runs_are_apart_or_together(folder: Path, tmp_path: Path) -> None:
    """Several runs have ticks of their own; merged, their sum; a run without single events has none."""
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        for run, rows in (("one", made()), ("two", made(seed=9, many=900))):
            path = event_file(tmp_path / run, rows)
            load([path], store, LoadOptions(read=replace(reading(folder), run=run), jobs=1))
        logs = per_io.histogram_files(RAW.parents[1] / "fio" / "randrw")
        load(logs, store, LoadOptions(read=ReadOptions(run="three"), jobs=1))
        names = {run: run for run in ("one", "two", "three")}
        found = offset_overviews(store, names, Question())
        assert [one.ticks.run for one in found] == ["one", "two"]
        assert [one.ticks.samples for one in found] == [sum(row[5] for row in rows) for rows in (made(), made(seed=9, many=900))]
        names = shown_names(["one", "two"], Question(merge_runs=True))
        (both,) = offset_overviews(store, names, Question(merge_runs=True))
        (page,) = maps(both, in_page(SECOND, 50))
        answer = from_store(store, WantedOffsets(Question(runs=("one", "two"), merge_runs=True)))
        assert shown(page) == cells_of(answer) and both.runs == ("one", "two")


SHARES = """const map = o.mapOf(run, given.asked, o.groupsOf(run, {}));
return given.places.map(([label, column, row]) => o.sharesOf(run, label, o.groupsOf(run, {}), map, column, row));"""


@pytest.mark.soak
@pytest.mark.parametrize("height", [50, pytest.param(49, marks=pytest.mark.soak)])
def test_whose_events_a_cell_holds(folder: Path, height: int) -> None:
    found = overview(files_of(folder))
    places = [
        (label, column, row)
        for label in ("host", "process", "op")
        for column, row in ((10, 7), (33, None), (None, None), (200, height - 1))
    ]
    answers = js(SHARES, {"run": told_of(found), "asked": in_page(SECOND, height), "places": places})
    first = min(row[0] for row in made()) // SECOND
    edges = oracle.edges(SECOND, height)
    for (label, column, row), told in zip(places, answers, strict=True):
        expected: Counter = Counter()
        for end, _, host, process, op, weight in made():
            low, high = (0, SECOND) if row is None else edges[row]
            within = end % SECOND // MS * MS
            inside = max(0, min(within + MS, high) - max(within, low)) / MS
            if (column is None or end // SECOND == first + column) and inside:
                expected[{"host": host, "process": process, "op": op}[label]] += weight * inside
        assert {one["name"]: one["count"] for one in told} == pytest.approx(expected)
        assert [one["count"] for one in told] == sorted((one["count"] for one in told), reverse=True)
