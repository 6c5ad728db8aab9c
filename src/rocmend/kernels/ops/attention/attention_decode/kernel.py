"""The Triton kernels: each program walks one part of the cache for all query heads of one KV head; a second one merges.

Scores live in the domain of base-2 exponentials. A key that a boolean or causal mask hides gets a finite minimum, so
that a row that sees nothing becomes the mean of the values (MLX); what an additive mask sets to minus infinity stays.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.common.last_block import is_last_block
from rocmend.kernels.language import dot, narrow

LOG2E = tl.constexpr(1.4426950408889634)
HIDDEN = tl.constexpr(-3.0e38)
NONE = tl.constexpr(0)
BOOLEAN = tl.constexpr(1)
ADDITIVE = tl.constexpr(2)
# By one thread.
FETCH = tl.constexpr("""{
.reg .pred first, some;
.reg .u32 thread;
mov.u32 thread, %tid.x;
setp.eq.u32 first, thread, 0;
setp.gt.and.s32 some, $2, 0, first;
@some cp.async.bulk.prefetch.L2.global [$1], $2;
mov.u32 $0, 0;
}""")


@triton.jit
def span(length, window, splits, split, L: tl.constexpr, BLOCK_N: tl.constexpr, WINDOW: tl.constexpr):
    """Return the first key of a part and the one after its last."""
    first = 0
    if WINDOW:
        first = tl.maximum(length - L - window + 1, 0)
    part = tl.cdiv(tl.cdiv(length - first, splits), BLOCK_N) * BLOCK_N
    start = first + split * part
    return start, tl.minimum(start + part, length)


@triton.jit
def finish_scores(
    s,
    n,
    position,
    end,
    cap,
    window,
    mask_ptr,
    rows_ok,
    m_ss,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    SOFT_CAP: tl.constexpr,
    WINDOW: tl.constexpr,
):
    """Soft cap and masks on scaled scores [rows, keys]; ``mask_ptr`` points to each row's start."""
    if SOFT_CAP:
        # tanh(x) = 1 - 2 / (exp(2 x) + 1); scores carry a factor of log2(e), the cap as well.
        s = cap * (1.0 - 2.0 / (tl.exp2(s * (2.0 * LOG2E) / cap) + 1.0))
    if MASK != NONE:
        pointer = mask_ptr + n[None, :].to(tl.int64) * m_ss
        inside = rows_ok[:, None] & (n[None, :] < end)
        if MASK == BOOLEAN:
            s = tl.where(tl.load(pointer, mask=inside, other=1) != 0, s, HIDDEN)
        else:
            added = tl.load(pointer, mask=inside, other=0.0).to(tl.float32)
            s += tl.where(added == float("-inf"), added, tl.maximum(added * LOG2E, HIDDEN))
    if CAUSAL:
        s = tl.where(n[None, :] <= position[:, None], s, HIDDEN)
    if WINDOW:
        s = tl.where(n[None, :] > position[:, None] - window, s, HIDDEN)
    return tl.where(n[None, :] < end, s, float("-inf"))


@triton.jit
def soften(s, top, total):
    """One step of the running softmax: return the weights, the old sums' factor, and the new maximum and sum."""
    new_top = tl.maximum(top, tl.max(s, axis=1))
    safe = tl.where(new_top == float("-inf"), 0.0, new_top)
    p = tl.exp2(s - safe[:, None])
    factor = tl.exp2(top - safe)
    return p, factor, new_top, total * factor + tl.sum(p, axis=1)


@triton.jit
def fetch(pointer, size):
    """Have the cache that all compute units share fetch ``size`` bytes, none or a multiple of 16. NVIDIA only.

    Nothing is read: what another kernel still writes there is found by the loads that come later.
    """
    at = pointer.to(tl.int64) & -16
    tl.inline_asm_elementwise(FETCH, "=r,l,r", [at, size], dtype=tl.int32, is_pure=False, pack=1)


