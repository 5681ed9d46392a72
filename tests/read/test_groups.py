"""Groups of fio (group_reporting) and of its clients: each I/O is counted once, whichever logs of a group are there.

The folders are recordings of fio 3.33 and 3.42; what is right is what fio's JSON counts, and where a folder has logs of single
I/Os, these, window by window.
"""

from __future__ import annotations

import gzip
import json
import shutil
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.core.grid import SECOND
from ingest.core.layout import fio_layout
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.query.table import Table
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from tests.store.grounds import grounds, loaded

DATA = Path(__file__).parents[1] / "data"
RECORDED = DATA / "fio"


def table_of(answer: Answer) -> Table:
    """Return the table of an answer."""
    return percentiles(answer, Wanted(parse_percentiles("50")))


def counted(folder: Path, **where: str) -> tuple[dict[str, int], bool]:
    """Return how many completions of each op an answer about a whole folder counts, and whether all are complete."""
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("op",), where={"kind": "completion", **where}))
    columns = table_of(answer).columns
    return dict(zip(columns["op"].tolist(), columns["count"].tolist(), strict=True)), bool(columns["complete"].all())


def by_job(answer: Answer) -> dict[str, int]:
    """Return the counts of an answer by job."""
    columns = table_of(answer).columns
    return dict(zip(columns["job"].tolist(), columns["count"].tolist(), strict=True))


def told(folder: Path) -> dict[str, int]:
    """Return how many completions of each op fio's JSON counts."""
    text = (folder / "out.json").read_text()
    document = json.loads(text[text.index("{") :])
    counts: Counter[str] = Counter()
    for job in document.get("client_stats", document.get("jobs")):
        if job.get("jobname", "All clients") != "All clients":
            counts.update({op: job[op]["clat_ns"]["N"] for op in ("read", "write", "trim") if job[op]["total_ios"]})
    return dict(counts)


@pytest.fixture
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """Return a copy of a recording."""
    return Path(shutil.copytree(RECORDED / request.param, tmp_path / "run"))


WHOLE = (
    "gr-two-prefixes",  # N1: raw logs of all jobs but the last were counted beside the histograms
    "gr-rare-op",  # N1: no row of histograms holds the op
    "gr-carrier-gz",  # N2: the log of the highest number is there twice
    "gr-carrier-without-rows",  # N2: a group of which all logs are empty
    "gr-sections-one-entry",  # N3: two sections are one entry of the JSON
    "gr-sections-per_job_logs0",  # N3: the same in one log
    "gr-sections-of-two",  # N3: the same with two jobs a section, of which the JSON tells two of four
    "gr-sections-two-prefixes",  # N3: two sections, of which the JSON names the prefix of the last
    "gr-sections-then-one",  # N3: the same before a section with an entry of its own
    "gr-sections-between",  # N3: three sections of one entry, the second of which has another prefix, before one by itself
    "gr-sections-unlike",  # N3: two sections of unlike log_hist_coarseness in one log
    "gr-sections-one-name",  # N3: the same beside an entry of the same name, in one log
    "gr-sections-raw-too",  # N3: the same, of which jobs have logs of both kinds, below two folders
    "gr-client-raw-too",  # N4: the same by fio --client, which leaves out the options of a job
    "client-few-rows",  # N4: three rows, differenced or not
    "client-options-array",  # N4: fio 3.39 and later
)


@pytest.mark.parametrize("case", WHOLE, indirect=True)
def test_n1_n2_a_whole_run_is_what_fio_counts(case: Path) -> None:
    assert counted(case) == (told(case), True)


@pytest.mark.parametrize("case", ["gr-sibling-empty", "client-per_job_logs0"], indirect=True)
def test_rows_that_were_lost_are_in_the_whole_and_said(case: Path) -> None:
    """All is counted, of which some has no time of its own.

    An empty log, or jobs that wrote over one another (fio 1032).

    The whole is complete, the windows are not.
    """
    assert counted(case) == (told(case), True)
    answer = Files([case], ReadOptions(run="r"), jobs=1).answer(Question(by=("op",), where={"kind": "completion"}, step=SECOND))
    assert not all(percentiles(answer, Wanted(())).columns["complete"])


