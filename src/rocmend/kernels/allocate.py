"""Allocate the outputs of kernels, in one place so that a check can poison them before a kernel writes."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import torch

_poison = False
_guards = getattr(getattr(torch._C, "_dynamo", None), "guards", None)  # noqa: SLF001  as code that torch compiles does
# Past the dispatcher and the parsing of arguments, which take longer than the allocator; on the current device.
_quick: Any = getattr(_guards, "_empty_strided_cuda", None)
current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", torch.cuda.current_device)  # noqa: SLF001  see launch.py


@functools.cache
def _quick_works() -> bool:
    """Return whether torch's direct allocation works; called only with a GPU."""
    if _quick is None:
        return False
    try:
        return bool(_quick((2,), (1,), torch.int32).shape == (2,))
    except (RuntimeError, TypeError):
        return False


def empty(shape: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an uninitialised contiguous tensor; filled with a pattern while ``poisoned()`` is active."""
    out = torch.empty(shape, dtype=dtype, device=device)
    if _poison:
        poison(out)
    return out


class Output:
    """Allocates tensors of one shape: called, it returns a new one, like ``empty``.

    Args:
        shape: Sizes.
        dtype: Type.
        device: Device.
        strides: Of each axis; None for a contiguous tensor.
    """

    __slots__ = ("_dtype", "_index", "_strides", "device", "shape")

    def __init__(
        self, shape: Sequence[int], dtype: torch.dtype, device: torch.device, strides: Sequence[int] | None = None
    ) -> None:
        self.shape, self._dtype, self.device = tuple(shape), dtype, device
        self._strides = _dense(self.shape) if strides is None else tuple(strides)
        self._index = device.index if device.type == "cuda" and _quick_works() else None

    @property
    def quick(self) -> Callable[..., torch.Tensor]:
        """Allocates a tensor with ``quick_args``: on the current device, which must be the tensor's, and unpoisoned."""
        if self._index is not None:
            return _quick  # type: ignore[no-any-return]  # torch's
        return functools.partial(torch.empty_strided, dtype=self._dtype, device=self.device)

    @property
    def quick_args(self) -> tuple[Any, ...]:
        """Arguments of ``quick``."""
        if self._index is not None:
            return self.shape, self._strides, self._dtype
        return self.shape, self._strides

    def __call__(self) -> torch.Tensor:
        """Return a new tensor."""
        if self._index is not None and self._index == current_device() and not _poison:
            quick: torch.Tensor = _quick(self.shape, self._strides, self._dtype)
            return quick
        # Given tuples, this takes half the time of torch.empty.
        out = torch.empty_strided(self.shape, self._strides, dtype=self._dtype, device=self.device)
        if _poison:
            poison(out)
        return out


def _dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous tensor."""
    strides: list[int] = []
    step = 1
    for size in reversed(shape):
        strides.append(step)
        step *= max(size, 1)
    return tuple(reversed(strides))


def empty_like(tensor: torch.Tensor, *, dtype: torch.dtype | None = None) -> torch.Tensor:
    """Return an uninitialised contiguous tensor of another's shape and device."""
    out = torch.empty_like(tensor, dtype=dtype, memory_format=torch.contiguous_format)
    if _poison:
        poison(out)
    return out


def poison(tensor: torch.Tensor) -> None:
    """Fill a tensor with NaN, or with 0xAA bytes where its dtype has none, so that an element never written shows."""
    if tensor.device.type == "meta":
        return
    if tensor.dtype.is_floating_point and tensor.element_size() > 1:
        tensor.fill_(float("nan"))
    elif tensor.dtype == torch.bool:
        tensor.fill_(True)
    else:
        (tensor if tensor.dim() else tensor.view(1)).view(torch.uint8).fill_(0xAA)


def poisons() -> bool:
    """Return whether outputs are poisoned."""
    return _poison


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Poison every output allocated inside."""
    global _poison  # noqa: PLW0603  one switch for the process: outputs are allocated deep inside ops
    before, _poison = _poison, True
    try:
        yield
    finally:
        _poison = before
