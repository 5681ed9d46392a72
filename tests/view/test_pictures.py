"""Pictures without a browser and the map on a terminal: the numbers that they show, and what they do with odd labels."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import numpy as np
import pytest
from rich.console import Console

from ingest.core.errors import UsageError
from ingest.core.quantiles import parse_percentiles
from ingest.core.units import utc
from ingest.query.curves import curves
from ingest.query.files import Files
from ingest.query.heatmap import cells
from ingest.query.question import Question
from ingest.read.curves import read_hgrm, read_sla
from ingest.view import pictures, vega
from ingest.view.terminal import heatmap as preview
from ingest.view.terminal.heatmap import quarters, shades
from oracles.shades import by_rank
from tests.commands import tailboard
from tests.doubles.origin import NS, SECOND, ZERO, Made, random_rows, series

HOSTILE = ("</text><script>alert(1)</script>", "\u2028'\"&<b>", "\u202eright to left", "x" * 1000)


@pytest.fixture(scope="module")
def files(archive) -> Files:
    return Files([archive])


def svg_of(spec) -> str:
    pytest.importorskip("vl_convert")
    return pictures.drawn(spec, "svg").decode()


def run(*words: str, archive) -> subprocess.CompletedProcess:
    return tailboard(words[0], archive, *words[1:], text=False)


@pytest.mark.cases(3)
@pytest.mark.parametrize(
    "words", [("percentiles", "--by", "host", "-p", "50,99"), ("heatmap", "--step", "2s"), ("distribution", "--by", "host")]
)
@pytest.mark.parametrize(("form", "start"), [pytest.param("png", b"\x89PNG\r\n\x1a\n", marks=pytest.mark.slow), ("svg", b"<svg")])
def test_commands_write_pictures(words, form, start, archive):
    pytest.importorskip("vl_convert")
    done = run(*words, "--format", form, archive=archive)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(start)
    assert len(done.stdout) > 10_000
    if form == "svg":
        assert b"59,015 samples" in done.stdout


def test_a_heat_map_of_several_groups_is_refused(archive):
    pytest.importorskip("vl_convert")
    done = run("heatmap", "--by", "host", "--format", "svg", archive=archive)
    assert done.returncode == 2
    assert b"a picture of a heat map shows one group, here are ceph-a, ceph-b, ceph-c: choose with --where" in done.stderr
    assert done.stdout == b""


@pytest.mark.slow
def test_every_cell_is_drawn(files):
    answer = files.answer(Question(step=2 * SECOND))
    spec = pictures.heatmap_picture(answer)
    svg = svg_of(spec)
    drawn = vega.cells(answer)
    rects = re.search(r'<g class="mark-rect role-mark heat"[^>]*>(.*?)</g>', svg, re.DOTALL)[1]
    assert len(re.findall(r"<path ", rects)) == len(drawn["c"])
    fills = re.findall(r'fill="([^"]+)"', rects)
    most = int(np.argmax(drawn["c"]))
    assert fills[most] == "rgb(8, 48, 107)"


@pytest.mark.parametrize("most", [3, 30, 3000])
def test_d2_shades_are_ranks_among_the_different_counts(most):
    counts = np.random.default_rng(most).integers(0, most, (40, 30)).astype(np.float64)
    counts[counts < most * 0.3] = 0
    expected = by_rank(counts.ravel().tolist())
    assert np.allclose(shades(counts, "rank"), np.vectorize(lambda count: expected.get(count, 0.0))(counts))
    assert np.array_equal(shades(counts, "linear"), counts / counts.max())
    assert np.array_equal(shades(np.zeros((2, 2)), "rank"), np.zeros((2, 2)))
    assert set(quarters(counts).tolist()) <= set(counts.ravel().tolist()) and quarters(counts)[-1] == counts.max()


def test_sums_of_cells_stand_beside_them():
    answer = Made([(series(), at, {700: 1, 800: 1, 900: 2, 1000: 8 * at + 8}) for at in range(2)]).answer(Question(step=SECOND))
    drawn = vega.cells(answer)
    assert drawn["n"] == [12] * 4 + [20] * 4
    assert drawn["cum"] == [1, 2, 4, 12, 1, 2, 4, 20]


@pytest.mark.slow
def test_thin_windows_are_drawn_at_their_maximum():
    answer = Made(
        [(series(), 0, {900: 99, 1000: 1}), (series(), 1, {900: 10}), (series(host="b", op="write"), 1, {950: 5})]
    ).answer(Question(by=("op",), step=SECOND))
    told = vega.thin(answer, parse_percentiles("99"))
    assert list(zip(told["t"], told["label"], told["v"], strict=True)) == [
        (ZERO // 1_000_000 + 1000, "read", NS.values[900]),
        (ZERO // 1_000_000 + 1000, "write", NS.values[950]),
    ]
    assert vega.thin(answer, parse_percentiles("50,99"))["label"] == ["read p99", "write p99"]
    svg = svg_of(pictures.percentiles_picture(answer, parse_percentiles("99")))
    assert len(re.findall(r"<path ", re.search(r'mark-symbol role-mark few"[^>]*>(.*?)</g>', svg, re.DOTALL)[1])) == 2


@pytest.mark.parametrize("clock", ["utc", "elapsed", "local"])
def test_times_are_as_they_were_asked(files, clock):
    svg = svg_of(pictures.percentiles_picture(files.answer(Question(step=SECOND)), parse_percentiles("99"), clock))
    assert ("elapsed since the start of the run" in svg) == (clock == "elapsed")
    assert ("UTC, 2026-11-20" in svg) == (clock == "utc") or clock == "local"


def test_n20_a_picture_without_a_clock_begins_at_0(fio, tmp_path):
    """The start of an axis at 0 was taken for none: all windows lay on its right edge, and it had no ticks."""
    path = tmp_path / "a_clat_hist.1.log"
    path.write_bytes((fio / "coarse-6" / path.name).read_bytes())  # without fio's JSON
    answer = Files([path], jobs=1).answer(Question(step=SECOND))
    svg = svg_of(pictures.percentiles_picture(answer, parse_percentiles("99"), "elapsed"))
    widths = [float(width) for width in re.findall(r'd="M[-.0-9e]+,[-.0-9e]+h([-.0-9e]+)v14', svg)]
    assert widths and min(widths) > 100 and ">0 s<" in svg and ">1 s<" in svg


def test_labels_are_text_in_a_picture():
    rows = [
        (series(label, label, run=HOSTILE[0]), at, {900 + code: 500}) for code, label in enumerate(HOSTILE) for at in range(3)
    ]
    answer = Made(rows).answer(Question(by=("host",), step=SECOND))
    for spec in (pictures.percentiles_picture(answer, parse_percentiles("99")), pictures.distribution_picture(answer)):
        svg = svg_of(spec)
        assert "<script" not in svg
        assert "&lt;script&gt;" in svg


def test_without_the_runtime_it_says_what_to_install(files, monkeypatch):
    monkeypatch.setitem(sys.modules, "vl_convert", None)
    with pytest.raises(UsageError, match=r"pip install vl-convert-python"):
        pictures.drawn(pictures.heatmap_picture(files.answer(Question(step=SECOND))), "png")


def shown(answer, **words) -> str:
    out = io.StringIO()
    preview.print_heatmap(answer, ["heading"], utc, console=Console(file=out, **words))
    return out.getvalue()


def test_the_map_on_a_terminal_is_coloured(files):
    answer = files.answer(Question(by=("host",), step=SECOND))
    coloured = shown(answer, force_terminal=True, color_system="truecolor", width=100)
    assert "\x1b[48;2;253;231;37m" in coloured
    plain = re.sub(r"\x1b\[[0-9;]*m", "", coloured)
    assert all(len(line) <= 100 for line in plain.splitlines() if "samples" not in line)
    for host in ("ceph-a", "ceph-b", "ceph-c"):
        assert f"\n{host}\n" in plain
    letters = shown(answer, width=160)
    assert "\x1b" not in letters
    assert "@" in letters
    assert "22,749 in all" in letters


def test_the_grid_on_a_terminal_holds_every_sample():
    rows = random_rows(6, windows=50, hosts=2)
    for host in ("h0", "h1"):
        grid = preview.grid_of(
            cells(Made([row for row in rows if row[0].host == host]).answer(Question(step=SECOND)), preview.EIGHTHS)
        )
        assert len(grid.counts) <= preview.EIGHTHS.most
        assert grid.counts.sum() == sum(sum(bins.values()) for one, _, bins in rows if one.host == host)
        for one, at, bins in rows:
            if one.host != host:
                continue
            for place in bins:
                row = int(np.searchsorted(grid.edges, NS.edges[place], side="right")) - 1
                assert grid.counts[row, at] >= bins[place]


def test_a_narrow_terminal_has_wider_columns(files):
    answer = files.answer(Question(step=SECOND))
    narrow = shown(answer, width=50)
    assert "a column is 2s" in narrow
    assert "59,015 in all" in narrow
    assert "a column is 1s" in shown(answer, width=160)


def test_one_window_and_odd_labels_on_a_terminal():
    answer = Made([(series(host="[red]x[/red]\x1b"), 0, {900: 3}), (series(host="b"), 0, {900: 4})]).answer(
        Question(by=("host",), step="all")
    )
    told = shown(answer, width=80)
    assert "[red]x[/red]\\x1b" in told
    assert "\x1b" not in told


def test_n19_a_latency_of_0_is_drawn_at_the_bottom_of_a_logarithmic_axis():
    """It was drawn at the top: wait times of 0 looked like the slowest."""
    answer = Made([(series(), 0, {0: 60, 900: 40})]).answer(Question(step=SECOND))
    [line] = re.findall(r'd="M0,([^"]*L[^"]*)"', svg_of(pictures.distribution_picture(answer)))
    heights = [float(point.split(",")[1]) for point in f"0,{line}".split("L")]
    assert heights[0] == max(heights) > min(heights)


def test_curves_of_files_of_equal_names_stay_apart(tmp_path, fio):
    """Two files of one name, and one that was called as a group is, were drawn as one line."""
    text = "Value Percentile TotalCount 1/(1-Percentile)\n{} 0.0 10 1.0\n{} 0.5 50 2.0\n"
    for place, low in (("old/p99.hgrm", 1), ("new/p99.hgrm", 2), ("all.hgrm", 3)):
        (tmp_path / place).parent.mkdir(exist_ok=True)
        (tmp_path / place).write_text(text.format(low, low + 0.5))
    (tmp_path / "old" / "steps.txt").write_text("1 50\n10 50\n")
    paths = [tmp_path / name for name in ("old/p99.hgrm", "new/p99.hgrm", "new/p99.hgrm", "all.hgrm")]
    others = [*(read_hgrm(path, unit) for path, unit in zip(paths, (1, 1, 1000, 1))), read_sla(tmp_path / "old/steps.txt", 1)]
    answer = Files([fio / "randrw"]).answer(Question(step="all"))
    (points,) = (data["values"] for data in pictures.distribution_picture(answer, others)["data"] if data["name"] == "points")
    names = {"old/p99.hgrm", "new/p99.hgrm", "new/p99.hgrm (2)", "all.hgrm", "steps"}
    assert {point["label"] for point in points} == {"all", *names}
    assert [point["v"] for point in points if point["label"] == "new/p99.hgrm (2)"] == [2000, 2500]
    table = curves(answer, others).columns
    assert set(table["curve"]) == {"all", *names} and table["value"][table["curve"] == "all.hgrm"].tolist() == [3, 3.5]


def test_r11_steps_and_curves_of_files_are_drawn_in_the_picture_of_a_distribution(tmp_path, fio):
    """--sla was read, and ignored where a picture was asked for."""
    (tmp_path / "promise.txt").write_text("1 50\n10 50\n10 200\n100 200\n")
    (tmp_path / "before.hgrm").write_text(
        "Value Percentile TotalCount 1/(1-Percentile)\n1.5 0.0 10 1.0\n9.5 0.5 50 2.0\n80.0 1.0 100\n"
    )
    others = [read_sla(tmp_path / "promise.txt", 1_000_000), read_hgrm(tmp_path / "before.hgrm", 1_000_000)]
    answer = Files([fio / "randrw"]).answer(Question(step="all"))
    spec = pictures.distribution_picture(answer, others)
    (points,) = (data["values"] for data in spec["data"] if data["name"] == "points")
    assert {point["label"] for point in points} == {"all", "promise", "before"}
    assert [(point["x"], point["v"]) for point in points if point["label"] == "promise"] == [
        *((1, 50 * 1_000_000), (10, 50 * 1_000_000), (10, 200 * 1_000_000), (100, 200 * 1_000_000))
    ]
    assert max(point["v"] for point in points if point["label"] == "before") == int(9.5 * 1_000_000)  # 80 ms is at 1 / 0
    assert svg_of(spec).startswith("<svg")
