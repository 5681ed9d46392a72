"""build: the generated files."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import click

from ingest.cli.options import CallOptions, command, option
from ingest.cli.output import say
from ingest.core.errors import TailboardError, UsageError, counted, listed
from ingest.core.fields import assets

FORMATS_MARK = "<!-- formats: generated from the table in ingest/read/formats.py by `tailboard build` -->"
FORMATS_END = "<!-- end of formats -->"


class StaleError(TailboardError):
    """A generated file differs from what its source says."""

    exit_status = 1


class RuleError(TailboardError):
    """Saved objects break rules."""

    exit_status = 1


class Options(CallOptions):
    """What a call of build says."""

    check: bool = option("--check", help="Write nothing; exit with status 1 if a file is not up to date.")


@command(Options)
def build(options: Options) -> None:
    """Build the generated files: SQL schema, templates, Kibana objects, field and command reference.

    Kibana objects are checked against rules; an object that breaks a rule is named, and the exit status is 1.

    \b
    Example:
      tailboard build --check
    """
    files = generated()
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    gone = sorted(path for path in (assets("kibana") / "saved_objects").rglob("*.json") if path not in files)
    if options.check and (stale or gone):
        names = listed(path.name for path in (*stale, *gone))
        raise StaleError(f"not up to date: {names}; run `tailboard build` and commit what it writes")
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
        say(f"built {path}")
    for path in gone:
        path.unlink()
        say(f"removed {path}")
    problems = _kibana_problems(files)
    for line in problems:
        print(line, file=sys.stderr)
    if problems:
        raise RuleError(f"{counted(len(problems), 'problem')} in what is built from kibana/dashboards")


def generated() -> dict[Path, str]:
    """Return the text of each generated file by its path; UsageError outside of a checkout."""
    from ingest.core.fields import reference, sqlite_schema
    from ingest.store.elastic.templates import generated_templates
    from ingest.view.kibana.compile import kibana_files

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
        named = f"`{line.name}`" if line.name not in BY_DESCRIPTION else "path of a `.yml`"
        rows.append(f"| {line.title} | {named} | {line.known_by} | {line.holds} |")
    return "\n".join(rows)


def _kibana_problems(files: Mapping[Path, str]) -> list[str]:
    """Return a line for each rule that the saved objects among generated files break."""
    from ingest.view.kibana.lint import problems

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
        shown = tailboard.get_command(context, name)
        if shown is not None:
            parts += _section(shown, context, f"tailboard {name}")
    return "\n".join(parts)


def _section(shown: click.Command, parent: click.Context, title: str) -> list[str]:
    context = click.Context(
        shown, parent=parent, info_name=title.rsplit(maxsplit=1)[-1], max_content_width=100, terminal_width=100
    )
    parts = [f"## {title}", "", "```text", shown.get_help(context), "```", ""]
    if isinstance(shown, click.Group):
        for name in shown.list_commands(context):
            inner = shown.get_command(context, name)
            if inner is not None:
                parts += _section(inner, context, f"{title} {name}")
    return parts
