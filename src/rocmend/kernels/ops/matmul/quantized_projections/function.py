"""The public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.common.formats import Format, as_int32, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.matmul.quantized_projections import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

Weights = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


class Norm(NamedTuple):
    """An RMSNorm of x before the products.

    Args:
        residual: Added to x first, or None.
        weight: Of the normalisation, or None.
        eps: Added to the mean of squares.
        keep: Whether the normalised x is returned, too.
    """

    residual: torch.Tensor | None
    weight: torch.Tensor | None
    eps: float
    keep: bool


def quantized_matmul_many(
    x: torch.Tensor,
    weights: Sequence[Weights],
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> tuple[torch.Tensor, ...]:
    """Multiply one x with several quantized weights: ``x @ dequantize(w).T`` for each.

    Args:
        x: ``[..., k]``, float32, float16 or bfloat16, of any strides.
        weights: One or more of words ``[n, k * bits / 32]``, uint32 or int32, scales ``[n, k / group_size]`` (affine:
            of the type of x; else uint8) and biases like them, or None. All are of one format, n may differ.
        group_size: As for ``quantized_matmul``.
        bits: As for ``quantized_matmul``.
        mode: As for ``quantized_matmul``.

    Returns:
        ``[..., n]`` for each, contiguous, of the type of x.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    A row of x with numbers that are infinite, or of 2¹¹² (5e33) and more, may give NaN throughout.

    Cost: as the products; one launch for one row of x with affine codes of 2, 4 or 8 bits, on NVIDIA GPUs up to 8 rows.
    """
    return _call("quantized_matmul_many", x, tuple(weights), (group_size, bits, mode))


def quantized_swiglu(
    x: torch.Tensor,
    gate: Weights,
    up: Weights,
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
) -> torch.Tensor:
    """Compute ``silu(x @ gate.T) * (x @ up.T)`` with quantized weights.

    Args:
        x: ``[..., k]``, float32, float16 or bfloat16, of any strides.
        gate: Words, scales and biases (or None) as for ``quantized_matmul_many``.
        up: The same, of the same shapes.
        group_size: As for ``quantized_matmul``.
        bits: As for ``quantized_matmul``.
        mode: As for ``quantized_matmul``.

    Returns:
        ``[..., n]``, contiguous, of the type of x. Both products are rounded to it; so are, in one launch, the sigmoid
        and silu.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: as ``quantized_matmul_many``.
    """
    return _call("quantized_swiglu", x, (gate, up), (group_size, bits, mode), gated=True)[0]


def rms_norm_projections(
    x: torch.Tensor,
    norm_weight: torch.Tensor | None,
    eps: float,
    weights: Sequence[Weights],
    group_size: int | None = None,
    bits: int | None = None,
    mode: str = "affine",
    *,
    residual: torch.Tensor | None = None,
    gated: bool = False,
    keep: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Multiply ``rms_norm(x + residual, norm_weight, eps)`` with quantized matrices, or with a gated pair.

    Args:
        x: As for ``quantized_matmul_many``.
        norm_weight: ``[k]`` of the type of x, or None.
        eps: Added to the mean of squares.
        weights: As for ``quantized_matmul_many``; gate and up where ``gated``.
        group_size: As for ``quantized_matmul``.
        bits: As for ``quantized_matmul``.
        mode: As for ``quantized_matmul``.
        residual: Of the shape and type of x, added to it first; or None.
        gated: Whether ``silu(x @ gate.T) * (x @ up.T)`` is computed, as by ``quantized_swiglu``.
        keep: Whether the normalised x is returned, too.

    Returns:
        The products, or the gated product; then ``x + residual`` where there is a residual, and the normalised x if it
        is kept. All are contiguous, of the type of x, and rounded as by ``add_rms_norm`` and the products one after
        another; squares may be summed in another order.

    Raises:
        UsageError: Shapes or types that do not fit, or a gradient is asked for.

    Cost: as the products; one launch for one row of x with affine codes of 2, 4 or 8 bits; before a large gated pair
    the norm is a launch of its own on NVIDIA GPUs and GPUs of 64 lanes a wavefront.
    """
    norm = Norm(residual, norm_weight, float(eps), bool(keep))
    return _call("rms_norm_projections", x, tuple(weights), (group_size, bits, mode), norm, gated=gated)


