"""What was found, with labels that are Unicode throughout: names of files need not be, and no store or page could hold them."""

from __future__ import annotations

from dataclasses import replace

from ingest.core.plain import as_text
from ingest.core.series import LABELS
from ingest.read.sources import Found, Source


def decodable(found: Found) -> Found:
    """Return what was found with labels, runs and names in accounts that are Unicode throughout; paths stay as they are."""
    labels = {as_text(run): {name: as_text(value) for name, value in told.items()} for run, told in found.labels.items()}
    missing = tuple(replace(one, labels={name: as_text(value) for name, value in one.labels.items()}) for one in found.missing)
    return replace(found, sources=tuple(map(_decodable, found.sources)), labels=labels, missing=missing)


def _decodable(source: Source) -> Source:
    series, account = source.context.series, source.context.account
    account.path = as_text(account.path)
    told = {name: as_text(getattr(series, name)) for name in LABELS}
    if all(getattr(series, name) == text for name, text in told.items()):
        return source
    return replace(source, context=replace(source.context, series=series.replaced(**told)))