@pytest.mark.cases(9)
@pytest.mark.parametrize("store", ["sqlite", "double"])
@pytest.mark.parametrize("case", [*WHOLE, "gr-sibling-empty", "client-per_job_logs0", "gr-after-single-jobs", "staged-shared"])
def test_stores_hold_what_files_say(case: str, store: str, tmp_path: Path) -> None:
    """Sums of several groups, or over rows of their own log, lie in the same windows: none takes the place of another."""
    folder, completions = RECORDED / case, {"kind": "completion"}
    files = Files([folder], ReadOptions(run="r"), jobs=1)
    with grounds(store, tmp_path) as ground:
        loaded(ground.url, [folder], run="r")
        with open_store(ground.url) as kept:
            for question in (
                Question(step="all", by=("op",), where=completions),
                Question(step="all", by=("job", "op"), where=completions),
                Question(step=10 * SECOND, by=("op",), where=completions),
            ):
                told, held = (table_of(origin.answer(question)).columns for origin in (files, kept))
                for name in ("start_ns", *question.by, "count", "complete", "max"):
                    assert told[name].tolist() == held[name].tolist(), (question, name)


@pytest.mark.parametrize(
    "case", ["gr-two-prefixes", "gr-rare-op", "gr-sections-per_job_logs0", "gr-sections-of-two", "client-few-rows"], indirect=True
)
def test_windows_are_those_of_single_operations(case: Path) -> None:
    """Up to each edge of a row; windows of half a second lie beside them by some ms, so counts agree to a few I/Os in each."""
    question = Question(step=SECOND // 2, force=True, where={"kind": "completion", "op": "read"})
    rows, singles = (
        dict(zip(columns["start_ns"].tolist(), columns["count"].tolist(), strict=True))
        for prefer in ("hist", "raw")
        for columns in [table_of(Files([case], ReadOptions(prefer=prefer), jobs=1).answer(question)).columns]
    )
    assert sum(rows.values()) == sum(singles.values())
    most = max(singles.values())
    assert all(abs(rows.get(start, 0) - count) < 0.1 * most + 5 for start, count in singles.items())


def test_n3_each_stage_of_a_shared_log_has_its_own_last_interval(tmp_path: Path) -> None:
    """Two sections of two jobs one after another: up to any moment about as many I/Os as the log of each I/O tells."""
    folder = Path(shutil.copytree(RECORDED / "staged-shared", tmp_path / "run"))
    rows = np.loadtxt(folder / "a_clat.log", delimiter=",", usecols=(0, 2), dtype=np.int64)
    (folder / "a_clat.log").unlink()
    question = Question(step=SECOND // 10, force=True, by=("op",), where={"kind": "completion"})
    columns = table_of(Files([folder], jobs=1).answer(question)).columns
    for code, op in enumerate(("read", "write")):
        stamps, mine = np.sort(rows[rows[:, 1] == code, 0]), columns["op"] == op
        for edge in range(int(stamps[0]) // 100 * 100, int(stamps[-1]) + 500, 100):
            has = int(columns["count"][mine & (columns["end_ns"] <= edge * 1_000_000)].sum())
            assert abs(has - np.searchsorted(stamps, edge, side="right")) <= 25, (op, edge)
    answer = Files([folder], jobs=1).answer(replace(question, step=SECOND))
    assert answer.caveats == () and table_of(answer).columns["complete"].all()
    assert counted(folder) == (told(folder), True)


@pytest.mark.parametrize("turned", [False, True])
def test_jobs_of_unlike_bins_share_a_log(turned: bool, tmp_path: Path) -> None:
    """log_hist_coarseness 3 and 6, whichever comes first: all rows are taken, in the wider bins."""
    folder = Path(shutil.copytree(RECORDED / "shared-coarseness", tmp_path / "run"))
    latencies = np.loadtxt(folder / "a_clat.log", delimiter=",", usecols=1, dtype=np.int64)
    (folder / "a_clat.log").unlink()
    log = folder / "a_clat_hist.log"
    lines = log.read_text().splitlines(keepends=True)
    assert {line.count(",") for line in lines[:4]} != {line.count(",") for line in lines[4:]}
    log.write_text("".join([*lines[4:], *lines[:4]] if turned else lines))
    answer = Files([folder], jobs=1).answer(Question(step="all", where={"kind": "completion"}))
    assert not answer.caveats and not answer.missing and answer.samples == len(latencies)
    (part,) = answer.parts
    assert part.layout == (wide := fio_layout(29, 1, 6))
    held = np.zeros(wide.bins, np.int64)
    np.add.at(held, part.bins, part.counts)
    assert held.tolist() == np.bincount(wide.index(latencies), minlength=wide.bins).tolist()
    windows = Files([folder], jobs=1).answer(Question(step=SECOND // 2, where={"kind": "completion"}))
    assert table_of(windows).columns["complete"].all() and windows.warnings == ()


@pytest.mark.parametrize("where", [{}, {"job": "1"}, {"job": "[12]"}])
def test_a_job_of_a_group_lacks_what_fio_counts_of_all_together(where: dict[str, str]) -> None:
    """N5b: whose I/Os after the last rows are is not known, so each job may lack them; all jobs together lack nothing."""
    folder = RECORDED / "gr-rare-op"
    question = Question(step="all", by=("job",), where={"kind": "completion", "op": "read", **where})
    table = table_of(Files([folder], jobs=1).answer(question)).columns
    complete = dict(zip(table["job"].tolist(), table["complete"].tolist(), strict=True))
    assert complete == {job: not job for job in complete}
    assert counted(folder) == (told(folder), True)


@pytest.mark.parametrize("store", ["files", "sqlite"])
def test_an_op_lacks_what_fio_counts_of_all_ops_together(store: str, tmp_path: Path) -> None:
    """N5: unified_rw_reporting; all ops together lack nothing, in files and stores alike."""
    folder = DATA / "fio" / "unified"
    questions = [
        Question(step="all", where={"kind": "completion", **where}, by=by)
        for where, by in (
            ({}, ()),
            ({}, ("op",)),
            ({"op": "read"}, ()),
            ({"op": "*"}, ()),
        )
    ]
    if store == "sqlite":
        url = f"sqlite:{tmp_path / 'store.db'}"
        loaded(url, [folder], run="r")
        with open_store(url) as kept:
            answers = [kept.answer(question) for question in questions]
    else:
        answers = [Files([folder], jobs=1).answer(question) for question in questions]
    whole, by_op, read, all_ops = (table_of(answer).columns["complete"].tolist() for answer in answers)
    assert (whole, all_ops, read) == ([True], [True], [False])
    assert by_op == [op == "mixed" for op in table_of(answers[1]).columns["op"].tolist()]


@pytest.mark.parametrize("number", [1, 2, 3, 4])
def test_any_log_of_a_group_may_be_compressed(number: int, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RECORDED / "gr-rare-op", tmp_path / "run"))
    log = folder / f"a_clat_hist.{number}.log"
    log.with_name(f"{log.name}.gz").write_bytes(gzip.compress(log.read_bytes()))
    log.unlink()
    assert counted(folder) == (told(folder), True)


@pytest.mark.parametrize("lost", [(1,), (4,), (2, 3), (1, 2, 3), (1, 2, 3, 4)])
def test_histograms_of_some_jobs_and_single_operations_of_others_are_one_sum(lost: tuple[int, ...], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RECORDED / "gr-rare-op", tmp_path / "run"))
    for number in lost:
        (folder / f"a_clat_hist.{number}.log").unlink()
    assert counted(folder)[0] == told(folder)


@pytest.mark.parametrize("lost", [(1,), (4,), (2, 3)])
def test_logs_that_are_not_there_are_missing_by_number(lost: tuple[int, ...], tmp_path: Path) -> None:
    folder = Path(shutil.copytree(RECORDED / "gr-rare-op", tmp_path / "run"))
    for number in lost:
        (folder / f"a_clat_hist.{number}.log").unlink()
        (folder / f"a_clat.{number}.log").unlink()
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("op",), where={"kind": "completion"}))
    counts = dict(zip(*(table_of(answer).columns[name].tolist() for name in ("op", "count")), strict=True))
    lacking = {entry.labels["op"]: entry.count for entry, _ in answer.missing}
    total = told(folder)
    assert {op: counts.get(op, 0) + (lacking[op] or 0) for op in total} == total


def test_a_group_begins_when_its_own_entry_does() -> None:
    """Two jobs with an entry each, then (stonewall) a group of two: its logs count time from its own start, not from theirs."""
    folder = RECORDED / "gr-after-single-jobs"
    assert counted(folder) == ({"trim": 4060, "write": 696}, True)
    table = table_of(Files([folder], jobs=1).answer(Question(step=SECOND, by=("op",)))).columns
    windows = {op: table["start_ns"][table["op"] == op] for op in ("trim", "write")}
    assert len(windows["write"]) == len(windows["trim"]) == 4
    assert windows["write"].max() == windows["trim"].min()


def test_damaged_histograms_of_a_group_lack_what_no_log_of_single_operations_holds(tmp_path: Path) -> None:
    """fio 3.16: one of three logs of single I/Os is lost, and the histograms of its job are damaged from 786 us up."""
    folder = Path(shutil.copytree(DATA / "fio" / "fio-3.16" / "gr", tmp_path / "run"))
    (folder / "x_clat.2.log").unlink()
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("op",)))
    table = table_of(answer).columns
    assert dict(zip(table["op"].tolist(), table["count"].tolist(), strict=True)) == {"read": 3559, "write": 3603}
    assert [(entry.labels["op"], entry.count) for entry, _ in answer.missing] == [("read", 3600 - 3559)]


