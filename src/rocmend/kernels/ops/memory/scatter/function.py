"""The public functions."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common import axes
from rocmend.kernels.common.arguments import check_dtype
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.memory.scatter import MODES, OP, Problem
from rocmend.kernels.ops.memory.take.function import index_tensor
from rocmend.kernels.select import implementation


def _run(op: str, x: Tensor, indices: Tensor, updates: Tensor, axis: int, mode: str, *, along: bool) -> Tensor:
    if mode not in MODES:
        raise UsageError(op, f"expected a mode of {', '.join(MODES)}, got {mode}.")
    check_dtype(op, OP, x)
    # A sum of truth values is whether one of them is true, a product whether all are.
    plain = {"add": "max", "prod": "min"}.get(mode, mode) if x.dtype == torch.bool else mode
    problem = Problem(NAMES[x.dtype], *axes.split(x.shape, axis), indices.numel(), along, plain)
    return implementation(OP, x.device, problem)(x, indices, updates.to(x.dtype), axis, mode=plain, along=along)


def _joined(x: Tensor, indices: tuple[Tensor, ...], axis: int) -> tuple[Tensor, Tensor]:
    """Return x with the axes from ``axis`` on made one, and the indices into it."""
    sizes = x.shape[axis : axis + len(indices)]
    if len(sizes) < len(indices):
        raise UsageError("scatter", f"expected at most {x.dim() - axis} arrays of indices, got {len(indices)}.")
    linear = torch.zeros((), dtype=torch.int64, device=x.device)
    outside = torch.zeros((), dtype=torch.bool, device=x.device)
    for index, size in zip(indices, sizes, strict=True):
        wide = index_tensor("scatter", index).to(torch.int64)
        wide = torch.where(wide < 0, wide + size, wide)
        outside = outside | (wide < 0) | (wide >= size)
        linear = linear * size + wide
    whole = math.prod(sizes)
    flat = x.reshape(*x.shape[:axis], whole, *x.shape[axis + len(indices) :])
    return flat, torch.where(outside, whole, linear)


def scatter(
    x: Tensor, indices: Tensor | tuple[Tensor, ...], updates: Tensor, axis: int = 0, *, mode: str = "assign"
) -> Tensor:
    """Return ``x`` with lines of an axis changed: ``x.at[indices].add(updates)`` for ``axis=0, mode="add"``.

    Several updates of one line are applied in the order of their indices, so that the result has the same bits on every
    run: indices are sorted, and one program walks the updates of a line. Integers of 32 and 64 bits take atomics.

    Args:
        x: Any shape; bool, integers or floats.
        indices: Integers of any shape; negative ones count from the end, an update outside is left out. A tuple of
            arrays that broadcast to one shape indexes as many axes, from ``axis`` on.
        updates: Broadcasts to ``x.shape[:axis] + indices.shape + x.shape[axis + 1:]``.
        axis: Axis.
        mode: ``assign`` (the last one stays), ``add``, ``prod``, ``max`` or ``min``; NaN wins in the last two.

    Returns:
        A new tensor of the shape and type of ``x``. Half types are computed in fp32 and rounded once.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: copies x, sorts the indices, reads and writes the lines that change. One line with very many updates is slow.
    """
    axis = axes.normal_axis("scatter", axis, x.dim())
    flat = x
    count = 1
    if isinstance(indices, tuple):
        count = len(indices)
        flat, indices = _joined(x, indices, axis)
    indices = index_tensor("scatter", indices)
    shape = (*flat.shape[:axis], *indices.shape, *flat.shape[axis + 1 :])
    try:
        updates = updates.expand(shape)
    except RuntimeError:
        raise UsageError(
            "scatter", f"expected updates that broadcast to {tuple(shape)}, got {tuple(updates.shape)}."
        ) from None
    out = _run("scatter", flat, indices, updates, axis, mode, along=False)
    return out if count == 1 else out.reshape(x.shape)


def put_along_axis(
    x: Tensor, indices: Tensor, values: Tensor, axis: int | None = None, *, mode: str = "assign"
) -> Tensor:
    """Return ``x`` with single elements along an axis changed: ``out[i, indices[i, j]] = values[i, j]`` for ``axis=1``.

    Args:
        x: Any shape; bool, integers or floats.
        indices: Integers that broadcast with ``x`` on the other axes; see ``scatter``.
        values: Broadcasts to the indices.
        axis: Axis; None changes all elements as one row.
        mode: See ``scatter``.

    Returns:
        A new tensor of the shape and type of ``x``.

    Raises:
        UsageError: Shapes or types that do not fit.

    Cost: copies x and sorts the indices.
    """
    shape = x.shape
    x, axis = axes.on_axis("put_along_axis", x, axis)
    indices = index_tensor("put_along_axis", indices)
    if indices.dim() != x.dim():
        raise UsageError("put_along_axis", f"expected indices of {x.dim()} axes, got {indices.dim()}.")
    try:
        indices = indices.expand(*x.shape[:axis], indices.shape[axis], *x.shape[axis + 1 :])
        values = values.expand(indices.shape)
    except RuntimeError:
        raise UsageError(
            "put_along_axis",
            f"expected indices that broadcast with {tuple(x.shape)} and values that broadcast to them, got "
            f"{tuple(indices.shape)} and {tuple(values.shape)}.",
        ) from None
    return _run("put_along_axis", x, indices, values, axis, mode, along=True).reshape(shape)
