"""The wheel holds all that a user without a checkout needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
def test_the_wheel_carries_mappings_and_kibana_inside_the_package(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    subprocess.run(command, check=True, cwd=ROOT, capture_output=True)
    (wheel,) = tmp_path.glob("tailboard-*.whl")
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {
        "ingest/mappings/sqlite.sql",
        "ingest/mappings/fields.yml",
        "ingest/kibana/vega/heatmap.json",
        "ingest/view/page/html/report.html",
        "ingest/wrap/fio.sh",
    } <= names
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"ingest"}
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    log = ROOT / "tests" / "data" / "fio" / "randrw"
    store = f"sqlite:{tmp_path / 's.db'}"
    environment = {"PYTHONPATH": str(tmp_path / "site"), "PATH": "/usr/bin:/bin"}
    for words in (
        ["load", str(log), "--run", "r", "--store", store],
        ["report", store, "-o", str(tmp_path / "r.html")],
        ["wrap-fio"],
    ):
        subprocess.run(
            [sys.executable, "-P", "-m", "ingest", *words], check=True, cwd=tmp_path, env=environment, capture_output=True
        )
    assert (tmp_path / "r.html").stat().st_size > 500_000
