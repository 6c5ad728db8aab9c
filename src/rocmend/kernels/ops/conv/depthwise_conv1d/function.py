"""The public functions."""

from __future__ import annotations

from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.op import beside
from rocmend.kernels.ops.conv.depthwise_conv1d import MOST_TAPS, OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation

OP_NAME = "depthwise_conv1d"


def _problem(x: torch.Tensor, weight: torch.Tensor) -> Problem:
    batch, times, channels = x.shape
    return Problem(NAMES[x.dtype], batch, times, channels, weight.shape[1])


class _Convolution(torch.autograd.Function):
    """Carries the gradients of x, weight, bias and state."""

    @staticmethod
    def forward(
        ctx: Any,
        x: torch.Tensor,
        weight: torch.Tensor,
        bias: torch.Tensor | None,
        state: torch.Tensor | None,
        activation: str | None,
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Convolve and keep what the backward needs."""
        ctx.save_for_backward(x, weight, bias, state)
        ctx.activation = activation
        ctx.set_materialize_grads(False)
        out: tuple[torch.Tensor, torch.Tensor] = implementation(OP, x.device, _problem(x, weight))(
            x, weight, bias, state=state, activation=activation
        )
        return out

    @staticmethod
    def backward(ctx: Any, *grads: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        """Return the gradients."""
        x, weight, bias, state = ctx.saved_tensors
        grad, state_grad = grads
        grad = torch.zeros_like(x) if grad is None else grad
        dx, dw, db, dstate = depthwise_conv1d_gradients(x, weight, bias, state, ctx.activation, grad, state_grad)
        return dx, dw, db, None if state is None else dstate.to(state.dtype), None


def depthwise_conv1d(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    *,
    state: torch.Tensor | None = None,
    activation: str | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Convolve each channel causally: ``y[t] = act(bias + Σ_k weight[:, k] · x_full[t + k])``, x_full = state, then x.

    Args:
        x: ``[B, T, C]``, float32, float16 or bfloat16; any strides. T = 1 is a step of decoding.
        weight: ``[C, K]``, the last tap for the newest time; K up to 32.
        bias: ``[C]``, or None.
        state: ``[B, K - 1, C]``, what came before x; zeros where None.
        activation: None or ``"silu"``, computed in fp32 before the one rounding.

    Returns:
        ``y`` ``[B, T, C]`` and the new state ``[B, K - 1, C]``, the last K - 1 times of x_full, both of the type of x.

    Raises:
        UsageError: Shapes or options that do not fit.

    Cost: reads and writes x once (taps come from the cache); 2 K operations an element.
    """
    convolved: tuple[torch.Tensor, torch.Tensor] = _convolved((x, weight, bias, state), activation)
    return convolved


@cached
def _convolved(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str | None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Check arguments and compute."""
    _check(x, weight, bias, state, activation)
    if torch.is_grad_enabled() and any(
        tensor is not None and tensor.requires_grad for tensor in (x, weight, bias, state)
    ):
        found: tuple[torch.Tensor, torch.Tensor] = _Convolution.apply(x, weight, bias, state, activation)  # type: ignore[no-untyped-call]  # torch's stub
        return found
    out: tuple[torch.Tensor, torch.Tensor] = implementation(OP, x.device, _problem(x, weight))(
        x, weight, bias, state=state, activation=activation
    )
    return out


def depthwise_conv1d_gradients(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str | None,
    grad: torch.Tensor,
    state_grad: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor]:
    """Return the gradients of ``depthwise_conv1d``: of x, weight, bias (None without one) and the state before x.

    Args:
        x: As in the forward.
        weight: As in the forward.
        bias: As in the forward.
        state: As in the forward.
        activation: As in the forward.
        grad: ``[B, T, C]``, gradient of y.
        state_grad: ``[B, K - 1, C]``, gradient of the new state, or None.

    Returns:
        Gradients of the types of x, weight, bias and x. Sums over times are made in fp32, in a fixed order.

    Raises:
        UsageError: Shapes or options that do not fit.

    Cost: reads x twice and grad twice, writes x's gradient once.
    """
    _check(x, weight, bias, state, activation)
    if grad.shape != x.shape:
        raise UsageError(OP_NAME, f"expected a gradient of shape {tuple(x.shape)}, got {tuple(grad.shape)}.")
    run = implementation(OP, x.device, _problem(x, weight))
    gradients = beside(run, "depthwise_conv1d_gradients")
    out: tuple[torch.Tensor, torch.Tensor, torch.Tensor | None, torch.Tensor] = gradients(
        x, weight, bias, state, activation, grad, state_grad
    )
    return out


def _check(
    x: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    state: torch.Tensor | None,
    activation: str | None,
) -> None:
    if x.dim() != 3:
        raise UsageError(OP_NAME, f"expected x [B, T, C], got {x.dim()} axes.")
    batch, _, channels = x.shape
    if weight.dim() != 2 or weight.shape[0] != channels or not 1 <= weight.shape[1] <= MOST_TAPS:
        raise UsageError(
            OP_NAME, f"expected weight of shape ({channels}, 1 to {MOST_TAPS}), got {tuple(weight.shape)}."
        )
    if bias is not None and tuple(bias.shape) != (channels,):
        raise UsageError(OP_NAME, f"expected bias of shape ({channels},), got {tuple(bias.shape)}.")
    wanted = (batch, weight.shape[1] - 1, channels)
    if state is not None and tuple(state.shape) != wanted:
        raise UsageError(OP_NAME, f"expected a state of shape {wanted}, got {tuple(state.shape)}.")
    if activation not in (None, "silu"):
        raise UsageError(OP_NAME, f'expected activation "silu" or None, got {activation!r}.')
