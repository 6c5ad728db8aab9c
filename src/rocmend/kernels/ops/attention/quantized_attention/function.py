"""The public function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.core.errors import UsageError
from rocmend.kernels.common.attention_arguments import check_lengths, mask_kind
from rocmend.kernels.ops.attention.quantized_attention import OP
from rocmend.kernels.ops.attention.quantized_attention.asked import problem_of
from rocmend.kernels.plan_cache import cached_plan, plan_of
from rocmend.kernels.select import implementation

OP_NAME = "quantized_attention"

Quantized = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


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
    """Attend to a cache in affine codes: ``softmax(q kᵀ · scale + mask) v`` with ``k = code · scale + bias``.

    Args:
        q: ``[B, H, L, D]``, float32, float16 or bfloat16; any strides.
        k: Words ``[B, KV, S, D · bits / 32]`` in int32 or uint32, scales and biases ``[B, KV, S, D / group_size]`` of a
            floating type, as MLX's ``quantize`` gives them; any strides.
        v: The same of ``[B, KV, S, Dv]``.
        scale: Factor of the scores.
        mask: None, ``"causal"``, or a boolean or floating tensor that broadcasts to ``[B, H, L, S]``.
        group_size: Codes that share a scale and a bias.
        bits: Of a code.
        lengths: ``[B]`` int32 or int64 in device memory: valid keys of each batch entry.

    Returns:
        ``[B, H, L, Dv]`` of the type of q, contiguous; a row that is hidden wholly is the mean of the values.

    Raises:
        UsageError: Shapes, types or options that do not fit, or a gradient is asked for.

    Cost: reads the codes, scales and biases once for all query heads of a KV head.
    Source: https://github.com/ml-explore/mlx-lm/blob/main/mlx_lm/models/base.py
    """
    if torch.is_grad_enabled() and q.requires_grad:
        _check(q, k, v, group_size, bits)
    tensor, kind = (mask, None) if isinstance(mask, torch.Tensor) else (None, mask)
    out: torch.Tensor = _attended((q, tensor, lengths, *k, *v), float(scale), kind, group_size, bits)
    return out


@cached_plan
def _attended(
    q: torch.Tensor, tensor: torch.Tensor | None, lengths: torch.Tensor | None, *more: Any
) -> Callable[..., torch.Tensor]:
    """Check the arguments and plan calls with such tensors.

    Args:
        q: See ``quantized_attention``.
        tensor: The mask, if it is a tensor.
        lengths: See ``quantized_attention``.
        more: The parts of keys, of values, and the options.
    """
    scale, kind, group_size, bits = more[6:]
    mask, k, v = kind if tensor is None else tensor, more[:3], more[3:6]
    _check(q, k, v, group_size, bits)
    mask_kind(OP_NAME, mask, q, k[0].shape[2])
    check_lengths(OP_NAME, q.shape[0], lengths)
    problem = problem_of(q, k, v, mask, bits, group_size)
    options = {"scale": scale, "group_size": group_size, "bits": bits}
    run = plan_of(implementation(OP, q.device, problem), q, k, v, mask=mask, lengths=lengths, **options)

    def call(
        q: torch.Tensor, tensor: torch.Tensor | None, lengths: torch.Tensor | None, *parts: torch.Tensor
    ) -> torch.Tensor:
        mask = kind if tensor is None else tensor
        out: torch.Tensor = run(q, parts[:3], parts[3:], mask=mask, lengths=lengths, **options)
        return out

    return call


def _check(q: torch.Tensor, k: Quantized, v: Quantized, group_size: int, bits: int) -> None:
    if bits not in (2, 3, 4, 5, 6, 8) or group_size not in (32, 64, 128):
        raise UsageError(
            OP_NAME, f"expected bits of 2, 3, 4, 5, 6 or 8 in groups of 32, 64 or 128, got {bits} and {group_size}."
        )
    if q.dim() != 4:
        raise UsageError(OP_NAME, f"expected q with 4 axes, got {q.dim()}.")
    for name, cache in (("k", k), ("v", v)):
        words, scales, biases = cache
        if words.dtype not in (torch.int32, torch.uint32):
            raise UsageError(OP_NAME, f"expected words of {name} in int32 or uint32, got {words.dtype}.")
        if words.dim() != 4 or scales.shape != biases.shape or scales.shape[:3] != words.shape[:3]:
            shapes = f"{tuple(words.shape)}, {tuple(scales.shape)} and {tuple(biases.shape)}"
            raise UsageError(OP_NAME, f"expected words, scales and biases of {name} to fit together, got {shapes}.")
        if words.shape[3] * 32 != scales.shape[3] * group_size * bits:
            raise UsageError(
                OP_NAME,
                f"expected {name} in codes of {bits} bits and groups of {group_size}, got {words.shape[3]} words and "
                f"{scales.shape[3]} scales a row.",
            )
    if k[0].shape[:3] != v[0].shape[:3] or k[0].shape[0] != q.shape[0] or k[0].shape[3] * 32 // bits != q.shape[3]:
        shapes = f"q {tuple(q.shape)}, words of k {tuple(k[0].shape)} and of v {tuple(v[0].shape)}"
        raise UsageError(OP_NAME, f"expected q, k and v to fit together, got {shapes}.")
    if k[0].shape[1] == 0 or q.shape[1] % k[0].shape[1]:
        raise UsageError(OP_NAME, f"expected heads in multiples of KV heads, got {q.shape[1]} and {k[0].shape[1]}.")
    if torch.is_grad_enabled() and q.requires_grad:
        raise UsageError(OP_NAME, "expected q without a gradient.", why="A quantized cache has no backward.")
