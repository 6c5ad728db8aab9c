"""Products with quantized matrices, of all weights or of chosen ones."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.common.formats import Format
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, broadcast_shapes, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.dtypes import promote
from rocmend.mlx.ops.products import check_indices, product, sum_to, wanted
from rocmend.mlx.ops.quantized import check_global_scale, check_words, format_for, group_gradients
from rocmend.mlx.ops.quantized_values import values
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops
from rocmend.mlx.transforms import fallback

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["gather_qmm", "quantized_matmul"]

LARGE = 1 << 23  # weights that are unpacked at a time
_MOST = 8192
# by shapes, types and options: shape, type, attributes, whether scales and biases are of one type
_products: dict[Any, tuple[tuple[int, ...], Dtype, Any, bool]] = {}
_gathered: dict[Any, tuple[tuple[int, ...], Dtype, Any, bool]] = {}


def _run(node: Node, x: torch.Tensor, w: torch.Tensor, *parts: torch.Tensor) -> torch.Tensor:
    """Compute a recorded product: with the kernels where they take the device and type of x, else with torch."""
    transpose, form = node.attrs
    if kernel_use.fits(x):
        out: torch.Tensor = kernels.quantized_matmul(
            x, w, parts[0], parts[1] if form.affine else None, transpose, form.group_size, form.bits, form.mode
        )
        return out
    dtype = node.dtype.storage
    if transpose and w.ndim == 2:  # large ones a part of the columns at a time
        rows = max(1, LARGE // max(1, form.columns(w.shape[-1])))
        columns = [
            _multiplied(x, values(words, tuple(some), form, dtype).mT, dtype)
            for words, *some in zip(w.split(rows), *(one.split(rows) for one in parts), strict=True)
        ]
        return columns[0] if len(columns) == 1 else torch.cat(columns, -1)
    weights = values(w, parts, form, dtype)
    return _multiplied(x, weights.mT if transpose else weights, dtype)


def _multiplied(x: torch.Tensor, weights: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    return product(x.to(weights.dtype), weights).to(dtype)


def _run_gather(node: Node, x: torch.Tensor, w: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    transpose, form, left, right, ordered = node.attrs
    count = 2 if form.affine else 1
    parts, indices = rest[:count], list(rest[count:])
    lhs = indices.pop(0) if left else None
    rhs = indices.pop(0) if right else None
    if kernel_use.fits(x):
        out: torch.Tensor = kernels.gather_qmm(
            x, w, parts[0], parts[1] if form.affine else None, lhs, rhs, transpose, form.group_size, form.bits,
            form.mode, sorted_indices=ordered,
        )  # fmt: skip
        return out
    dtype = node.dtype.storage
    pairs = node.shape[:-2]
    lhs, rhs = (_every(one, side.shape[:-2], pairs, x.device) for one, side in ((lhs, x), (rhs, w)))
    matrices, words = x.reshape(-1, *x.shape[-2:]), w.reshape(-1, *w.shape[-2:])
    scales = [one.reshape(-1, *one.shape[-2:]) for one in parts]
    flat = matrices.new_empty((len(lhs), *node.shape[-2:]), dtype=dtype)
    for expert in rhs.unique().tolist():  # only chosen experts are unpacked
        mine = (rhs == expert).nonzero()[:, 0]
        weights = values(words[expert], tuple(one[expert] for one in scales), form, dtype)
        chosen = matrices[lhs[mine]].to(weights.dtype)
        flat[mine] = product(chosen, weights.mT if transpose else weights).to(dtype)
    return flat.view(node.shape)


def _every(index: torch.Tensor | None, batch: Any, pairs: Any, device: torch.device) -> torch.Tensor:
    """Return flat indices of matrices, one for each pair."""
    if index is None:
        index = torch.arange(math.prod(batch), device=device).view(batch)
    return index.expand(pairs).reshape(-1).long()


QUANTIZED_MATMUL = Primitive("QuantizedMatmul", _run)
GATHER_QMM = Primitive("GatherQMM", _run_gather)


def quantized_matmul(
    x: Any, w: array, /, scales: array, biases: array | None = None, transpose: bool = True,
    group_size: int | None = None, bits: int | None = None, mode: str = "affine", *, stream: Any = None,
) -> array:  # fmt: skip
    """Multiply with a quantized matrix: ``x @ dequantize(w).T``, or ``x @ dequantize(w)``.

    Args:
        x: ``[..., m, k]`` or ``[k]``, of a floating type.
        w: words ``[..., n, k · bits / 32]``; where not transposed ``[..., k, n · bits / 32]``; uint32.
        scales: a scale for each group of a row of w: of a floating type (affine) or uint8.
        biases: like the scales for affine, else None.
        transpose: whether w is multiplied transposed.
        group_size: as for ``quantize``.
        bits: as for ``quantize``.
        mode: as for ``quantize``.
        stream: where it is computed.

    Returns:
        ``[..., m, n]``, with affine of the type that x, scales and biases promote to, else of the type of x.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    if type(x) is not array:
        x = to_array(x)
    xn, wn, sn = x._n, w._n, scales._n
    key: Any
    if biases is None:
        key = (xn.shape, xn.dtype, wn.shape, wn.dtype, sn.shape, sn.dtype, transpose, group_size, bits, mode)
    else:
        bn = biases._n
        key = (
            xn.shape, xn.dtype, wn.shape, wn.dtype, sn.shape, sn.dtype, transpose, group_size, bits, mode,
            bn.shape, bn.dtype,
        )  # fmt: skip
    found = _products.get(key)
    if found is None:
        found = _infer(key, x, w, scales, biases)
    shape, dtype, attrs, mixed = found
    where = stream if stream is None else as_stream(stream)
    if biases is None:
        return record(QUANTIZED_MATMUL, (xn, wn, sn), shape, dtype, attrs, None, where)
    if mixed:
        sn, bn = _alike(scales, biases, stream)
    return record(QUANTIZED_MATMUL, (xn, wn, sn, bn), shape, dtype, attrs, None, where)


