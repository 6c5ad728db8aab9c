"""The reference: one update after another, in the order of the indices."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.kernels.common import axes
from rocmend.kernels.common.reference import SIGNED, wide

_JOIN: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "add": torch.add, "prod": torch.mul, "max": torch.maximum, "min": torch.minimum, "assign": lambda _a, b: b,
}  # fmt: skip
_PLAIN = {**SIGNED, torch.bool: torch.uint8}


def scatter(x: Tensor, indices: Tensor, updates: Tensor, axis: int = 0, *, mode: str = "assign") -> Tensor:
    """Scatter lines along an axis."""
    return run(x, indices, updates, axis % x.dim(), mode=mode, along=False)


def put_along_axis(x: Tensor, indices: Tensor, values: Tensor, axis: int = -1, *, mode: str = "assign") -> Tensor:
    """Put single elements along an axis."""
    axis = axis % x.dim()
    indices = indices.expand(*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
    return run(x, indices, values.expand(indices.shape), axis, mode=mode, along=True)


def run(x: Tensor, indices: Tensor, updates: Tensor, axis: int, *, mode: str, along: bool) -> Tensor:
    """Compute what the other implementations do: one step for each index along the axis."""
    outer, n, inner = axes.split(x.shape, axis)
    m = indices.shape[axis] if along else indices.numel()
    acc = wide(x)
    signed = _PLAIN.get(x.dtype)
    flip = x.dtype in SIGNED and mode in ("max", "min")
    low = torch.iinfo(signed).min if flip and signed else 0

    def plain(t: Tensor, *sizes: int) -> Tensor:
        t = t.contiguous().view(signed) if signed else t.to(acc.dtype)
        return (t ^ low if flip else t).reshape(*sizes).clone()

    out, source = plain(x, outer, n, inner), plain(updates, outer, m, inner)
    where = indices.to(torch.int64)
    where = torch.where(where < 0, where + n, where)
    places = where.reshape(outer, m, inner) if along else where.reshape(1, m, 1).expand(outer, m, inner)
    fits = (places >= 0) & (places < n)
    for step in range(m if out.numel() else 0):
        place = places[:, step : step + 1].clamp(0, n - 1)
        old = out.gather(1, place)
        new = _JOIN[mode](old, source[:, step : step + 1])
        out.scatter_(1, place, torch.where(fits[:, step : step + 1], new, old))
    if x.dtype == torch.bool:
        out = (out != 0).to(torch.uint8)
    out = (out ^ low if flip else out).reshape(x.shape)
    return out.view(x.dtype) if signed else out.to(x.dtype)
