"""The Triton kernels that the probes run; imported only where triton is."""

from __future__ import annotations

import torch
import triton
import triton.language as tl


@triton.jit
def _add(x, y, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    tl.store(out + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)


def add(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    """Return x + y."""
    out = torch.full_like(x, float("nan"))
    _add[(triton.cdiv(x.numel(), 1024),)](x, y, out, x.numel(), BLOCK=1024)
    return out


@triton.jit
def _softmax(x, out, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, BLOCK)
    inside = at < columns
    values = tl.load(x + row * columns + at, mask=inside, other=float("-inf")).to(tl.float32)
    powers = tl.exp(values - tl.max(values, 0))
    tl.store(out + row * columns + at, powers / tl.sum(powers, 0), mask=inside)


def softmax(x: torch.Tensor) -> torch.Tensor:
    """Return the softmax of each row."""
    out = torch.full_like(x, float("nan"))
    _softmax[(x.shape[0],)](x, out, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return out


@triton.jit
def _matmul(a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    rows = tl.program_id(0) * BM + tl.arange(0, BM)
    columns = tl.program_id(1) * BN + tl.arange(0, BN)
    total = tl.zeros((BM, BN), dtype=tl.float32)
    for start in range(0, K, BK):
        depth = start + tl.arange(0, BK)
        left = tl.load(
            a + rows[:, None] * K + depth[None, :], mask=(rows[:, None] < M) & (depth[None, :] < K), other=0.0
        )
        right = tl.load(
            b + depth[:, None] * N + columns[None, :], mask=(depth[:, None] < K) & (columns[None, :] < N), other=0.0
        )
        total += tl.dot(left, right)
    inside = (rows[:, None] < M) & (columns[None, :] < N)
    tl.store(c + rows[:, None] * N + columns[None, :], total, mask=inside)


def matmul(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """Return a b."""
    (m, k), n = a.shape, b.shape[1]
    out = torch.full((m, n), float("nan"), dtype=a.dtype, device=a.device)
    _matmul[(triton.cdiv(m, 32), triton.cdiv(n, 32))](a, b, out, m, n, k, BM=32, BN=32, BK=32)
    return out


@triton.jit
def _histogram(x, out, count, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < count
    bins = tl.load(x + at, mask=inside, other=0)
    tl.atomic_add(out + bins, 1, mask=inside)


def histogram(x: torch.Tensor) -> torch.Tensor:
    """Return how often each of 0 … 31 comes in x."""
    out = torch.zeros(32, dtype=torch.int32, device=x.device)
    _histogram[(triton.cdiv(x.numel(), 256),)](x, out, x.numel(), BLOCK=256)
    return out
