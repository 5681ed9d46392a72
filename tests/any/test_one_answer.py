"""Cases in which files and stores answered differently, or a rate was that of a window that was not covered."""

from __future__ import annotations

import contextlib
import io
import json
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.core.units import parse_instant
from ingest.query.files import Files
from ingest.query.percentiles import percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.any import model
from tests.any.making import JSON
from tests.any.test_any import WANTED, joined
from tests.databases import opened
from tests.oracles import hdr, logs
from tests.store.grounds import grounds, loaded

SECOND, MS = 10**9, 10**6
EPOCH = 1_700_000_000
VOLATILE = ('"loaded"', '"record"', '"finding"')  # they say when, or of which generation
FIO = Path(__file__).parents[1] / "data" / "fio"


@pytest.fixture(scope="module")
def sites(tmp_path_factory):
    with grounds("sqlite", tmp_path_factory.mktemp("sites")) as sqlite, grounds("double", tmp_path_factory.mktemp("d")) as double:
        yield sqlite.url, double.url


def asked(sites, path: Path, run: str, **words) -> list[str]:
    """Return the lines that files, SQLite and Elasticsearch all give."""
    question = Question(runs=(run,), **words)
    found = [list(csv_lines(percentiles(Files([path], ReadOptions(run=run), jobs=1).answer(question), WANTED)))]
    for url in sites:
        with open_store(url) as store:
            found.append(list(csv_lines(percentiles(store.answer(question), WANTED))))
    assert found[0] == found[1] == found[2]
    return found[0]


def counts(lines: list[str]) -> list[int]:
    place = lines[0].split(",").index("count")
    return [int(line.split(",")[place]) for line in lines[1:]]


def an_hlog(path: Path, rows: list[tuple[float, float, dict[int, int]]]) -> Path:
    path.write_text(hdr.log([hdr.line(f"{start:.3f}", f"{length:.3f}", bins, digits=2) for start, length, bins in rows]))
    return path


def load_all(sites, path: Path, run: str) -> None:
    for url in sites:
        loaded(url, [path], run, jobs=1)


def test_b4_a_range_is_that_of_the_stored_windows_that_it_touches(sites, tmp_path: Path) -> None:
    """Rows of (9.3, 10.3]: cut once at a time, or at each second, their parts are not the same."""
    log = an_hlog(tmp_path / "x.hlog", [(0.3 + n, 1.0, {100 + n: 7, 200: 5}) for n in range(20)])
    load_all(sites, log, "b4")
    whole = {"step": "all", "by": ("kind",)}
    on = asked(sites, log, "b4", begin=parse_instant("+5s"), end=parse_instant("+9s"), **whole)
    off = asked(sites, log, "b4", begin=parse_instant("+5.25s"), end=parse_instant("+8.75s"), **whole)
    assert on == off and counts(on) == [48]
    assert on[1].startswith("2023-11-14T22:13:25.000Z,2023-11-14T22:13:29.000Z,")
    with opened(*sites) as stores:
        for origin in (Files([log], ReadOptions(run="b4")), *stores):
            answer = origin.answer(
                Question(runs=("b4",), begin=parse_instant("+5.25s"), end=parse_instant("2023-11-14T22:13:28.75Z"))
            )
            told = [text for text in answer.warnings if text.startswith("moved")]
            assert told == ["moved to whole windows of 1s: --from to +5s, --to to 2023-11-14T22:13:29.000Z"]
            plain = origin.answer(Question(runs=("b4",), begin=parse_instant("+5s")))
            assert not any("moved" in text for text in plain.warnings)


def test_b4_cut_at_an_edge_of_the_grid_no_sample_moves(sites, tmp_path: Path) -> None:
    """A row over three windows: half of it, cut once, is not what its first windows hold."""
    log = an_hlog(
        tmp_path / "x.hlog",
        [(0.0, 1.0, {10: 4}), (1.0, 1.0, {10: 4}), (2.0, 1.0, {10: 4}), (3.0, 3.0, {50: 1, 60: 1, 70: 1, 80: 1})],
    )
    load_all(sites, log, "b4-edge")
    parts = model.cuts(model.Row((), model.Layout(128, 7168), 3 * SECOND, 6 * SECOND, {50: 1, 60: 1, 70: 1, 80: 1}), SECOND)
    held = [sum(cell.values()) for _, cell, _ in parts]
    for edge in (4, 5):
        until = asked(sites, log, "b4-edge", begin=parse_instant("+3s"), end=parse_instant(f"+{edge}s"), step="all")
        assert counts(until) == [sum(held[: edge - 3])]


