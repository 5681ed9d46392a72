"""Lines of an HdrHistogram log that repeat an earlier one: counted, as two programs may log alike, and said."""

from __future__ import annotations

import random
import tracemalloc
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.hdr import log as again
from ingest.read.hdr.log import Again
from ingest.store import open_store
from oracles import hdr
from tests.live.feeding import Clock, batch, begun

REPEATED = "the time and number of samples of an earlier one"


def lines_of(seed: int, rows: int, tag: str = "") -> list[str]:
    """Return the lines of a tag, one a second."""
    noise = random.Random(seed)
    return [
        hdr.line(f"{second}.000", "1.000", {noise.randrange(9000): noise.randrange(1, 500) for _ in range(5)}, tag)
        for second in range(rows)
    ]


def told(account: Any) -> list[str]:
    """Return the beginnings of the sentences on repeated lines."""
    return [note.rpartition(".hlog: ")[2].partition(" the time")[0] for note in account.notes if REPEATED in note]


def test_one_line_that_stands_twice_is_counted_twice_and_told(taken: Any, log: Any) -> None:
    lines = lines_of(1, 5)
    account = taken(log(hdr.log([*lines[:3], lines[2], *lines[3:]]), "x.hlog")).account
    assert told(account) == ["1 line without a tag repeats"]
    assert account.samples == sum(taken(log(hdr.log(some), "y.hlog")).account.samples for some in (lines, lines[2:3]))


@pytest.mark.parametrize("tags", [("",), ("read-st", "write-st"), ("a", "b")])
def test_logs_put_together_that_overlap_are_told_by_tag(taken: Any, log: Any, tags: tuple[str, ...]) -> None:
    """As after a rotation whose parts share their last and first rows: the 7 lines of the overlap, not those around it."""
    every = [line for row in zip(*(lines_of(number, 40, tag) for number, tag in enumerate(tags)), strict=True) for line in row]
    cut, over = 25 * len(tags), 7 * len(tags)
    account = taken(log(hdr.log([*every[:cut], *every[cut - over :]]), "x.hlog")).account
    names = {"": "without a tag", "read-st": "of tag 'read'", "write-st": "of tag 'write'"}
    assert told(account) == [f"7 lines {names.get(tag, f'of tag {tag!r}')} repeat" for tag in tags]


def test_a_log_appended_to_itself_is_told_once(taken: Any, log: Any) -> None:
    lines = lines_of(3, 30)
    account = taken(log(hdr.log([*lines, *lines]), "x.hlog")).account
    assert not told(account)
    assert [note for note in account.notes if "hold equal numbers of samples in every interval" in note]


def test_lines_of_another_program_or_without_samples_say_nothing(taken: Any, log: Any) -> None:
    empty = [hdr.line(f"{second}.000", "1.000", {}) for second in range(5)]
    for lines in (lines_of(4, 30) + lines_of(5, 30), [*empty, *empty]):
        assert not told(taken(log(hdr.log(lines), "x.hlog")).account)


def test_the_answer_says_it(tmp_path: Path) -> None:
    lines = lines_of(6, 12)
    (tmp_path / "x.hlog").write_text(hdr.log([*lines, *lines[4:6]]))
    answer = Files([tmp_path / "x.hlog"]).answer(Question(step="all"))
    assert [text for text in answer.warnings if "2 lines without a tag repeat" in text]


@given(seed=st.integers(0, 10**6), batches=st.integers(1, 6), most=st.sampled_from([1, 3, 1 << 16]))
def test_repeats_are_those_of_a_plain_count(seed: int, batches: int, most: int) -> None:
    """Held lines are the latest `MOST_LINES` or more: what is found is never more than all repeats, all of them with room."""
    noise = random.Random(seed)
    before: Counter[tuple[int, int]] = Counter()
    mine, expected = Again(), 0
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(again, "MOST_LINES", most)
        for segment in sorted(noise.randrange(3) for _ in range(batches)):
            lines = [(noise.randrange(20), noise.randrange(3)) for _ in range(noise.randrange(1, 9))]
            starts, samples = (np.array(column, np.int64) for column in zip(*lines, strict=True))
            expected += sum(1 for line in lines if segment and line[1] and before[line])
            before.update(lines)
            mine.add(("", "", "", segment), starts, samples)
    found = sum(mine.repeated.values())
    assert found == expected if most > 100 else found <= expected


def test_a_watch_says_what_a_load_says(tmp_path: Path) -> None:
    """Also after it was killed, for what it had counted before."""
    lines = lines_of(7, 40)
    text = hdr.log([*lines[:8], *lines[6:30], *lines[27:]]).splitlines(keepends=True)
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    url = f"sqlite:{tmp_path / 'watched.db'}"
    store = open_store(url, write=True)
    watch = begun(folder, store, clock)
    for at in range(0, len(text), 6):
        with (folder / "x.hlog").open("a") as stream:
            stream.writelines(text[at : at + 6])
        clock.seconds += 1
        watch.cycle()
        if at == 18:
            for tail in watch.watching.tails.values():
                tail.close()
            store.__exit__(None, None, None)
            store = open_store(url, write=True)
            watch = begun(folder, store, clock)
    clock.seconds += 1
    watch.cycle()
    [tail] = watch.watching.tails.values()
    assert told(tail.account) == ["5 lines without a tag repeat"]
    store.__exit__(None, None, None)
    batch(folder, tmp_path / "batch.db")
    with open_store(f"sqlite:{tmp_path / 'batch.db'}") as other:
        [record] = other.sources("r")
    assert [note for note in record.account["notes"] if "5 lines without a tag repeat" in note]


@pytest.mark.slow
@pytest.mark.parametrize("tags", [1, 4, 300])
def test_r5_the_lines_that_a_watch_adds_for_days_are_held_in_a_megabyte(tags: int) -> None:
    """They took 196 bytes a line and tag, up to 196,608 lines of each tag: gigabytes in a night of many logs."""
    lines = 200_000 // tags
    held = Again()
    tracemalloc.start()
    try:
        for second in range(0, lines, 20):  # of a cycle
            for tag in range(tags):
                held.add(("read", "response", str(tag), 0), np.arange(second, second + 20) * 10**9, np.full(20, 7))
        assert tracemalloc.get_traced_memory()[0] < 3 << 20
    finally:
        tracemalloc.stop()
    held.add(("read", "response", "0", 1), np.array([(lines - 1) * 10**9, (lines - 1) * 10**9]), np.array([7, 0]))
    assert held.repeated == {("read", "response", "0"): 1}
