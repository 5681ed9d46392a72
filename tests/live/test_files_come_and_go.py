"""What may become of a file while it is watched: truncated, deleted, compressed, copied over, copied in piece by piece."""

from __future__ import annotations

import gc
import gzip
import json
import os
import random
import resource
import shutil
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import pytest

from ingest.core.errors import CapacityError
from ingest.core.pool import fork_map
from ingest.live.watch import cycle, state, tail
from ingest.live.watch import files as watched_files
from ingest.load.load import load
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.records import COMPLETE, LOADING, WATCHED
from ingest.store.sqlite import records, rollups
from tests.commands import tailboard
from tests.live.feeding import HEAD, SECOND, Clock, answers, batch, begun, log_lines, options
from tests.oracles import hdr
from tests.store.grounds import FIO, grounds

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


def text(seed: int, rows: int, from_s: float = 0.0) -> str:
    return HEAD + "".join(line for line in log_lines(random.Random(seed), rows, from_s=from_s) if not line.startswith("no"))


def whole(store, name: str = "x") -> list[str]:
    """The rows of one process, all of its segments added up."""
    from ingest.query.percentiles import percentiles
    from ingest.view.text import csv_lines
    from tests.live.feeding import ALL

    question = Question(by=("process", "op", "kind"), where={"process": name, "kind": "*"}, step=SECOND)
    return list(csv_lines(percentiles(store.answer(question), ALL)))


def ended(watch) -> list[str]:
    said = list(watch.cycle(last=True).said)
    watch.settle()
    return [*said, *watch.watching.said]


