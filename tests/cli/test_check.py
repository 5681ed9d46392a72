"""check as its users run it: every format, files as stores, exit status, what is kept, and a sentence for each mistake."""

from __future__ import annotations

import csv
import gzip
import io
import json
import random
import re
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ingest.cli import run as command
from ingest.objectives.check import Checked, alerting, finding_of
from ingest.objectives.junit import junit
from ingest.objectives.objectives import WORDS, read_objectives
from ingest.query.episodes import ENDED, Episode, Verdict
from ingest.query.story.ground import Finding
from ingest.read.described.description import description_of
from ingest.store import open_store
from ingest.store.sqlite.store import SqliteStore
from oracles import episodes as oracle
from tests.cli.test_commands import EXAMPLE, ROOT, tailboard
from tests.databases import database
from tests.doubles.receiver import receiver
from tests.query.incidents import MS, SECOND, ZERO, as_yaml, drawn, written
from tests.store.grounds import SqliteGround, grounds, loaded

SLA = ROOT / "examples" / "SLA.yml"
COLUMNS = "start,end,peak,samples,worst_host,state"
FORMATS = ("table", "csv", "ndjson", "junit")
SEVERAL = r"""
objectives:
  - {name: "p99 <&> \"hosts\"", percentile: 99, threshold: 50ms, window: 1s, by: [host], no_data: violate}
  - {name: volumes, percentile: 99.9, threshold: 10ms, window: 5s, hold: 10s, for: 10s, by: [volume, op], where: {op: "w*"}}
  - {name: jobs, percentile: 50, threshold: 250us, window: 10s, budget: 50%, by: [job], where: {host: ceph-a}}
  - {name: everything, percentile: 100, threshold: 1s, window: 2s, no_data: violate}
  - {name: good, good: 99% within 50ms, window: 2s, by: [host], budget: 2% of requests}
  - {name: busy, rate: '>= 300/s', window: 1s, by: [host]}
"""


@pytest.fixture
def several(tmp_path: Path) -> Path:
    path = tmp_path / "SLA.yml"
    path.write_text(SEVERAL)
    return path


@pytest.fixture(scope="module", params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def store(request, tmp_path_factory):
    with grounds(request.param, tmp_path_factory.mktemp("store")) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        yield ground


def rows(done) -> list[dict[str, str]]:
    assert done.returncode in (0, 1), done.stderr
    return list(csv.DictReader(io.StringIO(done.stdout)))


# ---- one answer, whatever holds the data -----------------------------------------------------------------------------


@pytest.mark.cases(1)
@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", *(pytest.param(form, marks=pytest.mark.soak) for form in FORMATS[1:])])
def test_files_and_stores_answer_alike_to_the_last_character(store, several: Path, form: str, capsys) -> None:
    told = []
    for source in (str(EXAMPLE), store.url):
        assert command(["check", str(several), source, "--format", form]) == 1
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert "p99" in told[0]


def test_a_store_is_asked_about_hosts_in_episodes_alone(store, monkeypatch, capsys) -> None:
    """Bins of a thousand hosts are many, and most objectives are met; slices of episodes give the worst hosts of the whole."""
    told, asked, ask = [], [], SqliteStore.answer
    monkeypatch.setattr("ingest.objectives.check.ROWS_A_SLICE", 1)
    monkeypatch.setattr(SqliteStore, "answer", lambda self, one: (asked.append(one), ask(self, one))[1])
    for source in (str(EXAMPLE), store.url):
        assert command(["check", source, "--sla", "p99<50ms", "--window", "1s", "--format", "csv"]) == 1
        told.append(capsys.readouterr().out)
    assert told[0] == told[1] and "ceph-" in told[0]
    by_host = [one for one in asked if "host" in one.by]
    assert len(by_host) == len({one.begin for one in by_host}) > 3 or store.url.startswith("http")
    assert command(["check", store.url, "--sla", "p99<100s", "--window", "1s", "--format", "csv"]) == 0
    assert by_host == [one for one in asked if "host" in one.by]


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("--to", "+40s", "--where", "op=write"),
        pytest.param(("--from", "+20s"), marks=pytest.mark.soak),
        pytest.param(("--where", "host=ceph-b"), marks=pytest.mark.soak),
    ],
)
def test_a_part_of_the_data_is_judged_alike(store, several: Path, words: tuple[str, ...], capsys) -> None:
    told = []
    for source in (str(EXAMPLE), store.url):
        assert command(["check", str(several), source, "--format", "csv", *words]) == 1
        told.append(capsys.readouterr().out)
    assert told[0] == told[1]
    assert told[0].count("\n") > 1


