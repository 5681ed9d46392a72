"""Objectives as alert rules: an ES|QL question to the rollups, for what rollups answer exactly.

    FROM tailboard-rollups-*
    | WHERE rollup.scope == "host" AND rollup.step_ms == 10000 AND final == true AND kind == "completion" AND operation == "read"
        AND (latency.p99 > 5000000 OR (latency.p99 IS NULL AND latency.max > 5000000))
    | STATS windows = COUNT(*), ... BY run.id, host.name

A row is a run (and host, and op) with violated windows; Kibana adds the time range. Rollups leave a percentile out where the
samples of a window cannot carry it: nearest rank then is the largest sample, so that the maximum is held against the threshold.
An objective that rollups do not answer exactly is named with every reason, and left to `tailboard check`.

Rules are free of actions (on a Basic licence a rule can write to the server's log or an index: connectors are the site's own).
What people have added to a rule in Kibana stays when it is changed.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ingest.core.errors import StoreError
from ingest.core.objective import VIOLATE, AnyObjective, Latency, Objective, Rate, RunObjective
from ingest.core.quantiles import parse_percentiles
from ingest.core.schema import fields
from ingest.core.units import MS, format_duration, number
from ingest.view.kibana.importing import Connection, Refusal

STEPS_NS = (10_000 * MS, 60_000 * MS)  # those that every run with finer windows has
FIELDS = {"run": "run.id", "host": "host.name", "op": "operation", "kind": "kind"}
GROUPS = ("run", "host", "op")
PATTERN = re.compile(r"[*?\[]|^!")
ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})
EVERY, LOOK_BACK_MINUTES, MOST_HITS = "1m", 5, 100
ROWS_SINCE = (9, 2)
KEPT = ("throttle", "notify_when", "alert_delay", "flapping", "artifacts")
ACTION_WORDS = ("group", "id", "params", "frequency", "uuid", "alerts_filter", "use_alert_data_for_template")
PATH = "/api/alerting/rule/"


@dataclass(frozen=True, slots=True)
class Rule:
    """An alert rule: `id` is fixed by index prefix, space and the objective's name; `body` is what creates it."""

    id: str
    name: str
    body: Mapping[str, Any]

    @property
    def esql(self) -> str:
        """Return the question that it asks."""
        return str(self.body["params"]["esqlQuery"]["esql"])


@dataclass(frozen=True, slots=True)
class Left:
    """An objective that no rule can answer exactly, and every reason for it."""

    name: str
    reasons: tuple[str, ...]


def rules_for(objectives: Iterable[AnyObjective], prefix: str, space: str, version: str) -> tuple[list[Rule], list[Left]]:
    """Return the rules for a space of a Kibana of a version, and the objectives that are left."""
    rules: list[Rule] = []
    left: list[Left] = []
    for objective in objectives:
        if isinstance(objective, RunObjective):
            left.append(Left(objective.name, ("a rule sees single windows, not two runs",)))
        elif reasons := reasons_against(objective):
            left.append(Left(objective.name, reasons))
        else:
            rules.append(Rule(rule_id(prefix, space, objective.name), objective.name, _body(objective, prefix, version)))
    return rules, left


def rule_id(prefix: str, space: str, name: str) -> str:
    """Return the id of an objective's rule: the same on every Kibana, another in each space, as Kibana wants it."""
    return str(uuid.uuid5(uuid.NAMESPACE_URL, f"tailboard:rule:{prefix}:{space}:{name}"))


def reasons_against(objective: Objective) -> tuple[str, ...]:
    """Return why rollups do not answer an objective exactly; nothing where they do."""
    reasons, promise = [], objective.promise
    if isinstance(promise, Rate) or promise.most_failed:
        what = "a rate" if isinstance(promise, Rate) else "a share of operations that failed"
        reasons.append(f"a rule compares percentiles of rollups, and this is {what}")
    elif _number(promise) is None:
        stored = ", ".join(text for text, _ in _stored())
        reasons.append(f"rollups hold the percentiles {stored}, not {promise.percentile.text}")
    if objective.window_ns not in STEPS_NS:
        steps = " and ".join(format_duration(step) for step in STEPS_NS)
        reasons.append(f"rollups have windows of {steps}, not of {format_duration(objective.window_ns)}")
    if objective.for_ns > objective.window_ns:
        reasons.append(f"a rule sees single windows, not whether they last for {format_duration(objective.for_ns)}")
    if objective.budget is not None:
        share, what = f"{number(float(100 * objective.budget.share))}%", "requests" if objective.budget.of_requests else "windows"
        reasons.append(f"a rule sees single windows, not the share of {what} that a budget of {share} allows")
    if objective.phases:
        named = " and ".join(map(str, objective.phases))
        reasons.append(f"a rule sees windows, not marks, and cannot know what lies {named}")
    if objective.no_data == VIOLATE:
        reasons.append("no_data is violate, and a window without completions has no rollup")
    for name, text in objective.where.items():
        if name not in FIELDS:
            reasons.append(f"rollups do not distinguish one {name} from another (where)")
        elif PATTERN.search(text):
            reasons.append(f"where has the pattern {name}: {text}, and a rule takes only exact texts")
    reasons += [f"rollups do not distinguish one {name} from another (by)" for name in objective.by if name not in GROUPS]
    if "kind" not in objective.where:
        reasons.append("which kind is the default one depends on the run: add kind to where, as in kind: completion")
    if "op" not in objective.where and "op" not in objective.by:
        reasons.append("rollups hold each op by itself, never all together: add op to where or by")
    return tuple(reasons)


