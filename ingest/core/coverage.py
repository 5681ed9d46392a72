"""What numbers lack: samples that no source holds, kinds that only some jobs have, and the caveats of a reader.

What numbers lack: samples that completed and that no source holds, and the percentiles that are possible with them.

    fio counts 1,200 reads, the bins of its log hold 876: 324 of 786 us or more are in none
    Missing(labels={host, job, op read, ...}, from 10:00:00, to 10:00:03, count 324, low 786,432 ns, high 103,743,443 ns)

A reader makes such an entry, the account of its source keeps it, and an answer cuts it at its windows (`query/coverage.py`). A
percentile is then what it is with all missing samples at the bottom of their range, and with all at the top: `Possible`.

What jobs of a run lack of each other: latencies of a kind that some have as histograms, and others do not.

    h1    completion, total        an answer about the run takes one kind, by default total
    h2    completion               so it is about h1 alone: h2 is missing from it

Which jobs there are is known once all files are found; a store learns it load by load. So a source tells the kinds of its job in
its account, and this one rule is asked of all that are there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ingest.core.errors import as_text, counted
from ingest.core.grid import MS
from ingest.core.intervals import MOST_SAMPLES, Exact, Int, Intervals, distinct, gather, summed
from ingest.core.labels import LABELS, MEAN, Series, default_kind, is_mean
from ingest.core.quantiles import COMMON, INT64_MAX, Percentile
from ingest.core.units import fine_latency, format_duration
from ingest.core.values import Value

# What a reader of numbers must know beside them: one value for files, stores, tables, pages and programs.


CAVEAT_WORDS = ("code", "subject", "sentence", "remedy")
MOST_ALIKE = 4  # sentences of one code and remedy that are all shown


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Caveat(Value):
    """What a reader of the numbers must know: a word for programs, the file or run it is about, a sentence, what to do."""

    code: str
    subject: str
    sentence: str
    remedy: str = ""

    def __str__(self) -> str:
        return f"{self.subject}: {self.sentence}" + (f"; {self.remedy}" if self.remedy else "")

    def to_dict(self) -> dict[str, str]:
        """Return the caveat as plain values, as `from_dict` takes them."""
        return {name: as_text(getattr(self, name)) for name in CAVEAT_WORDS}  # stores hold no bytes of names that are no UTF-8

    @staticmethod
    def from_dict(stored: Mapping[str, str]) -> Caveat:
        """Return the caveat that `to_dict` gave."""
        return Caveat(stored["code"], stored["subject"], stored["sentence"], stored.get("remedy", ""))


def sentences(caveats: Iterable[Caveat]) -> tuple[str, ...]:
    """Return the caveats as people read them, each once; of many of one code and remedy the first, and how many are like it."""
    alike: dict[tuple[str, str], list[Caveat]] = {}
    for caveat in dict.fromkeys(caveats):
        alike.setdefault((caveat.code, caveat.remedy), []).append(caveat)
    said = []
    for first, *others in alike.values():
        many = len(others) >= MOST_ALIKE
        shown = replace(first, sentence=f"{first.sentence} ({len(others)} more like this)") if many else first
        said += [str(shown), *(() if many else map(str, others))]
    return tuple(dict.fromkeys(said))


def in_last_bin(samples: int) -> str:
    """Return the sentence on samples of which only the least possible value is known."""
    return f"{counted(samples, 'sample lies', 'samples lie')} in the last bin: at least its lower edge, true values unknown"


OPEN = INT64_MAX  # as the highest possible latency in ns: nothing is known of it
UNKNOWN = -1  # as the number of samples
ANY_TIME = (-INT64_MAX, INT64_MAX)
ONLY_IN_ROWS = ("op", "kind")
ABSENT_CLIENT, EMPTY_LOG = "client-without-logs", "log-without-rows"
FEWER, MORE, REFUSED_FILE = "short-log", "more-than-counted", "refused"
AGAIN, ALL_LOGS = "copy the log again", "keep the logs of all jobs in one folder"
SEE_INSPECT = "tailboard inspect shows more"
OF_LOG = ("host", "volume", "job", "process")
MOST_MISSING = MOST_SAMPLES >> 10  # of one entry: many are added up in int64
PLAIN_NAMES = ("from_ns", "to_ns", "count", "low_ns", "high_ns")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Missing(Value):
    """Samples that completed in (from, to] and that nothing holds.

    `labels` are those that are known; any other may be anything. `from_ns` and `to_ns` are on the clock of the source's rows,
    None for any time of the run. `count` None is unknown. Each sample lies between `low_ns` and `high_ns`: None for no bound.
    What a damaged file states beyond MOST_MISSING samples or 2^63 ns says nothing.

    Samples that are `counted_as` of some labels, as only what several jobs or operations did together is known, are missing from
    rows that tell these labels apart, and from no other. Samples that are `counted_within` a time (from, to in ns), as only how
    many there were in all of it is known, are missing from rows that do not cover it. With `narrower_ns` they are missing from
    windows narrower than that alone.
    """

    labels: Mapping[str, str]
    from_ns: int | None
    to_ns: int | None
    count: int | None
    low_ns: int
    high_ns: int | None
    caveat: Caveat
    counted_as: Mapping[str, str] = field(default_factory=dict)
    counted_within: tuple[int, int] | None = None
    narrower_ns: int | None = None

    def __post_init__(self) -> None:
        if self.count is not None and self.count > MOST_MISSING:
            object.__setattr__(self, "count", None)
        if self.low_ns > INT64_MAX:
            object.__setattr__(self, "low_ns", 0)
        if self.high_ns is not None and self.high_ns > INT64_MAX:
            object.__setattr__(self, "high_ns", None)

    @property
    def span(self) -> tuple[int, int]:
        """Return from when to when in ns, the ends of all time where that is not known."""
        low, high = ANY_TIME
        return low if self.from_ns is None else self.from_ns, high if self.to_ns is None else self.to_ns

    @property
    def run(self) -> str:
        """Return the run."""
        return self.labels.get("run", "")

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, as `from_dict` takes them; the run is left out, as it is that of the source."""
        labels = {name: value for name, value in self.labels.items() if name != "run"}
        counted_as = {"counted_as": dict(self.counted_as)} if self.counted_as else {}
        numbers = {name: getattr(self, name) for name in PLAIN_NAMES}
        within = {"counted_within": list(self.counted_within)} if self.counted_within else {}
        return {"labels": labels, **numbers, "caveat": self.caveat.to_dict(), **counted_as, **within}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> Missing:
        """Return the entry of a run's source that `to_dict` gave."""
        numbers = {name: stored.get(name) for name in PLAIN_NAMES}
        within = tuple(stored["counted_within"]) if "counted_within" in stored else None
        labels, caveat = {**stored["labels"], "run": run}, Caveat.from_dict(stored["caveat"])
        rest = {"caveat": caveat, "counted_as": stored.get("counted_as", {}), "counted_within": within}
        return Missing(labels, **numbers, **rest)  # type: ignore[arg-type]


