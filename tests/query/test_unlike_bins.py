"""Histograms of unlike bins in one question: found by ranks on the edges of each, in files and both stores.

Every answer is held against the samples themselves (nothing below what was measured) and against `tests.oracles.ranks` (nothing
wider than the rule gives). Logs of two or three hosts, each in bins of its own.
"""

from __future__ import annotations

import itertools
import json
import math
import random
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.quantiles import STORED, parse_percentiles
from ingest.query import streaming
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles, table_of
from ingest.query.question import Question
from ingest.query.story.story import story
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.rollups import LOWS
from tests.databases import database
from tests.effort import figure
from tests.oracles import brute, hdr, logs, ranks
from tests.store.grounds import ElasticGround, grounds, loaded
from tests.store.test_contract import csv

EPOCH = 1_790_000_000
SECOND, MS = 1_000_000_000, 1_000_000
OTEL = [0, 5, 10, 25, 50, 75, 100, 250, 500, 750, 1000, 2500, 5000, 7500, 10000]  # the SDK's default, in ms
PROMETHEUS = [5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10000]
FINE = [round(0.1 * 1.2**place, 6) for place in range(60)]
FIO_BINS = 29 * 64
PERCENTS = ("1", "50", "75", "90", "99", "100")
Windows = Sequence[Sequence[int]]


def point(second: int, count: int) -> dict:
    return {
        "startTimeUnixNano": str((EPOCH + second) * SECOND),
        "timeUnixNano": str((EPOCH + second + 1) * SECOND),
        "count": str(count),
        "attributes": [{"key": "op", "value": {"stringValue": "read"}}],
    }


def otlp(points: list[dict], sort: str, kind: str, host: str) -> str:
    """A line for each point; histograms of completions are named as ours are."""
    own = kind == "completion"
    said = [{"key": "host.name", "value": {"stringValue": host}}] if own else []
    scope = {"scope": {"name": "tailboard"}} if own else {}
    name = "tailboard.client.completion.duration" if own else "latency"
    head = {"name": name, "unit": "ms"}
    metrics = [{**head, sort: {"aggregationTemporality": 1, "dataPoints": [each]}} for each in points]
    return "".join(
        json.dumps({"resourceMetrics": [{"resource": {"attributes": said}, "scopeMetrics": [{**scope, "metrics": [one]}]}]})
        + "\n"
        for one in metrics
    )


def listed(bounds: Sequence[float]) -> Callable[[Path, Windows, str], None]:
    def write(folder: Path, windows: Windows, kind: str) -> None:
        points = []
        for second, values in enumerate(windows):
            counts = [0] * (len(bounds) + 1)
            for value in values:
                counts[bisect_left([round(bound * MS) for bound in bounds], value)] += 1
            points.append(point(second, len(values)) | {"bucketCounts": list(map(str, counts)), "explicitBounds": list(bounds)})
        (folder / "x.log").write_text(otlp(points, "histogram", kind, folder.name))

    return write


def exponential(scale: int) -> Callable[[Path, Windows, str], None]:
    def write(folder: Path, windows: Windows, kind: str) -> None:
        points = []
        for second, values in enumerate(windows):
            found = Counter(ranks.exponential_number(value, scale) for value in values)
            low, high = min(found), max(found)
            buckets = {"offset": low, "bucketCounts": [str(found[number]) for number in range(low, high + 1)]}
            points.append(point(second, len(values)) | {"scale": scale, "zeroCount": "0", "positive": buckets})
        (folder / "x.log").write_text(otlp(points, "exponentialHistogram", kind, folder.name))

    return write


def hdr_log(digits: int, magnitude: int = 0) -> Callable[[Path, Windows, str], None]:
    def write(folder: Path, windows: Windows, _: str) -> None:
        lines = []
        for second, values in enumerate(windows):
            counts = Counter(hdr.index_of(value, digits, magnitude) for value in values)
            lines.append(hdr.line(f"{second}.000", "1.000", counts, "read-st", digits=digits, lowest=1 << magnitude))
        head = f"#[StartTime: {EPOCH}.000 (seconds since epoch)]\n#Units: nanoseconds\n"
        (folder / "x.log").write_text(hdr.log(lines, head=head))

    return write


def fio_log(coarseness: int) -> Callable[[Path, Windows, str], None]:
    def write(folder: Path, windows: Windows, _: str) -> None:
        bins = FIO_BINS >> coarseness
        rows = []
        for second, values in enumerate(windows):
            counts = Counter(brute.index_of(value, FIO_BINS - 1) >> coarseness for value in values)
            rows.append(((EPOCH + second + 1) * 1000, 0, counts))
        (folder / f"a_clat_hist.1.log.{folder.name}").write_text(logs.text(rows, bins))

    return write


