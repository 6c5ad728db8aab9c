"""Repeating without copying: broadcasting. And reading memory at strides."""

from __future__ import annotations

from operator import index
from typing import TYPE_CHECKING, Any

from rocmend.mlx.arguments import as_stream, to_array
from rocmend.mlx.arguments import broadcast_shapes as _meet
from rocmend.mlx.array import array, record, wrap
from rocmend.mlx.node import current
from rocmend.mlx.ops.shape import LARGEST_SIZE, reshaped, too_large
from rocmend.mlx.ops.shape_axes import moveaxis
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["broadcast_arrays", "broadcast_shapes", "broadcast_to"]

BROADCAST = Primitive("Broadcast", lambda node, x: x.expand(node.shape), view=True)


@BROADCAST.rule("vjp")
def _vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    return (unbroadcast(cotangent, primals[0]._n.shape),)


@BROADCAST.rule("jvp")
def _jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    return broadcast(tangents[0], node.shape)


@BROADCAST.rule("vmap")
def _vmap(node: Any, arrays: Any, axes: Any) -> Any:
    (x,), (axis,) = arrays, axes
    if axis is None:
        return broadcast(x, node.shape), None
    x = moveaxis(x, axis, 0)
    size, *rest = x._n.shape
    x = reshaped(x, (size, *(1,) * (len(node.shape) - len(rest)), *rest))
    return broadcast(x, (size, *node.shape)), 0


def broadcast(x: array, shape: tuple[int, ...], stream: Any = None) -> array:
    """Record a broadcast to a shape known to be right; the same node where nothing changes."""
    node = x._n
    if node.shape == shape:
        return wrap(node)
    return record(BROADCAST, (node,), shape, node.dtype, None, None, stream)


# inputs: what is repeated, and what has the shape of the result, in bodies whose shapes may change
BROADCAST_LIKE = Primitive("BroadcastLike", lambda node, x, like: x.expand(like.shape), view=True)


@BROADCAST_LIKE.rule("vjp")
def _like_vjp(node: Any, primals: Any, output: Any, cotangent: Any) -> Any:
    return unbroadcast(cotangent, primals[0]._n.shape), None


@BROADCAST_LIKE.rule("jvp")
def _like_jvp(node: Any, primals: Any, tangents: Any, output: Any) -> Any:
    if tangents[0] is None:
        return ops.zeros_like(output)
    return broadcast_like(tangents[0], primals[1])


def broadcast_like(x: array, like: array) -> array:
    """Repeat an array to the shape of another; where a body is traced for any shapes, to what that will be."""
    shape = like._n.shape
    if not current.state.shapeless:
        return broadcast(x, shape)
    return record(BROADCAST_LIKE, (x._n, like._n), shape, x._n.dtype)


def unbroadcast(x: array, shape: tuple[int, ...]) -> array:
    """Sum ``x`` over the axes that broadcasting ``shape`` to it repeated."""
    wide = x._n.shape
    if wide == shape:
        return x
    skip = len(wide) - len(shape)
    axes = (*range(skip), *[i for i, size in enumerate(shape, skip) if size == 1 and wide[i] != 1])
    if axes:
        x = ops.sum(x, axes, keepdims=True)
    return reshaped(x, shape)


def broadcast_to(a: Any, /, shape: Sequence[int], *, stream: Any = None) -> array:
    """Repeat an array along axes of size 1, and along new ones in front.

    Args:
        a: an array of any shape and type, or a number.
        shape: the sizes wanted.
        stream: where.

    Returns:
        An array of that shape, or of the one in which both meet.

    Raises:
        ValueError: the shapes do not fit.
    """
    if type(a) is not array:
        a = to_array(a)
    old = a._n.shape
    shape = tuple(map(index, shape))
    if old == shape:
        return wrap(a._n)
    if shape and min(shape) < 0:
        raise ValueError("[broadcast_to] Negative dimensions not allowed.")
    if shape and max(shape) > LARGEST_SIZE:
        raise too_large("broadcast_to", max(shape))
    if _meet(old, shape) != shape:
        raise ValueError(f"[broadcast_to] Cannot broadcast array of shape {old} into shape {shape}.")
    return broadcast(a, shape, None if stream is None else as_stream(stream))


def broadcast_arrays(*arrays: array, stream: Any = None) -> tuple[array, ...]:
    """Repeat arrays to the shape in which they meet.

    Args:
        arrays: any types; shapes that broadcast.
        stream: where.

    Returns:
        One array for each, all of one shape.

    Raises:
        ValueError: the shapes do not fit.
    """
    if not arrays:
        return ()
    given = [to_array(x) for x in arrays]
    shape = _meet(*[x._n.shape for x in given])
    stream = None if stream is None else as_stream(stream)
    return tuple([broadcast(x, shape, stream) for x in given])


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Return the shape in which shapes meet: sizes must be equal or 1, from the last axis on.

    Args:
        shapes: at least one.

    Returns:
        A tuple of sizes.

    Raises:
        ValueError: they do not fit, or there is none.
    """
    if not shapes:
        raise ValueError("[broadcast_shapes] Must provide at least one shape.")
    return _meet(*shapes)
