"""The layers of a run under one another in Kibana: the cells, shares and windows that the report has of the same run in SQLite."""

from __future__ import annotations

import uuid
from dataclasses import replace

import numpy as np
import pytest

from ingest.cli import run as command
from ingest.core.layout import Edges, Exponential, LogLinear, fio_layout, hdr_layout
from ingest.query.question import Question
from ingest.store import open_store
from ingest.view.page.panels.layers import layer_cells
from tests.layered import RATE, SECONDS, START, layered
from tests.view.kibana.conftest import Served, loaded
from tools.kibana.asked import Shown, chosen
from tools.kibana.bins import bins_of, family_columns, layout_columns

SECOND = 1_000_000_000
LAYERS = ["client", "service", "device"]
KINDS = {"client": "completion", "service": "service:service", "device": "device:service"}
SLA = """objectives:
  - {name: fast, percentile: 99, threshold: 20ms, window: 1s}
  - {name: disks, percentile: 50, threshold: 4ms, window: 1s, where: {kind: "device:service"}}
"""


@pytest.fixture(scope="module")
def of_layers(server, tmp_path_factory) -> Served:
    """A run of a client's log, an OSD's polls and a disk's histograms."""
    folder = tmp_path_factory.mktemp("layers")
    logs = layered(folder)
    words = (str(logs), "--t0", str(START), "--fio-version", "3.33")
    served = loaded(server, folder, f"layers{uuid.uuid4().hex[:8]}", {"run": words})
    disks = ("--input-format", str(folder / "disks" / "disks.yml"))
    for store in (served.url, served.sqlite):
        assert command(["load", str(folder / "disks" / "disks.ndjson"), *disks, "--run", "run", "--store", store]) == 0
    (folder / "SLA.yml").write_text(SLA)
    assert command(["check", str(folder / "SLA.yml"), served.url, "--run", "run", "--record", "--allow-unknown"]) in (0, 1)
    served.client.indices.refresh(index=f"{served.prefix}-*")
    return served


def reported(served: Served, layer: str, step: int) -> list[tuple]:
    """Return the cells of a layer in the report: window, edges, share of the window for each octave, samples."""
    with open_store(served.sqlite) as store:
        found = layer_cells(store.answer(Question(by=("kind",), where={"layer": layer}, step=step)), KINDS[layer])
    return sorted(zip(*(found.columns[name] for name in ("t", "lower", "upper", "share", "n"))))


def drawn(page, layer: str) -> list[tuple]:
    return sorted(
        tuple(row[name] for name in ("t", "lower", "upper", "v", "n")) for row in page.table("points") if row["row"] == layer
    )


def whole(served: Served, **words) -> Shown:
    return replace(served.shown, begin_ms=START * 1000, end_ms=(START + SECONDS) * 1000, **words)


LAYOUTS = [
    Edges((0, *(100_000 << step for step in range(31))), open_ended=True),
    Edges((0, 7, 1000, 10**6, 10**9)),
    *(Exponential(scale, unit) for scale, unit in ((3, 1), (1, 1_000_000), (0, 1000), (-1, 1000), (-2, 10**9))),
    *(fio_layout(29, 1, coarseness) for coarseness in (3, 6)),
    hdr_layout(1, 0, 1000).coarser(8),
    LogLinear(4, 100, reports="upper"),
    LogLinear(4, 100, reports="upper", open_ended=False),
]


@pytest.mark.cases(7)
@pytest.mark.slow
@pytest.mark.parametrize("layout", LAYOUTS, ids=lambda layout: str(layout)[:40])
def test_the_bins_of_a_layout_are_read_from_its_text(page, layout) -> None:
    made = [*layout_columns("datum.layout"), *family_columns("datum.layout"), *bins_of()]
    data = [{"name": "rows", "values": [{"layout": str(layout)}], "transform": made}]
    page.draw({"$schema": "https://vega.github.io/schema/vega/v5.json", "data": data})
    read = sorted((row["lower"], row["upper"], row["value"], row["open"]) for row in page.table("rows"))
    last = layout.bins - 1 if layout.open_ended else -1
    known = zip(layout.edges[:-1].tolist(), layout.edges[1:].tolist(), layout.keys.tolist())
    bins = [(low, high, value, int(at == last)) for at, (low, high, value) in enumerate(known) if 1 < high < 2**50]
    assert [row for row in read if row[1] < 2**50] == bins and len(bins) > 3
    assert all(max(1, row["octave_bins"]) == layout.octave for row in page.table("rows") if not isinstance(layout, Edges))


