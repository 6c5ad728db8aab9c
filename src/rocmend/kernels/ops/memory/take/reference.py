"""The reference: torch's own indexing on places that were made good."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common import axes


def places(indices: Tensor, length: int) -> Tensor:
    """Return int64 places: negative ones from the end, all of them kept inside."""
    wide = indices.to(torch.int64)
    return torch.where(wide < 0, wide + length, wide).clamp(0, max(length - 1, 0))


def take(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor:
    """Take along an axis."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    return run(x, indices, axis % x.dim(), along=False)


def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """Take single elements along an axis."""
    if axis is None:
        x, axis = x.reshape(-1), 0
    axis = axis % x.dim()
    shape = torch.broadcast_shapes(*(torch.Size((*t.shape[:axis], 1, *t.shape[axis + 1 :])) for t in (x, indices)))
    x = x.expand(*shape[:axis], x.shape[axis], *shape[axis + 1 :])
    return run(x, indices.expand(*shape[:axis], indices.shape[axis], *shape[axis + 1 :]), axis, along=True)


def run(x: Tensor, indices: Tensor, axis: int, *, along: bool) -> Tensor:
    """Compute what the other implementations do."""
    bits = axes.raw(x).reshape(x.shape)
    where = places(indices, x.shape[axis])
    if along:
        return bits.gather(axis, where).view(x.dtype)
    found = bits.index_select(axis, where.reshape(-1))
    return found.reshape(x.shape[:axis] + indices.shape + x.shape[axis + 1 :]).view(x.dtype)
