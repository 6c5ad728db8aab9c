"""Where kernels get their outputs from: one place, so that a check can poison them before a kernel writes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence

import torch

_poison = False


def empty(shape: Sequence[int], *, dtype: torch.dtype, device: torch.device) -> torch.Tensor:
    """Return an uninitialised contiguous tensor; filled with a telling pattern while ``poisoned()`` is active."""
    out = torch.empty(shape, dtype=dtype, device=device)
    if _poison:
        poison(out)
    return out


class Output:
    """An uninitialised contiguous tensor of a shape that is known ahead: called, it returns a new one, like ``empty``.

    Args:
        shape: Sizes.
        dtype: Type.
        device: Device.
    """

    __slots__ = ("_device", "_dtype", "_shape", "_strides")

    def __init__(self, shape: Sequence[int], dtype: torch.dtype, device: torch.device) -> None:
        self._shape, self._dtype, self._device = tuple(shape), dtype, device
        strides: list[int] = []
        step = 1
        for size in reversed(self._shape):
            strides.append(step)
            step *= max(size, 1)
        self._strides = tuple(reversed(strides))

    def __call__(self) -> torch.Tensor:
        """Return a new one."""
        # Given tuples, this takes half the time of torch.empty.
        out = torch.empty_strided(self._shape, self._strides, dtype=self._dtype, device=self._device)
        if _poison:
            poison(out)
        return out


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


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Poison every output allocated inside."""
    global _poison  # noqa: PLW0603  one switch for the process: outputs are allocated deep inside ops
    before, _poison = _poison, True
    try:
        yield
    finally:
        _poison = before