@triton.jit
def merge_parts(
    acc_ptr, sinks_ptr, out_ptr, place, inside, head, splits, tops, length,
    DV: tl.constexpr, SPLITS: tl.constexpr, WIDTH: tl.constexpr, SINKS: tl.constexpr,
):  # fmt: skip
    """Merge the parts of the rows at ``place``, in their order, WIDTH columns at once, and store the output."""
    part = tl.arange(0, SPLITS)
    there = inside[:, None] & (part < splits)[None, :]
    # A part with no key wrote a maximum of minus infinity and zeros.
    at = place[:, None] * splits + part[None, :]
    top = tl.load(acc_ptr + tops + 2 * at, mask=there, other=float("-inf"), cache_modifier=".cg")
    total = tl.load(acc_ptr + tops + 2 * at + 1, mask=there, other=0.0, cache_modifier=".cg")
    highest = tl.max(top, axis=1)
    if SINKS:
        sink = tl.load(sinks_ptr + head, mask=inside, other=0.0).to(tl.float32) * LOG2E
        highest = tl.maximum(highest, sink)
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    weight = tl.exp2(top - safe[:, None])
    denominator = tl.sum(weight * total, axis=1)
    if SINKS:
        denominator += tl.exp2(sink - safe)
    for piece in tl.static_range((DV + WIDTH - 1) // WIDTH):
        dv = piece * WIDTH + tl.arange(0, WIDTH)
        wanted = there[:, :, None] & (dv < DV)[None, None, :]
        acc = tl.load(acc_ptr + at[:, :, None] * DV + dv[None, None, :], mask=wanted, other=0.0, cache_modifier=".cg")
        out = tl.sum(acc * weight[:, :, None], axis=1) / denominator[:, None]
        out = narrow(tl.where(length > 0, out, 0.0), out_ptr.dtype.element_ty)
        tl.store(out_ptr + place[:, None] * DV + dv[None, :], out, mask=inside[:, None] & (dv < DV)[None, :])


@triton.jit
def finish_rows(
    acc,
    top,
    total,
    length,
    sinks_ptr,
    acc_ptr,
    out_ptr,
    base,
    row,
    rows_ok,
    head,
    split,
    splits,
    tops,
    DV: tl.constexpr,
    DVB: tl.constexpr,
    SINKS: tl.constexpr,
    SPLIT: tl.constexpr,
):
    """Store a part's sums, or the output where there is one part."""
    dv = tl.arange(0, DVB)
    inside = rows_ok[:, None] & (dv[None, :] < DV)
    if SPLIT:
        place = (base + row) * splits + split
        tl.store(acc_ptr + tops + 2 * place, top, mask=rows_ok)
        tl.store(acc_ptr + tops + 2 * place + 1, total, mask=rows_ok)
        tl.store(acc_ptr + place[:, None] * DV + dv[None, :], acc, mask=inside)
    else:
        if SINKS:
            sink = tl.load(sinks_ptr + head, mask=rows_ok, other=0.0).to(tl.float32) * LOG2E
            new_top = tl.maximum(top, sink)
            factor = tl.exp2(top - new_top)
            acc = acc * factor[:, None]
            total = total * factor + tl.exp2(sink - new_top)
        out = tl.where(length > 0, acc / total[:, None], 0.0)
        out_pointer = out_ptr + (base + row)[:, None] * DV + dv[None, :]
        tl.store(out_pointer, narrow(out, out_ptr.dtype.element_ty), mask=inside)


@triton.jit
def split_kernel(
    q_ptr,
    k_ptr,
    v_ptr,
    mask_ptr,
    sinks_ptr,
    lengths_ptr,
    acc_ptr,
    counter_ptr,
    out_ptr,
    scale,
    cap,
    window,
    capacity,
    splits,
    tops,
    q_sb,
    q_sh,
    q_sl,
    q_sd,
    k_sb,
    k_sh,
    k_ss,
    k_sd,
    v_sb,
    v_sh,
    v_ss,
    v_sd,
    m_sb,
    m_sh,
    m_sl,
    m_ss,
    KV: tl.constexpr,
    GROUP: tl.constexpr,
    L: tl.constexpr,
    D: tl.constexpr,
    DV: tl.constexpr,
    D0: tl.constexpr,
    D1: tl.constexpr,
    DVB: tl.constexpr,
    ROWS: tl.constexpr,
    BLOCK_N: tl.constexpr,
    DOT: tl.constexpr,
    CAUSAL: tl.constexpr,
    MASK: tl.constexpr,
    SOFT_CAP: tl.constexpr,
    SINKS: tl.constexpr,
    WINDOW: tl.constexpr,
    LENGTHS: tl.constexpr,
    SPLIT: tl.constexpr,
    PDL: tl.constexpr,
    EARLY: tl.constexpr,
    AHEAD: tl.constexpr,
    AHEAD_VALUES: tl.constexpr,
    LATE: tl.constexpr,
    TRIGGER_LAST: tl.constexpr,
    LAST: tl.constexpr,
    LIVE: tl.constexpr,
    SPLITS: tl.constexpr,
    WIDTH: tl.constexpr,
):
    """One part of the cache for one KV head: scores, running softmax, weighted sum of values.

    NVIDIA only: with EARLY it is launched before the kernel in front of it is done, and waits for what it reads. Until
    then it has its first AHEAD keys and AHEAD_VALUES values fetched. With LATE, rows of q come with each block of keys,
    which so need not wait for them. With PDL the kernel behind it is launched early, too: once this one has waited, so
    that what is launched then may read what was written before; with TRIGGER_LAST once it has read all keys.
    """
    ELEMENT: tl.constexpr = k_ptr.dtype.element_ty.primitive_bitwidth // 8
    split = tl.program_id(0) % splits
    pair = tl.program_id(0) // splits
    b = (pair // KV).to(tl.int64)
    kv = (pair % KV).to(tl.int64)
    if AHEAD > 0:
        begin, stop = span(capacity, window, splits, split, L, BLOCK_N, WINDOW)
        keys, values = tl.minimum(AHEAD, stop - begin), tl.minimum(AHEAD_VALUES, stop - begin)
        fetch(k_ptr + b * k_sb + kv * k_sh + begin.to(tl.int64) * k_ss, keys * (D * ELEMENT // 16 * 16))
        if AHEAD_VALUES > 0:
            fetch(v_ptr + b * v_sb + kv * v_sh + begin.to(tl.int64) * v_ss, values * (DV * ELEMENT // 16 * 16))
    if EARLY and (LENGTHS or not LATE):
        tl.extra.cuda.gdc_wait()
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)
    rows_ok = row < GROUP * L
    head = kv * GROUP + row // L
    query = row % L
    length = capacity
    if LENGTHS:
        length = tl.minimum(tl.maximum(tl.load(lengths_ptr + b).to(tl.int32), 0), capacity)
    start, end = span(length, window, splits, split, L, BLOCK_N, WINDOW)
    position = length - L + query

    d0 = tl.arange(0, D0)
    dv = tl.arange(0, DVB)
    q_row = q_ptr + b * q_sb + head * q_sh + query * q_sl
    if not LATE:
        q0 = tl.load(q_row[:, None] + d0[None, :] * q_sd, mask=rows_ok[:, None] & (d0[None, :] < D), other=0.0)
    if D1 > 0:
        d1 = D0 + tl.arange(0, D1)
        q1 = tl.load(q_row[:, None] + d1[None, :] * q_sd, mask=rows_ok[:, None] & (d1[None, :] < D), other=0.0)
    k_base = k_ptr + b * k_sb + kv * k_sh
    v_base = v_ptr + b * v_sb + kv * v_sh
    mask_row = mask_ptr
    if MASK != NONE:
        mask_row = mask_ptr + (b * m_sb + head * m_sh + query * m_sl)[:, None]
    column = tl.arange(0, BLOCK_N)

    top = tl.full((ROWS,), float("-inf"), tl.float32)
    total = tl.zeros((ROWS,), tl.float32)
    acc = tl.zeros((ROWS, DVB), tl.float32)
    if EARLY and LATE and not LENGTHS:
        # All that is computed of addresses is, by now.
        tl.extra.cuda.gdc_wait()
    if PDL and not TRIGGER_LAST:
        tl.extra.cuda.gdc_launch_dependents()
    for at in range(start, end, BLOCK_N):
        n = at + column
        far = n[:, None].to(tl.int64)
        k_row = k_base + far * k_ss
        k0 = tl.load(k_row + d0[None, :] * k_sd, mask=(n[:, None] < end) & (d0[None, :] < D), other=0.0)
        if LATE:
            # Not known to be the same in each turn.
            q0 = tl.load(
                q_row[:, None] + d0[None, :] * q_sd + tl.minimum(at, 0) * 16,
                mask=rows_ok[:, None] & (d0[None, :] < D),
                other=0.0,
            )
        if DOT:
            s = dot(q0, tl.trans(k0), tl.zeros((ROWS, BLOCK_N), tl.float32))
        else:
            s = tl.sum(q0.to(tl.float32)[:, None, :] * k0.to(tl.float32)[None, :, :], axis=2)
        if D1 > 0:
            k1 = tl.load(k_row + d1[None, :] * k_sd, mask=(n[:, None] < end) & (d1[None, :] < D), other=0.0)
            if DOT:
                s = dot(q1, tl.trans(k1), s)
            else:
                s += tl.sum(q1.to(tl.float32)[:, None, :] * k1.to(tl.float32)[None, :, :], axis=2)
        s = finish_scores(
            s * (scale * LOG2E), n, position, end, cap * LOG2E, window, mask_row, rows_ok, m_ss,
            CAUSAL, MASK, SOFT_CAP, WINDOW,
        )  # fmt: skip
        p, factor, top, total = soften(s, top, total)
        v = tl.load(v_base + far * v_ss + dv[None, :] * v_sd, mask=(n[:, None] < end) & (dv[None, :] < DV), other=0.0)
        acc = acc * factor[:, None]
        if DOT:
            acc = dot(narrow(p, v_ptr.dtype.element_ty), v, acc)
        else:
            acc += tl.sum(p[:, :, None] * v.to(tl.float32)[None, :, :], axis=1)
    if PDL and TRIGGER_LAST:
        # What is launched then is there in time, and takes nothing from what is under way.
        tl.extra.cuda.gdc_launch_dependents()
    base = pair.to(tl.int64) * (GROUP * L)
    finish_rows(
        acc, top, total, length, sinks_ptr, acc_ptr, out_ptr, base, row, rows_ok, head, split, splits,
        tops, DV, DVB, SINKS, SPLIT,
    )  # fmt: skip
    if LAST:
        if is_last_block(counter_ptr + pair * tl.num_programs(1) + tl.program_id(1), splits):
            live = tl.program_id(1) * ROWS + tl.arange(0, LIVE)
            merge_parts(
                acc_ptr, sinks_ptr, out_ptr, base + live, live < GROUP * L, kv * GROUP + live // L, splits, tops,
                length, DV, SPLITS, WIDTH, SINKS,
            )  # fmt: skip


@triton.jit
def merge_kernel(
    acc_ptr,
    sinks_ptr,
    lengths_ptr,
    out_ptr,
    splits,
    tops,
    rows_per_batch,
    L: tl.constexpr,
    DV: tl.constexpr,
    SPLITS: tl.constexpr,
    BLOCK_DV: tl.constexpr,
    SINKS: tl.constexpr,
    LENGTHS: tl.constexpr,
    PDL: tl.constexpr,
    FIRST: tl.constexpr,
):
    """Merge the parts of one row, in their order; with PDL (NVIDIA only), launched before they are all written.

    With PDL the kernel behind it is launched early, too; with FIRST at once, before the parts are written. What is
    launched may read, before it waits, what was written before: with FIRST that holds where the kernel that writes the
    parts, which nobody else reads, has itself waited before it launches this one.
    """
    row = tl.program_id(0).to(tl.int64)
    dv = tl.program_id(1) * BLOCK_DV + tl.arange(0, BLOCK_DV)
    part = tl.arange(0, SPLITS)
    place = row * splits + part
    if PDL:
        if FIRST:
            tl.extra.cuda.gdc_launch_dependents()
        tl.extra.cuda.gdc_wait()
        if not FIRST:
            tl.extra.cuda.gdc_launch_dependents()
    top = tl.load(acc_ptr + tops + 2 * place, mask=part < splits, other=float("-inf"))
    total = tl.load(acc_ptr + tops + 2 * place + 1, mask=part < splits, other=0.0)
    # A part with no key wrote a maximum of minus infinity and zeros.
    inside = (part < splits)[:, None] & (dv[None, :] < DV)
    acc = tl.load(acc_ptr + place[:, None] * DV + dv[None, :], mask=inside, other=0.0)
    highest = tl.max(top, axis=0)
    if SINKS:
        sink = tl.load(sinks_ptr + (row % rows_per_batch) // L).to(tl.float32) * LOG2E
        highest = tl.maximum(highest, sink)
    safe = tl.where(highest == float("-inf"), 0.0, highest)
    weight = tl.exp2(top - safe)
    denominator = tl.sum(weight * total, axis=0)
    if SINKS:
        denominator += tl.exp2(sink - safe)
    out = tl.sum(acc * weight[:, None], axis=0) / denominator
    if LENGTHS:
        out = tl.where(tl.load(lengths_ptr + row // rows_per_batch) > 0, out, 0.0)
    tl.store(out_ptr + row * DV + dv, narrow(out, out_ptr.dtype.element_ty), mask=dv < DV)
