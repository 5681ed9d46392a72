"""What shells complete: names of files, and runs, labels and their values of the SQLite store that a call names.

No server is asked and no log is read while somebody types.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click
    from click.shell_completion import CompletionItem

    from ingest.store.answers import Catalogue

TYPED = "ingest.cli words"  # of the call, in the meta of its context
SQLITE = "sqlite:"


def file_names(_context: click.Context, _option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the names of files and folders, as a shell does by itself."""
    from click.shell_completion import CompletionItem

    return [CompletionItem(typed, type="file")]


def run_names(context: click.Context, _option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the name of a run."""
    held = _held(context)
    return _beginning(typed, (record.run for record in held.records)) if held else []


def label_names(context: click.Context, _option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the last of a list of labels."""
    held = _held(context)
    before, comma, last = typed.rpartition(",")
    return _beginning(last, _values(held), before + comma) if held else []


def label_values(context: click.Context, _option: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete LABEL=, then the value of that label."""
    held = _held(context)
    if held is None:
        return []
    name, equals, value = typed.partition("=")
    known = _values(held)
    return _beginning(value, known.get(name, ()), f"{name}=") if equals else _beginning(name, (f"{label}=" for label in known))


def _beginning(typed: str, words: Iterable[str], before: str = "") -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(before + word) for word in sorted(set(words)) if word.startswith(typed)]


def _held(context: click.Context) -> Catalogue | None:
    """Return what the store of a call holds; None where it names files or a server, or there is none."""
    from ingest.core.errors import TailboardError
    from ingest.query.origin import store_at, store_url
    from ingest.store import open_store

    stores = [url for word in context.meta[TYPED] if (url := store_at(word))] or [store_url(None)]
    path = stores[0].removeprefix(SQLITE)
    if path == stores[0] or not os.path.lexists(path):
        return None
    try:
        with open_store(stores[0]) as store:
            return store.catalogue()
    except TailboardError:
        return None


def _values(held: Catalogue) -> dict[str, set[str]]:
    """Return the values of each label that something in a store has."""
    from ingest.core.labels import ASKABLE, label_of

    run_labels = {record.run: record.labels for record in held.records}
    names = {*ASKABLE, *(name for labels in run_labels.values() for name in labels)}
    found = {name: {label_of(stored.series, name, run_labels) for stored in held.series} - {""} for name in names}
    return {name: values for name, values in found.items() if values}
