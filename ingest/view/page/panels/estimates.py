"""What averaging would have said, in the report: the exact percentile beside the usual wrong ways; estimates.js draws it.

It is worked out for the whole run from what the page holds of threads anyway, in their windows: the mean of the percentiles of
threads and operations, and, where the page has bins of threads, percentiles of their means. CBT's way is shown where each job
has a `_clat` log, as long as these are quickly read. There is no panel where nothing is off by more than LEAST.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ingest.core.labels import default_kind
from ingest.core.layout import Float
from ingest.core.quantiles import COMMON, Percentile, extremes, parse_percentiles
from ingest.query.estimates import (
    CBT,
    MEAN_OF_MEANS,
    MEAN_OF_PERCENTILES,
    Places,
    groups_of,
    mean_of_percentiles,
    percentiles_of_means,
    relative,
)
from ingest.query.origin import LOGS, Origin
from ingest.query.overview import Overview
from ingest.query.percentiles import Wanted, percentiles
from ingest.query.question import Answer, Question
from ingest.query.table import Table
from ingest.query.windows import regrouped, widened
from ingest.view.page.template import AFTER_DISTRIBUTION, Section
from ingest.view.specs import derived
from ingest.view.vega import MS

if TYPE_CHECKING:
    from ingest.query.files import Files

LEAST = 0.05
MOST_READ = 1 << 26  # bytes of logs that are read for CBT's way: a second or two
OF_TAILS = parse_percentiles("50,99")  # what thinned rows still have
LABELS = {MEAN_OF_PERCENTILES: "mean of {}", MEAN_OF_MEANS: "{} of means", CBT: "CBT"}
NAME = "estimates"


def sections(runs: Sequence[Overview], origin: Origin, question: Question) -> list[Section]:
    """Return the section where an estimate of any run is off; `origin` is where the runs come from."""
    contents = [_content(run, origin, question) for run in runs]
    worst = max((float(content.pop("worst")) for content in contents), default=0.0)
    if worst < LEAST:
        return []
    return [Section(NAME, AFTER_DISTRIBUTION, ("panels/estimates.js",), contents, {NAME: derived("percentiles-wide")})]


def _content(run: Overview, origin: Origin, question: Question) -> dict[str, Any]:
    """Return what the page shows of a run: of each percentile the exact values and those of every estimator, null for none."""
    nothing = {"kind": "", "p": {}, "worst": 0.0}
    exact = _exact(run)
    if exact is None:
        return nothing
    kind, answer = exact
    wanted = OF_TAILS if run.thread_tails is not None else COMMON
    table = percentiles(answer, Wanted(wanted))
    table = table.take(np.flatnonzero(table.columns["kind"] == kind))
    estimates = estimates_of(run, answer, table, wanted)
    logs = origin.offers.get(LOGS)
    if logs is not None:
        estimates |= _of_cbt(logs, run, question, answer, table, wanted)
    errors = [
        relative(values[percentile.name], table.columns[percentile.name])
        for values in estimates.values()
        for percentile in wanted
    ]
    return {
        "kind": kind,
        "step": answer.step_ns / MS,
        "t": [int(start) / MS for start in table.columns["start_ns"]],
        "n": [int(count) for count in table.columns["count"]],
        "series": len({key for part in run.threads.parts for key in part.table if key[-1] == kind}),
        "p": {percentile.text: _lines(percentile.name, table, estimates) for percentile in wanted},
        "worst": max((float(np.nanmax(np.abs(error))) for error in errors if not np.isnan(error).all()), default=0.0),
    }


def _exact(run: Overview) -> tuple[str, Answer] | None:
    """Return the default kind of a run, and its cluster in the windows of its threads; None where there is nothing to compare."""
    step, cluster = run.threads.step_ns, run.cluster
    if not step or not cluster.step_ns or step % cluster.step_ns or cluster.weights is not None:
        return None
    whole = regrouped(cluster, ("kind",))
    parts = whole.parts if step == cluster.step_ns else tuple(widened(whole.parts, step))
    kinds = {key[0] for part in parts for key in part.table}
    return default_kind(kinds), replace(whole, parts=parts, step_ns=step)


def estimates_of(run: Overview, answer: Answer, table: Table, wanted: Sequence[Percentile]) -> dict[str, Mapping[str, Float]]:
    """Return what averages of the threads of a run say of each row of a table of its kinds."""
    places = Places(table, answer.step_ns)
    estimates: dict[str, Mapping[str, Float]] = {}
    estimates[MEAN_OF_PERCENTILES] = mean_of_percentiles(run.threads, answer.by, places, wanted)
    if run.thread_tails is not None:
        return estimates
    at, means = [np.zeros(0, np.int64)], [np.zeros(0)]
    for part in run.threads.parts:
        rows = part.take(np.flatnonzero(part.samples > 0))
        where = places.rows(groups_of(rows, run.threads.by, answer.by), rows.series, rows.start_ns)
        kept = np.flatnonzero(where >= 0)
        at.append(where[kept])
        means.append(extremes(rows)[2][kept])
    estimates[MEAN_OF_MEANS] = percentiles_of_means(np.concatenate(at), np.concatenate(means), places.size, wanted)
    return estimates


def _of_cbt(
    files: Files, run: Overview, question: Question, answer: Answer, table: Table, wanted: Sequence[Percentile]
) -> dict[str, Mapping[str, Float]]:
    from ingest.query.estimates import cbt, effort

    asked = replace(question.about(run.cluster.runs), by=(), step=answer.step_ns or "all", force=True)
    size = effort(files, asked)
    if size is None or size > MOST_READ:
        return {}
    return {CBT: cbt(files, asked, answer, table, Places(table, answer.step_ns), wanted).columns}


def _lines(name: str, table: Table, values_of: Mapping[str, Mapping[str, Float]]) -> dict[str, list[int | None]]:
    estimates = {LABELS[estimator].format(name): values[name] for estimator, values in values_of.items()}
    columns = {"exact": table.columns[name], **estimates}
    return {label: [None if np.isnan(value) else round(float(value)) for value in values] for label, values in columns.items()}
