"""Archives with many runs: each run's row over its own time, from files and from both stores alike."""

from __future__ import annotations

import csv
import io
import shutil
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.objectives.check import labels_of
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.query.sweeps import Paired, Sweep, paired_runs, permutations, swept
from ingest.store import open_store
from tests.doubles.origin import Made, series
from tests.store.grounds import grounds, loaded

CBT = Path(__file__).parents[1] / "data" / "cbt"
SECOND = 1_000_000_000
WANTED = Wanted(parse_percentiles("50,99"))


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the recorded archive B: two workloads at two depths each, one after the other."""
    folder = tmp_path_factory.mktemp("cbt")
    with tarfile.open(CBT / "B.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "B"


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def store(request: pytest.FixtureRequest, archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with grounds(request.param, tmp_path_factory.mktemp("ground")) as ground:
        loaded(ground.url, [archive], run="B")
        with open_store(ground.url) as store:
            yield store


def rows(origin: Any, question: Question) -> list[dict[str, Any]]:
    table = percentiles(origin.answer(question), WANTED)
    return [dict(zip(table.columns, row, strict=True)) for row in zip(*table.columns.values(), strict=True)]


def test_a_store_knows_of_many_runs_what_the_files_know(archive: Path, store: Any) -> None:
    known = {record.run: dict(record.labels) for record in store.runs()}
    assert known == {run: dict(labels) for run, labels in Files([archive], jobs=1).found.labels.items()}


@pytest.mark.parametrize("by", [(), ("run",), ("op",), ("run", "host", "op")])
def test_a_row_of_one_run_spans_that_run_alone(archive: Path, by: tuple[str, ...]) -> None:
    files = Files([archive], jobs=1)
    found = rows(files, Question(step="all", by=by))
    for run in files.run_names:
        alone = rows(files, Question(step="all", by=by, runs=(run,)))
        mine = [{name: value for name, value in row.items() if name != "run"} for row in found if row["run"] == run]
        assert repr(mine) == repr([{name: value for name, value in row.items() if name != "run"} for row in alone])
    assert len({row["start_ns"] for row in found}) == 4


def test_rows_that_add_runs_up_span_them_all(archive: Path) -> None:
    files = Files([archive], jobs=1)
    apart, (both,) = rows(files, Question(step="all")), rows(files, Question(step="all", merge_runs=True))
    assert (both["start_ns"], both["end_ns"]) == (min(r["start_ns"] for r in apart), max(r["end_ns"] for r in apart))
    assert both["count"] == sum(r["count"] for r in apart)
    assert max(r["rate"] for r in apart) > 1.5 * both["rate"]


def test_ranges_of_runs_that_come_in_several_parts_and_layouts() -> None:
    spans = {"a": (0, 5), "b": (3, 9), "c": (20, 30)}
    made = Made([(series(run=run), at, {100: 10}) for run, (low, high) in spans.items() for at in range(low, high)])
    found = {row["run"]: row for row in rows(made, Question(step="all"))}
    zero = min(row["start_ns"] for row in found.values())
    assert {run: ((r["start_ns"] - zero) // SECOND, (r["end_ns"] - zero) // SECOND) for run, r in found.items()} == spans
    assert {row["rate"] for row in found.values()} == {10.0}


def test_a_sweep_of_depths_is_one_from_files_and_stores(archive: Path, store: Any) -> None:
    run = "B/00000000/id-2b63de81/{}/numjobs-001/total_iodepth-{}"
    wanted = {run.format(name, depth): (float(depth), name) for name in ("16k7030", "4krandomwrite") for depth in (3, 8)}
    assert swept(labels_of(Files([archive], jobs=1).runs())) == swept(labels_of(store.runs())) == Sweep("total_iodepth", wanted)


def labelled(**told: tuple[object, ...]) -> dict[str, dict[str, str]]:
    """Return labels of runs: the values of each label, run by run."""
    many = max(len(values) for values in told.values())
    return {f"r{at}": {name: str(values[at]) for name, values in told.items() if values[at] is not None} for at in range(many)}


@pytest.mark.parametrize(
    ("labels", "label", "places"),
    [
        (labelled(iodepth=(8, 2)), "iodepth", [(8, ""), (2, "")]),
        (labelled(total_iodepth=(2, 4), iodepth=(1, 2)), "total_iodepth", [(2, ""), (4, "")]),
        (labelled(numjobs=(1, 2, 1, 2), iodepth=(4, 4, 8, 8)), "iodepth", [(4, "1"), (4, "2"), (8, "1"), (8, "2")]),
        (labelled(mode=("w", "r", "w"), iodepth=(1, 1, 2)), "iodepth", [(1, "w"), (1, "r"), (2, "w")]),
        (labelled(mode=("w", "r"), op_size=(1, 2), iodepth=(1, 1)), None, []),
        (labelled(mode=("w", "r"), iodepth=(1, 2)), None, []),  # unlike workloads: no line has two depths
        (labelled(iodepth=(1, 2, 2)), None, []),  # the same depth twice: nights, no sweep
        (labelled(iodepth=(1, None)), None, []),
        (labelled(iodepth=(1, "many")), None, []),
        (labelled(iodepth=(1,)), None, []),
    ],
)
def test_runs_are_a_sweep_where_they_differ_by_a_depth_alone(labels: Any, label: str | None, places: list[Any]) -> None:
    assert swept(labels) == (Sweep(label, dict(zip(labels, places, strict=True))) if label else None)


@pytest.fixture(scope="module")
def nights(archive: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of two archives: B, and B under another id without one of its runs."""
    folder = tmp_path_factory.mktemp("nights")
    shutil.copytree(archive, folder / "B")
    results = shutil.copytree(archive, folder / "D") / "results" / "00000000"
    (results / "id-2b63de81").rename(results / "id-11112222")
    for host in (results / "id-11112222").glob("16k7030.*"):
        shutil.rmtree(host / "numjobs-001" / "total_iodepth-8")
    return folder


