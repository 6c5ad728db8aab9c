"""Public calls without a GPU: CPU tensors taken for those of a GPU, and launches that do nothing.

What is left is the Python of a call. Torch's allocator for the CPU stands in for that of the GPU; kernels are neither
compiled nor run, so that results hold anything.
"""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import torch

from rocmend.kernels import executor
from rocmend.kernels import launch as launcher
from rocmend.kernels import target as targets
from rocmend.kernels.common import semaphores
from rocmend.kernels.target import Target

UNITS = 132
"""Multiprocessors of an H200."""


def _compiled(_one: launcher.BoundKernel, _grid: Any, _args: Any) -> SimpleNamespace:
    """Return what stands for a compiled kernel: launched, it does no more than take its arguments."""
    return SimpleNamespace(function=1, run="".format, packed_metadata=(1, 1, 1))


def _first(target: Target, _device: torch.device) -> Target:
    return target


def _product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[-1]))


def _convolution(x: torch.Tensor, weight: torch.Tensor, *_: Any) -> torch.Tensor:
    return x.new_empty((x.shape[0], weight.shape[0], *x.shape[2:]))


def _attention(q: torch.Tensor, _k: torch.Tensor, v: torch.Tensor, *_: Any, **__: Any) -> torch.Tensor:
    return q.new_empty((*q.shape[:3], v.shape[3]))


def _room(given: Callable[..., semaphores.Workspace | None]) -> Callable[..., semaphores.Workspace | None]:
    """Return what gives out the same memory each time, as a stream's is on a GPU."""
    kept = semaphores.Workspace(torch.zeros(1 << 12, dtype=torch.int32), torch.zeros(1 << 20, dtype=torch.int64))
    return lambda device, *wanted: given(device, *wanted) if device.type == "meta" else kept


@contextlib.contextmanager
def no_launches(name: str = "sm90") -> Iterator[None]:
    """Take CPU tensors for those of a target; launches inside do nothing.

    Raises:
        RuntimeError: Kernels were defined for Triton's interpreter.
    """
    if executor.interpreting():
        raise RuntimeError("expected Triton's compiler, got its interpreter: unset TRITON_INTERPRET.")
    target = targets.by_name(name, compute_units=UNITS)
    # Built-in functions, as those that they stand for are.
    patches = (
        mock.patch.object(targets, "of_device", functools.partial(_first, target)),
        mock.patch.object(launcher.BoundKernel, "_triton_launch", _compiled),
        mock.patch.object(launcher, "current_device", torch.empty(0).get_device),
        mock.patch.object(launcher, "stream_of", abs),
        mock.patch.object(semaphores, "workspace", _room(semaphores.workspace)),
        mock.patch.object(torch, "matmul", _product),
        mock.patch.object(torch, "mm", _product),
        mock.patch.object(torch, "convolution", _convolution),
        mock.patch.object(torch.nn.functional, "scaled_dot_product_attention", _attention),
    )
    with contextlib.ExitStack() as stack:
        for one in patches:
            stack.enter_context(one)
        launcher.forget()
        try:
            yield
        finally:
            launcher.forget()
