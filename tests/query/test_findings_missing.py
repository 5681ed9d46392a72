"""Findings of logs that have lost rows or files: what they lack is held against a claim, and nothing is said of it as if it were known."""

from __future__ import annotations

import gzip
import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from ingest.core.coverage import Caveat, Missing
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.story.ground import (
    EDGE,
    EPISODE,
    IMBALANCE,
    RHYTHM,
    SLOW_MEMBER,
    STALL,
    Claim,
    Ground,
    grounds,
    is_lost,
    most_times,
)
from ingest.query.story.segments import changes
from ingest.query.story.shapes import beside_peers, stalls
from ingest.query.story.story import story_of
from query.findings_runs import START, Run, in_turn, less, slower, stopped

SECOND = 1_000_000_000


def ground_of(path: Path) -> Ground:
    return grounds(Files([path]), Question())[0]


def hosts(claims: list[Claim]) -> set[str]:
    return {dict(claim.who)["host"] for claim in claims}


def without_rows(archive: Path, to: Path, lost: Callable[[int], bool]) -> Path:
    """Copy the example without the rows of ceph-a whose ms since its first row are `lost`."""
    shutil.copytree(archive, to)
    for path in to.rglob("*clat_hist*.ceph-a*"):
        text = gzip.open(path, "rt").read() if path.suffix == ".gz" else path.read_text()
        lines = text.splitlines(keepends=True)
        first = int(lines[0].split(",")[0])
        kept = "".join(line for line in lines if not lost(int(line.split(",")[0]) - first))
        path.write_bytes(gzip.compress(kept.encode()) if path.suffix == ".gz" else kept.encode())
    return to


