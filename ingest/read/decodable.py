"""Discovered sources with labels that are Unicode throughout: file names need not be, and no store or page could hold them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from operator import attrgetter

from ingest.core.plain import as_text
from ingest.core.series import LABELS
from ingest.read.sources import Found, Source

labels_of = attrgetter(*LABELS)


def decodable(discovered: Found) -> Found:
    """Return the discovered files with labels, runs and names in accounts that are Unicode throughout; paths stay as they are."""
    labels = {as_text(run): _labels(of_run) for run, of_run in discovered.labels.items()}
    missing = tuple(replace(entry, labels=_labels(entry.labels)) for entry in discovered.missing)
    return replace(discovered, sources=tuple(map(_decodable, discovered.sources)), labels=labels, missing=missing)


def _labels(labels: Mapping[str, str]) -> dict[str, str]:
    return {name: as_text(value) for name, value in labels.items()}


def _decodable(source: Source) -> Source:
    series, account = source.context.series, source.context.account
    account.path = as_text(account.path)
    if "".join(labels_of(series)).isascii():
        return source
    texts = {name: as_text(getattr(series, name)) for name in LABELS}
    if all(getattr(series, name) == text for name, text in texts.items()):
        return source
    return replace(source, context=replace(source.context, series=series.replaced(**texts)))
