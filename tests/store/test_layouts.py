"""A document keeps the bins that it was recorded in, on every store: no sample is moved, lost or read in bins of another layout."""

from __future__ import annotations

import gzip
import random
from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import StoreError, TailboardError
from ingest.core.units import parse_instant
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import live_store, open_store
from ingest.store.elastic.runs import Sweeper
from ingest.store.sqlite import documents as sqlite_documents
from ingest.store.sqlite import rollups as sqlite_rollups
from tests.databases import database
from tests.doubles.elasticsearch.bulk import Writer
from tests.effort import figure
from tests.live.feeding import EPOCH, Clock, begun
from tests.oracles import hdr
from tests.store.grounds import SqliteGround, grounds, loaded
from tests.store.test_contract import KINDS, csv

pytestmark = pytest.mark.contract
DATA = Path(__file__).parents[1] / "data"
DOUBLE, BLOBS = DATA / "hdr" / "double.hlog", DATA / "hdr" / "2.2.2-blobs.hlog.gz"
SECOND = 1_000_000_000
UNIT = {"recorded_unit_ns": 1000}
AT = {second: parse_instant(f"2023-11-14T22:13:{20 + second:02d}Z") for second in range(0, 31, 5)}
ASKED = (
    Question(step=SECOND),
    Question(step=5 * SECOND),
    Question(by=("op", "kind"), step=5 * SECOND),
    Question(by=("tag",), step=10 * SECOND),
    Question(by=("process",), step="all"),
    Question(step="all"),
    Question(where={"kind": "*"}, step=10 * SECOND),
    Question(step=5 * SECOND, begin=AT[5], end=AT[10]),
    Question(by=("op",), step=5 * SECOND, end=AT[5]),
    Question(by=("tag",), step=10 * SECOND, begin=AT[20]),
)


@pytest.fixture(params=KINDS)
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def rows(origin, question: Question) -> list[str]:
    try:
        return csv(origin.answer(question))
    except TailboardError as error:  # what is refused is refused by all
        return [type(error).__name__]


def answers(url: str, asked=ASKED) -> list[list[str]]:
    with open_store(url) as store:
        return [rows(store, question) for question in asked]


def of_files(paths, asked=ASKED, **reading) -> list[list[str]]:
    files = Files(paths, ReadOptions(run="r", **reading), jobs=1)
    return [rows(files, question) for question in asked]


def coarsened(url: str, step_ns: int) -> None:
    with open_store(url, write=True) as store:
        store.coarsen("r", step_ns)


def in_all(ground) -> int:
    return sum(one["count"] for one in ground.documents())


def mixed(folder: Path, lines: list[tuple[int, int, int, str]], name: str = "x.hlog") -> tuple[Path, Counter]:
    """A log of lines (second, digits, seed, tag), and its samples by (start in ns, tag, highest value of the bin).

    Tens in `digits` are the magnitude: 42 are 2 digits, the lowest discernible value being 2^4 us.
    """
    found: Counter = Counter()
    texts = []
    for second, shape, seed, tag in lines:
        magnitude, digits = divmod(shape, 10)
        chance = random.Random(seed)
        values = [chance.randrange(1, 40_000) for _ in range(1 + seed % 20)]
        counts = Counter(hdr.index_of(value, digits, magnitude) for value in values)
        texts.append(hdr.line(f"{second}.000", "1.000", counts, tag=tag, digits=digits, lowest=1 << magnitude))
        for slot, count in counts.items():
            highest = (hdr.lower_edge(slot + 1, digits, magnitude) - 1) * 1000
            found[(EPOCH + second) * SECOND, tag, highest] += count
    path = folder / name
    path.write_text(hdr.log(texts, head="#[StartTime: 1700000000.000 (seconds since epoch)]\n"))
    return path, found


def held(ground, step: int = SECOND) -> Counter:
    found: Counter = Counter()
    for one in ground.documents():
        assert one["step"] == step and sum(one["bins"].values()) == one["count"]
        for value, count in one["bins"].items():
            found[one["start"], one["op"] or one["tag"], value] += count
    return found


