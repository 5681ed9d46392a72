"""doctor: whether a store is well, and what to do where it is not."""

from __future__ import annotations

import json

import click

from ingest.cli.shared.help import Command, file_names
from ingest.cli.shared.sources import store_url


@click.command(cls=Command)
@click.argument("store", required=False, metavar="[STORE]", shell_complete=file_names)
@click.option("--json", "as_json", is_flag=True, help="Print the lines as JSON: name, state, text, remedy.")
def doctor(store: str | None, *, as_json: bool) -> int:
    """Look a store over before a long load, or when something is odd. Nothing is changed.

    \b
    Examples:
      tailboard doctor http://host:9200
      tailboard doctor sqlite:/data/latency.db
      tailboard doctor --json

    Prints one line for each thing, and the remedy as a command or a setting where something is wrong. Of a server: version,
    templates, mappings, write blocks, shards, disks, privileges, clock, whether what is stored fits together (runs check).
    Of a SQLite file: version, damage, room on the disk, and the same. Exit status: 0 if nothing is wrong, 1 if something is.
    What this user may not look at is called not seen, and is not wrong.
    """
    from ingest.core.plain import shown
    from ingest.store.doctor import WRONG, examined

    lines = []
    for line in examined(store_url(store)):
        lines.append(line)
        if not as_json:
            print("\n".join(map(shown, str(line).split("\n"))), flush=True)
    if as_json:
        print(json.dumps([line.as_dict() for line in lines], indent=2))
    return int(any(line.state == WRONG for line in lines))
