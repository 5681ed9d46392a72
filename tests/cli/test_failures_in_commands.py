"""Every command over random runs in which operations fail: files, SQLite and the double print the same bytes, and their numbers are
those of loops over single operations."""

from __future__ import annotations

import base64
import csv
import io
import json
import math
import random
import re
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from ingest.core.units import iso_ns
from ingest.live.watch.cycle import WatchCycle
from ingest.live.watch.state import Watching
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.effort import figure
from tests.live.feeding import Clock
from tests.oracles import failures
from tests.oracles.failures import Operation
from tests.query.test_failures import EPOCH_MS, MS, PERCENTS, SECOND, random_operations
from tests.store.grounds import SqliteGround, grounds

LIMIT = 5 * MS
SLA = """objectives:
  - {name: failed, failures: '< %s %%', window: 1s, hold: 0s, no_data: ok}
  - {name: slow, percentile: 90, threshold: 5ms, window: 1s, hold: 0s, no_data: ok, by: [op]}
"""
MISUSED = {
    ("check", "--sla", "p99<5ms", "--failures", "apart"): "an objective says which operations it is about",
    ("offsets", "--failures", "apart"): "single events are kept without their outcome",
}


@dataclass
class Site:
    """Two random runs, a and b, as files and in both stores."""

    folder: Path
    urls: tuple[str, str]
    runs: dict[str, list[Operation]]

    def asked(self, name: str, runs: str, *words: object, status: Sequence[int] = (0,)) -> str:
        """Return what a command prints of runs, the same of files and of both stores."""
        described = ("--input-format", self.folder / "a.yml")
        told = [printed(name, *(self.folder / run for run in runs), *described, *words)]
        chosen = ("--baseline", "a", "--run", "b") if name == "compare" else ("--run", runs if len(runs) == 1 else "*")
        told += [printed(name, url, *chosen, *words) for url in self.urls]
        assert told[0] == told[1] == told[2], (name, words)
        assert told[0][0] in status, (name, words, told[0])
        return told[0][1]

    def rows(self, name: str, runs: str, *words: object, status: Sequence[int] = (0,)) -> list[dict[str, str]]:
        return list(csv.DictReader(io.StringIO(self.asked(name, runs, "--format", "csv", *words, status=status))))


def printed(*words: object) -> tuple[int, str]:
    """Return the exit status of a command and what it prints; commands that findings name are those of the source."""
    with pytest.MonkeyPatch.context() as patch:
        out = io.StringIO()
        patch.setattr("sys.stdout", out)
        status = command(list(map(str, words)))
    text = out.getvalue()
    if "--json" in words:
        text = json.dumps([[{**one, "command": ""} for one in story["findings"]] for story in json.loads(text or "[]")])
    return status, "\n".join(sorted(points_in(text))) if "otlp" in words else text


def points_in(text: str) -> Iterator[str]:
    """Yield the points of OTLP with what they are of; which of them share a line is up to the exporter."""
    for line in text.splitlines():
        for resource in json.loads(line)["resourceMetrics"]:
            for scope in resource["scopeMetrics"]:
                for metric in scope["metrics"]:
                    for point in next(data.pop("dataPoints") for data in metric.values() if isinstance(data, dict)):
                        yield json.dumps([resource["resource"], scope["scope"], metric, point], sort_keys=True)


@contextmanager
def site(folder: Path, seed: int) -> Iterator[Site]:
    runs = {run: random_operations(random.Random(f"{seed} {run}")) for run in "ab"}
    for run, operations in runs.items():
        failures.write(folder / run, operations, failed=("false", "FALSE"))
    with grounds("sqlite", folder) as sqlite, grounds("double", folder) as double:
        for url in (sqlite.url, double.url):
            for run in runs:
                words = ("load", folder / run, "--run", run, "--store", url, "--input-format", folder / "a.yml")
                assert printed(*words)[0] == 0
        yield Site(folder, (sqlite.url, double.url), runs)


