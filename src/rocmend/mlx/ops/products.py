"""Matrix products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend.mlx.arguments import as_stream, broadcast_shapes, pair, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import promote
from rocmend.mlx.node import current
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["addmm", "matmul"]

# What was inferred, by shapes and types; decoding makes a new shape a step, so it is bounded.
_MOST = 8192
_products: dict[Any, tuple[tuple[int, ...], Dtype, bool]] = {}
_sums: dict[Any, tuple[tuple[int, ...], Dtype, bool]] = {}

# torch multiplies float16 by so many rows on the CPU more slowly than it converts and multiplies float32.
_SLOW_ROWS = 8


def product(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Multiply; sums are in float32 at least."""
    if a.dtype is torch.float16 and a.device.type == "cpu" and a.dim() > 1 and a.shape[-2] > _SLOW_ROWS:
        return torch.matmul(a.float(), b.float()).half()
    return torch.matmul(a, b)


def _run_addmm(node: Node, c: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    alpha, beta = node.attrs
    shape = node.shape
    if a.dtype is torch.float16 and a.device.type == "cpu":
        return torch.add(c.float() * beta, torch.matmul(a.float(), b.float()), alpha=alpha).half()
    if b.dim() == 2 and a.dim() >= 2 and (c.dim() <= 1 or a.dim() == 2):
        return torch.addmm(c, a.flatten(0, -2), b, beta=beta, alpha=alpha).view(shape)
    if a.dim() == 1 or b.dim() == 1:
        return torch.add(c if beta == 1 else c * beta, torch.matmul(a, b), alpha=alpha)
    batch = torch.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b, c = a.expand(*batch, *a.shape[-2:]), b.expand(*batch, *b.shape[-2:]), c.expand(shape)
    if len(batch) > 1:
        a, b, c = a.flatten(0, -3), b.flatten(0, -3), c.flatten(0, -3)
    return torch.baddbmm(c, a, b, beta=beta, alpha=alpha).view(shape)


MATMUL = Primitive("Matmul", lambda _, a, b: product(a, b))
ADDMM = Primitive("AddMM", _run_addmm)


def matmul(a: Any, b: Any, /, *, stream: Any = None) -> array:
    """Multiply matrices: ``out[..., i, j] = Σ_k a[..., i, k] · b[..., k, j]``.

    Args:
        a: ``[..., m, k]`` or ``[k]``, of an inexact type.
        b: ``[..., k, n]`` or ``[k]``. Leading axes are broadcast.
        stream: where it is computed.

    Returns:
        ``[..., m, n]``, without the axis of a vector, of the type that both promote to. Sums are float32 at least.

    Raises:
        ValueError: shapes that do not fit, a number, or types that promote to none with a fraction.
    """
    if type(a) is not array or type(b) is not array:
        a, b = pair(a, b)
    left, right = a._n, b._n
    key = (left.shape, right.shape, left.dtype, right.dtype)
    found = _products.get(key)
    if found is None:
        found = _infer(left, right)
    shape, dtype, mixed = found
    if mixed:
        left, right = ops.astype(a, dtype, stream=stream)._n, ops.astype(b, dtype, stream=stream)._n
    return record(MATMUL, (left, right), shape, dtype, None, None, stream if stream is None else as_stream(stream))


def addmm(c: Any, a: Any, b: Any, /, alpha: float = 1.0, beta: float = 1.0, *, stream: Any = None) -> array:
    """Multiply matrices and add: ``alpha · (a @ b) + beta · c``, rounded once.

    Args:
        c: what is added; broadcast to the product.
        a: ``[..., m, k]`` or ``[k]``.
        b: ``[..., k, n]`` or ``[k]``.
        alpha: factor of the product.
        beta: factor of c.
        stream: where it is computed.

    Returns:
        ``[..., m, n]`` of the type that all three promote to.

    Raises:
        ValueError: shapes that do not fit, or types that promote to none with a fraction.
    """
    a, b = pair(a, b)
    if type(c) is not array:
        c = to_array(c)
    left, right, added = a._n, b._n, c._n
    key = (added.shape, left.shape, right.shape, added.dtype, left.dtype, right.dtype)
    found = _sums.get(key)
    if found is None:
        found = _infer_sum(key, added, left, right)
    shape, dtype, mixed = found
    if mixed:
        left, right = ops.astype(a, dtype, stream=stream)._n, ops.astype(b, dtype, stream=stream)._n
        added = ops.astype(c, dtype, stream=stream)._n
    where = stream if stream is None else as_stream(stream)
    return record(ADDMM, (added, left, right), shape, dtype, (float(alpha), float(beta)), None, where)


def checked_shape(op: str, a: tuple[int, ...], b: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of a product.

    Raises:
        ValueError: shapes that do not fit.
    """
    if not a or not b:
        raise ValueError(f"[{op}] Expected inputs with 1 dimension or more, got {shape_text(a)} and {shape_text(b)}.")
    inner = b[-2] if len(b) > 1 else b[0]
    if a[-1] != inner:
        raise ValueError(
            f"[{op}] The last dimension of the first input, of shape {shape_text(a)}, must match the second to last "
            f"dimension of the second input, of shape {shape_text(b)}."
        )
    return broadcast_shapes(a[:-2], b[:-2]) + (a[-2:-1] if len(a) > 1 else ()) + (b[-1:] if len(b) > 1 else ())


def checked_dtype(op: str, *dtypes: Dtype) -> Dtype:
    """Return the type that types promote to.

    Raises:
        ValueError: it is not an inexact one.
    """
    found = dtypes[0]
    for one in dtypes[1:]:
        found = promote(found, one)
    if not found.is_inexact:
        given = ", ".join(repr(one) for one in dtypes)
        raise ValueError(f"[{op}] Only inexact types are supported, but {given} were given, which promote to {found}.")
    return found


def _infer(a: Node, b: Node) -> tuple[tuple[int, ...], Dtype, bool]:
    shape = checked_shape("matmul", a.shape, b.shape)
    dtype = checked_dtype("matmul", a.dtype, b.dtype)
    if len(_products) >= _MOST:
        _products.clear()
    found = _products[a.shape, b.shape, a.dtype, b.dtype] = (shape, dtype, a.dtype is not b.dtype)
    return found


def _infer_sum(key: Any, c: Node, a: Node, b: Node) -> tuple[tuple[int, ...], Dtype, bool]:
    shape = checked_shape("addmm", a.shape, b.shape)
    dtype = checked_dtype("addmm", a.dtype, b.dtype, c.dtype)
    if broadcast_shapes(c.shape, shape) != shape:
        raise ValueError(f"[addmm] Cannot broadcast c of shape {shape_text(c.shape)} to {shape_text(shape)}.")
    if len(_sums) >= _MOST:
        _sums.clear()
    found = _sums[key] = (shape, dtype, not (a.dtype is b.dtype is c.dtype))
    return found


def sum_to(x: array, shape: tuple[int, ...], stream: Any = None) -> array:
    """Sum an array over the axes along which ``shape`` was broadcast to it."""
    if x.shape == shape:
        return x
    skip = len(x.shape) - len(shape)
    axes = [axis for axis, size in enumerate(x.shape) if axis < skip or (shape[axis - skip] == 1 and size != 1)]
    if axes:
        x = ops.sum(x, axis=axes, keepdims=True, stream=stream)
    return ops.reshape(x, shape, stream=stream)  # type: ignore[no-any-return]


# inputs: what is summed, and what has the shape of the sum, in bodies whose shapes may change
SUM_LIKE = Primitive("SumLike", lambda node, x, like: x.sum_to_size(like.shape))


@SUM_LIKE.rule("vjp")
def _sum_like_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    return ops.broadcast_to(cotangent, primals[0].shape, stream=node.stream), None


@SUM_LIKE.rule("jvp")
def _sum_like_jvp(node: Node, primals: Any, tangents: Any, output: array) -> array:
    if tangents[0] is None:
        return ops.zeros_like(output)  # type: ignore[no-any-return]
    return sum_like(tangents[0], primals[1], node.stream)


def sum_like(x: array, like: array, stream: Any = None) -> array:
    """Sum an array over the axes along which the shape of another was broadcast to it, whatever that shape will be."""
    return record(SUM_LIKE, (x._n, like._n), like.shape, x.dtype, None, None, stream)


def wanted(primals: Any, place: int) -> bool:
    """Return whether the derivative with respect to an input is asked for."""
    flags = getattr(primals, "wanted", None)
    return flags is None or flags[place]


def check_indices(op: str, primals: Any, first: int) -> None:
    """Refuse the derivative with respect to indices, which are the inputs from ``first`` on.

    Raises:
        ValueError: it is asked for.
    """
    if any(getattr(primals, "wanted", ())[first:]):
        raise ValueError(f"[{op}] There is no gradient of indices. Use stop_gradient on them.")


def product_gradients(
    a: array, b: array, cotangent: array, stream: Any, *, of_a: bool = True, of_b: bool = True
) -> tuple[array | None, array | None]:
    """Return the gradients of both factors of a matrix product; None for one that is not asked for."""
    whole_a, whole_b = a, b
    a_shape, b_shape = a.shape, b.shape
    shapeless = current.state.shapeless
    if len(a_shape) == 1:
        a = ops.expand_dims(a, 0, stream=stream)
        cotangent = ops.expand_dims(cotangent, -1 if len(b_shape) == 1 else -2, stream=stream)
    if len(b_shape) == 1:
        b = ops.expand_dims(b, 1, stream=stream)
        cotangent = ops.expand_dims(cotangent, -1, stream=stream)
    if (
        len(b.shape) == 2 and len(a.shape) > 2 and not shapeless
    ):  # one product for the whole batch, in place of a sum of products
        a = ops.flatten(a, 0, -2, stream=stream)
        cotangent = ops.flatten(cotangent, 0, -2, stream=stream)
    first = second = None
    if of_a:
        first = matmul(cotangent, _turned(b, stream), stream=stream)
        if shapeless:
            first = sum_like(first, whole_a, stream)
        else:
            first = ops.reshape(sum_to(first, a.shape, stream), a_shape, stream=stream)
    if of_b:
        second = matmul(_turned(a, stream), cotangent, stream=stream)
        if shapeless:
            second = sum_like(ops.squeeze(second, -1, stream=stream) if len(b_shape) == 1 else second, whole_b, stream)
        else:
            second = ops.reshape(sum_to(second, b.shape, stream), b_shape, stream=stream)
    return first, second


def _turned(x: array, stream: Any) -> array:
    return ops.swapaxes(x, -1, -2, stream=stream)  # type: ignore[no-any-return]


@MATMUL.rule("vjp")
def _matmul_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    a, b = primals
    return product_gradients(a, b, cotangent, node.stream, of_a=wanted(primals, 0), of_b=wanted(primals, 1))


@MATMUL.rule("jvp")
def _matmul_jvp(node: Node, primals: Any, tangents: Any, _: array) -> Any:
    a, b = primals
    parts = []
    if tangents[0] is not None:
        parts.append(matmul(tangents[0], b, stream=node.stream))
    if tangents[1] is not None:
        parts.append(matmul(a, tangents[1], stream=node.stream))
    return parts[0] if len(parts) == 1 else ops.add(*parts, stream=node.stream)


def aligned(x: array, axis: int | None, ndim: int, stream: Any) -> array:
    """Return x with its batch axis first, of size 1 where there is none, and ones up to ``ndim`` axes behind it."""
    x = ops.expand_dims(x, 0, stream=stream) if axis is None else ops.moveaxis(x, axis, 0, stream=stream)
    missing = ndim + 1 - x.ndim
    return ops.expand_dims(x, range(1, 1 + missing), stream=stream) if missing else x


@MATMUL.rule("vmap")
def _matmul_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    s = node.stream
    a, b = arrays
    first, second = (x.ndim - (axis is not None) for x, axis in zip(arrays, axes, strict=True))
    if first > 1 and second > 1 and axes[1] is None:  # only the first is batched
        a = ops.moveaxis(a, axes[0], 0, stream=s)
        if second > first:
            a = aligned(a, 0, second, s)
        return matmul(a, b, stream=s), 0
    if first == 1:
        a = ops.expand_dims(ops.moveaxis(a, axes[0], 0, stream=s) if axes[0] is not None else a, -2, stream=s)
    if second == 1:
        b = ops.expand_dims(ops.moveaxis(b, axes[1], 0, stream=s) if axes[1] is not None else b, -1, stream=s)
    ndim = max(first, second, 2)
    a = aligned(a, None if axes[0] is None else 0 if first == 1 else axes[0], ndim, s)
    b = aligned(b, None if axes[1] is None else 0 if second == 1 else axes[1], ndim, s)
    out = matmul(a, b, stream=s)
    if first == 1:
        out = ops.squeeze(out, -2, stream=s)
    if second == 1:
        out = ops.squeeze(out, -1, stream=s)
    return out, 0


@ADDMM.rule("vjp")
def _addmm_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    alpha, beta = node.attrs
    c, a, b = primals
    s = node.stream
    added = None
    if wanted(primals, 0):
        added = cotangent if beta == 1 else ops.multiply(cotangent, beta, stream=s)
        added = sum_to(added, c.shape, s)
    scaled = cotangent if alpha == 1 else ops.multiply(cotangent, alpha, stream=s)
    return added, *product_gradients(a, b, scaled, s, of_a=wanted(primals, 1), of_b=wanted(primals, 2))


@ADDMM.rule("jvp")
def _addmm_jvp(node: Node, primals: Any, tangents: Any, output: array) -> Any:
    alpha, beta = node.attrs
    s = node.stream
    made = None
    if tangents[1] is not None or tangents[2] is not None:
        made = ops.multiply(_matmul_jvp(node, primals[1:], tangents[1:], output), alpha, stream=s)
    if tangents[0] is None:
        return made
    added = ops.broadcast_to(ops.multiply(tangents[0], beta, stream=s), output.shape, stream=s)
    return added if made is None else ops.add(made, added, stream=s)


@ADDMM.rule("vmap")
def _addmm_vmap(node: Node, arrays: Any, axes: Any) -> Any:
    alpha, beta = node.attrs
    s = node.stream
    made, _ = (
        _matmul_vmap(node, arrays[1:], axes[1:])
        if axes[1:] != (None, None) and any(axis is not None for axis in axes[1:])
        else (matmul(*arrays[1:], stream=s), None)
    )
    if alpha != 1:
        made = ops.multiply(made, alpha, stream=s)
    c = arrays[0] if axes[0] is None else aligned(arrays[0], axes[0], len(node.shape), s)
    if beta != 1:
        c = ops.multiply(c, beta, stream=s)
    return ops.add(made, c, stream=s), 0
