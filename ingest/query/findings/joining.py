"""Claims about one event on several operations or members become one claim, of as many of them as labels describe.

ceph-a read, ceph-a write, ceph-b read, ceph-b write --> all hosts        ceph-a read, ceph-a write --> ceph-a
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from ingest.query.findings.ground import OP, covered_groups, member
from ingest.query.findings.model import EDGE, EPISODE, IMBALANCE, RHYTHM, SLOW_MEMBER, STALL, THROTTLED, Claim, Ground, Labels

JOINED = (STALL, RHYTHM, EPISODE, THROTTLED, SLOW_MEMBER, IMBALANCE, EDGE)  # detectors of others look at all sets of members
ALIKE = 0.02  # of a period, that two rhythms which are one may be apart
NEAR = 2  # windows that beginnings and ends of one event may be apart on several members


def described(ground: Ground, groups: Iterable[int]) -> Labels | None:
    """Return the labels that describe these groups and no other, None where none do; an operation that all have is not named."""
    chosen = frozenset(groups)
    shared = set.intersection(*(set(ground.groups[code]) for code in chosen))
    common = {label for label in shared if label[0] == OP and all(label in labels for labels in ground.groups)}
    names = [name for name, _ in ground.groups[0]]
    who = tuple(sorted((label for label in shared - common if label[1]), key=lambda label: names.index(label[0])))
    return who if covered_groups(ground, who) == chosen else None


def joined(ground: Ground, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims, those about one event on several operations or members as one where labels describe it."""
    out = [claim for claim in claims if claim.kind not in JOINED]
    pending = sorted(
        (claim for claim in claims if claim.kind in JOINED), key=lambda claim: (claim.kind, claim.start_ns, claim.who)
    )
    while pending:
        first = pending.pop(0)
        same = [first]
        same += [claim for claim in pending if claim.kind == first.kind and _one_event(ground, first, claim)]
        pending = [claim for claim in pending if not any(claim is taken for taken in same)]
        out += _collapsed(ground, same)
    return out


def _one_event(ground: Ground, first: Claim, second: Claim) -> bool:
    """Return whether two claims of a kind may be about one event: they begin and end at the same time, or nearly."""
    if covered_groups(ground, first.who) & covered_groups(ground, second.who):
        return False
    periods = [float((claim.details or {}).get("period_ns", 1.0)) for claim in (first, second)]
    if abs(periods[0] / periods[1] - 1) > ALIKE:
        return False
    near = NEAR * ground.step_ns
    if max(abs(first.start_ns - second.start_ns), abs(first.end_ns - second.end_ns)) <= near:
        return True
    shared = min(first.end_ns, second.end_ns) - max(first.start_ns, second.start_ns)
    return 2 * shared > max(first.end_ns - first.start_ns, second.end_ns - second.start_ns)


def _collapsed(ground: Ground, claims: list[Claim]) -> list[Claim]:
    """Return claims about one event as few as labels can describe: of all, else of each member, else of each operation."""
    rest = {code for claim in claims for code in covered_groups(ground, claim.who)}
    out: list[Claim] = []
    sets = [frozenset(rest)]
    sets += [covered_groups(ground, member(labels)) for labels in ground.groups]
    sets += [covered_groups(ground, tuple(label for label in labels if label[0] == OP)) for labels in ground.groups]
    sets += [covered_groups(ground, claim.who) for claim in claims]
    for groups in sets:
        mine = [claim for claim in claims if covered_groups(ground, claim.who) & groups]
        who = described(ground, groups) if groups and groups <= rest else None
        if who is None or any(not covered_groups(ground, claim.who) <= groups for claim in mine):
            continue
        out.append(_merged(mine, who))
        rest -= groups
    out += [claim for claim in claims if covered_groups(ground, claim.who) & rest]  # which no labels tell from others
    return out


def _merged(claims: Sequence[Claim], who: Labels) -> Claim:
    """Return claims about one event as one claim: its extremes and sums, with what the worst of them tells further."""
    if len({id(claim) for claim in claims}) == 1:
        return replace(claims[0], who=who)
    worst = max(claims, key=lambda claim: (claim.times or 0.0, claim.value_ns or 0.0, claim.certainty))
    ranges = [claim.latency_ns for claim in claims if claim.latency_ns is not None]
    return replace(
        worst,
        who=who,
        start_ns=min(claim.start_ns for claim in claims),
        end_ns=max(claim.end_ns for claim in claims),
        cells=np.logical_or.reduce([claim.cells for claim in claims]),
        value_ns=max((claim.value_ns for claim in claims if claim.value_ns is not None), default=None),
        samples=sum(claim.samples for claim in claims),
        missing=sum(claim.missing for claim in claims),
        certainty=max(claim.certainty for claim in claims),
        latency_ns=(min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None,
    )
