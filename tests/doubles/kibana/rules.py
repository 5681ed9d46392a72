"""/api/alerting/rule/{id}: POST creates, PUT changes, GET shows; bodies are checked key by key, as Kibana checks them."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

from tests.doubles.kibana.errors import Boom, CannotDo
from tests.doubles.kibana.state import Request, State

Json = Any
UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[1-5][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}", re.IGNORECASE)
DURATION = re.compile(r"[1-9][0-9]*[smhd]")
BOTH = {"name", "tags", "schedule", "params", "actions", "throttle", "notify_when", "alert_delay", "flapping", "artifacts"}
CREATION = BOTH | {"rule_type_id", "consumer", "enabled"}
ACTION = {"group", "id", "params", "frequency", "uuid", "alerts_filter", "use_alert_data_for_template"}
CONSUMERS = ("alerts", "discover", "infrastructure", "logs", "observability", "stackAlerts")
PARAMS: Mapping[str, tuple[type, ...]] = {
    "searchType": (str,),
    "esqlQuery": (dict,),
    "timeField": (str,),
    "timeWindowSize": (int,),
    "timeWindowUnit": (str,),
    "size": (int,),
    "threshold": (list,),
    "thresholdComparator": (str,),
    "groupBy": (str,),
    "aggType": (str,),
    "excludeHitsFromPreviousRun": (bool,),
}
NEEDED = ("size", "timeWindowSize", "timeWindowUnit", "threshold", "thresholdComparator")
ROWS_SINCE = (9, 2)


def answered(state: State, request: Request, name: str) -> Json:
    """Return the rule after a request about it."""
    space, there = state.rules.get(name, ("", None))
    visible = there if space == request.space else None
    if request.method == "POST":
        return _created(state, request, name, taken=there is not None)
    if visible is None:
        raise Boom(404, f"Saved object [alert/{name}] not found")
    if request.method == "GET":
        return visible
    if request.method == "PUT":
        body = _checked(state, request, BOTH, ("name", "schedule"))
        defaults = {"tags": [], "actions": [], "throttle": None, "notify_when": None}
        changed = {**visible, **defaults, "alert_delay": None, "flapping": None, **_stored(body)}
        state.rules[name] = (request.space, changed)
        return changed
    raise CannotDo(f"{request.method} of a rule")


def _created(state: State, request: Request, name: str, *, taken: bool) -> Json:
    body = _checked(state, request, CREATION, ("name", "rule_type_id", "consumer", "schedule"))
    if body["rule_type_id"] != ".es-query":
        raise CannotDo(f"rules of type {body['rule_type_id']}")
    if body["consumer"] not in CONSUMERS:
        raise Boom(403, f'Unauthorized by "{body["consumer"]}" to create ".es-query" rule')
    if not UUID.fullmatch(name):
        told = "Predefined IDs are not allowed for saved objects with encrypted attributes unless the ID is a UUID.: Bad Request"
        raise Boom(400, told)
    if taken:
        raise Boom(409, f"Saved object [alert/{name}] conflict")
    made = {
        "id": name, "enabled": True, "tags": [], "throttle": None, "notify_when": None, "api_key_owner": "elastic", "mute_all": False,
        "muted_alert_ids": [], "created_by": "elastic", "execution_status": {"status": "pending"}, **_stored(body),
    }  # fmt: skip
    state.rules[name] = (request.space, made)
    return made


def _stored(body: Json) -> Json:
    """Return a rule as it is shown: parameters with the schema's defaults, actions with the type of their connector."""
    params = {"excludeHitsFromPreviousRun": True, "aggType": "count", **body.get("params", {})}
    actions = [{**one, "connector_type_id": ".server-log"} for one in body.get("actions", [])]
    return {**body, "params": params, "actions": actions}


def _checked(state: State, request: Request, allowed: set[str], needed: tuple[str, ...]) -> Json:
    try:
        body = json.loads(request.body)
    except ValueError:
        raise Boom(400, "Invalid request payload JSON format") from None
    for name in body:
        if name not in allowed:
            raise Boom(400, f"[request body.{name}]: definition for this key is missing")
    for name in needed:
        if name not in body:
            raise Boom(400, f"[request body.{name}]: expected value of type [string] but got [undefined]")
    if set(body["schedule"]) != {"interval"} or not DURATION.fullmatch(str(body["schedule"]["interval"])):
        raise Boom(400, f"[request body.schedule.interval]: string is not a valid duration: {body['schedule'].get('interval')}")
    for place, action in enumerate(body.get("actions", [])):
        for name in action:
            if name not in ACTION:
                raise Boom(400, f"[request body.actions.{place}.{name}]: definition for this key is missing")
    problem = params_problem(body.get("params", {}), rows=state.numbers >= ROWS_SINCE)
    if problem:
        raise Boom(400, f"params invalid: {problem}")
    return body


def params_problem(params: Json, *, rows: bool) -> str:
    """Return what Kibana has against the parameters of an ES|QL rule, empty if nothing; `rows`: it knows alerts by row."""
    for name, value in params.items():
        if name not in PARAMS:
            return f"[{name}]: definition for this key is missing"
        if not isinstance(value, PARAMS[name]) or (isinstance(value, bool) and bool not in PARAMS[name]):
            return f"[{name}]: expected value of type [{PARAMS[name][0].__name__}] but got [{type(value).__name__}]"
    for name in NEEDED:
        if name not in params:
            return f"[{name}]: expected value of type [number] but got [undefined]"
    if params.get("searchType") != "esqlQuery":
        raise CannotDo("rules that search by other than ES|QL")
    if not str((params.get("esqlQuery") or {}).get("esql", "")):
        return "[esqlQuery.esql]: expected value of type [string] but got [undefined]"
    if not 0 <= params["size"] <= 10_000:
        return f"[size]: Value must be equal to or lower than [10000]: {params['size']}"
    if params["timeWindowSize"] < 1:
        return "[timeWindowSize]: Value must be equal to or greater than [1]."
    if params["timeWindowUnit"] not in "smhd":
        return f'[timeWindowUnit]: invalid timeWindowUnit: "{params["timeWindowUnit"]}"'
    if params.get("groupBy", "all") not in (("all", "top", "row") if rows else ("all", "top")):
        return f'[groupBy]: invalid groupBy: "{params["groupBy"]}"'
    if not params.get("timeField"):
        return "[timeField]: is required"
    if params["thresholdComparator"] != ">":
        return "[thresholdComparator]: is required to be greater than"
    return "[threshold]: is required to be 0" if params["threshold"][0] != 0 else ""
