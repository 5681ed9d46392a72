"""YCSB's raw measurements are held against the number of operations that it prints behind each section (N6)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.store.grounds import grounds, loaded


def output(sections: dict[str, tuple[int, int]], broken: int = 0) -> str:
    """Return what YCSB prints: lines of each operation and the number it says; of the first `broken` lines are unreadable."""
    text = ""
    for number, (op, (lines, total)) in enumerate(sections.items()):
        text += f"{op} latency raw data: op, timestamp(ms), latency(us)\n"
        text += "".join(f"{op},{1_700_000_000_000 + 10 * n},{300 + n}\n" for n in range(lines - (broken if not number else 0)))
        text += "READ,nonsense\n" * (broken if not number else 0)
        text += f"[{op}], Total Operations, {total}\n[{op}], Average, 400.0\n"
    return text


@pytest.mark.parametrize("store", ["files", "sqlite"])
@pytest.mark.parametrize(
    ("sections", "incomplete", "words"),
    [
        ({"READ": (50, 50), "UPDATE": (30, 30)}, set(), []),
        ({"READ": (50, 60), "UPDATE": (30, 30)}, {"read"}, ["read: YCSB counts 60 operations, of which 50 are here"]),
        ({"READ": (50, 50), "Intended-READ": (50, 1_050)}, {"read"}, ["read: YCSB counts 1,050 operations, of which 50"]),
        (
            {"READ": (50, 50), "UPDATE": (30, 15)},
            {"update"},
            ["update: YCSB counts 15 operations, and 30 are here: counted twice?"],
        ),
    ],
)
def test_n6_lines_are_held_against_the_total_operations(
    tmp_path: Path, store: str, sections: dict[str, tuple[int, int]], incomplete: set[str], words: list[str]
) -> None:
    (tmp_path / "ycsb.txt").write_text(output(sections))
    question = Question(step="all", by=("op", "kind"))
    if store == "files":
        answer = Files([tmp_path / "ycsb.txt"], ReadOptions(run="r"), jobs=1).answer(question)
    else:
        with grounds(store, tmp_path) as ground:
            loaded(ground.url, [tmp_path / "ycsb.txt"], run="r")
            with open_store(ground.url) as held:
                answer = held.answer(question)
    columns = percentiles(answer, Wanted(parse_percentiles("50"))).columns
    assert {op for op, complete in zip(columns["op"], columns["complete"], strict=True) if not complete} == incomplete
    assert [caveat.sentence.startswith(word) for caveat, word in zip(answer.caveats, words, strict=True)] == [True] * len(words)


def test_n6_rejected_lines_are_what_is_missing(tmp_path: Path) -> None:
    """They are said once: as lines that were rejected."""
    (tmp_path / "ycsb.txt").write_text(output({"READ": (50, 50)}, broken=3))
    answer = Files([tmp_path / "ycsb.txt"], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert answer.samples == 47
    assert [caveat.code for caveat in answer.caveats] == ["rejected-rows"]


@pytest.mark.parametrize("ops", [("READ",), ("READ", "UPDATE")])
def test_n6_what_is_missing_beside_rejected_lines_is_counted_once(tmp_path: Path, ops: tuple[str, ...]) -> None:
    """Of which operation a rejected line was is not known."""
    (tmp_path / "ycsb.txt").write_text(output({op: (50, 60) for op in ops}, broken=3))
    files = Files([tmp_path / "ycsb.txt"], ReadOptions(run="r"), jobs=1)
    answer = files.answer(Question(step="all"))
    [source] = files.found.sources
    assert answer.samples + sum(entry.count or 0 for entry in source.context.account.missing) == 60 * len(ops)
    assert {caveat.code for caveat in answer.caveats} == {"rejected-rows", "short-log"}
