"""Launch the Triton kernel."""

from __future__ import annotations

import math
from collections.abc import Callable

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.attention.heads_into_cache import Options
from rocmend.kernels.ops.attention.heads_into_cache.kernel import heads_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for

Result = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


@Planner
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
) -> Callable[..., Result]:
    """Plan one launch; see ``function.heads_into_cache``."""
    batch, heads, tokens, size = queries.shape
    kv_heads, value_size = keys.shape[1], values.shape[3]
    output = allocate.Output(queries.shape, queries.dtype, queries.device)
    programs = batch * tokens * (heads + 2 * kv_heads)
    if programs == 0:
        return lambda *given: (output(), given[3], given[4])
    half = options.dims // 2
    in_memory = isinstance(offset, torch.Tensor)
    constants = {
        "HAS_OFFSET": in_memory, "HAS_FREQS": freqs is not None, "Q_NORM": query_weight is not None,
        "K_NORM": key_weight is not None, "TRADITIONAL": options.traditional, "PAIRS": next_power_of_2(max(half, 1)),
        "REST": next_power_of_2(size - options.dims) if size > options.dims else 0,
        "VALUES": next_power_of_2(max(value_size, 1)),
    }  # fmt: skip
    exponent = 0.0 if options.base is None or not half else _exponent(options.base, half)
    numbers = (
        exponent, options.scale, options.query_eps, options.key_eps, heads, kv_heads, tokens, options.dims, size,
        value_size, 0 if freqs is None else freqs.stride(0), *queries.stride(), *keys.stride(), *values.stride(),
        *key_cache.stride(), *value_cache.stride(),
    )  # fmt: skip
    config = config_for("heads_into_cache", "heads", "*", executor.target_for(queries.device))
    plan = LaunchPlan(heads_kernel, (programs,), constants, config, numbers)

    def call(
        queries: torch.Tensor,
        keys: torch.Tensor,
        values: torch.Tensor,
        key_cache: torch.Tensor,
        value_cache: torch.Tensor,
        offset: int | torch.Tensor,
        query_weight: torch.Tensor | None,
        key_weight: torch.Tensor | None,
        freqs: torch.Tensor | None,
        *_: Options,
    ) -> Result:
        out = output()
        place = offset if in_memory else None
        given = (queries, keys, values, query_weight, key_weight, freqs, place, out, key_cache, value_cache)
        plan(given, (0 if in_memory else offset,))  # type: ignore[arg-type]  # by in_memory
        return out, key_cache, value_cache

    return call


def _exponent(base: float, half: int) -> float:
    """Return the power of two by which a pair's frequency differs from the next pair's."""
    return -math.log2(base) / half
