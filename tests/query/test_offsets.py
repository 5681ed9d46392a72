"""Offset maps from files: what patterns look like, whom they are of, what is marked; all by counts, against plain loops."""

from __future__ import annotations

import csv
import io
import random
import re
from collections import Counter
from pathlib import Path

import pytest

from event_files import description, event_file, reading
from ingest.core.errors import InputError, UsageError
from ingest.core.offsets import Periods
from ingest.core.units import parse_instant
from ingest.query.files import Files
from ingest.query.offsets import OffsetMap, WantedOffsets, from_files, offsets
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from oracles import offsets as oracle
from tests.commands import tailboard as command

RAW = Path(__file__).parent.parent / "data" / "raw"
MS, SECOND = oracle.MS, oracle.SECOND
ZERO = 1_789_999_200 * SECOND


def mapped(folder: Path, rows, *, period: int = SECOND, height: int = 50, **words) -> OffsetMap:
    question = {name: words.pop(name) for name in ("by", "begin", "end", "runs") if name in words}
    path = event_file(folder, rows)
    return from_files(
        Files([path], reading(folder), jobs=1), WantedOffsets(Question(**question), Periods(period, height), **words)
    )


def cells_of(answer: OffsetMap) -> Counter:
    table = offsets(answer)
    columns = table.columns
    label = list(zip(*(columns[name] for name in answer.by))) if answer.by else [()] * len(table)
    places = {edge: row for row, edge in enumerate(answer.periods.edges.tolist())}
    found = zip(label, columns["start_ns"].tolist(), columns["offset_lower"].tolist(), columns["count"].tolist())
    return Counter({("/".join(name), start, places[lower]): count for name, start, lower, count in found})


