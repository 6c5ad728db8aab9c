"""The public functions."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.op import resolve
from rocmend.kernels.ops.recurrence.selective_scan import BACKWARD, OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation

OP_NAME = "selective_scan"


def _problem(x: Tensor, a: Tensor) -> Problem:
    batch, times, channels = x.shape
    return Problem(NAMES[x.dtype], batch, times, channels, a.shape[1])


class _Scan(torch.autograd.Function):
    """Carries the gradients of all inputs."""

    @staticmethod
    def forward(ctx: Any, *inputs: Tensor | None) -> tuple[Tensor, Tensor]:
        """Scan and keep the inputs."""
        x, dt, a, b, c, d, state = inputs
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        if x is None or a is None:
            raise UsageError(OP_NAME, "expected x and a, got None.")
        out: tuple[Tensor, Tensor] = implementation(OP, x.device, _problem(x, a))(x, dt, a, b, c, d, state=state)
        return out

    @staticmethod
    def backward(ctx: Any, *grads: Tensor | None) -> tuple[Tensor | None, ...]:
        """Return the gradients."""
        x, dt, a, b, c, d, state = ctx.saved_tensors
        grad, state_grad = grads
        grad = torch.zeros_like(x) if grad is None else grad
        found = selective_scan_gradients(x, dt, a, b, c, d, state, grad, state_grad)
        last = found[-1]
        return (*found[:-1], None if state is None or last is None else last.to(state.dtype))


def selective_scan(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None = None, *, state: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Run ``h = exp(dt A) h + dt x B; y = h C + D x`` over time.

    Args:
        x: ``[B, T, M]``, float32, float16 or bfloat16; any strides.
        dt: ``[B, T, M]``, after its softplus; any float type.
        a: ``[M, N]``, negative (``-exp(A_log)``); any float type.
        b: ``[B, T, N]``.
        c: ``[B, T, N]``.
        d: ``[M]``, or None.
        state: ``[B, M, N]``, zeros where None.

    Returns:
        ``y`` ``[B, T, M]`` of the type of x, and the new state in float32.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: reads x and dt twice (once where the sequence is short) and writes y once.
    Source: https://arxiv.org/abs/2312.00752
    """
    out: tuple[Tensor, Tensor] = _steps((x, dt, a, b, c, d, state))
    return out


@cached
def _steps(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    _check(x, dt, a, b, c, d, state)
    inputs = (x, dt, a, b, c, d, state)
    if torch.is_grad_enabled() and any(tensor is not None and tensor.requires_grad for tensor in inputs):
        traced: tuple[Tensor, Tensor] = _Scan.apply(*inputs)  # type: ignore[no-untyped-call]  # torch's stub
        return traced
    out: tuple[Tensor, Tensor] = implementation(OP, x.device, _problem(x, a))(x, dt, a, b, c, d, state=state)
    return out


def selective_scan_gradients(
    x: Tensor,
    dt: Tensor,
    a: Tensor,
    b: Tensor,
    c: Tensor,
    d: Tensor | None,
    state: Tensor | None,
    grad: Tensor,
    state_grad: Tensor | None = None,
) -> tuple[Tensor | None, ...]:
    """Return the gradients of ``selective_scan``: of x, dt, a, b, c, d (None without one) and the state.

    Args:
        x: As in the forward.
        dt: As in the forward.
        a: As in the forward.
        b: As in the forward.
        c: As in the forward.
        d: As in the forward.
        state: As in the forward.
        grad: ``[B, T, M]``, gradient of y.
        state_grad: ``[B, M, N]``, gradient of the new state, or None.

    Returns:
        Gradients of the types of the inputs, the state's in float32. Sums are made in fp32, in a fixed order.

    Raises:
        UsageError: Shapes that do not fit.

    Cost: the forward again, and once more back; channels run side by side, times one after the other.
    """
    _check(x, dt, a, b, c, d, state)
    if grad.shape != x.shape:
        raise UsageError(OP_NAME, f"expected a gradient of shape {tuple(x.shape)}, got {tuple(grad.shape)}.")
    if x.numel() == 0 or a.numel() == 0:
        return resolve(BACKWARD["torch"])(x, dt, a, b, c, d, state, grad, state_grad)  # type: ignore[no-any-return]  # looked up by name
    chosen = implementation(OP, x.device, _problem(x, a))
    name = next(one.name for one in OP.implementations if resolve(one.run) is chosen)
    out: tuple[Tensor | None, ...] = resolve(BACKWARD[name])(x, dt, a, b, c, d, state, grad, state_grad)
    return out


def _check(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None) -> None:
    if x.dim() != 3 or dt.shape != x.shape:
        raise UsageError(OP_NAME, f"expected x and dt [B, T, M], got {tuple(x.shape)} and {tuple(dt.shape)}.")
    batch, times, channels = x.shape
    if a.dim() != 2 or a.shape[0] != channels:
        raise UsageError(OP_NAME, f"expected a of shape ({channels}, N), got {tuple(a.shape)}.")
    wanted = (batch, times, a.shape[1])
    if tuple(b.shape) != wanted or tuple(c.shape) != wanted:
        raise UsageError(OP_NAME, f"expected b and c of shape {wanted}, got {tuple(b.shape)} and {tuple(c.shape)}.")
    if d is not None and tuple(d.shape) != (channels,):
        raise UsageError(OP_NAME, f"expected d of shape ({channels},), got {tuple(d.shape)}.")
    if state is not None and tuple(state.shape) != (batch, channels, a.shape[1]):
        raise UsageError(
            OP_NAME, f"expected a state of shape {(batch, channels, a.shape[1])}, got {tuple(state.shape)}."
        )
