"""What the runs of a store lack, by the accounts of their sources, and runs whose logs were added up before they were stored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from ingest.core.coverage import (
    ANY_TIME,
    KINDS,
    OF_LOG,
    WIDTHS,
    Caveat,
    KindsRecorded,
    Missing,
    RowWidth,
    is_held,
    without_kind,
)
from ingest.core.errors import StoreError, UsageError, counted, listed, plural
from ingest.core.intervals import Bool, Intervals
from ingest.core.stated import shown_together
from ingest.query.coverage import Lack, cut_at, missing_from, of_kinds, stored_entries
from ingest.query.question import Question, range_in
from ingest.store.records import CLUSTER, SINCE, WATCHED, WHOLE_RUN, RunRecord
from ingest.store.rollups import RollupKey

# What the runs of a store lack, by the accounts of their sources.


Account = Mapping[str, Any]
IDENTITY = "identity"  # of its source: stores put it beside what was kept
NOT_LOADED = "not-loaded"
BY_HOST, BY_CLUSTER = ("host", "op", "kind"), ("op", "kind")


def missing_from_runs(
    records: Iterable[RunRecord], accounts: Mapping[str, Iterable[Account]], question: Question | None = None
) -> tuple[Lack, ...]:
    """Return the data that runs lack for a question, without one all of it: `accounts` are those of the sources of each run."""
    chosen = list(records)
    entries = [entry for record in chosen for entry in missing_in(record.run, accounts.get(record.run, ()))]
    entries += [each.spread() for record in chosen for each in row_widths(record.run, accounts.get(record.run, ()))]
    if not entries:
        return ()
    asked = question or Question()
    bounds = {record.run: range_in(asked, record.run, record.start_ns, record.step_ns) for record in chosen}
    labels = {record.run: dict(record.labels) for record in chosen}
    return missing_from(entries, asked, labels, bounds)


def missing_in(run: str, accounts: Iterable[Account]) -> list[Missing]:
    """Return what a run lacks in windows of any width, by the `accounts` of its sources.

    A client that left nothing, by what one load found, is there once a later load has brought a source of it. What only all
    sources show together is asked of all that are there, whichever loads they came with.
    """
    own = list(accounts)
    held = [account[IDENTITY] for account in own if IDENTITY in account]
    return [*(entry for entry in stored_entries(run, own) if not is_held(entry, held)), *known_together(run, own)]


def known_together(run: str, accounts: Sequence[Account]) -> list[Missing]:
    """Return what the accounts of all sources of a run show together, and none of them alone.

    That is what its jobs lack of the kinds of others, what they hold fewer or more samples of than their tools state, and what
    two of its files hold.
    """
    held = [plain for account in accounts for plain in account.get(KINDS, {}).values()]
    entries: list[Missing] = []
    if len({tuple(plain["kinds"]) for plain in held}) > 1:  # else all jobs have the same
        entries = without_kind(KindsRecorded.from_dict(run, plain) for plain in held)
    return [*entries, *shown_together(run, accounts)]


def row_widths(run: str, accounts: Iterable[Account]) -> list[RowWidth]:
    """Return how wide the rows of a run's sources are, by their accounts; older versions did not keep it."""
    return [RowWidth.from_dict(run, plain) for account in accounts for plain in account.get(WIDTHS, {}).values()]


def identified(identity: str, account: Account, *, reading: int | None = None) -> Account:
    """Return an account with the identity of its source; where that is being read, in the generation `reading`, with SINCE."""
    if reading is None:
        return {**account, IDENTITY: identity}
    return {SINCE: reading, **account, IDENTITY: identity}


def since_in(accounts: Iterable[Account]) -> dict[str, int]:
    """Return from which generation on documents count, of each source that is being read."""
    return {str(account[IDENTITY]): int(account[SINCE]) for account in accounts if SINCE in account}


def being_read(record: RunRecord, accounts: Iterable[Account]) -> list[Account]:
    """Return the accounts of the sources of a run that are being loaded, or whose load was cut off.

    Those that a watch follows are not among them once it has read of them: it says itself what is provisional.
    """
    followed = record.state == WATCHED
    return [account for account in accounts if SINCE in account and not (followed and "samples" in account)]


def not_loaded(records: Iterable[RunRecord], accounts: Mapping[str, Iterable[Account]]) -> Iterator[Missing]:
    """Yield what runs lack of sources that are being loaded, or whose load was cut off: any of their samples may be missing."""
    for record in records:
        own = list(accounts.get(record.run, ()))
        loading = being_read(record, own)
        share = f"{len(loading)} of {counted(len(own), 'source')} {plural(len(loading), 'is', 'are')}"
        sentence = f"{share} being loaded, or the load was cut off: any of their samples may be missing"
        caveat = Caveat(NOT_LOADED, record.run, sentence, "the same load completes it")
        for account in loading:
            names = dict(zip(OF_LOG, account[IDENTITY].split("|")[1:], strict=False))
            known = ("host",) if MEMBERS in account else ("host", "volume", "job")  # a part is named after one of its logs
            labels = {name: names[name] for name in known if names.get(name)}
            yield Missing({"run": record.run, **labels}, None, None, None, 0, None, caveat)


