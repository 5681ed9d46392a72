"""N10: labels that lie inside a source select its samples, as they do in a store."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ingest.cli import run as tailboard
from ingest.read import events_of
from ingest.read.described.description import description_of
from ingest.read.placement import discover
from ingest.read.sources import ReadOptions

START = 1_795_330_000


def scrapes(folder: Path) -> Path:
    lines = []
    for second in range(1, 5):
        for host, count in (("a", 20), ("b", 10)):
            for edge, share in (("0.001", 0), ("0.01", 1), ("+Inf", 1)):
                labels = f'host="{host}",device="sd{host}",pid="{host}1",le="{edge}"'
                lines.append(f"rpc_seconds_bucket{{{labels}}} {second * count * share} {(START + second) * 1000}\n")
    (folder / "codes.txt").write_text("".join(lines))
    return folder / "codes.txt"


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> list[dict]:
    assert tailboard(["percentiles", *words, "--step", "all", "--format", "ndjson"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize("stored", [False, True])
@pytest.mark.parametrize(
    ("where", "count"), [("host=a", 60), ("host=[ab]", 90), ("volume=sdb", 30), ("process=b1", 30), ("host=b", 30)]
)
def test_n10_files_answer_as_stores_do(
    where: str, count: int, stored: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = str(scrapes(tmp_path))
    if stored:
        assert tailboard(["load", place, "--store", f"sqlite:{tmp_path / 'x.db'}", "--run", "r"]) == 0
        place = f"sqlite:{tmp_path / 'x.db'}"
        capsys.readouterr()
    [row] = asked(capsys, place, "--where", where)
    assert row["count"] == count and row["complete"]


def test_n10_beside_a_file_that_has_a_host_all_are_selected(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    scrapes(tmp_path)
    (tmp_path / f"rsptimes_01_c7_create_{START}.0000.csv").write_text("create,  0.000312,  0.001718\n" * 5)
    [row] = asked(capsys, str(tmp_path), "--where", "host=[ac]*")
    assert row["count"] == 65


def test_n10_a_host_that_nobody_has_is_answered_as_before(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert tailboard(["percentiles", str(scrapes(tmp_path)), "--where", "host=zz"]) != 0
    assert "zz" in capsys.readouterr().err


def test_n10_a_host_that_the_user_said_counts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    [row] = asked(capsys, str(scrapes(tmp_path)), "--host", "h", "--where", "host=h")
    assert row["count"] == 90


def test_n10_an_alias_reaches_hosts_inside_a_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = asked(capsys, str(scrapes(tmp_path)), "--host-alias", "a=z", "--by", "host")
    assert {row["host"]: row["count"] for row in rows} == {"z": 60, "b": 30}
    [row] = asked(capsys, str(tmp_path / "codes.txt"), "--host-alias", "a=z", "--where", "host=z")
    assert row["count"] == 60


def test_n10_an_alias_reaches_single_operations(tmp_path: Path) -> None:
    """Their offsets within a second are of the host as the user called it, as their latencies are."""
    rows = "".join(f"{START + second}000000000\t500\t{'ab'[second % 2]}\n" for second in range(1, 9))
    (tmp_path / "x.tsv").write_text(rows)
    lines = 'time: 1\nlatency: 2\nunit: ns\nlabels: {host: 3}\nheader: false\ndelimiter: "\\t"\n'
    (tmp_path / "d.yml").write_text(lines)
    options = ReadOptions(description=description_of(str(tmp_path / "d.yml")), host_alias={"a": "z", "b": "z"})
    [source] = discover([tmp_path / "x.tsv"], options).sources
    assert {series.host for chunk in events_of(source) for series in chunk.table} == {"z"}
