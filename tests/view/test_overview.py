"""What a report is made of is the same however a store is asked: at once, or in slices of time, and however it is held."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core import intervals
from ingest.core.intervals import Narrow, merged
from ingest.core.labels import THREAD
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query import overview
from ingest.query.files import Files
from ingest.query.overview import overviews, thinned
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.query.story.story import story
from ingest.store.sqlite.store import SqliteStore
from ingest.view.page import packing, report
from ingest.view.page.panels import box
from ingest.view.page.template import bundled
from tests.doubles.origin import SECOND, ZERO, Made, random_rows, series

KEPT = parse_percentiles("50,99,100")


@pytest.fixture(scope="module")
def stored(archive, tmp_path_factory):
    path = tmp_path_factory.mktemp("store") / "example.db"
    assert command(["load", str(archive), "--run", "r", "--store", f"sqlite:{path}"]) == 0
    with SqliteStore(str(path)) as store:
        yield store


def told(answer: Answer) -> dict[tuple, list]:
    """Return count, p50, p99 and max by labels and start."""
    table = percentiles(answer, Wanted(KEPT))
    rows = zip(
        *(table.columns[name] for name in (*answer.by, "start_ns", "count", "max", *(one.name for one in KEPT))), strict=True
    )
    labels = len(answer.by) + 1
    found = {tuple(row[:labels]): [None if value != value else int(value) for value in row[labels:]] for row in rows}
    assert len(found) == len(table)
    return found


@pytest.mark.cases(6)
@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question(step=4 * SECOND),
        Question(by=("job",)),
        Question(begin=Instant(ZERO + 7 * SECOND), end=Instant(ZERO + 31 * SECOND + 5)),
        Question(where={"host": "ceph-[ab]"}),
        Question(step="all"),
    ],
)
def test_a_page_is_made_in_pieces(stored, question, monkeypatch):
    """All, hosts and threads are asked for once; what is held narrow is the same page as what is held at its full width."""
    names, asked, answer = [record.run for record in stored.runs()], [], stored.answer
    monkeypatch.setattr(stored, "answer", lambda one: (asked.append(one), answer(replace(one, narrow=False)))[1])
    wide = overviews(stored, names, question)
    assert len(asked) == 3 and all(one.narrow for one in asked)
    monkeypatch.setattr(stored, "answer", answer)
    monkeypatch.setattr(intervals, "PIECE", 100)
    monkeypatch.setattr(intervals, "IN_CACHE", 100)
    narrow = overviews(stored, names, question)
    assert all(isinstance(part, Narrow) for run in narrow for part in (*run.fine.parts, *run.hosts.parts))
    assert packing.packed({}, narrow) == packing.packed({}, wide)
    assert [run.cluster.samples for run in narrow] == [run.cluster.samples for run in wide]


def test_files_are_read_once_for_the_hosts(archive):
    files = Files([archive])
    asked = []
    answer = files.answer
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Files, "answer", lambda _self, one: (asked.append(one), answer(one))[1])
        overviews(files, files.run_names, Question())
    assert len(asked) == 2


def test_threads_in_slices_of_time_are_what_the_store_answers(stored, monkeypatch):
    asked, ask = [], stored.answer
    monkeypatch.setattr(stored, "answer", lambda one: (asked.append(one), ask(one))[1])
    monkeypatch.setattr(overview, "MOST_THREADS", 5)
    monkeypatch.setattr(overview, "SLICE_ROWS", 50)
    monkeypatch.setattr(overview, "LEAST_WINDOWS", 10)
    (run,) = overviews(stored, [record.run for record in stored.runs()], Question())
    asked = [one for one in asked if one.by[: len(THREAD)] == THREAD]
    assert len(asked) > 2 and len({one.begin for one in asked}) == len(asked)
    assert run.thread_tails is not None
    for coarse in (False, True):
        answers = run.thread_tails.coarse if coarse else run.thread_tails.fine
        for answer in answers:
            assert told(answer) == told(stored.answer(Question(by=answer.by, step=answer.step_ns)))
        assert [answer.by for answer in answers] == [(*THREAD, "op", "kind"), (*THREAD, "kind")][: len(answers)]
    assert run.thread_tails.coarse[0].step_ns > run.thread_tails.fine[0].step_ns
    assert max(np.diff(part.indptr).max() for part in run.threads.parts) <= 3
    assert told(run.threads) == told(stored.answer(Question(by=run.threads.by, step=run.threads.step_ns)))


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "question",
    [
        Question(),
        Question(by=("job",), step=2 * SECOND),
        Question(begin=Instant(ZERO + 7 * SECOND), where={"host": "ceph-[abc]"}),
    ],
)
def test_many_hosts_are_asked_for_in_slices_of_time(stored, question, monkeypatch):
    """Bins of all hosts are never held together; the page is that of an answer that holds them."""
    names, ask, asked = [record.run for record in stored.runs()], stored.answer, []
    monkeypatch.setattr(overview, "MOST_HOSTS", 2)
    monkeypatch.setattr(overview, "LEAST_WINDOWS", 10)
    (whole,) = overviews(stored, names, question)
    assert whole.tails is not None
    monkeypatch.setattr(stored, "answer", lambda one: (asked.append(one), ask(one))[1])
    for name, value in (("FEW_SERIES", 1), ("SLICE_ROWS", 50), ("SLICE_ENTRIES", 2000)):
        monkeypatch.setattr(overview, name, value)
    (run,) = overviews(stored, names, question)
    assert len({one.begin for one in asked if one.by[:2] == ("host", "op")}) > 2
    assert packing.packed({}, [run]) == packing.packed({}, [whole])
    assert (run.notes, run.cluster.warnings, run.span) == (whole.notes, whole.cluster.warnings, whole.span)


@pytest.mark.parametrize(("windows", "runs"), [(500, 1), (700, 3), (2000, 1)])
def test_a_page_tells_what_explain_tells(windows, runs):
    """By the same windows, where those of the page are wider: of threads of one host, and of several runs."""
    rows = [row for seed in range(runs) for row in random_rows(seed, windows, hosts=1, ops=("read",))]
    run_of = [f"r{place * runs // len(rows)}" for place in range(len(rows))]
    origin = Made([(one.replaced(run=run), at, bins) for run, (one, at, bins) in zip(run_of, rows, strict=True)])
    for run in overviews(origin, origin.run_names, Question()):
        told = story(origin, Question().about([run.run]))
        assert told.step_ns and report._story(origin, run, Question(by=("host",))) == told


def test_a_page_tells_the_story_that_the_store_keeps(stored, monkeypatch):
    (run,) = overviews(stored, [record.run for record in stored.runs()], Question())
    kept = report._story(stored, run, Question(by=("host",)))
    monkeypatch.setattr(stored, "answer", None)
    assert kept.findings and report._story(stored, run, Question(by=("host",))) == kept
    with pytest.raises(TypeError):  # of a part it is computed
        report._story(stored, run, Question(where={"op": "read"}))


def test_a_label_of_which_no_page_has_room_for_the_cells_is_not_held(monkeypatch):
    (run,) = Made(random_rows(17)).overviews()
    entries = {name: len(rows.bins) for name, rows in run.boxes.labels.items()}
    monkeypatch.setattr(overview, "MOST_CELLS", entries["op"])
    monkeypatch.setattr(overview, "HELD", 100)
    (few,) = Made(random_rows(17)).overviews()
    assert few.boxes.left == {"host": 3, "job": 2} and [*few.boxes.labels] == ["op"]
    (section,) = box.sections([few])
    assert section.content["r"]["left"] == ["host (3 values)", "job (2 values)"]


def test_cells_are_gathered_by_the_keys_of_each_piece_alone(monkeypatch):
    """Of thousands of hosts a piece of an answer is of a few."""
    rows, looked_at, kept = random_rows(17, windows=4, hosts=60), [], overview.of_places
    (before,) = Made(rows).overviews()
    monkeypatch.setattr(intervals, "IN_CACHE", 100)
    monkeypatch.setattr(overview, "of_places", lambda part, places: (looked_at.append(len(part.table)), kept(part, places))[1])
    (run,) = Made(rows).overviews()
    assert looked_at and max(looked_at) <= 60 and [*run.boxes.labels] == [*before.boxes.labels]
    for name, cells in run.boxes.labels.items():
        assert np.array_equal(cells.counts, before.boxes.labels[name].counts)


@pytest.mark.parametrize("weighted", [False, True])
def test_thinned_rows_keep_count_p50_p99_and_max(weighted):
    origin = Made(random_rows(17))
    whole = origin.answer(Question(by=("host", "job", "op"), step=SECOND, attribution="in-flight" if weighted else "completion"))
    thin = Answer(
        tuple(thinned(part) for part in whole.parts),
        whole.by,
        whole.step_ns,
        whole.kind,
        whole.runs,
        whole.run_start_ns,
        relative=False,
        series=whole.series,
    )
    assert told(thin) == told(whole)
    assert thin.samples == whole.samples
    (rows,) = (merged([part]) for part in thin.parts)
    assert np.diff(rows.indptr).max() == 3


@pytest.mark.slow
def test_a_page_too_large_takes_the_wider_windows_of_threads(monkeypatch):
    rows = [row for host in range(20) for row in random_rows(host, windows=150, hosts=1, threads=1)]
    named = [
        (type(one)(run="r", host=f"h{number // 300}", job=str(number // 300), op=one.op, kind=one.kind), at, bins)
        for number, (one, at, bins) in enumerate(rows)
    ]
    runs = Made(named).overviews()
    assert runs[0].thread_tails is not None
    whole, notes = packing.packed({}, runs)
    assert notes == []
    monkeypatch.setattr(packing, "MOST_CHARACTERS", 1)
    texts = []
    monkeypatch.setattr(packing, "bundled", lambda *asked: (texts.append(bundled(*asked)), texts[-1])[1])
    least, notes = packing.packed({}, runs)
    assert len(least) < len(whole) and len(texts) == 2, "what is surely too large is not deflated again and again"
    step = runs[0].thread_tails.coarse[0].step_ns // SECOND
    assert f"threads are kept in windows of {step} s, for the size of the page (--full lifts that)" in notes


def test_a_run_is_seen_as_if_it_were_alone(fio, tmp_path):
    """Runs of other years in the same store make neither its windows wider nor its warnings more."""
    logs = [str(path) for path in sorted((fio / "randrw").glob("*clat_hist*.log"))]
    for store, runs in (
        ("one", {"a": "2020-01-01T00:00:00Z"}),
        ("both", {"a": "2020-01-01T00:00:00Z", "b": "2026-01-01T00:00:00Z"}),
    ):
        for run, zero in runs.items():
            assert command(["load", *logs, "--run", run, "--t0", zero, "--store", f"sqlite:{tmp_path / store}.db"]) == 0
    found = {}
    for store in ("one", "both"):
        with SqliteStore(str(tmp_path / f"{store}.db")) as opened:
            found[store] = {one.run: one for one in overviews(opened, [record.run for record in opened.runs()], Question())}
    alone, among = found["one"]["a"], found["both"]["a"]
    assert len(found["both"]) == 2
    assert among.cluster.step_ns == alone.cluster.step_ns
    assert told(among.cluster) == told(alone.cluster)
    assert among.cluster.warnings == alone.cluster.warnings


def test_more_hosts_than_are_drawn_of_which_one_is_quick_and_has_bins_of_its_own():
    slow = [(series("read", f"h{host:02}"), at, {900: 50}) for host in range(overview.MOST_HOSTS + 3) for at in range(5)]
    quick = [(series("trim", "quick"), at, {3: 50}) for at in range(5)]
    (run,) = Made(slow + quick, layout={"read": fio_layout(29, 1), "trim": fio_layout(29, 1, 2)}).overviews()
    assert all(len(part) for part in run.hosts.parts)
    assert run.cluster.samples == run.threads.samples == 50 * 5 * (overview.MOST_HOSTS + 4)
