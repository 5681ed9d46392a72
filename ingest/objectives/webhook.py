"""Episodes, alerts and comparisons sent to a web address: one POST of JSON each, repeated while the failure may pass.

    TAILBOARD_WEBHOOK_TOKEN=... tailboard check SLA.yml --webhook https://chat.example/hooks/latency
    TAILBOARD_HOOK=https://chat.example/hooks/SECRET tailboard check SLA.yml --webhook env:TAILBOARD_HOOK

Secrets come from the environment or netrc, never from an argument: a token, a login of the host, or the whole address where that
is the secret. `id` and `state` identify a delivery: the same pair is the same news, however often it comes.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

from ingest.core.errors import DeliveryError, RefusedError, StoreError, UsageError, shown
from ingest.core.units import format_duration, utc
from ingest.environment import Server
from ingest.http import JSON, OVERLOADED, Client, TransientError
from ingest.objectives.baseline import Comparison
from ingest.objectives.objectives import group_name, peak
from ingest.query.burn_rate import BurnAlert
from ingest.query.episodes import ENDED, VIOLATED, Episode, digest

News = Episode | Comparison | BurnAlert

WEBHOOK = Server("WEBHOOK", "docs/guides/check.md", 80, "TOKEN", "Bearer", patience_seconds=30.0, request_seconds=10.0)
SERVER_ERRORS = 500
FROM_ENVIRONMENT = "env:"
BURNING = "burning"
BURNED = ("start_ns", "burn_rate", "long_ns", "used")
MEASURED = ("peak_ns", "peak_open", "samples", "windows", "silent", "thin", "worst_host")


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where episodes are sent, and with which login; made by `webhook`. The address may be a secret."""

    host: str
    target: str = field(repr=False)
    client: Client = field(repr=False)

    def tell(self, news: Sequence[News], relative: Mapping[str, bool] | None = None) -> int:
        """Deliver news in their order; return how many. `relative` names runs whose times are elapsed.

        DeliveryError where a delivery fails: after one that is refused (RefusedError) the others are still sent, after one that
        reaches no server none is tried.
        """
        name, delivered, refused = self.client.name, 0, []
        for number, one in enumerate(news):
            body = orjson.dumps(payload(one, relative=(relative or {}).get(one.run, False)))
            left = len(news) - number
            try:
                self.client.again(lambda body=body: self._once(body))  # type: ignore[misc]  # bound now
                delivered += 1
            except RefusedError as error:
                refused.append(str(error))
            except TransientError as error:
                raise DeliveryError(
                    f"{name} received {delivered} of {len(news)} messages, {left} were not delivered: {error}"
                ) from None
            except StoreError as error:
                raise DeliveryError(f"{error}; {left} of {len(news)} messages were not delivered") from None
        if refused:
            raise RefusedError(f"{name} refuses {len(refused)} of {len(news)} messages: {refused[0]}")
        return delivered

    def _once(self, body: bytes) -> None:
        """Post once; TransientError, StoreError or RefusedError unless the receiver takes it."""
        answer = self.client.exchange("POST", self.target, body, {"content-type": JSON})
        if answer.status == OVERLOADED or answer.status >= SERVER_ERRORS:
            raise TransientError(f"it answers {answer.status}", answer.after)
        if not 200 <= answer.status < 300:
            raise RefusedError(_refusal(answer.status))


def webhook(text: str) -> Webhook:
    """Return the webhook of `--webhook`: an address, or env:NAME for one in the environment. UsageError for what is neither."""
    name = text.removeprefix(FROM_ENVIRONMENT)
    url = os.environ.get(name, "") if text.startswith(FROM_ENVIRONMENT) else text
    if text.startswith(FROM_ENVIRONMENT) and not url:
        raise UsageError(f"--webhook {text}: the environment has no {name}")
    shown = text if text.startswith(FROM_ENVIRONMENT) else "the address"
    parts = WEBHOOK.parts(url, f"--webhook: {shown}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"--webhook takes http(s)://HOST/PATH, or env:NAME for an address in the environment, not {shown}")
    try:
        client = Client(f"{parts.scheme}://{parts.netloc}", WEBHOOK, name=f"the webhook {parts.netloc}")
    except StoreError as error:
        raise UsageError(str(error)) from None
    return Webhook(parts.netloc, f"{parts.path or '/'}{parts.query and f'?{parts.query}'}", client)


def payload(news: News, *, relative: bool = False) -> dict[str, Any]:
    """Return what is posted: columns, promise, and a sentence. `start` and `end` are null without a clock."""
    told: dict[str, Any] = {"text": sentence(news, relative=relative), "run": news.run, "labels": dict(news.labels)}
    if isinstance(news, Comparison):
        identity = digest(news.objective.name, news.run, news.labels, news.baseline)
        return told | {"id": identity, "state": VIOLATED, "objective": news.objective.name, **news.to_dict()}
    told |= {"objective": news.objective, "start": None if relative else utc(news.start_ns)}
    if isinstance(news, BurnAlert):
        identity = digest(BURNING, news.objective, news.run, news.labels, news.start_ns)
        return told | {"id": identity, "state": BURNING, **{name: getattr(news, name) for name in BURNED}}
    return told | {
        "id": news.id,
        "state": news.state,
        **{name: getattr(news, name) for name in ("percentile", "threshold_ns", "window_ns", "kind")},
        "end": None if relative else utc(news.end_ns),
        **{name: getattr(news, name) for name in ("start_ns", "end_ns", *MEASURED)},
        **{name: getattr(news, name) for name in ("least_rate", "lowest_rate") if news.least_rate is not None},
        **({"phase": news.phase} if news.phase else {}),
    }


def sentence(news: News, *, relative: bool = False) -> str:
    """Return an episode, a comparison or an alert in a sentence."""
    if isinstance(news, Episode):
        return _of_episode(news, relative=relative)
    group = f" ({group_name(news.labels)})" if news.labels else ""
    if isinstance(news, Comparison):
        return shown(f"{news.objective.name}{group} of {news.run} is {news.outcome}: {news}")
    since = "" if relative else f" since {utc(news.start_ns)}"
    return shown(f"the budget of {news.objective}{group} of {news.run} burns too fast{since}: {news}")


def _of_episode(episode: Episode, *, relative: bool) -> str:
    lasted = format_duration(episode.end_ns - episode.start_ns)
    where = f" ({episode.group})" if episode.labels else ""
    if episode.state == ENDED:
        span = f"was violated for {lasted}" if relative else f"was violated from {utc(episode.start_ns)} to {utc(episode.end_ns)}"
    else:
        span = f"is violated, so far for {lasted}" if relative else f"is violated since {utc(episode.start_ns)}"
    worst = f", worst host {episode.worst_host}" if episode.worst_host else ""
    phase = f" ({episode.phase})" if episode.phase else ""
    measured = "rate" if episode.least_rate is not None else f"p{episode.percentile}"
    return shown(f"{episode.objective}{where} of {episode.run} {span}{phase}: {measured}, {peak(episode)}{worst}")


def _refusal(status: int) -> str:
    if status in (401, 403):
        return WEBHOOK.login_failed(status)
    if 300 <= status < 400:
        return f"it answers {status}, a redirect: give the address that it leads to"
    return f"it answers {status}"