def gather_qmm(
    x: Any, w: array, /, scales: array, biases: array | None = None, lhs_indices: array | None = None,
    rhs_indices: array | None = None, transpose: bool = True, group_size: int | None = None, bits: int | None = None,
    mode: str = "affine", global_scale: array | None = None, *, sorted_indices: bool = False, stream: Any = None,
) -> array:  # fmt: skip
    """Multiply chosen matrices with chosen quantized ones: ``out[i] = x[lhs[i]] @ dequantize(w[rhs[i]]).T``.

    Args:
        x: ``[..., m, k]`` of a floating type.
        w: words ``[..., n, k · bits / 32]``; where not transposed ``[..., k, n · bits / 32]``; uint32.
        scales: a scale for each group of a row of w: of a floating type (affine) or uint8.
        biases: like the scales for affine, else None.
        lhs_indices: integers: which matrix of x, counted through its leading axes; None for each in turn.
        rhs_indices: which matrix of w. Both are broadcast, and must be in range.
        transpose: whether matrices of w are multiplied transposed.
        group_size: as for ``quantize``.
        bits: as for ``quantize``.
        mode: as for ``quantize``.
        global_scale: what nvfp4 weights were quantized with.
        sorted_indices: the indices ascend, which may be faster.
        stream: where it is computed.

    Returns:
        ``[indices..., m, n]``, of the type as for ``quantized_matmul``.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    if global_scale is not None:
        check_global_scale("gather_qmm", mode, global_scale)
    if lhs_indices is None and rhs_indices is None:
        out = quantized_matmul(x, w, scales, biases, transpose, group_size, bits, mode, stream=stream)
        return out if global_scale is None else _scaled(out, global_scale, stream)
    if type(x) is not array:
        x = to_array(x)
    xn, wn, sn = x._n, w._n, scales._n
    bn = None if biases is None else biases._n
    left = None if lhs_indices is None else to_array(lhs_indices)._n
    right = None if rhs_indices is None else to_array(rhs_indices)._n
    key = (
        xn.shape, xn.dtype, wn.shape, wn.dtype, sn.shape, sn.dtype, transpose, group_size, bits, mode,
        sorted_indices, None if bn is None else (bn.shape, bn.dtype),
        None if left is None else (left.shape, left.dtype), None if right is None else (right.shape, right.dtype),
    )  # fmt: skip
    found = _gathered.get(key)
    if found is None:
        found = _infer_gather(key, x, w, scales, biases)
    shape, dtype, attrs, mixed = found
    if mixed and biases is not None:
        sn, bn = _alike(scales, biases, stream)
    inputs = [xn, wn, sn]
    if bn is not None:
        inputs.append(bn)
    if left is not None:
        inputs.append(left)
    if right is not None:
        inputs.append(right)
    where = stream if stream is None else as_stream(stream)
    out = record(GATHER_QMM, tuple(inputs), shape, dtype, attrs, None, where)
    return out if global_scale is None else _scaled(out, global_scale, stream)


def _scaled(out: array, global_scale: array, stream: Any) -> array:
    """Apply the scale of all nvfp4 weights to a product: ``global_scale / (448 · 6)``."""
    factor = ops.multiply(ops.astype(global_scale, dtypes.float32, stream=stream), 1 / (448.0 * 6.0), stream=stream)
    wide = ops.multiply(ops.astype(out, dtypes.float32, stream=stream), factor, stream=stream)
    return ops.astype(wide, out.dtype, stream=stream)  # type: ignore[no-any-return]


def _alike(scales: array, biases: array, stream: Any) -> tuple[Node, Node]:
    dtype = promote(scales.dtype, biases.dtype)
    return ops.astype(scales, dtype, stream=stream)._n, ops.astype(biases, dtype, stream=stream)._n


def _checked(
    op: str, x: array, w: array, scales: array, biases: array | None, transpose: bool, form: Format
) -> tuple[int, Dtype, bool]:
    """Return the columns of the product, its type, and whether scales and biases differ in type."""
    if len(x.shape) < 1 or len(w.shape) < 2:
        raise ValueError(
            f"[{op}] Expected x with 1 dimension or more and w with 2 or more, got shapes {shape_text(x.shape)} and "
            f"{shape_text(w.shape)}."
        )
    wide = check_words(op, form, w, scales, biases)
    inner, outer = (wide, w.shape[-2]) if transpose else (w.shape[-2], wide)
    if x.shape[-1] != inner:
        raise ValueError(
            f"[{op}] The last dimension of the first input, of shape {shape_text(x.shape)}, does not match the "
            f"expanded quantized matrix ({inner}, {outer}) computed from shape {shape_text(w.shape)} with "
            f"group_size={form.group_size}, bits={form.bits} and transpose={str(transpose).lower()}."
        )
    dtype, mixed = x.dtype, False
    if biases is not None:
        dtype = promote(x.dtype, promote(scales.dtype, biases.dtype))
        mixed = scales.dtype is not biases.dtype
    if not dtype.is_float:
        raise ValueError(f"[{op}] Only real floating types are supported but x has type {x.dtype}.")
    return outer, dtype, mixed


def _infer(key: Any, x: array, w: array, scales: array, biases: array | None) -> Any:
    transpose, group_size, bits, mode = key[6:10]
    form = format_for("quantized_matmul", mode, bits, group_size)
    outer, dtype, mixed = _checked("quantized_matmul", x, w, scales, biases, transpose, form)
    batch = broadcast_shapes(x.shape[:-2], w.shape[:-2]) if len(w.shape) > 2 else x.shape[:-2]
    if len(_products) >= _MOST:
        _products.clear()
    found = _products[key] = ((*batch, *x.shape[-2:-1], outer), dtype, (bool(transpose), form), mixed)
    return found


def _infer_gather(key: Any, x: array, w: array, scales: array, biases: array | None) -> Any:
    transpose, group_size, bits, mode, ordered, _, left, right = key[6:]
    form = format_for("gather_qmm", mode, bits, group_size)
    if len(x.shape) < 2:
        raise ValueError(
            f"[gather_qmm] Input must have at least two dimensions but got input with shape {shape_text(x.shape)}."
        )
    outer, dtype, mixed = _checked("gather_qmm", x, w, scales, biases, transpose, form)
    pairs = gathered_shape("gather_qmm", x.shape, w.shape, left, right)
    if len(_gathered) >= _MOST:
        _gathered.clear()
    attrs = (bool(transpose), form, left is not None, right is not None, bool(ordered))
    found = _gathered[key] = ((*pairs, x.shape[-2], outer), dtype, attrs, mixed)
    return found


def gathered_shape(
    op: str, a: tuple[int, ...], b: tuple[int, ...], left: tuple[Any, Any] | None, right: tuple[Any, Any] | None
) -> tuple[int, ...]:
    """Return the shape of the pairs of matrices, of indices given as (shape, type).

    Raises:
        ValueError: indices that are no integers, or do not broadcast.
    """
    for one in (left, right):
        if one is not None and (one[1].is_inexact or one[1] is dtypes.bool_):
            raise ValueError(f"[{op}] Got indices with invalid dtype {one[1]}. Indices must be integral.")
    return broadcast_shapes(a[:-2] if left is None else left[0], b[:-2] if right is None else right[0])


@QUANTIZED_MATMUL.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    (transpose, form), s = node.attrs, node.stream
    x, w, scales = primals[:3]
    biases = primals[3] if form.affine else None
    _check_wanted("quantized_matmul", primals, form)
    of_x = None
    if wanted(primals, 0):
        of_x = quantized_matmul(
            cotangent, w, scales, biases, not transpose, form.group_size, form.bits, form.mode, stream=s
        )
        of_x = ops.astype(sum_to(of_x, x.shape, s), x.dtype, stream=s)
    if biases is None or not (wanted(primals, 2) or wanted(primals, 3)):
        return of_x, *[None] * (len(primals) - 1)
    a, b = (cotangent, x) if transpose else (x, cotangent)
    if w.ndim == 2:
        a, b = ops.reshape(a, (-1, a.shape[-1]), stream=s), ops.reshape(b, (-1, b.shape[-1]), stream=s)
    of_w = ops.matmul(ops.swapaxes(a, -1, -2, stream=s), b, stream=s)
    of_w = sum_to(of_w, (*w.shape[:-1], form.columns(w.shape[-1])), s)
    return of_x, None, *group_gradients(of_w, w, scales, biases, form, s)


def _check_wanted(op: str, primals: Any, form: Format) -> None:
    """Refuse derivatives that there are not.

    Raises:
        RuntimeError: one of quantized weights is asked for.
        ValueError: one of scales of 8 bits.
    """
    flags = getattr(primals, "wanted", ())
    if flags and flags[1]:
        raise RuntimeError(f"[{op}] There is no gradient of quantized weights.")
    if flags and flags[2] and not form.affine:
        raise ValueError(f"[{op}] There is no gradient of scales of 8 bits: only affine scales have one.")


@QUANTIZED_MATMUL.rule("jvp")
def _jvp(node: Node, primals: Any, tangents: Any, _: array) -> array:
    (transpose, form), s = node.attrs, node.stream
    biases = primals[3] if form.affine else None
    if any(tangent is not None for tangent in tangents[1:]):
        raise RuntimeError("[quantized_matmul] There is no forward derivative of weights, scales and biases.")
    return quantized_matmul(
        tangents[0], primals[1], primals[2], biases, transpose, form.group_size, form.bits, form.mode, stream=s
    )


@QUANTIZED_MATMUL.rule("vmap")
def _vmap(node: Node, arrays: Any, axes: Any) -> Any:
    x, w, *parts = arrays
    if axes[0] is None or any(axis is not None for axis in axes[1:]) or len(w.shape) > 2:
        size = next(one.shape[axis] for one, axis in zip(arrays, axes, strict=True) if axis is not None)
        return fallback.vmap(node, list(arrays), list(axes), size)
    (transpose, form), s = node.attrs, node.stream
    x = ops.moveaxis(x, axes[0], 0, stream=s)
    biases = parts[1] if form.affine else None
    out = quantized_matmul(x, w, parts[0], biases, transpose, form.group_size, form.bits, form.mode, stream=s)
    return out, 0


@GATHER_QMM.rule("vjp")
def _gather_vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    (transpose, form, left, right, ordered), s = node.attrs, node.stream
    x, w, scales = primals[:3]
    biases = primals[3] if form.affine else None
    rest = list(primals[4 if form.affine else 3 :])
    lhs = rest.pop(0) if left else None
    rhs = rest.pop(0) if right else None
    pairs = cotangent.shape[:-2]
    _check_wanted("gather_qmm", primals, form)
    check_indices("gather_qmm", primals, 4 if form.affine else 3)
    nothing = (None,) * (len(primals) - 1)
    chosen = in_turn(w.shape[:-2], s) if rhs is None else rhs
    of_x = gather_qmm(
        cotangent, w, scales, biases, None, ops.broadcast_to(chosen, pairs, stream=s), not transpose,
        form.group_size, form.bits, form.mode, sorted_indices=ordered, stream=s,
    )  # fmt: skip
    of_x = ops.astype(spread_back(of_x, x, lhs, s), x.dtype, stream=s)
    if biases is None or not (wanted(primals, 2) or wanted(primals, 3)):
        return of_x, *nothing
    rows = gathered(x, lhs, pairs, s)
    a, b = (cotangent, rows) if transpose else (rows, cotangent)
    of_w = ops.matmul(ops.swapaxes(a, -1, -2, stream=s), b, stream=s)
    values = ops.zeros((*w.shape[:-1], form.columns(w.shape[-1])), of_w.dtype, stream=s)
    of_w = spread_back(of_w, values, rhs, s)
    of_parts = group_gradients(of_w, w, scales, biases, form, s)
    return of_x, None, *of_parts, *(None for one in (lhs, rhs) if one is not None)


def in_turn(batch: tuple[int, ...], stream: Any) -> array:
    """Return the numbers of the matrices of a batch, in its shape."""
    count = ops.arange(math.prod(batch), dtype=dtypes.uint32, stream=stream)
    return ops.reshape(count, batch, stream=stream)  # type: ignore[no-any-return]


def gathered(x: array, index: array | None, pairs: tuple[int, ...], stream: Any) -> array:
    """Return the matrix of x of each pair."""
    if index is None:
        return ops.broadcast_to(x, (*pairs, *x.shape[-2:]), stream=stream)  # type: ignore[no-any-return]
    flat = ops.reshape(x, (-1, *x.shape[-2:]), stream=stream)
    index = ops.broadcast_to(index, pairs, stream=stream)
    return ops.take(flat, index, 0, stream=stream)  # type: ignore[no-any-return]


def spread_back(of_pairs: array, x: array, index: array | None, stream: Any) -> array:
    """Return the gradient of x, given that of the matrices that were taken from it: the sums over pairs."""
    if index is None:
        return sum_to(of_pairs, x.shape, stream)
    flat = ops.zeros((math.prod(x.shape[:-2]), *x.shape[-2:]), of_pairs.dtype, stream=stream)
    index = ops.reshape(ops.broadcast_to(index, of_pairs.shape[:-2], stream=stream), (-1,), stream=stream)
    rows = ops.reshape(of_pairs, (-1, *x.shape[-2:]), stream=stream)
    return ops.reshape(flat.at[index].add(rows), x.shape, stream=stream)  # type: ignore[no-any-return]
