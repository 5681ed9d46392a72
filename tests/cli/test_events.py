"""Snabb timelines through the commands, as their user would run them."""

from __future__ import annotations

import csv
import io
import json
import lzma
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from oracles import snabb as oracle
from tests import commands

ROOT = Path(__file__).parents[2]
SAMPLE = ROOT / "tests" / "data" / "snabb" / "cut" / "real.timeline.xz"
HZ = 2_596_133_918
SECOND = 10**9
BEGAN = 1_700_000_000 * SECOND


def tailboard(*words: object, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = commands.tailboard(*words, cwd=ROOT)
    assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
    return done


def rows(*words: object) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(tailboard(*words, "--format", "csv").stdout)))


def lines(*words: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in tailboard("events", *words, "--format", "ndjson").stdout.splitlines()]


@pytest.fixture(scope="module")
def decoded() -> list[dict[str, Any]]:
    return oracle.decode(lzma.open(SAMPLE).read())


@pytest.fixture
def dated(tmp_path: Path) -> Path:
    """Return a timeline of Vita: its clock is the time of day, an app on a PCI address, two cores, one event without a text."""
    ring = oracle.Writer(100, strings_bytes=560)
    for number in range(6):
        now = 10**12 + 2 * SECOND * number
        ring.event("1,5|engine.breath_start: breath", now, 0, number)
        ring.event("2,3|engine.got_monotonic_time: unixnanos", now + 100, 0, BEGAN + SECOND * number)
        ring.event("3,3|app.pull app=0000:01:00.0:", now + 300, 0)
        ring.event("3,3|app.pulled app=0000:01:00.0: packets drops", now + 2300, 0x1003 if number == 4 else 0, 7.5, float("nan"))
        ring.event("1,5|engine.breath_end: breath npackets bpp", now + 4000, 0, number, 7, 64)
    ring.event("9,9|no.room for=this:".ljust(400), now + 5000)
    path = tmp_path / "77" / "events.timeline"
    path.parent.mkdir()
    path.write_bytes(ring.data())
    return path


@pytest.mark.slow
def test_every_event_as_ndjson(decoded: list[dict[str, Any]]) -> None:
    found = lines(SAMPLE)
    assert len(found) == len(decoded) == 6829
    stamps = oracle.stamps(decoded, HZ)
    for line, event, stamp in zip(found, decoded, stamps, strict=True):
        anchor = None if event["anchor"] is None else decoded[event["anchor"]]
        assert line["elapsed"] == (stamp - stamps[0]) / 1e9
        assert (line["tsc"], line["core"], line["node"]) == (event["tsc"], event["core"], 0)
        assert (line["level"], line["rate"], line["event"]) == (event["level"], event["rate"], event["name"])
        assert line["app"] == event["attributes"].get("app")
        assert line["lag_cycles"] == event["lag"]
        assert line["lag_ns"] == (None if anchor is None else event["lag"] * SECOND // HZ)
        assert line["after"] == (
            None
            if anchor is None
            else " ".join([anchor["name"], *(f"{key}={value}" for key, value in anchor["attributes"].items())])
        )
        assert (line["fault"] is None) == oracle.counted(decoded, event)
        assert line["args"] == dict(zip(event["names"], event["arguments"], strict=False))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("--level", "3"), lambda event: event["level"] == 3),
        (("--level", "0-1"), lambda event: event["level"] <= 1),
        (("--name", "engine.breath_*"), lambda event: event["name"].startswith("engine.breath_")),
        (("--name", "push"), lambda event: event["name"] == "app.push"),
        (
            ("--name", "APP.PUSH*app=tee"),
            lambda event: event["name"].startswith("app.push") and event["attributes"]["app"] == "tee",
        ),
        (("--name", "push", "--name", "packet.*", "--level", "9"), lambda event: event["level"] == 9),
    ],
)
def test_filters_by_level_and_name(decoded: list[dict[str, Any]], words: tuple[str, ...], wanted: Any) -> None:
    chosen = [event["tsc"] for event in decoded if wanted(event)]
    assert chosen and [line["tsc"] for line in lines(SAMPLE, *words)] == chosen


def test_filters_by_time_and_limit(decoded: list[dict[str, Any]]) -> None:
    stamps = oracle.stamps(decoded, HZ)
    inside = [event["tsc"] for event, stamp in zip(decoded, stamps, strict=True) if SECOND <= stamp - stamps[0] <= 1.2 * SECOND]
    assert [line["tsc"] for line in lines(SAMPLE, "--from", "+1s", "--to", "+1200ms")] == inside
    assert [line["tsc"] for line in lines(SAMPLE, "--from", "+1s", "--limit", 7)] == [
        event["tsc"] for event, stamp in zip(decoded, stamps, strict=True) if stamp - stamps[0] >= SECOND
    ][:7]
    none = tailboard("events", SAMPLE, "--from", "+1h", "--format", "ndjson")
    assert none.stdout == "" and "none of 6,829 events is selected" in none.stderr


