"""What the server answers when it refuses, and what the double says when it cannot answer."""

from __future__ import annotations

from typing import Any

Json = Any


class Refusal(Exception):
    """An answer with an error status, as a real server gives it."""

    def __init__(self, status: int, body: Json, headers: dict[str, str] | None = None) -> None:
        super().__init__(f"{status}: {body}")
        self.status = status
        self.body = body
        self.headers = headers or {}


class CannotDo(Exception):
    """The double does not emulate what was asked for: HTTP 501, and remembered in `server.refusals`."""

    def __init__(self, what: str) -> None:
        super().__init__(what)
        self.what = what

    def body(self) -> Json:
        """Return the answer in the server's form of errors, with a type that no server has."""
        return error_body(501, {"type": "double_cannot_do_this", "reason": self.what})


class ShardFailure(Exception):
    """What makes a search fail on a shard: the error object, whether the answer repeats it as its cause, its status."""

    def __init__(self, status: int, error: Json, *, repeated: bool, per_index: bool = False) -> None:
        super().__init__(error.get("reason"))
        self.status = status
        self.error = error
        self.repeated = repeated
        self.per_index = per_index  # the error object names index and index_uuid


def error_body(status: int, error: Json) -> Json:
    """Return the whole body of an error: its root cause is its innermost one that the server keeps, here itself."""
    root = {key: value for key, value in error.items() if key != "caused_by"}
    return {"error": {"root_cause": [root], **error}, "status": status}


def refuse(status: int, kind: str, reason: str, cause: Json = None, **more: Json) -> Refusal:
    """Return the refusal with a type, a reason, and perhaps a cause."""
    error = {"type": kind, "reason": reason, **more}
    if cause is not None:
        error["caused_by"] = cause
    return Refusal(status, error_body(status, error))


def illegal(reason: str) -> Refusal:
    """Return the commonest refusal, 400 illegal_argument_exception."""
    return refuse(400, "illegal_argument_exception", reason)


def no_such_index(name: str, *, note: str = "") -> Refusal:
    """Return 404 for an index that is not there."""
    return refuse(
        404,
        "index_not_found_exception",
        f"no such index [{name}]{note}",
        **{"resource.type": "index_or_alias", "resource.id": name, "index_uuid": "_na_", "index": name},
    )


def shard_illegal(reason: str) -> ShardFailure:
    """Return the failure of each shard with an illegal argument: found only when a shard looks at its mapping."""
    return ShardFailure(400, {"type": "illegal_argument_exception", "reason": reason}, repeated=True)


def query_shard(reason: str, *, cause: bool = True) -> ShardFailure:
    """Return the failure of each shard to make a query for a field."""
    error: Json = {"type": "query_shard_exception", "reason": f"failed to create query: {reason}" if cause else reason}
    if cause:
        error["caused_by"] = {"type": "illegal_argument_exception", "reason": reason}
    return ShardFailure(400, error, repeated=False, per_index=True)
