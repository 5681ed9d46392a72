"""HTTP, by our sockets alone and through the client of Elasticsearch: who we are, which certificates are trusted, what can fail."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import socket
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import orjson
import pytest

from ingest.core.errors import StoreError, UsageError
from ingest.environment import Server
from ingest.http import LONGEST_PAUSE, Answer, Client, TransientError, with_query
from ingest.objectives.webhook import WEBHOOK
from ingest.store.elastic.client import CONNECTIONS, ELASTICSEARCH, Address, Connection
from ingest.view.kibana.importing import KIBANA

HERE = Server("HERE", "docs/README.md", 80, if_refused="is it running?")
FINE = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}"


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch, tmp_path: Path) -> None:
    for server in (HERE, ELASTICSEARCH, KIBANA, WEBHOOK):
        for name in ("API_KEY", "TOKEN", "USER", "PASSWORD", "CA_FILE", "FINGERPRINT", "PATIENCE", "TIMEOUT"):
            monkeypatch.delenv(server.variable(name), raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))


@dataclass
class Door:
    """A port that answers each request with the next of its answers, the last of them for ever; b"" is to hang up."""

    answers: list[bytes]
    context: ssl.SSLContext | None = None
    heard: list[bytes] = field(default_factory=list)
    connections: int = 0
    waits_for: Callable[[], object] = lambda: None

    def __post_init__(self) -> None:
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]

    def accept(self) -> None:
        while True:
            try:
                wire, _ = self.listener.accept()
            except OSError:
                return
            self.connections += 1
            threading.Thread(target=self.serve, args=(wire,), daemon=True).start()

    def serve(self, raw: socket.socket) -> None:
        with raw, suppress(OSError):
            with self.context.wrap_socket(raw, server_side=True) if self.context else raw as wire:
                while request := heard(wire):
                    self.heard.append(request)
                    self.waits_for()
                    answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                    wire.sendall(answer)
                    if answer != FINE and b"Content-Length: 0" not in answer:
                        return


def heard(wire: socket.socket) -> bytes:
    """Return a request with its body; empty when there is no more."""
    text, body = b"", 0
    while b"\r\n\r\n" not in text or len(text.split(b"\r\n\r\n", 1)[1]) < body:
        part = wire.recv(65536)
        if not part:
            return b""
        text += part
        if text.startswith(b"\x16"):  # TLS, on a port without
            return text
        length = re.search(rb"content-length: (\d+)", text.lower())
        body = int(length[1]) if length else 0
    return text


@contextmanager
def door(*answers: bytes, context: ssl.SSLContext | None = None) -> Iterator[Door]:
    there = Door(list(answers) or [FINE], context)
    threading.Thread(target=there.accept, daemon=True).start()
    try:
        yield there
    finally:
        there.listener.close()


class Through(Connection):
    """Exchanges through the client of Elasticsearch with the variables of `HERE`."""

    def __init__(self, url: str, server: Server) -> None:
        super().__init__(Address(url))
        Client.__init__(self, url, server, urls=self.address.nodes)


MADE: list[type[Client]] = [Client]


@pytest.fixture(autouse=True, params=[Client, pytest.param(Through, id="elasticsearch")])
def made_as(request) -> Iterator[None]:
    MADE[0] = request.param
    yield
    MADE[0] = Client


@contextmanager
def client(port: int, path: str = "", scheme: str = "http") -> Iterator[Client]:
    made = MADE[0](f"{scheme}://127.0.0.1:{port}{path}", HERE)
    try:
        yield made
    finally:
        made.close()


# ---- an exchange -----------------------------------------------------------------------------------------------------


def test_what_is_sent_and_what_comes_back() -> None:
    with door() as there, client(there.port, "/base/") as ours:
        answer = ours.exchange("PUT", with_query("/a", {"b": True, "c": "x*,.", "d": "ä&"}), b"body", {"content-type": "text/x"})
    assert (answer.status, answer.headers["Content-type"], answer.decoded()) == (200, "application/json", {})
    head, body = there.heard[0].split(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    assert (lines[0], body) == ("PUT /base/a?b=true&c=x*,.&d=%C3%A4%26 HTTP/1.1", b"body")
    assert {"content-type: text/x", "content-length: 4"} <= {line.lower() for line in lines}
    assert any(line.lower().startswith("user-agent: tailboard/") for line in lines)
    assert "authorization" not in head.decode().lower()


@pytest.mark.parametrize("status", [302, 307, 404, 429, 500])
def test_every_status_is_an_answer_and_no_redirect_is_followed(status: int) -> None:
    text = f"HTTP/1.1 {status} X\r\nLocation: http://127.0.0.1:1/\r\nContent-Length: 0\r\n\r\n"
    with door(text.encode()) as there, client(there.port) as ours:
        assert ours.exchange("GET", "/").status == status
        assert (len(there.heard), ours.retried) == (1, 0)


@pytest.mark.parametrize(
    ("answer", "decoded"),
    [
        (Answer(200, {"content-type": "application/json; charset=utf-8"}, b'{"a":[1]}'), {"a": [1]}),
        (Answer(200, {"content-type": "application/vnd.elasticsearch+json;compatible-with=9"}, b"[]"), []),
        (Answer(200, {"content-type": "text/plain"}, b"not \xff ready"), "not \ufffd ready"),
        (Answer(200, {"content-type": "text/html"}, b"<p>"), None),
        (Answer(204, {}, b""), None),
    ],
)
def test_bodies_are_decoded_by_what_they_say_they_are(answer: Answer, decoded: object) -> None:
    assert answer.decoded() == decoded


def test_one_socket_carries_many_exchanges_and_several_are_open_only_for_threads() -> None:
    with door() as there, client(there.port) as ours:
        for _ in range(5):
            ours.exchange("GET", "/")
        assert there.connections == 1
        most = 1 if MADE[0] is Client else CONNECTIONS
        there.waits_for = threading.Barrier(most).wait  # an answer comes only where so many ask at once
        threads = [threading.Thread(target=ours.exchange, args=("GET", "/")) for _ in range(2 * most)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert (there.connections, len(there.heard)) == (most, 5 + 2 * most)


# ---- what fails ------------------------------------------------------------------------------------------------------


HALF = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 20\r\n\r\n{"
CHUNK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n9\r\n{"


@pytest.mark.parametrize(
    ("answer", "sentence"),
    [
        (HALF, "^an answer was cut off$"),
        (CHUNK, "^an answer was cut off$"),
        (b"", "^the connection failed .Remote end closed connection without response.$"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "^the connection failed .*SSH-2.0-OpenSSH_9.2"),
    ],
)
def test_broken_answers_may_pass(answer: bytes, sentence: str) -> None:
    with door(answer, FINE) as there, client(there.port) as ours:
        with pytest.raises(TransientError, match=sentence) as error:
            ours.exchange("GET", "/secret")
        assert "secret" not in str(error.value)
        assert ours.exchange("GET", "/secret").status == 200


def test_json_that_is_cut_off_may_pass() -> None:
    with pytest.raises(TransientError, match="an answer was cut off"):
        Answer(200, {"content-type": "application/json"}, b'{"a":').decoded()


def test_a_server_that_is_silent_is_left_after_its_time(monkeypatch) -> None:
    monkeypatch.setenv("TAILBOARD_HERE_TIMEOUT", "0.1")
    done = threading.Event()
    with door() as there, client(there.port) as ours:
        there.waits_for = lambda: done.wait(60)
        with pytest.raises(TransientError, match=r"^no answer within 0\.1 s$"):
            ours.exchange("GET", "/")
        done.set()


def test_nobody_there() -> None:
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with (
            client(nobody.getsockname()[1]) as ours,
            pytest.raises(TransientError, match=r"^connection refused: is it running\?$"),
        ):
            ours.exchange("GET", "/")


def test_a_host_that_is_not_known_is_final_at_first_and_may_pass_once_it_was_known(monkeypatch) -> None:
    def unknown(*words, **more):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    closing = FINE.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n")
    with door(closing) as there, client(there.port) as known, client(there.port) as ours:
        known.exchange("GET", "/")
        monkeypatch.setattr(socket, "getaddrinfo", unknown)
        with pytest.raises(TransientError, match=r"^the host is not known \(Name or service not known\): check its name$"):
            known.exchange("GET", "/")
        with pytest.raises(StoreError, match=f"^http://127.0.0.1:{there.port}: the host is not known .*: check its name$"):
            ours.exchange("GET", "/")


# ---- again -----------------------------------------------------------------------------------------------------------


@pytest.fixture
def pauses(monkeypatch) -> list[float]:
    """How long was waited: noted, and not waited."""
    noted: list[float] = []

    class Clock:
        sleep = noted.append

    monkeypatch.setattr("tenacity.nap.time", Clock)
    return noted


def overloaded(after: str) -> bytes:
    return f"HTTP/1.1 429 X\r\nRetry-After: {after}\r\nContent-Length: 0\r\n\r\n".encode()


@pytest.mark.parametrize(
    ("asked", "least", "most"), [("3", 3, 3), ("3600", LONGEST_PAUSE, LONGEST_PAUSE), ("soon", 0, 0.2), ("-1", 0, 0.2)]
)
def test_a_server_is_left_in_peace_for_as_long_as_it_asks_within_reason(pauses, asked: str, least: float, most: float) -> None:
    with door(overloaded(asked), FINE) as there, client(there.port) as ours:

        def attempt() -> int:
            answer = ours.exchange("GET", "/")
            if answer.status == 429:
                raise TransientError("overloaded", answer.after)
            return answer.status

        assert ours.again(attempt) == 200
    assert (len(pauses), ours.retried) == (1, 1)
    assert least <= pauses[0] <= most


def test_what_passes_is_repeated_counted_and_said_once(pauses) -> None:
    said: list[str] = []
    with door(b"", HALF, b"", FINE) as there, client(there.port) as ours:
        assert ours.again(lambda: ours.exchange("GET", "/").status, lambda error: said.append(str(error))) == 200
    assert (ours.retried, len(pauses), len(there.heard)) == (3, 3, 4)
    assert said == ["the connection failed (Remote end closed connection without response)"]


def test_what_does_not_pass_is_not_repeated(pauses) -> None:
    with client(1) as ours:
        with pytest.raises(StoreError, match="no"):
            ours.again(lambda: (_ for _ in ()).throw(StoreError("no")))
        assert (ours.retried, pauses) == (0, [])


def test_patience_ends_with_the_last_error(monkeypatch, pauses) -> None:
    monkeypatch.setenv("TAILBOARD_HERE_PATIENCE", "0.000001")
    with door(b"") as there, client(there.port) as ours:
        with pytest.raises(TransientError, match="the connection failed"):
            ours.again(lambda: ours.exchange("GET", "/"))
        assert (len(there.heard), ours.retried) == (1, 0)


@pytest.mark.parametrize("name", ["PATIENCE", "TIMEOUT"])
def test_times_are_numbers_of_seconds(monkeypatch, name: str) -> None:
    monkeypatch.setenv(f"TAILBOARD_HERE_{name}", "soon")
    with pytest.raises(UsageError, match=f"TAILBOARD_HERE_{name} must be a number of seconds, not 'soon'"):
        Client("http://127.0.0.1", HERE)


# ---- who we are ------------------------------------------------------------------------------------------------------


def basic(user: str, password: str) -> str:
    return f"Basic {base64.b64encode(f'{user}:{password}'.encode()).decode()}"


@pytest.mark.parametrize(
    ("server", "variables", "sent"),
    [
        (ELASTICSEARCH, {"ES_API_KEY": "a2V5", "ES_USER": "u", "ES_PASSWORD": "p"}, "ApiKey a2V5"),
        (ELASTICSEARCH, {"ES_USER": "u", "ES_PASSWORD": "ö:1"}, basic("u", "ö:1")),
        (ELASTICSEARCH, {"KIBANA_API_KEY": "a2V5", "KIBANA_USER": "u"}, basic("ann", "b")),
        (KIBANA, {"ES_API_KEY": "ZXM="}, "ApiKey ZXM="),
        (KIBANA, {"ES_API_KEY": "ZXM=", "KIBANA_USER": "u", "KIBANA_PASSWORD": "p"}, basic("u", "p")),
        (WEBHOOK, {"WEBHOOK_TOKEN": "t0k3n", "ES_API_KEY": "ZXM="}, "Bearer t0k3n"),
        (WEBHOOK, {"WEBHOOK_USER": "u", "WEBHOOK_PASSWORD": "p", "ES_API_KEY": "ZXM="}, basic("u", "p")),
        (WEBHOOK, {"ES_API_KEY": "ZXM="}, basic("ann", "b")),
    ],
)
def test_the_login_of_each_server(monkeypatch, tmp_path: Path, server: Server, variables: dict[str, str], sent: str) -> None:
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login ann password b\n")
    (tmp_path / ".netrc").chmod(0o600)
    for name, text in variables.items():
        monkeypatch.setenv(f"TAILBOARD_{name}", text)
    with door() as there:
        made = Client(f"http://127.0.0.1:{there.port}", server)
        made.exchange("GET", "/")
        made.close()
    assert f"authorization: {sent}" in there.heard[0].decode().split("\r\n")
    assert sent.split()[1] not in repr(made)


@pytest.mark.parametrize(
    ("server", "variable"), [(ELASTICSEARCH, "ES_API_KEY"), (KIBANA, "ES_API_KEY"), (WEBHOOK, "WEBHOOK_TOKEN")]
)
@pytest.mark.parametrize("secret", ["c2Vj\ncmV0", "c2VjcmV0 ", "sécret"])
def test_a_broken_key_is_named_and_not_shown(monkeypatch, server: Server, variable: str, secret: str) -> None:
    monkeypatch.setenv(f"TAILBOARD_{variable}", secret)
    with pytest.raises(
        StoreError, match=f"^TAILBOARD_{variable} holds a space, a line break or a character that no key has"
    ) as error:
        Client("http://127.0.0.1", server)
    assert secret not in str(error.value)


def test_a_netrc_that_cannot_be_read_matters_only_where_it_is_needed(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / ".netrc").write_text("machinery\n")
    with pytest.raises(StoreError, match="the netrc file is not used"):
        Client("http://127.0.0.1", HERE)
    monkeypatch.setenv("TAILBOARD_HERE_USER", "ann")
    Client("http://127.0.0.1", HERE)


@pytest.mark.parametrize(
    ("url", "sentence"),
    [
        ("http://ann:s3cret@host:80", "no user or password in a URL: set TAILBOARD_HERE_API_KEY, or TAILBOARD_HERE_USER and"),
        ("http://ann:s3cret@host:x", "'host:x': the port is not a number from 1 to 65535"),
        ("http://host:65536", "'http://host:65536': the port is not a number from 1 to 65535"),
        ("http://[::1", "'http://[::1': this is not a URL"),
    ],
)
def test_urls_that_cannot_be(url: str, sentence: str) -> None:
    with pytest.raises(UsageError) as error:
        HERE.parts(url)
    assert str(error.value).startswith(sentence)
    assert "s3cret" not in str(error.value)
    with pytest.raises(UsageError) as error:
        HERE.parts(url, "the address")
    assert "host" not in str(error.value)


# ---- which certificates are trusted ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Authority:
    """A certificate authority with a server's certificate: PEM files, `chain` holds the server's and what it shows beside it."""

    certificate: Path
    leaf: Path
    chain: Path
    key: Path

    @property
    def context(self) -> ssl.SSLContext:
        made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        made.load_cert_chain(self.chain, self.key)
        return made


def fingerprint(certificate: Path) -> str:
    digits = hashlib.sha256(ssl.PEM_cert_to_DER_cert(certificate.read_text())).hexdigest().upper()
    return ":".join(digits[place : place + 2] for place in range(0, 64, 2))


def authority(folder: Path, shown: Path | None = None) -> Authority:
    """Make an authority; its server shows the certificate of another one if `shown`. All have the same name."""
    folder.mkdir()

    def openssl(*words: str) -> None:
        subprocess.run(["openssl", *words], cwd=folder, check=True, capture_output=True)

    new = ("-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes")
    openssl("req", "-x509", *new, "-days", "30", "-subj", "/CN=our authority", "-keyout", "ca.key", "-out", "ca.pem")
    openssl("req", *new, "-subj", "/CN=node", "-keyout", "leaf.key", "-out", "leaf.csr")
    (folder / "names").write_text("subjectAltName=IP:127.0.0.1\nauthorityKeyIdentifier=none\n")
    openssl(
        "x509",
        "-req",
        "-in",
        "leaf.csr",
        "-CA",
        "ca.pem",
        "-CAkey",
        "ca.key",
        "-CAcreateserial",
        "-days",
        "30",
        "-extfile",
        "names",
        "-out",
        "leaf.pem",
    )
    made = Authority(*(folder / name for name in ("ca.pem", "leaf.pem", "chain.pem", "leaf.key")))
    made.chain.write_text(made.leaf.read_text() + (shown or made.certificate).read_text())
    return made


needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not here: it makes the certificates")


@pytest.fixture(scope="module")
def ours(tmp_path_factory) -> Authority:
    return authority(tmp_path_factory.mktemp("tls") / "ours")


@pytest.fixture(scope="module")
def rogue(tmp_path_factory, ours: Authority) -> Authority:
    """Somebody in the middle, who has no key of ours, and shows our authority's certificate, which is no secret."""
    return authority(tmp_path_factory.mktemp("tls") / "rogue", shown=ours.certificate)


