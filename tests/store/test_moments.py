"""Stores that hold moments alone, and timelines without a time zero: what they answer and what they refuse."""

from __future__ import annotations

import lzma
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.errors import InputError
from ingest.query.offsets import WantedOffsets
from ingest.query.question import Question
from ingest.store import open_store
from ingest.store.offsets import from_store
from tests.store.grounds import grounds, loaded

DATA = Path(__file__).parents[1] / "data"
T0 = {"t0": 1_789_999_200 * 1_000_000_000}


@pytest.fixture(params=["sqlite", "double"])
def ground(request, tmp_path: Path):
    with grounds(request.param, tmp_path) as found:
        yield found


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    """Samples of perf: moments, and nothing that was timed."""
    path = tmp_path / "boot.txt"
    path.write_bytes(lzma.open(DATA / "traces" / "boot.txt.xz").read())
    return path


def test_a_store_of_moments_alone_says_what_it_holds(ground, trace: Path, capsys) -> None:
    account = loaded(ground.url, [trace], reading=T0)
    assert account.offset_documents > 0 and account.documents == 0
    with (
        open_store(ground.url) as store,
        pytest.raises(InputError, match="r: only the times of events, no latencies; tailboard show offsets"),
    ):
        store.answer(Question(step="all"))
    assert command(["percentiles", ground.url, "--step", "all"]) == 3
    assert "tailboard show offsets shows them" in capsys.readouterr().err
    assert command(["offsets", ground.url, "--format", "csv"]) == 0


def test_moments_alone_are_seen_as_soon_as_the_load_has_ended(ground, trace: Path) -> None:
    """On a server they are refreshed, though there are no rollups to wait for."""
    loaded(ground.url, [trace], reading=T0)
    with open_store(ground.url) as store:
        samples = from_store(store, WantedOffsets(Question())).samples
    assert samples > 20
    with grounds("sqlite", trace.parent) as clean:
        loaded(clean.url, [trace], reading=T0)
        with open_store(clean.url) as store:
            assert from_store(store, WantedOffsets(Question())).samples == samples


@pytest.mark.slow
def test_a_timeline_that_counts_from_boot_needs_a_time_zero_on_a_server(ground, tmp_path: Path, capsys) -> None:
    timeline = tmp_path / "snabb.timeline"
    timeline.write_bytes(lzma.open(DATA / "snabb" / "cut" / "real.timeline.xz").read())
    words = ["load", str(timeline), "--run", "r", "--store", ground.url]
    server = ground.url.startswith("http")
    assert command(words) == (4 if server else 0)
    told = capsys.readouterr().err
    if server:
        assert "r has no start time, and Elasticsearch needs real times: give --t0 TIME, or --t0 mtime" in told
        assert ground.documents() == [] and ground.rollups() == []
        with open_store(ground.url) as store:
            assert store.runs() == []
        assert command([*words, "--t0", "2026-11-20T21:00:00Z"]) == 0
    assert command(["percentiles", ground.url, "--step", "all", "--where", "kind=*"]) == 0


def test_deleting_a_run_takes_its_moments(ground, trace: Path) -> None:
    for run in ("mine", "other"):
        loaded(ground.url, [trace], run=run, reading=T0)
    assert {key[0] for key in ground.offsets()} == {"mine", "other"}
    assert command(["runs", "delete", "mine", "--yes", "--store", ground.url]) == 0
    assert {key[0] for key in ground.offsets()} == {"other"}
