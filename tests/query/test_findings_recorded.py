"""What is said of recorded runs, each held against its raw rows by hand (docs/explanation/findings.md, recorded runs)."""

from __future__ import annotations

from pathlib import Path

import pytest

from ingest.query.files import Files
from ingest.query.question import Question
from ingest.query.story.ground import EDGE, OMISSION, SLOW_MEMBER, STALL, Story
from ingest.query.story.story import stories
from ingest.read.sources import ReadOptions

DATA = Path(__file__).parents[1] / "data"
NS = ReadOptions(recorded_unit_ns=1)


def told_of(path: str, options: ReadOptions | None = None) -> list[Story]:
    return stories(Files([DATA / path], options or ReadOptions(), jobs=1), Question())


def said(path: str, options: ReadOptions | None = None) -> list[tuple[str, dict[str, str]]]:
    return [(finding.kind, dict(finding.who)) for told in told_of(path, options) for finding in told.findings]


def test_of_three_jobs_that_differ_by_as_much_none_is_the_slow_one() -> None:
    """p50 of reads are 251, 195 and 141 us: job 2 lies between its peers, and job 1 is no further from job 2 than that from job 3."""
    assert said("fio/cases/group-raw-333") == []


def test_a_share_of_slow_reads_that_wanders_about_a_percentile_is_no_step() -> None:
    """p99 lies at the edge of a second mode of 6 %: 4 ms for most of the run, 0.1 to 0.4 ms from 132 to 147 s, 4 ms again."""
    assert said("verdicts/mixed_clat_hist.1.log.xz") == []


def test_pauses_that_come_and_go_are_no_step_and_the_first_half_that_was_slower_is_said() -> None:
    """It began at 19:39:49.8. p99 by 5 s is 60 ms until 15 s, 155 until 50, 60 until 95, 30 until 130, 190 at 135; 250/s until 65 s, 480/s after.

    p90 is 1.65 ms from 16 to 50 s, 2.0 to 2.8 until 35 s, 0.24 from 66 to 131 s, 2.7 at 135 s; 184, 114 and 251 a second from 4 s on,
    about 430 beside; 254 at 148 s.
    """
    (told,) = told_of("verdicts/hiccup.hlog.xz", NS)
    assert [found.text.split(". ")[0] for found in told.findings] == [
        "the run was 3.08 times slower from 19:40:06.0 to 19:40:54.0: p99 115 ms (typical: 37.4 ms), the slowest operation took 349 ms",
        "the run was 8.48 times slower from 19:40:08.0 to 19:40:23.0: p90 2.76 ms (typical: 325 µs), the slowest operation took 245 ms",
        "the run was 9.67 times slower from 19:42:04.0 to 19:42:12.0: p90 2.33 ms (typical: 241 µs), the slowest operation took 598 ms",
        "the run did 39 % of its usual work from 19:39:53.0 to 19:39:56.0",
        "the run did 54 % of its usual work from 19:42:17.0 to 19:42:18.0",
    ]


def test_one_of_two_hosts_is_slower() -> None:
    """p50 of writes 16 to 32 us and 4 to 8 us, whole bins apart."""
    assert said("fio/cases/pbench-two-hosts") == [(SLOW_MEMBER, {"host": "127.0.0.2"})]


def test_a_generator_that_stalls_and_falls_behind() -> None:
    """Service times up to 2.0 s, and 33 operations in the second of the stall."""
    (told,) = told_of("hdr/throttle.hdr")
    stall, omission = told.findings
    assert (stall.kind, omission.kind, stall.who) == (STALL, OMISSION, ())
    assert (stall.end_ns - stall.start_ns) / 1e9 == pytest.approx(2.26, abs=0.05)


def test_intervals_that_are_empty_are_pauses_and_nothing_was_under_way() -> None:
    (told,) = told_of("hdr/2.2.2-2-digits.hlog", NS)
    assert [(each.kind, round((each.start_ns - told.zero_ns) / 1e9)) for each in told.findings] == [(STALL, 5), (STALL, 22)]
    assert all("no late completion" in each.text for each in told.findings)


@pytest.mark.parametrize("path", ["verdicts/mixed_clat_hist.1.log.xz", "fio/cases/group-raw-333", "fio/stall", "hdr/js.hlog"])
def test_an_empty_label_is_no_label(path: str) -> None:
    """In no words, no JSON, no command: these recordings have no host, and no job or operation either (js)."""
    for told in told_of(path, NS if path.startswith("hdr") else None):
        for finding in told.as_dict()["findings"]:
            assert "" not in finding["who"].values()
            assert "host=" not in finding["command"]


def test_what_else_is_recorded_has_no_finding() -> None:
    for path in ("fio/randrw", "fio/host-folders", "fio/group-reporting", "fio/fio-3.42", "fio/client-server-rw"):
        assert {kind for kind, _ in said(path)} <= {EDGE}
