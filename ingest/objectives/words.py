"""Verdicts in sentences: the promise, which windows were judged, the budget; for tables, junit and webhooks alike."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from ingest.core.errors import counted, listed
from ingest.core.objective import Objective
from ingest.core.timing import format_duration
from ingest.core.writing import Stamp, elapsed, figure, latency, local, utc
from ingest.query.clocks import named, since
from ingest.query.verdicts import UNKNOWN, VIOLATED, Labels, Verdict

ELAPSED = "elapsed"


def stamp_of(base: str, verdicts: Sequence[Verdict] = ()) -> Stamp:
    """Return the function that writes the times of a table as they were asked for; +12.5s in runs without a clock."""
    stamp: Stamp = {"utc": utc, "local": local, ELAPSED: elapsed(0)}[base]
    episodes = [(each, verdict.zero_ns) for verdict in verdicts if verdict.relative for each in verdict.episodes]
    edges = {edge - zero for each, zero in episodes for edge in (each.start_ns, each.end_ns)}
    return stamp if base == ELAPSED else named(stamp, {edge: since(edge) for edge in edges})


def promise(objective: Objective) -> str:
    """Return an objective in words: p99 at most 5ms in windows of 10s, for 30s."""
    words = f"{objective.percentile.name} at most {latency(objective.threshold_ns)} in windows of "
    words += format_duration(objective.window_ns)
    if objective.for_ns > objective.window_ns:
        words += f", for {format_duration(objective.for_ns)}"
    if objective.where:
        words += " where " + ", ".join(f"{name} {glob}" for name, glob in objective.where.items())
    return ", ".join([words, *map(str, objective.phases)])


def group_name(labels: Labels) -> str:
    """Return labels as people say them: host ceph-b, op read; empty where there are none."""
    return ", ".join(f"{name} {value or '-'}" for name, value in labels)


def looked_at(verdicts: Sequence[Verdict]) -> str:
    """Return how many windows of one objective and run were judged, and what was wrong with them."""
    windows, silent, thin = (sum(getattr(verdict, name) for verdict in verdicts) for name in ("windows", "silent", "thin"))
    groups = f" of {len(verdicts)} groups" if len(verdicts) > 1 else ""
    remarks = [f"{counted(windows, 'window')}{groups}, {sum(verdict.violated for verdict in verdicts):,} violated"]
    objective = verdicts[0].objective
    if silent:
        remarks.append(f"{silent:,} without completions (no_data: {objective.no_data})")
    if thin:
        remarks.append(f"{thin:,} with too few samples for {objective.percentile.name}: the nearest rank is used")
    if unknown := sum(verdict.unknown for verdict in verdicts):
        remarks.append(f"{unknown:,} cannot be determined, because samples are missing")
    if later := sum(verdict.provisional for verdict in verdicts):
        remarks.append(f"{later:,} more are provisional")
    return "; ".join([*remarks, *left_out(verdicts, "{:,} more")])


def left_out(verdicts: Sequence[Verdict], counted_as: str) -> list[str]:
    """Return how many windows of one objective were not judged because of its phases, in words; nothing where all were."""
    if not (count := sum(verdict.not_judged for verdict in verdicts)):
        return []
    phases = " and ".join(map(str, verdicts[0].objective.phases))
    those = "is not judged: it does not lie" if count == 1 else "are not judged: they do not lie"
    return [f"{counted_as.format(count)} {those} wholly {phases}"]


def budgets(verdicts: Sequence[Verdict]) -> str:
    """Return how much of the error budget was used by one objective and run; empty where it has none."""
    budget = verdicts[0].objective.budget
    if budget is None:
        return ""
    used = sorted((verdict for verdict in verdicts if verdict.violated), key=lambda verdict: -verdict.share)
    named = [f"{group_name(verdict.labels)} {percent(verdict.share)}".strip() for verdict in used]
    shares = listed(named) if named else "none"
    broken, open_yet = (sum(verdict.outcome == word for verdict in verdicts) for word in (VIOLATED, UNKNOWN))
    outcome = "exceeded" if len(verdicts) == 1 else f"exceeded by {broken} of {len(verdicts)}"
    if not broken:
        outcome = "kept" if not open_yet else "kept or exceeded: samples are missing"
    return f"budget {percent(budget)} of the windows: used {shares}; {outcome}"


def percent(share: Fraction) -> str:
    """Return a share as a percentage with three digits: 1.25 %."""
    return f"{figure(float(100 * share))} %"
