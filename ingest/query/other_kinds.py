"""Which of the series of a selection an answer is made of, and which jobs it says nothing of: kinds are never added up."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from ingest.core.errors import listed
from ingest.core.kinds_held import MEANS_ALONE, OTHER_KIND
from ingest.core.series import LAG, OFFSET, Series, is_mean, kinds_made_of, layer_of
from ingest.query.missing import Lack

Kinds = Mapping[str, Collection[str]]  # by run


def taken_of(series: Iterable[Series], there: Kinds, taken: Kinds) -> list[Series]:
    """Return the series of the kinds that are taken, of those that are there: as they are, or made of them, where that is there.

    Files whose kind only their rows tell may be.
    """
    return [own for own in series if _is_taken(own.kind, there.get(own.run, ()), taken.get(own.run, ()))]


def _is_taken(kind: str, there: Collection[str], taken: Collection[str]) -> bool:
    if not kind and "" not in there:
        return True
    return next((made for made in kinds_made_of(kind) if made in there), kind) in taken


def left_out(selected: Iterable[Series], there: Kinds, taken: Kinds, missing: Sequence[Lack]) -> tuple[str, ...]:
    """Return sentences on jobs of a selection of which an answer holds nothing, as they have other kinds than it takes.

    Lags are about no operation. Other layers, means, and jobs that are missing by these kinds have sentences of their own.
    """
    known = {lack.entry.caveat.subject for lack in missing if lack.entry.caveat.code in (OTHER_KIND, MEANS_ALONE)}
    of_runs = [own for own in selected if own.run in taken]
    shown = set(map(_job, taken_of(of_runs, there, taken)))
    layers = {layer_of(kind) for kinds in taken.values() for kind in kinds}
    left: dict[str, set[str]] = {}
    for own in of_runs:
        kind, name = own.kind, own.called or "-"
        told_elsewhere = name in known or layer_of(kind) not in layers or kind in (LAG, OFFSET) or is_mean(kind)
        if _job(own) not in shown and not told_elsewhere:
            left.setdefault(kind, set()).add(name)
    return tuple(
        f"{listed(sorted(names))}: {f'{kind} latency' if kind else 'latency of no named kind'} is not in these numbers; "
        "--by kind shows it, too"
        for kind, names in sorted(left.items())
    )


def _job(series: Series) -> tuple[str, ...]:
    return series.run, series.host, series.volume, series.job, "" if series.job else series.process  # a log's own name, of fio
