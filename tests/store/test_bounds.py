"""Both stores and files: one mean, the same extremes, censored samples that stay censored, and totals that fit the store."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.core.errors import CapacityError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import parse_instant
from ingest.query.coverage import caveats_of
from ingest.query.files import Files
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.text import csv_lines
from oracles import hdr, logs
from tests.store.grounds import grounds, loaded

ZERO = {"t0": 1_789_999_200 * 10**9}
WANTED = Wanted(parse_percentiles("50,90,99,100"))
DATA = Path(__file__).parents[1] / "data"
pytestmark = pytest.mark.contract


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def table_of(answer):
    return percentiles(answer, WANTED)


def test_b6_b7_stores_and_files_say_the_same_of_a_log_of_jhiccup(ground) -> None:
    log = DATA / "precision" / "lowest20000.hlog"
    loaded(ground.url, [log])
    for question in (Question(step="all"), Question(step=10 * 10**9), Question(step=10**9)):
        files = table_of(Files([log], ReadOptions(run="r")).answer(question))
        with open_store(ground.url) as store:
            stored = table_of(store.answer(question))
        assert list(csv_lines(stored)) == list(csv_lines(files))
        assert stored.precision == files.precision


def test_samples_in_the_open_last_bin_of_unlike_layouts_stay_censored(ground, tmp_path: Path) -> None:
    """Their value and that of the bin below were the same: on a server one took the samples of the other."""
    folder = tmp_path / "logs"
    for host, bins, slots in (("a", 1856, {1855: 60, 500: 40}), ("b", 1216, {1215: 60, 1214: 30, 300: 10})):
        (folder / host).mkdir(parents=True)
        (folder / host / "x_clat_hist.1.log").write_text(logs.text([(1000, 0, slots), (2000, 0, slots)], bins))
    loaded(ground.url, [folder], reading=ZERO)
    files = table_of(Files([folder], ReadOptions(run="r", **ZERO)).answer(Question(step="all")))
    with open_store(ground.url) as store:
        stored = table_of(store.answer(Question(step="all")))
    assert list(csv_lines(stored)) == list(csv_lines(files))
    for percent in ("50", "90", "99"):
        assert stored.columns[f"p{percent}_censored"].tolist() == files.columns[f"p{percent}_censored"].tolist() == [True]


def test_b3_a_run_of_more_than_a_store_adds_up_is_refused(ground, tmp_path: Path) -> None:
    """A server adds up in doubles: 2^53 samples a run. SQLite has 64 bits."""
    most = 2**53 - 1
    first, second = tmp_path / "a.hlog", tmp_path / "b.hlog"
    first.write_text(hdr.log([hdr.line("0.000", "1.000", {5: most}, digits=2)]))
    second.write_text(hdr.log([hdr.line("1.000", "1.000", {5: 2}, digits=2)]))
    loaded(ground.url, [first])
    if ground.url.startswith("http"):
        with pytest.raises(CapacityError, match="b.hlog: with it r would hold more than 2\\^53 samples"):
            loaded(ground.url, [second])
    else:
        loaded(ground.url, [second])
    with open_store(ground.url) as store:
        answer = store.answer(Question(step="all"))
    assert answer.samples == (most if ground.url.startswith("http") else most + 2)


@pytest.mark.parametrize("known", [True, False])
def test_b3_a_load_of_too_many_samples_ends_its_run_all_the_same(ground, tmp_path: Path, known: bool, monkeypatch) -> None:
    """The run was "loading" for ever: never checked, not to be deleted, and a repeat of the load ended at the same place."""
    names = ("a", "b", "c")
    for number, name in enumerate(names):
        counts = [{5 + number: 40}, {200: 2}]
        (tmp_path / f"{name}.hlog").write_text(
            hdr.log([hdr.line(f"{10 * number + at}.000", "1.000", mine, digits=2) for at, mine in enumerate(counts)])
        )
    first, *rest = (tmp_path / f"{name}.hlog" for name in names)
    monkeypatch.setattr("ingest.load.load.DOCUMENTS_A_CHUNK", 1)
    if known:
        loaded(ground.url, [first])
    monkeypatch.setattr(
        f"ingest.store.{'elastic.store.Elastic' if ground.url.startswith('http') else 'sqlite.store.Sqlite'}Store.most_samples",
        100,
    )
    with pytest.raises(CapacityError, match=r"c\.hlog: with it r would hold more than"):
        loaded(ground.url, rest if known else [first, *rest])
    with open_store(ground.url, write=True) as store:
        (record,) = store.runs()
        answer = store.answer(Question(step="all"))
        assert record.state == "complete" and answer.samples == 84
        assert not store.verify(lambda _: True).faults
        assert not table_of(answer).columns["complete"].any()
        assert any("c.hlog" in caveat.subject and "would hold more" in caveat.sentence for caveat in caveats_of(answer.missing))
        store.delete_run("r")
        assert not store.runs()


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_run_starts_with_its_earliest_log_whichever_load_brings_it(ground, tmp_path: Path, order: tuple[int, int]) -> None:
    """`--from +2s` counts from there: two loads give the rows of one load of both, and of the files."""
    paths = []
    for name, second in (("early", 1_700_000_000), ("late", 1_700_000_004)):
        path = tmp_path / f"{name}.hlog"
        lines = [hdr.line(f"{second + at}.000", "1.000", {at + 5: 3}, digits=2) for at in range(8)]
        path.write_text(hdr.log(lines, f"#[Logged with jHiccup]\n#[StartTime: {second}.000 (seconds since epoch)]\n"))
        paths.append(path)
    for place in order:
        loaded(ground.url, [paths[place]])
    question = Question(step=10**9, begin=parse_instant("+2s"), end=parse_instant("+6s"))
    files = Files(paths, ReadOptions(run="r")).answer(question)
    with open_store(ground.url) as store:
        (record,) = store.runs()
        assert record.start_ns == files.start_of == 1_700_000_000 * 10**9
        assert list(csv_lines(table_of(store.answer(question)))) == list(csv_lines(table_of(files)))
