"""Words that nobody knows: the known ones that they resemble, for the sentence that refuses them."""

from __future__ import annotations

import re
from collections.abc import Iterable

from ingest.core.errors import MOST_LISTED, listed

ALIKE = 0.6  # difflib's own measure of what is close
GLOB = re.compile(r"[*?\[\]]")


def nearest_first(word: str, known: Iterable[str]) -> list[str]:
    """Return known words, those most like `word` first; equals in their order. What globs stand for is left out of account."""
    ranked = sorted(((likeness(word, name), name) for name in dict.fromkeys(known)), key=lambda pair: -pair[0])
    return [name for _, name in ranked]


def likeness(word: str, name: str) -> float:
    """Return how alike two words are, 0 to 1, whatever their case; of a path its parts are looked at, too."""
    from difflib import SequenceMatcher  # for errors alone, and each import takes its time

    plain = GLOB.sub("", word).casefold()
    parts = {name.casefold(), *name.casefold().split("/")} - {""}
    return max((SequenceMatcher(None, plain, part).ratio() for part in parts), default=0.0)


def meant(word: str, known: Iterable[str]) -> str:
    """Return `do you mean NAME?` for the known word that is most like this one, empty where none is near."""
    near = nearest_first(word, known)[:1]
    return f"do you mean {near[0]}?" if near and likeness(word, near[0]) >= ALIKE else ""


def choices(word: str, known: Iterable[str], *, most: int = MOST_LISTED) -> str:
    """Return what a sentence says behind `no ... WORD:`, the known word that is meant and which ones there are.

    `do you mean host? There are host, op and 3 more`, the nearest first; where none is near, `there are ...` in their order.
    """
    names = list(dict.fromkeys(known))
    if not names:
        return "there is none"
    question = meant(word, names)
    if question:
        return question if len(names) == 1 else f"{question} There are {listed(nearest_first(word, names), most)}"
    return f"there {'is' if len(names) == 1 else 'are'} {listed(names, most)}"


def marks_for(glob: str, texts: Iterable[str]) -> str:
    """Return what a sentence says of the marks of a run, none of which a glob matches: `its marks: 'osd.3 down'`."""
    names = nearest_first(glob, texts)
    question = meant(glob, names)
    return f"{question} {'I' if question else 'i'}ts marks: {listed(map(repr, names)) or 'none'}".strip()
