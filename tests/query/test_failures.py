"""Failed operations: counted beside the others and slower than any, the same from files and every store; told apart on request."""

from __future__ import annotations

import csv
import random
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from fractions import Fraction
from io import StringIO
from pathlib import Path

import numpy as np
import pytest
from rich.console import Console

from ingest.core.intervals import Intervals, one_row
from ingest.core.labels import Group
from ingest.core.layout import Edges, common_layout
from ingest.core.objective import parse_promise, promise_from
from ingest.core.quantiles import Ranked, extremes, means_between, parse_percentiles
from ingest.core.units import iso_ns, utc
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.objectives.check import check as judge
from ingest.objectives.objectives import objective_of
from ingest.query.batch_means import difference_between, share_above_of
from ingest.query.compare import Pair, compare
from ingest.query.files import Files
from ingest.query.heatmap import cells, distribution, heatmap
from ingest.query.origin import Origin
from ingest.query.percentiles import Wanted, table_of
from ingest.query.question import Question
from ingest.query.story.story import story
from ingest.query.trend import Night, bounds_of, trend
from ingest.query.windows import by_layout
from ingest.read.described.description import description_of
from ingest.read.operations import events_layout
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.terminal.comparison import opening
from ingest.view.terminal.heatmap import print_heatmap
from ingest.view.text import csv_lines
from tests.commands import tailboard
from tests.databases import database
from tests.effort import figure
from tests.oracles import failures, ranks
from tests.oracles.failures import Operation
from tests.store.grounds import grounds

EPOCH_MS = 1_790_000_000_000
MS, SECOND = failures.MS, 1_000_000_000
DATA = Path(__file__).parents[1] / "data"
PERCENTS = ("1", "50", "90", "99", "100")
QUESTIONS = [
    Question(step="all"),
    Question(step="1s"),
    Question(step="5s", by=("host",)),
    Question(step="5s", by=("op", "host")),
    Question(step="all", by=("outcome",)),
    Question(step="5s", by=("host", "outcome")),
    Question(step="1s", where={"outcome": "ok"}),
    Question(step="5s", where={"outcome": "failed"}, by=("op",)),
    Question(step="all", where={"op": "get"}, by=("host",)),
    Question(step="5s", where={"kind": "service"}),
]


def random_operations(rolled: random.Random) -> list[Operation]:
    """Operations of some hosts over 20 s: none, few, many or all of them fail, some quickly, some after a time-out."""
    made = []
    for number in range(rolled.randint(1, 3)):
        share, since = rolled.choice((0, 0.002, 0.05, 0.6, 1)), rolled.randint(0, 15)
        for _ in range(rolled.choice((3, 40, 400))):
            at = rolled.randint(1, 20_000)
            failed = at > 1000 * since and rolled.random() < share
            took = int(rolled.lognormvariate(1, 1) * MS) if not failed else rolled.choice((rolled.randint(0, 50), 5000)) * MS
            made.append(Operation(f"h{number}", rolled.choice(("get", "put")), (EPOCH_MS + at) * MS, took, failed))
    return made


def selected(operations: list[Operation], question: Question) -> list[Operation]:
    outcome = question.where.get("outcome", "*")
    return [
        one
        for one in operations
        if question.where.get("op", one.op) == one.op and outcome in ("*", "failed" if one.failed else "ok")
    ]


def told(origin: Origin, question: Question) -> list[dict[str, str]]:
    table, _ = table_of(origin, question, Wanted(PERCENTS))
    return list(csv.DictReader(csv_lines(table)))


def check(origin: Origin, operations: list[Operation], question: Question) -> list[dict[str, str]]:
    """Hold an answer against loops over the operations; return its rows."""
    chosen = selected(operations, question)
    if not chosen:
        return []
    by = (*question.by, *({"outcome"} & set(question.where)))
    step = 0 if question.step == "all" else int(question.step)
    wanted = failures.rows(chosen, PERCENTS, step, by)
    found = told(origin, question)
    assert len(found) == len(wanted)
    for row in found:
        at = iso_ns(row["start"]) if step else 0
        key = (at, *(row.get(name, question.where.get(name)) for name in by))
        assert {name: row[name] for name in wanted[key]} == wanted[key], (question, key)
    return found


