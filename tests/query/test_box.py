"""Boxes of time and latency: against brute force over the documents of a store, alike from files and stores, and what they say."""

from __future__ import annotations

import json
import math
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from effort import figure
from event_files import event_file, reading
from ingest.cli import run as command
from ingest.core.errors import InputError, UsageError
from ingest.core.units import Instant
from ingest.query.batch_means import LESS, MORE, UNSURE, Side, lifts
from ingest.query.box import ROWS, SIDES, Box, BoxOffsets, Explained, box_offsets, explained, parse_box
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions
from ingest.store import open_store
from ingest.view.boxes import NOTHING, offsets_sentence, plain, sentences
from ingest.view.text import csv_lines
from oracles import brute
from tests.store.grounds import FIO, grounds, loaded

EXAMPLE = Path(__file__).parents[2] / "examples" / "cbt-archive"
THREE_HOSTS = Path(__file__).parents[1] / "data" / "three-hosts" / "results.tar.xz"
HOSTS = FIO / "host-folders" / "clients"
ZERO = 1_789_999_200 * 1_000_000_000
SECOND, MS = 1_000_000_000, 1_000_000
LABELS = ("run", "host", "volume", "job", "op", "tag", "process")
FIO_EDGES = brute.edges(1856)


@pytest.fixture(scope="module")
def example(tmp_path_factory) -> Iterator[tuple[Files, Any]]:
    """The example as files and in a store."""
    with grounds("sqlite", tmp_path_factory.mktemp("example")) as ground:
        loaded(ground.url, [EXAMPLE], run=EXAMPLE.name)
        yield Files([EXAMPLE], jobs=1), ground


def drawn(noise: random.Random) -> Box:
    """Return a random box of the example: often small, often open, sometimes empty."""
    begin, end = sorted(noise.uniform(-5, 85) for _ in range(2))
    low, high = sorted(10 ** noise.uniform(4.5, 9.8) for _ in range(2))
    return Box(
        Instant(int(begin * SECOND), relative=True) if noise.random() < 0.8 else None,
        Instant(int(end * SECOND) + 1, relative=True) if noise.random() < 0.8 else None,
        int(low) if noise.random() < 0.8 else 0,
        int(high) + 1 if noise.random() < 0.6 else None,
    )


def counted(
    documents: list[dict[str, Any]], box: Box, zero: int, against: str = "rest"
) -> tuple[dict[tuple[str, str], list[int]], list[int]]:
    """Return samples inside and outside by label and value, and in all: document by document, bin by bin, from edges by fio's formula."""
    low = max(edge for edge in FIO_EDGES if edge <= box.low_ns)
    high = math.inf if box.high_ns is None else min((edge for edge in FIO_EDGES if edge >= box.high_ns), default=math.inf)
    begin, end = (edge and zero + edge.ns for edge in (box.begin, box.end))
    found: dict[tuple[str, str], list[int]] = {}
    total = [0, 0]
    for document in documents:
        start, stop = document["start"], document["start"] + document["step"]
        before, after = begin is not None and stop <= begin, end is not None and start >= end
        during = not before and not after
        outside = {"rest": True, "before": before, "after": after, "time": during}[against]
        for value, count in document["bins"].items():
            sides = [0] if during and low <= value < high else [1] if outside else []
            for label in LABELS:
                found.setdefault((label, document[label]), [0, 0])
            for side in sides:
                total[side] += count
                for label in LABELS:
                    found[label, document[label]][side] += count
    names = Counter(label for label, _ in found)
    return {key: sums for key, sums in found.items() if names[key[0]] > 1}, total


def spread(documents: list[dict[str, Any]], box: Box, zero: int, rows: list[tuple[int, int]]) -> list[list[int]]:
    """Return the samples of each row of latency: in the box, outside of it, in its time, at all other times."""
    low = max(edge for edge in FIO_EDGES if edge <= box.low_ns)
    high = math.inf if box.high_ns is None else min((edge for edge in FIO_EDGES if edge >= box.high_ns), default=math.inf)
    begin, end = (edge and zero + edge.ns for edge in (box.begin, box.end))
    found: Counter[tuple[bool, bool, int]] = Counter()
    for document in documents:
        start, stop = document["start"], document["start"] + document["step"]
        during = (begin is None or stop > begin) and (end is None or start < end)
        for value, count in document["bins"].items():
            found[during, during and low <= value < high, value] += count
    sums = [[0, 0, 0, 0] for _ in rows]
    for (during, inside, value), count in found.items():
        (row,) = (place for place, (lower, upper) in enumerate(rows) if lower <= value < upper)
        sums[row][0 if inside else 1] += count
        sums[row][2 if during else 3] += count
    return sums


