"""N15: what columns say: the exact latency before coarse ends, as many columns as most lines have, digits that are digits."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from tests.oracles import hdr

START_MS = 1_795_330_000_000
MS = 10**6


def whole(path: Path, description: str = "", **options: object) -> Answer:
    """Return the answer about all of a file that a description (as YAML) is of."""
    if description:
        (path.parent / "d.yml").write_text(description)
        options["description"] = description_of(str(path.parent / "d.yml"))
    return Files([path], ReadOptions(run="r", **options), jobs=1).answer(Question(step="all"))  # type: ignore[arg-type]


def extremes(answer: Answer) -> tuple[int, int, int]:
    """Return count, minimum and maximum in ns."""
    columns = percentiles(answer, Wanted(())).columns
    return tuple(int(columns[name][0]) for name in ("count", "min", "max"))  # type: ignore[return-value]


# ---- latency before ends ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("fine", ["latency_us", "latency_ms", "latency_ns"])
def test_n15_an_exact_latency_counts_before_ends_in_whole_ms(fine: str, quick: bool, tmp_path: Path) -> None:
    unit = {"latency_us": 1, "latency_ms": 0.001, "latency_ns": 1000}[fine]
    lines = [f"{START_MS + 10 * n},{START_MS + 10 * n + 1},{(100 + n) * unit:g},x\n" for n in range(200)]
    head = f"start_ms,end_ms,{fine},op\n"
    (tmp_path / "o.csv").write_text(head + "".join(lines) + ("" if quick else '1,"2",3,x\n'))
    files = Files([tmp_path / "o.csv"], ReadOptions(run="r"), jobs=1)
    assert extremes(files.answer(Question(step="all"))) == (200, 100_000, 299_000)
    assert not any("not their latency" in note for note in files.account.notes)


def test_n15_fine_ends_count_before_a_coarse_latency(tmp_path: Path) -> None:
    lines = [f"{START_MS * 1000 + n},{START_MS * 1000 + n + 100 + n},0\n" for n in range(200)]
    (tmp_path / "o.csv").write_text("start_us,end_us,latency_ms\n" + "".join(lines))
    assert extremes(whole(tmp_path / "o.csv")) == (200, 100_000, 299_000)


def test_n15_a_fine_end_is_kept_where_the_start_is_coarse(tmp_path: Path) -> None:
    lines = [f"{START_MS + n},{(START_MS + n) * 1000 + 2700},2500\n" for n in range(20)]
    (tmp_path / "o.csv").write_text("start_ms,end_us,latency_us\n" + "".join(lines))
    assert extremes(whole(tmp_path / "o.csv")) == (20, 2_500_000, 2_500_000)


@pytest.mark.parametrize("quick", [True, False])
def test_n15_a_latency_that_is_not_between_start_and_end_is_said(quick: bool, tmp_path: Path) -> None:
    lines = [f"{START_MS + 10 * n},{START_MS + 10 * n + (9 if n < 3 else 1)},500\n" for n in range(20)]
    (tmp_path / "o.csv").write_text("start_ms,end_ms,latency_us\n" + "".join(lines) + ("" if quick else '"x",2,3\n'))
    files = Files([tmp_path / "o.csv"], ReadOptions(run="r"), jobs=1)
    files.answer(Question(step="all"))
    [note] = [note for note in files.account.notes if "not their latency" in note]
    assert "3 operations" in note


# ---- columns by most lines -------------------------------------------------------------------------------------------

BY_NUMBER = "start: 1\nend: 2\nunit: ms\ndelimiter: {}\nheader: false\n"


@pytest.mark.parametrize("delimiter", ['"\\t"', '","', "whitespace"])
@pytest.mark.parametrize("odd", ["RUN x y z", "RUN x", "started", "1 2 3"])
@pytest.mark.parametrize("place", [0, 25, 50])
def test_n15_one_line_of_other_columns_is_one_line_rejected(odd: str, place: int, delimiter: str, tmp_path: Path) -> None:
    mark = {'"\\t"': "\t", '","': ","}.get(delimiter, "  ")
    lines = [mark.join((str(START_MS + 10 * n), str(START_MS + 10 * n + 5))) + "\n" for n in range(50)]
    lines.insert(place, mark.join(odd.split()) + "\n")
    (tmp_path / "x.tsv").write_text("".join(lines))
    answer = whole(tmp_path / "x.tsv", BY_NUMBER.format(delimiter))
    count, low, high = extremes(answer)
    assert (count, low, high) == (50, 5 * MS, 5 * MS)
    before_the_table = place == 0 and delimiter == "whitespace" and not odd[0].isdigit()  # text may stand there
    assert [lack.entry.count for lack in answer.missing] == ([] if before_the_table else [1])


def test_n15_columns_that_are_asked_for_are_those_of_longer_lines(tmp_path: Path) -> None:
    """Of a log that most lines are remarks in, which are shorter."""
    lines = [f"note {n}\n" for n in range(60)] + [f"{START_MS + n},{START_MS + n + 5},get\n" for n in range(50)]
    (tmp_path / "x.csv").write_text("".join(lines))
    answer = whole(tmp_path / "x.csv", 'start: 1\nend: 2\nunit: ms\nlabels: {op: "3"}\nheader: false\n')
    assert extremes(answer)[0] == 50


@pytest.mark.parametrize("place", [0, 3])
def test_n15_bins_in_a_table_without_a_head_have_the_columns_of_most_lines(place: int, tmp_path: Path) -> None:
    lines = [f"{START_MS // 1000 + second},{low},{2 * low},{low}\n" for second in range(4) for low in (32, 64)]
    lines.insert(place, "begun,at,last,a,b\n")
    (tmp_path / "x.csv").write_text("".join(lines))
    description = 'histogram: csv\nlower: "2"\nupper: "3"\ncount: "4"\nunit: us\nedge: "[)"\nheader: false\nevery: 1s\n'
    answer = whole(tmp_path / "x.csv", description + 'time: {at: "1", unit: s}\n')
    assert extremes(answer)[0] == 4 * 96 and answer.missing


def test_n15_a_line_of_eight_columns_makes_no_lag_of_a_pgbench_log(tmp_path: Path) -> None:
    lines = [f"0 {n} 1000 0 {START_MS // 1000 + n} 0\n" for n in range(50)]
    lines.insert(20, f"0 20 1000 0 {START_MS // 1000 + 20} 0 900 0\n")
    (tmp_path / "pgbench_log.1").write_text("".join(lines))
    assert extremes(whole(tmp_path / "pgbench_log.1")) == (51, MS, MS)


# ---- digits ----------------------------------------------------------------------------------------------------------

ODD = ("1_0", "١٢", "1_000", "１２", "+-3", "0x10")


@pytest.mark.parametrize("odd", ODD)
def test_n15_what_is_no_digit_is_no_number_of_an_operation(odd: str, tmp_path: Path) -> None:
    (tmp_path / "o.csv").write_text(f"start_ms,latency_us\n{START_MS},{odd}\n{START_MS + 2},5\n", "utf-8")
    assert extremes(whole(tmp_path / "o.csv")) == (1, 5000, 5000)
    (tmp_path / "x.ndjson").write_text(
        "".join(json.dumps({"t": START_MS + n, "l": value}) + "\n" for n, value in enumerate((odd, "5"))), "utf-8"
    )
    assert extremes(whole(tmp_path / "x.ndjson", "time: t\nlatency: l\nunit: {time: ms, latency: us}\n")) == (1, 5000, 5000)
    events = [{"name": "a", "ph": "X", "pid": 1, "tid": 1, "ts": START_MS * 1000 + n, "dur": d} for n, d in enumerate((odd, "5"))]
    (tmp_path / "t.json").write_text(json.dumps(events), "utf-8")
    assert extremes(whole(tmp_path / "t.json")) == (1, 5000, 5000)


@pytest.mark.parametrize("odd", ODD)
def test_n15_what_is_no_digit_is_no_count(odd: str, tmp_path: Path) -> None:
    at = START_MS // 1000
    (tmp_path / "u.csv").write_text(f"at,lo,hi,n\n{at},32,64,5\n{at},64,128,{odd}\n{at + 1},32,64,7\n", "utf-8")
    description = 'histogram: csv\nlower: lo\nupper: hi\ncount: n\nunit: us\nedge: "[)"\nevery: 1s\ntime: {at: at, unit: s}\n'
    assert extremes(whole(tmp_path / "u.csv", description))[0] == 12
    point = {"timeUnixNano": str(at * 10**9), "startTimeUnixNano": str((at - 1) * 10**9), "explicitBounds": [1]}
    points = [{**point, "count": "7", "bucketCounts": ["3", "4"]}, {**point, "count": odd, "bucketCounts": [odd, "0"]}]
    points[1]["timeUnixNano"], points[1]["startTimeUnixNano"] = str((at + 1) * 10**9), str(at * 10**9)
    metric = {"name": "m", "unit": "ms", "histogram": {"aggregationTemporality": 1, "dataPoints": points}}
    document = {"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}
    (tmp_path / "a.jsonl").write_text(json.dumps(document, ensure_ascii=False) + "\n", "utf-8")
    assert extremes(whole(tmp_path / "a.jsonl"))[0] == 7


@pytest.mark.parametrize("odd", ["1_0.5", "1_0", "1e1_0"])
def test_n15_a_stamp_with_an_underscore_is_no_stamp(odd: str, tmp_path: Path) -> None:
    lines = [hdr.line(f"{second}.000", "1.000", {100: 5}) for second in range(3)]
    lines.insert(1, hdr.line(odd, "1.000", {100: 5}))
    (tmp_path / "x.hlog").write_text(f"#[StartTime: {START_MS // 1000}.000 (seconds since epoch), x]\n" + "".join(lines))
    answer = whole(tmp_path / "x.hlog", recorded_unit_ns=1)
    assert extremes(answer)[0] == 15 and answer.missing


def test_n15_numbers_of_every_form_are_read_as_they_were(tmp_path: Path) -> None:
    """Held against Python's own reading of the same decimal texts, which have plain digits."""
    chance = random.Random(7)
    values = [
        chance.choice(["{}", "{}.0", "{}.25", "{}e3", " {}", "{}.5E2"]).format(chance.randrange(1, 900)) for _ in range(300)
    ]
    lines = [json.dumps({"t": START_MS + n, "l": value}) + "\n" for n, value in enumerate(values)]
    (tmp_path / "x.ndjson").write_text("".join(lines))
    count, low, high = extremes(whole(tmp_path / "x.ndjson", "time: t\nlatency: l\nunit: {time: ms, latency: us}\n"))
    expected = [float(value) * 1000 for value in values]
    assert (count, low, high) == (300, min(expected), max(expected))


# ---- seconds ---------------------------------------------------------------------------------------------------------


def test_n15_the_unit_that_a_message_advises_is_taken(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    point = {"startTimeUnixNano": f"{START_MS}000000", "timeUnixNano": f"{START_MS + 1000}000000", "count": "7"}
    point |= {"explicitBounds": [0.001, 0.01], "bucketCounts": ["0", "7", "0"]}
    metric = {"name": "m", "unit": "", "histogram": {"aggregationTemporality": 1, "dataPoints": [point]}}
    (tmp_path / "a.jsonl").write_text(json.dumps({"resourceMetrics": [{"scopeMetrics": [{"metrics": [metric]}]}]}) + "\n")
    asked = ["percentiles", str(tmp_path / "a.jsonl"), "--step", "all", "-p", "50", "--format", "ndjson"]
    assert tailboard(asked) == 3
    assert "--recorded-unit s," in capsys.readouterr().err
    assert tailboard([*asked, "--recorded-unit", "s"]) == 0
    assert json.loads(capsys.readouterr().out)["p50"] == 10 * MS
