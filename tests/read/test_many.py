"""Many small histogram logs read in one pass: row for row, and account for account, what each gives when it is read alone."""

from __future__ import annotations

import functools
import random
import shutil
import tempfile
from collections.abc import Sequence
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import ingest.read as read_module
import strategies
from effort import figure
from ingest.core.errors import InputError
from ingest.core.units import parse_instant
from ingest.load import load as load_module
from ingest.load.load import load
from ingest.load.plan import LoadOptions
from ingest.query import files
from ingest.query.question import Answer, Question
from ingest.read import read, read_many, small_ones_together
from ingest.read.account import Account
from ingest.read.fio import histogram_log
from ingest.read.format_names import HIST
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions, Source
from ingest.store import open_store
from mutations import CHANGES, mutated, mutations
from oracles import logs

FIO = Path(__file__).parents[1] / "data" / "fio"
FINE, COARSE = 1856, 29
Rows = dict[Any, list[tuple[int, int, dict[int, int]]]]


def anew(source: Source, notes: Sequence[str] = ()) -> Source:
    return replace(source, context=replace(source.context, account=Account(path=str(source.path), notes=list(notes))))


def rows_of(parts: Any) -> Rows:
    found: Rows = {}
    for part in parts:
        for number, code in enumerate(part.series.tolist()):
            entries = slice(part.indptr[number], part.indptr[number + 1])
            counts = dict(zip(part.bins[entries].tolist(), part.counts[entries].tolist(), strict=True))
            found.setdefault((part.layout, part.table[code]), []).append(
                (int(part.start_ns[number]), int(part.end_ns[number]), counts)
            )
    return found


def told(account: Account) -> tuple[Any, ...]:
    totals = {op: (one.layout, one.bins.tolist(), one.counts.tolist()) for op, one in account.totals.items()}
    return account.as_dict(), totals, account.missing, account.caveats, account.rejected_lines, account.cut_short


def compared(sources: Sequence[Source]) -> int:
    """Assert that all are read together as each is alone; return how many were plain."""
    mine = [anew(source, ["said before"]) for source in sources]
    left: list[Source] = []
    parts = list(read_many(mine, left))
    for source in left:
        assert told(source.context.account) == told(Account(path=str(source.path), notes=["said before"])), source.path
    names = {id(source) for source in left}
    plain = [number for number, one in enumerate(mine) if id(one) not in names]
    expected: Rows = {}
    for number in plain:
        single = anew(sources[number], ["said before"])
        for key, rows in rows_of(read(single)).items():
            expected.setdefault(key, []).extend(rows)
        assert told(single.context.account) == told(mine[number].context.account), single.path
    found = rows_of(parts)
    assert found.keys() == expected.keys()
    assert {key: sorted(rows, key=str) for key, rows in found.items()} == {
        key: sorted(rows, key=str) for key, rows in expected.items()
    }
    return len(plain)


def recorded(options: ReadOptions) -> list[Source]:
    """Return the histogram logs of all recordings, each folder on its own, as runs of their own."""
    found: list[Source] = []
    for folder in sorted({path.parent for path in FIO.rglob("*clat_hist*")}):
        try:
            sources = discover([folder], replace(options, run=str(folder.relative_to(FIO)))).sources
        except InputError:
            continue
        found += [source for source in sources if source.format == HIST]
    return found


OPTIONS = {
    "found": ReadOptions(),
    "mtime": ReadOptions(t0="mtime"),
    "3.33": ReadOptions(fio_version=(3, 33)),
    "3.7": ReadOptions(fio_version=(3, 7)),
}


@pytest.mark.slow
@pytest.mark.parametrize("options", OPTIONS.values(), ids=OPTIONS)
def test_recorded_logs(options: ReadOptions) -> None:
    sources = recorded(options)
    plain = compared(sources)
    assert len(sources) >= 30
    assert plain == 0 if options.fio_version == (3, 7) else plain > 0.5 * len(sources)  # those are all masked


