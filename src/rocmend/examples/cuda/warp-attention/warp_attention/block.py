"""A transformer's block out of the operations."""

import torch

from .ops import attention, rms_norm

torch.backends.cuda.matmul.allow_tf32 = True


class Block(torch.nn.Module):
    """Attention with a norm before it.

    Args:
        heads: How many heads.
        dim: Of each head.
    """

    def __init__(self, heads: int = 4, dim: int = 64) -> None:
        super().__init__()
        self.heads = heads
        self.dim = dim
        self.norm = torch.nn.Parameter(torch.ones(heads * dim))
        self.project = torch.nn.Linear(heads * dim, 3 * heads * dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return the block's output for ``[tokens, heads * dim]``."""
        q, k, v = self.project(rms_norm(x, self.norm)).view(-1, 3, self.heads, self.dim).permute(1, 2, 0, 3)
        out = attention(q.contiguous(), k.contiguous(), v.contiguous(), causal=True)
        return x + out.transpose(0, 1).reshape_as(x)


def compiled(block: Block) -> torch.nn.Module:
    """Return a block that is compiled when it is first called."""
    return torch.compile(block, mode="max-autotune", fullgraph=False)
