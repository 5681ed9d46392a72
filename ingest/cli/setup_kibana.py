"""setup of Kibana: dashboards imported, alert rules installed on request, shown object by object."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ingest.cli.shared.say import say
from ingest.core.errors import StoreError, UsageError, counted

if TYPE_CHECKING:
    from ingest.cli.setup import Options
    from ingest.core.objective import Objective
    from ingest.view.kibana.connection import Connection
    from ingest.view.kibana.importing import Account
    from ingest.view.kibana.rules import Left, Rule
    from ingest.view.kibana.saved_objects import SavedObject


@dataclass(frozen=True, slots=True)
class Target:
    """Which space of which Kibana is set up, for the indices of a prefix, with rules for which objectives (None: no rules)."""

    url: str
    space: str
    prefix: str
    objectives: tuple[Objective, ...] | None


def target_of(options: Options, prefix: str) -> Target | None:
    """Return what a call wants of Kibana, None where they do not name it. Raises UsageError, InputError."""
    from ingest.objectives.objectives import read_objectives
    from ingest.view.kibana.address import DEFAULT_SPACE, checked_space, checked_url

    if not options.kibana:
        for option in ("space", "rules"):
            if getattr(options, option):
                raise UsageError(f"--{option} is about Kibana: give --kibana http://HOST:5601, too")
        return None
    # Labels of runs are not known here: rules for objectives that name them are left to check, which knows.
    objectives = read_objectives(Path(options.rules), run_labels=None) if options.rules else None
    return Target(checked_url(options.kibana), checked_space(options.space or DEFAULT_SPACE), prefix, objectives)


def set_up(target: Target, *, dry_run: bool) -> None:
    """Import all saved objects and install the rules; StoreError names each object that Kibana refuses."""
    from ingest.view.kibana.connection import Connection
    from ingest.view.kibana.importing import import_objects, shipped

    objects = shipped(target.prefix)
    connection = Connection(target.url, target.space, tell=_line)
    connection.open()
    try:
        if dry_run:
            _show_import(connection, objects)
        else:
            _show_imported(connection, import_objects(connection, objects))
        if target.objectives is not None:
            _set_up_rules(connection, target, target.objectives, dry_run=dry_run)
    finally:
        connection.close()


def _show_import(connection: Connection, objects: Sequence[SavedObject]) -> None:
    from urllib.parse import urlencode

    from ingest.view.kibana.importing import FILE_NAME, PATH, import_body, import_words

    for saved in objects:
        _line(f"{saved.type} {saved.id} ({saved.title}) would be imported")
    query = urlencode({name: str(value).lower() for name, value in import_words(connection.space).items()})
    size = len(import_body(objects)[0])
    _line(f"POST {connection.place}{PATH}?{query} would send {counted(len(objects), 'object')} as {FILE_NAME}, {size:,} bytes")


def _show_imported(connection: Connection, account: Account) -> None:
    for saved in account.imported:
        elsewhere = f" as {saved.destination}" if saved.destination else ""
        _line(f"{saved.type} {saved.id} ({saved.title}) is {'overwritten' if saved.overwritten else 'created'}{elsewhere}")
    for text in account.warnings:
        _line(f"Kibana warns: {text}")
    if account.failed:
        for bad in account.failed:
            _line(f"{bad.type} {bad.id} ({bad.title}) is refused: {bad.reason}")
        first = account.failed[0]
        done = f"{len(account.imported)} others are imported" if account.imported else "nothing is imported"
        more = f" and {len(account.failed) - 1} more" if len(account.failed) > 1 else ""
        raise StoreError(f"{connection.place} refuses {first.type} {first.id}{more}: {first.reason}; {done}")
    overwritten = sum(saved.overwritten for saved in account.imported)
    _line(
        f"{connection.place} (Kibana {connection.version}): {counted(len(account.imported), 'object')} imported, "
        f"{overwritten} of them overwritten; look at {connection.place}/app/dashboards"
    )


def _set_up_rules(connection: Connection, target: Target, objectives: Sequence[Objective], *, dry_run: bool) -> None:
    from ingest.view.kibana.rules import PATH, is_as_wanted, put_rule, rules_for, stored_rule

    rules, left = rules_for(objectives, target.prefix, target.space, connection.version)
    for rule in rules:
        there = stored_rule(connection, rule)
        if there is not None and is_as_wanted(rule, there):
            _line(f"rule {rule.id} ({rule.name}) is there: nothing to change")
            continue
        if dry_run:
            _show_rule(rule, f"{'POST' if there is None else 'PUT'} {connection.place}{PATH}{rule.id}")
            continue
        put_rule(connection, rule, there)
        _line(f"rule {rule.id} ({rule.name}) is {'created' if there is None else 'changed'}")
    _show_left(left)
    done = "wanted" if dry_run else "installed"
    _line(f"{connection.place}: rules {done}: {len(rules)}; objectives left to tailboard check: {len(left)}")


def _show_rule(rule: Rule, request: str) -> None:
    _line(f"{request} would send the rule {rule.name}")
    for text in rule.esql.splitlines():
        _line(f"    {text}")


def _show_left(left: Sequence[Left]) -> None:
    for objective in left:
        _line(f"the objective {objective.name} gets no rule, tailboard check judges it: {'; '.join(objective.reasons)}")


def _line(text: str) -> None:
    say(text)
