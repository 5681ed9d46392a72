"""The capacity by an objective in the load curve of a report, as a browser shows it: what the command says."""

from __future__ import annotations

import csv
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.browsing import shown
from tests.commands import tailboard
from tests.query import queues
from tests.view.page import items_of, rows_of

OBJECTIVE = "p99<1200us"


@pytest.mark.slow
@pytest.mark.parametrize("labelled", [True, pytest.param(False, marks=pytest.mark.soak)])
def test_the_load_curve_marks_the_capacity(browser: Any, tmp_path: Path, *, labelled: bool) -> None:
    store = f"sqlite:{tmp_path / 's.db'}"
    for clients in (4, 5, 7, 9):
        ends, took = queues.open_queue(np.random.default_rng(6), clients / 10, 30_000)
        path = tmp_path / f"at-{clients}.hlog"
        path.write_text(queues.hlog_of(ends, took))
        words = ["--label", f"numjobs={clients}"] if labelled else []
        assert tailboard("load", path, "--run", f"sweep/{path.stem}", *words, "--store", store).returncode == 0
    asked = tailboard("capacity", store, "--sla", OBJECTIVE, "--format", "csv")
    [wanted] = csv.DictReader(io.StringIO(asked.stdout))
    assert wanted["axis"] == ("numjobs" if labelled else "achieved") and wanted["verdict"] == "bracketed"
    for sla, marks in ((OBJECTIVE, 1), ("1200us", 0)):
        assert tailboard("report", store, "--sla", sla, "-o", tmp_path / "r.html").returncode == 0
        with shown(browser, tmp_path / "r.html") as page:
            rows = rows_of(page, "load", "capacities")
            assert len(rows) == len(items_of(page, "load", "capacity_band")) == marks
            for row in rows:
                edges = [float(wanted[name]) for name in ("capacity", "lo", "hi")]
                assert [row[name] for name in ("load", "low", "high")] == pytest.approx(edges, rel=0.02)
                assert f"{OBJECTIVE} holds up to" in row["text"]
            assert len(items_of(page, "load", "sla_line")) == 1