def test_a_log_that_an_older_run_left_is_of_no_sum(tmp_path: Path) -> None:
    """A third log where two jobs ran: its rows do not fit into what fio counts."""
    folder = Path(shutil.copytree(DATA / "fio" / "group-reporting", tmp_path / "run"))
    shutil.copy(folder / "a_clat_hist.1.log", folder / "a_clat_hist.3.log")
    with (folder / "a_clat_hist.3.log").open("a") as log:  # a copy of the same bytes would be said to be one
        log.write((folder / "a_clat_hist.1.log").read_text().splitlines()[-1].replace("2", "3", 1) + "\n")
    counts, complete = counted(folder)
    assert not complete
    assert counts["read"] > 921


@pytest.mark.parametrize("group", [True, False], ids=["of a group", "of jobs"])
def test_operations_of_no_entry_are_above_what_fio_counts(group: bool, tmp_path: Path) -> None:
    """A third log of single I/Os where the JSON tells of two jobs at most: a store that was asked about it said nothing."""
    folder = Path(shutil.copytree(RECORDED / ("gr-rare-op" if group else "randrw"), tmp_path / "run"))
    for log in folder.glob("*_hist*.log"):
        log.unlink()
    sound, _ = counted(folder)
    (folder / "a_clat.5.log").write_text("".join(f"{10 * row}, {7_000 + row}, 0, 4096, 0\n" for row in range(1, 51)))
    store = f"sqlite:{tmp_path / 'store.db'}"
    loaded(store, [folder], run="r")
    with open_store(store) as kept:
        for origin in (Files([folder], ReadOptions(run="r"), jobs=1), kept):
            whole, own = (origin.answer(Question(step="all", by=by, where={"kind": "completion"})) for by in (("op",), ("job",)))
            columns, of_jobs = table_of(whole).columns, table_of(own).columns
            assert columns["count"].sum() == sum(sound.values()) + 50
            assert not columns["complete"][0]
            assert of_jobs["job"][~of_jobs["complete"]].tolist() == ["5"]
            [said] = [text for text in whole.warnings if "a_clat.5.log" in text]
            assert "fio counts nothing of it, and the log holds 50: counted twice, or not of one run" in said


