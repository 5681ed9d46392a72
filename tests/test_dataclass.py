"""The dataclasses of core/dataclass.py beside those of the library, which are the oracle."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from dataclasses import field
from typing import ClassVar

import pytest

from ingest.core.dataclass import dataclass, replace

KINDS = [
    {},
    {"slots": True},
    {"frozen": True},
    {"frozen": True, "slots": True},
    {"frozen": True, "slots": True, "order": True},
    {"frozen": True, "kw_only": True},
    {"order": True},
]


def shapes(decorator, kind: dict[str, bool]) -> list[type]:
    """Return classes of all shapes of the house, made by a decorator."""

    @decorator(**kind)
    class Plain:
        """A class."""

        many: ClassVar[int] = 3
        first: int
        second: str = "b"
        third: list[int] = field(default_factory=list, compare=False)
        fourth: float = field(default=1.5, repr=False)

        @property
        def double(self) -> int:
            return 2 * self.first

    @decorator(**kind)
    class Below(Plain):
        """One with fields of another."""

        second: str = "c"
        fifth: int = 0

    @decorator(**kind)
    class Alone:
        """One field."""

        value: float

    @decorator(**kind)
    class Empty:
        """None."""

    @decorator(**{name: value for name, value in kind.items() if name != "order"})
    class Own:
        """Methods of its own."""

        value: int

        def __eq__(self, other: object) -> bool:
            return isinstance(other, type(self))

        def __repr__(self) -> str:
            return "own"

    @decorator(**{name: value for name, value in kind.items() if name != "order"})
    class OwnHash:
        """A hash of its own."""

        value: int

        def __hash__(self) -> int:
            return 7

    return [Plain, Below, Alone, Empty, Own, OwnHash]


CALLS: list[tuple[tuple, dict]] = [
    ((), {}),
    ((1,), {}),
    ((float("nan"),), {}),
    ((), {"first": 1}),
    ((), {"value": 1}),
    ((), {"first": 2, "second": "x", "third": [1]}),
    ((), {"first": 1, "fourth": 2.5}),
    ((1, "a", [2], 3.0), {}),
    ((1, "a", [2], 3.0, 4), {}),
    ((1,), {"first": 2}),
    ((), {"first": 1, "other": 2}),
]


def outcome(work) -> object:
    """Return what something gives, or the kind of its error."""
    try:
        return work()
    except Exception as error:
        return type(error)


def made(cls: type) -> list:
    objects = [outcome(lambda: cls(*words, **named)) for words, named in CALLS]
    return objects


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_objects_are_as_those_of_the_library(kind: dict[str, bool]) -> None:
    for ours, theirs in zip(shapes(dataclass, kind), shapes(dataclasses.dataclass, kind), strict=True):
        mine, others = made(ours), made(theirs)
        assert [repr(thing) for thing in mine] == [repr(thing) for thing in others], ours
        assert ours.__match_args__ == theirs.__match_args__
        assert getattr(ours, "__slots__", None) == getattr(theirs, "__slots__", None)
        assert [one.name for one in dataclasses.fields(ours)] == [one.name for one in dataclasses.fields(theirs)]
        mine, others = ([thing for thing in things if not isinstance(thing, type)] for things in (mine, others))
        for number, (first, second) in enumerate(zip(mine, others, strict=True)):
            assert isinstance(outcome(lambda: hash(first)), int) == isinstance(outcome(lambda: hash(second)), int)
            assert dataclasses.asdict(copy.deepcopy(first)).keys() == dataclasses.asdict(second).keys()
            spare, other_spare = copy.copy(first), copy.copy(second)
            for name in ("first", "nothing"):
                if "slots" in kind and not hasattr(first, name):
                    continue  # the library fails with a TypeError of its own there
                assert outcome(lambda: setattr(spare, name, 5)) == outcome(lambda: setattr(other_spare, name, 5)), (ours, name)
                assert outcome(lambda: delattr(spare, name)) == outcome(lambda: delattr(other_spare, name)), (ours, name)
            for mate, other in zip(mine[number:], others[number:], strict=True):
                assert (first == mate) is (second == other)
                assert outcome(lambda: first < mate) == outcome(lambda: second < other)
                assert outcome(lambda: first >= mate) == outcome(lambda: second >= other)
                assert outcome(lambda: hash(first) == hash(mate)) == outcome(lambda: hash(second) == hash(other))
        if mine and ours.__name__ == "Plain":
            again = dataclasses.replace(mine[0], first=9)
            assert (again.first, again.second, again.double) == (9, "b", 18)


@dataclass(frozen=True, slots=True)
class Kept:
    """A class that a process hands to another."""

    name: str
    more: tuple[int, ...] = ()
    whole: int = field(init=False, default=4)


@dataclass(slots=True)
class Late:
    """A class whose last field is made of the others."""

    name: str
    width: int = field(init=False)

    def __post_init__(self) -> None:
        self.width = len(self.name)


def test_objects_are_handed_on_and_finished() -> None:
    kept = Kept("a", (1, 2))
    assert pickle.loads(pickle.dumps(kept)) == kept == copy.copy(kept)
    assert kept.whole == 4
    assert Late("four").width == 4
    assert pickle.loads(pickle.dumps(Late("four"))) == Late("four") != Late("fou")
    assert Kept("a") != Late("a")
    first, second = Kept("a"), Kept("b")
    assert first.more is second.more


def test_what_a_factory_makes_is_made_for_each_object() -> None:
    @dataclass(frozen=True)
    class Holder:
        """A list of each."""

        parts: list[int] = field(default_factory=list)

    first, second = Holder(), Holder()
    first.parts.append(1)
    assert (second.parts, first.parts) == ([], [1])


def test_nothing_is_compiled_before_an_object_is_made() -> None:
    @dataclass(frozen=True, slots=True)
    class Unused:
        """A class without objects."""

        value: int

    before = Unused.__init__
    assert before.__code__.co_filename.endswith("dataclass.py")
    Unused(1)
    assert Unused.__init__ is not before
    assert Unused.__init__.__code__.co_varnames == ("self", "value")


@pytest.mark.parametrize("kind", KINDS, ids=str)
def test_replacing_is_as_the_library_does_it(kind: dict[str, bool]) -> None:
    for ours, theirs in zip(shapes(dataclass, kind), shapes(dataclasses.dataclass, kind), strict=True):
        mine, others = ([thing for thing in made(cls) if not isinstance(thing, type)] for cls in (ours, theirs))
        for changes in ({}, {"first": 9}, {"second": "y", "fourth": 0.5}, {"value": 2}, {"nothing": 1}):
            found = [outcome(lambda: repr(replace(thing, **changes))) for thing in mine]
            assert found == [outcome(lambda: repr(dataclasses.replace(thing, **changes))) for thing in others]
    late = Late("four")
    assert replace(late, name="fivefold").width == 8
    assert replace(Kept("a", (1,)), name="b") == Kept("b", (1,))
