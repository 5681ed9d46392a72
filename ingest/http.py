"""HTTP for every server: trusted certificates, one exchange, and repeats of failures that can pass.

Logins come from the environment (ingest/environment.py). The callers interpret the answers: view/kibana, objectives/webhook, and
store/elastic, whose exchanges go through the official client.
"""

from __future__ import annotations

import base64
import hmac
import socket
import ssl
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

import orjson

from ingest import __version__
from ingest.core.errors import StoreError
from ingest.core.units import number
from ingest.environment import Server, seconds

if TYPE_CHECKING:
    from tenacity import RetryCallState
    from urllib3 import HTTPConnectionPool

JSON = "application/json"
OVERLOADED, TOO_LARGE = 429, 413
PASSING = {OVERLOADED, 502, 503, 504}
FIRST_PAUSE, LONGEST_PAUSE = 0.1, 10.0
LONGEST_REASON = 200
CONNECT_SECONDS = 10.0  # to be connected, where a request may take longer
FAILED, MASK, SHORTEST_SECRET = 400, b"***", 4
SENTENCES = {"error", "errors", "failures", "message", "reason"}  # names below which a server says what went wrong
STORED = {"hits", "docs", "aggregations"}  # names below which an answer holds what was stored, and is the same letter by letter
CUT_OFF = (ssl.SSLEOFError, ssl.SSLZeroReturnError, ssl.SSLSyscallError)
Result = TypeVar("Result")


class TransientError(Exception):
    """A request failed in a way that passes; `after`: for how many seconds the server wants no other."""

    def __init__(self, text: str, after: float = 0.0) -> None:
        super().__init__(text)
        self.after = after


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a server. Names of headers match in any case. `secrets` are ours that its body repeats."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    secrets: Sequence[bytes] = ()

    @property
    def after(self) -> float:
        """Return for how many seconds the server wants no further request."""
        wanted = str(self.headers.get("retry-after", ""))
        return float(wanted) if wanted.isdecimal() else 0.0

    def decoded(self) -> Any:
        """Return the JSON of the body, or its plain text, or None for anything else; TransientError for JSON that is cut off."""
        kind = self.headers.get("content-type", "")
        if "json" in kind:
            try:
                decoded = orjson.loads(self.body)
            except orjson.JSONDecodeError:
                raise TransientError("an answer was cut off") from None
            return _sentences_masked(decoded, [secret.decode() for secret in self.secrets]) if self.secrets else decoded
        return self.body.decode("utf-8", "replace") if kind.startswith("text/plain") else None


