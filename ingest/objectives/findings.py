"""Which finding of a run an episode belongs to: what happened while an objective was violated."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ingest.core.errors import InputError, counted
from ingest.query.findings.model import Finding, Story
from ingest.query.verdicts import Episode, Verdict

MOST_RUNS = 8  # whose data are read once more for it
LONG = 3  # times an episode: what lasts longer is said only where nothing shorter fits

Tell = Callable[[str], Story]


def belongings(verdicts: Sequence[Verdict], tell: Tell) -> list[str]:
    """Return a sentence on each finding that episodes belong to, in the order of the findings; `tell` gives the story of a run.

    Of the first MOST_RUNS runs that have episodes. A run of which nothing can be told has none.
    """
    episodes: dict[str, list[Episode]] = {}
    for verdict in verdicts:
        for each in verdict.episodes:
            episodes.setdefault(verdict.run, []).append(each)
    sentences = []
    for run in sorted(episodes)[:MOST_RUNS]:
        try:
            findings = tell(run).findings
        except InputError:  # means alone, or nothing that has windows
            continue
        of = [finding_of(each, findings) for each in episodes[run]]
        for finding in findings:
            mine = [each for each, its in zip(episodes[run], of, strict=True) if its is finding]
            if mine:
                names = ", ".join(dict.fromkeys(each.objective for each in mine))
                verb = "belongs" if len(mine) == 1 else "belong"
                sentences.append(f"{counted(len(mine), 'episode')} of {names} {verb} to this: {finding.text}")
    return sentences


def finding_of(episode: Episode, findings: Sequence[Finding]) -> Finding | None:
    """Return the finding that an episode belongs to: at its time and, where both name any, of its labels; None without one.

    Of several that of the host that was worst comes first, then what does not last much longer than the episode, then the one
    that accounts for most.
    """
    labels = dict(episode.labels)
    fitting = [
        finding
        for finding in findings
        if finding.start_ns < episode.end_ns
        and finding.end_ns > episode.start_ns
        and all(labels.get(name, value) == value for name, value in finding.who)
    ]

    def order(finding: Finding) -> tuple[bool, bool, float]:
        host = dict(finding.who).get("host", "")
        lasts = finding.end_ns - finding.start_ns
        long = lasts > LONG * (episode.end_ns - episode.start_ns)
        return bool(episode.worst_host) and host != episode.worst_host, long, -max(finding.share, finding.missing_share)

    return min(fitting, key=order, default=None)
