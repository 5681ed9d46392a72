"""Text from outside on a terminal: shown as it is spelled, never obeyed, neither by the terminal nor by rich's markup."""

from __future__ import annotations

from rich.markup import escape as unmarked

from ingest.core.plain import shown


def escape(text: object) -> str:
    """Return text for rich: control characters as their numbers, brackets of markup as brackets."""
    return unmarked(shown(text))