@pytest.mark.parametrize("how", ["told", "single I/Os", "of no more jobs", "of an older run"])
def test_n3_shared_logs_of_sections_of_one_entry_are_counted_once(how: str, tmp_path: Path) -> None:
    """fio's one entry has the prefix of the last section. How long all its jobs ran says that there are more: then rows decide."""
    folder = Path(shutil.copytree(RECORDED / "gr-shared-two-prefixes", tmp_path / "run"))
    if how == "of no more jobs":
        summary = folder / "out.json"
        summary.write_text(summary.read_text().replace('"job_runtime": 3918', '"job_runtime": 2612'))
    elif how == "single I/Os":
        text = (folder / "out.json").read_text()
        bins = json.loads(text[text.index("{") :])["jobs"][0]["read"]["clat_ns"]["bins"]
        rows = [f"1795944503{100 + place % 800}, {ns}, 0, 4096, 0\n" for place, ns in enumerate(Counter(bins).elements())]
        for section, own in (("a", sorted(rows[:52])), ("b", sorted(rows[52:]))):
            (folder / f"{section}_clat_hist.log").unlink()
            (folder / f"{section}_clat.log").write_text("".join(own))
        (folder / "out.json").write_text(text.replace('"write_hist_log": "b",', ""))
    elif how == "of an older run":
        log = folder / "a_clat_hist.log"
        log.write_text(log.read_text().replace(", 1", ", 2"))
    whole, own = (
        Files([folder], jobs=1).answer(Question(step="all", by=by, where={"kind": "completion"}))
        for by in (("op",), ("process",))
    )
    table, of_sections = table_of(whole).columns, table_of(own).columns
    if how in ("told", "single I/Os"):
        assert table["count"].tolist() == [1_854] and table["complete"].all() and not whole.warnings
        counts = dict(zip(of_sections["process"].tolist(), of_sections["count"].tolist(), strict=True))
        # What no row holds is of no known section: truly 10 of it of `a`.
        assert counts == ({"": 415, "a": 42, "b": 1_397} if how == "told" else {"a": 52, "b": 1_802})
        assert of_sections["complete"].tolist() == [name == "" or how != "told" for name in of_sections["process"]]
    else:
        assert not table["complete"].any()
        said = "fio counts nothing of it" if how == "of an older run" else "out.json beside it names other logs"
        assert any("a_clat_hist.log" in text and said in text for text in whole.warnings)


