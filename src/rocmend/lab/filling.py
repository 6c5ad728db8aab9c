"""Placeholders of an experiment, ``{name}``, and what is put in their place."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

PLACEHOLDER = re.compile(r"\{([A-Za-z][A-Za-z0-9_-]*)\}")

HERE, OUT = "here", "out"
"""Placeholders that every experiment has."""


def placeholders(value: Any) -> Iterator[str]:
    """Yield the names of the placeholders in the texts of a JSON value."""
    if isinstance(value, str):
        yield from PLACEHOLDER.findall(value)
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from placeholders(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from placeholders(item)


def fill(value: Any, names: Mapping[str, str]) -> Any:
    """Return a JSON value with its placeholders filled in; names that are not given stay as they are."""
    if isinstance(value, str):
        return PLACEHOLDER.sub(lambda found: names.get(found.group(1), found.group()), value)
    if isinstance(value, Mapping):
        return {key: fill(item, names) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [fill(item, names) for item in value]
    return value


def fill_arguments(arguments: tuple[str, ...], names: Mapping[str, str]) -> tuple[str, ...]:
    """Return a command line with its placeholders filled in.

    Args:
        arguments: Program and arguments. One that is nothing but a placeholder is split as a shell would split the
            value, so that a value can be several arguments, or none.
        names: Values.

    Raises:
        ValueError: A value that is to be split has an open quotation.
    """
    made: list[str] = []
    for argument in arguments:
        whole = PLACEHOLDER.fullmatch(argument)
        if whole and whole.group(1) in names and whole.group(1) not in {HERE, OUT}:
            made += shlex.split(names[whole.group(1)])
        else:
            made.append(fill(argument, names))
    return tuple(made)
