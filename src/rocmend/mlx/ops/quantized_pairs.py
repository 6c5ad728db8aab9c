"""Products of which both sides are quantized."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.common.formats import GLOBAL_RANGE, Format
from rocmend.kernels.ops.matmul.dequantize import reference as dequantizing
from rocmend.kernels.ops.matmul.quantize import reference as quantizing
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record
from rocmend.mlx.ops.gathered import gather_mm
from rocmend.mlx.ops.products import matmul
from rocmend.mlx.ops.quantized import format_for
from rocmend.mlx.ops.quantized_products import gather_qmm, gathered_shape, quantized_matmul
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["gather_qqmm", "qqmm"]


def _run(node: Node, x: torch.Tensor, *scale: torch.Tensor) -> torch.Tensor:
    form: Format = node.attrs
    there = kernel_use.on_gpu(x)
    quantize: Any = kernels.quantize if there else quantizing.quantize
    dequantize: Any = kernels.dequantize if there else dequantizing.dequantize
    words, scales, _ = quantize(x, form.group_size, form.bits, form.mode, global_scale=scale[0] if scale else None)
    # Without the global scale numbers are exact in every type: a few bits, and a scale of a few bits.
    out: torch.Tensor = dequantize(words, scales, None, form.group_size, form.bits, form.mode, dtype=x.dtype)
    return out


ROUND_TRIP = Primitive("QuantizedRoundTrip", _run)


@ROUND_TRIP.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    """Let gradients through as if nothing had been rounded."""
    if len(primals) == 1:
        return (cotangent,)
    return _factored(cotangent, 1 / _factor(primals[1], node.stream), node.stream), None


@ROUND_TRIP.rule("jvp")
def _jvp(node: Node, primals: Any, tangents: Any, output: array) -> array:
    if tangents[0] is None:
        return ops.zeros_like(output, stream=node.stream)  # type: ignore[no-any-return]
    if len(primals) == 1:
        return tangents[0]  # type: ignore[no-any-return]
    return _factored(tangents[0], 1 / _factor(primals[1], node.stream), node.stream)


def _factor(global_scale: array, stream: Any) -> Any:
    return ops.multiply(ops.astype(global_scale, dtypes.float32, stream=stream), 1 / GLOBAL_RANGE, stream=stream)


def _factored(x: array, factor: Any, stream: Any) -> array:
    wide = ops.multiply(ops.astype(x, dtypes.float32, stream=stream), factor, stream=stream)
    return ops.astype(wide, x.dtype, stream=stream)  # type: ignore[no-any-return]


def _rounded(op: str, x: array, form: Format, global_scale: array | None, stream: Any) -> array:
    """Return the values that x is quantized to, without its global scale."""
    if x.shape[-1] % form.group_size:
        raise ValueError(
            f"[{op}] The last dimension must be divisible by the group size {form.group_size}, got shape "
            f"{shape_text(x.shape)}."
        )
    inputs: tuple[Node, ...] = (x._n,)
    matrix = x if len(x.shape) > 1 else ops.expand_dims(x, 0, stream=stream)
    if matrix is not x:
        return ops.squeeze(_rounded(op, matrix, form, global_scale, stream), 0, stream=stream)  # type: ignore[no-any-return]
    if global_scale is not None:
        inputs += (ops.astype(global_scale, dtypes.float32, stream=stream)._n,)
    where = stream if stream is None else as_stream(stream)
    return record(ROUND_TRIP, inputs, x.shape, x.dtype, form, None, where)


def _checked(
    op: str, x: array, w: array, scales: array | None, mode: str, sizes: tuple[int | None, int | None],
    scale_x: array | None, scale_w: array | None,
) -> Format:  # fmt: skip
    """Check all but the shapes of a product."""
    if mode == "affine":
        raise ValueError(f"[{op}] There are the modes nvfp4, mxfp8 and mxfp4, got {mode!r}.")
    form = format_for(op, mode, sizes[1], sizes[0])
    if scales is None and w.dtype is dtypes.uint32:
        raise ValueError(f"[{op}] Scales must be provided if second argument is quantized.")
    for name, one in (("first", x), ("second", w)):
        quantized = one is w and scales is not None
        if not quantized and (not one.dtype.is_float or one.dtype is dtypes.float64):
            raise ValueError(
                f"[{op}] Only real floating types except float64 are supported but {name} argument dtype == "
                f"{one.dtype}."
            )
    if mode != "nvfp4" and (scale_x is not None or scale_w is not None):
        raise ValueError(f"[{op}] Global scale is only supported for 'nvfp4' quantization mode.")
    if (scale_x is None) != (scale_w is None):
        raise ValueError(
            f"[{op}] For nvfp4 mode, either both global_scale_x and global_scale_w must be provided, or neither."
        )
    return form


def _finished(out: array, dtype: Any, scale_x: array | None, scale_w: array | None, stream: Any) -> array:
    if scale_x is not None and scale_w is not None:
        factor = ops.multiply(_factor(scale_x, stream), _factor(scale_w, stream), stream=stream)
        out = _factored(out, factor, stream)
    return out if out.dtype is dtype else ops.astype(out, dtype, stream=stream)


def qqmm(
    x: array, w: array, scales: array | None = None, group_size: int | None = None, bits: int | None = None,
    mode: str = "nvfp4", global_scale_x: array | None = None, global_scale_w: array | None = None, *,
    stream: Any = None,
) -> array:  # fmt: skip
    """Multiply ``x @ w.T`` with both quantized: x on the way, w too where it is not yet.

    Gradients take the rounding for the identity; w has one where it is given unquantized.

    Args:
        x: ``[..., m, k]`` of a floating type.
        w: ``[n, k]`` of a floating type, or words ``[n, k · bits / 32]`` uint32.
        scales: of w where it is quantized, ``[n, k / group_size]`` uint8.
        group_size: as for ``quantize``.
        bits: as for ``quantize``.
        mode: ``nvfp4``, ``mxfp8`` or ``mxfp4``.
        global_scale_x: the float32 that x is quantized with, for nvfp4.
        global_scale_w: the same of w; both or neither.
        stream: where it is computed.

    Returns:
        ``[..., m, n]`` of the type of x.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    x, w = to_array(x), to_array(w)
    form = _checked("qqmm", x, w, scales, mode, (group_size, bits), global_scale_x, global_scale_w)
    if len(w.shape) != 2 or not x.shape:
        raise ValueError(
            f"[qqmm] Only 2D inputs are supported, got shapes {shape_text(x.shape)} and {shape_text(w.shape)}."
        )
    if scales is None and x.shape[-1] != w.shape[-1]:
        raise ValueError(
            f"[qqmm] Last dimension of first input with shape {shape_text(x.shape)} must match last dimension of "
            f"second input with shape {shape_text(w.shape)}."
        )
    values = _rounded("qqmm", x, form, global_scale_x, stream)
    if scales is not None:
        out = quantized_matmul(values, w, scales, None, True, form.group_size, form.bits, form.mode, stream=stream)
    else:
        other = _rounded("qqmm", w, form, global_scale_w, stream)
        out = matmul(values, ops.swapaxes(other, -1, -2, stream=stream), stream=stream)
    return _finished(out, x.dtype, global_scale_x, global_scale_w, stream)


