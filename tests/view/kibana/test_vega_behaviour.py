"""How the Vega panels behave: refreshes, clicks, several runs and kinds, hosts that stop, marks of the run."""

from __future__ import annotations

import subprocess
import sys
import uuid
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view import vega
from tests.view.kibana.conftest import EXAMPLE, ROOT, Served, loaded
from tests.view.kibana.lens_rows import asked_rows
from tests.view.kibana.test_vega_panels import columns, picked, ranked
from tools.kibana.asked import Shown, chosen
from tools.kibana.compile import compiled

SECOND = 1_000_000_000
HOUR = 3_600_000
LOGS = next((EXAMPLE / "results").rglob("benchmark_config.yaml")).parent


def of_host(host: str) -> tuple[str, ...]:
    return tuple(str(path) for path in sorted(LOGS.glob(f"*{host}*")) if "clat_hist" in path.name or "json" in path.name)


@pytest.fixture(scope="module")
def two_runs(server, tmp_path_factory) -> Served:
    """Two runs, the second two minutes later, so that Kibana's windows fit both."""
    later = ("--host-offset", "ceph-b=120000")
    loads = {"good": of_host("ceph-a"), "bad": (*of_host("ceph-b"), *later)}
    return loaded(server, tmp_path_factory.mktemp("two"), f"two-{uuid.uuid4().hex[:8]}", loads)


@pytest.fixture(scope="module")
def stalled(server, tmp_path_factory) -> Served:
    """The simulated stall: service, response and wait of one run."""
    folder = tmp_path_factory.mktemp("stall")
    subprocess.run([sys.executable, str(ROOT / "examples" / "coordinated-omission" / "simulate.py"), str(folder)], check=True)
    loads = {"stall": (str(folder / "fixed.csv"), "--rate", "1000")}
    return loaded(server, folder, f"stall-{uuid.uuid4().hex[:8]}", loads)


@pytest.fixture(scope="module")
def bare(server, tmp_path_factory) -> Served:
    """An untagged HdrHistogram log of a program that is not known: samples without kind, host and operation."""
    words = (str(ROOT / "tests" / "data" / "hdr" / "2.2.2-3-digits.hlog"), "--recorded-unit", "ns")
    return loaded(server, tmp_path_factory.mktemp("bare"), f"bare-{uuid.uuid4().hex[:8]}", {"bare": words})


def answer(served, **words):
    with open_store(served.sqlite) as store:
        return store.answer(Question(**{"step": 10 * SECOND, **words}))


@pytest.mark.slow
def test_a_click_on_a_cell_sets_the_time_range_to_its_window(page, served) -> None:
    page.draw(served.answered(served.spec("heatmap")))
    cell = page.marks("heat")[200]
    place = page.page.locator("#place canvas").bounding_box()
    page.page.mouse.click(place["x"] + (cell["x1"] + cell["x2"]) / 2, place["y"] + (cell["y1"] + cell["y2"]) / 2)
    row = page.table("inside")[200]
    assert page.called() == [["kibanaSetTimeFilter", row["t"], row["t2"] - 1]]


@pytest.mark.slow
@pytest.mark.parametrize("picture", ["percentiles", "heatmap", "surface", "hosts"])
def test_k4_a_brush_sets_the_time_range_once_to_whole_windows(page, served, picture) -> None:
    page.draw(served.answered(served.spec(picture)))
    place, main = page.page.locator("#place canvas").bounding_box(), page.signal("main")
    box = page.marks("heat" if picture != "percentiles" else "targets")[0]
    left, middle = place["x"] + box["x1"], place["y"] + 150
    page.page.mouse.move(left + main * 0.3, middle)
    page.page.mouse.down()
    page.page.mouse.move(left + main * 0.45, middle, steps=4)
    page.page.mouse.up()
    [(name, begin, end)] = page.called()
    first = page.signal("begin") // 10_000 * 10_000
    assert page.signal("end") - first == 80_000  # dragged from 24 s to 36 s
    assert [name, begin - first, end - first] == ["kibanaSetTimeFilter", 20_000, 39_999]
    assert page.signal("drag") is None


