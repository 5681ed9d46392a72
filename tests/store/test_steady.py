"""`--from steady` and what findings say, of runs with volumes and jobs: the same from files, from SQLite and from Elasticsearch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.units import Instant
from ingest.live.serve.cache import version_of
from ingest.live.serve.page import Selection, Subject, view_of
from ingest.query.files import Files
from ingest.query.percentiles import percentiles
from ingest.query.plan import settled
from ingest.query.question import Question, Settled
from ingest.query.story.story import stories
from ingest.read.described.description import description_of
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.store.grounds import grounds, loaded
from tests.store.test_contract import ALL, KINDS, SECOND, csv
from tests.view.test_report import content_of

pytestmark = pytest.mark.contract
START = 1_767_225_600 * SECOND
DESCRIBED = """\
time: end_ns
latency: took_ns
labels: {host: host, volume: volume, job: job, op: op}
"""
MEMBERS = [(host, volume, job) for host in "ab" for volume in ("1", "2") for job in ("x", "y")]


def written(folder: Path, seed: int, warm_s: float, *, seconds: int = 90, members=MEMBERS, times: float = 4.0) -> Path:
    """Write a run whose operations take `times` as long in the first seconds; the first member is slow from 50 s to 60 s."""
    random = np.random.default_rng(seed)
    lines = ["end_ns,took_ns,host,volume,job,op"]
    for number, member in enumerate(members):
        ends = np.sort(random.integers(0, seconds * SECOND, 12 * seconds))
        took = random.lognormal(np.log(1e6), 0.4, len(ends)) * np.where(ends < warm_s * SECOND, times, 1)
        took *= np.where((number == 0) & (ends >= 50 * SECOND) & (ends < 60 * SECOND), 8, 1)
        rows = zip((START + ends).tolist(), took.astype(np.int64).tolist(), random.random(len(ends)).tolist(), strict=True)
        lines += [",".join((str(end), str(each), *member, "read" if op < 0.5 else "write")) for end, each, op in rows]
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "events.csv").write_text("\n".join(lines) + "\n")
    (folder.parent / "events.yml").write_text(DESCRIBED)
    return folder / "events.csv"


def reading(folder: Path) -> dict:
    return {"description": description_of(str(folder / "events.yml"))}


@pytest.mark.cases(2)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("seed", "members"),
    [
        pytest.param(1, MEMBERS, marks=pytest.mark.slow),
        pytest.param(2, [("a", "1", "x"), ("a", "2", "x"), ("a", "3", "y")], marks=pytest.mark.slow),
        pytest.param(3, [("a", "", job) for job in "xyz"], marks=pytest.mark.slow),
        pytest.param(4, [("a", "", "x"), ("b", "", "x"), ("c", "", "x")], marks=pytest.mark.slow),
    ],
)
def test_a_store_tells_the_story_of_its_files_and_when_they_are_steady(kind, seed, members, tmp_path: Path, monkeypatch) -> None:
    """Of two runs, one with a warm-up of seconds drawn; the oracle of the range is the same question with that time."""
    warm = int(np.random.default_rng(seed).integers(10, 30))
    logs = {
        "w": written(tmp_path / "w", seed, warm, members=members),
        "q": written(tmp_path / "q", seed + 100, 0, members=members),
    }
    with grounds(kind, tmp_path) as ground:
        for run, log in logs.items():
            loaded(ground.url, [log], run=run, reading=reading(tmp_path))
        told = {run: Files([log], ReadOptions(run=run, **reading(tmp_path))) for run, log in logs.items()}
        with open_store(ground.url) as store:
            question = settled(store, Question(begin="steady"))
            with monkeypatch.context() as patch:  # what is kept says it, nothing is computed
                patch.setattr(type(store), "answer", None)
                assert settled(store, Question(begin="steady")).begin == question.begin
            found = {run: (steady.start_ns or START) - START for run, steady in question.begin.runs.items()}
            assert found["q"] == 0 and abs(found["w"] / SECOND - warm) <= 2
            for run, files in told.items():
                assert settled(files, Question(begin="steady")).begin == Settled({run: question.begin.runs[run]})
                for asked in (Question(), Question(begin="steady"), Question(by=("volume",)), Question(where={"job": "x"})):
                    assert stories(files, asked, "s") == stories(store, asked.about([run]), "s")
                for asked in (
                    Question(by=("job", "op"), step=5 * SECOND),
                    Question(by=("host",), step="all"),
                    Question(by=("volume",)),
                ):
                    ranged = csv(files.answer(replace(asked, begin="steady")))
                    assert ranged == csv(store.answer(replace(asked, begin="steady").about([run])))
                    by_hand = Instant(found[run], relative=True) if found[run] else None
                    assert ranged == csv(files.answer(replace(asked, begin=by_hand)))
            both = percentiles(store.answer(Question(by=("run",), step="all", begin="steady")), ALL).columns
            assert ((both["start_ns"] - START) // SECOND).tolist() == [0, found["w"] // SECOND]


@pytest.mark.slow
def test_commands_say_where_a_steady_part_begins(tmp_path: Path, capsys) -> None:
    logs = {"w": written(tmp_path / "w", 5, 20), "q": written(tmp_path / "q", 6, 0)}
    words = ["--input-format", str(tmp_path / "events.yml")]
    sla = tmp_path / "sla.yml"
    sla.write_text("objectives:\n  - {name: quick, percentile: p50, threshold: 2ms, window: 5s}\n")
    store = f"sqlite:{tmp_path / 'a.db'}"
    for run, log in logs.items():
        assert command(["load", str(log), "--run", run, "--store", store, *words]) == 0
    capsys.readouterr()

    def said(*call: str, status: int = 0) -> tuple[str, str]:
        assert command([*call, "--from", "steady"]) == status, capsys.readouterr()
        return capsys.readouterr()

    for asked in ([str(logs["w"]), *words], [store, "--run", "w"]):
        assert command(["check", str(sla), *asked]) == 1  # by its warm-up alone
        capsys.readouterr()
        out, _ = said("check", str(sla), *asked)
        assert "steady is from +20s to +" in " ".join(out.split())
        for name, more in (("percentiles", ["--step", "all"]), ("heatmap", []), ("distribution", []), ("export", [])):
            out, err = said(name, *asked, *more, "--format", "csv")
            assert "steady is from +20s" in err
        out, _ = said("explain", *asked, "--json")
        (told,) = json.loads(out)
        assert "steady is from +20s to +" in told["caveats"][0] and told["steady"] is None
        assert {finding["kind"] for finding in told["findings"]} == {"episode"}
        out, _ = said("explain", *asked, "--box", "..,4ms..")
        assert "steady is from +20s to +" in " ".join(out.split())
        out, err = said("report", *asked, "-o", "-")
        assert "steady is from +20s to +" in out
    (told,) = json.loads(_out(capsys, "explain", store, "--run", "w", "--json"))
    assert round(told["steady"]["from_s"], 3) == 20 and told["steady"]["text"] == told["caveats"][0]
    assert told["caveats"][0].startswith("The first 20 s hold ") and "--from steady leaves it out" in told["caveats"][0]
    _, err = said("compare", store, "--baseline", "q", "--run", "w", "--format", "csv")
    assert "q: no warm-up is seen, so steady is all of it" in err and "w: steady is from +20s to +" in err
    out, err = said("trend", store, "--format", "csv")
    assert "no warm-up is seen" in err + out and "w: steady is from +20s to +" in err + out


def _out(capsys, *call: str) -> str:
    assert command(list(call)) == 0
    return capsys.readouterr().out


SINCE = "2026-01-01T00:00:20Z"  # their first operations come a little after midnight
RANGED = {  # what is asked of runs that all begin with 20 s of warm-up; of files each of them by itself
    "offsets": ["offsets", "--run", "w1", "--format", "csv"],
    "offsets of a host": ["offsets", "--run", "w1", "--where", "host=a", "--by", "op", "--format", "csv"],
    "csv": ["export", "--run", "w1"],
    "hlog": ["export", "--run", "w1", "--format", "hlog"],
    "hgrm": ["export", "--run", "w1", "--format", "hgrm"],
    "otlp": ["export", "--run", "w1", "--format", "otlp", "--by", "host,op"],
    "capacity": ["capacity", "--sla", "p99<3ms", "--points", "--format", "csv"],
    "compare": ["compare", "--baseline", "w1", "--run", "w2", "--format", "csv"],
    "compare --at": ["compare", "--run", "w1", "--at", "new kernel", "--format", "csv"],
    "trend": ["trend", "--format", "csv"],
}


@pytest.mark.parametrize("kind", KINDS)
def test_commands_answer_of_a_steady_part_what_they_answer_from_its_begin_on(kind, tmp_path: Path, capsys) -> None:
    words = ["--input-format", str(tmp_path / "events.yml")]
    with grounds(kind, tmp_path) as ground:
        logs = []
        for number in (1, 2, 3):
            logs += [written(tmp_path / f"w{number}", number, 20, members=MEMBERS[:3], seconds=60)]
            load = [
                "load",
                str(logs[-1]),
                "--run",
                f"w{number}",
                "--label",
                f"target_rate={number}",
                "--store",
                ground.url,
                *words,
            ]
            assert command(load) == 0
        assert command(["mark", "--run", "w1", "--at", "+40s", "new kernel", "--store", ground.url]) == 0
        for name, asked in RANGED.items():
            told = {}
            for since in ("steady", SINCE, None):
                capsys.readouterr()
                status = command([asked[0], ground.url, *asked[1:], *(["--from", since] if since else [])])
                told[since] = status, *capsys.readouterr()
            assert told["steady"][:2] == told[SINCE][:2], name
            assert told["steady"][1] not in ("", told[None][1]), name
            runs = ("w1", "w2", "w3") if name in ("capacity", "trend") else ("w1", "w2") if name == "compare" else ("w1",)
            assert all(told["steady"][2].count(f"{run}: steady is from +19.") == 1 for run in runs), (name, told["steady"][2])
            if name not in ("compare", "compare --at", "capacity", "trend"):
                assert command([asked[0], str(logs[0]), *words, *asked[3:], "--from", "steady"]) == 0
                assert capsys.readouterr().out == told["steady"][1], name
        version = version_of(ground.url)
        subject = Subject(ground.url, Question(where={"op": "read"}), SECOND)
        views = [view_of(subject, version, Selection(("w1",), since, "", "auto"), None) for since in ("steady", SINCE, "")]
        steady, by_hand, whole = (view.parts.filling for view in views)
        assert "w1: steady is from +19." in steady["notes"]
        figures = [content_of(told["data"]) for told in (steady, by_hand, whole)]
        for told, _ in figures:
            for run in told["runs"]:
                run.pop("story")  # it says of which range it is
        assert figures[0] == figures[1] != figures[2]
