"""The gate: what was read, held against what tools state; N6, and N1 to N5 where no reader sees it."""

from __future__ import annotations

import json
import random
import shutil
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ingest.core.coverage import FEWER, MORE, Caveat, Missing
from ingest.core.errors import InputError
from ingest.core.labels import MIXED
from ingest.core.quantiles import parse_percentiles
from ingest.core.stated import WITHOUT_LOG, Counted, Stated, balances, disagreements, shown_together
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.store.grounds import grounds, loaded

FIO = Path(__file__).parent / "data" / "fio"
BY_OP = Question(step="all", by=("op",), where={"kind": "completion"})


def stated(entry: str, op: str, count: int, *, held: bool = True) -> Stated:
    return Stated(entry, {"run": "r", "kind": "completion", "op": op}, op, count, 1, 9, 0, 10, f"{entry}.log", entry, held)


def there(answer: Answer) -> tuple[dict[str, int], dict[str, int], bool]:
    """Return how many samples of each op an answer holds, how many it lacks, and whether all of it is complete."""
    columns = percentiles(answer, Wanted(parse_percentiles("50"))).columns
    held = dict(zip(columns["op"].tolist(), columns["count"].tolist(), strict=True))
    lacking: Counter[str] = Counter()
    for lack in answer.missing:
        lacking[lack.entry.labels["op"]] += lack.entry.count or 0
    return held, dict(lacking), bool(columns["complete"].all())


# The rule alone, against one that is slow and plain.


@given(
    entries=st.lists(st.integers(0, 9), min_size=1, max_size=6),
    logs=st.lists(st.tuples(st.sets(st.integers(0, 5), min_size=1, max_size=3), st.integers(0, 12)), max_size=6),
)
def test_sources_are_held_together_where_they_share_an_entry(entries: list[int], logs: list[tuple[set[int], int]]) -> None:
    own = [({number for number in numbers if number < len(entries)}, held) for numbers, held in logs]
    own = [(numbers, held) for numbers, held in own if numbers]
    sources = [Counted({"read": held}, [stated(str(n), "read", entries[n]) for n in sorted(numbers)]) for numbers, held in own]
    without = Counted({}, [stated(str(n), "read", count, held=False) for n, count in enumerate(entries)])
    together: list[set[int]] = []
    for numbers, _ in own:
        touching = [other for other in together if other & numbers]
        together = [other for other in together if not other & numbers] + [numbers.union(*touching)]
    expected = []
    for numbers in together:
        held, told = sum(n for mine, n in own if mine & numbers), sum(entries[n] for n in numbers)
        expected += [(FEWER, told - held)] if held < told else [(MORE, None)] if held > told else []
    alone = set(range(len(entries))).difference(*together)
    expected += [(WITHOUT_LOG, entries[n]) for n in alone if entries[n]]
    found = [(one.caveat.code, one.count) for one in disagreements([*sources, without])]
    assert sorted(found, key=str) == sorted(expected, key=str)
    assert sorted(found, key=str) == sorted(((o.caveat.code, o.count) for o in disagreements([without, *sources[::-1]])), key=str)
    accounts = [
        {"held": one.held, "stated": {str(n): entry.to_dict() for n, entry in enumerate(one.stated)}, "missing": {}}
        for one in (without, *sources)
    ]
    stored = [(one.caveat.code, one.count) for one in shown_together("r", [{"missing": {}}, *accounts])]
    assert sorted(found, key=str) == sorted(stored, key=str)


def test_what_a_source_says_that_it_lacks_is_not_said_again() -> None:
    def lost(count: int | None, **labels: str) -> Missing:
        return Missing({"run": "r", "kind": "completion", **labels}, 0, 1, count, 0, None, Caveat("x", "a.log", "lost"))

    told = [stated("a", "read", 10), stated("a", "write", 10)]
    held = {"read": 7, "write": 10}
    assert [one.count for one in disagreements([Counted(held, told)])] == [3]
    assert [one.count for one in disagreements([Counted(held, told, [lost(2)])])] == [1]
    assert [one.count for one in disagreements([Counted(held, told, [lost(2, op="write")])])] == [3]
    assert not list(disagreements([Counted(held, told, [lost(3)])]))
    assert not list(disagreements([Counted(held, told, [lost(None, op="read")])]))
    shared = Missing({"run": "r", "kind": "completion"}, 0, 1, 9, 0, None, Caveat("x", "a", "b"), {"job": ""})
    assert [one.count for one in disagreements([Counted(held, told, [shared])])] == [3]  # it is in the whole


def test_one_that_was_not_read_leaves_its_sum_undecided() -> None:
    told = [stated("a", "read", 10)]
    assert not list(disagreements([Counted({"read": 4}, told), Counted(None, told)]))
    assert [balance.read for balance in balances([Counted({"read": 4}, told), Counted(None, told)])] == [False]


def test_all_ops_are_one_where_the_tool_counts_them_together() -> None:
    told = [Stated("a", {"run": "r", "kind": "completion"}, MIXED, 10, 1, 9, 0, 10, "a.log")]
    assert not list(disagreements([Counted({"read": 4, "write": 6}, told)]))
    (more,) = disagreements([Counted({"read": 4, "write": 7}, told)])
    assert (more.caveat.code, "op" in more.labels) == (MORE, False)


# Recordings of fio.


