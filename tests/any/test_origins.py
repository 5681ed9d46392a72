"""One contract of all origins: of the same data, files, SQLite and a server answer a question with the same bytes.

Each kind of data is a case, and is asked a few questions in `make test`, all of its table in `make test-all`. A new store is a name in
`KINDS`, new data a case. What random data answer is in test_any.py, what one store alone promises in `tests/store/`.
"""

from __future__ import annotations

import os
import tarfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from ingest.core.quantiles import parse_percentiles
from ingest.core.units import Instant
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from tests.store import test_contract, test_histograms, test_layouts
from tests.store.grounds import grounds, loaded

pytestmark = pytest.mark.contract
DATA = Path(__file__).parents[1] / "data"
MS, SECOND = 1_000_000, 1_000_000_000
KINDS = ["sqlite", "double", *(["server"] if os.environ.get("ELASTICSEARCH_URL") else [])]
WANTED = Wanted(parse_percentiles("0,50,90,99,99.9,100"), below_ns=(1000, 5_000_000))


@dataclass(frozen=True)
class Case:
    """Data, how they are read and loaded, what is asked of them, and how many of the warnings are alike."""

    place: Callable[[Path], tuple[Path, dict[str, Any]]]
    questions: Mapping[str, Question]
    warnings: int = 0
    loading: dict[str, Any] = field(default_factory=dict)


def there(path: str | Path, **reading: Any) -> Callable[[Path], tuple[Path, dict[str, Any]]]:
    return lambda _: (DATA / path, reading)


def unpacked(folder: Path) -> tuple[Path, dict[str, Any]]:
    """Two workloads at two depths each, one after the other."""
    with tarfile.open(DATA / "cbt" / "B.tar.xz") as tar:
        tar.extractall(folder, filter="data")
    return folder / "B", {}


BEGAN = 1_795_330_364 * SECOND  # 2026-11-22T06:52:44Z, shortly before the first of the runs of archive B
OF_MEANS = {
    "stored": Question(step=100 * MS),
    "a second by op": Question(by=("op",), step=SECOND),
    "jobs": Question(by=("job", "op"), step=SECOND, where={"kind": "completion.mean"}),
    "one job": Question(where={"job": "2"}, step=SECOND),
    "kinds": Question(by=("kind",), step=SECOND),
    "whole run": Question(by=("op", "kind"), step="all"),
    "jobs of the whole run": Question(by=("job",), step="all"),
    "auto": Question(by=("op",)),
}
OF_HISTOGRAMS = {
    "whole run": Question(by=("host", "op"), step="all"),
    "tags": Question(by=("tag",), step="all"),
    "all kinds": Question(step="all", where={"kind": "*"}),
    "seconds": Question(step=SECOND),
    "seconds by op and tag": Question(by=("op", "tag"), step=SECOND),
    "10 s": Question(step=10 * SECOND),
}
OF_HDR = {
    "ops, tags and kinds": Question(by=("op", "tag", "kind"), step=5 * SECOND),
    "kinds of the whole run": Question(by=("kind",), step="all"),
    "10 s": Question(step=10 * SECOND),
}
OF_EVENTS = {
    "seconds by op": Question(step=SECOND, by=("op",), where={"kind": "completion"}),
    "2 s by host, op and kind": Question(step=2 * SECOND, by=("host", "op", "kind")),
    "whole run": Question(step="all", by=("op",)),
}
OF_MANY_RUNS = {
    "runs": Question(step="all"),
    "runs and ops": Question(step="all", by=("run", "op")),
    "a setting": Question(step="all", by=("total_iodepth", "host")),
    "some hosts": Question(step="all", where={"host": "client1*"}),
    "a range by the clock": Question(step="all", begin=Instant(BEGAN + 6 * SECOND), end=Instant(BEGAN + 30 * SECOND)),
    "added up": Question(step="all", merge_runs=True),
    "added up, by op": Question(step="all", merge_runs=True, by=("op",)),
    "added up, by run": Question(step="all", merge_runs=True, by=("run",)),
    "added up, a range": Question(step="all", merge_runs=True, begin=Instant(BEGAN + 6 * SECOND)),
}
OF_LAYOUTS = {f"question {number}": one for number, one in enumerate(test_layouts.ASKED[:-1], 1)}  # the last begins after its end
WHOLE = ("sysbench", "ceph", "prom")  # histograms of 2 to 10 s: no window of 1 s can be had
CASES = {
    "archive of CBT": Case(there(test_contract.EXAMPLE), test_contract.QUESTIONS),
    "archive with many runs": Case(unpacked, OF_MANY_RUNS),
    "means": Case(there("fio/means-100"), OF_MEANS, 1),
    "means of a group": Case(there("fio/means-grouped"), OF_MEANS, 1),
    "means of the last job": Case(there("fio/means-last-job"), OF_MEANS, 1),
    "single operations": Case(there("raw/both", prefer="raw"), OF_EVENTS),
    "histograms beside single operations": Case(there("raw/both", prefer="hist"), OF_EVENTS),
    "tags": Case(there("hdr/tagged.hlog", recorded_unit_ns=1, t0=test_contract.ZERO["t0"]), OF_HDR),
    "few digits": Case(there("hdr/2.1.12-3-digits-lowest-1000.hlog", recorded_unit_ns=1, t0=test_contract.ZERO["t0"]), OF_HDR),
    "many layouts": Case(there("hdr/double.hlog", recorded_unit_ns=1000), OF_LAYOUTS),
    **{
        name: Case(
            lambda folder, name=name: test_histograms.sample(name, folder),
            {key: one for key, one in OF_HISTOGRAMS.items() if one.step == "all" or not name.startswith(WHOLE)},
            2 if name in test_histograms.QUICK else 0,
            loading={} if name.startswith(WHOLE) else {"step_ns": SECOND},
        )
        for name in test_histograms.SAMPLES
    },
}