def held(answer: Explained) -> dict[tuple[str, str], list[int]]:
    columns = answer.table.columns
    rows = zip(*(columns[name].tolist() for name in ("label", "value", "inside", "outside")), strict=True)
    return {(label, value): [inside, outside] for label, value, inside, outside in rows}


@pytest.mark.slow
def test_300_random_boxes_equal_brute_force_over_the_documents(example) -> None:
    files, ground = example
    documents, noise = ground.documents(), random.Random(21)
    filled = 0
    with open_store(ground.url) as store:
        zero = store.runs()[0].start_ns
        for number in range(figure(8, 12, 300)):
            box = drawn(noise)
            expected, total = counted(documents, box, zero)
            answer = explained(store, Question(), box)
            assert (held(answer), [answer.inside, answer.outside]) == (expected, total)
            filled += answer.inside > 0
            columns = [answer.distribution.columns[name].tolist() for name in ("lower", "upper", *SIDES)]
            rows = list(zip(*columns, strict=True))
            assert spread(documents, box, zero, [row[:2] for row in rows]) == [list(row[2:]) for row in rows]
            if number % figure(4, 4, 1) == 0:
                assert plain(explained(files, Question(), box)) == {**plain(answer), "notes": files_notes(files, box)}
            for row, (inside, outside) in enumerate(held(answer).values()):
                assert answer.table.columns["share_inside"][row] == pytest.approx(inside / max(total[0], 1))
                if inside and outside:
                    lift = Fraction(inside, total[0]) / Fraction(outside, total[1])
                    assert answer.table.columns["lift"][row] == pytest.approx(float(lift))
    assert filled > number / 3


@pytest.mark.slow
def test_random_boxes_against_before_after_and_their_time_equal_brute_force_over_the_documents(example, capsys) -> None:
    files, ground = example
    (record,) = files.runs()
    documents, noise = ground.documents(), random.Random(12)
    for turn in range(figure(12, 30, 100)):
        box, against = drawn(noise), ("before", "after", "time")[turn % 3]
        answer = explained(files, Question(), box, against)
        found, (inside, outside) = counted(documents, box, record.start_ns, against)
        assert (answer.inside, answer.outside) == (inside, outside)
        assert held(answer) == {key: sums for key, sums in found.items() if len(answer.table)}
        assert answer.against == plain(answer)["against"] == against
    capsys.readouterr()
    assert command(["explain", str(EXAMPLE), "--box", "+26s..+36s,1s..", "--against", "before"]) == 0
    said = capsys.readouterr().out
    assert "4 samples, in 1 window of 1s; held against" in said and "of all before it" in said
    assert command(["explain", str(EXAMPLE), "--box", "..+36s,1s..", "--against", "before"]) == 0
    assert "No sample lies before: there is nothing to compare it with." in capsys.readouterr().out
    assert command(["explain", str(EXAMPLE), "--against", "before"]) == 2
    assert "--against is for --box" in capsys.readouterr().err


def files_notes(files: Files, box: Box) -> list[str]:
    """What files say of their rows beside the answer, such as of clocks."""
    return list(explained(files, Question(), box).answer.warnings)


