"""The panel of Snabb's breaths on the page of `compare`: what both runs keep of them, from where their answers came."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from ingest.cli.shared.sources import split_sources
from ingest.cli.shared.values import read_options

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.cli.compare import Options
    from ingest.core.breaths import Kept
    from ingest.query.question import Question
    from ingest.view.page.finished.page import Panel


def breath_panels(
    sources: tuple[str, ...],
    named: Sequence[tuple[Path, str]],
    options: Options,
    sides: Sequence[Sequence[str]],
    question: Question,
) -> list[Panel]:
    """Return the panel of the breaths of two sides (names of runs); none unless both have timelines.

    `sources` are those of the call, `named` its paths with what their runs are called.
    """
    from ingest.query.breath_sources import together
    from ingest.view.page.finished.breath_overlay import breath_panel

    joined = []
    for names in sides:
        asked = [question.about([name]) for name in names]
        joined.append(together([_kept(sources, named, options, asked_of_run) for asked_of_run in asked]))
    panel = breath_panel(*joined)
    return [panel] if panel else []


def _kept(sources: tuple[str, ...], named: Sequence[tuple[Path, str]], options: Options, question: Question) -> Kept:
    from ingest.query.breath_sources import from_files, together
    from ingest.query.files import Files
    from ingest.store import open_store
    from ingest.store.breaths import from_store

    stores, _ = split_sources(sources)
    if stores:
        with open_store(stores[0]) as store:
            return from_store(store, question)
    reading = read_options(options)
    return together([from_files(Files([path], replace(reading, run=name), options.jobs), question) for path, name in named])
