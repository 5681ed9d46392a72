"""Objectives while a run grows: final windows alone are judged, each beginning and end is told once, also after a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.objectives.check import alerting, check, finals_of, labels_of
from ingest.objectives.objectives import read_objectives
from ingest.query.episodes import PROVISIONAL
from ingest.query.question import Question
from ingest.store import open_store
from tests.cli.test_commands import tailboard
from tests.doubles.receiver import receiver
from tests.live.feeding import EPOCH, HEAD, SECOND, Clock, begun
from tests.oracles import hdr
from tests.store.grounds import grounds

SLOW = {"h1": {5, 6, 8, 20, 21, 22, 39}, "h2": {12, 13, 14}}
TEXT = "objectives:\n  - {name: a, percentile: 99, threshold: 5ms, window: 1s, for: 2s, hold: 1s, by: [host]}\n"
EXPECTED = [("h1", 5, 9), ("h2", 12, 15), ("h1", 20, 23)]


def line(host: str, second: int) -> str:
    value = 80_000_000 if second in SLOW[host] else 1_000_000
    return hdr.line(f"{second}.000", "1.000", {hdr.index_of(value, 2): 50}, digits=2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["sqlite", pytest.param("double", marks=pytest.mark.slow)])
def test_episodes_are_told_once_and_only_of_final_windows(tmp_path: Path, kind: str) -> None:
    """Host h2 lags by three seconds, and the watch is begun anew every ten seconds."""
    path, folder, clock = tmp_path / "SLA.yml", tmp_path / "logs", Clock()
    path.write_text(TEXT)
    objectives = read_objectives(path)
    told, provisional = [], 0
    for host in SLOW:
        (folder / host).mkdir(parents=True)
        (folder / host / "x.hlog").write_text(HEAD)
    with grounds(kind, tmp_path) as ground:
        store = open_store(ground.url, write=True)
        for second in range(44):
            if second % 10 == 0:
                store.__exit__(None, None, None)
                store = open_store(ground.url, write=True)
                judge = alerting(objectives, lambda one: told.append((clock.seconds, one)), path)
                watch = begun(folder, store, clock, judge)
            for host, lag in (("h1", 0), ("h2", 3)):
                if 0 <= second - lag < 40:
                    with (folder / host / "x.hlog").open("a") as out:
                        out.write(line(host, second - lag))
            clock.seconds += 1
            watch.cycle()
            records = store.runs()
            if second == 24:
                (record,) = records
                found = check(store.answer, labels_of(records), objectives, Question(), path, finals_of(records))
                assert record.final_ns is not None and record.final_ns <= (EPOCH + 23) * SECOND
                provisional = sum(one.provisional for one in found.verdicts)
                assert [one.state for each in found.verdicts for one in each.episodes].count(PROVISIONAL) <= 1
        watch.cycle(last=True)
        watch.settle()
        judge(store, "r")
        kept = store.episodes(["r"])
        store.__exit__(None, None, None)
    assert provisional > 0
    spans = [(dict(one.labels)["host"], one.start_ns // SECOND - EPOCH, one.end_ns // SECOND - EPOCH) for one in kept]
    assert spans == EXPECTED
    assert [one.state for one in kept] == ["ended"] * 3
    news = [(one.id, one.state) for _, one in told]
    assert len(set(news)) == len(news) == 6
    for one in kept:
        (begin,) = [when for when, other in told if (other.id, other.state) == (one.id, "open")]
        (end,) = [(when, other) for when, other in told if (other.id, other.state) == (one.id, "ended")]
        assert end[1].end_ns == one.end_ns
        # Told when the windows are final: not before h2 has reached them, which it does three seconds late.
        began = one.start_ns // SECOND - EPOCH
        assert began + 2 + 3 <= begin - 1000 <= began + 2 + 3 + 3
        assert begin <= end[0]


def test_the_command_tells_a_webhook_and_keeps_the_episodes(tmp_path: Path) -> None:
    (tmp_path / "SLA.yml").write_text(TEXT)
    (tmp_path / "logs" / "h1").mkdir(parents=True)
    (tmp_path / "logs" / "h1" / "x.hlog").write_text(HEAD + "".join(line("h1", second) for second in range(40)))
    url = f"sqlite:{tmp_path / 'x.db'}"
    words = ("--run", "r", "--store", url, "--until-idle", "200ms", "--interval", "50ms", "--objectives", tmp_path / "SLA.yml")
    with receiver(503) as there:
        done = tailboard("watch", tmp_path / "logs", *words, "--webhook", there.url)
    assert done.returncode == 0, done.stderr
    starts = [(EPOCH + second) * SECOND for second in (5, 20)]
    assert sorted((one["start_ns"], one["state"]) for one in there.taken) == [
        (start, state) for start in starts for state in ("ended", "open")
    ]
    assert done.stderr.count("tailboard: a (host -) of r is violated since") == 2
    with open_store(url) as store:
        assert [(one.start_ns, one.state) for one in store.episodes(["r"])] == [(start, "ended") for start in starts]


def test_a_webhook_without_objectives_and_objectives_that_are_wrong_are_told_at_once(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    words = ("watch", tmp_path / "logs", "--run", "r", "--store", f"sqlite:{tmp_path / 'x.db'}", "--until-idle", "1s")
    lonely = tailboard(*words, "--webhook", "http://127.0.0.1:9/")
    assert (lonely.returncode, "--webhook reports objectives" in lonely.stderr) == (2, True)
    (tmp_path / "SLA.yml").write_text("objectives:\n  - {name: a}\n")
    wrong = tailboard(*words, "--objectives", tmp_path / "SLA.yml")
    assert wrong.returncode == 3 and "SLA.yml:2: the objective has no percentile" in wrong.stderr
