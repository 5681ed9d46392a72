"""The report of runs that hold means alone: its numbers, its sentences, and that a browser draws it."""

from __future__ import annotations

import base64
import json
import re
import shutil
import zlib
from pathlib import Path

import pytest

from ingest.cli import run as command
from ingest.core.quantiles import parse_percentiles
from ingest.query.files import Files
from ingest.query.overview import overviews
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Question
from tests.read.test_averaged import maxima
from tests.view.page import settle

FIO = Path(__file__).parents[1] / "data" / "fio"
WHERE = {"kind": "total.mean"}


def page_of(tmp_path: Path, *words: str) -> str:
    pytest.importorskip("vl_convert")
    target = tmp_path / "r.html"
    assert command(["report", *words, "-o", str(target)]) == 0
    return target.read_text()


def content_of(page: str) -> dict:
    [data] = re.findall(r'<script type="text/plain" id="data">([^<]+)</script>', page) or re.findall(
        r'id="data"[^>]*>([^<]+)<', page
    )
    return json.loads(zlib.decompress(base64.b64decode(data)))


def test_a18_report_of_means_holds_what_percentiles_prints(tmp_path: Path) -> None:
    page = page_of(tmp_path, str(FIO / "means-100"))
    charts = {chart["name"]: chart["views"] for chart in content_of(page)["charts"]}
    answer = Files([FIO / "means-100"]).answer(Question(by=("op",), where=WHERE, windows=720))
    table = percentiles(answer, Wanted(parse_percentiles("50"))).columns
    means = charts["means"]["total.mean by op"]["tables"]["points"]
    assert means["v"] == table["mean"].tolist()
    assert means["n"] == table["count"].tolist()
    assert charts["rate"]["total.mean by op"]["tables"]["points"]["v"] == pytest.approx(table["rate"].tolist())
    moved = charts["bandwidth"]["total.mean by op"]
    assert moved["tables"]["points"]["v"] == pytest.approx(table["mib_s"].tolist())
    assert moved["signals"]["measure"] == "MiB/s"
    assert set(charts) == {"means", "rate", "bandwidth"}
    whole = Files([FIO / "means-100"]).answer(Question(by=("op",), where=WHERE, step="all"))
    expected = percentiles(whole, Wanted(parse_percentiles("50"))).columns["mean"].tolist()
    assert charts["means"]["total.mean by op"]["tables"]["whole"]["v"] == pytest.approx(expected)


def test_a18_report_of_means_says_what_cannot_be_had(tmp_path: Path) -> None:
    page = page_of(tmp_path, str(FIO / "means-100"))
    assert "No percentiles, heat map or distribution" in page
    assert "log histograms (tailboard record fio)" in page
    jobs = json.loads((FIO / "means-100" / "a.json").read_text())["jobs"]
    summary = jobs[1]["write"]["clat_ns"]
    assert f'<data value="{summary["percentile"]["99.000000"]}">' in page
    assert f">{summary['N']:,}</data>" in page


def test_a18_report_of_a_store_is_that_of_the_files(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    assert command(["load", str(FIO / "means-100"), "--run", "means-100", "--store", store]) == 0
    first, second = (content_of(page_of(tmp_path, words)) for words in (store, str(FIO / "means-100")))
    assert first["charts"] == second["charts"]


def test_a18_several_runs_of_means_are_chosen_one_by_one(tmp_path: Path) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    for name in ("means-100", "plain-json"):
        assert command(["load", str(FIO / name), "--run", name, "--store", store]) == 0
    page = page_of(tmp_path, store)
    views = content_of(page)["charts"][0]["views"]
    assert {name.partition(",")[0] for name in views} == {"means-100", "plain-json"}


def test_a18_report_of_histograms_leaves_means_out_with_a_note(tmp_path: Path) -> None:
    shutil.copytree(FIO / "coarse-3", tmp_path / "logs" / "clients" / "h1")
    shutil.copytree(FIO / "means-500", tmp_path / "logs" / "clients" / "h2", ignore=lambda *_: ["h_clat_hist.1.log"])
    files = Files([tmp_path / "logs"])
    [run] = overviews(files, files.run_names, Question())
    assert run.cluster.kind == "completion, total"
    assert run.cluster.samples == sum(part.samples.sum() for part in run.cluster.parts)
    assert all(part.layout.has_bins for part in (*run.cluster.parts, *run.threads.parts, *run.hosts.parts))
    assert any("means without a histogram are not shown here" in text for text in run.cluster.warnings)


def test_a18_report_of_maxima_alone_has_dots_and_no_line(tmp_path: Path) -> None:
    folder = maxima(tmp_path / "winmax")
    views = {chart["name"]: chart["views"] for chart in content_of(page_of(tmp_path, str(folder)))["charts"]}
    tables = views["means"]["completion.mean by op"]["tables"]
    assert tables["points"]["v"] == [] and len(tables["thin"]["v"]) > 4
    assert [round(one) for one in tables["whole"]["v"]] == [930359, 17010]
    moved = views["bandwidth"]["completion.mean by op"]
    assert moved["tables"]["points"]["v"] == [] and moved["says"].startswith("No log of bandwidth (write_bw_log)")


@pytest.mark.slow
def test_a18_browser_draws_the_means(browser, tmp_path: Path) -> None:
    page_of(tmp_path, str(FIO / "means-100"))
    page, faults = browser.new_page(), []
    page.on("pageerror", lambda error: faults.append(str(error)))
    page.on("console", lambda message: faults.append(message.text) if message.type == "error" else None)
    page.goto(f"file://{tmp_path / 'r.html'}")
    settle(page)
    assert page.locator("#means canvas").count() == 1
    assert page.locator("#rate canvas").count() == 1
    assert page.locator("#bandwidth canvas").count() == 1
    page.get_by_text("completion.mean by op").click()
    settle(page)
    assert page.evaluate("() => tailboard.views.means.data('points').length") > 20
    page.close()
    assert not faults
