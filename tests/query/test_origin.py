"""One contract for whatever can be asked: files, SQLite, the Elasticsearch double, and a third kind of store in memory.

H2: nothing outside its own module asks what an origin is; what only some can do is asked for by name.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from ingest import store as capabilities
from ingest.cli import run as command
from ingest.core.errors import UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.query import origin as origins
from ingest.query import question as questions
from ingest.query.files import Files
from ingest.query.interval_log import interval_log
from ingest.query.lags import answered
from ingest.query.origin import KINDS, Capabilities, Capability, Origin, require
from ingest.query.overview import overviews
from ingest.query.percentiles import Wanted, percentiles, table_of
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.page.report import parts_from, run_names
from ingest.view.text import csv_lines
from tests.doubles.memory import shelved
from tests.store.grounds import FIO, grounds, loaded

ROOT = Path(__file__).parents[2]
HOSTS = FIO / "host-folders" / "clients"
ZERO = 1_789_999_200 * 1_000_000_000
SECOND = 1_000_000_000
ORIGINS = ("files", "sqlite", "double", "memory")
MEMORY = "memory:toy"
WANTED = Wanted(parse_percentiles("50,99,99.9,100"), below_ns=(5_000_000,))
CAPABILITIES = {
    name: one for where in (origins, capabilities) for name, one in vars(where).items() if isinstance(one, Capability)
}
FILE_ALONE = {"LOGS", "WEIGHED", "PERCENTILES", "INTERVAL_LOG", "SLOWEST"}
KEPT = {"OFFSETS", "OFFSET_TICKS", "BREATHS", "WHOLE_RUNS"}
OFFERED = {
    "files": FILE_ALONE | KEPT,
    "sqlite": KEPT | {"GROWTH", "SNAPSHOT", "DOCUMENTS", "KNOWN_RUNS", "FINDINGS"},
    "double": KEPT | {"GROWTH", "DOCUMENTS", "KNOWN_RUNS", "DEAD_LETTERS", "FINDINGS"},
    "memory": set(),
}
QUESTIONS = {
    "auto": Question(by=("op",)),
    "hosts": Question(by=("host", "op"), step=2 * SECOND),
    "jobs": Question(by=("host", "volume", "job"), step=1 * SECOND),
    "one host": Question(where={"host": "h2"}, step=SECOND),
    "whole": Question(by=("op",), step="all"),
    "narrow": Question(by=("host", "volume", "job", "op"), step=SECOND, narrow=True),
}


@pytest.fixture(scope="module")
def there(tmp_path_factory) -> Iterator[dict[str, Any]]:
    """Files, and the URLs of stores that hold the same run; of SQLite and of the one in memory a second run beside it."""
    folder = tmp_path_factory.mktemp("origins")
    files = Files([HOSTS], ReadOptions(run="one", t0=ZERO), jobs=1)
    with grounds("sqlite", folder) as sqlite, grounds("double", folder) as double, grounds("sqlite", folder) as pair:
        for ground in (sqlite, double, pair):
            loaded(ground.url, [HOSTS], run="one", jobs=1, reading={"t0": ZERO})
        loaded(pair.url, [FIO / "randrw"], run="two", jobs=1, reading={"t0": ZERO})
        with open_store(pair.url) as store:
            shelved(MEMORY, store, store.runs())
        with open_store(sqlite.url) as store:
            shelved("memory:one", store, store.runs())
        yield {"files": files, "sqlite": sqlite.url, "double": double.url, "memory": "memory:one", "pair": pair.url}


@pytest.fixture(autouse=True)
def third_kind(monkeypatch) -> None:
    """One line adds a kind of store."""
    monkeypatch.setitem(KINDS, "memory:", "tests.doubles.memory.open_url")


@pytest.fixture(params=ORIGINS)
def origin(request, there) -> Iterator[Origin]:
    if request.param == "files":
        yield there["files"]
        return
    with open_store(there[request.param]) as store:
        yield store


def named(origin: Origin) -> str:
    return {"Files": "files", "SqliteStore": "sqlite", "ElasticStore": "double", "MemoryStore": "memory"}[type(origin).__name__]


def test_runs_are_the_same(origin: Origin, there) -> None:
    (run,), (known,) = origin.runs(), there["files"].runs()
    assert (run.run, run.start_ns, run.relative, run.final_ns) == (known.run, known.start_ns, False, None)
    assert dict(run.labels) == dict(known.labels)


@pytest.mark.parametrize(("cells", "least"), [(4, 1), (4, 2), (1000, 1)])
def test_an_answer_of_many_groups_has_fewer_windows(origin: Origin, there, monkeypatch, cells: int, least: int) -> None:
    monkeypatch.setattr(questions, "LEAST_WINDOWS", least)
    asked = Question(by=("host", "job", "op"), windows=720, cells=cells, narrow=True)
    answer, wide, files = origin.answer(asked), origin.answer(replace(asked, cells=1 << 20)), there["files"].answer(asked)
    assert answer.step_ns == files.step_ns and answer.samples == wide.samples == files.samples
    few, many = (len({start for part in each.parts for start in part.start_ns.tolist()}) for each in (answer, wide))
    groups = {part.table[code] for part in wide.parts for code in part.series.tolist()}
    most = max(cells // len(groups), least)
    assert few <= most and (few < many) == (most < many) == (cells < 1000)


@pytest.mark.parametrize("name", QUESTIONS)
def test_answers_and_tables_are_the_same(origin: Origin, there, name: str) -> None:
    question = QUESTIONS[name]
    expected = list(csv_lines(percentiles(there["files"].answer(replace(question, narrow=False)), WANTED)))
    assert len(expected) > 1
    assert list(csv_lines(percentiles(origin.answer(question), WANTED))) == expected
    assert list(csv_lines(percentiles(answered(origin, question), WANTED))) == expected
    table, facts = table_of(origin, question, WANTED)
    assert list(csv_lines(table)) == expected
    assert (facts.runs, facts.by, facts.kind, facts.step_ns) == (("one",), question.by, "completion", facts.step_ns)


def test_windows_hold_the_same_counts(origin: Origin, there) -> None:
    def counts(one: Origin) -> dict[tuple[Any, ...], int]:
        found: dict[tuple[Any, ...], int] = {}
        for part in one.windows(Question(by=("host", "op"))):
            for code, start, samples in zip(part.series.tolist(), part.start_ns.tolist(), part.samples.tolist(), strict=True):
                found[part.table[code], start] = found.get((part.table[code], start), 0) + samples
        return found

    expected = counts(there["files"])
    assert {key[:2] for key, _ in expected} == {("one", "completion")}
    assert counts(origin) == expected


def test_logs_of_intervals_are_the_same(origin: Origin, there) -> None:
    def told(one: Origin) -> tuple[Any, ...]:
        log = interval_log(one, Question(by=("op",), step=2 * SECOND))
        found = [
            (part.table[code], start, samples)
            for part in log.windows
            for code, start, samples in zip(part.series.tolist(), part.start_ns.tolist(), part.samples.tolist(), strict=True)
        ]
        return log.names, log.unit_ns, found

    assert told(origin) == told(there["files"])


def test_facts_marks_and_episodes(origin: Origin, there) -> None:
    answer = origin.answer(QUESTIONS["whole"])
    assert dict(origin.facts(answer))["Hosts"] == dict(there["files"].facts(answer))["Hosts"] == "h1, h2"
    assert list(origin.marks(answer)) == list(origin.episodes(["one"])) == []


def test_h2_a_capability_that_is_not_there_is_one_error_with_one_sentence(origin: Origin) -> None:
    offered = {name for name, one in CAPABILITIES.items() if origin.offers.get(one) is not None}
    assert offered == OFFERED[named(origin)]
    assert origin.offers.names == sorted(CAPABILITIES[name].name for name in offered)
    for name, one in CAPABILITIES.items():
        if name in offered:
            assert require(origin, one) is not None
            continue
        with pytest.raises(UsageError) as raised:
            require(origin, one)
        assert str(raised.value) == f"{one.name} {one.missing}"
        with pytest.raises(UsageError, match="^--x "):
            require(origin, one, "--x")


def test_capabilities_have_names_of_their_own() -> None:
    assert len({one.name for one in CAPABILITIES.values()}) == len(CAPABILITIES) > 10
    assert set().union(*OFFERED.values()) == set(CAPABILITIES)
    assert Capabilities().names == []


def test_h2_nobody_asks_what_an_origin_is() -> None:
    asking = re.compile(r"__self__|is(instance|subclass)\([^#\n]*\b(Files|SqliteStore|ElasticStore|Store|Origin)\b")
    found = [
        f"{path.name}: {line}"
        for path in (ROOT / "ingest").rglob("*.py")
        for line in path.read_text("utf-8").splitlines()
        if asking.search(line)
    ]
    assert found == []
    assert asking.search("if isinstance(origin, Files):") and asking.search('getattr(ask, "__self__", None)')


@pytest.mark.parametrize("module", ["ingest.store.sqlite.store", "ingest.store.elastic.store", "ingest.query.origin"])
def test_h2_a_store_loads_no_reader(module: str) -> None:
    script = f"import sys, {module}; print(*sorted(name for name in sys.modules if name.startswith('ingest.')))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, cwd=ROOT, timeout=120)
    assert [name for name in done.stdout.split() if name.startswith(("ingest.read", "ingest.query.files"))] == []


def output(capsys, *words: object) -> tuple[int, str]:
    capsys.readouterr()
    status = command([*map(str, words)])
    return status, capsys.readouterr().out


SLA = """
objectives:
- {name: slow, percentile: 99, threshold: 20ms, window: 1s}
- {name: fine, percentile: 50, threshold: 1s, window: 1s, by: [host]}
"""
COMMANDS = {
    "percentiles": ["--run", "one", "--by", "host,op", "--step", "2s", "--format", "csv"],
    "percentiles of a stretch": [
        "--run",
        "one",
        "--by",
        "job",
        "--from",
        "+1s",
        "--to",
        "+3s",
        "--step",
        "1s",
        "--format",
        "csv",
    ],
    "percentiles of the whole": ["--run", "*", "--by", "run,op", "--step", "all", "--format", "ndjson"],
    "percentiles as estimates": [
        "--run",
        "one",
        "--step",
        "2s",
        "--estimate",
        "mean-of-means,mean-of-percentiles,weighted-mean",
        "--format",
        "csv",
    ],
    "heatmap": ["--run", "two", "--format", "csv"],
    "distribution": ["--run", "one", "--by", "host", "--format", "csv"],
    "export": ["--run", "one"],
    "export as hlog": ["--run", "one", "--format", "hlog", "--step", "2s"],
    "export as hgrm": ["--run", "two", "--format", "hgrm"],
    "compare": ["--baseline", "one", "--run", "two", "--where", "kind=completion", "--format", "csv"],
    "trend": ["--run", "*", "-p", "99", "--where", "kind=completion", "--format", "csv"],
}


@pytest.mark.parametrize("name", COMMANDS)
def test_h2_a_third_store_answers_commands_as_sqlite_does(there, capsys, name: str) -> None:
    words = [name.split(" ", maxsplit=1)[0]], COMMANDS[name]
    expected = output(capsys, *words[0], there["pair"], *words[1])
    assert expected[0] == 0, capsys.readouterr()
    assert expected[1].count("\n") >= 2
    if name == "export":  # a store gives its windows batch by batch: their order is its own
        found = output(capsys, *words[0], MEMORY, *words[1])
        assert (found[0], sorted(found[1].splitlines())) == (expected[0], sorted(expected[1].splitlines()))
        return
    assert output(capsys, *words[0], MEMORY, *words[1]) == expected


def test_h2_a_third_store_is_checked(there, capsys, tmp_path: Path) -> None:
    sla = tmp_path / "SLA.yml"
    sla.write_text(SLA)
    expected = output(capsys, "check", sla, there["pair"], "--run", "one", "--format", "csv")
    assert expected[0] in (0, 1) and expected[1].startswith("objective,")
    assert output(capsys, "check", sla, MEMORY, "--run", "one", "--format", "csv") == expected


@pytest.mark.slow
def test_h2_a_third_store_has_a_report(there, capsys, tmp_path: Path) -> None:
    found = []
    for url in (there["sqlite"], there["memory"]):
        with open_store(url) as store:
            (run,) = overviews(store, [one.run for one in store.runs()], Question())
            tables = [sorted(csv_lines(percentiles(one, WANTED))) for one in (run.cluster, run.hosts, run.threads)]
            found.append(
                (
                    tables,
                    run.cluster.step_ns,
                    run.notes,
                    parts_from(store, run_names(store), Question(), offsets=True, estimates=True).sections,
                )
            )
    assert found[0] == found[1]
    pytest.importorskip("vl_convert")
    assert output(capsys, "report", there["memory"], "-o", tmp_path / "report.html")[0] == 0
    assert "h2" in (tmp_path / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (
            ["offsets", MEMORY],
            "offsets need the moments of single events, which this store does not keep: name the logs themselves",
        ),
        (["percentiles", MEMORY, "--estimate", "cbt"], "--estimate cbt reads the logs themselves"),
        (
            ["export", MEMORY, "--run", "one", "--format", "documents"],
            "documents are exported from a store of SQLite or Elasticsearch",
        ),
    ],
)
def test_h2_what_a_third_store_cannot_do_it_says(there, capsys, words: list[str], sentence: str) -> None:
    capsys.readouterr()
    assert command(words) == 2
    told = capsys.readouterr()
    assert told.out == "" and sentence in told.err and told.err.count("\n") == 1


def test_h6_long_logs_are_streamed_for_whoever_asks_files(monkeypatch) -> None:
    """The way is chosen in `Files`: a call from Python takes it as the command does."""
    from ingest.query import streaming

    log = ROOT / "tests" / "data" / "hdr" / "2.0.3-3-digits.hlog"
    taken = []
    way = streaming.streamed
    monkeypatch.setattr(streaming, "streamed", lambda *words: taken.append(way(*words)) or taken[-1])
    question = Question(step=10 * SECOND, force=True)
    files = Files([log], ReadOptions(recorded_unit_ns=1000), jobs=1)
    table, facts = files.percentiles(question, WANTED)
    assert len(taken) == 1 and taken[0] is not None
    answer = Files([log], ReadOptions(recorded_unit_ns=1000), jobs=1).answer(question)
    assert list(csv_lines(table)) == list(csv_lines(percentiles(answer, WANTED)))
    assert replace(facts, parts=()) == replace(answer, parts=(), warnings=facts.warnings)
    command([*"percentiles --step 10s --force --format csv --recorded-unit us".split(), str(log)])
    assert len(taken) == 2


def test_h6_commands_know_nothing_of_streaming() -> None:
    for path in sorted((ROOT / "ingest" / "cli").glob("*.py")):
        text = path.read_text(encoding="utf-8")
        assert not any(word in text for word in ("streamed", "long_logs", "query.union", "formats import HDR")), path