def test_b4_auto_makes_its_windows_of_the_range(sites, tmp_path: Path) -> None:
    """A part of a long run is shown as finely as there is data, from a store, too."""
    log = an_hlog(tmp_path / "x.hlog", [(float(n), 1.0, {100: 3}) for n in range(400)])
    load_all(sites, log, "b4-auto")
    assert len(asked(sites, log, "b4-auto", step="auto")) < 150
    part = asked(sites, log, "b4-auto", step="auto", begin=parse_instant("+100s"), end=parse_instant("+160s"))
    assert len(part) == 61


def test_b9_a_json_keeps_its_exact_values_in_a_store(sites, tmp_path: Path) -> None:
    values = [41_000, 52_000, 60_000, 777_777]
    bins = {str(JSON.value(JSON.index(value))): 1 for value in values}
    told = {"min": values[0], "max": values[-1], "mean": sum(values) / 4, "N": 4, "bins": bins}
    job = {"jobname": "j", "groupid": 0, "read": {"runtime": 25_000, "total_ios": 4, "clat_ns": told}}
    document = {"fio version": "fio-3.33", "timestamp_ms": (EPOCH + 44) * 1000, "jobs": [job]}
    path = tmp_path / "out.json"
    path.write_text(json.dumps(document, indent=1))
    load_all(sites, path, "b9")
    [line] = asked(sites, path, "b9", step="all", by=("host", "job"))[1:]
    assert f",4,0.16,{values[0]},{sum(values) / 4},{values[-1]},true," in line
    asked(sites, path, "b9", step=3600 * SECOND)  # cut at stored edges: alike, whatever is exact


def test_b10_exports_of_equal_stores_are_the_same_bytes(tmp_path: Path) -> None:
    """Whatever the order of loads, and from files: a line for each series, window and bin, by labels, then time."""
    folder = tmp_path / "logs"
    for host in ("h2", "h1", "h3"):
        (folder / host).mkdir(parents=True)
        rows = [(0.5 + n, 1.0, {n + 1: 3, 90: 1}) for n in range(6)]
        lines = [
            hdr.line(f"{a:.3f}", f"{b:.3f}", bins, tag=tag, digits=2) for a, b, bins in rows for tag in ("read-st", "write-st")
        ]
        (folder / host / "x.hlog").write_text(hdr.log(lines))
    found, documents = [], []
    for order in (("h1", "h2", "h3"), ("h3", "h1", "h2")):
        for kind in ("sqlite", "double"):
            with grounds(kind, tmp_path) as ground:
                for host in order:
                    loaded(ground.url, [folder / host / "x.hlog"], "r", jobs=1, reading={"host": host})
                found.append(printed(["export", ground.url]))
                if kind == "sqlite":
                    lines = printed(["export", ground.url, "--format", "documents"]).splitlines()
                    documents.append([line for line in lines if not any(word in line for word in VOLATILE)])
    assert documents[0] == documents[1] and len(documents[0]) > 36
    found.append(printed(["export", str(folder), "--run", "logs"]).replace("Z,logs,", "Z,r,"))
    assert len(set(found)) == 1
    rows = [line.split(",") for line in found[0].splitlines()[1:]]
    assert rows == sorted(rows, key=lambda row: (row[2:10], row[0], int(row[10])))


def printed(words: list[str]) -> str:
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert command(words) == 0
    return out.getvalue()


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_b11_a_log_of_which_no_row_can_be_taken_is_refused_by_load_as_by_queries(kind: str, tmp_path: Path, capsys) -> None:
    good = an_hlog(tmp_path / "good.hlog", [(0.0, 1.0, {10: 4})])
    bad = tmp_path / "a_clat_hist.1.log"
    bad.write_text(logs.text([(1000, 0, {3: 1 << 50}), (2000, 0, {3: 1 << 50})], 58))  # more than any disk does in a second
    with pytest.raises(InputError, match="no row could be taken: implausible counts") as refused:
        Files([bad]).answer(Question())
    with grounds(kind, tmp_path) as ground:
        assert command(["percentiles", str(bad)]) == 3
        assert command(["load", str(bad), "--run", "r", "--t0", str(EPOCH), "--store", ground.url]) == 3
        assert str(refused.value) in capsys.readouterr().err.replace("\n", " ")
        if kind == "sqlite":
            assert not Path(ground.url.removeprefix("sqlite:")).exists()  # a refused load leaves nothing
        else:
            with open_store(ground.url) as store:
                assert not store.runs()
        assert (
            command(["load", str(good), str(bad), "--run", "r", "--t0", str(EPOCH), "--store", ground.url]) == 0
        )  # the bad one is named


