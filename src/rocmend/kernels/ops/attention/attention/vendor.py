"""torch's own attention."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels.ops.attention.attention import MANY
from rocmend.kernels.plan_cache import Planner


def _preferred(device: torch.device, products: int) -> contextlib.AbstractContextManager[None]:
    """Say which of torch's ways is taken first.

    On NVIDIA GPUs from compute capability 9 on cuDNN is twice as fast as the others; see ``MANY``.
    """
    if not _says(device):
        return contextlib.nullcontext()
    from torch.nn.attention import SDPBackend, sdpa_kernel

    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    return sdpa_kernel([SDPBackend.CUDNN_ATTENTION, *others] if products >= MANY else others, set_priority=True)


def _says(device: torch.device) -> bool:
    """Return whether torch is told which way to take."""
    return device.type == "cuda" and not torch.version.hip and torch.cuda.get_device_capability(device)[0] >= 9


@Planner
def run(
    q: torch.Tensor,
    k: torch.Tensor,
    v: torch.Tensor,
    scale: float,
    mask: torch.Tensor | str | None,
    sinks: torch.Tensor | None = None,
    **_: Any,
) -> Callable[..., torch.Tensor]:
    """Plan a call of torch's function for problems that its rule accepts; the result is made contiguous.

    To say which way torch is to take costs 45 µs a call. So torch is asked once which way it would take, and calls
    without a gradient go there.
    """
    del sinks
    causal = isinstance(mask, str)
    shared = q.shape[1] != k.shape[1]
    if not (torch.is_grad_enabled() and (q.requires_grad or k.requires_grad or v.requires_grad)) and _says(q.device):
        with _preferred(q.device, q.shape[2] * k.shape[2]):
            way = torch._fused_sdp_choice(q, k, v, None, 0.0, causal, scale=scale, enable_gqa=shared)  # noqa: SLF001  asked by torch's own function
        found = _direct(way, causal, scale)
        if found is not None:
            return found

    def general(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_args: Any, **_options: Any) -> torch.Tensor:
        with _preferred(q.device, q.shape[2] * k.shape[2]):
            out = torch.nn.functional.scaled_dot_product_attention(
                q, k, v, is_causal=causal, scale=scale, enable_gqa=shared
            )
        return out.contiguous()

    return general


def _direct(way: int, causal: bool, scale: float) -> Callable[..., torch.Tensor] | None:
    """Plan a call of the function that torch's own attention calls; None if it does more than that.

    Args:
        way: A value of ``SDPBackend``.
        causal: The mask.
        scale: Of the scores.
    """
    from torch.nn.attention import SDPBackend

    if way == SDPBackend.CUDNN_ATTENTION.value:
        cudnn = torch._scaled_dot_product_cudnn_attention  # noqa: SLF001  see above

        def by_cudnn(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_args: Any, **_options: Any) -> torch.Tensor:
            out: torch.Tensor = cudnn(q, k, v, None, False, 0.0, causal, False, scale=scale)[0]
            return out.contiguous()

        return by_cudnn
    if way == SDPBackend.FLASH_ATTENTION.value:
        flash = torch._scaled_dot_product_flash_attention  # noqa: SLF001  see above

        def by_flash(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *_args: Any, **_options: Any) -> torch.Tensor:
            out: torch.Tensor = flash(q, k, v, 0.0, causal, False, scale=scale)[0]
            return out.contiguous()

        return by_flash
    return None
