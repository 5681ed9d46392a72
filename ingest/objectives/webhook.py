"""Episodes told to a web address: one POST of JSON an episode, sent again while it fails in a way that passes.

    TAILBOARD_WEBHOOK_TOKEN=... tailboard check SLA.yml --webhook https://chat.example/hooks/latency
    TAILBOARD_HOOK=https://chat.example/hooks/SECRET tailboard check SLA.yml --webhook env:TAILBOARD_HOOK

Secrets come from the environment or netrc, never from an argument: a token, a login of the host, or the whole address where that
is the secret. What a delivery is about stands in `id` and `state`: the same pair is the same news, however often it comes.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import orjson

from ingest.core.errors import DeliveryError, RefusedError, UsageError
from ingest.core.plain import shown
from ingest.core.timing import format_duration
from ingest.core.writing import latency, utc
from ingest.environment import netrc_login, seconds
from ingest.query.verdicts import ENDED, Episode

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from urllib3 import PoolManager

PATIENCE_SECONDS, REQUEST_SECONDS, LONGEST_WAIT = 30.0, 10.0, 10.0
OVERLOADED, SERVER_ERRORS = 429, 500
FROM_ENVIRONMENT = "env:"
TOKEN, AUTHORITY = "TAILBOARD_WEBHOOK_TOKEN", "TAILBOARD_WEBHOOK_CA_FILE"


class TransientError(Exception):
    """A delivery failed in a way that passes; `after` is for how many seconds the receiver wants peace."""

    def __init__(self, text: str, after: float = 0.0) -> None:
        super().__init__(text)
        self.after = after


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where episodes are told, and who we are there; made by `webhook`."""

    url: str = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)
    patience: float
    request_seconds: float

    @property
    def host(self) -> str:
        """Return the host alone: the rest of an address may be a secret."""
        return urlsplit(self.url).netloc

    def tell(self, episodes: Sequence[Episode], relative: Mapping[str, bool] | None = None) -> int:
        """Deliver episodes in their order; return how many. `relative` names runs whose times are elapsed.

        DeliveryError where a delivery fails: one that is refused (RefusedError) keeps no other back, after one that finds nobody
        none is tried.
        """
        pool, told, refused = _pool(self.url), 0, []
        for number, one in enumerate(episodes):
            body = orjson.dumps(payload(one, relative=(relative or {}).get(one.run, False)))
            try:
                self._again(pool, body)
                told += 1
            except RefusedError as error:
                refused.append(str(error))
            except TransientError as error:
                left = len(episodes) - number
                raise DeliveryError(
                    f"the webhook {self.host} was told {told} of {len(episodes)} episodes, {left} were not delivered: {error}"
                ) from None
        if refused:
            raise RefusedError(f"the webhook {self.host} refuses {len(refused)} of {len(episodes)} episodes: {refused[0]}")
        return told

    def _again(self, pool: PoolManager, body: bytes) -> None:
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        pause = wait_random_exponential(multiplier=0.2, max=LONGEST_WAIT)

        def wait(state: RetryCallState) -> float:
            error = state.outcome.exception() if state.outcome else None
            wanted = max(pause(state), error.after if isinstance(error, TransientError) else 0.0)
            return min(wanted, self.patience)

        Retrying(retry=retry_if_exception_type(TransientError), wait=wait, stop=stop_after_delay(self.patience), reraise=True)(
            self._once, pool, body
        )

    def _once(self, pool: PoolManager, body: bytes) -> None:
        """Post once; TransientError or RefusedError unless the receiver takes it."""
        from urllib3.exceptions import HTTPError, NewConnectionError, SSLError
        from urllib3.exceptions import TimeoutError as TooLateError

        try:
            answer = pool.request(
                "POST", self.url, body=body, headers=self.headers, timeout=self.request_seconds, retries=False, redirect=False
            )
        except NewConnectionError as error:  # which is a TimeoutError to urllib3
            raise TransientError("connection refused" if "refused" in str(error) else "the connection fails") from None
        except TooLateError:
            raise TransientError(f"no answer within {self.request_seconds:g} s") from None
        except SSLError as error:
            raise RefusedError(f"the TLS connection fails ({str(error)[:200]}): check {AUTHORITY}") from None
        except HTTPError:
            raise TransientError("the connection fails") from None
        if 200 <= answer.status < 300:
            return
        if answer.status == OVERLOADED or answer.status >= SERVER_ERRORS:
            wanted = str(answer.headers.get("retry-after", ""))
            after = min(float(wanted), LONGEST_WAIT) if wanted.isdecimal() else 0.0
            raise TransientError(f"it answers {answer.status}", after)
        raise RefusedError(_refusal(answer.status))


