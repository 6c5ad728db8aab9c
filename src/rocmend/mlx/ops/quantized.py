"""Quantized weights: their formats, and there and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.core.errors import UsageError
from rocmend.kernels.common.formats import AFFINE_BITS, AFFINE_GROUPS, MODES, Format, format_of
from rocmend.kernels.ops.matmul.dequantize import reference as dequantizing
from rocmend.kernels.ops.matmul.quantize import reference as quantizing
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text, to_array
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.dtypes import promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["dequantize", "quantize"]


def format_for(op: str, mode: str, bits: int | None, group_size: int | None) -> Format:
    """Return a format, with MLX's defaults for what is None.

    Raises:
        ValueError: there is no such format; ``op`` opens the message.
    """
    if mode not in MODES:
        raise ValueError(f"[{op}] Invalid quantization mode {mode!r}: there are {', '.join(MODES)}.")
    try:
        return format_of(op, mode, bits, group_size)
    except UsageError:
        pass
    if mode == "affine":
        raise ValueError(
            f"[{op}] Affine quantization has {AFFINE_BITS} bits and groups of {AFFINE_GROUPS}, "
            f"got bits={bits} and group_size={group_size}."
        )
    found = format_of(op, mode)
    raise ValueError(
        f"[{op}] {mode} quantization requires bits={found.bits} and group_size={found.group_size}, "
        f"got bits={bits} and group_size={group_size}."
    )


def check_global_scale(op: str, mode: str, global_scale: array | None) -> None:
    """Check the scale of a whole tensor.

    Raises:
        ValueError: the mode has none, or it is not one number.
    """
    if global_scale is None:
        return
    if mode != "nvfp4":
        raise ValueError(f"[{op}] Global scale is only supported for 'nvfp4' quantization mode, got {mode!r}.")
    if len(global_scale.shape) and global_scale.shape != (1,):
        raise ValueError(f"[{op}] Global scale must be a scalar but got shape {shape_text(global_scale.shape)}.")


def check_words(op: str, form: Format, w: array, scales: array, biases: array | None) -> int:
    """Check the parts of a quantized matrix against each other and return its number of columns.

    Raises:
        ValueError: parts that are missing, of a wrong type, or do not fit.
    """
    if form.affine:
        if biases is None:
            raise ValueError(f"[{op}] Biases must be provided for affine quantization.")
        if not scales.dtype.is_float or not biases.dtype.is_float:
            raise ValueError(
                f"[{op}] Only real floating types are supported, but scales are {scales.dtype} and biases "
                f"{biases.dtype}."
            )
    else:
        if biases is not None:
            raise ValueError(f"[{op}] Biases must be null for quantization mode '{form.mode}'.")
        if scales.dtype is not dtypes.uint8:
            raise ValueError(f"[{op}] Scale type must be uint8 but received type {scales.dtype}.")
    if w.dtype is not dtypes.uint32:
        raise ValueError(f"[{op}] The quantized matrix must be uint32 but received type {w.dtype}.")
    for name, one in (("scales", scales), ("biases", biases)):
        if one is not None and one.shape[:-1] != w.shape[:-1] and one.shape[:-2] != w.shape[:-2]:
            raise ValueError(
                f"[{op}] Weight and {name} should have the same batch shape. Received weight with shape "
                f"{shape_text(w.shape)}, {name} with {shape_text(one.shape)}."
            )
    columns = form.columns(w.shape[-1]) if w.shape else 0
    for name, one in (("scales", scales), ("biases", biases)):
        if one is not None and (one.shape[:-1] != w.shape[:-1] or one.shape[-1] * form.group_size != columns):
            raise ValueError(
                f"[{op}] The shapes of the weight and {name} are incompatible based on bits and group_size: "
                f"{shape_text(w.shape)} and {shape_text(one.shape)} with group_size={form.group_size} and "
                f"bits={form.bits}."
            )
    return columns


def _run_quantize(node: Node, w: torch.Tensor, *scale: torch.Tensor) -> Any:
    form, dtype = node.attrs
    if w.dtype is torch.float64:
        w = w.float()
    place: Any = kernels if kernel_use.on_gpu(w) else quantizing
    words, scales, biases = place.quantize(
        w, form.group_size, form.bits, form.mode, global_scale=scale[0] if scale else None
    )
    words = words.view(torch.int32)
    return (words, scales) if biases is None else (words, scales.to(dtype.storage), biases.to(dtype.storage))


def _run_dequantize(node: Node, w: torch.Tensor, scales: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    form = node.attrs
    biases = rest[0] if form.affine else None
    scale = None if form.affine or not rest else rest[0]
    dtype = node.dtype.storage
    place: Any = kernels if kernel_use.on_gpu(w) else dequantizing
    out: torch.Tensor = place.dequantize(
        w, scales, biases, form.group_size, form.bits, form.mode, global_scale=scale, dtype=dtype
    )
    return out


QUANTIZE = Primitive("Quantize", _run_quantize, outputs=3)
DEQUANTIZE = Primitive("Dequantize", _run_dequantize)


def quantize(
    w: Any, /, group_size: int | None = None, bits: int | None = None, mode: str = "affine", *,
    global_scale: array | None = None, stream: Any = None,
) -> list[array]:  # fmt: skip
    """Quantize the last axis in groups.

    Affine: ``code = round((w - bias) / scale)`` with a scale and a bias for each group, such that its ends and zero
    are codes. The others are numbers of 4 bits (e2m1) or 8 (e4m3) with a scale of 8 bits for each group.

    Args:
        w: ``[..., rows, n]`` of a floating type; n a multiple of the group size.
        group_size: affine: 32, 64 (default) or 128; mxfp4, mxfp8: 32; nvfp4: 16.
        bits: affine: 1, 2, 3, 4 (default), 5, 6 or 8; mxfp4, nvfp4: 4; mxfp8: 8.
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.
        global_scale: one float32 of the whole tensor, for nvfp4.
        stream: where it is computed.

    Returns:
        Words ``[..., rows, n · bits / 32]`` uint32; scales ``[..., rows, n / group_size]``, of the type of w (affine)
        or uint8; for affine the biases, like the scales.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    w = to_array(w)
    form = format_for("quantize", mode, bits, group_size)
    if not w.dtype.is_float:
        raise ValueError(f"[quantize] Only real floating types can be quantized but w has type {w.dtype}.")
    if len(w.shape) < 2:
        raise ValueError(
            f"[quantize] The matrix to be quantized must have at least 2 dimensions but it has only {len(w.shape)}."
        )
    if w.shape[-1] % form.group_size:
        raise ValueError(
            f"[quantize] The last dimension of the matrix must be divisible by the group size {form.group_size}, "
            f"got shape {shape_text(w.shape)}."
        )
    check_global_scale("quantize", mode, global_scale)
    inputs: tuple[Node, ...] = (w._n,)
    if global_scale is not None:
        inputs += (ops.astype(global_scale, dtypes.float32, stream=stream)._n,)
    rows, n = w.shape[:-1], w.shape[-1]
    outputs = [((*rows, form.words(n)), dtypes.uint32)]
    outputs += (
        [((*rows, n // form.group_size), w.dtype)] * 2
        if form.affine
        else [((*rows, n // form.group_size), dtypes.uint8)]
    )
    where = stream if stream is None else as_stream(stream)
    return list(record_many(QUANTIZE, inputs, outputs, (form, w.dtype), None, where))


def dequantize(
    w: array, /, scales: array, biases: array | None = None, group_size: int | None = None, bits: int | None = None,
    mode: str = "affine", global_scale: array | None = None, dtype: Dtype | None = None, *, stream: Any = None,
) -> array:  # fmt: skip
    """Return the values of a quantized matrix: ``scale · code + bias``, or ``scale · number``.

    Args:
        w: words ``[..., rows, n · bits / 32]``, uint32.
        scales: ``[..., rows, n / group_size]``, of a floating type (affine) or uint8.
        biases: like the scales for affine, else None.
        group_size: as for ``quantize``.
        bits: as for ``quantize``.
        mode: as for ``quantize``.
        global_scale: what nvfp4 weights were quantized with.
        dtype: of the result; None for that of the scales (affine) or bfloat16.
        stream: where it is computed.

    Returns:
        ``[..., rows, n]``.

    Raises:
        ValueError: shapes, types or parameters that do not fit.
    """
    form = format_for("dequantize", mode, bits, group_size)
    if len(w.shape) < 2:
        raise ValueError(
            f"[dequantize] The matrix to be dequantized must have at least 2 dimensions but it has only {len(w.shape)}."
        )
    columns = check_words("dequantize", form, w, scales, biases)
    check_global_scale("dequantize", mode, global_scale)
    made = promote(scales.dtype, biases.dtype) if biases is not None else dtypes.bfloat16 if dtype is None else dtype
    wanted = made if dtype is None else dtype
    if not wanted.is_float:
        raise ValueError(f"[dequantize] Only real floating types are supported but output dtype == {wanted}.")
    where = stream if stream is None else as_stream(stream)
    inputs = [w._n, scales._n]
    if biases is not None:
        inputs = [w._n, *(ops.astype(one, made, stream=stream)._n for one in (scales, biases))]
    elif global_scale is not None:
        inputs.append(ops.astype(global_scale, dtypes.float32, stream=stream)._n)
    out = record(DEQUANTIZE, tuple(inputs), (*w.shape[:-1], columns), made, form, None, where)
    return out if wanted is made else ops.astype(out, wanted, stream=stream)


@DEQUANTIZE.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    form, s = node.attrs, node.stream
    if not form.affine:
        return (None,) * len(primals)
    w, scales, biases = primals
    return (None, *group_gradients(cotangent, w, scales, biases, form, s))


def group_gradients(
    cotangent: array, w: array, scales: array, biases: array, form: Format, stream: Any
) -> tuple[array, array]:
    """Return the gradients of scales and biases, given that of the values."""
    grouped = (*scales.shape, form.group_size)
    upper = ops.reshape(cotangent, grouped, stream=stream)
    codes = dequantize(
        w, ops.ones_like(scales, stream=stream), ops.zeros_like(biases, stream=stream),
        form.group_size, form.bits, stream=stream,
    )  # fmt: skip
    of_scales = ops.sum(
        ops.multiply(upper, ops.reshape(codes, grouped, stream=stream), stream=stream), -1, stream=stream
    )
    of_biases = ops.sum(upper, -1, stream=stream)
    return ops.astype(of_scales, scales.dtype, stream=stream), ops.astype(of_biases, biases.dtype, stream=stream)