@pytest.mark.slow
@pytest.mark.parametrize(
    ("lost", "told"),
    [(lambda at: 45_000 < at < 52_000, {"ceph-a", "ceph-b"}), (lambda at: at // 5000 % 3 == 1, {"ceph-b"})],
    ids=["7 s", "each third 5 s"],
)
def test_rows_that_a_log_has_lost_are_no_stall(
    archive: Path, tmp_path: Path, lost: Callable[[int], bool], told: set[str]
) -> None:
    """`ceph-a stalled for 7.92 s, about 2,200 completions did not happen`: they had happened, and a note above said so."""
    ground = ground_of(without_rows(archive, tmp_path / "copy", lost))

    def said(ground: Ground) -> set[str]:
        return {dict(found.who)["host"] for found in story_of(ground).findings if found.kind in (STALL, EPISODE, EDGE)}

    assert said(replace(ground, missing=(), finer=None)) == told
    assert hosts(stalls(ground)) == said(ground) == {"ceph-b"}, "the stall of a host that lost nothing is found"


def test_samples_that_are_counted_at_the_end_for_lost_rows_make_no_slow_end(archive: Path, tmp_path: Path) -> None:
    ground = ground_of(without_rows(archive, tmp_path / "copy", lambda at: at < 30_000))
    assert "ceph-a" not in {dict(claim.who).get("host") for claim in changes(ground, stalls(ground))}


@pytest.mark.parametrize("spoilt", ["empty", "damaged", "gone", "whole"])
def test_a_host_is_not_said_to_do_more_than_one_of_which_a_log_is_lost(tmp_path: Path, spoilt: str) -> None:
    """`h4 did 2 times the work of its peers`: the log of a job of its one peer was empty."""
    noise = random.Random(7)
    for host in ("h1", "h2"):
        for job in "12":
            rows = [f"{at}, {noise.randrange(90_000, 110_000)}, 0, 4096, 0, 0\n" for at in range(10, 30_000, 10)]
            path = tmp_path / host / f"a_lat.{job}.log"
            path.parent.mkdir(exist_ok=True)
            path.write_text("".join(rows))
    log = tmp_path / "h1" / "a_lat.1.log"
    if spoilt == "empty":
        log.write_text("")
    elif spoilt == "damaged":
        log.write_bytes(b"\xff\x00\x81" * 300)
    elif spoilt == "gone":
        log.unlink()
    ground = ground_of(tmp_path)
    known = [claim for claim in beside_peers(replace(ground, missing=())) if claim.kind == IMBALANCE]
    found = [claim for claim in beside_peers(ground) if claim.kind == IMBALANCE]
    assert hosts(known) == (set() if spoilt == "whole" else {"h2"})
    assert hosts(found) == ({"h2"} if spoilt == "gone" else set()), "of a log that is not there nobody knows"


@pytest.mark.parametrize("kept", [slice(0, 700), pytest.param(slice(2300, None), marks=pytest.mark.slow)], ids=["ends", "begins"])
def test_a_host_whose_log_ends_early_or_begins_late_did_no_less_than_its_peers(tmp_path: Path, kept: slice) -> None:
    """`host-002 did 22 % of the work of its peers throughout`: of a log that was cut off nobody knows the rest."""
    noise = random.Random(8)
    for host in ("h1", "h2", "h3"):
        rows = [f"{at}, {noise.randrange(90_000, 110_000)}, 0, 4096, 0, 0\n" for at in range(10, 30_000, 10)]
        (tmp_path / host).mkdir()
        (tmp_path / host / "a_lat.1.log").write_text("".join(rows[kept] if host == "h2" else rows))
    assert story_of(ground_of(tmp_path)).findings == ()


def test_how_much_may_be_missing_of_groups(archive: Path, tmp_path: Path) -> None:
    ground = ground_of(without_rows(archive, tmp_path / "copy", lambda at: 45_000 < at < 52_000))
    of_host = {
        host: [code for code, labels in enumerate(ground.groups) if dict(labels)["host"] == host] for host in ("ceph-a", "ceph-b")
    }
    assert most_times(ground, of_host["ceph-b"]) == 1.0
    assert 1.1 < most_times(ground, of_host["ceph-a"]) < 1.3, "about 10 s of 75"
    [entry, *_] = [entry for entry in ground.missing if entry.labels["host"] == "ceph-a"]
    known = int(ground.samples[of_host["ceph-a"]].sum())
    assert most_times(replace(ground, missing=(replace(entry, count=known),)), of_host["ceph-a"]) == 2.0
    always = replace(entry, from_ns=None, to_ns=None)
    assert most_times(replace(ground, missing=(always,)), of_host["ceph-a"]) == float("inf")
    begin, end = entry.span
    alone = replace(ground, missing=(entry,))
    assert is_lost(alone, of_host["ceph-a"], begin, end) and is_lost(alone, of_host["ceph-a"], begin, 2 * end - begin)
    assert not is_lost(alone, of_host["ceph-a"], begin, 2 * end - begin + 1) and not is_lost(alone, of_host["ceph-b"], begin, end)
    assert not is_lost(replace(ground, missing=(always,)), of_host["ceph-a"], begin, end), "what may be anywhere is not there"


@pytest.mark.parametrize(
    "how", [pytest.param("stall", marks=pytest.mark.slow), "fewer", pytest.param("never", marks=pytest.mark.slow)]
)
def test_what_is_made_up_for_at_once_afterwards_did_not_fail_to_happen(tmp_path: Path, how: str) -> None:
    """`about 2,300 completions did not happen`: fio with a rate did them in a burst once it went on."""
    noise = random.Random(9)
    due = list(range(10, 60_000, 5))
    put_off = [at for at in due if 20_000 <= at < (32_000 if how == "fewer" else 23_000) and (how != "fewer" or at % 20)]
    burst = [] if how == "never" else [put_off[-1] + 5 + number // 12 for number in range(len(put_off))]
    for host, stamps in (("h1", due), ("h2", sorted({*due} - {*put_off}) + burst)):
        rows = [f"{at}, {noise.randrange(90_000, 110_000)}, 0, 4096, 0, 0\n" for at in sorted(stamps)]
        (tmp_path / host).mkdir()
        (tmp_path / host / "a_lat.1.log").write_text("".join(rows))
    found = [each for each in story_of(ground_of(tmp_path)).findings if dict(each.who) == {"host": "h2"}]
    assert {each.kind for each in found} & {STALL, EPISODE}
    assert any("did not happen" in each.text for each in found) == (how == "never")


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("lacks", ["its end", "its beginning", "what lies between"])
@pytest.mark.parametrize("event", [slower, less, stopped, in_turn])
@pytest.mark.parametrize(("hosts", "known"), [(2, 1), (3, 2), (4, 1), (6, 3)])
def test_a_host_without_data_does_nothing_of_what_others_do_then(
    seed: int, lacks: str, event: Callable[[Run, slice, slice], None], hosts: int, known: int
) -> None:
    """`all hosts were 2.01 times slower`, of two, one of which had no data then: what it did is not known."""
    run = Run(seed, hosts=hosts, windows=400, phi=0.3)
    stretch, dark = {
        "its end": (slice(240, 380), slice(220, 400)),
        "its beginning": (slice(20, 160), slice(0, 180)),
        "what lies between": (slice(130, 270), slice(110, 290)),
    }[lacks]
    event(run, slice(known), stretch)
    run.rate[known:] = 200
    run.rate[known:, dark] = 0
    ground = run.ground()
    if lacks == "what lies between":  # at an end of a log nothing need be told
        begin, end = (START + at * SECOND for at in (dark.start, dark.stop))
        said = Caveat("lost-rows", "x.log", "rows are not in the log")
        lost = (Missing({"host": host}, begin, end, None, 0, None, said) for host, _ in run.groups[known:])
        ground = replace(ground, missing=tuple(lost))
    found = [finding for finding in story_of(ground).findings if finding.kind in (STALL, EPISODE, EDGE, RHYTHM)]
    assert found
    for finding in found:
        alone = dict(finding.who).get("host")
        assert alone in {host for host, _ in run.groups[:known]} if alone else known > 1, finding.text
        assert finding.text.startswith(f"{alone} " if alone else f"{known} of {hosts} hosts "), finding.text
        others = "Of the others" if hosts - known > 1 else "Of the other"
        assert (f". {others} there is no data then." in finding.text) == (not alone)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("event", [slower, less])
def test_hosts_without_data_do_not_make_one_of_two_all(seed: int, event: Callable[[Run, slice, slice], None]) -> None:
    """Of four, two have no data when one is slow: the one that was not is half of those of which anything is known."""
    run = Run(seed, windows=400, rate=2000, phi=0.3)
    event(run, slice(1), slice(240, 380))
    run.rate[2:, 230:] = 0
    found = [finding for finding in story_of(run.ground()).findings if finding.kind in (EPISODE, EDGE)]
    assert {finding.who for finding in found} == {(("host", "a"),)}


@pytest.mark.parametrize("part", [slice(0, 120), slice(250, 400)])
@pytest.mark.parametrize("hosts", [3, 6])
def test_what_is_so_throughout_is_said_of_a_host_with_data_of_less_than_half_of_the_run(hosts: int, part: slice) -> None:
    run = Run(1, hosts=hosts, windows=400, phi=0.3)
    slower(run, slice(1), slice(None))
    kept = run.rate[0, part].copy()
    run.rate[0] = 0
    run.rate[0, part] = kept
    (finding,) = story_of(run.ground()).findings
    assert finding.kind == SLOW_MEMBER and finding.text.startswith("a was ") and finding.times == pytest.approx(2, rel=0.1)
