"""The public functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.common.formats import Format, as_int32, format_of
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.matmul.quantized_projections import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

Weights = tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]


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
    found: tuple[torch.Tensor, ...] = _call("quantized_matmul_many", x, tuple(weights), group_size, bits, mode)
    return found


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
    if gate[0].shape != up[0].shape:
        raise UsageError(
            "quantized_swiglu", f"expected gate and up of one shape, got {tuple(gate[0].shape)}, {tuple(up[0].shape)}."
        )
    found: torch.Tensor = _call("quantized_swiglu", x, (gate, up), group_size, bits, mode)
    return found


def _call(
    name: str, x: torch.Tensor, weights: tuple[Weights, ...], group_size: int | None, bits: int | None, mode: str
) -> Any:
    if torch.is_grad_enabled() and x.requires_grad:
        raise UsageError(
            name, "expected x without a gradient.", next_step="Train with quantized_matmul, one product after another."
        )
    tensors = (x, *[one for triple in weights for one in triple])
    return _projected(tensors, name, len(weights), group_size, bits, mode)


@cached_plan
def _projected(x: torch.Tensor, *more: Any) -> Callable[..., Any]:
    """Check the arguments and plan calls with such tensors.

    Args:
        x: See ``quantized_matmul_many``.
        more: Words, scales and biases of each weight, one after another; the function's name, how many weights there
            are, and the options.
    """
    *flat, name, count, group_size, bits, mode = more
    weights = _triples(flat, count)
    form = format_of(name, mode, bits, group_size)
    _check(name, x, weights, form)
    depth = x.shape[-1]
    problem = Problem(
        NAMES[x.dtype], *form, name == "quantized_swiglu", count, x.numel() // depth if depth else 0,
        sum(w.shape[0] for w, _, _ in weights), depth,
    )  # fmt: skip
    words = tuple([(as_int32(w), *rest) for w, *rest in weights])
    run = plan_of(implementation(OP, x.device, problem), x, words, form, problem)

    def call(x: torch.Tensor, *flat: Any) -> Any:
        words = tuple([(as_int32(w), scales, biases) for w, scales, biases in _triples(flat, count)])
        return run(x, words, form, problem)

    return call


def _triples(flat: Sequence[Any], count: int) -> tuple[Weights, ...]:
    """Return words, scales and biases of each weight."""
    return tuple([(flat[first], flat[first + 1], flat[first + 2]) for first in range(0, 3 * count, 3)])


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
        for one in (scales, biases) if form.affine else (scales,):
            if one is None or tuple(one.shape) != shape or one.dtype != wanted:
                got = "none" if one is None else f"{tuple(one.shape)} {one.dtype}"
                raise UsageError(name, f"expected scales{' and biases' * form.affine} {shape} of {wanted}, got {got}.")
        if biases is not None and not form.affine:
            raise UsageError(name, f"expected no biases with mode {form.mode}.")
