"""Where a Kibana is: its variables of the environment, and addresses and spaces that can be."""

from __future__ import annotations

import re

from ingest.core.errors import UsageError
from ingest.environment import Server

KIBANA = Server(
    "KIBANA", "docs/guides/kibana.md", 5601, fallback="ES", if_refused="is Kibana running there? (docker compose up -d)"
)
DEFAULT_SPACE = "default"
SPACE = re.compile(r"[a-z0-9_-]{1,200}")
INSIDE = re.compile(r"/(s/(?P<space>[^/]+)|app)(/|$)")


def checked_url(url: str) -> str:
    """Return a Kibana URL without a slash at its end; UsageError for secrets in it, or for what is no server's address."""
    parts = KIBANA.parts(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--kibana takes http://HOST:5601, not {url!r}")
    if parts.query or parts.fragment:
        raise UsageError(f"{url!r}: give only Kibana's address, up to ? or #")
    if inside := INSIDE.search(parts.path):
        space = f" and --space {inside['space']}" if inside["space"] else ""
        raise UsageError(f"{url!r} leads into Kibana: give {parts.scheme}://{parts.netloc}{parts.path[: inside.start()]}{space}")
    return url.rstrip("/")


def checked_space(space: str) -> str:
    """Return a space's id; UsageError if no space can have it."""
    if not SPACE.fullmatch(space):
        raise UsageError(f"{space!r} is not the id of a space: lower-case letters, digits, - _, as after /s/ in Kibana's URLs")
    return space
