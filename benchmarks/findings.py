"""How often findings are right: runs with a known cause must give it, quiet ones nothing (docs/explanation/findings.md).

    python benchmarks/findings.py [--kinds stall,quiet] [--runs 20] [--seed N] [--only-failures]
    python benchmarks/findings.py --case stall+drift/3 --seed N     the story of one run, and what was put in
    python benchmarks/findings.py --files                           each run is written as logs and read from there

Of each kind: `--runs` runs with that cause alone and as many with a second cause, and five times as many quiet ones. A cause is
found where a finding has its kind, its host (or none, where all hosts have it) and its time. What names another host or time
is counted as wrong, and what was not put in as further: all that a user would see. Only `edge` is left out.
"""

from __future__ import annotations

import argparse
import math
import re
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

sys.path.insert(0, str(Path(__file__).parent))
from causes import CAUSES, QUIETS, made, names_of
from made_runs import ALL_HOSTS, LENGTH, RUN, Cause, Made
from measure import print_table

from ingest.core.grid import SECOND
from ingest.query.files import Files
from ingest.query.question import Question
from ingest.read.sources import ReadOptions

if TYPE_CHECKING:
    from ingest.query.origin import Origin
    from ingest.query.story.ground import Finding, Story

EDGE_KIND = "edge"
NEAR, FAR, CLOSE = 2, 0.1, 0.05  # windows; share of the run; share of a period
SEED = 20_261_122
PERIODS = re.compile(r"(\d+(?:\.\d+)?) ?(ms|s|min)\b")
UNITS_S = {"ms": 0.001, "s": 1.0, "min": 60.0}


@dataclass(frozen=True)
class Judged:
    """What was said of the run of a name: `found` has each of its causes that was named, in their order."""

    name: str
    causes: tuple[Cause, ...]
    story: Story
    found: tuple[bool, ...]
    other_host: tuple[Finding, ...]
    other_time: tuple[Finding, ...]
    further: tuple[Finding, ...]
    seconds: float

    @property
    def fails(self) -> bool:
        """Return whether anything was not as it was put in."""
        return not all(self.found) or bool(self.other_host or self.other_time or self.further)


def told(origin: Origin) -> Story:
    """Return what the product says of the run of an origin."""
    from ingest.query.story.story import story

    return story(origin, Question())


def judged(run: Made, *, files: bool = False) -> Judged:
    """Return what is said of a run, held against what was put in."""
    if files:
        with tempfile.TemporaryDirectory() as folder:
            origin = Files([run.written(Path(folder))], ReadOptions(run=RUN), jobs=1)
            began = time.process_time()
            story = told(origin)
    else:
        began = time.process_time()
        story = told(run)
    seconds = time.process_time() - began
    said = [finding for finding in story.findings if finding.kind != EDGE_KIND]
    found = tuple(any(_fits(cause, finding, story) for finding in said) for cause in run.causes)
    others: tuple[list[Finding], list[Finding], list[Finding]] = ([], [], [])
    for finding in said:
        alike = [cause for cause in run.causes if cause.kind == finding.kind]
        if any(_fits(cause, finding, story) for cause in alike):
            continue
        others[2 if not alike else 1 if any(_right_host(cause, finding) for cause in alike) else 0].append(finding)
    other_host, other_time, further = map(tuple, others)
    return Judged(run.name, run.causes, story, found, other_host, other_time, further, seconds)


def _fits(cause: Cause, finding: Finding, story: Story) -> bool:
    return cause.kind == finding.kind and _right_host(cause, finding) and _right_time(cause, finding, story)


def _right_host(cause: Cause, finding: Finding) -> bool:
    return dict(finding.who).get("host", ALL_HOSTS) == cause.host


def _right_time(cause: Cause, finding: Finding, story: Story) -> bool:
    """Return whether a finding has the time of a cause (or its period); a change may be either end of what is named."""
    low, high = ((edge - story.zero_ns) / SECOND for edge in (finding.start_ns, finding.end_ns))
    near = NEAR * story.step_ns / SECOND
    if cause.change:
        near = FAR * LENGTH if cause.kind == "modes" else near
        return min(abs(low - cause.from_s), abs(high - cause.from_s)) <= near
    if cause.passes:
        return abs(low - cause.from_s) <= near and abs(high - cause.to_s) <= near
    if cause.period_s and not any(abs(period / cause.period_s - 1) <= CLOSE for period in _periods(finding)):
        return False
    return low <= FAR * LENGTH and high >= (1 - FAR) * LENGTH


def _periods(finding: Finding) -> Iterator[float]:
    """Yield every duration in s that a finding names in its words."""
    for number, unit in PERIODS.findall(f"{finding.value} {finding.text}"):
        yield float(number) * UNITS_S[unit]


def _shown(finding: Finding, story: Story) -> str:
    """Return a finding in a line: kind, who, when."""
    low, high = ((edge - story.zero_ns) / SECOND for edge in (finding.start_ns, finding.end_ns))
    return f"{finding.kind} {' '.join(value for _, value in finding.who) or 'all'} {low:.1f}-{high:.1f} s"


def put_in(causes: Iterable[Cause]) -> str:
    """Return causes in a line."""
    texts = [f"{cause.kind} {cause.host or 'all'} {cause.from_s:.1f}-{cause.to_s:.1f} s" for cause in causes]
    return ", ".join(texts) or "nothing"