class Client:
    """Exchanges with one server. `retried` counts what was sent again.

    `name` stands for it in sentences: its URL unless that is a secret. `urls` are those of its nodes where it has several. Wrong
    variables raise UsageError or StoreError.
    """

    def __init__(self, url: str, server: Server, *, name: str = "", urls: Sequence[str] = ()) -> None:
        self.url, self.server, self.name, self.urls = url, server, name or url, urls or (url,)
        self.patience = seconds(server.variable("PATIENCE"), server.patience_seconds)
        self.request_seconds = seconds(server.variable("TIMEOUT"), server.request_seconds)
        self.connect_seconds = min(self.request_seconds, CONNECT_SECONDS)
        self.retried = 0
        parts = [urlsplit(each) for each in self.urls]
        self._secure = parts[0].scheme == "https"
        self._hosts = [(each.hostname or "", each.port or (443 if self._secure else server.port)) for each in parts]
        self._base = parts[0].path.rstrip("/")
        self._trusted = server.trusted() if self._secure else ("", "")
        login = server.login(self._hosts[0][0])
        self._headers = {"user-agent": f"tailboard/{__version__}", **login}
        self._secrets = secrets_in(login.get("authorization", ""))
        self._pool: HTTPConnectionPool | None = None
        self._trust: ssl.SSLContext | None = None
        self._answered = False

    def close(self) -> None:
        """Close all sockets."""
        if self._pool is not None:
            self._pool.close()

    def exchange(self, method: str, target: str, body: bytes | None = None, headers: Mapping[str, str] | None = None) -> Answer:
        """Return the answer to one request, of any status; TransientError or StoreError if none came.

        `target` is path and query, behind the path of the client's URL.
        """
        from urllib3.exceptions import HTTPError

        try:
            status, answered, said = self.sent(method, target, body, {**self._headers, **(headers or {})})
        except (HTTPError, OSError) as error:
            raise self._failure(error) from None
        self._answered = True
        if status < FAILED:  # what is stored may hold the same letters, and stays as it is: sentences are masked
            repeated = any(secret in said for secret in self._secrets)
            return Answer(status, answered, said, self._secrets if repeated else ())
        for secret in self._secrets:  # proxies and servers quote the requests that they refuse
            said = said.replace(secret, MASK)
        return Answer(status, answered, said)

    def sent(
        self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]
    ) -> tuple[int, Mapping[str, str], bytes]:
        """Return status, headers and body of the answer to one request; HTTPError of urllib3 or OSError if none came."""
        if self._pool is None:
            self._pool = self.pool(*self._hosts[0])
        answer = self._pool.urlopen(method, self._base + target, body, headers, retries=False, redirect=False)
        return answer.status, answer.headers, answer.data

    def again(self, attempt: Callable[[], Result], waiting: Callable[[TransientError], None] | None = None) -> Result:
        """Return what `attempt` returns, repeated while it raises TransientError, which is raised when patience ends.

        Each node is tried. `waiting` is called with the first of them, once.
        """
        from tenacity import Retrying, retry_if_exception_type, stop_after_delay, wait_random_exponential

        impatient = stop_after_delay(self.patience)
        pause = wait_random_exponential(multiplier=FIRST_PAUSE, max=LONGEST_PAUSE)

        def error_of(state: RetryCallState) -> TransientError:
            error = state.outcome.exception() if state.outcome else None
            return error if isinstance(error, TransientError) else TransientError("")

        def count(state: RetryCallState) -> None:
            self.retried += 1
            if waiting and state.attempt_number == 1:
                waiting(error_of(state))

        return Retrying(
            retry=retry_if_exception_type(TransientError),
            wait=lambda state: min(max(pause(state), error_of(state).after), LONGEST_PAUSE, self.patience),
            stop=lambda state: state.attempt_number >= len(self.urls) and impatient(state),
            before_sleep=count,
            reraise=True,
        )(attempt)

    def pool(self, host: str, port: int, *, connections: int = 1) -> HTTPConnectionPool:
        """Return the sockets to a node. For https it is found out first which certificates are trusted."""
        import urllib3

        timeout = urllib3.Timeout(total=self.request_seconds, connect=self.connect_seconds)
        words: dict[str, Any] = {"timeout": timeout, "maxsize": connections, "block": True}
        if not self._secure:
            return urllib3.HTTPConnectionPool(host, port, **words)
        if self._trust is None:
            self._trust = self._trusting()
        hostname: dict[str, Any] = {} if self._trust.check_hostname else {"assert_hostname": False}
        return urllib3.HTTPSConnectionPool(host, port, ssl_context=self._trust, **hostname, **words)

    def _trusting(self) -> ssl.SSLContext:
        variable, text = self._trusted
        if variable.endswith("FINGERPRINT"):
            return self._pinned(text)
        try:
            context = ssl.create_default_context(cafile=text or None)
        except ssl.SSLError:
            raise StoreError(f"{variable}: {text} holds no certificates in PEM format") from None
        if text:
            # Python 3.13 asks for key identifiers in every certificate: those of a site's own authority often have none.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        return context

    def _pinned(self, fingerprint: str) -> ssl.SSLContext:
        """Return a context that trusts the one certificate that has a fingerprint: the server's own, or its authority's.

        To find it the certificates are fetched over a connection that carries nothing else. What is sent later goes only to a
        server that holds the key of that certificate or of one that it signed: anybody can show a copy of an authority's.
        """
        chain = self._certificates()
        known = [certificate for certificate in chain if hmac.compare_digest(sha256(certificate).hexdigest(), fingerprint)]
        if not known:
            raise self._untrusted(f"no certificate of the server has the fingerprint {fingerprint[:8]}...")
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False  # the fingerprint identifies the server
        context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        context.load_verify_locations(cadata=known[0])
        return context

    def _certificates(self) -> list[bytes]:
        """Return the certificates that the first node that answers shows; OSError where none does."""
        for host, port in self._hosts[:-1]:
            with suppress(OSError):
                return _certificates(host, port, self.request_seconds)
        return _certificates(*self._hosts[-1], self.request_seconds)

    def _failure(self, error: Exception) -> Exception:
        """Return what a failed connection means: TransientError where it may pass, StoreError where it will not."""
        from urllib3.exceptions import ConnectTimeoutError, NewConnectionError
        from urllib3.exceptions import TimeoutError as TooLateError

        cause = _cause(error)
        if isinstance(cause, ConnectionRefusedError):
            return TransientError(f"connection refused{self.server.if_refused and f': {self.server.if_refused}'}")
        if isinstance(cause, socket.gaierror):
            text = f"the host is not known ({cause.strerror}): check its name"
            return TransientError(text) if self._answered else StoreError(f"{self.name}: {text}")
        if isinstance(cause, TimeoutError) or (isinstance(error, TooLateError) and not isinstance(error, NewConnectionError)):
            waited = self.connect_seconds if isinstance(error, ConnectTimeoutError) else self.request_seconds
            return TransientError(f"no answer within {number(waited)} s")
        reason = str(getattr(cause, "strerror", None) or cause)[:LONGEST_REASON]
        if "WRONG_VERSION_NUMBER" in reason:
            return StoreError(f"{self.name}: the server does not speak TLS: is it http://, not https://?")
        if isinstance(cause, ssl.SSLError | ssl.CertificateError) and not isinstance(cause, CUT_OFF):
            return self._untrusted(reason)
        if "IncompleteRead" in repr(cause):
            return TransientError("an answer was cut off")
        return TransientError(f"the connection failed ({reason})")

    def _untrusted(self, reason: str) -> StoreError:
        variables = f"{self.server.variable('CA_FILE')} or {self.server.variable('FINGERPRINT')} ({self.server.page})"
        return StoreError(f"{self.name}: the TLS connection fails ({reason}): check {variables}")


