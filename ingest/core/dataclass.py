"""Dataclasses that cost little to define: no method is compiled before the first object is made.

A start of the command defines eighty dataclasses and makes objects of some thirty. The library writes and compiles six functions
for each class, which took half of the start-up that is not Python's, click's and NumPy's. Here fields, defaults and slots are the
library's (`fields`, `replace` and `asdict` work as ever), and only `__init__` is compiled, once an object is made.
Objects behave as those of `dataclasses.dataclass`; a frozen one with slots is made in less than half the time.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from dataclasses import MISSING, FrozenInstanceError, fields
from dataclasses import dataclass as with_fields
from functools import cache
from typing import TYPE_CHECKING, Any


def _dataclass(
    cls: type | None = None, /, *, frozen: bool = False, slots: bool = False, order: bool = False, kw_only: bool = False
) -> Any:
    """Return a class that has the annotations of `cls` as its fields; with words alone, what makes one."""

    def made(plain: type) -> type:
        own = dict(vars(plain))
        whole: type = with_fields(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)(plain)
        for name, method in _methods(whole, own, frozen=frozen, order=order, slots=slots).items():
            setattr(whole, name, method)
        return whole

    return made if cls is None else made(cls)


def _replace(thing: Any, /, **changes: Any) -> Any:
    """Return an object like `thing` with some fields changed, as `dataclasses.replace` does, in a third of its time."""
    cls: Any = type(thing)
    names, values = _given_to(cls)
    return cls(**{**dict(zip(names, values(thing), strict=True)), **changes})


@cache
def _given_to(cls: type) -> tuple[list[str], Callable[[Any], tuple[Any, ...]]]:
    """Return the names of the fields that `__init__` takes, and what gives their values."""
    names = [field.name for field in fields(cls) if field.init]
    return names, _values_of(names)


if TYPE_CHECKING:  # checkers of types see the library's
    from dataclasses import dataclass as dataclass  # noqa: PLC0414  # what other modules import
    from dataclasses import replace as replace  # noqa: PLC0414  # likewise
else:
    dataclass, replace = _dataclass, _replace


def _methods(cls: type, own: dict[str, Any], *, frozen: bool, order: bool, slots: bool) -> dict[str, Any]:
    """Return the methods that a class lacks; `own` is what was written in it."""
    compared = _values_of([field.name for field in fields(cls) if field.compare])
    methods: dict[str, Any] = {"__init__": _init_when_called(cls, frozen=frozen), "__repr__": _shown}
    methods["__eq__"] = _comparing(operator.eq, compared)
    if order:
        methods |= {f"__{way.__name__}__": _comparing(way, compared) for way in _ORDER}
    if frozen:
        methods |= {"__setattr__": _refuse, "__delattr__": _refuse}
    if frozen and slots:
        methods |= {"__getstate__": _state, "__setstate__": _set_state}
    missing = {name: method for name, method in methods.items() if name not in own}
    if own.get("__hash__") is None:  # Python writes None beside an `__eq__` of the class
        missing["__hash__"] = (lambda self: hash(compared(self))) if frozen else None
    return missing


_ORDER = (operator.lt, operator.le, operator.gt, operator.ge)


def _values_of(names: list[str]) -> Callable[[Any], tuple[Any, ...]]:
    """Return what gives the values of these attributes."""
    if len(names) > 1:
        return operator.attrgetter(*names)
    return lambda thing: tuple(getattr(thing, name) for name in names)


def _comparing(way: Callable[[Any, Any], bool], values: Callable[[Any], tuple[Any, ...]]) -> Callable[[Any, Any], Any]:
    def compare(self: Any, other: Any) -> Any:
        return way(values(self), values(other)) if other.__class__ is self.__class__ else NotImplemented

    return compare


def _shown(self: Any) -> str:
    values = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(values)})"


def _refuse(_self: Any, name: str, *_value: Any) -> None:
    raise FrozenInstanceError(f"cannot change field {name!r}")


def _state(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _set_state(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


def _init_when_called(cls: type, *, frozen: bool) -> Callable[..., None]:
    def __init__(self: Any, *values: Any, **named: Any) -> None:  # noqa: N807  # it becomes that method
        init = _init(cls, frozen=frozen)
        setattr(cls, "__init__", init)  # noqa: B010  # a checker would take it for the method of an object
        init(self, *values, **named)

    return __init__


def _init(cls: type, *, frozen: bool) -> Callable[..., None]:
    """Return the `__init__` of a class."""
    names: dict[str, Any] = {"MISSING": MISSING}
    positional: list[str] = []
    by_name: list[str] = []
    lines = []
    for field in fields(cls):
        name = value = field.name
        word = name
        if field.default is not MISSING:
            names[f"default_{name}"] = field.default
            word = f"{name}=default_{name}"
            value = name if field.init else f"default_{name}"
        elif field.default_factory is not MISSING:
            names[f"factory_{name}"] = field.default_factory
            word = f"{name}=MISSING"
            value = f"factory_{name}()" + (f" if {name} is MISSING else {name}" if field.init else "")
        elif not field.init:
            continue  # __post_init__ sets it
        if field.init:
            (by_name if field.kw_only else positional).append(word)
        if frozen:
            names[f"set_{name}"] = _setter(cls, name)
            lines.append(f"set_{name}(self, {value})")
        else:
            lines.append(f"self.{name} = {value}")
    if hasattr(cls, "__post_init__"):
        lines.append("self.__post_init__()")
    words = ", ".join(["self", *positional, *(["*", *by_name] if by_name else [])])
    exec("\n ".join([f"def __init__({words}):", *(lines or ["pass"])]), names)  # noqa: S102  # of names of fields alone
    init: Callable[..., None] = names["__init__"]
    init.__qualname__ = f"{cls.__qualname__}.__init__"
    return init


def _setter(cls: type, name: str) -> Callable[[Any, Any], None]:
    """Return what sets a field of a frozen object: its slot, which does not look the name up, or else the way of all objects."""
    slot: Any = getattr(cls, name, None)
    setter: Callable[[Any, Any], None] = getattr(slot, "__set__", lambda thing, value: object.__setattr__(thing, name, value))
    return setter
