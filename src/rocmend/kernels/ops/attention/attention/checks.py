"""Check arguments and say what the problem is."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.attention import Problem

NAME = "scaled_dot_product_attention"


def check_shapes(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Check that q, k and v belong together.

    Raises:
        UsageError: They do not.
    """
    for name, one in (("q", q), ("k", k), ("v", v)):
        if one.dim() != 4:
            raise UsageError(NAME, f"expected {name} with 4 axes [B, heads, length, D], got shape {tuple(one.shape)}.")
        if one.dtype != q.dtype or one.dtype not in NAMES or not one.dtype.is_floating_point:
            raise UsageError(
                NAME,
                f"expected q, k and v of one floating type, got {q.dtype}, {k.dtype}, {v.dtype}.",
                next_step="Convert them to one type.",
            )
    if not q.shape[0] == k.shape[0] == v.shape[0] or k.shape[1] != v.shape[1] or k.shape[2] != v.shape[2]:
        raise UsageError(
            NAME,
            "expected q [B, H, L, D], k [B, KV, S, D], v [B, KV, S, Dv], "
            f"got {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}.",
        )
    if q.shape[3] != k.shape[3] or q.shape[3] == 0 or v.shape[3] == 0:
        raise UsageError(
            NAME, f"expected one head dimension of at least 1, got q {q.shape[3]}, k {k.shape[3]}, v {v.shape[3]}."
        )
    if q.shape[1] and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        raise UsageError(NAME, f"expected H a multiple of KV, got H = {q.shape[1]}, KV = {k.shape[1]}.")


def mask_kind(mask: torch.Tensor | str | None, q: torch.Tensor, keys: int) -> str:
    """Return ``none``, ``causal``, ``boolean`` or ``additive``.

    Raises:
        UsageError: The mask is none of them, or its shape does not broadcast to [B, H, L, S].
    """
    if mask is None:
        return "none"
    if isinstance(mask, str):
        if mask != "causal":
            raise UsageError(NAME, f'expected mask "causal", a tensor or None, got {mask!r}.')
        return "causal"
    wanted = (q.shape[0], q.shape[1], q.shape[2], keys)
    fits = mask.dim() <= 4 and all(
        have in (1, want) for have, want in zip(reversed(mask.shape), reversed(wanted), strict=False)
    )
    if not fits:
        raise UsageError(NAME, f"expected a mask that broadcasts to {wanted}, got shape {tuple(mask.shape)}.")
    if mask.dtype == torch.bool:
        return "boolean"
    if not mask.dtype.is_floating_point:
        raise UsageError(
            NAME,
            f"expected a boolean or floating mask, got {mask.dtype}.",
            next_step="Convert 0/1 masks with .bool() (True = attend).",
        )
    if mask.requires_grad and torch.is_grad_enabled():
        raise UsageError(
            NAME,
            "expected an additive mask without gradient, got one that requires it.",
            why="Its gradient is not computed, and leaving it out in silence would train wrongly.",
            next_step="Pass mask.detach(), or add the learned bias with rocmend.kernels' reference.",
        )
    return "additive"


def check_options(
    kind: str, heads: int, sinks: torch.Tensor | None, soft_cap: float | None, window: int | None
) -> None:
    """Check the options that change scores.

    Raises:
        UsageError: One is out of range.
    """
    if sinks is not None and (tuple(sinks.shape) != (heads,) or not sinks.dtype.is_floating_point):
        raise UsageError(NAME, f"expected floating sinks of shape ({heads},), got {sinks.dtype} {tuple(sinks.shape)}.")
    if soft_cap is not None and not soft_cap > 0:
        raise UsageError(NAME, f"expected soft_cap above 0, got {soft_cap}.")
    if window is not None:
        if window < 1:
            raise UsageError(NAME, f"expected window of at least 1, got {window}.")
        if kind != "causal":
            raise UsageError(
                NAME,
                f'expected mask "causal" with a window, got {kind}.',
                next_step="Put the window into the mask tensor, or drop it.",
            )


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
    check_shapes(q, k, v)
    kind = mask_kind(mask, q, k.shape[2])
    check_options(kind, q.shape[1], sinks, soft_cap, window)
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