def logs(tmp_path: Path, operations: list[Operation]) -> tuple[Path, ReadOptions]:
    described = failures.write(tmp_path / "logs", operations, failed=("false", "FALSE"))
    return tmp_path / "logs", ReadOptions(description=description_of(str(described)))


@pytest.mark.cases(6)
@pytest.mark.parametrize("seed", range(40))
def test_failed_operations_are_slower_than_any(seed: int, tmp_path: Path) -> None:
    operations = random_operations(random.Random(seed))
    folder, options = logs(tmp_path, operations)
    files = Files([folder], options, 1)
    for question in QUESTIONS:
        check(files, operations, question)


@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_stores_rank_failed_operations_as_files_do(kind: str, tmp_path: Path) -> None:
    for seed in range(figure(2, 20)):
        here = tmp_path / str(seed)
        here.mkdir()
        operations = random_operations(random.Random(1000 + seed))
        folder, options = logs(here, operations)
        files = Files([folder], options, 1)
        with grounds(kind, here) as ground:
            with open_store(ground.url, write=True) as store:
                load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
            with open_store(ground.url) as store:
                for question in QUESTIONS:
                    assert check(store, operations, question) == check(files, operations, question)


@pytest.mark.slow
@pytest.mark.parametrize("version", [1, 2, 3, 4, 5, 7])
def test_a_store_of_an_older_version_is_read_and_takes_failed_operations(version: int, tmp_path: Path) -> None:
    """It holds a run in which nothing failed, as it was written then; one with failures is loaded beside it."""
    (tmp_path / "sound").mkdir()
    sound = [replace(one, failed=False) for one in random_operations(random.Random(3))]
    folder, options = logs(tmp_path / "sound", sound)
    older, new = tmp_path / "older.db", tmp_path / "new.db"
    with open_store(f"sqlite:{new}", write=True) as store:
        load([folder], store, LoadOptions(ReadOptions(run="sound", description=options.description), jobs=1))
    with database(older) as db:
        db.executescript((DATA / "store" / f"version-{version}.sql").read_text())
        db.execute("ATTACH ? AS new", (str(new),))
        for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
            columns = ",".join(name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
    with open_store(f"sqlite:{older}") as store:
        for question in QUESTIONS:
            if "outcome" not in question.where:
                assert all(row["failed"] == "0" for row in check(store, sound, question.about(["sound"])))
    operations = random_operations(random.Random(5))
    assert any(one.failed for one in operations)
    folder, options = logs(tmp_path, operations)
    with open_store(f"sqlite:{older}", write=True) as store:
        load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
    with open_store(f"sqlite:{older}") as store:
        for question in QUESTIONS:
            check(store, operations, question.about(["run"]))


def windows_that_fail(operations: list[Operation], share: Fraction) -> list[tuple[int, int, int]]:
    """Windows of 1 s in which more than a share of operations failed, neighbours together: start, end, operations in them."""
    windows: dict[int, list[bool]] = {}
    for one in operations:
        windows.setdefault(-(-one.end_ns // SECOND) - 1, []).append(one.failed)
    bad = [at for at in sorted(windows) if sum(windows[at]) > share * len(windows[at])]
    episodes: list[tuple[int, int, int]] = []
    for at in bad:
        begin, end, count = episodes.pop() if episodes and episodes[-1][1] == at * SECOND else (at * SECOND, 0, 0)
        episodes.append((begin, (at + 1) * SECOND, count + len(windows[at])))
    return episodes


@pytest.mark.parametrize("kind", ["files", pytest.param("sqlite", marks=pytest.mark.slow)])
def test_a_share_of_failures_is_an_objective(kind: str, tmp_path: Path) -> None:
    for seed in range(figure(6, 60)):
        rolled, here = random.Random(2000 + seed), tmp_path / str(seed)
        here.mkdir()
        operations = random_operations(rolled)
        most = rolled.choice(("0", "0.1", "5", "60"))
        folder, options = logs(here, operations)
        objective = replace(objective_of(f"failures < {most} %", SECOND), hold_ns=0, no_data="ok")
        with ExitStack() as stack:
            origin: Origin = Files([folder], options, 1)
            if kind == "sqlite":
                ground = stack.enter_context(grounds(kind, here))
                with open_store(ground.url, write=True) as store:
                    load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
                origin = stack.enter_context(open_store(ground.url))
            [run] = origin.runs()
            [verdict] = judge(origin.answer, {run.run: {}}, [objective], Question()).verdicts
        expected = windows_that_fail(operations, Fraction(most) / 100)
        assert [(each.start_ns, each.end_ns, each.samples) for each in verdict.episodes] == expected
        assert all(each.worst == "failed" for each in verdict.episodes)
        assert (verdict.over, verdict.requests) == (sum(one.failed for one in operations), len(operations))


@pytest.mark.parametrize("text", ["failures<0.1%", "failures <= 0.1 %", "< 0.1%"])
def test_a_share_of_failures_is_one_promise_however_it_is_written(text: str) -> None:
    promise = parse_promise(text)
    assert str(promise) == "at most 0.1 % failed" and promise_from(**promise.to_dict()) == promise


def test_a_percentile_among_failures_misses_any_latency(tmp_path: Path) -> None:
    operations = [Operation("h", "get", (EPOCH_MS + 10 * at) * MS, MS, failed=at >= 90) for at in range(1, 101)]
    folder, options = logs(tmp_path, operations)
    files = Files([folder], options, 1)
    [run] = files.runs()
    objectives = [objective_of("p99<1h", SECOND), objective_of("p50<1h", SECOND)]
    worst, median = judge(files.answer, {run.run: {}}, objectives, Question()).verdicts
    assert [each.worst for each in worst.episodes] == ["failed"] and not median.episodes
    assert judge(files.answer, {run.run: {}}, objectives[:1], Question(where={"outcome": "ok"})).met


def rates(shares: dict[str, float], *, seconds: int = 60, lasting: range = range(10**6)) -> list[Operation]:
    """Operations of hosts, 100 a second each; that share of a host's fails in some seconds."""
    rolled = random.Random(7)
    made = []
    for host, share in shares.items():
        for at in range(100 * seconds):
            failed = at // 100 in lasting and rolled.random() < share
            made.append(Operation(host, "get", (EPOCH_MS + 10 * at + 1) * MS, int(rolled.lognormvariate(1, 0.4) * MS), failed))
    return made


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["files", "sqlite"])
def test_the_story_says_who_failed_and_when(kind: str, tmp_path: Path) -> None:
    operations = rates({"h1": 0, "h2": 0, "h3": 0.08}, lasting=range(20, 30))
    folder, options = logs(tmp_path, operations)
    with grounds(kind, tmp_path) if kind != "files" else ExitStack() as ground:
        if kind == "files":
            told = story(Files([folder], options, 1), Question())
        else:
            with open_store(ground.url, write=True) as store:
                load([folder], store, LoadOptions(ReadOptions(run="run", description=options.description), jobs=1))
            with open_store(ground.url) as store:
                told = story(store, Question())
    [finding] = [found for found in told.findings if found.kind == "failures"]
    count = sum(one.failed for one in operations)
    assert finding.who == (("host", "h3"),) and f"({count} of " in finding.text
    assert finding.text.startswith(f"{100 * count / 1000:.2g} % of operations on h3 failed from 14:13:40.0 to 14:13:50.0")


@pytest.mark.slow
def test_a_host_that_fails_while_another_one_fails_more_is_told_too(tmp_path: Path) -> None:
    operations = rates({"h1": 0, "h2": 0.5, "h3": 0}, lasting=range(20, 50)) + rates({"h4": 0.2}, lasting=range(30, 40))
    folder, options = logs(tmp_path, operations)
    told = [found for found in story(Files([folder], options, 1), Question()).findings if found.kind == "failures"]
    assert {found.who: found.end_ns - found.start_ns for found in told} == {
        (("host", "h2"),): 30 * SECOND,
        (("host", "h4"),): 10 * SECOND,
    }


@pytest.mark.slow
def test_hosts_that_fail_at_the_same_time_are_named_in_one_sentence(tmp_path: Path) -> None:
    shares = {"h1": 0.0, "h2": 0.08, "h3": 0.0, "h4": 0.08, "h5": 0.0}
    folder, options = logs(tmp_path, rates(shares, lasting=range(20, 30)))
    [text] = [found.text for found in story(Files([folder], options, 1), Question()).findings if found.kind == "failures"]
    assert " % of operations on h2, h4 failed from 14:13:40.0 to 14:13:50.0 (" in text


@pytest.mark.slow
def test_a_run_in_which_nothing_failed_has_no_such_sentence_and_one_that_fails_throughout_has_one(tmp_path: Path) -> None:
    for number, (share, findings) in enumerate(((0, 0), (0.03, 1))):
        here = tmp_path / str(number)
        here.mkdir()
        folder, options = logs(here, rates({"h1": share, "h2": share}))
        told = [found.text for found in story(Files([folder], options, 1), Question()).findings if found.kind == "failures"]
        assert len(told) == findings and all("of operations failed throughout" in text for text in told)


@pytest.mark.slow
def test_a_run_that_fails_more_is_slower_in_comparisons_and_trends(tmp_path: Path) -> None:
    sides = []
    for number, share in enumerate((0.001, 0.03)):
        here = tmp_path / str(number)
        here.mkdir()
        folder, options = logs(here, rates({"h1": share}))
        files = Files([folder], options, 1)
        sides.append((files.answer(Question(step="all")), files.answer(Question(step="1s"))))
    (first, before), (second, after) = sides
    wanted = parse_percentiles("50,99")
    for pair, verdict in (
        (Pair(first, second, (), ((before,), (after,))), "slower"),
        (Pair(second, first, (), ((after,), (before,))), "faster"),
    ):
        table = compare(pair, wanted).columns
        [row] = np.flatnonzero(table["percentile"] == 99)
        assert table["verdict"][row] == verdict and np.isnan(table["ratio"][row])
        assert table["failed_verdict"][row] == {"slower": "more", "faster": "fewer"}[verdict]
        shares = [sum(part.failures.sum() for part in each.parts) / each.samples for each in (pair.baseline, pair.run)]
        assert [table["failed_baseline"][row], table["failed_run"][row]] == shares
        assert table["failed_lo"][row] < shares[1] - shares[0] < table["failed_hi"][row]
        word = {"slower": "More failures: ", "faster": "Fewer failures: "}[verdict]
        assert [text for text in opening(pair, compare(pair, wanted)) if text.startswith(word)]
    nights = [
        Night(name, number, whole, bounds_of([windows], whole.by, wanted))
        for number, (name, (whole, windows)) in enumerate(zip("ab", sides, strict=True))
    ]
    table = trend(nights, wanted).columns
    assert [value for value, measure in zip(table["value"], table["measure"], strict=True) if measure == "p99"][1] == np.inf
    shares = [value for value, measure in zip(table["value"], table["measure"], strict=True) if measure == "failed"]
    assert shares == [sum(part.failures.sum() for part in whole.parts) / whole.samples for whole, _ in sides]


@pytest.mark.slow
@pytest.mark.parametrize(("share", "windows"), [(0.0005, 60), (0.003, 30), (0.05, 60), (0.02, 300)])
@pytest.mark.parametrize("burst", [1, 5])
def test_the_bounds_of_a_difference_of_shares_hold(share: float, windows: int, burst: int) -> None:
    noise, wrong, runs = np.random.default_rng(3), 0, 400
    for _ in range(runs):
        every = noise.poisson(500, (2, windows)).astype(np.float64)
        first, second = np.minimum(noise.poisson(every * [[share], [2 * share]] / burst) * burst, every)
        low, high = difference_between(share_above_of(first, every[0]), share_above_of(second, every[1]))
        wrong += not low <= share <= high
    print(f"{wrong} of {runs}")
    assert wrong <= 0.08 * runs


@pytest.mark.slow
def test_a_step_of_load_that_fails_too_much_is_not_kept(tmp_path: Path) -> None:
    """Loads of 100, 200 and 300 operations a second: only the last one fails more than promised."""
    folders = []
    for times, share in ((1, 0.0), (2, 0.002), (3, 0.08)):
        operations = [one for _ in range(times) for one in rates({"h1": share}, seconds=120)]
        folder = tmp_path / f"at-{times}"
        described = failures.write(folder, operations, failed=("false", "FALSE"))
        folders.append(folder)
    sweep = ("capacity", *folders, "--input-format", described, "--format", "csv")
    for sla, above in (("failures<2%", 0.08), ("p95<1s", 0.08)):  # what failed is above any latency
        [row] = csv.DictReader(StringIO(tailboard(*sweep, "--sla", sla).stdout))
        assert (row["verdict"], round(float(row["met"])), round(float(row["missed"]))) == ("bracketed", 200, 300)
        points = list(csv.DictReader(StringIO(tailboard(*sweep, "--sla", sla, "--points").stdout)))
        assert [point["verdict"] for point in points] == ["meets", "meets", "violates"]
        assert float(points[-1]["above"]) == pytest.approx(above, rel=0.1)
    assert tailboard("report", folders[0], "--input-format", described, "--sla", "failures<2%").returncode == 2


@pytest.mark.slow
def test_a_heat_map_has_a_row_of_failures_above_the_top(tmp_path: Path) -> None:
    operations = rates({"h1": 0.1}, seconds=5)
    folder, options = logs(tmp_path, operations)
    answer = Files([folder], options, 1).answer(Question(step="1s"))
    windows: dict[int, int] = {}
    for one in (one for one in operations if one.failed):
        start = -(-one.end_ns // SECOND) * SECOND - SECOND
        windows[start] = windows.get(start, 0) + 1
    for table in (heatmap(answer), cells(answer).table(dropped=False)):
        rows = zip(
            table.columns["start_ns"].tolist(), table.columns["lower"].tolist(), table.columns["count"].tolist(), strict=True
        )
        above = [(start, count) for start, lower, count in rows if lower == np.inf]
        assert dict(above) == windows
        assert table.columns["count"].sum() == len(operations)
    whole = distribution(Files([folder], options, 1).answer(Question(step="all"))).columns
    assert (whole["lower"][-1], whole["count"][-1], whole["cumulative"][-1]) == (np.inf, sum(windows.values()), len(operations))


@pytest.mark.slow
def test_a_host_that_only_fails_has_a_sentence_in_place_of_a_map(tmp_path: Path) -> None:
    folder, options = logs(tmp_path, rates({"h1": 0, "h2": 1}, seconds=5))
    out = StringIO()
    answer = Files([folder], options, 1).answer(Question(step="1s", by=("host",)))
    print_heatmap(answer, [], utc, console=Console(file=out, width=100))
    assert out.getvalue().endswith("h2\nall of its operations failed: --failures apart shows how long they took\n")


@pytest.mark.parametrize(
    ("failed", "text"),
    [
        ("{code: '!2*'}", "1,5,200,GET,\n2,5,204,GET,\n3,5,503,GET,\n"),
        ("{error: '?*'}", "1,5,200,GET,\n2,5,200,GET,\n3,5,200,GET,refused\n"),
        (
            "{code: ['4*', '5*'], error: timeout}",
            "1,5,404,GET,\n2,5,200,GET,\n3,5,200,GET,TIMEOUT\n4,5,500,GET,\n5,5,201,GET,\n6,5,201,GET,\n",
        ),
    ],
)
def test_a_description_says_which_operations_failed_and_which_lines_are_taken(failed: str, text: str, tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("at_s,took_ms,code,method,error\n" + text + "9,900000000,200,WARMUP,\n")
    told = tmp_path / "told.yml"
    told.write_text(f"time: at_s\nlatency: took_ms\nfailed: {failed}\nwhere: {{method: [GET, PUT]}}\n")
    files = Files([tmp_path / "a.csv"], ReadOptions(description=description_of(str(told))), 1)
    [row] = told_of = list(csv.DictReader(csv_lines(table_of(files, Question(step="all"), Wanted((50,)))[0])))
    lines = len(text.splitlines())
    assert (row["count"], row["failed"]) == (str(lines), str({3: 1, 6: 3}[lines])) and len(told_of) == 1
    assert sum(files.account.skipped.values()) == 1 and not files.account.rejected


def test_operations_that_all_failed_have_no_mean_whatever_else_is_missing(tmp_path: Path) -> None:
    """A log of which the last line is cut off: two warnings of NumPy stood above the table."""
    rows = "".join(f"{EPOCH_MS + at},5,a,0\n{EPOCH_MS + at},5,b,1\n" for at in range(9))
    (tmp_path / "log.csv").write_text(f"at_ms,took_ms,host,code\n{rows}{EPOCH_MS + 9},5,")
    (tmp_path / "d.yml").write_text("start: at_ms\nlatency: took_ms\nunit: ms\nlabels: {host: host}\nfailed: {code: 1}\n")
    words = [
        str(tmp_path / "log.csv"),
        "--input-format",
        str(tmp_path / "d.yml"),
        "--by",
        "host",
        "--step",
        "1s",
        "--format",
        "csv",
    ]
    done = tailboard("percentiles", *words)
    means = {row["host"]: row["mean"] for row in csv.DictReader(StringIO(done.stdout))}
    assert (means["a"] != "", means["b"]) == (True, "")
    assert "1 row rejected" in done.stderr and "Warning" not in done.stderr


@pytest.mark.slow
def test_a_tools_own_marks_are_failures(tmp_path: Path) -> None:
    raw = tmp_path / "y.raw"
    lines = ["READ latency raw data: op, timestamp(ms), latency(us)", *(f"READ,170000000{at}000,900" for at in range(3))]
    raw.write_text(
        "\n".join([*lines, "READ-FAILED latency raw data: op, timestamp(ms), latency(us)", "READ-FAILED,1700000001500,100"])
        + "\n"
    )
    [row] = list(csv.DictReader(csv_lines(table_of(Files([raw]), Question(step="all", by=("op",)), Wanted((50,)))[0])))
    assert (row["op"], row["count"], row["failed"], row["max"]) == ("read", "4", "1", "inf")


@pytest.mark.parametrize(
    ("tool", "took", "unit", "failed", "total"),
    [
        ("JMeter", "elapsed", MS, lambda row: row["success"] == "false", r"= +(?P<count>\d+) in .* Err: +(?P<failed>\d+) "),
        ("vegeta", "2", 1, lambda row: row["1"] != "200", r'"requests":(?P<count>\d+).*"503":(?P<failed>\d+)'),
        ("hey", "response-time", SECOND, lambda row: row["status-code"] != "200", ""),
        ("Locust", "took_ms", MS, lambda row: row["ok"] == "False", r"GET / (?P<count>\d+) (?P<failed>\d+)\("),
    ],
)
def test_counts_and_failures_are_those_that_the_tool_itself_printed(
    tool: str, took: str, unit: int, failed: Callable[[dict[str, str]], bool], total: str
) -> None:
    recorded = DATA / "failures" / f"{tool.lower()}.csv"
    options = ReadOptions()
    names = list(map(str, range(12))) if tool == "vegeta" else None
    with recorded.open(newline="") as lines:
        rows = [(failed(row), round(float(row[took]) * unit)) for row in csv.DictReader(lines, names)]
    by_outcome = told(Files([recorded], options, 1), Question(step="all", by=("outcome",)))
    for row in by_outcome:
        own = sorted(ns for bad, ns in rows if bad == (row["outcome"] == "failed"))
        assert (int(row["count"]), int(row["min"]), int(row["max"])) == (len(own), own[0], own[-1])
        assert abs(int(row["p50"]) / own[(len(own) - 1) // 2] - 1) < 1 / 64
    [row] = told(Files([recorded], options, 1), Question(step="all"))
    assert (int(row["count"]), int(row["failed"])) == (len(rows), sum(bad for bad, _ in rows))
    if total:
        [printed] = (DATA / "failures").glob(f"{tool.lower()}.total.*")
        said = re.search(total, printed.read_text())
        assert said and (row["count"], row["failed"]) == (said["count"], said["failed"])


@pytest.mark.slow
@pytest.mark.parametrize("step", ["all", "1s"])
def test_a_label_of_histograms_says_that_they_are_of_failures(step: str, tmp_path: Path) -> None:
    operations = rates({"h1": 0.2}, seconds=4)
    folder, options = logs(tmp_path, operations)
    exported = tmp_path / "a.hlog"
    text = tailboard("export", folder, "--input-format", folder.parent / "logs.yml", "--format", "hlog").stdout
    exported.write_text(text.replace("Tag=get-st", "Tag=OK").replace("Tag=get::service.failed", "Tag=ERROR"))
    plain, marked = (Files([exported], ReadOptions(failed=failed), 1) for failed in ({}, {"tag": "ERR*"}))
    assert not any(int(row["failed"]) for row in told(plain, Question(step=step)))
    expected = [row["failed"] for row in told(Files([folder], options, 1), Question(step=step))]
    assert [row["failed"] for row in told(marked, Question(step=step))] == expected and sum(map(int, expected)) > 50


@pytest.mark.slow
def test_fio_says_how_many_failed_and_not_when(tmp_path: Path) -> None:
    folder = shutil.copytree(DATA / "fio" / "coarse-4", tmp_path / "fio")
    text = (folder / "a.json").read_text()
    (folder / "a.json").write_text(text.replace('"error" : 0,', '"error" : 0,\n      "total_err" : 7,'))
    with grounds("sqlite", tmp_path) as ground:
        with open_store(ground.url, write=True) as store:
            load([folder], store, LoadOptions(ReadOptions(run="run"), jobs=1))
        with open_store(ground.url) as store:
            for origin in (Files([folder], ReadOptions(), 1), store):
                answer = origin.answer(Question(step="all"))
                assert [text for text in answer.warnings if "7 I/Os of j that failed" in text]
                assert not any(part.failures.any() for part in answer.parts)


@pytest.mark.cases(5)
@pytest.mark.parametrize("seed", range(40))
def test_failures_rank_above_bins_of_several_layouts(seed: int) -> None:
    rolled = random.Random(seed)
    ends = [MS * 2**place - 1 for place in range(8)]
    bins = [(Edges((0, *(end + 1 for end in ends), ends[-1] * 2), True), ranks.listed(ends)), (events_layout(), ranks.raw(64))]
    samples: list[ranks.Sample] = []
    parts: list[Intervals[Group]] = []
    for layout, sample_of in bins:
        values = [int(rolled.lognormvariate(2, 1) * MS) for _ in range(rolled.randint(1, 40))]
        samples += map(sample_of, values)
        held, counts = np.unique(layout.index(np.array(values)), return_counts=True)
        parts.append(one_row(layout, ("",), (0, SECOND), held, counts))
    failed = rolled.randint(1, 30)
    samples += [(np.inf, np.inf)] * failed
    timed = common_layout(part.layout for part in parts)
    failing = one_row(bins[1][0], ("",), (0, SECOND), np.array([5]), np.array([failed])).failing(timed)
    [rows] = by_layout([*parts, failing])
    ranked, [over] = Ranked(rows), [rows.failures.tolist()]
    assert rows.mixed.all() and over == [failed]
    for percent in ("1", "50", "75", "90", "99"):
        rank = ranks.rank_of(percent, len(samples))
        [percentile] = parse_percentiles(percent)
        low, high = (float(end[0]) for end in ranked.between(np.array([0]), percentile.ranks(ranked.samples)))
        assert (low, high) == ranks.between(samples, rank)
    timed_samples = [(low, top) for low, top in samples if low < np.inf]
    mean = extremes(rows, ranked)[2]
    least, most = (float(end[0]) for end in means_between(rows, mean))
    expected = ranks.means(timed_samples)
    assert (least, most) == pytest.approx(expected)