@pytest.mark.cases(3)
@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize("case", ["group-reporting", "gr-rare-op", "two-sections", "cases/group-raw-333", "starts-numjobs"])
def test_logs_that_are_loaded_one_by_one_are_held_against_the_same_sum(case: str, store: str, tmp_path: Path) -> None:
    """In any order: what is there and what is missing are what fio counts, and a log that comes later is not missing."""
    folder = Path(shutil.copytree(FIO / case, tmp_path / "run"))
    question = Question(step="all", by=("op",), where={"kind": "total" if "raw" in case else "completion"})
    counts, _, _ = there(Files([folder], jobs=1).answer(question))
    files = Files([folder], jobs=1)
    logs = sorted(source.path for source in files.choice(question)[0])
    random.Random(case).shuffle(logs)
    with grounds(store, tmp_path) as ground:
        for number, log in enumerate(logs, 1):
            loaded(ground.url, [log], run="r")
            with open_store(ground.url) as kept:
                held, lacking, complete = there(kept.answer(question))
            assert complete == (not lacking)
            if number == len(logs) or case not in ("two-sections", "starts-numjobs"):  # each job has a sum of its own there
                assert {op: held.get(op, 0) + lacking.get(op, 0) for op in counts} == counts
        loaded(ground.url, [folder], run="r")
        with open_store(ground.url) as kept:
            assert there(kept.answer(question)) == (counts, {}, True)


@pytest.mark.parametrize("store", ["sqlite", "double"])
def test_a_job_without_a_log_is_missing_until_its_log_comes(store: str, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(FIO / "two-sections", tmp_path / "run"))
    whole = there(Files([folder], jobs=1).answer(BY_OP))
    late = next(folder.glob("*_clat_hist.2.log"))
    text = late.read_bytes()
    late.unlink()
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder], run="r")
        with open_store(ground.url) as kept:
            held, lacking, complete = there(kept.answer(BY_OP))
            assert not complete and {lack.caveat.code for lack in kept.answer(BY_OP).missing} == {WITHOUT_LOG}
            assert {op: held.get(op, 0) + lacking.get(op, 0) for op in whole[0]} == whole[0]
        late.write_bytes(text)
        loaded(ground.url, [late], run="r")
        with open_store(ground.url) as kept:
            assert there(kept.answer(BY_OP)) == whole


def test_two_prefixes_in_two_folders_are_never_more_than_fio_counts_without_a_word(tmp_path: Path) -> None:
    """N5b: the histograms of a job in one folder, the log of each I/O in another, their JSON above both."""
    (tmp_path / "run" / "hist").mkdir(parents=True)
    (tmp_path / "run" / "each").mkdir()
    case = FIO / "randrw"
    shutil.copy(case / "a.json", tmp_path / "run")
    shutil.copy(case / "a_clat_hist.1.log", tmp_path / "run" / "hist")
    shutil.copy(case / "a_clat.1.log", tmp_path / "run" / "each")
    answer = Files([tmp_path / "run"], jobs=1).answer(BY_OP)
    told = {op: json.loads((case / "a.json").read_text())["jobs"][0][op]["clat_ns"]["N"] for op in ("read", "write")}
    held, _, complete = there(answer)
    assert held == told or (not complete and MORE in {lack.caveat.code for lack in answer.missing})


def test_a_copy_of_a_log_that_is_shadowed_is_said(tmp_path: Path) -> None:
    """Under a prefix that the JSON does not name: more than fio counts, though the log that it was copied from is not read."""
    folder = Path(shutil.copytree(FIO / "unix-epoch", tmp_path / "run"))
    clean = Files([folder], jobs=1).answer(BY_OP)
    shutil.copy(folder / "a_clat.1.log", folder / "copy_a_clat.1.log")
    answer = Files([folder], jobs=1).answer(BY_OP)
    assert there(answer)[0] != there(clean)[0]
    assert "not-in-json" in {caveat.code for caveat in answer.caveats}
    assert not clean.caveats


def test_a_job_file_beside_its_logs_is_no_fault(tmp_path: Path) -> None:
    """N5b: said to be refused, with every answer."""
    folder = Path(shutil.copytree(FIO / "unix-epoch", tmp_path / "run"))
    before = Files([folder], jobs=1).answer(BY_OP).warnings
    (folder / "job.fio").write_text("[global]\nioengine=null\n[a]\nsize=1m\n")
    assert Files([folder], jobs=1).answer(BY_OP).warnings == before
    with pytest.raises(InputError, match="a fio job file: run it with fio and read what it logs"):
        Files([folder / "job.fio"], jobs=1)


def test_a_question_about_some_logs_of_a_sum_says_nothing_of_the_others(tmp_path: Path) -> None:
    """One job of a group: its log alone is read, and what it lacks is what all of them together do not hold."""
    answer = Files([FIO / "cases" / "group-raw-333"], ReadOptions(run="r"), jobs=1).answer(
        Question(step="all", by=("op",), where={"kind": "total", "job": "2"})
    )
    assert not answer.missing


def test_reads_and_writes_of_equal_count_and_mean_are_two_entries(tmp_path: Path) -> None:
    """fio that counts in us, and a job without a log: neither of the two is taken for the other."""
    folder = Path(shutil.copytree(FIO / "two-sections", tmp_path / "run"))
    document = json.loads((summary := next(folder.glob("*.json"))).read_text())
    late = document["jobs"][1]
    late["write"] = late["read"] if late["read"]["total_ios"] else late["write"]
    late["read"] = late["write"]
    summary.write_text(json.dumps(document))
    next(folder.glob("*_clat_hist.2.log")).unlink()
    _, lacking, complete = there(Files([folder], jobs=1).answer(BY_OP))
    assert not complete and lacking["read"] == lacking["write"] == late["read"]["clat_ns"]["N"] > 0
