"""Products of chosen matrices, of segments, and of masked blocks."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.products import check_indices, checked_dtype, checked_shape, matmul, product, wanted
from rocmend.mlx.ops.quantized_products import gathered, gathered_shape, in_turn, spread_back
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["block_masked_mm", "gather_mm", "segmented_mm"]


def _run_gather(node: Node, a: torch.Tensor, b: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    left, right, ordered = node.attrs
    indices = list(rest)
    lhs = indices.pop(0) if left else None
    rhs = indices.pop(0) if right else None
    if kernel_use.fits(a) and not torch.is_grad_enabled():
        out: torch.Tensor = kernels.gather_mm(a, b, lhs, rhs, sorted_indices=ordered)
        return out
    pairs = node.shape[:-2]
    chosen = []
    for one, index in ((a, lhs), (b, rhs)):
        if index is None:
            chosen.append(one)
        else:
            chosen.append(one.reshape(-1, *one.shape[-2:])[index.long()])
    return product(*chosen).expand(*pairs, *node.shape[-2:])


GATHER_MM = Primitive("GatherMM", _run_gather)


def gather_mm(
    a: array, b: array, /, lhs_indices: array | None = None, rhs_indices: array | None = None, *,
    sorted_indices: bool = False, stream: Any = None,
) -> array:  # fmt: skip
    """Multiply chosen matrices with chosen ones: ``out[i] = a[lhs[i]] @ b[rhs[i]]``.

    Args:
        a: ``[..., m, k]`` of an inexact type.
        b: ``[..., k, n]``.
        lhs_indices: integers: which matrix of a, counted through its leading axes; None for each in turn.
        rhs_indices: which matrix of b. Both are broadcast, and must be in range.
        sorted_indices: the indices ascend, which may be faster.
        stream: where it is computed.

    Returns:
        ``[indices..., m, n]`` of the type that both promote to.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    if lhs_indices is None and rhs_indices is None:
        return matmul(a, b, stream=stream)
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise ValueError(
            f"[gather_mm] Inputs must have at least two dimensions, got {shape_text(a.shape)} and "
            f"{shape_text(b.shape)}."
        )
    checked_shape("gather_mm", a.shape[-2:], b.shape[-2:])
    dtype = checked_dtype("gather_mm", a.dtype, b.dtype)
    left = None if lhs_indices is None else to_array(lhs_indices)
    right = None if rhs_indices is None else to_array(rhs_indices)
    given = [None if one is None else (one.shape, one.dtype) for one in (left, right)]
    pairs = gathered_shape("gather_mm", a.shape, b.shape, given[0], given[1])
    nodes = [one._n if one.dtype is dtype else ops.astype(one, dtype, stream=stream)._n for one in (a, b)]
    nodes += [one._n for one in (left, right) if one is not None]
    attrs = (left is not None, right is not None, bool(sorted_indices))
    where = stream if stream is None else as_stream(stream)
    return record(GATHER_MM, tuple(nodes), (*pairs, a.shape[-2], b.shape[-1]), dtype, attrs, None, where)


@GATHER_MM.rule("vjp")
def _gather_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    left, right, ordered = node.attrs
    s = node.stream
    check_indices("gather_mm", primals, 2)
    a, b, *rest = primals
    lhs = rest.pop(0) if left else None
    rhs = rest.pop(0) if right else None
    pairs = node.shape[:-2]
    chosen = ops.broadcast_to(in_turn(b.shape[:-2], s) if rhs is None else rhs, pairs, stream=s)
    turned = ops.swapaxes(b, -1, -2, stream=s)
    of_a = of_b = None
    if wanted(primals, 0):
        of_a = gather_mm(cotangent, turned, None, chosen, sorted_indices=ordered, stream=s)
        of_a = spread_back(of_a, a, lhs, s)
    if wanted(primals, 1):
        rows = gathered(a, lhs, pairs, s)
        of_b = spread_back(matmul(ops.swapaxes(rows, -1, -2, stream=s), cotangent, stream=s), b, rhs, s)
    return (of_a, of_b, *(None for one in (lhs, rhs) if one is not None))