def operations(folder: Path, windows: Windows, _: str) -> None:
    lines = ["start_us,latency_ns,op"]
    for second, values in enumerate(windows):
        lines += [f"{(EPOCH + second) * 10**6 + place},{value},read" for place, value in enumerate(values, 1)]
    (folder / "x.log").write_text("\n".join(lines) + "\n")


def fio_raw(folder: Path, windows: Windows, _: str) -> None:
    lines = []
    for second, values in enumerate(windows):
        stamp = (EPOCH + second) * 1000
        lines += [f"{stamp + 1 + place * 999 // len(values)}, {value}, 0, 4096, 0" for place, value in enumerate(values)]
    (folder / f"a_clat.1.log.{folder.name}").write_text("\n".join(lines) + "\n")


@dataclass(frozen=True)
class Format:
    """How latencies are written, the bins that they are counted in, and of which other formats these hold the bins whole."""

    write: Callable[[Path, Windows, str], None]
    bins: ranks.Bins
    holds: tuple[str, ...] = ()


OF_LISTS = {
    "otel": Format(listed(OTEL), ranks.listed([bound * MS for bound in OTEL])),
    "prometheus": Format(listed(PROMETHEUS), ranks.listed([bound * MS for bound in PROMETHEUS])),
    "fine": Format(listed(FINE), ranks.listed([round(bound * MS) for bound in FINE])),
}
SCALES = (-1, 0, 3, 8)
OF_LISTS |= {
    f"exponential {scale}": Format(
        exponential(scale), ranks.exponential(scale), tuple(f"exponential {finer}" for finer in SCALES if finer > scale)
    )
    for scale in SCALES
}
KINDS = {
    "service": OF_LISTS
    | {
        "hdr 1": Format(hdr_log(1), ranks.hdr_bins(1), ("hdr 2", "hdr 3", "hdr 5", "raw")),
        "hdr 2 from 16 us": Format(hdr_log(2, 14), ranks.hdr_bins(2, 14), ("hdr 2", "hdr 3", "hdr 5", "raw")),
        "hdr 2": Format(hdr_log(2), ranks.hdr_bins(2), ("hdr 3", "hdr 5", "raw")),
        "hdr 3": Format(hdr_log(3), ranks.hdr_bins(3), ("hdr 5", "raw")),
        "raw": Format(operations, ranks.raw(1024), ("hdr 5",)),
        "hdr 5": Format(hdr_log(5), ranks.hdr_bins(5)),
    },
    "completion": OF_LISTS
    | {
        "fio 6": Format(fio_log(6), ranks.fio(6), ("fio 3", "fio 0", "fio raw")),
        "fio 3": Format(fio_log(3), ranks.fio(3), ("fio 0", "fio raw")),
        "fio 0": Format(fio_log(0), ranks.fio(0), ("fio raw",)),
        "fio raw": Format(fio_raw, ranks.raw(64)),
    },
}
LARGE = {"hdr 5"}  # six million bins


