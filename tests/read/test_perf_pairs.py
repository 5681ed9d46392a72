"""N12: block requests are paired by device, action, sector and size; what completes in parts has completed with the last."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions

MS = 10**6


def line(at_us: int, name: str, flags: str, sector: int, size: int) -> tuple[int, str]:
    rest = f"8,0 {flags} {size * 512} ()" if name == "issue" else f"8,0 {flags} ()"
    stamp = f"{100 + at_us // 10**6}.{at_us % 10**6:06d}"
    return at_us, f"fio 1 [000] {stamp}: block:block_rq_{name}: {rest} {sector} + {size} [0]\n"


def latencies(path: Path, lines: list[tuple[int, str]]) -> tuple[dict[str, list[tuple[int, int, int]]], Files]:
    """Return count, minimum and maximum in ns by op."""
    path.write_text("".join(text for _, text in sorted(lines, key=lambda one: one[0])))
    files = Files([path], ReadOptions(run="r"), jobs=1)
    columns = percentiles(files.answer(Question(step="all", by=("op",))), Wanted(())).columns
    rows = zip(*(columns[name].tolist() for name in ("op", "count", "min", "max")), strict=True)
    return {op: (int(count), int(low), int(high)) for op, count, low, high in rows}, files


def plain(number: int = 30) -> list[tuple[int, str]]:
    return [
        entry
        for n in range(number)
        for entry in (
            line(10_000 * n, "issue", "WS", 1000 + 8 * n, 8),
            line(10_000 * n + 2000, "complete", "WS", 1000 + 8 * n, 8),
        )
    ]


def test_n12_the_issue_of_a_write_is_not_ended_by_a_read(tmp_path: Path) -> None:
    lines = [*plain(), line(400_000, "issue", "WS", 184_067_232, 16), line(90_000_000, "complete", "R", 184_067_232, 16)]
    found, files = latencies(tmp_path / "x.txt", lines)
    assert found == {"write": (30, 2 * MS, 2 * MS)}
    assert sum(files.account.rejected.values()) == 2


def test_n12_a_flush_and_a_read_at_sector_0_are_two(tmp_path: Path) -> None:
    lines = []
    for n in range(5):
        at = 10_000 * n
        lines += [line(at, "issue", "FF", 0, 0), line(at + 1000, "issue", "R", 0, 8)]
        lines += [line(at + 1500, "complete", "R", 0, 8), line(at + 4000, "complete", "FF", 0, 0)]
    assert latencies(tmp_path / "x.txt", lines)[0] == {"flush": (5, 4 * MS, 4 * MS), "read": (5, MS // 2, MS // 2)}


def test_n12_a_request_that_completes_in_parts_took_until_the_last(tmp_path: Path) -> None:
    lines = []
    for n in range(20):
        at, sector = 10_000 * n, 1000 + 32 * n
        lines += [line(at, "issue", "W", sector, 16), line(at + 1000, "complete", "W", sector, 8)]
        lines += [line(at + 3000, "complete", "W", sector + 8, 8)]
    found, files = latencies(tmp_path / "x.txt", lines)
    assert found == {"write": (20, 3 * MS, 3 * MS)}
    assert not files.account.rejected and sum(files.account.skipped.values()) == 20


@pytest.mark.parametrize("seed", range(8))
def test_n12_requests_of_any_kind_and_size_are_those_that_were_made(seed: int, tmp_path: Path) -> None:
    """Many in flight at once, on sectors that are used again, each in one or two parts."""
    chance, lines, free, true = random.Random(seed), [], dict.fromkeys(range(0, 400, 40), 0), {}
    for _ in range(400):
        at = chance.randrange(2_000_000)
        sector = chance.choice([place for place, when in free.items()])
        at = max(at, free[sector] + 10)
        action, size = chance.choice(["R", "W", "RA", "WS"]), chance.choice([8, 16, 32])
        took = chance.randrange(100, 9000)
        free[sector] = at + took
        lines.append(line(at, "issue", action, sector, size))
        if chance.random() < 0.3:
            lines.append(line(at + took // 2, "complete", action, sector, size // 2))
            lines.append(line(at + took, "complete", action, sector + size // 2, size // 2))
        else:
            lines.append(line(at + took, "complete", action, sector, size))
        true.setdefault("write" if "W" in action else "read", []).append(took * 1000)
    found, files = latencies(tmp_path / "x.txt", lines)
    assert found == {op: (len(values), min(values), max(values)) for op, values in true.items()}
    assert not files.account.rejected
