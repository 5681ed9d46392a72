"""What the runs of a store lack, by the accounts of their sources."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from ingest.core.caveats import Caveat
from ingest.core.intervals import Bool, Intervals
from ingest.core.kinds_held import KINDS, KindsHeld, without_kind
from ingest.core.missing import ANY_TIME, Missing, is_held
from ingest.query.missing import Lack, cut_at, lacks, of_kinds, stored_entries
from ingest.query.question import Question, range_in
from ingest.store.records import CLUSTER, WHOLE_RUN, RunRecord
from ingest.store.rollups import RollupKey

Account = Mapping[str, Any]
IDENTITY = "identity"  # of its source: stores put it beside what was kept
BY_HOST, BY_CLUSTER = ("host", "op", "kind"), ("op", "kind")


def lacks_in(
    records: Iterable[RunRecord], accounts: Mapping[str, Iterable[Account]], question: Question | None = None
) -> tuple[Lack, ...]:
    """Return the data that runs lack for a question, without one all of it: `accounts` are those of the sources of each run."""
    chosen = list(records)
    entries = lacking_in(chosen, accounts)
    if not entries:
        return ()
    asked = question or Question()
    bounds = {record.run: range_in(asked, record.start_ns, record.step_ns) for record in chosen}
    labels = {record.run: dict(record.labels) for record in chosen}
    return lacks(entries, asked, labels, bounds)


def lacking_in(records: Iterable[RunRecord], accounts: Mapping[str, Iterable[Account]]) -> list[Missing]:
    """Return what runs lack, by the `accounts` of the sources of each.

    A client that left nothing, by what one load found, is there once a later load has brought a source of it. What jobs lack of
    the kinds of others is asked of all that are there, whichever loads they came with.
    """
    entries = []
    for record in records:
        own = list(accounts.get(record.run, ()))
        held = [account[IDENTITY] for account in own if IDENTITY in account]
        entries += [entry for entry in stored_entries(record.run, own) if not is_held(entry, held)]
        entries += without_kinds(record.run, own)
    return entries


def without_kinds(run: str, accounts: Iterable[Account]) -> list[Missing]:
    """Return what the jobs of a run lack of the kinds of others, by the accounts of its sources."""
    held = [plain for account in accounts for plain in account.get(KINDS, {}).values()]
    if len({tuple(plain["kinds"]) for plain in held}) < 2:  # all jobs have the same
        return []
    return without_kind(KindsHeld.of(run, plain) for plain in held)


def identified(identity: str, account: Account) -> Account:
    """Return an account with the identity of its source."""
    return {**account, IDENTITY: identity}


def brings(identities: Iterable[str], accounts: Iterable[Account]) -> bool:
    """Return whether sources are of a client that earlier loads called missing, by their accounts."""
    new = list(identities)
    return any(is_held(entry, new) for entry in stored_entries("", accounts))


def caveats_in(accounts: Mapping[str, Iterable[Account]], runs: Iterable[str]) -> tuple[Caveat, ...]:
    """Return the caveats of runs, each once."""
    caveats = [caveat for run in runs for account in accounts.get(run, ()) for caveat in account.get("caveats", {}).values()]
    return tuple(dict.fromkeys(map(Caveat.of, caveats)))


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