def question(objective: Objective, prefix: str) -> str:
    """Return the ES|QL text of an objective that rollups answer: a row for each run (host, op) with violated windows."""
    number, threshold = _number(objective.promise), objective.promise.to_dict()["threshold_ns"]
    hosts = "host" in objective.by or "host" in objective.where
    conditions = [
        f'rollup.scope == "{"host" if hosts else "cluster"}"',
        f"rollup.step_ms == {objective.window_ns // MS}",
        "final == true",
        *(f'{FIELDS[name]} == "{text.translate(ESCAPES)}"' for name, text in objective.where.items()),
        f"({number} > {threshold} OR ({number} IS NULL AND latency.max > {threshold}))",
    ]
    groups = ["run.id", *(FIELDS[name] for name in ("host", "op") if name in objective.by)]
    return (
        f"FROM {prefix}-rollups-*\n| WHERE {' AND '.join(conditions)}\n"
        f"| STATS windows = COUNT(*), carried = COUNT({number}), worst_ns = MAX({number}), largest_ns = MAX(latency.max), "
        f"samples = SUM(latency.count), earliest = MIN(@timestamp), latest = MAX(@timestamp) BY {', '.join(groups)}\n"
        "| SORT largest_ns DESC"
    )


def put_rule(connection: Connection, rule: Rule, there: Mapping[str, Any] | None) -> None:
    """Create a rule, or change the one that is there. StoreError where Kibana refuses."""
    method, body = ("POST", rule.body) if there is None else ("PUT", changed_body(rule, there))
    try:
        connection.call(method, PATH + rule.id, body)
    except Refusal as error:
        # A request to create it that was sent twice, as the first answer was lost, finds the rule there.
        if there is not None or error.status != 409 or stored_rule(connection, rule) is None:
            raise StoreError(f"{connection.url} refuses the rule {rule.name!r} ({error})") from None


def stored_rule(connection: Connection, rule: Rule) -> Mapping[str, Any] | None:
    """Return the rule as Kibana has it, or None. StoreError where Kibana refuses to say."""
    try:
        rule_there: Mapping[str, Any] = connection.call("GET", PATH + rule.id)
    except Refusal as error:
        if error.status == 404:
            return None
        raise StoreError(f"{connection.url} refuses to show the rule {rule.name!r} ({error})") from None
    return rule_there


def is_as_wanted(rule: Rule, there: Mapping[str, Any]) -> bool:
    """Return whether a rule that is there has our name, tags, schedule and question; Kibana adds parameters of its own."""
    ours, theirs = rule.body["params"], there.get("params") or {}
    same = all(there.get(name) == rule.body[name] for name in ("name", "tags", "schedule"))
    return same and all(theirs.get(name) == value for name, value in ours.items())


def changed_body(rule: Rule, there: Mapping[str, Any]) -> dict[str, Any]:
    """Return what changes a rule that is there: our question and schedule, the actions and settings that people gave it."""
    ours = {name: rule.body[name] for name in ("name", "tags", "schedule", "params")}
    actions = [
        {word: action[word] for word in ACTION_WORDS if action.get(word) is not None} for action in there.get("actions") or ()
    ]
    return {**ours, **{name: there[name] for name in KEPT if there.get(name) is not None}, "actions": actions}


def _body(objective: Objective, prefix: str, version: str) -> dict[str, Any]:
    params = {
        "searchType": "esqlQuery",
        "esqlQuery": {"esql": question(objective, prefix)},
        "timeField": "@timestamp",
        "timeWindowSize": LOOK_BACK_MINUTES,
        "timeWindowUnit": "m",
        "size": MOST_HITS,
        "threshold": [0],
        "thresholdComparator": ">",
        "groupBy": "row" if tuple(map(int, re.findall(r"\d+", version)[:2])) >= ROWS_SINCE else "all",
    }
    return {
        "name": f"[{prefix}] {objective.name}",
        "rule_type_id": ".es-query",
        "consumer": "stackAlerts",
        "schedule": {"interval": EVERY},
        "tags": list(dict.fromkeys(["tailboard", prefix])),
        "params": params,
        "actions": [],
    }


def _stored() -> Sequence[tuple[str, str]]:
    """Return percentile and field of the numbers that rollups hold."""
    names = [str(field["name"]) for field in fields()["documents"]["rollups"]["fields"]]
    matches = [re.fullmatch(r"latency\.p(\d+(?:_\d+)?)", name) for name in names]
    return [(match[1].replace("_", "."), match[0]) for match in matches if match]


def _number(promise: Latency | Rate) -> str | None:
    """Return the field that holds the percentile of a promise; None where no field does."""
    if isinstance(promise, Latency):
        for text, name in _stored():
            (stored,) = parse_percentiles(text)
            if stored.top * promise.percentile.bottom == promise.percentile.top * stored.bottom:
                return name
    return None
