"""Launch a Triton kernel: one way for every op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocmend.kernels import executor
from rocmend.kernels.tuning import Config


def launch(
    kernel: Any,
    grid: Sequence[int],
    args: Sequence[Any],
    constants: Mapping[str, Any],
    config: Config,
) -> None:
    """Launch a kernel on the device of its tensors, or hand it to the executor in force.

    Args:
        kernel: A function under ``triton.jit`` whose run-time parameters come first, in the order of ``args``, and whose
            compile-time ones (``tl.constexpr``) are given by name.
        grid: One to three numbers of programs; nothing happens where one is 0.
        args: Tensors, ints, floats or None.
        constants: Compile-time constants by name, beside those of the record.
        config: The tuning record: its constants (those that the kernel has a parameter for) and compiler options.
    """
    if 0 in grid:
        return
    active = executor.active()
    if active is not None:
        active.launch(kernel, grid, args, _constants(kernel, constants, config), config)
        return
    _run(kernel, grid, args, _constants(kernel, constants, config), config)


def _constants(kernel: Any, constants: Mapping[str, Any], config: Config) -> dict[str, Any]:
    names = kernel.arg_names
    return {**{name: value for name, value in config.constants.items() if name in names}, **constants}


def _run(kernel: Any, grid: Sequence[int], args: Sequence[Any], constants: Mapping[str, Any], config: Config) -> None:
    if executor.interpreting():
        kernel[tuple(grid)](*args, **constants)
        return
    device = next(arg.device for arg in args if hasattr(arg, "data_ptr"))
    vendor = executor.target_for(device).vendor
    kernel[tuple(grid)](*args, **constants, **config.options(vendor))