def window(one: Operation) -> int:
    return -(-one.end_ns // SECOND) * SECOND - SECOND


def low_of(latency_ns: int) -> int:
    """Return the lower edge of the bin of a latency: 128 bins an octave."""
    shift = max(latency_ns.bit_length() - 7, 0)
    return latency_ns >> shift << shift


def counted(operations: Sequence[Operation], *, apart: bool = False) -> Counter[Any]:
    """Return how many operations lie in each window and bin by its lower edge, failed ones at inf unless they are told apart."""
    return Counter(
        (window(one), *(["failed" if one.failed else "ok"] if apart else []), place(one, apart=apart)) for one in operations
    )


def place(one: Operation, *, apart: bool = False) -> float:
    return math.inf if one.failed and not apart else low_of(one.latency_ns)


def percentiles(site: Site) -> None:
    for failing, by in (("slowest", ("host",)), ("apart", ("outcome",)), ("ignore", ("op",))):
        own = [one for one in site.runs["a"] if failing != "ignore" or not one.failed]
        if not own:  # refused, as nothing is selected
            continue
        words = ("--step", "5s", "-p", ",".join(PERCENTS), "--below", "5ms", "--failures", failing)
        expected = failures.rows(own, PERCENTS, 5 * SECOND, by)
        told = site.rows("percentiles", "a", *words, *(() if failing == "apart" else ("--by", by[0])))
        assert len(told) == len(expected)
        for row in told:
            key = (iso_ns(row["start"]), row[by[0]])
            assert {name: row[name] for name in expected[key]} == expected[key]
            of_row = [
                one
                for one in own
                if window(one) // (5 * SECOND) * 5 * SECOND == key[0]
                and key[1] == (getattr(one, by[0], None) or ("failed" if one.failed else "ok"))
            ]
            at_most = sum(low_of(one.latency_ns) < LIMIT for one in of_row if failing == "apart" or not one.failed)
            least = at_most - sum(low_of(one.latency_ns) == low_of(LIMIT) for one in of_row)
            assert least <= round(float(row["below_5ms"]) * len(of_row), 6) <= at_most


def heat_maps(site: Site) -> None:
    for failing in ("slowest", "apart", "ignore"):
        own = [one for one in site.runs["a"] if failing != "ignore" or not one.failed]
        if not own:
            continue
        told = site.rows("heatmap", "a", "--step", "1s", "--failures", failing)
        found = {
            (iso_ns(row["start"]), *([row["outcome"]] if failing == "apart" else []), float(row["lower"])): int(row["count"])
            for row in told
        }
        assert found == counted(own, apart=failing == "apart")
        timed = failing == "apart" or not all(one.failed for one in own)  # else there is no range to divide, and that is said
        of_ranges = site.rows("heatmap", "a", "--rows", 400, "--failures", failing, status=(0,) if timed else (2,))
        assert sum(int(row["count"]) for row in of_ranges) == (len(own) if timed else 0)


def distributions(site: Site) -> None:
    by_bin = Counter((one.op, place(one)) for one in site.runs["a"])
    told = site.rows("distribution", "a", "--by", "op")
    assert {(row["op"], float(row["lower"])): int(row["count"]) for row in told} == by_bin
    ends = {row["op"]: int(row["cumulative"]) for row in told}
    assert ends == Counter(one.op for one in site.runs["a"])
    for words in (("--curves", "--format", "csv"), ("--format", "hgrm")):
        for failing in ("slowest", "apart", "ignore"):
            timed = any(not one.failed for one in site.runs["a"]) or failing == "apart"
            site.asked("distribution", "a", *words, "--failures", failing, status=(0,) if timed else (0, 3))


def offsets(site: Site) -> None:
    told = site.rows("offsets", "a", "--by", "op")
    found = {(row["op"], iso_ns(row["start"]) + int(row["offset_lower"])): int(row["count"]) for row in told}
    wide = SECOND // 50
    assert found == Counter((one.op, one.end_ns // wide * wide) for one in site.runs["a"])


def boxes(site: Site) -> None:
    """Its times are whole windows, its latency begins with a bin; what failed is in no box, and that is said."""
    if all(one.failed for one in site.runs["a"]):
        return
    first = EPOCH_MS * MS + 5 * SECOND
    words = ("--box", f"{first // SECOND}..{first // SECOND + 8},5ms..", "--where", "run=a")
    for row in site.rows("explain", "a", *words):
        own = [one for one in site.runs["a"] if not one.failed and getattr(one, row["label"], None) == row["value"]]
        inside = [one for one in own if 0 <= window(one) - first < 8 * SECOND and low_of(one.latency_ns) >= low_of(LIMIT)]
        if row["label"] in ("host", "op"):
            assert (int(row["inside"]), int(row["outside"])) == (len(inside), len(own) - len(inside))


def comparisons(site: Site) -> None:
    by_op = {run: [[one for one in own if one.op == op] for op in ("get", "put")] for run, own in site.runs.items()}
    for row in site.rows("compare", "ab", "--by", "op", "-p", ",".join(PERCENTS)):
        both = [by_op[run][row["op"] == "put"] for run in "ab"]
        assert [int(row[f"count_{side}"]) for side in ("baseline", "run")] == list(map(len, both))
        for side, own in zip(("baseline", "run"), both, strict=True):
            expected = failures.percentile(own, row["percentile"]) if own else ""
            assert row[side] == expected
            if all(both) and any(one.failed for one in both[0] + both[1]):
                assert float(row[f"failed_{side}"]) == pytest.approx(sum(one.failed for one in own) / len(own))


def trends(site: Site) -> None:
    told = site.rows("trend", "ab", "-p", "50,90")
    shares = {run: sum(one.failed for one in own) / len(own) for run, own in site.runs.items()}
    found = {row["run"]: float(row["value"]) for row in told if row["measure"] == "failed"}
    assert found == (pytest.approx(shares) if any(shares.values()) else {})
    for row in told:
        if row["measure"] in ("p50", "p90"):
            assert row["value"] == failures.percentile(site.runs[row["run"]], row["percentile"])


def checks(site: Site) -> None:
    rolled = random.Random(len(site.runs["a"]))
    most = rolled.choice(("0", "1", "10", "70"))
    sla = site.folder / "SLA.yml"
    sla.write_text(SLA % most)
    described = ("--input-format", site.folder / "a.yml", "--format", "csv")
    told = [printed("check", sla, site.folder / "a", *described)]
    told += [printed("check", sla, url, "--run", "a", "--format", "csv") for url in site.urls]
    assert told[0] == told[1] == told[2]
    rows = list(csv.DictReader(io.StringIO(told[0][1])))
    found = {(row["objective"], iso_ns(row["start"]), iso_ns(row["end"]), int(row["samples"])) for row in rows}
    expected = {("failed", *one) for one in joined(site.runs["a"], lambda own: _share(own) > Fraction(most) / 100)}
    for op in ("get", "put"):
        own = [one for one in site.runs["a"] if one.op == op]
        expected |= {("slow", *one) for one in joined(own, _slow)}
    assert found == expected and told[0][0] == bool(expected)


def _share(own: Sequence[Operation]) -> Fraction:
    return Fraction(sum(one.failed for one in own), len(own))


def _slow(own: Sequence[Operation]) -> bool:
    """Say whether the 90th percentile, by its rank however few they are, is above the limit as its bin reports it."""
    ranked = sorted(math.inf if one.failed else one.latency_ns for one in own)
    at = ranked[math.ceil(len(own) * Fraction(9, 10)) - 1]
    return at == math.inf or min(max(failures.reported(int(at)), int(ranked[0])), ranked[-1]) > LIMIT


def joined(operations: Sequence[Operation], violated: Any) -> list[tuple[int, int, int]]:
    """Return the stretches of violated windows of 1 s that follow one another: start, end, operations."""
    windows: dict[int, list[Operation]] = {}
    for one in operations:
        windows.setdefault(window(one), []).append(one)
    found: list[tuple[int, int, int]] = []
    for start in sorted(start for start, own in windows.items() if violated(own)):
        begin, _, count = found.pop() if found and found[-1][1] == start else (start, 0, 0)
        found.append((begin, start + SECOND, count + len(windows[start])))
    return found


def capacities(site: Site) -> None:
    words = ("--sla", "p90<5ms", "--points", "--failures")
    for row in site.rows("capacity", "ab", *words, "slowest", status=(0, 1, 5)):
        own = site.runs[row["runs"]]
        assert int(row["count"]) == len(own)
        above = (
            sum(one.failed or low_of(one.latency_ns) > LIMIT for one in own),
            sum(one.failed or low_of(one.latency_ns) >= low_of(LIMIT) for one in own),
        )
        assert above[0] <= round(float(row["above"]) * len(own), 6) <= above[1]


def exports(site: Site) -> None:
    found: Counter[Any] = Counter()
    for row in site.rows("export", "a"):
        key = (iso_ns(row["start"]), row["host"], row["op"], row["kind"], int(row["lower"]))
        found[key] += int(row["count"])
    kinds = ("service", "service.failed")
    assert found == Counter((window(one), one.host, one.op, kinds[one.failed], low_of(one.latency_ns)) for one in site.runs["a"])
    for form in ("hlog", "otlp"):
        site.asked("export", "a", "--format", form)


def pictures(site: Site) -> None:
    """The card is the same picture, and what the page counts, draws and sums up in the browser the same numbers."""
    if all(one.failed for one in site.runs["a"]):
        return
    drawn: list[list[Any]] = []
    described = ("--input-format", site.folder / "a.yml")
    for place, words in enumerate(((site.folder / "a", *described), *((url, "--run", "a") for url in site.urls))):
        card, page = site.folder / f"{place}.svg", site.folder / f"{place}.html"
        assert printed("report", "--card", *words, "-o", card)[0] == printed("report", *words, "-o", page)[0] == 0
        data = re.findall(r'id="data">([^<]*)<', page.read_text())
        body = zlib.decompress(base64.b64decode(data[0]))
        size = 4 + int.from_bytes(body[:4], "little")
        content = json.loads(body[4:size])
        content["sections"].pop("slowest", None)  # single operations, which files alone have
        for finding in (finding for run in content["runs"] for finding in run["story"]["findings"]):
            del finding["command"]  # it names the source
        drawn.append([re.sub(r"\b(clip|gradient_)\d+", "", card.read_text()), content, body[size:]])
    assert drawn[0] == drawn[1] == drawn[2]


def stories(site: Site) -> None:
    for run in "ab":
        site.asked("explain", run, "--json")


def stores(site: Site) -> None:
    for url in site.urls:
        status, told = printed("runs", "check", "--store", url)
        assert status == 0 and told.startswith("no fault in 2 runs")


COMMANDS = (
    percentiles,
    heat_maps,
    distributions,
    offsets,
    boxes,
    comparisons,
    trends,
    checks,
    capacities,
    exports,
    pictures,
    stories,
    stores,
)


@pytest.mark.slow
@pytest.mark.parametrize("first", [0, pytest.param(100, marks=pytest.mark.soak)])
def test_every_command_counts_failures_as_a_loop_does_whatever_holds_them(tmp_path: Path, first: int) -> None:
    for seed in range(first, first + figure(2, 5, 50)):
        (tmp_path / str(seed)).mkdir()
        with site(tmp_path / str(seed), seed) as runs:
            for one in COMMANDS:
                one(runs)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_logs_that_are_followed_have_the_failures_of_logs_that_are_loaded(tmp_path: Path, seed: int) -> None:
    operations = sorted(random_operations(random.Random(f"followed {seed}")), key=lambda one: one.end_ns)
    described = failures.write(tmp_path / "a", operations, failed=("false", "FALSE"))
    options = LoadOptions(read=ReadOptions(run="a", description=description_of(str(described))), jobs=1)
    lines = {path: path.read_text().splitlines(keepends=True) for path in (tmp_path / "a").rglob("*.csv")}
    followed, loaded, clock = SqliteGround(tmp_path), SqliteGround(tmp_path), Clock()
    for path, own in lines.items():
        path.write_text("".join(own[: 1 + len(own) // 2]))
    with open_store(followed.url, write=True) as store:
        watch = WatchCycle(Watching.begun([tmp_path / "a"], store, options, clock, clock.now_ns))
        for _ in range(2):
            watch.cycle()
            clock.seconds += 2
            for path, own in lines.items():
                path.write_text("".join(own))
        watch.cycle(last=True)
        watch.settle()
    with open_store(loaded.url, write=True) as store:
        load([tmp_path / "a"], store, options)
    assert printed("export", followed.url) == printed("export", loaded.url)
    words = ("--step", "5s", "--by", "host", "-p", ",".join(PERCENTS), "--format", "csv")
    status, told = printed("percentiles", followed.url, *words)
    expected = failures.rows(operations, PERCENTS, 5 * SECOND, ("host",))
    rows = list(csv.DictReader(io.StringIO(told)))
    assert status == 0 and len(rows) == len(expected)
    for row in rows:
        key = (iso_ns(row["start"]), row["host"])
        assert {name: row[name] for name in expected[key]} == expected[key]


@pytest.mark.parametrize(("words", "reason"), MISUSED.items())
def test_outcomes_are_not_told_apart_where_nothing_could_say_so(
    tmp_path: Path, words: tuple[str, ...], reason: str, capsys
) -> None:
    failures.write(tmp_path / "a", [Operation("h", "get", EPOCH_MS * MS, MS, failed=True)])
    name, *others = words
    assert command([name, str(tmp_path / "a"), "--input-format", str(tmp_path / "a.yml"), *others]) == 2
    assert reason in capsys.readouterr().err


def test_a_box_says_which_operations_are_in_none_and_a_limit_costs_no_warning(tmp_path: Path, capsys) -> None:
    operations = [Operation("h", "get", (EPOCH_MS + 10 * at) * MS, MS, failed=at >= 90) for at in range(1, 101)]
    described = str(failures.write(tmp_path / "a", operations))
    words = [str(tmp_path / "a"), "--input-format", described]
    for form in ("csv", "table"):
        assert command(["explain", *words, "--box", "..,1us..", "--format", form]) == 0
        told = capsys.readouterr()
        assert "11 % of operations failed: they are in no box" in " ".join((told.out + told.err).split())
    assert command(["percentiles", *words, "--below", "5ms", "--format", "csv"]) == 0
    told = capsys.readouterr()
    assert "Warning" not in told.err and told.out.splitlines()[1].endswith(",0.89")


def test_sides_are_not_of_unlike_bins_because_one_has_failures(tmp_path: Path, capsys) -> None:
    for run, since in (("a", 90), ("b", 200)):
        operations = [Operation("h", "get", (EPOCH_MS + 10 * at) * MS, MS, failed=at >= since) for at in range(1, 101)]
        described = str(failures.write(tmp_path / run, operations))
    assert command(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--input-format", described]) == 0
    told = capsys.readouterr()
    assert "unlike bins" not in told.out + told.err
