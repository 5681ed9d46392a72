"""Credentials and privileges. Nothing of this is recorded (the nodes ran without security): it follows the documentation and the
wording that servers with security are known for, see the package's docstring."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Any

from tests.doubles.elasticsearch.errors import Refusal, error_body

Json = Any
CHALLENGE = 'Basic realm="security", charset="UTF-8", ApiKey'
INDEX_PRIVILEGES = (  # first match; from the privilege that grants least
    ("indices:data/write/bulk", "create_doc,create,delete,index,write,all"),
    ("indices:data/write/delete", "delete,write,all"),
    ("indices:data/write", "create_doc,create,index,write,all"),
    ("indices:data/read", "read,all"),
    ("indices:admin/auto_create", "auto_configure,create_index,manage,all"),
    ("indices:admin/create", "create_index,manage,all"),
    ("indices:admin/delete", "delete_index,manage,all"),
    ("indices:admin/refresh", "maintenance,manage,all"),
    ("indices:admin/mappings/get", "view_index_metadata,manage,all"),
    ("indices:admin/get", "view_index_metadata,manage,all"),
    ("indices:admin/resolve", "view_index_metadata,manage,read,all"),
    ("indices:monitor", "monitor,manage,all"),
    ("indices:", "manage,all"),
)
CLUSTER_PRIVILEGES = (
    ("cluster:monitor", "monitor,manage,all"),
    ("cluster:admin/component_template", "manage_index_templates,manage,all"),
    ("indices:admin/index_template", "manage_index_templates,manage,all"),
    ("cluster:", "manage,all"),
)


@dataclass(frozen=True, slots=True)
class Guard:
    """What credentials the double asks for, and which actions it denies to them."""

    api_key: str | tuple[str, str] | None
    basic: tuple[str, str] | None
    denied: frozenset[str]

    @property
    def on(self) -> bool:
        """Return whether credentials are asked for."""
        return bool(self._wanted)

    @property
    def _wanted(self) -> dict[str, str]:
        found = {}
        if self.api_key is not None:
            key = self.api_key if isinstance(self.api_key, str) else base64.b64encode(":".join(self.api_key).encode()).decode()
            found["apikey"] = key
        if self.basic is not None:
            found["basic"] = base64.b64encode(":".join(self.basic).encode()).decode()
        return found

    def check(self, authorization: str | None, path: str) -> None:
        """Refuse a request without the right credentials: 401."""
        wanted = self._wanted
        if not wanted:
            return
        if not authorization:
            raise self._unauthenticated(f"missing authentication credentials for REST request [{path}]")
        scheme, _, value = authorization.partition(" ")
        if wanted.get(scheme.lower()) == value.strip():
            return
        if scheme.lower() == "basic":
            user = base64.b64decode(value + "==").decode("utf-8", "replace").partition(":")[0]
            raise self._unauthenticated(f"unable to authenticate user [{user}] for REST request [{path}]")
        if scheme.lower() == "apikey":
            raise self._unauthenticated(
                f"unable to authenticate with provided credentials and anonymous access is not allowed for this request [{path}]"
            )
        raise self._unauthenticated(f"missing authentication credentials for REST request [{path}]")

    @staticmethod
    def _unauthenticated(reason: str) -> Refusal:
        error = {
            "type": "security_exception",
            "reason": reason,
            "header": {"WWW-Authenticate": ['Basic realm="security", charset="UTF-8"', "ApiKey"]},
        }
        return Refusal(401, error_body(401, error), {"WWW-Authenticate": CHALLENGE})

    def _who(self) -> str:
        if self.api_key is not None:
            key = (
                base64.b64decode(self.api_key + "==").decode().partition(":")[0]
                if isinstance(self.api_key, str)
                else self.api_key[0]
            )
            return f"API key id [{key}] of user [{self.basic[0] if self.basic else 'elastic'}]"
        return f"user [{self.basic[0] if self.basic else '_anonymous'}] with effective roles [limited]"

    def grants(self, privilege: str, known: tuple[tuple[str, str], ...]) -> bool:
        """Return whether no action that a privilege grants is denied."""
        granting = [next((names for start, names in known if action.startswith(start)), "") for action in self.denied]
        return not any(privilege in names.split(",") for names in granting)

    @property
    def user(self) -> str:
        """Return the name of who logs in."""
        return self.basic[0] if self.basic else "elastic"

    def denial(self, action: str, indices: str) -> Json | None:
        """Return the error object if an action is denied, else None."""
        if action not in self.denied:
            return None
        for start, privileges in CLUSTER_PRIVILEGES:
            if action.startswith(start):
                reason = f"action [{action}] is unauthorized for {self._who()}, this action is granted by the cluster privileges [{privileges}]"
                return {"type": "security_exception", "reason": reason}
        privileges = next(names for start, names in INDEX_PRIVILEGES if action.startswith(start))
        where = f" on indices [{indices}]" if indices else ""
        return {
            "type": "security_exception",
            "reason": f"action [{action}] is unauthorized for {self._who()}{where}, this action is granted by the index privileges [{privileges}]",
        }

    def allow(self, action: str, indices: str) -> None:
        """Refuse a whole request whose action is denied: 403."""
        error = self.denial(action, indices)
        if error is not None:
            raise Refusal(403, error_body(403, error))
