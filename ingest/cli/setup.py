"""setup: what an Elasticsearch server and Kibana need beside loads."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from ingest.cli.shared import options as shared
from ingest.cli.shared.help import Command
from ingest.cli.shared.say import say
from ingest.core.errors import StoreError, UsageError, counted

if TYPE_CHECKING:
    from ingest.store.elastic.connection import Address
    from ingest.store.elastic.setup import Change
    from ingest.store.elastic.templates import Site


@dataclass(frozen=True, kw_only=True, repr=False, eq=False)
class Options:
    """What a call of setup says."""

    kibana: str | None
    space: str | None
    rules: str | None
    index_prefix: str | None
    period: str
    shards: int
    compact: bool
    dry_run: bool
    overwrite: bool


@click.command(cls=Command)
@click.option("--elasticsearch", "url", metavar="URL", help="Elasticsearch server [default: $TAILBOARD_STORE if it is one].")
@click.option("--kibana", metavar="URL", help="Kibana server: imports the dashboards and overwrites earlier ones.")
@click.option("--space", metavar="S", help="Kibana space [default: the default space].")
@click.option(
    "--rules",
    metavar="SLA.yml",
    help="Also install Kibana alert rules, for the objectives that rollups answer exactly.",
)
@click.option("--index-prefix", metavar="P", help="Prefix of all index names [default: that of the URL, else tailboard].")
@click.option("--period", default="month", show_default=True, metavar="month|week|day", help="Time that one index covers.")
@click.option(
    "--shards",
    type=int,
    default=1,
    show_default=True,
    help="Primary shards of each index of intervals, and of rollups.",
)
@click.option("--compact", is_flag=True, help="Use a third of the disk, with queries 1.7 times slower (9.x only, logsdb).")
@click.option("--dry-run", is_flag=True, help="Only show what would change.")
@click.option("--overwrite", is_flag=True, help="Change templates that differ.")
@shared.typed(Options)
def setup(url: str | None, options: Options) -> int:
    """Put index templates on an Elasticsearch server and dashboards into Kibana, or show what would change.

    \b
    Examples:
      tailboard setup --elasticsearch http://127.0.0.1:9200
      tailboard setup --elasticsearch https://es:9200 --index-prefix perf --period week --shards 3
      tailboard setup --elasticsearch http://127.0.0.1:9200 --kibana http://127.0.0.1:5601 --dry-run
      tailboard setup --kibana https://kibana:5601 --space perf --rules SLA.yml

    Missing templates are created; templates that differ are shown, and changed only with --overwrite. The component template
    P@custom is yours: it is created empty and never written again. With --kibana alone only Kibana is set up; its objects
    have fixed ids, so a second setup overwrites them. Secrets come from the environment (docs/guides/security.md,
    docs/guides/kibana.md).
    """
    from ingest.cli.setup_kibana import set_up, target_of

    address = _address(url, options)
    target = target_of(options, address.prefix)
    left = _set_up_templates(address, options) if url or not target else 0
    if target:
        set_up(target, dry_run=options.dry_run)
    if left and not options.dry_run:
        difference = (
            "template differs from what was asked and was" if left == 1 else "templates differ from what was asked and were"
        )
        raise StoreError(f"{left} {difference} left unchanged: --overwrite changes {'it' if left == 1 else 'them'}")
    return 0


def _address(url: str | None, options: Options) -> Address:
    """Return where Elasticsearch is and what its index names begin with; only the latter counts with --kibana alone."""
    from dataclasses import replace

    from ingest.store.elastic.connection import DEFAULT_PREFIX, Address, check_prefix, parse_address

    server = url or os.environ.get("TAILBOARD_STORE", "")
    if server.startswith(("http://", "https://")):
        address = parse_address(server)
    elif options.kibana and not url:
        address = Address("", os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    else:
        raise UsageError("setup needs --elasticsearch http://HOST:9200, or --kibana http://HOST:5601")
    address = replace(address, prefix=options.index_prefix or address.prefix)
    check_prefix(address.prefix)
    return address


def _set_up_templates(address: Address, options: Options) -> int:
    """Create missing templates (with --overwrite change differing ones), or only show them; return how many were left alone."""
    from ingest.store.elastic.connection import Connection
    from ingest.store.elastic.setup import applied, changes, fitting, make_empty
    from ingest.store.elastic.templates import Site

    site = Site(address.prefix, options.period, options.shards, options.compact)
    site.check()
    connection = Connection(address)
    connection.open()
    site, sentence = fitting(connection, site)
    if sentence:
        say(sentence)
    all_changes = changes(connection, site)
    wanted = [change for change in all_changes if change.missing or options.overwrite]
    left = [change for change in all_changes if change not in wanted]
    for change in all_changes if options.dry_run else left:
        _show(change, "would be")
    if not options.dry_run:
        for change in applied(connection, site, wanted):
            _show(change, "is")
        for sentence in make_empty(connection, site, time.time_ns()) if options.kibana else ():
            say(sentence)
    say(_summary(site, address.store, connection.version, len(all_changes), len(left)))
    return len(left)


def _summary(site: Site, url: str, version: str, changed: int, left: int) -> str:
    state = "nothing to change" if not changed else f"{counted(changed - left, 'template')} put"
    return f"{url} (Elasticsearch {version}): {state}; period {site.period}, shards {site.shards}; load with --store {url!r}"


def _show(change: Change, verb: str) -> None:
    say(f"{change.kind} template {change.name} {verb} {'created' if change.missing else 'changed'}")
    for line in change.lines:
        say(f"    {line}")