@pytest.mark.slow
@pytest.mark.parametrize("level", ["finest", "overview"])
def test_the_cells_are_those_of_the_report(page, of_layers, level) -> None:
    page.draw(of_layers.answered(of_layers.spec("layers", scope="host", level=level), whole(of_layers)))
    assert [row["row"] for row in page.table("rows")] == LAYERS
    step = SECOND if level == "finest" else 10 * SECOND
    for layer in LAYERS:
        ours, theirs = drawn(page, layer), reported(of_layers, layer, step)
        assert [cell[:3] for cell in ours] == [cell[:3] for cell in theirs], layer
        assert np.allclose([cell[3] for cell in ours], [cell[3] for cell in theirs], rtol=0.006), "the report keeps three digits"
        assert [cell[4] for cell in ours] == [cell[4] for cell in theirs]
    assert sum(cell[4] for cell in drawn(page, "client")) == SECONDS * RATE
    assert page.signal("heading") == (
        "run run, completion, service:service, device:service; one scale of latency and of colour for all layers"
    )
    seconds, count = step // SECOND, f"{SECONDS * RATE} samples"
    assert [row["says"] for row in page.table("rows")] == [
        f"client: completion latency, windows of {seconds} s, error of a value up to 0.78 %, {count}",
        f"service: service latency, windows of {seconds} s, error of a value up to 100 %, {count}",
        f"device: service latency, windows of {seconds} s, error of a value up to 100 %, {SECONDS * RATE * 3 // 4} samples",
    ]


@pytest.mark.slow
def test_each_layer_is_drawn_in_its_band_below_its_words(page, of_layers) -> None:
    page.draw(of_layers.answered(of_layers.spec("layers", scope="host", level="finest"), whole(of_layers)))
    cells, bands, words = (page.marks(name) for name in ("heat", "grounds", "row_texts"))
    assert len(cells) == len(page.table("points")) and len(bands) == len(words) == len(LAYERS)
    for layer, band, text in zip(LAYERS, bands, words):
        own = [cell for cell, row in zip(cells, page.table("points")) if row["row"] == layer]
        assert min(cell["y1"] for cell in own) >= band["y1"] - 1 and max(cell["y2"] for cell in own) <= band["y2"] + 1
        assert text["text"].startswith(f"{layer}: ") and text["y2"] <= band["y1"] + 4
    assert all(below["y1"] > above["y2"] for above, below in zip(bands, words[1:]))
    held = {row["row"]: row["threshold"] for row in page.table("promises")}
    assert held == {"client": 20_000_000, "device": 4_000_000}, "what a layer was held against is a line in its own band"
    low, high = page.signal("yd")
    for line, (layer, threshold) in zip(page.marks("promise_lines"), held.items(), strict=True):
        band = bands[LAYERS.index(layer)]
        at = band["y1"] + (band["y2"] - band["y1"]) * np.log(high / threshold) / np.log(high / low)
        assert line["y1"] == pytest.approx(at, abs=2)
    edges = sorted((cell["y1"], cell["y2"]) for cell in cells if cell["x1"] == cells[0]["x1"])
    assert all(above[1] <= below[0] + 1 for above, below in zip(edges, edges[1:])), "shades that overlap would be another shade"


@pytest.mark.slow
def test_a_run_of_one_layer_is_said_to_be_one(page, served, of_layers) -> None:
    """Of the example there is the client's alone; of the other a kind was chosen, or nothing is left."""
    alone = "operations alone: the run has no other layer here, or a kind, host or operation is chosen"
    page.draw(served.answered(served.spec("layers")))
    assert page.signal("heading").endswith(f"; of client {alone}")
    assert page.signal("heading").startswith("run nightly") and len(page.table("rows")) == 1
    with open_store(served.sqlite) as store:
        assert sum(row["n"] for row in page.table("points")) == store.answer(Question(step="all")).samples
    chosen_kind = whole(of_layers, filters=[chosen("kind", ["service:service"])])
    page.draw(of_layers.answered(of_layers.spec("layers"), chosen_kind))
    assert page.signal("heading") == f"run run, service:service; of service {alone}"
    page.draw(of_layers.answered(of_layers.spec("layers"), whole(of_layers, filters=[chosen("host.name", ["elsewhere"])])))
    assert page.signal("heading").startswith("no completions here") and not page.table("points")


@pytest.mark.slow
def test_a_layer_of_unlike_bins_is_called_approximate(page, server, tmp_path) -> None:
    """Two hosts whose bins do not begin alike: which bins a row holds cannot be read from one text; no sample is lost."""
    logs = layered(tmp_path)
    words = (str(logs), "--t0", str(START), "--fio-version", "3.33")
    made = loaded(server, tmp_path, f"unlike{uuid.uuid4().hex[:8]}", {"run": words})
    other = tmp_path / "disks" / "other.ndjson"
    other.write_text(
        (tmp_path / "disks" / "disks.ndjson").read_text().replace("1023", "999").replace("1024", "1000").replace("ceph1", "ceph2")
    )
    for store in (made.url, made.sqlite):
        for name in ("disks", "other"):
            described = ("--input-format", str(tmp_path / "disks" / "disks.yml"), "--run", "run", "--store", store)
            assert command(["load", str(tmp_path / "disks" / f"{name}.ndjson"), *described]) == 0
    made.client.indices.refresh(index=f"{made.prefix}-*")
    page.draw(made.answered(made.spec("layers"), whole(made)))
    assert page.signal("heading").startswith("APPROXIMATE: samples stand where their wide bins report them; run run")
    assert [row["says"].endswith(", APPROXIMATE") for row in page.table("rows")] == [False, False, True]
    assert sum(cell[4] for cell in drawn(page, "device")) == 2 * SECONDS * RATE * 3 // 4