def answered(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[list[dict[str, str]], str]:
    assert command([*map(str, words), "--format", "csv"]) == 0
    said = capsys.readouterr()
    return list(csv.DictReader(io.StringIO(said.out))), said.err


@pytest.fixture(scope="module", params=["files", "sqlite", pytest.param("double", marks=pytest.mark.slow)])
def sources(request: pytest.FixtureRequest, nights: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[str]]:
    """Give how both archives are named to a command: as folders, or as a store that holds them."""
    if request.param == "files":
        yield [str(nights / "B"), str(nights / "D")]
        return
    with grounds(request.param, tmp_path_factory.mktemp("ground")) as ground:
        for name in ("B", "D"):
            loaded(ground.url, [nights / name], run=name)
        yield [ground.url]


@pytest.mark.cases(2)
@pytest.mark.slow
def test_archives_are_compared_run_by_run(sources: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    words = ["compare", *sources, "-p", "99"]
    found, said = answered(capsys, *words, "--baseline", "B/*", "--run", "D/*")
    alike = {"16k7030/total_iodepth-3", "4krandomwrite/total_iodepth-3", "4krandomwrite/total_iodepth-8"}
    assert {row["permutation"] for row in found} == alike
    assert {row["ratio"] for row in found} == {"1"}
    assert "3 pairs of runs that are alike" in said
    left = "B/00000000/id-2b63de81/16k7030/numjobs-001/total_iodepth-8"
    assert f"not compared, since the other side has no run like it: {left} (baseline)" in said
    for row in found:
        workload, depth = row["permutation"].split("/")
        sides = [
            f"{side}/00000000/{of}/{workload}/numjobs-001/{depth}" for side, of in (("B", "id-2b63de81"), ("D", "id-11112222"))
        ]
        (alone,), _ = answered(capsys, *words, "--baseline", sides[0], "--run", sides[1])
        assert {**alone, "permutation": row["permutation"]} == row


@pytest.mark.slow
def test_depths_of_one_archive_are_compared_by_the_rest(sources: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found, said = answered(capsys, "compare", *sources, "--baseline", "B/*-3", "--run", "B/*-8", "-p", "50", "--by", "op")
    assert {(row["permutation"], row["op"]) for row in found} == {
        ("16k7030", "read"),
        ("16k7030", "write"),
        ("4krandomwrite", "write"),
    }
    assert "2 pairs of runs that are alike" in said
    for globs in (("B/*", "B/*-8"), ("*-8", "D/*"), ("B/*16k*", "D/*-8")):
        status = command(["compare", *sources, "--baseline", globs[0], "--run", globs[1]])
        told = capsys.readouterr().err
        assert (status, f"--baseline {globs[0]} matches" in told) == (2, True) or globs[0] == "B/*16k*", told


@pytest.mark.slow
def test_a_trend_of_archives_has_a_series_for_each_permutation(sources: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    found, said = answered(capsys, "trend", *sources, "-p", "99")
    series: dict[str, list[str]] = {}
    for row in found:
        series.setdefault(row["permutation"], []).append(row["run"])
    assert series == {
        "16k7030/total_iodepth-3": ["B", "D"],
        "16k7030/total_iodepth-8": ["B"],
        "4krandomwrite/total_iodepth-3": ["B", "D"],
        "4krandomwrite/total_iodepth-8": ["B", "D"],
    }
    assert "2 archives of 4 unlike runs: a series each" in said
    found, said = answered(capsys, "trend", *sources, "--run", "B/*", "-p", "99", "--by", "op")
    assert len(found) == len({(row["permutation"], row["op"]) for row in found}) == 6
    assert "B is one archive of 4 unlike runs, a series with one point each" in said


def test_runs_are_known_by_path_else_by_labels_else_not_at_all() -> None:
    one, other = "x/00000000/id-0000000a", "x/00000000/id-0000000b"
    depths = {one: {"iodepth": "2"}, other: {"iodepth": "8"}, "y/00000000/id-0000000c": {"iodepth": "8", "mode": "w"}}
    later = {"y/00000000/id-0000000d": {"iodepth": "2"}, "y/00000000/id-0000000c": {"iodepth": "8"}}
    pairs = (("iodepth 2", one, "y/00000000/id-0000000d"), ("iodepth 8", other, "y/00000000/id-0000000c"))
    assert paired_runs([one, other], sorted(later, reverse=True), {**depths, **later}) == Paired(pairs, ((), ()))
    assert paired_runs([one, other], [*later], {}) is None
    assert paired_runs(["nightly-1", "nightly-2"], ["nightly-3"], {}) is None
    assert paired_runs(["a/1", "a/2"], ["b/2", "b/3"], {}) == Paired((("2", "a/2", "b/2"),), (("a/1",), ("b/3",)))
    archive = {"mode": "randrw", "op_size": "4096", "iodepth": "16"}  # of a run without such labels none is named
    assert paired_runs(["1"], ["2", "2/00/id-9b"], {"2/00/id-9b": archive}) == Paired((("-", "1", "2"),), ((), ("2/00/id-9b",)))
    assert permutations([one, other], depths) == {one: ("x", "iodepth 2"), other: ("x", "iodepth 8")}
    assert permutations([one, other], {}) is None
    assert permutations(["nightly-1", "nightly-2"], {}) is None
    nights = [f"n{night}/00000000/id-0000000{night}/4k/numjobs-001" for night in range(3)]
    assert permutations(nights, {}) is None  # the same thing every night
    turns = [f"n/0000000{turn}/id-0000000a/{name}" for turn in range(2) for name in ("4k", "16k")]
    assert permutations(turns, {}) == {run: (run[:10], run.rsplit("/", 1)[1]) for run in turns}
