"""A7: a log of unknown time zero stands apart, and no number of the dated runs beside it changes."""

from __future__ import annotations

import csv
import io
import itertools
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.errors import UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.compare import together
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.trend import in_order
from ingest.read.placement import apart, discover
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.store.grounds import grounds, loaded

DATA = Path(__file__).parents[1] / "data"
FIO = DATA / "fio"
SECOND = 1_000_000_000
SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 1us, window: 1s}\n"
BEGAN = "2026-11-20T21:00:00Z"


def fio(folder: Path) -> None:
    for name in ("a_clat_hist.1.log", "a.json"):
        shutil.copy(FIO / "randrw" / name, folder)


def hdr(folder: Path) -> None:
    shutil.copy(DATA / "hdr" / "2.1.12-2-digits.hlog", folder / "dated.hlog")


def unknown_fio(folder: Path) -> None:
    shutil.copy(FIO / "coarse-3" / "a_clat_hist.1.log", folder / "z_clat_hist.7.log")


def unknown_hdr(folder: Path) -> None:
    lines = (DATA / "hdr" / "2.1.12-2-digits.hlog").read_text().splitlines(keepends=True)
    kept = [line for line in lines if "StartTime" not in line and "BaseTime" not in line]
    (folder / "undated.hlog").write_text("".join(kept))


@pytest.fixture
def mixed(tmp_path: Path) -> Path:
    folder = tmp_path / "night"
    folder.mkdir()
    fio(folder)
    unknown_fio(folder)
    return folder


def csv_rows(capsys, *words: object) -> list[dict[str, str]]:
    assert command([str(word) for word in words]) == 0
    return list(csv.DictReader(io.StringIO(capsys.readouterr().out)))


def dated_rows(answer) -> list[tuple[object, ...]]:
    """Return the rows of the dated run of an answer, whatever other rows there are."""
    table = percentiles(answer, Wanted(parse_percentiles("50,99,99.9")))
    keep = [str(run) == "night" for run in table.columns["run"]] if "run" in table.columns else [True] * len(table)
    columns = {name: np.asarray(column)[keep] for name, column in table.columns.items() if name != "run"}
    return [tuple(map(repr, row)) for row in zip(*(column.tolist() for column in columns.values()), strict=True)]


QUESTIONS = [
    Question(step=step, by=by, begin=begin)
    for step, by, begin in itertools.product(
        ("auto", "all", SECOND, 7 * SECOND), ((), ("op",), ("host", "job")), (None, Instant(SECOND, relative=True))
    )
]


@pytest.mark.slow
@pytest.mark.parametrize("undated", [unknown_fio, unknown_hdr])
@pytest.mark.parametrize("dated", [fio, hdr])
def test_a7_an_undated_file_never_changes_a_dated_number(tmp_path: Path, dated, undated) -> None:
    folder = tmp_path / "night"
    folder.mkdir()
    dated(folder)
    reading = ReadOptions(recorded_unit_ns=1000)
    lone = shutil.copytree(folder, tmp_path / "lone" / "night")
    before = Files([lone], reading)
    alone = [dated_rows(before.answer(one)) for one in QUESTIONS]
    undated(folder)
    after = Files([folder], reading)
    assert after.run_names == ["night", "night/undated"]
    assert [dated_rows(after.answer(one)) for one in QUESTIONS] == alone
    for name, logs in (("alone", lone), ("both", folder)):
        loaded(f"sqlite:{tmp_path / name}.db", [logs], run="night", reading={"recorded_unit_ns": 1000})
    with open_store(f"sqlite:{tmp_path}/alone.db") as first, open_store(f"sqlite:{tmp_path}/both.db") as second:
        assert [dated_rows(second.answer(one)) for one in QUESTIONS] == [dated_rows(first.answer(one)) for one in QUESTIONS]


