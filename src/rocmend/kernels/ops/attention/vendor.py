"""torch's own attention."""

from __future__ import annotations

import contextlib
from typing import Any

import torch


MANY = 1 << 20  # products of lengths from which on cuDNN is asked


def _cudnn_first(device: torch.device, products: int) -> contextlib.AbstractContextManager[None]:
    """On NVIDIA GPUs from compute capability 9 on cuDNN is twice as fast as what torch takes first.

    It takes about 30 ms to prepare for each new length, and every prompt has another one: a short one is not worth it.
    """
    if torch.version.hip or device.type != "cuda" or products < MANY:
        return contextlib.nullcontext()
    if torch.cuda.get_device_capability(device)[0] < 9:
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    order = [SDPBackend.CUDNN_ATTENTION, SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel(order, set_priority=True)


def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, mask: torch.Tensor | str | None, **_rest: Any
) -> torch.Tensor:
    """Call torch's function, for what its rule lets through; the result is made contiguous."""
    with _cudnn_first(q.device, q.shape[2] * k.shape[2]):
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=isinstance(mask, str), scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return out.contiguous()
