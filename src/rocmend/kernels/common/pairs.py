"""Indices of gathered matrix products."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from rocmend.core.errors import UsageError

_INDEX = frozenset({torch.int32, torch.int64, torch.uint32, torch.int16, torch.uint8, torch.int8})


class Pairs(NamedTuple):
    """Which matrix of x meets which matrix of w.

    Args:
        shape: Of the indices, broadcast.
        lhs: Number of the matrix of x for each pair, int32 or int64, flat; None where it is ``pair // divisor``.
        divisor: Pairs that follow each other and share a matrix of x.
        rhs: Number of the matrix of w for each pair, flat.
    """

    shape: tuple[int, ...]
    lhs: torch.Tensor | None
    divisor: int
    rhs: torch.Tensor

    @property
    def count(self) -> int:
        """The number of pairs."""
        return math.prod(self.shape)

    def add_up(self, of_pairs: torch.Tensor, matrices: int) -> torch.Tensor:
        """Return the sums over the pairs of each matrix of x, in fp32: ``[matrices, ...]`` of ``[pairs, ...]``."""
        rest = of_pairs.shape[1:]
        if self.lhs is None and matrices * self.divisor == self.count:
            return of_pairs.reshape(matrices, self.divisor, *rest).float().sum(1)
        lhs = self.lhs
        if lhs is None:
            lhs = torch.arange(self.count, device=of_pairs.device) // self.divisor
        out = torch.zeros((matrices, *rest), dtype=torch.float32, device=of_pairs.device)
        return out.index_add_(0, lhs.long(), of_pairs.float())


def pairs_of(
    op: str,
    x_batch: tuple[int, ...],
    w_batch: tuple[int, ...],
    lhs: torch.Tensor | None,
    rhs: torch.Tensor | None,
    device: torch.device,
) -> Pairs:
    """Broadcast indices; an index that is None counts through the matrices, as in MLX.

    Raises:
        UsageError: Indices that are no integers or do not broadcast.
    """
    for index in (lhs, rhs):
        if index is not None and index.dtype not in _INDEX:
            raise UsageError(op, f"expected integer indices, got {index.dtype}.")
    lhs_shape = x_batch if lhs is None else tuple(lhs.shape)
    rhs_shape = w_batch if rhs is None else tuple(rhs.shape)
    try:
        shape = tuple(torch.broadcast_shapes(lhs_shape, rhs_shape))
    except RuntimeError:
        raise UsageError(
            op,
            f"expected indices that broadcast, got shapes {lhs_shape} and {rhs_shape}.",
            why="Without lhs_indices (rhs_indices) the batch axes of x (w) stand for them.",
        ) from None
    divisor = _divisor(lhs_shape, shape) if lhs is None else None
    flat_lhs = None if divisor else _flat(lhs, lhs_shape, shape, device)
    return Pairs(shape, flat_lhs, divisor or 1, _flat(rhs, rhs_shape, shape, device))


def _divisor(own: tuple[int, ...], shape: tuple[int, ...]) -> int | None:
    """Return how many pairs in a row have the same number, where numbers count up; None where they do not."""
    own = (1,) * (len(shape) - len(own)) + own
    keep = len(shape)
    while keep and own[keep - 1] == 1:
        keep -= 1
    return math.prod(shape[keep:]) if own[:keep] == shape[:keep] else None


def _flat(
    index: torch.Tensor | None, own: tuple[int, ...], shape: tuple[int, ...], device: torch.device
) -> torch.Tensor:
    if index is None:
        index = torch.arange(math.prod(own), dtype=torch.int32, device=device).reshape(own)
    if index.dtype == torch.uint32:
        index = index.view(torch.int32)
    return index.expand(shape).reshape(-1).contiguous()  # of one axis, a stretched index stays one number in memory
