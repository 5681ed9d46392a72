"""What the environment says of servers: seconds of patience, logins of netrc."""

from __future__ import annotations

import os

from ingest.core.errors import StoreError, UsageError


def seconds(name: str, default: float) -> float:
    """Return the seconds that a variable of the environment says; UsageError if it holds something else."""
    text = os.environ.get(name) or str(default)
    try:
        found = float(text)
    except ValueError:
        found = -1.0
    if not 0 < found < 1e6:
        raise UsageError(f"{name} is a number of seconds, not {text!r}")
    return found


def netrc_login(host: str) -> tuple[str, str] | None:
    """Return the name and password that netrc has for a host, if any; StoreError where netrc cannot be read."""
    import netrc

    try:
        found = netrc.netrc().authenticators(host)
    except netrc.NetrcParseError as error:
        raise StoreError(f"the netrc file is not used: {error}") from None
    except OSError:
        return None
    return (found[0], found[2] or "") if found else None
