"""The gated delta rule."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.kernels.ops.recurrence.gated_delta import reference
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, shape_text
from rocmend.mlx.array import array, record_many
from rocmend.mlx.dtypes import promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.node import Node

__all__ = ["gated_delta_update"]


def _run(node: Node, *inputs: torch.Tensor) -> Any:
    has_state, has_mask = node.attrs
    q, k, v, g, beta, *rest = inputs
    state = rest[0] if has_state else None
    mask = rest[-1] if has_mask else None
    plain = torch.is_grad_enabled() or not kernel_use.fits(q)
    y, new = (reference.gated_delta if plain else kernels.gated_delta)(q, k, v, g, beta, state=state, mask=mask)
    return y, new.float()


GATED_DELTA = Primitive("GatedDelta", _run, outputs=2)


def gated_delta_update(
    q: array, k: array, v: array, gamma: array, beta: array, initial_state: array | None = None,
    mask: array | None = None, stream: Any = None,
) -> list[array]:  # fmt: skip
    """Run ``S = gamma S; S += beta (v - S k) kᵀ; y = S q`` over time.

    Args:
        q: ``[B, T, Hk, Dk]``, normalised and scaled.
        k: ``[B, T, Hk, Dk]``, normalised.
        v: ``[B, T, Hv, Dv]``, Hv a multiple of Hk.
        gamma: ``[B, T, Hv]``, or ``[B, T, Hv, Dk]`` for a gate of each channel: the decay, from 0 to 1.
        beta: ``[B, T, Hv]``.
        initial_state: ``[B, Hv, Dv, Dk]``; zeros where None.
        mask: ``[B, T]`` boolean; a step that is False leaves the state.
        stream: where it is computed.

    Returns:
        ``[B, T, Hv, Dv]`` of the type of q, and the new state in float32.

    Raises:
        ValueError: shapes or types that do not fit.
    """
    op = "gated_delta_update"
    if len(q.shape) != 4 or len(v.shape) != 4 or k.shape != q.shape or v.shape[:2] != q.shape[:2]:
        raise ValueError(
            f"[{op}] Expected q and k of one shape [B, T, Hk, Dk] and v [B, T, Hv, Dv], got {shape_text(q.shape)}, "
            f"{shape_text(k.shape)} and {shape_text(v.shape)}."
        )
    batch, times, heads, size = v.shape
    keys = q.shape[3]
    if q.shape[2] == 0 or heads % q.shape[2]:
        raise ValueError(f"[{op}] Expected as many heads of v as a multiple of {q.shape[2]}, got {heads}.")
    if gamma.shape not in ((batch, times, heads), (batch, times, heads, keys)) or beta.shape != (batch, times, heads):
        raise ValueError(
            f"[{op}] Expected gamma and beta of shape {shape_text((batch, times, heads))}, got "
            f"{shape_text(gamma.shape)} and {shape_text(beta.shape)}."
        )
    whole = (batch, heads, size, keys)
    if initial_state is not None and initial_state.shape != whole:
        raise ValueError(
            f"[{op}] Expected a state of shape {shape_text(whole)}, got {shape_text(initial_state.shape)}."
        )
    if mask is not None and (mask.shape != (batch, times) or mask.dtype is not dtypes.bool_):
        raise ValueError(f"[{op}] Expected a boolean mask of shape {shape_text((batch, times))}.")
    dtype = promote(promote(q.dtype, k.dtype), v.dtype)
    if not dtype.is_float:
        raise ValueError(f"[{op}] Received unsupported type {dtype}.")
    nodes = [one._n if one.dtype is dtype else ops.astype(one, dtype, stream=stream)._n for one in (q, k, v)]
    nodes += [gamma._n, beta._n]
    nodes += [one._n for one in (initial_state, mask) if one is not None]
    outputs = [((batch, times, heads, size), dtype), (whole, dtypes.float32)]
    where = stream if stream is None else as_stream(stream)
    attrs = (initial_state is not None, mask is not None)
    return list(record_many(GATED_DELTA, tuple(nodes), outputs, attrs, None, where))