def gather_qqmm(
    x: array, w: array, /, scales: array | None = None, lhs_indices: array | None = None,
    rhs_indices: array | None = None, group_size: int | None = None, bits: int | None = None, mode: str = "nvfp4",
    global_scale_x: array | None = None, global_scale_w: array | None = None, *, sorted_indices: bool = False,
    stream: Any = None,
) -> array:  # fmt: skip
    """Multiply chosen matrices with both sides quantized: ``out[i] = x[lhs[i]] @ w[rhs[i]].T``; see ``qqmm``.

    Args:
        x: ``[..., m, k]`` of a floating type.
        w: ``[..., n, k]`` of a floating type, or words ``[..., n, k · bits / 32]`` uint32.
        scales: of w where it is quantized, ``[..., n, k / group_size]`` uint8.
        lhs_indices: integers: which matrix of x, counted through its leading axes; None for each in turn.
        rhs_indices: which matrix of w. Both are broadcast, and must be in range.
        group_size: as for ``quantize``.
        bits: as for ``quantize``.
        mode: ``nvfp4``, ``mxfp8`` or ``mxfp4``.
        global_scale_x: the float32 that x is quantized with, for nvfp4.
        global_scale_w: the same of w; both or neither.
        sorted_indices: the indices ascend, which may be faster.
        stream: where it is computed.

    Returns:
        ``[indices..., m, n]`` of the type of x.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    op = "gather_qqmm"
    x, w = to_array(x), to_array(w)
    form = _checked(op, x, w, scales, mode, (group_size, bits), global_scale_x, global_scale_w)
    if len(x.shape) < 2 or len(w.shape) < 2:
        raise ValueError(
            f"[{op}] Inputs must have at least two dimensions but got shapes {shape_text(x.shape)} and "
            f"{shape_text(w.shape)}."
        )
    left, right = (None if one is None else to_array(one) for one in (lhs_indices, rhs_indices))
    given = [None if one is None else (one.shape, one.dtype) for one in (left, right)]
    gathered_shape(op, x.shape, w.shape, given[0], given[1])
    values = _rounded(op, x, form, global_scale_x, stream)
    if scales is not None:
        out = gather_qmm(
            values, w, scales, None, left, right, True, form.group_size, form.bits, form.mode,
            sorted_indices=sorted_indices, stream=stream,
        )  # fmt: skip
    else:
        other = ops.swapaxes(_rounded(op, w, form, global_scale_w, stream), -1, -2, stream=stream)
        out = gather_mm(values, other, left, right, sorted_indices=sorted_indices, stream=stream)
    return _finished(out, x.dtype, global_scale_x, global_scale_w, stream)
