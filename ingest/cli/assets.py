"""build: the generated files."""

from __future__ import annotations

import sys

import click

from ingest.errors import TailboardError


class StaleError(TailboardError):
    """A generated file differs from what its source says."""

    exit_status = 1


@click.command()
@click.option("--check", is_flag=True, help="Write nothing; exit with 1 if a file is not what would be built.")
def build(*, check: bool) -> None:
    """Build the files that are generated from others: SQL schema, field reference, command reference.

    \b
    Example:
      tailboard build --check
    """
    from ingest.build import generated

    stale = []
    for path, text in generated().items():
        if path.is_file() and path.read_text(encoding="utf-8") == text:
            continue
        stale.append(path)
        if not check:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
            print(f"tailboard: built {path}", file=sys.stderr)
    if check and stale:
        names = ", ".join(path.name for path in stale)
        raise StaleError(f"not up to date: {names}; run `tailboard build` and commit what it writes")
