"""action.yml: its steps are run here, as a runner of GitHub runs them, but for the download of what is installed."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
ARCHIVE = "examples/cbt-archive"


@pytest.fixture
def runner(tmp_path: Path) -> Path:
    """A folder of a job in which this Python stands for what the first step installs."""
    program = tmp_path / "temp/tailboard/bin/tailboard"
    program.parent.mkdir(parents=True)
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m ingest "$@"\n')
    program.chmod(0o755)
    for name in ("baseline", "results"):
        shutil.copytree(ROOT / ARCHIVE, tmp_path / name)
    return tmp_path


def summary(runner: Path, inputs: dict[str, str]) -> tuple[int, str]:
    """Return the exit status of the last step and what it wrote for the summary of the job."""
    step = ACTION["runs"]["steps"][-1]
    given = {name: one["default"] for name, one in ACTION["inputs"].items()} | inputs
    names = {name: re.fullmatch(r"\$\{\{ inputs\.(\w+) \}\}", value)[1] for name, value in step["env"].items()}
    written = runner / "summary.md"
    environment = os.environ | {"RUNNER_TEMP": str(runner / "temp"), "GITHUB_STEP_SUMMARY": str(written), "PYTHONPATH": str(ROOT)}
    environment |= {name: given[value] for name, value in names.items()}
    command = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]]
    done = subprocess.run(command, cwd=runner, env=environment, capture_output=True, text=True, timeout=120)
    return done.returncode, written.read_text() if written.exists() else done.stderr


@pytest.mark.slow
def test_a_job_gets_comparison_story_and_verdict(runner: Path) -> None:
    asked = {
        "explain": "results",
        "compare": "baseline results",
        "options": "-p 50,99 --fail-above 1.2",
        "check": "results --sla 'p99<5ms'",
    }
    status, text = summary(runner, asked)
    assert status == 1, text  # the objective is violated
    assert re.search(r"^\*\*1\. ceph-b stalled from 21:00:34\.3 to 21:00:38\.3", text, re.MULTILINE)
    assert re.search(r"^\*\*Cannot tell whether results/\S+ is slower or faster than baseline/", text, re.MULTILINE)
    assert re.search(r"^\|-+\|(-+\|)+\n\| p50 ", text, re.MULTILINE)
    assert re.search(r"^\*\*VIOLATED  p99<5ms", text, re.MULTILINE)
    assert "\x1b" not in text


@pytest.mark.slow
def test_words_of_inputs_are_words_and_no_program(runner: Path) -> None:
    status, _ = summary(runner, {"check": "results --sla 'rate>=1/s' $(touch owned) `touch owned`; touch owned"})
    assert status == 1 and not (runner / "owned").exists()
    assert summary(runner, {"check": "results --sla 'rate>=1/s'"})[0] == 0
    assert summary(runner, {})[0] == 0


def test_the_step_that_installs_takes_this_checkout() -> None:
    step = ACTION["runs"]["steps"][0]
    assert '"$GITHUB_ACTION_PATH"' in step["run"] and step["env"]["TAILBOARD_PYTHON"] == "${{ inputs.python }}"
