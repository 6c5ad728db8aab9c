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


def parse(op: Op, words: Sequence[str], *, options: str = "") -> Problem:
    """Return the problem that a command line gives.

    Args:
        op: The op.
        words: ``field=value``, each.
        options: What the example in an error has after the fields.

    Raises:
        UsageError: A field is missing, unknown or wrong.
    """
    found = given(op, words)
    missing = [name for name, (_, default) in fields(op).items() if default is ... and name not in found]
    if missing:
        example = " ".join(f"{name}={value}" for name, value in example_of(op).items())
        raise UsageError(
            op.name,
            f"the problem lacks {', '.join(missing)}.",
            next_step=f"For example: rocmend kernels explain {op.name} {example}{options}",
        )
    return op.problem(**found)


def _value(op: str, name: str, kind: Any, text: str) -> Any:
    allowed = [accepted for accepted in typing.get_args(kind) if accepted is not type(None)] or [kind]
    if type(None) in typing.get_args(kind) and text.lower() in {"none", ""}:
        return None
    for accepted in allowed:
        if accepted is bool and text.lower() in _WORDS:
            return _WORDS[text.lower()]
        if accepted in {int, float} and accepted is not bool:
            try:
                return accepted(text)
            except ValueError:
                continue
        if accepted is str or (isinstance(accepted, str) and accepted == text):
            return text
        if typing.get_origin(accepted) is tuple or accepted is tuple:
            return tuple(int(part) for part in text.split(",") if part.lstrip("-").isdecimal())
    shown = " or ".join(
        _KINDS.get(accepted, str(getattr(accepted, "__name__", repr(accepted)))) for accepted in allowed
    )
    raise UsageError(op, f"{name} must be {shown}, got {text!r}.")


_KINDS = {int: "an integer", float: "a number", bool: "true or false", tuple: "integers with commas between them"}


def example_of(op: Op) -> dict[str, str]:
    """Return a problem of real use, as a command line gives it: each field without a default.

    It is what the op declares, else the size of a usual layer, else a value that the field's type has.
    """
    known = dict(word.split("=") for word in f"{_USUAL} {op.example}".split())
    return {name: known.get(name) or _some(kind) for name, (kind, default) in fields(op).items() if default is ...}


def _some(kind: Any) -> str:
    words = [one for one in typing.get_args(kind) if isinstance(one, str)]
    return words[0] if words else {bool: "false", float: "1.0", str: "…"}.get(kind, "64")


# Layers of language models with 4096 channels, 32 heads and 4-bit weights, unless an op needs something else.
_USUAL = """batch=1 times=2048 tokens=512 rows=512 columns=4096 depth=4096 elements=2097152 heads=32 kv_heads=8
    queries=512 keys=512 dim=128 dim_v=128 head_dim=128 key_dim=128 value_dim=128 channels=4096 taps=4
    experts=64 chosen=8 groups=1 mode=affine bits=4 group_size=64 transpose=true gated=false outer=1 length=32000
    inner=1 indices=512 along=false dtype=float16"""