@needs_openssl
@pytest.mark.parametrize("trusted", ["ca file", "fingerprint of the authority", "fingerprint of the server"])
def test_l3_a_trusted_server_is_spoken_to_and_one_that_only_looks_like_it_hears_nothing(
    monkeypatch, ours: Authority, rogue: Authority, trusted: str
) -> None:
    variable, text = {
        "ca file": ("CA_FILE", str(ours.certificate)),
        "fingerprint of the authority": ("FINGERPRINT", fingerprint(ours.certificate)),
        "fingerprint of the server": ("FINGERPRINT", fingerprint(ours.leaf).replace(":", "").lower()),
    }[trusted]
    monkeypatch.setenv(f"TAILBOARD_HERE_{variable}", text)
    monkeypatch.setenv("TAILBOARD_HERE_API_KEY", "s3cret")
    with door(context=ours.context) as there, client(there.port, scheme="https") as made:
        assert made.exchange("GET", "/").status == 200
        assert made.exchange("GET", "/").status == 200
    assert len(there.heard) == 2
    with door(context=rogue.context) as there, client(there.port, scheme="https") as made:
        with pytest.raises(StoreError) as error:
            made.exchange("GET", "/")
    assert there.heard == []
    sentence = str(error.value)
    assert sentence.startswith(f"https://127.0.0.1:{there.port}: the TLS connection fails (")
    assert sentence.endswith("): check TAILBOARD_HERE_CA_FILE or TAILBOARD_HERE_FINGERPRINT (docs/README.md)")


