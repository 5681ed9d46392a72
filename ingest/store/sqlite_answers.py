"""How a SQLite store answers: from merged rollups where they can, else from documents."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from ingest.documents import unpack
from ingest.errors import InputError, StoreError, UsageError, listed
from ingest.grid import coarsened
from ingest.intervals import Exact, Intervals, Sum, merged
from ingest.layout import parse_layout
from ingest.query.files import spanned
from ingest.query.question import ALL, AUTO, Answer, Key, Question, auto_step, check_labels, finish
from ingest.series import IN_FLIGHT, Group, Series, run_matches
from ingest.store.documents_read import StoredSeries, stored_series, windows_of
from ingest.store.records import COMPLETE, UNKNOWN_ZERO, RunRecord
from ingest.store.rollups import CLUSTER, HOST, WHOLE_RUN, rollup_steps
from ingest.timing import format_duration

SERIES_A_SHARE = 8
ROLLUP_LABELS = {"run", "host", "op", "kind"}
SPAN = "SELECT min(start_ns), max(end_ns) FROM rollups WHERE run = ? AND step_ns = ?"


@dataclass(frozen=True, slots=True)
class Plan:
    """From where one run is answered: rollups of a scope and step, or documents."""

    record: RunRecord
    rollup_step: int | None
    begin_ns: int | None
    end_ns: int | None


def answer_from(db: sqlite3.Connection, records: Sequence[RunRecord], question: Question) -> Answer:
    """Return the merged windows that a question asks for; the same numbers as from the documents, by whatever way."""
    if not records:
        raise StoreError("the store holds no run yet: tailboard load PATH --run NAME")
    labels = {record.run: dict(record.labels) for record in records}
    check_labels(question, labels)
    chosen = [record for record in records if run_matches(record.run, question.runs)]
    if not chosen:
        raise InputError(f"no run matches {' '.join(question.runs)}; there are {listed(record.run for record in records)}")
    if question.attribution == IN_FLIGHT and not any(record.attribution == IN_FLIGHT for record in chosen):
        raise UsageError("these runs were loaded by completion: load them with --attribution in-flight to ask for it")
    step = _step(db, chosen, question)
    key = question.key(labels)
    parts: list[Intervals] = []
    series, ways = 0, set()
    for record in chosen:
        plan = _plan(record, question, step, labels)
        ways.add("rollups" if plan.rollup_step is not None else "documents")
        stored = [one for one in stored_series(db, [record.run]) if key(one.series) is not None]
        series += len(stored)
        for members in _shares(stored, key) if plan.rollup_step is None else [stored]:
            total = Sum()
            for part in _windows(db, plan, question, key, members):
                total.add(merged([coarsened(part, step)]) if step else part)
            parts += total.parts()
    if not step:
        whole = question.begin is None and question.end is None
        parts = spanned(parts, _reach(db, chosen, key) if whole else None)
    facts = Answer(
        parts=(),
        by=question.by,
        step_ns=step,
        kind="",
        runs=tuple(record.run for record in chosen),
        run_start_ns={record.run: record.start_ns for record in chosen},
        relative=all(record.zero == UNKNOWN_ZERO for record in chosen),
        series=series,
        warnings=tuple(_warnings(db, chosen)),
        answered_from=" and ".join(sorted(ways)),
    )
    return finish(parts, question, facts)


def _reach(db: sqlite3.Connection, records: Sequence[RunRecord], key: Key) -> tuple[int, int] | None:
    """Return from when to when the selected series reach, before they were cut into windows."""
    stored = [one for one in stored_series(db, [record.run for record in records]) if key(one.series) is not None]
    known = [(one.first_ns, one.last_ns) for one in stored if one.first_ns is not None and one.last_ns is not None]
    return (min(first for first, _ in known), max(last for _, last in known)) if known else None


def windows_from(db: sqlite3.Connection, records: Sequence[RunRecord], question: Question) -> Iterator[Intervals]:
    """Yield the selected windows at the stored step under the question's groups, in bounded batches."""
    labels = {record.run: dict(record.labels) for record in records}
    check_labels(question, labels)
    key = question.key(labels)
    for record in records:
        if run_matches(record.run, question.runs):
            plan = replace(_plan(record, question, record.step_ns, labels), rollup_step=None)
            stored = [one for one in stored_series(db, [record.run]) if key(one.series) is not None]
            yield from _windows(db, plan, question, key, stored)


def facts_from(db: sqlite3.Connection, records: Sequence[RunRecord], answer: Answer) -> list[tuple[str, str]]:
    """Return (name, value) pairs about the runs of an answer."""
    chosen = [record for record in records if record.run in answer.runs]
    stored = stored_series(db, answer.runs)
    sources, rows = 0, 0
    for record in chosen:
        for (text,) in db.execute("SELECT account FROM sources WHERE run = ?", (record.run,)):
            sources, rows = sources + 1, rows + int(json.loads(text).get("rows", 0))
    hosts = sorted({one.series.host for one in stored} - {""})
    return [
        ("Sources", f"{sources} files, {rows:,} rows"),
        ("Hosts", ", ".join(hosts) or "not named"),
        ("Time zero from", ", ".join(sorted({record.zero for record in chosen}))),
        ("Stored step", ", ".join(sorted({format_duration(record.step_ns) for record in chosen}))),
        ("Loaded", ", ".join(sorted({record.loaded for record in chosen}))),
        *((name, value) for record in chosen for name, value in sorted(record.labels.items()) if len(chosen) == 1),
    ]


