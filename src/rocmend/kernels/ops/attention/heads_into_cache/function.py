"""The public function."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.floats import BYTES
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.attention.heads_into_cache import OP, Options, Problem
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

NAME = "heads_into_cache"


def heads_into_cache(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    dims: int,
    *,
    offset: int | torch.Tensor,
    query_weight: torch.Tensor | None = None,
    key_weight: torch.Tensor | None = None,
    query_eps: float = 1e-6,
    key_eps: float = 1e-6,
    traditional: bool = False,
    base: float | None = 10000.0,
    scale: float = 1.0,
    freqs: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Normalise and rotate heads, and write keys and values into the cache, at ``offset`` and behind it.

    Queries: ``rope(rms_norm(queries, query_weight), offset)``; keys alike, into ``key_cache[:, :, offset:]``; values as
    they are into ``value_cache[:, :, offset:]``. Each step is rounded as the ops of these names round it.

    Args:
        queries: ``[B, H, L, D]``, float32, float16 or bfloat16; any strides, as all the others.
        keys: ``[B, KV, L, D]`` of the same type.
        values: ``[B, KV, L, Dv]`` of the same type.
        key_cache: ``[B, KV, S, D]`` of the same type, written in place.
        value_cache: ``[B, KV, S, Dv]`` of the same type, written in place.
        dims: How many leading elements are rotated, even.
        offset: Where the first token stands: a number, or one integer in device memory, which is not checked against S.
        query_weight: ``[D]`` of the same type, or None: queries are not normalised.
        key_weight: The like for keys.
        query_eps: Added to the mean square of a query head.
        key_eps: The like for keys.
        traditional: As for ``rope``, and so are the others.
        base: The like.
        scale: The like.
        freqs: The like.

    Returns:
        The queries, contiguous, and both caches.

    Raises:
        UsageError: Shapes, types or options that do not fit, or a gradient is asked for.

    Cost: reads all heads once and writes them once, in one launch.
    """
    if torch.is_grad_enabled() and any(heads.requires_grad for heads in (queries, keys, values)):
        raise UsageError(
            NAME, "expected heads without a gradient.", next_step="Train with rms_norm, rope and copies, one by one."
        )
    options = Options(
        dims, traditional, None if base is None else float(base), float(scale), float(query_eps), float(key_eps)
    )
    tensors = (queries, keys, values, key_cache, value_cache, query_weight, key_weight, freqs)
    result: tuple[torch.Tensor, torch.Tensor, torch.Tensor]
    if isinstance(offset, torch.Tensor):
        result = _written((*tensors, offset), options)
        return result
    if key_cache.dim() == queries.dim() == 4 and not 0 <= offset <= key_cache.shape[2] - queries.shape[2]:
        raise UsageError(
            NAME,
            f"expected an offset from 0 to {key_cache.shape[2] - queries.shape[2]}, got {offset}.",
            next_step="Make the cache longer first.",
        )
    result = _written((*tensors, None), options, numbers=(operator.index(offset),))
    return result


@cached_plan
def _written(*given: Any) -> Callable[..., tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Check the arguments and plan calls with such tensors.

    Args:
        given: The tensors in the order of ``_ordered``, the offset where it is a number, and the options.
    """
    options = given[-1]
    told = _ordered(*given[:-1])
    _check(*(*told, options))
    queries, keys, values = told[:3]
    problem = Problem(NAMES[queries.dtype], queries.numel() + keys.numel() + values.numel())
    run = plan_of(implementation(OP, queries.device, problem), *told, options)

    def call(*given: Any) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        result: tuple[torch.Tensor, torch.Tensor, torch.Tensor] = run(*_ordered(*given), options)
        return result

    return call


def _ordered(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    query_weight: torch.Tensor | None,
    key_weight: torch.Tensor | None,
    freqs: torch.Tensor | None,
    place: torch.Tensor | None,
    *number: int,
) -> tuple[Any, ...]:
    """Return the arguments as an implementation takes them, ``place`` or ``number`` as the offset."""
    offset = number[0] if place is None else place
    return queries, keys, values, key_cache, value_cache, offset, query_weight, key_weight, freqs


def _check(
    queries: torch.Tensor,
    keys: torch.Tensor,
    values: torch.Tensor,
    key_cache: torch.Tensor,
    value_cache: torch.Tensor,
    offset: int | torch.Tensor,
    query_weight: torch.Tensor | None,
    key_weight: torch.Tensor | None,
    freqs: torch.Tensor | None,
    options: Options,
) -> None:
    tensors = (queries, keys, values, key_cache, value_cache)
    if any(tensor.dim() != 4 for tensor in tensors):
        raise UsageError(NAME, f"expected five tensors of 4 axes, got {[tensor.dim() for tensor in tensors]}.")
    if any(tensor.dtype != queries.dtype for tensor in tensors) or NAMES.get(queries.dtype) not in BYTES:
        raise UsageError(
            NAME, f"expected one type of {', '.join(BYTES)}, got {[str(tensor.dtype) for tensor in tensors]}."
        )
    batch, heads, tokens, size = queries.shape
    kv, value_size = keys.shape[1], values.shape[3]
    wanted = {
        "keys": (keys, (batch, kv, tokens, size)),
        "values": (values, (batch, kv, tokens, value_size)),
        "key_cache": (key_cache, (batch, kv, key_cache.shape[2], size)),
        "value_cache": (value_cache, (batch, kv, key_cache.shape[2], value_size)),
    }
    for name, (tensor, shape) in wanted.items():
        if tuple(tensor.shape) != shape:
            raise UsageError(NAME, f"expected {name} of shape {shape}, got {tuple(tensor.shape)}.")
    if kv == 0 or heads % kv:
        raise UsageError(NAME, f"expected a multiple of {kv} query heads, got {heads}.")
    _check_rotation(queries, offset, query_weight, key_weight, freqs, options)


def _check_rotation(
    queries: torch.Tensor,
    offset: int | torch.Tensor,
    query_weight: torch.Tensor | None,
    key_weight: torch.Tensor | None,
    freqs: torch.Tensor | None,
    options: Options,
) -> None:
    size = queries.shape[3]
    if not 0 <= options.dims <= size or options.dims % 2:
        raise UsageError(NAME, f"expected an even dims of at most {size}, got {options.dims}.")
    if (options.base is None) == (freqs is None):
        raise UsageError(NAME, "expected one of base and freqs, got both or none.")
    if freqs is not None and tuple(freqs.shape) != (options.dims // 2,):
        raise UsageError(NAME, f"expected freqs of shape ({options.dims // 2},), got {tuple(freqs.shape)}.")
    for name, weight in (("query_weight", query_weight), ("key_weight", key_weight)):
        if weight is not None and (tuple(weight.shape) != (size,) or weight.dtype != queries.dtype):
            raise UsageError(NAME, f"expected {name} of shape ({size},), got {tuple(weight.shape)} {weight.dtype}.")
    if isinstance(offset, torch.Tensor) and (offset.numel() != 1 or offset.dtype not in (torch.int32, torch.int64)):
        raise UsageError(NAME, f"expected one int32 or int64 offset, got {tuple(offset.shape)} {offset.dtype}.")
