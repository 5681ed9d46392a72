"""Objectives with phases as their users run them: files with --marks, both stores, every format, watched runs, webhook, page."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from ingest.cli import run as command
from ingest.cli.watch import Telling
from ingest.core.units import utc
from ingest.objectives.check import alerting
from ingest.objectives.objectives import read_objectives
from ingest.read.described.description import description_of
from ingest.read.marks import read_marks
from ingest.store import open_store
from ingest.view.kibana.rules import reasons_against
from tests.cli.test_commands import tailboard
from tests.doubles.receiver import receiver
from tests.query.incidents import MS, SECOND, ZERO, written
from tests.store.grounds import grounds, loaded

SLA = """
objectives:
  - {name: always, percentile: 99, threshold: 100ms, window: 1s}
  - {name: quiet, percentile: 99, threshold: 10ms, window: 1s, outside: 'rebalance*', by: [host]}
  - {name: moving, percentile: 99, threshold: 20ms, window: 2s, during: 'rebalance*'}
  - {name: cached, percentile: 99, threshold: 5ms, window: 1s, after: cache on, outside: 'rebalance*', budget: 10%}
  - {name: cold, percentile: 99, threshold: 20ms, window: 1s, before: cache on}
"""
MARKS = [
    (5 * SECOND, None, "cache on"),
    (10 * SECOND + 300 * MS, 13 * SECOND, "rebalance 1"),
    (20 * SECOND, 22 * SECOND, "rebalance 2"),
]
SLOW = (2, 9, 10, 11, 12, 17, 20, 21)


def events(seconds: range) -> list[tuple[str, str, int, int]]:
    return [
        (host, "read", ZERO + second * SECOND + SECOND // 2, (50 if second in SLOW and host == "h1" else 2) * MS)
        for second in seconds
        for host in ("h1", "h2")
    ]


@pytest.fixture
def ground_files(tmp_path: Path) -> dict[str, Path]:
    (tmp_path / "SLA.yml").write_text(SLA)
    lines = [f"{utc(ZERO + low)},{'' if high is None else utc(ZERO + high)},{text}" for low, high, text in MARKS]
    (tmp_path / "marks.csv").write_text("\n".join(["time,end,text", *lines, ""]))
    log = written(tmp_path / "r", events(range(30)))
    return {"sla": tmp_path / "SLA.yml", "marks": tmp_path / "marks.csv", "log": log, "described": tmp_path / "r" / "events.yml"}


def told(capsys, *words: object, status: int = 1) -> tuple[str, str]:
    capsys.readouterr()
    assert command([str(word) for word in words]) == status, capsys.readouterr().err
    done = capsys.readouterr()
    return done.out, done.err


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_files_with_marks_and_stores_that_keep_them_judge_alike(tmp_path: Path, ground_files, kind: str, capsys) -> None:
    sla, log, marks, described = (ground_files[name] for name in ("sla", "log", "marks", "described"))
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [log], run="r", reading={"description": description_of(str(described))})
        for form in ("csv", "ndjson", "junit", "table"):
            from_files = told(
                capsys, "check", sla, log, "--input-format", described, "--run", "r", "--marks", marks, "--format", form
            )
            given = told(capsys, "check", sla, ground.url, "--marks", marks, "--format", form)
            assert given[0] == from_files[0]
        assert command(["mark", "--store", ground.url, "--run", "r", "--marks", str(marks)]) == 0
        out, err = told(capsys, "check", sla, ground.url, "--format", "csv", "--time", "elapsed")
        kept = told(capsys, "check", sla, ground.url, "--record", "--format", "csv", "--time", "elapsed")[0]
        assert kept == out
        with open_store(ground.url) as store:
            assert len(store.episodes(["r"])) == out.count("\n") - 1
    rows = [(row["objective"], row["host"], row["start"], row["end"]) for row in csv.DictReader(io.StringIO(out))]
    # The first operation is half a second after the first edge, from where elapsed times count: windows begin at whole seconds.
    assert sorted((name, host, round(float(start) + 0.5), round(float(end) + 0.5)) for name, host, start, end in rows) == [
        ("cached", "", 9, 10),
        ("cached", "", 17, 18),
        ("cold", "", 2, 3),
        ("moving", "", 20, 22),
        ("quiet", "h1", 2, 3),
        ("quiet", "h1", 9, 10),
        ("quiet", "h1", 17, 18),
    ]
    assert "quiet: of the windows 10 are not judged: they do not lie wholly outside 'rebalance*'" in err
    assert "moving: of the windows" in err


def test_the_table_and_junit_say_which_part_was_judged_and_how_many_windows_were_not(ground_files, capsys) -> None:
    words = ("check", ground_files["sla"], ground_files["log"], "--input-format", ground_files["described"])
    out, _ = told(capsys, *words, "--marks", ground_files["marks"])
    assert "VIOLATED  quiet: p99 at most 10.0ms in windows of 1s, outside 'rebalance*'" in out
    assert "50 windows of 2 groups, 3 violated; " in out
    assert "; 10 more are not judged: they do not lie wholly outside 'rebalance*'\n" in out
    assert "cached: p99 at most 5.00ms in windows of 1s, outside 'rebalance*', after 'cache on'" in out
    assert "20 windows, 2 violated; " in out
    assert "; 10 more are not judged: they do not lie wholly outside 'rebalance*' and after 'cache on'\n" in out
    out, _ = told(capsys, *words, "--marks", ground_files["marks"], "--format", "junit")
    cases = {case.get("name"): case for case in ET.fromstring(out).iter("testcase")}
    assert cases["quiet (host h2)"].get("time") == "25"
    assert "5 more are not judged" in "".join(cases["quiet (host h2)"].itertext())
    assert cases["moving"].get("time") == "2"


def test_without_its_marks_an_objective_is_named_and_skipped_and_outside_is_the_whole_run(ground_files, capsys) -> None:
    words = ("check", ground_files["sla"], ground_files["log"], "--input-format", ground_files["described"])
    out, err = told(capsys, *words, "--format", "junit")
    for name, phase in (("moving", "during: rebalance*"), ("cold", "before: cache on"), ("cached", "after: cache on")):
        assert f"{name}: not judged in " in err
        assert f"no mark of the run matches {phase} (its marks: none)" in err
    assert "quiet: no mark of " in err
    assert "matches outside: rebalance*: nothing is left out there" in err
    assert {case.get("name") for case in ET.fromstring(out).iter("testcase") if case.find("skipped") is not None} == {
        "moving",
        "cold",
        "cached",
    }


@pytest.mark.parametrize(
    ("more", "status", "text"),
    [
        ("during: cache on", 3, "SLA.yml:2: a: during: cache on matches the mark 'cache on' of r, which has no end"),
        (
            "during: 'nothing*'",
            3,
            "no objective can be judged: a: no mark of the run matches during: nothing* (its marks: 'cache on'",
        ),
        ("during: [a]", 3, "SLA.yml:2: during takes one value, not a list and not a mapping"),
        ("during: ''", 3, "SLA.yml:2: during is empty: give a value or leave the key out"),
        ("durng: a", 3, "SLA.yml:2: there is no key 'durng' in an objective: do you mean during?"),
        ("before: a, before: b", 3, "SLA.yml:2: 'before' appears twice in an objective"),
        ("window: 20m, during: 'rebalance*'", 3, "no window of 20m lies wholly during 'rebalance*'"),
    ],
)
def test_mistakes_in_phases_are_sentences(ground_files, more: str, status: int, text: str, capsys) -> None:
    window = "" if "window" in more else "window: 1s, "
    ground_files["sla"].write_text(f"objectives:\n  - {{name: a, percentile: 99, threshold: 5ms, {window}{more}}}\n")
    words = ("check", ground_files["sla"], ground_files["log"], "--input-format", ground_files["described"], "--run", "r")
    assert text in told(capsys, *words, "--marks", ground_files["marks"], status=status)[1]


def test_record_judges_by_the_marks_of_the_store(ground_files, capsys) -> None:
    words = ("check", ground_files["sla"], "sqlite:x.db", "--record", "--marks", ground_files["marks"])
    assert "--record judges by the marks of the store: note them first" in told(capsys, *words, status=2)[1]


def test_a_watched_run_is_judged_by_the_marks_that_came_so_far(ground_files, tmp_path: Path) -> None:
    """A mark gets its end later: until then nothing is judged during it, and the watch goes on."""
    sla, news = tmp_path / "own.yml", []
    sla.write_text(
        "objectives:\n  - {name: moving, percentile: 99, threshold: 20ms, window: 1s, during: 'rebalance*'}\n"
        "  - {name: quiet, percentile: 99, threshold: 20ms, window: 1s, outside: 'rebalance*'}\n"
    )
    judge = alerting(
        read_objectives(sla), lambda one: news.append((one.objective, (one.start_ns - ZERO) // SECOND, one.state)), sla
    )
    with grounds("sqlite", tmp_path) as ground:
        for until in (8, 12, 16, 30):
            log = written(tmp_path / "log", events(range(until)))
            loaded(ground.url, [log], run="r", reading={"description": description_of(str(ground_files["described"]))})
            with open_store(ground.url, write=True) as store:
                if until == 12:
                    store.mark("r", ZERO + 10 * SECOND, "rebalance 1")
                if until == 16:
                    store.mark("r", ZERO + 10 * SECOND, "rebalance 1", ZERO + 13 * SECOND)
                checked = judge(store, "r")
                assert checked is not None
                assert [entry.objective.name for entry in checked.unjudged] == (["moving"] if until < 16 else [])
    assert news == [
        ("quiet", 2, "open"),
        ("quiet", 2, "ended"),
        ("quiet", 9, "open"),
        ("moving", 10, "open"),
        ("moving", 10, "ended"),
        ("quiet", 9, "ended"),
        ("quiet", 17, "open"),
        ("quiet", 17, "ended"),
        ("quiet", 20, "open"),
        ("quiet", 20, "ended"),
    ]


def test_the_webhook_names_the_phase(ground_files, capsys) -> None:
    words = (ground_files["log"], "--input-format", ground_files["described"], "--marks", ground_files["marks"])
    with receiver() as there:
        told(capsys, "check", ground_files["sla"], *words, "--webhook", there.url)
    assert {(body["objective"], body.get("phase")) for body in there.taken} == {
        ("quiet", "outside 'rebalance*'"),
        ("moving", "during 'rebalance*'"),
        ("cached", "outside 'rebalance*', after 'cache on'"),
        ("cold", "before 'cache on'"),
    }
    assert any("(outside 'rebalance*'): p99" in body["text"] for body in there.taken)


@pytest.mark.slow
def test_the_page_draws_the_episodes_of_phases_by_the_marks_that_are_given(ground_files, tmp_path: Path) -> None:
    words = (ground_files["log"], "--input-format", ground_files["described"], "--marks", ground_files["marks"])
    page = tmp_path / "page.html"
    done = tailboard("report", *words, "--objectives", ground_files["sla"], "-o", page)
    assert done.returncode == 0, done.stderr
    assert "p99 at most 20.0ms in 2s, during &#x27;rebalance*&#x27;" in page.read_text()


def test_a_rule_of_kibana_is_refused_with_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "SLA.yml").write_text(
        "objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 10s, where: {kind: completion, op: read}, "
        "outside: 'rebalance*'}\n"
    )
    (objective,) = read_objectives(tmp_path / "SLA.yml")
    assert reasons_against(objective) == ("a rule sees windows, not marks, and cannot know what lies outside 'rebalance*'",)


# ---- compare --at ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_one_run_is_compared_with_itself_from_files_and_stores_alike(tmp_path: Path, ground_files, kind: str, capsys) -> None:
    log, marks, described = (ground_files[name] for name in ("log", "marks", "described"))
    with grounds(kind, tmp_path) as ground:
        loaded(ground.url, [log], run="r", reading={"description": description_of(str(described))})
        assert command(["mark", "--store", ground.url, "--run", "r", "--marks", str(marks)]) == 0
        for at, counts in (("cache on", {"10", "50"}), ("rebalance*", {"50", "8"})):
            words = ("--at", at, "--format", "csv", "-p", "50,75")
            out, err = told(capsys, "compare", ground.url, "--run", "r", *words, status=0)
            from_files = told(
                capsys, "compare", log, "--input-format", described, "--run", "r", *words, "--marks", marks, status=0
            )
            assert from_files[0] == out
            (counted,) = {(row["count_baseline"], row["count_run"]) for row in csv.DictReader(io.StringIO(out))}
            assert set(counted) == counts
            # 10.3 s to 13 s: the window from 10 s to 11 s is on neither side; the cache goes on at an edge.
            assert ("1 window of 1s is on neither side" in err) == (at != "cache on")
        ratios = {row["percentile"]: float(row["ratio"]) for row in csv.DictReader(io.StringIO(out))}
        assert ratios["50"] == 1 and 20 < ratios["75"] < 30


@pytest.mark.parametrize(
    ("words", "status", "text"),
    [
        ((), 2, "compare takes two runs, as in compare A B, or --baseline GLOB --run GLOB; or one run and --at MARK"),
        (("--baseline", "x", "--at", "cache on"), 2, "--at compares a run with itself: leave out --baseline and --merge-runs"),
        (("--baseline", "x", "--marks"), 2, "--marks are for --at MARK, which compares a run with itself"),
        (
            ("--at", "nothing"),
            3,
            "--at nothing matches no mark of r (its marks: none): note it with tailboard runs mark, or give --marks",
        ),
    ],
)
def test_mistakes_with_at_are_sentences(ground_files, words: tuple[str, ...], status: int, text: str, capsys) -> None:
    more = (ground_files["marks"],) if words[-1:] == ("--marks",) else ()
    call = ("compare", ground_files["log"], "--input-format", ground_files["described"], "--run", "r", *words, *more)
    assert text in told(capsys, *call, status=status)[1]


@pytest.mark.slow
def test_the_page_of_one_run_shows_both_sides(ground_files, tmp_path: Path) -> None:
    page = tmp_path / "page.html"
    words = (ground_files["log"], "--input-format", ground_files["described"], "--marks", ground_files["marks"])
    done = tailboard("compare", *words, "--run", "*", "--at", "rebalance*", "--by", "host", "-o", page)
    assert done.returncode == 0, done.stderr
    assert "during &#x27;rebalance*&#x27; against" in page.read_text()


def test_a_watch_judges_by_the_marks_of_its_files_and_says_at_its_end_which_part_never_came(
    ground_files, tmp_path: Path, capsys
) -> None:
    (tmp_path / "open.csv").write_text(f"time,end,text\n{utc(ZERO + 5 * SECOND)},,rebalance 0\n")
    for marks, expected in ((ground_files["marks"], []), (tmp_path / "open.csv", ["moving", "cached", "cold"])):
        (tmp_path / marks.stem).mkdir()
        with grounds("sqlite", tmp_path / marks.stem) as ground:
            reading = {"description": description_of(str(ground_files["described"]))}
            loaded(ground.url, [ground_files["log"]], run="r", reading=reading)
            with open_store(ground.url, write=True) as store:
                telling = Telling(ground_files["sla"], None, read_marks(marks).marks)
                telling(store, "r")
                capsys.readouterr()
                telling.end(store, ["r"])
                err = capsys.readouterr().err
                assert [line.split(": ")[1] for line in err.splitlines()] == expected
                assert len(store.episodes(["r"])) > 3
    assert "moving: not judged in r: during: rebalance* matches the mark 'rebalance 0' of r, which has no end" in err
    assert "cold: not judged in r: no mark of the run matches before: cache on (its marks: 'rebalance 0')" in err
