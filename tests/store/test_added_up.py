"""Logs of a host that are added up before they are stored: repeats, growth, corrections, kills and two loads at once stay exact."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.cli import run as command
from ingest.core.errors import StoreError, UsageError
from ingest.core.intervals import Intervals
from ingest.core.labels import Series
from ingest.core.layout import parse_layout
from ingest.load import aggregation
from ingest.load import load as loading
from ingest.load.aggregation import LogAggregation, labels_in
from ingest.query.question import Question
from ingest.store import open_store
from tests.effort import figure
from tests.store.grounds import SqliteGround, grounds, loaded, many_logs

EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"
JOB = {"add_up": ("job",), "reading": {"t0": 1_700_000_000 * 10**9}}
PLAIN = {"reading": {"t0": 1_700_000_000 * 10**9}}
FIO_BINS = parse_layout("loglinear:64:1856:1ns:c0:midpoint:open")
HDR_BINS = parse_layout("loglinear:1024:54272:1ns:c0:highest:closed")


@pytest.fixture(params=["sqlite", pytest.param("double", marks=pytest.mark.slow)])  # tests/any asks the double, too
def pair(request, tmp_path_factory):
    """Two empty stores of a kind: one to load logs as they are, one to add them up."""
    with (
        grounds(request.param, tmp_path_factory.mktemp("a")) as plain,
        grounds(request.param, tmp_path_factory.mktemp("b")) as added,
    ):
        yield plain, added


@pytest.fixture
def ground(pair):
    return pair[1]


def host(folder: Path, jobs: int, turns: int = 1) -> list[Path]:
    """The logs of a host, one a job."""
    return sorted(many_logs(folder / "h1", jobs, turns=turns).iterdir())


def samples(ground) -> int:
    return sum(document["count"] for document in ground.documents())


def rows(ground, **words) -> list[str]:
    from ingest.query.percentiles import percentiles
    from ingest.view.text import csv_lines
    from tests.any.test_any import WANTED

    with open_store(ground.url) as store:
        return list(csv_lines(percentiles(store.answer(Question(**words)), WANTED)))


def interrupted(*_: object) -> None:
    raise KeyboardInterrupt


def faults(ground) -> list[str]:
    with open_store(ground.url) as store:
        return [str(fault) for fault in store.verify(lambda _: True).faults]


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize(("labels", "share"), [("job", 2), ("tag,process,job , volume", 4)])
def test_the_example_has_a_half_or_a_quarter_of_the_documents_and_the_same_rollups(pair, labels: str, share: int) -> None:
    plain, added = pair
    loaded(plain.url, [EXAMPLE])
    account = loaded(added.url, [EXAMPLE], add_up=labels_in(labels))
    assert account.loaded == 12 and len(plain.documents()) == share * len(added.documents()) == share * account.documents
    assert plain.rollups() == added.rollups() and not faults(added)
    assert {tuple(document[label] for label in labels_in(labels)) for document in added.documents()} == {
        ("",) * len(labels_in(labels))
    }
    with open_store(plain.url) as first, open_store(added.url) as second:
        facts = [dict(store.facts(store.answer(Question(step="all")))) for store in (first, second)]
    assert facts[1]["Added up"].endswith("panels of threads show them as one") and "Added up" not in facts[0]
    assert facts[0]["Sources"] == facts[1]["Sources"] == "12 files, 1,777 rows"


def test_jobs_loaded_one_after_another_are_as_exact_as_at_once(pair, tmp_path: Path) -> None:
    plain, added = pair
    logs = host(tmp_path, 4)
    loaded(plain.url, logs, **PLAIN)
    for turn in (logs[:1], logs[:2], logs[3:], logs):
        loaded(added.url, turn, **JOB)
    assert plain.rollups() == added.rollups() and not faults(added)
    assert rows(plain, by=("host", "op")) == rows(added, by=("host", "op"))
    before = added.documents()
    again = loaded(added.url, logs, **JOB)
    assert (again.documents, again.loaded, dict(again.duplicate)) == (0, 0, {"already loaded": 4})
    assert added.documents() == before


def test_a_log_that_grew_is_added_up_anew_with_the_others(pair, tmp_path: Path) -> None:
    plain, added = pair
    *logs, later = host(tmp_path, 4, turns=2)
    whole = logs[1].read_text()
    logs[1].write_text("".join(whole.splitlines(keepends=True)[:4]))
    loaded(added.url, logs, **JOB)
    loaded(added.url, [later], **JOB)
    few = samples(added)
    logs[1].write_text(whole)
    with pytest.raises(StoreError, match=r"were added up with .*a_clat_hist.1.log, .*a_clat_hist.3.log .*give those logs, too"):
        loaded(added.url, logs[1:2], **JOB)
    assert samples(added) == few
    account = loaded(added.url, [tmp_path / "h1"], **JOB)
    assert account.loaded == 3 and account.duplicate == {"already loaded": 1}
    loaded(plain.url, [tmp_path / "h1"], **PLAIN)
    assert plain.rollups() == added.rollups() and not faults(added) and samples(added) > few


def test_corrected_logs_replace_what_was_added_up(pair, tmp_path: Path) -> None:
    plain, added = pair
    logs = host(tmp_path, 3)
    loaded(added.url, logs, **JOB)
    logs[2].write_text("".join(logs[2].read_text().splitlines(keepends=True)[:3]))
    loaded(added.url, logs, replace=True, **JOB)
    loaded(plain.url, logs, **PLAIN)
    assert plain.rollups() == added.rollups() and samples(plain) == samples(added) and not faults(added)


def test_a_part_that_was_damaged_is_mended_by_the_next_load(ground, tmp_path: Path) -> None:
    logs = host(tmp_path, 3)
    loaded(ground.url, logs, **JOB)
    whole = ground.documents(), ground.rollups()
    with open_store(ground.url, write=True) as store:
        if isinstance(ground, SqliteGround):
            with store.transaction() as db:
                db.execute("DELETE FROM intervals WHERE id = (SELECT min(id) FROM intervals)")
        else:
            hit = ground.hits("intervals-*")[0]
            ground.client.delete(index=hit["_index"], id=hit["_id"], refresh=True)
    assert any("samples" in fault for fault in faults(ground))
    with open_store(ground.url, write=True) as store:
        store.verify(lambda _: True, mend=True)
    assert loaded(ground.url, logs, **JOB).loaded == 3
    assert (ground.documents(), ground.rollups()) == whole and not faults(ground)


def test_many_logs_of_a_host_are_several_parts(pair, tmp_path: Path, monkeypatch) -> None:
    plain, added = pair
    monkeypatch.setattr(aggregation, "MOST_LOGS", 2)
    logs = host(tmp_path, 5)
    loaded(plain.url, logs, **PLAIN)
    loaded(added.url, logs, **JOB)
    assert plain.rollups() == added.rollups() and not faults(added)
    with open_store(added.url) as store:
        assert [len(source.account["members"]) for source in store.sources("r")] in ([1, 2, 2], [2, 1, 2], [2, 2, 1])


def test_a_run_that_was_added_up_is_not_watched(ground, tmp_path: Path, capsys) -> None:
    logs = host(tmp_path, 2)
    loaded(ground.url, logs[:1], **JOB)
    before = ground.documents()
    words = [
        "watch",
        str(tmp_path / "h1"),
        "--run",
        "r",
        "--store",
        ground.url,
        "--until-idle",
        "1s",
        "--t0",
        "2023-11-14T22:13:20Z",
    ]
    assert command(words) == 4
    assert "was loaded with --add-up job, this load has no --add-up" in capsys.readouterr().err
    assert ground.documents() == before


@pytest.mark.parametrize("replace", [False, True])
def test_logs_that_are_added_up_and_logs_that_are_not_are_never_one_run(pair, tmp_path: Path, replace: bool) -> None:
    logs = host(tmp_path, 3)
    for ground, first, second in zip(pair, (PLAIN, JOB), (JOB, PLAIN), strict=True):
        loaded(ground.url, logs[:2], **first)
        there = ground.documents()
        with pytest.raises(StoreError, match=r"--add-up job.*no --add-up|no --add-up.*--add-up job"):
            loaded(ground.url, logs, **second, replace=replace)
        assert ground.documents() == there
        with open_store(ground.url, write=True) as store:
            store.delete_run("r")
        loaded(ground.url, logs, **second)
    assert samples(pair[0]) == samples(pair[1])


def test_a_load_that_began_before_the_run_was_there_does_not_mix(ground, tmp_path: Path, monkeypatch) -> None:
    logs = host(tmp_path, 2)
    planned = loading.plans

    def late(*words):
        found = planned(*words)
        monkeypatch.setattr(loading, "plans", planned)
        loaded(ground.url, logs[:1], **PLAIN)
        return found

    monkeypatch.setattr(loading, "plans", late)
    with pytest.raises(StoreError, match="no --add-up, this load has --add-up job"):
        loaded(ground.url, logs, **JOB)
    assert {document["job"] for document in ground.documents()} == {"1"} and not faults(ground)


def test_a_load_that_was_cut_off_is_completed_by_the_next(pair, tmp_path: Path, monkeypatch) -> None:
    plain, added = pair
    logs = host(tmp_path, 3)
    with monkeypatch.context() as patch:
        patch.setattr(loading, "account_of", interrupted)
        with pytest.raises(KeyboardInterrupt):
            loaded(added.url, logs[:2], **JOB)
    with pytest.raises(StoreError, match="give that log, too"):
        loaded(added.url, logs[1:], **JOB)
    loaded(added.url, logs, **JOB)
    loaded(plain.url, logs, **PLAIN)
    assert plain.rollups() == added.rollups() and samples(plain) == samples(added) and not faults(added)


def test_two_loads_that_add_up_one_log_at_once_never_count_it_twice(pair, tmp_path: Path, monkeypatch) -> None:
    plain, added = pair
    logs = host(tmp_path, 3)
    planned = loading.plans

    def late(*words):
        found = planned(*words)
        monkeypatch.setattr(loading, "plans", planned)
        loaded(added.url, logs[1:], **JOB)
        return found

    monkeypatch.setattr(loading, "plans", late)
    with pytest.raises(StoreError, match=r"a_clat_hist.2.log is being loaded by two loads at once"):
        loaded(added.url, logs[:2], **JOB)
    loaded(plain.url, logs[1:], **PLAIN)
    assert plain.rollups() == added.rollups()
    for ground, options in ((plain, PLAIN), (added, JOB)):
        loaded(ground.url, logs, **options)
    assert plain.rollups() == added.rollups() and not faults(added)
    assert rows(plain, by=("host",)) == rows(added, by=("host",))


def test_two_loads_of_the_same_logs_at_once_are_one(pair, tmp_path: Path, monkeypatch) -> None:
    plain, added = pair
    logs = host(tmp_path, 3)
    planned = loading.plans

    def late(*words):
        found = planned(*words)
        monkeypatch.setattr(loading, "plans", planned)
        loaded(added.url, logs, **JOB)
        return found

    monkeypatch.setattr(loading, "plans", late)
    loaded(added.url, logs, **JOB)
    loaded(plain.url, logs, **PLAIN)
    assert plain.rollups() == added.rollups() and samples(plain) == samples(added) and not faults(added)


def test_a_question_by_what_was_added_up_is_answered_with_a_sentence(ground, tmp_path: Path) -> None:
    loaded(ground.url, host(tmp_path, 2), **JOB)
    with open_store(ground.url) as store:
        answer = store.answer(Question(by=("host", "job"), step="all"))
        assert {key[1] for part in answer.parts for key in part.table} == {""}
        assert any("so its jobs are one; to ask for them, load the logs without --add-up" in text for text in answer.warnings)
        assert not any("--add-up" in text for text in store.answer(Question(by=("host", "volume"))).warnings)
        with pytest.raises(UsageError, match=r"--where job: r.* was loaded with --add-up job, so its jobs are one"):
            store.answer(Question(where={"job": "1"}))


def test_only_labels_within_a_host_can_be_added_up() -> None:
    assert labels_in(" tag, job ,") == ("job", "tag") and labels_in("") == ()
    for label in ("host", "op", "run", "kind", "jobs"):
        with pytest.raises(UsageError, match=f"--add-up {label}: only volume, job, process, tag"):
            labels_in(f"job,{label}")


STEP = 10**9
Rows = list[tuple[int, int, int, int]]  # op, window, bin, count


@settings(deadline=None, max_examples=figure(10, 100, 5000))
@given(
    logs=st.lists(
        st.lists(
            st.lists(
                st.tuples(st.integers(0, 1), st.integers(0, 9), st.integers(0, 5), st.integers(1, 4)), min_size=1, max_size=6
            ),
            max_size=5,
        ),
        min_size=1,
        max_size=4,
    ),
    layouts=st.lists(st.sampled_from([FIO_BINS, HDR_BINS]), min_size=4, max_size=4),
    held=st.sampled_from([1, 5, 1_000_000]),
    wait=st.sampled_from([0, 3]),
)
def test_windows_in_any_order_are_added_up_and_each_is_given_once(logs, layouts, held: int, wait: int) -> None:
    """Held against plain sums; the fewer are held, the more windows come late."""

    def chunk(rows: Rows, layout, job: int) -> Intervals[Series]:
        table = tuple(Series(run="r", host="h", job=str(job), op=op, kind="completion", segment=job) for op in ("read", "write"))
        cells = sorted({(op, window, slot) for op, window, slot, _ in rows})
        sums = Counter[tuple[int, int, int]]()
        for *cell, count in rows:
            sums[tuple(cell)] += count
        places = sorted({cell[:2] for cell in cells})
        start = np.array([window * STEP for _, window in places], np.int64)
        return Intervals(
            layout=layout,
            table=table,
            series=np.array([op for op, _ in places], np.int64),
            start_ns=start,
            end_ns=start + STEP,
            indptr=np.cumsum([0, *(sum(cell[:2] == place for cell in cells) for place in places)]),
            bins=np.array([slot for _, _, slot in cells], np.int64),
            counts=np.array([sums[cell] for cell in cells], np.int64),
        )

    wanted = Counter({(layouts[job], row[:3]): 0 for job, chunks in enumerate(logs) for rows in chunks for row in rows})
    for job, chunks in enumerate(logs):
        for part in chunks:
            for *cell, count in part:
                wanted[layouts[job], tuple(cell)] += count
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(aggregation, "HELD_ENTRIES", held)
        patch.setattr(aggregation, "WAITING", wait)
        total = LogAggregation(("job",), 1 << 20, STEP)
        given_out = list(
            total.windows([iter([chunk(rows, layouts[job], job) for rows in chunks]) for job, chunks in enumerate(logs)])
        )
    found, seen, layout_of = Counter(), set(), {}
    for part in given_out:
        for row in range(len(part)):
            series = part.table[int(part.series[row])]
            assert series.job == "" and series.segment >= 1 << 20
            key = series, int(part.start_ns[row])
            assert key not in seen and layout_of.setdefault(series, part.layout) == part.layout
            seen.add(key)
            for entry in range(int(part.indptr[row]), int(part.indptr[row + 1])):
                op = ("read", "write").index(series.op)
                found[part.layout, (op, int(part.start_ns[row]) // STEP, int(part.bins[entry]))] += int(part.counts[entry])
    assert found == wanted
