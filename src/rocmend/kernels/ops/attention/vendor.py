"""torch's own attention."""

from __future__ import annotations

import contextlib
from typing import Any

import torch

MANY = 1 << 20  # products of lengths from which on cuDNN is asked


def _preferred(device: torch.device, products: int) -> contextlib.AbstractContextManager[None]:
    """Say which of torch's ways is taken first.

    On NVIDIA GPUs from compute capability 9 on cuDNN is twice as fast as the others. It takes 30 ms to prepare for each
    new length, and every prompt has another one: a short one is not worth it.
    """
    if torch.version.hip or device.type != "cuda" or torch.cuda.get_device_capability(device)[0] < 9:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, *others] if products >= MANY else others, set_priority=True)


def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, mask: torch.Tensor | str | None, **_rest: Any
) -> torch.Tensor:
    """Call torch's function, for what its rule lets through; the result is made contiguous."""
    with _preferred(q.device, q.shape[2] * k.shape[2]):
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=isinstance(mask, str), scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return out.contiguous()
