"""Check arguments and say what the problem is."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.attention_arguments import check_heads, check_scores, mask_kind
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.attention import Problem

NAME = "scaled_dot_product_attention"


def describe(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    mask: torch.Tensor | str | None,
    sinks: torch.Tensor | None,
    soft_cap: float | None,
    window: int | None,
    *,
    lse: bool = False,
    grad: bool = False,
) -> Problem:
    """Check every argument and return the problem.

    Raises:
        UsageError: Arguments that do not fit.
    """
    check_heads(NAME, q, k, v)
    if q.shape[3] == 0 or v.shape[3] == 0:
        raise UsageError(NAME, f"expected head dimensions of at least 1, got {q.shape[3]} and {v.shape[3]}.")
    kind = mask_kind(NAME, mask, q, k.shape[2])
    check_scores(NAME, q.shape[1], sinks, soft_cap, window)
    if window is not None and kind != "causal":
        raise UsageError(
            NAME,
            f'expected mask "causal" with a window, got {kind}.',
            next_step="Put the window into the mask tensor, or drop it.",
        )
    return Problem(
        NAMES[q.dtype],
        q.shape[0],
        q.shape[1],
        k.shape[1],
        q.shape[2],
        k.shape[2],
        q.shape[3],
        v.shape[3],
        kind,
        # A window that reaches over all keys is none.
        window if window is not None and window < k.shape[2] else 0,
        sinks is not None,
        soft_cap is not None,
        lse,
        grad,
    )
