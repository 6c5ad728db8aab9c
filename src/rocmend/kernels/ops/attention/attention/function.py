"""The public functions."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.autograd import differentiable, needs_gradient
from rocmend.kernels.ops.attention.attention import OP
from rocmend.kernels.ops.attention.attention.checks import describe
from rocmend.kernels.plan_cache import Planner, cached, cached_plan
from rocmend.kernels.select import implementation


def scaled_dot_product_attention(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
) -> Any:
    """Compute ``softmax(cap · tanh(scale · q kᵀ / cap) + mask) v`` for each head.

    Query head h reads key and value head ``h // (H / KV)``. The softmax is computed in fp32.

    As in MLX, a query from which a boolean or causal mask hides every key gets the mean of the values; zeros where
    there are sinks; NaN where an additive mask is -inf throughout; zeros where S = 0. torch gives zeros.

    Args:
        q: ``[B, H, L, D]``, float32, float16 or bfloat16, any strides.
        k: ``[B, KV, S, D]`` of the same type; H is a multiple of KV.
        v: ``[B, KV, S, Dv]`` of the same type; Dv may differ from D.
        scale: Multiplies the scores, commonly ``D ** -0.5``.
        mask: None; ``"causal"``, aligned to the end: query i sees keys 0 … S - L + i; a boolean tensor, True where a
            query sees a key; or a floating mask that is added to the scores. Tensors broadcast to ``[B, H, L, S]``.
        sinks: ``[H]``, one score a head that takes part in the softmax's sum and has no value.
        soft_cap: Bounds scores to ±soft_cap before the mask; None for no bound.
        window: With ``"causal"``: each query sees its last ``window`` keys only, its own among them.
        return_lse: Return the logarithm of the softmax's sum too.

    Returns:
        ``[B, H, L, Dv]`` of the type of q, contiguous; with ``return_lse`` also ``[B, H, L]`` float32, sinks included,
        -inf where nothing is seen. Differentiable in q, k, v and sinks, not in a mask and not with ``return_lse``;
        queries that see nothing send no gradient back.

    Raises:
        UsageError: Arguments that do not fit, or a mask that requires a gradient.

    Cost: 2 · (D + Dv) operations a visible pair of query and key; blocks that no query sees are skipped.
    Source: https://arxiv.org/abs/2307.08691
    """
    scale, soft_cap = float(scale), None if soft_cap is None else float(soft_cap)
    tensor, kind = (mask, None) if isinstance(mask, torch.Tensor) else (None, mask)
    if not needs_gradient(q, k, v, sinks, tensor):
        return _attended((q, k, v, tensor, sinks), scale, kind, soft_cap, window, return_lse)
    problem = describe(q, k, v, mask, sinks, soft_cap, window, lse=return_lse, grad=True)
    window = problem.window or None
    if return_lse:
        raise UsageError(
            "scaled_dot_product_attention",
            "expected tensors without gradient with return_lse, got some that require it.",
            next_step="Call it under torch.no_grad().",
        )
    run = implementation(OP, q.device, problem)
    if not run.__module__.endswith(".host"):
        return run(q, k, v, scale=scale, mask=mask, sinks=sinks, soft_cap=soft_cap, window=window)  # torch's gradients

    def forward(*inputs: torch.Tensor | None) -> tuple[torch.Tensor, tuple[torch.Tensor | None, ...]]:
        *qkv, sinks = inputs
        out, lse = _launched((*qkv, tensor, sinks), scale, kind, soft_cap, window)
        return out, (*qkv, tensor, sinks, out, lse)

    def backward(grad: torch.Tensor, *saved: torch.Tensor | None) -> tuple[torch.Tensor | None, ...]:
        found: tuple[torch.Tensor | None, ...] = _launched_back((grad, *saved), scale, kind, soft_cap, window)
        return found

    return differentiable(forward, backward, q, k, v, sinks)


@cached_plan
def _attended(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    tensor: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    kind: str | None,
    soft_cap: float | None,
    window: int | None,
    return_lse: bool,
) -> Callable[..., Any]:
    """Check the arguments and plan calls with such tensors."""
    mask = kind if tensor is None else tensor
    problem = describe(q, k, v, mask, sinks, soft_cap, window, lse=return_lse)
    options = {"soft_cap": soft_cap, "window": problem.window or None, "return_lse": return_lse}
    run = implementation(OP, q.device, problem)
    call = run.plan(q, k, v, scale, mask, sinks, **options) if isinstance(run, Planner) else partial(run, **options)
    return lambda q, k, v, tensor, sinks: call(
        q, k, v, scale=scale, mask=kind if tensor is None else tensor, sinks=sinks
    )


@cached
def _launched(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    held: torch.Tensor | None,
    sinks: torch.Tensor | None,
    scale: float,
    kind: str | None,
    soft_cap: float | None,
    window: int | None,
) -> Any:
    """Compute the output and the logarithms with the kernels."""
    from rocmend.kernels.ops.attention.attention import host

    mask = kind if held is None else held
    return host.run(q, k, v, scale=scale, mask=mask, sinks=sinks, soft_cap=soft_cap, window=window, return_lse=True)


@cached
def _launched_back(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    held: torch.Tensor | None,
    sinks: torch.Tensor | None,
    out: torch.Tensor,
    lse: torch.Tensor,
    scale: float,
    kind: str | None,
    soft_cap: float | None,
    window: int | None,
) -> Any:
    """Compute the gradients with the kernels."""
    from rocmend.kernels.ops.attention.attention import host_backward

    options: dict[str, Any] = {"mask": kind if held is None else held, "sinks": sinks}
    return host_backward.run(grad, q, k, v, scale=scale, soft_cap=soft_cap, window=window, out=out, lse=lse, **options)


def attention_backward(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Differentiate ``scaled_dot_product_attention``; no float atomics, so that two runs agree bit by bit.

    Args:
        grad: ``[B, H, L, Dv]``, the gradient of the output, of the type of q.
        q: As given to the forward function; so are k, v and the options.
        k: See there.
        v: See there.
        scale: See there.
        mask: See there; an additive mask gets no gradient.
        sinks: See there.
        soft_cap: See there.
        window: See there.
        out: The forward's output, contiguous; computed again where it or ``lse`` is None.
        lse: The forward's logarithms, ``[B, H, L]`` float32.

    Returns:
        The gradients of q, k, v (contiguous, of their types) and of the sinks (None without sinks).

    Raises:
        UsageError: Arguments that do not fit.

    Cost: 3.5 times the forward's operations: scores and their gradients are computed for dq and again for dk and dv.
    Source: https://arxiv.org/abs/2307.08691
    """
    tensor, kind = (mask, None) if isinstance(mask, torch.Tensor) else (None, mask)
    cap = None if soft_cap is None else float(soft_cap)
    found: tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None] = _gradients(
        (grad, q, k, v, tensor, sinks, out, lse), float(scale), kind, cap, window
    )
    return found


@cached
def _gradients(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    held: torch.Tensor | None,
    sinks: torch.Tensor | None,
    out: torch.Tensor | None,
    lse: torch.Tensor | None,
    scale: float,
    kind: str | None,
    soft_cap: float | None,
    window: int | None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Check arguments and compute the gradients."""
    mask = kind if held is None else held
    problem = describe(q, k, v, mask, sinks, soft_cap, window, lse=True)
    wanted = (*q.shape[:3], v.shape[3])
    if tuple(grad.shape) != wanted or grad.dtype != q.dtype:
        raise UsageError(
            "attention_backward",
            f"expected grad {wanted} of {q.dtype}, got {tuple(grad.shape)} of {grad.dtype}.",
        )
    run = implementation(OP, q.device, problem)
    if run.__module__.endswith(".host"):
        from rocmend.kernels.ops.attention.attention.host_backward import run as backward
    else:
        from rocmend.kernels.ops.attention.attention.reference import attention_backward as backward
    return backward(
        grad,
        q,
        k,
        v,
        scale=scale,
        mask=mask,
        sinks=sinks,
        soft_cap=soft_cap,
        window=problem.window or None,
        out=out,
        lse=lse,
    )