@pytest.mark.slow
@given(
    low=st.integers(0, 10**10),
    wide=st.integers(1, 10**10),
    begin=st.integers(-5 * SECOND, 90 * SECOND),
    lasts=st.integers(1, 90 * SECOND),
)
def test_edges_move_outwards_to_bins_and_windows_and_no_further(example, low: int, wide: int, begin: int, lasts: int) -> None:
    box = Box(Instant(begin, relative=True), Instant(begin + lasts, relative=True), low, low + wide)
    with open_store(example[1].url) as store:
        answer, zero = explained(store, Question(where={"host": "ceph-b", "op": "read"}), box), store.runs()[0].start_ns
    assert answer.low_ns == max(edge for edge in FIO_EDGES if edge <= low) or low >= FIO_EDGES[-2]
    assert answer.high_ns in (min((edge for edge in FIO_EDGES if edge >= low + wide), default=None), None)
    (span,) = answer.spans.values()
    assert span == ((zero + begin) // SECOND * SECOND, -(-(zero + begin + lasts) // SECOND) * SECOND)
    used = Box(Instant(span[0]), Instant(span[1]), answer.low_ns, answer.high_ns)
    with open_store(example[1].url) as store:  # what was used is asked for: the same box
        again = explained(store, Question(where={"host": "ceph-b", "op": "read"}), used)
    assert plain(again) == plain(answer)


@pytest.mark.slow
def test_files_and_both_stores_say_the_same_byte_for_byte(tmp_path: Path) -> None:
    boxes = [parse_box(text) for text in ("..,1ms..", "+2s..+5s,..", "+1s..,100us..3ms", "..", "+50s..,1s..")]
    files = Files([HOSTS], ReadOptions(run="one", t0=ZERO), jobs=1)
    expected = [texts(explained(files, Question(), box)) for box in boxes]
    assert len(set(expected)) == len(boxes)
    for kind in ("sqlite", "double"):
        with grounds(kind, tmp_path) as ground:
            loaded(ground.url, [HOSTS], run="one", jobs=1, reading={"t0": ZERO})
            with open_store(ground.url) as store:
                assert [texts(explained(store, Question(), box)) for box in boxes] == expected


def texts(answer: Explained) -> str:
    return "\n".join([json.dumps(plain(answer)), *csv_lines(answer.table)])


def test_several_runs_are_a_label_and_each_has_its_own_clock(tmp_path: Path) -> None:
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [HOSTS], run="one", jobs=1, reading={"t0": ZERO})
        loaded(ground.url, [FIO / "randrw"], run="two", jobs=1, reading={"t0": ZERO + 3600 * SECOND})
        with open_store(ground.url) as store:
            answer = explained(store, Question(), parse_box("+1s..+3s,.."))
            starts = {run.run: run.start_ns for run in store.runs()}
        assert {run: low - starts[run] for run, (low, _) in answer.spans.items()} == {"one": SECOND, "two": SECOND}
        expected = Counter()
        for document in ground.documents():
            if document["kind"] == "completion" and 1 <= (document["start"] - starts[document["run"]]) / SECOND < 3:
                expected[document["run"]] += document["count"]
        assert {value: sums[0] for (label, value), sums in held(answer).items() if label == "run"} == expected


# ---- Sentences, and what cannot be.


def test_the_stall_of_the_example_names_ceph_b(capsys) -> None:
    assert command(["explain", str(EXAMPLE), "--box", "+26s..+36s,1s.."]) == 0
    out = capsys.readouterr().out
    assert "host ceph-b made 4 of the 4 samples in the box (100 %, of all others 38.5 %): 2.6 times its share elsewhere." in out
    assert "998ms and above, from +25.542 s" in out


def test_a_throttled_host_is_over_represented_for_certain(example) -> None:
    answer = explained(example[0], Question(), parse_box("..,10ms..20ms"))
    first, *_ = sentences(answer)
    assert first.startswith("host ceph-c made 243 of the 257 samples in the box (94.6 %, of all others 20.4 %): 4.6 times")
    assert answer.table.columns["verdict"][0] == MORE
    assert answer.table.columns["lo"][0] > 3


