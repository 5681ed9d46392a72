"""File names and labels from outside: what is no Unicode is read and stored, what would act on a terminal is shown."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from xml.dom import minidom

import pytest

from ingest.cli import run as command
from ingest.core.errors import as_path, as_text, shown
from tests.store.grounds import grounds, loaded

FIO = Path(__file__).parents[1] / "data" / "fio"
HOSTILE = "evil\x1b[31m\x1b]0;owned\x07\u202e"
FORGED = f"{HOSTILE}\nforged: line"
WRITTEN = r"evil\x1b[31m\x1b]0;owned\x07\u202e"
T0 = ("--t0", "2026-11-20T21:00:00Z")
SLA = "objectives:\n  - {name: quick, percentile: 99, threshold: 1us, window: 1s, by: [process]}\n"


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    """A log, one of a hostile name, and one that is refused under such a name."""
    folder = tmp_path / "logs"
    folder.mkdir()
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", folder)
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", folder / f"{HOSTILE}_clat_hist.2.log")
    (folder / f"{HOSTILE}_clat_hist.3.log").write_text("1, 2, 3\n")
    (folder / FORGED).write_text("nothing that is known")
    return folder


@pytest.fixture
def odd(tmp_path: Path) -> Path:
    """A folder with a log whose name is no UTF-8, beside others."""
    folder = tmp_path / "odd"
    folder.mkdir()
    shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", folder)
    try:
        shutil.copy(os.fsencode(FIO / "randrw" / "a_clat_hist.1.log"), os.fsencode(folder) + b"/caf\xe9_clat_hist.2.log")
    except OSError:
        pytest.skip("this file system takes Unicode alone")
    return folder


def harmless(text: str) -> None:
    assert not set("\x1b\x07\u202e") & set(text), text
    assert not any(line.startswith("forged") for line in text.splitlines())


@pytest.mark.parametrize(
    "words",
    [
        ("inspect",),
        ("percentiles", "--step", "all", "--by", "process"),
        ("percentiles", "--by", "process"),
        ("distribution", "--by", "process"),
        ("heatmap", "--by", "process"),
        ("heatmap", "--highlight", "process=evil*"),
    ],
)
def test_g1_no_name_acts_on_the_terminal(hostile: Path, capsys, words: tuple[str, ...]) -> None:
    assert command([words[0], str(hostile), *words[1:], *T0]) == 0
    said = capsys.readouterr()
    harmless(said.out + said.err)
    assert "evil" in said.out + said.err


def test_g1_loads_runs_errors_and_verdicts(hostile: Path, tmp_path: Path, capsys) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    (tmp_path / "SLA.yml").write_text(SLA)
    assert command(["load", str(hostile), "--run", "r\x1bc", "--store", url, *T0]) == 0
    assert command(["runs", "list", "--store", url]) == 0
    assert command(["percentiles", str(hostile / f"{HOSTILE}_clat_hist.3.log")]) == 3
    assert command(["percentiles", str(hostile / FORGED / "none")]) == 3
    assert command(["percentiles", url, "--run", "\x1b[31mnone"]) == 3
    assert command(["percentiles", url, "--where", f"{FORGED}=x"]) == 2
    assert command(["percentiles", url, f"--{FORGED}"]) == 2
    assert command(["check", str(tmp_path / "SLA.yml"), url]) == 1
    assert command(["trend", str(hostile), *T0, "--by", "process"]) == 0
    said = capsys.readouterr()
    harmless(said.out + said.err)
    assert WRITTEN in said.err and WRITTEN in said.out


def test_g1_values_of_csv_and_ndjson_are_as_they_are(hostile: Path, capsys) -> None:
    for form in ("csv", "ndjson"):
        assert command(["percentiles", str(hostile), "--step", "all", "--by", "process", "--format", form, *T0]) == 0
        said = capsys.readouterr()
        harmless(said.err)
        rows = csv.DictReader(io.StringIO(said.out)) if form == "csv" else map(json.loads, said.out.split("\n")[:-1])
        assert {row["process"] for row in rows} == {"a", HOSTILE}


@pytest.mark.slow
def test_g2_a_name_that_is_no_utf8_is_loaded_and_watched(odd: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}

    def tailboard(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "ingest", *words]
        return subprocess.run(line, capture_output=True, text=True, env=environment, check=False, timeout=120)

    for words in (
        ("load", str(odd), "--run", "r", "--store", url, *T0),
        ("load", str(odd), "--run", "r", "--store", url, *T0),
        ("watch", str(odd), "--run", "w", "--store", url, "--until-idle", "50ms", "--interval", "10ms", *T0),
        ("inspect", str(odd)),
        ("percentiles", str(odd), "--by", "process"),
        ("report", str(odd), "-o", str(tmp_path / "x.html")),
        ("runs", "show", "r", "--store", url),
    ):
        done = tailboard(*words)
        assert done.returncode == 0, done.stderr
    found = tailboard("percentiles", url, "--step", "all", "--by", "run,process", "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(found.stdout)))
    assert {(row["run"], row["process"]) for row in rows} == {(run, name) for run in "rw" for name in ("a", r"caf\xe9")}
    assert len({row["count"] for row in rows}) == 1


def test_g2_it_is_loaded_into_elasticsearch(odd: Path, tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        account = loaded(ground.url, [odd], reading={"t0": 1_763_672_400_000_000_000})
        assert account.loaded == 2 and not account.refused
        assert {one["process"] for one in ground.documents()} == {"a", r"caf\xe9"}


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        ("percentiles", "--by", "process", "--format", "svg"),
        ("distribution", "--by", "process", "--format", "svg"),
        ("check", "--format", "junit"),
    ],
)
def test_g1_pictures_and_junit_are_xml(hostile: Path, tmp_path: Path, capfd, words: tuple[str, ...]) -> None:
    """Characters that XML does not have end the program that draws; other programs refuse the document."""
    pytest.importorskip("vl_convert")
    (hostile / f"{HOSTILE}_clat_hist.3.log").unlink()
    (hostile / f"{HOSTILE}_clat_hist.2.log").rename(hostile / f"{HOSTILE}\x01\uffff&<]]>\n_clat_hist.2.log")
    (tmp_path / "SLA.yml").write_text(SLA)
    before = (words[0], str(tmp_path / "SLA.yml")) if words[0] == "check" else words[:1]
    status = command([*before, str(hostile), *words[1:], *T0])
    said = capfd.readouterr()
    assert status == (words[0] == "check"), said.err
    found = "".join(minidom.parseString(said.out).toxml().splitlines())
    harmless(said.out + said.err)
    whole = r"evil\x1b[31m\x1b]0;owned\x07\u202e\x01\uffff"
    assert whole in found or (words[0] != "check" and re.search(r"evil\\[^<]*…", found))  # pictures cut labels


def test_g1_logs_for_other_tools_keep_their_lines(hostile: Path, tmp_path: Path, capsys) -> None:
    (hostile / f"{HOSTILE}_clat_hist.3.log").unlink()
    (hostile / f"{HOSTILE}_clat_hist.2.log").rename(hostile / "a,b\nforged_clat_hist.2.log")
    assert command(["export", str(hostile), "--format", "hlog", "--by", "op,kind,process", *T0]) == 0
    log = capsys.readouterr().out
    tags = [line.split(",")[0] for line in log.splitlines() if line.startswith("Tag=")]
    assert len(tags) == len(log.splitlines()) - 5 and any(r"a_b\nforged" in tag for tag in tags)
    (tmp_path / "x.hlog").write_text(log)
    assert command(["percentiles", str(tmp_path / "x.hlog"), "--step", "all", "--by", "tag"]) == 0
    assert command(["export", str(hostile), "--format", "hgrm", "--by", "process", *T0]) == 0
    said = capsys.readouterr()
    assert r"#[process a,b\nforged_clat_hist.2]" in said.out or r"#[process a,b\nforged]" in said.out
    harmless(said.out + said.err)


def test_g1_messages_to_others_have_no_controls() -> None:
    from ingest.objectives.webhook import sentence
    from ingest.query.episodes import Episode

    one = Episode("quick", FORGED, (("process", HOSTILE),), "total", "99", 1, 1, 0, 1, 2, False, 1, 1, 0, 0, HOSTILE, "ended")
    harmless(sentence(one))


def test_g2_words_of_a_call_that_are_no_utf8(odd: Path, tmp_path: Path, capsys) -> None:
    """A shell hands on whatever bytes were typed: as labels, runs, texts and selectors they are what names of files become."""
    url, byte = f"sqlite:{tmp_path / 'x.db'}", os.fsdecode(b"\xe9\x1b")
    load = ["load", str(odd), "--run", f"r{byte}", "--label", f"k{byte}={byte}", "--host", f"h{byte}", "--store", url]
    assert command([*load, *T0]) == 0
    assert command(["mark", "--run", f"r{byte}", "--at", "+1s", f"text {byte}", "--store", url]) == 0
    for words in (
        ["percentiles", url, "--where", f"host=h{byte}", "--by", "host"],
        ["percentiles", url, "--run", f"r{byte}", "--format", "csv"],
        ["export", url, "--format", "documents"],
        ["trend", url, "--run", f"r{byte}"],
        ["runs", "show", f"r{byte}", "--store", url],
        ["runs", "delete", f"r{byte}", "--yes", "--store", url],
    ):
        assert command(words) == 0, (words, capsys.readouterr().err)
        capsys.readouterr().out.encode()
    for words in (["percentiles", f"no{byte}"], ["percentiles", f"sqlite:no{byte}"], ["export", url, "--run", byte]):
        assert command(words) in (3, 4)
        harmless(capsys.readouterr().err)


def test_text_and_paths_come_back(tmp_path: Path) -> None:
    assert as_text("caf\udce9 \ud800 \x1b\u20ac") == "caf\\xe9 \\ud800 \x1b\u20ac"
    assert shown("a\x1b\n\x85\u2028b") == r"a\x1b\n\x85\u2028b" and shown("b\u00e9\u20ac\u28ff") == "b\u00e9\u20ac\u28ff"
    plain = tmp_path / r"x\xe9.log"
    assert as_path(str(plain)) == plain
    try:
        raw = Path(os.fsdecode(os.fsencode(tmp_path) + b"/x\xe9.log"))
        raw.write_text("")
    except OSError:
        return
    assert as_path(as_text(raw)) == raw
    plain.write_text("")
    assert as_path(str(plain)) == plain
