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
        tensor.view(torch.uint8).fill_(0xAA)


@contextlib.contextmanager
def poisoned() -> Iterator[None]:
    """Poison every output allocated inside."""
    global _poison  # noqa: PLW0603  one switch for the process: outputs are allocated deep inside ops
    before, _poison = _poison, True
    try:
        yield
    finally:
        _poison = before