@dataclass(frozen=True)
class Case:
    """Hosts with the format and the samples of each, second by second."""

    kind: str
    hosts: dict[str, tuple[str, Windows]]

    def write(self, folder: Path) -> Path:
        for host, (name, windows) in self.hosts.items():
            (folder / host).mkdir(parents=True)
            KINDS[self.kind][name].write(folder / host, windows, self.kind)
        return folder

    def home(self, name: str) -> str:
        """The bins that samples of a format are in: of those that the question is about the coarsest that hold them whole."""
        formats = KINDS[self.kind]
        there = [other for other, _ in self.hosts.values()]
        return next(other for other in formats if other in there and (other == name or name in formats[other].holds))

    def groups(self, by: Sequence[str], step: int) -> dict[tuple[int, str], tuple[list[int], list[ranks.Sample], int]]:
        """The samples of each window and group: latencies, what their bins say of them, and how many sorts of bins there are."""
        found: dict[tuple[int, str], list[tuple[int, ranks.Sample, str]]] = {}
        for host, (name, windows) in self.hosts.items():
            family = self.home(name)
            bins = KINDS[self.kind][family].bins
            for second, values in enumerate(windows):
                key = ((EPOCH + second) // step * step if step else 0, host if by else "")
                found.setdefault(key, []).extend((value, bins(value), family) for value in values)
        return {
            key: (sorted(value for value, *_ in some), [ends for _, ends, _ in some], len({family for *_, family in some}))
            for key, some in found.items()
        }


def latency(chance: random.Random, middle: float, width: float) -> int:
    return max(min(round(math.exp(chance.gauss(math.log(middle), width))), 16 * SECOND), 200)


def made(seed: int, names: Sequence[str] = (), kind: str = "") -> Case:
    """Two or three hosts of unlike speed, mostly in unlike bins; now and then a tail beyond the last edge of lists."""
    chance = random.Random(seed)
    kind = kind or chance.choice(list(KINDS))
    common = [name for name in KINDS[kind] if name not in LARGE]
    names = names or [chance.choice(common) for _ in range(chance.choice((2, 2, 3)))]
    hosts = {}
    for number, name in enumerate(names):
        middle, width = math.exp(chance.uniform(math.log(50_000), math.log(80 * MS))), chance.choice((0.1, 0.7, 1.5))
        windows = [[latency(chance, middle, width) for _ in range(chance.randint(1, 60))] for _ in range(chance.randint(2, 4))]
        hosts[f"h{number}"] = (name, windows)
    return Case(kind, hosts)


def held_against_the_rule(case: Case, origin, by: tuple[str, ...], step: int) -> None:
    below = random.Random(step + len(by)).randrange(100_000, 50 * MS)
    wanted = Wanted(parse_percentiles(",".join(PERCENTS)), (below,), possible=True)
    question = Question(by=by, step=step * SECOND if step else "all", where={"kind": case.kind})
    table = percentiles(origin.answer(question), wanted)
    [name] = [name for name in table.columns if name.startswith("below_") and name.count("_") == 1]
    groups = case.groups(by, step)
    assert len(table) == len(groups)
    for row in range(len(table)):
        cells = {column: values[row] for column, values in table.columns.items()}
        values, samples, families = groups[int(cells["start_ns"]) // SECOND if step else 0, cells["host"] if by else ""]
        count = len(values)
        assert cells["count"] == count
        for percent in PERCENTS:
            if math.isnan(cells[f"p{percent}"]):
                assert float(percent) > 50 and count * (100 - float(percent)) < 100
                continue
            rank = ranks.rank_of(percent, count)
            least, most = ranks.between(samples, rank)
            low, shown, high = (cells[f"p{percent}{end}"] for end in ("_lo", "", "_hi"))
            assert least <= values[rank - 1] <= most, "the oracle"
            if families == 1:  # as its tool reports it: fio the middle of a bin, others the highest latency
                assert (low == shown == high or not cells["complete"]) and least <= shown <= max(most, least)
                assert most < math.inf or cells[f"p{percent}_censored"]
            elif percent == "100" and cells["exact"]:
                assert low == shown == high == values[-1]
            else:
                assert (low, high) == (least, most) or not cells["complete"]  # fio never writes the last interval
                assert shown == (most if most < math.inf else least)
                assert shown >= values[rank - 1] or cells[f"p{percent}_censored"]
        if families > 1:
            shares = ranks.shares_below(samples, below)
            assert cells[name] == pytest.approx(shares[0])
            assert not cells["complete"] or (cells[f"{name}_lo"], cells[f"{name}_hi"]) == pytest.approx(shares)
            assert cells["min"] == (values[0] if cells["exact"] else min(low for low, _ in samples))
            least, most = ranks.means(samples)
            assert least <= sum(values) / count <= most and (cells["exact"] or least <= cells["mean"] <= most)


QUESTIONS: list[tuple[tuple[str, ...], int]] = [((), 0), (("host",), 0), ((), 1), (("host",), 1), ((), 5)]
PAIRS = [(kind, *pair) for kind, formats in KINDS.items() for pair in itertools.combinations(formats, 2)]
PAIRS.sort(key=lambda pair: bool(LARGE & set(pair)))
MARKED = [pytest.param(*pair, marks=pytest.mark.slow if LARGE & set(pair) else ()) for pair in PAIRS]


@pytest.mark.cases(39)
@pytest.mark.parametrize(("kind", "one", "other"), MARKED, ids=lambda name: name)
def test_n7_every_pair_of_bins_is_answered_by_ranks(kind: str, one: str, other: str, tmp_path: Path) -> None:
    case = made(PAIRS.index((kind, one, other)), (one, other), kind)
    files = Files([case.write(tmp_path / "run")], ReadOptions(run="r"), jobs=1)
    for by, step in QUESTIONS[:3]:
        held_against_the_rule(case, files, by, step)


@pytest.mark.parametrize("seed", range(figure(6, 9, 300)))
def test_random_hosts_are_answered_by_ranks(seed: int, tmp_path: Path) -> None:
    case = made(1000 + seed)
    files = Files([case.write(tmp_path / "run")], ReadOptions(run="r"), jobs=1)
    for by, step in QUESTIONS:
        held_against_the_rule(case, files, by, step)


@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize("seed", range(figure(2, 3, 40)))
def test_stores_answer_as_files(store: str, seed: int, tmp_path: Path) -> None:
    case = made(2000 + seed)
    folder = case.write(tmp_path / "run")
    files = Files([folder], ReadOptions(run="r"), jobs=1)
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder])
        with open_store(ground.url) as origin:
            for by, step in QUESTIONS:
                question = Question(by=by, step=step * SECOND if step else "all", where={"kind": case.kind})
                assert csv(origin.answer(question)) == csv(files.answer(question))
                held_against_the_rule(case, origin, by, step)