class Origins:
    """The files of each case, and a store of each kind that holds all cases which were asked for, each as a run of its name."""

    def __init__(self, folder: Path, urls: dict[str, str]) -> None:
        self.folder, self.urls = folder, urls
        self.files: dict[str, Files] = {}

    def of(self, name: str) -> Files:
        """Return the files of a case, and have its run in every store."""
        if name not in self.files:
            case, run = CASES[name], run_of(name)
            path, reading = case.place(self.folder)
            for url in self.urls.values():
                loaded(url, [path], run, reading=reading, **case.loading)
            self.files[name] = Files([path], ReadOptions(run=run, **reading), jobs=1)
        return self.files[name]


def run_of(name: str) -> str:
    return name.replace(" ", "-")


@pytest.fixture(scope="module")
def origins(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Origins]:
    folder = tmp_path_factory.mktemp("origins")
    with ExitStack() as stack:
        yield Origins(folder, {kind: stack.enter_context(grounds(kind, folder)).url for kind in KINDS})


def asked() -> Iterator[Any]:
    for name, case in CASES.items():
        for words in case.questions:
            yield pytest.param(name, words, id=f"{name}: {words}")


def told(origin: Any, question: Question, warnings: int) -> list[str]:
    """Return the kind, the first warnings and the rows of an answer."""
    answer = origin.answer(question)
    return [answer.kind, *answer.warnings[:warnings], *csv_lines(percentiles(answer, WANTED))]


@pytest.mark.cases(25)
@pytest.mark.parametrize(("name", "words"), list(asked()))
def test_files_and_stores_give_the_same_rows(origins: Origins, name: str, words: str) -> None:
    files, run, case = origins.of(name), run_of(name), CASES[name]
    question = case.questions[words]
    if isinstance(question.step, int) and any(question.step % stored for stored in files.stored.values()):
        pytest.skip("stores hold wider windows")
    expected = told(files, question, case.warnings)
    assert len(expected) > 2 + case.warnings, "there are rows"
    for kind, url in origins.urls.items():
        with open_store(url) as store:
            assert told(store, replace(question, runs=(run, f"{run}/*")), case.warnings) == expected, kind
