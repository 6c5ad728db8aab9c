"""Checks of arguments that attention's ops share."""

from __future__ import annotations

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES


def check_heads(op: str, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    """Check that q ``[B, H, L, D]``, k ``[B, KV, S, D]`` and v ``[B, KV, S, Dv]`` belong together.

    Raises:
        UsageError: They do not.
    """
    for name, tensor in (("q", q), ("k", k), ("v", v)):
        if tensor.dim() != 4:
            raise UsageError(op, f"expected {name} with 4 axes [B, heads, length, D], got shape {tuple(tensor.shape)}.")
        if tensor.dtype != q.dtype or tensor.dtype not in NAMES or not tensor.dtype.is_floating_point:
            raise UsageError(
                op,
                f"expected q, k and v of one floating type, got {q.dtype}, {k.dtype}, {v.dtype}.",
                next_step="Convert them to one type.",
            )
    if not q.shape[0] == k.shape[0] == v.shape[0] or k.shape[1] != v.shape[1] or k.shape[2] != v.shape[2]:
        raise UsageError(
            op,
            "expected q [B, H, L, D], k [B, KV, S, D], v [B, KV, S, Dv], "
            f"got {tuple(q.shape)}, {tuple(k.shape)}, {tuple(v.shape)}.",
        )
    if q.shape[3] != k.shape[3]:
        raise UsageError(op, f"expected one head dimension of q and k, got {q.shape[3]} and {k.shape[3]}.")
    if q.shape[1] and (k.shape[1] == 0 or q.shape[1] % k.shape[1]):
        raise UsageError(op, f"expected H a multiple of KV, got H = {q.shape[1]}, KV = {k.shape[1]}.")


def mask_kind(op: str, mask: torch.Tensor | str | None, q: torch.Tensor, keys: int) -> str:
    """Return ``none``, ``causal``, ``boolean`` or ``additive``.

    Raises:
        UsageError: The mask is none of them, or its shape does not broadcast to [B, H, L, S].
    """
    if mask is None:
        return "none"
    if isinstance(mask, str):
        if mask != "causal":
            raise UsageError(op, f'expected mask "causal", a tensor or None, got {mask!r}.')
        return "causal"
    wanted = (q.shape[0], q.shape[1], q.shape[2], keys)
    fits = mask.dim() <= 4 and all(
        have in (1, want) for have, want in zip(reversed(mask.shape), reversed(wanted), strict=False)
    )
    if not fits:
        raise UsageError(op, f"expected a mask that broadcasts to {wanted}, got shape {tuple(mask.shape)}.")
    if mask.dtype == torch.bool:
        return "boolean"
    if not mask.dtype.is_floating_point:
        raise UsageError(
            op,
            f"expected a boolean or floating mask, got {mask.dtype}.",
            next_step="Convert 0/1 masks with .bool() (True = attend).",
        )
    if mask.requires_grad and torch.is_grad_enabled():
        raise UsageError(
            op,
            "expected an additive mask without gradient, got a mask that requires it.",
            why="Its gradient is not computed, and leaving it out in silence would train wrongly.",
            next_step="Pass mask.detach(), or add the learned bias with rocmend.kernels' reference.",
        )
    return "additive"


def check_scores(op: str, heads: int, sinks: torch.Tensor | None, soft_cap: float | None, window: int | None) -> None:
    """Check the options that change scores.

    Raises:
        UsageError: One is out of range.
    """
    if sinks is not None and (tuple(sinks.shape) != (heads,) or not sinks.dtype.is_floating_point):
        raise UsageError(op, f"expected floating sinks of shape ({heads},), got {sinks.dtype} {tuple(sinks.shape)}.")
    if soft_cap is not None and not soft_cap > 0:
        raise UsageError(op, f"expected soft_cap above 0, got {soft_cap}.")
    if window is not None and window < 1:
        raise UsageError(op, f"expected window of at least 1, got {window}.")


def check_lengths(op: str, batch: int, lengths: torch.Tensor | None) -> None:
    """Check the valid keys of each batch entry.

    Raises:
        UsageError: Another shape or type.
    """
    if lengths is not None and (tuple(lengths.shape) != (batch,) or lengths.dtype not in (torch.int32, torch.int64)):
        raise UsageError(
            op, f"expected lengths of shape ({batch},), int32 or int64, got {tuple(lengths.shape)}, {lengths.dtype}."
        )
