"""Which tags of a log hold equal numbers of samples, interval by interval: perhaps the same operations, written twice.

Held of each series are its intervals, its samples, and a hash of the sequence of its counts, which can be put together from
those of parts. Only series of one kind are compared: service, response and wait times are never added up.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from ingest.core.series import Series

MANY = 10
PRIME, FACTOR = (1 << 61) - 1, 0x1F3D5B79A2C4E68F
NAMED_MOST = 6
NESTED = "the tags cycles and requests hold the same work, as a cycle is made of requests: choose one with --where tag="

Key = tuple[str, str, str, int]  # op, kind, tag, segment
Tally = tuple[int, int, int]  # intervals, samples, hash


def key_of(series: Series) -> Key:
    """Return what a series is tallied under."""
    return (series.op, series.kind, series.tag, series.segment)


class Tallies:
    """The counts of each series so far."""

    def __init__(self, stored: Iterable[tuple[Key, Tally]] = ()) -> None:
        self._of: dict[Key, Tally] = dict(stored)

    @property
    def told(self) -> Mapping[Key, Tally]:
        """Return intervals, samples and hash by series."""
        return self._of

    def add(self, key: Key, counts: Sequence[int]) -> None:
        """Take the next intervals of a series: how many samples each holds."""
        rows, samples, value = self._of.get(key, (0, 0, 0))
        for count in counts:
            value = (value * FACTOR + count + 1) % PRIME
        self._of[key] = rows + len(counts), samples + sum(counts), value

    def absorb(self, later: Mapping[Key, Tally]) -> None:
        """Add the counts of the part of the log that follows."""
        for key, (rows, samples, value) in later.items():
            rows_before, before, first = self._of.get(key, (0, 0, 0))
            self._of[key] = rows_before + rows, before + samples, (first * pow(FACTOR, rows, PRIME) + value) % PRIME

    @property
    def overlapping(self) -> set[tuple[str, str, str]]:
        """Return op, kind and tag of those of whose overlapping lines `doubts` tells."""
        return {keys[0][:3] for keys in self._alike() if len({key[:3] for key in keys}) == 1}

    def _alike(self) -> list[list[Key]]:
        """Return the series of one kind whose counts are equal in each interval, where there are several."""
        alike: dict[tuple[str, Tally], list[Key]] = {}
        for key, tally in self._of.items():
            if tally[0] >= MANY and tally[1]:
                alike.setdefault((key[1], tally), []).append(key)
        return [keys for keys in alike.values() if len(keys) > 1]

    def doubts(self, *, nested: bool) -> list[str]:
        """Return sentences about tags that perhaps hold the same operations, or surely where they are `nested`."""
        doubts = [_equal(sorted(keys)) for keys in self._alike()]
        if nested and {"cycles", "requests"} <= {tag.rpartition(".")[2] for _, _, tag, _ in self._of}:
            doubts.append(NESTED)
        return doubts


def _equal(keys: Sequence[Key]) -> str:
    """Return the sentence on series of one kind whose counts are equal in each interval."""
    often = "twice" if len(keys) == 2 else f"{len(keys)} times"
    counted = f"perhaps the same operations, which are then counted {often}"
    by_op = len({op for op, _, _, _ in keys}) == len(keys) and all(op for op, _, _, _ in keys)
    names = list(dict.fromkeys(op if by_op else tag or op for op, _, tag, _ in keys))
    if len(names) == 1:
        whose = f"tag {names[0]!r}" if names[0] else "no tag"
        return f"lines of {whose} overlap and hold equal numbers of samples in every interval: {counted}"
    shown = [repr(name) if name else "none" for name in names[:NAMED_MOST]]
    more = len(names) - len(shown)
    texts = f"{', '.join(shown)} and {more} more" if more else f"{', '.join(shown[:-1])} and {shown[-1]}"
    label = "op" if by_op else "tag"
    return f"the {label}s {texts} hold equal numbers of samples in every interval: {counted}; choose one with --where {label}="
