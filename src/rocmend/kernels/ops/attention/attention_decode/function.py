"""The public function."""

from __future__ import annotations

from collections.abc import Callable

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.arguments import check_no_gradient
from rocmend.kernels.common.attention_arguments import check_heads, check_lengths, check_scores, mask_kind
from rocmend.kernels.common.autograd import needs_gradient
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
        the values, as in MLX; a row with no key at all is zero. With a window the hidden keys outside it do not count.

    Raises:
        UsageError: Shapes, types or options that do not fit, or a gradient is asked for.

    Cost: reads keys and values once for all query heads of a KV head.
    Source: https://pytorch.org/blog/flash-decoding/
    """
    scale, soft_cap = float(scale), None if soft_cap is None else float(soft_cap)
    if needs_gradient(q, k, v):
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
    check_heads(OP_NAME, q, k, v)
    if k.shape[1] == 0:
        raise UsageError(OP_NAME, "expected KV heads, got none.")
    check_no_gradient(
        OP_NAME, "tensors", q, k, v,
        why="Decoding has no backward.",
        next_step="Call scaled_dot_product_attention to train, or decode under torch.no_grad().",
    )  # fmt: skip
    mask_kind(OP_NAME, mask, q, k.shape[2])
    check_scores(OP_NAME, q.shape[1], sinks, soft_cap, window)
    check_lengths(OP_NAME, q.shape[0], lengths)
