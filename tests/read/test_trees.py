"""Trees of fio's results of any depth, as scripts leave them: which folders are runs, which are hosts, by when fio worked in them."""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.archives.plain import worked_together
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

Times = Mapping[str, tuple[float, float]]
SECOND = 1000


def tree(below: Path, fio: Path, times: Times, *, logs: bool = False) -> Path:
    """Write a fio JSON (with its log) into each folder, of a run from one second to another."""
    document = json.loads((fio / "means-500" / "a.json").read_text())
    for number, (name, (begin, end)) in enumerate(times.items()):
        folder = below / Path(name).parent
        folder.mkdir(parents=True, exist_ok=True)
        document["timestamp_ms"] = round(1_790_000_000_000 + end * SECOND)
        for job in document["jobs"]:
            job["job_runtime"] = round((end - begin) * SECOND)
            for op in ("read", "write"):
                job[op]["runtime"], job[op]["total_ios"] = round((end - begin) * SECOND), 1000 + number
                for kind in ("clat_ns", "lat_ns", "slat_ns"):
                    job[op][kind]["N"] = 1000 + number
        (below / f"{name}.json").write_text(json.dumps(document, indent=1))
        if logs:
            (folder / "a_clat.1.log").write_bytes((fio / "means-500" / "a_clat.1.log").read_bytes())
            (folder / "a_iops.1.log").write_bytes((fio / "means-500" / "a_iops.1.log").read_bytes())
    return below


def placed(folder: Path) -> dict[str, tuple[str, str]]:
    """Return run and host of the files of each folder."""
    found = discover([folder], ReadOptions())
    return {
        source.path.parent.relative_to(folder).as_posix(): (source.context.series.run, source.context.series.host)
        for source in found.sources
    }


@pytest.mark.parametrize("logs", [False, True])
def test_folders_of_any_depth_that_fio_ran_in_one_after_another_are_runs(fio: Path, tmp_path: Path, logs: bool) -> None:
    """As fio-plot's bench_fio lays them: device, pattern, block size."""
    times = {
        f"{device}/{mode}/{size}/a": (20 * n, 20 * n + 19)
        for n, (device, mode, size) in enumerate(grid("sda sdb", "rand seq", "4k 8k"))
    }
    folder = tree(tmp_path / "t", fio, times, logs=logs)
    assert placed(folder) == {name[:-2]: (f"t/{name[:-2]}", "") for name in times}
    [caveat] = [caveat for caveat in discover([folder], ReadOptions()).caveats if caveat.code == "folders-apart"]
    assert "and 3 more hold runs of fio that did not overlap in time" in caveat.sentence


def grid(*columns: str) -> list[tuple[str, ...]]:
    return list(itertools.product(*(column.split() for column in columns)))


def test_what_ran_at_the_same_time_in_folders_that_differ_in_one_name_are_hosts_of_a_run(fio: Path, tmp_path: Path) -> None:
    """Host above repetition, or below it."""
    for shape in ("{host}/{night}/a", "{night}/{host}/a", "{host}/x/{night}/a"):
        times = {
            shape.format(host=host, night=night): (100 * number + skew, 100 * number + 60 + skew)
            for number, night in enumerate(("mon", "tue"))
            for host, skew in (("h1", 0), ("h2", 3.5), ("h3", -2))
        }
        folder = tree(tmp_path / shape.replace("/", "_"), fio, times)
        for name, (run, host) in placed(folder).items():
            assert host in ("h1", "h2", "h3")
            assert run == "/".join([folder.name, *(part for part in name.split("/") if part != host)])


def test_two_scripts_that_take_turns_in_two_folders_are_two_runs(fio: Path, tmp_path: Path) -> None:
    """The spans of the folders overlap, no two processes do, though each stamp may be late by a third of a second."""
    times = {f"{'ab'[n % 2]}/job-{n // 2}": (12 * n, 12 * n + 12.3) for n in range(8)}
    assert {run for run, _ in placed(tree(tmp_path / "t", fio, times)).values()} == {"t/a", "t/b"}


