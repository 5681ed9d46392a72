"""Logs cut into ranges of time and read by several processes: the same table, facts and account as read in one piece."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ingest.core.quantiles import parse_percentiles
from ingest.query import streaming
from ingest.query.files import Files
from ingest.query.percentiles import Wanted
from ingest.query.question import Question
from ingest.query.table import Table
from ingest.read.hdr import log as hdr_ranges
from ingest.read.sources import ReadOptions
from oracles import hdr
from tests.effort import few

SECOND = 10**9
WANTED = Wanted(parse_percentiles("50,99,100"), (10_000,))


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Return a list that is told of each question whether it was answered in ranges; small logs are cut, too."""
    told: list[bool] = []

    in_ranges = streaming.in_ranges

    def watched(*words: Any) -> Any:
        met = in_ranges(*words)
        told.append(met is not None)
        return met

    monkeypatch.setattr(streaming, "in_ranges", watched)
    monkeypatch.setattr(hdr_ranges, "SMALLEST", 1)
    monkeypatch.setattr(hdr_ranges, "NEARBY", 1 << 10)
    return told


def interval(second: float, noise: random.Random, tag: str = "", length: float = 1.0) -> str:
    counts = {noise.randrange(9000): noise.randrange(1, 500) for _ in range(noise.randrange(1, 9))}
    return hdr.line(f"{second:.3f}", f"{length:.3f}", counts, tag)


def log(seed: int, seconds: int, tags: Sequence[str] = ("",), jump: float = 0.0) -> list[str]:
    noise = random.Random(seed)
    return [interval(at + jump, noise, tag) for at in range(seconds) for tag in tags]


def answered(paths: Sequence[Path], jobs: int, question: Question) -> tuple[Table, Any, dict[str, Any]] | None:
    files = Files(paths, ReadOptions(), jobs=jobs)
    found = streaming.streamed(files, question, WANTED)
    if found is None:
        assert files.account.rows == 0
        return None
    accounts = {str(source.path): source.context.account.as_dict() for source in files.found.sources}
    return *found, accounts


def both(paths: Sequence[Path], jobs: int, question: Question) -> None:
    one, many = answered(paths, 1, question), answered(paths, jobs, question)
    assert (one is None) == (many is None)
    if one is None or many is None:
        return
    assert list(one[0].columns) == list(many[0].columns)
    for name, column in one[0].columns.items():
        floats = np.asarray(column).dtype.kind == "f"
        assert np.array_equal(np.asarray(many[0].columns[name]), np.asarray(column), equal_nan=floats), name
    assert one[2] == many[2]
    assert (one[1].by, one[1].kind, one[1].runs, one[1].warnings) == (many[1].by, many[1].kind, many[1].runs, many[1].warnings)
    assert one[1].samples == many[1].samples


@pytest.mark.slow
@pytest.mark.parametrize("jobs", [2, 3])
@pytest.mark.parametrize("logs", [1, 3])
@pytest.mark.parametrize("step", few([1, 5], 1))
def test_ranges_give_what_the_whole_gives(tmp_path: Path, taken: list[bool], jobs: int, logs: int, step: int) -> None:
    paths = [tmp_path / f"{number}.hlog" for number in range(logs)]
    for number, path in enumerate(paths):
        path.write_text(hdr.log(log(number, 300, ("read-st", "write-st"), jump=0.25 * number)))
    both(paths, jobs, Question(step=step * SECOND, by=("op",), force=True))
    assert taken == [False, True]


def test_bad_lines_bear_their_numbers_and_only_the_first_places_are_kept(tmp_path: Path, taken: list[bool]) -> None:
    lines = log(1, 300)
    for place in (3, 200, 201, 202, 203, 250, 251, 280):
        lines[place] = lines[place][:9] + "\n"
    path = tmp_path / "bad.hlog"
    path.write_text(hdr.log(lines))
    both([path], 2, Question(step=SECOND))
    assert taken == [False, True]
    found = answered([path], 2, Question(step=SECOND))
    assert found is not None
    account = found[2][str(path)]
    assert sum(account["rejected"].values()) == 8
    places = [finding.split(":")[1] for finding in account["findings"]]
    assert places == ["7", "204", "205", "206", "207"]  # three lines of text come before the first interval


@pytest.mark.slow
@pytest.mark.parametrize("what", ["base", "overlap", "tag", "far"])
def test_what_reaches_across_the_cut_is_read_in_one_piece(tmp_path: Path, taken: list[bool], what: str) -> None:
    lines = log(2, 300)
    noise = random.Random(5)
    if what == "base":  # another log was appended: later stamps count from its base
        lines[60] = "#[BaseTime: 1700000000.000 (seconds since epoch)]\n" + lines[60]
    elif what == "overlap":  # one line covers the cut from far before it
        lines[100] = interval(100, noise, "", 150)
    elif what == "tag":  # a rare tag ends within the second part
        lines[20] += interval(20, noise, "rare", 270)
        lines[290] += interval(285, noise, "rare", 1)
    else:  # a row of the second part begins in the first
        lines[250] += interval(10, noise, "rare", 240)
    path = tmp_path / "across.hlog"
    path.write_text(hdr.log(lines))
    both([path], 2, Question(step=SECOND, by=("tag",), force=True))
    assert taken == [False, False]


@pytest.mark.slow
@given(seed=st.integers(0, 2**32), logs=st.integers(1, 3), jobs=st.integers(2, 3), step=st.sampled_from([1, 2, 5]))
@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_logs(
    tmp_path_factory: pytest.TempPathFactory, taken: list[bool], seed: int, logs: int, jobs: int, step: int
) -> None:
    """Also lines out of order, gaps, overlaps, comments and rubbish: in ranges or not, the numbers are the same."""
    noise = random.Random(seed)
    folder = tmp_path_factory.mktemp("ranges")
    paths = [folder / f"{number}.hlog" for number in range(logs)]
    odd = noise.choice([0, 0, 0.01, 0.05])
    for path in paths:
        lines, at = [], 0.0
        for _ in range(noise.randrange(1, 150)):
            at += 1 if noise.random() > odd else noise.choice([0, 0.5, 7, -3])
            tag = noise.choice(["read-st", "read-rt", "write-st"])
            line = interval(max(at, 0), noise, tag, noise.choice([1, 1, 1, 0.5, 0.996]) if noise.random() > odd else 3)
            broken = line[: noise.randrange(60)] + "\n" if noise.random() < odd else line
            lines.append(broken if noise.random() > odd / 3 else "#[StartTime: 1700000100.000 (seconds since epoch)]\n")
        path.write_text(hdr.log([interval(0, noise), *lines]))
    both(paths, jobs, Question(step=step * SECOND, by=noise.choice([(), ("op",), ("process",)]), force=True))
