"""Objectives: what latencies and rates a site has promised, read from SLA.yml, and verdicts on them in sentences.

    objectives:
      - {name: read p99, percentile: 99, threshold: 5ms, window: 10s, for: 30s, hold: 10s, no_data: violate,
         where: {op: read}, by: [host]}
      - {name: quick, good: 99.9% within 20ms, window: 10s, budget: 0.1% of requests}
      - {name: throughput, rate: '>= 5000/s', window: 10s}
      - {name: as before, percentile: 99, threshold: at most 10% above nightly-41}
      - {name: as much, rate: at most 5% below nightly-41}
      - {name: errors, failures: '< 0.1 %', window: 10s}

`name`, `window` and one promise are compulsory: `percentile` and `threshold`, `good` (the same in other words), `rate`, or
`failures`: the share of operations that may fail. A
window violates an objective when its percentile lies above the threshold, or its rate below. Without `for` one violated window is
an episode, without `hold` one window without a violation does not end it, without `no_data` a window without completions goes on
as the one before it (`hold`); for a rate it is violated. `budget: 1%` is the error budget: the share of a run's windows that may
be violated before the objective is, or `of requests` the share of them that may take longer than the threshold. `during`,
`outside`, `before`, `after` with a glob of marks leave windows out that do not lie wholly in that part of the run. What is held
against a baseline has no windows. Whatever is not understood is an error that names file, line and remedy: an objective that is
half read would promise something else.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any

import yaml
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from ingest.core.errors import InputError, UsageError, choices, counted, listed
from ingest.core.labels import ASKABLE, in_words
from ingest.core.marks import WORDS as PHASES
from ingest.core.marks import Phase
from ingest.core.objective import (
    A_RATE,
    A_SHARE,
    HOLD,
    OK,
    VIOLATE,
    AnyObjective,
    Budget,
    Change,
    Latency,
    Objective,
    Promise,
    Rate,
    RunObjective,
    parse_promise,
    per_second,
)
from ingest.core.quantiles import Percentile, ShareError, parse_percentiles
from ingest.core.units import Stamp, elapsed, figure, format_duration, local, parse_duration, utc
from ingest.query.episodes import CANNOT_TELL, NOTHING, VIOLATED, Episode, Labels, Verdict
from ingest.query.question import named, since
from ingest.read.discovery import check_is_there

NO_DATA = (VIOLATE, HOLD, OK)
OF_LATENCY = {"percentile": "99", "threshold": "5ms"}
OTHERS = ("good", "rate", "failures")
PROMISES = (*OF_LATENCY, *OTHERS)
WORDS = ("name", *PROMISES, "window", "for", "hold", "no_data", "budget", "where", "by", *PHASES)
OF_WINDOWS = ("window", "for", "hold", "no_data", "budget", *PHASES)
FIELDS = {"window": "window_ns", "for": "for_ns", "hold": "hold_ns"}  # the others as their words
LONGEST_NAME = 200
NULL = "tag:yaml.org,2002:null"
BUDGET = re.compile(r"(\d{1,2}(?:\.\d{1,9})?)\s*%(?:\s+of\s+(windows|requests))?(?:\s+in\s+(\S.*))?")
GOOD = re.compile(r"(\d{1,2}(?:\.\d{1,9})?)\s*%\s*(?:of requests )?(?:within|under|below|<=?)\s*(\S.*)")


def read_objectives(path: Path, run_labels: Collection[str] | None = ()) -> tuple[AnyObjective, ...]:
    """Return the objectives of a file in its order; InputError (path:line) for whatever is wrong with it.

    `run_labels` are the labels of runs that `where` and `by` may name beside those of series; None lets every name pass, for
    callers that do not know the runs.
    """
    check_is_there(path)
    try:
        root = yaml.compose(path.read_text(encoding="utf-8"), Loader=yaml.SafeLoader)
    except OSError as error:
        raise InputError(f"it cannot be read ({error.strerror})", path) from None
    except UnicodeDecodeError:
        raise InputError("it is not text in UTF-8", path) from None
    except RecursionError:
        raise InputError("it is nested too deeply to be a list of objectives", path) from None
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise InputError(f"it is not YAML ({error.problem or error.context})", path, line) from None
    except yaml.YAMLError as error:
        raise InputError(f"it is not YAML ({str(error).splitlines()[0]})", path) from None
    return _Reader(path, run_labels).objectives(root)


@dataclass(frozen=True, slots=True)
class _Reader:
    path: Path
    run_labels: Collection[str] | None

    def objectives(self, root: Node | None) -> tuple[AnyObjective, ...]:
        words = {} if root is None else self.mapping(root, "the file")
        for name, (key, _) in words.items():
            if name != "objectives":
                raise self.wrong(key, f"there is no key {name!r} here: the file has one, objectives:")
        if "objectives" not in words:
            raise InputError("it has no objectives: begin with a line `objectives:` and a list below it", self.path)
        nodes = self.sequence(words["objectives"][1], "objectives", "- {name: read p99, ...}")
        if not nodes:
            raise self.wrong(words["objectives"][0], "the list of objectives is empty")
        objectives: dict[str, AnyObjective] = {}
        for node in nodes:
            objective = self.objective(node)
            if objective.name in objectives:
                other = objectives[objective.name].line
                reason = f"two objectives are called {objective.name!r} (the other in line {other}): give each its own name"
                raise self.wrong(node, reason)
            objectives[objective.name] = objective
        return tuple(objectives.values())

    def objective(self, node: Node) -> AnyObjective:
        words = self.mapping(node, "an objective")
        for name, (key, _) in words.items():
            if name not in WORDS:
                raise self.wrong(key, f"there is no key {name!r} in an objective: {choices(name, WORDS, most=len(WORDS))}")
        of_latency = not words.keys() & {*OTHERS}
        for name, example in ({"name": "read p99", **OF_LATENCY} if of_latency else {"name": "read p99"}).items():
            if name not in words:
                others = "" if name not in OF_LATENCY else ", or promise a rate: '>= 5000/s'"
                raise self.wrong(node, f"the objective has no {name}: add it, as in {name}: {example}{others}")
        if not of_latency and (second := [name for name in PROMISES if name in words][1:]):
            key = words[second[0]][0]
            raise self.wrong(
                key, "an objective promises one thing: percentile with threshold, good, rate, or failures; write two objectives"
            )
        readers: Mapping[str, Callable[[Node, str], Any]] = {
            "name": self.name,
            "percentile": self.percentile,
            "threshold": self.threshold,
            "good": self.good,
            "rate": self.rate,
            "failures": self.failures,
            "no_data": self.no_data,
            "budget": self.budget,
            "where": self.where,
            "by": self.by,
            **dict.fromkeys(PHASES, self.phase),
        }
        read = {FIELDS.get(name, name): readers.get(name, self.duration)(value, name) for name, (_, value) in words.items()}
        phases = tuple(read.pop(word) for word in PHASES if word in read)
        said = {name: read.pop(name) for name in PROMISES if name in read}
        promise: Promise = said["threshold"](said["percentile"]) if of_latency else next(iter(said.values()))
        if isinstance(promise, Change):
            if idle := [name for name in words if name in OF_WINDOWS]:
                whole = "a run is compared with its baseline as a whole, not window by window"
                raise self.wrong(words[idle[0]][0], f"{whole}: leave out {listed(idle)}")
            return RunObjective(promise=promise, **read, line=node.start_mark.line + 1)
        if "window" not in words:
            raise self.wrong(node, "the objective has no window: add it, as in window: 10s")
        if isinstance(promise, Rate) and "budget" in read and read["budget"].of_requests:
            raise self.wrong(words["budget"][0], "a rate is of windows, not of requests: give a budget of windows, as in 1%")
        given = {"for_ns": 0, "hold_ns": read["window_ns"], "no_data": VIOLATE if isinstance(promise, Rate) else HOLD, **read}
        return Objective(promise=promise, **given, line=node.start_mark.line + 1, phases=phases)

    def name(self, node: Node, word: str) -> str:
        text = self.text(node, word).strip()
        if len(text) > LONGEST_NAME or not text.isprintable():
            raise self.wrong(node, f"a name is one line of at most {LONGEST_NAME} characters")
        return text

    def percentile(self, node: Node, word: str) -> Percentile:
        text = self.text(node, word)
        try:
            percentiles = parse_percentiles(text)
        except ShareError as error:
            raise self.wrong(node, f"percentile: {error}") from None
        except UsageError:
            percentiles = ()
        if len(percentiles) != 1 or not percentiles[0].top:
            raise self.wrong(node, f"{text!r} is not a percentile: give one number above 0 and at most 100, as in 99.9")
        return percentiles[0]

    def threshold(self, node: Node, word: str) -> Callable[[Percentile], Promise]:
        """Return what makes the promise of a percentile: at most a latency, or at most so much above a baseline."""
        if not self.text(node, word).strip().startswith("at most"):
            limit = self.duration(node, word)
            return lambda percentile: Latency(percentile, limit)
        return lambda percentile: self.change(node, f"{percentile.name} {self.text(node, word).strip()}")

    def change(self, node: Node, text: str) -> Promise:
        try:
            return parse_promise(text)
        except UsageError as error:
            raise self.wrong(node, str(error)) from None

    def good(self, node: Node, word: str) -> Latency:
        """Return the promise that so many of the requests are within a latency: by nearest rank that percentile is."""
        text = self.text(node, word)
        found = GOOD.fullmatch(text.strip())
        try:
            promise = parse_promise(f"p{found[1]}<{found[2]}") if found else None
        except UsageError:
            promise = None
        if not isinstance(promise, Latency):
            raise self.wrong(node, f"{text!r} is no share of good requests: give it as in 99% within 50ms")
        return promise

    def rate(self, node: Node, word: str) -> Promise:
        text = self.text(node, word).strip()
        if text.startswith("at most"):
            return self.change(node, f"rate {text}")
        found = A_RATE.fullmatch(text)
        if not found or not Fraction(found["least"]):
            example = "'>= 5000/s' (in quotes), or at most 5% below BASELINE"
            raise self.wrong(node, f"{text!r} is no rate: give the least completions a second, as in {example}")
        return Rate(Fraction(found["least"]))

    def failures(self, node: Node, word: str) -> Latency:
        text = self.text(node, word)
        promise = parse_promise(text) if A_SHARE.fullmatch(text.strip()) else None
        if not isinstance(promise, Latency):
            raise self.wrong(node, f"{text!r} is no share of failures: give the largest, in quotes, as in '< 0.1 %'")
        return promise

    def duration(self, node: Node, word: str) -> int:
        try:
            return parse_duration(self.text(node, word), zero=word in ("for", "hold"))
        except UsageError as error:
            raise self.wrong(node, f"{word}: {error}") from None

    def no_data(self, node: Node, word: str) -> str:
        text = self.text(node, word)
        if text not in NO_DATA:
            raise self.wrong(node, f"no_data is {', '.join(NO_DATA[:-1])} or {NO_DATA[-1]}, not {text!r}")
        return text

    def budget(self, node: Node, word: str) -> Budget:
        text = self.text(node, word)
        match = BUDGET.fullmatch(text.strip())
        if not match:
            percentage = "give a percentage of windows from 0% to below 100%, as in 1%, 0.1% of requests, or 1% in 24h"
            raise self.wrong(node, f"{text!r} is not a budget: {percentage}")
        try:
            period = parse_duration(match[3]) if match[3] else None
        except UsageError as error:
            raise self.wrong(node, f"budget: {error}") from None
        return Budget(Fraction(match[1]) / 100, match[2] == "requests", period)

    def phase(self, node: Node, word: str) -> Phase:
        return Phase(word, self.text(node, word).strip(), node.start_mark.line + 1)

    def where(self, node: Node, word: str) -> dict[str, str]:
        words = self.mapping(node, "where")
        return {self.label(key, name): self.text(value, name) for name, (key, value) in words.items()}

    def by(self, node: Node, word: str) -> tuple[str, ...]:
        labels: list[str] = []
        for entry in self.sequence(node, word, "by: [host]"):
            label = self.label(entry, self.text(entry, word))
            if label in labels:
                raise self.wrong(entry, f"by names {label!r} twice")
            labels.append(label)
        return tuple(labels)

    def label(self, node: Node, name: str) -> str:
        if self.run_labels is None or name in ASKABLE or name in self.run_labels:
            return name
        known = (*ASKABLE, *sorted(self.run_labels))
        raise self.wrong(node, f"there is no label {name!r}: {choices(name, known, most=len(known))}")

    def mapping(self, node: Node, what: str) -> dict[str, tuple[Node, Node]]:
        """Return keys and values of a mapping by the text of the key."""
        if not isinstance(node, MappingNode):
            raise self.wrong(node, f"{what} must be keys with values, as in {{op: read}}")
        entries: dict[str, tuple[Node, Node]] = {}
        for key, value in node.value:
            name = self.text(key, what)
            if name in entries:
                raise self.wrong(key, f"{name!r} appears twice in {what}")
            entries[name] = (key, value)
        return entries

    def sequence(self, node: Node, word: str, example: str) -> list[Node]:
        if not isinstance(node, SequenceNode):
            raise self.wrong(node, f"{word} takes a list, as in {example}")
        return list(node.value)

    def text(self, node: Node, word: str) -> str:
        """Return a scalar as it was written: 99.90 is not made a number and printed again."""
        if not isinstance(node, ScalarNode):
            raise self.wrong(node, f"{word} takes one value, not a list and not a mapping")
        if node.tag == NULL or not str(node.value).strip():
            raise self.wrong(node, f"{word} is empty: give a value or leave the key out")
        return str(node.value)

    def wrong(self, node: Node, reason: str) -> InputError:
        return InputError(reason, self.path, node.start_mark.line + 1)


def objective_of(text: str, window_ns: int) -> AnyObjective:
    """Return the objective of a text such as p99<5ms or rate>=5000/s in windows of `window_ns`; UsageError for anything else."""
    promise = parse_promise(text)
    if isinstance(promise, Change):
        return RunObjective(text.strip(), promise)
    return Objective(text.strip(), promise, window_ns, 0, window_ns, VIOLATE if isinstance(promise, Rate) else HOLD)


# Verdicts in sentences: the promise, which windows were judged, the budget; for tables, junit and webhooks alike.


ELAPSED = "elapsed"


def stamp_of(base: str, verdicts: Sequence[Verdict] = ()) -> Stamp:
    """Return the function that writes the times of a table as they were asked for; +12.5s in runs without a clock."""
    stamp: Stamp = {"utc": utc, "local": local, ELAPSED: elapsed(0)}[base]
    episodes = [(each, verdict.zero_ns) for verdict in verdicts if verdict.relative for each in verdict.episodes]
    edges = {edge - zero for each, zero in episodes for edge in (each.start_ns, each.end_ns)}
    return stamp if base == ELAPSED else named(stamp, {edge: since(edge) for edge in edges})


def promise(objective: AnyObjective) -> str:
    """Return an objective in words: p99 at most 5ms in windows of 10s, for 30s."""
    words, phases = str(objective.promise), list[Phase]()
    if isinstance(objective, Objective):
        words += f" in windows of {format_duration(objective.window_ns)}"
        words += f", for {format_duration(objective.for_ns)}" if objective.for_ns > objective.window_ns else ""
        phases += objective.phases
    if objective.where:
        words += " where " + ", ".join(f"{name} {in_words(glob)}" for name, glob in objective.where.items())
    return ", ".join([words, *map(str, phases)])


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
    if isinstance(objective.promise, Latency) and objective.promise.most_failed:
        failed, requests = (sum(getattr(verdict, name) for verdict in verdicts) for name in ("over", "requests"))
        remarks.append(f"{failed:,} of {counted(requests, 'operation')} failed")
    elif thin and isinstance(objective.promise, Latency):
        remarks.append(f"{thin:,} with too few samples for {objective.promise.percentile.name}: the nearest rank is used")
    if unknown := sum(verdict.unknown for verdict in verdicts):
        blurred = sum(verdict.blurred for verdict in verdicts)
        reasons = (("samples are missing", unknown > blurred), ("bins are too wide", blurred > 0))
        remarks.append(f"{unknown:,} cannot be determined, because {' or '.join(reason for reason, holds in reasons if holds)}")
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
    used = sorted((verdict for verdict in verdicts if verdict.used[0]), key=lambda verdict: -verdict.used[0])
    named = [f"{group_name(verdict.labels)} {percent(verdict.used[0])}".strip() for verdict in used]
    shares = listed(named) if named else "none"
    broken, open_yet = (sum(verdict.outcome == word for verdict in verdicts) for word in (VIOLATED, CANNOT_TELL))
    outcome = "exceeded" if len(verdicts) == 1 else f"exceeded by {broken} of {len(verdicts)}"
    if not broken:
        outcome = "kept" if not open_yet else "kept or exceeded: samples are missing"
    return f"budget {percent(budget.share)} of the {'requests' if budget.of_requests else 'windows'}: used {shares}; {outcome}"


def burnt(verdicts: Sequence[Verdict], base: str) -> list[str]:
    """Return when burn-rate alerts came, or would have come, before the budgets of one objective and run were gone.

    Nothing of a budget that is kept, unless it has a period.
    """
    sentences = []
    for verdict in verdicts:
        planned = verdict.objective.budget is not None and verdict.objective.budget.period_ns
        if not (verdict.alerts or verdict.gone_ns) or (verdict.met and not planned):
            continue
        stamp, zero = stamp_of(base, [verdict]), verdict.zero_ns if base == ELAPSED or verdict.relative else 0
        words = [f"warned at {stamp(alert.start_ns - zero)}, {alert}" for alert in verdict.alerts[:1]]
        words += [f"{len(verdict.alerts) - 1} more"] if len(verdict.alerts) > 1 else []
        if verdict.gone_ns is not None:
            words.append(f"{'' if verdict.alerts else 'no warning came before it was '}gone at {stamp(verdict.gone_ns - zero)}")
        sentences.append(f"{group_name(verdict.labels)}: {'; '.join(words)}".removeprefix(": "))
    return sentences


def peak(episode: Episode) -> str:
    """Return the highest percentile of an episode, or its lowest rate, in words."""
    if episode.worst == NOTHING:
        return NOTHING
    return f"{'peak' if episode.lowest_rate is None else 'lowest'} {episode.worst}"


def missed(episode: Episode) -> str:
    """Return what is wrong in an episode: p99 above 5ms, rate below 5,000/s."""
    promised = episode.promise
    if isinstance(promised, Rate):
        return f"rate below {per_second(float(promised.least))}"
    return promised.missed


def percent(share: Fraction) -> str:
    """Return a share as a percentage with three digits: 1.25 %."""
    return f"{figure(float(100 * share))} %"
