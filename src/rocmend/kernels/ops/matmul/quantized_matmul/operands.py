"""A problem's tensors as the kernels take them."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.kernels.common.rows import shares_memory
from rocmend.kernels.ops.matmul.quantized_matmul import Problem

TYPES = (None, torch.int32, None, None, None)
"""What the tensors of a launch are seen as: words may be given as uint32."""
Launches = Callable[[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor], None]
"""Launch the kernels for ``x, w, scales, biases, out``."""


class Operands:
    """A problem's tensors as the kernels take them: rows of x, batches of w, each with one stride."""

    def __init__(
        self,
        x: torch.Tensor,
        w: torch.Tensor,
        scales: torch.Tensor,
        biases: torch.Tensor | None,
        problem: Problem,
    ) -> None:
        self.problem = problem
        self.w, self.scales, self.biases = w, scales, biases
        if w.dim() == 2:
            self.shape = (*x.shape[:-1], problem.columns)
            self.x = _rows(x.reshape(1, problem.rows, problem.depth))
        else:
            batch = torch.broadcast_shapes(x.shape[:-2], w.shape[:-2])
            self.shape = (*batch, problem.rows, problem.columns)
            self.x = _rows(x.expand(*batch, *x.shape[-2:]).reshape(problem.batch, *x.shape[-2:]))
            if w.shape[:-2].numel() > 1:
                self.w, self.scales = _batched(w, batch), _batched(scales, batch)
                self.biases = None if biases is None else _batched(biases, batch)
            else:
                self.w, self.scales = w[(0,) * (w.dim() - 2)], scales[(0,) * (w.dim() - 2)]
                self.biases = None if biases is None else biases[(0,) * (w.dim() - 2)]
        self.w, self.scales = self.w.contiguous(), self.scales.contiguous()
        self.biases = None if self.biases is None else self.biases.contiguous()
        # Rows of w from one batch to the next.
        self.w_batch = self.w.shape[-2] if self.w.dim() > 2 else 0

    def unchanged(self, x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None) -> bool:
        """Return whether the kernels are given the tensors' own addresses."""
        same = shares_memory(self.x, x) and shares_memory(self.w, w) and shares_memory(self.scales, scales)
        return same and (biases is None or self.biases is None or shares_memory(self.biases, biases))


def _rows(x: torch.Tensor) -> torch.Tensor:
    return x if x.stride(-1) == 1 or x.shape[-1] == 1 else x.contiguous()


def _batched(tensor: torch.Tensor, batch: torch.Size) -> torch.Tensor:
    """Return [batch, rows, columns]; copied only where leading axes are broadcast in part."""
    return tensor.expand(*batch, *tensor.shape[-2:]).reshape(-1, *tensor.shape[-2:])