def _step(db: sqlite3.Connection, records: Sequence[RunRecord], question: Question) -> int:
    """Return the query step in ns, 0 for the whole range; UsageError unless it is a multiple of every stored step."""
    if question.step == ALL:
        return 0
    stored = int(np.lcm.reduce([record.step_ns for record in records]))
    if question.step == AUTO:
        spans = [db.execute(SPAN, (record.run, WHOLE_RUN)).fetchone() for record in records]
        known = [span for span in spans if span[0] is not None]
        return auto_step(min((s[0] for s in known), default=0), max((s[1] for s in known), default=0), stored)
    step = int(question.step)
    if step % stored:
        raise UsageError(f"a step of {format_duration(step)} is no multiple of the stored step {format_duration(stored)}")
    return step


def _plan(record: RunRecord, question: Question, step: int, labels: dict[str, dict[str, str]]) -> Plan:
    begin = question.begin.epoch_ns(record.start_ns) if question.begin else None
    end = question.end.epoch_ns(record.start_ns) if question.end else None
    asked = {*question.by, *question.where} - set(labels[record.run])
    plan = Plan(record, None, begin, end)
    if record.state != COMPLETE or not asked <= ROLLUP_LABELS:
        return plan
    fits = [
        kept
        for kept in rollup_steps(record.step_ns)
        if (kept == WHOLE_RUN and step == 0 and begin is None and end is None)
        or (kept and step % kept == 0 and (begin or 0) % kept == 0 and (end or 0) % kept == 0)
        or (kept == record.step_ns)
    ]
    best = WHOLE_RUN if WHOLE_RUN in fits else max(fits)
    return Plan(record, best, begin, end)


def _shares(stored: Sequence[StoredSeries], key: Key) -> Iterator[list[StoredSeries]]:
    """Yield the series in shares that have no group in common, so that each share can be summed on its own."""
    groups: dict[Group | None, list[StoredSeries]] = {}
    for one in stored:
        groups.setdefault(key(one.series), []).append(one)
    share: list[StoredSeries] = []
    for members in groups.values():
        share += members
        if len(share) >= SERIES_A_SHARE:
            yield share
            share = []
    if share:
        yield share


def _windows(
    db: sqlite3.Connection, plan: Plan, question: Question, key: Key, stored: Sequence[StoredSeries]
) -> Iterator[Intervals]:
    """Yield the windows of a run's series under the question's groups, from rollups or documents as planned."""
    if plan.rollup_step is None:
        windows = windows_of(db, stored, plan.record.step_ns, plan.begin_ns, plan.end_ns)
    else:
        windows = _rollups(db, plan, HOST if "host" in question.by or "host" in question.where else CLUSTER)
    for part in windows:
        yield part.relabelled(key)


def _rollups(db: sqlite3.Connection, plan: Plan, scope: str) -> Iterator[Intervals]:
    step = plan.rollup_step or 0
    query = (
        "SELECT op, kind, host, layout, start_ns, end_ns, coding, bins, sum, min, max, exact, count FROM rollups "
        "WHERE run = ? AND scope = ? AND step_ns = ? AND start_ns >= ? AND start_ns < ?"
    )
    low = -(2**62) if plan.begin_ns is None else plan.begin_ns // (step or 1) * (step or 1)
    high = 2**62 if plan.end_ns is None else plan.end_ns
    rows = db.execute(query, (plan.record.run, scope, step, low, high)).fetchall()
    buckets: dict[tuple[str, bool], list[tuple[object, ...]]] = {}
    for row in rows:
        buckets.setdefault((row[3], str(row[1]).endswith(IN_FLIGHT)), []).append(row)
    for (layout, weighted), bucket in buckets.items():
        op, kind, host, _, start, end, coding, bins, total, least, most, exact, count = zip(*bucket, strict=True)
        table: dict[Series, int] = {}
        codes = [
            table.setdefault(Series(run=plan.record.run, host=h, op=o, kind=k), len(table))
            for o, k, h in zip(op, kind, host, strict=True)
        ]
        indptr, bin_numbers, counts = unpack(np.array(coding, np.int64), bins)
        known = np.array(exact, np.bool_)
        sums = np.array([value or 0 for value in total], np.int64)
        values = Exact(np.array(least, np.int64), np.array(most, np.int64), sums, known)
        yield Intervals(
            layout=parse_layout(layout),
            table=tuple(table),
            series=np.array(codes, np.int64),
            start_ns=np.array(start, np.int64),
            end_ns=np.array(end, np.int64),
            indptr=indptr,
            bins=bin_numbers,
            counts=counts,
            exact=values if known.any() else None,
            completions=np.array(count, np.int64) if weighted else None,
        )


def _warnings(db: sqlite3.Connection, records: Sequence[RunRecord]) -> Iterator[str]:
    """Yield the sentences that a reader of the numbers must see: unfinished loads, repairs, rejects, saturation."""
    for record in records:
        if record.state != COMPLETE:
            yield f"the load of {record.run} was cut off: run it again to complete it"
    counted: dict[tuple[str, str], int] = {}
    saturated = 0
    for record in records:
        for (text,) in db.execute("SELECT account FROM sources WHERE run = ?", (record.run,)):
            account = json.loads(text)
            saturated += account.get("saturated", 0)
            for action in ("repaired", "rejected"):
                for reason, count in account.get(action, {}).items():
                    counted[action, reason] = counted.get((action, reason), 0) + count
    for (action, reason), count in sorted(counted.items()):
        yield f"{count} rows {action}: {reason}"
    if saturated:
        yield f"{saturated} samples lie in the last bin: at least its lower edge, true values unknown"