def test_all_at_once_below_several_folders_are_hosts(fio: Path, tmp_path: Path) -> None:
    folder = tree(tmp_path / "t", fio, {"h1/out/a": (0, 60), "h2/out/a": (1, 61)})
    assert placed(folder) == {"h1/out": ("t", "h1"), "h2/out": ("t", "h2")}
    folder = tree(tmp_path / "u", fio, {"r1/h1/a": (0, 60), "r1/h2/a": (1, 61), "r2/h1/a": (0, 60), "r2/h2/a": (2, 61)})
    assert {host for _, host in placed(folder).values()} == {"r1/h1", "r1/h2", "r2/h1", "r2/h2"}


def test_without_a_time_one_name_that_differs_is_the_host_and_two_are_not_guessed(fio: Path, tmp_path: Path) -> None:
    log = (fio / "means-500" / "h_clat_hist.1.log").read_text()
    for number, name in enumerate(("h1/logs", "h2/logs")):
        (tmp_path / "one" / name).mkdir(parents=True)
        (tmp_path / "one" / name / "h_clat_hist.1.log").write_text(log.replace(" 1, ", f" {number + 1}, "))
    assert placed(tmp_path / "one") == {"h1/logs": ("one", "h1"), "h2/logs": ("one", "h2")}
    for number, name in enumerate(("4k/h1", "4k/h2", "8k/h1", "8k/h2")):
        (tmp_path / "two" / name).mkdir(parents=True)
        (tmp_path / "two" / name / "h_clat_hist.1.log").write_text(log.replace(" 1, ", f" {number + 1}, "))
    with pytest.raises(InputError, match="holds other data than"):
        Files([tmp_path / "two"], jobs=1)


def test_no_io_of_a_tree_is_lost(fio: Path, tmp_path: Path) -> None:
    times = {f"{a}/{b}/x": (20 * n, 20 * n + 19) for n, (a, b) in enumerate(grid("p q", "r s"))}
    files = Files([tree(tmp_path / "t", fio, times)], jobs=1)
    table = percentiles(files.answer(Question(by=("run", "op"), step="all")), Wanted(parse_percentiles("50"))).columns
    found = dict(zip(zip(table["run"].tolist(), table["op"].tolist(), strict=True), table["count"].tolist(), strict=True))
    assert found == {(f"t/{name[:-2]}", op): 1000 + n for n, name in enumerate(times) for op in ("read", "write")}


def test_names_with_dots_are_processes_of_their_own(fio: Path, tmp_path: Path) -> None:
    folder = tree(tmp_path / "t", fio, {f"out.fio-{n}": (20 * n, 20 * n + 19) for n in range(3)})
    for path in list(folder.iterdir()):
        path.rename(path.with_suffix(""))
    assert {source.context.series.process for source in discover([folder], ReadOptions()).sources} == {
        f"out.fio-{n}" for n in range(3)
    }


@given(st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(0, 200), st.integers(4, 60)), min_size=1, max_size=25))
def test_groups_are_what_overlapping_processes_connect(runs: list[tuple[str, int, int]]) -> None:
    processes: dict[Path, list[tuple[int, int]]] = {}
    for name, begin, length in runs:
        processes.setdefault(Path(name), []).append((begin * SECOND, (begin + length) * SECOND))
    linked = {folder: {folder} for folder in processes}
    for _ in processes:
        for one, spans in processes.items():
            for other, others in processes.items():
                if any(min(a[1], b[1]) - max(a[0], b[0]) > 1500 for a in spans for b in others):
                    linked[one] |= linked[other]
    expected = {frozenset(folders) for folders in linked.values()}
    groups = worked_together(processes)
    assert {frozenset(group) for group in groups} == expected
    firsts = [min(begin for folder in group for begin, _ in processes[folder]) for group in groups]
    assert firsts == sorted(firsts)
