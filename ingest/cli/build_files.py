"""What is generated from what: every generated file with the text that it should hold."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import click

from ingest.core.errors import UsageError
from ingest.core.fields import assets, reference, sqlite_schema
from ingest.store.elastic.templates import generated_templates
from ingest.view.kibana.compile import kibana_files
from ingest.view.kibana.lint import problems

FORMATS_MARK = "<!-- formats: generated from the table in ingest/read/formats.py by `tailboard build` -->"
FORMATS_END = "<!-- end of formats -->"


def generated() -> dict[Path, str]:
    """Return the text of each generated file by its path; UsageError outside of a checkout."""
    mappings = assets("mappings")
    root = mappings.parent
    if not (root / "pyproject.toml").is_file():
        raise UsageError("build works in a checkout of the project, not in an installed package")
    pages = root / "docs" / "reference"
    return {
        mappings / "sqlite.sql": sqlite_schema(),
        **{mappings / path: text for path, text in generated_templates().items()},
        **{assets("kibana") / path: text for path, text in kibana_files().items()},
        pages / "fields.md": reference(),
        pages / "commands.md": command_reference(),
        pages / "formats.md": with_formats((pages / "formats.md").read_text(encoding="utf-8")),
    }


def with_formats(page: str) -> str:
    """Return docs/reference/formats.md with the table of formats between its two marks."""
    before, mark, rest = page.partition(FORMATS_MARK)
    _, end, after = rest.partition(FORMATS_END)
    if not mark or not end:
        raise UsageError(f"docs/reference/formats.md lacks its marks {FORMATS_MARK} and {FORMATS_END}")
    return f"{before}{mark}\n\n{format_reference()}\n\n{end}{after}"


def format_reference() -> str:
    """Return the table of docs/reference/formats.md."""
    from ingest.read.formats import BY_DESCRIPTION, TABLE

    rows = ["| Format | `--input-format` | Recognised by | Holds |", "|---|---|---|---|"]
    for line in TABLE:
        option = f"`{line.name}`" if line.name not in BY_DESCRIPTION else "path of a `.yml`"
        rows.append(f"| {line.title} | {option} | {line.known_by} | {line.holds} |")
    return "\n".join(rows)


def left_over(files: Mapping[Path, str]) -> list[Path]:
    """Return the files of saved objects that are no longer made."""
    return sorted(path for path in (assets("kibana") / "saved_objects").rglob("*.json") if path not in files)


def kibana_problems(files: Mapping[Path, str]) -> list[str]:
    """Return a line for each rule that the saved objects among generated files break."""
    kibana = assets("kibana")
    return problems({path.relative_to(kibana).as_posix(): text for path, text in files.items() if path.is_relative_to(kibana)})


def command_reference() -> str:
    """Return docs/reference/commands.md: the help of every command."""
    from ingest.cli import COMMANDS, tailboard

    parts = ["# Commands", "", "Generated from the commands' own help by `tailboard build`; do not edit.", ""]
    names = tailboard.context_settings["help_option_names"]
    context = click.Context(tailboard, info_name="tailboard", max_content_width=100, terminal_width=100, help_option_names=names)
    parts += ["```text", tailboard.get_help(context), "```", ""]
    for name in COMMANDS:
        command = tailboard.get_command(context, name)
        if command is not None:
            parts += _section(command, context, f"tailboard {name}")
    return "\n".join(parts)


def _section(command: click.Command, parent: click.Context, title: str) -> list[str]:
    context = click.Context(
        command, parent=parent, info_name=title.rsplit(maxsplit=1)[-1], max_content_width=100, terminal_width=100
    )
    parts = [f"## {title}", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                parts += _section(inner, context, f"{title} {name}")
    return parts
