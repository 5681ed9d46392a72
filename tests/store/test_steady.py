"""`--from steady` and what findings say, of runs with volumes and jobs: the same from files, from SQLite and from Elasticsearch."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.units import Instant
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


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("seed", "members"),
    [
        pytest.param(1, MEMBERS, marks=pytest.mark.slow),
        pytest.param(2, [("a", "1", "x"), ("a", "2", "x"), ("a", "3", "y")], marks=pytest.mark.slow),
        pytest.param(3, [("a", "", job) for job in "xyz"], marks=pytest.mark.slow),
        (4, [("a", "", "x"), ("b", "", "x"), ("c", "", "x")]),
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
