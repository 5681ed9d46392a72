"""The gate: what tools say themselves that they counted, and all that was read held against it, for files and stores alike.

    fio's JSON           entry 1: 1,200 reads       one sum of two jobs (group_reporting)
    a_clat_hist.1.log    540 reads, of entry 1
    a_clat_hist.2.log    545 reads, of entry 1      1,085 of 1,200: 115 are missing

A source keeps in its account what it holds, by op, and the entries of the tool's output that its samples are counted in. Which
sources share an entry is known once all of them are there: a store learns it load by load, so nothing of this is decided before
a question. Sources are held together where an entry is of both. Where they hold fewer samples than their entries, and do not say
themselves what they lack, the others are missing; where they hold more, something is counted twice, and no row is complete.

A log of a job that the tool's output beside it does not tell of has an entry of its own, which counts nothing.

An entry is known by what it is of (time, number of the job, op, kind), by its count and mean, and by the names of its file and
folder, wherever that lies: copies in folders of two hosts are two entries, and have a caveat of their own.
"""

from __future__ import annotations

from base64 import b64decode
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np

from ingest.core.coverage import (
    AGAIN,
    ALL_LOGS,
    FEWER,
    HELD,
    IN_BOTH,
    MORE,
    POLLED,
    SEE_INSPECT,
    STATED,
    STRETCHES,
    WIDTHS,
    Caveat,
    Missing,
)
from ingest.core.errors import counted, listed
from ingest.core.labels import MIXED
from ingest.core.values import Value

GIVE_ONE = "give the one that holds all of them"
POLLED_TWICE, NO_OVERLAP = "counted-twice", "give files whose times do not overlap"
WITHOUT_LOG = "jobs-without-log"
LOG_ALL = "have every job log: write_hist_log in front of the first --name, or tailboard record fio"
STATED_NAMES = ("op", "count", "low_ns", "high_ns", "from_ns", "to_ns", "path", "name", "held")


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Stated(Value):
    """What an entry of a tool's own output counts: `count` samples of `op`, each of `low_ns` to `high_ns`, in (from, to].

    `entry` tells it from all others, `labels` are those of its samples that are sure (run and kind among them), `path` is the log
    that keeps it. Where it is not `held` no log of it was found: then `path` is the file that says so, and `name` what its job is
    called in a sentence. `op` is `mixed` where the tool counts all ops together. Times are in ns, None where they are not known.
    """

    entry: str
    labels: Mapping[str, str]
    op: str
    count: int
    low_ns: int
    high_ns: int
    from_ns: int | None
    to_ns: int | None
    path: str
    name: str = ""
    held: bool = True

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, as `from_dict` takes them; the run is left out, as it is that of the source."""
        labels = {name: value for name, value in self.labels.items() if name != "run"}
        return {"entry": self.entry, "labels": labels, **{name: getattr(self, name) for name in STATED_NAMES}}

    @staticmethod
    def from_dict(run: str, stored: Mapping[str, Any]) -> Stated:
        """Return what `to_dict` gave, of a run's source."""
        return Stated(stored["entry"], {**stored["labels"], "run": run}, **{name: stored[name] for name in STATED_NAMES})


class Counted(NamedTuple):
    """What the gate knows of a source: samples by op (None: it was not read), what its tool states, what it lacks by itself."""

    held: Mapping[str, int] | None
    stated: Sequence[Stated]
    missing: Sequence[Missing] = ()


def shown_together(run: str, accounts: Sequence[Mapping[str, Any]]) -> list[Missing]:
    """Return what the stored sources of a run show together of what they hold twice or not at all, by their accounts.

    Of thousands of sources almost all hold, each for itself, what is stated of it: these are passed over as plain values.
    """
    told = [account for account in accounts if STATED in account]
    keepers = Counter(plain["entry"] for account in told for plain in account[STATED].values())
    open_ones = [account for account in told if not _is_settled(account, keepers)]
    found = list(disagreements(_counted_of(run, account) for account in open_ones))
    stretches = [entry for account in accounts for entry in account.get(STRETCHES, {}).values()]
    if stretches:
        widths = (plain for account in accounts for plain in account.get(WIDTHS, {}).values())
        found += in_both(stretches, {plain["subject"]: {**plain["labels"], "run": run} for plain in widths})
    return found + at_same_times(run, (entry for account in accounts for entry in account.get(POLLED, {}).values()))


def may_show_together(account: Mapping[str, Any]) -> bool:
    """Return whether an account may show something together with others: of thousands of small logs most say nothing."""
    return any(name in account for name in (STATED, STRETCHES, POLLED))