def test_what_made_most_of_a_box_leads_also_where_nothing_bounds_it(tmp_path: Path) -> None:
    """A limit of 25 s on one host is a single event: no bound holds it, and it leads all the same, before what is sure and smaller."""
    shutil.unpack_archive(THREE_HOSTS, tmp_path, filter="data")
    answer = explained(Files([tmp_path / "results"], jobs=1), Question(), parse_box("+17s..+42s,40ms..200ms"))
    columns = answer.table.columns
    first, why, second = sentences(answer)
    assert first.startswith("host node3 made 794 of the 798 samples in the box (99.5 %, of all others 27.5 %): 3.6 times")
    assert "all this may be a single event" in why
    assert second.startswith("op write made 535 of the 798 samples")
    assert (columns["verdict"][0], columns["verdict"][1]) == (UNSURE, MORE)
    by_chance = sentences(replace(answer, stands_out=(False, *answer.stands_out[1:])))
    assert [each.split(" made")[0] for each in by_chance] == ["op write"]


def test_a_slow_host_leads_before_the_operation_that_it_does_most(tmp_path: Path) -> None:
    noise, rows = random.Random(6), []
    for at in range(120):
        slow = 40 <= at < 70
        for host in "abc":
            own = slow and host == "c"
            for _ in range(20):
                op = "write" if noise.random() < (0.7 if own else 0.3) else "read"
                rows.append((ZERO + at * SECOND + noise.randrange(SECOND), (60 if own else 0.3) * MS, host, "p", op))
    path = event_file(tmp_path, sorted((int(at), int(took), *rest) for at, took, *rest in rows))
    answer = explained(Files([path], reading(tmp_path), jobs=1), Question(), parse_box("..,40ms.."))
    first, *rest = sentences(answer)
    assert first.startswith("host c made 600 of the 600 samples in the box (100 %, of all others 27.3 %)")
    assert sum(" made " in each for each in rest) == 1


def test_nothing_is_over_represented_in_a_box_of_usual_latencies(example) -> None:
    answer = explained(example[0], Question(where={"host": "ceph-a", "op": "read"}), parse_box("+10s..+40s,.."))
    assert sentences(answer)[0].startswith(f"{NOTHING}. Closest: ")
    assert MORE not in answer.table.columns["verdict"].tolist()


@pytest.mark.slow
def test_an_empty_box_says_so(example, capsys) -> None:
    answer = explained(example[0], Question(), parse_box("..,100s.."))
    assert (answer.inside, sentences(answer)) == (0, ["No sample lies in this box."])
    assert command(["explain", str(EXAMPLE), "--box", "..,100s.."]) == 0
    assert "No sample lies in this box." in capsys.readouterr().out
    assert sentences(explained(example[0], Question(), parse_box("..")))[0].startswith("All samples lie in this box")


@pytest.mark.slow
def test_formats_hold_the_same_values(example, capsys) -> None:
    call = ["explain", str(EXAMPLE), "--box", "..,10ms..20ms", "--where", "op=write"]
    assert command([*call, "--format", "json"]) == 0
    whole = json.loads(capsys.readouterr().out)
    assert command([*call, "--format", "ndjson"]) == 0
    assert [json.loads(line) for line in capsys.readouterr().out.splitlines()] == [
        {**row, "exact": True, "complete": True} for row in whole["values"]
    ]
    assert command([*call, "--format", "csv"]) == 0
    head, *rows = capsys.readouterr().out.splitlines()
    assert head == "label,value,inside,outside,share_inside,share_outside,lift,lo,hi,score,verdict,exact,complete"
    assert len(rows) == len(whole["values"]) == 7
    assert whole["box"]["runs"]["cbt-archive/00000000/id-9b5d006f"] == {"from_s": None, "to_s": None}
    assert (whole["box"]["low_ns"], whole["inside"], whole["complete"]) == (9_961_472, 145, True)


@pytest.mark.slow
def test_marks_in_the_box_are_named(tmp_path: Path, capsys) -> None:
    marks = tmp_path / "marks.csv"
    marks.write_text("+30s,,osd.3 down\n+70s,,later\n")
    assert command(["explain", str(EXAMPLE), "--box", "+26s..+36s,1s..", "--marks", str(marks)]) == 0
    out = capsys.readouterr().out
    assert "note: mark in the box at +30 s: osd.3 down" in out
    assert "later" not in out


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--box", "26s"], "--box takes a range of time and one of latency"),
        (["--box", "+5s..+2s,.."], "--box +5s..+2s,..: it ends before it begins"),
        (["--box", "..,5ms..1ms"], "--box ..,5ms..1ms: it ends before it begins"),
        (["--box", "..,1s..,2s.."], "--box takes a range of time and one of latency"),
        (["--box", "..,1s..", "--by", "host"], "--box looks at every label: leave out --by"),
        (["--box", "..,1s..", "--attribution", "in-flight"], "a box counts whole I/Os: leave out --attribution in-flight"),
    ],
)
def test_what_cannot_be_asked_is_a_sentence(words: list[str], sentence: str, capsys) -> None:
    assert command(["explain", str(EXAMPLE), *words]) == 2
    assert sentence in capsys.readouterr().err


