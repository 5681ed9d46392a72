"""What happened in a run: all detectors look at one ground, and each window's excess is given to one of their claims.

    Origin, Question --> ground --> claims of DETECTORS --> joined over operations and members --> allotted --> ranked

A claim that keeps less than half of its own excess and of its windows, because claims that come before it explain them, is none.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, replace
from itertools import chain
from typing import Any, NamedTuple

import numpy as np

from ingest.core.errors import InputError, UsageError
from ingest.core.layout import Float
from ingest.query.origin import FINDINGS, Answering, Origin
from ingest.query.plan import settled
from ingest.query.question import Question, Settled, selected_runs, steady_words
from ingest.query.story.below import with_lower_layers
from ingest.query.story.ground import (
    DRIFT,
    EDGE,
    EPISODE,
    FAILURES,
    HOST,
    IMBALANCE,
    MODES,
    OMISSION,
    OP,
    RHYTHM,
    SLOW_MEMBER,
    STALL,
    STEP,
    THOSE,
    THROTTLED,
    Claim,
    ClaimedCells,
    Finding,
    Ground,
    Labels,
    NoGroundError,
    Story,
    as_detail,
    at_one_time,
    covered_groups,
    excess_against,
    grounds,
    member,
    numbers_by,
    own_groups,
    peers_of,
    shared_ns,
    without_data,
)
from ingest.query.story.segments import LEAST_TIMES, SEVERAL, changes, together_of
from ingest.query.story.shapes import beside_peers, failures, modes, of_the_tail, omissions, rhythms, stalls
from ingest.query.story.steady import steady_of
from ingest.query.story.stored import WHOLE, is_whole
from ingest.query.story.words import NOTHING, OF_THE_REST, reference_sentence, words_of

# Claims about one event on several operations or members become one claim, of as many of them as labels describe.
#
# ceph-a read, ceph-a write, ceph-b read, ceph-b write --> all hosts        ceph-a read, ceph-a write --> ceph-a


JOINED = (STALL, RHYTHM, THROTTLED, SLOW_MEMBER, IMBALANCE)  # detectors of others look at all sets of members
EVENTS = (STALL, RHYTHM)  # of which several members may have one
ALIKE = 0.02  # of a period, that two rhythms which are one may be apart
NEAR = 2  # windows that beginnings and ends of one event may be apart on several members


def described(ground: Ground, groups: Iterable[int]) -> Labels | None:
    """Return the labels that describe these groups and no other, None where none do; what all have is not named, but a host."""
    chosen = frozenset(groups)
    shared = set.intersection(*(set(ground.groups[code]) for code in chosen))
    common = {label for label in shared if label[0] != HOST and all(label in labels for labels in ground.groups)}
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
    """Return whether two claims of a kind may be about one event: they begin and end at the same time, or nearly.

    Rhythms are in step, too: what comes back with one period comes at other times on each of several hosts.
    """
    if own_groups(ground, first) & own_groups(ground, second):
        return False
    (period, begins), (other, begun) = (
        (claim.details.get("period_ns", 1.0), claim.details.get("first_ns", 0)) for claim in (first, second)
    )
    near = NEAR * ground.step_ns
    if abs(period / other - 1) > ALIKE or abs(math.remainder(begins - begun, period)) > near:
        return False
    if max(abs(first.start_ns - second.start_ns), abs(first.end_ns - second.end_ns)) <= near:
        return True
    return 2 * shared_ns(first, second) > max(first.end_ns - first.start_ns, second.end_ns - second.start_ns)


def _collapsed(ground: Ground, claims: list[Claim]) -> list[Claim]:
    """Return claims about one event as few as labels can describe: of all, else of each member, else of each operation.

    What is no state of a member, but something that happened to several, is one claim, whether labels describe these or not.
    """
    covered = [covered_groups(ground, claim.who) for claim in claims]
    about = numbers_by(covered)
    rest = set(about)
    if claims[0].kind in EVENTS and len({member(ground.groups[code]) for code in rest}) >= SEVERAL:
        return [_merged(ground, claims, described(ground, rest) or together_of(ground.groups, sorted(rest)).who)]
    out: list[Claim] = []
    members = dict.fromkeys(member(labels) for labels in ground.groups)
    operations = dict.fromkeys(tuple(label for label in labels if label[0] == OP) for labels in ground.groups)
    parts = (covered_groups(ground, labels) for labels in (*members, *operations))
    for groups in chain([frozenset(rest)], parts, covered):
        if not rest:
            break
        who = described(ground, groups) if groups and groups <= rest else None
        if who is None:
            continue
        mine = sorted({number for code in groups for number in about[code]})
        if all(covered[number] <= groups for number in mine):
            out.append(_merged(ground, [claims[number] for number in mine], who))
            rest -= groups
    out += [claim for claim, own in zip(claims, covered, strict=True) if own & rest]  # which no labels tell from others
    return out


def _merged(ground: Ground, claims: Sequence[Claim], who: Labels) -> Claim:
    """Return claims about one event as one claim: its extremes and sums, with what the worst of them tells further."""
    if len({id(claim) for claim in claims}) == 1:
        return replace(claims[0], who=who)
    worst = max(claims, key=lambda claim: (claim.times or 0.0, claim.value_ns or 0.0, claim.certainty))
    ranges = [claim.latency_ns for claim in claims if claim.latency_ns is not None]
    groups = frozenset().union(*(own_groups(ground, claim) for claim in claims))
    dense = np.zeros(worst.cells.shape, np.bool_)
    for claim in claims:
        dense[claim.cells.groups] |= claim.cells.own
    return replace(
        worst,
        who=who,
        start_ns=min(claim.start_ns for claim in claims),
        end_ns=max(claim.end_ns for claim in claims),
        cells=ClaimedCells.of(dense),
        value_ns=max((claim.value_ns for claim in claims if claim.value_ns is not None), default=None),
        samples=sum(claim.samples for claim in claims),
        missing=sum(claim.missing for claim in claims),
        details={**worst.details, **as_detail(ground, who, groups)},
        certainty=max(claim.certainty for claim in claims),
        latency_ns=(min(low for low, _ in ranges), max(high for _, high in ranges)) if ranges else None,
    )


# Who is given the excess of a window that several claims explain: what is short and certain first, what lasts all the run last.
PRECEDENCE = (STALL, RHYTHM, EPISODE, THROTTLED, SLOW_MEMBER, STEP, DRIFT, MODES, IMBALANCE, OMISSION, EDGE, FAILURES)
BY_PEERS = (THROTTLED, SLOW_MEMBER)
# Facts of the run, whoever is given its excess: no event makes them.
WITHOUT_EXCESS = (FAILURES, IMBALANCE, OMISSION, MODES, STEP, DRIFT)
# What a kind explains wherever it is about the same member, whole runs through.
EXPLAINED = {THROTTLED: (SLOW_MEMBER, MODES), SLOW_MEMBER: (MODES,)}
KEPT = 0.5
NOTABLE = 0.01  # of the operations of a run: where less is missing in all, whose part of that is large says little
MOST_FACTS = 4
KIND = "kind"

# Each is shown what was claimed before it: windows of a stall or a rhythm are no levels, and peers are compared by what is left.
Detector = Callable[[Ground, Sequence[Claim]], list[Claim]]


def of_parts(detect: Detector) -> Detector:
    """Return a detector that looks at the parts of members, where these are known: its claims name them."""

    def detected(ground: Ground, so_far: Sequence[Claim]) -> list[Claim]:
        parts = ground.finer
        if parts is None:
            return detect(ground, so_far)
        own_of = (next(code for code, own in enumerate(ground.groups) if set(own) <= set(labels)) for labels in parts.groups)
        whole = np.fromiter(own_of, np.int64)

        def of_whole(claim: Claim) -> Claim:
            dense = np.zeros(ground.shape, np.bool_)
            np.logical_or.at(dense, whole[claim.cells.groups], claim.cells.own)
            return replace(claim, cells=ClaimedCells.of(dense))

        by_part = [replace(claim, cells=ClaimedCells.of(claim.cells.dense[whole])) for claim in so_far]
        return [of_whole(claim) for claim in detect(parts, by_part)]

    return detected


DETECTORS: tuple[Detector, ...] = (
    of_parts(stalls),
    of_parts(rhythms),
    modes,
    of_parts(changes),
    beside_peers,
    omissions,
    failures,
)


class Allotted(NamedTuple):
    """A claim and the excess in ns that it is given."""

    claim: Claim
    excess_ns: float


def story(origin: Origin, question: Question, source: str = "") -> Story:
    """Return what happened in the one run (or several added up) that a question selects.

    `source` is what the commands of findings name as their source. Of a whole run that a store has findings of, as new as its
    data, these are returned. Raises what `origin.answer` raises.
    """
    question = settled(origin, question)
    kept, chosen = origin.offers.get(FINDINGS), selected_runs([run.run for run in origin.runs()], question)
    if kept is not None and is_whole(question) and len(chosen) == 1:
        told = kept(chosen[0], source)
        if told is not None:
            return told
    told = computed(origin, question, source)
    return told if told.run else replace(told, run=", ".join(chosen))


def computed(origin: Answering, question: Question, source: str = "") -> Story:
    """Return what happened in the one run (or several added up) that a question selects, from its data."""
    try:
        ground, layers = grounds(origin, question)
    except NoGroundError as reason:
        return nothing_told(", ".join(question.runs), str(reason))
    return with_lower_layers(origin, question, ground, layers, story_of(ground, source, question))


def stories(origin: Origin, question: Question, source: str = "") -> list[Story]:
    """Return the story of each run that a question selects, in the order of their names; of all together with `merge_runs`."""
    if question.in_one_window:
        raise UsageError("findings need windows: leave out --step all")
    chosen = selected_runs([run.run for run in origin.runs()], question)
    if question.merge_runs or len(chosen) == 1:
        return [story(origin, question, source)]
    told, refused = [], []
    for run in chosen:
        narrowed = question.about([run])
        try:
            told.append(story(origin, narrowed, source))
        except InputError as error:  # nothing of this run is selected, or it has means alone
            refused.append(error)
    if not told:
        raise refused[0]
    return told


def nothing_told(run: str, reason: str) -> Story:
    """Return the story of a run of which nothing can be said, and why."""
    return Story(run, (), 0.0, 0.0, f"No findings: {reason}.", "", 0, 0, relative=False)


def story_of(ground: Ground, source: str = "", question: Question = WHOLE, detectors: Sequence[Detector] | None = None) -> Story:
    """Return the story that a ground tells; shares and `unexplained` add up to 1 where there is any excess.

    Of a `question` about a part of the run it says from when to when, where that begins with its steady part; else when that is.
    """
    claims: list[Claim] = []
    for detect in DETECTORS if detectors is None else detectors:
        claims += detect(ground, claims)
    parts = ground.finer or ground  # claims may name these
    kept = unexplained_claims(parts, narrowed(ground, joined(parts, claims)))
    facts = [claim for claim in kept if claim.kind == MODES and not claim.details["changes"]]
    kept = [claim for claim in kept if claim.kind != MODES or claim.details["changes"]]
    excess = excess_with_peers(ground, kept)
    shares = allotted(kept, excess, ground.excess_ns)
    total = float(excess.sum())
    missing = sum(each.claim.missing for each in shares)
    findings = [_finding(each, ground, total, missing, source) for each in shares]
    notable = NOTABLE * float(ground.samples.sum())

    def weight(found: Finding) -> float:
        return max(found.share, found.missing_share * min(1.0, found.missing / notable))

    findings.sort(key=lambda found: (found.kind != FAILURES, -weight(found), found.start_ns, found.kind, found.who))
    explained = sum(found.share for found in findings)
    steady = None if question.in_part or question.where.keys() - {"run"} else steady_of(ground)
    runs = question.begin.runs if isinstance(question.begin, Settled) else ()
    said = [steady_words(question, run, ground.zero_ns, ground.covered_ns[1]) for run in runs] or [steady.tail if steady else ""]
    return Story(
        run=ground.run,
        findings=tuple(findings),
        excess_ns=total,
        unexplained=max(0.0, 1.0 - explained) if total else 0.0,
        nothing="" if findings else f"{NOTHING} {OF_THE_REST}" if ground.partly else NOTHING,
        reference=reference_sentence(ground),
        zero_ns=ground.zero_ns,
        step_ns=ground.step_ns,
        relative=ground.relative,
        caveats=tuple(filter(None, (*said, *_of_modes(facts, ground, source)))),
        lacks=ground.lacks,
        steady=steady,
    )


def _of_modes(facts: Sequence[Claim], ground: Ground, source: str) -> list[str]:
    """Return a sentence on the modes of each member; of many on those with most slow samples, and how many others have them."""
    shown = facts if len(facts) <= MOST_FACTS + 1 else sorted(facts, key=lambda fact: -fact.samples)[:MOST_FACTS]
    told, others = [words_of(fact, ground, 0.0, source).text for fact in shown], len(facts) - len(shown)
    return [*told, f"Latencies of {others:,} other members gather at several places, too."] if others else told


def unexplained_claims(ground: Ground, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims without those that another about the same member explains (see EXPLAINED)."""
    covered = [own_groups(ground, claim) for claim in claims]
    hosts = [{member(ground.groups[code]) for code in groups} for groups in covered]
    at_host = numbers_by(hosts)
    members = len({member(labels) for labels in ground.groups})

    def explains(at: int, number: int) -> bool:
        other, claim, mine, others = claims[at], claims[number], covered[number], covered[at]
        if other.kind == RHYTHM and claim.kind == SLOW_MEMBER:
            # A rhythm of a member alone lifts its p99 above that of its peers, and leaves its p50 as theirs.
            return hosts[number] <= hosts[at] and not 1 < len(hosts[at]) == members and of_the_tail(ground, mine)
        if other.kind == DRIFT and claim.kind == SLOW_MEMBER and claim.details["measure"] == other.details["measure"]:
            # What is as quick as its peers at one end of the run is slow by what it becomes.
            quick = min(other.details["from_ns"], other.details["to_ns"])
            return mine <= others and quick < LEAST_TIMES * claim.details["typical_ns"]
        pause, event = (claim, other) if claim.kind == STALL else (other, claim)
        if pause.kind == STALL and pause.value_ns is None and event.kind in (EPISODE, EDGE, STEP, RHYTHM, FAILURES):
            # Where a member does less for long, fails, or takes longer in a closed loop, some windows are dark by chance.
            alone = event.value_ns is None and at_one_time(pause, event) and (claim is event or mine == others)
            within = mine <= others and 2 * shared_ns(pause, event) >= claim.end_ns - claim.start_ns
            return within and alone == (claim is event)
        if claim.kind == MODES and not claim.details["changes"] and other.kind == MODES:
            return other is not claim and bool(mine & others)
        return mine <= others and claim.kind in EXPLAINED.get(other.kind, ())

    def near(number: int) -> Iterable[int]:
        """Return the claims about any member of those that a claim is about: no other can explain it."""
        return {at for who in hosts[number] for at in at_host[who]} if hosts[number] else range(len(claims))

    return [claim for number, claim in enumerate(claims) if not any(explains(at, number) for at in near(number))]


