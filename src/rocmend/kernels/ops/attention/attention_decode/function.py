"""The public function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.attention_decode import OP, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

OP_NAME = "attention_decode"


def attention_decode(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend with a few queries to a long cache: ``softmax(q kᵀ · scale + mask) v``.

    Args:
        q: ``[B, H, L, D]``, float32, float16 or bfloat16, L small; any strides.
        k: ``[B, KV, S, D]`` of the same type, H a multiple of KV; any strides (a slice of a larger cache).
        v: ``[B, KV, S, Dv]`` of the same type.
        scale: Factor of the scores.
        mask: None, ``"causal"`` (the last query stands at the last key), or a tensor that broadcasts to
            ``[B, H, L, S]``: boolean (True is seen) or floating (added to the scores).
        sinks: ``[H]`` scores of a key with no value, or None.
        soft_cap: Scores become ``soft_cap · tanh(score / soft_cap)`` before masks.
        window: Keys that stand ``window`` or more before a query are hidden, and not read.
        lengths: ``[B]`` int32 or int64 in device memory: valid keys of each batch entry, S where None. The kernel
            reads it, so that a captured graph can be replayed while the cache grows; the last query stands at the
            last valid key.

    Returns:
        ``[B, H, L, Dv]`` of the type of q, contiguous. A row that a boolean or causal mask hides wholly is the mean of
        the values, as in MLX; one with no key at all is zero. With a window the hidden keys outside it do not count.

    Raises:
        UsageError: Shapes, types or options that do not fit, or a gradient is asked for.

    Cost: reads keys and values once for all query heads of a KV head.
    Source: https://pytorch.org/blog/flash-decoding/
    """
    scale, soft_cap = float(scale), None if soft_cap is None else float(soft_cap)
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        _check(q, k, v, mask, sinks, soft_cap, window, lengths)
    tensor, kind = (mask, None) if isinstance(mask, torch.Tensor) else (None, mask)
    out: torch.Tensor = _attended((q, k, v, tensor, sinks, lengths), scale, kind, soft_cap, window)
    return out


@cached_plan
def _attended(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    tensor: torch.Tensor | None,
    sinks: torch.Tensor | None,
    lengths: torch.Tensor | None,
    scale: float,
    kind: str | None,
    soft_cap: float | None,
    window: int | None,
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls with such tensors."""
    mask = kind if tensor is None else tensor
    _check(q, k, v, mask, sinks, soft_cap, window, lengths)
    problem = Problem(
        NAMES[q.dtype], q.shape[0], q.shape[1], k.shape[1], q.shape[2], k.shape[2], q.shape[3], v.shape[3]
    )
    options = {"scale": scale, "soft_cap": soft_cap, "window": window}
    run = plan_of(implementation(OP, q.device, problem), q, k, v, mask=mask, sinks=sinks, lengths=lengths, **options)

    def call(
        q: torch.Tensor,
        k: torch.Tensor,
        v: torch.Tensor,
        tensor: torch.Tensor | None,
        sinks: torch.Tensor | None,
        lengths: torch.Tensor | None,
    ) -> torch.Tensor:
        mask = kind if tensor is None else tensor
        out: torch.Tensor = run(q, k, v, mask=mask, sinks=sinks, lengths=lengths, **options)
        return out

    return call


def _check(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | str | None,
    sinks: torch.Tensor | None,
    soft_cap: float | None,
    window: int | None,
    lengths: torch.Tensor | None,
) -> None:
    if not q.dim() == k.dim() == v.dim() == 4:
        raise UsageError(OP_NAME, f"expected q, k and v with 4 axes, got {q.dim()}, {k.dim()} and {v.dim()}.")
    if not q.dtype == k.dtype == v.dtype:
        raise UsageError(OP_NAME, f"expected q, k and v of one type, got {q.dtype}, {k.dtype} and {v.dtype}.")
    if k.shape[:3] != v.shape[:3] or k.shape[0] != q.shape[0] or k.shape[3] != q.shape[3]:
        shapes = f"{tuple(q.shape)}, {tuple(k.shape)} and {tuple(v.shape)}"
        raise UsageError(OP_NAME, f"expected q [B, H, L, D], k [B, KV, S, D] and v [B, KV, S, Dv], got {shapes}.")
    if k.shape[1] == 0 or q.shape[1] % k.shape[1]:
        raise UsageError(OP_NAME, f"expected heads in multiples of KV heads, got {q.shape[1]} and {k.shape[1]}.")
    if torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad):
        raise UsageError(
            OP_NAME,
            "expected tensors without a gradient.",
            why="Decoding has no backward.",
            next_step="Call scaled_dot_product_attention to train, or decode under torch.no_grad().",
        )
    check_options(OP_NAME, q, k.shape[2], mask, sinks, soft_cap, window, lengths)


def check_options(
    op: str,
    q: torch.Tensor,
    keys: int,
    mask: torch.Tensor | str | None,
    sinks: torch.Tensor | None,
    soft_cap: float | None,
    window: int | None,
    lengths: torch.Tensor | None,
) -> None:
    """Check the options that decoding's ops share.

    Raises:
        UsageError: One does not fit.
    """
    wanted = (*q.shape[:3], keys)
    if isinstance(mask, str) and mask != "causal":
        raise UsageError(op, f'expected mask "causal", a tensor or None, got {mask!r}.')
    if isinstance(mask, torch.Tensor):
        if mask.dim() > 4 or any(
            have not in (1, want) for have, want in zip(mask.shape[::-1], wanted[::-1], strict=False)
        ):
            raise UsageError(op, f"expected a mask that broadcasts to {wanted}, got {tuple(mask.shape)}.")
        if mask.dtype != torch.bool and not mask.dtype.is_floating_point:
            raise UsageError(op, f"expected a boolean or floating mask, got {mask.dtype}.")
    if sinks is not None and tuple(sinks.shape) != (q.shape[1],):
        raise UsageError(op, f"expected sinks of shape ({q.shape[1]},), got {tuple(sinks.shape)}.")
    if soft_cap is not None and soft_cap <= 0:
        raise UsageError(op, f"expected a positive soft_cap, got {soft_cap}.")
    if window is not None and window < 1:
        raise UsageError(op, f"expected a window of at least 1, got {window}.")
    if lengths is not None and (
        tuple(lengths.shape) != (q.shape[0],) or lengths.dtype not in (torch.int32, torch.int64)
    ):
        raise UsageError(
            op,
            f"expected lengths of shape ({q.shape[0]},), int32 or int64, got {tuple(lengths.shape)}, {lengths.dtype}.",
        )
