"""setup: what an Elasticsearch server and Kibana need beside loads."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.options import CallOptions, argument, command, option
from ingest.cli.output import say
from ingest.core.errors import StoreError, UsageError, counted

if TYPE_CHECKING:
    from ingest.core.objective import AnyObjective
    from ingest.store.elastic.client import Address
    from ingest.store.elastic.setup import Change
    from ingest.view.kibana.importing import Account, SavedObject
    from ingest.view.kibana.importing import Connection as Kibana


class Options(CallOptions):
    """What a call of setup says."""

    place: str | None = argument("[URL]")
    url: str | None = option(
        "--elasticsearch", metavar="URL", help="Elasticsearch server [default: $TAILBOARD_STORE if it is one]."
    )
    kibana: str | None = option(
        "--kibana", metavar="URL", help="Kibana server: imports the dashboards and overwrites earlier ones."
    )
    space: str | None = option("--space", metavar="S", help="Kibana space [default: the default space].")
    rules: str | None = option(
        "--rules", metavar="SLA.yml", help="Also install Kibana alert rules, for the objectives that rollups answer exactly."
    )
    index_prefix: str | None = option(
        "--index-prefix", metavar="P", help="Prefix of all index names [default: that of the URL, else tailboard]."
    )
    period: str = option("--period", default="month", metavar="month|week|day", help="Time that one index covers.")
    shards: int = option("--shards", default=1, help="Primary shards of each index of intervals, and of rollups.")
    compact: bool = option("--compact", help="Use a third of the disk, with queries 1.7 times slower (9.x only, logsdb).")
    dry_run: bool = option("--dry-run", help="Only show what would change.")
    overwrite: bool = option("--overwrite", help="Change templates that differ.")


@command(Options)
def setup(options: Options) -> int:
    """Put index templates on an Elasticsearch server and dashboards into Kibana, or show what would change.

    \b
    Examples:
      tailboard store setup --elasticsearch http://127.0.0.1:9200
      tailboard store setup --elasticsearch https://es:9200 --index-prefix perf --period week --shards 3
      tailboard store setup --elasticsearch http://127.0.0.1:9200 --kibana http://127.0.0.1:5601 --dry-run
      tailboard store setup --kibana https://kibana:5601 --space perf --rules SLA.yml

    Missing templates are created; templates that differ are shown, and changed only with --overwrite. The component template
    P@custom is yours: it is created empty and never written again. With --kibana alone only Kibana is set up; its objects
    have fixed ids, so a second setup overwrites them. Secrets come from the environment (docs/guides/security.md,
    docs/guides/kibana.md).
    """
    from ingest.query.origin import is_server, store_at

    if options.place and options.url:
        raise UsageError(f"two servers: here are {options.place} and {options.url}")
    if store_at(options.place or "") and not is_server(options.place or ""):
        raise UsageError(f"{options.place} needs no setup: tailboard load PATH --run NAME --store {options.place} makes it")
    options = options.but(url=options.url or options.place)
    address = _address(options)
    target = _target(options)
    left = _set_up_templates(address, options) if options.url or not target else 0
    if target:
        _set_up_kibana(*target, prefix=address.prefix, dry_run=options.dry_run)
    if left and not options.dry_run:
        differ, were, them = ("template differs", "was", "it") if left == 1 else ("templates differ", "were", "them")
        raise StoreError(f"{left} {differ} from what was asked and {were} left unchanged: --overwrite changes {them}")
    return 0


def _address(options: Options) -> Address:
    """Return where Elasticsearch is and what its index names begin with; only the latter counts with --kibana alone."""
    from ingest.query.origin import is_server
    from ingest.store.elastic.client import DEFAULT_PREFIX, Address, check_prefix, parse_address

    server = options.url or os.environ.get("TAILBOARD_STORE", "")
    if is_server(server):
        address = parse_address(server)
    elif options.kibana and not options.url:
        address = Address("", os.environ.get("TAILBOARD_INDEX_PREFIX", DEFAULT_PREFIX))
    else:
        raise UsageError("setup needs --elasticsearch http://HOST:9200, or --kibana http://HOST:5601")
    address = replace(address, prefix=options.index_prefix or address.prefix)
    check_prefix(address.prefix)
    return address


def _set_up_templates(address: Address, options: Options) -> int:
    """Create missing templates (with --overwrite change differing ones), or only show them; return how many were left alone."""
    from ingest.store.elastic.client import Connection
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
    state = f"{counted(len(all_changes) - len(left), 'template')} put" if all_changes else "nothing to change"
    server, layout = f"{address.store} (Elasticsearch {connection.version})", f"period {site.period}, shards {site.shards}"
    say(f"{server}: {state}; {layout}; load with --store {address.store!r}")
    return len(left)


def _show(change: Change, verb: str) -> None:
    say(f"{change.kind} template {change.name} {verb} {'created' if change.missing else 'changed'}")
    for line in change.lines:
        say(f"    {line}")


def _target(options: Options) -> tuple[str, str, tuple[AnyObjective, ...] | None] | None:
    """Return URL and space of the Kibana of a call, None without one, and the objectives that get rules (None: no rules).

    Raises UsageError, InputError.
    """
    from ingest.objectives.objectives import read_objectives
    from ingest.view.kibana.importing import DEFAULT_SPACE, checked_space, checked_url

    if not options.kibana:
        for name in ("space", "rules"):
            if getattr(options, name):
                raise UsageError(f"--{name} is about Kibana: give --kibana http://HOST:5601, too")
        return None
    # Labels of runs are not known here: rules for objectives that name them are left to check, which knows.
    objectives = read_objectives(Path(options.rules), run_labels=None) if options.rules else None
    return checked_url(options.kibana), checked_space(options.space or DEFAULT_SPACE), objectives


def _set_up_kibana(url: str, space: str, objectives: tuple[AnyObjective, ...] | None, *, prefix: str, dry_run: bool) -> None:
    """Import all saved objects and install the rules; StoreError names each object that Kibana refuses."""
    from ingest.view.kibana.importing import Connection, delete_gone, import_objects, shipped

    objects = shipped(prefix)
    connection = Connection(url, space, tell=say)
    connection.open()
    try:
        if dry_run:
            _show_import(connection, objects, prefix)
        else:
            _show_imported(connection, import_objects(connection, objects))
            for text in delete_gone(connection, prefix):
                say(text)
        if objectives is not None:
            _set_up_rules(connection, prefix, objectives, dry_run=dry_run)
    finally:
        connection.close()


def _show_import(connection: Kibana, objects: Sequence[SavedObject], prefix: str) -> None:
    from urllib.parse import urlencode

    from ingest.view.kibana.importing import DELETE, FILE_NAME, PATH, gone, import_body, import_words

    for saved in objects:
        say(f"{saved.type} {saved.id} ({saved.title}) would be imported")
    query = urlencode({name: str(value).lower() for name, value in import_words(connection.space).items()})
    size = len(import_body(objects)[0])
    say(f"POST {connection.place}{PATH}?{query} would send {counted(len(objects), 'object')} as {FILE_NAME}, {size:,} bytes")
    earlier = ", ".join(one["id"] for one in gone(prefix))
    say(f"POST {connection.place}{DELETE} would delete what earlier versions left there: {earlier}")


def _show_imported(connection: Kibana, account: Account) -> None:
    for saved in account.imported:
        elsewhere = f" as {saved.destination}" if saved.destination else ""
        say(f"{saved.type} {saved.id} ({saved.title}) is {'overwritten' if saved.overwritten else 'created'}{elsewhere}")
    for text in account.warnings:
        say(f"Kibana warns: {text}")
    for bad in account.failed:
        say(f"{bad.type} {bad.id} ({bad.title}) is refused: {bad.reason}")
    if account.failed:
        first = account.failed[0]
        done = f"{len(account.imported)} others are imported" if account.imported else "nothing is imported"
        more = f" and {len(account.failed) - 1} more" if len(account.failed) > 1 else ""
        raise StoreError(f"{connection.place} refuses {first.type} {first.id}{more}: {first.reason}; {done}")
    taken = f"{counted(len(account.imported), 'object')} imported, {sum(one.overwritten for one in account.imported)} of them"
    place = connection.place
    say(f"{place} (Kibana {connection.version}): {taken} overwritten; look at {place}/app/dashboards")
    say(f"TAILBOARD_KIBANA={place} in the environment: a load prints the address of the dashboard that shows its run")


def _set_up_rules(connection: Kibana, prefix: str, objectives: Sequence[AnyObjective], *, dry_run: bool) -> None:
    from ingest.view.kibana.rules import PATH, is_as_wanted, put_rule, rules_for, stored_rule

    rules, left = rules_for(objectives, prefix, connection.space, connection.version)
    for rule in rules:
        there = stored_rule(connection, rule)
        if there is not None and is_as_wanted(rule, there):
            say(f"rule {rule.id} ({rule.name}) is there: nothing to change")
        elif dry_run:
            say(f"{'POST' if there is None else 'PUT'} {connection.place}{PATH}{rule.id} would send the rule {rule.name}")
            for text in rule.esql.splitlines():
                say(f"    {text}")
        else:
            put_rule(connection, rule, there)
            say(f"rule {rule.id} ({rule.name}) is {'created' if there is None else 'changed'}")
    for objective in left:
        say(f"the objective {objective.name} gets no rule, tailboard check judges it: {'; '.join(objective.reasons)}")
    done = "wanted" if dry_run else "installed"
    say(f"{connection.place}: rules {done}: {len(rules)}; objectives left to tailboard check: {len(left)}")
