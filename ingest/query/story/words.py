"""Findings in words: a sentence with numbers, what it is consistent with, what speaks against it, and the command that shows it.

Each kind has a function in WORDS that makes its first sentence of a claim; what all share is added here.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.core.errors import listed
from ingest.core.grid import SECOND
from ingest.core.units import UNITS_NS, figure, format_duration, latency, spaced, utc
from ingest.query.question import literal
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
    Ground,
    Labels,
    Story,
    member,
)
from ingest.query.story.shapes import MISSING

NOTHING = "Nothing stands out: no window, host or time is beyond what this run does by itself."
OF_THE_REST = "Samples are missing: this is about the others."
REFERENCE = (
    "Typical is each {member}'s own windows of {step} whose p99 is at or below the median of its p99s; for slow and throttled "
    "members their peers."
)
LEAST_SHARE = 0.005
PERCENT = 100
TENTH = SECOND // 10
SHOWN, BESIDE = "50,99,100", 2
SMEARED = 2  # windows that a row of a log may lie in: what is shorter is not told from what is as long
INEXACT = 0.25  # of a window, that the width of a rhythm is wrong by
Details = Mapping[str, Any]  # of a claim
REACHED = {STALL: "slowest", MODES: "around"}  # what the latency of a claim is, where it is no percentile
MOST_NAMED = 5
NAMES = {"volume": "volume ", "job": "job ", "process": "process ", "tag": "tag "}


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a finding; `tail` is the end of its text, about how much it accounts for."""

    text: str
    tail: str
    value: str
    consistent: str
    against: str
    command: str


def words_of(claim: Claim, ground: Ground, share: float, source: str) -> Words:
    """Return what is said of a claim that is given a share of all excess."""
    sentence_of, consistent = WORDS[claim.kind]
    tail = f" It accounts for {PERCENT * share:.0f} % of all excess latency" if share >= LEAST_SHARE else ""
    if claim.missing >= 1:
        number = about(claim.missing)
        tail += f"{f'; {number}' if tail else f' {number.capitalize()}'} completions did not happen (estimate)"
    tail += "." if tail else ""
    return Words(
        text=sentence_of(claim, ground, claim.details) + _others(claim, ground) + tail,
        tail=tail,
        value=_reached(claim),
        consistent=consistent,
        against=claim.against,
        command=command_of(claim, ground, source),
    )


def _others(claim: Claim, ground: Ground) -> str:
    """Return a sentence on those of a set that did not, and those of which there is no data; empty where there are none."""
    spared, dark = claim.details.get("spared", ()), claim.details.get("dark", 0)
    named = not spared or claim.details["fewer"]
    parts = [] if named else [f"not {listed((name_of(who, ground) for who in spared), MOST_NAMED)}"]
    parts += [f"of the other{'s' * (dark > 1)} there is no data then"] if dark else []
    text = "; ".join(parts)
    return f" {text[0].upper()}{text[1:]}." if text else ""


def _reached(claim: Claim) -> str:
    """Return the latency that was reached and what it is, as written beside a frame: median 4.01 s; empty where none is known."""
    name = REACHED.get(claim.kind) or claim.details.get("percentile") or claim.details.get("measure", MISSING)
    if claim.value_ns is None or name == MISSING:
        return ""
    return f"{'median' if name == 'p50' else name} {shown(claim.value_ns)}"


def reference_sentence(ground: Ground) -> str:
    """Return what is taken for typical."""
    names = [name for name, _ in ground.groups[0] if name != OP]
    return REFERENCE.format(member=names[-1] if names else "run", step=format_duration(ground.step_ns))


def shown(value_ns: float) -> str:
    """Return a latency with a space before its unit: 4.01 s."""
    return spaced(latency(value_ns))


def factor(times: float) -> str:
    """Return how many times, in as many digits as tell something: 1.34, 12, 1,600."""
    if times < 10:
        return figure(times)
    digits = max(0, int(math.log10(times)) - 1)
    return f"{round(times, -digits):,.0f}"


def about(count: float) -> str:
    """Return a count that is an estimate, in two digits: about 8,000."""
    digits = max(0, int(math.log10(max(count, 1))) - 1)
    return f"about {round(count, -digits):,.0f}"