def steady(folder: Path, middle_ms: float, names: Sequence[str] = ("hdr 3", "otel")) -> Path:
    """40 s of 100 samples each of two hosts, all alike."""
    chance = random.Random(round(middle_ms * 1000))
    hosts = {
        f"h{number}": (
            name,
            [[round(math.exp(chance.gauss(math.log(middle_ms * MS), 0.5))) for _ in range(100)] for _ in range(40)],
        )
        for number, name in enumerate(names)
    }
    return Case("service", hosts).write(folder)


def rollups_in(ground) -> list[dict]:
    """The rollups of a store, each with its percentiles by the names of columns."""
    if isinstance(ground, ElasticGround):
        return [
            {**hit["_source"]["rollup"], **hit["_source"]["latency"], "host": hit["_source"].get("host", {}).get("name", "")}
            | {"step_ns": hit["_source"]["rollup"]["step_ms"] * MS, "start_ns": hit["_source"]["@timestamp"] * MS}
            for hit in ground.hits("rollups-*")
        ]
    with database(ground.path) as db:
        cursor = db.execute("SELECT * FROM rollups")
        return [dict(zip((name for name, *_ in cursor.description), row, strict=True)) for row in cursor]


@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize(
    ("middle_ms", "names"),
    [(12, ("hdr 3", "otel")), (2, ("exponential 3", "prometheus", "hdr 2")), (40_000, ("hdr 3", "otel"))],
    ids=["in bins", "three", "in an open bin"],
)
def test_rollups_hold_both_ends_of_percentiles_over_unlike_bins(
    store: str, middle_ms: int, names: tuple[str, ...], tmp_path: Path
) -> None:
    """Panels read numbers: the upper end stood there alone. What a rollup says is what files answer."""
    folder = steady(tmp_path / "run", middle_ms, names)
    files = Files([folder], ReadOptions(run="r"), jobs=1)
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder])
        assert rollups_as_files(files, rollups_in(ground), "service") > 40


def rollups_as_files(files: Files, rollups: list[dict], kind: str, groups: Sequence[tuple[str, ...]] = ((), ("host",))) -> int:
    """Hold the numbers that panels read against the answers of files; return how many percentiles lie between two ends."""
    wanted, unlike = Wanted(STORED, possible=True), 0
    rolled = {(one["scope"], one["step_ns"], one["start_ns"], one["host"]): one for one in rollups}
    for by, step in itertools.product(groups, (0, 1, 10)):
        question = Question(by=by, step=step * SECOND if step else "all", where={"kind": kind})
        table = percentiles(files.answer(question), wanted)
        assert len(table)
        for row in range(len(table)):
            cells = {column: values[row] for column, values in table.columns.items()}
            host = cells["host"] if by else ""
            held = rolled["host" if by else "cluster", step * SECOND, int(cells["start_ns"]), host]
            assert held["count"] == cells["count"]
            for percentile in STORED:
                name, low = percentile.name.replace(".", "_"), held.get(LOWS[percentile])
                shown, least = (cells[f"{percentile.name}{end}"] for end in ("", "_lo"))
                assert held.get(name) == shown or (math.isnan(shown) and held.get(name) is None)
                # What is missing is told beside panels; a lower end stands where there are two. In an open bin there is none above.
                assert not cells["complete"] or math.isnan(shown) or least == (shown if low is None else low), (
                    percentile,
                    by,
                    step,
                )
                unlike += low is not None and low < shown
    return unlike