def labels_of(series: Series, *, unknown: Iterable[str] = ()) -> dict[str, str]:
    """Return the labels of the samples that a series lacks: its own, without those that are unknown.

    An op or a kind that is empty is one that only the rows would have shown; `unknown` are further labels of that sort.
    """
    labels = {name: str(getattr(series, name)) for name in LABELS}
    return {name: value for name, value in labels.items() if name not in unknown and (value or name not in ONLY_IN_ROWS)}


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class MissingRows(Value):
    """What the rows of windows lack, by entry: `row[k]` may lack `least[k]` to `most[k]` samples of `low_ns[k]` to `high_ns[k]`.

    `most` is UNKNOWN where the number is not known, `high_ns` OPEN where there is no upper bound.
    """

    row: Int
    least: Int
    most: Int
    low_ns: Int
    high_ns: Int

    def __len__(self) -> int:
        return len(self.row)

    def take(self, places: Int) -> MissingRows:
        """Return the given entries."""
        return MissingRows(*(getattr(self, name)[places] for name in MissingRows.__slots__))

    def complete(self, rows: int) -> NDArray[np.bool_]:
        """Return which of so many rows lack nothing."""
        whole = np.ones(rows, np.bool_)
        whole[self.row] = False
        return whole

    def uncounted(self, rows: int) -> NDArray[np.bool_]:
        """Return which of so many rows lack samples in unknown number."""
        uncounted = np.zeros(rows, np.bool_)
        uncounted[self.row[self.most == UNKNOWN]] = True
        return uncounted

    def shares_below(
        self, threshold_ns: int, below: NDArray[np.float64], samples: Int
    ) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest share of each row's samples that can lie below a threshold.

        Of the `samples` of a row that are there so many are `below`. Missing samples in unknown number may be as many as it
        takes.
        """
        surely, never = self.high_ns < threshold_ns, self.low_ns >= threshold_ns
        unknown = self.most == UNKNOWN
        fewest, many = self._summed(self.least, samples), self._summed(np.where(unknown, 0, self.most), samples)
        lowest = (below + fewest(surely)) / (samples + fewest(surely) + many(~surely))
        highest = (below + many(~never)) / (samples + fewest(never) + many(~never))
        lowest[self.row[unknown & ~surely]] = 0
        highest[self.row[unknown & ~never]] = 1
        return lowest, highest

    def means(self, mean: NDArray[np.float64], samples: Int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest mean in ns of each row, of which `mean` is that of the `samples` that are there.

        The largest is inf where there is no bound. Missing samples in unknown number may be as many as it takes.
        """
        highs = np.where(self.high_ns == OPEN, np.inf, self.high_ns.astype(np.float64))
        least = self._extreme_mean(mean, samples, self.low_ns.astype(np.float64))
        return least, -self._extreme_mean(-mean, samples, -highs)

    def _extreme_mean(self, mean: NDArray[np.float64], samples: Int, values: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the least mean of each row with what is missing at `values`: the lowest are added while they lower it."""
        endless = (self.most == UNKNOWN) | np.isinf(values)
        counted = np.flatnonzero(~endless)
        row, value, least = self.row[counted], values[counted], self.least[counted].astype(np.float64)
        forced = np.bincount(row, least, len(mean))
        base = mean * samples + np.bincount(row, least * value, len(mean))
        out = np.where(forced > 0, base / (samples + forced), mean)
        order = np.lexsort((value, row))
        row, value, more = row[order], value[order], (self.most[counted] - self.least[counted])[order].astype(np.float64)
        first = np.searchsorted(row, row)
        numbers, sums = (np.append(0.0, np.cumsum(part)) for part in (more, more * value))
        numbers, sums = numbers[1:] - numbers[first], sums[1:] - sums[first]
        reached = (samples + forced)[row] + numbers
        free = np.flatnonzero(endless & (self.most != 0))
        with np.errstate(invalid="ignore"):  # where all operations failed there is no mean
            np.minimum.at(out, row, np.where(numbers > 0, (base[row] + sums) / np.maximum(reached, 1), np.inf))
            np.minimum.at(out, self.row[free], values[free])
        return out

    def _summed(self, numbers: Int, samples: Int) -> Callable[[NDArray[np.bool_]], NDArray[np.float64]]:
        """Return how the numbers of some of the entries are added up by row."""
        return lambda chosen: np.bincount(self.row[chosen], numbers[chosen].astype(np.float64), len(samples)).astype(np.float64)


NO_LACK = MissingRows(*(np.empty(0, np.int64) for _ in range(5)))


class Possible:
    """The percentiles that rows of windows can have, given what they lack: exact ranks, for all rows that lack something.

    `rows` hold the samples that are there; `between(rows, ranks)` gives the values in ns between which the sample of each rank
    among them lies, and `ends` those of each entry of the rows. A row without samples is allowed: its percentiles are those of
    what it lacks.
    """

    def __init__(
        self,
        rows: Intervals,
        lacking: MissingRows,
        between: Callable[[Int, Int], tuple[NDArray[np.float64], NDArray[np.float64]]],
        ends: tuple[Int, Int],
    ) -> None:
        self.rows = distinct(lacking.row)
        self._between = between
        self._samples = rows.samples[self.rows]
        indptr, flat = gather(rows.indptr, self.rows)
        own = np.repeat(np.arange(len(self.rows)), np.diff(indptr))
        lows, highs = (each[flat].astype(np.int64) for each in ends)
        counts = rows.counts[flat]
        known = lacking.take(np.flatnonzero(lacking.most != UNKNOWN))
        free = lacking.take(np.flatnonzero(lacking.most == UNKNOWN))
        place = np.searchsorted(self.rows, known.row)
        self._least, self._most = np.full(len(self.rows), OPEN), np.full(len(self.rows), -1)
        at = np.searchsorted(self.rows, free.row)
        np.minimum.at(self._least, at, free.low_ns)
        np.maximum.at(self._most, at, free.high_ns)
        sure = summed(known.least, place, len(self.rows))
        self._up = _Sweep(own, lows, counts, place, known.low_ns, known, self._samples + sure)
        self._down = _Sweep(own, -highs, counts, place, -known.high_ns, known, self._samples + sure)

    def between(self, percentile: Percentile) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the least and the largest value in ns that the percentile of each of `rows` can have.

        The largest is inf where there is no bound. Where samples are missing in unknown number, they may be as many as it takes.
        NaN where a row may hold no sample at all.
        """
        lowest = self._end(percentile, self._up, from_top=False)
        highest = -self._end(percentile, self._down, from_top=True)
        highest[highest >= OPEN] = np.inf
        if percentile.top < 100 * percentile.bottom:
            lowest = np.fmin(lowest, np.where(self._least < OPEN, self._least, np.nan))
        if percentile.top > 0:
            most = np.where(self._most >= OPEN, np.inf, self._most.astype(np.float64))
            highest = np.fmax(highest, np.where(self._most >= 0, most, np.nan))
        return lowest, highest

    def _end(self, percentile: Percentile, sweep: _Sweep, *, from_top: bool) -> NDArray[np.float64]:
        """Return the lowest possible value of each row, of a sweep from the top the negative of the highest."""
        total = sweep.total
        ranks = percentile.ranks(total)
        wanted = total - ranks + 1 if from_top else ranks
        entry = sweep.first(sweep.reached >= wanted)
        out = np.full(len(self.rows), np.nan)
        reached = np.flatnonzero(entry >= 0)
        at = entry[reached]
        out[reached] = sweep.value[at]
        here = np.flatnonzero(sweep.is_sample[at])
        at, picked = at[here], reached[here]
        below = sweep.beyond[at] if from_top else sweep.added[at]  # of what is missing
        rank = np.clip(ranks[at] - below, 1, self._samples[picked])
        value = self._between(self.rows[picked], rank)[1 if from_top else 0]
        out[picked] = -value if from_top else value
        return out


class _Sweep:
    """Samples of rows and what they lack in order of value: how many there can be up to each value at most.

    An entry that was passed is there with its largest number, one that is ahead with its least: that is the choice that brings
    a rank as near to the beginning of the sweep as it can be.
    """

    def __init__(self, own: Int, values: Int, counts: Int, place: Int, edges: Int, lacking: MissingRows, total: Int) -> None:
        none_there, none_missing = np.zeros(len(counts), np.int64), np.zeros(len(edges), np.int64)
        row, value = np.concatenate([own, place]), np.concatenate([values, edges])
        there = np.concatenate([counts, none_missing])
        most = np.concatenate([none_there, lacking.most])
        least = np.concatenate([none_there, lacking.least])
        is_sample = np.concatenate([np.ones(len(counts), np.bool_), np.zeros(len(edges), np.bool_)])
        order = np.lexsort((is_sample, value, row))
        self._row, self.value, self.is_sample = row[order], value[order], is_sample[order]
        base = np.searchsorted(self._row, np.arange(len(total)))
        self._rows = len(total)
        self.added = self._running(most[order], base)
        passed_least = self._running(least[order], base)
        self.reached = self._running(there[order], base) + self.added
        self.beyond = summed(lacking.least, place, len(total))[self._row] - passed_least
        self.total = total[self._row] + self.added - passed_least

    def _running(self, numbers: Int, base: Int) -> Int:
        """Return the sums of each row up to each entry."""
        total = np.append(0, np.cumsum(numbers))
        sums: Int = total[1:] - total[base][self._row]
        return sums

    def first(self, chosen: NDArray[np.bool_]) -> Int:
        """Return the first chosen entry of each row, -1 where there is none."""
        places = np.flatnonzero(chosen)
        out = np.full(self._rows, -1)
        rows, at = np.unique(self._row[places], return_index=True)
        out[rows] = places[at]
        return out


def is_held(entry: Missing, identities: Iterable[str]) -> bool:
    """Return whether a client, or a log, that one load found missing as a whole is there by the identities of all sources."""
    if entry.caveat.code == EMPTY_LOG:
        return any(_is_log_of(identity, entry.labels) for identity in identities)
    if entry.caveat.code != ABSENT_CLIENT or "host" not in entry.labels:
        return False
    hosts = (identity.split("|")[1] for identity in identities if "|" in identity)
    return any(is_same_host(entry.labels["host"], host) for host in hosts)


def _is_log_of(identity: str, labels: Mapping[str, str]) -> bool:
    log, *names = identity.split("|")
    kind = log.partition(":")[2].removesuffix(MEAN)  # raw logs name theirs: a job has several
    return names == [labels.get(name, "") for name in OF_LOG] and kind in ("", labels.get("kind"))


def is_same_host(one: str, other: str) -> bool:
    """Return whether two names can be those of one host: the same, or one with the domain of it."""
    return one == other or one.startswith(f"{other}.") or other.startswith(f"{one}.")


MEANS_ALONE, NOT_IN_NUMBERS = "means-alone", "means alone without a histogram, not in numbers from histograms"
BY_KIND = "--by kind shows them, too"
OTHER_KIND = "other-kind"
IN_BOTH = "in-two-files"
JOB = ("host", "volume", "job")
KINDS_PLAIN_NAMES = ("name", "from_ns", "to_ns")
KINDS, HELD, STATED, STRETCHES, POLLED = "kinds", "held", "stated", "stretches", "polled"  # of the account of a stored source


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class KindsRecorded(Value):
    """The kinds of latency that a source has of its job; those of means as such where nothing holds their histogram.

    `name` is what the job is called in a sentence, `labels` are its own, without a kind. It ran in (from, to], None if unknown.
    """

    labels: Mapping[str, str]
    kinds: tuple[str, ...]
    name: str
    from_ns: int | None
    to_ns: int | None

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, as `from_dict` takes them; the run is left out, as it is that of the source."""
        labels = {name: value for name, value in self.labels.items() if name != "run"}
        return {"labels": labels, "kinds": list(self.kinds), **{name: getattr(self, name) for name in KINDS_PLAIN_NAMES}}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> KindsRecorded:
        """Return the entry of a run's source that `to_dict` gave."""
        plain = {name: stored.get(name) for name in KINDS_PLAIN_NAMES}
        return KindsRecorded({**stored["labels"], "run": run}, tuple(stored["kinds"]), **plain)  # type: ignore[arg-type]


def without_kind(held: Iterable[KindsRecorded]) -> list[Missing]:
    """Return the samples of jobs that have no histogram of the kind which answers about their run take, while others have.

    That kind is the run's default; of means alone, which are no histogram, it is also the kind that they are means of.
    """
    runs: dict[str, dict[tuple[str, ...], list[KindsRecorded]]] = {}
    for entry in held:
        # Of a log that several jobs share no number is known: which of them it is of shows by its prefix.
        shared = () if entry.labels.get("job") else (entry.labels.get("process", ""),)
        job = (*(entry.labels.get(name, "") for name in JOB), *shared)
        runs.setdefault(entry.labels["run"], {}).setdefault(job, []).append(entry)
    missing = []
    for _, jobs in sorted(runs.items()):
        binned = {job: {kind for entry in own for kind in entry.kinds if not is_mean(kind)} for job, own in jobs.items()}
        there = set().union(*binned.values())
        usual = default_kind(there)
        for job, own in sorted(jobs.items()):
            in_any_form = {kind.removesuffix(MEAN) for entry in own for kind in entry.kinds}
            lacking = sorted((in_any_form | {usual}) & there - binned[job])
            missing += [_lacks(own, kind, in_any_form) for kind in lacking]
    return missing


def _lacks(own: Iterable[KindsRecorded], kind: str, in_any_form: set[str]) -> Missing:
    """Return the samples of a job that nothing holds as histograms of a kind, by what its sources tell."""
    first, *others = sorted(own, key=lambda entry: (entry.name, sorted(entry.labels.items())))
    caveat = Caveat(MEANS_ALONE, first.name, NOT_IN_NUMBERS, BY_KIND)
    if kind not in in_any_form:
        sentence = f"{kind} latency is not logged, so numbers of {kind} latency leave it out"
        caveat = Caveat(OTHER_KIND, first.name, sentence, f"ask for what it has, as in --where kind={default_kind(in_any_form)}")
    begins, ends = ([getattr(entry, edge) for entry in (first, *others)] for edge in ("from_ns", "to_ns"))
    begin, end = (None, None) if None in (*begins, *ends) else (min(begins), max(ends))
    return Missing({**first.labels, "kind": kind}, begin, end, None, 0, None, caveat)


# How wide the rows of each source are: in narrower windows nobody knows where in a row its samples were.


OMISSION = "coordinated omission: "  # as warnings of it begin
WIDTHS = "widths"  # of the account of a stored source
WIDTH_PLAIN_NAMES = ("width_ns", "subject", "any_step", "whole", "by_second")
WIDE_ROWS = "wide-rows"
ENOUGH = 0.9  # of the width of a row: a window of that is not narrower, as rows jitter
DEFAULT_WIDTH_NS = 1000 * MS


class RowWidth(NamedTuple):
    """How wide the rows of a source are in ns, 0 where it does not say; `subject` is its path, `labels` those that are known.

    `any_step` says that its rows are made of single operations, which lie in windows of any width, `whole` that it tells of whole
    runs alone, `by_second` that its reader adds up single operations by the second.
    """

    labels: Mapping[str, str]
    width_ns: int
    subject: str
    any_step: bool = False
    whole: bool = False
    by_second: bool = False

    @property
    def least_ns(self) -> int:
        """Return how wide a window must be that is not narrower than the rows, 0 where any is wide enough."""
        return 0 if self.any_step else round(ENOUGH * self.width_ns)

    @property
    def words(self) -> str:
        """Return the width for people."""
        return format_duration(round(self.width_ns / MS) * MS or 1)

    def spread(self) -> Missing:
        """Return what windows narrower than the rows lack: how many of the samples are theirs."""
        sentence = f"its rows are {self.words} wide: in narrower windows their counts are spread evenly"
        caveat = Caveat(WIDE_ROWS, self.subject, sentence, "ask for a wider --step")
        return Missing(self.labels, None, None, None, 0, None, caveat, narrower_ns=self.least_ns)

    def to_dict(self) -> dict[str, Any]:
        """Return the entry as plain values, as `from_dict` takes them; the run is left out, as it is that of the source."""
        labels = {name: value for name, value in self.labels.items() if name != "run"}
        return {"labels": labels, **{name: getattr(self, name) for name in WIDTH_PLAIN_NAMES}}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> RowWidth:
        """Return the entry of a run's source that `to_dict` gave."""
        return RowWidth({**stored["labels"], "run": run}, **{name: stored[name] for name in WIDTH_PLAIN_NAMES if name in stored})


def median_width(rows: Iterable[RowWidth]) -> float:
    """Return the median width in ns of the rows of sources, 1 s if none states it."""
    widths = sorted(each.width_ns for each in rows if each.width_ns)
    middle = len(widths) // 2
    return (widths[middle] + widths[~middle]) / 2 if widths else DEFAULT_WIDTH_NS


# What a tool says itself of a whole run, by job, where it logged no histogram: kept in the account, and shown as it is.
#
# Percentiles of single jobs cannot be merged into one of a host or a cluster; counts, sums, minima and maxima can.


WHOLE_RUN_LABELS = ("host", "volume", "job", "process", "op", "kind")
NUMBERS = ("count", "min_ns", "max_ns", "mean_ns", "window_ns", "has_bins")
ROW_NUMBERS = ("count", "min_ns", "max_ns", "sum_ns")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WholeRun(Value):
    """A job, op and kind over the whole run, as its tool printed it; `percentiles` are (text, ns).

    `window_ns` is the time that each logged mean is over, 0 where nothing was logged over time. `has_bins` says that the tool
    wrote its histogram, too: then there is more than means. `bytes` are those that its I/Os moved, None where it does not say.
    """

    series: Series
    count: int
    min_ns: int
    max_ns: int
    mean_ns: float
    percentiles: tuple[tuple[str, int], ...] = ()
    window_ns: int = 0
    has_bins: bool = False
    bytes: int | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `from_dict` takes."""
        numbers = {name: getattr(self, name) for name in NUMBERS}
        labels = {name: value for name in WHOLE_RUN_LABELS if (value := getattr(self.series, name))}
        moved = {} if self.bytes is None else {"bytes": self.bytes}
        return {**labels, **numbers, **moved, "percentiles": [list(pair) for pair in self.percentiles]}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> WholeRun:
        """Return what `to_dict` gave, of a run."""
        labels = {name: str(stored.get(name, "")) for name in WHOLE_RUN_LABELS}
        percentiles = tuple((str(text), int(value)) for text, value in stored["percentiles"])
        numbers = {name: stored[name] for name in NUMBERS}
        return WholeRun(Series(run=run).replaced(**labels), percentiles=percentiles, bytes=stored.get("bytes"), **numbers)

    @property
    def name(self) -> str:
        """Return the words that distinguish it from others of its run."""
        own = self.series
        words = (("", own.host), ("volume ", own.volume), ("job ", own.job), ("", own.process), ("", own.op), ("", own.kind))
        return " ".join(f"{word}{value}" for word, value in words if value)

    def __str__(self) -> str:
        """Return a line for people: count, mean, the common percentiles, maximum."""
        printed = {f"{float(text):g}": value for text, value in self.percentiles}
        named = [(f"p{text}", printed[text]) for text in (percentile.text for percentile in COMMON) if text in printed]
        values = (("mean", self.mean_ns), *named, ("max", self.max_ns))
        return f"{self.name}: N {self.count:,}, " + ", ".join(f"{name} {fine_latency(value)}" for name, value in values)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class WholeRow(Value):
    """A row over a whole run with its exact values, which its parts by window do not have."""

    series: Series
    count: int
    min_ns: int
    max_ns: int
    sum_ns: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values that `from_dict` takes."""
        numbers = {name: getattr(self, name) for name in ROW_NUMBERS}
        return {**{name: value for name in WHOLE_RUN_LABELS if (value := getattr(self.series, name))}, **numbers}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> WholeRow:
        """Return what `to_dict` gave, of a run."""
        labels = {name: str(stored.get(name, "")) for name in WHOLE_RUN_LABELS}
        return WholeRow(Series(run=run).replaced(**labels), *(int(stored[name]) for name in ROW_NUMBERS))


def whole_rows(run: str, accounts: Iterable[Mapping[str, Any]]) -> list[WholeRow]:
    """Return what the accounts of a run's sources (as plain values) hold of whole rows."""
    return [WholeRow.from_dict(run, row) for account in accounts for row in account.get("whole_rows", {}).values()]


def whole_runs(run: str, accounts: Iterable[Mapping[str, Any]]) -> list[WholeRun]:
    """Return what the accounts of a run's sources (as plain values) hold of whole runs, ordered by labels."""
    runs = [WholeRun.from_dict(run, whole_run) for account in accounts for whole_run in account.get("whole_runs", {}).values()]
    return sorted(runs, key=lambda whole_run: whole_run.series)


def means_alone(accounts: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether all sources of a run that hold samples, by their accounts, hold means without a histogram."""
    held = [account.get("whole_runs", {}).values() for account in accounts if account.get("samples")]
    return bool(held) and all(rows and not any(row["has_bins"] for row in rows) for rows in held)


def sum_of(parts: Sequence[WholeRun]) -> tuple[int, int, int, int]:
    """Return count, sum, minimum and maximum of several together, in ns; fio prints means to 10^-6 ns."""
    total = sum(round(part.mean_ns * part.count) for part in parts)
    return sum(part.count for part in parts), total, min(part.min_ns for part in parts), max(part.max_ns for part in parts)


def bytes_of(parts: Iterable[WholeRun]) -> int | None:
    """Return the bytes of several together, None where those of one are unknown."""
    moved = [part.bytes for part in parts]
    known = [each for each in moved if each is not None]
    return sum(known) if len(known) == len(moved) and sum(known) <= MOST_SAMPLES else None


def replaced_rows(exact: Exact, rows: Mapping[int, tuple[int, int, int]], moved: Mapping[int, int] | None = None) -> Exact:
    """Return exact values with (sum, minimum, maximum) of some rows, and bytes of some, in place of the given ones."""
    low, high, total = (column.copy() for column in (exact.min_ns, exact.max_ns, exact.sum_ns))
    known, carried = exact.known.copy(), exact.bytes
    for at, (sums, least, most) in rows.items():
        low[at], high[at], total[at], known[at] = least, most, sums, True
    if moved:
        carried = exact.moved.copy()
        carried[list(moved)] = list(moved.values())
    return Exact(low, high, total, known, carried)
