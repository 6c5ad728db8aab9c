"""Kernels that are right or wrong in one way each. They are compiled in workers, never run."""
# mypy: ignore-errors
# ruff: noqa: ANN001, ANN201, N803, PLR0917  Triton's language, as in the kernels of the ops

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def copy_kernel(source, out, n, scale, nothing, BLOCK: tl.constexpr):
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(source + at, mask=at < n)
    if nothing is not None:
        value += tl.load(nothing + at, mask=at < n)
    tl.store(out + at, value * scale, mask=at < n)


@triton.jit
def dot_kernel(a, b, out, K, M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr, PRECISION: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    acc = tl.zeros((M, N), tl.float32)
    for start in range(0, K, BLOCK_K):
        left = tl.load(a + m[:, None] * K + (start + k)[None, :])
        right = tl.load(b + (start + k)[:, None] * N + n[None, :])
        acc = tl.dot(left, right, acc, input_precision=PRECISION)
    tl.store(out + m[:, None] * N + n[None, :], acc)


@triton.jit(do_not_specialize=["n"])
def plain_kernel(out, n, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, at, mask=at < n)


@triton.jit
def wrong_kernel(out, BLOCK: tl.constexpr):
    tl.static_assert(BLOCK == 0, "this kernel cannot be compiled")
    tl.store(out + tl.arange(0, BLOCK), 0)