def test_b12_a_window_that_is_covered_in_part_has_the_rate_of_that_part(sites, tmp_path: Path) -> None:
    """750 a second for 0.4 s of a window of 10 s are 750 a second."""
    rows = [(9.6, 0.4, {10: 300}), *((float(10 + n), 1.0, {10: 750}) for n in range(12))]
    log = an_hlog(tmp_path / "x.hlog", rows)
    load_all(sites, log, "b12")
    for words in ({}, {"by": ("kind",)}):
        lines = asked(sites, log, "b12", step=10 * SECOND, **words)
        place = lines[0].split(",").index("rate")
        assert [line.split(",")[place] for line in lines[1:]] == ["750", "750", "750"]
    part = asked(sites, log, "b12", step=10 * SECOND, begin=parse_instant("+12s"), end=parse_instant("+15s"))
    assert [line.split(",")[place - 1] for line in part[1:]] == ["750"]  # without the label


def test_auto_takes_the_steps_of_all_runs_that_are_named(sites, tmp_path: Path) -> None:
    """Of runs of 1 s and of 5 s files make windows of 1 s where only the first has what is selected; stores made 5 s."""
    runs = {}
    for run, width, tag in (("fine", 1, "read-st"), ("wide", 5, "write-st")):
        lines = [hdr.line(f"{n * width:.3f}", f"{width:.3f}", {100: 3}, tag=tag, digits=2) for n in range(9)]
        runs[run] = tmp_path / f"{run}-h" / f"{run}.hlog"
        runs[run].parent.mkdir()
        runs[run].write_text(hdr.log(lines))
        load_all(sites, runs[run], run)
    files = joined([Files([path], ReadOptions(run=run), jobs=1) for run, path in runs.items()])
    with opened(*sites) as stores:
        for where in ({}, {"process": "fine"}, {"run": "fine"}):
            question = Question(runs=tuple(runs), step="auto", where=where)
            found = [list(csv_lines(percentiles(origin.answer(question), WANTED))) for origin in (files, *stores)]
            assert found[0] == found[1] == found[2]
            assert len(found[0]) == (10 if where else 12), where


def test_the_default_kind_is_the_best_that_there_is_in_the_range(sites, tmp_path: Path) -> None:
    """Files read the log of total latencies alone, which ends after 5 s, and said that there is nothing later."""
    (tmp_path / "a_clat_hist.1.log").write_text(logs.text([(1000 * n, 0, {20: 4}) for n in range(1, 21)], 58))
    (tmp_path / "r_lat.1.log").write_text("".join(f"{200 * n}, 50007, 1, 4096, {4096 * n}\n" for n in range(1, 26)))
    reading = {"t0": EPOCH * SECOND, "recorded_unit_ns": 1}
    for url in sites:
        loaded(url, [tmp_path], "kinds", jobs=1, reading=reading)
    files = Files([tmp_path], ReadOptions(run="kinds", **reading), jobs=1)
    with opened(*sites) as stores:
        for words, total in (({}, 25), ({"begin": parse_instant("+10s")}, 40), ({"where": {"op": "read"}}, 80)):
            question = Question(runs=("kinds",), step=SECOND, **words)
            found = [list(csv_lines(percentiles(origin.answer(question), WANTED))) for origin in (files, *stores)]
            assert found[0] == found[1] == found[2]
            assert sum(counts(found[0])) == total


def test_a_series_reaches_as_far_as_its_rows_of_another_layout_that_hold_nothing(sites, tmp_path: Path) -> None:
    """The first row has no sample and other bins: the store forgot that it was there, and said a higher rate."""
    empty = hdr.line("0.000", "4.000", {}, digits=3)
    log = tmp_path / "x.hlog"
    log.write_text(hdr.log([empty, *(hdr.line(f"{4 + n:.3f}", "1.000", {100: 10}, digits=2) for n in range(16))]))
    load_all(sites, log, "reach")
    lines = asked(sites, log, "reach", step=10 * SECOND)
    assert [line.split(",")[3] for line in lines[1:]] == ["6", "10"]


def test_zero_after_the_start_is_the_start() -> None:
    assert parse_instant("+0s").epoch_ns(7) == 7
