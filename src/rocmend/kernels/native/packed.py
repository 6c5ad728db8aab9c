"""What Triton's launcher does with a recorded launch's arguments, done once: the kernel's parameters as numbers."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

from rocmend.kernels import allocate, fast
from rocmend.kernels.native import Driver, driver, module
from rocmend.kernels.native.called import Called
from rocmend.kernels.replay import Address, Careful, Given, Number, Told

Parameter = int | tuple[int, int]
_INTEGERS = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
LEAST_OF_GRAPH = 1
"""Launches of a call that are made as one graph: so many or more."""
MOST_SCRATCH = 2
"""Pointers that Triton puts behind a kernel's own parameters."""


class UnknownError(Exception):
    """A launch is of a kind that is left to Triton's launcher."""


def replay(
    given: Sequence[int], launches: Sequence[Told], results: Sequence[int | None], kind: Any, other: Careful
) -> Callable[[Given], Any] | None:
    """Return what ``replay.written`` does as an object of the C module; None where that is not there, or not for this.

    Args:
        given: For each place of what is given: ABSENT, TENSOR or NUMBER.
        launches: In their order.
        results: Which tensors are returned.
        kind: Type of the tuple that is returned, or None for a single tensor.
        other: Says what is allocated, and computes what the object does not.
    """
    functions = None if fast.HIP else driver()
    if functions is None or module() is None:
        return None
    try:
        steps = tuple([_step(one, functions) for one in launches])
    except UnknownError:
        return None
    # A graph waits for what is in front of it; a first kernel that may begin early would not. One alone is to do that,
    # of several the launches take longer than it gains. What a library launches is its own: its calls stand behind.
    kernels = next((count for count, one in enumerate(launches) if isinstance(one.compiled, Called)), len(steps))
    alone = len(steps) == 1 and kernels == 1 and launches[0].compiled.run.launch_pdl
    graphs = functions.graphs if len(steps) >= LEAST_OF_GRAPH and not alone else ()
    found: Callable[[Given], Any] = module().Replay(
        tuple(given), tuple([(one.quick, one.quick_args) for one in other.makes]), tuple(other.zeroed),
        other.room, steps, tuple([-1 if one is None else one for one in results]), kind, _data_ptr(), fast.runtime,
        fast.current_device, fast.stream_of, tuple(dict.fromkeys(other.kernels)), vars(allocate), other.index,
        other.plain, other.carefully, functions[:3], graphs, tuple(other.settings),
    )  # fmt: skip
    return found


def _data_ptr() -> Any:
    import torch

    return torch.Tensor.data_ptr


def _step(one: Told, functions: Driver) -> tuple[Any, ...]:
    """Return a launch as the C module takes it.

    Raises:
        UnknownError: It needs what is not known here.
    """
    compiled = one.compiled
    if isinstance(compiled, Called):
        places = tuple([(arg.base, arg.offset) for arg in one.args])
        return 0, (1, 1, 1), 0, 0, False, places, compiled.work
    launcher, metadata = compiled.run, compiled.metadata
    if type(launcher).__name__ != "CudaLauncher" or getattr(launcher, "gsan_enabled", False):
        raise UnknownError("another launcher")
    if launcher.global_scratch_size or launcher.profile_scratch_size or launcher.launch_cooperative_grid:
        raise UnknownError("scratch memory, or a grid that runs all at once")
    if getattr(metadata, "num_ctas", 1) != 1:
        raise UnknownError("clusters")
    types = tuple(compiled.src.signature.values())
    if len(types) != len(one.args):
        raise UnknownError("arguments that are not known one by one")
    told = [_parameter(*pair) for pair in zip(types, one.args, strict=True) if pair[0] != "constexpr"]
    behind = _behind(compiled.function, [size for size, _ in told], functions)
    parameters = (*[value for _, value in told], *[0] * behind)
    return (
        compiled.function, one.grid, metadata.num_warps * 32, metadata.shared, bool(launcher.launch_pdl), parameters,
        None,
    )  # fmt: skip


def _parameter(kind: Any, value: Any) -> tuple[int, Parameter]:
    """Return the size of a parameter, and its bits or where to take its address from.

    Raises:
        UnknownError: A type that is not known here.
    """
    if not isinstance(kind, str):
        raise UnknownError("a tuple")
    if isinstance(value, Address):
        value = (value.base, value.offset)
    if kind.startswith("*"):
        if value is None or isinstance(value, (int, tuple)):
            return 8, 0 if value is None else value
    elif kind in _INTEGERS and isinstance(value, Number):
        return _INTEGERS[kind], (value.place, 0)
    elif kind in _INTEGERS and isinstance(value, int):
        size = _INTEGERS[kind]
        return size, int(value) & ((1 << 8 * size) - 1)
    elif kind in _FLOATS and isinstance(value, (int, float)):
        bits = struct.pack(_FLOATS[kind], value)
        return len(bits), int.from_bytes(bits, "little")
    elif kind == "bf16" and isinstance(value, (int, float)):
        return 2, int.from_bytes(struct.pack("<f", value), "little") >> 16  # cut off, as Triton does
    raise UnknownError(f"a parameter of type {kind}")


def _behind(function: int, sizes: Sequence[int], functions: Driver) -> int:
    """Return how many pointers a kernel takes behind its own parameters.

    Raises:
        UnknownError: The driver says that the parameters are others than these.
    """
    if functions.sizes is None:
        return MOST_SCRATCH
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    found: list[int] = []
    while (
        functions.sizes(function, len(found), ctypes.byref(offset), ctypes.byref(size)) == 0
        and len(found) <= len(sizes) + MOST_SCRATCH
    ):
        found.append(size.value)
    behind = found[len(sizes) :]
    if found[: len(sizes)] != list(sizes) or len(behind) > MOST_SCRATCH or any(one != 8 for one in behind):
        raise UnknownError(f"parameters of {found} bytes, expected {list(sizes)}")
    return len(behind)
