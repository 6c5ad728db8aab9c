"""The words of the program itself: a machine called ``lab`` or a person called ``severity`` changes none of them."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import msgspec

from rocmend.core.errors import RocmendError

__all__ = ["vocabulary"]

_WRITERS = ("rocmend.cli.", "rocmend.report.", "rocmend.machine.")
_IDENTIFIER = re.compile(r"[a-z]+(?:[A-Z][a-z]+|_[a-z]+)*")
_PARTS = re.compile(r"[^A-Za-z0-9]+")


def vocabulary() -> frozenset[str]:
    """Return the words that our output is made of, in lower case: commands, fields, enumerations, facts, ids, codes.

    They are taken from what is loaded: only that can be printed.
    """
    texts = {*_commands(), *_facts(), *_entries(), *_fields(), *_values(), *_codes(), *_written()}
    found = {text.lower() for text in texts}
    return frozenset(found.union(*map(_PARTS.split, found)) - {""})


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


def _codes() -> Iterator[str]:
    yield from (kind.code for kind in (RocmendError, *_ours(RocmendError)))


def _written() -> Iterator[str]:
    """Yield the identifiers in the code of commands, reports and collectors: keys of objects without a class."""
    for name, module in sys.modules.copy().items():
        if name.startswith(_WRITERS):
            for value in vars(module).values():
                function = inspect.unwrap(getattr(value, "callback", None) or value)
                if isinstance(function, FunctionType) and function.__module__ == name:
                    yield from _texts(function.__code__.co_consts)
                elif isinstance(value, dict) and name != __name__:
                    yield from _texts((*value, *value.values()))


def _texts(values: tuple[object, ...]) -> Iterator[str]:
    """Yield the identifiers among values, in tuples and code among them too."""
    for value in values:
        if isinstance(value, str):
            if _IDENTIFIER.fullmatch(value):
                yield value
        elif isinstance(value, tuple):
            yield from _texts(value)
        elif isinstance(value, CodeType):
            yield from _texts(value.co_consts)


def _ours(base: type) -> Iterator[Any]:
    """Yield the classes of ours below one, of all modules that are loaded."""
    below: list[type] = type.__subclasses__(base)
    for kind in below:
        if kind.__module__.startswith("rocmend."):
            yield kind
        yield from _ours(kind)