def rows_by_second(answer: OffsetMap) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for _, start, row in sorted(cells_of(answer)):
        found.setdefault((start - ZERO) // SECOND, []).append(row)
    return found


def test_a_fixed_offset_is_a_line(tmp_path: Path) -> None:
    answer = mapped(tmp_path, [(ZERO + second * SECOND + 253 * MS,) for second in range(30)])
    assert cells_of(answer) == {("", ZERO + second * SECOND, 12): 1 for second in range(30)}


def test_twice_a_second_is_two_bands(tmp_path: Path) -> None:
    answer = mapped(tmp_path, [(ZERO + half * SECOND // 2 + 101 * MS,) for half in range(40)])
    assert rows_by_second(answer) == {second: [5, 30] for second in range(20)}


def test_work_then_sleep_rises_by_the_work_a_second(tmp_path: Path) -> None:
    """Busy for 60 ms, asleep for 1 s: each round begins 60 ms higher, three rows of 20 ms."""
    rows = [(ZERO + round_ * 1_060 * MS + at * MS,) for round_ in range(16) for at in range(60)]
    found = rows_by_second(mapped(tmp_path, rows))
    assert found == {second: [3 * second, 3 * second + 1, 3 * second + 2] for second in range(16)}


def test_every_five_seconds_is_dots(tmp_path: Path) -> None:
    steady = [(ZERO + tick * 100 * MS, 0, "h", "steady") for tick in range(300)]
    dots = [(ZERO + second * SECOND + 505 * MS, 0, "h", "cron") for second in range(0, 30, 5)]
    answer = mapped(tmp_path, sorted(steady + dots), isolate={"process": "cron"})
    assert rows_by_second(answer) == {second: [25] for second in range(0, 30, 5)}
    assert answer.missing_ns.size == 0  # the other process shows that seconds without a dot are zero, not unknown


def test_a_blocked_process_has_a_gap_with_its_blocker_in_it(tmp_path: Path) -> None:
    begin, end = ZERO + 3_400 * MS, ZERO + 5_200 * MS
    ticks = [ZERO + tick * 10 * MS for tick in range(1_000)]
    rows = [(at, 0, "h", "blocker" if begin <= at < end else "blocked") for at in ticks]
    answer = mapped(tmp_path, rows, by=("process",))
    blocked, blocker = (
        {(at, row) for name, at, row in cells_of(answer) if name == process} for process in ("blocked", "blocker")
    )
    everything = {(ZERO + second * SECOND, row) for second in range(10) for row in range(50)}
    assert blocked | blocker == everything and not blocked & blocker
    assert blocker == {(at, row) for at, row in everything if begin <= at + row * 20 * MS < end}
    assert {at for at, _ in blocker} == {ZERO + second * SECOND for second in (3, 4, 5)}


def test_the_collection_artifact_is_not_drawn(tmp_path: Path) -> None:
    """Collected every second at 0.3 s past it: a map whose columns change then tears a rising line; ours changes at 0.0."""
    events = [ZERO + second * 1_040 * MS + 20 * MS for second in range(24)]
    collected = [(time - 300 * MS) // SECOND * SECOND + 1_300 * MS for time in events]
    torn = oracle.by_collection(zip(events, collected), SECOND, 50)
    right = oracle.cells([("", time, 1) for time in events], SECOND, 50)
    assert cells_of(mapped(tmp_path, [(time,) for time in events])) == right
    assert max(Counter(column for column, _ in torn).values()) == 1  # nothing overlaps, and yet
    rises = [sorted(cell[-2:] for cell in cells) for cells in (right, torn)]
    steps = [{(b[0] - a[0], b[1] - a[1]) for a, b in zip(cells, cells[1:])} for cells in rises]
    assert steps[0] == {(SECOND, 2)}
    assert (2 * SECOND, 2) in steps[1]  # where the line crosses 0.3 s a column is left out


PERF = """\
swapper     0 [000]  {0}:   10101010 cpu-clock:  ffffffff81052c36 native_safe_halt ([kernel.kallsyms])

"""
SAMPLE = """\
java  2345 [000]  {0}:   10101010 cpu-clock:
\tffffffff8104 foo ([kernel.kallsyms])

"""


def test_flamescopes_profile_as_perf_prints_it(tmp_path: Path) -> None:
    """Idle samples are left out; the cells are those of exact arithmetic, from the file and from a store."""
    idle, busy = (
        ("5075.500000", "5080.000001", "5090.250000", "5117.999999"),
        ("5076.100000", "5086.200000", "5096.300000", "5106.400000", "5116.500000"),
    )
    stamps = sorted([*((stamp, PERF) for stamp in idle), *((stamp, SAMPLE) for stamp in busy)])
    (tmp_path / "cpu.perf").write_text("".join(text.format(stamp) for stamp, text in stamps))
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command("load", str(tmp_path / "cpu.perf"), "--run", "r", "--store", store).returncode == 0
    for source in (str(tmp_path / "cpu.perf"), store):
        done = command("offsets", source, "--format", "csv", "--by", "process")
        assert done.returncode == 0, done.stderr
        cells = [line.split(",") for line in done.stdout.splitlines()[1:]]
        assert [(int(start) - 5076, 49 - int(lower) // (20 * MS), name, count) for start, name, lower, _, count in cells] == [
            (column, row, "java", "1") for column, row in ((0, 44), (10, 39), (20, 34), (30, 29), (40, 24))
        ]


def test_maps_of_many_processes_and_hosts_agree_with_a_brute_force(tmp_path: Path) -> None:
    dice = random.Random(8)
    rows = []
    for _ in range(6_000):
        end = ZERO + dice.randrange(30 * SECOND)
        host, process, op = f"h{dice.randrange(4)}", f"p{dice.randrange(60)}", dice.choice(["read", "write"])
        rows.append((end, dice.randrange(SECOND), host, process, op, dice.randrange(1, 4)))
    rows.sort()
    fields = {"host": 2, "process": 3, "op": 4}
    for by, isolate, exclude, rows_of in (
        ((), {"process": ("p17",)}, {}, 50),
        (("host",), {"process": ("p17", "p3*")}, {}, 49),
        (("op", "host"), {"host": ("h[01]",)}, {"process": ("p1*", "p2")}, 50),
        (("process",), {}, {"op": ("write",)}, 7),
    ):
        chosen = [
            row
            for row in rows
            if all(any(matches(row[fields[name]], glob) for glob in globs) for name, globs in isolate.items())
            and not any(matches(row[fields[name]], glob) for name, globs in exclude.items() for glob in globs)
        ]
        expected = oracle.cells([("/".join(row[fields[name]] for name in by), row[0], row[5]) for row in chosen], SECOND, rows_of)
        said = {
            name: "\n".join((*isolate.get(name, ()), *(f"!{glob}" for glob in exclude.get(name, ()))))
            for name in {*isolate, *exclude}
        }
        answer = mapped(tmp_path, rows, by=by, isolate=said, height=rows_of)
        assert cells_of(answer) == expected
        assert answer.samples == sum(row[5] for row in chosen)


def test_what_is_highlighted_is_counted_beside_all(tmp_path: Path) -> None:
    dice = random.Random(9)
    rows = sorted((ZERO + dice.randrange(9 * SECOND), 0, f"h{dice.randrange(2)}", f"p{dice.randrange(5)}") for _ in range(2_000))
    words = ("offsets", str(event_file(tmp_path, rows)), "--input-format", str(description(tmp_path)), "--jobs", "1")
    asked = (
        "--by",
        "host",
        "--where",
        "process!=p4",
        "--highlight",
        "process=p1",
        "--highlight",
        "process=p4",
        "--format",
        "csv",
    )
    for height in (50, 49):
        done = command(*words, *asked, "--rows", str(height))
        assert done.returncode == 0, done.stderr
        table = list(csv.DictReader(io.StringIO(done.stdout)))
        assert list(table[0]) == ["start", "host", "offset_lower", "offset_upper", "count", "highlighted"]
        edges = {low: row for row, (low, _) in enumerate(oracle.edges(SECOND, height))}
        for column, names in (("count", ("p0", "p1", "p2", "p3")), ("highlighted", ("p1",))):
            expected = oracle.cells([(row[2], row[0], 1) for row in rows if row[3] in names], SECOND, height)
            found = {
                (row["host"], ZERO + int(row["start"][17:19]) * SECOND, edges[int(row["offset_lower"])]): int(row[column])
                for row in table
                if int(row[column])
            }
            assert found == expected
    done = command(*words, "--highlight", "process=nobody")
    assert done.returncode == 3 and "no event matches --highlight process=nobody" in done.stderr
    assert re.search(r"highlighted \(.*: [1-9][0-9,]* of 2,000$", command(*words, "--highlight", "process!=p1").stdout.strip())


def matches(text: str, glob: str) -> bool:
    if "[" in glob:
        return text in {glob.split("[", maxsplit=1)[0] + letter for letter in glob.split("[")[1].rstrip("]")}
    return text.startswith(glob.rstrip("*")) if glob.endswith("*") else text == glob


def test_late_events_are_marked_and_lie_at_their_own_time(tmp_path: Path) -> None:
    steady = [(ZERO + tick * 50 * MS,) for tick in range(400)]
    held_back = [row for row in steady if 7 * SECOND <= row[0] - ZERO < 8 * SECOND]
    rest = [row for row in steady if row not in held_back]
    place = next(number for number, row in enumerate(rest) if row[0] >= ZERO + 12 * SECOND)
    answer = mapped(tmp_path, [*rest[:place], *held_back, *rest[place:]])
    assert cells_of(answer) == cells_of(mapped(tmp_path, steady))
    assert (answer.late_ns.tolist(), answer.late.tolist()) == ([ZERO + 7 * SECOND], [20])
    assert answer.warnings == ("20 events were reported more than a second late, in 1 period: marked, placed by their own time",)
    assert not mapped(tmp_path, steady).late_ns.size


def test_missing_collection_is_told_from_zero(tmp_path: Path) -> None:
    rows = [(ZERO + second * SECOND, 0, "h", "a" if second % 2 else "b") for second in (0, 1, 2, 3, 7, 8, 20)]
    answer = mapped(tmp_path, rows, isolate={"process": "b"})
    gaps = ((answer.missing_ns - ZERO) // SECOND).T.tolist()
    assert gaps == [[4, 7], [9, 20]]
    assert answer.warnings == ("14 whole periods of 1s without any event of these runs: marked as missing, not as zero",)
    assert (answer.first_ns, answer.end_ns) == (ZERO, ZERO + 21 * SECOND)


def test_a_clock_that_jumps_over_years_costs_nothing(tmp_path: Path) -> None:
    answer = mapped(tmp_path, [(400 * 86_400 * SECOND,), (ZERO,)])
    assert answer.samples == 2 and answer.missing_ns.shape == (2, 1)


@pytest.mark.parametrize(("period", "rows"), [(100 * MS, 50), (60 * SECOND, 60), (3600 * SECOND, 50), (86_400 * SECOND, 24)])
def test_other_periods(tmp_path: Path, period: int, rows: int) -> None:
    dice = random.Random(period)
    times = sorted(ZERO + dice.randrange(2 * 86_400 * SECOND) for _ in range(500))
    answer = mapped(tmp_path, [(time,) for time in times], period=period, height=rows)
    assert cells_of(answer) == oracle.cells([("", time, 1) for time in times], period, rows)


def test_host_offsets_align_hosts(tmp_path: Path) -> None:
    rows = [(ZERO + second * SECOND + skew * MS, 0, host) for second in range(5) for host, skew in (("a", 100), ("b", 350))]
    options = reading(tmp_path, host_offset_ns={"b": -250 * MS}, host="b")
    path = event_file(tmp_path / "b", [row for row in rows if row[2] == "b"])
    other = event_file(tmp_path / "a", [row for row in rows if row[2] == "a"])
    one = from_files(Files([path], options), WantedOffsets())
    two = from_files(Files([other], reading(tmp_path)), WantedOffsets())
    assert cells_of(one) == cells_of(two) == {("", ZERO + second * SECOND, 5): 1 for second in range(5)}


def test_a_stretch_of_time(tmp_path: Path) -> None:
    times = [ZERO + tick * 7 * MS for tick in range(2_000)]
    begin, end = ZERO + 3_100 * MS, ZERO + 5_050 * MS
    answer = mapped(
        tmp_path, [(time,) for time in times], begin=parse_instant(str(begin // MS)), end=parse_instant(str(end // MS))
    )
    assert cells_of(answer) == oracle.cells([("", time, 1) for time in times if begin <= time < end], SECOND, 50)


def test_of_fios_logs_of_one_job_each_io_counts_once() -> None:
    answer = from_files(Files([RAW / "both"], ReadOptions(run="r", prefer="raw")), WantedOffsets(Question(by=("op",))))
    ops = Counter()
    for (op, _, _), count in cells_of(answer).items():
        ops[op] += count
    assert ops == {"read": 12_000, "write": 5_600}
    assert answer.warnings == (
        "2 logs hold the same I/Os as another log of their job and are left out: each counts once (kind total)",
    )


def test_histograms_beside_events_are_said_to_be_missing(tmp_path: Path) -> None:
    for name in ("a_clat.1.log.xz", "a.json"):
        (tmp_path / name).write_bytes((RAW / "both" / name).read_bytes())
    other = tmp_path / "b_clat_hist.1.log.xz"
    other.write_bytes((RAW / "both" / "a_clat_hist.1.log.xz").read_bytes())
    answer = from_files(Files([tmp_path], ReadOptions(run="r", prefer="raw"), jobs=1), WantedOffsets())
    assert answer.samples == 17_600
    assert answer.warnings[0] == "1 of 2 logs hold histograms, not single events: they are not in the map"


def test_flamescopes_example_read_from_text(tmp_path: Path) -> None:
    """Stamps with decimals are read as integers: 5086.2 s lies in row 10, not in row 9."""
    stamps = ("5076.100000", "5086.200000", "5096.300000", "5106.400000", "5116.500000")
    path, told = tmp_path / "samples.csv", tmp_path / "samples.yml"
    path.write_text("at,took,comm\n" + "".join(f"{stamp},0,java\n" for stamp in stamps))
    told.write_text("time: at\nlatency: took\nunit: s\nlabels: {process: comm}\n")
    done = command("offsets", str(path), "--input-format", str(told), "--format", "csv", "--by", "process")
    assert done.returncode == 0, done.stderr
    rows = [
        (f"{5076 + 10 * at}", "java", f"{low * MS}", f"{(low + 20) * MS}", "1")
        for at, low in enumerate((100, 200, 300, 400, 500))
    ]
    lines = [line.split(",") for line in done.stdout.splitlines()[1:]]
    assert [int(float(line[0])) - int(float(lines[0][0])) for line in lines] == [0, 10, 20, 30, 40]
    assert [tuple(line[1:]) for line in lines] == [row[1:] for row in rows]


def test_two_logs_of_the_same_kind_are_both_counted(tmp_path: Path) -> None:
    """Only another kind of the same I/Os is left out, never another file."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        text = "".join(f"{at}, 1000, 0, 4096\n" for at in range(1, 50))
        (tmp_path / name / f"{name}_clat.1.log").write_text(text)
    options = ReadOptions(run="r", fio_version=(3, 33), host="h", t0=ZERO)
    files = Files([tmp_path / "one", tmp_path / "two"], options, jobs=1)
    assert len(files.found.sources) == 2
    assert from_files(files, WantedOffsets()).samples == 98


def test_ycsb_tells_an_operation_twice_and_it_counts_once(tmp_path: Path) -> None:
    text = "UPDATE latency raw data: op, timestamp(ms), latency(us)\n" + "UPDATE,1789999200123,845\n" * 3
    text += "Intended-UPDATE latency raw data: op, timestamp(ms), latency(us)\n" + "Intended-UPDATE,1789999200123,1845\n" * 3
    (tmp_path / "ycsb.raw").write_text(text)
    answer = from_files(Files([tmp_path], ReadOptions(run="r", input_format="ycsb-raw")), WantedOffsets(Question(by=("op",))))
    assert cells_of(answer) == {("update", 1_789_999_200 * SECOND, 6): 3}


def test_histograms_and_empty_selections_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="none of these files holds single events"):
        from_files(Files([Path(__file__).parents[2] / "examples" / "cbt-archive"]), WantedOffsets())
    with pytest.raises(InputError, match=r"no event matches --where process=nobody --where host!=x"):
        mapped(tmp_path, [(ZERO,)], isolate={"process": "nobody", "host": "!x"})
    with pytest.raises(UsageError, match="no label 'proces' here"):
        mapped(tmp_path, [(ZERO,)], isolate={"proces": "p"})


def test_the_command_writes_the_columns_of_the_contract(tmp_path: Path) -> None:
    rows = [(ZERO + tick * 30 * MS, 0, "h", f"p{tick % 3}") for tick in range(200)]
    words = ("offsets", str(event_file(tmp_path, rows)), "--input-format", str(description(tmp_path)), "--by", "process")
    words = (*words, "--where", "process!=p1", "--where", "host=h", "--format", "csv", "--rows", "25", "--jobs", "1")
    done = command(*words)
    assert done.returncode == 0, done.stderr
    table = list(csv.reader(io.StringIO(done.stdout)))
    assert table[0] == ["start", "process", "offset_lower", "offset_upper", "count"]
    expected = oracle.cells([(row[3], row[0], 1) for row in rows if row[3] != "p1"], SECOND, 25)
    assert sum(int(row[4]) for row in table[1:]) == sum(expected.values()) == 133
    assert table[1] == ["2026-09-21T14:00:00.000Z", "p0", "0", "40000000", "1"]
    assert [row[:2] for row in table[1:]] == sorted(row[:2] for row in table[1:])


def test_the_command_says_what_it_cannot_do(tmp_path: Path) -> None:
    path, told = str(event_file(tmp_path, [(ZERO,)])), str(description(tmp_path))
    for words, reason in (
        (("--where", "process"), "--where takes LABEL=VALUE"),
        (("--where", "!=x"), "--where takes LABEL=VALUE"),
        (("--period", "often"), "is not a duration"),
        (("--period", "1us"), "a period of 1us is not possible"),
        (("--attribution", "in-flight"), "offsets need single events"),
    ):
        done = command("offsets", path, "--input-format", told, *words)
        assert done.returncode == 2 and reason in done.stderr and "Traceback" not in done.stderr and not done.stdout


def test_a_damaged_file_is_named_and_not_a_traceback(tmp_path: Path) -> None:
    path, told = event_file(tmp_path, [(ZERO,), ("x",), (ZERO + MS, -5), (10**18 + 3,)]), description(tmp_path)
    done = command("offsets", str(path), "--input-format", str(told), "--format", "csv")
    assert done.returncode == 0 and "2 rows rejected" not in done.stdout
    assert " rejected: " in done.stderr and "it ended before it began" in done.stderr and "Traceback" not in done.stderr
    path.write_bytes(b"\0\1\2")
    done = command("offsets", str(path), "--input-format", str(told))
    assert done.returncode == 3 and "Traceback" not in done.stderr and len(done.stderr.splitlines()) <= 2