@needs_openssl
def test_a_server_that_nothing_vouches_for_hears_nothing(monkeypatch, ours: Authority, rogue: Authority) -> None:
    for variable, text in (("", ""), ("CA_FILE", str(rogue.certificate)), ("FINGERPRINT", fingerprint(rogue.certificate))):
        if variable:
            monkeypatch.setenv(f"TAILBOARD_HERE_{variable}", text)
        with door(context=ours.context) as there, client(there.port, scheme="https") as made:
            with pytest.raises(StoreError, match="the TLS connection fails"):
                made.exchange("GET", "/")
        assert there.heard == []


@needs_openssl
def test_a_certificate_for_another_name_is_refused(monkeypatch, ours: Authority) -> None:
    monkeypatch.setenv("TAILBOARD_HERE_CA_FILE", str(ours.certificate))
    with door(context=ours.context) as there:
        made = MADE[0](f"https://localhost:{there.port}", HERE)
        with pytest.raises(StoreError, match=r"the TLS connection fails \(.*localhost"):
            made.exchange("GET", "/")
        made.close()
    assert there.heard == []


@needs_openssl
def test_a_server_may_be_away_while_its_certificate_is_looked_for(monkeypatch, ours: Authority) -> None:
    monkeypatch.setenv("TAILBOARD_HERE_FINGERPRINT", fingerprint(ours.certificate))
    with socket.socket() as nobody:
        nobody.bind(("127.0.0.1", 0))
        with client(nobody.getsockname()[1], scheme="https") as made, pytest.raises(TransientError, match="connection refused"):
            made.exchange("GET", "/")


