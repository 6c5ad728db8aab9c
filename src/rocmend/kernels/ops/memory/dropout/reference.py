"""The reference: both generators in int64 arithmetic."""

from __future__ import annotations

import torch
from torch import Tensor

from rocmend.kernels.ops.memory.random_bits.reference import words

_MASK = 0xFFFFFFFF


def mlx_numbers(p: float, dtype: torch.dtype) -> tuple[float, float]:
    """Return the probability to keep and the factor, rounded as MLX rounds them: to fp32, and to the type of x."""
    keep = float(torch.tensor(1 - p, dtype=torch.float32, device="cpu"))
    return keep, float(torch.tensor(1 / (1 - p), dtype=dtype, device="cpu"))


def philox_numbers(p: float) -> tuple[int, float]:
    """Return the least word that keeps an element, and the factor."""
    return round(p * 4294967296), float(torch.tensor(1 / (1 - p), dtype=torch.float32, device="cpu"))


def _high(a: int, b: Tensor) -> Tensor:
    """Return the upper 32 bits of a product of 32-bit numbers."""
    return ((a >> 16) * b + (((a & 0xFFFF) * b) >> 16)) >> 16


def philox(seed: int, counter: Tensor) -> Tensor:
    """Return the words of philox 4x32 with 10 rounds, four for each counter: ``[counters, 4]``."""
    c = [counter & _MASK, (counter >> 32) & _MASK, torch.zeros_like(counter), torch.zeros_like(counter)]
    k = [seed & _MASK, (seed >> 32) & _MASK]
    for _ in range(10):
        c = [
            _high(0xCD9E8D57, c[2]) ^ c[1] ^ k[0],
            (0xCD9E8D57 * c[2]) & _MASK,
            _high(0xD2511F53, c[0]) ^ c[3] ^ k[1],
            (0xD2511F53 * c[0]) & _MASK,
        ]
        k = [(k[0] + 0x9E3779B9) & _MASK, (k[1] + 0xBB67AE85) & _MASK]
    return torch.stack(c, -1)


def dropout_mlx(x: Tensor, p: float, key: Tensor) -> Tensor:
    """Drop elements by MLX's generator."""
    return run(x, p, key, generator="threefry")


def dropout_philox(x: Tensor, p: float, state: Tensor) -> Tensor:
    """Drop elements by philox."""
    return run(x, p, state, generator="philox")


def run(x: Tensor, p: float, state: Tensor, *, generator: str) -> Tensor:
    """Compute what the other implementations do."""
    wide = x if x.dtype == torch.float64 else x.float()
    if generator == "threefry":
        keep, scale = mlx_numbers(p, x.dtype)
        mask = words(state, x.numel()).float() < torch.tensor(keep, dtype=torch.float32) * 4294967808.0
        return (wide * mask.view(x.shape) * scale).to(x.dtype)
    threshold, scale = philox_numbers(p)
    seed, offset = (int(number) for number in state.tolist())
    counters = torch.arange(-(-x.numel() // 4), device=x.device) + offset
    mask = philox(seed, counters).reshape(-1)[: x.numel()].view(x.shape) >= threshold
    return torch.where(mask, wide * scale, 0.0).to(x.dtype)
