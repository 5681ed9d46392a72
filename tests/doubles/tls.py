"""TLS in front of a server without: what a load balancer does, for tests of certificates."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

CERTIFICATE = Path(__file__).parents[1] / "data" / "tls" / "cert.pem"
KEY = CERTIFICATE.with_name("key.pem")


class TlsFront:
    """Takes TLS connections on 127.0.0.1 and passes on what they hold."""

    def __init__(self, target: str) -> None:
        parts = urlsplit(target)
        self._target = (parts.hostname or "", parts.port or 80)
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(CERTIFICATE, KEY)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"https://127.0.0.1:{self._listener.getsockname()[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                raw, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(raw,), daemon=True).start()

    def _serve(self, raw: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(raw, server_side=True) as client:
            with socket.create_connection(self._target) as server:
                back = threading.Thread(target=_copy, args=(server, client), daemon=True)
                back.start()
                _copy(client, server)
                back.join()


def _copy(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while data := source.recv(1 << 16):
            sink.sendall(data)
    with suppress(OSError):
        sink.shutdown(socket.SHUT_WR)


def fingerprint() -> str:
    """Return the SHA-256 of the certificate as `openssl x509 -fingerprint -sha256` prints it."""
    import hashlib

    binary = ssl.PEM_cert_to_DER_cert(CERTIFICATE.read_text())
    return ":".join(f"{byte:02X}" for byte in hashlib.sha256(binary).digest())
