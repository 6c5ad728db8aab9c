"""Writing at places that arrays tell. Several updates of one element are joined, or the last one stays."""

from __future__ import annotations

from math import prod
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.gather import batched_indices, counted, gathered, integral, taken_along
from rocmend.mlx.ops.shape import out_of_bounds, reshaped
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.ops.shape_broadcast import broadcast
from rocmend.mlx.ops.slices import batched
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops, register

if TYPE_CHECKING:
    import torch

    from rocmend.mlx.node import Node

__all__ = ["put_along_axis"]

# what torch calls them
_REDUCE = {"prod": "prod", "max": "amax", "min": "amin"}


def _places(indices: tuple[torch.Tensor, ...], sizes: tuple[int, ...]) -> torch.Tensor:
    """Return places in the axes of ``sizes`` made one; what lies outside of an axis lies outside of all."""
    import torch

    found = outside = None
    for index, size in zip(indices, sizes, strict=True):
        wide = index.to(torch.int64)
        wide = torch.where(wide < 0, wide + size, wide)
        bad = (wide < 0) | (wide >= size)
        found = wide if found is None else found * size + wide
        outside = bad if outside is None else outside | bad
    if len(sizes) > 1:  # a place beyond one axis may lie inside of the axes made one
        return torch.where(outside, -prod(sizes) - 1, found)  # type: ignore[arg-type]
    return found  # type: ignore[return-value]


def _wide(x: torch.Tensor, mode: str, unsigned: bool) -> torch.Tensor:
    """Return numbers that torch joins as this type is to be joined; a copy wherever ``x`` itself would be written."""
    import torch

    if mode == "assign":
        return x
    if x.dtype == torch.bool:
        return x.to(torch.uint8)
    if x.dtype in (torch.float16, torch.bfloat16) and mode in ("add", "prod"):
        return x.float()  # rounded once
    if unsigned and mode in ("max", "min"):
        return x ^ torch.iinfo(x.dtype).min  # the order of unsigned numbers
    return x


def _back(out: torch.Tensor, dtype: torch.dtype, mode: str, unsigned: bool) -> torch.Tensor:
    import torch

    if dtype == torch.bool:
        return out != 0
    if unsigned and mode in ("max", "min"):
        return out ^ torch.iinfo(dtype).min
    return out.to(dtype)


def _plain(mode: str, dtype: torch.dtype) -> str:
    """Sums of truth values are whether one is true, products whether all are."""
    import torch

    return {"add": "max", "prod": "min"}.get(mode, mode) if dtype == torch.bool else mode


def _write(
    x: torch.Tensor, places: torch.Tensor, updates: torch.Tensor, axis: int, mode: str, unsigned: bool, along: bool
) -> torch.Tensor:
    """Scatter along one axis with torch, on a fresh tensor; ``places`` outside of it are left out."""
    import torch

    size = x.shape[axis]
    outside = (places < 0) | (places >= size)
    if x.is_cuda or bool(outside.any()):
        # they are written to a line more, which is cut off again
        padded = torch.cat((x, x.narrow(axis, 0, 1)), axis)
        places = torch.where(outside, size, places)
        return _join(padded, places, updates, axis, mode, unsigned, along).narrow(axis, 0, size)
    return _join(x, places, updates, axis, mode, unsigned, along)


def _join(
    x: torch.Tensor, places: torch.Tensor, updates: torch.Tensor, axis: int, mode: str, unsigned: bool, along: bool
) -> torch.Tensor:
    dtype = x.dtype
    if x.is_complex() and mode not in ("assign", "add"):
        return _one_by_one(x, places, updates, axis, mode, along)
    mode = _plain(mode, dtype)
    out = _wide(x, mode, unsigned)
    out = out.clone() if out is x else out
    source = _wide(updates, mode, unsigned)
    if along:
        places = places.expand(source.shape)
        if mode == "assign":
            out.scatter_(axis, places, source)
        elif mode == "add":
            out.scatter_add_(axis, places, source)
        elif mode == "prod":
            out.scatter_reduce_(axis, places, source, "prod")
        else:
            out.scatter_reduce_(axis, places, source, _REDUCE[mode])
        return _back(out, dtype, mode, unsigned)
    if mode == "assign":
        out.index_copy_(axis, places, source)
    elif mode == "add":
        out.index_add_(axis, places, source)
    else:
        shape = [1] * source.dim()
        shape[axis] = places.numel()
        out.scatter_reduce_(axis, places.reshape(shape).expand(source.shape), source, _REDUCE[mode])
    return _back(out, dtype, mode, unsigned)