def test_means_alone_are_refused_in_a_sentence() -> None:
    with pytest.raises(InputError, match="latency was recorded as means alone, and boxes of latency cannot be made of means"):
        explained(Files([FIO / "means-500" / "a_clat.1.log"], jobs=1), Question(), parse_box("..,1ms.."))


def test_several_kinds_are_never_counted_together(example) -> None:
    log = FIO / "host-folders"
    answer = explained(
        Files([HOSTS], ReadOptions(t0=ZERO), jobs=1), Question(where={"kind": "completion"}), parse_box("..,1ms..")
    )
    assert answer.answer.kind == "completion", log
    with pytest.raises(UsageError, match="a box counts one kind of latency"):
        explained(
            Files([HOSTS], ReadOptions(t0=ZERO, expected_interval_ns=MS), jobs=1), Question(where={"kind": "*"}), parse_box("..")
        )


# ---- Offsets.


def ticking(seconds: int = 40) -> list[tuple]:
    """Events of two hosts at any offset; in the seconds 12 to 17 those of host b lie at 510 ms of the second."""
    noise = random.Random(8)
    rows = [(ZERO + at * SECOND + noise.randrange(SECOND), 300_000, "a", "p", "read") for at in range(seconds) for _ in range(30)]
    for at in range(seconds):
        rows += [
            (ZERO + at * SECOND + (510 * MS + 7 if 12 <= at < 18 else noise.randrange(SECOND)), 2 * MS, "b", "p", "write", 2)
            for _ in range(10)
        ]
    return sorted(rows)