def webhook(text: str) -> Webhook:
    """Return the webhook of `--webhook`: an address, or env:NAME for one in the environment. UsageError for what is neither."""
    name = text.removeprefix(FROM_ENVIRONMENT)
    url = os.environ.get(name, "") if text.startswith(FROM_ENVIRONMENT) else text
    if text.startswith(FROM_ENVIRONMENT) and not url:
        raise UsageError(f"--webhook {text}: the environment has no {name}")
    shown = text if text.startswith(FROM_ENVIRONMENT) else "the address"
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        raise UsageError(f"--webhook: {shown} has no port from 1 to 65535") from None
    if parts.username or parts.password:
        raise UsageError(f"--webhook: no user or password in a URL: set {TOKEN}, use netrc, or env:NAME for a secret address")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--webhook takes http(s)://HOST/PATH, or env:NAME for an address in the environment, not {shown}")
    authority = os.environ.get(AUTHORITY)
    if authority and not Path(authority).is_file():
        raise UsageError(f"{AUTHORITY}: there is no file {authority}")
    headers = {"content-type": "application/json", "user-agent": "tailboard", **_login(parts.hostname)}
    patience, request = (
        seconds("TAILBOARD_WEBHOOK_PATIENCE", PATIENCE_SECONDS),
        seconds("TAILBOARD_WEBHOOK_TIMEOUT", REQUEST_SECONDS),
    )
    return Webhook(url, headers, patience, request)


def payload(one: Episode, *, relative: bool = False) -> dict[str, Any]:
    """Return what is posted of an episode: columns, promise, and a sentence. `start` and `end` are null without a clock."""
    return {
        "id": one.id,
        "state": one.state,
        "text": sentence(one, relative=relative),
        "objective": one.objective,
        "percentile": one.percentile,
        "threshold_ns": one.threshold_ns,
        "window_ns": one.window_ns,
        "run": one.run,
        "kind": one.kind,
        "labels": dict(one.labels),
        "start": None if relative else utc(one.start_ns),
        "end": None if relative else utc(one.end_ns),
        "start_ns": one.start_ns,
        "end_ns": one.end_ns,
        "peak_ns": one.peak_ns,
        "peak_open": one.peak_open,
        "samples": one.samples,
        "windows": one.windows,
        "silent": one.silent,
        "thin": one.thin,
        "worst_host": one.worst_host,
    }


def sentence(one: Episode, *, relative: bool = False) -> str:
    """Return an episode in a sentence."""
    lasted = format_duration(one.end_ns - one.start_ns)
    peak = "nothing completed" if one.peak_ns is None else f"peak {'>= ' if one.peak_open else ''}{latency(one.peak_ns)}"
    where = f" ({one.group})" if one.labels else ""
    if one.state == ENDED:
        span = f"was violated for {lasted}" if relative else f"was violated from {utc(one.start_ns)} to {utc(one.end_ns)}"
    else:
        span = f"is violated, so far for {lasted}" if relative else f"is violated since {utc(one.start_ns)}"
    worst = f", worst host {one.worst_host}" if one.worst_host else ""
    return shown(f"{one.objective}{where} of {one.run} {span}: p{one.percentile}, {peak}{worst}")


def _refusal(status: int) -> str:
    if status in (401, 403):
        return f"it does not know us ({status}): set {TOKEN}, or a login in netrc"
    if 300 <= status < 400:
        return f"it answers {status}, which leads elsewhere: give the address that it leads to"
    return f"it answers {status}"


def _login(host: str) -> dict[str, str]:
    token = os.environ.get(TOKEN)
    if token:
        if not token.isascii() or not token.isprintable() or " " in token:
            raise UsageError(f"{TOKEN} holds what no token does: copy it again, without line breaks")
        return {"authorization": f"Bearer {token}"}
    login = netrc_login(host)
    return {"authorization": f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"} if login else {}


def _pool(url: str) -> PoolManager:
    from urllib3 import PoolManager

    authority = os.environ.get(AUTHORITY)
    return PoolManager(ca_certs=authority) if authority and url.startswith("https:") else PoolManager()
