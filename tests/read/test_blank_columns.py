"""Tables that blanks part (`delimiter: whitespace`): any padding gives what the CSV gives, names may hold blanks."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.errors import InputError, UsageError
from ingest.read import events_of
from ingest.read.account import Account
from ingest.read.described.description import description_of
from ingest.read.described.table import fields, marked
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

TABLES = Path(__file__).parent.parent / "data" / "tables"
MS, SECOND = 1_000_000, 1_000_000_000
BIOSNOOP = "time: TIME(s)\nlatency: LAT(ms)\nlabels: {op: T, volume: DISK, process: COMM}\ndelimiter: whitespace\n"
WORD = st.text(st.sampled_from("ab_/:.[]()'\"#,;x0é"), min_size=1, max_size=6)
PAD = st.text(st.sampled_from(" \t"), min_size=1, max_size=4)
EDGE = st.text(st.sampled_from(" \t"), max_size=3)

Found = list[tuple[str, str, str, int, int]]


def taken(folder: Path, lines: str, text: bytes | Path, name: str = "log.txt") -> tuple[Found, Account]:
    """Return (op, volume, process, completion, latency) of all operations, in order, and the account."""
    told = folder / "events.yml"
    told.write_text(lines)
    path = text if isinstance(text, Path) else folder / name
    if isinstance(text, bytes):
        path.write_bytes(text)
    [source] = discover([path], ReadOptions(description=description_of(str(told)))).sources
    found: Found = []
    for chunk in events_of(source):
        for code, end, latency in zip(chunk.series.tolist(), chunk.end_ns.tolist(), chunk.latency_ns.tolist(), strict=True):
            series = chunk.table[code]
            found.append((series.op, series.volume, series.process, end, latency))
    return found, source.context.account


def test_a20_biosnoop(tmp_path: Path) -> None:
    found, account = taken(tmp_path, BIOSNOOP + "blanks: COMM\n", TABLES / "biosnoop.txt")
    assert found == [
        ("w", "nvme1n1", "kworker/u72:1", 0, 550_000),
        ("w", "nvme1n1", "sync", 771_000, 470_000),
        ("r", "nvme1n1", "tmux: server", 2_010_000, 12_300_000),
        ("w", "nvme1n1", "xfsaild/nvme1n", 5_332_998_000, 610_000),
        ("r", "nvme0n1", "Chrome IO Thr", 5_333_044_000, 640_000),
    ]
    assert dict(account.rejected) == {"fewer columns than the rows of this log (9)": 1} and account.rows == 6


def test_a20_without_a_word_on_blanks_names_with_blanks_are_rejected(tmp_path: Path) -> None:
    found, account = taken(tmp_path, BIOSNOOP, TABLES / "biosnoop.txt")
    assert [row[2] for row in found] == ["kworker/u72:1", "sync", "xfsaild/nvme1n"]
    assert dict(account.rejected) == {
        "more columns than the rows of this log (9): if a name contains blanks, name its column (blanks:)": 2,
        "fewer columns than the rows of this log (9)": 1,
    }


def test_a20_ext4slower_with_stamps_by_ts(tmp_path: Path) -> None:
    """No head of its own for the stamp of `ts`: columns by number; lines before the first of data are passed over."""
    lines = (
        "time: 1\nlatency: 8\nunit: {time: s, latency: ms}\nlabels: {op: 5, process: 3}\nheader: false\ndelimiter: whitespace\n"
    )
    found, account = taken(tmp_path, lines + "blanks: 3\n", TABLES / "ext4slower.txt")
    at = 1_700_000_000 * SECOND
    assert found[0] == ("r", "", "bash", at + 1_000_100_000, 7_750_000)
    assert found[-1] == ("s", "", "tmux: server", at + 2_600_000_000, 19_310_000)
    found, account = taken(tmp_path, lines, TABLES / "ext4slower.txt")
    assert found == [
        ("r", "", "bash", at + 1_000_100_000, 7_750_000),
        ("r", "", "cksum", at + 1_000_200_000, 1_340_000),
    ]
    assert sum(account.rejected.values()) == 3 and account.rows == 5  # `my own file`, `tmux: server`, ^C: none is a guess


def table_of(rows: Sequence[Sequence[str]], draw: Any) -> bytes:
    """Return rows with random runs of blanks before, between and behind their columns."""
    out = []
    for row in rows:
        text = draw(EDGE) + row[0]
        for cell in row[1:]:
            text += draw(PAD) + cell
        out.append(text + draw(EDGE) + draw(st.sampled_from(["\n", "\n", "\r\n"])))
    return "".join(out).encode()


@given(data=st.data())
def test_a20_any_padding_gives_what_the_csv_gives(tmp_path_factory: pytest.TempPathFactory, data: st.DataObject) -> None:
    folder = tmp_path_factory.mktemp("t")
    names = ["done_ms", "who", "took_us", "what", "rest"]
    number = st.decimals(0, 10**7, places=3).map(str)
    rows = data.draw(st.lists(st.tuples(number, WORD, number, WORD, WORD), min_size=1, max_size=30))
    quoted = ["{},{},{},{},{}".format(*('"' + cell.replace('"', '""') + '"' for cell in row)) for row in rows]
    lines = "time: done_ms\nlatency: took_us\nlabels: {op: what, process: who}\n"
    wanted, _ = taken(folder, lines, ("\n".join([",".join(names), *quoted]) + "\n").encode(), "log.csv")
    text = table_of([names, *rows], data.draw)
    found, account = taken(folder, lines + "delimiter: whitespace\n", text)
    assert found == wanted and len(found) == len(rows) == account.accepted and not account.rejected


@given(data=st.data())
def test_a20_marks_are_what_split_gives(data: st.DataObject) -> None:
    """Lines of any number of words: the marks of a block of lines are those of each line by itself."""
    lines = data.draw(st.lists(st.lists(WORD, max_size=9), max_size=8))
    width, blanks = data.draw(st.integers(1, 6)), data.draw(st.none() | st.integers(0, 5))
    blanks = None if blanks is None else min(blanks, width - 1)
    text = b"".join((data.draw(EDGE) + data.draw(PAD).join(words) + data.draw(EDGE) + "\n").encode() for words in lines)
    found = marked(np.frombuffer(text, np.uint8), width, blanks).tobytes().decode()
    wanted = []
    for words in lines:
        more = len(words) - width
        if blanks is not None and more > 0:
            words = [*words[:blanks], " ".join(words[blanks : blanks + more + 1]), *words[blanks + more + 1 :]]  # noqa: PLW2901
        wanted.append(words)
    assert found == "".join("\x1f".join(words) + "\n" for words in wanted)
    for line, words in zip(text.splitlines(), wanted, strict=False):
        assert fields(line, width, blanks) == words


def test_a20_heads_that_come_again_empty_lines_and_text_before_the_head(tmp_path: Path) -> None:
    noise = random.Random(5)
    head, wanted, lines = " at_s  name   took_ms", [], ["Tracing, hit Ctrl-C to end", "at_s is the end"]
    for number in range(40_000):
        if number % 7000 == 0:
            lines += ["", head]
        took = noise.randrange(1, 10**6)
        lines.append(f"{number}.5\t {noise.choice('ab')}   {took / 1000:.3f} ")
        wanted.append((number * SECOND + SECOND // 2, took * 1000))
    text = "time: at_s\nlatency: took_ms\nlabels: {op: name}\ndelimiter: whitespace\n"
    found, account = taken(tmp_path, text, ("\n".join(lines) + "\n").encode())
    assert [row[3:] for row in found] == wanted and not account.rejected
    lines[20_000] = "Lost 5 events"
    found, account = taken(tmp_path, text, ("\n".join(lines) + "\n").encode())
    assert len(found) == len(wanted) - 1 and sum(account.rejected.values()) == 1
    assert [finding.line for finding in account.findings] == [20_001]


@pytest.mark.parametrize(
    ("lines", "reason"),
    [
        ("delimiter: blank\n", "or the word whitespace"),
        ("delimiter: ' '\nblanks: b\n", "it needs delimiter: whitespace"),
        ("delimiter: whitespace\nblanks: 7\n", r"no column '7' for blanks: there are a_ms, b, c_ms"),
        ("delimiter: whitespace\nblanks: a_ms\n", "holds numbers and cannot hold blanks"),
        ("delimiter: whitespace\nlabels: {op: none}\n", r"no column 'none' for op"),
    ],
)
def test_a20_what_cannot_be_is_refused(tmp_path: Path, lines: str, reason: str) -> None:
    with pytest.raises((InputError, UsageError), match=reason):
        taken(tmp_path, "time: a_ms\nlatency: c_ms\n" + lines, b"a_ms b c_ms\n1 x 2\n")


@pytest.mark.parametrize("name", ["LAT(ms)", "LAT (ms)", "lat_ms"])
def test_a20_the_unit_may_stand_in_brackets(tmp_path: Path, name: str) -> None:
    found, _ = taken(tmp_path, f"time: T(s)\nlatency: {name}\n", f"T(s),{name}\n7,2.5\n".encode(), "log.csv")
    assert [row[3:] for row in found] == [(7 * SECOND, 5 * MS // 2)]
