"""Prepare a captured call for the C module: kernels' parameters are packed once, as Triton's launcher would."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import allocate
from rocmend.kernels import launch as launcher
from rocmend.kernels.captured import Address, Arguments, Captured, CompiledLaunch, LibraryCall, Number
from rocmend.kernels.native import Driver, cublas, cudnn, driver, module

LIBRARIES = (cublas, cudnn)
"""They provide ``captured.library_call``."""
Parameter = int | tuple[int, int]
_INTEGERS = {
    "i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8, "u1": 1, "u8": 1, "u16": 2, "u32": 4, "u64": 8,
}  # fmt: skip
_FLOATS = {"fp16": "<e", "fp32": "<f", "f32": "<f", "fp64": "<d"}
MIN_GRAPH_LAUNCHES = 1
"""From so many launches on, a call's launches become one graph."""
MAX_SCRATCH = 2
"""Pointers that Triton adds after a kernel's own parameters."""


class UnknownError(Exception):
    """A kind of launch that is left to Triton's launcher."""


def native_replay(
    kinds: Sequence[int],
    launches: Sequence[CompiledLaunch],
    captured: Captured,
    compute: Callable[[Arguments], Any],
    run: Callable[[Arguments], Any],
) -> Callable[[Arguments], Any] | None:
    """Return an object of the C module that replays a call; None without the module, or if it cannot launch it.

    Args:
        kinds: Of each argument: ABSENT, TENSOR or NUMBER.
        launches: In their order.
        captured: The call.
        compute: Computes it normally.
        run: Computes it under hooks, or on a device that is not current.
    """
    functions = None if launcher.HIP else driver()
    if functions is None or module() is None:
        return None
    try:
        steps = tuple([_step(launch, functions) for launch in launches])
    except UnknownError:
        return None
    # A graph waits for the work before it; a first kernel with programmatic launch would not. A single one is launched
    # on its own to allow that; several take longer to launch than it gains. Library calls come after the kernels.
    kernels = next(
        (count for count, launch in enumerate(launches) if isinstance(launch.kernel, LibraryCall)), len(steps)
    )
    alone = len(steps) == 1 and kernels == 1 and launches[0].kernel.run.launch_pdl
    graphs = functions.graphs if len(steps) >= MIN_GRAPH_LAUNCHES and not alone else ()
    replay: Callable[[Arguments], Any] = module().Replay(
        tuple(kinds), tuple([(output.quick, output.quick_args) for output in captured.outputs]), tuple(captured.zeroed),
        captured.workspace, steps, tuple([-1 if index is None else index for index in captured.results]),
        captured.result_type, torch.Tensor.data_ptr, launcher.runtime, launcher.current_device, launcher.stream_of,
        captured.kernels, vars(allocate), captured.device_index, compute, run, functions[:3], graphs, captured.settings,
    )  # fmt: skip
    return replay


def _step(launch: CompiledLaunch, functions: Driver) -> tuple[Any, ...]:
    """Return a launch in the C module's form.

    Raises:
        UnknownError: The C module cannot launch it.
    """
    compiled = launch.kernel
    if isinstance(compiled, LibraryCall):
        places = tuple([(arg.base, arg.offset) for arg in launch.args])
        return 0, (1, 1, 1), 0, 0, False, places, compiled.work
    launcher, metadata = compiled.run, compiled.metadata
    if type(launcher).__name__ != "CudaLauncher" or getattr(launcher, "gsan_enabled", False):
        raise UnknownError("another launcher")
    if launcher.global_scratch_size or launcher.profile_scratch_size or launcher.launch_cooperative_grid:
        raise UnknownError("scratch memory, or a grid that runs all at once")
    if getattr(metadata, "num_ctas", 1) != 1:
        raise UnknownError("clusters")
    types = tuple(compiled.src.signature.values())
    if len(types) != len(launch.args):
        raise UnknownError("arguments that do not match the signature")
    packed = [_parameter(*pair) for pair in zip(types, launch.args, strict=True) if pair[0] != "constexpr"]
    behind = _behind(compiled.function, [size for size, _ in packed], functions)
    parameters = (*[value for _, value in packed], *[0] * behind)
    return (
        compiled.function, launch.grid, metadata.num_warps * 32, metadata.shared, bool(launcher.launch_pdl), parameters,
        None,
    )  # fmt: skip


def _parameter(kind: Any, value: Any) -> tuple[int, Parameter]:
    """Return the size of a parameter, and its bits or the tensor that it is the address of.

    Raises:
        UnknownError: An unknown type.
    """
    if not isinstance(kind, str):
        raise UnknownError("a tuple")
    if isinstance(value, Address):
        value = (value.base, value.offset)
    if kind.startswith("*"):
        if value is None or isinstance(value, (int, tuple)):
            return 8, 0 if value is None else value
    elif kind in _INTEGERS and isinstance(value, Number):
        return _INTEGERS[kind], (value.argument, 0)
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
    """Return how many pointers a kernel takes after its own parameters.

    Raises:
        UnknownError: The driver reports other parameters.
    """
    if functions.sizes is None:
        return MAX_SCRATCH
    offset, size = ctypes.c_size_t(), ctypes.c_size_t()
    found: list[int] = []
    while (
        functions.sizes(function, len(found), ctypes.byref(offset), ctypes.byref(size)) == 0
        and len(found) <= len(sizes) + MAX_SCRATCH
    ):
        found.append(size.value)
    behind = found[len(sizes) :]
    if found[: len(sizes)] != list(sizes) or len(behind) > MAX_SCRATCH or any(size != 8 for size in behind):
        raise UnknownError(f"parameters of {found} bytes, expected {list(sizes)}")
    return len(behind)
