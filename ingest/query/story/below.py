"""Whether the client's excess of a finding is seen below it: in which service (an OSD), on which device (a disk), how much of it.

    finding: windows of the client --> the same windows of each member of a lower layer, against that member's other windows
    bins are intervals: an operation took [lower, upper), so that what a member's operations took longer lies in [least, most]
                 reference  [1, 2) ms     the same bin            least 0                       most its width
                 now        [4, 8) ms     two bins further        least 4 - 2 ms an operation   most 8 - 1 ms

A member is named where the least that it must have taken longer is a share of what the clients took longer, and beyond what its
other windows do by chance. Where the most is not enough, the cause lies above the layer. Else it cannot be told, and why is said.

A client that is slow or throttled throughout has no other windows: the members on its hosts are held against those on others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ingest.core.intervals import Bool, Int, Intervals, concatenate, distinct, median, merged
from ingest.core.labels import CLIENT, LABELS, LAYER, LAYERS, Group
from ingest.core.layout import Float, Layout, common_layout
from ingest.core.quantiles import Ranked
from ingest.core.units import figure
from ingest.query.means import with_bins
from ingest.query.origin import Answering
from ingest.query.question import Answer, NothingMatchesError, Question
from ingest.query.story.ground import (
    DRIFT,
    EPISODE,
    MEMBER,
    OP,
    P99,
    RHYTHM,
    SLOW_MEMBER,
    STALL,
    STEP,
    THROTTLED,
    Below,
    Finding,
    Ground,
    Story,
)

BY = (*MEMBER, OP)
OF_TIMES = (STALL, EPISODE, STEP, DRIFT, RHYTHM)  # findings that are typical at other times: what lasts throughout is not
THROUGHOUT = (SLOW_MEMBER, THROTTLED)  # findings by peers: what lasts throughout has no other windows
LEAST_SHARE = 0.1  # of the clients' excess, that a member must account for to be named
NOT_THERE = 0.5  # of it: where all members together can hold less than that, the cause lies above them
BEYOND = 3.0  # times what any other stretch of the member's windows has
ALIKE = 0.5  # of the worst member's excess an operation: as slow as that one
MOST_NAMED = 3
MOST_STRETCHES = 60
COVERED = 0.9  # of the windows: where a layer has data in fewer it cannot be said that the cause is not there
LEAST_PEERS = 2
LEAST_OUTSIDE = 5  # windows that are typical of a member
AFTER_STALL = 2  # windows in which what waited arrives
PERCENT = 100
SEEN, NOT_SEEN, CANNOT_TELL = "seen", "not seen", "cannot tell"
ABOVE = "not seen there: it can hold {} of it at most, so the cause lies above"


@dataclass(frozen=True, slots=True)
class Lower:
    """One layer below the client, in the windows of the client's ground.

    `members` are the labels of each of its members. Row i of `rows` is of member `member_of[i]`, of its operation `code_of[i]`,
    and of window `window_of[i]` of the ground.
    """

    layer: str
    members: tuple[Group, ...]
    rows: Intervals[Group]
    member_of: Int
    code_of: Int
    window_of: Int
    op_at: int = len(BY) - 1

    @property
    def within_bins(self) -> str:
        """Return what cannot be told because of its bins: how much wider than its lower edge one is, at the median sample."""
        layout, counts = self.rows.layout, np.bincount(self.rows.bins, self.rows.counts, self.rows.layout.bins)
        place = int(np.searchsorted(np.cumsum(counts), counts.sum() / 2))
        low, high = int(layout.lower[place]), int(layout.upper[place])
        width = f"{PERCENT * ((high - low) / max(low, 1)):.0f} %"
        return f"cannot tell: its bins are about {width} wide, and what stays within a bin is not seen"


class Member(NamedTuple):
    """What a member took longer in some windows: at least and at most, in ns, and by how many operations.

    `others` is the most, in ns an operation, that as many other windows of it have at least; `before` how many operations it did
    in its other windows.
    """

    least_ns: float
    most_ns: float
    samples: int
    others: float
    before: int

    @property
    def each(self) -> float:
        """Return by how much longer each operation took at least, in ns at the mean."""
        return self.least_ns / max(self.samples, 1)


def with_lower_layers(origin: Answering, question: Question, ground: Ground, layers: Sequence[str], story: Story) -> Story:
    """Return the story whose findings say whether they are seen below the client; as it is where there is no lower layer.

    `layers` are those of the run. Raises what `origin.answer` raises for anything but a selection that is empty.
    """
    below = [layer for layer in LAYERS if layer in layers and layer != CLIENT]
    asked = LAYER in question.where or "kind" in question.where
    told = any(finding.kind in (*OF_TIMES, *THROUGHOUT) for finding in story.findings)
    if CLIENT not in layers or not below or asked or not told:
        return story
    lower = [found for layer in below if (found := _lower(origin, question, ground, layer)) is not None]
    if not lower:
        return story
    windows = [windows_of(finding, ground) if finding.kind in OF_TIMES else None for finding in story.findings]
    quiet = ~np.logical_or.reduce([np.zeros(len(ground.start_ns), np.bool_), *(each for each in windows if each is not None)])
    findings = []
    for finding, mine in zip(story.findings, windows, strict=True):
        if mine is not None:
            findings.append(_told(finding, mine, quiet, ground, lower))
        elif finding.kind in THROUGHOUT and finding.excess_ns > 0:
            findings.append(_said(finding, [beside_peers(each, finding, ground) for each in lower], "throughout"))
        else:
            findings.append(finding)
    return replace(story, findings=tuple(findings))


def _lower(origin: Answering, question: Question, ground: Ground, layer: str) -> Lower | None:
    """Return a layer of the run in the client's windows; labels of the client's series do not select it."""
    where = {name: glob for name, glob in question.where.items() if name == "run" or name not in LABELS}
    asked = replace(question, where={**where, LAYER: layer}, by=BY, step=ground.step_ns, force=True)
    try:
        return lower_of(with_bins(origin.answer(asked)), ground, layer)
    except NothingMatchesError:
        return None


def lower_of(answer: Answer, ground: Ground, layer: str) -> Lower | None:
    """Return an answer about a layer by BY in the windows of a ground; None where it has none of them."""
    parts = [part for part in answer.parts if len(part) and part.layout.has_bins]
    if not parts:
        return None
    layout = common_layout(part.layout for part in parts)
    places = [answer.by.index(name) for name in BY]
    rows = merged([concatenate([part.in_layout(layout) for part in parts])])
    keys = [tuple(key[place] for place in places) for key in rows.table]
    # Host and volume; job and process of a series that has no volume.
    names = [(host, volume, "", "") if volume else (host, "", job, process) for host, volume, job, process, _ in keys]
    members = {name: number for number, name in enumerate(sorted(set(names)))}
    member_of = np.array([members[name] for name in names], np.int64)[rows.series]
    pairs = [(name, key[-1]) for name, key in zip(names, keys, strict=True)]
    codes = {pair: code for code, pair in enumerate(sorted(set(pairs)))}
    code_of = np.array([codes[pair] for pair in pairs], np.int64)[rows.series]
    window = (rows.start_ns - int(ground.start_ns[0])) // ground.step_ns
    inside = np.flatnonzero((window >= 0) & (window < len(ground.start_ns)))
    if not len(inside):
        return None
    at = answer.by.index(OP)
    return Lower(layer, tuple(members), rows.take(inside), member_of[inside], code_of[inside], window[inside], at)


def _told(finding: Finding, windows: Bool, quiet: Bool, ground: Ground, lower: Sequence[Lower]) -> Finding:
    """Return a finding with what is seen of it below."""
    excess = float(ground.excess_ns[:, windows].sum())
    if not windows.any() or not excess:
        return finding
    done = ground.samples.sum(axis=0).astype(np.float64)
    return _said(finding, [judged(layer, windows, quiet, excess, done) for layer in lower], "in the same windows")


def _said(finding: Finding, below: Sequence[Below], when: str) -> Finding:
    named = [f"{_listed([_name(who) for who in each.members])} ({each.layer})" for each in below if each.verdict == SEEN]
    text = f"{finding.text} Slow below it {when}: {', '.join(named)}." if named else finding.text
    return replace(finding, text=text, below=tuple(below))


def beside_peers(lower: Lower, finding: Finding, ground: Ground) -> Below:
    """Return what is seen in a layer of a finding that lasts throughout: the members on its hosts against those on others.

    Where no member is on its hosts, nothing says whose operations the members' are.
    """
    hosts = {value for name, value in finding.who if name == "host"}
    own = [at for at, member in enumerate(lower.members) if member[0] in hosts and member[0]]
    others = [at for at in range(len(lower.members)) if at not in own]

    def told(verdict: str, why: str, chosen: Sequence[int], least: float = 0.0, most: float = 1.0) -> Below:
        who = tuple(lower.members[at] for at in chosen)
        return Below(lower.layer, verdict, who, min(1.0, least), min(1.0, most), f"{lower.layer}: {why}")

    if not own:
        return told(CANNOT_TELL, "cannot tell: nothing says which of its operations are those of this client", ())
    if len(others) < LEAST_PEERS:
        return told(CANNOT_TELL, f"cannot tell: it has fewer than {LEAST_PEERS} others to hold its own against", ())
    usual = max(_against(lower, at, [peer for peer in others if peer != at])[2] for at in others)
    measured = {at: _against(lower, at, others) for at in own}
    slow = [at for at, (_, _, each) in measured.items() if each > BEYOND * usual]
    least, most = (sum(measured[at][side] for at in own) / finding.excess_ns for side in (0, 1))
    of_slow = sum(measured[at][0] for at in slow) / finding.excess_ns
    if slow and of_slow >= LEAST_SHARE:
        top = sum(measured[at][1] for at in slow) / finding.excess_ns
        was = "was" if len(slow) == 1 else "were"
        names = _listed([_name(lower.members[at]) for at in slow])
        return told(SEEN, f"{names} {was} slower than others throughout: {_share(of_slow, top)} longer", slow, of_slow, top)
    mine = np.isin(lower.member_of, own)
    covered = len(np.unique(lower.window_of[mine])) / max(int(np.count_nonzero(ground.samples.sum(axis=0))), 1)
    of_all = finding.samples / max(int(ground.samples.sum()), 1)
    if covered < COVERED or lower.rows.samples[mine].sum() < NOT_THERE * of_all * lower.rows.samples.sum():
        return told(CANNOT_TELL, "cannot tell: it has no data in some windows", (), least, most)
    if most < NOT_THERE:
        return told(NOT_SEEN, ABOVE.format(_percent(most)), (), least, most)
    return told(CANNOT_TELL, lower.within_bins, (), least, most)


def _against(lower: Lower, number: int, peers: Sequence[int]) -> tuple[float, float, float]:
    """Return by how much a member's operations took longer than its peers', in ns: at least, at most, at least each.

    Operations that no peer does are left out.
    """
    least = most = samples = 0.0
    operations = np.array([key[lower.op_at] for key in lower.rows.table])[lower.rows.series]
    for operation in np.unique(operations[lower.member_of == number]):
        alike = operations == operation
        counts = _counts(lower.rows, np.flatnonzero(alike & (lower.member_of == number)))
        typical = _counts(lower.rows, np.flatnonzero(alike & np.isin(lower.member_of, peers)))
        if typical.any():
            low, high = _bounds(counts, typical, lower.rows.layout)
            least, most, samples = least + low, most + high, samples + float(counts.sum())
    return least, most, least / max(samples, 1.0)


def windows_of(finding: Finding, ground: Ground) -> Bool:
    """Return the windows (T) of a finding and those beside them; of a rhythm those with more than its mean excess."""
    step = ground.step_ns
    after = AFTER_STALL if finding.kind == STALL else 1
    windows: Bool = (ground.start_ns + 2 * step > finding.start_ns) & (ground.start_ns < finding.end_ns + after * step)
    if finding.kind == RHYTHM:
        excess = ground.excess_ns.sum(axis=0)
        windows &= excess > excess[windows].mean() if windows.any() else windows
    return windows


def judged(lower: Lower, windows: Bool, quiet: Bool, excess_ns: float, done: Float) -> Below:
    """Return what is seen in a layer of an excess that the clients have in some windows, in ns summed over their operations.

    `quiet` are the windows in which nothing happened: those that are typical of each member. `done` is what the clients
    completed in each window.
    """
    seen_in = np.zeros(len(windows), np.bool_)
    seen_in[lower.window_of] = True
    outside = quiet if np.count_nonzero(seen_in & quiet) >= LEAST_OUTSIDE else ~windows
    members = [_measured(lower, number, windows, outside) for number in range(len(lower.members))]
    everyone = range(len(members))

    def told(verdict: str, why: str, chosen: Sequence[int] = everyone) -> Below:
        least, most = (sum(getattr(members[at], name) for at in chosen) / excess_ns for name in ("least_ns", "most_ns"))
        who = () if chosen is everyone else tuple(lower.members[at] for at in chosen)
        return Below(lower.layer, verdict, who, min(1.0, least), min(1.0, most), f"{lower.layer}: {why}")

    covered = float(seen_in[windows].mean())
    if covered < NOT_THERE:
        return told(CANNOT_TELL, f"cannot tell: it has no data in {'most of ' if covered else ''}these windows")
    if np.count_nonzero(seen_in & outside) < LEAST_OUTSIDE:
        return told(CANNOT_TELL, "cannot tell: it has no data at other times to hold these windows against")
    risen = [at for at, member in enumerate(members) if member.each > BEYOND * member.others]
    worst = max((members[at].each for at in risen), default=0.0)
    alike = sorted((at for at in risen if members[at].each >= ALIKE * worst), key=lambda at: -members[at].least_ns)
    if alike and sum(members[at].least_ns for at in alike) >= LEAST_SHARE * excess_ns:
        active = sum(member.samples > 0 for member in members)
        if len(alike) > 1 and (2 * len(alike) > active or len(alike) > MOST_NAMED):
            return told(CANNOT_TELL, f"cannot tell which: {len(alike)} of {active} slowed down at once")
        names = _listed([_name(lower.members[at]) for at in alike])
        least, most = (sum(getattr(members[at], name) for at in alike) / excess_ns for name in ("least_ns", "most_ns"))
        was = "was" if len(alike) == 1 else "were"
        return told(SEEN, f"{names} {was} slow in the same windows: {_share(least, most)} longer", alike)
    silent = [_name(name) for name, member in zip(lower.members, members, strict=True) if member.before and not member.samples]
    if silent:
        has = "has" if len(silent) == 1 else "have"
        return told(CANNOT_TELL, f"cannot tell: {_listed(silent[:MOST_NAMED])} {has} no data in these windows")
    most = sum(member.most_ns for member in members) / excess_ns
    of_clients = float(done[windows].sum() / max(done[outside].sum(), 1))
    counted_then, counted_else = (sum(getattr(member, name) for member in members) for name in ("samples", "before"))
    if covered < COVERED or counted_then < NOT_THERE * of_clients * counted_else:  # polls that were lost, or spread over others
        return told(CANNOT_TELL, "cannot tell: it has no data in some of these windows")
    if most < NOT_THERE:
        return told(NOT_SEEN, ABOVE.format(_percent(most)))
    return told(CANNOT_TELL, lower.within_bins)


def _measured(lower: Lower, number: int, windows: Bool, outside: Bool) -> Member:
    """Return what a member took longer in some windows than in others, all its operations together."""
    least = most = others = 0.0
    samples = before = 0
    mine = lower.member_of == number
    for code in distinct(lower.code_of[mine]).tolist():
        rows = np.flatnonzero(mine & (lower.code_of == code))
        now, then = (rows[chosen[lower.window_of[rows]]] for chosen in (windows, outside))
        if len(now) and len(then):
            counts = _counts(lower.rows, now)
            stretches = list(_stretches(lower, then, int(windows.sum()), int(counts.sum())))
            part = lower.rows.take(then)
            p99 = Ranked(part).values(np.arange(len(part)), P99.ranks(part.samples))
            typical = _counts(lower.rows, then[p99 <= median(p99)])  # of rows whose p99 is at or below the median of theirs
            bounds = _bounds(counts, typical, lower.rows.layout)
            least, most = least + bounds[0], most + bounds[1]
            others = max([others, *(_bounds(each, typical, lower.rows.layout)[0] / each.sum() for each in stretches)])
        samples += int(lower.rows.samples[now].sum())
        before += int(lower.rows.samples[then].sum())
    return Member(least, most, samples, others, before)


def _counts(rows: Intervals[Group], chosen: Int) -> Int:
    """Return the counts by bin of some rows together."""
    part = rows.take(chosen)
    return np.bincount(part.bins, part.counts, rows.layout.bins).astype(np.int64)


def _stretches(lower: Lower, rows: Int, width: int, samples: int) -> Iterator[Int]:
    """Yield the counts by bin of stretches of so many other windows, where these hold half as many samples at least."""
    stretch = lower.window_of[rows] // max(width, 1, -(-int(lower.window_of.max() + 1) // MOST_STRETCHES))
    for number in distinct(stretch).tolist():
        counts = _counts(lower.rows, rows[stretch == number])
        if 2 * counts.sum() >= samples:
            yield counts


def _bounds(counts: Int, reference: Int, layout: Layout) -> tuple[float, float]:
    """Return by how much samples took longer than as many of a reference, at least and at most, in ns summed over samples.

    The area by which one quantile function lies above another, both as the bins bound them. It is exact for what the bins say.
    """
    (own,), (other,) = np.nonzero(counts), np.nonzero(reference)
    if not len(own) or not len(other):
        return 0.0, 0.0
    number = int(counts.sum())
    lower, upper = layout.lower.astype(np.float64), np.where(layout.opened(np.arange(layout.bins)), np.inf, layout.upper)

    def quantiles(held: Int, bins: Int, ends: Float) -> tuple[Float, Float]:
        """Return the ends of bins in order, and up to which share of the samples each reaches."""
        order = bins[np.argsort(ends[bins], kind="stable")]
        return ends[order], np.cumsum(held[order]) / held.sum()

    sides = [quantiles(held, bins, ends) for held, bins in ((counts, own), (reference, other)) for ends in (lower, upper)]
    cuts = np.unique(np.concatenate([shares for _, shares in sides]))
    width = np.diff(cuts, prepend=0.0)
    from_ns, to_ns, usual_from, usual_to = (
        ends[np.minimum(np.searchsorted(shares, cuts), len(ends) - 1)] for ends, shares in sides
    )
    least, most = np.maximum(from_ns - usual_to, 0.0), np.maximum(to_ns - usual_from, 0.0)
    return number * float(width @ least), number * float((width * most)[width > 0].sum())


def _name(member: Group) -> str:
    """Return what a member is called: osd.3 on ceph1."""
    host, volume, job, process = member
    own = volume or " ".join(filter(None, (job, process)))
    return f"{own} on {host}" if own and host else own or host or "the only one"


def _listed(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def _share(least: float, most: float) -> str:
    low, high = _percent(min(least, 1.0)), _percent(min(most, 1.0))
    if least >= 1:
        return "it took as long as all that the clients' operations took"
    upto = "perhaps all" if most >= 1 else f"at most {high}"
    return f"it took at least {low} and {upto} of what the clients' operations took"


def _percent(share: float) -> str:
    return f"{figure(PERCENT * share, 2)} %"
