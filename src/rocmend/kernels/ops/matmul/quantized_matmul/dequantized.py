"""Products of many rows: all weights are dequantized, and torch multiplies.

Calls that recur are captured with cuBLASLt in torch's place, which calls nothing else for such a product: a call of
torch takes the CPU 10 to 13 us, one of the library 3.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels import allocate
from rocmend.kernels.captured import library_call
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
    problem: Problem,
) -> Callable[..., torch.Tensor]:
    """Plan to dequantize all weights to the type of x, then to multiply with torch's matmul."""
    captured = _captured(x, w, problem)
    if captured is not None:
        return captured
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


def _captured(x: torch.Tensor, w: torch.Tensor, problem: Problem) -> Callable[..., torch.Tensor] | None:
    """Return the function of a call that is being captured; None if none is, or torch must multiply."""
    if w.dim() != 2 or not x.is_contiguous():
        return None
    rows, columns, depth = x.numel() // problem.depth, problem.columns, problem.depth
    if rows == 0 or columns % ALIGNED or depth % ALIGNED:
        return None
    matmul = library_call("matmul", x.dtype, rows, columns, depth, problem.transpose)
    if matmul is None:
        return None
    output = allocate.Output((*x.shape[:-1], columns), x.dtype, x.device)

    def call(
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor | None,
        form: Format,
        problem: Problem,
    ) -> torch.Tensor:
        right, out = _right((w, scales, biases), form, x.dtype, problem.transpose), output()
        matmul.record(right, x, out)
        return out

    return call


ALIGNED = 8
"""What rows are a multiple of where each begins at a multiple of 16 bytes."""


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
