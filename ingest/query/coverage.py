"""What an answer lacks: entries of its sources, how far they move its percentiles, and kinds it says nothing of."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import numpy as np

from ingest.core.coverage import (
    ANY_TIME,
    IN_BOTH,
    MEANS_ALONE,
    NO_LACK,
    OPEN,
    OTHER_KIND,
    UNKNOWN,
    Caveat,
    Missing,
    MissingRows,
    Possible,
    RowWidth,
)
from ingest.core.errors import listed
from ingest.core.intervals import Bool, Int, Intervals
from ingest.core.labels import (
    ASKABLE,
    CORRECTED,
    LAG,
    LAYER,
    OFFSET,
    OUTCOME,
    Group,
    RunLabels,
    Series,
    default_kind,
    fits,
    is_mean,
    kinds_made_of,
    layer_of,
    run_matches,
)
from ingest.core.layout import Float
from ingest.core.quantiles import Percentile, Ranked, means_between, shares_between
from ingest.query.table import Table, groups_in
from ingest.query.windows import Bounds

if TYPE_CHECKING:
    from ingest.core.marks import Noted
    from ingest.query.question import Answer, Question


# What an answer lacks: the entries of its sources, cut at its windows, and how far they move its percentiles.
#
# An entry belongs to a row if its labels can be those of the row and its time overlaps the window's. Where both are sure to lie
# within, all of its samples are the row's; where it only overlaps, or some label is not known, none to all of them are.


ANY_KIND = "*"  # of a file whose rows alone tell their kinds
EARLIER = "before"
AT_ONCE = 1 << 16  # pairs of an entry and a row that are looked at together
NEVER = -(1 << 63)  # before all times
OLD_NOTES = ("bins from 786 us up", "never writes the last partial interval", "samples, all of", "not read: ")
MISSING_HERE = "samples are missing"
# These end the names of columns of the least and the largest possible value, which only tables for people show.
LEAST, MOST = "_least", "_most"  # a largest value of -inf: what is shown is the largest


Named = TypeVar("Named")


class Lack(NamedTuple):
    """An entry of an answer with the labels of its run; `sure` says that the question is known to select all of it."""

    entry: Missing
    sure: bool

    @property
    def caveat(self) -> Caveat:
        """Return what a reader must know of it."""
        return self.entry.caveat


def missing_from(
    entries: Iterable[Missing], question: Question, run_labels: RunLabels, bounds: Mapping[str, Bounds]
) -> tuple[Lack, ...]:
    """Return the entries that a question may select, cut at its `bounds`: from when to when it asks about each run, in ns.

    What two files both hold is counted twice where both are selected: each has an entry of it, with one caveat.
    """
    selected: list[Lack] = []
    for whole in entries:
        if whole.run not in bounds or not run_matches(whole.run, question.runs):
            continue
        entry = _in_range(whole, bounds[whole.run])
        if entry is None or (whole.counted_as and not _told_apart(whole, question)):
            continue
        if entry.counted_within is not None and not _cover(bounds[whole.run], entry.counted_within):
            entry = replace(entry, counted_within=None)
        elif entry.counted_within is not None and question.in_one_window:
            continue
        of_run = run_labels.get(entry.run)
        labels = {**of_run, **entry.labels} if of_run else entry.labels
        asked = {name: _label(labels, name) for name in question.where}
        if all(value is None or _matches(name, value, question.where[name]) for name, value in asked.items()):
            sure = None not in asked.values() and entry is whole
            selected.append(Lack(replace(entry, labels=labels) if of_run else entry, sure))
    files = Counter(_of_both(lack) for lack in selected)
    return tuple(lack for lack in selected if lack.entry.caveat.code != IN_BOTH or files[_of_both(lack)] > 1)


def _of_both(lack: Lack) -> tuple[str, str, str]:
    return lack.entry.run, lack.entry.caveat.subject, lack.entry.caveat.sentence


def _cover(bounds: Bounds, span: tuple[int, int]) -> bool:
    """Return whether the range of a question, None for no bound, covers a time."""
    return (bounds[0] is None or bounds[0] <= span[0]) and (bounds[1] is None or bounds[1] >= span[1])


def widths_asked(rows: Iterable[RowWidth], question: Question, run_labels: RunLabels) -> list[RowWidth]:
    """Return how wide the rows are of the sources that a question may select, of the kinds that it takes of each run."""
    selected = widths_selected(rows, question, run_labels)
    return of_asked_kinds(selected, question, lambda each: (each.labels["run"], each.labels.get("kind", "")))


def caveats_asked(
    caveats: Iterable[Caveat], rows: Iterable[RowWidth], question: Question, run_labels: RunLabels
) -> tuple[Caveat, ...]:
    """Return the caveats but those about logs alone that a question leaves out; `rows` are of all sources, with their paths."""
    if not question.where:
        return tuple(caveats)
    every = list(rows)
    asked = {each.subject for each in widths_selected(every, question, run_labels)}
    others = {each.subject for each in every} - asked
    return tuple(caveat for caveat in caveats if not others.issuperset(caveat.subject.split(", ")))


def widths_selected(rows: Iterable[RowWidth], question: Question, run_labels: RunLabels) -> list[RowWidth]:
    """Return the rows of the sources that a question may select by their labels."""
    selected = []
    for each in rows:
        labels = {**run_labels.get(each.labels["run"], {}), **each.labels}
        asked = ((name, _label(labels, name), glob) for name, glob in question.where.items())
        if run_matches(labels["run"], question.runs) and all(
            value is None or _matches(name, value, glob) for name, value, glob in asked
        ):
            selected.append(each)
    return selected


def of_asked_kinds(sources: list[Named], question: Question, run_and_kind: Callable[[Named], tuple[str, str]]) -> list[Named]:
    """Return the sources whose kinds are asked for, where each shows its kind before it is read (fio's logs do).

    Without a kind asked for it is the default one.
    """
    kinds: dict[str, set[str]] = {}
    for run, kind in map(run_and_kind, sources):
        kinds.setdefault(run, set()).add(kind)
    layers = LAYER in question.by or LAYER in question.where
    if layers or "kind" in question.by or any("" in run_kinds for run_kinds in kinds.values()):
        return sources
    glob = question.where.get("kind")
    taken = {run: run_kinds if glob else {default_kind(run_kinds)} for run, run_kinds in kinds.items()}
    mine = [source for source in sources if run_and_kind(source)[1] in taken[run_and_kind(source)[0]]]
    return mine if not glob else [source for source in mine if fits(run_and_kind(source)[1], glob)] or sources


def _told_apart(entry: Missing, question: Question) -> bool:
    """Return whether a question tells apart what an entry is counted as a whole of, so that some of its rows may lack it."""
    selected = [question.where[name] for name in entry.counted_as if name in question.where]
    left_out = any(not fits(value, question.where.get(name, "*")) for name, value in entry.counted_as.items())
    return left_out if selected else any(name in question.by for name in entry.counted_as)


def _label(labels: Mapping[str, str], name: str) -> str | None:
    """Return a label of what is missing, None where it may be anything."""
    if name == LAYER:
        return None if labels.get("kind") is None else layer_of(labels["kind"])
    if name == OUTCOME:
        return None  # whether what is missing failed
    return labels.get(name, None if name in ASKABLE else "")


def _matches(name: str, value: str, glob: str) -> bool:
    """Return whether a label of what is missing is asked for; with a kind, whether anything that is made of it is."""
    return any(fits(candidate, glob) for candidate in (kinds_made_of(value) if name == "kind" else (value,)))


def _in_range(entry: Missing, bounds: Bounds) -> Missing | None:
    """Return an entry cut at the range of a question: itself where it lies within, None where it lies outside."""
    low, high = entry.span
    from_ns = low if bounds[0] is None else max(low, bounds[0])
    to_ns = high if bounds[1] is None else min(high, bounds[1])
    if (from_ns, to_ns) == (low, high):
        return entry
    return replace(entry, from_ns=from_ns, to_ns=to_ns) if from_ns < to_ns else None


def of_kinds(lacking: Iterable[Lack], taken: Mapping[str, Sequence[str]]) -> tuple[Lack, ...]:
    """Return the entries that may be of the kinds that an answer takes of each run.

    What is missing of a kind is missing of what is made of it, too; how many samples a correction would add is not known.
    """
    kept = []
    for lack in lacking:
        kind, kinds = lack.entry.labels.get("kind"), taken.get(lack.entry.run, ())
        if kind is None:
            kept.append(lack)
            continue
        for own in (own for own in kinds_made_of(kind) if own in kinds):
            number = None if CORRECTED in own else lack.entry.count
            entry = lack.entry if own == kind else replace(lack.entry, labels={**lack.entry.labels, "kind": own}, count=number)
            kept.append(Lack(entry, lack.sure))
    return tuple(kept)


def stored_entries(run: str, accounts: Iterable[Mapping[str, Any]]) -> list[Missing]:
    """Return what the accounts of a run's sources (as plain values) say is missing.

    Of an account that was kept before entries were, what it says in words counts as an entry of unknown extent.
    """
    entries = []
    for account in accounts:
        if "missing" in account:
            entries += [Missing.from_dict(run, plain) for plain in account["missing"].values()]
            continue
        words = [*account.get("rejected", {}), *account.get("repaired", {}), *account.get("notes", ())]
        if account.get("rejected") or any(mark in text for text in words for mark in OLD_NOTES):
            sentence = "was loaded by an earlier version, which did not record missing samples: it rejected rows or found damage"
            remedy = "load it again with --replace to know which windows lack samples"
            entries.append(Missing({"run": run}, None, None, None, 0, None, Caveat(EARLIER, run, sentence, remedy)))
    return entries


def cut(rows: Intervals[Group], answer: Answer) -> MissingRows:
    """Return what the rows of a part of an answer lack."""
    spans = _spans(rows.start_ns, rows.end_ns, answer)
    return cut_at(rows.series, rows.table, *spans, answer.by, answer.missing, counted=rows.completions is None)


def _spans(start_ns: Int, end_ns: Int, answer: Answer) -> tuple[Int, Int]:
    """Return from when to when rows are; one over all of a range has all of it, also what completed after the last row."""
    if answer.step_ns:
        return start_ns, end_ns
    return np.full(len(start_ns), ANY_TIME[0]), np.full(len(end_ns), ANY_TIME[1])


def cut_at(
    series: Int,
    table: Sequence[Group],
    start_ns: Int,
    end_ns: Int,
    by: Sequence[str],
    lacking: Sequence[Lack],
    *,
    counted: bool = True,
) -> MissingRows:
    """Return what windows (start, end] of groups lack; of weights in flight numbers are unknown (not `counted`)."""
    parts: list[tuple[Int, ...]] = []
    rows_of = _rows_of(series, table)
    pairs, number = list[tuple[Lack, bool, Int]](), 0
    for lack in lacking:
        entry = lack.entry
        rows = rows_of(wanted := tuple(_label(entry.labels, name) for name in by))
        if entry.counted_as.keys() & set(by):  # where they are counted they are not missing
            rows = np.setdiff1d(rows, rows_of(tuple(entry.counted_as.get(name) for name in by)))
        pairs.append((lack, lack.sure and None not in wanted, rows))
        number += len(rows)
        if number >= AT_ONCE:
            parts.append(_overlapping(pairs, start_ns, end_ns, counted=counted))
            pairs, number = [], 0
    if number:
        parts.append(_overlapping(pairs, start_ns, end_ns, counted=counted))
    if not any(len(rows) for rows, *_ in parts):
        return NO_LACK
    return MissingRows(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _overlapping(pairs: Sequence[tuple[Lack, bool, Int]], start_ns: Int, end_ns: Int, *, counted: bool) -> tuple[Int, ...]:
    """Return the columns of MissingRows of entries, each with whether it is known to be of its rows, by their labels, alone."""

    def of_pairs(values: Iterable[Any]) -> Int:
        return np.repeat(np.array([*values], np.int64), [len(rows) for _, _, rows in pairs], axis=0)

    entries, rows = [lack.entry for lack, _, _ in pairs], np.concatenate([rows for _, _, rows in pairs])
    start, end = start_ns[rows], end_ns[rows]
    low, high = of_pairs(entry.span for entry in entries).T
    begin, until = of_pairs(entry.counted_within or (NEVER, NEVER) for entry in entries).T
    narrower = of_pairs(NEVER if entry.narrower_ns is None else entry.narrower_ns for entry in entries)
    touched = (start < high) & np.where(low < high, end > low, end >= high) & ((start > begin) | (end < until))
    kept = np.flatnonzero(touched & ((narrower == NEVER) | (end - np.maximum(narrower, 0) < start)))
    inside = (start <= low) & (end >= high) & (of_pairs(known for _, known, _ in pairs) > 0)
    number = of_pairs(UNKNOWN if entry.count is None or not counted else entry.count for entry in entries)
    lowest = of_pairs(entry.low_ns for entry in entries)
    top = of_pairs(OPEN if entry.high_ns is None else entry.high_ns for entry in entries)
    columns = rows, np.where(inside & (number != UNKNOWN), number, 0), number, lowest, top
    return tuple(column[kept] for column in columns)


def _rows_of(series: Int, table: Sequence[Group]) -> Callable[[tuple[str | None, ...]], Int]:
    """Return what finds the rows whose groups have some labels, ascending, None standing for any.

    Each is looked for once, however many entries ask for it.
    """
    order = np.argsort(series, kind="stable")
    first = np.searchsorted(series[order], np.arange(len(table) + 1))

    @cache
    def by_labels(places: tuple[int, ...]) -> dict[tuple[str, ...], list[int]]:
        groups: dict[tuple[str, ...], list[int]] = {}
        for code, key in enumerate(table):
            groups.setdefault(tuple(key[place] for place in places), []).append(code)
        return groups

    @cache
    def rows(wanted: tuple[str | None, ...]) -> Int:
        known = {place: label for place, label in enumerate(wanted) if label is not None}
        codes = by_labels(tuple(known)).get(tuple(known.values()), [])
        picked = [order[first[code] : first[code + 1]] for code in codes]
        if len(picked) == 1:
            return picked[0]
        return np.sort(np.concatenate(picked)) if picked else np.empty(0, np.int64)

    return rows


class Cells(NamedTuple):
    """A percentile of rows: `value` as it is shown, the `least` and the largest (`most`) that it can be, NaN without an interval.

    `most` is inf where there is no upper bound. Where nothing is missing, and all bins are of one layout, all three are equal.
    `there` are the least and the largest that it can be of the samples that are there.
    """

    value: Float
    least: Float
    most: Float
    there: tuple[Float, Float]


class Rows:
    """Rows of a part of an answer with what they lack."""

    def __init__(
        self, rows: Intervals[Group], answer: Answer, *, ranked: Ranked | None = None, interpolate: bool = False
    ) -> None:
        self.rows = rows
        lacking = cut(rows, answer) if answer.missing else NO_LACK
        self.complete: Bool = lacking.complete(len(rows))
        self.lacking = lacking if rows.layout.has_bins else NO_LACK
        self.uncounted: Bool = self.lacking.uncounted(len(rows))
        self._ranked = own = ranked or Ranked(rows)

        def between(picked: Int, ranks: Int) -> tuple[Float, Float]:  # no method: what refers to itself is freed late
            """Return between which values in ns the sample of each rank of some rows lies."""
            low, high = own.between(picked, ranks)
            if not interpolate:
                return low, high
            values, unlike = own.interpolated(picked, ranks), own.mixed[picked]
            return np.where(unlike, low, values), np.where(unlike, high, values)

        self._possible = Possible(own.rows, self.lacking, between, own.ends) if len(self.lacking) else None

    def cells(self, percentile: Percentile, measured: Float) -> Cells:
        """Return a percentile of each row, of which `measured` is that of the samples that are there.

        Where samples are missing in a known number the value that is shown is the least that it can be. In an unknown number they
        make an interval only where they cannot lower it. Bins of several layouts leave an interval where nothing is missing: of
        them the value that is shown is always the most that the samples that are there leave possible.
        """
        there = self.measured(percentile, measured)
        if not len(self.lacking):
            return Cells(measured, *there, there)
        return self._told(measured, *self.limits(percentile, measured), there)

    def _told(self, measured: Float, least: Float, most: Float, there: tuple[Float, Float]) -> Cells:
        """Return what is shown of values, with the least and the largest that they can be where that can be said."""
        given = ~self.uncounted | (least == there[0])
        shown = np.where(given & ~self.complete & ~self._ranked.mixed, least, measured)
        return Cells(shown, np.where(given, least, np.nan), np.where(given, most, np.nan), there)

    def shares(self, threshold_ns: int, measured: Float) -> Cells:
        """Return the share of each row's samples below a threshold, which is `measured` of those that are there.

        What is shown is the least that it can be. Samples that are missing in unknown number make an interval only where they
        cannot lower the share; where they cannot raise it, `most` alone is known.
        """
        samples, there = self.rows.samples, shares_between(self.rows, threshold_ns, measured)
        least, most = (self.lacking.shares_below(threshold_ns, share * samples, samples)[end] for end, share in enumerate(there))
        untouched = self.complete | np.isnan(measured)  # not even by rounding
        least, most = (np.where(untouched, own, bound) for own, bound in zip(there, (least, most), strict=True))
        cells = self._told(measured, least, most, there)
        return cells._replace(most=np.where(most == measured, most, cells.most))

    def means(self, measured: Float) -> Cells:
        """Return the mean of each row, which is `measured` of the samples that are there; by the rule of `cells`.

        The value is that of the samples that are there: only what the mean can be is said beside it.
        """
        there = means_between(self.rows, measured)
        if not len(self.lacking):
            return Cells(measured, *there, there)
        timed = self.rows.samples - self.rows.failures
        least, most = (self.lacking.means(mean, timed)[end] for end, mean in enumerate(there))
        return self._told(measured, least, most, there)._replace(value=measured)

    def measured(self, percentile: Percentile, values: Float) -> tuple[Float, Float]:
        """Return the least and the largest that a percentile of the samples that are there can be, of which `values` is shown."""
        least, most = values.copy(), values.copy()
        unlike = np.flatnonzero(self._ranked.mixed & ~np.isnan(values))
        if len(unlike):
            least[unlike], most[unlike] = self._ranked.between(unlike, percentile.ranks(self._ranked.samples[unlike]))
        return least, most

    def limits(self, percentile: Percentile, measured: Float) -> tuple[Float, Float]:
        """Return the least and the largest value of a percentile of each row: any number of samples where it is unknown.

        Between them lies what bins of several layouts leave open, too. NaN where `measured` is.
        """
        least, most = self.measured(percentile, measured)
        if self._possible is not None:
            low, high = self._possible.between(percentile)
            if percentile.top == 100 * percentile.bottom:  # the samples that are there may have an exact maximum
                low, high = (np.fmax(limit, measured[self._possible.rows]) for limit in (low, high))
            given = ~np.isnan(measured[self._possible.rows])
            picked = self._possible.rows[given]
            least[picked], most[picked] = low[given], high[given]
        return least, most


def with_complete(table: Table, answer: Answer) -> Table:
    """Return a table of percentiles, made without what is missing, that says which rows are complete.

    For entries without a number and for estimates: no percentile becomes a range.
    """
    columns = table.columns
    place: dict[Group, int] = {}
    codes = np.array([place.setdefault(key, len(place)) for key in groups_in(table)], np.int64)
    spans = _spans(columns["start_ns"], columns["end_ns"], answer)
    complete = cut_at(codes, list(place), *spans, answer.by, answer.missing).complete(len(table))
    rewritten: dict[str, Any] = {}
    for name, column in columns.items():
        if name == f"max{MOST}":
            rewritten[name] = np.where(complete, column, np.inf)
        elif name.endswith((LEAST, MOST, "_lo", "_hi")):
            rewritten[name] = np.where(complete, column, np.nan)
        elif name == "exact":
            rewritten |= {"exact": column & complete, "complete": complete}
        elif name != "complete":
            rewritten[name] = column
    return replace(table, columns=rewritten)


def union(several: Iterable[Sequence[Lack]]) -> tuple[Lack, ...]:
    """Return what several answers lack together, each entry once."""
    together: list[Lack] = []
    alike: dict[tuple[Caveat, int, int], list[Lack]] = {}  # of thousands of entries few are compared with each other
    for lacking in several:
        for lack in lacking:
            same = alike.setdefault((lack.entry.caveat, *lack.entry.span), [])
            if lack not in same:
                same.append(lack)
                together.append(lack)
    return tuple(together)


def labelled(lacking: Iterable[Lack], name: str, value: str) -> tuple[Lack, ...]:
    """Return the entries with one label more."""
    return tuple(Lack(replace(lack.entry, labels={**lack.entry.labels, name: value}), lack.sure) for lack in lacking)


def bands(answer: Answer) -> list[Noted]:
    """Return the stretches of time of an answer's windows in which samples are missing, as marks of its runs in order."""
    from ingest.core.marks import in_time_order, noted  # for pages and pictures alone

    parts = [part for part in answer.parts if len(part)]
    if not parts or not answer.missing:
        return []
    first, last = min(int(part.start_ns.min()) for part in parts), max(int(part.end_ns.max()) for part in parts)
    spans: dict[str, list[tuple[int, int]]] = {}
    for lack in answer.missing:
        low, high = lack.entry.span
        if low < last and high > first and lack.entry.narrower_ns is None:
            spans.setdefault(lack.entry.run, []).append((max(low, first), min(high, last)))
    marks = []
    for run, mine in spans.items():
        joined: list[tuple[int, int]] = []
        for low, high in sorted(mine):
            if joined and low <= joined[-1][1]:
                joined[-1] = joined[-1][0], max(high, joined[-1][1])
            else:
                joined.append((low, high))
        marks += [noted(run, low, MISSING_HERE, high) for low, high in joined]
    return sorted(marks, key=in_time_order)


def caveats_of(lacking: Iterable[Lack], others: Iterable[Caveat] = ()) -> tuple[Caveat, ...]:
    """Return the caveats of an answer: those of its runs as a whole, then of other codes those of entries, subjects joined."""
    whole = tuple(others)
    codes = {caveat.code for caveat in whole}
    return (*whole, *(caveat for caveat in folded(lack.caveat for lack in lacking) if caveat.code not in codes))


def folded(caveats: Iterable[Caveat]) -> tuple[Caveat, ...]:
    """Return caveats with the subjects of those together that are alike otherwise."""
    together: dict[tuple[str, str, str], dict[str, None]] = {}
    for caveat in caveats:
        together.setdefault((caveat.code, caveat.sentence, caveat.remedy), {})[caveat.subject] = None
    return tuple(
        Caveat(code, listed(sorted(subjects)), sentence, remedy) for (code, sentence, remedy), subjects in together.items()
    )


# Which of the series of a selection an answer is made of, and which jobs it says nothing of: kinds are never added up.


Kinds = Mapping[str, Collection[str]]  # by run


def taken_of(series: Iterable[Series], there: Kinds, taken: Kinds) -> list[Series]:
    """Return the series of the kinds that are taken, of those that are there: as they are, or made of them, where that is there.

    Files whose kind only their rows tell (ANY_KIND) may be, whatever rows of no kind there are.
    """
    return [own for own in series if _is_taken(own.kind, there.get(own.run, ()), taken.get(own.run, ()))]


def _is_taken(kind: str, there: Collection[str], taken: Collection[str]) -> bool:
    if kind == ANY_KIND or (not kind and "" not in there):
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
