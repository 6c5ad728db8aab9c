"""The operations: the extension's kernels on a GPU, plain PyTorch elsewhere."""

import torch

try:
    from . import _C
except ImportError:
    _C = None


def _fits(*tensors: torch.Tensor) -> bool:
    # The kernels have no gradients.
    if _C is None or torch.is_grad_enabled():
        return False
    return all(one.is_cuda and one.dtype == torch.float32 for one in tensors)


def rms_norm(x: torch.Tensor, weight: torch.Tensor, epsilon: float = 1e-6) -> torch.Tensor:
    """Return ``x * weight / sqrt(mean(x**2) + epsilon)`` over the last dimension."""
    if _fits(x, weight):
        return _C.rms_norm(x, weight, epsilon)
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + epsilon) * weight


def keep_above(x: torch.Tensor, threshold: float) -> torch.Tensor:
    """Return the values above a threshold, in any order."""
    if _fits(x):
        return _C.keep_above(x, threshold)
    return x[x > threshold]


def attention(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool = False) -> torch.Tensor:
    """Return ``softmax(q k^T / sqrt(dim)) v`` for tensors of shape ``[heads, tokens, dim]``."""
    scale = q.shape[-1] ** -0.5
    if _fits(q, k, v) and q.shape[-1] in (64, 128):
        return _C.attention(q, k, v, scale, causal)
    scores = q @ k.transpose(-1, -2) * scale
    if causal:
        queries, keys = scores.shape[-2:]
        unseen = torch.ones(queries, keys, dtype=torch.bool, device=q.device).triu(keys - queries + 1)
        scores = scores.masked_fill(unseen, float("-inf"))
    return scores.softmax(-1).nan_to_num() @ v