def stored_counts(run: str, accounts: Iterable[Mapping[str, Any]]) -> dict[tuple[str, str], tuple[int, int]]:
    """Return what tools state of the sources of a run and what its sources hold of that, by kind and op, by their accounts."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for balance in balances(_counted_of(run, account) for account in accounts if STATED in account):
        for op in balance.ops:
            entries = balance.entries(op)
            key = entries[0].labels.get("kind", ""), op
            stated, held = found.get(key, (0, 0))
            found[key] = stated + sum(entry.count for entry in entries), held + balance.samples(op)
    return found


def _is_settled(account: Mapping[str, Any], keepers: Mapping[str, int]) -> bool:
    """Return whether a source holds just what is stated of entries that no other source keeps."""
    left: dict[str, int] = dict(account.get(HELD, {}))
    for plain in account[STATED].values():
        if not plain["held"] or keepers[plain["entry"]] > 1:
            return False
        left[plain["op"]] = left.get(plain["op"], 0) - int(plain["count"])
    return not any(left.values())


def _counted_of(run: str, account: Mapping[str, Any]) -> Counted:
    stated = [Stated.from_dict(run, plain) for plain in account[STATED].values()]
    return Counted(account.get(HELD, {}), stated, [Missing.from_dict(run, plain) for plain in account["missing"].values()])


@dataclass(slots=True)
class Balance:
    """Sources that share entries of a tool's output, and these entries: `stated` has them by op and entry, each once.

    An entry that no source holds is a balance of its own, without sources.
    """

    sources: list[Counted] = field(default_factory=list)
    stated: dict[str, dict[str, Stated]] = field(default_factory=dict)

    @property
    def ops(self) -> list[str]:
        """Return what is compared: each op, or `mixed` alone where the tool counts any of them together."""
        return [MIXED] if MIXED in self.stated else sorted(self.stated)

    def entries(self, op: str) -> list[Stated]:
        """Return the entries of an op."""
        return list(self.stated[op].values())

    def logs(self, op: str) -> str:
        """Return the paths of the sources that share entries of an op."""
        each = {entry.path for source in self.sources for entry in source.stated if entry.held and entry.op == op}
        return listed(sorted(each))

    def samples(self, op: str) -> int:
        """Return how many samples of an op the sources hold; of `mixed` those of all."""
        each = [source.held or {} for source in self.sources]
        return sum(number for held in each for name, number in held.items() if op in (name, MIXED))

    @property
    def read(self) -> bool:
        """Return whether all sources were read."""
        return all(source.held is not None for source in self.sources)


def balances(sources: Iterable[Counted]) -> list[Balance]:
    """Return the sources that share entries together, each with these entries, and every entry that no source holds by itself."""
    first: dict[str, str] = {}  # of each entry one that it is held together with, itself at the end

    def root(entry: str) -> str:
        while first.setdefault(entry, entry) != entry:
            first[entry] = first[first[entry]]
            entry = first[entry]
        return entry

    several = list(sources)
    for source in several:
        own = [entry.entry for entry in source.stated if entry.held]
        for name in own:
            first[root(name)] = root(own[0])
    found: dict[str, Balance] = {}
    for source in several:
        for entry in source.stated:
            if not entry.held:
                continue
            balance = found.setdefault(root(entry.entry), Balance())
            balance.stated.setdefault(entry.op, {})[entry.entry] = entry
            if not balance.sources or balance.sources[-1] is not source:
                balance.sources.append(source)
    alone = {entry.entry: entry for source in several for entry in source.stated if entry.entry not in first}
    return [*found.values(), *(Balance([], {entry.op: {entry.entry: entry}}) for entry in alone.values())]


def disagreements(sources: Iterable[Counted]) -> Iterator[Missing]:
    """Yield what sources hold fewer or more samples of than their tool states, of those balances of which all were read.

    What a source lacks by its own account in known number is taken off; where it lacks some in unknown number, fewer are no news.
    """
    for balance in balances(sources):
        if not balance.read:
            continue
        told = [entry for source in balance.sources for entry in source.missing if not (entry.counted_as or entry.counted_within)]
        for op in balance.ops:
            entries = balance.entries(op)
            stated, held = sum(entry.count for entry in entries), balance.samples(op)
            of_op = [entry for entry in told if op == MIXED or entry.labels.get("op", op) == op]
            if held > stated:
                if all(entry.caveat.code != MORE for entry in of_op):
                    yield _missing(entries, None, 0, None, _more(balance, op, stated, held))
                continue
            left = stated - held - sum(entry.count or 0 for entry in of_op)
            if left > 0 and all(entry.count is not None for entry in of_op):
                extremes = min(entry.low_ns for entry in entries), max(entry.high_ns for entry in entries)
                yield _missing(entries, left, *extremes, _fewer(balance, op, stated, held))


def in_both(stretches: Iterable[Mapping[str, Any]], labels: Mapping[str, Mapping[str, str]]) -> list[Missing]:
    """Return what files of a run hold of operations that an earlier one holds, too, by the `stretches` of their accounts.

    Each file keeps one in `every` sums of its stretches of operations, chosen by their value: the same in each file. `labels` are
    those of the operations of each file by its path, but the `kind` that a file may have as a whole. In rows of either of them
    operations may be counted twice.
    """
    met: dict[int, Mapping[str, Any]] = {}
    kinds: dict[str, Mapping[str, str]] = {}
    found: Counter[tuple[str, str]] = Counter()
    for entry in sorted(stretches, key=itemgetter("path")):
        kinds[entry["path"]] = {"kind": entry["kind"]} if "kind" in entry else {}
        for value in np.frombuffer(b64decode(entry["sums"]), "<u8").tolist():
            other = met.setdefault(value, entry)
            if other["path"] != entry["path"]:
                found[entry["path"], other["path"]] += max(entry["every"], other["every"])
    sentence = "about {:,} of its operations are in {} as well, with the same times and latencies: they are counted twice"
    return [
        Missing(
            {**labels[path], **kinds[path]},
            None,
            None,
            None,
            0,
            None,
            Caveat(IN_BOTH, pair[0], sentence.format(number, pair[1]), GIVE_ONE),
        )
        for pair, number in found.items()
        for path in pair
    ]


def at_same_times(run: str, polled: Iterable[Mapping[str, Any]]) -> list[Missing]:
    """Return what files of polls hold of series that an earlier one holds at the same times, too, as their accounts keep it.

    That is, by file, the labels of each series and from when to when it has polls of it: which polls are the same is not known.
    """
    of_series: dict[str, list[tuple[int, int, str, Mapping[str, str]]]] = defaultdict(list)
    for entry in polled:
        for told in entry["series"].values():
            span = (told["from_ns"], told["to_ns"], entry["path"], told["labels"])
            of_series[repr(sorted(told["labels"].items()))].append(span)
    shared: dict[tuple[str, str], list[tuple[Mapping[str, str], int, int]]] = defaultdict(list)
    for spans in of_series.values():
        going: list[tuple[int, str]] = []
        for begin, end, path, labels in sorted(spans, key=itemgetter(0, 1, 2)):
            going = [other for other in going if other[0] > begin]
            for until, other in going:
                if other != path:
                    shared[max(path, other), min(path, other)].append((labels, begin, min(end, until)))
            going.append((end, path))
    found = []
    for (path, other), each in sorted(shared.items()):
        of_other = f"{counted(len(each), 'series', 'series')} of {other.rpartition('/')[2]}"
        sentence = f"it holds {of_other} at the same times: what both hold is counted twice"
        caveat = Caveat(POLLED_TWICE, path, sentence, NO_OVERLAP)
        found += [Missing({**labels, "run": run}, begin, end, None, 0, None, caveat) for labels, begin, end in each]
    return found


def _missing(entries: Sequence[Stated], count: int | None, low_ns: int, high_ns: int | None, caveat: Caveat) -> Missing:
    """Return an entry of what is missing with the labels that all entries of a balance have in common, at any time of theirs."""
    first, *others = entries
    alike = {name: value for name, value in first.labels.items() if all(entry.labels.get(name) == value for entry in others)}
    begins, ends = ([getattr(entry, edge) for entry in entries] for edge in ("from_ns", "to_ns"))
    begin, end = (None, None) if None in (*begins, *ends) else (min(begins), max(ends))
    return Missing(alike, begin, end, count, low_ns, high_ns, caveat)


def _fewer(balance: Balance, op: str, stated: int, held: int) -> Caveat:
    """Return the caveat of samples that no source holds."""
    said = f"fio counts {stated:,} {_named(op)}"
    if not balance.sources:
        (entry,) = balance.entries(op)
        return Caveat(WITHOUT_LOG, entry.path, f"{said} of {entry.name} that no log here holds: they are missing", LOG_ALL)
    one = len(balance.sources) == 1 and all("job" in entry.labels for entry in balance.entries(op))  # else a group's
    sentence = f"{said}{'' if one else ' of all jobs together'}, of which {held:,} are in logs here: the others are missing"
    return Caveat(FEWER, balance.logs(op), sentence, AGAIN if one else ALL_LOGS)


def _more(balance: Balance, op: str, stated: int, held: int) -> Caveat:
    """Return the caveat of samples that are there more than once, or are of another run."""
    logs = "the log holds" if len(balance.sources) == 1 else f"{len(balance.sources)} logs hold"
    said = f"{stated:,} {_named(op)}" if stated else "nothing of it"
    sentence = f"fio counts {said}, and {logs} {held:,}: counted twice, or not of one run"
    return Caveat(MORE, balance.logs(op), sentence, SEE_INSPECT)


def _named(op: str) -> str:
    return "I/Os" if op == MIXED else f"{op}s"
