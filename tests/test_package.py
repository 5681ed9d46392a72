"""The wheel holds all that a user without a checkout needs."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import ingest

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
        "ingest/view/page/script/state.js",
        "ingest/view/specs/offsets-map.json",
        "ingest/wrap/fio.sh",
        "ingest/py.typed",
        "ingest/examples/cbt-archive/results/cbt_config.yaml",
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
        ["percentiles", str(ROOT / "tests" / "data" / "histograms" / "asbench_histogram.txt"), "--step", "all"],  # an entry point
    ):
        subprocess.run(
            [sys.executable, "-P", "-m", "ingest", *words], check=True, cwd=tmp_path, env=environment, capture_output=True
        )
    assert (tmp_path / "r.html").stat().st_size > 500_000


@pytest.mark.slow
@pytest.mark.parametrize("compiler", ["false", "/nowhere/cc"])
def test_without_a_compiler_the_wheel_is_whole_and_of_pure_python(compiler: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True, env=os.environ | {"CC": compiler})
    (wheel,) = tmp_path.glob("tailboard-*-py3-none-any.whl")
    assert not [name for name in zipfile.ZipFile(wheel).namelist() if name.endswith(".so")]
    assert "built without compiled loops" in done.stdout + done.stderr


def test_checkers_of_types_see_the_public_names() -> None:
    """They are imported when they are first used, so types see them in a table of their own."""
    tree = ast.parse((ROOT / "ingest" / "__init__.py").read_text())
    (block,) = [node for node in tree.body if isinstance(node, ast.If)]
    seen = {(node.module, name.name) for node in block.body for name in node.names}
    assert seen == {(home, name) for name, home in ingest._HOMES.items()}


def test_a_shell_completes_commands_and_options() -> None:
    environment = {**os.environ, "COMP_CWORD": "1", "_TAILBOARD_COMPLETE": "bash_complete"}
    for words, wanted in (("tailboard perc", "plain,percentiles"), ("tailboard --ver", "plain,--version")):
        done = subprocess.run(
            [sys.executable, "-m", "ingest"], env={**environment, "COMP_WORDS": words}, capture_output=True, text=True, check=True
        )
        assert wanted in done.stdout.splitlines()
