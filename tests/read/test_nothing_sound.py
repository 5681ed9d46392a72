"""Histogram logs that hold no sound sample: they give way to means, and where there is nothing else an answer says why it is empty."""

from __future__ import annotations

import base64
from json import dumps, loads
from pathlib import Path

import pytest

from ingest.core.errors import InputError
from ingest.query.files import Files
from ingest.query.question import NothingMatchesError, Question
from ingest.read.sources import ReadOptions
from oracles import hdr

CASE = Path("cases/fio37-masked")
MASK, LEADING = 928, 3


def damaged(fio: Path, folder: Path, keep: int = 0) -> None:
    """Write the recorded log of fio 3.7 with nothing in its sound bins but `keep` in the first of them."""
    lines = []
    for line in (fio / CASE / "x_clat_hist.1.log").read_text().splitlines():
        cells = line.split(", ")
        lines.append(", ".join([*cells[:LEADING], str(keep), *["0"] * (MASK - 1), *cells[LEADING + MASK :]]))
    (folder / "x_clat_hist.1.log").write_text("\n".join(lines) + "\n")


def means(folder: Path) -> None:
    (folder / "x_clat.1.log").write_text("".join(f"{at}, 900000, {code}, 0\n" for at in range(250, 3001, 250) for code in (0, 1)))
    (folder / "x_iops.1.log").write_text("".join(f"{at}, 400, {code}, 0\n" for at in range(250, 3001, 250) for code in (0, 1)))


@pytest.mark.parametrize("json", [True, False])
def test_a6_a_log_without_a_sound_sample_does_not_hide_means(json: bool, fio: Path, tmp_path: Path) -> None:
    damaged(fio, tmp_path)
    means(tmp_path)
    if json:
        told = (fio / CASE / "out.json").read_text()
        document = loads(told[told.index("{") :])
        for op in ("read", "write"):
            for kind in ("slat_ns", "clat_ns", "lat_ns"):
                document["jobs"][0][op].get(kind, {}).pop("bins", None)
        (tmp_path / "out.json").write_text(dumps(document, indent=2))
    files = Files([tmp_path], ReadOptions(run="r", fio_version=(3, 7)), jobs=1)
    answer = files.answer(Question(step="all", by=("op",)))
    assert answer.kind == "completion.mean"
    assert sum(int(part.counts.sum()) for part in answer.parts) == pytest.approx(2401, abs=5)
    [shadowed] = [entry for entry in files.found.skipped if entry.action == "shadowed"]
    assert shadowed.path.name == "x_clat_hist.1.log"
    assert shadowed.reason.startswith("fio 3.6 to 3.16 damaged its bins from 786 us up, and the others hold nothing")


def test_a6_a_log_with_a_sound_sample_is_still_read(fio: Path, tmp_path: Path) -> None:
    damaged(fio, tmp_path, keep=3)
    means(tmp_path)
    files = Files([tmp_path], ReadOptions(run="r", fio_version=(3, 7)), jobs=1)
    assert files.answer(Question(step="all")).kind == "completion"
    assert [entry.path.name for entry in files.found.skipped if entry.action == "shadowed"] == ["x_clat.1.log"]


def test_a6_a_log_that_counts_nothing_does_not_hide_means(tmp_path: Path) -> None:
    means(tmp_path)
    zeros = ", ".join(["0"] * 1856)
    (tmp_path / "x_clat_hist.1.log").write_text("".join(f"{at}, 0, 4096, {zeros}\n" for at in (1000, 2000, 3000)))
    answer = Files([tmp_path], ReadOptions(fio_version=(3, 33)), jobs=1).answer(Question(step="all"))
    assert answer.kind == "completion.mean"


def test_a6_without_samples_the_answer_says_why(fio: Path, tmp_path: Path) -> None:
    damaged(fio, tmp_path)
    with pytest.raises(NothingMatchesError, match=r"there are no samples in r: .*are damaged \(fio 3.6 to 3.16\)") as caught:
        Files([tmp_path], ReadOptions(run="r", fio_version=(3, 7)), jobs=1).answer(Question(step="all"))
    assert "nothing matches" not in str(caught.value)


def test_a6_an_empty_hdr_histogram_is_no_question_that_matches_nothing(tmp_path: Path) -> None:
    payload = base64.b64encode(hdr.compressed(hdr.v2({}))).decode()
    (tmp_path / "a.hlog").write_text(f"#[StartTime: 1700000000.000 (seconds since epoch)]\n0.000,1.000,0.000,{payload}\n")
    with pytest.raises(InputError, match="there are no samples in r: nothing that was read holds one"):
        Files([tmp_path], ReadOptions(run="r", recorded_unit_ns=1), jobs=1).answer(Question(step="all"))
