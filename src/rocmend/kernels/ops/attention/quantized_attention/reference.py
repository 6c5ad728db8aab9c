"""The reference: the cache is dequantized in the type of the queries, then attended to as plain tensors are."""

from __future__ import annotations

import torch

from rocmend.kernels.ops.attention.attention_decode.reference import attention_decode

Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


def dequantized(quantized: Quantized, dtype: torch.dtype, group_size: int, bits: int) -> torch.Tensor:
    """Return the values of affine codes: ``code · scale + bias``."""
    words, scales, biases = quantized
    wide = words.to(torch.int64) & 0xFFFFFFFF
    columns = wide.shape[-1] * 32 // bits
    place = torch.arange(columns, device=wide.device) * bits
    low = wide[..., place // 32] >> (place % 32)
    high = wide[..., ((place // 32) + 1).clamp(max=max(wide.shape[-1] - 1, 0))] << (32 - place % 32)
    codes = (low | torch.where(place % 32 + bits > 32, high, 0)) & ((1 << bits) - 1)
    scales, biases = (tensor.to(dtype).repeat_interleave(group_size, -1) for tensor in (scales, biases))
    return codes.to(dtype) * scales + biases


def quantized_attention(
    q: torch.Tensor,
    k: Quantized,
    v: Quantized,
    *,
    scale: float,
    mask: torch.Tensor | str | None = None,
    group_size: int = 64,
    bits: int = 8,
    lengths: torch.Tensor | None = None,
) -> torch.Tensor:
    """Attend to a quantized cache; half types are computed in fp32."""
    wide = q.float() if q.dtype in (torch.float16, torch.bfloat16) else q
    keys, values = (dequantized(one, wide.dtype, group_size, bits) for one in (k, v))
    return attention_decode(wide, keys, values, scale=scale, mask=mask, lengths=lengths).to(q.dtype)
