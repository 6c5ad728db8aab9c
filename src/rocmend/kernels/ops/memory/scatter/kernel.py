"""The Triton kernels: places as sort keys, runs of equal places applied in order, and integer atomics."""

# Triton reads this: no sets, only whole chains of if and else are left out at compile time, constants are parameters.
# ruff: noqa: SIM300, RET505

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.language import narrow
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.sort.kernel import sort_rows
from rocmend.kernels.tuning import config_for


@triton.jit
def _place(index, n, UNSIGNED: tl.constexpr):
    """Return int64 places, ``n`` for one that lies outside."""
    place = index.to(tl.int64)
    if UNSIGNED:
        place = place & 0xFFFFFFFF
    else:
        place = tl.where(place < 0, place + n, place)
    return tl.where((place < 0) | (place >= n), n, place)


@triton.jit
def keys_kernel(
    index_ptr, keys_ptr, total, m, n, inner, whole, UNSIGNED: tl.constexpr, ALONG: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Write the line that each index names, or (``ALONG``) the flat tensor's element; ``whole`` for one outside."""
    at = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = at < total
    place = _place(tl.load(index_ptr + at, mask=inside, other=0), n, UNSIGNED)
    key = place
    if ALONG:
        line = at // inner
        key = tl.where(place == n, whole, ((line // m) * n + place) * inner + (at - line * inner))
    tl.store(keys_ptr + at, key.to(keys_ptr.dtype.element_ty), mask=inside)


@triton.jit
def _wide(x, FLIP: tl.constexpr):
    """Widen half types to fp32, narrow integers to int32; unsigned ones lose half their range."""
    WIDTH: tl.constexpr = x.dtype.primitive_bitwidth
    if x.dtype.is_floating():
        if WIDTH < 64:
            x = x.to(tl.float32)
    elif FLIP == 8:
        x = (x.to(tl.int32) & 0xFF) - 0x80
    elif FLIP == 16:
        x = (x.to(tl.int32) & 0xFFFF) - 0x8000
    elif FLIP == 32:
        x = x ^ (-0x80000000)
    elif FLIP == 64:
        x = x ^ (-0x8000000000000000)
    elif WIDTH < 32:
        x = x.to(tl.int32)
    return x


@triton.jit
def _back(x, TO: tl.constexpr, FLIP: tl.constexpr):
    if FLIP == 8:
        x = x + 0x80
    elif FLIP == 16:
        x = x + 0x8000
    elif FLIP == 32:
        x = x ^ (-0x80000000)
    elif FLIP == 64:
        x = x ^ (-0x8000000000000000)
    if TO == tl.bfloat16:
        return narrow(x, TO)
    return x.to(TO)


@triton.jit
def _apply(a, b, MODE: tl.constexpr):
    if MODE == "add":
        return a + b
    elif MODE == "prod":
        return a * b
    elif MODE == "max":
        return tl.where((a > b) | (a != a), a, b)
    else:
        return tl.where((a < b) | (a != a), a, b)


@triton.jit
def runs_kernel(
    out_ptr, updates_ptr, keys_ptr, perm_ptr, m, n, inner,
    MODE: tl.constexpr, FLIP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Apply ``updates[outer, m, inner]`` to ``out[outer, n, inner]``: the head of each run of equal keys walks it."""
    pieces = tl.cdiv(inner, BLOCK)
    groups = tl.cdiv(m, ROWS)
    program = tl.program_id(0).to(tl.int64)
    piece, rest = program % pieces, program // pieces
    position = (rest % groups) * ROWS + tl.arange(0, ROWS)
    outer = rest // groups
    column = piece * BLOCK + tl.arange(0, BLOCK)[None, :]
    inside = position < m
    key = tl.load(keys_ptr + position, mask=inside, other=-1).to(tl.int64)
    fits = inside & (key < n)
    lane = column < inner
    from_ = updates_ptr + outer * m * inner
    TO: tl.constexpr = out_ptr.dtype.element_ty
    to = out_ptr + (outer * n + key)[:, None] * inner + column
    if MODE == "assign":
        after = tl.load(keys_ptr + position + 1, mask=position + 1 < m, other=-1).to(tl.int64)
        last = (fits & (after != key))[:, None] & lane
        source = tl.load(perm_ptr + position, mask=inside, other=0).to(tl.int64)
        tl.store(to, tl.load(from_ + source[:, None] * inner + column, mask=last, other=0), mask=last)
    else:
        before = tl.load(keys_ptr + position - 1, mask=inside & (position > 0), other=-1).to(tl.int64)
        active = fits & (before != key)
        head = active[:, None] & lane
        total = _wide(tl.load(to, mask=head, other=0), FLIP)
        while tl.max(active.to(tl.int32), 0) > 0:
            source = tl.load(perm_ptr + position, mask=active, other=0).to(tl.int64)
            now = active[:, None] & lane
            update = _wide(tl.load(from_ + source[:, None] * inner + column, mask=now, other=0), FLIP)
            total = tl.where(now, _apply(total, update, MODE), total)
            position += 1
            following = tl.load(keys_ptr + position, mask=active & (position < m), other=-1).to(tl.int64)
            active = active & (following == key)
        tl.store(to, _back(total, TO, FLIP), mask=head)


@triton.jit
def atomic_kernel(
    out_ptr, updates_ptr, keys_ptr, lines, m, n, inner,
    MODE: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Apply updates of signed integers in any order, which gives the same number."""
    pieces = tl.cdiv(inner, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    line = (program // pieces) * ROWS + tl.arange(0, ROWS)
    column = (program % pieces) * BLOCK + tl.arange(0, BLOCK)[None, :]
    key = tl.load(keys_ptr + line % m, mask=line < lines, other=n).to(tl.int64)
    inside = (key < n)[:, None] & (column < inner)
    update = tl.load(updates_ptr + (line * inner)[:, None] + column, mask=inside, other=0)
    to = out_ptr + ((line // m) * n + key)[:, None] * inner + column
    if MODE == "add":
        tl.atomic_add(to, update, mask=inside, sem="relaxed")
    elif MODE == "max":
        tl.atomic_max(to, update, mask=inside, sem="relaxed")
    else:
        tl.atomic_min(to, update, mask=inside, sem="relaxed")


def run(x: Tensor, indices: Tensor, updates: Tensor, axis: int, *, mode: str, along: bool) -> Tensor:
    """Scatter along an axis; see ``function.scatter`` and ``function.put_along_axis``."""
    out = allocate.empty(x.shape, dtype=x.dtype, device=x.device)
    _numbers(out).copy_(_numbers(x))
    if updates.numel() == 0 or x.numel() == 0:
        return out
    target = executor.target_for(x.device)
    indices, updates = indices.contiguous(), updates.contiguous()
    outer, n, inner = axes.split(x.shape, axis)
    total = indices.numel()
    whole = x.numel() if along else n
    wide = whole >= (1 << 31) - 1
    keys = allocate.empty((1, total), dtype=torch.int64 if wide else torch.int32, device=x.device)
    config = config_for("scatter", "keys", "*", target)
    constants = {"UNSIGNED": indices.dtype == torch.uint32, "ALONG": along}
    m = indices.shape[axis] if along else total
    args = (axes.raw(indices), keys, total, m, n, inner, whole)
    launch(keys_kernel, (cdiv(total, config["BLOCK"]),), args, constants, config)
    if along:
        outer, n, inner, m = 1, whole, 1, total
    data, source = _numbers(out), _numbers(updates)
    if mode == "assign":
        data, source = axes.raw(out), axes.raw(updates)
    name = f"{8 * x.element_size()}"
    apply = config_for("scatter", "apply", name, target)
    block = min(apply["tile"], next_power_of_2(inner))
    group = max(1, min(apply["tile"] // block, next_power_of_2(outer * m), apply["rows"]))
    tiles = {"MODE": mode, "ROWS": group, "BLOCK": block}
    pieces = cdiv(inner, block)
    if _atomic(x.dtype, mode):
        lines = outer * m
        grid = (cdiv(lines, group) * pieces,)
        launch(atomic_kernel, grid, (data, source, keys, lines, m, n, inner), tiles, apply)
        return out
    ordered, perm = sort_rows(keys, index_dtype=torch.int32, bits=whole.bit_length())
    flip = 8 * x.element_size() if mode in ("max", "min") and axes.kind(x.dtype) == "unsigned" else 0
    grid = (cdiv(m, group) * pieces * outer,)
    launch(runs_kernel, grid, (data, source, ordered, perm, m, n, inner), {**tiles, "FLIP": flip}, apply)
    return out


def _atomic(dtype: torch.dtype, mode: str) -> bool:
    """Whether atomics give the one right answer: integers of a width that they come in."""
    if mode == "add":
        return dtype in (torch.int32, torch.uint32, torch.int64, torch.uint64)
    return mode in ("max", "min") and dtype in (torch.int32, torch.int64)


def _numbers(x: Tensor) -> Tensor:
    """Return floats as they are and everything else by its bits."""
    if x.dtype.is_floating_point and x.element_size() > 1:
        return x
    return axes.raw(x).view(x.shape) if x.dim() else axes.raw(x)
