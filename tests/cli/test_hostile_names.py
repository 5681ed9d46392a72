"""File names and labels from outside: what is no Unicode is read and stored, what would act on a terminal is shown."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.plain import as_path, as_text, shown
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


def test_g2_a_name_that_is_no_utf8_is_loaded_and_watched(odd: Path, tmp_path: Path) -> None:
    url = f"sqlite:{tmp_path / 'x.db'}"
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8:strict"}

    def tailboard(*words: str) -> subprocess.CompletedProcess[str]:
        line = [sys.executable, "-m", "ingest", *words]
        return subprocess.run(line, capture_output=True, text=True, env=environment, check=False, timeout=120)

    for words in (
        ("load", str(odd), "--run", "r", "--store", url, *T0),
        ("load", str(odd), "--run", "r", "--store", url, *T0),
        ("watch", str(odd), "--run", "w", "--store", url, "--until-idle", "1s", *T0),
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
