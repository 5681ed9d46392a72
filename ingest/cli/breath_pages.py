"""The panel of Snabb's breaths on the page of `compare`: what both runs keep of them, from where their answers came."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from ingest.cli import options
from ingest.cli.origins import READING

if TYPE_CHECKING:
    from pathlib import Path

    from ingest.breaths import Kept
    from ingest.query.question import Question
    from ingest.view.page.panels import Panel


def breath_panels(
    sources: tuple[str, ...],
    named: Sequence[tuple[Path, str]],
    words: Mapping[str, Any],
    sides: Sequence[Sequence[str]],
    question: Question,
) -> list[Panel]:
    """Return the panel of the breaths of two sides (names of runs); none unless both have timelines.

    `sources` are those of the call, `named` its paths with what their runs are called.
    """
    from ingest.query.breath_sources import together
    from ingest.query.overview import literal
    from ingest.view.page.breath_overlay import breath_panel

    found = []
    for names in sides:
        asked = [replace(question, runs=(literal(name),), where={**question.where, "run": literal(name)}) for name in names]
        found.append(together([_kept(sources, named, words, one) for one in asked]))
    panel = breath_panel(*found)
    return [panel] if panel else []


def _kept(sources: tuple[str, ...], named: Sequence[tuple[Path, str]], words: Mapping[str, Any], question: Question) -> Kept:
    from ingest.query.breath_sources import from_files, from_store, together
    from ingest.query.files import Files
    from ingest.store import open_store

    stores, _ = options.split_sources(sources)
    if stores:
        with open_store(stores[0]) as store:
            return from_store(store, question)
    reading = options.read_options(**{name: words[name] for name in READING})
    return together([from_files(Files([path], replace(reading, run=name), words["jobs"]), question) for path, name in named])
