"""The public functions."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.memory.take import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

_WIDE = (torch.int32, torch.int64, torch.uint32)


def index_tensor(op: str, indices: Tensor) -> Tensor:
    """Return indices of a type that kernels take.

    Raises:
        UsageError: They are no integers.
    """
    if indices.dtype.is_floating_point or indices.dtype in (torch.bool, torch.complex64):
        raise UsageError(op, f"expected integer indices, got {indices.dtype}.")
    return indices if indices.dtype in _WIDE else indices.to(torch.int64)


@cached_plan
def _taken(x: Tensor, indices: Tensor, axis: int, along: bool) -> Callable[..., Tensor]:
    """Check the arguments and plan calls like this one."""
    if indices.numel() and x.shape[axis] == 0:
        raise UsageError("take", f"expected an axis with elements to take from, got shape {tuple(x.shape)}.")
    check_dtype("take", OP, x)
    problem = Problem(NAMES[x.dtype], *axes.split(x.shape, axis), indices.numel(), along)
    call = plan_of(implementation(OP, x.device, problem), x, indices, axis, along=along)
    return lambda x, indices: call(x, indices, axis, along=along)


def _run(x: Tensor, indices: Tensor, axis: int, along: bool) -> Tensor:
    if not needs_gradient(x):
        return _taken((x, indices), axis, along)
    shape = x.shape

    def backward(grad: Tensor, indices: Tensor) -> tuple[Tensor, None]:
        """Scatter with additions, in the same order on every run."""
        from rocmend.kernels.ops.memory.scatter.function import put_along_axis, scatter

        zeros = torch.zeros(shape, dtype=grad.dtype, device=grad.device)
        return (put_along_axis if along else scatter)(zeros, indices, grad, axis, mode="add"), None

    return differentiable(lambda x, indices: (_taken((x, indices), axis, along), (indices,)), backward, x, indices)


def take(x: Tensor, indices: Tensor, axis: int | None = None) -> Tensor:
    """Take lines of an axis: ``x[:, indices, ...]`` for ``axis=1``.

    Args:
        x: Any shape and type.
        indices: Integers of any shape; negative ones count from the end. One that lies outside takes the nearest line
            (MLX reads whatever lies there); no gradient tells it.
        axis: Axis; None takes from all elements as one row.

    Returns:
        ``x.shape[:axis] + indices.shape + x.shape[axis + 1:]``, contiguous.

    Raises:
        UsageError: No such axis, indices that are no integers, or nothing to take from.

    Cost: reads what is taken, writes it once.
    """
    x, axis = axes.on_axis("take", x, axis)
    return _run(x, index_tensor("take", indices), axis, False)


def take_along_axis(x: Tensor, indices: Tensor, axis: int | None = -1) -> Tensor:
    """Take single elements along an axis: ``out[i, j] = x[i, indices[i, j]]`` for ``axis=1``.

    Args:
        x: Any shape and type.
        indices: Integers that broadcast with ``x`` on the other axes; see ``take``.
        axis: Axis; None takes from all elements as one row.

    Returns:
        The broadcast shape, with the axis of ``indices``.

    Raises:
        UsageError: No such axis, shapes that do not broadcast, or indices that are no integers.

    Cost: reads the indices and what is taken, writes it once.
    """
    x, axis = axes.on_axis("take_along_axis", x, axis)
    if indices.dim() != x.dim():
        raise UsageError("take_along_axis", f"expected indices of {x.dim()} axes, got {indices.dim()}.")
    x, indices = _broadcast(x, index_tensor("take_along_axis", indices), axis)
    return _run(x, indices, axis, True)


def _broadcast(x: Tensor, indices: Tensor, axis: int) -> tuple[Tensor, Tensor]:
    ones = [torch.Size((*t.shape[:axis], 1, *t.shape[axis + 1 :])) for t in (x, indices)]
    try:
        shape = torch.broadcast_shapes(*ones)
    except RuntimeError:
        raise UsageError(
            "take_along_axis", f"expected indices that broadcast with {tuple(x.shape)}, got {tuple(indices.shape)}."
        ) from None
    sizes = [(*shape[:axis], t.shape[axis], *shape[axis + 1 :]) for t in (x, indices)]
    return x.expand(sizes[0]), indices.expand(sizes[1])