def narrowed(ground: Ground, claims: Sequence[Claim]) -> list[Claim]:
    """Return the claims, each about the groups alone that did so and have data then; where no labels describe these, how many.

    What is said of a set is so of those of which anything is known: where one is left, it is about that.
    """
    parts, names = ground.finer or ground, {name for name, _ in ground.groups[0]}

    def members(codes: Iterable[int]) -> set[Labels]:
        return {tuple(label for label in member(parts.groups[code]) if label[0] in names) for code in codes}

    def of_those(claim: Claim) -> Claim:
        every = covered_groups(parts, claim.who)
        lacking = without_data(parts, every, claim.start_ns, claim.end_ns)
        left = own_groups(parts, claim) - lacking
        if left == every or not left:  # what is so throughout is so of the time of which there is data
            return claim
        if (who := described(parts, left)) is not None:
            return replace(claim, who=who)
        others = every - lacking - left
        whole = members(others) - members(left)
        some = {
            tuple(label for label in parts.groups[code] if label not in claim.who)
            for code in others
            if not members([code]) & whole
        }
        those, of = members(left), members(every)
        told = {
            "known": len(those),
            "every": len(of),
            "dark": len(of - those - whole),
            "fewer": len(whole) > len(those),  # the fewer are named
            "spared": (*sorted(whole), *sorted(some)),
            THOSE: tuple(sorted(those)) if len(those) < len(of) else (),
        }
        return replace(claim, details={**claim.details, **told})

    return list(map(of_those, claims))


