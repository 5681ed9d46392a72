"""Docs that cannot rot: every command is documented, the sessions that pages show are real, no generated file is stale."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest
import yaml

import ingest
from ingest.cli import COMMANDS, tailboard
from tools.build import generated

ROOT = Path(__file__).parents[1]


def test_generated_files_are_up_to_date() -> None:
    stale = [path.name for path, text in generated().items() if path.read_text() != text]
    assert stale == []


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_purpose_examples_and_a_place_in_the_readme(name: str) -> None:
    command = tailboard.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    assert command.help
    assert re.search(r"Examples?:", command.help)
    assert f"tailboard {COMMANDS[name]}" in (ROOT / "README.md").read_text()


def test_the_readme_is_short_and_names_the_test_commands() -> None:
    lines = (ROOT / "README.md").read_text().splitlines()
    assert len(lines) <= 110
    assert any(line.startswith("    make demo ") for line in lines) and any(line.startswith("    make test ") for line in lines)


def test_public_names_can_be_imported() -> None:
    for name in ingest.__all__:
        assert getattr(ingest, name) is not None


SESSIONS = ("README.md", "docs/guides/first-look.md", "docs/guides/boxes.md")


def transcript() -> list[tuple[str, str]]:
    """(command, output) pairs of the console blocks of these pages."""
    pairs = []
    for page in SESSIONS:
        for block in re.findall(r"```console\n(.*?)```", (ROOT / page).read_text(), re.DOTALL):
            for part in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                pairs.append((command, output))
    return pairs


def test_pages_show_sessions() -> None:
    assert len(transcript()) == 7


@pytest.mark.parametrize(("command", "shown"), transcript(), ids=[pair[0][:50] for pair in transcript()])
def test_a_session_is_what_the_commands_print(command: str, shown: str) -> None:
    words = shlex.split(command)
    done = subprocess.run([sys.executable, "-m", "ingest", *words[1:]], capture_output=True, text=True, cwd=ROOT)
    printed = [line.rstrip() for line in (done.stdout + done.stderr).splitlines()]
    for line in shown.splitlines():
        if line.strip() and line.strip() != "...":
            assert line.rstrip() in printed


def typed_lines() -> list[tuple[str, str]]:
    """Return (page, command line) of every line that a page gives to be typed."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
    found = []
    for page in pages:
        for line in re.findall(r"^(?:    |\$ )(tailboard .*)$", page.read_text(), re.MULTILINE):
            found.append((page.name, line))
    return found


def test_every_command_of_the_docs_is_one(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Its names and options are; what it prints is asked elsewhere."""
    monkeypatch.chdir(tmp_path)
    wrong = []
    for page, line in typed_lines():
        words = shlex.split(re.split(r" [>&|] ?| &$", line)[0], comments=True)[1:]
        command, name = tailboard, "tailboard"
        try:
            while isinstance(command, click.Group) and words and not words[0].startswith("-"):
                name, command, words = command.resolve_command(click.Context(command), words)
            command.make_context(name, list(words))
        except (click.ClickException, ValueError) as error:
            wrong.append(f"{page}: {line}: {error}")
    assert len(typed_lines()) > 100
    assert wrong == []


def test_the_yaml_of_the_cbt_page_is_yaml_and_names_the_wrapper() -> None:
    text = re.search(r"^    benchmarks:\n(?:     .*\n)+", (ROOT / "docs" / "guides" / "cbt.md").read_text(), re.MULTILINE)
    settings = yaml.safe_load(text[0])["benchmarks"]["librbdfio"]
    assert settings["cmd_path"] == "/opt/tailboard/fio"
    assert settings["workloads"]["4krandomread"]["total_iodepth"] == [16, 64]


def test_python_of_the_package_docstring_runs() -> None:
    code = "\n".join(line[4:] for line in (ingest.__doc__ or "").splitlines() if line.startswith("    "))
    subprocess.run([sys.executable, "-c", code.replace("./cbt-archive", str(ROOT / "examples" / "cbt-archive"))], check=True)
