"""What is said to people on stderr, line by line."""

from __future__ import annotations

import sys

from ingest.core.plain import shown


def say(text: object, before: str = "") -> None:
    """Print a line to stderr; control characters in it (a file may be called anything) are shown as their numbers."""
    print(f"{before}tailboard: {shown(text)}", file=sys.stderr, flush=True)
