"""The references; half types are computed in fp32."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import wide


def cross_entropy(logits: Tensor, targets: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0) -> Tensor:
    """Return losses ``[…]``."""
    loss, _ = rows(logits.reshape(-1, logits.shape[-1]), targets.reshape(-1), ignore_index, label_smoothing)
    return loss.view(targets.shape)


def cross_entropy_backward(
    grad: Tensor, logits: Tensor, targets: Tensor, *, ignore_index: int = -100, label_smoothing: float = 0.0
) -> Tensor:
    """Return the gradient of the logits."""
    flat = logits.reshape(-1, logits.shape[-1])
    _, levels = rows(flat, targets.reshape(-1), ignore_index, label_smoothing)
    return rows_backward(grad.reshape(-1), flat, targets.reshape(-1), levels, ignore_index, label_smoothing).view(
        logits.shape
    )


def rows(x: Tensor, targets: Tensor, ignore_index: int, smoothing: float) -> tuple[Tensor, Tensor]:
    """Compute the kernel's results: losses, the largest logits and the logarithms of the sums relative to them."""
    values = wide(x)
    known = (targets >= 0) & (targets < x.shape[1])
    chosen = values.gather(1, torch.where(known, targets, 0).long()[:, None])[:, 0]
    top = (
        torch.nan_to_num(values.amax(-1), nan=0.0, posinf=0.0, neginf=0.0)
        if x.shape[1]
        else values.new_zeros(x.shape[:1])
    )
    low = torch.logsumexp(values - top[:, None], -1)  # a loss depends on gaps alone, which large logits would hide
    loss = low - (chosen - top)
    if smoothing:
        loss = (1 - smoothing) * loss + smoothing * (low - (values.mean(-1) - top))
    loss = torch.where(known, loss, float("nan"))
    return torch.where(targets == ignore_index, 0.0, loss), torch.stack((top, low), -1)


def rows_backward(
    grad: Tensor, x: Tensor, targets: Tensor, levels: Tensor, ignore_index: int, smoothing: float
) -> Tensor:
    """Return the gradient of x."""
    wanted = torch.full_like(wide(x), smoothing / x.shape[1])
    columns = torch.arange(x.shape[1], device=x.device)
    wanted = torch.where(columns == targets[:, None], wanted + (1 - smoothing), wanted)
    top, low = levels[:, :1], levels[:, 1:]
    dx = wide(grad)[:, None] * (torch.exp((wide(x) - top) - low) - wanted)
    return torch.where(targets[:, None] == ignore_index, 0.0, dx).to(x.dtype)
