"""`inspect` of a file that no reader knows says which description that comes with tailboard fits it best, and none where none does."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.read.described import histograms
from ingest.read.described.description import description_of, presets
from ingest.read.described.histograms import fitting
from ingest.read.polls import lines_of
from tests.read.test_histograms import DATA

MYSQL = "sampled_at,SCHEMA_NAME,DIGEST,BUCKET_NUMBER,BUCKET_TIMER_LOW,BUCKET_TIMER_HIGH,COUNT_BUCKET\n" + "".join(
    f"2026-01-01T00:00:0{second}Z,db,q1,41,63095734,66069344,{5 * second}\n" for second in (1, 2, 3)
)
BIOLATENCY = "".join(
    f"{{'ts': '2020-12-30 14:40:0{second}', 'val_type': 'usecs', 'data': [{{'interval-start': 0, 'interval-end': 1, 'count': {second}}}]}}\n"
    for second in (1, 2, 3)
)
SAMPLES = {
    "redis-latency": ((DATA / "redis70_latency_histogram.ndjson").read_text(), 35_775),
    "sysbench": ((DATA / "sysbench1020_histogram.txt").read_text(), 6057),
    "mysql-statements": (MYSQL, 10),
    "biolatency": (BIOLATENCY, 6),
}


def test_each_preset_has_a_sample_here() -> None:
    assert set(SAMPLES) == set(presets())


@pytest.mark.parametrize("name", SAMPLES)
@pytest.mark.parametrize("damage", ["", "# a line of words\n"])
def test_the_preset_that_fits_is_named_with_what_it_reads(tmp_path: Path, capsys, name: str, damage: str) -> None:
    """The numbers are those of the call that is proposed."""
    text, samples = SAMPLES[name]
    path = tmp_path / "unknown.dat"
    path.write_text(text + damage)
    assert tailboard(["inspect", str(path)]) == 0
    told = capsys.readouterr().out
    assert f"no reader knows it; --input-format {name} fits: " in told and f"{samples:,} sample" in told
    assert tailboard(["percentiles", str(path), "--input-format", name, "--step", "all", "--format", "csv"]) == 0
    rows = capsys.readouterr().out.splitlines()
    count = rows[0].split(",").index("count")
    assert sum(int(row.split(",")[count]) for row in rows[1:]) == samples


def test_the_preset_that_reads_more_of_a_file_is_better(tmp_path: Path) -> None:
    """Lines of two tools in one file. What JSON is may be a literal of Python, too: that nothing is rejected says little."""
    path = tmp_path / "both.dat"
    redis = SAMPLES["redis-latency"][0]
    for text, name in ((redis + BIOLATENCY, "redis-latency"), (redis.split("\n")[0] + "\n" + BIOLATENCY * 1, "biolatency")):
        path.write_text(text)
        assert (fitting(path) or ("",))[0] == name


@pytest.mark.parametrize(
    "text",
    [
        '{"name": "x", "values": [1, 2, 3]}\n',
        "a,b,c\n1,2,3\n",
        "some words\n",
        "{'ts': 'yesterday'}\n",
        '{"t": 5, "r": {}}\n',
        "\x00\x01\x02",
    ],
)
def test_where_none_fits_none_is_named(tmp_path: Path, capsys, text: str) -> None:
    path = tmp_path / "unknown.dat"
    path.write_text(text)
    assert fitting(path) is None
    assert tailboard(["inspect", str(path)]) == 3
    told = capsys.readouterr()
    assert "no reader knows it" not in told.out + told.err and "--input-format" in told.err


def test_a_file_that_fits_beside_one_that_does_not(tmp_path: Path, capsys) -> None:
    """All files of a call or none: which one is unknown is said."""
    good, bad = tmp_path / "good.dat", tmp_path / "bad.dat"
    good.write_text(BIOLATENCY)
    bad.write_text("words\n")
    assert tailboard(["inspect", str(good), str(bad)]) == 3
    assert "bad.dat" in capsys.readouterr().err


def test_stores_know_the_descriptions_that_they_were_loaded_with() -> None:
    """The texts of commit 27f8b0ef: with another one every log that was loaded would be read again."""
    texts = {name: description_of(name).text.encode() for name in presets()}
    assert {name: hashlib.blake2b(text, digest_size=8).hexdigest() for name, text in texts.items()} == {
        "biolatency": "38eaeab5f7f4e3e9",
        "mysql-statements": "6676c4fbcafc5e94",
        "redis-latency": "2e79a3ae9df33828",
        "sysbench": "a580b8354468bc59",
    }


def test_r8_a_long_file_that_no_description_fits_is_not_gone_through_for_each(tmp_path: Path, monkeypatch) -> None:
    """A table of 33 MB that no reader knows took minutes of `inspect`."""
    asked = []
    monkeypatch.setattr(histograms, "lines_of", lambda path, context: asked.append(context.upto) or lines_of(path, context))
    (tmp_path / "stdout.txt").write_bytes(b"1, 2, 3, 4\n" * 50_000)
    assert fitting(tmp_path / "stdout.txt") is None
    assert asked and set(asked) == {histograms.TRIED}