@pytest.mark.parametrize("variable", ["", "FINGERPRINT"])
def test_a_port_without_tls_is_told_from_one_that_is_not_trusted(monkeypatch, variable: str) -> None:
    if variable:
        monkeypatch.setenv(f"TAILBOARD_HERE_{variable}", "00" * 32)
    with door(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n") as there, client(there.port, scheme="https") as made:
        with pytest.raises(StoreError, match="the server does not speak TLS: is it http://, not https://"):
            made.exchange("GET", "/")


@pytest.mark.parametrize(
    ("variable", "text", "sentence"),
    [
        ("CA_FILE", "/no/such/file.pem", "TAILBOARD_HERE_CA_FILE: there is no file /no/such/file.pem"),
        ("CA_FILE", __file__, f"TAILBOARD_HERE_CA_FILE: {__file__} holds no certificates in PEM format"),
        (
            "FINGERPRINT",
            "A0:B1",
            "TAILBOARD_HERE_FINGERPRINT is not a SHA-256 fingerprint: 64 hexadecimal digits (docs/README.md)",
        ),
        (
            "FINGERPRINT",
            "g" * 64,
            "TAILBOARD_HERE_FINGERPRINT is not a SHA-256 fingerprint: 64 hexadecimal digits (docs/README.md)",
        ),
    ],
)
def test_what_names_no_certificate_is_a_sentence(monkeypatch, variable: str, text: str, sentence: str) -> None:
    monkeypatch.setenv(f"TAILBOARD_HERE_{variable}", text)
    with pytest.raises(StoreError) as error, client(1, scheme="https") as made:
        made.exchange("GET", "/")
    assert str(error.value) == sentence
    assert Client("http://127.0.0.1:1", HERE)  # where there is no TLS nothing of it is read


def test_its_own_variables_go_before_those_of_another_server(monkeypatch, tmp_path: Path) -> None:
    (tmp_path / "ca.pem").touch()
    monkeypatch.setenv("TAILBOARD_ES_FINGERPRINT", "0" * 64)
    assert KIBANA.trusted() == ("TAILBOARD_ES_FINGERPRINT", "0" * 64)
    monkeypatch.setenv("TAILBOARD_KIBANA_CA_FILE", str(tmp_path / "ca.pem"))
    assert KIBANA.trusted() == ("TAILBOARD_KIBANA_CA_FILE", str(tmp_path / "ca.pem"))
    assert WEBHOOK.trusted() == ("", "")


@pytest.mark.parametrize(
    ("variables", "secrets"),
    [
        ({"USER": "ann", "PASSWORD": 'hun"ter2'}, ['hun\\"ter2', base64.b64encode(b'ann:hun"ter2').decode()]),
        (
            {"API_KEY": base64.b64encode(b"id-of-key:the-key-itself").decode()},
            ["the-key-itself", "aWQtb2Yta2V5OnRoZS1rZXktaXRzZWxm"],
        ),
        ({"API_KEY": "plain-token"}, ["plain-token"]),
        ({}, []),
    ],
)
@pytest.mark.parametrize("status", [400, 401, 403, 429, 500, 503])
def test_r10_own_secrets_that_a_server_repeats_are_masked(monkeypatch, variables: dict, secrets: list[str], status: int) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(HERE.variable(name), value)
    said = "no [" + "] and [".join(secrets) + "] here"
    body = f'{{"error":"{said}"}}'.encode()
    head = f"HTTP/1.1 {status} No\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with door(head + body) as open_door, client(open_door.port) as ours:
        text = ours.exchange("GET", "/").decoded()["error"]
    assert text == "no [" + "] and [".join("***" for _ in secrets) + "] here" if secrets else said
    assert not any(secret in text for secret in secrets)


@pytest.mark.parametrize("secret", ["the-key-itself", 'hun"ter2', "read"])
def test_secrets_are_masked_in_what_an_answer_says_of_a_part_that_failed_and_stay_in_what_is_stored(monkeypatch, secret) -> None:
    monkeypatch.setenv(HERE.variable("USER"), "ann")
    monkeypatch.setenv(HERE.variable("PASSWORD"), secret)
    cause = {"type": "mapper_parsing_exception", "reason": f"no {secret}", "caused_by": {"reason": f"as {secret} is none"}}
    told = {
        "errors": True,
        "items": [{"create": {"_id": secret, "status": 400, "error": cause}}, {"create": {"_id": "b", "status": 201}}],
        "_shards": {"failed": 1, "failures": [{"node": secret, "reason": cause}]},
        "successResults": [{"id": secret}],
        "hits": {"hits": [{"_source": {"op": secret, "reason": f"rows of {secret}"}}]},
        "aggregations": {"error": {"buckets": [{"key": secret}]}},
    }
    body = orjson.dumps(told)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n".encode()
    with door(head + body) as open_door, client(open_door.port) as ours:
        found = ours.exchange("GET", "/").decoded()
    masked = {"type": "mapper_parsing_exception", "reason": "no ***", "caused_by": {"reason": "as *** is none"}}
    told["items"][0]["create"]["error"] = masked
    told["_shards"]["failures"] = [{"node": "***", "reason": masked}]
    assert found == told
