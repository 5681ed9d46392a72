"""How much of the response time was waiting: response and service time of the same windows, and what lies between them."""

from __future__ import annotations

import numpy as np

from ingest.core.errors import InputError
from ingest.core.ranks import Percentile
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer
from ingest.query.table import Table

RESPONSE, SERVICE, WAIT = "response", "service", "wait"


def gap(answer: Answer, percentile: Percentile) -> Table:
    """Return one row per window and group: start_ns, end_ns, labels without kind, service, response, wait, gap (all ns).

    `gap` is response minus service at this percentile: a distance between two curves, not a percentile of the waiting
    (which is `wait`: percentiles do not add up). NaN where one of them is missing or cannot be carried. The answer must be
    grouped by kind; InputError where it holds no response time.
    """
    table = percentiles(answer, Wanted((percentile,)))
    kinds = np.asarray(table.columns["kind"], object)
    if RESPONSE not in set(kinds.tolist()):
        raise InputError("no response time here: logs with tags -rt, or operation logs with --rate, have it")
    names = tuple(name for name in table.labels if name != "kind")
    cells = [np.asarray(table.columns[name], object).tolist() for name in names]
    labels = zip(*cells, strict=True) if names else [()] * len(table)
    spans = zip(table.columns["start_ns"].tolist(), table.columns["end_ns"].tolist(), strict=True)
    keys = [(*span, *group) for span, group in zip(spans, labels, strict=True)]
    places = {key: place for place, key in enumerate(sorted(set(keys)))}
    values = {kind: np.full(len(places), np.nan) for kind in (SERVICE, RESPONSE, WAIT)}
    for key, kind, value in zip(keys, kinds.tolist(), table.columns[percentile.name].tolist(), strict=True):
        if kind in values:
            values[kind][places[key]] = value
    columns: dict[str, object] = {
        "start_ns": np.array([key[0] for key in places], np.int64),
        "end_ns": np.array([key[1] for key in places], np.int64),
    }
    columns |= {name: np.array([key[2 + at] for key in places], object) for at, name in enumerate(names)}
    columns |= {**values, "gap": values[RESPONSE] - values[SERVICE]}
    return Table(columns, names)