@pytest.mark.slow
def test_random_incidents_are_found_in_stores_as_by_the_oracle(tmp_path: Path, capsys) -> None:
    for kind in ("sqlite", "double"):
        with grounds(kind, tmp_path) as ground:
            for seed in (3, 11, 17):
                events, promise = drawn(seed)
                folder = tmp_path / kind / str(seed)
                path = written(folder, events)
                (folder / "SLA.yml").write_text(as_yaml(promise))
                loaded(ground.url, [path], run=f"r{seed}", reading={"description": description_of(str(folder / "events.yml"))})
                words = ["check", str(folder / "SLA.yml"), ground.url, "--run", f"r{seed}", "--format", "ndjson"]
                capsys.readouterr()
                status = command(words)
                told = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
                expected = oracle.episodes_of(events, promise)
                assert status == (bool(expected) if oracle.windows_of(events, promise) else 3), seed
                assert [(one["peak"], one["samples"], one["worst_host"], one["state"]) for one in told] == [
                    (one[3], one[4], one[8], one[9]) for one in expected
                ], seed


def test_runs_are_judged_one_by_one_and_named(tmp_path: Path) -> None:
    sla = tmp_path / "SLA.yml"
    sla.write_text("objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s, where: {run: 'r?'}}\n")
    with grounds("sqlite", tmp_path) as ground:
        slow = {"r1": range(3, 6), "r2": range(10, 12), "other": range(20)}
        for run, seconds in slow.items():
            events = [("h1", "read", ZERO + at * SECOND + 1000, (50 if at in seconds else 1) * MS) for at in range(20)]
            path = written(tmp_path / run, events)
            loaded(ground.url, [path], run=run, reading={"description": description_of(str(tmp_path / run / "events.yml"))})
        found = rows(tailboard("check", sla, ground.url, "--format", "csv", "--time", "elapsed"))
        only = rows(tailboard("check", sla, ground.url, "--format", "csv", "--run", "r2"))
    assert [(row["run"], row["state"]) for row in found] == [("r1", "ended"), ("r2", "ended")]
    assert list(only[0]) == ["objective", *COLUMNS.split(",")]
    assert [row["end"] for row in only] == ["2026-11-20T21:00:16.000Z"]


# ---- the example -----------------------------------------------------------------------------------------------------


def test_the_example_finds_its_stall_and_its_slow_host() -> None:
    done = tailboard("check", SLA, EXAMPLE, "--format", "csv")
    assert done.stdout.splitlines()[0] == f"objective,host,{COLUMNS}"
    found = rows(done)
    stalls = [row for row in found if row["objective"] == "no stall"]
    (slow,) = [row for row in found if row["objective"] == "read p99"]
    (stall,) = stalls
    # PROVENANCE.md: ceph-b stood still from 21:00:34.273 to 21:00:38.274, ceph-c was slow from beginning to end. Until then the
    # window from 34 s on was quick; nothing completed in the three after it, and in the fourth what took 4 s.
    assert (stall["host"], stall["start"], stall["state"]) == ("ceph-b", "2026-11-20T21:00:35.000Z", "ended")
    assert "2026-11-20T21:00:34.273Z" < stall["end"] <= "2026-11-20T21:00:39.000Z"
    assert 3.9e9 < float(stall["peak"]) < 4.1e9
    assert (slow["host"], slow["state"]) == ("ceph-c", "open")
    assert done.returncode == 1


@pytest.mark.slow
def test_the_table_says_what_was_looked_at() -> None:
    told = tailboard("check", SLA, EXAMPLE).stdout
    assert "VIOLATED  no stall: p100 at most 1.00s in windows of 1s" in told
    assert "met  write p90" in told
    assert re.search(r"228 windows of 3 groups, \d+ violated", told.replace("\n", " "))
    assert re.search(r"budget 25 % of the windows: used [\d.]+ %; kept", told)
    assert "2026-11-20, UTC" in told
    assert re.search(r"no stall +ceph-b +21:00:35 .* 4\.0\ds .* ceph-b +ended", told)


GUIDE = ROOT / "docs" / "guides" / "check.md"


