"""The public functions: keys come first, there is no hidden state."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rocmend.core.errors import UsageError
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.ops.memory.random_bits import OP, Problem
from rocmend.kernels.select import implementation

_BITS = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}
_FLOATS = (torch.float32, torch.float16, torch.bfloat16)


def random_key(seed: int, device: torch.device | str = "cpu") -> Tensor:
    """Return the key of a seed: its upper and lower 32 bits, uint32 ``[2]``."""
    words = [(seed >> 32) & 0xFFFFFFFF, seed & 0xFFFFFFFF]
    signed = [word - (1 << 32) if word >> 31 else word for word in words]
    return torch.tensor(signed, dtype=torch.int32, device=device).view(torch.uint32)


def _run(op: str, key: Tensor, shape: Sequence[int], kind: str, dtype: torch.dtype, low: float, span: float) -> Tensor:
    if key.dtype not in (torch.uint32, torch.int32) or key.dim() == 0 or key.shape[-1] != 2:
        raise UsageError(op, f"expected a key of uint32 and shape [..., 2], got {key.dtype} {tuple(key.shape)}.")
    if any(size < 0 for size in shape):
        raise UsageError(op, f"expected a shape without negative sizes, got {tuple(shape)}.")
    if kind in ("uniform", "normal", "gumbel") and dtype not in _FLOATS:
        raise UsageError(op, f"expected float32, float16 or bfloat16, got {dtype}.")
    problem = Problem(NAMES[dtype], kind, key.numel() // 2, math.prod(shape))
    return implementation(OP, key.device, problem)(key, tuple(shape), kind=kind, low=low, span=span, dtype=dtype)


def _in(value: float, dtype: torch.dtype) -> float:
    """Round a number to a type, on the CPU."""
    return float(torch.tensor(value, dtype=dtype, device="cpu"))


def random_bits(key: Tensor, shape: Sequence[int], *, width: int = 4) -> Tensor:
    """Draw random bits with threefry, bit for bit those of MLX.

    Args:
        key: uint32 ``[2]``, or ``[..., 2]`` for as many independent draws.
        shape: Of each draw.
        width: Bytes of an element: 1, 2 or 4.

    Returns:
        uint8, uint16 or uint32 of shape ``key.shape[:-1] + shape``.

    Raises:
        UsageError: No such width, or a key that is none.

    Cost: 20 rounds for two words.
    """
    if width not in _BITS:
        raise UsageError("random_bits", f"expected a width of 1, 2 or 4 bytes, got {width}.")
    return _run("random_bits", key, shape, "bits", _BITS[width], 0.0, 0.0)


def random_split(key: Tensor, count: int = 2) -> Tensor:
    """Split a key into ``count`` new ones: uint32 ``[count, 2]``."""
    return random_bits(key, (count, 2))


def uniform(
    key: Tensor, shape: Sequence[int], low: float = 0.0, high: float = 1.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Draw numbers of [low, high), bit for bit those of MLX.

    Args:
        key: uint32 ``[..., 2]``.
        shape: Of each draw.
        low: Least number.
        high: Bound that is not reached (but by rounding of ``low + …``).
        dtype: float32, float16 or bfloat16.

    Returns:
        Numbers of shape ``key.shape[:-1] + shape``.

    Raises:
        UsageError: Another type, or a key that is none.
    """
    least = _in(low, dtype)
    return _run("uniform", key, shape, "uniform", dtype, least, _in(_in(high, dtype) - least, dtype))


def normal(
    key: Tensor, shape: Sequence[int], mean: float = 0.0, std: float = 1.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Draw normal numbers from the bits that MLX takes; erfinv may differ from its own in the last places.

    Args:
        key: uint32 ``[..., 2]``.
        shape: Of each draw.
        mean: Added.
        std: Factor.
        dtype: float32, float16 or bfloat16.

    Returns:
        Numbers of shape ``key.shape[:-1] + shape``.

    Raises:
        UsageError: Another type, or a key that is none.
    """
    scale = _in(_in(math.sqrt(2.0), dtype) * _in(std, dtype), dtype)
    return _run("normal", key, shape, "normal", dtype, _in(mean, dtype), scale)


def gumbel(key: Tensor, shape: Sequence[int], *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw ``-log(-log(u))`` for uniform u: ``key.shape[:-1] + shape``."""
    return _run("gumbel", key, shape, "gumbel", dtype, 0.0, 1.0)


def bernoulli(key: Tensor, shape: Sequence[int], p: float = 0.5) -> Tensor:
    """Draw True with probability ``p``, bit for bit as MLX: bool of ``key.shape[:-1] + shape``."""
    return _run("bernoulli", key, shape, "bernoulli", torch.bool, _in(p, torch.float32), 0.0)


def categorical(key: Tensor, logits: Tensor, axis: int = -1) -> Tensor:
    """Draw an index along an axis with the probabilities of logits: the largest of logits plus Gumbel numbers.

    Args:
        key: uint32 ``[2]``.
        logits: Any shape, floating.
        axis: Whose index is drawn.

    Returns:
        int64, the shape of ``logits`` without the axis.

    Raises:
        UsageError: A key that is none, or no such axis.
    """
    from rocmend.kernels.ops.rowwise.arg_reduce.function import argmax

    return argmax(logits.float() + gumbel(key, logits.shape), axis)