@pytest.mark.cases(8)
@pytest.mark.slow
@pytest.mark.parametrize(("kind", "one", "other"), [pair for pair in PAIRS if not LARGE & set(pair)], ids=lambda name: name)
def test_n7_every_pair_is_answered_in_parts_of_10_rows_and_in_panels_as_at_once(
    kind: str, one: str, other: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Files answer long logs part by part, and panels read the rollups of a store: all as one answer of the files."""
    case = made(5000 + PAIRS.index((kind, one, other)), (one, other), kind)
    folder = case.write(tmp_path / "run")
    files, wanted = (
        Files([folder], ReadOptions(run="r"), jobs=1),
        Wanted(parse_percentiles(",".join(PERCENTS)), (5 * MS,), possible=True),
    )
    questions = [Question(by=by, step=step * SECOND if step else "all", where={"kind": kind}) for by, step in QUESTIONS]
    at_once = [percentiles(files.answer(question), wanted) for question in questions]
    for name in ("OPEN_ENTRIES", "LEAST_ENTRIES", "MOST_ENTRIES", "SUM_ENTRIES", "SMALL_ENTRIES"):
        monkeypatch.setattr(streaming, name, 10)
    for question, table in zip(questions, at_once, strict=True):
        in_parts, _ = table_of(files, question, wanted)
        assert in_parts.columns.keys() == table.columns.keys()
        for name, column in table.columns.items():
            np.testing.assert_array_equal(in_parts.columns[name], column)
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [folder])
        # One host's bins may be cut to those of another that hold them whole where files answer about both; a panel of it alone
        # has its own.
        alone = case.home(one) == one and case.home(other) == other
        rollups = [rollup for rollup in rollups_in(ground) if rollup["kind"] == kind]
        rollups_as_files(files, rollups, kind, ((), ("host",)) if alone else ((),))


def test_a_server_of_version_6_takes_rollups_without_lower_ends_until_it_is_set_up_again(tmp_path: Path) -> None:
    folder = steady(tmp_path / "run", 12)
    with grounds("double", tmp_path) as ground:
        for index in ("intervals", "rollups"):
            name, cluster, indices = f"{ground.prefix}-{index}", ground.client.cluster, ground.client.indices
            body = cluster.get_component_template(name=f"{name}-mappings")["component_templates"][0]["component_template"][
                "template"
            ]
            for low in LOWS.values() if index == "rollups" else ():
                del body["mappings"]["properties"]["latency"]["properties"][low]
            cluster.put_component_template(name=f"{name}-mappings", template=body, version=6)
            told = indices.get_index_template(name=name)["index_templates"][0]["index_template"]
            names = {"index_patterns": told["index_patterns"], "composed_of": told["composed_of"], "priority": told["priority"]}
            indices.put_index_template(name=name, template=told["template"], version=6, meta=told["_meta"], **names)
        loaded(ground.url, [folder], run="before")
        assert command(["setup", "--elasticsearch", ground.server, "--index-prefix", ground.prefix, "--overwrite"]) == 0
        loaded(ground.url, [folder], run="after")
        expected = csv(Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(by=("host",), step=SECOND)))
        with open_store(ground.url) as store:
            for run in ("before", "after"):
                assert csv(store.answer(Question(runs=(run,), by=("host",), step=SECOND))) == expected
        held = {
            run: [hit for hit in ground.hits("rollups-*") if hit["_source"]["run"]["id"] == run] for run in ("before", "after")
        }
        with_lows = {run: sum("p50_low" in hit["_source"]["latency"] for hit in hits) for run, hits in held.items()}
        assert with_lows == {"before": 0, "after": 40 + 4 + 1 + 1}, with_lows


@pytest.mark.parametrize(
    ("threshold", "status"), [("5ms", 1), ("12ms", 5), ("60ms", 0)], ids=["below all", "within a bin", "above all"]
)
def test_n7_check_judges_by_both_ends_or_cannot_tell(threshold: str, status: int, tmp_path: Path, capsys) -> None:
    """Of p50 of HdrHistogram beside OpenTelemetry's default bounds, 12 ms: check said met of any threshold."""
    folder, sla = steady(tmp_path / "run", 12), tmp_path / "sla.yml"
    sla.write_text(f"objectives:\n  - {{name: p50, percentile: 50, threshold: {threshold}, window: 1s}}\n")
    assert command(["check", str(sla), str(folder)]) == status
    said = capsys.readouterr()
    assert ("bins are too wide" in " ".join((said.out + said.err).split())) == (status == 5)


def test_a_percentile_in_an_open_bin_below_the_threshold_is_not_met(tmp_path: Path) -> None:
    folder, sla = steady(tmp_path / "run", 40_000, ("otel",)), tmp_path / "sla.yml"
    sla.write_text("objectives:\n  - {name: p50, percentile: 50, threshold: 20s, window: 1s}\n")
    assert command(["check", str(sla), str(folder)]) == 5


@pytest.mark.slow
@pytest.mark.parametrize(("middle", "status"), [(60, 1), (12.001, 0)], ids=["five times", "the same"])
def test_n7_compare_sees_what_bins_leave_certain(middle: float, status: int, tmp_path: Path) -> None:
    folders = steady(tmp_path / "good", 12), steady(tmp_path / "bad", middle)
    asked = ["compare", "--baseline", "good", "--run", "bad", *map(str, folders), "-p", "50,99", "--fail-above", "1.5"]
    assert command(asked) == status


@pytest.mark.cases(4)
@pytest.mark.parametrize(("names", "said"), [(("hdr 3", "otel"), True), (("otel", "otel"), False), (("hdr 3", "hdr 2"), False)])
@pytest.mark.parametrize("by", ["", "host", "op"])
def test_a_page_says_that_percentiles_over_unlike_bins_are_the_highest(
    names: Sequence[str], said: bool, by: str, tmp_path: Path
) -> None:
    folder = steady(tmp_path / "run", 12, names)
    store = f"sqlite:{tmp_path / 'x.db'}"
    loaded(store, [folder])
    for source in (str(folder), store) if not by else (str(folder),):
        command(["report", source, *(["--by", by] if by else []), "-o", str(tmp_path / "page.html")])
        page = (tmp_path / "page.html").read_text()
        assert ("is the highest that it can be, and a host with wide bins looks slow" in page) == said
        assert "are ranges where these leave one" not in page


def test_n7_an_empty_open_bin_cuts_no_tail_of_another(tmp_path: Path) -> None:
    """Two hosts with unlike bounds: the last of one, which holds nothing, made 4 ms of 32 ms."""
    fast, slow = [1, 2, 4], [1, 2, 4, 8, 16, 32]
    for host, bounds, values in (("fast", fast, [900_000] * 50), ("slow", slow, [30 * MS] * 5 + [900_000] * 45)):
        (tmp_path / "run" / host).mkdir(parents=True)
        listed(bounds)(tmp_path / "run" / host, [values], "service")
    answer = Files([tmp_path / "run"], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    table = percentiles(answer, Wanted(parse_percentiles("50,99"), possible=True))
    assert [table.columns[f"p99{end}"][0] for end in ("_lo", "", "_hi")] == [16 * MS + 1, 32 * MS, 32 * MS]
    assert not table.columns["p99_censored"][0]


def test_rollups_of_an_earlier_version_in_common_bins_are_not_read(tmp_path: Path) -> None:
    folder = steady(tmp_path / "run", 12)
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [folder])
        question = Question(step="all")
        with open_store(ground.url) as origin:
            expected = csv(origin.answer(question))
            assert origin.answer(question).answered_from == "rollups"
        with database(ground.path) as db:
            db.execute("UPDATE rollups SET layout = 'loglinear:1:63:1ns:c0:upper:open' WHERE layout LIKE 'mixed:%'")
            db.execute("UPDATE rollups SET coding = 1, bins = x'000001', count = 1 WHERE layout LIKE '%upper%'")
            db.commit()
        with open_store(ground.url) as origin:
            assert csv(origin.answer(question)) == expected
            assert origin.answer(question).answered_from == "documents"


@pytest.mark.cases(4)
@pytest.mark.parametrize(
    "names", [("hdr 3", "otel"), ("otel", "otel", "hdr 3"), ("hdr 3", "prometheus"), ("hdr 1", "hdr 3", "otel")]
)
@pytest.mark.parametrize("middle_ms", [4.9, 7, 10, 24, 101])
def test_n7_a_quiet_cluster_of_unlike_bins_tells_nothing(middle_ms: float, names: Sequence[str], tmp_path: Path) -> None:
    """Wide bins beside fine ones were places where latencies gather: all in 5 to 10 ms at 7.50 ms, all in 10 to 25 at 17.4."""
    files = Files([steady(tmp_path / "run", middle_ms, names)], ReadOptions(run="r"), jobs=1)
    told = story(files, Question())
    assert not told.findings and not any("gather" in text for text in told.caveats)
