"""What the public functions hand to an implementation."""

from __future__ import annotations

from typing import NamedTuple

import torch

from rocmend.kernels.common.formats import Format
from rocmend.kernels.common.pairs import Pairs


class Weights(NamedTuple):
    """Quantized matrices, one for each expert.

    Args:
        words: ``[..., rows, words]``, int32.
        scales: ``[..., rows, groups]``.
        biases: Like the scales, or None.
    """

    words: torch.Tensor
    scales: torch.Tensor
    biases: torch.Tensor | None = None


class Arguments(NamedTuple):
    """Arguments that were checked.

    Args:
        x: ``[..., m, k]``.
        weights: Of the experts.
        up: Second weights of a fused gate, or None.
        pairs: Which matrix of x meets which expert.
        form: Of the weights.
        transpose: Whether it is ``x @ w.T``.
        ordered: Whether the experts of the pairs ascend.
        dtype: Of the result.
    """

    x: torch.Tensor
    weights: Weights
    up: Weights | None
    pairs: Pairs
    form: Format
    transpose: bool
    ordered: bool
    dtype: torch.dtype

    @property
    def n(self) -> int:
        """Columns of the result."""
        words = self.weights.words
        return words.shape[-2] if self.transpose else self.form.columns(words.shape[-1])

    @property
    def experts(self) -> int:
        """The number of matrices."""
        rows = self.weights.words.shape[-2] * self.weights.words.shape[-1]
        return self.weights.words.numel() // rows if rows else 0
