"""What the forward and the backward kernels share: loads, scores, and which keys a query sees."""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import dot

NONE = tl.constexpr(0)
BOOLEAN = tl.constexpr(1)
ADDITIVE = tl.constexpr(2)
# The score of a key that a boolean or causal mask hides, finite: a query that sees nothing weighs all keys alike.
HIDDEN = tl.constexpr(-2e38)
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
def dot_chunks(
    acc,
    a_ptr,
    b_ptr,
    a_rows,
    b_rows,
    a_row_stride,
    a_column_stride,
    b_row_stride,
    b_column_stride,
    a_limit,
    b_limit,
    dim,
    PAD: tl.constexpr,
    WHOLE: tl.constexpr,
    CHUNK: tl.constexpr,
    WIDE: tl.constexpr,
):
    """Return acc + a @ bᵀ, both read from memory in pieces of CHUNK columns: for targets whose registers hold no more.

    a is the one that does not change from turn to turn; volatile, it is not kept in registers all the same.
    """
    # The bound is no constant: unrolled, the loop would need all the registers again.
    for start in tl.range(0, dim, CHUNK):
        d = index(start, CHUNK, WIDE)
        a_at = a_ptr + a_rows[:, None] * a_row_stride + d[None, :] * a_column_stride
        b_at = b_ptr + b_rows[None, :] * b_row_stride + d[:, None] * b_column_stride
        a_inside = a_rows[:, None] < a_limit
        b_inside = b_rows[None, :] < b_limit
        if PAD or WHOLE % CHUNK != 0:
            a_inside = a_inside & (d[None, :] < dim)
            b_inside = b_inside & (d[:, None] < dim)
        a = tl.load(a_at, mask=a_inside, other=0.0, volatile=True)
        b = tl.load(b_at, mask=b_inside, other=0.0)
        acc = dot(a, b, acc)
    return acc


@triton.jit
def tanh(x, PRECISE: tl.constexpr):
    """Compute the hyperbolic tangent; near 0, where 1 - 2 / (e²ˣ + 1) cancels, from its series if fp32 must be kept."""
    far = 1.0 - 2.0 / (tl.exp2(x * (2.0 * LOG2E)) + 1.0)
    if PRECISE:
        s = x * x
        near = 62.0 / 2835.0 - s * (1382.0 / 155925.0)
        near = x * (1.0 - s * (1.0 / 3.0 - s * (2.0 / 15.0 - s * (17.0 / 315.0 - s * near))))
        far = tl.where(tl.abs(x) < 0.3, near, far)
    return far


@triton.jit
def hide(s, i, j, mask_ptrs, queries, keys, window, CAUSAL: tl.constexpr, WINDOW: tl.constexpr, KIND: tl.constexpr):
    """Apply the masks to scores, in units of log2, of queries i and keys j; the causal diagonal is aligned to the end.

    Keys that are hidden from a query get a finite score, those past the end -inf.
    """
    if KIND != NONE:
        inside = (j < keys) & (i < queries)
        if KIND == BOOLEAN:
            s = tl.where(tl.load(mask_ptrs, mask=inside, other=0) != 0, s, HIDDEN)
        else:
            added = tl.load(mask_ptrs, mask=inside, other=0.0).to(tl.float32)
            # The lowest finite number, as masks are often filled with, stays finite.
            s += tl.where(added == float("-inf"), added, tl.maximum(added * LOG2E, HIDDEN))
    if CAUSAL:
        s = tl.where(j <= i + (keys - queries), s, HIDDEN)
    if WINDOW:
        s = tl.where(j > i + (keys - queries) - window, s, HIDDEN)
    return tl.where(j < keys, s, float("-inf"))


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
    """Return lo, clean_lo, clean_hi, hi: keys that a block of queries sees, and those that all of its queries see."""
    shift = keys - queries
    last = tl.minimum(first + BLOCK_M, queries) - 1
    lo = 0
    hi = keys
    clean_lo = 0
    clean_hi = keys // BLOCK_N * BLOCK_N
    if CAUSAL:
        # Queries before the first key see none, and weigh all alike.
        hi = tl.where(first + shift < 0, keys, last + shift + 1)
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
    """Return lo, clean_lo, clean_hi, hi: queries that see one of a block of keys, and those that see all of them."""
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
