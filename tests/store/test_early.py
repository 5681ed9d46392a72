"""Findings that are told while a load's last documents are sent: those that the store gives afterwards, or none."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from ingest.core.errors import InputError
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.story.story import computed
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.elastic import rollups
from ingest.store.elastic.load import Finish
from ingest.store.elastic.store import ElasticStore
from ingest.store.findings import EarlyStory
from tests.store.grounds import FIO, ElasticGround, grounds, loaded, logs_by_host
from tests.store.test_contract import EXAMPLE, ZERO

pytestmark = pytest.mark.contract
DATA = FIO.parent


@pytest.fixture(scope="module")
def ground(tmp_path_factory):
    with grounds("double", tmp_path_factory.mktemp("early")) as found:
        yield found


@pytest.fixture
def told(monkeypatch) -> list[object]:
    """What early stories came to: a story, or None where the store was asked."""
    seen: list[object] = []
    real = EarlyStory.of

    def noted(early: EarlyStory, *records: object) -> object:
        seen.append(real(early, *records))
        return seen[-1]

    monkeypatch.setattr(EarlyStory, "of", noted)
    return seen


def every_folder() -> list[Path]:
    """All folders of recordings that a run can be made of: fio in many ways, CBT, HdrHistogram, Snabb, traces of other tools."""
    own = sorted(path for kind in ("fio", "hdr", "snabb", "traces", "histograms", "raw") for path in (DATA / kind).iterdir())
    return [EXAMPLE, *(path for path in own if path.name not in {"cases", "PROVENANCE.md", "record.sh"})]


FEW = {"randrw", "two-sections", "client-server-rw", "means-500", "host-folders", "bssplit", "averaged"}


def early_and_late(path: Path, ground: ElasticGround, told: list[object], load: str = "early") -> int:
    """Load, hold what was told early against what the store tells, and return how many runs that were."""
    run = f"{load} {path.name}"
    loaded(ground.url, [path], run=run, reading=ZERO)
    runs = 0
    with open_store(ground.url) as store:
        for name in [record.run for record in store.runs() if record.run.split("/")[0] == run]:
            documents = store.findings_of([name])
            try:
                expected = computed(store, Question().about([name]))
            except InputError:  # means, or offsets
                assert documents == []
                continue
            assert len(documents) == 1 + len(expected.findings)
            assert [each for each in told if each is not None and each.run == name] == [expected]
            runs += 1
    return runs


@pytest.mark.slow
@pytest.mark.parametrize(
    "path", [path for path in every_folder() if path in {EXAMPLE, *(FIO / name for name in FEW)}], ids=lambda path: path.name
)
def test_an_early_story_is_that_which_the_store_tells_afterwards(path: Path, ground: ElasticGround, told) -> None:
    early_and_late(path, ground, told)
    assert told


@pytest.mark.soak
def test_early_stories_of_all_recordings(ground: ElasticGround, told) -> None:
    runs, refused = 0, set()
    for path in every_folder():
        try:
            runs += early_and_late(path, ground, told, "all")
        except InputError:  # a file that goes with others, or that needs a word of its user
            refused.add(path.name if path.is_dir() else "")
    assert runs > 90 and refused == {"", "empty", "unix-epoch"}, (runs, refused)


@pytest.mark.parametrize("attribution", ["completion", "in-flight"])
@pytest.mark.parametrize("hosts", [1, 2])
def test_l5_nothing_is_read_for_the_findings_of_a_run_that_a_load_alone_writes(
    hosts: int, attribution: str, ground: ElasticGround, told, tmp_path: Path, monkeypatch
) -> None:
    monkeypatch.setattr(ElasticStore, "answer", None)
    run = f"alone {hosts} {attribution}"
    loaded(ground.url, logs_by_host(tmp_path, hosts, turns=2), run=run, reading=ZERO, attribution=attribution)
    monkeypatch.undo()
    assert [story.run for story in told] == [run]
    with open_store(ground.url) as store:
        assert computed(store, Question(runs=(run,))) == told[0]


def test_a_run_that_another_load_has_joined_meanwhile_is_told_from_the_store(ground, told, tmp_path: Path, monkeypatch) -> None:
    """The joining load begins and ends while the first waits for its documents."""
    first, second = logs_by_host(tmp_path, 2, turns=2)
    real = Finish.finish

    def joined(finish: Finish) -> None:
        monkeypatch.setattr(Finish, "finish", real)
        loaded(ground.url, [second], run="joined", reading={**ZERO, "host": "h2"})
        real(finish)

    monkeypatch.setattr(Finish, "finish", joined)
    loaded(ground.url, [first], run="joined", reading={**ZERO, "host": "h1"})
    assert told == [None]  # the joining load was not alone, and its run is not complete when it ends
    with open_store(ground.url) as store:
        expected = computed(store, Question(runs=("joined",)))
        assert {dict(labels).get("host") for finding in expected.findings for labels in [finding.who]} <= {"h1", "h2", None}
        assert len(store.findings_of(["joined"])) == 1 + len(expected.findings)
    files = Files([first, second], ReadOptions(run="joined", **ZERO))
    assert expected.findings == computed(files, Question(), "").findings


def test_a_load_ends_with_its_thread_whether_the_story_is_wanted_or_not(ground, tmp_path: Path, monkeypatch) -> None:
    """OpenBLAS joins its threads before each fork; one that a story still gave work was waited for without end by the next load."""
    began, threads = threading.Event(), []

    def slow(*_: object) -> None:
        threads.append(threading.current_thread())
        began.set()
        threading.Event().wait(0.3)

    def unfinished(*_: object) -> tuple[None, list[object]]:
        assert began.wait(60)
        return None, []

    monkeypatch.setattr("ingest.query.story.story.computed", slow)
    monkeypatch.setattr("ingest.store.findings._complete", unfinished)
    loaded(ground.url, logs_by_host(tmp_path, 1, turns=2), run="unwanted", reading=ZERO)
    assert threads and not any(thread.is_alive() for thread in threads)


def test_windows_of_one_host_that_are_not_kept_are_read_back(ground, told, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(rollups, "MOST_KEPT", 1)
    loaded(ground.url, logs_by_host(tmp_path, 1, turns=2), run="large", reading=ZERO)
    assert told == [None]
    with open_store(ground.url) as store:
        assert store.findings_of(["large"])


def test_an_early_story_that_cannot_be_told_is_asked_of_the_store(ground, told, tmp_path: Path, monkeypatch) -> None:
    def broken(*_: object) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(rollups, "answer_from", broken)
    loaded(ground.url, logs_by_host(tmp_path, 1, turns=1), run="broken", reading=ZERO)
    assert told == [None]
    with open_store(ground.url) as store:
        assert store.findings_of(["broken"])
