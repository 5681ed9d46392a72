"""Settings from the environment: our login on a server, the certificates that we trust, and for how many seconds we wait.

A secret stands in a variable or in netrc, never in an argument or a URL, and no sentence holds one.
"""

from __future__ import annotations

import base64
import os
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from ingest.core.dataclass import dataclass
from ingest.core.errors import StoreError, UsageError


@dataclass(frozen=True, slots=True)
class Server:
    """A kind of server, and its variables of the environment: TAILBOARD_<word>_USER and so on.

    What is not set is taken from the variables of `fallback`. `page` is the document that explains them, `scheme` how the key is
    sent, `if_refused` what to check where nobody listens.
    """

    word: str
    page: str
    port: int
    key: str = "API_KEY"
    scheme: str = "ApiKey"
    fallback: str = ""
    if_refused: str = ""
    patience_seconds: float = 120.0
    request_seconds: float = 60.0

    @property
    def secrets(self) -> str:
        """Return the variables that hold the login, for a sentence."""
        return f"{self.variable(self.key)}, or {self.variable('USER')} and {self.variable('PASSWORD')}"

    def variable(self, name: str) -> str:
        """Return the full name of a variable."""
        return f"TAILBOARD_{self.word}_{name}"

    def parts(self, url: str, shown: str = "") -> SplitResult:
        """Return the parts of a URL, called `shown` where it is a secret; UsageError for a login in it, or a wrong URL."""
        try:
            parts = urlsplit(url)
            _ = parts.port
        except ValueError as error:
            reason = "the port is not a number from 1 to 65535" if "Port" in str(error) else "this is not a URL"
            raise UsageError(f"{shown or repr(url.rpartition('@')[2])}: {reason}") from None
        if parts.username or parts.password:
            raise UsageError(f"no user or password in a URL: set {self.secrets}")
        return parts

    def login(self, host: str) -> dict[str, str]:
        """Return the header with the login, none where no login is set. StoreError for a broken key or netrc file."""
        variable, text = self._first(self.key, "USER")
        if variable.endswith(self.key):
            if not text.isascii() or not text.isprintable() or " " in text:
                raise StoreError(
                    f"{variable} holds a space, a line break or a character that no key has: copy it again ({self.page})"
                )
            return {"authorization": f"{self.scheme} {text}"}
        login = (text, self._first("PASSWORD")[1]) if text else _netrc_login(host)
        return {"authorization": f"Basic {base64.b64encode(':'.join(login).encode()).decode()}"} if login else {}

    def login_failed(self, status: int) -> str:
        """Return what to do where the server does not accept the login."""
        return f"Login failed ({status}). Set {self.secrets} ({self.page})"

    def trusted(self) -> tuple[str, str]:
        """Return the variable that says which certificates are trusted, and its text; both empty where the system's are.

        StoreError for a file that is not there, or text that is not a fingerprint.
        """
        variable, text = self._first("FINGERPRINT", "CA_FILE")
        if variable.endswith("CA_FILE") and not Path(text).is_file():
            raise StoreError(f"{variable}: there is no file {text}")
        if variable.endswith("FINGERPRINT"):
            text = text.replace(":", "").lower()
            if len(text) != 64 or not set(text) <= set("0123456789abcdef"):
                raise StoreError(f"{variable} is not a SHA-256 fingerprint: 64 hexadecimal digits ({self.page})")
        return variable, text

    def _first(self, *names: str) -> tuple[str, str]:
        """Return the first variable that is set, and its text: first its own, each of `names` in turn, then the fallback's."""
        every = [f"TAILBOARD_{word}_{name}" for word in (self.word, self.fallback) if word for name in names]
        return next(((variable, os.environ[variable]) for variable in every if os.environ.get(variable)), ("", ""))


def seconds(name: str, default: float) -> float:
    """Return the seconds that a variable of the environment sets; UsageError if it holds something else."""
    text = os.environ.get(name) or str(default)
    try:
        number = float(text)
    except ValueError:
        number = -1.0
    if not 0 < number < 1e6:
        raise UsageError(f"{name} must be a number of seconds, not {text!r}")
    return number


def _netrc_login(host: str) -> tuple[str, str] | None:
    """Return the name and password that netrc has for a host, if any; StoreError where netrc cannot be read."""
    import netrc

    try:
        entry = netrc.netrc().authenticators(host)
    except netrc.NetrcParseError as error:
        raise StoreError(f"the netrc file is not used: {error}") from None
    except OSError:
        return None
    return (entry[0], entry[2] or "") if entry else None
