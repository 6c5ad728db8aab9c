"""Products of many rows: all weights are dequantized, and torch multiplies."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels.common.formats import Format
from rocmend.kernels.ops.matmul.quantized_matmul import Problem
from rocmend.kernels.plan_cache import Planner, cached


@Planner
def run(
    x: torch.Tensor,
    w: torch.Tensor,
    _scales: torch.Tensor,
    _biases: torch.Tensor | None,
    _form: Format,
    _problem: Problem,
) -> Callable[..., torch.Tensor]:
    """Plan to dequantize all weights to the type of x, then to multiply with torch's matmul."""
    # What torch's matmul does with two matrices, without its other cases.
    multiply: Callable[[torch.Tensor, torch.Tensor], torch.Tensor] = (
        torch.mm if x.dim() == w.dim() == 2 else torch.matmul
    )

    def call(
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor | None,
        form: Format,
        problem: Problem,
    ) -> torch.Tensor:
        return multiply(x, _right((w, scales, biases), form, x.dtype, problem.transpose))

    return call


@cached
def _right(
    w: torch.Tensor,
    scales: torch.Tensor,
    biases: torch.Tensor | None,
    form: Format,
    dtype: torch.dtype,
    transpose: bool,
) -> torch.Tensor:
    """Return the weights' values as the right factor."""
    from rocmend.kernels.ops.matmul.dequantize.host import run as dequantize

    values = dequantize(w, scales, biases, form, dtype, None)
    return values.transpose(-1, -2) if transpose else values
