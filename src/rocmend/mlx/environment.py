"""The environment variables that ``rocmend.mlx`` heeds, and the values that they may have. Needs no torch."""

from __future__ import annotations

import os
from dataclasses import dataclass

__all__ = ["VARIABLES", "Variable", "asked", "check"]


@dataclass(frozen=True)
class Variable:
    """An environment variable with a few values."""

    choices: tuple[str, ...]
    default: str  # where it is not set, or empty
    sets: str  # what it sets, for people


VARIABLES: dict[str, Variable] = {
    "ROCMEND_MLX_EXECUTOR": Variable(
        ("interpreter", "plan", "graph", "compare"), "graph", "which executor computes the arrays"
    ),
    "ROCMEND_MLX_DEVICE": Variable(("cpu", "gpu"), "", "the default device"),
    "ROCMEND_MLX_ACCELERATED": Variable(("0", "1", "auto"), "auto", "whether operations are recorded in C"),
}


def asked(name: str) -> str:
    """Return the value of a variable; its default where it is not set or empty.

    Raises:
        ValueError: it has none of its values.
    """
    variable = VARIABLES[name]
    value = os.environ.get(name) or variable.default
    if value != variable.default and value not in variable.choices:
        otherwise = f"unset it for {variable.default}" if variable.default else "unset it to leave that open"
        raise ValueError(
            f"[{name}] expected one of {', '.join(variable.choices)}, got {value!r}. The environment variable says "
            f"{variable.sets}. Set it to one of these, or {otherwise}."
        )
    return value


def check() -> None:
    """Make sure that each variable has one of its values.

    Raises:
        ValueError: one has not.
    """
    for name in VARIABLES:
        asked(name)
