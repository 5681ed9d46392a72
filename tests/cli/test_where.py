"""--where and --highlight: several values of one label are alternatives, in every command and whatever answers it."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ingest.cli import run as command
from tests.store.grounds import FIO, grounds

COMMANDS = {
    "percentiles": ["--step", "all", "-p", "0,50,90,100", "--format", "csv"],
    "percentiles over time": ["--step", "1s", "--format", "ndjson"],
    "percentiles by host": ["--by", "host", "--step", "all", "--format", "csv"],
    "heatmap": ["--step", "1s", "--format", "csv"],
    "distribution": ["--format", "csv"],
    "explain": ["--json"],
    "explain --box": ["--box", "..,10ms..", "--format", "csv"],
    "export": ["--format", "csv"],
}
RELATED = {  # what selects the same two hosts of three: with one glob, or as alternatives in any order
    "one glob": ["--where", "host=h[12]"],
    "in order": ["--where", "host=h1", "--where", "host=h2"],
    "the other way round": ["--where", "host=h2", "--where", "host=h1"],
    "twice": ["--where", "host=h1", "--where", "host=h2", "--where", "host=h1"],
    "with one that is not there": ["--where", "host=h1", "--where", "host=h9", "--where", "host=h2"],
    "all but one": ["--where", "host!=h3"],
    "all but what two globs match": ["--where", "host!=h3*", "--where", "host!=[!h]*"],
    "those of a glob but one": ["--where", "host=h*", "--where", "host!=h3"],
    "with another label": ["--where", "op=read", "--where", "host=h2", "--where", "op=write", "--where", "host=h1"],
}


def written(folder: Path) -> Path:
    """Three hosts, 20 operations each: 40 ms on h2, 1 ms on the others."""
    for host, spent in (("h1", 1000), ("h2", 40_000), ("h3", 1000)):
        (folder / "a" / host).mkdir(parents=True)
        starts = range(1_790_000_000_100_000, 1_790_000_002_100_000, 100_000)
        rows = [f"{start},{start + spent},read" for start in starts]
        (folder / "a" / host / "ops.csv").write_text("start_us,end_us,op\n" + "\n".join(rows) + "\n")
    return folder / "a"


@pytest.fixture(scope="module", params=["files", "sqlite", "double"])
def place(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    folder = tmp_path_factory.mktemp("where")
    logs = written(folder)
    if request.param == "files":
        yield str(logs)
        return
    with grounds(request.param, folder) as ground:
        assert command(["load", str(logs), "--run", "r", "--store", ground.url]) == 0
        yield ground.url


@pytest.mark.cases(14)
@pytest.mark.parametrize("name", COMMANDS)
def test_n18_values_of_one_label_are_alternatives(name: str, place: str, capsys: Any) -> None:
    said = {}
    for how, words in RELATED.items():
        capsys.readouterr()
        assert command([name.split(maxsplit=1)[0], place, *words, *COMMANDS[name]]) == 0, (how, capsys.readouterr().err)
        said[how] = capsys.readouterr().out
    said = {how: text for how, text in said.items() if name != "explain" or how == "one glob" or text}
    assert len(set(said.values())) == 1, said
    assert command([name.split(maxsplit=1)[0], place, "--where", "host=h1", *COMMANDS[name]]) in (0, 3)
    assert capsys.readouterr().out != said["one glob"], "it is no answer about one of them"


def test_n18_forty_samples_of_two_hosts(place: str, capsys: Any) -> None:
    words = ["--where", "host=h1", "--where", "host=h2", "--step", "all", "-p", "50,90", "--format", "csv", "--unit", "ms"]
    assert command(["percentiles", place, *words]) == 0
    head, row = (line.split(",") for line in capsys.readouterr().out.splitlines())
    cells = dict(zip(head, row, strict=True))
    assert cells["count"] == "40" and round(float(cells["p50"])) == 1 and round(float(cells["p90"])) == 40


def test_n18_alternatives_are_highlighted_together(place: str, capsys: Any) -> None:
    lit = {}
    for words in (["host=h[12]"], ["host=h1", "host=h2"], ["host=h2", "host=h1"], ["host!=h3"]):
        options = [word for glob in words for word in ("--highlight", glob)]
        assert command(["heatmap", place, "--step", "1s", "--format", "csv", *options]) == 0
        lit[" ".join(words)] = capsys.readouterr().out
    assert len(set(lit.values())) == 1
    head, *rows = (line.split(",") for line in lit["host=h1 host=h2"].splitlines())
    assert sum(int(row[head.index("highlighted")]) for row in rows) == 40


def test_n18_what_matches_nothing_is_named(place: str, capsys: Any) -> None:
    assert command(["percentiles", place, "--where", "host=h7", "--where", "host=h8"]) == 3
    assert "no host matches h7 or h8: there are h1, h2, h3" in capsys.readouterr().err
    assert command(["percentiles", place, "--where", "op!=read"]) == 3
    assert "no op matches anything but read: " in capsys.readouterr().err


@pytest.mark.parametrize("words", [["percentiles"], ["heatmap", "--step", "1s"], ["distribution"]], ids=str)
def test_an_alternative_that_is_not_there_is_named(words: list[str], place: str, capsys: Any) -> None:
    name, *rest = words
    for globs, said in (
        (("host=h1", "host=h9", "op=read"), "no host matches h9: the answer is of the others"),
        (("host=x*", "host=h1", "host=h9"), "no host matches x* or h9: the answer is of the others"),
        (("host=h1", "host=h[23]"), ""),
    ):
        capsys.readouterr()
        assert command([name, place, *rest, *(word for glob in globs for word in ("--where", glob))]) == 0
        told = capsys.readouterr()
        assert [line.partition("no host")[2] for line in (told.out + told.err).splitlines() if "no host" in line] == (
            [said.removeprefix("no host")] if said else []
        )


@pytest.mark.parametrize(
    ("globs", "said"),
    [
        (("host!=h9",), "no host matches h9, so nothing is left out for it: there are h1, h2, h3"),
        (("host!=h3", "host!=h9", "host!=x*"), "no host matches h9 or x*, so nothing is left out for it: there are h1"),
        (("op!=write",), "no op matches write, so nothing is left out for it: there is read"),
        (("run!=nope",), "no run matches nope, so nothing is left out for it: there is "),
        (("host=h[12]", "host!=h3"), "no host matches h3, so nothing is left out for it: "),
        (("host!=h3",), ""),
        (("host=h*", "host!=h[3-9]", "outcome!=failed"), "no outcome matches failed, so nothing is left out for it: there is ok"),
    ],
)
def test_what_nothing_is_left_out_for_is_named(globs: tuple[str, ...], said: str, place: str, capsys: Any) -> None:
    capsys.readouterr()
    words = [word for glob in globs for word in ("--where", glob)]
    assert command(["percentiles", place, *words, "--step", "all", "--format", "csv"]) == 0
    told = capsys.readouterr().err
    assert ("left out" in told) is bool(said) and said in told


@pytest.mark.parametrize(("own", "judged"), [("{}", 2), ("{host: h2}", 1), ("{host: h3}", 0), ("{host: 'h*'}", 2)])
@pytest.mark.parametrize("but", [False, True])
def test_n18_check_judges_what_both_select(own: str, judged: int, but: bool, place: str, tmp_path: Path, capsys: Any) -> None:
    text = f"objectives:\n  - {{name: a, percentile: 50, threshold: 5ms, window: 1s, where: {own}, by: [host]}}\n"
    (tmp_path / "SLA.yml").write_text(text)
    chosen = ["--where", "host!=h3"] if but else ["--where", "host=h1", "--where", "host=h2"]
    status = command(["check", str(tmp_path / "SLA.yml"), place, *chosen, "--format", "csv"])
    said = capsys.readouterr()
    if but and "*" in own:
        assert (status, "--where host!=h3 cannot be combined with it" in said.err) == (3, True)
        return
    hosts = {host for host in ("h1", "h2", "h3") if host in said.out}
    assert (status in (0, 1)) == bool(judged), (status, said)
    assert "h3" not in hosts and ("h2" in hosts) == bool(judged), said.out


@pytest.mark.parametrize("option", ["--host-alias", "--host-offset", "--label"])
def test_n18_two_values_of_what_can_have_one_are_refused(option: str, tmp_path: Path, capsys: Any) -> None:
    words = ["load", str(written(tmp_path)), "--run", "r", "--store", f"sqlite:{tmp_path / 's.db'}"]
    assert command([*words, option, "h1=1", option, "h1=2"]) == 2
    assert f"{option} says two things of h1, 1 and 2" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["files", "sqlite", "double"])
def test_what_is_said_of_a_log_that_is_left_out_is_not_printed(kind: str, tmp_path: Path, capsys: Any) -> None:
    """A row of h2 is rejected, and h2 has no JSON: of h1 alone neither is news."""
    logs = tmp_path / "logs"
    for host in ("h1", "h2"):
        (logs / host).mkdir(parents=True)
        for name in ("a.json", "a_clat_hist.1.log"):
            shutil.copy(FIO / "randrw" / name, logs / host)
    (logs / "h2" / "a.json").unlink()
    with (logs / "h2" / "a_clat_hist.1.log").open("a") as log:
        log.write("garbage, 0, 1\n")
    with grounds("sqlite" if kind == "files" else kind, tmp_path) as ground:
        place = str(logs)
        if kind != "files":
            place = ground.url
            assert command(["load", str(logs), "--run", "r", "--t0", "1700000000", "--store", place]) == 0
        for host, said in (("h1", False), ("h2", True)):
            capsys.readouterr()
            assert command(["percentiles", place, "--where", f"host={host}", "--step", "all"]) == 0
            told = capsys.readouterr()
            for text in ("1 row rejected", "without fio's JSON"):
                assert (text in told.out + told.err) is said, (host, text, told.out + told.err)


# ---- the columns of csv are decided by the words of a call, not by what is there -------------------------------------

BY_KIND = {
    "percentiles": ["percentiles", "--step", "all"],
    "percentiles with --accuracy": ["percentiles", "--step", "all", "--accuracy", "10%"],
    "percentiles with --estimate": ["percentiles", "--step", "all", "--estimate", "cbt"],
    "heatmap": ["heatmap", "--step", "1s"],
    "heatmap of columns": ["heatmap", "--columns", "2"],
    "distribution": ["distribution"],
    "compare": ["compare", "--baseline", "one", "--run", "two"],
    "trend": ["trend"],
    "export": ["export"],
}
OPERATIONS = "start_us,end_us,op\n" + "".join(f"{at},{at + 1000},read\n" for at in range(10**15, 10**15 + 2 * 10**6, 10**4))


@pytest.mark.parametrize("words", BY_KIND.values(), ids=BY_KIND)
@pytest.mark.parametrize(("pattern", "named"), [("kind=*", True), ("kind=serv*", True), ("kind=service", False)])
def test_a_column_of_kinds_is_there_whatever_kinds_are(
    words: list[str], pattern: str, named: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    heads = []
    for folder, more in (("plain", ""), ("corrected", "--rate 1000")):
        sources = []
        for run in ("one", "two"):
            (tmp_path / folder / run).mkdir(parents=True)
            (tmp_path / folder / run / "ops.csv").write_text(OPERATIONS)
            sources.append(str(tmp_path / folder / run))
        reading = more.split()
        capsys.readouterr()
        command([*words[:1], *sources, *words[1:], *reading, "--where", pattern, "--format", "csv"])
        told = capsys.readouterr()
        heads.append(told.out.partition("\n")[0].split(","))
        assert len(told.out.splitlines()) > 1, told.err
    assert heads[0] == heads[1]
    assert ("kind" in heads[0]) == (named or words[0] == "export")