def segmented_mm(a: array, b: array, /, segments: array, *, stream: Any = None) -> array:
    """Multiply segments of the inner axis by themselves: ``out[s] = a[:, from_s:to_s] @ b[from_s:to_s]``.

    Args:
        a: ``[m, k]``.
        b: ``[k, n]``.
        segments: ``[..., 2]`` integers: where each segment begins, and the place behind its end.
        stream: where it is computed.

    Returns:
        ``[..., m, n]`` of the type that a and b promote to; zeros where a segment is empty.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    if len(a.shape) != 2 or len(b.shape) != 2:
        raise ValueError(
            f"[segmented_mm] Batched matrices are not supported, got {shape_text(a.shape)} and {shape_text(b.shape)}."
        )
    shape = checked_shape("segmented_mm", a.shape, b.shape)
    dtype = checked_dtype("segmented_mm", a.dtype, b.dtype)
    if not segments.shape or segments.shape[-1] != 2:
        raise ValueError(f"[segmented_mm] Expected segments of shape [..., 2], got {shape_text(segments.shape)}.")
    if segments.dtype.is_inexact or segments.dtype is dtypes.bool_:
        raise ValueError(f"[segmented_mm] Expected integer segments, got {segments.dtype}.")
    nodes = [one._n if one.dtype is dtype else ops.astype(one, dtype, stream=stream)._n for one in (a, b)]
    where = stream if stream is None else as_stream(stream)
    bounds = ops.astype(segments, dtypes.int64, stream=stream)
    return record(SEGMENTED_MM, (*nodes, bounds._n), (*segments.shape[:-1], *shape), dtype, None, None, where)


def _run_segmented(node: Node, a: torch.Tensor, b: torch.Tensor, segments: torch.Tensor) -> torch.Tensor:
    # The bounds are known to the device alone: each segment is the product with all else of a set to zero.
    places = torch.arange(a.shape[1], device=a.device)
    bounds = segments.reshape(-1, 2)
    inside = (places >= bounds[:, :1]) & (places < bounds[:, 1:])
    zero = torch.zeros((), dtype=a.dtype, device=a.device)
    if a.device.type == "cpu":
        parts = [product(a[:, one:two], b[one:two]) for one, two in bounds.tolist()]
        return torch.stack(parts).view(node.shape) if parts else a.new_zeros(node.shape)
    return product(torch.where(inside[:, None, :], a, zero), torch.where(inside[:, :, None], b, zero)).view(node.shape)


SEGMENTED_MM = Primitive("SegmentedMM", _run_segmented)


@SEGMENTED_MM.rule("vjp")
def _segmented_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    s = node.stream
    check_indices("segmented_mm", primals, 2)
    a, b, segments = primals
    places = ops.arange(a.shape[1], dtype=dtypes.int64, stream=s)
    bounds = ops.reshape(segments, (-1, 2), stream=s)
    first, last = ops.split(bounds, 2, axis=1, stream=s)
    inside = ops.logical_and(ops.greater_equal(places, first, stream=s), ops.less(places, last, stream=s), stream=s)
    upper = ops.reshape(cotangent, (-1, *cotangent.shape[-2:]), stream=s)
    of_a = matmul(upper, ops.swapaxes(b, 0, 1, stream=s), stream=s)
    of_b = matmul(ops.swapaxes(a, 0, 1, stream=s), upper, stream=s)
    zero = ops.zeros((), a.dtype, stream=s)
    of_a = ops.where(ops.expand_dims(inside, 1, stream=s), of_a, zero, stream=s)
    of_b = ops.where(ops.expand_dims(inside, 2, stream=s), of_b, zero, stream=s)
    return ops.sum(of_a, 0, stream=s), ops.sum(of_b, 0, stream=s), None


def block_masked_mm(
    a: array, b: array, /, block_size: int = 64, mask_out: array | None = None, mask_lhs: array | None = None,
    mask_rhs: array | None = None, *, stream: Any = None,
) -> array:  # fmt: skip
    """Multiply matrices whose blocks are masked: ``mask_out · ((mask_lhs · a) @ (mask_rhs · b))``.

    Args:
        a: ``[..., m, k]`` of an inexact type.
        b: ``[..., k, n]``.
        block_size: 32 or 64.
        mask_out: ``[..., ⌈m / block⌉, ⌈n / block⌉]``: boolean, or a factor of each block.
        mask_lhs: ``[..., ⌈m / block⌉, ⌈k / block⌉]``.
        mask_rhs: ``[..., ⌈k / block⌉, ⌈n / block⌉]``.
        stream: where it is computed.

    Returns:
        ``[..., m, n]`` of the type that both promote to.

    Raises:
        ValueError: shapes or types that do not fit, or another block size.
    """
    op = "block_masked_mm"
    if block_size not in (32, 64):
        raise ValueError(f"[{op}] Only block_size = 32 and 64 are supported, got {block_size}.")
    if len(a.shape) < 2 or len(b.shape) < 2:
        raise ValueError(
            f"[{op}] Inputs must have at least two dimensions, got {shape_text(a.shape)} and {shape_text(b.shape)}."
        )
    shape = checked_shape(op, a.shape, b.shape)
    dtype = checked_dtype(op, a.dtype, b.dtype)
    batch = shape[:-2]
    a = _masked(op, ops.astype(a, dtype, stream=stream), mask_lhs, block_size, batch, stream)
    b = _masked(op, ops.astype(b, dtype, stream=stream), mask_rhs, block_size, batch, stream)
    return _masked(op, matmul(a, b, stream=stream), mask_out, block_size, batch, stream)


def _masked(op: str, x: array, mask: array | None, block: int, batch: tuple[int, ...], stream: Any) -> array:
    """Return x with each block masked; masked blocks are zero whatever they held."""
    if mask is None:
        return x
    rows, columns = x.shape[-2:]
    expected = (math.ceil(rows / block), math.ceil(columns / block))
    if mask.shape[-2:] != expected:
        raise ValueError(
            f"[{op}] Expected a mask of shape {shape_text((*batch, *expected))}, got {shape_text(mask.shape)}."
        )
    if broadcast_shapes(mask.shape[:-2], batch) != batch:
        raise ValueError(f"[{op}] Mask of shape {shape_text(mask.shape)} does not broadcast to {shape_text(batch)}.")
    whole = ops.repeat(ops.repeat(mask, block, -2, stream=stream), block, -1, stream=stream)
    whole = whole[..., :rows, :columns]
    if mask.dtype is dtypes.bool_:
        return ops.where(whole, x, ops.zeros((), x.dtype, stream=stream), stream=stream)  # type: ignore[no-any-return]
    return ops.multiply(x, ops.astype(whole, x.dtype, stream=stream), stream=stream)  # type: ignore[no-any-return]