def test_more_than_fio_counts_is_said_with_both_numbers(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / "fio" / "group-reporting", tmp_path / "run"))
    shutil.copy(DATA / "fio" / "randrw" / "a_clat.1.log", folder)
    (folder / "a_clat_hist.1.log").unlink()
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("op",)))
    assert not table_of(answer).columns["complete"].any()
    assert any("; fio counts 921, and 1,303 are in its logs: counted twice?" in text for text in answer.warnings)


@pytest.mark.parametrize("first", [1, 3, 4])
def test_logs_of_a_group_may_be_loaded_one_after_another(first: int, tmp_path: Path) -> None:
    """A store that has met one log of a group, and then all: what it lacked is there, and nothing is there twice."""
    folder = Path(shutil.copytree(RECORDED / "gr-rare-op", tmp_path / "run"))
    for log in folder.glob("a_clat.*.log"):
        log.unlink()
    later = {path: path.read_bytes() for path in folder.glob("a_clat_hist.*.log") if f".{first}." not in path.name}
    for path in later:
        path.unlink()
    store = f"sqlite:{tmp_path / 'store.db'}"
    loaded(store, [folder], run="r")
    for path, text in later.items():
        path.write_bytes(text)
    loaded(store, [folder], run="r")
    with open_store(store) as kept:
        table = table_of(kept.answer(Question(step="all", by=("op",)))).columns
    assert dict(zip(table["op"].tolist(), table["count"].tolist(), strict=True)) == told(folder)
    assert table["complete"].all()


@pytest.mark.parametrize("number", [1, 2])
def test_when_the_jobs_of_an_empty_log_did_what_is_of_no_known_time(tmp_path: Path, number: int) -> None:
    """It was taken for a last interval where the run was short, and the only other log of its group had all rows."""
    folder = Path(shutil.copytree(DATA / "fio" / "group-reporting", tmp_path / "run"))
    before = counted(folder)
    (folder / f"a_clat_hist.{number}.log").write_text("")
    assert counted(folder) == before
    answer = Files([folder], jobs=1).answer(Question(by=("op",), where={"kind": "completion"}, step=SECOND))
    table = percentiles(answer, Wanted(()))
    assert not table.columns["complete"].any() and table.columns["count"].sum() == sum(before[0].values())
    assert {f"a_clat_hist.{number}.log" in text for text in answer.warnings if "holds no row" in text} == {True}