def test_a7_answers_over_time_are_given_on_the_clock_and_say_what_they_lack(mixed: Path, capsys) -> None:
    assert command(["percentiles", str(mixed), "--format", "csv"]) == 0
    said = capsys.readouterr()
    starts = [row["start"] for row in csv.DictReader(io.StringIO(said.out))]
    assert all(start.startswith("20") for start in starts)
    assert f"1 of 2 logs ({mixed / 'z_clat_hist.7.log'}) has no start time, so it is left out here" in said.err
    assert "ask for the run night/undated alone, or give --t0" in said.err
    alone = csv_rows(capsys, "percentiles", mixed, "--run", "night/undated", "--step", "1s", "--format", "csv")
    assert [float(row["start"]) for row in alone] == list(range(len(alone)))
    both = csv_rows(capsys, "percentiles", mixed, "--t0", BEGAN, "--step", "all", "--format", "csv")
    assert sum(int(row["count"]) for row in alone) + sum(int(row["count"]) for row in both) > int(both[0]["count"])


@pytest.mark.parametrize("words", [(), ("--time", "elapsed")])
def test_a7_a_whole_range_shows_both_each_on_its_own_axis(mixed: Path, capsys, words: tuple[str, ...]) -> None:
    found = {row["run"]: row for row in csv_rows(capsys, "percentiles", mixed, "--step", "all", "--format", "csv", *words)}
    assert list(found) == ["night/undated", "night"]
    assert found["night/undated"]["start"] == "+0s"
    assert 0 < float(found["night/undated"]["end"].strip("+s")) < 60
    assert found["night"]["start"] == "0" if words else found["night"]["start"].startswith("20")
    assert float(found["night/undated"]["rate"]) > 1
    assert command(["percentiles", str(mixed), "--step", "all"]) == 0
    table = capsys.readouterr().out
    assert "night/undated has no start time" in table and " +0s " in table and " UTC" in table
    assert command(["heatmap", str(mixed), "--step", "all"]) == 2
    assert "no axis with the other runs" in capsys.readouterr().err


@pytest.mark.slow
def test_a7_a_range_by_the_clock_is_none_of_a_run_without_one(mixed: Path, capsys) -> None:
    assert command(["percentiles", str(mixed), "--run", "night/undated", "--to", "2100-01-01"]) == 2
    assert "this run has no start time, so its times are elapsed" in capsys.readouterr().err
    assert command(["percentiles", str(mixed), "--step", "all", "--to", "2100-01-01", "--format", "csv"]) == 0
    said = capsys.readouterr()
    assert len(said.out.splitlines()) == 2 and "is left out here" in said.err
    assert command(["report", str(mixed), "--to", "2100-01-01", "-o", str(mixed.parent / "x.html")]) == 0
    assert "night/undated: left out" in (mixed.parent / "x.html").read_text()


def test_a7_check_judges_each_run_on_its_own_clock(mixed: Path, tmp_path: Path, capsys) -> None:
    (tmp_path / "SLA.yml").write_text(SLA)
    dated = tmp_path / "dated" / "night"
    dated.mkdir(parents=True)
    fio(dated)
    words = ["--format", "csv"]
    assert command(["check", str(tmp_path / "SLA.yml"), str(dated), *words]) == 1
    alone = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert command(["check", str(tmp_path / "SLA.yml"), str(mixed), *words]) == 1
    found = {row["run"]: row for row in csv.DictReader(io.StringIO(capsys.readouterr().out))}
    assert [{**found["night"], "run": ""}] == [{**row, "run": ""} for row in alone]
    assert found["night/undated"]["start"].startswith("+") and float(found["night/undated"]["end"].strip("+s")) < 60
    assert command(["check", str(tmp_path / "SLA.yml"), str(mixed), "--format", "junit"]) == 1
    assert "1970" not in capsys.readouterr().out
    assert command(["check", str(tmp_path / "SLA.yml"), str(mixed)]) == 1
    assert "lasted" in (shown := capsys.readouterr().out) and not re.search(r" \d+d ", shown)


@pytest.mark.slow
def test_a7_a_report_shows_both_runs_and_no_1970(mixed: Path, tmp_path: Path) -> None:
    out = tmp_path / "x.html"
    assert command(["report", str(mixed), "-o", str(out)]) == 0
    page = out.read_text()
    assert "elapsed only in night/undated" in page
    assert "1970" not in page.split("<script")[0]


