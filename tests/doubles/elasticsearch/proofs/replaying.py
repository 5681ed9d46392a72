"""Sends recorded requests to a double, as they were sent."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass, field
from typing import Any

from tests.doubles.elasticsearch import ElasticsearchDouble

Json = Any


@dataclass(frozen=True, slots=True)
class Answered:
    """What came back; headers in lower case."""

    status: int
    headers: dict[str, str]
    body: Json


def send(
    server: ElasticsearchDouble, method: str, path: str, body: Json = None, headers: dict[str, str] | None = None
) -> Answered:
    """Return the answer to one request on a connection of its own; a body that is no text is sent as JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", int(server.url.rpartition(":")[2]), timeout=60)
    try:
        return exchange(connection, method, path, body, headers)
    finally:
        connection.close()


def exchange(
    connection: http.client.HTTPConnection, method: str, path: str, body: Json, headers: dict[str, str] | None
) -> Answered:
    """Return the answer to one request on an open connection."""
    raw = (
        body
        if isinstance(body, bytes)
        else body.encode()
        if isinstance(body, str)
        else None
        if body is None
        else json.dumps(body).encode()
    )
    given = (
        {"Content-Type": "application/x-ndjson" if "_bulk" in path or "_msearch" in path else "application/json"} if raw else {}
    )
    connection.request(method, path, raw, {**given, **(headers or {})})
    response = connection.getresponse()
    content = response.read()
    found = {name.lower(): value for name, value in response.getheaders()}
    is_json = "json" in found.get("content-type", "")
    return Answered(response.status, found, json.loads(content) if content and is_json else content.decode() or None)


@dataclass
class Replay:
    """A conversation as far as it has come: the double keeps its state from step to step."""

    server: ElasticsearchDouble
    steps: list[Json]
    points: dict[str, str] = field(default_factory=dict)
    answers: list[Answered] = field(default_factory=list)

    def upto(self, number: int) -> Answered:
        """Return the answer to a step, sending all before it first."""
        connection = http.client.HTTPConnection("127.0.0.1", int(self.server.url.rpartition(":")[2]))
        try:
            while len(self.answers) < number:
                self.answers.append(self._next(connection, self.steps[len(self.answers)]))
        finally:
            connection.close()
        return self.answers[number - 1]

    def _next(self, connection: http.client.HTTPConnection, step: Json) -> Answered:
        body = step["body"]
        for theirs, ours in self.points.items():
            body = body.replace(theirs, ours) if body else body
        headers = {name: value for name, value in (("Content-Type", step["content_type"]), ("Accept", step["accept"])) if value}
        answer = exchange(connection, step["method"], step["path"], body, headers)
        if "_pit?" in step["path"]:
            self.points[step["response"]["id"]] = answer.body["id"]
        return answer
