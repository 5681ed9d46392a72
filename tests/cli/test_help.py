"""D15: --help in groups, the same groups in the same order for every command; shells complete commands, options and files."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from ingest.cli import COMMANDS, SUMMARIES, command_of, tailboard
from ingest.cli.help import ALL_OPTIONS, GROUPS, MOST_FIRST, REST, Choice, Command, Group, group_of
from tests.commands import ROOT
from tests.commands import tailboard as called

ORDER = [*GROUPS, REST]
MOST_TOGETHER = 18  # options of one group: more are a list again that nobody reads


def commands() -> Iterator[tuple[str, click.Command]]:
    """Yield every command and every command of a command by what it is called."""
    waiting: list[tuple[str, click.Command]] = [
        ("", tailboard),
        *((called, command_of(name)) for name, called in COMMANDS.items()),
    ]
    for name, command in waiting:
        yield name, command
        if isinstance(command, click.Group):
            for inner in command.list_commands(click.Context(command)):
                known = command.get_command(click.Context(command), inner)
                assert known is not None
                if (called := f"{name} {inner}".strip()) not in dict(waiting):
                    waiting.append((called, known))


ALL = dict(commands())


@pytest.mark.parametrize("name", ALL)
def test_d15_options_are_grouped_in_one_order(name: str) -> None:
    command = ALL[name]
    assert isinstance(command, Command | Group), "use cls=Command of cli/help.py"
    context = click.Context(command, info_name=name, help_option_names=["-h", "--help"])
    first = command.get_help(context)
    context.meta[ALL_OPTIONS] = True
    text = command.get_help(context)
    titles = [title for title in re.findall(r"^(\S[^:\n]*):$", text, re.MULTILINE) if title not in {"Commands", *SUMMARIES}]
    assert "Options" not in titles
    assert titles == [title for title in ORDER if title in titles]
    for option in command.params:
        if isinstance(option, click.Option):
            assert option.opts[0] in text
            assert name == "" or group_of(command.name or "", option.name or "") != REST, f"{option.name} is in no group"
            assert type(option.type) is not click.Choice, f"{option.name}: Choice of cli/help.py says what is meant"
    assert len(command._first(command._options(context))) <= MOST_FIRST
    assert ("--help all" in first) == (len(first) < len(text))


def test_d15_every_name_of_a_group_is_an_option_and_no_group_is_long() -> None:
    names = {option.name for command in ALL.values() for option in command.params if isinstance(option, click.Option)}
    listed = [name for words in GROUPS.values() for name in words.split()]
    assert len(listed) == len(set(listed))
    assert {name.rsplit(".", 1)[-1] for name in listed} - names <= {"box"}
    for command in ALL.values():
        titles = [group_of(command.name or "", one.name or "") for one in command.params if isinstance(one, click.Option)]
        assert all(titles.count(title) <= MOST_TOGETHER for title in titles)


def test_a_choice_is_as_it_was_for_what_it_knows() -> None:
    assert Choice(["ns", "us"]).convert("us", None, None) == "us"


def completed(words: str, place: int, folder: Path) -> list[str]:
    """Return what bash offers for the word at `place` of a line."""
    bash = shutil.which("bash")
    assert bash
    program = Path(sys.executable).with_name("tailboard")
    lines = (
        f'eval "$({program} --completion bash)"; COMP_WORDS=({words}); COMP_CWORD={place}; '
        f'_tailboard_completion {program} 2>&1; printf "%s\\n" "${{COMPREPLY[@]}}"; complete -p tailboard'
    )
    done = subprocess.run([bash, "-c", lines], capture_output=True, text=True, cwd=folder, timeout=60)
    assert done.returncode == 0, done.stderr
    *offered, registered = done.stdout.split("\n")[:-1]
    assert registered.endswith("-F _tailboard_completion tailboard")
    return offered


@pytest.mark.cases(6)
@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "place", "offered"),
    [
        ("tailboard perc", 1, ["percentiles"]),
        ("tailboard percentiles --for", 2, ["--force", "--format"]),
        ("tailboard percentiles --format c", 3, ["csv"]),
        ("tailboard runs l", 2, ["list"]),
        ("tailboard show heat", 2, ["heatmap"]),
        ("tailboard report --li", 2, ["--live"]),
        ("tailboard report --live --ref", 3, ["--refresh"]),
        ("tailboard percentiles a.db --run n", 4, ["nightly"]),
        ("tailboard percentiles --store sqlite:a.db --by op,ki", 5, ["op,kind"]),
        ("tailboard explain a.db --where o", 4, ["op=", "outcome="]),
        ("tailboard compare a.db --where op=r", 4, ["op=read"]),
        ("tailboard percentiles b.db --run n", 4, [""]),
    ],
)
def test_d15_bash_completes(words: str, place: int, offered: list[str], tmp_path: Path) -> None:
    if ".db" in words:
        assert called("load", ROOT / "tests/data/fio/randrw", "--run", "nightly", "--store", "a.db", cwd=tmp_path).returncode == 0
    assert completed(words, place, tmp_path) == offered


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_d15_the_script_of_a_shell_is_printed(shell: str) -> None:
    done = called("--completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"_TAILBOARD_COMPLETE={shell}_complete" in done.stdout


@pytest.mark.parametrize(
    "name", [COMMANDS[name] for name in COMMANDS if name not in ("runs", "mark", "setup", "demo", "wrap-fio")]
)
def test_d15_what_reads_files_completes_their_names(name: str, tmp_path: Path) -> None:
    command = ALL[name]
    (first, *_) = [one for one in command.params if isinstance(one, click.Argument)]
    (offered,) = first.shell_complete(click.Context(command), "./cbt")
    assert (offered.value, offered.type) == ("./cbt", "file")


def test_help_shows_every_command_whole_without_importing_any() -> None:
    """A list that must import 24 commands to show them takes half a second, and click cuts their first sentences at 45 letters."""
    program = "import sys; from ingest.cli import run; run(['--help']); print(*(name for name in sys.modules), file=sys.stderr)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = set(done.stderr.split())
    assert not imported & {
        "numpy",
        "pathlib",
        "dataclasses",
        "json",
        "ctypes",
        *(f"ingest.cli.{name.replace('-', '_')}" for name in COMMANDS),
    }
    for commands in SUMMARIES.values():
        for name, summary in commands.items():
            assert re.search(rf"^  {name} +{re.escape(summary)}$", done.stdout, re.MULTILINE), name
