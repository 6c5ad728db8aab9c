"""The reference: the ops of these names, one by one."""

from __future__ import annotations

import torch

from rocmend.kernels.ops.attention.heads_into_cache import Options
from rocmend.kernels.ops.attention.rope.reference import rope
from rocmend.kernels.ops.rowwise.rms_norm.reference import rms_norm


def run(
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
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Compute the kernel's results; the caches are written in place."""

    def turned(x: torch.Tensor, weight: torch.Tensor | None, eps: float) -> torch.Tensor:
        if weight is not None:
            x = rms_norm(x, weight, eps)
        if options.dims == 0:
            return x
        return rope(
            x, options.dims, traditional=options.traditional, base=options.base, scale=options.scale, offset=offset,
            freqs=freqs,
        )  # fmt: skip

    places = torch.arange(queries.shape[2], device=queries.device) + offset
    key_cache.index_copy_(2, places, turned(keys, key_weight, options.key_eps).contiguous())
    value_cache.index_copy_(2, places, values.contiguous())
    return turned(queries, query_weight, options.query_eps).contiguous(), key_cache, value_cache


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
    """Take the arguments of the op, and leave the caches as they are: copies are written to and returned."""
    options = Options(dims, traditional, base, scale, query_eps, key_eps)
    return run(
        queries, keys, values, key_cache.clone(), value_cache.clone(), offset, query_weight, key_weight, freqs, options
    )
