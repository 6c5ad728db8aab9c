"""The words of the program itself: a machine called ``lab`` or a person called ``severity`` changes none of them."""

from __future__ import annotations

import functools
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

import msgspec

__all__ = ["vocabulary"]

_PARTS = re.compile(r"[^A-Za-z0-9]+")


@functools.cache
def vocabulary() -> frozenset[str]:
    """Return the words that our output is made of, in lower case: commands, fields, enumerations, facts, ids.

    Fields and enumerations are those of what is loaded: only that can be printed.
    """
    found: set[str] = set()
    for text in (*_commands(), *_facts(), *_entries(), *_fields(), *_values()):
        found |= {text.lower(), *(part.lower() for part in _PARTS.split(text) if part)}
    return frozenset(found)


def _commands() -> Iterator[str]:
    from rocmend.cli.main import command_modules

    yield from command_modules()


def _facts() -> Iterator[str]:
    facts: Any = sys.modules.get("rocmend.machine.facts")
    if facts is not None:
        yield from (key for key, _, _ in facts.declared_facts())


def _entries() -> Iterator[str]:
    kb = sys.modules.get("rocmend.kb.load")
    if kb is not None and kb.__file__:
        yield from (path.stem for path in Path(kb.__file__).with_name("entries").rglob("*.md"))


def _fields() -> Iterator[str]:
    for kind in _ours(msgspec.Struct):
        yield from kind.__struct_encode_fields__


def _values() -> Iterator[str]:
    for kind in _ours(Enum):
        yield from (member.value for member in kind if isinstance(member.value, str))


def _ours(base: type) -> Iterator[Any]:
    """Yield the classes of ours below one, of all modules that are loaded."""
    below: list[type] = type.__subclasses__(base)
    for kind in below:
        if kind.__module__.startswith("rocmend."):
            yield kind
        yield from _ours(kind)
