"""Softmax."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, axes_of, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["softmax"]

_MOST = 4096
# attrs, type of the computation, whether the input's comes back
_inferred: dict[Any, tuple[Any, Dtype, bool]] = {}


def _run(node: Node, x: torch.Tensor) -> torch.Tensor:
    axis, _ = node.attrs
    if type(axis) is int and kernel_use.fits(x):
        return kernels.softmax(x, axis)  # type: ignore[no-any-return]
    if type(axis) is int:
        return torch.softmax(x, axis)  # half types in float32, rounded once
    rest = [i for i in range(x.dim()) if i not in axis]
    moved = x.permute(*rest, *axis)
    rows = torch.softmax(moved.flatten(len(rest)), -1).view(moved.shape)
    back = [0] * x.dim()
    for place, old in enumerate((*rest, *axis)):
        back[old] = place
    return rows.permute(back)


SOFTMAX = Primitive("Softmax", _run)


def softmax(a: Any, /, axis: int | Sequence[int] | None = None, *, precise: bool = False, stream: Any = None) -> array:
    """Return ``exp(a) / Σ exp(a)`` along axes, without overflow.

    Args:
        a: any shape; integers become float32, and stay what they are (so that only 0 and 1 are left) where the last
            axis is not among the axes, as in MLX.
        axis: an axis, several, or None for all.
        precise: sums of half types in float32. Here they always are.
        stream: where it is computed.

    Returns:
        The shape of a, of its type, or float32 of integers along the last axis.

    Raises:
        ValueError: there is no such axis, or one stands twice.
    """
    del precise
    if type(a) is not array:
        a = to_array(a)
    node = a._n
    key = (node.shape, node.dtype, axis if type(axis) is int or axis is None else tuple(axis))  # type: ignore[arg-type]
    found = _inferred.get(key)
    if found is None:
        found = _infer(key)
    attrs, dtype, back = found
    if back:
        made = softmax(ops.astype(a, dtype, stream=stream), axis, stream=stream)
        return ops.astype(made, node.dtype, stream=stream)  # type: ignore[no-any-return]
    if attrs is None:
        return _others(a, axes_of("softmax", key[2], len(node.shape)), dtype, stream)
    if dtype is not node.dtype:
        node = ops.astype(a, dtype, stream=stream)._n
    return record(SOFTMAX, (node,), node.shape, dtype, attrs, None, stream if stream is None else as_stream(stream))


def _infer(key: Any) -> tuple[Any, Dtype, bool]:
    shape, dtype, axis = key
    made = dtype if dtype.is_inexact else dtypes.float32
    axes = axes_of("softmax", axis, len(shape))
    attrs: Any = None
    if axes and not made.is_complex:
        attrs = (axes[0] if len(axes) == 1 else axes, made)
    if len(_inferred) >= _MOST:
        _inferred.clear()
    back = made is not dtype and (len(shape) - 1 not in axes or 0 in shape)
    found = _inferred[key] = (attrs, made, back)
    return found


def _others(a: array, axes: tuple[int, ...], dtype: Dtype, stream: Any) -> array:
    """Compute a number's, and complex ones step by step."""
    exponential = ops.exp(ops.astype(a, dtype, stream=stream), stream=stream)
    total = ops.sum(exponential, axes, keepdims=True, stream=stream) if axes else exponential
    return ops.divide(exponential, total, stream=stream)  # type: ignore[no-any-return]


def _through(node: Node, output: array, other: array) -> array:
    """Return ``out · (t - Σ out · t)``, which is both derivatives."""
    axis, _ = node.attrs
    s = node.stream
    scaled = ops.multiply(output, other, stream=s)
    total = ops.sum(scaled, axis=axis if type(axis) is int else list(axis), keepdims=True, stream=s)
    return ops.subtract(scaled, ops.multiply(output, total, stream=s), stream=s)  # type: ignore[no-any-return]


@SOFTMAX.rule("vjp")
def _vjp(node: Node, _: Any, output: array, cotangent: array) -> Any:
    return (_through(node, output, cotangent),)


@SOFTMAX.rule("jvp")
def _jvp(node: Node, _: Any, tangents: Any, output: array) -> array:
    return _through(node, output, tangents[0])


@SOFTMAX.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    axis, _ = node.attrs
    batch = axes[0]
    moved = [one + (one >= batch) for one in ((axis,) if type(axis) is int else axis)]
    return softmax(arrays[0], moved, stream=node.stream), batch
