"""What a recorded launch tells the model: its arguments as the kernel finds them, and the bytes that it touches."""

from __future__ import annotations

import math
import struct
from typing import TYPE_CHECKING, Any

from rocmend.codeobject import kernarg

if TYPE_CHECKING:
    from rocmend.kernels.compiled.build import Compiled
    from rocmend.kernels.executor import Launch


def arguments_of(launch: Launch) -> dict[str, Any]:
    """Return a launch's run-time arguments and constants by name."""
    names = [name for name in launch.kernel.arg_names if name not in launch.constants]
    return {**dict(zip(names, launch.args, strict=False)), **launch.constants}


def kernarg_of(compiled: Compiled, launch: Launch, wave_size: int) -> bytes:
    """Return the kernarg segment of a launch; each pointer leads to memory of its own."""
    segment = kernarg.read_kernarg(compiled.code, compiled.name)
    given = arguments_of(launch)
    names = [name for name, kind in compiled.spec.signature.items() if kind != "constexpr"]
    flat = [one for name in names for one in _flat(given.get(name))]
    flat += [None] * (len(segment.explicit) - len(flat))
    values = [
        _value(value, place.size, number)
        for number, (value, place) in enumerate(zip(flat, segment.explicit, strict=False))
    ]
    x, y, z = (*launch.grid, 1, 1)[:3]
    return kernarg.pack(segment, values, kernarg.Launch((x, y, z), (compiled.waves * wave_size, 1, 1)))


def _flat(value: Any) -> list[Any]:
    return [one for part in value for one in _flat(part)] if isinstance(value, tuple) else [value]


def _value(value: Any, size: int, number: int) -> bytes:
    if isinstance(value, bool | int):
        return (int(value) & ((1 << 8 * size) - 1)).to_bytes(size, "little")
    if isinstance(value, float):
        return struct.pack({2: "<e", 8: "<d"}.get(size, "<f"), value)
    return ((number + 1) << 40 & ((1 << 8 * size) - 1)).to_bytes(size, "little")


def tensor_bytes(launch: Launch) -> int:
    """Return the bytes of a launch's tensors, each counted once."""
    found = {id(one): one for one in _flat(tuple(launch.args)) if hasattr(one, "element_size")}
    return sum(_touched(one) for one in found.values())


def _touched(tensor: Any) -> int:
    """Return the bytes that a tensor's elements lie in: what is expanded is counted once."""
    if not tensor.numel():
        return 0
    elements = math.prod(size for size, stride in zip(tensor.shape, tensor.stride(), strict=True) if stride)
    return int(elements * tensor.element_size())