def by_step(samples: Counter, step: int) -> Counter:
    found: Counter = Counter()
    for (start, tag, value), count in samples.items():
        found[start // step * step, tag, value] += count
    return found


CHANGED = [(second, 3 if second < 5 else 2, second, "") for second in range(10)]


def test_b1_a_log_whose_digits_change_is_stored_in_the_bins_that_it_has(ground, tmp_path: Path) -> None:
    path, samples = mixed(tmp_path, CHANGED)
    loaded(ground.url, [path], reading=UNIT)
    assert held(ground) == samples
    assert Counter((one["segment"], one["layout"].split(":")[1]) for one in ground.documents()) == {(0, "1024"): 5, (1, "128"): 5}
    assert answers(ground.url) == of_files([path], **UNIT)


def test_b1_tags_of_unlike_digits_are_each_stored_in_their_own(ground, tmp_path: Path) -> None:
    path, samples = mixed(tmp_path, [(s, 3 if tag == "a" else 1, s, tag) for s in range(10) for tag in "ab"])
    loaded(ground.url, [path], reading=UNIT)
    assert held(ground) == samples
    assert {one["segment"] for one in ground.documents()} == {0}
    assert answers(ground.url) == of_files([path], **UNIT)


@pytest.mark.parametrize("log", [DOUBLE, pytest.param(BLOBS, marks=pytest.mark.slow)], ids=["double", "blobs"])
def test_b1_logs_of_many_layouts_give_what_their_files_give(ground, log: Path) -> None:
    loaded(ground.url, [log], reading=UNIT)
    assert in_all(ground) == {DOUBLE: 2400, BLOBS: 3600}[log]
    assert answers(ground.url) == of_files([log], **UNIT)


def test_b1_in_flight_shares_keep_their_bins(ground, tmp_path: Path) -> None:
    path, _ = mixed(tmp_path, CHANGED)
    loaded(ground.url, [path], reading=UNIT, attribution="in-flight")
    asked = [replace(one, attribution="in-flight") for one in ASKED]
    assert answers(ground.url, asked) == of_files([path], asked, **UNIT)
    assert len({one["layout"] for one in ground.documents()}) == 2


def test_b1_segments_are_numbered_alike_however_a_log_is_read(tmp_path: Path, monkeypatch) -> None:
    """Batches may end anywhere: overlapping lines and changes of layout count in the order of lines."""
    chance = random.Random(7)
    lines = [(chance.choice((n, n, max(0, n - 3))), chance.choice((1, 2, 3)), n, chance.choice("ab")) for n in range(40)]
    path, samples = mixed(tmp_path, lines)
    found = []
    for at_once in (1, 200, 1 << 20):
        monkeypatch.setattr("ingest.read.hdr.log.BATCH_BYTES", at_once)
        ground = SqliteGround(tmp_path)
        loaded(ground.url, [path], reading=UNIT)
        assert held(ground) == samples
        found.append(ground.documents())
    assert found[0] == found[1] == found[2]


def test_b1_a_range_without_a_layout_is_shown_as_the_whole_is(ground, tmp_path: Path) -> None:
    """Rollups of a run are in the layout of all of it, so are files and documents: bytes do not hang on the way."""
    path, _ = mixed(tmp_path, CHANGED)
    other, _ = mixed(tmp_path, [(s, 3, s, "") for s in range(20, 30)], "y.hlog")
    loaded(ground.url, [path, other], reading=UNIT)
    asked = [replace(one, begin=AT[20], end=None) for one in ASKED]
    fine = answers(ground.url, asked)
    assert fine == of_files([path, other], asked, **UNIT)
    assert all(len(one) > 1 for one in fine)


def test_b1_the_kind_that_is_taken_is_one_of_the_range(ground, tmp_path: Path) -> None:
    """Service is taken before others, and the log has none of it in the range."""
    path, _ = mixed(tmp_path, [(s, 2, s, tag) for s in range(20) for tag in (("read-st", "") if s > 10 else ("",))])
    loaded(ground.url, [path], reading=UNIT)
    asked = [Question(step=5 * SECOND, end=AT[10]), Question(step="all", end=AT[10]), Question(step=5 * SECOND)]
    assert answers(ground.url, asked) == of_files([path], asked, **UNIT)
    assert all(len(one) > 1 for one in answers(ground.url, asked))


def test_b1_rollups_of_unlike_layouts_end_in_the_bins_that_documents_end_in(ground, tmp_path: Path, monkeypatch) -> None:
    """Bins of 3 digits nest in those of 1 digit and in those of 16 ms: by way of the host they would come to the latter."""
    for host in ("h1", "h2"):
        (tmp_path / "logs" / host).mkdir(parents=True)
    mixed(tmp_path / "logs" / "h1", [(s, 3 if s % 2 else 142, s, "") for s in range(20)])
    mixed(tmp_path / "logs" / "h2", [(s, 1, s, "") for s in range(20)])
    loaded(ground.url, [tmp_path / "logs"], reading=UNIT)
    asked = [
        Question(step="all"),
        Question(by=("host",), step="all"),
        Question(step=10 * SECOND),
        Question(where={"host": "h1"}, step="all"),
    ]
    expected = of_files([tmp_path / "logs"], asked, **UNIT)
    assert answers(ground.url, asked) == expected
    with monkeypatch.context() as wrong:
        wrong.setattr("ingest.store.answers._moved_once", lambda *_: True)
        assert answers(ground.url, asked[:3]) != expected[:3], "this test can fail"


def test_b1_a_run_that_is_replaced_in_other_bins_never_reads_the_old_ones_as_new(ground, tmp_path: Path) -> None:
    raw = tmp_path / "x.csv"
    raw.write_text(
        "start_us,end_us,op\n" + "".join(f"{(EPOCH + s) * 10**6},{(EPOCH + s) * 10**6 + 500 * s + 7},read\n" for s in range(40))
    )
    asked = (ASKED[0], ASKED[4])
    loaded(ground.url, [raw])
    for digits in (3, 1):
        loaded(ground.url, [raw], reading={"digits": digits}, replace=True)
        assert answers(ground.url, asked) == of_files([raw], asked, digits=digits)
        assert in_all(ground) == 40


def test_b1_a_series_that_another_source_holds_in_other_bins_is_refused(tmp_path: Path) -> None:
    ground = SqliteGround(tmp_path)
    loaded(ground.url, [mixed(tmp_path, CHANGED[:5])[0]], reading=UNIT)
    before = ground.documents()
    with open_store(ground.url, write=True) as store:
        (run,), (source,) = store.runs(), store.sources("r")
        store.db.execute("UPDATE series SET layout = replace(layout, ':1024:', ':2048:')")
        windows = next(iter(store.windows(Question(by=("process",)))))
        store.db.execute("UPDATE series SET layout = replace(layout, ':2048:', ':1024:')")
        series = next(one.series for one in sqlite_documents.stored_series(store.db, ["r"]))
        moved = windows.take(windows.series * 0)
        with pytest.raises(StoreError, match="holds other bins under the same labels"):
            store.write(run, source, store.packed(run, source, replace(moved, table=(series,))))
    assert ground.documents() == before


# --- stores that earlier versions have written


def test_b1_a_store_of_before_has_nothing_new_to_load(tmp_path: Path) -> None:
    path = tmp_path / "before.db"
    path.write_bytes(gzip.decompress((DATA / "store" / "before-layouts.db.gz").read_bytes()))
    for run, log, reading in (("plain", DATA / "hdr" / "2.1.12-2-digits.hlog", UNIT), ("mixed", DOUBLE, {})):
        ids = ids_of(path, run)
        assert loaded(f"sqlite:{path}", [log], run=run, reading=reading).duplicate == {"already loaded": 1}
        loaded(f"sqlite:{path}", [log], run=run, reading=reading, replace=True)
        files, asked = Files([log], ReadOptions(run=run, **reading)), [replace(one, runs=(run,)) for one in ASKED]
        assert answers(f"sqlite:{path}", asked) == [rows(files, one) for one in asked]
        assert run == "mixed" or ids_of(path, run) == ids


def ids_of(path: Path, run: str) -> list[tuple[int]]:
    with database(path) as db:
        return db.execute(
            "SELECT i.id FROM intervals i JOIN series s ON s.id = i.id >> 36 WHERE run = ? ORDER BY 1", (run,)
        ).fetchall()


def test_f1_a_run_of_before_that_holds_a_series_in_two_layouts_is_coarsened_whole(tmp_path: Path) -> None:
    with grounds("double", tmp_path) as ground:
        lines = gzip.decompress((DATA / "store" / "before-layouts.ndjson.gz").read_bytes()).replace(
            b"PREFIX", ground.prefix.encode()
        )
        answer = ground.client.bulk(body=lines, refresh=True)
        assert not answer["errors"]
        assert loaded(ground.url, [DOUBLE]).duplicate == {"already loaded": 1}
        whole = [one for one in ASKED if one.begin is None and one.end is None and one.step in ("all", 5 * SECOND, 10 * SECOND)]
        before = answers(ground.url, whole)
        assert in_all(ground) == 2400
        coarsened(ground.url, 5 * SECOND)
        assert in_all(ground) == 2400 and {one["step"] for one in ground.documents()} == {5 * SECOND}
        assert answers(ground.url, whole) == before
        keys = Counter((*list(one.values())[:9], one["start"]) for one in ground.documents())
        assert set(keys.values()) == {1}, "one layout a series"


# --- coarsening


@pytest.mark.cases(2)
@pytest.mark.slow
@pytest.mark.parametrize("log", [DOUBLE, pytest.param(BLOBS, marks=pytest.mark.slow)], ids=["double", "blobs"])
def test_f1_coarsening_loses_nothing_of_a_log_of_many_layouts(ground, log: Path) -> None:
    loaded(ground.url, [log], reading=UNIT)
    whole = [one for one in ASKED if one.step in ("all", 5 * SECOND, 10 * SECOND)]
    before, layouts, samples = answers(ground.url, whole), {one["layout"] for one in ground.documents()}, in_all(ground)
    coarsened(ground.url, 5 * SECOND)
    assert in_all(ground) == samples and {one["layout"] for one in ground.documents()} == layouts
    assert answers(ground.url, whole) == before
    coarsened(ground.url, 10 * SECOND)
    wide = [number for number, one in enumerate(whole) if one.step != 5 * SECOND and one.begin is None and one.end is None]
    assert [answers(ground.url, whole)[number] for number in wide] == [before[number] for number in wide]


def losing(monkeypatch, index: str, *, step: int = 0, every: int = 3) -> None:
    """Let the double answer as if it had written a document that it has not: one in so many of an index."""
    real, seen = Writer._put, Counter()

    def put(self, place, shard, write):
        step_ms = b'"step_ms":%d' % (step // 10**6)
        if index in place.name and (not step or step_ms in bytes(write.source)):
            seen["put"] += 1
            if seen["put"] % every == 0:
                return 201, self._answer(place, write, 1, "created", 0)
        return real(self, place, shard, write)

    monkeypatch.setattr(Writer, "_put", put)


@pytest.mark.slow
def test_f1_on_a_server_a_coarsening_that_lost_a_document_stops_and_deletes_nothing(tmp_path: Path, monkeypatch, capsys) -> None:
    with grounds("double", tmp_path) as ground:
        loaded(ground.url, [DOUBLE])
        before, told = ground.documents(), answers(ground.url)
        with monkeypatch.context() as broken:
            losing(broken, "intervals", step=5 * SECOND)
            assert command(["runs", "coarsen", "r", "--step", "5s", "--store", ground.url]) == 4
        assert "nothing was deleted; run the same command again" in " ".join(capsys.readouterr().err.split())
        assert [one for one in ground.documents() if one["step"] == SECOND] == before
        assert answers(ground.url) == told
        assert command(["runs", "coarsen", "r", "--step", "5s", "--store", ground.url]) == 0
        assert in_all(ground) == 2400 and {one["step"] for one in ground.documents()} == {5 * SECOND}


def test_f1_in_a_file_a_coarsening_that_lost_a_window_changes_nothing(tmp_path: Path, monkeypatch, capsys) -> None:
    ground = SqliteGround(tmp_path)
    loaded(ground.url, [DOUBLE])
    before = ground.documents(), ground.rollups()
    from ingest.store.sqlite import lifecycle as sqlite_coarsening

    real = sqlite_coarsening.coarsened
    monkeypatch.setattr(sqlite_coarsening, "coarsened", lambda part, step: real(part.take(range_but_last(part)), step))
    assert command(["runs", "coarsen", "r", "--step", "5s", "--store", ground.url]) == 4
    assert "nothing was deleted" in " ".join(capsys.readouterr().err.split())
    assert (ground.documents(), ground.rollups()) == before


def range_but_last(part):
    import numpy as np

    return np.arange(max(len(part) - 1, 1))


# --- replacing


def test_f1_on_a_server_a_replacing_load_that_lost_a_document_deletes_nothing(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        log, samples = mixed(tmp_path, CHANGED)
        loaded(ground.url, [log], reading=UNIT)
        swept = []
        with monkeypatch.context() as broken:
            broken.setattr(Sweeper, "sweep", lambda *words: swept.append(words))
            losing(broken, "intervals")
            with pytest.raises(StoreError, match=r"run the same load again"):
                loaded(ground.url, [log], reading=UNIT, replace=True)
        assert not swept and in_all(ground) == sum(samples.values())
        loaded(ground.url, [log], reading=UNIT, replace=True)
        assert held(ground) == samples


def test_f1_in_a_file_a_replacing_load_that_lost_a_document_deletes_nothing(tmp_path: Path, monkeypatch) -> None:
    ground = SqliteGround(tmp_path)
    log, samples = mixed(tmp_path, CHANGED)
    loaded(ground.url, [log], reading=UNIT)
    with monkeypatch.context() as broken:
        real = sqlite_documents.document_rows
        broken.setattr("ingest.store.sqlite.store.document_rows", lambda *words: list(real(*words))[1:])
        with pytest.raises(StoreError, match="nothing of what was there before was deleted; run the same load again"):
            loaded(ground.url, [log], reading=UNIT, replace=True)
    assert in_all(ground) == sum(samples.values())
    loaded(ground.url, [log], reading=UNIT, replace=True)
    assert held(ground) == samples


def test_f1_rollups_that_do_not_add_up_are_not_kept(tmp_path: Path, monkeypatch) -> None:
    ground = SqliteGround(tmp_path)
    loaded(ground.url, [mixed(tmp_path, CHANGED)[0]], reading=UNIT)
    before = ground.rollups()
    real = sqlite_rollups.merged_in
    monkeypatch.setattr(sqlite_rollups, "merged_in", lambda *words: (part.take(range_but_last(part)) for part in real(*words)))
    with pytest.raises(StoreError, match="nothing was changed; run the same command again"):
        loaded(ground.url, [mixed(tmp_path, CHANGED[2:], "y.hlog")[0]], reading=UNIT)
    assert ground.rollups() == before


@pytest.mark.slow
def test_f1_rollups_that_a_server_lost_leave_the_source_to_be_read_again(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        log, samples = mixed(tmp_path, CHANGED)
        with monkeypatch.context() as broken:
            losing(broken, "rollups", every=4)
            with pytest.raises(StoreError, match="samples were sent in rollups .* run the same command again"):
                loaded(ground.url, [log], reading=UNIT)
        with open_store(ground.url) as store:
            assert store.runs()[0].state == "loading"
        whole = of_files([log], **UNIT)[0]
        assert [row.replace("false,false", "false,true") for row in answers(ground.url)[0]] == whole, (
            "it says that it may lack some"
        )
        loaded(ground.url, [log], reading=UNIT)
        assert held(ground) == samples and answers(ground.url) == of_files([log], **UNIT)


def test_f1_rows_that_a_watch_sets_aside_are_deleted_only_once_they_are_there(tmp_path: Path, monkeypatch) -> None:
    with grounds("double", tmp_path) as ground:
        log, samples = mixed(tmp_path, CHANGED)
        loaded(ground.url, [log], reading=UNIT)
        with open_store(ground.url, write=True) as store:
            (run,), (source,) = store.runs(), store.sources("r")
            live, kept = live_store(store), replace(source, source="kept~1", digest="kept 1")
            with monkeypatch.context() as broken:
                losing(broken, "intervals")
                with pytest.raises(StoreError, match="were to be kept, .* are there: nothing was deleted"):
                    live.set_aside(run, source.source, kept, 1 << 20)
            assert sum(one["count"] for one in ground.documents() if one["segment"] < 1 << 20) == sum(samples.values())
            live.set_aside(run, source.source, kept, 1 << 20)
        assert held(ground) == samples and {one["segment"] for one in ground.documents()} == {1 << 20, (1 << 20) + 1}


@pytest.mark.parametrize("kind", ["sqlite", "double"])
def test_b2_rows_that_a_later_reading_has_taken_over_are_not_set_aside(tmp_path: Path, kind: str) -> None:
    """A watch that slept while another process began its file anew has nothing to keep: the other reads all of it."""
    with grounds(kind, tmp_path) as ground:
        log, samples = mixed(tmp_path, CHANGED)
        loaded(ground.url, [log], reading=UNIT)
        with open_store(ground.url, write=True) as store, open_store(ground.url, write=True) as other:
            (run,), (source,) = store.runs(), store.sources("r")
            other.begin(run, [replace(source, generation=source.generation + 1, digest="")])
            before = ground.documents()
            live_store(store).set_aside(run, source.source, replace(source, source="kept~1", digest="kept 1"), 1 << 20)
            (there,) = store.sources("r")
            assert (there.source, there.generation, there.state) == (source.source, source.generation + 1, "loading")
        assert ground.documents() == before
        loaded(ground.url, [log], reading=UNIT)
        assert held(ground) == samples and answers(ground.url) == of_files([log], **UNIT)


# --- series without a kind


def without_kind(ground) -> int:
    return sum(1 for row in ground.rollups() if not row[2])


@pytest.mark.parametrize("how", ["replace", "coarsen", "watch"])
def test_f2_rollups_of_series_without_a_kind_stay(ground, tmp_path: Path, how: str) -> None:
    folder = tmp_path / "logs"
    folder.mkdir()
    log, _ = mixed(folder, [(s, 2, s, tag) for s in range(10) for tag in ("", "read-st")])
    loaded(ground.url, [log], reading=UNIT)
    assert {row[2] for row in ground.rollups()} == {"", "service"}
    before = without_kind(ground)
    if how == "replace":
        loaded(ground.url, [log], reading=UNIT, replace=True)
        assert without_kind(ground) == before
    elif how == "coarsen":
        coarsened(ground.url, 5 * SECOND)
        assert without_kind(ground) == 2 * (2 + 1 + 1 + 1)  # of host and cluster at 5 s, 10 s, 1 min, of the whole run
    else:
        with log.open("a") as more:
            more.write(hdr.line("10.000", "1.000", {77: 5}, digits=2))
        with open_store(ground.url, write=True) as store:
            watch = begun(folder, store, Clock(), reading=UNIT)
            watch.cycle()
            watch.cycle(last=True)
            watch.settle()
        assert without_kind(ground) > before
    asked = [Question(by=("kind",), step=10 * SECOND), Question(by=("kind",), step="all")]
    assert answers(ground.url, asked) == of_files([log], asked, **UNIT)


# --- all together


SHAPES = (1, 2, 3, 41, 42, 73)


def log_of(chance: random.Random, folder: Path, name: str) -> tuple[Path, Counter]:
    lines = []
    digits = {tag: chance.choice(SHAPES) for tag in ("", "read-st", "b")}
    for second in range(chance.randint(2, 25)):
        for tag, before in list(digits.items()):
            digits[tag] = now = chance.choice(SHAPES) if chance.random() < 0.15 else before
            if chance.random() < 0.7:
                lines.append((max(0, second - (3 if chance.random() < 0.1 else 0)), now, chance.randrange(10**6), tag))
    return mixed(folder, lines or [(0, 2, 1, "")], name)


def told_by_tag(samples: Counter) -> Counter:
    found: Counter = Counter()
    for (start, tag, value), count in samples.items():
        found[start, "read" if tag == "read-st" else tag, value] += count
    return found


def through(seed: int, kind: str, folder: Path) -> None:
    """Load, load twice, replace, watch, coarsen, in any order: the same samples in the same bins, and the bytes of files."""
    chance = random.Random(seed)
    asked = random.Random(-seed).sample(ASKED, figure(3, len(ASKED)))
    logs = folder / f"{kind}{seed}"
    logs.mkdir()
    with grounds(kind, folder) as ground:
        samples: Counter = Counter()
        for number in range(chance.randint(1, 2)):
            path, some = log_of(chance, logs, f"{number}.hlog")
            samples.update(told_by_tag(some))
        if chance.random() < 0.5:
            text = {path: path.read_bytes() for path in sorted(logs.iterdir())}
            with open_store(ground.url, write=True) as store:
                watch = begun(logs, store, Clock(), reading=UNIT)
                for share in (0.3, 0.6, 1.0):
                    for path, whole in text.items():
                        path.write_bytes(whole[: int(len(whole) * share)])
                    watch.cycle()
                watch.cycle(last=True)
                assert watch.settle().sources is not None
        else:
            loaded(ground.url, [logs], reading=UNIT, step_ns=SECOND)
        for _ in range(2):
            assert held(ground) == samples
            assert answers(ground.url, asked) == of_files([logs], asked, **UNIT)
            loaded(ground.url, [logs], reading=UNIT, step_ns=SECOND, replace=chance.random() < 0.7)
        whole = [one for one in asked if one.step == 5 * SECOND or one.step == "all"]
        before = answers(ground.url, whole)
        coarsened(ground.url, 5 * SECOND)
        assert held(ground, 5 * SECOND) == by_step(samples, 5 * SECOND)
        assert answers(ground.url, whole) == before


@pytest.mark.parametrize("kind", KINDS)
def test_b1_f1_series_of_changing_layouts_keep_every_sample_through_anything(kind: str, tmp_path: Path) -> None:
    for seed in range(figure(1, 2, 400)):
        through(seed, kind, tmp_path)
