"""setup and replay: what an Elasticsearch server needs beside loads."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from ingest.cli.saying import say
from ingest.cli.stores import store_option
from ingest.errors import InputError, StoreError, UsageError

if TYPE_CHECKING:
    from ingest.store.elastic.connection import Address
    from ingest.store.elastic.setup import Change
    from ingest.store.elastic.templates import Site


@click.command()
@click.option("--elasticsearch", "url", metavar="URL", help="Server [default: $TAILBOARD_STORE if it is one].")
@click.option("--kibana", metavar="URL", help="Kibana: dashboards are imported, those there overwritten.")
@click.option("--space", metavar="S", help="Space of Kibana [default: the default one].")
@click.option("--rules", metavar="SLA.yml", help="Alert rules in Kibana, for the objectives that rollups answer exactly.")
@click.option("--index-prefix", metavar="P", help="What all index names begin with [default: that of the URL, else tailboard].")
@click.option("--period", default="month", show_default=True, metavar="month|week|day", help="What one index covers.")
@click.option("--shards", type=int, default=1, show_default=True, help="Primary shards of an index of intervals, and of rollups.")
@click.option("--compact", is_flag=True, help="A third of the disk on 9.x (logsdb), queries 1.7 times slower; nothing on 8.x.")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--overwrite", is_flag=True, help="Change templates that differ.")
def setup(url: str | None, **words: Any) -> int:
    """Put index templates on an Elasticsearch server and dashboards into Kibana, or show what would change.

    \b
    Examples:
      tailboard setup --elasticsearch http://127.0.0.1:9200
      tailboard setup --elasticsearch https://es:9200 --index-prefix perf --period week --shards 3
      tailboard setup --elasticsearch http://127.0.0.1:9200 --kibana http://127.0.0.1:5601 --dry-run
      tailboard setup --kibana https://kibana:5601 --space perf --rules SLA.yml

    Templates: what is missing is created; what differs is shown and changed with --overwrite alone. The component template
    P@custom is yours: it is created empty and never written again. With --kibana alone only Kibana is set up; its objects
    have fixed ids, so setting up again overwrites them. Secrets come from the environment (docs/security.md, docs/kibana.md).
    """
    from ingest.cli.kibana import set_up, target_of

    address = _address(url, words)
    target = target_of(words, address.prefix)
    left = _set_up_templates(address, words) if url or not target else 0
    if target:
        set_up(target, dry_run=words["dry_run"])
    if left and not words["dry_run"]:
        told = "template differs from what was asked and was" if left == 1 else "templates differ from what was asked and were"
        raise StoreError(f"{left} {told} left alone: --overwrite changes {'it' if left == 1 else 'them'}")
    return 0


def _address(url: str | None, words: dict[str, Any]) -> Address:
    """Return where Elasticsearch is and what its index names begin with; only the latter counts with --kibana alone."""
    from dataclasses import replace

    from ingest.store.elastic.connection import DEFAULT_PREFIX, Address, check_prefix, parse_address

    server = url or os.environ.get("TAILBOARD_STORE", "")
    if server.startswith(("http://", "https://")):
        address = parse_address(server)
    elif words["kibana"] and not url:
        address = Address("", os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    else:
        raise UsageError("setup needs --elasticsearch http://HOST:9200, or --kibana http://HOST:5601")
    address = replace(address, prefix=words["index_prefix"] or address.prefix)
    check_prefix(address.prefix)
    return address


def _set_up_templates(address: Address, words: dict[str, Any]) -> int:
    """Put what is missing (with --overwrite what differs, too), or only show it; return how many differ and were left alone."""
    from ingest.store.elastic.connection import Connection
    from ingest.store.elastic.setup import apply, changes, fitting, make_empty
    from ingest.store.elastic.templates import Site

    site = Site(address.prefix, words["period"], words["shards"], words["compact"])
    site.check()
    connection = Connection(address)
    connection.open()
    site, sentence = fitting(connection, site)
    if sentence:
        _line(sentence)
    found = changes(connection, site)
    wanted = [change for change in found if change.missing or words["overwrite"]]
    left = [change for change in found if change not in wanted]
    for change in found:
        _show(change, "would be" if words["dry_run"] or change in left else "is")
    if not words["dry_run"]:
        apply(connection, site, wanted)
        for sentence in make_empty(connection, site) if words["kibana"] else ():
            _line(sentence)
    _line(_summary(site, address.store, connection.version, len(found), len(left)))
    return len(left)


def _summary(site: Site, url: str, version: str, changed: int, left: int) -> str:
    state = "nothing to change" if not changed else f"{changed - left} templates put"
    return f"{url} (Elasticsearch {version}): {state}; period {site.period}, shards {site.shards}; load with --store {url!r}"


def _show(change: Change, verb: str) -> None:
    _line(f"{change.kind} template {change.name} {verb} {'created' if change.missing else 'changed'}")
    for line in change.lines:
        _line(f"    {line}")


@click.command()
@click.argument("dead_letters", metavar="DEADLETTERS")
@store_option
def replay(dead_letters: str, store: str | None) -> int:
    """Send the documents of a dead-letter file again, after what the server had against them was mended.

    \b
    Example:
      tailboard replay tailboard-dead-letters.ndjson --store http://127.0.0.1:9200

    What is still refused stays in the file; rollups are made right, and runs of which nothing is missing are complete.
    """
    from ingest.query.origin import DEAD_LETTERS, needed
    from ingest.store import open_store

    path = Path(dead_letters)
    if not path.is_file():
        raise InputError("there is no such file", path)
    with open_store(store or os.environ.get("TAILBOARD_STORE", ""), write=True) as opened:
        account = needed(opened, DEAD_LETTERS)(path)
    _line(f"{account.sent} documents sent again: {account.taken} are in now, {account.refused} are refused again")
    if account.obsolete:
        _line(f"{account.obsolete} documents were dropped: their sources or runs have been read again or deleted since")
    for line in account.runs:
        _line(line)
    if account.refused:
        raise StoreError(f"{account.refused} documents are still refused (the first: {account.reason})")
    return 0


def _line(text: str) -> None:
    say(text)
