"""Attention."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch

from rocmend import kernels
from rocmend.mlx import dtypes, kernel_use
from rocmend.mlx.arguments import as_stream, broadcast_shapes, shape_text
from rocmend.mlx.array import array, record, record_many
from rocmend.mlx.dtypes import promote
from rocmend.mlx.primitive import Primitive
from rocmend.mlx.registry import ops

if TYPE_CHECKING:
    from rocmend.mlx.dtypes import Dtype
    from rocmend.mlx.node import Node

__all__ = ["scaled_dot_product_attention"]

OP = "scaled_dot_product_attention"
_MOST = 8192
_known: dict[Any, tuple[tuple[int, ...], Dtype, Any, bool]] = {}

# What a mask may be.
NONE, CAUSAL, BOOLEAN, ADDITIVE = "none", "causal", "boolean", "additive"


def _parts(attrs: Any, rest: tuple[torch.Tensor, ...]) -> tuple[Any, torch.Tensor | None]:
    """Return the mask as kernels take it, and the sinks."""
    _, kind, has_sinks = attrs
    mask: Any = rest[0] if kind in (BOOLEAN, ADDITIVE) else CAUSAL if kind == CAUSAL else None
    return mask, rest[-1] if has_sinks else None


def attend(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, scale: float, mask: Any, sinks: torch.Tensor | None
) -> torch.Tensor:
    """Compute attention in torch, in float32 at least; keys and values are never repeated for the heads of a group.

    A query that sees no key has the mean of the values, as in MLX.
    """
    wide = torch.float64 if q.dtype is torch.float64 else torch.float32
    batch, heads, queries, size = q.shape
    kv_heads, keys = k.shape[1], k.shape[2]
    group = heads // kv_heads if kv_heads else 1
    if keys == 0:
        return q.new_zeros((batch, heads, queries, v.shape[3]))
    rows = (q.to(wide) * scale).reshape(batch, kv_heads, group * queries, size)
    scores = torch.matmul(rows, k.to(wide).mT).view(batch, heads, queries, keys)
    if isinstance(mask, torch.Tensor):
        boolean = mask.dtype is torch.bool
        scores = torch.where(mask, scores, torch.finfo(wide).min) if boolean else scores + mask
    elif mask is not None:
        at = torch.arange(keys - queries, keys, device=q.device)[:, None]
        seen = torch.arange(keys, device=q.device) <= at
        scores = torch.where(seen, scores, torch.finfo(wide).min)
    if sinks is not None:
        sink = sinks.to(wide)[:, None, None].expand(batch, heads, queries, 1)
        weights = torch.softmax(torch.cat((sink, scores), -1), -1)[..., 1:]
    else:
        weights = torch.softmax(scores, -1)
    out = torch.matmul(weights.reshape(batch, kv_heads, group * queries, keys), v.to(wide))
    return out.view(batch, heads, queries, v.shape[3]).to(q.dtype)


def _run(node: Node, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *rest: torch.Tensor) -> torch.Tensor:
    mask, sinks = _parts(node.attrs, rest)
    scale = node.attrs[0]
    if kernel_use.fits(q) and not torch.is_grad_enabled():
        out: torch.Tensor = kernels.scaled_dot_product_attention(q, k, v, scale=scale, mask=mask, sinks=sinks)
        return out
    return attend(q, k, v, scale, mask, sinks)


def _run_back(
    node: Node, grad: torch.Tensor, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *rest: torch.Tensor
) -> Any:
    """Return the gradients of q, k, v, an additive mask and sinks."""
    scale, kind, _ = node.attrs
    mask, sinks = _parts(node.attrs, rest)
    twice = torch.is_grad_enabled()
    if kernel_use.fits(q) and kind != ADDITIVE and not twice:
        found = kernels.attention_backward(grad, q, k, v, scale=scale, mask=mask, sinks=sinks)
        return tuple(one for one in found if one is not None)
    with torch.enable_grad():
        inputs = [q, k, v]
        if kind == ADDITIVE:
            inputs.append(mask)
        if sinks is not None:
            inputs.append(sinks)
        leaves = [one if twice and one.requires_grad else one.detach().requires_grad_() for one in inputs]
        given = leaves[3] if kind == ADDITIVE else mask
        out = attend(leaves[0], leaves[1], leaves[2], scale, given, None if sinks is None else leaves[-1])
        return torch.autograd.grad(out, leaves, grad, create_graph=twice, materialize_grads=True)


ATTENTION = Primitive("ScaledDotProductAttention", _run)
ATTENTION_BACK = Primitive("ScaledDotProductAttentionVJP", _run_back, outputs=3)


def scaled_dot_product_attention(
    q: array, k: array, v: array, *, scale: float, mask: str | array | None = None, sinks: array | None = None,
    force_fused: bool = False, stream: Any = None,
) -> array:  # fmt: skip
    """Compute attention, ``softmax(scale · q kᵀ + mask) v`` for each head, with the softmax in float32.

    Args:
        q: ``[B, H, L, D]``.
        k: ``[B, KV, S, D]``, H a multiple of KV: head h of the queries meets head ``h // (H / KV)``.
        v: ``[B, KV, S, Dv]``.
        scale: factor of the scores.
        mask: None; ``"causal"``, aligned so that the last query sees the last key; an array that broadcasts to
            ``[B, H, L, S]``: boolean, True where a query sees a key, or added to the scores.
        sinks: ``[H]``, scores that take part in the softmax and have no value.
        force_fused: never store the scores; here they are not where there is a GPU.
        stream: where it is computed.

    Returns:
        ``[B, H, L, Dv]`` of the type that q, k and v promote to.

    Raises:
        ValueError: shapes, types or options that do not fit, or ``force_fused`` on the CPU.
    """
    qn, kn, vn = q._n, k._n, v._n
    key: Any
    at: Any = None if mask is None or type(mask) is str else mask._n  # type: ignore[union-attr]
    if mask is None and sinks is None and not force_fused:
        key = (qn.shape, kn.shape, vn.shape, qn.dtype, kn.dtype, vn.dtype, scale)
    else:
        key = (
            qn.shape, kn.shape, vn.shape, qn.dtype, kn.dtype, vn.dtype, scale,
            mask if at is None else (at.shape, at.dtype),
            None if sinks is None else (sinks._n.shape, sinks._n.dtype), force_fused,
        )  # fmt: skip
    where = stream if stream is None else as_stream(stream)
    found = _known.get(key)
    if found is None:
        found = _infer(key)
    if force_fused:
        _check_fused(where)
    shape, dtype, attrs, mixed = found
    if mixed:
        qn, kn, vn = (ops.astype(one, dtype, stream=stream)._n for one in (q, k, v))
    inputs: tuple[Node, ...] = (qn, kn, vn)
    if at is not None:
        if attrs[1] == ADDITIVE and not at.dtype.is_float:
            at = ops.astype(mask, dtype, stream=stream)._n
        inputs = (qn, kn, vn, at)
    if sinks is not None:
        inputs = (*inputs, sinks._n if sinks._n.dtype is dtype else ops.astype(sinks, dtype, stream=stream)._n)
    return record(ATTENTION, inputs, shape, dtype, attrs, None, where)


def _check_fused(stream: Any) -> None:
    from rocmend.mlx.device import cpu
    from rocmend.mlx.node import current

    if (stream or current.state.stream).device.type is cpu:
        raise ValueError(f"[{OP}] force_fused=True but no fused kernel is available on the CPU.")


def _infer(key: Any) -> Any:
    q, k, v, *types = key[:6]
    scale = key[6]
    mask, sinks, _ = key[7:] if len(key) > 7 else (None, None, False)
    for shape in (q, k, v):
        if len(shape) != 4:
            raise ValueError(f"[{OP}] input with shape {shape_text(shape)} expected to be rank 4.")
    dtype = promote(promote(types[0], types[1]), types[2])
    if not dtype.is_float:
        raise ValueError(f"[{OP}] Received unsupported type {dtype}.")
    _check_shapes(q, k, v)
    kind = _kind(mask, (*q[:3], k[2]), dtype)
    if sinks is not None:
        if sinks[0] != (q[1],):
            raise ValueError(f"[{OP}] Received invalid shape for sinks {shape_text(sinks[0])}.")
        if promote(sinks[1], dtype) is not dtype:
            raise ValueError(f"[{OP}] Type of sinks must promote to output type {dtype}, got {sinks[1]}.")
    if len(_known) >= _MOST:
        _known.clear()
    mixed = not (types[0] is types[1] is types[2])
    found = _known[key] = ((*q[:3], v[3]), dtype, (float(scale), kind, sinks is not None), mixed)
    return found


def _check_shapes(q: Any, k: Any, v: Any) -> None:
    for shape in (k, v):
        if shape[0] != q[0]:
            raise ValueError(f"[{OP}] mismatching batch dimension for input with shape {shape_text(shape)}.")
    if q[3] != k[3]:
        raise ValueError(
            f"[{OP}] query, keys expected to have matching last dimension; found query shape {shape_text(q)} for "
            f"keys shape {shape_text(k)}."
        )
    if k[1] != v[1]:
        raise ValueError(
            f"[{OP}] keys, values expected to have matching n_kv_heads; found keys with n_heads {k[1]} for values "
            f"with n_heads {v[1]}."
        )
    if k[2] != v[2]:
        raise ValueError(f"[{OP}] keys and values must be as many; found shapes {shape_text(k)} and {shape_text(v)}.")
    if k[1] == 0 or q[1] % k[1]:
        raise ValueError(
            f"[{OP}] n_heads must be a multiple of n_kv_heads, found n_heads {q[1]} for n_kv_heads {k[1]}."
        )


def _kind(mask: Any, scores: tuple[int, ...], dtype: Dtype) -> str:
    if mask is None:
        return NONE
    if type(mask) is str:
        if mask != CAUSAL:
            raise ValueError(f"[{OP}] invalid mask option '{mask}'. Must be 'causal', or an array.")
        return CAUSAL
    shape, of_mask = mask
    if len(shape) > 4:
        raise ValueError(f"[{OP}] the mask with shape {shape_text(shape)} expected to have at most rank 4.")
    if broadcast_shapes(shape, scores) != scores:
        raise ValueError(f"[{OP}] the mask with shape {shape_text(shape)} does not broadcast to {shape_text(scores)}.")
    if of_mask is dtypes.bool_:
        return BOOLEAN
    if promote(of_mask, dtype) is not dtype:
        raise ValueError(f"[{OP}] Mask type must promote to output type {dtype}, got {of_mask}.")
    return ADDITIVE


@ATTENTION.rule("vjp")
def _vjp(node: Node, primals: Any, _: array, cotangent: array) -> Any:
    _, kind, has_sinks = node.attrs
    wanted = [*primals[:3]]
    if kind == ADDITIVE:
        wanted.append(primals[3])
    if has_sinks:
        wanted.append(primals[-1])
    found = list(
        record_many(
            ATTENTION_BACK,
            (cotangent._n, *(one._n for one in primals)),
            [(one.shape, one.dtype) for one in wanted],
            node.attrs,
            None,
            node.stream,
        )
    )
    if kind == BOOLEAN:
        found.insert(3, None)  # type: ignore[arg-type]
    return tuple(found)
