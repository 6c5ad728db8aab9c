"""What the forward and the backward kernels share: loads, scores, and which keys a query sees."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot

NONE = tl.constexpr(0)
BOOLEAN = tl.constexpr(1)
ADDITIVE = tl.constexpr(2)
LOG2E = tl.constexpr(1.4426950408889634)
LN2 = tl.constexpr(0.6931471805599453)


@triton.jit
def index(start, n: tl.constexpr, WIDE: tl.constexpr):
    """Return start … start + n - 1, in 64 bits where an offset within a tile can pass 2³¹."""
    found = start + tl.arange(0, n)
    return found.to(tl.int64) if WIDE else found


@triton.jit
def tile(
    ptr,
    rows,
    columns,
    row_stride,
    column_stride,
    row_limit,
    column_limit,
    CHECK_ROWS: tl.constexpr,
    CHECK_COLUMNS: tl.constexpr,
):
    """Load ``ptr[rows, columns]``; 0 outside the limits that are checked."""
    ptrs = ptr + rows[:, None] * row_stride + columns[None, :] * column_stride
    if CHECK_ROWS:
        if CHECK_COLUMNS:
            return tl.load(ptrs, mask=(rows[:, None] < row_limit) & (columns[None, :] < column_limit), other=0.0)
        return tl.load(ptrs, mask=rows[:, None] < row_limit, other=0.0)
    if CHECK_COLUMNS:
        return tl.load(ptrs, mask=columns[None, :] < column_limit, other=0.0)
    return tl.load(ptrs)


@triton.jit
def dot_split(a1, a2, b1, b2, rows: tl.constexpr, columns: tl.constexpr, HAS_2: tl.constexpr):
    """Return a1 @ b1 + a2 @ b2 in fp32: a head dimension of 80 is 64 + 16, not 128."""
    product = dot(a1, b1, tl.zeros((rows, columns), tl.float32))
    if HAS_2:
        product = dot(a2, b2, product)
    return product


@triton.jit
def tanh(x, PRECISE: tl.constexpr):
    """Return tanh(x); near 0, where 1 - 2 / (e²ˣ + 1) cancels, from its series where fp32 must be kept."""
    far = 1.0 - 2.0 / (tl.exp2(x * (2.0 * LOG2E)) + 1.0)
    if PRECISE:
        s = x * x
        near = 62.0 / 2835.0 - s * (1382.0 / 155925.0)
        near = x * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0 - s * (17.0 / 315.0 - s * near))))
        far = tl.where(tl.abs(x) < 0.3, near, far)
    return far


@triton.jit
def visible(i, j, queries, keys, window, CAUSAL: tl.constexpr, WINDOW: tl.constexpr):
    """Return whether queries i see keys j (broadcast against each other), the causal diagonal aligned to the end."""
    seen = (j < keys) & (i < queries)
    if CAUSAL:
        seen = seen & (j <= i + (keys - queries))
    if WINDOW:
        seen = seen & (j > i + (keys - queries) - window)
    return seen


@triton.jit
def masked(s, ptrs, inside, KIND: tl.constexpr):
    """Apply a mask tensor's tile to scores that are in units of log2."""
    if KIND == BOOLEAN:
        return tl.where(tl.load(ptrs, mask=inside, other=0) != 0, s, float("-inf"))
    if KIND == ADDITIVE:
        return s + tl.load(ptrs, mask=inside, other=0.0).to(tl.float32) * LOG2E
    return s


@triton.jit
def keys_seen(
    first,
    queries,
    keys,
    window,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    KIND: tl.constexpr,
):
    """Return lo, clean_lo, clean_hi, hi: the keys that a block of queries sees, and those that all of its queries see."""
    shift = keys - queries
    last = tl.minimum(first + BLOCK_M, queries) - 1
    lo = 0
    hi = keys
    clean_lo = 0
    clean_hi = keys // BLOCK_N * BLOCK_N
    if CAUSAL:
        hi = tl.minimum(keys, tl.maximum(last + shift + 1, 0))
        clean_hi = tl.minimum(clean_hi, tl.maximum(first + shift + 1, 0) // BLOCK_N * BLOCK_N)
    if WINDOW:
        lo = tl.maximum(first + shift - window + 1, 0) // BLOCK_N * BLOCK_N
        clean_lo = (tl.maximum(last + shift - window + 1, 0) + BLOCK_N - 1) // BLOCK_N * BLOCK_N
        clean_lo = tl.minimum(clean_lo, (hi + BLOCK_N - 1) // BLOCK_N * BLOCK_N)
    if KIND != NONE:
        clean_hi = clean_lo
    return lo, clean_lo, tl.maximum(clean_hi, clean_lo), hi


@triton.jit
def queries_seeing(
    first,
    queries,
    keys,
    window,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    CAUSAL: tl.constexpr,
    WINDOW: tl.constexpr,
    KIND: tl.constexpr,
):
    """Return lo, clean_lo, clean_hi, hi: the queries that see one of a block of keys, and those that see all of them."""
    shift = keys - queries
    last = tl.minimum(first + BLOCK_N, keys) - 1
    lo = 0
    hi = queries
    clean_lo = 0
    clean_hi = queries // BLOCK_M * BLOCK_M
    if CAUSAL:
        lo = tl.maximum(first - shift, 0) // BLOCK_M * BLOCK_M
        clean_lo = (tl.maximum(last - shift, 0) + BLOCK_M - 1) // BLOCK_M * BLOCK_M
    if WINDOW:
        hi = tl.minimum(queries, tl.maximum(last - shift + window, 0))
        clean_hi = tl.minimum(clean_hi, tl.maximum(first - shift + window, 0) // BLOCK_M * BLOCK_M)
    clean_lo = tl.minimum(clean_lo, (hi + BLOCK_M - 1) // BLOCK_M * BLOCK_M)
    if KIND != NONE:
        clean_hi = clean_lo
    return lo, clean_lo, tl.maximum(clean_hi, clean_lo), hi