def test_a7_a_store_keeps_both_and_later_loads_find_their_place(mixed: Path, tmp_path: Path, capsys) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    loaded(url, [mixed], run="n")
    again = loaded(url, [mixed / "z_clat_hist.7.log"], run="n")
    assert dict(again.duplicate) == {"already loaded": 1}
    with open_store(url) as store:
        assert [(one.run, one.zero) for one in store.runs()] == [("n", "fio JSON timestamp - runtime"), ("n/undated", "unknown")]
        samples = int(store.answer(Question(runs=("n/undated",), step="all")).samples)
        answer = store.answer(Question())
        assert answer.runs == ("n",) and not answer.relative
        assert (
            f"n/undated has no start time, so its {samples:,} samples are left out here: ask for this run alone"
            in answer.warnings
        )
    rows = csv_rows(capsys, "export", url)
    assert {row["start"][:1] for row in rows if row["run"] == "n/undated"} == {"+"}
    assert {row["start"][:2] for row in rows if row["run"] == "n"} == {"20"}
    assert command(["export", url, "--format", "documents"]) == 0
    said = capsys.readouterr()
    assert "n/undated is left out" in said.err and '"id":"n"' in said.out and "n/undated" not in said.out
    assert command(["export", url, "--format", "hlog", "--step", "all"]) == 0
    said = capsys.readouterr()
    assert "left out" in said.err and "StartTime: 0" not in said.out


def test_a7_elasticsearch_refuses_the_undated_log_alone(mixed: Path, tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        account = loaded(ground.url, [mixed], run="n")
        assert account.runs == ["n"] and account.loaded == 1
        assert list(account.refused) == [str(mixed / "z_clat_hist.7.log")]
        assert "give --t0" in account.refused[str(mixed / "z_clat_hist.7.log")]
        with open_store(ground.url) as store:
            assert [one.run for one in store.runs()] == ["n"]


def test_a7_trend_and_compare_leave_it_out_and_say_so(mixed: Path, tmp_path: Path, capsys) -> None:
    for number in (1, 2):
        shutil.copytree(mixed, tmp_path / f"n{number}")
    paths = [str(tmp_path / "n1"), str(tmp_path / "n2")]
    rows = csv_rows(capsys, "trend", *paths, "--format", "csv", "-p", "50")
    assert [row["run"] for row in rows] == ["n1", "n2"]
    assert command(["trend", *paths]) == 0
    assert "left out, because they have no start time: n1/undated, n2/undated" in capsys.readouterr().out
    assert command(["compare", *paths, "--baseline", "n1", "--run", "n2"]) == 0
    assert "not in it: n1/undated, n2/undated" in capsys.readouterr().out


def test_a7_runs_on_unlike_clocks_are_not_added_up(mixed: Path) -> None:
    files = Files([mixed])
    answers = [files.answer(Question(runs=(run,), where={"run": run}, step="all")) for run in files.run_names]
    with pytest.raises(UsageError, match="night/undated has none"):
        together(answers)
    merged = files.answer(Question(step="all", merge_runs=True))
    assert merged.runs == ("night",) and "is left out here" in merged.warnings[0]


def test_a7_the_order_of_nights_when_one_has_no_clock(mixed: Path) -> None:
    [one] = [Files([mixed]).answer(Question(runs=("night",), where={"run": "night"}, step="all"))]

    def night(name: str, start: int | None):
        return replace(one, runs=(name,), run_start_ns={name: start or 0}, relative=start is None)

    nights, notes = in_order([night("n3", 30), night("n1", 10), night("n2", None)])
    assert [each.run for each in nights] == ["n1", "n2", "n3"] and "in the order of their names" in notes[0]
    nights, notes = in_order([night("n1", 30), night("n3", 10), night("n2", None)])
    assert [each.run for each in nights] == ["n3", "n1"] and "left out" in notes[0] and "n2" in notes[0]


def test_a7_what_stands_apart_is_decided_by_run(mixed: Path) -> None:
    found = discover([mixed], ReadOptions(run="x"))
    assert {str(source.path.name): source.context.series.run for source in found.sources} == {
        "a_clat_hist.1.log": "x",
        "z_clat_hist.7.log": "x/undated",
    }
    assert apart(found) == found
    only = discover([mixed / "z_clat_hist.7.log"], ReadOptions(run="x"))
    assert [source.context.series.run for source in only.sources] == ["x"]
    assert [source.context.series.run for source in apart(only, {"x"}).sources] == ["x/undated"]
    assert [source.context.series.run for source in apart(only, {"x", "x/undated"}).sources] == ["x/undated/undated"]
