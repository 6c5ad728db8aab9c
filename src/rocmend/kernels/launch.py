"""Launch a Triton kernel: one way for every op."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rocmend.kernels import executor
from rocmend.kernels.fast import Bound, bound, merged
from rocmend.kernels.tuning import Config

__all__ = ["Bound", "bind", "launch"]


def launch(
    kernel: Any,
    grid: Sequence[int],
    args: Sequence[Any],
    constants: Mapping[str, Any],
    config: Config,
) -> None:
    """Launch a kernel on the device of its tensors, or hand it to the executor in force.

    Args:
        kernel: A function under ``triton.jit`` whose run-time parameters come first, in the order of ``args``, and
            whose compile-time ones (``tl.constexpr``) are given by name.
        grid: One to three numbers of programs; nothing happens where one is 0.
        args: Tensors, ints, floats or None.
        constants: Compile-time constants by name, beside those of the record.
        config: The tuning record: its constants (those that the kernel has a parameter for) and compiler options.
    """
    if 0 in grid:
        return
    active = executor.active()
    if active is not None:
        active.launch(kernel, grid, args, merged(kernel, constants, config), config)
        return
    bound(kernel, constants, config)(grid, args)


def bind(kernel: Any, constants: Mapping[str, Any], config: Config) -> Bound:
    """Bind a kernel to its constants and its record once, for host code that launches it again and again.

    The returned object is called with a grid and the run-time arguments; it launches on the GPU, past any executor in
    force, and an empty grid is the caller's to leave out.
    """
    return bound(kernel, constants, config)