@pytest.mark.parametrize("deleted", [1, 2])
def test_n3_jobs_of_hidden_sections_are_missed_where_their_log_is(deleted: int, tmp_path: Path) -> None:
    """One entry stands for two sections: what the absent log held is in no window in silence, whichever number it had."""
    folder = Path(shutil.copytree(RECORDED / "gr-sections-one-entry", tmp_path / "run"))
    (log,) = folder.glob(f"*_clat_hist.{deleted}.log")
    log.unlink()
    for path in folder.glob("*_clat.*.log"):
        path.unlink()
    answer = Files([folder], ReadOptions(run="r"), jobs=1).answer(
        Question(step=SECOND // 2, force=True, where={"kind": "completion"})
    )
    assert not all(table_of(answer).columns["complete"])
    assert answer.caveats


@pytest.mark.parametrize(
    ("case", "deleted"),
    [("gr-sections-one-entry", n) for n in (1, 2)]
    + [("gr-sections-then-one", n) for n in (1, 2, 3)]
    + [("gr-sections-between", n) for n in range(1, 6)],
)
def test_n3_no_job_is_given_what_an_absent_log_of_its_entry_held(case: str, deleted: int, tmp_path: Path) -> None:
    """How long the jobs of an entry ran together shows how many there were: other numbers than those of the JSON's jobs."""
    folder = Path(shutil.copytree(RECORDED / case, tmp_path / "run"))
    most = by_job(Files([folder], jobs=1).answer(Question(step="all", by=("job",))))
    (log,) = folder.glob(f"*_clat_hist.{deleted}.log")
    log.unlink()
    answer = Files([folder], jobs=1).answer(Question(step="all", by=("job",)))
    assert all(count <= most[number] for number, count in by_job(answer).items() if number)
    assert any("missing" in text for text in answer.warnings)
    assert not any("twice" in text for text in answer.warnings)


def test_n3_segments_of_a_shared_log_beside_an_entry_of_the_same_name_are_of_no_older_run() -> None:
    """Two sections end in entries called `b`, the second of which stands for three jobs."""
    answer = Files([RECORDED / "gr-sections-one-name"], jobs=1).answer(Question(step="all"))
    assert not answer.warnings


@pytest.mark.parametrize("faster", [1, 20])
def test_n3_a_job_that_is_faster_at_its_end_is_no_job_without_a_log(faster: int, tmp_path: Path) -> None:
    """Many logs are read otherwise than one: both know how fast the last rows were."""
    folder = Path(shutil.copytree(RECORDED / "gr-rare-op", tmp_path / "run"))
    for path in folder.iterdir():
        path.unlink()
    columns, rows, left = 29, 20, 12 * faster
    bins = {"10": rows - 5 + 5 * faster * 10 + left}
    total = sum(bins.values())
    for number in (1, 2):
        counts = [1] * (rows - 5) + [10 * faster] * 5
        lines = [f"{100 * (n + 1)}, 0, 4096, {count}" + ", 0" * (columns - 1) for n, count in enumerate(counts)]
        (folder / f"a_clat_hist.{number}.log").write_text("\n".join(lines) + "\n")
    latency = {"min": 10, "max": 10, "mean": 10.0, "stddev": 0.0, "N": total, "bins": bins}
    read = {"total_ios": total, "runtime": 2_090, "clat_ns": latency}
    options = {"rw": "read", "write_hist_log": "a", "log_hist_msec": "100", "log_hist_coarseness": "6"}
    jobs = [{"jobname": name, "groupid": 0, "job options": options, "job_runtime": 2_090, "read": read} for name in "ab"]
    document = {"fio version": "fio-3.33", "timestamp": 1_795_000_000, "timestamp_ms": 1_795_000_000_000, "jobs": jobs}
    (folder / "out.json").write_text(json.dumps(document))
    for paths in ([folder], [folder / "a_clat_hist.1.log", folder / "out.json"]):
        answer = Files(paths, ReadOptions(run="r"), jobs=1).answer(
            Question(step=SECOND // 2, where={"kind": "completion", "job": "1"})
        )
        assert answer.samples == total
        assert [caveat.sentence for caveat in answer.caveats if "far more" in caveat.sentence] == []


def written(folder: Path, logs: Sequence[Mapping[int, int]], left: int, runtime_ms: int = 2_900) -> Path:
    """Write histogram logs, rows of some samples by their stamps, and the JSON of their group, which counts `left` more."""
    total = left + sum(sum(log.values()) for log in logs)
    for number, rows in enumerate(logs, 1):
        lines = [f"{stamp}, 0, 4096, {count}" + ", 0" * 28 for stamp, count in rows.items()]
        (folder / f"a_clat_hist.{number}.log").write_text("\n".join(lines) + "\n")
    latency = {"min": 10, "max": 10, "mean": 10.0, "stddev": 0.0, "N": total, "bins": {"10": total}}
    read = {"total_ios": total, "runtime": runtime_ms, "clat_ns": latency}
    options = {"rw": "read", "write_hist_log": "a", "log_hist_msec": "100", "log_hist_coarseness": "6", "numjobs": str(len(logs))}
    shared = {"group_reporting": "1"} if len(logs) > 1 else {}
    job = {"jobname": "a", "groupid": 0, "job options": options | shared, "job_runtime": runtime_ms, "read": read}
    document = {"fio version": "fio-3.33", "timestamp": 1_795_000_000, "timestamp_ms": 1_795_000_000_000, "jobs": [job]}
    (folder / "out.json").write_text(json.dumps(document))
    return folder


DENSE = {100 * n: 20 for n in range(1, 29)}  # the last row 100 ms before the end
RARE = {1000: 2, 1500: 1, 2000: 1, 2500: 1}  # 400 ms before it: no longer than between any two of its rows


@pytest.mark.parametrize(("logs", "left", "last"), [
    ([DENSE, RARE], 21, 2800), ([RARE, DENSE, DENSE | {2700: 25}], 41, 2800),
    ([DENSE, {n: 1 for n in range(150, 2600, 200)}], 20, 2800), ([{900: 2, 1400: 1, 1900: 1, 2400: 1}], 1, 2400),
])  # fmt: skip
def test_a_rare_operation_is_not_lost_at_the_end_of_its_log(
    logs: list[dict[int, int]], left: int, last: int, tmp_path: Path
) -> None:
    """What fio counts beyond the rows is that of the jobs that fill them, after their rows, or of a row's time after the last one."""
    answer = Files([written(tmp_path, logs, left)], ReadOptions(run="r"), jobs=1).answer(Question(step=SECOND // 10))
    assert [caveat.code for caveat in answer.caveats] == []
    columns = table_of(answer).columns
    ends = columns["end_ns"] // 1_000_000 - 1_795_000_000_000 + 2_900
    rows = sum(count for log in logs for stamp, count in log.items() if stamp <= last)
    assert int(columns["count"][ends <= last].sum()) == rows
    assert int(columns["count"][(ends > last) & (ends <= last + 100)].sum()) == left


def test_a_burst_after_the_last_row_is_of_no_job_without_a_log(tmp_path: Path) -> None:
    """Twelve I/Os in the last ms of a run, of jobs that catch up: fewer than any row holds."""
    folder = written(tmp_path, [{100 * n: 20 for n in range(1, 10)}], 12, 901)
    answer = Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(step=SECOND // 10))
    assert [caveat.code for caveat in answer.caveats] == []


@pytest.mark.parametrize("jobs", [1, 2])
def test_an_operation_that_no_row_need_hold_is_not_lost(jobs: int, tmp_path: Path) -> None:
    """A few trims in a run of little more than a row's time: fio writes no row of them, and none is missing."""
    folder = written(tmp_path, [{100: 20 + number} for number in range(jobs)], 20, 130)
    document = json.loads((folder / "out.json").read_text())
    latency = {"min": 10, "max": 10, "mean": 10.0, "stddev": 0.0, "N": 2, "bins": {"10": 2}}
    document["jobs"][0]["trim"] = {"total_ios": 2, "runtime": 130, "clat_ns": latency}
    (folder / "out.json").write_text(json.dumps(document))
    answer = Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(step=SECOND // 10, by=("op",)))
    assert [caveat.code for caveat in answer.caveats] == []
    assert table_of(answer).columns["complete"].all()


@pytest.mark.parametrize(("name", "doubted"), [("a_clat.log.h1", True), ("a_clat.1.log.h1", False), ("a_clat.log", False)])
def test_n4_a_shared_raw_log_of_a_client_without_its_json_may_lack_jobs(name: str, doubted: bool, tmp_path: Path) -> None:
    """fio issue 1032: of three jobs the log held one, and once the JSON was deleted nothing said so."""
    (tmp_path / name).write_bytes((RECORDED / "staged-shared" / "a_clat.log").read_bytes())
    answer = Files([tmp_path], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert ("perhaps-written-over" in {caveat.code for caveat in answer.caveats}) == doubted


def test_n4_a_hidden_section_of_a_client_is_of_its_group(tmp_path: Path) -> None:
    """fio --client, two sections of one job each in one group: the entry has the name of one and the prefix of the other."""
    folder = written(tmp_path, [DENSE, DENSE | {2800: 25}], 30)
    for prefix, number in (("b", 1), ("a", 2)):
        (folder / f"a_clat_hist.{number}.log").rename(folder / f"{prefix}_clat_hist.{number}.log.h1")
    document = json.loads((folder / "out.json").read_text())
    document["jobs"][0]["job options"] |= {"numjobs": "1"}
    document["client_stats"] = [job | {"hostname": "h1"} for job in document.pop("jobs")]
    (folder / "out.json").write_text(json.dumps(document))
    answer = Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(step="all"))
    assert answer.samples == document["client_stats"][0]["read"]["total_ios"]
    assert not [text for text in answer.warnings if "counts other logs" in text]


@pytest.mark.parametrize("cut", [0, 1, 2])
def test_rows_that_are_lost_at_the_end_of_a_log_of_a_group_are_said(cut: int, tmp_path: Path) -> None:
    """A log of a group that ends before the run does, by far more than lies between its rows."""
    logs = [DENSE, DENSE | {2800: 25}, {stamp // 4: count for stamp, count in RARE.items()}]
    logs[cut] = {stamp: count for stamp, count in logs[cut].items() if stamp < 1500}
    answer = Files([written(tmp_path, logs, 300)], ReadOptions(run="r"), jobs=1).answer(Question(step=SECOND // 10))
    assert [caveat.code for caveat in answer.caveats if caveat.code == "long-last-interval"]


def test_n3_an_op_of_which_a_log_has_no_row_is_of_jobs_whose_logs_are_not_here(tmp_path: Path) -> None:
    """The entry tells of one job, and hides another section; the log of that one is gone."""
    folder = written(tmp_path, [DENSE], 20)
    document = json.loads((folder / "out.json").read_text())
    for op, count in (("write", 300), ("trim", 2)):  # of so few no row need be
        latency = {"min": 10, "max": 10, "mean": 10.0, "stddev": 0.0, "N": count, "bins": {"10": count}}
        document["jobs"][0][op] = {"total_ios": count, "runtime": 2_900, "clat_ns": latency}
    (folder / "out.json").write_text(json.dumps(document))
    answer = Files([folder], ReadOptions(run="r"), jobs=1).answer(Question(step="all", by=("job", "op")))
    columns = table_of(answer).columns
    assert set(zip(*(columns[name].tolist() for name in ("job", "op", "count")), strict=True)) == {
        ("1", "read", 580), ("", "write", 300), ("1", "trim", 2),
    }  # fmt: skip
    assert any("write: fio counts all jobs together" in text for text in answer.warnings)
    assert counted(folder) == ({"read": 580, "write": 300, "trim": 2}, True)