def _one_by_one(
    x: torch.Tensor, places: torch.Tensor, updates: torch.Tensor, axis: int, mode: str, along: bool
) -> torch.Tensor:
    """Join complex numbers, for which torch has no product or extreme of several."""
    import torch

    out = x.clone()
    for number in range(updates.shape[axis]):
        new = updates.narrow(axis, number, 1)
        if along:
            at = places.expand(updates.shape).narrow(axis, number, 1)
        else:
            at = places.reshape(-1)[number].expand(new.shape)
        old = out.gather(axis, at)
        if mode == "prod":
            joined = old * new
        else:
            a, b = (new, old) if mode == "max" else (old, new)
            over = (a.real > b.real) | ((a.real == b.real) & (a.imag > b.imag))
            joined = torch.where((over | new.isnan()) & ~old.isnan(), new, old)
        out.scatter_(axis, at, joined)
    return out


def _scatter(node: Node, x: torch.Tensor, updates: torch.Tensor, *indices: torch.Tensor) -> torch.Tensor:
    axis, mode, unsigned = node.attrs
    count = len(indices)
    if x.numel() == 0 or updates.numel() == 0:
        return x.clone()
    sizes = tuple(x.shape[axis : axis + count])
    ndim = updates.dim() - (x.dim() - count)
    flat = x if count == 1 else x.reshape(*x.shape[:axis], -1, *x.shape[axis + count :])
    if x.is_cuda and not x.is_complex() and not (unsigned and mode in ("max", "min")):
        from rocmend.kernels.ops.memory.scatter.function import scatter as kernel

        where = indices[0] if count == 1 else _places(indices, sizes)
        return kernel(flat, where, updates, axis, mode=mode).reshape(x.shape)
    places = _places(indices, sizes).reshape(-1)
    lines = updates.reshape(*updates.shape[:axis], -1, *updates.shape[axis + ndim :])
    return _write(flat, places, lines, axis, mode, unsigned, along=False).reshape(x.shape)


# inputs: x, the updates (shaped as Gather's output), one array of places for each axis.
# attrs: the first axis, what is done, whether the type is unsigned
SCATTER = Primitive("Scatter", _scatter)


@register
def scattered(x: array, indices: list[array], updates: array, axis: int, mode: str, stream: Any = None) -> array:
    """Record a write at places along consecutive axes from ``axis`` on; ``updates`` have the shape of ``gathered``."""
    node = x._n
    return record(
        SCATTER,
        (node, updates._n, *[one._n for one in indices]),
        node.shape,
        node.dtype,
        (axis, mode, node.dtype.is_unsigned),
        None,
        stream,
    )


def _share(cotangent: array, output: array, part: array) -> array:
    """Return the cotangent where ``part`` is what stayed."""
    return ops.multiply(cotangent, ops.astype(ops.equal(part, output), cotangent._n.dtype))  # type: ignore[no-any-return]


@SCATTER.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    x, updates, *indices = primals
    axis, mode, _ = node.attrs
    none = [None] * len(indices)
    if mode == "add":
        return cotangent, gathered(cotangent, indices, axis), *none
    if mode == "assign":
        nothing = broadcast(ops.zeros((), cotangent._n.dtype), updates._n.shape)
        kept = scattered(cotangent, indices, nothing, axis, "assign")
        return kept, gathered(cotangent, indices, axis), *none
    if mode == "prod":
        factors = scattered(ops.ones_like(x), indices, updates, axis, "prod")
        to_updates = gathered(ops.multiply(cotangent, output), indices, axis)
        return ops.multiply(cotangent, factors), ops.divide(to_updates, updates), *none
    at = gathered(output, indices, axis)
    return (
        _share(cotangent, output, x),
        _share(gathered(cotangent, indices, axis), at, updates),
        *none,
    )


@SCATTER.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, updates, *indices = primals
    axis, mode, _ = node.attrs
    dx, du = [ops.zeros_like(p) if t is None else t for p, t in zip((x, updates), tangents[:2], strict=True)]
    if mode in ("assign", "add"):
        return scattered(dx, indices, du, axis, mode)
    if mode == "prod":
        relative = scattered(ops.divide(dx, x), indices, ops.divide(du, updates), axis, "add")
        return ops.multiply(relative, output)
    at = gathered(output, indices, axis)
    kept = _share(dx, output, x)
    return scattered(kept, indices, _share(du, at, updates), axis, "add")


