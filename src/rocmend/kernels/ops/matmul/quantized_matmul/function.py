"""The public function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.formats import Format, as_int32, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

NAME = "quantized_matmul"


def quantized_matmul(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None = None,
    transpose: bool = True,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> torch.Tensor:
    """Multiply with quantized weights: ``x @ dequantize(w).T``, or ``x @ dequantize(w)``.

    Args:
        x: ``[..., m, k]`` or ``[k]``, float32, float16 or bfloat16, of any strides.
        w: ``[..., n, k * bits / 32]`` words, uint32 or int32; ``[..., k, n * bits / 32]`` where not transposed. Leading
            axes are broadcast against those of x.
        scales: A scale for each group of a row of w: a float type with affine, else uint8.
        biases: The biases of affine, of the type and shape of ``scales``.
        transpose: Whether w is multiplied transposed.
        group_size: Codes of a row that share a scale; None for the mode's own: affine 64, mxfp4, mxfp8 32, nvfp4 16.
        bits: Of a code; None for the mode's own (affine 4).
        mode: ``affine``, ``mxfp4``, ``mxfp8`` or ``nvfp4``.

    Returns:
        ``[..., m, n]``, contiguous, of the type of x; with affine of the type that x and ``scales`` promote to.

    Raises:
        UsageError: Shapes or types that do not fit.

    Sums are fp32. With more than 16 rows of half-precision x, weights are rounded to its type before the product.
    A row of x with numbers that are infinite, or of 2¹¹² (5e33) and more, may give NaN throughout.

    Cost: reads w, scales and biases once for few rows; 2·m·n·k operations.
    """
    out: torch.Tensor = _product((x, w, scales, biases), transpose, group_size, bits, mode)
    return out


@cached_plan
def _product(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    transpose: bool,
    group_size: int | None,
    bits: int | None,
    mode: str,
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls like this one."""
    return _plan(x, w, scales, biases, transpose, format_of(NAME, mode, bits, group_size))


def _plan(
    x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, transpose: bool, form: Format
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls like this one."""
    k, n = _check(x, w, scales, biases, transpose, form)
    dtype = torch.promote_types(x.dtype, scales.dtype) if form.affine else x.dtype
    vector = x.dim() == 1
    batch = 1
    for size in torch.broadcast_shapes(x.shape[:-2], w.shape[:-2]) if w.dim() > 2 else ():
        batch *= size
    rows = (1 if vector else x.shape[-2]) if w.dim() > 2 else (x.numel() // k if k else 0)
    problem = Problem(NAMES[dtype], *form, bool(transpose), batch, rows, n, k)
    wide = (x.unsqueeze(0) if vector else x).to(dtype)
    run = plan_of(implementation(OP, x.device, problem), wide, as_int32(w), scales, biases, form, problem)
    as_is = x.dtype == dtype and not vector

    def call(x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None) -> torch.Tensor:
        if as_is:
            plain: torch.Tensor = run(x, w, scales, biases, form, problem)
            return plain
        wide = (x.unsqueeze(0) if vector else x).to(dtype)
        out: torch.Tensor = run(wide, w, scales, biases, form, problem)
        return out.squeeze(-2) if vector else out

    return call


def _check(
    x: torch.Tensor,
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    transpose: bool,
    form: Format,
) -> tuple[int, int]:
    """Return the length of a sum and the number of columns, or say what does not fit."""
    name = "quantized_matmul"
    if x.dim() < 1 or w.dim() < 2:
        raise UsageError(name, f"expected x with 1 axis or more and w with 2 or more, got {x.dim()} and {w.dim()}.")
    if x.dtype not in (torch.float32, torch.float16, torch.bfloat16, torch.float64):
        raise UsageError(name, f"expected x of float32, float16 or bfloat16, got {x.dtype}.")
    expected = "a float type" if form.affine else "uint8"
    if scales.dtype.is_floating_point != form.affine or (not form.affine and scales.dtype != torch.uint8):
        raise UsageError(name, f"expected scales of {expected} with mode {form.mode}, got {scales.dtype}.")
    if form.affine != (biases is not None):
        raise UsageError(name, f"expected {'biases' if form.affine else 'no biases'} with mode {form.mode}.")
    wide = form.columns(w.shape[-1])
    if scales.shape[:-1] != w.shape[:-1] or scales.shape[-1] * form.group_size != wide:
        raise UsageError(
            name,
            f"expected scales of shape {(*w.shape[:-1], wide // form.group_size)} for w {tuple(w.shape)}, "
            f"got {tuple(scales.shape)}.",
            why=f"bits is {form.bits} and group_size {form.group_size}.",
        )
    if biases is not None and (biases.shape != scales.shape or biases.dtype != scales.dtype):
        raise UsageError(
            name,
            f"expected biases as scales, {tuple(scales.shape)} of {scales.dtype}, "
            f"got {tuple(biases.shape)} of {biases.dtype}.",
        )
    k, n = (wide, w.shape[-2]) if transpose else (w.shape[-2], wide)
    if x.shape[-1] != k:
        raise UsageError(
            name,
            f"expected x with a last axis of {k}, got {tuple(x.shape)}.",
            why=f"w {tuple(w.shape)} holds [{w.shape[-2]}, {wide}], {'to be transposed' if transpose else 'as it is'}.",
        )
    return k, n