def brings(identities: Iterable[str], accounts: Iterable[Account]) -> bool:
    """Return whether sources are of a client that earlier loads called missing, by their accounts."""
    new = list(identities)
    return any(is_held(entry, new) for entry in stored_entries("", accounts))


def caveats_in(accounts: Mapping[str, Iterable[Account]], runs: Iterable[str]) -> tuple[Caveat, ...]:
    """Return the caveats of runs, each once."""
    caveats = [caveat for run in runs for account in accounts.get(run, ()) for caveat in account.get("caveats", {}).values()]
    return tuple(dict.fromkeys(map(Caveat.from_dict, caveats)))


def complete_rollups(windows: Intervals[RollupKey], step_ns: int, missing: tuple[Lack, ...]) -> Bool:
    """Return which merged windows of a step lack nothing; all are of the cluster, or all of hosts."""
    keys = windows.table
    by = BY_CLUSTER if all(key.scope == CLUSTER for key in keys) else BY_HOST
    table = [tuple(getattr(key, label) for label in by) for key in keys]
    start_ns, end_ns = windows.start_ns, windows.end_ns
    if step_ns == WHOLE_RUN:
        start_ns, end_ns = start_ns * 0 + ANY_TIME[0], end_ns * 0 + ANY_TIME[1]
    kinds = tuple(dict.fromkeys(key.kind for key in keys))
    own = of_kinds(missing, {lack.entry.run: kinds for lack in missing})
    return cut_at(windows.series, table, start_ns, end_ns, by, own).complete(len(windows))


# Runs whose logs were added up before they were stored (`load --add-up job`): what they can be asked, and how that is said.
#
# The labels that were added up are empty in such a run. A question that names them in `where` is refused; one that groups by
# them has one group, and says so. All other questions have the same answer as without `--add-up`.


ADD_UP = "add_up"  # a parameter of the run
MEMBERS = "members"  # in the account of a source that is several logs
LABELS = ("volume", "job", "process", "tag")  # what can be added up: a host stays a host


def added_up(record: RunRecord) -> tuple[str, ...]:
    """Return the labels whose values were added up when the run was loaded."""
    return tuple(record.parameters.get(ADD_UP) or ())


def logs_in(account: Mapping[str, Any]) -> int:
    """Return how many logs a source is, by its account."""
    return len(account.get(MEMBERS, (account,)))


def option_of(labels: Iterable[str]) -> str:
    """Return the option of a load that adds up these labels, in words where there is none."""
    named = ",".join(labels)
    return f"--add-up {named}" if named else "no --add-up"


def check_same(known: RunRecord, new: RunRecord) -> None:
    """Raise StoreError where a load would mix logs that were added up with logs that were not: samples would count twice."""
    before, now = added_up(known), added_up(new)
    if before != now:
        raise StoreError(
            f"{known.run} was loaded with {option_of(before)}, this load has {option_of(now)}: use the same, or another --run, "
            f"or remove the run first (tailboard runs delete '{known.run}')"
        )


def check_asked(records: Iterable[RunRecord], where: Mapping[str, str]) -> None:
    """Raise UsageError where a question selects by a label that was added up in one of the runs."""
    for record in records:
        if labels := [label for label in added_up(record) if label in where]:
            raise UsageError(f"--where {labels[0]}: {_lost(record, labels)}")


def sentences(records: Iterable[RunRecord], by: Iterable[str]) -> Iterator[str]:
    """Yield a sentence on each run that is grouped by labels that were added up in it."""
    named = set(by)
    for record in records:
        if labels := [label for label in added_up(record) if label in named]:
            yield f"--by {','.join(labels)}: {_lost(record, labels)}"


def lost(record: RunRecord) -> str:
    """Return what tables and panels of threads cannot show of a run, empty where all labels are there."""
    labels = added_up(record)
    return f"{_several(labels)} of each host, before they were stored: panels of threads show them as one" if labels else ""


def _several(labels: Iterable[str]) -> str:
    return listed([f"{label}s" if label != "process" else "processes" for label in labels])


def _lost(record: RunRecord, labels: Iterable[str]) -> str:
    """Return the sentence about labels that a run cannot be asked by."""
    return (
        f"{record.run} was loaded with {option_of(added_up(record))}, so its {_several(labels)} are one; "
        "to ask for them, load the logs without --add-up as another --run"
    )