@SCATTER.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x, updates, *indices), (x_axis, update_axis, *index_axes) = arrays, axes
    axis, mode, _ = node.attrs
    if all(one is None for one in index_axes):
        x, updates = batched((x, updates), (x_axis, update_axis))
        return scattered(x, indices, updates, axis + 1, mode), 0
    indices, size = batched_indices(indices, index_axes)
    x = broadcast(x, (size, *x._n.shape)) if x_axis is None else moveaxis(x, x_axis, 0)
    updates = (
        broadcast(updates, (size, *updates._n.shape)) if update_axis is None else moveaxis(updates, update_axis, 0)
    )
    ndim = max(len(one._n.shape) for one in indices) - 1
    # the batch is one more axis that places are told for, beside the others
    out = scattered(moveaxis(x, 0, axis), [counted(size, ndim), *indices], moveaxis(updates, 0, axis), axis, mode)
    return out, axis


def _put_along(node: Node, x: torch.Tensor, indices: torch.Tensor, values: torch.Tensor) -> torch.Tensor:
    axis, mode, unsigned = node.attrs
    if x.numel() == 0 or values.numel() == 0:
        return x.clone()
    if x.is_cuda and not x.is_complex() and not (unsigned and mode in ("max", "min")):
        from rocmend.kernels.ops.memory.scatter.function import put_along_axis as kernel

        return kernel(x, indices, values, axis, mode=mode)
    return _write(x, _places((indices,), (x.shape[axis],)), values, axis, mode, unsigned, along=True)


# inputs: x, indices, values, of one shape but for the axis; attrs: the axis, what is done, whether it is unsigned
PUT_ALONG = Primitive("PutAlongAxis", _put_along)


@register
def put_along(x: array, indices: array, values: array, axis: int, mode: str, stream: Any = None) -> array:
    """Record a write of single elements along a valid axis; ``indices`` and ``values`` have one shape."""
    node = x._n
    return record(
        PUT_ALONG,
        (node, indices._n, values._n),
        node.shape,
        node.dtype,
        (axis, mode, node.dtype.is_unsigned),
        None,
        stream,
    )


@PUT_ALONG.rule("vjp")
def _put_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    _, indices, values = primals
    axis, mode, _ = node.attrs
    to_values = taken_along(cotangent, indices, axis)
    if mode == "add":
        return cotangent, None, to_values
    nothing = broadcast(ops.zeros((), cotangent._n.dtype), values._n.shape)
    return put_along(cotangent, indices, nothing, axis, "assign"), None, to_values


@PUT_ALONG.rule("jvp")
def _put_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    x, indices, values = primals
    dx, dv = [ops.zeros_like(p) if t is None else t for p, t in ((x, tangents[0]), (values, tangents[2]))]
    axis, mode, _ = node.attrs
    return put_along(dx, indices, dv, axis, mode)


@PUT_ALONG.rule("vmap")
def _put_vmap(node: Any, arrays: Any, axes: Any) -> Any:
    x, indices, values = batched(arrays, axes)
    axis, mode, _ = node.attrs
    return put_along(x, indices, values, axis + 1, mode), 0


def put_along_axis(a: array, /, indices: array, values: array, axis: int | None = None, *, stream: Any = None) -> array:
    """Return ``a`` with single elements along an axis changed: ``out[i, indices[i, j]] = values[i, j]`` for ``axis=1``.

    Args:
        a: any shape and type.
        indices: integers with as many axes as ``a``; the other axes broadcast.
        values: broadcasts to the indices; converted to the type of ``a``.
        axis: which; None: all elements as one row.
        stream: where.

    Returns:
        The shape and type of ``a``.

    Raises:
        ValueError: shapes that do not fit.
        IndexError: there is no such axis.
    """
    a, indices, values = to_array(a), to_array(indices), to_array(values)
    stream = None if stream is None else as_stream(stream)
    shape = a._n.shape
    ndim = len(shape)
    values = ops.astype(values, a._n.dtype, stream=stream)
    if axis is None:
        row = reshaped(indices, (prod(indices._n.shape),), stream)
        if len(values._n.shape):
            values = reshaped(broadcast(values, indices._n.shape), row._n.shape, stream)
        flat = reshaped(a, (prod(shape),), stream)
        return reshaped(
            put_along(flat, integral(row), broadcast(values, row._n.shape), 0, "assign", stream), shape, stream
        )
    if not -ndim <= axis < ndim:
        raise out_of_bounds("put_along_axis", axis, ndim)
    if len(indices._n.shape) != ndim:
        raise ValueError(
            f"[put_along_axis] Indices of dimension {len(indices._n.shape)} {shape_text(indices._n.shape)} "
            f"do not match array of dimension {ndim} {shape_text(shape)}."
        )
    axis %= ndim
    whole = (*shape[:axis], indices._n.shape[axis], *shape[axis + 1 :])
    indices = ops.broadcast_to(integral(indices), whole, stream=stream)
    return put_along(a, indices, ops.broadcast_to(values, whole, stream=stream), axis, "assign", stream)