def test_what_was_read_of_a_truncated_log_is_kept_beside_what_comes_after_it(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log = folder / "x.hlog"
    first, second = text(1, 20), text(2, 15, from_s=17.3)  # three seconds of both
    log.write_text(first)
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        log.write_text(second)  # emptied in place, and written anew
        said = watch.cycle().said
        assert "x.hlog was truncated or overwritten: the 60 rows that were read are kept" in said[0]
        clock.seconds += 1
        watch.cycle()
        both = tmp_path / "both"
        both.mkdir()
        (both / "x.hlog").write_text(first)
        again = tmp_path / "again"
        again.mkdir()
        (again / "x.hlog").write_text(second)
        expected = added_up(tmp_path, [both, again])
        assert whole(store) == expected
        assert [text for text in ended(watch) if "read live" in text] == []
        assert whole(store) == expected
        assert [record.state for record in store.runs()] == [COMPLETE]
        assert {one.source.rpartition("|")[2] for one in store.sources("r")} == {"x", "x~1"}


def added_up(folder: Path, logs: list[Path]) -> list[str]:
    """What two loads of logs under one name hold together: two stores cannot, so the logs bear hosts that are not asked for."""
    from ingest.load.load import load

    store = folder / "added.db"
    store.unlink(missing_ok=True)
    with open_store(f"sqlite:{store}", write=True) as opened:
        for number, path in enumerate(logs):
            load([path], opened, options(reading={"host": f"h{number}"}))
        return whole(opened)


def test_a_deleted_log_is_kept_and_read_to_its_end(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log = folder / "x.hlog"
    content = text(1, 20).encode()
    stream = log.open("ab", buffering=0)
    stream.write(content[:9000])
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        stream.write(content[9000:])
        log.unlink()
        for _ in range(3):
            clock.seconds += 1
            watch.cycle()
        stream.close()
        log.write_bytes(content)
        expected = added_up(tmp_path, [folder])
        log.unlink()
        assert whole(store) == expected
        assert [text for text in ended(watch) if "read live" in text] == []
        assert whole(store) == expected
        assert [record.state for record in store.runs()] == [COMPLETE]


def test_a_log_that_was_away_for_a_while_is_counted_once(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log, content = folder / "x.hlog", text(1, 20)
    log.write_text(content)
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        log.unlink()
        for back in (None, content, content + text(2, 5, from_s=40).removeprefix(HEAD)):
            if back is not None:
                log.write_text(back)
            for _ in range(3):
                clock.seconds += 1
                watch.cycle()
        assert whole(store) == added_up(tmp_path, [folder])
        assert [text for text in ended(watch) if "read live" in text] == []
        assert whole(store) == added_up(tmp_path, [folder])


@pytest.mark.slow
def test_a_log_that_is_rotated_and_compressed_is_counted_once(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log = folder / "x.hlog"
    log.write_text(text(1, 20))
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        with gzip.open(folder / "x.hlog.1.gz", "wb") as out:
            out.write(log.read_bytes())
        log.unlink()
        log.write_text(text(2, 10, from_s=20.0))
        said: list[str] = []
        for _ in range(4):
            clock.seconds += 1
            said += watch.cycle().said
        assert any("was rotated" in one for one in said), said
        expected = answers(batch(folder, tmp_path / "batch.db"))
        assert answers(ground.url) == expected
        assert [text for text in ended(watch) if "read live" in text] == []
        assert answers(ground.url) == expected


@pytest.mark.parametrize("attribution", ["completion", "in-flight"])  # read piece by piece, and as a whole each time
def test_a_log_that_is_rotated_before_any_of_it_was_read_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, attribution: str
) -> None:
    """As one that waits because others take all of a cycle, or whose name another has by the time it is read."""
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log = folder / "x.hlog"
    log.write_text(text(1, 20))
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock, attribution=attribution)
        monkeypatch.setattr(cycle, "MOST_BYTES", 0)
        assert watch.cycle().rows == 0
        monkeypatch.undo()
        log.rename(folder / "x.hlog.1")
        log.write_text(text(2, 10, from_s=20.0))
        for _ in range(3):
            clock.seconds += 1
            watch.cycle()
        expected = answers(batch(folder, tmp_path / "batch.db", attribution=attribution))
        assert answers(ground.url) == expected
        assert ended(watch) == []
        assert answers(ground.url) == expected


def test_r4_a_log_that_is_copied_and_emptied_while_it_is_read_is_counted_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the file was known by was read once more after its rows: of an empty file, which no copy begins as."""
    folder, clock, placed = tmp_path / "logs", Clock(), tail.in_their_layer
    folder.mkdir()
    log, content = folder / "x.hlog", text(1, 20).encode()
    log.write_bytes(content[: len(content) // 2])

    def emptied(*words):
        if log.stat().st_size == len(content):
            shutil.copyfile(log, folder / "x.hlog.1")
            log.write_bytes(b"")
        return placed(*words)

    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        log.write_bytes(content)
        monkeypatch.setattr(tail, "in_their_layer", emptied)
        watch.cycle()
        log.write_text(text(2, 10, from_s=20.0))
        for _ in range(3):
            clock.seconds += 1
            watch.cycle()
        assert [one for one in ended(watch) if "read live" in one] == []
        assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))


def test_a_log_that_is_copied_over_with_more_in_it_goes_on(tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log, content = folder / "x.hlog", text(1, 30).encode()
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        rows = 0
        for size in (5000, 9000, 14000, len(content)):
            (folder / ".x.hlog.partial").write_bytes(content[:size])  # as rsync does it
            (folder / ".x.hlog.partial").rename(log)
            clock.seconds += 1
            done = watch.cycle()
            rows += done.rows
            assert not done.said
        assert rows == 90
        assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))
        watch.settle()


def test_a_copy_of_a_log_is_left_out_while_the_log_is_there(tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    (folder / "x.hlog").write_text(text(1, 20))
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        expected = answers(ground.url)
        shutil.copy(folder / "x.hlog", folder / "y.hlog")
        clock.seconds += 1
        assert "is a copy of" in watch.cycle().said[0]
        assert answers(ground.url) == expected
        ended(watch)
        assert answers(ground.url) == expected == answers(batch(folder, tmp_path / "batch.db"))


def test_other_files_are_loaded_once_they_are_whole(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    contents = {path.name: path.read_bytes() for path in (FIO / "randrw").iterdir() if path.is_file()}
    reading = {"t0": 1_789_999_200 * SECOND}
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock, reading=reading, step_ns=None)
        for part in range(1, 5):
            for name, content in contents.items():
                (folder / name).write_bytes(content[: len(content) * part // 4])
            clock.seconds += 1
            assert watch.cycle().loaded == 0  # they have changed since
        loaded = sum(watch.cycle().loaded for _ in range(2))
        assert loaded == 2
        expected = answers(batch(folder, tmp_path / "batch.db", reading=reading, step_ns=None))
        assert answers(ground.url) == expected
        assert not watch.cycle().loaded
        ended(watch)
        assert answers(ground.url) == expected


def test_a_watch_ends_before_a_run_holds_more_samples_than_its_store_adds_up(tmp_path: Path) -> None:
    """A server adds up in doubles: a load was refused, a watch went on, and its rollups were off."""
    folder, clock = tmp_path / "logs", Clock()
    lines = [hdr.line(f"{second}.000", "1.000", {300: 2**51, 301: 1}, digits=2) for second in range(3)]
    with grounds("double", tmp_path) as ground:
        for name, rows in (("a", lines[:1]), ("b", lines)):
            (folder / name).mkdir(parents=True)
            (folder / name / "x.hlog").write_text(HEAD + "".join(rows))
        with open_store(ground.url, write=True) as store:
            load([folder / "a"], store, options())  # what is there already counts, too
            watch = begun([folder], store, clock)
            with pytest.raises(CapacityError, match=r"b/x.hlog: with it r would hold more than 2\^53 samples"):
                watch.cycle(last=True)


def test_watching_again_what_was_settled_does_nothing_until_it_grows(tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log, content = folder / "x.hlog", text(1, 30).encode()
    log.write_bytes(content[:9000])
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        ended(watch)
        again = begun(folder, store, clock)
        assert (again.cycle().rows, again.watching.tails) == (0, {})
        assert [record.state for record in store.runs()] == [COMPLETE]
        with log.open("ab") as out:
            out.write(content[9000:])
        clock.seconds += 100
        assert again.cycle().rows == 90
        assert [record.state for record in store.runs()] == [WATCHED]
        assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))
        ended(again)
        assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))
        assert begun(folder, store, clock).cycle().rows == 0


def test_a_log_of_another_benchmark_under_known_labels_is_refused(tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    (folder / "x.hlog").write_text(text(1, 10))
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        ended(watch)
        expected = answers(ground.url)
        (folder / "x.hlog").write_text(text(2, 20))
        other = begun(folder, store, clock)
        assert "holds other data than" in other.cycle().said[0]
        assert answers(ground.url) == expected


def test_a_load_completes_what_a_killed_watch_has_left(ground, tmp_path: Path) -> None:
    from ingest.load.load import load

    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    (folder / "x.hlog").write_text(text(1, 20)[:-40])
    clock.seconds -= 120
    with open_store(ground.url, write=True) as store:
        begun(folder, store, clock).cycle()
        assert [record.state for record in store.runs()] == [LOADING]  # it was not heard of for two minutes
        assert "cut off" in " ".join(store.answer(Question(step=SECOND)).warnings)
    with open_store(ground.url, write=True) as store:
        load([folder], store, options())
        assert [record.state for record in store.runs()] == [COMPLETE]
    assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))


def test_the_command_ends_when_nothing_comes(tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    words = (
        "watch",
        tmp_path / "logs",
        "--run",
        "r",
        "--store",
        f"sqlite:{tmp_path / 's.db'}",
        "--interval",
        "50ms",
        "--until-idle",
        "200ms",
    )
    nothing = tailboard(*words)
    assert nothing.returncode == 3 and "nothing came under" in nothing.stderr
    (tmp_path / "logs" / "x.hlog").write_text(text(1, 20))
    done = tailboard(*words, "--json")
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert sum(one["rows"] for one in told if one["event"] == "cycle") == 60
    assert (told[-1]["event"], told[-1]["rows"], told[-1]["runs"]) == ("settled", 60, ["r"])
    for wrong, reason in ((("--interval", "soon"), "is not a duration"), (("--step", "3s"), "cannot be a stored step")):
        refused = tailboard(*words, *wrong)
        assert refused.returncode == 2 and reason in refused.stderr, refused.stderr


def test_a_copy_that_was_there_from_the_start_is_counted_once(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    for name in ("x.hlog", "y.hlog"):
        (folder / name).write_text(text(1, 20))
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        assert watch.cycle().rows == 60
        expected = answers(batch(folder, tmp_path / "batch.db"))
        assert answers(ground.url) == expected
        ended(watch)
        assert answers(ground.url) == expected
        assert [record.state for record in store.runs()] == [COMPLETE]


def test_logs_that_become_the_same_are_settled_as_a_load_takes_them(ground, tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    (folder / "x.hlog").write_text(text(1, 20))
    (folder / "y.hlog").write_text(text(2, 20))
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        watch.cycle()
        (folder / "z.hlog").write_text(text(1, 20)[:9000])  # held back as a copy
        watch.cycle()
        shutil.copy(folder / "y.hlog", folder / "z.hlog")
        clock.seconds += 100
        watch.cycle()
        ended(watch)
        assert answers(ground.url) == answers(batch(folder, tmp_path / "batch.db"))
        assert [record.state for record in store.runs()] == [COMPLETE]


def test_two_logs_under_the_same_labels_are_told_and_one_is_read(tmp_path: Path) -> None:
    folder, clock = tmp_path / "logs", Clock()
    for number, name in enumerate(("a", "b")):
        (folder / name).mkdir(parents=True)
        (folder / name / "x.hlog").write_text(text(number, 20))
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock, reading={"host_alias": {"a": "h", "b": "h"}})
        [said] = watch.cycle().said
        assert "refused" in said and "b/x.hlog" in said and "two hosts called h?" in said
        ended(watch)
        assert answers(ground.url) == answers(batch(folder / "a", tmp_path / "batch.db", reading={"host": "h"}))
        assert [record.state for record in store.runs()] == [COMPLETE]


@pytest.mark.slow
def test_what_was_begun_before_a_kill_and_bears_other_labels_now_is_not_counted_twice(
    ground, tmp_path: Path, monkeypatch
) -> None:
    """Killed after documents were written and before the first checkpoint; then a sibling makes a host of the folder."""
    folder, clock = tmp_path / "logs", Clock()
    for name in ("h1", "h2"):
        (folder / name).mkdir(parents=True)
    (folder / "h1" / "x.hlog").write_text(text(1, 20))
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        late = "_writer" if ground.url.startswith("http") else "keep"
        monkeypatch.setattr(type(watch.watching.live), late, lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        with pytest.raises(KeyboardInterrupt):
            watch.cycle()
        monkeypatch.undo()
    (folder / "h2" / "x.hlog").write_text(text(2, 20))
    with open_store(ground.url, write=True) as store:
        assert [one.source for one in store.sources("r")] == ["hdr-log||||x"]
        watch = begun(folder, store, clock)
        watch.cycle()
        expected = answers(batch(folder, tmp_path / "batch.db"))
        assert answers(ground.url) == expected
        ended(watch)
        assert answers(ground.url) == expected
        assert [record.state for record in store.runs()] == [COMPLETE]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("many", "limits", "held"),
    [
        pytest.param(300, (200, 4096), 300, id="by default", marks=pytest.mark.soak),
        pytest.param(250, (200, 200), 130, id="at all"),
        pytest.param(1200, (1024, 4096), 1200, id="a thousand", marks=pytest.mark.soak),
    ],
)
def test_more_logs_than_a_process_opens(tmp_path: Path, many: int, limits: tuple[int, int], held: int) -> None:
    url = f"sqlite:{tmp_path}/s.db"
    folder = tmp_path / "logs"
    folder.mkdir()
    for number in range(many):
        (folder / f"{number}.hlog").write_text(HEAD + "".join(log_lines(random.Random(number), 2, tags=("read-st",))))
    if resource.getrlimit(resource.RLIMIT_NOFILE)[1] < limits[1]:
        pytest.skip(f"fewer than {limits[1]} files may be open here: {many} logs were not tried")
    words = ["watch", str(folder), "--run", "r", "--store", url, "--until-idle", "100ms", "--interval", "20ms", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "ingest", *words],
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, limits),
    )
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]
    assert held - 15 <= max(one.get("files", 0) for one in told[:-1]) <= held and told[-1]["sources"] == many
    assert "read live" not in done.stderr and "cannot be read" not in done.stderr
    assert done.stderr.count("more logs than may be open at once") == (held < many)
    assert f"{folder / '0.hlog'} and {many - 1} more: service time only" in done.stderr and len(done.stderr.splitlines()) < 30


def test_work_is_shared_while_a_thousand_files_are_open() -> None:
    most = 1100
    if resource.getrlimit(resource.RLIMIT_NOFILE)[0] < most + 50:
        pytest.skip(f"fewer than {most} files may be open here: it was not tried")
    held = [os.open(os.devnull, os.O_RDONLY) for _ in range(most)]
    try:
        assert sorted(fork_map(lambda item: iter([item * 2]), [1, 2, 3], jobs=2)) == [(0, 2), (1, 4), (2, 6)]
    finally:
        for descriptor in held:
            os.close(descriptor)


def reached(root: object) -> int:
    """How many objects a watch holds, but for its store and what is of the program."""
    seen: dict[int, object] = {}
    todo = [root]
    while todo:
        one = todo.pop()
        if id(one) not in seen and not isinstance(one, (type, ModuleType, FunctionType, MethodType, BuiltinFunctionType)):
            seen[id(one)] = one
            todo += [] if "Store" in type(one).__name__ or "Live" in type(one).__name__ else gc.get_referents(one)
    return len(seen)


@pytest.mark.parametrize("ground", ["sqlite", pytest.param("double", marks=pytest.mark.slow)], indirect=True)
def test_r5_a_watch_keeps_a_bounded_number_of_logs_that_are_gone(ground, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """About 20 kB were kept of each log that had gone; now some bytes of the last ones, and the store knows them all."""
    monkeypatch.setattr(state, "MOST_GONE", 3)
    folder, clock, held = tmp_path / "logs", Clock(), []
    folder.mkdir()
    contents = [text(1, 4, from_s=4 * number) for number in range(12)]
    with open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)

        def cycles(times: int = 3) -> list[str]:
            said = []
            for _ in range(times):
                clock.seconds += 1
                said += watch.cycle().said
            return said

        for number, content in enumerate(contents):
            (folder / f"x{number:02d}.hlog").write_text(content)
            cycles(1)
            (folder / f"x{number:02d}.hlog").unlink()
            cycles()
            held.append(reached(watch))
        assert (len(watch.watching.tails), len(watch.watching.gone)) == (0, 3)
        assert max(held[6:]) - min(held[6:]) < 40, held
        (folder / "x02.hlog").write_text(contents[2])  # it is back, though the store alone knows it
        assert any("x02.hlog is there again" in one for one in cycles())
        (folder / "x03.hlog").write_text(text(5, 6, from_s=90))  # another log of the name
        assert any("x03.hlog is a new file now: the 12 rows of the old one are kept" in one for one in cycles())
        everything = tmp_path / "all"
        everything.mkdir()
        for number, content in enumerate([*contents, text(5, 6, from_s=90)]):
            (everything / f"x{number:02d}.hlog").write_text(content)
        expected = [line.partition(",")[2] for line in summed(batch(everything, tmp_path / "batch.db"))]
        assert [line.partition(",")[2] for line in summed(ground.url)] == expected
        assert [one for one in ended(watch) if "read live" in one] == []
        assert [line.partition(",")[2] for line in summed(ground.url)] == expected
        assert [record.state for record in store.runs()] == [COMPLETE]
        assert {record.state for record in store.sources("r")} == {COMPLETE}


def summed(url: str) -> list[str]:
    from ingest.query.percentiles import percentiles
    from ingest.view.text import csv_lines
    from tests.live.feeding import ALL

    with open_store(url) as store:
        return list(csv_lines(percentiles(store.answer(Question(by=("op", "kind"), where={"kind": "*"}, step=SECOND)), ALL)))


@pytest.mark.slow
def test_r5_a_log_that_goes_before_it_is_read_to_its_end_is_read_though_another_has_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder, clock = tmp_path / "logs", Clock()
    folder.mkdir()
    log, first, second = folder / "x.hlog", text(1, 40), text(2, 15, from_s=60)
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        monkeypatch.setattr(tail, "AT_ONCE", 2000)
        log.write_text(first)
        watch.cycle()
        log.unlink()
        watch.cycle()
        log.write_text(second)
        for _ in range(30):
            clock.seconds += 1
            watch.cycle()
        for name, content in (("one", first), ("two", second)):
            (tmp_path / name).mkdir()
            (tmp_path / name / "x.hlog").write_text(content)
        expected = added_up(tmp_path, [tmp_path / "one", tmp_path / "two"])
        assert whole(store) == expected
        assert [one for one in ended(watch) if "read live" in one] == []
        assert whole(store) == expected


def test_r5_what_a_move_costs_does_not_grow_with_what_was_moved_before(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each arrival read the records of all sources of the run, each forgotten log made all of its rollups anew."""
    folder, clock, costs = tmp_path / "logs", Clock(), []
    folder.mkdir()
    log, spent = folder / "x.hlog", Counter[str]()
    for module, name in ((records, "object_in"), (rollups, "rollup_values"), (watched_files, "_digest")):
        monkeypatch.setattr(module, name, counting(spent, name, getattr(module, name)))
    with grounds("sqlite", tmp_path) as ground, open_store(ground.url, write=True) as store:
        watch = begun(folder, store, clock)
        for number in range(24):
            spent.clear()
            log.write_text(text(number, 6, from_s=2 * number))  # emptied in place, and written anew
            for _ in range(2):
                clock.seconds += 1
                watch.cycle()
            copy = folder / "x.hlog.1"
            shutil.copyfile(log, copy)
            log.unlink()
            for _ in range(2):
                clock.seconds += 1
                watch.cycle()
            copy.unlink()
            costs.append(Counter(spent))
        assert len(store.sources("r")) > 20
    early, late = (sum(costs[begin : begin + 5], Counter()) for begin in (4, 19))
    assert all(late[name] <= early[name] + 5 for name in early), (early, late)


def counting(spent: Counter[str], name: str, called: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that counts its calls."""

    def call(*given: Any, **words: Any) -> Any:
        spent[name] += 1
        return called(*given, **words)

    return call
