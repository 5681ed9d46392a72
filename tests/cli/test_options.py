"""What a call says reaches its command with the types that its class of options names."""

from __future__ import annotations

from importlib import import_module

import click
import pytest

from ingest.cli import COMMANDS, tailboard

MODULES = {name: import_module(f"ingest.cli.{name.replace('-', '_')}") for name in COMMANDS}
TYPES = {"integer": "int", "integer range": "int", "path": "Path"}


def written(option: click.Option) -> str:
    """Return the type of an option's value as annotations write it, by what click makes of it."""
    one = "bool" if option.is_flag else TYPES.get(option.type.name, "str")
    if option.multiple:
        return f"tuple[{one}, ...]"
    known = option.required or option.is_flag or isinstance(option.default, str | int)
    return one if known else f"{one} | None"


@pytest.mark.parametrize("name", [name for name, module in MODULES.items() if hasattr(module, "Options")])
def test_options_have_the_types_that_click_gives_them(name: str) -> None:
    options = tailboard.get_command(click.Context(tailboard), name).params
    given = {one.name: written(one) for one in options if isinstance(one, click.Option)}
    own = MODULES[name].Options.fields()
    arguments = {one.name for one in options if isinstance(one, click.Argument)}
    assert {key: own[key] for key in own if key in given} == {key: given[key] for key in own if key in given}
    assert all(hasattr(MODULES[name].Options, key) for key in own if key not in given and key not in arguments)