def night(start: int, seconds: int, rate: Callable[[int], int], slow: Callable[[int], float]) -> list[tuple[str, str, int, int]]:
    """Return reads of two hosts: about `rate` a second in all, each about `slow` ms, lognormal."""
    noise = random.Random(start)
    return [
        (
            f"h{number % 2 + 1}",
            "read",
            start + at * SECOND + noise.randint(1, 10**6) * 1000,
            round(MS * slow(at) * noise.lognormvariate(0, 0.5)),
        )
        for at in range(seconds)
        for number in range(rate(at) + noise.randint(-3, 3))
    ]


def nights_of_the_guide(folder: Path) -> None:
    """Load the runs of docs/guides/check.md into the default store of a folder, and write its files of objectives there."""
    runs = {
        "nightly-41": night(ZERO, 600, lambda _: 40, lambda _: 1.0),
        "nightly-42": night(
            ZERO + 86_400 * SECOND, 600, lambda at: 20 if 300 <= at < 345 else 36, lambda at: 3.6 if 300 <= at < 345 else 1.2
        ),
        "nightly-43": night(ZERO + 3 * 86_400 * SECOND, 600, lambda _: 39, lambda _: 1.2),
        "test-7": night(ZERO + 2 * 86_400 * SECOND, 1800, lambda _: 40, lambda at: 60.0 if 900 <= at < 1000 else 1.0),
    }
    for run, events in runs.items():
        path = written(folder / run, events)
        reading = {"description": description_of(str(folder / run / "events.yml"))}
        loaded(f"sqlite:{folder / 'tailboard.db'}", [path], run=run, reading=reading)
    for name, text in re.findall(r"```yaml\n# (\w+\.yml)\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        (folder / name).write_text(text)


@pytest.mark.slow
def test_the_sessions_of_the_docs_are_what_the_command_prints(tmp_path: Path) -> None:
    nights_of_the_guide(tmp_path)
    blocks = re.findall(r"```console\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    for block in blocks:
        command_line, *shown = block.splitlines()
        printed = [line.rstrip() for line in tailboard(*shlex.split(command_line)[2:], cwd=tmp_path).stdout.splitlines()]
        assert [line for line in shown if line not in printed] == [], command_line
        assert len(shown) > 1
    assert len(blocks) == 5


def test_every_word_of_an_objective_is_in_the_docs() -> None:
    table = re.findall(r"^\| `(\w+)` \|", GUIDE.read_text(), re.MULTILINE)
    assert [word for word in WORDS if word not in table] == []


@pytest.mark.slow
def test_csv_has_the_columns_of_the_contract_and_ndjson_the_same_values(several: Path) -> None:
    found = rows(tailboard("check", several, EXAMPLE, "--format", "csv"))
    lines = [json.loads(line) for line in tailboard("check", several, EXAMPLE, "--format", "ndjson").stdout.splitlines()]
    assert list(found[0]) == ["objective", "host", "volume", "op", "job", *COLUMNS.replace("peak", "peak,lowest_rate").split(",")]
    assert [{name: "" if value is None else str(value) for name, value in line.items()} for line in lines] == found
    assert [row["start"] for row in found] == sorted(row["start"] for row in found)
    assert all(re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", row["end"]) for row in found)


@pytest.mark.slow
def test_units_and_elapsed_times() -> None:
    plain, scaled = (
        rows(tailboard("check", SLA, EXAMPLE, "--format", "csv", *words)) for words in ((), ("--unit", "ms", "--time", "elapsed"))
    )
    assert [float(row["peak"]) / MS for row in plain] == [float(row["peak"]) for row in scaled]
    assert all(-10 < float(row["start"]) < float(row["end"]) < 80 for row in scaled)


@pytest.mark.slow
def test_objectives_need_no_file(tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    path.write_text("objectives:\n  - {name: p99<50ms, percentile: 99, threshold: 50ms, window: 2s}\n")
    said = ("--sla", "p99<50ms", "--sla", "rate>=300/s", "--window", "2s")
    by_file = tailboard("check", path, EXAMPLE)
    done = tailboard("check", *said, EXAMPLE)
    assert by_file.stdout.splitlines()[:2] == done.stdout.splitlines()[:2]
    assert "rate>=300/s: rate at least 300/s in windows of 2s" in done.stdout
    assert (by_file.returncode, done.returncode) == (1, 1)
    beside = tailboard("check", path, EXAMPLE, *said[2:])
    assert beside.stdout.splitlines()[:2] == done.stdout.splitlines()[:2] and "300/s" in beside.stdout


def test_exit_status_is_0_where_every_objective_is_met(tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    path.write_text("objectives:\n  - {name: a, percentile: 99, threshold: 60s, window: 1s}\n")
    done = tailboard("check", path, EXAMPLE)
    assert (done.returncode, done.stderr) == (0, "")
    assert "no episode" in done.stdout
    empty = tailboard("check", path, EXAMPLE, "--format", "csv")
    assert empty.stdout == f"objective,{COLUMNS}\n"


# ---- JUnit -----------------------------------------------------------------------------------------------------------

# What junit-10.xsd of Jenkins' xUnit plugin (2024) knows: attributes, those that are needed, and elements inside.
CASE = {"skipped", "error", "failure", "rerunFailure", "rerunError", "flakyFailure", "flakyError", "system-out", "system-err"}
SUITE = "name tests failures errors group time skipped timestamp hostname id package file log url"
KNOWN = {
    "testsuites": ({"name", "time", "tests", "failures", "errors"}, set(), {"testsuite"}),
    "testsuite": (
        set(SUITE.split()),
        {"name", "tests", "failures", "errors"},
        {"properties", "testcase", "system-out", "system-err"},
    ),
    "testcase": ({"name", "time", "classname", "group"}, {"name"}, CASE),
    "failure": ({"type", "message"}, set(), set()),
    "skipped": ({"type", "message"}, set(), set()),
    "system-out": (set(), set(), set()),
}


def checked_tree(text: str) -> ET.Element:
    root = ET.fromstring(text.encode())
    assert root.tag == "testsuites"
    for element in root.iter():
        attributes, needed, children = KNOWN[element.tag]
        assert needed <= set(element.attrib) <= attributes and {child.tag for child in element} <= children
    (suite,) = root
    for place in (root, suite):
        assert int(place.get("tests")) == len(suite)
        assert int(place.get("failures")) == len(suite.findall("testcase/failure"))
    assert int(suite.get("skipped")) == len(suite.findall("testcase/skipped"))
    return suite


def test_junit_has_a_case_for_each_objective_and_group(several: Path) -> None:
    suite = checked_tree(tailboard("check", several, EXAMPLE, "--format", "junit").stdout)
    names = [case.get("name") for case in suite]
    assert suite.get("name") == "SLA.yml"
    assert names[:3] == [f'p99 <&> "hosts" (host ceph-{host})' for host in "abc"]
    assert "everything" in names
    failed = {case.get("name"): case.find("failure") for case in suite if case.find("failure") is not None}
    assert 'p99 <&> "hosts" (host ceph-b)' in failed
    assert "peak 4.01s" in failed["everything"].get("message")
    assert "2026-11-20T21:00:38.000Z to " in failed["everything"].text


def test_junit_holds_labels_that_xml_cannot(several: Path) -> None:
    objective = read_objectives(several, {"host", "volume", "op", "job"})[0]
    labels = (("host", "h\x01<]]>&\"'\n\ud800\ufffe"),)
    verdict = Verdict(objective, "r\x0b", labels, "completion", 5, 0, 0, 0, 0, ())
    (case,) = checked_tree(junit(Checked((verdict,)), "a\x00b", "utc"))
    assert case.get("name") == 'p99 <&> "hosts" (host h\\x01<]]>&"\'\n\\ud800\\ufffe)'
    assert case.get("classname") == "r\\x0b"


def test_an_objective_that_nothing_matches_is_named_and_skipped(tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    line = "percentile: 99, threshold: 60s, window: 1s"
    path.write_text(f"objectives:\n  - {{name: a, {line}}}\n  - {{name: trims, {line}, where: {{op: trim}}}}\n")
    done = tailboard("check", path, EXAMPLE, "--format", "junit")
    suite = checked_tree(done.stdout)
    assert [case.get("name") for case in suite.findall("testcase/skipped/..")] == ["trims"]
    assert "trims: not judged" in done.stderr and "nothing matches" in done.stderr
    assert done.returncode == 0


# ---- what is kept ----------------------------------------------------------------------------------------------------


OTHER = "  - {name: c, percentile: 100, threshold: 1h, window: 1s}\n"


def kept(url: str) -> list[tuple]:
    with open_store(url) as store:
        runs = [record.run for record in store.runs()]
        return [
            (one.objective, dict(one.labels), one.start_ns, one.end_ns, one.peak_ns, one.samples, one.state)
            for one in store.episodes(runs)
        ]


@pytest.fixture(params=["sqlite", "double"])
def own(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        yield ground


@pytest.mark.slow
def test_episodes_are_kept_once_and_swept_where_they_no_longer_hold(own, tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"

    def recorded(threshold: str) -> list[tuple]:
        text = "objectives:\n  - {{name: a, percentile: 99, threshold: {}, window: 1s, by: [host]}}\n"
        path.write_text(text.format(threshold) + "  - {name: b, percentile: 100, threshold: 1s, window: 1s}\n")
        assert command(["check", str(path), own.url, "--record", "--format", "csv"]) in (0, 1)
        return kept(own.url)

    assert kept(own.url) == []
    first = recorded("50ms")
    shown = rows(tailboard("check", path, own.url, "--format", "csv"))
    assert [(str(one[4]), str(one[5]), one[6]) for one in sorted(first, key=lambda one: (one[2], one[0]))] == [
        (row["peak"], row["samples"], row["state"]) for row in shown
    ]
    assert recorded("50ms") == first
    fewer = recorded("1s")
    assert {one[0] for one in fewer} == {"a", "b"} and len(fewer) < len(first)
    assert [one for one in recorded("100s") if one[0] == "a"] == []
    assert recorded("50ms") == first
    path.write_text("objectives:\n  - {name: a, percentile: 99, threshold: 1ms, window: 1s, where: {op: trim}}\n" + OTHER)
    assert command(["check", str(path), own.url, "--record", "--format", "csv"]) == 0
    assert {one[0] for one in kept(own.url)} == {"b"}
    assert recorded("50ms") == first
    assert command(["runs", "delete", EXAMPLE.name, "--yes", "--store", own.url]) == 0
    assert kept(own.url) == []


@pytest.mark.slow
def test_episodes_of_a_rate_are_kept(own, tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    path.write_text("objectives:\n  - {name: busy, rate: '>= 200/s', window: 1s, by: [host]}\n" + OTHER)
    assert command(["check", str(path), own.url, "--record", "--format", "csv"]) == 1
    with open_store(own.url) as store:
        found = store.episodes([record.run for record in store.runs()])
    shown = rows(tailboard("check", path, own.url, "--format", "csv"))
    assert [(one.percentile, one.least_rate, one.peak_ns is None) for one in found if one.objective == "busy"][:1] == [
        ("", 200, True)
    ]
    assert [("" if one.lowest_rate is None else f"{one.lowest_rate:g}", one.state) for one in found] == [
        (row["lowest_rate"], row["state"]) for row in shown
    ]


def test_a_store_of_the_version_before_there_were_rates_is_read_and_takes_them(tmp_path: Path) -> None:
    new, older = SqliteGround(tmp_path), tmp_path / "older.db"
    loaded(new.url, [EXAMPLE], run=EXAMPLE.name)
    assert command(["check", str(SLA), new.url, "--record"]) == 1
    with database(older) as db:
        db.executescript((ROOT / "tests" / "data" / "store" / "version-7.sql").read_text())
        db.execute("ATTACH ? AS new", (str(new.path),))
        for (table,) in db.execute("SELECT name FROM main.sqlite_master WHERE type = 'table'").fetchall():
            columns = ",".join(name for (name,) in db.execute(f"SELECT name FROM pragma_table_info('{table}', 'main')"))
            db.execute(f"INSERT INTO {table} ({columns}) SELECT {columns} FROM new.{table}")
    assert kept(f"sqlite:{older}") == kept(new.url) != []
    for url in (f"sqlite:{older}", new.url):
        assert command(["check", "--sla", "rate>=1000/s", url, "--record"]) == 1
    assert kept(f"sqlite:{older}") == kept(new.url)
    with open_store(f"sqlite:{older}") as store:
        assert {each.least_rate for each in store.episodes([record.run for record in store.runs()])} == {None, 1000}


@pytest.mark.slow
def test_a_server_that_was_set_up_before_there_were_rates_is_told_of(tmp_path: Path, capsys) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        name = f"{ground.prefix}-episodes"
        template = dict(ground.client.indices.get_index_template(name=name)["index_templates"][0]["index_template"])
        kept = {word: template[word] for word in ("index_patterns", "composed_of", "priority", "template") if word in template}
        ground.client.indices.put_index_template(name=name, **kept, version=7)
        assert command(["check", str(SLA), ground.url, "--record"]) == 1
        assert command(["check", "--sla", "rate>=800/s", ground.url, "--record"]) == 4
    assert "has no place for episodes of a rate: tailboard store setup" in capsys.readouterr().err


@pytest.mark.slow
def test_a_server_that_was_set_up_before_there_were_episodes_is_told_of(tmp_path: Path, capsys) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        ground.client.indices.delete_index_template(name=f"{ground.prefix}-episodes")
        assert command(["check", str(SLA), ground.url, "--record"]) == 4
    assert f"has no index template {ground.prefix}-episodes: tailboard store setup" in capsys.readouterr().err


@pytest.mark.slow
def test_the_same_episode_has_the_same_id_in_both_stores(tmp_path: Path) -> None:
    ids = []
    for kind in ("sqlite", "double"):
        with grounds(kind, tmp_path) as ground:
            loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
            assert command(["check", str(SLA), ground.url, "--record", "--format", "csv"]) == 1
            with open_store(ground.url) as store:
                ids.append([(one.id, one) for one in store.episodes([record.run for record in store.runs()])])
    assert ids[0] == ids[1] != []


# ---- while a run is watched ------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_watched_run_tells_of_each_beginning_and_end_once(tmp_path: Path) -> None:
    """A run that grows by a second at a time: what is told over all cycles is what the whole run shows."""
    events = [
        ("h1", "read", ZERO + second * SECOND + SECOND // 2, (80 if second in (5, 6, 8, 20, 21, 22, 37) else 1) * MS)
        for second in range(40)
    ]
    path = tmp_path / "SLA.yml"
    path.write_text("objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s, for: 2s, hold: 1s}\n")
    told = []
    with grounds("sqlite", tmp_path) as ground:
        for second in range(2, 41, 2):
            log = written(tmp_path / "log", events[:second])
            loaded(ground.url, [log], run="live", reading={"description": description_of(str(tmp_path / "log" / "events.yml"))})
            # Each cycle in a store and with a memory of its own, as after a restart.
            with open_store(ground.url, write=True) as store:
                judge = alerting(read_objectives(path), lambda one: told.append((one.start_ns, one.end_ns, one.state)), path)
                judge(store, "live")
                judge(store, "live")
        final = kept(ground.url)
    assert [(start, state) for start, _, state in told] == [
        (ZERO + 5 * SECOND, "open"),
        (ZERO + 5 * SECOND, "ended"),
        (ZERO + 20 * SECOND, "open"),
        (ZERO + 20 * SECOND, "ended"),
    ]
    assert [end for _, end, state in told if state == "ended"] == [ZERO + 9 * SECOND, ZERO + 23 * SECOND]
    assert [(one[2], one[3], one[6]) for one in final] == [
        (ZERO + 5 * SECOND, ZERO + 9 * SECOND, "ended"),
        (ZERO + 20 * SECOND, ZERO + 23 * SECOND, "ended"),
    ]


# ---- the webhook -----------------------------------------------------------------------------------------------------


def test_the_webhook_is_told_of_each_episode() -> None:
    with receiver(503) as there:
        done = tailboard("check", SLA, EXAMPLE, "--format", "csv", "--webhook", "env:HOOK", env={"HOOK": there.url})
    assert done.returncode == 1
    assert len(there.taken) == len(rows(done)) == len({one["id"] for one in there.taken})
    assert [one["start"] for one in there.taken] == [row["start"] for row in rows(done)]
    assert re.search(r"sent 127\.0\.0\.1:\d+ \d+ messages", done.stderr)


@pytest.mark.slow
def test_a_webhook_that_fails_says_so_and_the_table_is_there_all_the_same() -> None:
    with receiver(*[404] * 50) as there:
        done = tailboard("check", SLA, EXAMPLE, "--webhook", there.url)
    assert done.returncode == 4
    assert "VIOLATED  no stall" in done.stdout
    assert "refuses" in done.stderr and "it answers 404" in done.stderr
    assert "a-secret-path" not in done.stderr + done.stdout


# ---- mistakes --------------------------------------------------------------------------------------------------------

LINE = "name: a, percentile: 99, threshold: 5ms"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words", "status", "told"),
    [
        ("objectives:\n  - {name: a}\n", (), 3, "SLA.yml:2: the objective has no percentile"),
        ("objectives:\n  - {name: a, rate: '>5'}\n", (), 3, "SLA.yml:2: the objective has no window"),
        (f"objectives:\n  - {{{LINE}, window: 100ms}}\n", (), 3, "SLA.yml:2: a: a step of 100ms is finer than the rows (1s)"),
        (f"objectives:\n  - {{{LINE}, window: 1s, by: [volum]}}\n", (), 3, "SLA.yml:2: there is no label 'volum': do you mean volume?"),
        (f"objectives:\n  - {{{LINE}, window: 1s, budget: 1}}\n", (), 3, "SLA.yml:2: '1' is not a budget"),
        (f"objectives:\n  - {{{LINE}, window: 1s, where: {{op: trim}}}}\n", (), 3, "no objective can be judged: a: nothing matches"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--where", "nolabel=x"), 2, "no label 'nolabel' here"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--run", "other"), 3, "no run is selected"),
        (f"objectives:\n  - {{{LINE}, window: 1s, where: {{op: 'r*'}}}}\n", ("--where", "op=*d"), 3, "SLA.yml:2: where has op: r*"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--record",), 2, "load the files first"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--attribution", "in-flight"), 2, "leave out --attribution"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--from", "+1h"), 3, "no window of this run lies between --from and --to"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--webhook", "nowhere"), 2, "--webhook takes http(s)://HOST/PATH"),
        (None, (), 3, "SLA.yml: there is no such file"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--sla", "p99<5ms", "--sla", "p99<5ms"), 2, "two objectives are called 'p99<5ms'"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--sla", "p99<5"), 2, "'p99<5' is no objective: give a percentile"),
        (f"objectives:\n  - {{{LINE}, window: 1s}}\n", ("--window", "5s"), 2, "--window is for --sla"),
        ("objectives:\n  - {name: a, window: 1s, rate: '< 5/s'}\n", (), 3, "SLA.yml:2: '< 5/s' is no rate"),
        ("objectives:\n  - {name: a, window: 1s, good: 99%}\n", (), 3, "SLA.yml:2: '99%' is no share of good requests"),
        ("objectives:\n  - {name: a, window: 1s, good: 99% < 5ms, rate: '>5'}\n", (), 3, "SLA.yml:2: an objective promises one thing"),
        ("objectives:\n  - {name: a, window: 1s, rate: '>5', budget: 1% of requests}\n", (), 3, "SLA.yml:2: a rate is of windows"),
    ],
)  # fmt: skip
def test_mistakes_are_sentences(tmp_path: Path, text: str | None, words: tuple[str, ...], status: int, told: str) -> None:
    path = tmp_path / "SLA.yml"
    if text is not None:
        path.write_text(text)
    done = tailboard("check", path, EXAMPLE, *words)
    assert told in done.stderr
    assert "Traceback" not in done.stderr
    assert (done.returncode, done.stdout) == (status, "")


@pytest.mark.slow
def test_a_window_that_a_store_does_not_hold_is_named_with_its_line(store, tmp_path: Path) -> None:
    path = tmp_path / "SLA.yml"
    path.write_text(f"objectives:\n  - {{{LINE}, window: 1500ms}}\n")
    done = tailboard("check", path, store.url)
    assert done.returncode == 3
    assert f"{path}:2: a: a step of 1500ms is not a multiple of the stored step 1s" in done.stderr


@pytest.mark.parametrize("sources", [(), ("folder",), ("sqlite:x.db",), ("folder", "other")])
def test_a_check_without_objectives_shows_how_to_give_them(tmp_path: Path, sources: tuple[str, ...]) -> None:
    (tmp_path / "folder").mkdir()
    done = tailboard("check", *sources, cwd=tmp_path)
    typed = " ".join(sources)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"check needs objectives: tailboard check --sla 'p99<5ms' {typed}".rstrip() in done.stderr
    assert f"a file of them first: tailboard check SLA.yml {typed}".rstrip() in done.stderr


@pytest.mark.slow
def test_record_needs_whole_runs_and_a_store_that_is_there(store, tmp_path: Path) -> None:
    part = tailboard("check", SLA, store.url, "--record", "--from", "+10s")
    assert (part.returncode, part.stdout) == (2, "") and "leave out --where, --from, --to and --failures" in part.stderr
    none = tailboard("check", SLA, f"sqlite:{tmp_path / 'none.db'}", "--record")
    assert none.returncode == 4 and "there is no store" in none.stderr
    assert not (tmp_path / "none.db").exists()


def test_standard_input_is_judged_as_the_file(log_of_example: Path) -> None:
    words = ("--t0", "2026-11-20T21:00:00Z", "--format", "csv")
    piped = tailboard("check", SLA, "-", *words, piped=gzip.decompress(log_of_example.read_bytes()).decode())
    assert [(row["objective"], row["start"], row["peak"]) for row in rows(piped)] == [
        (row["objective"], row["start"], row["peak"]) for row in rows(tailboard("check", SLA, log_of_example, *words))
    ]


def test_a_run_without_a_clock_has_elapsed_times(tmp_path: Path, log_of_example: Path) -> None:
    done = tailboard("check", SLA, log_of_example, "--format", "csv")
    assert all(re.fullmatch(r"-?\d+", row["start"]) for row in rows(done))
    refused = tailboard("check", SLA, log_of_example, "--time", "utc")
    assert refused.returncode == 2 and "the start of a run is not known" in refused.stderr


@pytest.fixture
def log_of_example(tmp_path: Path) -> Path:
    source = next(EXAMPLE.rglob("output.1_clat_hist.1.log.ceph-c.gz"))
    shutil.copy(source, tmp_path)
    return tmp_path / source.name


# ---- what an episode belongs to ----------------------------------------------------------------------------------------


def finding(text: str, begin: int, end: int, **who: str) -> Finding:
    times = {"start_ns": begin * SECOND, "end_ns": end * SECOND}
    numbers = {
        "times": None,
        "samples": 1,
        "excess_ns": 1.0,
        "share": 0.1,
        "missing": 0.0,
        "missing_share": 0.0,
        "latency_ns": None,
    }
    words = dict.fromkeys(("kind", "value", "consistent", "against", "command"), "")
    return Finding(run="r", who=tuple(who.items()), text=text, **times, **numbers, **words)


@pytest.mark.parametrize(
    ("where", "labels", "worst", "expected"),
    [
        ({"op": "write"}, {}, "node3", "node3 was throttled"),
        ({"op": "write"}, {}, "node2", "node2 stalled"),
        ({"op": "read"}, {}, "node2", "node2 read was slower"),
        ({"op": "r*"}, {}, "node2", "node2 read was slower"),
        ({"op": "w*\nrandwrite"}, {}, "node1", "all writes were slower"),
        ({}, {"op": "read"}, "node1", ""),
        ({"host": "node[12]"}, {}, "", "node2 read was slower"),
        ({"host": "node4"}, {"op": "read"}, "", ""),
        ({"op": "read", "volume": "1"}, {"host": "node3"}, "node3", ""),
        ({"op": "read", "volume": "0"}, {"host": "node3"}, "node3", "node3 was throttled"),
    ],
)
def test_an_episode_belongs_to_what_fits_its_objective_and_its_worst_host(where, labels, worst: str, expected: str) -> None:
    findings = [
        finding("node2 read was slower", 0, 60, host="node2", op="read"),
        finding("node2 stalled", 27, 32, host="node2"),
        finding("node3 was throttled", 17, 42, host="node3", volume="0"),
        finding("all writes were slower", 20, 40, op="write"),
    ]
    episode = Episode(
        "o", "r", tuple(labels.items()), "", "99", 1, SECOND, 24 * SECOND, 45 * SECOND, None, False, 0, 1, 0, 0, worst, ENDED
    )
    found = finding_of(episode, where, findings)
    assert (found.text if found else "") == expected


@pytest.mark.parametrize(
    ("where", "worst", "belongs"),
    [
        ({}, "node1", True),
        ({}, "node3", False),
        ({"host": "node3"}, "", False),
        ({"host": "node[23]"}, "", True),
        ({"host": "node2"}, "node2", True),
        ({"op": "read"}, "node2", False),
    ],
)
def test_what_happened_to_some_hosts_is_no_cause_of_an_episode_of_others(where, worst: str, belongs: bool) -> None:
    """`2 of 3 hosts write were slower`: `who` is what they have in common."""
    some = replace(finding("2 of 3 hosts write", 20, 40, op="write"), members=((("host", "node1"),), (("host", "node2"),)))
    episode = Episode("o", "r", (), "", "99", 1, SECOND, 24 * SECOND, 45 * SECOND, None, False, 0, 1, 0, 0, worst, ENDED)
    assert (finding_of(episode, where, [some]) is some) == belongs


def test_writes_of_a_throttled_host_belong_to_nothing_on_another_host_or_operation(tmp_path: Path) -> None:
    shutil.unpack_archive(ROOT / "tests" / "data" / "three-hosts" / "results.tar.xz", tmp_path, filter="data")
    done = tailboard("check", SLA, tmp_path / "results")
    assert done.returncode == 1, done.stderr
    belonging = [line for line in done.stdout.splitlines() if " to this: " in line]
    assert any("no stall" in line.partition(" to this: ")[0] and "node2 stalled" in line for line in belonging)
    of_writes = [line.partition(" to this: ")[2] for line in belonging if "write p90" in line.partition(" to this: ")[0]]
    assert all(text.startswith("node3") for text in of_writes), of_writes