def test_logs_with_and_without_json_are_read_together() -> None:
    sources = recorded(ReadOptions())
    by_json: dict[bool, list[Source]] = {}
    for source in sources:
        by_json.setdefault(bool(source.context.jobs), []).append(source)
    for some in by_json.values():
        assert compared(some) > 3


def test_one_bad_log_costs_the_others_nothing(tmp_path: Path) -> None:
    content = (FIO / "randrw" / "a_clat_hist.1.log").read_bytes()
    for number in range(40):
        folder = tmp_path / f"h{number}"
        folder.mkdir()
        (folder / "a_clat_hist.1.log").write_bytes(content if number % 20 else content.replace(b"0, 0", b"0, x", 1))
    sources = [source for source in discover([tmp_path], ReadOptions()).sources]
    assert (len(sources), compared(sources)) == (40, 38)


def test_what_is_not_small_or_not_plain_is_left(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histogram_log, "SMALL", 4000)
    texts = {
        "plain": logs.text([(1000, 0, {0: 2, 9: 1}), (2000, 0, {5: 3})], COARSE),
        "large": logs.text([(1000 * n, 0, {0: 2, 9: 1 + n}) for n in range(1, 60)], COARSE),
        "back": logs.text([(9000, 0, {0: 2}), (2000, 0, {5: 3})], COARSE),
        "huge": logs.text([(1000, 0, {0: 2**41}), (2000, 0, {5: 3})], COARSE),
        "wrapped": logs.text([(1000, 0, {0: 2}), (2000, 0, {5: 2**64 - 3})], COARSE),
        "op": logs.text([(1000, 3, {0: 2}), (2000, 0, {5: 3})], COARSE),
        "zeros": logs.text([(1000, 0, {}), (2000, 0, {5: 3})], COARSE),
        "cut": logs.text([(1000, 0, {0: 2}), (2000, 0, {5: 3})], COARSE)[:-1],
        "jump": logs.text([(1000, 0, {0: 2}), (90_000_000, 0, {5: 3})], COARSE),
        "late": logs.text([(10_000_000, 0, {0: 2}), (10_001_000, 0, {5: 3})], COARSE),
        "far": logs.text([(1000, 0, {0: 2}), (2**63 // 10**6, 0, {5: 3})], COARSE),
    }
    for name, text in texts.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "a_clat_hist.1.log").write_text(text)
    sources = list(discover([tmp_path], ReadOptions()).sources)
    left: list[Source] = []
    parts = list(read_many([anew(source) for source in sources], left))
    assert {source.path.parent.name for source in left} == texts.keys() - {"plain"}
    assert sum(int(part.counts.sum()) for part in parts) == 6
    assert compared(sources) == 1


def test_a_log_that_is_gone_is_left_to_the_reader_that_says_so(tmp_path: Path) -> None:
    for name in ("h1", "h2", "h3"):
        (tmp_path / name).mkdir()
        shutil.copy(FIO / "randrw" / "a_clat_hist.1.log", tmp_path / name)
    sources = list(discover([tmp_path], ReadOptions()).sources)
    sources[1].path.unlink()
    left: list[Source] = []
    assert list(read_many(sources, left))
    assert left == [sources[1]]


def test_schedules_are_corrected_log_by_log() -> None:
    sources = recorded(ReadOptions(expected_interval_ns=10_000_000))[:4]
    left: list[Source] = []
    assert (list(read_many(sources, left)), left) == ([], sources)


STEPS = mutations(
    tuple(CHANGES), 10_000, 20, st.sampled_from([b"7", b"1", b"0", b"2", b"99999999", b"\n", b"18446744073709551615"]), most=2
)


@settings(max_examples=figure(15, 40, 4000))
@given(
    st.lists(st.tuples(strategies.chains(), st.just([]) | STEPS), min_size=1, max_size=6),
    st.sampled_from([None, 0, 1_700_000_000_000_000_000, 2**62 - 10**10]),
    st.sampled_from([0, 1_700_000_000_000]),
)
def test_drawn_logs(drawn: list[Any], t0: int | None, since_ms: int) -> None:
    with tempfile.TemporaryDirectory() as name:
        for number, (lines, steps) in enumerate(drawn):
            folder = Path(name) / f"h{number}"
            folder.mkdir()
            text = logs.text([(stamp + since_ms, op, counts) for stamp, op, counts in lines], COARSE).encode()
            (folder / "x_clat_hist.1.log").write_bytes(mutated(text, steps))
        try:
            sources = discover([Path(name)], ReadOptions(t0=t0)).sources
        except InputError:
            return
        compared([source for source in sources if source.format == HIST])


@functools.cache
def plain_logs() -> list[Source]:
    return [source for source in recorded(ReadOptions()) if source.path.suffix == ".log"]


@settings(max_examples=figure(8, 20, 2000))
@given(st.integers(0, 2**32), st.lists(STEPS, min_size=4, max_size=4))
def test_recorded_logs_with_damage(seed: int, damage: list[Any]) -> None:
    picked = random.Random(seed).sample(plain_logs(), 8)
    with tempfile.TemporaryDirectory() as name:
        changed = []
        for number, source in enumerate(picked):
            path = Path(name) / f"{number}.log"
            content = source.path.read_bytes()[:40_000] if number % 2 else source.path.read_bytes()
            path.write_bytes(mutated(content, damage[number // 2] if number % 2 else ()))
            changed.append(replace(source, path=path))
        with pytest.MonkeyPatch.context() as patch:
            if seed % 2:  # as larger ones are read: block by block
                patch.setattr(histogram_log, "WHOLE_TEXT", 4_000)
                patch.setattr(histogram_log, "HEAD", 3_000)
            patch.setattr(histogram_log, "TOGETHER_ENTRIES", (500, 1 << 19)[seed // 2 % 2])
            compared(changed)


def test_when_all_large_logs_have_a_peculiarity_no_more_are_read_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, number in (("WHOLE_TEXT", 300), ("HEAD", 250), ("TOGETHER_ENTRIES", 1)):
        monkeypatch.setattr(histogram_log, name, number)
    for number in range(6):
        (tmp_path / f"h{number}").mkdir()
        stamps = (9000, 2000, 3000, 4000, 5000) if number < 4 else (1000, 2000, 3000, 4000, 5000)
        rows = [(stamp, 0, {0: 2 + number, 9: 1 + place % 2}) for place, stamp in enumerate(stamps)]
        (tmp_path / f"h{number}" / "a_clat_hist.1.log").write_text(logs.text(rows, COARSE))
    sources = list(discover([tmp_path], ReadOptions()).sources)
    assert compared(sources) == 0 and compared(sources[4:]) == 2
    opened: list[Path] = []
    with_blocks = histogram_log.blocks
    monkeypatch.setattr(histogram_log, "blocks", lambda path: opened.append(path) or with_blocks(path))
    left: list[Source] = []
    assert list(read_many([anew(source) for source in sources], left)) == []
    assert opened == [sources[0].path]


def answered(
    folder: Path, question: Question, options: ReadOptions, monkeypatch: pytest.MonkeyPatch, most: int
) -> tuple[Any, ...]:
    """Return all that an answer says, and the accounts, where so many logs are read together."""
    monkeypatch.setattr(files, "MOST_TOGETHER", most)
    monkeypatch.setattr(files, "SHARES", 1)
    asked = files.Files([folder], options, jobs=1)
    answer: Answer = asked.answer(question)
    parts = []
    for part in answer.parts:
        columns = (part.start_ns, part.end_ns, part.indptr, part.bins, part.counts)
        parts.append((part.layout, [part.table[code] for code in part.series.tolist()], *(column.tolist() for column in columns)))
    rest = replace(answer, parts=())
    return parts, rest, [told(source.context.account) for source in asked.found.sources], asked.facts(answer)


CASES = list(
    product(
        (1_000_000_000, "auto", "all"),
        ((), ("host", "op")),
        (("", ""), ("+2s", "+7s"), ("+1500ms", "+3700ms")),
        ("completion", "in-flight"),
    )
)


@pytest.mark.cases(12)
@pytest.mark.parametrize(
    ("step", "by", "bounds", "attribution"),
    [pytest.param(*case, marks=() if number % 7 == 1 else pytest.mark.slow) for number, case in enumerate(CASES)],
)
def test_answers_are_the_same(
    hosts: Path, step: Any, by: Any, bounds: tuple[str, str], attribution: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    begin, end = (parse_instant(edge) if edge else None for edge in bounds)
    question = Question(step=step, by=by, begin=begin, end=end, attribution=attribution, windows=6)
    one, other = (answered(hosts, question, ReadOptions(), monkeypatch, most) for most in (1, 64))
    assert one == other


def test_processes_share_the_logs_and_report_each(hosts: Path) -> None:
    seen: list[tuple[int, int]] = []
    asked = files.Files([hosts], jobs=2, progress=lambda done, total: seen.append((done, total)))
    count = asked.answer(Question(step="all")).samples
    assert count == files.Files([hosts], jobs=1).answer(Question(step="all")).samples == asked.account.samples
    assert seen[-1] == (len(asked.found.sources), len(asked.found.sources))


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of twelve hosts: plain logs, some damaged, some with fio's JSON."""
    root = tmp_path_factory.mktemp("hosts")
    for number in range(12):
        folder = root / f"h{number:02}"
        folder.mkdir()
        source = FIO / ("randrw", "cases/stonewall-333", "coarse-1")[number % 3]
        for path in sorted(source.iterdir()):
            if "clat_hist" in path.name or (path.suffix == ".json" and number % 2):
                content = path.read_bytes()
                if number % 7 == 3 and path.suffix == ".log":
                    content = content[:-40]
                (folder / path.name).write_bytes(content)
    return root


def test_shares_hold_each_source_once_and_large_ones_alone(hosts: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    sources = discover([hosts, FIO.parent / "raw"], ReadOptions()).sources
    monkeypatch.setattr(read_module, "SMALL", 40_000)
    for most in (1, 5, 64):
        shares = small_ones_together(sources, most)
        assert sorted(source.path for share in shares for source in share) == sorted(source.path for source in sources)
        for share in shares:
            assert len(share) <= most and len({one.format for one in share}) == 1
            assert len(share) == 1 or (share[0].format == HIST and all(one.path.stat().st_size <= 40_000 for one in share))
    assert max(map(len, small_ones_together(sources, 64))) > 10


@pytest.mark.parametrize("step_ns", [None, 5_000_000_000])
def test_a_load_of_logs_together_stores_what_each_alone_gives(
    hosts: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step_ns: int | None
) -> None:
    stored, commits, together = [], [], [load_module.read_many, lambda sources, left: left.extend(sources) or iter(())]
    for number, read_some in enumerate(together):
        monkeypatch.setattr(load_module, "read_many", read_some)
        with open_store(f"sqlite:{tmp_path / str(number)}.db", write=True) as store:
            said: list[str] = []
            store.db.set_trace_callback(said.append)  # type: ignore[attr-defined]  # of a store in SQLite
            load([hosts], store, LoadOptions(ReadOptions(run="r"), step_ns=step_ns, force=True, jobs=1))
            commits.append(said.count("COMMIT"))
            tables = ("intervals", "series", "sources", "rollups")
            stored.append([sorted(store.db.execute(f"SELECT * FROM {table}").fetchall()) for table in tables])  # type: ignore[attr-defined]
    assert stored[0] == stored[1] and len(stored[0][0]) > 12
    assert 3 * commits[0] < 2 * commits[1]