def moment(stamp_ns: int, of: Ground | Story) -> str:
    """Return a time in UTC, as options take it: 21:00:34.3; with its date from a day after the start of the run on.

    Of a run without a clock it is the time since its start: 29.9 s. `inClock` in state.js reads the first form.
    """
    if of.relative:
        return f"{(stamp_ns - of.zero_ns) / SECOND:.1f} s"
    day, clock = utc((stamp_ns + TENTH // 2) // TENTH * TENTH)[:21].split("T")
    return clock if stamp_ns - of.zero_ns < UNITS_NS["d"] else f"{day}T{clock}"


def name_of(who: Labels, ground: Ground) -> str:
    """Return who it was in words: ceph-b, ceph-b write, all hosts."""
    labels = dict(who)
    op = labels.pop(OP, "")
    names = [f"{NAMES.get(name, '')}{value}" for name, value in labels.items() if value]
    if not names:
        of = [name for name, _ in ground.groups[0] if name != OP]
        several = len({tuple(label for label in labels if label[0] != OP) for labels in ground.groups}) > 1
        names = [f"all {of[-1] if of else HOST}s" if several else "the run"]
    return " ".join([*names, *([op] if op else [])])


def subject(claim: Claim, ground: Ground) -> tuple[str, bool]:
    """Return who a claim is about in words, and whether these are several: 5 of 10 hosts, where others have no data."""
    name, details = name_of(claim.who, ground), claim.details
    several = name.startswith("all ")
    if several and details.get("known", 0) < details.get("every", 0):
        name = name.replace("all", f"{details['known']:,} of {details['every']:,}", 1)
        if details["fewer"]:
            name += f" ({listed((name_of(who, ground) for who in details[THOSE]), MOST_NAMED)})"
    return name, several


def range_words(claim: Claim, ground: Ground) -> str:
    """Return from when to when."""
    return f"from {moment(claim.start_ns, ground)} to {moment(claim.end_ns, ground)}"


def command_of(claim: Claim, ground: Ground, source: str) -> str:
    """Return the command that shows the numbers of a claim, as it is typed in a shell.

    What is held against peers, and what is so throughout, is shown over the whole run; else the windows of the claim and a few on
    either side of it.
    """
    words = ["tailboard", *(("show", "distribution") if claim.kind == MODES else ("percentiles",)), *shlex.split(source)]
    runs = ground.run.split(", ") if ground.run else []
    for run in runs:
        words += ["--run", literal(run)]
    words += ["--merge-runs"] if len(runs) > 1 else []
    by = ",".join(name for name, _ in ground.groups[0])
    if claim.kind in (SLOW_MEMBER, THROTTLED, IMBALANCE):
        return shlex.join([*words, *_where(claim, (OP,)), "--by", by, "--step", "all", "-p", SHOWN])
    if claim.kind == OMISSION:
        return shlex.join([*words, "--by", "kind", "--step", "all", "-p", SHOWN])
    words += _where(claim)
    if claim.kind == MODES:
        return shlex.join(words)
    first, last = ground.zero_ns, int(ground.start_ns[-1]) + ground.step_ns
    if claim.kind in (STEP, DRIFT):
        first = claim.details["at_ns"] if claim.kind == STEP else last - (last - first) // 10
        words += ["--by", ",".join(name for name, _ in claim.who)] if claim.who else []
        return shlex.join([*words, "--from", _since(first, ground), "--step", "all", "-p", SHOWN])
    words += ["--by", by]
    if claim.kind != RHYTHM:
        first = max(first, claim.start_ns - BESIDE * ground.step_ns)
        last = min(last, claim.end_ns + BESIDE * ground.step_ns)
        words += ["--from", _since(first, ground), "--to", _since(last, ground)]
    return shlex.join([*words, "--step", format_duration(ground.step_ns), "-p", SHOWN])


def _where(claim: Claim, names: Sequence[str] | None = None) -> list[str]:
    """Return the options that choose who it was (a few members by their names), or that many labels of it."""
    those = claim.details.get(THOSE, ())
    labels = dict.fromkeys((*claim.who, *(label for who in those for label in who if label[1] and len(those) <= MOST_NAMED)))
    wanted = [f"{name}={literal(value)}" for name, value in labels if names is None or name in names]
    return [word for text in wanted for word in ("--where", text)]


def _since(stamp_ns: int, ground: Ground) -> str:
    """Return a time as options take it: +28s, in tenths."""
    return f"+{max(0, round((stamp_ns - ground.zero_ns) / SECOND, 1)):.9g}s"


def _stall(claim: Claim, ground: Ground, details: Details) -> str:
    completed = "nothing" if details["silent"] else "hardly anything"
    long = f"{shown(details['gap_ns'])}{' at least' if details['open'] else ''}"
    gap = f"{subject(claim, ground)[0]} stalled {range_words(claim, ground)}: {completed} completed for {long}"
    if claim.value_ns is None:
        return f"{gap}, and no late completion came afterwards."
    late = "one operation" if claim.samples == 1 else f"{claim.samples:,} operations"
    return f"{gap}, and {late} took up to {shown(claim.value_ns)} (typical p99: {shown(details['typical_ns'])})."


def _slow_member(claim: Claim, ground: Ground, details: Details) -> str:
    levels = f"{_percentile(claim)} {shown(claim.value_ns or 0)}, theirs {shown(details['typical_ns'])}"
    return f"{name_of(claim.who, ground)} was {_ratio(claim)} times slower than its peers throughout: {levels}."


def _throttled(claim: Claim, ground: Ground, details: Details) -> str:
    below, varies = details["below"], details["varies"]
    rate = f"{details['rate']:,.0f} operations a second, {PERCENT * below:.0f} % of its peers"
    steady = f"and hardly more or less at any time (± {PERCENT * varies:.1f} %)"
    slow = f"{shown(claim.value_ns or 0)}, {_ratio(claim)} times theirs ({shown(details['typical_ns'])})"
    what = f"it completed {rate}, {steady}, with a {_percentile(claim)} of {slow}"
    return f"{name_of(claim.who, ground)} looks throttled throughout: {what}."


def _percentile(claim: Claim) -> str:
    """Return which percentile it is, with its operation where the claim is about several."""
    op = "" if OP in dict(claim.who) else claim.details["op"]
    return f"{op} {_measure(claim.details)}".strip()


def _was(claim: Claim, ground: Ground) -> str:
    name, several = subject(claim, ground)
    return f"{name} {'were' if several else 'was'}"


def _episode(claim: Claim, ground: Ground, details: Details) -> str:
    if claim.value_ns is None:
        name, several = subject(claim, ground)
        usual = f"{'their' if several else 'its'} usual work"
        share = f"{PERCENT * details['rate']:.0f} % of {usual}" if details["rate"] >= 0.01 else "nothing"
        return f"{name} did {share} {range_words(claim, ground)}."
    return (
        f"{_was(claim, ground)} {_ratio(claim)} times slower {range_words(claim, ground)}: "
        f"{details['percentile']} {shown(claim.value_ns or 0)} (typical: {shown(details['typical_ns'])}), the slowest operation "
        f"took {shown(details['top_ns'])}."
    )


def _imbalance(claim: Claim, ground: Ground, details: Details) -> str:
    times = claim.times or 1
    what = f"{factor(times)} times the work" if details["more"] else f"{PERCENT * times:.0f} % of the work"
    return f"{name_of(claim.who, ground)} did {what} of its peers throughout: {claim.samples:,} operations."


def _omission(_claim: Claim, _ground: Ground, details: Details) -> str:
    said = details["said"]
    more = f" ({len(said) - 1} more like this)" if len(said) > 1 else ""
    return f"The load generator was behind its schedule (coordinated omission): {said[0]}{more}."


def _edge(claim: Claim, ground: Ground, details: Details) -> str:
    what = " and ".join(word for word, holds in (("slower", details["slower"]), ("doing less", details["fewer"])) if holds)
    where = "beginning" if details["first"] else "end"
    return f"{_was(claim, ground)} {what} at the {where} of the run, {range_words(claim, ground)}."


def _step(claim: Claim, ground: Ground, details: Details) -> str:
    name, at = subject(claim, ground)[0], moment(details["at_ns"], ground)
    levels = f"{_measure(details)} went from {shown(details['from_ns'])} to {shown(details['to_ns'])}"
    if details["to_ns"] > details["from_ns"]:
        return f"{name} became {_ratio(claim)} times slower at {at} and stayed so: {levels}."
    return f"{_was(claim, ground)} {_ratio(claim)} times slower until {at} than from there on: {levels}."


def _drift(claim: Claim, ground: Ground, details: Details) -> str:
    way = "slower" if details["to_ns"] > details["from_ns"] else "faster"
    levels = f"from {shown(details['from_ns'])} in the first tenth to {shown(details['to_ns'])} in the last"
    when = "over the run"
    if claim.end_ns < ground.start_ns[-1]:
        when, levels = f"until {moment(claim.end_ns, ground)}", f"{levels} tenth of the run"
    elif claim.start_ns > ground.start_ns[0] + ground.step_ns:
        when, levels = f"from {moment(claim.start_ns, ground)} on", f"{levels} tenth of the run"
    became = f"{subject(claim, ground)[0]} became {_ratio(claim)} times {way} little by little {when}"
    return f"{became}: {_measure(details)} went {levels}."


def _measure(details: Details) -> str:
    """Return what was measured: p50, or the p50 of one of two modes."""
    low, high = details.get("above_ns", 0.0), details.get("upto_ns", math.inf)
    if low > 0:
        return f"{details['measure']} of what took longer than {shown(low)}"
    return details["measure"] if math.isinf(high) else f"{details['measure']} of what took no longer than {shown(high)}"


def _ratio(claim: Claim) -> str:
    times = claim.times or 1
    return factor(times if times >= 1 else 1 / times)


def _rhythm(claim: Claim, ground: Ground, details: Details) -> str:
    missing = details["measure"] == MISSING
    what = f"{subject(claim, ground)[0]} completed fewer operations" if missing else f"{_was(claim, ground)} slower"
    reached = f", {details['measure']} {shown(claim.value_ns)}" if claim.value_ns and not missing else ""
    windows = max(1, math.ceil(details["width_ns"] / ground.step_ns - INEXACT))
    long = f"at most {figure(windows * ground.step_ns / SECOND, 2)}"
    if windows > SMEARED:
        long = f"about {figure(details['width_ns'] / SECOND, 2)}"
    return (
        f"{what} every {figure(details['period_ns'] / SECOND)} s, for {long} s each time, "
        f"first at {moment(round(details['first_ns']), ground)}{reached}."
    )


def _modes(claim: Claim, ground: Ground, details: Details) -> str:
    places = ", ".join(
        f"{shown(peak)} ({PERCENT * share:.0f} %)" for peak, share in zip(details["peaks_ns"], details["shares"], strict=True)
    )
    gathers = f"Latencies of {name_of(claim.who, ground)} gather at {len(details['peaks_ns'])} places: {places}."
    if not details["changes"]:
        return gathers
    at, valley = moment(details["at_ns"], ground), shown(details["valley_ns"])
    before, after = (f"{PERCENT * details[part]:.0f} %" for part in ("before", "after"))
    if details["after"] > details["before"]:
        return f"{gathers} From {at} on {after} are above {valley}, before it was {before}."
    return f"{gathers} Until {at} {before} were above {valley}, from there on it was {after}."


def _failures(claim: Claim, ground: Ground, details: Details) -> str:
    op = dict(claim.who).get(OP, "")
    whose = [tuple(labels.items()) for labels in details["members"]] or [member(claim.who)]
    whom = f" on {listed((name_of(who, ground) for who in whose), MOST_NAMED)}" if any(whose) else ""
    share, rest = (f"{figure(PERCENT * each, 2)} %" for each in (details["failed"] / details["of"], details["rest"] or 0.0))
    of_rest = f"; of all others {rest}" if details["rest"] is not None else ""
    when = "throughout" if details["whole"] else range_words(claim, ground)
    what = f"{share} of {f'{op} ' if op else ''}operations{whom} failed {when}"
    return f"{what} ({details['failed']:,} of {details['of']:,}{of_rest})."


# Of each kind what makes its sentence, and what it is consistent with.
WORDS: dict[str, tuple[Callable[[Claim, Ground, Details], str], str]] = {
    STALL: (_stall, "a device, network path or process that stopped answering, and then answered what was waiting"),
    SLOW_MEMBER: (_slow_member, "slower hardware, a busy neighbour or other settings on this member"),
    THROTTLED: (
        _throttled,
        "a limit on operations or bytes a second; also a device that is at its limit with a fixed queue depth",
    ),
    EPISODE: (_episode, "background work or a neighbour that was busy for that time"),
    STEP: (_step, "a change of state: a full cache or write buffer, a failed or added device, another load that began"),
    DRIFT: (_drift, "something that fills up or wears out: a cache, a log, free space; or a load that grows"),
    RHYTHM: (_rhythm, "a job that runs on a timer: flushes, checkpoints, garbage collection, scrubbing"),
    MODES: (_modes, "two paths through the system, such as cache hits and misses"),
    IMBALANCE: (_imbalance, "an uneven spread of data or clients"),
    FAILURES: (_failures, "a server that refused, gave up or was not there, or a limit of time that was passed"),
    OMISSION: (_omission, "a closed loop that waits for slow answers; its service times hide the waiting"),
    EDGE: (_edge, "ramp-up, caches that are still cold, or threads that end one after the other"),
}
