"""Beside the Java library, live: what it writes we read, what we write it reads, bin for bin. Skipped without Java."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ingest.core.intervals import Intervals
from ingest.core.layout import hdr_layout
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.view import hlog
from oracles import java
from oracles.per_io import histogram_files
from tests import commands

HDR = Path(__file__).parent.parent / "data" / "hdr"
FIO = Path(__file__).parent.parent / "data" / "fio"
SECOND = 10**9
START = 1_700_000_000 * SECOND


def tailboard(*words: object) -> str:
    done = commands.tailboard(*words)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    ("digits", "lowest"),
    [
        pytest.param(digits, lowest, marks=() if (digits, lowest) in ((0, 1), (2, 7), (3, 1), (5, 1000)) else pytest.mark.soak)
        for lowest in (1, 7, 1000)
        for digits in range(6)
    ],
)
def test_our_v2_is_read_by_java_with_equal_bins(tmp_path: Path, digits: int, lowest: int) -> None:
    noise = random.Random(digits * 1000 + lowest)
    magnitude = lowest.bit_length() - 1
    layout = hdr_layout(digits, magnitude, 1)
    rows: list[dict[int, int]] = [{0: 1}, {layout.bins - layout.half - 1: 1}, {0: 2**40, 1: 1, 2: 127, 3: 128, 44: 16_383}]
    top = min(layout.bins - layout.half, 60_000)
    rows += [
        {noise.randrange(top): noise.choice((1, 63, 64, 8191, 8192, 10**9)) for _ in range(noise.randrange(1, 300))}
        for _ in range(20)
    ]
    bins = [np.array(sorted(row), np.int64) for row in rows]
    counts = [np.array([row[index] for index in sorted(row)], np.int64) for row in rows]
    starts = START + np.arange(len(rows)) * SECOND
    series = np.zeros(len(rows), np.int64)
    indptr = np.concatenate([[0], np.cumsum([len(one) for one in bins])])
    windows = Intervals(layout, (("op",),), series, starts, starts + SECOND, indptr, np.concatenate(bins), np.concatenate(counts))
    path = tmp_path / "ours.hlog"
    path.write_text(hlog.head(1, START, "test") + "".join(hlog.lines(windows, ("tag",), START, 1)))
    found = java.bins(path)
    assert [words[0] for words in found] == ["op"] * len(rows) and {words[3] for words in found} == {str(digits)}
    edges = layout.edges
    for words, row, start in zip(found, rows, starts.tolist(), strict=True):
        assert (int(words[1]), int(words[2])) == (start // 10**6, 1000)
        assert words[5:] == [f"{edges[index]}_{edges[index + 1]}:{row[index]}" for index in sorted(row)]


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("name", ["tagged", "resized", "2.1.12-2-digits-lowest-20000", "2.0.3-3-digits", "1.2.1-2-digits"])
def test_an_exported_log_is_read_by_java_with_the_bins_of_the_original(tmp_path: Path, name: str) -> None:
    path = tmp_path / "out.hlog"
    path.write_text(tailboard("export", HDR / f"{name}.hlog", "--recorded-unit", "ns", "--format", "hlog"))
    original = [line.split() for line in gzip.open(HDR / f"{name}.bins.gz", "rt")]
    wanted = sorted((words[0].lower(), *words[1:]) for words in original if len(words) > 5)
    assert sorted((words[0].lower(), *words[1:]) for words in java.bins(path)) == wanted


@pytest.mark.slow
def test_java_adds_up_what_union_adds_up(tmp_path: Path) -> None:
    """Logs of four generators written by Java; our union of them, read by Java, has the sum of their bins."""
    paths = [tmp_path / f"gen{seed}.hlog" for seed in range(4)]
    for seed, path in enumerate(paths):
        java.run("WriteLog", path, 3, 1, 12, 150, seed, 3_600_000_000_000, START // 10**6, 150_000)
    wanted: dict[str, Counter[str]] = {}
    for path in paths:
        for words in java.bins(path):
            for word in words[5:]:
                edges, count = word.split(":")
                wanted.setdefault(words[1], Counter())[edges] += int(count)
    texts = []
    for order in (paths, paths[::-1]):
        texts.append(tailboard("export", *order, "--recorded-unit", "ns", "--format", "hlog"))
    assert texts[0] == texts[1]
    union = tmp_path / "union.hlog"
    union.write_text(texts[0])
    found = {words[1]: Counter({w.split(":")[0]: int(w.split(":")[1]) for w in words[5:]}) for words in java.bins(union)}
    assert found == {start: bins for start, bins in wanted.items() if bins}


@pytest.mark.slow
def test_fio_bins_become_hdr_bins_that_hold_their_highest_values(tmp_path: Path) -> None:
    path = tmp_path / "fio.hlog"
    path.write_text(tailboard("export", *histogram_files(FIO / "randrw"), "--format", "hlog", "--step", "all"))
    found = java.bins(path)
    assert {words[0] for words in found} == {"read::completion", "write::completion"}
    answer = Files(histogram_files(FIO / "randrw"), jobs=1).answer(Question(step="all", by=("op",)))
    for part in answer.parts:
        for row in range(len(part)):
            [words] = [one for one in found if one[0].startswith(part.table[part.series[row]][0])]
            entries = slice(part.indptr[row], part.indptr[row + 1])
            highest = part.layout.edges[part.bins[entries] + 1] - 1
            wanted = Counter()
            layout = hdr_layout(2, 0, 1)
            for index, count in zip(layout.index(highest).tolist(), part.counts[entries].tolist(), strict=True):
                wanted[f"{layout.edges[index]}_{layout.edges[index + 1]}"] += count
            assert Counter({word.split(":")[0]: int(word.split(":")[1]) for word in words[5:]}) == wanted


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize(("ticks", "unit"), [(5, "us"), (1, "ns"), (10, "ms")])
@pytest.mark.parametrize("name", ["tagged", "2.2.2-3-digits", "2.1.12-2-digits-lowest-20000"])
def test_hgrm_is_javas_text(name: str, ticks: int, unit: str) -> None:
    ratio = {"ns": 1, "us": 1000, "ms": 1_000_000}[unit]
    told = java.run("Oracle", "hgrm", HDR / f"{name}.hlog", ratio, ticks)
    wanted = {part.split("\n", 1)[0].lower(): part.split("\n", 1)[1] for part in told.split("tag ") if part}
    question = Question(step="all", by=("op", "kind", "tag"), where={"kind": "*"})
    answer = Files([HDR / f"{name}.hlog"], ReadOptions(recorded_unit_ns=1), jobs=1).answer(question)
    texts = [text for text in hlog.texts(answer, ratio, ticks) if not text.startswith("#")]
    assert sorted(texts) == sorted(wanted.values()) and len(texts) == len(wanted)


@pytest.mark.slow
def test_a_fresh_log_of_this_library_is_read_bin_for_bin(tmp_path: Path, taken: Any) -> None:
    for form in ("tagged", "resized"):
        path = tmp_path / f"{form}.hlog"
        java.run("WriteTagged", path, form, 8, 77, START // 10**6)
        wanted = [(int(words[1]) * 10**6, words[5:]) for words in java.bins(path)]
        found = []
        for row in taken(path).rows:
            edges = row.layout.edges
            found.append((row.start_ns, [f"{edges[i]}_{edges[i + 1]}:{n}" for i, n in row.counts.items()]))
        assert sorted(found) == sorted(wanted)