def excess_with_peers(ground: Ground, claims: Sequence[Claim]) -> Float:
    """Return the excess in ns of each group and window: of slow and throttled members that against peers which are neither."""
    slow = {code for claim in claims if claim.kind in BY_PEERS for code in covered_groups(ground, claim.who)}
    excess = ground.excess_ns.copy()
    for code in sorted(slow):
        peers = [peer for peer in peers_of(ground, code) if peer not in slow]
        if peers:
            excess[code] = excess_against(ground, code, peers)
    return excess


def allotted(claims: Sequence[Claim], excess: Float, own_excess: Float) -> list[Allotted]:
    """Return the claims with their excess: each window's goes to the first in the order of PRECEDENCE, then of certainty.

    Without those of which claims before them explain most excess and most windows. `own_excess` is that of all members against
    their own reference: a member that is slow against its peers explains nothing of how it changes over time.
    """
    order = sorted(claims, key=lambda claim: (PRECEDENCE.index(claim.kind), -claim.certainty, claim.start_ns, claim.who))
    free, unexplained = np.ones(excess.shape, np.bool_), np.ones(excess.shape, np.bool_)
    out = []
    for claim in order:
        groups, cells = claim.cells.groups, claim.cells.own
        still = cells & unexplained[groups]
        whole, rest = float(own_excess[groups][cells].sum()), float(own_excess[groups][still].sum())
        if claim.kind not in WITHOUT_EXCESS and not claim.missing and rest < KEPT * whole and still.sum() < KEPT * cells.sum():
            continue
        out.append(Allotted(claim, float(excess[groups][cells & free[groups]].sum())))
        free[groups] &= ~cells
        if claim.kind not in BY_PEERS:
            unexplained[groups] &= ~cells
    return out


def _finding(each: Allotted, ground: Ground, total: float, missing: float, source: str) -> Finding:
    """Return what is shown of a claim."""
    low, high = ground.covered_ns
    who = tuple(label for label in each.claim.who if label[1])  # an empty label is none
    claim = replace(each.claim, who=who, start_ns=max(each.claim.start_ns, low), end_ns=min(each.claim.end_ns, high))
    share = each.excess_ns / total if total else 0.0
    missing_share = claim.missing / missing if missing else 0.0
    words = words_of(claim, ground, share, source)
    told = {
        name: getattr(claim, name) for name in ("kind", "who", "start_ns", "end_ns", "times", "samples", "missing", "latency_ns")
    }
    shares: dict[str, Any] = {"excess_ns": each.excess_ns, "share": share, "missing_share": missing_share}
    return Finding(run=ground.run, **told, **shares, **asdict(words), members=claim.details.get(THOSE, ()))
