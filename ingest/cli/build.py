"""build: the generated files."""

from __future__ import annotations

import sys

import click

from ingest.cli.shared.help import Command
from ingest.cli.shared.say import say
from ingest.core.errors import TailboardError, listed


class StaleError(TailboardError):
    """A generated file differs from what its source says."""

    exit_status = 1


class RuleError(TailboardError):
    """Saved objects break rules."""

    exit_status = 1


@click.command(cls=Command)
@click.option("--check", is_flag=True, help="Write nothing; exit with status 1 if a file is not up to date.")
def build(*, check: bool) -> None:
    """Build the generated files: SQL schema, templates, Kibana objects, field and command reference.

    Kibana objects are checked against rules; an object that breaks a rule is named, and the exit status is 1.

    \b
    Example:
      tailboard build --check
    """
    from ingest.cli.build_files import generated, kibana_problems, left_over

    files = generated()
    stale = [path for path, text in files.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    gone = left_over(files)
    if check and (stale or gone):
        names = listed(path.name for path in (*stale, *gone))
        raise StaleError(f"not up to date: {names}; run `tailboard build` and commit what it writes")
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path], encoding="utf-8")
        say(f"built {path}")
    for path in gone:
        path.unlink()
        say(f"removed {path}")
    problems = kibana_problems(files)
    for line in problems:
        print(line, file=sys.stderr)
    if problems:
        raise RuleError(
            f"{len(problems)} {'problem' if len(problems) == 1 else 'problems'} in what is built from kibana/dashboards"
        )