def _sentences_masked(decoded: Any, secrets: Sequence[str], *, sentence: bool = False) -> Any:
    """Return an answer's JSON without secrets in the texts by which it says what went wrong, as for one document of many."""
    if isinstance(decoded, dict):
        below = {name: sentence or name in SENTENCES for name in decoded if name not in STORED}
        return decoded | {name: _sentences_masked(decoded[name], secrets, sentence=said) for name, said in below.items()}
    if isinstance(decoded, list):
        return [_sentences_masked(value, secrets, sentence=sentence) for value in decoded]
    if sentence and isinstance(decoded, str):
        for secret in secrets:
            decoded = decoded.replace(secret, MASK.decode())
    return decoded


def secrets_in(login: str) -> list[bytes]:
    """Return all texts that nobody may read in a login as it is sent, the longest first.

    A text of less than 4 characters is none: it would stand in any sentence.
    """
    sent = login.rpartition(" ")[2]
    texts = [sent]
    with suppress(ValueError):
        decoded = base64.b64decode(sent, validate=True).decode()
        texts += [decoded, decoded.partition(":")[2]]
    kept = {text for text in texts if len(text) >= SHORTEST_SECRET}
    return [
        text.encode() for text in sorted({*kept, *(orjson.dumps(text).decode()[1:-1] for text in kept)}, key=len, reverse=True)
    ]


def with_query(path: str, words: Mapping[str, object]) -> str:
    """Return a path with a query behind it, if there is one."""
    query = urlencode(
        {name: str(word).lower() if isinstance(word, bool) else str(word) for name, word in words.items()}, safe="*,."
    )
    return f"{path}?{query}" if query else path


def _cause(error: BaseException) -> BaseException:
    """Return the error below one of urllib3."""
    from urllib3.exceptions import HTTPError, NewConnectionError

    below = (error.__context__,) if isinstance(error, NewConnectionError) else reversed(error.args)
    inner = next((part for part in below if isinstance(part, BaseException)), None)
    return _cause(inner) if isinstance(error, HTTPError) and inner else error


def _certificates(host: str, port: int, timeout: float) -> list[bytes]:
    """Return the certificates that a server shows, as DER, its own first; OSError where it shows none. Nothing is sent to it."""
    import _ssl

    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # certificates are public, and nothing but them passes here
    with socket.create_connection((host, port), timeout) as raw, context.wrap_socket(raw, server_hostname=host) as wire:
        if hasattr(wire, "get_unverified_chain"):  # Python 3.13
            return list(wire.get_unverified_chain())
        chain = wire._sslobj.get_unverified_chain()  # type: ignore[attr-defined]  # noqa: SLF001  # public since Python 3.13
        return [certificate.public_bytes(_ssl.ENCODING_DER) for certificate in chain]
