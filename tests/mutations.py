"""Damage to a file, step by step: what hypothesis draws for the fuzz tests of readers, and what each step does."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from ingest.core.errors import TailboardError

Mutation = tuple[str, int, int, bytes]
Change = Callable[[bytes, int, int, bytes], bytes]


def mutations(
    kinds: Sequence[str], place: int, size: int, new: st.SearchStrategy[bytes], *, most: int = 5
) -> st.SearchStrategy[list[Mutation]]:
    """Return lists of steps: kind, a place (taken modulo what there is), a size, and bytes to put in."""
    return st.lists(st.tuples(st.sampled_from(kinds), st.integers(0, place), st.integers(0, size), new), max_size=most)


def mutated(content: bytes, steps: Sequence[Mutation], own: Mapping[str, Change] | None = None) -> bytes:
    """Return the content after each step; `own` are further kinds, or other ways of doing one of those here."""
    changes = {**CHANGES, **(own or {})}
    for kind, place, size, new in steps:
        content = changes[kind](content, place, size, new)
    return content


def check_damaged(
    path: Path,
    content: bytes,
    new: st.SearchStrategy[bytes],
    counted: Callable[[Path], tuple[int, int]],
    *,
    place: int,
    examples: int,
) -> None:
    """Read a file after random damage: whatever is refused is refused in words, and both of what was `counted` are equal."""

    @settings(max_examples=examples, deadline=None)
    @given(mutations(sorted(CHANGES), place, 40, new))
    def held(steps: list[Mutation]) -> None:
        path.write_bytes(mutated(content, steps))
        try:
            told, there = counted(path)
        except TailboardError:
            return
        assert told == there

    held()


def flip(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + bytes([content[at] ^ 1 << size % 8]) + content[at + 1 :] if at < len(content) else content


def delete(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + content[at + size :]


def insert(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + new + content[at:]


def truncate(content: bytes, place: int, size: int, new: bytes) -> bytes:
    return content[: place % (len(content) + 1)]


def nul(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + bytes(size) + content[at + size :]


def duplicate(content: bytes, place: int, size: int, new: bytes) -> bytes:
    at = place % (len(content) + 1)
    return content[:at] + content[at : at + size * 10] + content[at:]


def swap(content: bytes, place: int, size: int, new: bytes) -> bytes:
    lines = content.split(b"\n")
    one, other = place % len(lines), size % len(lines)
    lines[one], lines[other] = lines[other], lines[one]
    return b"\n".join(lines)


def drop(content: bytes, place: int, size: int, new: bytes) -> bytes:
    lines = content.split(b"\n")
    one = place % len(lines)
    return b"\n".join(lines[:one] + lines[one + 1 :])


def number(content: bytes, place: int, size: int, new: bytes) -> bytes:
    lines = content.split(b"\n")
    one = place % len(lines)
    cells = lines[one].split(b", ")
    cells[size % len(cells)] = new
    return b"\n".join([*lines[:one], b", ".join(cells), *lines[one + 1 :]])


def crlf(content: bytes, place: int, size: int, new: bytes) -> bytes:
    return content.replace(b"\n", b"\r\n", 1 + size)


CHANGES: dict[str, Change] = {
    one.__name__: one for one in (flip, delete, insert, truncate, nul, duplicate, swap, drop, number, crlf)
}