def by_offset(rows: list[tuple], begin: float, end: float, host: str = "") -> tuple[list[int], list[int]]:
    """Return the events of each 20 ms: in the seconds that a range touches, and in all others; event by event."""
    sums = [0] * ROWS, [0] * ROWS
    for at, _, own, _, _, *weight in rows:
        second = (at - ZERO) // SECOND
        if host in ("", own):
            sums[0 if second < end and second + 1 > begin else 1][at % SECOND // (20 * MS)] += (weight or [1])[0]
    return sums


def test_offsets_of_a_box_equal_brute_force_from_files_and_stores(tmp_path: Path) -> None:
    rows, noise = ticking(), random.Random(4)
    path = event_file(tmp_path, rows)
    files = Files([path], reading(tmp_path), jobs=1)
    with grounds("sqlite", tmp_path) as ground:
        loaded(ground.url, [path], run="r", jobs=1, reading={"description": reading(tmp_path).description})
        with open_store(ground.url) as store:
            for _ in range(figure(6, 12, 150)):
                begin, end = sorted(noise.uniform(-5, 45) for _ in range(2))
                host = noise.choice(["", "a", "b"])
                spans = {"r": (ZERO + round(begin * SECOND), ZERO + round(end * SECOND))}
                question = Question(where={"host": host} if host else {})
                for origin in (files, store):
                    found = box_offsets(origin, question, spans)
                    assert found is not None
                    assert (found.inside.tolist(), found.outside.tolist()) == by_offset(rows, begin, end, host)


def test_offsets_that_stand_out_are_named_and_others_are_not(tmp_path: Path, capsys) -> None:
    path = event_file(tmp_path, ticking())
    files = Files([path], reading(tmp_path), jobs=1)
    start = files.runs()[0].start_ns
    question, box = Question(), Box(Instant(ZERO + 12 * SECOND), Instant(ZERO + 18 * SECOND), MS, None)
    answer = explained(files, question, box)
    offsets = box_offsets(files, question, answer.spans)
    assert offsets is not None and offsets.first == 25
    sentence = offsets_sentence(offsets)
    assert (
        sentence.startswith("Offsets within the second, of all latencies: 500 to 520 ms have 4")
        and "300 events in its time" in sentence
    )
    rows = plain(answer, offsets)["offsets"]
    assert rows[25] == {"lower_ms": 500, "upper_ms": 520, "inside": int(offsets.inside[25]), "outside": int(offsets.outside[25])}
    calm = box_offsets(files, question, {"r": (ZERO + 25 * SECOND, ZERO + 31 * SECOND)})
    assert calm is not None and calm.first is None
    assert ": no 20 ms of it stand out in its time (300 events, " in offsets_sentence(calm)
    nothing = BoxOffsets(np.zeros(ROWS, np.int64), offsets.outside)
    assert (nothing.first, offsets_sentence(nothing)) == (None, "")
    assert plain(answer)["offsets"] is None
    described = tmp_path / "events.yml"
    edges = [f"+{(edge - start) / SECOND}s" for edge in (ZERO + 12 * SECOND, ZERO + 18 * SECOND)]
    assert command(["explain", str(path), "--input-format", str(described), "--box", f"{edges[0]}..{edges[1]},1ms.."]) == 0
    shown = capsys.readouterr().out
    assert sentence in shown and " in its time     0 " in shown and "at other times" in shown


def test_without_single_events_there_are_no_offsets() -> None:
    files = Files([HOSTS], ReadOptions(t0=ZERO), jobs=1)
    assert box_offsets(files, Question(), {run: (None, None) for run in files.run_names}) is None


# ---- Bounds.


def sides(inside: np.ndarray, outside: np.ndarray) -> tuple[Side, Side]:
    return tuple(Side(counts.astype(float), counts.sum(axis=0).astype(float)) for counts in (inside, outside))  # type: ignore[return-value]


def test_fewer_than_five_windows_bound_nothing() -> None:
    outside = np.full((2, 100), 50)
    lift, other = lifts(*sides(np.array([[200, 300, 100, 50], [0, 0, 0, 0]]), outside), 2)
    assert (lift.lift, lift.verdict, lift.stands_out) == (2.0, UNSURE, True)
    assert math.isnan(lift.low) and math.isnan(other.high)
    lift, other = lifts(*sides(np.array([[200, 300, 100, 50] * 6, [0] * 24]), outside), 2)
    assert (lift.verdict, other.verdict) == (MORE, LESS)
    assert 1 < lift.low < 2 <= lift.high


def test_bounds_hold_what_is_equal_as_often_as_they_promise() -> None:
    """Shares that depend on those of the window before, equal inside and outside: how often a value is called over or under."""
    noise, wrong, tries, known = np.random.default_rng(5), 0, figure(100, 300, 4000), 0
    for _ in range(tries):
        correlation, length, own = noise.choice([0.0, 0.5, 0.8]), 200, int(noise.choice([12, 30, 60]))
        level = np.zeros(length)
        for at in range(1, length):
            level[at] = correlation * level[at - 1] + math.sqrt(1 - correlation**2) * noise.normal()
        shares = 1 / (1 + np.exp(0.7 - 0.4 * level))
        every = noise.poisson(60, length)
        first = noise.binomial(every, shares)
        values = np.stack([first, every - first])
        begin = int(noise.integers(0, length - own))
        banded = noise.binomial(values, 0.3)
        during = (np.arange(length) >= begin) & (np.arange(length) < begin + own)
        lift = lifts(*sides(banded[:, during], np.where(during, values - banded, values)), 1)[0]
        known += not math.isnan(lift.low)
        wrong += lift.verdict in (MORE, LESS)
    assert known > tries / 2
    assert wrong / known < 0.05, (wrong, known)


def test_a_time_by_the_clock_is_the_same_box(example) -> None:
    at = datetime(2026, 11, 20, 21, 0, 30, tzinfo=UTC)
    box = parse_box(f"{at.isoformat()}..2026-11-20T21:00:41Z,1s..")
    assert plain(explained(example[0], Question(), box)) == plain(explained(example[0], Question(), parse_box("+26s..+36s,1s..")))
