"""Which configurations of a kernel are tried."""

from __future__ import annotations

import itertools
import tomllib
from importlib import resources
from typing import Any, NamedTuple

from rocmend.core.errors import UnitError
from rocmend.kernels.target import Target
from rocmend.kernels.tuning.config import AMD_OPTIONS, NVIDIA_OPTIONS, Value


class Space(NamedTuple):
    """The values that the parameters of a kernel may take.

    Args:
        kernel: The kernel's name within its op.
        shape_class: Class of shapes, or ``*``.
        target: A name of ``Target.lookup``.
        params: Name to values.
    """

    kernel: str
    shape_class: str
    target: str
    params: dict[str, tuple[Value, ...]]


def spaces(op: str) -> tuple[Space, ...]:
    """Return the spaces of an op, from ``[[space]]`` in its ``tuning.toml``; empty where it declares none.

    Raises:
        UnitError: One of them is wrong.
    """
    path = resources.files("rocmend.kernels.ops").joinpath(op, "tuning.toml")
    if not path.is_file():
        return ()
    found = []
    for row in tomllib.loads(path.read_text(encoding="utf-8")).get("space", []):
        params: dict[str, Any] = row.get("params", {})
        if not row.get("kernel") or not params or not all(isinstance(one, list) and one for one in params.values()):
            raise UnitError("tuning", f"{op}/tuning.toml: a space needs a kernel and params with lists of values.")
        values = {name: tuple(one) for name, one in params.items()}
        found.append(Space(row["kernel"], row.get("class", "*"), row.get("target", "any"), values))
    return tuple(found)


def space_for(op: str, kernel: str, shape_class: str, target: Target) -> Space | None:
    """Return the space of a kernel: the most specific target first, then the class, then any class."""
    known = {(one.kernel, one.shape_class, one.target): one for one in spaces(op)}
    for name in target.lookup:
        for wanted in (shape_class, "*"):
            if (kernel, wanted, name) in known:
                return known[kernel, wanted, name]
    return None


def candidates(space: Space, current: dict[str, Value], target: Target) -> list[dict[str, Value]]:
    """Return the configurations of a space, the one in use first, without options that the target's compiler lacks."""
    foreign = NVIDIA_OPTIONS if target.vendor == "amd" else AMD_OPTIONS
    names = [name for name in space.params if name not in foreign]
    found = [dict(current)]
    for values in itertools.product(*(space.params[name] for name in names)):
        one = {**current, **dict(zip(names, values, strict=True))}
        if one not in found:
            found.append(one)
    return found
