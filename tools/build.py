"""The generated files: SQL schema, templates, objects of Kibana, and the reference of fields, commands and formats.

    python -m tools.build            writes those that are not what their source says
    python -m tools.build --check    writes nothing; the status is 1 if a file is not up to date

Objects of Kibana are checked against rules; an object that breaks a rule is named, and the status is 1.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from ingest.cli import COMMANDS, tailboard
from ingest.cli.help import ALL_OPTIONS
from ingest.core.errors import listed
from ingest.core.schema import ELASTICSEARCH, assets, fields, in_store
from ingest.read.formats import BY_DESCRIPTION, CORE, described, ours
from ingest.store.elastic.templates import Site, templates
from tools.kibana.compile import kibana_files
from tools.kibana.lint import problems

PAGES = Path(__file__).parents[1] / "docs" / "reference"

FORMATS_MARK = "<!-- formats: generated from ingest/read/formats.py and plugins/__init__.py by `make build` -->"
FORMATS_END = "<!-- end of formats -->"

SQLITE = "sqlite"
TYPES = {"long": "INTEGER", "date": "INTEGER", "boolean": "INTEGER", "double": "REAL", "histogram": "BLOB"}


def generated() -> dict[Path, str]:
    """Return the text of each generated file by its path."""
    mappings = assets("mappings")
    return {
        mappings / "sqlite.sql": sqlite_schema(),
        **{mappings / path: text for path, text in elasticsearch_templates().items()},
        **{assets("kibana") / path: text for path, text in kibana_files().items()},
        PAGES / "fields.md": field_reference(),
        PAGES / "commands.md": command_reference(),
        PAGES / "formats.md": with_formats((PAGES / "formats.md").read_text(encoding="utf-8")),
    }


def elasticsearch_templates() -> dict[str, str]:
    """Return the templates of the default site as committed files: text by path below mappings/."""
    return {
        f"elasticsearch/{kind}_templates/{name}.json": json.dumps(body, indent=2) + "\n"
        for (kind, name), body in templates(Site("tailboard")).items()
    }


def column(field: dict[str, Any]) -> str:
    """Return the SQLite column of a field."""
    return str(field.get("sqlite", field["name"].replace(".", "_")))


def sqlite_schema() -> str:
    """Return the SQL that creates the embedded store's tables."""
    content = fields()
    parts = ["-- Generated from fields.yml by `make build`; do not edit.", f"PRAGMA user_version = {content['version']};"]
    for table, document in content["documents"].items():
        own = in_store(document, SQLITE)
        single = [field for field in own if field.get("key")]
        lines = []
        for field in own:
            kind = TYPES.get(field["type"], "TEXT")
            whole = " PRIMARY KEY" if len(single) == 1 and field.get("key") else ""
            lines.append(f"  {column(field)} {kind}{whole}{'' if field.get('null') else ' NOT NULL'}")
        keys = ", ".join(column(field) for field in single)
        if len(single) > 1:
            lines.append(f"  PRIMARY KEY ({keys})")
        unique = ", ".join(column(field) for field in own if field.get("unique"))
        if unique:
            lines.append(f"  UNIQUE ({unique})")
        parts.append(f"CREATE TABLE {table} (\n" + ",\n".join(lines) + "\n);")
    return "\n".join(parts) + "\n"


def field_reference() -> str:
    """Return docs/reference/fields.md: every document with its fields."""
    parts = ["# Fields", "", "Generated from `mappings/fields.yml` by `make build`; do not edit.", ""]
    for table, document in fields()["documents"].items():
        parts += [f"## {table}", "", document["description"].strip(), ""]
        if "index" in document:
            joined = f" with the fields of `{document['joins']}`" if "joins" in document else ""
            parts += [f"Elasticsearch: in `tailboard-{document['index']}`{joined}.", ""]
        parts += ["| field | SQLite column | type | unit | description |", "|---|---|---|---|---|"]
        for field in document["fields"]:
            name = f"`{field['name']}`" + (" (key)" if field.get("key") else "")
            shown = "Elasticsearch only" if field.get("only") == ELASTICSEARCH else f"`{column(field)}`"
            only = " (SQLite only)" if field.get("only") == SQLITE else ""
            cells = (name, shown + only, field["type"], field.get("unit", ""), field["description"])
            parts.append("| " + " | ".join(str(cell).replace("|", "\\|") for cell in cells) + " |")
        parts.append("")
    return "\n".join(parts)


def with_formats(page: str) -> str:
    """Return docs/reference/formats.md with the table of formats between its two marks."""
    before, mark, rest = page.partition(FORMATS_MARK)
    _, end, after = rest.partition(FORMATS_END)
    if not mark or not end:
        sys.exit(f"docs/reference/formats.md lacks its marks {FORMATS_MARK} and {FORMATS_END}")
    return f"{before}{mark}\n\n{format_reference()}\n\n{end}{after}"


def format_reference() -> str:
    """Return the table of docs/reference/formats.md."""
    rows = ["| Format | `--input-format` | Recognised by | Holds |", "|---|---|---|---|"]
    by_content = [line for line in (*CORE, *ours()) if line.name not in BY_DESCRIPTION]
    for line in (*by_content, *described(), *(line for line in CORE if line.name in BY_DESCRIPTION)):
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
    parts = ["# Commands", "", "Generated from the commands' own help by `make build`; do not edit.", ""]
    names = tailboard.context_settings["help_option_names"]
    context = click.Context(tailboard, info_name="tailboard", max_content_width=100, terminal_width=100, help_option_names=names)
    context.meta[ALL_OPTIONS] = True
    parts += ["```text", tailboard.get_help(context), "```", ""]
    for name, called in COMMANDS.items():
        command = tailboard.get_command(context, name)
        if command is not None and not called.startswith("runs "):  # which is among those of runs
            parts += _section(command, context, f"tailboard {called}")
    return "\n".join(parts)


def _section(command: click.Command, parent: click.Context, title: str) -> list[str]:
    context = click.Context(
        command,
        parent=parent,
        info_name=title.removeprefix(parent.command_path).strip(),
        max_content_width=100,
        terminal_width=100,
    )
    parts = [f"## {title}", "", "```text", command.get_help(context), "```", ""]
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            inner = command.get_command(context, name)
            if inner is not None:
                parts += _section(inner, context, f"{title} {name}")
    return parts


def main(words: list[str]) -> int:
    """Write the generated files, or check them; return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tools.build", description="Build the generated files.")
    parser.add_argument("--check", action="store_true", help="write nothing; exit with status 1 if a file is not up to date")
    check = parser.parse_args(words).check
    files = generated()
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    gone = left_over(files)
    if check and (stale or gone):
        names = listed(path.name for path in (*stale, *gone))
        print(f"not up to date: {names}; run `make build` and commit what it writes", file=sys.stderr)
        return 1
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
        print(f"built {path}", file=sys.stderr)
    for path in gone:
        path.unlink()
        print(f"removed {path}", file=sys.stderr)
    broken = kibana_problems(files)
    for line in broken:
        print(line, file=sys.stderr)
    if broken:
        word = "problem" if len(broken) == 1 else "problems"
        print(f"{len(broken)} {word} in what is built from kibana/dashboards", file=sys.stderr)
    return int(bool(broken))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
