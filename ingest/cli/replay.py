"""replay: documents that an Elasticsearch server refused are sent again."""

from __future__ import annotations

import os
from pathlib import Path

from ingest.cli.options import STORE, CallOptions, argument, command
from ingest.cli.output import say
from ingest.core.errors import StoreError, UsageError, counted
from ingest.query.origin import require, store_at

EXAMPLE = "tailboard store replay tailboard-dead-letters.ndjson --store http://127.0.0.1:9200"


class Options(CallOptions):
    """What a call of replay says."""

    dead_letters: str = argument("DEADLETTERS", files=True)
    store: str | None = STORE


@command(Options)
def replay(options: Options) -> int:
    """Send the documents of a dead-letter file again, after the cause of their refusal was removed.

    \b
    Example:
      tailboard store replay tailboard-dead-letters.ndjson --store http://127.0.0.1:9200

    Documents that are refused again stay in the file. Rollups are updated, and runs with all their documents become complete.
    """
    from ingest.read.discovery import check_is_there
    from ingest.store import DEAD_LETTERS, open_store

    path, server = Path(options.dead_letters), options.store or os.environ.get("TAILBOARD_STORE", "")
    if store_at(options.dead_letters) or not server:
        raise UsageError(f"replay takes a file of refused documents and the server: {EXAMPLE}")
    check_is_there(path)
    with open_store(server, write=True) as opened:
        account = require(opened, DEAD_LETTERS)(path)
    say(f"{counted(account.sent, 'document')} sent again: {account.taken} are in now, {account.refused} are refused again")
    if account.obsolete:
        dropped = counted(account.obsolete, "document was", "documents were")
        say(f"{dropped} dropped: their sources or runs have been read again or deleted since")
    for line in account.runs:
        say(line)
    if account.refused:
        raise StoreError(
            f"{counted(account.refused, 'document is', 'documents are')} still refused (the first: {account.reason})"
        )
    return 0
