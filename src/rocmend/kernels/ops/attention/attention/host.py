"""Launch the forward kernel."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.attention.attention.arguments import options, problem_of, records
from rocmend.kernels.ops.attention.attention.kernels.forward import forward_kernel


def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    return_lse: bool = False,
) -> torch.Tensor | tuple[torch.Tensor, torch.Tensor]:
    """Launch the kernel; see ``function.scaled_dot_product_attention``."""
    batch, heads, queries, dim = q.shape
    keys, dim_v = v.shape[2:]
    out = allocate.empty((batch, heads, queries, dim_v), dtype=q.dtype, device=q.device)
    lse = allocate.empty((batch, heads, queries), dtype=torch.float32, device=q.device) if return_lse else None
    (config,), least = records(("forward",), problem_of(q, k, v, mask, window), (q, k, v))
    given = options(q, k, v, (), scale=scale, mask=mask, soft_cap=soft_cap, window=window, least=least)
    sinks = None if sinks is None else sinks.contiguous()
    args = (q, k, v, given.mask, sinks, out, lse, *q.stride(), *k.stride(), *v.stride(), *given.mask_strides,
            given.factor, given.cap, given.window, heads, max(heads // max(k.shape[1], 1), 1), batch * heads,
            queries, keys, dim, dim_v)  # fmt: skip
    constants = {**given.constants, "SINKS": sinks is not None, "LSE": return_lse, "POSITIVE": scale > 0,
                 "CHUNK": config.get("chunk", 0)}  # fmt: skip
    grid = (cdiv(queries, config["BLOCK_M"]) * batch * heads,)
    launch(forward_kernel, grid, args, constants, config)
    return out if lse is None else (out, lse)
