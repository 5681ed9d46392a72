"""Verdicts as JUnit XML, for tools that show test results: a test case is an objective in a group of a run.

    <testsuites tests="3" failures="1" errors="0">
      <testsuite name="SLA.yml" tests="3" failures="1" errors="0" skipped="0">
        <testcase classname="nightly-42" name="read p99 (host ceph-b)" time="76">
          <failure message="p99 above 50ms for 4s, peak 4.00s" type="violated">...</failure>

Elements and attributes are those of junit-10.xsd, by which Jenkins' xUnit plugin judges. `time` is how many seconds of
the group were judged. Characters that XML cannot hold are shown by their numbers.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from xml.sax.saxutils import escape, quoteattr

from ingest.core.errors import CONTROLS, shown
from ingest.core.units import format_duration
from ingest.objectives.baseline import Comparison
from ingest.objectives.check import Checked, Unjudged
from ingest.objectives.objectives import budgets, burnt, group_name, looked_at, missed, peak, promise, stamp_of
from ingest.query.episodes import CANNOT_TELL, VIOLATED, Verdict, undetermined

SECOND = 1_000_000_000


def junit(checked: Checked, name: str, base: str) -> str:
    """Return the document of all verdicts; `name` is the suite's, `base` how times are written (utc, local, elapsed)."""
    cases = [_case(verdict, base) for verdict in checked.verdicts]
    cases += [_told(each, [promise(each.objective)], str(each), 0) for each in checked.compared]
    cases += [_skipped(unjudged) for unjudged in checked.unjudged]
    outcomes = [*(verdict.outcome for verdict in checked.verdicts), *(each.outcome for each in checked.compared)]
    failures, unknown = outcomes.count(VIOLATED), outcomes.count(CANNOT_TELL)
    counts = f'tests="{len(cases)}" failures="{failures}" errors="0"'
    suite = f'{_attribute("name", name)} {counts} skipped="{len(checked.unjudged) + unknown}"'
    head = ['<?xml version="1.0" encoding="UTF-8"?>', f"<testsuites {counts}>", f"  <testsuite {suite}>"]
    return "\n".join([*head, *cases, "  </testsuite>", "</testsuites>", ""])


def _case(verdict: Verdict, base: str) -> str:
    seconds = verdict.windows * verdict.objective.window_ns / SECOND
    lines = [
        promise(verdict.objective),
        looked_at([verdict]),
        budgets([verdict]),
        *burnt([verdict], base),
        *_episode_lines(verdict, base),
    ]
    message = f"{undetermined([verdict])} and could change the verdict"
    return _told(verdict, lines, message if verdict.outcome == CANNOT_TELL else _message(verdict), seconds)


def _told(judged: Verdict | Comparison, lines: Sequence[str], message: str, seconds: float) -> str:
    """Return the test case of what was judged; `message` says why it was not met, or why that cannot be told."""
    group = group_name(judged.labels)
    title = f"{judged.objective.name} ({group})" if group else judged.objective.name
    words = [_attribute("classname", judged.run), _attribute("name", title), f'time="{seconds:.15g}"']
    text = escape(_clean("\n".join(line for line in dict.fromkeys((*lines, message)) if line)))
    told = f"<system-out>{text}</system-out>"
    if judged.outcome == CANNOT_TELL:
        told = f"<skipped {_attribute('message', f'cannot tell: {message}')}/>{told}"
    elif not judged.met:
        told = f'<failure {_attribute("message", message)} type="violated">{text}</failure>'
    return f"    <testcase {' '.join(words)}>{told}</testcase>"


def _skipped(unjudged: Unjudged) -> str:
    words = f"{_attribute('classname', unjudged.run or 'no run')} {_attribute('name', unjudged.objective.name)}"
    return f'    <testcase {words} time="0"><skipped {_attribute("message", unjudged.reason)}/></testcase>'


def _message(verdict: Verdict) -> str:
    """Return the failure in a line: of the longest episode, and how many more there are."""
    if verdict.met or verdict.objective.budget is not None:
        return budgets([verdict])
    longest = max(verdict.episodes, key=lambda each: each.end_ns - each.start_ns)
    more = f", and {len(verdict.episodes) - 1} more" if len(verdict.episodes) > 1 else ""
    lasted = format_duration(longest.end_ns - longest.start_ns)
    return f"{missed(longest)} for {lasted}, {peak(longest)}{more}"


def _episode_lines(verdict: Verdict, base: str) -> Sequence[str]:
    stamp, zero = stamp_of(base, [verdict]), verdict.zero_ns if base == "elapsed" or verdict.relative else 0
    return [
        f"{each.state} {stamp(each.start_ns - zero)} to {stamp(each.end_ns - zero)}: {peak(each)}, {each.samples} samples, "
        f"worst host {each.worst_host or '-'}"
        for each in verdict.episodes
    ]


def _attribute(name: str, value: str) -> str:
    return f"{name}={quoteattr(_clean(value), {chr(10): '&#10;', chr(13): '&#13;', chr(9): '&#9;'})}"


def _clean(text: str) -> str:
    """Return text without the characters that XML 1.0 cannot hold, each shown by its number."""
    return re.sub(CONTROLS, lambda match: match[0] if match[0] in "\t\n\r" else shown(match[0]), text)
