"""multipart/form-data, read strictly: whatever a parser might forgive is refused."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.doubles.kibana.errors import Boom

DISPOSITION = re.compile(r'form-data; name="([^"]*)"(?:; filename="([^"]*)")?')


@dataclass(frozen=True, slots=True)
class Part:
    """One field of a form."""

    name: str
    filename: str | None
    kind: str
    content: bytes


def parts_of(content_type: str, body: bytes) -> list[Part]:
    """Return the fields of a form; 415 for another content type, 400 for a body that is none."""
    match = re.fullmatch(r'multipart/form-data;\s*boundary="?([^";]{1,70})"?', content_type)
    if match is None:
        raise Boom(415)
    boundary = b"--" + match[1].encode()
    first, *pieces, last = body.split(boundary)
    if first or not pieces or last not in (b"--\r\n", b"--"):
        raise Boom(400, "Invalid multipart payload format")
    return [_part(piece) for piece in pieces]


def _part(piece: bytes) -> Part:
    head, blank, content = piece.partition(b"\r\n\r\n")
    if not piece.startswith(b"\r\n") or not blank or not content.endswith(b"\r\n"):
        raise Boom(400, "Invalid multipart payload format")
    headers = dict(line.split(": ", 1) for line in head.decode().strip().split("\r\n"))
    lower = {name.lower(): value for name, value in headers.items()}
    match = DISPOSITION.fullmatch(lower.get("content-disposition", ""))
    if match is None:
        raise Boom(400, "Invalid multipart payload format")
    return Part(match[1], match[2], lower.get("content-type", "text/plain"), content[:-2])
