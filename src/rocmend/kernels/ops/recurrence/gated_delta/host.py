"""Launch the Triton kernels."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.recurrence.gated_delta.kernel import chunk_kernel, recurrent_kernel, solve_kernel
from rocmend.kernels.tuning import config_for

# Below this many steps they are taken one by one.
LEAST_CHUNKED = 24


def power_of_two(number: int, least: int = 16) -> int:
    """Return the smallest power of two that is not less."""
    return max(1 << max(number - 1, 0).bit_length(), least)


def dense(tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor whose last axis is dense."""
    return tensor if tensor.stride(-1) == 1 else tensor.contiguous()


def outputs(
    batch: int, times: int, heads: int, dk: int, v: torch.Tensor, state: torch.Tensor | None
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor | None]:
    """Allocate y and the new state; return the old state dense."""
    y = allocate.empty((batch, times, heads, v.shape[3]), dtype=v.dtype, device=v.device)
    new_state = allocate.empty((batch, heads, v.shape[3], dk), dtype=torch.float32, device=v.device)
    return y, new_state, None if state is None else state.contiguous()


def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    g: torch.Tensor,
    beta: torch.Tensor,
    *,
    state: torch.Tensor | None = None,
    mask: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch the kernels; see ``function.gated_delta``."""
    batch, times, hk, dk = k.shape
    hv, dv = v.shape[2:]
    q, k, v = dense(q), dense(k), dense(v)
    vector = g.dim() == 4
    g = dense(g) if vector else g
    y, new_state, state = outputs(batch, times, hv, dk, v, state)
    if new_state.numel() == 0 or times == 0:
        new_state.zero_() if state is None else new_state.copy_(state)
        return y, new_state
    target = executor.target_for(v.device)
    seen = None if mask is None else mask.contiguous().view(torch.uint8)
    shape = {"HV": hv, "HK": hk, "DK": dk, "DV": dv, "DKP": power_of_two(dk)}
    options = {"SSD": False, "HAS_STATE": state is not None, "HAS_MASK": mask is not None}
    gate_strides = (*g.stride()[:3], *beta.stride())
    kind = f"{NAMES[v.dtype]}-{'wide' if max(dk, dv) > 128 else 'usual'}"
    config = config_for("gated_delta", "chunk", kind, target)
    if vector or times < config.get("least_times", LEAST_CHUNKED):
        config = config_for("gated_delta", "recurrent", "step" if times == 1 else "steps", target)
        rows = min(int(config.constants["BLOCK_V"]), power_of_two(dv, 1))
        launch(
            recurrent_kernel,
            (batch * hv, -(-dv // rows)),
            (
                q, k, v, g, beta, None, None, None, seen, state, y, new_state, times, 0.0, 0.0,
                *q.stride()[:3], *k.stride()[:3], *v.stride()[:3], *gate_strides,
            ),
            {**shape, **options, "VECTOR": vector, "BLOCK_V": rows},
            config,
        )  # fmt: skip
        return y, new_state
    solve = config_for("gated_delta", "solve", kind, target)
    chunk = int(config.constants["CHUNK"])
    chunks = -(-times // chunk)
    w = allocate.empty((batch, hv, times, dk), dtype=v.dtype, device=v.device)
    u = allocate.empty((batch, hv, times, dv), dtype=v.dtype, device=v.device)
    launch(
        solve_kernel,
        (batch * hv * chunks,),
        (
            k, v, g, beta, seen, w, u, times, chunks, *k.stride()[:3], *v.stride()[:3], *gate_strides,
        ),
        {**shape, "DVP": power_of_two(dv), "CHUNK": chunk, "HAS_MASK": mask is not None},
        solve,
    )  # fmt: skip
    columns = min(int(config.constants["BLOCK_V"]), power_of_two(dv))
    launch(
        chunk_kernel,
        (batch * hv, -(-dv // columns)),
        (
            q, k, u, w, g, beta, None, None, None, seen, state, y, new_state, times, 0.0, 0.0,
            *q.stride()[:3], *k.stride()[:3], hv * times * dv, dv, times * dv, *gate_strides,
        ),
        {**shape, **options, "BLOCK_V": columns, "CHUNK": chunk},
        config,
    )  # fmt: skip
    return y, new_state
