"""The public functions."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_shape
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.op import beside, resolve
from rocmend.kernels.ops.recurrence.selective_scan import OP, Problem
from rocmend.kernels.plan_cache import cached
from rocmend.kernels.select import implementation


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
    return _steps((x, dt, a, b, c, d, state))


def selective_scan_gradients(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None, grad: Tensor,
    state_grad: Tensor | None = None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    """Return the gradients of ``selective_scan``: of x, dt, a, b, c, d (None without d) and the state.

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
    check_shape(OP.name, x.shape, grad=grad)
    run = implementation(OP, x.device, _problem(x, a))
    if x.numel() == 0 or a.numel() == 0:
        run = resolve(OP.reference)
    return beside(run, "selective_scan_gradients")(x, dt, a, b, c, d, state, grad, state_grad)


@cached
def _steps(
    x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None
) -> tuple[Tensor, Tensor]:
    """Check arguments and compute."""
    _check(x, dt, a, b, c, d, state)
    inputs = (x, dt, a, b, c, d, state)
    run = implementation(OP, x.device, _problem(x, a))
    if needs_gradient(*inputs):
        return differentiable(lambda *inputs: (run(*inputs[:-1], state=inputs[-1]), inputs), _backward, *inputs)
    return run(x, dt, a, b, c, d, state=state)


def _backward(
    grad: Tensor | None, state_grad: Tensor | None, x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor,
    d: Tensor | None, state: Tensor | None,
) -> tuple[Tensor | None, ...]:  # fmt: skip
    grad = torch.zeros_like(x) if grad is None else grad
    *found, last = selective_scan_gradients(x, dt, a, b, c, d, state, grad, state_grad)
    return (*found, None if state is None or last is None else last.to(state.dtype))


def _problem(x: Tensor, a: Tensor) -> Problem:
    batch, times, channels = x.shape
    return Problem(NAMES[x.dtype], batch, times, channels, a.shape[1])


def _check(x: Tensor, dt: Tensor, a: Tensor, b: Tensor, c: Tensor, d: Tensor | None, state: Tensor | None) -> None:
    op = OP.name
    if x.dim() != 3 or dt.shape != x.shape:
        raise UsageError(op, f"expected x and dt [B, T, M], got {tuple(x.shape)} and {tuple(dt.shape)}.")
    batch, times, channels = x.shape
    if a.dim() != 2 or a.shape[0] != channels:
        raise UsageError(op, f"expected a of shape ({channels}, N), got {tuple(a.shape)}.")
    check_shape(op, (batch, times, a.shape[1]), b=b, c=c)
    check_shape(op, (channels,), d=d)
    check_shape(op, (batch, *a.shape), state=state)