@pytest.mark.slow
def test_one_run_is_shown_the_one_that_began_last(page, two_runs) -> None:
    page.draw(two_runs.answered(two_runs.spec("heatmap")))
    names = ("t", "lower", "c")
    assert page.signal("heading").startswith("run bad/") or page.signal("heading").startswith("run bad ")
    assert "(began last of 2: choose above)" in page.signal("heading")
    assert picked(page.table("cells"), *names) == columns(vega.cells(answer(two_runs, runs=("bad",))), *names)
    run = answer(two_runs, runs=("good",)).runs[0]
    page.draw(two_runs.answered(two_runs.spec("heatmap"), replace(two_runs.shown, filters=[chosen("run.id", [run])])))
    assert picked(page.table("cells"), *names) == columns(vega.cells(answer(two_runs, runs=("good",))), *names)


@pytest.mark.slow
def test_kinds_are_never_merged_and_the_default_is_that_of_the_queries(page, stalled) -> None:
    page.draw(stalled.answered(stalled.spec("percentiles")))
    assert answer(stalled).kind == "response"
    assert ", response, windows of 10 s" in page.signal("heading")
    counts = {row["t"]: row["n"] for row in page.table("windows")}
    found = answer(stalled)
    assert counts == dict(
        zip(
            (found.parts[0].start_ns // 1_000_000).tolist(),
            np.add.reduceat(found.parts[0].counts, found.parts[0].indptr[:-1]).tolist(),
        )
    )


@pytest.mark.slow
def test_service_response_and_wait_beside_one_another(page, stalled) -> None:
    page.draw(stalled.answered(stalled.spec("kinds")))
    rows = page.table("points")
    assert {row["label"] for row in rows} == {"service", "response", "wait"}
    for kind in ("service", "response", "wait"):
        found = answer(stalled, where={"kind": kind})
        own = {row["t"]: row for row in rows if row["label"] == kind}
        assert own.keys() == set((found.parts[0].start_ns // 1_000_000).tolist())
        bound = float(found.parts[0].layout.error) + 0.008  # these bins are finer than hdr with 2 digits
        for t, row in own.items():
            for name, percent in (("low", 50), ("v", 99)):
                value = ranked(found, percent)[t, ()]
                if row[name] is None:
                    assert row["n"] < 100, "99 % of 100 samples and more can be told"
                    continue
                assert abs(row[name] - value) <= bound * value + 1, (kind, t, name)
        highest = vega.points(found, parse_percentiles("100"))
        assert [own[t]["high"] for t in highest["t"]] == highest["v"]
    page.draw(stalled.answered(stalled.spec("gap")))
    gaps = {row["t"]: row for row in page.table("points")}
    assert all(row["v"] == row["response"] - row["service"] for row in gaps.values())
    assert max(row["v"] for row in gaps.values()) > 9 * SECOND
    assert min(row["v"] for row in gaps.values()) < SECOND // 1000
    page.draw(stalled.answered(stalled.spec("kind-curves")))
    for kind in ("service", "response", "wait"):
        own = [row for row in page.table("points") if row["label"] == kind]
        assert max(row["cum"] for row in own) == answer(stalled, where={"kind": kind}, step="all").samples


@pytest.mark.slow
def test_a_host_that_stops_reporting_shows(page, server, tmp_path_factory) -> None:
    found = loaded(server, tmp_path_factory.mktemp("stops"), f"stops-{uuid.uuid4().hex[:8]}", {"nightly": (str(EXAMPLE),)})
    end = found.client.search(index=f"{found.prefix}-rollups-*", size=0, aggs={"last": {"max": {"field": "@timestamp"}}})
    half = int(end["aggregations"]["last"]["value"]) // 10_000 * 10_000 - 30_000
    for index in ("intervals", "rollups"):
        query = {"bool": {"filter": [{"term": {"host.name": "ceph-b"}}, {"range": {"@timestamp": {"gte": half}}}]}}
        hits = found.client.search(index=f"{found.prefix}-{index}-*", query=query, size=10_000)["hits"]["hits"]
        lines = [{"delete": {"_index": hit["_index"], "_id": hit["_id"]}} for hit in hits]
        found.client.bulk(operations=lines, refresh=True)
    for picture, words, rows in (("hosts", {"scope": "host", "level": "overview"}, 1), ("threads", {"index": "intervals"}, 4)):
        page.draw(found.answered(found.spec(picture, **words)))
        gaps = page.table("gaps")
        assert len(gaps) == rows
        assert all(gap["row"].startswith("ceph-b") and gap["t"] == half for gap in gaps)
        assert {gap["t2"] for gap in gaps} == {max(row["t2"] for row in page.table("points"))}
        assert len(page.marks("no_completions")) == rows


@pytest.mark.slow
def test_marks_of_the_run_show_whatever_is_chosen(page, two_runs) -> None:
    runs = {name: answer(two_runs, runs=(name,)).runs[0] for name in ("good", "bad")}
    at = two_runs.shown.end_ms - 90_000
    for name, text in (("bad", "osd.3 down"), ("good", "elsewhere")):
        assert command(["mark", "--run", runs[name], "--at", str(at), text, "--store", two_runs.url]) == 0
    lasting = ["--at", str(at + 5000), "--end", str(at + 35_000), "recovery"]
    assert command(["mark", "--run", runs["bad"], *lasting, "--store", two_runs.url]) == 0
    two_runs.client.indices.refresh(index=f"{two_runs.prefix}-marks")
    shown = replace(two_runs.shown, filters=[chosen("operation", ["read"]), chosen("run.id", [runs["bad"]])])
    page.draw(two_runs.answered(two_runs.spec("percentiles"), shown))
    told = [{"t": at, "t2": None, "text": "osd.3 down"}, {"t": at + 5000, "t2": at + 35_000, "text": "recovery"}]
    assert sorted(page.table("marks"), key=lambda row: row["t"]) == told
    assert {mark["text"] for mark in page.marks("annotation_texts")} == {"osd.3 down", "recovery"}
    (band,) = page.marks("lasted")
    lasts = min(at + 35_000, page.signal("end")) - (at + 5000)
    assert band["x2"] - band["x1"] == pytest.approx(lasts / page.signal("span") * page.signal("main"), abs=1.5)


@pytest.mark.slow
def test_nothing_here_is_said(page, served) -> None:
    for picture, words in (
        ("percentiles", {}),
        ("heatmap", {}),
        ("hosts", {}),
        ("threads", {"index": "intervals"}),
        ("distribution", {}),
        ("runs", {}),
    ):
        page.draw(served.answered(served.spec(picture, **words), Shown(0, HOUR)))
        assert page.signal("heading") == "no completions here: try another time range, run or filter"


@pytest.mark.slow
@pytest.mark.parametrize("picture", ["percentiles", "heatmap", "hosts", "distribution"])
def test_k2_a_run_without_kind_host_or_operation_is_shown(page, bare, picture) -> None:
    page.draw(bare.answered(bare.spec(picture)))
    assert page.signal("heading").startswith("run bare, -")
    with open_store(bare.sqlite) as store:
        samples = store.answer(Question(step="all")).samples
    told = {"heatmap": "cells", "distribution": "points"}.get(picture, "windows")
    rows = page.table(told)
    found = (
        max(row["cum"] for row in rows)
        if picture == "distribution"
        else sum(row["c" if picture == "heatmap" else "n"] for row in rows)
    )
    assert found == samples > 0


@pytest.mark.slow
def test_k4_an_answer_that_ran_out_of_time_is_called_incomplete(page, served) -> None:
    spec = served.answered(served.spec("heatmap"))
    page.draw(
        {
            **spec,
            "data": [
                {**one, "values": {**one["values"], "timed_out": True}} if one["name"] == "answer" else one
                for one in spec["data"]
            ],
        }
    )
    assert page.signal("heading").startswith("INCOMPLETE: the server ran out of time; run nightly/")


BEGIN_S = 1_795_183_200  # 2026-11-20T14:00:00Z
DESCRIBED = "start: start_us\nlatency: took_us\nunit: us\nlabels: {op: op, job: job}\nfailed: {state: '!ok'}\n"


def forty_a_second(folder: Path, *, failing: bool = False) -> list[str]:
    """Write logs of three hosts with 40 operations a second for two minutes; of `failing` ones some do not succeed."""
    chance = np.random.default_rng(48)
    words = []
    for host in ("h1", "h2", "h3"):
        took = np.exp(chance.normal(6, 1, 4800)).astype(int)
        states = np.where(failing & (chance.random(4800) < (0.05 if host == "h3" else 0.002)), "timeout", "ok")
        rows = [
            f"{(BEGIN_S * 1_000_000) + number * 25_000},{us},read,{state},j{number % 2}"
            for number, (us, state) in enumerate(zip(took, states))
        ]
        (folder / f"{host}.csv").write_text("\n".join(["start_us,took_us,op,state,job", *rows]) + "\n")
        words.append(str(folder / f"{host}.csv"))
    (folder / "described.yml").write_text(DESCRIBED)
    return words


def loaded_by_host(server, folder: Path, prefix: str, *, failing: bool) -> Served:
    """Return both stores with such logs, each as a host of its own."""
    found = None
    logs = forty_a_second(folder, failing=failing)
    for log in logs:
        words = (log, "--input-format", str(folder / "described.yml"), "--host", Path(log).stem)
        found = loaded(server, folder, prefix, {"forty": words})
    assert found is not None
    return found


@pytest.fixture(scope="module")
def failing(server, tmp_path_factory) -> Served:
    return loaded_by_host(server, tmp_path_factory.mktemp("failing"), f"failing-{uuid.uuid4().hex[:8]}", failing=True)


@pytest.mark.slow
def test_k4_a_tail_map_of_few_samples_has_their_maxima_at_their_time(page, failing) -> None:
    """40 a second of each host: no second has a p99."""
    page.draw(failing.answered(failing.spec("hosts", scope="host", level="finest")))
    rows = page.table("thin") + page.table("points")
    assert {row["row"] for row in rows} == {"h1", "h2", "h3"}
    begin, end = page.signal("begin"), page.signal("end")
    assert BEGIN_S * 1000 <= begin < end <= (BEGIN_S + 130) * 1000
    assert begin == min(row["t"] for row in rows) and end == max(row["t2"] for row in rows)


@pytest.mark.slow
def test_k2_threads_that_a_map_has_no_room_for_are_said(page, failing, served) -> None:
    """Each log of a host has operations of two jobs."""
    some = "of a log of many threads those with the highest maximum alone; the maximum of each thread"
    page.draw(failing.answered(failing.spec("threads", index="intervals")))
    assert len(page.table("rows")) == 3 and page.signal("heading").endswith(some)
    page.draw(served.answered(served.spec("threads", index="intervals")))
    assert len(page.table("rows")) == 12 and some not in page.signal("heading")


@pytest.mark.slow
def test_failed_operations_are_counted_and_said(page, failing) -> None:
    """Pictures are of those that did not fail, and say so; the panel of failures has them by host, as the queries have."""
    with open_store(failing.sqlite) as store:
        failed = store.answer(Question(step="all", where={"outcome": "failed"})).samples
        by_host = percentiles(
            store.answer(Question(step=10 * SECOND, by=("host",), where={"outcome": "failed"})), Wanted(())
        ).columns
    for picture in ("heatmap", "distribution"):
        page.draw(failing.answered(failing.spec(picture)))
        assert page.signal("heading").startswith(
            f"{failed} operations FAILED: slower than any, and in no percentile here; run forty"
        )
    page.draw(failing.answered(failing.spec("all-runs", scope="cluster", level="run")))
    [line] = page.table("told")
    assert line["failed"] == failed and line["says"].endswith(f", and {failed} that failed")
    [saved] = [one for one in compiled(failing.prefix) if one.id.endswith("cluster-latency-failed")]
    rows = [row for row in asked_rows(failing, saved, failing.shown) if row["failed operations a second"] is not None]
    told = {(row["@timestamp"], row["host.name"]): round(10 * row["failed operations a second"]) for row in rows}
    expected = zip(by_host["start_ns"], by_host["host"], by_host["count"])
    assert told == {(int(start) // 1_000_000, host): int(count) for start, host, count in expected}
    assert sum(told.values()) == failed > 0


def operations(path: Path, seconds: list[int]) -> str:
    """Write a log with an operation in each of these seconds of an hour."""
    lines = [f"{(BEGIN_S + second) * 1_000_000},{(BEGIN_S + second) * 1_000_000 + 300},read" for second in seconds]
    path.write_text("\n".join(["start_us,end_us,op", *lines]) + "\n")
    return str(path)


@pytest.fixture(scope="module")
def silent(server, tmp_path_factory) -> Served:
    """Two runs; the one that began first pauses, and goes on after the other began."""
    folder = tmp_path_factory.mktemp("silent")
    old, young = [*range(10), *range(300, 420)], list(range(60, 400))
    loads = {"old": (operations(folder / "old.csv", old),), "young": (operations(folder / "young.csv", young),)}
    return loaded(server, folder, f"silent-{uuid.uuid4().hex[:8]}", loads)


@pytest.mark.slow
@pytest.mark.parametrize("minutes", [0, 3])
@pytest.mark.parametrize("picture", ["percentiles", "heatmap", "hosts", "distribution"])
def test_k3_the_run_is_that_which_began_last_whatever_part_of_it_the_time_range_has(page, silent, picture, minutes) -> None:
    """Within the range the older run has its first window after that of the younger one."""
    shown = replace(silent.shown, begin_ms=silent.shown.begin_ms + minutes * 60_000)
    page.draw(silent.answered(silent.spec(picture), shown))
    assert page.signal("heading").startswith("run young (began last of 2: choose above)")
