"""Where a Kibana is and who we are there: checked addresses, and secrets from the environment.

TAILBOARD_KIBANA_API_KEY; TAILBOARD_KIBANA_USER and TAILBOARD_KIBANA_PASSWORD; TAILBOARD_KIBANA_CA_FILE;
TAILBOARD_KIBANA_FINGERPRINT. Each that is not set falls back to TAILBOARD_ES_... of the same name, logins then to netrc.
Nothing is taken from an argument or a URL, and no sentence holds a secret.
"""

from __future__ import annotations

import base64
import os
import re
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ingest.core.errors import StoreError, UsageError
from ingest.environment import netrc_login

DEFAULT_SPACE = "default"
SPACE = re.compile(r"[a-z0-9_-]{1,200}")
INSIDE = re.compile(r"/(s/(?P<space>[^/]+)|app)(/|$)")
SECRETS = "TAILBOARD_KIBANA_API_KEY, or TAILBOARD_KIBANA_USER and TAILBOARD_KIBANA_PASSWORD"


def checked_url(url: str) -> str:
    """Return a Kibana URL without a slash at its end; UsageError for secrets in it, or for what is no server's address."""
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError(f"{url.rpartition('@')[2]!r}: the port is no number from 1 to 65535") from None
    if parts.username or parts.password:
        raise UsageError(f"no user or password in a URL: set {SECRETS}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--kibana takes http://HOST:5601, not {url!r}")
    if parts.query or parts.fragment:
        raise UsageError(f"{url!r}: give Kibana's address alone, without what follows ? or #")
    if inside := INSIDE.search(parts.path):
        space = f" and --space {inside['space']}" if inside["space"] else ""
        raise UsageError(f"{url!r} leads into Kibana: give {parts.scheme}://{parts.netloc}{parts.path[: inside.start()]}{space}")
    return url.rstrip("/")


def checked_space(space: str) -> str:
    """Return a space's id; UsageError if no space can have it."""
    if not SPACE.fullmatch(space):
        raise UsageError(f"{space!r} is no id of a space: lower-case letters, digits, - and _, as after /s/ in Kibana's URLs")
    return space


def login_header(host: str) -> dict[str, str]:
    """Return the header that says who we are, empty where the environment and netrc say nothing; StoreError for a broken key."""
    (key_from, key), (user_from, user) = _variable("API_KEY"), _variable("USER")
    if "KIBANA" in user_from and "KIBANA" not in key_from:
        key = ""  # a login for Kibana goes before a key for Elasticsearch
    login = (user, _variable("PASSWORD")[1]) if user else netrc_login(host)
    if key:
        if not key.isascii() or not key.isprintable() or " " in key:
            raise StoreError(f"{key_from} holds what no API key does: copy its field `encoded` again, without line breaks")
        return {"authorization": f"ApiKey {key}"}
    return {"authorization": f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"} if login else {}


def trust_words() -> dict[str, Any]:
    """Return which certificates are trusted, as words of elastic_transport's NodeConfig; StoreError where a file is not there."""
    (authority_from, authority), (_, fingerprint) = _variable("CA_FILE"), _variable("FINGERPRINT")
    if authority and not Path(authority).is_file():
        raise StoreError(f"{authority_from}: there is no file {authority}")
    found = {"ca_certs": authority, "ssl_assert_fingerprint": fingerprint}
    return {name: value for name, value in found.items() if value}


def _variable(name: str) -> tuple[str, str]:
    """Return the name and the text of the variable that is set: Kibana's own, else that of Elasticsearch."""
    own, other = f"TAILBOARD_KIBANA_{name}", f"TAILBOARD_ES_{name}"
    return (own, os.environ[own]) if os.environ.get(own) else (other, os.environ.get(other, ""))
