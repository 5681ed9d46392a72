"""What Kibana answers when it refuses, and what the double says when it cannot answer."""

from __future__ import annotations

import http.client
from typing import Any

Json = Any


class Boom(Exception):
    """An answer with an error status, in the form that all of Kibana's routes give it."""

    def __init__(self, status: int, message: str = "", **more: Json) -> None:
        name = http.client.responses[status]
        super().__init__(f"{status} {message}")
        self.status = status
        self.body: Json = {"statusCode": status, "error": name, "message": message or name, **more}


class CannotDo(Exception):
    """The double does not emulate what was asked for: HTTP 501, and remembered."""
