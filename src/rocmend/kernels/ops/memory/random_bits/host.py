"""Launch the Triton kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.memory.random_bits.kernel import stream_kernel
from rocmend.kernels.tuning import config_for


def run(
    key: torch.Tensor, shape: Sequence[int], *, kind: str, low: float, span: float, dtype: torch.dtype
) -> torch.Tensor:
    """Draw numbers; see ``function.random_bits`` and the others."""
    keys = axes.raw(key).contiguous().view(-1, 2)
    elements = math.prod(shape)
    sizes = (*key.shape[:-1], *shape)
    width = dtype.itemsize if kind == "bits" else 4
    words = -(-elements * width // 4)
    storage = torch.int32 if kind == "bits" else torch.int8 if kind == "bernoulli" else dtype
    out = allocate.empty((keys.shape[0], words), dtype=storage, device=key.device)
    if out.numel():
        config = config_for("random_bits", "stream", kind, executor.target_for(key.device))
        half = words // 2
        grid = (triton.cdiv(words - half, config["BLOCK"]), keys.shape[0])
        launch(stream_kernel, grid, (keys, out, low, span, words, half, 0), {"KIND": kind}, config)
    if kind == "bits":
        # The last word of a stream of bytes may be wider than what is left of it.
        out = out.view(dtype)[:, :elements].contiguous()
    return (out.view(torch.bool) if kind == "bernoulli" else out).view(sizes)
