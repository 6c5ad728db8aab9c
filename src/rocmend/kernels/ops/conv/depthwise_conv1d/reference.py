"""The reference: torch's grouped convolution."""

from __future__ import annotations

import torch


def depthwise_conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    state: torch.Tensor | None = None,
    activation: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Convolve each channel with its taps, after the state; half types are computed in fp32."""
    taps = weight.shape[1]
    wide = torch.float32 if x.dtype in (torch.float16, torch.bfloat16) else x.dtype
    before = x.new_zeros(x.shape[0], taps - 1, x.shape[2]) if state is None else state.to(x.dtype)
    full = torch.cat([before, x], 1)
    times, taps_first = x.shape[1], weight.to(wide).t()
    y = torch.zeros_like(x, dtype=wide)
    for k in range(taps):
        y = y + taps_first[k] * full[:, k : k + times].to(wide)
    if bias is not None:
        y = y + bias.to(wide)
    if activation == "silu":
        y = y * torch.sigmoid(y)
    return y.to(x.dtype), full[:, x.shape[1] :]


def depthwise_conv1d_gradients(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str | None,
    grad: torch.Tensor,
    state_grad: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """Return the gradients of x, weight, bias (None without one) and state, by autograd."""
    wide = torch.float64 if x.dtype == torch.float64 else torch.float32
    with torch.enable_grad():
        leaves = [tensor.detach().to(wide).requires_grad_() for tensor in (x, weight)]
        shift = None if bias is None else bias.detach().to(wide).requires_grad_()
        before = x.new_zeros(x.shape[0], weight.shape[1] - 1, x.shape[2]) if state is None else state
        before = before.detach().to(wide).requires_grad_()
        y, after = depthwise_conv1d(leaves[0], leaves[1], shift, state=before, activation=activation)
        total = (y * grad.to(wide)).sum()
        if state_grad is not None:
            total = total + (after * state_grad.to(wide)).sum()
        wanted = [*leaves, *([] if shift is None else [shift]), before]
        found = torch.autograd.grad(total, wanted, allow_unused=True)
    full = [torch.zeros_like(leaf) if one is None else one for leaf, one in zip(wanted, found, strict=True)]
    dx, dw, dstate = full[0].to(x.dtype), full[1].to(weight.dtype), full[-1].to(x.dtype)
    return dx, dw, None if bias is None else full[2].to(bias.dtype), dstate