def test_a_timeline_with_a_clock_of_the_day(dated: Path) -> None:
    found = lines(dated)
    assert len(found) == 31
    assert found[0]["time"][:24] == "2023-11-14T22:13:19.9999" and "elapsed" not in found[0]
    assert found[3]["args"] == {"packets": 7.5, "drops": None} and found[3]["app"] == "0000:01:00.0"
    assert (found[23]["node"], found[23]["core"], found[23]["fault"]) == (1, 3, "it would count from another core")
    assert (found[-1]["event"], found[-1]["level"], found[-1]["after"], found[-1]["args"]) == (None, None, None, {})
    later = lines(dated, "--from", "2023-11-14T22:13:22Z", "--time", "elapsed", "--name", "*breath_start")
    assert [line["args"]["breath"] for line in later] == [3, 4, 5] and 2.9 < later[0]["elapsed"] < 3.1
    local = lines(dated, "--limit", 1, "--time", "local")
    assert local[0]["time"].startswith("2023-11-1") and ("+" in local[0]["time"] or "-" in local[0]["time"][10:])


@pytest.mark.slow
def test_a_table_for_people(dated: Path) -> None:
    text = tailboard("events", dated).stdout
    assert len(text.splitlines()) == 31 + 2
    assert text.splitlines()[0].split() == ["time", "core", "L,R", "event", "app", "lag", "after", "args"]
    pulled = text.splitlines()[5].split()
    assert pulled[1:] == [
        "0",
        "3,3",
        "app.pulled",
        "0000:01:00.0",
        "1.00µs",
        "app.pull",
        "app=0000:01:00.0",
        "packets=7.5",
        "drops=None",
    ]
    assert "(1.00µs)" in text and "1:3" in text and "unknown" in text
    assert len(tailboard("events", SAMPLE, "--limit", 1200).stdout.splitlines()) == 1202, "one heading for several tables"


@pytest.mark.slow
def test_a_reader_that_goes_away_is_no_error() -> None:
    for words in (
        f"events {SAMPLE}",
        f"events {SAMPLE} --format ndjson",
        f"heatmap {SAMPLE} --by op,tag --step 100ms --format csv",
    ):
        command = f"{sys.executable} -m ingest {words} | head -n 3"
        done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, cwd=ROOT)
        assert (
            done.returncode == 0
            and "Traceback" not in done.stderr
            and "error" not in done.stderr
            and len(done.stdout.splitlines()) == 3
        )


@pytest.mark.parametrize(
    ("words", "status", "sentence"),
    [
        (("--level", "10"), 2, "--level takes a level from 0 to 9"),
        (("--level", "3-1"), 2, "not '3-1'"),
        (("--level", "x"), 2, "--level takes"),
        (("--from", "yesterday"), 2, "is not a time"),
        (("--time", "utc"), 2, "the clock of this timeline is not the time of day"),
        (("--tsc-hz", "fast"), 2, "--tsc-hz takes a frequency from 1 MHz to 9 GHz"),
        (("--tsc-hz", "1e12"), 2, "--tsc-hz takes"),
        (("--limit", "0"), 2, "Invalid value for '--limit'"),
    ],
)
def test_words_that_do_not_fit(words: tuple[str, ...], status: int, sentence: str) -> None:
    assert sentence in tailboard("events", SAMPLE, *words, status=status).stderr


def test_files_that_are_no_timelines(tmp_path: Path) -> None:
    other = tmp_path / "x.log"
    other.write_text("hello\n" * 20)
    assert "is not a Snabb timeline: it begins with 68656c6c6f0a6865" in tailboard("events", other, status=3).stderr
    assert "no such file" in tailboard("events", tmp_path / "nothing", status=3).stderr
    assert "is a folder: name one timeline" in tailboard("events", tmp_path, status=2).stderr
    other.with_suffix(".timeline").write_bytes(b"")
    assert "empty file" in tailboard("percentiles", other.with_suffix(".timeline"), status=3).stderr


@pytest.mark.parametrize("text", ["2.6e9", "2600MHz", "2.6GHz", "2600000000", "2.6 ghz"])
def test_frequencies_as_people_write_them(dated: Path, text: str) -> None:
    found = lines(dated, "--tsc-hz", text, "--name", "*breath_end")
    assert found[0]["lag_ns"] == 4000 * SECOND // 2_600_000_000


# Every view -------------------------------------------------------------------------------------------------


