"""A card of a run: its size, its sentences, the values of its hosts; the same from files and a store."""

from __future__ import annotations

import re
import struct
from pathlib import Path
from typing import Any

import pytest

from ingest.core.errors import UsageError
from ingest.query.files import Files
from ingest.query.question import ALL, Question
from ingest.query.story.story import story
from ingest.view import card, pictures
from tests.commands import tailboard
from tests.doubles.origin import SECOND, Made, series

ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "cbt-archive"


def spec_of(origin: Any) -> dict[str, Any]:
    pytest.importorskip("vl_convert")
    windows, hosts, whole = (
        origin.answer(Question(by=by, step=step)) for by, step in (((), SECOND), (("host",), SECOND), (("host",), ALL))
    )
    return card.card_picture(story(origin, Question()), whole, windows, hosts, "elapsed")


def table_of(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    (values,) = [entry["values"] for entry in spec["data"] if entry["name"] == name]
    return values


@pytest.fixture(scope="module")
def example() -> Files:
    return Files([EXAMPLE])


@pytest.mark.slow
def test_a_card_has_the_sentences_of_the_story_and_the_hosts(example: Files) -> None:
    spec = spec_of(example)
    told = story(example, Question())
    lines = " ".join(spec["title"]["subtitle"])
    assert all(" ".join(finding.text.split())[:80] in lines for finding in told.findings[:3])
    assert [row["name"] for row in table_of(spec, "hosts")] == ["ceph-a", "ceph-b", "ceph-c"]
    assert [row["values"] for row in table_of(spec, "hosts")] == [
        "p99 1.29ms, max 16.3ms",
        "p99 1.35ms, max 4.03s",
        "p99 80.2ms, max 105ms",
    ]
    strips = table_of(spec, "strips")
    assert {row["row"] for row in strips} == {0, 1, 2}
    assert max(strips, key=lambda row: row["v"])["row"] == 1  # the stall of ceph-b is the strongest mark
    assert len(strips) == len({(row["t"], row["row"]) for row in strips})  # a window is drawn once
    svg = pictures.drawn(spec, "svg").decode()
    assert len(re.findall(r"<path ", re.search(r'mark-rect role-mark strip"[^>]*>(.*?)</g>', svg, re.DOTALL)[1])) == len(strips)


@pytest.mark.slow
def test_a_card_is_1200_by_630(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    done = tailboard("card", EXAMPLE, "-o", tmp_path / "card.png")
    assert (done.returncode, done.stdout) == (0, ""), done.stderr
    picture = (tmp_path / "card.png").read_bytes()
    assert struct.unpack(">II", picture[16:24]) == (1200, 630)
    done = tailboard("card", EXAMPLE, "-o", "-", text=False)
    assert done.stdout == picture


@pytest.mark.slow
def test_a_card_of_a_store_is_that_of_its_files(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    url = f"sqlite:{tmp_path / 'a.db'}"
    assert tailboard("load", EXAMPLE, "--run", "cbt-archive", "--store", url).returncode == 0
    for source, name in ((EXAMPLE, "files.svg"), (url, "store.svg")):
        assert tailboard("card", source, "-o", tmp_path / name).returncode == 0
    files, store = (re.sub(r"clip\d+", "clip", (tmp_path / name).read_text()) for name in ("files.svg", "store.svg"))
    assert files == store


def test_a_card_shows_six_hosts_at_most_and_labels_as_text() -> None:
    rows = [
        (series(host=f"</text><script>{number:02}" + "x" * 50), at, {900 + 8 * number: 200})
        for number in range(9)
        for at in range(8)
    ]
    spec = spec_of(Made(rows))
    hosts = table_of(spec, "hosts")
    assert len(hosts) == card.MOST_HOSTS and all(len(row["name"]) <= card.LONGEST_HOST for row in hosts)
    assert "<script" not in pictures.drawn(spec, "svg").decode()
    assert spec["title"]["subtitle"][0]


def test_a_card_of_several_runs_says_what_to_choose() -> None:
    rows = [(series(run=run, host="a"), at, {900: 200}) for run in "rs" for at in range(8)]
    made = Made(rows)
    answer = made.answer(Question(by=("host",), step=SECOND))
    with pytest.raises(UsageError, match="a card shows one run, here are 2: choose with --run, or add --merge-runs"):
        card.card_picture(story(made, Question(runs=("r",))), answer, answer, answer)
    merged = Question(by=("host",), step=SECOND, merge_runs=True)
    together = made.answer(merged)
    windows = made.answer(Question(step=SECOND, merge_runs=True))
    assert card.card_picture(story(made, merged), together, windows, together)["title"]["text"] == "r, s"


def test_r11_a_card_does_not_tell_of_a_line_that_is_not_drawn() -> None:
    few = Made([(series(host="h1"), second, {1000: 3}) for second in range(5)])
    spec = spec_of(few)
    assert not [point for point in table_of(spec, "points") if point["v"]]
    assert "the line is p99" not in " ".join(spec["title"]["subtitle"])
