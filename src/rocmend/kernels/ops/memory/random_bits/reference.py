"""The reference: threefry in int64 arithmetic, and numbers made of its words."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor

_MASK = 0xFFFFFFFF
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_BELOW_ONE = {torch.float32: 1 - 2**-24, torch.float16: 1 - 2**-11, torch.bfloat16: 1 - 2**-8}


def threefry(key: tuple[int, int], a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    """Return two words for each counter, in int64."""
    schedule = (*key, key[0] ^ key[1] ^ 0x1BD11BDA)
    a, b = (a + schedule[0]) & _MASK, (b + schedule[1]) & _MASK
    for step in range(5):
        for turn in _ROTATIONS[step % 2]:
            a = (a + b) & _MASK
            b = (((b << turn) | (b >> (32 - turn))) & _MASK) ^ a
        a = (a + schedule[(step + 1) % 3]) & _MASK
        b = (b + schedule[(step + 2) % 3] + step + 1) & _MASK
    return a, b


def words(key: Tensor, count: int) -> Tensor:
    """Return ``count`` words of the stream of one key, in int64."""
    first, second = (int(word) & _MASK for word in key.view(torch.int32).tolist())
    half = count // 2
    at = torch.arange(half, device=key.device)
    low, high = threefry((first, second), at, at + (count - half))
    middle, _ = threefry((first, second), torch.tensor([half], device=key.device), torch.tensor([0], device=key.device))
    return torch.cat((low, middle[: count % 2], high))


def stream(key: Tensor, count: int) -> Tensor:
    """Return ``count`` words for each key of ``[..., 2]``: ``[keys, count]``."""
    return torch.stack([words(each, count) for each in key.reshape(-1, 2).view(torch.int32)])


def run(key: Tensor, shape: Sequence[int], *, kind: str, low: float, span: float, dtype: torch.dtype) -> Tensor:
    """Compute what the other implementations do."""
    elements = math.prod(shape)
    sizes = (*key.shape[:-1], *shape)
    if kind == "bits":
        drawn = stream(key, -(-elements * dtype.itemsize // 4))
        whole = torch.where(drawn >= 1 << 31, drawn - (1 << 32), drawn).to(torch.int32)
        return whole.view(dtype)[:, :elements].reshape(sizes)
    bits = stream(key, elements).view(sizes).float()
    if kind == "bernoulli":
        return bits < torch.tensor(low, dtype=torch.float32) * 4294967808.0
    if kind == "normal":
        unit = _unit(bits, torch.float32) * 2.0 - _BELOW_ONE[torch.float32]
        normal = torch.erfinv(unit.double()).to(dtype)
        return torch.tensor(span, dtype=dtype) * normal + torch.tensor(low, dtype=dtype)
    unit = _unit(bits, dtype)
    if kind == "gumbel":
        inner = torch.log(unit.double()).to(dtype)
        return -torch.log(-inner.double()).to(dtype)
    return torch.tensor(span, dtype=dtype) * unit + torch.tensor(low, dtype=dtype)


def _unit(bits: Tensor, dtype: torch.dtype) -> Tensor:
    return torch.clamp(bits / 4294967296.0, max=_BELOW_ONE[dtype]).to(dtype)


def random_bits(key: Tensor, shape: Sequence[int], *, width: int = 4) -> Tensor:
    """Draw bits."""
    dtype = {1: torch.uint8, 2: torch.uint16, 4: torch.uint32}[width]
    return run(key, shape, kind="bits", low=0.0, span=0.0, dtype=dtype)


def random_split(key: Tensor, count: int = 2) -> Tensor:
    """Split a key."""
    return random_bits(key, (count, 2))


def uniform(
    key: Tensor, shape: Sequence[int], low: float = 0.0, high: float = 1.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Draw uniform numbers."""
    span = float(torch.tensor(high, dtype=dtype) - torch.tensor(low, dtype=dtype))
    return run(key, shape, kind="uniform", low=float(torch.tensor(low, dtype=dtype)), span=span, dtype=dtype)


def normal(
    key: Tensor, shape: Sequence[int], mean: float = 0.0, std: float = 1.0, *, dtype: torch.dtype = torch.float32
) -> Tensor:
    """Draw normal numbers."""
    span = float(torch.tensor(math.sqrt(2.0), dtype=dtype) * torch.tensor(std, dtype=dtype))
    return run(key, shape, kind="normal", low=float(torch.tensor(mean, dtype=dtype)), span=span, dtype=dtype)


def gumbel(key: Tensor, shape: Sequence[int], *, dtype: torch.dtype = torch.float32) -> Tensor:
    """Draw Gumbel numbers."""
    return run(key, shape, kind="gumbel", low=0.0, span=1.0, dtype=dtype)


def bernoulli(key: Tensor, shape: Sequence[int], p: float = 0.5) -> Tensor:
    """Draw truth values."""
    return run(key, shape, kind="bernoulli", low=p, span=0.0, dtype=torch.bool)
