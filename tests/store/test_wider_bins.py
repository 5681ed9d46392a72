"""Bins coarsened on every store: what is asked afterwards is what logs recorded in wider bins answer; whole after any kill."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, TailboardError, UsageError
from ingest.core.layout import NO_BINS, common_layout, fio_layout, hdr_layout
from ingest.query.files import Files
from ingest.query.percentiles import percentiles
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.store.elastic import lifecycle as on_a_server
from ingest.store.elastic.documents import Chunk
from ingest.store.lifecycle import BINS_COARSENING, CoarserBins
from ingest.view.text import csv_lines
from tests.any.making import HDR, MS, SECOND, TAGS, Data, File, Load, Purse, asked, hist, hlog
from tests.any.model import Row
from tests.any.test_any import WANTED, live, question_of, stores, write
from tests.effort import figure
from tests.oracles import hdr
from tests.store.grounds import grounds, loaded
from tests.store.test_contract import KINDS

pytestmark = pytest.mark.contract
ZERO = 1_700_000_000 * SECOND
READING = {"reading": {"t0": ZERO, "recorded_unit_ns": 1}}
TO = CoarserBins(digits=2, coarseness=5)


@pytest.fixture(params=[kind if kind == "sqlite" else pytest.param(kind, marks=pytest.mark.slow) for kind in KINDS])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def coarse_hist(log: File) -> File:
    """The same log as fio writes it with coarseness 5: neighbouring cells added up, by plain sums."""
    joined = []
    for line in log.text.splitlines():
        *head, first = line.split(", ")[:3], line.split(", ")[3:]
        cells = list(map(int, first))
        many = len(cells) // 58
        joined.append(", ".join([*head[0], *(str(sum(cells[at : at + many])) for at in range(0, len(cells), many))]))
    return replace(log, text="\n".join(joined) + "\n")


def coarse_hlog(log: File) -> File:
    """The same log recorded with 2 digits: each count at the bin that holds the lower edge of its own."""
    rows = []
    for row in log.written:
        assert isinstance(row, Row)
        counts = Counter[int]()
        for index, count in row.counts.items():
            counts[HDR[2].index(row.layout.lower(index))] += count
        rows.append(replace(row, counts=counts))
    lines = log.text.splitlines(keepends=True)
    head = [line for line in lines if line.startswith("#")]
    body = [
        hdr.line(
            f"{(row.start - log.zero) / SECOND:.3f}",
            f"{(row.end - row.start) / SECOND:.3f}",
            row.counts,
            tag=tag_of(row),
            digits=2,
        )
        for row in sorted(rows, key=lambda row: row.start)
    ]
    return replace(log, text="".join(head + body))


def tag_of(row: Row) -> str:
    op, kind, tag = row.labels[4], row.labels[5], row.labels[6]
    return next((name for name, known in TAGS.items() if known == (op, kind, tag)), tag)


def unlike(seed: int, urls: list[str], rebuilt: list[str], folder: Path) -> list[str]:
    """Return the questions that coarsened stores answer otherwise than files with wider bins, or stores that were loaded with these."""
    rng = random.Random(f"{seed} bins")
    fio = rng.random() < 0.5
    zero = ZERO + rng.randint(0, 999) * MS
    hosts = ("h1", "h2") if rng.random() < 0.5 else ("",)
    made = [(hist if fio else hlog)(rng, f"b{seed}", host, zero, 1000, Purse(rng.choice((9, 300, 1 << 30)))) for host in hosts]
    fine = [replace(log, name=f"{host}/{log.name}" if host else log.name) for host, log in zip(hosts, made, strict=True)]
    wide = [coarse_hist(log) if fio else coarse_hlog(log) for log in fine]
    data = Data(f"b{seed}", zero, SECOND, SECOND, (Load(tuple(fine)),), tuple(fine), zero)
    again = replace(data, loads=(Load(tuple(wide)),), files=tuple(wide))
    for number, (url, other) in enumerate(zip(urls, rebuilt, strict=True)):
        live(data, "fine", url, folder / str(number))
        live(again, "wide", other, folder / str(number))
        with open_store(url, write=True) as store:
            store.widen(data.run, TO)
            assert not store.verify(lambda _: True).faults
    files = Files([write(folder / "wide", wide)], ReadOptions(run=data.run, t0=zero, recorded_unit_ns=1), jobs=1)
    found = []
    for number in range(5):
        question = question_of([data], asked(rng, [data]))
        # At a step that no store can answer files are cut finer.
        answers = [] if isinstance(question.step, int) and question.step % SECOND else [answered(files, question)]
        for url in (*urls, *rebuilt):
            with open_store(url) as store:
                answers.append(answered(store, question))
        if any(answer != answers[0] for answer in answers):
            found.append(f"seed {seed}, question {number}: {question}\n" + "\n".join(map(str, answers)))
    return found


def answered(origin, question: Question) -> list[str]:
    try:
        answer = origin.answer(question)
    except TailboardError as error:
        return [type(error).__name__]
    return [*csv_lines(percentiles(answer, WANTED)), str([str(part.layout) for part in answer.parts])]


@pytest.mark.slow
def test_what_is_asked_afterwards_is_what_logs_in_wider_bins_answer(tmp_path: Path) -> None:
    found: list[str] = []
    for seed in range(figure(1, 3, 1500)):
        with stores(tmp_path) as first, stores(tmp_path) as second:
            found += unlike(seed, [each.url for each in first], [each.url for each in second], tmp_path / str(seed))
            for fine, wide in zip(first, second, strict=True):
                assert fine.rollups() == wide.rollups(), seed
    assert not found, "\n".join(found)


def test_wider_layouts_are_those_of_the_tools() -> None:
    for groups, unit in ((29, 1), (19, 1000)):
        for before in (0, 2, 5):
            for now in range(1, 7):
                wider = CoarserBins(coarseness=now).of(fio_layout(groups, unit, before))
                assert wider == fio_layout(groups, unit, max(before, now))
    for unit, magnitude in ((1, 0), (1000, 3), (1, 10)):
        for before in (0, 2, 3, 4):
            for now in (0, 1, 2, 4):
                fine = hdr_layout(before, magnitude, unit)
                assert CoarserBins(digits=now).of(fine) == hdr_layout(min(before, now), magnitude, unit)
                assert fine.nests_in(CoarserBins(digits=now).of(fine))
    merged = common_layout([fio_layout(29, 1), hdr_layout(3, 0, 1)])
    for other in (merged, NO_BINS):
        assert CoarserBins(4, 6).of(other) == other
    assert CoarserBins(digits=1).of(fio_layout(29, 1)) == fio_layout(29, 1)
    assert CoarserBins(coarseness=6).of(hdr_layout(3, 0, 1)) == hdr_layout(3, 0, 1)


def two_logs(folder: Path, seed: int = 1) -> list[File]:
    rng = random.Random(seed)
    return [hist(rng, "r", "", ZERO, 1000, Purse(50)), hlog(rng, "r", "", ZERO, 1000, Purse(50))]


def stop(*_: object, **__: object) -> None:
    raise KeyboardInterrupt


def held(ground) -> tuple[list, list]:
    return ground.documents(), ground.rollups()


@pytest.mark.cases(2)
@pytest.mark.parametrize(
    "stage",
    ["written", *(pytest.param(stage, marks=pytest.mark.slow) for stage in ("claimed", "records", "rollups"))],
)
def test_a_coarsening_of_bins_that_was_cut_off_is_completed_by_the_next(tmp_path: Path, monkeypatch, stage: str) -> None:
    question = Question(runs=("r",), by=("kind",), step=SECOND)
    with grounds("double", tmp_path) as whole, grounds("double", tmp_path) as cut:
        for ground in (whole, cut):
            loaded(ground.url, [write(tmp_path / "logs", two_logs(tmp_path))], **READING)
        with open_store(whole.url, write=True) as store:
            store.widen("r", TO)
            wanted = answered(store, question)
        sent = []

        def some(self, *words):
            for line in lines(self, *words):
                if len(sent) > 10:
                    raise KeyboardInterrupt
                sent.append(line)
                yield line

        lines = on_a_server.Widening._lines
        with monkeypatch.context() as patch, open_store(cut.url, write=True) as store:
            if stage == "claimed":
                patch.setattr(on_a_server.Widening, "_write", stop)
            elif stage == "written":
                patch.setattr(on_a_server.Widening, "_lines", some)
                patch.setattr(on_a_server, "chunked", lambda each: (Chunk(line, 1) for line in each))
            elif stage == "records":
                patch.setattr("ingest.store.elastic.runs.Records.put_series", stop)
            else:
                patch.setattr("ingest.store.elastic.lifecycle.RollupWriter", stop)
            with pytest.raises(KeyboardInterrupt):
                store.widen("r", TO)
            store.flush()
        with open_store(cut.url) as store:
            [record] = store.runs()
            assert BINS_COARSENING in record.parameters and record.state == "loading"
            assert answered(store, question) == wanted, "documents hold both bins, the answer has the wider"
            warnings = store.answer(question).warnings
            assert any("tailboard runs coarsen 'r' --digits 2 --coarseness 5 completes it" in text for text in warnings)
        with pytest.raises(StoreError, match="the bins of r are being coarsened"):
            loaded(cut.url, [write(tmp_path / "logs", two_logs(tmp_path))], **READING)
        with open_store(cut.url, write=True) as store:
            with pytest.raises(StoreError, match="completes it"):
                store.widen("r", CoarserBins(digits=1))
            with pytest.raises(StoreError, match="the bins of r are being coarsened|not complete"):
                store.coarsen("r", 10 * SECOND)
            store.widen("r", TO)
        assert held(cut) == held(whole)


def test_killed_in_sqlite_nothing_has_happened(tmp_path: Path, monkeypatch) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [write(tmp_path / "logs", two_logs(tmp_path))], **READING)
        before = held(ground)

        monkeypatch.setattr("ingest.store.sqlite.lifecycle.write_rollups", stop)
        with open_store(ground.url, write=True) as store, pytest.raises(KeyboardInterrupt):
            store.widen("r", TO)
        assert held(ground) == before


def test_a_later_load_is_nothing_new_or_refused(ground, tmp_path: Path, capsys) -> None:
    files = two_logs(tmp_path)
    folder = write(tmp_path / "logs", files[:1])
    loaded(ground.url, [folder], **READING)
    fine = ground.documents()
    assert command(["runs", "coarsen", "r", "--coarseness", "6", "--store", ground.url, "--dry-run"]) == 0
    assert ground.documents() == fine and "would coarsen the bins of r: --coarseness 6" in capsys.readouterr().err
    assert command(["runs", "coarsen", "r", "--step", "10s", "--coarseness", "6", "--store", ground.url]) == 0
    assert "coarsened the bins of r (--coarseness 6): " in capsys.readouterr().err
    coarse = held(ground)
    assert {document["layout"] for document in coarse[0]} == {"loglinear:64:1856:1ns:c6:midpoint:open"}
    assert sum(document["count"] for document in coarse[0]) == sum(document["count"] for document in fine)
    with open_store(ground.url) as store:
        answer = store.answer(Question(step="all"))
        assert dict(store.facts(answer))["Stored step"] == "10s, coarsened from 1s, bins coarsened (--coarseness 6)"
        assert not store.verify(lambda _: True).faults
    again = loaded(ground.url, [folder], **READING)
    assert (again.documents, dict(again.duplicate)) == (0, {"already loaded": 1})
    write(folder, files[1:])
    with pytest.raises(StoreError, match=r"1 of these sources are new to it or have grown: load them as another --run"):
        loaded(ground.url, [folder], **READING)
    assert command(["runs", "coarsen", "r", "--coarseness", "3", "--digits", "2", "--store", ground.url]) == 0
    assert "as wide as --digits 2 --coarseness 3 already, or of another kind" in capsys.readouterr().err
    assert held(ground) == coarse
    loaded(ground.url, [folder], replace=True, **READING)
    assert {document["layout"] for document in ground.documents()} >= {document["layout"] for document in fine}


def test_weights_in_flight_keep_their_sums(ground, tmp_path: Path) -> None:
    loaded(ground.url, [write(tmp_path / "logs", two_logs(tmp_path))], attribution="in-flight", **READING)
    before = [sum(document["bins"].values()) for document in ground.documents()]
    with open_store(ground.url, write=True) as store:
        store.widen("r", CoarserBins(digits=0, coarseness=6))
        assert not store.verify(lambda _: True).faults
    assert sum(before) == sum(sum(document["bins"].values()) for document in ground.documents())


def test_widths_that_cannot_be(ground, tmp_path: Path, capsys) -> None:
    for options, said in (
        ([], "give --step, --digits or"),
        (["--digits", "5"], "--digits is 0 to 4"),
        (["--coarseness", "0"], "is 1 to 6"),
    ):
        assert command(["runs", "coarsen", "r", *options, "--store", ground.url]) == 2
        assert said in capsys.readouterr().err
    loaded(ground.url, [write(tmp_path / "logs", two_logs(tmp_path))], **READING)
    with open_store(ground.url, write=True) as store, pytest.raises(UsageError, match="give --step"):
        store.widen("r", CoarserBins())
