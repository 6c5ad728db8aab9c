"""torch's own attention."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

from rocmend.kernels import executor

MANY = 1 << 20  # products of lengths from which on cuDNN is asked


_order: Any = getattr(torch._C, "_get_sdp_priority_order", None)  # noqa: SLF001  torch's sdpa_kernel takes 25 µs for this
_set_order: Any = getattr(torch._C, "_set_sdp_priority_order", None)  # noqa: SLF001  see above


@contextlib.contextmanager
def _in_order(first: Sequence[int]) -> Iterator[None]:
    """Have torch try some of its ways first, in this order."""
    before = _order()
    _set_order([*first, *(one for one in before if one not in first)])
    try:
        yield
    finally:
        _set_order(before)


def _preferred(device: torch.device, products: int) -> contextlib.AbstractContextManager[None]:
    """Say which of torch's ways is taken first.

    On NVIDIA GPUs from compute capability 9 on cuDNN is twice as fast as the others. It takes 30 ms to prepare for each
    new length, and every prompt has another one: a short one is not worth it.
    """
    if torch.version.hip or device.type != "cuda" or executor.target_for(device).generation < 90:
        return contextlib.nullcontext()
    others = [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]
    ways = [SDPBackend.CUDNN_ATTENTION, *others] if products >= MANY else others
    if _order is None or _set_order is None:
        return sdpa_kernel(ways, set_priority=True)
    return _in_order([one.value for one in ways])  # cuDNN last is cuDNN never: the one before takes everything


def run(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, *, scale: float, mask: torch.Tensor | str | None, **_rest: Any
) -> torch.Tensor:
    """Call torch's function, for what its rule lets through; the result is made contiguous."""
    with _preferred(q.device, q.shape[2] * k.shape[2]):
        out = torch.nn.functional.scaled_dot_product_attention(
            q, k, v, is_causal=isinstance(mask, str), scale=scale, enable_gqa=q.shape[1] != k.shape[1]
        )
    return out.contiguous()
