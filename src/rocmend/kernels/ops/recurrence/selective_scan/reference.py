"""The reference: step by step."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.common.reference import computed_in


def selective_scan(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None = None, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run Mamba's recurrence; half types are computed in fp32."""
    wide = computed_in(x.dtype)
    batch, times, channels = x.shape
    values, steps, rates, inward, outward = (tensor.to(wide) for tensor in (x, dt, a, b, c))
    now = torch.zeros(batch, channels, a.shape[1], dtype=wide, device=x.device) if state is None else state.to(wide)
    rows = []
    for t in range(times):
        change = (steps[:, t] * values[:, t])[..., None] * inward[:, t, None, :]
        now = now * torch.exp(steps[:, t, :, None] * rates) + change
        rows.append((now * outward[:, t, None, :]).sum(-1))
    y = torch.stack(rows, 1) if rows else values.new_zeros(x.shape)
    if d is not None:
        y = y + d.to(wide) * values
    return y.to(x.dtype), now


def selective_scan_gradients(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None, grad: Tensor,
    state_grad: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients of x, dt, a, b, c, d (None without d) and the state, by autograd."""
    wide = computed_in(x.dtype)
    before = x.new_zeros(x.shape[0], x.shape[2], a.shape[1]) if state is None else state
    given = [x, dt, a, b, c, *([] if d is None else [d]), before]
    with torch.enable_grad():
        leaves = [tensor.detach().to(wide).requires_grad_() for tensor in given]
        xs, dts, rates, inward, outward = leaves[:5]
        skip = None if d is None else leaves[5]
        y, after = selective_scan(xs, dts, rates, inward, outward, skip, state=leaves[-1])
        total = (y * grad.to(wide)).sum()
        if state_grad is not None:
            total = total + (after * state_grad.to(wide)).sum()
        found = torch.autograd.grad(total, leaves, allow_unused=True)
    full = [
        torch.zeros_like(leaf) if gradient is None else gradient for leaf, gradient in zip(leaves, found, strict=True)
    ]
    typed = [gradient.to(tensor.dtype) for gradient, tensor in zip(full[:-1], given[:-1], strict=True)]
    state_type = torch.float64 if wide == torch.float64 else torch.float32
    return (*typed, *([None] if d is None else []), full[-1].to(state_type))
