"""doctor: whether a store is well, and what to do where it is not."""

from __future__ import annotations

import json

from ingest.cli.options import CallOptions, argument, command, option
from ingest.query.origin import store_url


class Options(CallOptions):
    """What a call of doctor says."""

    place: str | None = argument("[STORE]", files=True)
    store: str | None = option("--store", metavar="URL", help="The same as STORE.")
    as_json: bool = option("--json", help="Print the lines as JSON: name, state, text, remedy.")


@command(Options)
def doctor(options: Options) -> int:
    """Look a store over before a long load, or when something is odd. Nothing is changed.

    \b
    Examples:
      tailboard store doctor http://host:9200
      tailboard store doctor sqlite:/data/latency.db
      tailboard store doctor --json

    Prints one line for each thing, and the remedy as a command or a setting where something is wrong. Of this installation:
    whether compiled loops or NumPy read logs. Of a server: version, templates, mappings, write blocks, shards, disks,
    privileges, clock, whether what is stored fits together (runs check). Of a SQLite file: version, damage, room on the
    disk, and the same. Exit status: 0 if nothing is wrong, 1 if something is.
    What this user may not look at is called not seen, and is not wrong.
    """
    from ingest.core.errors import shown
    from ingest.store.doctor import WRONG, examined

    lines = []
    for line in examined(store_url(options.place or options.store)):
        lines.append(line)
        if not options.as_json:
            print("\n".join(map(shown, str(line).split("\n"))), flush=True)
    if options.as_json:
        print(json.dumps([line.as_dict() for line in lines], indent=2))
    return int(any(line.state == WRONG for line in lines))
