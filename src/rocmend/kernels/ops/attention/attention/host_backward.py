"""Launch the backward kernels."""

from __future__ import annotations

from typing import Any

import torch

from rocmend.kernels import allocate
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.attention.attention import host
from rocmend.kernels.ops.attention.attention.arguments import options, problem_of, records
from rocmend.kernels.ops.attention.attention.kernels.backward import delta_kernel, dkv_kernel, dq_kernel


def run(
    grad: torch.Tensor,
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    sinks: torch.Tensor | None = None,
    soft_cap: float | None = None,
    window: int | None = None,
    out: torch.Tensor | None = None,
    lse: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Launch the kernels; see ``function.attention_backward``."""
    chosen: dict[str, Any] = {"scale": scale, "mask": mask, "soft_cap": soft_cap, "window": window}
    if out is None or lse is None:
        found = host.run(q, k, v, **chosen, sinks=sinks, return_lse=True)
        out, lse = found
    out, lse = out.contiguous(), lse.contiguous()
    batch, heads, queries, dim = q.shape
    kv_heads, keys, dim_v = v.shape[1:]
    group = heads // max(kv_heads, 1)
    problem = problem_of(q, k, v, mask, window)

    delta = allocate.empty_like(lse)
    (config,), _ = records(("delta",), problem, (q,))
    launch(
        delta_kernel,
        (cdiv(queries, config["ROWS"]) * batch * heads,),
        (out, grad, delta, *grad.stride(), heads, batch * heads, queries, dim_v),
        {"BLOCK": next_power_of_2(dim_v)},
        config,
    )

    (dq_config, dkv_config), least = records(("dq", "dkv"), problem, (q, k, v, grad))
    given = options(q, k, v, (grad,), **chosen, least=least)
    strides = (*q.stride(), *k.stride(), *v.stride(), *given.mask_strides, *grad.stride())
    numbers = (scale, given.factor, given.cap, given.window)
    dq = allocate.empty(q.shape, dtype=q.dtype, device=q.device)
    launch(
        dq_kernel,
        (cdiv(queries, dq_config["BLOCK_M"]) * batch * heads,),
        (q, k, v, given.mask, grad, lse, delta, dq, *strides, *numbers,
         heads, max(group, 1), batch * heads, queries, keys, dim, dim_v),
        {**given.constants, "CHUNK": dq_config.get("chunk", 0)},
        dq_config,
    )  # fmt: skip

    dk = allocate.empty(k.shape, dtype=k.dtype, device=k.device)
    dv = allocate.empty(v.shape, dtype=v.dtype, device=v.device)
    launch(
        dkv_kernel,
        (cdiv(keys, dkv_config["BLOCK_N"]) * batch * kv_heads,),
        (q, k, v, given.mask, grad, lse, delta, dk, dv, *strides, *numbers,
         kv_heads, group, batch * kv_heads, queries, keys, dim, dim_v),
        {**given.constants, "CHUNK": dkv_config.get("chunk", 0)},
        dkv_config,
    )  # fmt: skip
    return dq, dk, dv, None if sinks is None else _dsinks(sinks, lse, delta)


def _dsinks(sinks: torch.Tensor, lse: torch.Tensor, delta: torch.Tensor) -> torch.Tensor:
    """A sink's weight times what it takes from the others, summed over batch and queries."""
    weight = torch.exp(sinks.float()[None, :, None] - lse)
    # Where sink and logarithm are both -inf nothing is seen, the sink neither.
    weight = torch.where(lse == float("-inf"), 0.0, weight)
    return -(weight * delta).sum((0, 2)).to(sinks.dtype)
