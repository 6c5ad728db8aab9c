"""What a captured call consists of: launches, and where their arguments come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch

from rocmend.kernels.launch import BoundKernel
from rocmend.kernels.library_call import LibraryCall

ABSENT, TENSOR, NUMBER = range(3)
"""Kinds of a call's arguments."""


class TensorArgument(NamedTuple):
    """A tensor among the arguments of a launch.

    Args:
        position: Which argument of the launch.
        base: The tensor of the call whose memory it is in: arguments come first, then allocations, then the workspace.
        offset: Its offset there, in bytes.
        like: A tensor without data of the same type, shape and strides.
    """

    position: int
    base: int
    offset: int
    like: torch.Tensor


class Address(NamedTuple):
    """An argument of a launch that is the address of a tensor.

    Args:
        base: The tensor of the call.
        offset: In bytes.
    """

    base: int
    offset: int


class Number(NamedTuple):
    """An argument of a launch that is a number of the call.

    Args:
        argument: Which argument of the call.
    """

    argument: int


class CapturedLaunch(NamedTuple):
    """A captured launch.

    Args:
        kernel: The bound kernel, or a library's function in place of one.
        grid: Numbers of programs.
        args: Run-time arguments: numbers, ``Number``, and None in place of tensors.
        tensors: The tensors among them.
    """

    kernel: BoundKernel | LibraryCall
    grid: tuple[int, ...]
    args: tuple[Any, ...]
    tensors: tuple[TensorArgument, ...]


class CompiledLaunch(NamedTuple):
    """A captured launch with its compiled kernel.

    Args:
        run: Triton's launcher, called with the grid, the stream, the prefix and the arguments.
        grid: Numbers of programs.
        prefix: See ``launch.Compiled``.
        args: ``Address``, ``Number``, numbers, None and constants.
        kernel: The compiled kernel.
    """

    run: Callable[..., Any]
    grid: tuple[int, int, int]
    prefix: tuple[Any, ...]
    args: tuple[Any, ...]
    kernel: Any
