"""Findings in words: a sentence with numbers, what it is consistent with, what speaks against it, and the command that shows it.

Each kind has a function in SENTENCES that makes its first sentence of a claim; what all share is added here.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Callable
from dataclasses import dataclass

from ingest.core.timing import format_duration
from ingest.core.writing import latency
from ingest.query.findings.ground import HOST, OP
from ingest.query.findings.model import KINDS, SECOND, STALL, Claim, Ground, Labels

NOTHING = "Nothing stands out: no window, host or time is beyond what this run does by itself."
REFERENCE = (
    "Typical is each {member}'s own windows of {step} whose p99 is at or below the median of its p99s; for slow and throttled "
    "members their peers."
)
LEAST_SHARE = 0.005
PERCENT = 100
MANY = 100
NAMES = {"volume": "volume ", "job": "job ", "process": "process ", "tag": "tag "}


@dataclass(frozen=True, slots=True)
class Words:
    """What is said of a finding."""

    text: str
    value: str
    consistent: str
    against: str
    command: str


def words_of(claim: Claim, ground: Ground, share: float, source: str) -> Words:
    """Return what is said of a claim that is given a share of all excess."""
    sentence = SENTENCES.get(claim.kind, _plain)(claim, ground)
    tail = ""
    if share >= LEAST_SHARE:
        tail = f" It accounts for {PERCENT * share:.0f} % of all excess latency"
    if claim.missing >= 1:
        number = about(claim.missing)
        tail += (
            f"; {number} completions did not happen (estimate)"
            if tail
            else f" {number.capitalize()} completions did not happen (estimate)"
        )
    return Words(
        text=sentence + tail + ("." if tail else ""),
        value="" if claim.value_ns is None else shown(claim.value_ns),
        consistent=CONSISTENT.get(claim.kind, ""),
        against=claim.against,
        command=command_of(claim, ground, source),
    )


def reference_sentence(ground: Ground) -> str:
    """Return what is taken for typical."""
    names = [name for name, _ in ground.groups[0] if name != OP]
    return REFERENCE.format(member=names[-1] if names else "run", step=format_duration(ground.step_ns))


def shown(value_ns: float) -> str:
    """Return a latency with a space before its unit: 4.01 s."""
    text = latency(value_ns)
    digits = text.rstrip("nums")
    return f"{digits} {text[len(digits) :]}" if text else ""


def factor(times: float) -> str:
    """Return how many times, in as many digits as tell something: 1.34, 12, 1,600."""
    if times < 10:
        return f"{times:.3g}"
    digits = max(0, int(math.log10(times)) - 1)
    return f"{round(times, -digits):,.0f}"


def about(count: float) -> str:
    """Return a count that is an estimate, in two digits: about 8,000."""
    digits = max(0, int(math.log10(max(count, 1))) - 1)
    return f"about {round(count, -digits):,.0f}"


def seconds(stamp_ns: int, ground: Ground) -> str:
    """Return a time since the start of the run: 26.0 s; in as many digits as windows have."""
    value = (stamp_ns - ground.zero_ns) / SECOND
    return f"{value:.1f} s"


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


def range_words(claim: Claim, ground: Ground) -> str:
    """Return from when to when."""
    return f"from {seconds(claim.start_ns, ground)} to {seconds(claim.end_ns, ground)}"


def command_of(claim: Claim, ground: Ground, source: str) -> str:
    """Return the command that shows the windows of a claim with a few on either side, as it is typed in a shell."""
    before = max(0, claim.start_ns - 2 * ground.step_ns - ground.zero_ns)
    after = claim.end_ns + 2 * ground.step_ns - ground.zero_ns
    words = ["tailboard", "percentiles", *shlex.split(source)]
    if ground.run:
        words += ["--run", ground.run]
    for name, value in claim.who:
        words += ["--where", f"{name}={value}"]
    by = ",".join(name for name, _ in ground.groups[0])
    words += ["--by", by]
    if before > 0 or claim.end_ns < int(ground.start_ns[-1]):
        words += ["--from", f"+{before / SECOND:.9g}s", "--to", f"+{after / SECOND:.9g}s"]
    words += ["--step", format_duration(ground.step_ns)]
    return shlex.join(words)


def _plain(claim: Claim, ground: Ground) -> str:
    return f"{name_of(claim.who, ground)}: {claim.kind} {range_words(claim, ground)}."


def _stall(claim: Claim, ground: Ground) -> str:
    return _plain(claim, ground)


SENTENCES: dict[str, Callable[[Claim, Ground], str]] = {STALL: _stall}
CONSISTENT: dict[str, str] = dict.fromkeys(KINDS, "")
