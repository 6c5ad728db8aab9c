"""Problems on a command line: ``field=value`` becomes an op's NamedTuple."""

from __future__ import annotations

import typing
from collections.abc import Mapping, Sequence
from typing import Any

from rocmend.core.errors import UsageError
from rocmend.core.suggest import unknown
from rocmend.kernels.op import Op, Problem

_WORDS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def fields(op: Op) -> dict[str, tuple[Any, Any]]:
    """Return the fields of an op's problem: name to its type and its default (``...`` where it has none)."""
    kinds = typing.get_type_hints(op.problem)
    defaults: Mapping[str, Any] = getattr(op.problem, "_field_defaults", {})
    names: tuple[str, ...] = getattr(op.problem, "_fields", ())
    return {name: (kinds[name], defaults.get(name, ...)) for name in names}


def given(op: Op, words: Sequence[str]) -> dict[str, Any]:
    """Return the fields that a command line gives.

    Raises:
        UsageError: A field that the op does not have, or a value that is none of its type's.
    """
    known = fields(op)
    found: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            listed = ", ".join(known)
            raise UsageError(op.name, f"{word!r} is not FIELD=VALUE.", next_step=f"Its fields are: {listed}.")
        if name not in known:
            raise unknown(op.name, f"field of {op.name}", name, known)
        found[name] = _value(op.name, name, known[name][0], text)
    return found


def parse(op: Op, words: Sequence[str]) -> Problem:
    """Return the problem that a command line gives.

    Raises:
        UsageError: A field is missing, unknown or wrong.
    """
    found = given(op, words)
    missing = [name for name, (_, default) in fields(op).items() if default is ... and name not in found]
    if missing:
        example = " ".join(f"{name}={_sample(kind)}" for name, (kind, default) in fields(op).items() if default is ...)
        raise UsageError(
            op.name,
            f"the problem lacks {', '.join(missing)}.",
            next_step=f"For example: rocmend kernels explain {op.name} {example}",
        )
    return op.problem(**found)


def _value(op: str, name: str, kind: Any, text: str) -> Any:
    allowed = [one for one in typing.get_args(kind) if one is not type(None)] or [kind]
    if type(None) in typing.get_args(kind) and text.lower() in {"none", ""}:
        return None
    for one in allowed:
        if one is bool and text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if one in {int, float} and one is not bool:
            try:
                return one(text)
            except ValueError:
                continue
        if one is str or (isinstance(one, str) and one == text):
            return text
        if typing.get_origin(one) is tuple or one is tuple:
            return tuple(int(part) for part in text.split(",") if part.lstrip("-").isdecimal())
    shown = " or ".join(getattr(one, "__name__", repr(one)) for one in allowed)
    raise UsageError(op, f"{name}={text!r} is not {shown}.")


def _sample(kind: Any) -> str:
    if kind is str:
        return "float16"
    if kind is bool:
        return "true"
    return "4096" if kind in {int, float} else "…"
