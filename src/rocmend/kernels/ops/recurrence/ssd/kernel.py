"""Launch the Triton kernels: those of the gated delta rule with Mamba-2's gate."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels import executor
from rocmend.kernels.arithmetic import next_power_of_2
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.recurrence.gated_delta.kernel import (
    LEAST_CHUNKED,
    chunk_kernel,
    dense,
    outputs,
    recurrent_kernel,
)
from rocmend.kernels.tuning import config_for


def run(
    x: Tensor, dt: Tensor, a_log: Tensor, b: Tensor, c: Tensor, d: Tensor, dt_bias: Tensor, *,
    state: Tensor | None = None, time_step_limit: tuple[float, float] = (0.001, 100.0), mask: Tensor | None = None,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """Launch the kernels; see ``function.ssd_scan``."""
    batch, times, heads, width = x.shape
    groups, size = b.shape[2:]
    x, b, c = dense(x), dense(b), dense(c)
    y, new_state, state = outputs(batch, times, heads, size, x, state)
    if new_state.numel() == 0 or times == 0:
        new_state.zero_() if state is None else new_state.copy_(state)
        return y, new_state
    target = executor.target_for(x.device)
    seen = None if mask is None else mask.contiguous().view(torch.uint8)
    constants: dict[str, object] = {
        "HV": heads, "HK": groups, "DK": size, "DV": width, "DKP": next_power_of_2(size, 16), "SSD": True,
        "HAS_STATE": state is not None, "HAS_MASK": mask is not None,
    }  # fmt: skip
    low, high = (float(limit) for limit in time_step_limit)
    vectors = (a_log.contiguous(), dt_bias.contiguous(), d.contiguous(), seen, state, y, new_state, times, low, high)
    strides = (*c.stride()[:3], *b.stride()[:3], *x.stride()[:3], *dt.stride(), 0, 0, 0)
    config = config_for("ssd", "chunk", NAMES[x.dtype], target)
    if times < config.get("least_times", LEAST_CHUNKED):
        config = config_for("ssd", "recurrent", "step" if times == 1 else "steps", target)
        rows = min(int(config.constants["BLOCK_V"]), next_power_of_2(width))
        launch(
            recurrent_kernel, (batch * heads, -(-width // rows)), (c, b, x, dt, None, *vectors, *strides),
            {**constants, "VECTOR": False, "BLOCK_V": rows}, config,
        )  # fmt: skip
        return y, new_state
    columns = min(int(config.constants["BLOCK_V"]), next_power_of_2(width, 16))
    launch(
        chunk_kernel, (batch * heads, -(-width // columns)), (c, b, x, None, dt, None, *vectors, *strides),
        {**constants, "BLOCK_V": columns}, config,
    )  # fmt: skip
    return y, new_state
