"""N14: counts since a start whose bins dip, or whose start jitters, are no restart; held against what was really counted."""

from __future__ import annotations

import json
import random
from collections import Counter
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.read import read
from ingest.read.sources import ReadOptions

START, SECOND, EVERY = 1_795_330_000, 10**9, 10
BOUNDS = [0.001, 0.0025, 0.005, 0.01]


def document(at: int, counts: list[int], start_ns: int | None) -> str:
    point = {"timeUnixNano": str((START + at) * SECOND), "explicitBounds": BOUNDS, "count": str(sum(counts))}
    point["bucketCounts"] = [str(count) for count in counts]
    if start_ns is not None:
        point["startTimeUnixNano"] = str(start_ns)
    metric = {"name": "m", "unit": "s", "histogram": {"aggregationTemporality": 2, "dataPoints": [point]}}
    return json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n"


def scrape(at: int, counts: list[int], start_ns: int | None) -> str:
    upto, stamp = 0, (START + at) * 1000
    lines = [] if start_ns is None else [f"rpc_seconds_created {start_ns / SECOND:.3f} {stamp}\n"]
    for edge, count in zip([*map(str, BOUNDS), "+Inf"], counts, strict=True):
        upto += count
        lines.append(f'rpc_seconds_bucket{{le="{edge}"}} {upto} {stamp}\n')
    return "".join(lines)


def windows(path: Path, text: str) -> tuple[list[tuple[int, int]], Counter, list]:
    """Return end in s and samples of each row, all samples by bin, and what is missing."""
    path.write_text(text)
    [source] = Files([path], ReadOptions(run="r"), jobs=1).found.sources
    rows, by_bin = [], Counter()
    for part in read(source):
        rows += zip((part.end_ns // SECOND - START).tolist(), part.samples.tolist(), strict=True)
        for bin_, count in zip(part.bins.tolist(), part.counts.tolist(), strict=True):
            by_bin[bin_] += count
    return sorted(rows), by_bin, source.context.account.missing


FORMS = [(document, "a.jsonl"), (scrape, "a.prom")]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("started", [True, False])
@pytest.mark.parametrize("seed", range(12))
def test_n14_bins_that_dip_while_the_whole_rises_are_no_restart(form, started: bool, seed: int, tmp_path: Path) -> None:
    chance, (write, name) = random.Random(seed), form
    start = (START - 10**6) * SECOND if started else None
    counts, text, true = [200_000, 300_000, 500_000, 5000, 400], "", []
    counted = Counter()
    for poll in range(12):
        more = [chance.randrange(60), chance.choice([0, 40]), chance.choice([0, 0, 7]), 0, 0]
        if poll:
            counts = [have + new for have, new in zip(counts, more, strict=True)]
            counted.update(dict(enumerate(more)))
            true.append((poll * EVERY, sum(more)))
        shown = list(counts)
        if poll in (3, 4, 8) and poll < 11:  # one bin of a scrape is read before the others
            low = chance.randrange(4)
            shown[low], shown[low + 1] = shown[low] - 1, shown[low + 1] + 1
        text += write(poll * EVERY, shown, start)
    rows, by_bin, missing = windows(tmp_path / name, text)
    assert rows == true and missing == []
    assert by_bin == +counted or sum(abs(by_bin[key] - counted[key]) for key in range(5)) <= 2


@pytest.mark.parametrize("seed", range(6))
def test_n14_a_start_that_jitters_is_no_restart(seed: int, tmp_path: Path) -> None:
    """Worked out from an uptime: another by some ms each time."""
    chance, counts, text, true = random.Random(seed), [100, 200, 300, 0, 0], "", []
    for poll in range(10):
        more = [chance.randrange(50) for _ in counts]
        counts = [have + new for have, new in zip(counts, more, strict=True)]
        text += document(poll * EVERY, counts, (START - 5000) * SECOND + chance.randrange(-900, 900) * 10**6)
        true += [(poll * EVERY, sum(more))] if poll else []
    rows, _, missing = windows(tmp_path / "a.jsonl", text)
    assert rows == true and missing == []


@pytest.mark.parametrize(("form", "started"), [(FORMS[0], True), (FORMS[0], False), (FORMS[1], False)])
@pytest.mark.parametrize("lived", [1, 9])
def test_n14_a_restart_is_still_one(form, started: bool, lived: int, tmp_path: Path) -> None:
    """The whole falls, or begins after the poll before; also where the process had begun shortly before that."""
    write, name = form
    text, counts, began = "", [30, 20, 0, 0, 0], START - lived
    for poll in range(8):
        if poll == 4:
            counts, began = [5, 3, 0, 0, 1], START + poll * EVERY - 4
        text += write(poll * EVERY, counts, began * SECOND if started else None)
        counts = [count + 10 for count in counts]
    rows, _, missing = windows(tmp_path / name, text)
    by_end = dict(rows)
    assert by_end[40] == 9 and [by_end[end] for end in (10, 20, 30, 50, 60, 70)] == [50] * 6
    assert [entry.caveat.code for entry in missing] == ["counter-reset"]


def test_n14_a_start_that_moves_is_a_restart_though_the_whole_rises(tmp_path: Path) -> None:
    text = document(0, [5, 5, 0, 0, 0], (START - 3) * SECOND) + document(10, [9, 6, 0, 0, 0], (START - 3) * SECOND)
    text += document(20, [30, 20, 0, 0, 0], (START + 14) * SECOND)
    rows, _, missing = windows(tmp_path / "a.jsonl", text)
    assert dict(rows)[20] == 50 and [entry.caveat.code for entry in missing] == ["counter-reset"]
