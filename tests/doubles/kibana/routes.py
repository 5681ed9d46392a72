"""Which path is answered by what, and what refuses a request before that."""

from __future__ import annotations

import re
from typing import Any

from tests.doubles.kibana import importing, rules
from tests.doubles.kibana.errors import Boom, CannotDo
from tests.doubles.kibana.state import Request, State

Json = Any
SPACE = re.compile(r"/s/([a-z0-9_-]+)(?=/)")
UNAVAILABLE = ("unavailable", "critical")


def answered(state: State, request: Request) -> tuple[int, Json]:
    """Return status and body of a request, or raise what refuses it."""
    if not request.path.startswith(state.base_path):
        raise Boom(404)
    request.path = request.path[len(state.base_path) :]
    if found := SPACE.match(request.path):
        request.space, request.path = found[1], request.path[found.end() :]
    known = state.authenticated(request.headers.get("authorization"))
    if request.path == "/api/status" and request.method == "GET":
        return _status(state, full=known)
    if not known:
        raise Boom(401)
    if request.method != "GET" and not (request.headers.get("kbn-xsrf") or request.headers.get("kbn-version")):
        raise Boom(400, "Request must contain a kbn-xsrf header.")
    if any(part in request.path for part in state.denied):
        raise Boom(403, f"API [{request.method} {request.path}] is unauthorized for user")
    if found := re.fullmatch(r"/api/spaces/space/([^/]+)", request.path):
        return _space(state, request, found[1])
    if request.path == "/api/saved_objects/_import" and request.method == "POST":
        return 200, importing.imported(state, request)
    if request.path == "/api/saved_objects/_bulk_delete" and request.method == "POST":
        return 200, importing.deleted(state, request)
    if found := re.fullmatch(r"/api/alerting/rule/([^/]+)", request.path):
        return 200, rules.answered(state, request, found[1])
    raise CannotDo("no such route here")


def _status(state: State, *, full: bool) -> tuple[int, Json]:
    level = state.levels.pop(0) if len(state.levels) > 1 else state.levels[0]
    status = 503 if level in UNAVAILABLE else 200
    if not full:
        return status, {"status": {"overall": {"level": level}}}
    summary = "All services and plugins are available" if level == "available" else f"1 service is {level}: alerting"
    overall = {"level": level, "summary": summary, "meta": {}}
    number = {"number": state.version, "build_hash": "0" * 40, "build_number": 1, "build_snapshot": False}
    return status, {"name": "double", "uuid": "0", "version": number, "status": {"overall": overall, "core": {}, "plugins": {}}}


def _space(state: State, request: Request, name: str) -> tuple[int, Json]:
    if request.method != "GET":
        raise CannotDo("spaces are only shown here")
    if name not in state.spaces:
        raise Boom(404)
    return 200, {"id": name, "name": name.title(), "disabledFeatures": []}
