"""The store that a command writes to or manages, and which of its runs are chosen."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from ingest.cli.shared.say import say
from ingest.cli.shared.sources import store_url
from ingest.core.errors import InputError
from ingest.core.nearest import choices

if TYPE_CHECKING:
    from ingest.store import RunRecord, Store

store_option = click.option("--store", metavar="URL", help="Store to use [default: $TAILBOARD_STORE, else sqlite:tailboard.db].")


def opened_store(url: str | None, *, write: bool = False) -> Store:
    """Return the store that --store names, else the default one."""
    from ingest.store import open_store

    return open_store(store_url(url), write=write)


@contextmanager
def letters_named(store: Store) -> Iterator[None]:
    """Where the code inside fails, say which file holds the documents that the server has refused before."""
    try:
        yield
    except BaseException:
        refused, sentence = store.refusals()
        if refused:
            say(sentence)
        raise


def chosen(store: Store, globs: tuple[str, ...]) -> list[RunRecord]:
    """Return the records of the runs that globs select; InputError where there is none."""
    from ingest.core.series import run_matches

    records = store.runs()
    matching = [record for record in records if run_matches(record.run, globs)]
    if globs and not matching:
        raise InputError(f"no run matches {' '.join(globs)}: {choices(globs[0], (record.run for record in records))}")
    return matching
