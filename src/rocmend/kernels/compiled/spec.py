"""What is to be compiled: all about a specialisation of a kernel, as plain data that travels between processes."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from typing import Any

import msgspec

Path = tuple[int, ...]
"""Where an argument stands: its position, or positions of a tuple and of what is inside it, as Triton keys them."""


class Spec(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One specialisation of a kernel for one target.

    Attributes:
        op: The op.
        case: The first case of the op's suite whose launches include it.
        kernel: ``module:name`` of the Triton function.
        source: ``source.source_hash`` of the function, of all that it calls and of the functions among its constants.
        record: ``kernel/class@target`` of the tuning record, or what else its parameters come from.
        config: The tuning record's parameters.
        signature: Parameter to Triton's type, ``constexpr`` for compile-time ones.
        constants: (path, value) of compile-time constants, values as ``encode`` gives them.
        attributes: (path, attributes) of arguments: divisible by 16, within 2 GB.
        options: The compiler's options.
        target: ``gfx1151``, ``sm90``.
        wave_size: Lanes of a wavefront.
        triton: Version that compiles it.
    """

    op: str
    case: str
    kernel: str
    source: str
    record: str
    config: dict[str, Any]
    signature: dict[str, Any]
    constants: tuple[tuple[Path, Any], ...]
    attributes: tuple[tuple[Path, Any], ...]
    options: dict[str, Any]
    target: str
    wave_size: int
    triton: str

    @property
    def kernel_name(self) -> str:
        """The function's own name."""
        return self.kernel.rpartition(":")[2]

    @property
    def operand_bits(self) -> int:
        """Bits of an element of the first pointer; 0 without a pointer, or where its type's name does not say."""
        kinds = (kind for kind in self.signature.values() if isinstance(kind, str))
        first = next((kind for kind in kinds if kind.startswith("*")), "")
        digits = re.search(r"^\*k?[a-z]+(\d+)", first)
        return int(digits[1]) if digits else 0

    def constant(self, *names: str) -> Any:
        """Return the compile-time constant with the first of some names that the kernel has, encoded; None without."""
        parameters = list(self.signature)
        found = {parameters[path[0]]: value for path, value in self.constants if len(path) == 1}
        return next((found[name] for name in names if name in found), None)

    @property
    def identity(self) -> str:
        """A short name of the specialisation that stays when the kernel moves, or its source or Triton changes."""
        parts = (self.kernel_name, self.signature, self.constants, self.attributes, self.options, self.target)
        return _digest(parts)[:8]

    @property
    def key(self) -> str:
        """What decides the code: the same key compiles to the same code."""
        parts = (self.kernel, self.source, self.signature, self.constants, self.attributes, self.options)
        return _digest((*parts, self.target, self.wave_size, self.triton))


def _digest(parts: object) -> str:
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def encode(value: Any) -> Any:
    """Return a compile-time constant as JSON: numbers and strings as they are, Triton's types and functions by name.

    Raises:
        TypeError: It is neither of them.
    """
    if isinstance(value, float) and not (float("-inf") < value < float("inf")):
        return {"float": repr(value)}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if isinstance(value, list | tuple):
        return {"tuple": [encode(one) for one in value]}
    kind = type(value).__name__
    if kind == "dtype":
        return {"dtype": str(value)}
    if kind == "constexpr":
        return encode(value.value)
    if kind == "JITFunction":
        return {"function": function_path(value)}
    raise TypeError(f"a compile-time constant of type {kind} cannot be handed to another process: {value!r}")


def decode(value: Any) -> Any:
    """Invert ``encode``; needs triton for its types and functions."""
    if not isinstance(value, dict):
        return value
    (kind, content), *_ = value.items()
    if kind == "float":
        return float(content)
    if kind == "tuple":
        return tuple(decode(one) for one in content)
    if kind == "dtype":
        import triton.language as tl

        return tl.dtype(content)
    return find_function(content)


def named_functions(encoded: Iterable[Any]) -> list[Any]:
    """Return the Triton functions among encoded constants; needs triton."""
    found: list[Any] = []
    for value in encoded:
        if isinstance(value, dict) and "function" in value:
            found.append(find_function(value["function"]))
        elif isinstance(value, dict) and "tuple" in value:
            found += named_functions(value["tuple"])
    return found


def function_path(kernel: Any) -> str:
    """Return ``module:name`` under which a Triton function can be imported again.

    Raises:
        TypeError: It has no such name, because it was made inside a function.
    """
    import sys

    module, name = kernel.fn.__module__, kernel.fn.__name__
    if getattr(sys.modules.get(module), name, None) is not kernel:
        raise TypeError(f"the kernel {module}.{kernel.fn.__qualname__} is not a function of its module")
    return f"{module}:{name}"


def find_function(path: str) -> Any:
    """Import a Triton function by ``module:name``."""
    import importlib

    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
