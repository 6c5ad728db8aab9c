"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.conv.depthwise_conv1d.kernel import (
    forward_kernel,
    input_gradient_kernel,
    weight_gradient_kernel,
)
from rocmend.kernels.tuning import Config, config_for

NO_STRIDES = (0, 0, 0)


def _blocks(config: Config, times: int, channels: int) -> tuple[dict[str, object], int, int]:
    """Return the tile as constants, and the number of tiles along time and channels."""
    block_t = min(int(config.constants["BLOCK_T"]), 1 << max(times - 1, 0).bit_length())
    block_c = int(config.constants["BLOCK_C"])
    return {"BLOCK_T": block_t, "BLOCK_C": block_c}, -(-times // block_t), -(-channels // block_c)


def _config(x: torch.Tensor, times: int) -> Config:
    kind = "step" if times <= 8 else "long"
    return config_for("depthwise_conv1d", "tile", kind, executor.target_for(x.device))


def run(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    state: torch.Tensor | None = None,
    activation: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch the forward kernel; see ``function.depthwise_conv1d``."""
    batch, times, channels = x.shape
    taps = weight.shape[1]
    out = allocate.empty((batch, times, channels), dtype=x.dtype, device=x.device)
    new_state = allocate.empty((batch, taps - 1, channels), dtype=x.dtype, device=x.device)
    if times == 0:
        new_state.zero_() if state is None else new_state.copy_(state)
        return out, new_state
    _forward(x, weight, bias, state, None, out, new_state, activation)
    return out, new_state


def _forward(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    grad: torch.Tensor | None,
    out: torch.Tensor,
    new_state: torch.Tensor | None,
    activation: str | None,
) -> None:
    batch, times, channels = x.shape
    config = _config(x, times)
    constants, t_blocks, c_blocks = _blocks(config, times, channels)
    constants |= {
        "K": weight.shape[1], "SILU": activation == "silu", "HAS_BIAS": bias is not None,
        "HAS_STATE": state is not None, "BACKWARD": grad is not None,
    }  # fmt: skip
    launch(
        forward_kernel,
        (batch * t_blocks, c_blocks),
        (
            x, weight.contiguous(), bias, state, grad, out, new_state, times, channels, t_blocks, *x.stride(),
            *(NO_STRIDES if state is None else state.stride()), *(NO_STRIDES if grad is None else grad.stride()),
        ),
        constants,
        config,
    )  # fmt: skip


def depthwise_conv1d_gradients(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str | None,
    grad: torch.Tensor,
    state_grad: torch.Tensor | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """Launch the backward kernels: gradients of x, weight, bias and state."""
    batch, times, channels = x.shape
    taps = weight.shape[1]
    dx = allocate.empty_like(x)
    dstate = allocate.empty((batch, taps - 1, channels), dtype=x.dtype, device=x.device)
    if x.numel() == 0:
        dstate.zero_() if state_grad is None else dstate.copy_(state_grad)
        return dx, torch.zeros_like(weight), None if bias is None else torch.zeros_like(bias), dstate
    if activation == "silu":
        before = allocate.empty(x.shape, dtype=torch.float32, device=x.device)
        _forward(x, weight, bias, state, grad, before, None, activation)
        grad = before
    config = _config(x, times)
    constants, t_blocks, c_blocks = _blocks(config, times + taps - 1, channels)
    state_grad = None if state_grad is None else state_grad.contiguous()
    launch(
        input_gradient_kernel,
        (batch * t_blocks, c_blocks),
        (grad, weight.contiguous(), state_grad, dx, dstate, times, channels, t_blocks, *grad.stride()),
        {**constants, "K": taps, "HAS_STATE_GRAD": state_grad is not None},
        config,
    )
    constants, t_blocks, c_blocks = _blocks(config, times, channels)
    partial = allocate.empty((batch * t_blocks, taps + 1, channels), dtype=torch.float32, device=x.device)
    launch(
        weight_gradient_kernel,
        (batch * t_blocks, c_blocks),
        (
            x, state, grad, partial, times, channels, t_blocks, *x.stride(),
            *(NO_STRIDES if state is None else state.stride()), *grad.stride(),
        ),
        {**constants, "K": taps, "HAS_STATE": state is not None},
        config,
    )  # fmt: skip
    sums = partial.sum(0)
    return dx, sums[:taps].t().to(weight.dtype), None if bias is None else sums[taps].to(bias.dtype), dstate
