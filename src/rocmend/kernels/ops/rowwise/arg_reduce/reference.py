"""The reference: numbers in order, NaN beyond the end, the first of equal ones."""

from __future__ import annotations

from functools import partial

import torch
from torch import Tensor

from rocmend.kernels.ops.rowwise.sort.reference import comparable, indexed


def _public(
    x: Tensor, axis: int | None = None, *, keepdims: bool = False, index_dtype: torch.dtype = torch.int64, largest: bool
) -> Tensor:
    if axis is None:
        found = run(x.reshape(-1), 0, largest=largest, index_dtype=index_dtype)
        return found.reshape((1,) * x.dim()) if keepdims else found
    found = run(x, axis, largest=largest, index_dtype=index_dtype)
    return found.unsqueeze(axis) if keepdims else found


argmax, argmin = partial(_public, largest=True), partial(_public, largest=False)


def argmax_flat(x: Tensor) -> Tensor:
    """Return where the first True of one row is, in little memory."""
    return torch.argmax(x.view(torch.uint8))


def run(x: Tensor, axis: int, *, largest: bool, index_dtype: torch.dtype) -> Tensor:
    """Compute what the other implementations do."""
    keys = comparable(x)
    best = keys.amax(axis, keepdim=True) if largest else keys.amin(axis, keepdim=True)
    fit = (keys == best) | (keys.isnan() if keys.dtype.is_floating_point else False)
    shape = [1] * x.dim()
    shape[axis] = -1
    places = torch.arange(x.shape[axis], device=x.device).view(shape)
    return indexed(torch.where(fit, places, x.shape[axis]).amin(axis), index_dtype)


def run_torch(x: Tensor, axis: int, *, largest: bool, index_dtype: torch.dtype) -> Tensor:
    """Reduce with torch itself."""
    return indexed(torch.argmax(x, axis) if largest else torch.argmin(x, axis), index_dtype)
