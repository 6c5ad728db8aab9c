"""A call to be planned, as it goes from one plan to the next."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch

from rocmend.kernels.allocate import Output
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.quantized_attention import Problem
from rocmend.kernels.target import Target

Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]
"""Words, scales and biases."""
Mask = torch.Tensor | str | None
Computes = Callable[[torch.Tensor, Quantized, Quantized, Mask, torch.Tensor | None], torch.Tensor]
"""Computes calls that are alike, of q, k, v, the mask and lengths."""


def problem_of(q: torch.Tensor, k: Quantized, v: Quantized, mask: Mask, bits: int, group_size: int) -> Problem:
    """Return the problem that choices depend on."""
    # The only query sees all keys.
    masked = mask is not None and not (isinstance(mask, str) and q.shape[2] == 1)
    return Problem(
        NAMES[q.dtype], q.shape[0], q.shape[1], k[0].shape[1], q.shape[2], k[0].shape[2], q.shape[3],
        v[0].shape[3] * 32 // bits, bits, group_size, masked,
    )  # fmt: skip


class Asked(NamedTuple):
    """A call.

    Args:
        q: With dense rows.
        k: With dense rows, scales and biases of the same strides; so are v's.
        v: See k.
        scale: Factor of the scores.
        mask: See ``function.quantized_attention``, as lengths.
        lengths: See there.
        problem: What all these make.
        target: Where it runs.
        output: Allocates the result.
    """

    q: torch.Tensor
    k: Quantized
    v: Quantized
    scale: float
    mask: Mask
    lengths: torch.Tensor | None
    problem: Problem
    target: Target
    output: Output

    @property
    def shape(self) -> tuple[int, int, int, int]:
        """Of the result."""
        problem = self.problem
        return problem.batch, problem.heads, problem.queries, problem.value_dim

    def parts(self, splits: int) -> int:
        """Return how many rows of sums there are where keys are cut into so many parts."""
        problem = self.problem
        return problem.batch * problem.heads * problem.queries * splits
