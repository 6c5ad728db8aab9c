"""Launch the Triton kernel."""

from __future__ import annotations

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.recurrence.gated_delta.host import power_of_two
from rocmend.kernels.ops.recurrence.wkv7.kernel import wkv7_kernel
from rocmend.kernels.tuning import config_for


def run(
    r: torch.Tensor,
    w: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    a: torch.Tensor,
    b: torch.Tensor,
    *,
    state: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Launch the kernel; see ``function.wkv7``."""
    batch, times, heads, dim = r.shape
    y = allocate.empty(r.shape, dtype=r.dtype, device=r.device)
    new_state = allocate.empty((batch, heads, dim, dim), dtype=torch.float32, device=r.device)
    config = config_for("wkv7", "recurrent", "*", executor.target_for(r.device))
    rows = min(int(config.constants["BLOCK_V"]), power_of_two(dim, 1))
    launch(
        wkv7_kernel,
        (batch * heads, -(-dim // rows)),
        (
            *(tensor.contiguous() for tensor in (r, w, k, v, a, b)),
            None if state is None else state.contiguous(), y, new_state, times, heads,
        ),
        {"D": dim, "DP": power_of_two(dim), "BLOCK_V": rows, "HAS_STATE": state is not None},
        config,
    )  # fmt: skip
    return y, new_state