def test_inspect_tells_what_a_timeline_is(dated: Path) -> None:
    done = tailboard("inspect", SAMPLE, dated.parent, "--format", "ndjson")
    row, other = sorted((json.loads(line) for line in done.stdout.splitlines()), key=lambda row: row["samples"], reverse=True)
    assert (row["format"], row["kind"], row["process"], row["rows"], row["samples"], row["zero"]) == (
        "snabb",
        "lag",
        "real",
        6829,
        5275,
        None,
    )
    assert "engine.breath_end" in row["ops"] and row["notes"][0].startswith("1,554 of 6,829 events have no lag that counts")
    assert (other["process"], other["rows"], other["zero_origin"]) == ("77", 31, "clock readings in the timeline")
    assert "18 ops" in tailboard("inspect", SAMPLE).stdout


def test_counts_are_of_stored_events_and_rates_of_all() -> None:
    [row] = rows("percentiles", SAMPLE, "--step", "all", "--where", "op=engine.breath_end")
    seconds = float(row["end"]) - float(row["start"])
    assert row["count"] == "1553" and float(row["rate"]) == pytest.approx(1553 * 625 / seconds, rel=1e-6)
    by_tag = rows("percentiles", SAMPLE, "--step", "all", "--by", "op,job,tag")
    assert len(by_tag) == 31 and sum(int(row["count"]) for row in by_tag) == 5275
    [together] = rows("percentiles", SAMPLE, "--step", "all")
    assert together["count"] == "5275" and float(together["rate"]) == pytest.approx(sum(float(row["rate"]) for row in by_tag))
    assert together["p50"] == "20" and together["p99.9"] != "", "packets, of which each stands for 390,625"
    noted = tailboard("percentiles", SAMPLE, "--step", "all", "--format", "csv").stderr
    assert "an event of rate r counts 5^(9-r) times" in noted


@pytest.mark.slow
def test_files_and_a_store_answer_with_the_same_numbers(tmp_path: Path, dated: Path) -> None:
    for path, name in ((SAMPLE, "relative"), (dated, "dated")):
        store = f"sqlite:{tmp_path / name}.db"
        account = json.loads(tailboard("load", path, "--run", name, "--store", store, "--json").stdout)
        assert account["rows"] == account["accepted"] and account["rejected"] == {} and account["documents"] > 20
        for question in (("--by", "op,job,tag", "--step", "all"), ("--by", "process", "--where", "op=engine.*", "--step", "1s")):
            asked = rows("percentiles", path, *question, "-p", "50,99,100")
            assert rows("percentiles", store, *question, "-p", "50,99,100") == asked and asked
        assert rows("heatmap", store, "--step", "1s") == rows("heatmap", path, "--step", "1s")
        assert rows("distribution", store, "--by", "op") == rows("distribution", path, "--by", "op")
        again = json.loads(tailboard("load", path, "--run", name, "--store", store, "--json").stdout)
        assert again["documents"] == 0 and again["duplicate"] == {"already loaded": 1}
        assert (
            "another reading options"
            in tailboard("load", path, "--run", name, "--store", store, "--digits", "3", status=4).stderr
        )


@pytest.mark.slow
def test_a_clock_that_is_not_the_time_of_day_is_refused_by_elasticsearch_alone(tmp_path: Path) -> None:
    """Nothing is sent: the refusal comes before the first connection could fail."""
    store = f"sqlite:{tmp_path / 's.db'}"
    tailboard("load", SAMPLE, "--run", "r", "--store", store)
    [first, *_] = rows("percentiles", store, "--step", "1s")
    assert (first["start"], first["end"]) == ("0", "1"), "elapsed seconds"
    tailboard("load", SAMPLE, "--run", "told", "--store", store, "--t0", "2026-01-01T00:00:00Z")
    [first, *_] = rows("percentiles", store, "--run", "told", "--step", "1s")
    assert first["start"] == "2026-01-01T00:00:00.000Z"


@pytest.mark.slow
def test_views_draw_a_timeline(tmp_path: Path) -> None:
    pytest.importorskip("vl_convert")
    page = tmp_path / "r.html"
    tailboard("report", SAMPLE, "-o", page)
    assert "engine.breath_end" in page.read_text()
    for view in ("percentiles", "heatmap", "distribution"):
        picture = tailboard(view, SAMPLE, "--where", "op=engine.breath_end", "--format", "svg").stdout
        assert picture.startswith("<svg")
        assert tailboard(view, SAMPLE, "--format", "svg").stdout.startswith("<svg"), "rates mixed"
    hgrm = tailboard("distribution", SAMPLE, "--where", "op=engine.breath_end", "--format", "hgrm").stdout
    assert "Total count    =         1553" in hgrm
    assert tailboard("heatmap", SAMPLE, "--where", "op=app.*").stdout