def _call(
    name: str,
    x: torch.Tensor,
    weights: tuple[Weights, ...],
    form: tuple[int | None, int | None, str],
    norm: Norm | None = None,
    *,
    gated: bool = False,
) -> tuple[torch.Tensor, ...]:
    residual, norm_weight, *rest = norm or (None, None)
    if torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (x, residual, norm_weight)
    ):
        raise UsageError(
            name, "expected x without a gradient.", next_step="Train with quantized_matmul, one product after another."
        )
    if gated and (len(weights) != 2 or weights[0][0].shape != weights[1][0].shape):
        shapes = ", ".join(str(tuple(w.shape)) for w, _, _ in weights)
        raise UsageError(name, f"expected gate and up of one shape, got {shapes}.")
    tensors = (x, residual, norm_weight, *[tensor for triple in weights for tensor in triple])
    found: tuple[torch.Tensor, ...] = _projected(tensors, name, len(weights), bool(gated), tuple(rest), *form)
    return found


@cached_plan
def _projected(
    x: torch.Tensor, residual: torch.Tensor | None, norm_weight: torch.Tensor | None, *more: Any
) -> Callable[..., tuple[torch.Tensor, ...]]:
    """Check the arguments and plan calls with such tensors.

    Args:
        x: See ``rms_norm_projections``.
        residual: Likewise.
        norm_weight: Likewise.
        more: Words, scales and biases of each weight, one after another; the function's name, how many weights there
            are, whether they are a gated pair, ``eps, keep`` of a norm, and the format.
    """
    *flat, name, count, gated, options, group_size, bits, mode = more
    weights = _triples(flat, count)
    form = format_of(name, mode, bits, group_size)
    _check(name, x, weights, form)
    _check_norm(name, x, residual, norm_weight)
    depth = x.shape[-1]
    problem = Problem(
        NAMES[x.dtype], *form, gated, count, x.numel() // depth if depth else 0,
        sum(w.shape[0] for w, _, _ in weights), depth, bool(options), residual is not None,
    )  # fmt: skip

    def given(x: Any, residual: Any, norm_weight: Any, *flat: Any) -> tuple[Any, ...]:
        words = tuple([(as_int32(w), scales, biases) for w, scales, biases in _triples(flat, count)])
        return x, words, form, problem, Norm(residual, norm_weight, *options) if options else None

    run = plan_of(implementation(OP, x.device, problem), *given(x, residual, norm_weight, *flat))
    return lambda *tensors: run(*given(*tensors))


def _triples(flat: Sequence[Any], count: int) -> tuple[Weights, ...]:
    """Return words, scales and biases of each weight."""
    return tuple([(flat[first], flat[first + 1], flat[first + 2]) for first in range(0, 3 * count, 3)])


def _check_norm(name: str, x: torch.Tensor, residual: torch.Tensor | None, norm_weight: torch.Tensor | None) -> None:
    for tensor, what, shape in ((residual, "residual", x.shape), (norm_weight, "norm_weight", x.shape[-1:])):
        if tensor is not None and (tensor.shape != shape or tensor.dtype != x.dtype):
            raise UsageError(
                name, f"expected {what} {tuple(shape)} of {x.dtype}, got {tuple(tensor.shape)} {tensor.dtype}."
            )


def _check(name: str, x: torch.Tensor, weights: tuple[Weights, ...], form: Format) -> None:
    if x.dim() < 1 or NAMES.get(x.dtype) not in BYTES:
        raise UsageError(name, f"expected x of {', '.join(BYTES)} with 1 axis or more, got {x.dtype}, {x.dim()} axes.")
    if not weights:
        raise UsageError(name, "expected one product or more, got none.")
    wanted = x.dtype if form.affine else torch.uint8
    for w, scales, biases in weights:
        if w.dim() != 2 or w.dtype not in (torch.int32, torch.uint32) or form.columns(w.shape[-1]) != x.shape[-1]:
            raise UsageError(
                name,
                f"expected words [n, {form.words(x.shape[-1])}] of int32 or uint32, got {tuple(w.shape)} {w.dtype}.",
                why=f"x has a last axis of {x.shape[-1]}, and a code {form.bits} bits.",
            )
        if x.shape[-1] % form.group_size:
            raise UsageError(
                name, f"expected K to be a multiple of the group size {form.group_size}, got {x.shape[-1]}."
            )
        shape = (w.shape[0], x.shape[-1] // form.group_size)
        for tensor in (scales, biases) if form.affine else (scales,):
            if tensor is None or tuple(tensor.shape) != shape or tensor.dtype != wanted:
                got = "none" if tensor is None else f"{tuple(tensor.shape)} {tensor.dtype}"
                raise UsageError(name, f"expected scales{' and biases' * form.affine} {shape} of {wanted}, got {got}.")
        if biases is not None and not form.affine:
            raise UsageError(name, f"expected no biases with mode {form.mode}.")
