"""N13: logs that hold a part of what was done, by their own numbers, and operations that stand twice in a file."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.operations import REPEATED
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.read.test_rejected_lines import ENDS, HEADS, NAMES, SHAPES, START_MS, answer_of, lines_of
from tests.store.grounds import grounds, loaded


def varied(shape: str, chance: random.Random) -> list[str]:
    """Return 300 operations of a format with latencies of their own."""
    return [
        line.replace("1.0,read", f"{chance.randrange(1, 900) / 100},read")
        .replace(" 1000 0 ", f" {chance.randrange(9000)} 0 ")
        .replace('"dur":1000', f'"dur":{chance.randrange(9000)}')
        .replace('"took_ms": 1.0', f'"took_ms": {chance.randrange(1, 900) / 100}')
        .replace("0.001000", f"{chance.randrange(9000) / 10**6:.6f}")
        .replace(",1000\n", f",{chance.randrange(9000)}\n")
        for line in lines_of(shape)
    ]


def notes_of(shape: str, lines: list[str], folder: Path) -> list[str]:
    import ingest.query.files as module

    seen = []

    class Kept(module.Files):
        def answer(self, question: Question) -> Answer:
            answer = super().answer(question)
            seen.extend(self.account.notes)
            return answer

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tests.read.test_rejected_lines.Files", Kept)
        answer_of(shape, lines, folder)
    return [note for note in seen if note.endswith(REPEATED)]


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape != "perf"])
def test_n13_a_block_that_comes_again_is_noted(shape: str, seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    lines = varied(shape, chance)
    assert notes_of(shape, list(lines), tmp_path) == []
    each = len(lines) // 300
    begin, length = chance.randrange(200) * each, chance.randrange(50, 90) * each
    at = chance.choice([begin + length, len(lines), 0])
    again = [*lines[:at], *lines[begin : begin + length], *lines[at:]]
    assert len(notes_of(shape, again, tmp_path)) == 1


@pytest.mark.parametrize("stamp", [1000, 100, 10, 1])
@pytest.mark.parametrize("values", [1, 3, 100])
@pytest.mark.parametrize("seed", range(3))
def test_n13_a_busy_log_of_coarse_stamps_repeats_nothing(seed: int, values: int, stamp: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    starts = sorted(chance.randrange(20_000) for _ in range(5000))
    lines = [f"{START_MS + start // stamp * stamp},{chance.randrange(values)},read\n" for start in starts]
    assert notes_of("operations", lines, tmp_path) == []


def test_n13_a_long_log_with_a_repeated_part_is_noted(tmp_path: Path) -> None:
    chance = random.Random(1)
    lines = [f"{START_MS + number},{chance.randrange(9000) / 1000},read\n" for number in range(60_000)]  # more than one block
    assert notes_of("operations", lines, tmp_path) == []
    assert len(notes_of("operations", [*lines, *lines[1000:6000]], tmp_path)) == 1


def test_n13_a_file_given_twice_is_said(tmp_path: Path) -> None:
    lines = varied("operations", random.Random(2))
    for name in ("a.csv", "b.csv"):
        (tmp_path / name).write_text(HEADS["operations"] + "".join(lines))
    answer = Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert "same-content" in {caveat.code for caveat in answer.caveats}
    assert ENDS and NAMES


def pgbench(chance: random.Random, rate: float, first: int = 1) -> tuple[list[str], int]:
    """Return lines of two clients, a share of them logged, and how many are missing by the numbers."""
    lines, missing = [], 0
    for client in range(2):
        logged = [number for number in range(first, 400) if chance.random() < rate] or [first]
        lines += [f"{client} {number} 1000 0 {START_MS // 1000 + number} {client}\n" for number in logged]
        missing += max(logged[-1] - len(logged), 0)
    return lines, missing


@pytest.mark.parametrize("rate", [0.1, 0.5, 0.95])
@pytest.mark.parametrize("damaged", [0, 3])
def test_n13_a_sampled_log_of_pgbench_says_how_many_are_not_logged(rate: float, damaged: int, tmp_path: Path) -> None:
    lines, missing = pgbench(random.Random(3), rate)
    for at in range(damaged):
        lines[at + 5] = "x\n"
    (tmp_path / "pgbench_log.7").write_text("".join(lines))
    answer = Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    [caveat] = [caveat for caveat in answer.caveats if caveat.code == "sampled-log"]
    assert f"at least {missing:,}" in caveat.sentence
    assert percentiles(answer, Wanted(())).columns["complete"].tolist() == [False]


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("damaged", [0, 3])
def test_n13_a_whole_log_of_pgbench_is_no_sample(first: int, damaged: int, tmp_path: Path) -> None:
    lines, _ = pgbench(random.Random(4), 1.1, first)
    for at in range(damaged):
        lines[at + 5] = "x\n"
    lines[50] = lines[50].replace(" 1000 0 ", " skipped 0 ")
    (tmp_path / "pgbench_log.7").write_text("".join(lines))
    answer = Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert {caveat.code for caveat in answer.caveats} == ({"rejected-rows"} if damaged else set())


def answers_of(folder: Path, tmp_path: Path) -> list[Answer]:
    """Return what files and both stores answer about a folder, loaded file by file."""
    found = [Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))]
    for name in ("sqlite", "double"):
        with grounds(name, tmp_path) as ground:
            for path in sorted(folder.iterdir()):
                loaded(ground.url, [path], run="r")
            with open_store(ground.url) as store:
                found.append(store.answer(Question(step="all")))
    return found


def doubled(answers: list[Answer], *, whole: bool = True) -> list[int]:
    """Return how many operations are said to be in two files, the same by all origins; without `whole` more may be missing."""
    said = [[caveat.sentence for caveat in answer.caveats if caveat.code == "in-two-files"] for answer in answers]
    numbers = [[int(text.split()[1].replace(",", "")) for text in sentences] for sentences in said]
    assert all(of_one == numbers[0] for of_one in numbers)
    complete = [percentiles(answer, Wanted(())).columns["complete"].tolist() for answer in answers]
    assert complete == [[whole and not numbers[0]]] * len(answers)
    return numbers[0]


@pytest.mark.cases(6)
@pytest.mark.parametrize(("begin", "end"), [(0, 400), (100, 240), (200, 600), (390, 400)])
@pytest.mark.parametrize("shape", ["operations", "pgbench", "smallfile", "ycsb", "fio raw"])
def test_n13_operations_that_two_files_hold_are_said_with_their_number(shape: str, begin: int, end: int, tmp_path: Path) -> None:
    """Of logs of 400 operations: all, a part of the middle, the second half with others behind it, ten."""
    chance, folder = random.Random(begin), tmp_path / "logs"
    folder.mkdir()
    rows = [(at * 7, chance.randrange(1, 9_000_000)) for at in range(600)]
    for number, part in enumerate((rows[:400], rows[begin:end])):
        write_operations(folder, shape, number, part)
    shared = max(min(end, 400) - begin, 0)
    found = (
        doubled(answers_of(folder, tmp_path))
        if shape in ("operations", "pgbench") and begin
        else doubled(answers_of(folder, tmp_path)[:1])
    )
    assert len(found) == (shared > 40) and all(0.7 * shared - 40 < number < 1.3 * shared + 40 for number in found)


@pytest.mark.cases(25)
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("values", [1, 2, 3, 50, 10**6])
@pytest.mark.parametrize("period", [1, 10, 1000])
def test_n13_sound_logs_of_two_hosts_hold_nothing_of_each_other(period: int, values: int, seed: int, tmp_path: Path) -> None:
    """Also where requests are due at the same times, and latencies are of few values: no number can tell them from copies."""
    chance = random.Random(seed)
    for number in range(3):
        rows = [(at // 5 * 5 * period, 1000 * chance.randrange(1, values + 1)) for at in range(1500)]
        write_operations(tmp_path, "operations", number, rows)
    assert doubled([Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))]) == []


def histogram_rows(chance: random.Random, rows: int, samples: int = 60, spread: float = 40) -> list[str]:
    """Rows of a fio histogram log, of as many I/Os each, up to its rate."""
    found = []
    for second in range(1, rows + 1):
        counts = [0] * 464
        for _ in range(samples):
            counts[min(max(round(chance.gauss(230, spread)), 0), 463)] += 1
        found.append(f"{START_MS + 1000 * second + chance.randrange(3)}, {second % 2}, 4096, {', '.join(map(str, counts))}\n")
    return found


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    ("begin", "end"),
    [(0, 150), pytest.param(150, 300, marks=pytest.mark.slow), pytest.param(60, 180, marks=pytest.mark.slow), (290, 296)],
)
def test_n13_a_part_of_a_fio_histogram_log_under_another_name_is_said(begin: int, end: int, tmp_path: Path) -> None:
    folder, rows = tmp_path / "logs", histogram_rows(random.Random(begin), 300)
    folder.mkdir()
    (folder / "x_clat_hist.1.log").write_text("".join(rows))
    (folder / "y_clat_hist.2.log").write_text("".join(rows[begin:end]))
    found, shared = doubled(answers_of(folder, tmp_path), whole=False), 60 * (end - begin)
    assert len(found) == (shared > 1000) and all(0.6 * shared < number < 1.4 * shared for number in found)


@pytest.mark.parametrize(
    ("samples", "spread"),
    [(1, 0), pytest.param(1, 3, marks=pytest.mark.slow), (10, 0.4), pytest.param(60, 0.2, marks=pytest.mark.slow), (60, 5)],
)
def test_n13_sound_fio_histogram_logs_hold_nothing_of_each_other(samples: int, spread: float, tmp_path: Path) -> None:
    """Also idle ones, and such whose I/Os all take the same time: rows are alike then, at the same stamps."""
    for number in range(6):
        rows = histogram_rows(random.Random(number), 300, samples, spread)
        rows = [f"{START_MS + 1000 * (place + 1)},{row.partition(',')[2]}" for place, row in enumerate(rows)]
        (tmp_path / f"x_clat_hist.{number + 1}.log").write_text("".join(rows))
    assert doubled([Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))], whole=False) == []


def write_operations(folder: Path, shape: str, number: int, rows: list[tuple[int, int]]) -> None:
    """Write a file of operations: ms since the start, ns."""
    lines = {
        "operations": [f"{START_MS + at},{ns / 10**6},read\n" for at, ns in rows],
        "pgbench": [
            f"{number} {place} {ns // 1000} 0 {(START_MS + at) // 1000} {(START_MS + at) % 1000 * 1000}\n"
            for place, (at, ns) in enumerate(rows, 1)
        ],
        "smallfile": [f"read, {at / 1000:.6f}, {ns / 10**9:.9f}\n" for at, ns in rows],
        "ycsb": [f"READ,{START_MS + at},{ns // 1000}\n" for at, ns in rows],
        "fio raw": [f"{START_MS + at}, {ns}, 0, 4096, 0\n" for at, ns in rows],
    }[shape]
    names = {"pgbench": f"pgbench_log.{number}", "fio raw": f"a_clat.{number + 1}.log"}
    names["smallfile"] = f"rsptimes_0{number}_c7_read_{START_MS // 1000}.0000.csv"
    head = HEADS["ycsb"] if shape == "ycsb" else HEADS["operations"] if shape == "operations" else ""
    (folder / names.get(shape, f"x{number}.log")).write_text(head + "".join(lines))
