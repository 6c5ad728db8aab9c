"""Products of tensors: inner, outer, along axes, Kronecker's, and Hadamard's transform."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx import dtypes
from rocmend.mlx.arguments import AxisError, as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.construct import checked
from rocmend.mlx.ops.products import matmul
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["hadamard_transform", "inner", "kron", "outer", "tensordot", "vecdot"]


def inner(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Sum products over the last axes: ``out[i..., j...] = Σ_k a[i..., k] · b[j..., k]``.

    Args:
        a: ``[..., k]``, or a number, with which b is multiplied.
        b: ``[..., k]``, or a number.
        stream: where it is computed.

    Returns:
        The leading axes of a, then those of b.

    Raises:
        ValueError: last axes that differ, or types that promote to none with a fraction.
    """
    a, b = to_array(a), to_array(b)
    if not a.shape or not b.shape:
        return ops.multiply(a, b, stream=stream)  # type: ignore[no-any-return]
    if a.shape[-1] != b.shape[-1]:
        raise ValueError(
            f"[inner] a and b must have the same last dimension, got {shape_text(a.shape)} and {shape_text(b.shape)}."
        )
    return tensordot(a, b, [[-1], [-1]], stream=stream)


def outer(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Multiply each element with each: ``out[i, j] = a[i] · b[j]``; both are flattened first.

    Args:
        a: n elements.
        b: m elements.
        stream: where it is computed.

    Returns:
        ``[n, m]`` of the type that both promote to.
    """
    a = ops.reshape(to_array(a), (-1, 1), stream=stream)
    return ops.multiply(a, ops.flatten(to_array(b), stream=stream), stream=stream)  # type: ignore[no-any-return]


def _contracted(axes: int | Sequence[Sequence[int]], a: array, b: array) -> tuple[list[int], list[int]]:
    if isinstance(axes, int):
        if axes < 0:
            raise ValueError(f"[tensordot] axes must be greater or equal to 0, got {axes}.")
        if axes > min(len(a.shape), len(b.shape)):
            raise ValueError(
                f"[tensordot] axes must be at most the number of dimensions of a and b, got {axes} for "
                f"{shape_text(a.shape)} and {shape_text(b.shape)}."
            )
        return list(range(len(a.shape) - axes, len(a.shape))), list(range(axes))
    if len(axes) != 2:
        raise ValueError("[tensordot] axes must be a list of two lists.")
    found = []
    for given, shape in zip(axes, (a.shape, b.shape), strict=True):
        for axis in given:
            if not -len(shape) <= axis < len(shape):
                raise AxisError(f"[tensordot] Axis {axis} is out of bounds for shape {shape_text(shape)}.")
        found.append([axis % len(shape) for axis in given])
    if len(found[0]) != len(found[1]):
        raise ValueError(f"[tensordot] axes must have the same size, got {len(found[0])} and {len(found[1])}.")
    return found[0], found[1]


def tensordot(a: Any, b: Any, /, axes: int | Sequence[Sequence[int]] = 2, *, stream: Any = None) -> array:
    """Sum products over chosen axes.

    Args:
        a: any shape of an inexact type.
        b: likewise.
        axes: how many of the last axes of a meet as many of the first of b; or two lists, of axes of a and of b.
        stream: where it is computed.

    Returns:
        The other axes of a, then those of b.

    Raises:
        ValueError: axes that do not fit, or types that promote to none with a fraction.
        IndexError: there is no such axis.
    """
    a, b = to_array(a), to_array(b)
    left, right = _contracted(axes, a, b)
    if [a.shape[i] for i in left] != [b.shape[i] for i in right]:
        raise ValueError(
            f"[tensordot] a and b must have the same shape on the contracted axes, got {shape_text(a.shape)} and "
            f"{shape_text(b.shape)}."
        )
    size = math.prod(a.shape[i] for i in left)
    rest = [i for i in range(len(a.shape)) if i not in left], [i for i in range(len(b.shape)) if i not in right]
    rows, columns = tuple(a.shape[i] for i in rest[0]), tuple(b.shape[i] for i in rest[1])
    first = ops.reshape(ops.transpose(a, [*rest[0], *left], stream=stream), (math.prod(rows), size), stream=stream)
    second = ops.reshape(ops.transpose(b, [*right, *rest[1]], stream=stream), (size, math.prod(columns)), stream=stream)
    return ops.reshape(matmul(first, second, stream=stream), (*rows, *columns), stream=stream)  # type: ignore[no-any-return]


def vecdot(a: Any, b: Any, /, *, axis: int = -1, stream: Any = None) -> array:
    """Sum products along an axis: ``Σ conj(a) · b``.

    Args:
        a: any shape of at least one axis.
        b: likewise; both are broadcast.
        axis: along which is summed.
        stream: where it is computed.

    Returns:
        The broadcast shape without the axis.

    Raises:
        ValueError: a number, sizes that differ along the axis, or an axis that one of them lacks.
        IndexError: there is no such axis.
    """
    a, b = to_array(a), to_array(b)
    if not a.shape or not b.shape:
        raise ValueError("[vecdot] inputs must be at least 1D.")
    most = max(len(a.shape), len(b.shape))
    if not -most <= axis < most:
        raise AxisError(f"[vecdot] axis {axis} is out of bounds for {most} dimensions.")
    for shape in (a.shape, b.shape):
        if not -len(shape) <= axis < len(shape):
            raise ValueError(f"[vecdot] axis {axis} is out of bounds for shape {shape_text(shape)}.")
    if a.shape[axis] != b.shape[axis]:
        raise ValueError(
            f"[vecdot] a and b must have the same size along axis {axis}, got {shape_text(a.shape)} and "
            f"{shape_text(b.shape)}."
        )
    if a.dtype.is_complex:
        a = ops.conjugate(a, stream=stream)
    if axis >= 0 and len(a.shape) != len(b.shape):
        axis -= len(a.shape)
    return ops.sum(ops.multiply(a, b, stream=stream), axis, stream=stream)  # type: ignore[no-any-return]


def kron(a: Any, b: Any, *, stream: Any = None) -> array:
    """Return the Kronecker product: each element of a times all of b.

    Args:
        a: any shape.
        b: any shape; ones are put before the shorter one.
        stream: where it is computed.

    Returns:
        The product of both shapes, of the type that both promote to.

    Raises:
        ValueError: one of them is empty.
        OverflowError: an axis of the product has 2**31 elements or more.
    """
    a, b = to_array(a), to_array(b)
    if 0 in a.shape or 0 in b.shape:
        raise ValueError("[kron] Input arrays cannot be empty.")
    ndim = max(len(a.shape), len(b.shape))
    first, second = (((1,) * (ndim - len(one.shape)) + one.shape) for one in (a, b))
    left = [size for one in first for size in (one, 1)]
    right = [size for one in second for size in (1, one)]
    sizes = [x * y for x, y in zip(first, second, strict=True)]
    checked(sizes)
    made = ops.multiply(ops.reshape(a, left, stream=stream), ops.reshape(b, right, stream=stream), stream=stream)
    return ops.reshape(made, sizes, stream=stream)  # type: ignore[no-any-return]


# First rows of the circulants A, B, C, D of Williamson's construction, a bit an element, 1 for -1.
_CIRCULANTS = {20: (0b01111, 0b01111, 0b00110, 0b01001), 28: (0b0111111, 0b0011110, 0b0101101, 0b0110011)}


@functools.cache
def _core(order: int) -> torch.Tensor:
    """Return a Hadamard matrix of order 12 (Paley), 20 or 28 (Williamson)."""
    if order == 12:
        squares = {1, 4}
        conference = torch.ones(6, 6)
        conference[0, 0] = 0
        for i in range(5):
            for j in range(5):
                conference[i + 1, j + 1] = 0 if i == j else 1 if (i - j) % 5 in squares else -1
        of_others, of_itself = torch.tensor([[1.0, 1.0], [1.0, -1.0]]), torch.tensor([[1.0, -1.0], [-1.0, -1.0]])
        return torch.kron(conference, of_others) + torch.kron(torch.eye(6), of_itself)
    n = order // 4
    a, b, c, d = (
        torch.tensor([[1.0 - 2.0 * (row >> (n - 1 - (j - i) % n) & 1) for j in range(n)] for i in range(n)])
        for row in _CIRCULANTS[order]
    )
    blocks = ((a, b, c, d), (-b, a, -d, c), (-c, d, a, -b), (-d, -c, b, a))
    return torch.cat([torch.cat(row, 1) for row in blocks])


def _run_hadamard(node: Node, x: torch.Tensor) -> torch.Tensor:
    scale, odd = node.attrs
    wide = x if x.dtype is torch.float64 or x.dtype.is_complex else x.float()
    shape = wide.shape
    rest = shape[-1] // odd
    wide = wide.reshape(-1, odd, rest)
    step = 1
    while step < rest:
        pairs = wide.view(-1, odd, rest // (2 * step), 2, step)
        wide = torch.stack((pairs[..., 0, :] + pairs[..., 1, :], pairs[..., 0, :] - pairs[..., 1, :]), -2)
        step *= 2
    wide = wide.reshape(-1, odd, rest)
    if odd > 1:
        wide = torch.matmul(_core(odd).to(wide.device, wide.dtype), wide)
    return (wide.reshape(shape) * scale).to(x.dtype)  # type: ignore[no-any-return]


HADAMARD = Primitive("Hadamard", _run_hadamard)
_ODD = {1: 1, 3: 12, 5: 20, 7: 28}


def hadamard_transform(a: Any, scale: float | None = None, stream: Any = None) -> array:
    """Multiply the last axis with Hadamard's matrix: ``scale · H a``.

    Args:
        a: ``[..., n]`` with n = m · 2^k, m one of 1, 12, 20, 28; integers become float32.
        scale: a factor; None for ``1 / sqrt(n)``, which makes the matrix orthonormal.
        stream: where it is computed.

    Returns:
        The shape of a, of its type or float32.

    Raises:
        ValueError: another size, or nothing to transform.
    """
    a = to_array(a)
    if 0 in a.shape:
        raise ValueError("[hadamard_transform] Does not support empty arrays.")
    n = a.shape[-1] if a.shape else 1
    odd = n
    while odd % 2 == 0:
        odd //= 2
    factor = _ODD.get(odd)
    if factor is None or n % factor:
        raise ValueError(f"[hadamard_transform] Only supports n = m*2^k where m in (1, 12, 20, 28), got {n}.")
    if not a.dtype.is_inexact:
        a = ops.astype(a, dtypes.float32, stream=stream)
    factors = (1 / math.sqrt(n) if scale is None else float(scale), factor)
    if not a.shape:
        return ops.multiply(a, factors[0], stream=stream)  # type: ignore[no-any-return]
    where = stream if stream is None else as_stream(stream)
    return record(HADAMARD, (a._n,), a.shape, a.dtype, factors, None, where)


@HADAMARD.rule("jvp")
def _hadamard_jvp(node: Node, _: Any, tangents: Any, __: array) -> array:
    return record(HADAMARD, (tangents[0]._n,), node.shape, node.dtype, node.attrs, None, node.stream)


@HADAMARD.rule("vmap")
def _hadamard_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    x = ops.moveaxis(arrays[0], axes[0], 0, stream=node.stream)
    return record(HADAMARD, (x._n,), x.shape, node.dtype, node.attrs, None, node.stream), 0