def failure(result: Judged, seed: int, words: str) -> str:
    """Return what went wrong with a run, and the command that shows it."""
    missed = [cause for cause, found in zip(result.causes, result.found, strict=True) if not found]
    parts = [("not found", put_in(missed) if missed else "")]
    for name, some in (("other host", result.other_host), ("other time", result.other_time), ("further", result.further)):
        parts.append((name, ", ".join(_shown(finding, result.story) for finding in some)))
    said = "; ".join(f"{name}: {text}" for name, text in parts if text)
    return f"{said}\n    python benchmarks/findings.py --case '{result.name}' --seed {seed}{words}"


def rows_of(results: Sequence[Judged], kinds: Sequence[str]) -> list[list[str]]:
    """Return the table: for each kind, alone and with another one, how often it was found and what else was said."""
    rows = []
    for kind in [*kinds, "any"]:
        for together in (False, True):
            mine = [
                (result, found)
                for result in results
                for cause, found in zip(result.causes, result.found, strict=True)
                if kind in (cause.kind, "any") and together == (len(result.causes) > 1)
            ]
            if mine:
                name = f"{kind}{', with another' if together else ''}"
                of_runs = list({result.name: result for result, _ in mine}.values())
                rows.append([name, *_numbers([found for _, found in mine], of_runs)])
    for kind in QUIETS:
        quiet = [result for result in results if result.name.rpartition("/")[0] == kind]
        if quiet:
            rows.append([kind, *_numbers([], quiet)])
    return rows


def _numbers(found: Sequence[bool], results: Sequence[Judged]) -> list[str]:
    """Return runs, recall, runs with another host, another time or a further finding, which, and CPU seconds a run."""
    further = Counter(finding.kind for result in results for finding in result.further)
    recall = f"{sum(found)} of {len(found)} ({100 * sum(found) / len(found):.0f} %)" if found else ""
    wrong = [sum(bool(some(result)) for result in results) for some in (_other_host, _other_time, _further)]
    seconds = sum(result.seconds for result in results) / len(results)
    named = ", ".join(f"{count} {kind}" for kind, count in further.most_common())
    return [str(len(results)), recall, *map(str, wrong), named, f"{seconds:.2f}"]


def _other_host(result: Judged) -> Sequence[Finding]:
    return result.other_host


def _other_time(result: Judged) -> Sequence[Finding]:
    return result.other_time


def _further(result: Judged) -> Sequence[Finding]:
    return result.further


HEADINGS = ["put in", "runs", "found", "other host", "other time", "runs with a further finding", "which", "CPU s a run"]


def main() -> None:
    """Print the table, and each run that was not told as it was made."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kinds", default=",".join((*CAUSES, *QUIETS)), help="separated by commas")
    parser.add_argument("--runs", type=int, default=20, help="of each kind; five times as many are quiet")
    parser.add_argument("--seed", type=int, default=SEED)
    parser.add_argument("--alone", action="store_true", help="no runs of two causes")
    parser.add_argument("--pairs", action="store_true", help="runs of two causes alone")
    parser.add_argument("--closed", action="store_true", help="a closed loop: rates fall as latencies rise")
    parser.add_argument("--coarse", type=int, metavar="0-6", help="bins as fio writes them with that log_hist_coarseness")
    parser.add_argument("--files", action="store_true", help="write each run as logs and ask these")
    parser.add_argument("--only-failures", action="store_true", help="no table")
    parser.add_argument(
        "--minutes", type=float, default=math.inf, help="of a processor, after which the table is of what was run"
    )
    parser.add_argument("--case", help="the story of one run, by its name")
    wanted = parser.parse_args()
    words = "".join(f" --{name}" for name in ("closed", "files") if getattr(wanted, name))
    words += f" --coarse {wanted.coarse}" if wanted.coarse is not None else ""
    if wanted.coarse is not None and wanted.files:
        parser.error("--files writes HdrHistogram logs, whose bins are no coarser than two digits: leave out --coarse")

    def judged_run(name: str) -> Judged:
        return judged(made(name, wanted.seed, closed=wanted.closed, coarse=wanted.coarse), files=wanted.files)

    if wanted.case:
        show(judged_run(wanted.case), wanted.seed, words)
        return
    kinds = [kind.strip() for kind in wanted.kinds.split(",")]
    groups = [
        some
        for some in names_of(kinds, wanted.runs).values()
        if not ("+" in some[0] and wanted.alone) and not ("+" not in some[0] and wanted.pairs)
    ]
    results: list[Judged] = []
    began = time.monotonic()
    for name in in_turn(groups):
        results.append(judged_run(name))
        if results[-1].fails:
            print(f"{name}: {failure(results[-1], wanted.seed, words)}", flush=True)
        print(f"\r{len(results)} runs".ljust(20), end="\r", file=sys.stderr, flush=True)
        if time.monotonic() - began > 60 * wanted.minutes:
            break
    if not wanted.only_failures:
        print_table(f"seed {wanted.seed}{words}", HEADINGS, rows_of(results, [kind for kind in kinds if kind in CAUSES]))


def in_turn(groups: Sequence[Sequence[str]]) -> Iterator[str]:
    """Yield the names of all groups, each group as evenly spread as it can be: so that any number of first ones is fair."""
    places = [((number + 0.5) / len(some), name) for some in groups for number, name in enumerate(some)]
    for _, name in sorted(places, key=lambda pair: pair[0]):
        yield name


def show(result: Judged, seed: int, words: str) -> None:
    """Print the story of a run, and what was put in."""
    print(f"put in: {put_in(result.causes)}")
    for finding in result.story.findings:
        print(f"- {_shown(finding, result.story)} ({100 * finding.share:.0f} %): {finding.text}")
    print(result.story.nothing or f"unexplained: {100 * result.story.unexplained:.0f} %")
    if result.fails:
        print(failure(result, seed, words))


if __name__ == "__main__":
    main()
