"""The Triton kernels: the best key of a piece of an axis with its place, then the best of the pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes, semaphores
from rocmend.kernels.common.last_block import is_last_block
from rocmend.kernels.common.order_keys import order_key
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for


@triton.jit
def _best(keys_ptr, places_ptr, at, inside):
    """Return the place of the best of the pieces along the first axis, the first of equal ones."""
    WIDTH: tl.constexpr = keys_ptr.dtype.element_ty.primitive_bitwidth
    LEAST: tl.constexpr = -0x8000000000000000 if WIDTH == 64 else -0x80000000
    key = tl.load(keys_ptr + at, mask=inside, other=LEAST, cache_modifier=".cg")
    place = tl.load(places_ptr + at, mask=inside, other=0x7FFFFFFFFFFFFFFF, cache_modifier=".cg")
    return tl.min(tl.where(key == tl.max(key, 0)[None, :], place, 0x7FFFFFFFFFFFFFFF), 0)


@triton.jit
def _finish(keys_ptr, places_ptr, index_ptr, outer, lane, inner, pieces, PIECES: tl.constexpr):
    """Store the places of the best of all pieces for neighbours."""
    part = tl.arange(0, PIECES)[:, None]
    at = (outer * pieces + part) * inner + lane[None, :]
    index = _best(keys_ptr, places_ptr, at, (part < pieces) & (lane < inner)[None, :])
    tl.store(index_ptr + outer * inner + lane, index.to(index_ptr.dtype.element_ty), mask=lane < inner)


@triton.jit
def pieces_kernel(
    x_ptr, keys_ptr, places_ptr, counter_ptr, index_ptr, n, inner, pieces, piece, keys_at,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, INNER: tl.constexpr, PIECES: tl.constexpr,
):  # fmt: skip
    """Walk a piece of the axis for ``INNER`` neighbours; write ``[outer, piece, inner]``, or places if it is all.

    With counters the last piece to arrive takes the best of all (PIECES at most).
    """
    program = tl.program_id(0).to(tl.int64)
    groups = tl.cdiv(inner, INNER)
    group, rest = program % groups, program // groups
    number, outer = rest % pieces, rest // pieces
    neighbour = group * INNER + tl.arange(0, INNER)[None, :]
    first = number * piece
    base = x_ptr + (outer * n + first) * inner + neighbour
    # Places within a piece are 32-bit numbers: half the registers, and arithmetic that every GPU has.
    stop = tl.minimum(n - first, piece).to(tl.int32)
    WIDTH: tl.constexpr = x_ptr.dtype.element_ty.primitive_bitwidth
    LEAST: tl.constexpr = -0x8000000000000000 if WIDTH == 64 else -0x80000000
    best = tl.full((BLOCK, INNER), LEAST, tl.int64 if WIDTH == 64 else tl.int32)
    at = tl.zeros((BLOCK, INNER), tl.int32) + tl.arange(0, BLOCK)[:, None]
    for start in range(0, piece, BLOCK):
        place = start + tl.arange(0, BLOCK)[:, None]
        inside = (place < stop) & (neighbour < inner)
        bits = tl.load(base + place.to(tl.int64) * inner, mask=inside, other=0)
        key = order_key(bits, KIND, MODE)
        better = inside & (key > best)
        best = tl.where(better, key, best)
        at = tl.where(better, place, at)
    most = tl.max(best, 0)
    # A lane that never found anything better points at its first place, which is past the end where the piece is short.
    fit = (best == most[None, :]) & (at < stop)
    found = tl.min(tl.where(fit, at, 0x7FFFFFFF), 0) + first
    lane = group * INNER + tl.arange(0, INNER)
    to = (outer * pieces + number) * inner + lane
    if keys_ptr is not None:
        keys_ptr += keys_at
        tl.store(keys_ptr + to, most, mask=lane < inner)
        tl.store(places_ptr + to, found, mask=lane < inner)
        if counter_ptr is not None:
            if is_last_block(counter_ptr + outer * groups + group, pieces):
                _finish(keys_ptr, places_ptr, index_ptr, outer, lane, inner, pieces, PIECES)
    else:
        tl.store(index_ptr + to, found.to(index_ptr.dtype.element_ty), mask=lane < inner)


@triton.jit
def combine_kernel(keys_ptr, places_ptr, index_ptr, outputs, inner, pieces, PIECES: tl.constexpr, BLOCK: tl.constexpr):
    """Take the best of the pieces, the first of equal ones."""
    output = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    number = tl.arange(0, PIECES)[:, None]
    at = ((output // inner) * pieces)[None, :] * inner + number * inner + (output % inner)[None, :]
    inside = (number < pieces) & (output < outputs)[None, :]
    found = _best(keys_ptr, places_ptr, at, inside)
    tl.store(index_ptr + output, found.to(index_ptr.dtype.element_ty), mask=output < outputs)


@Planner
def run(
    x: Tensor, axis: int, *, largest: bool, index_dtype: torch.dtype, shape: torch.Size | None = None
) -> Callable[..., Tensor]:
    """Plan to find where the best element along an axis is; see ``function.argmax``.

    Args:
        x: Any shape.
        axis: Axis.
        largest: The largest element is best, else the smallest.
        index_dtype: Type of the result.
        shape: Of the result; None for that of x without the axis.
    """
    device = x.device
    outer, n, inner = axes.split(x.shape, axis)
    output = allocate.Output(
        x.shape[:axis] + x.shape[axis + 1 :] if shape is None else shape, dtype=index_dtype, device=x.device
    )
    if outer * inner == 0:
        return lambda *_, **__: output()
    target = executor.target_for(x.device)
    kind = "row" if inner == 1 else "column"
    config = config_for("arg_reduce", "pieces", kind, target)
    lanes = 1 if inner == 1 else min(config["lanes"], next_power_of_2(inner))
    block = max(1, min(config["tile"] // lanes, next_power_of_2(n)))
    outputs = outer * inner
    groups = outer * cdiv(inner, lanes)
    # Enough programs to fill the GPU, each with several tiles.
    wanted = max(1, (config["programs"] + groups - 1) // groups)
    piece = max(cdiv(n, min(wanted, config["most"])), block * config["walk"])
    piece = cdiv(piece, block) * block
    pieces = cdiv(n, piece)
    constants = {"KIND": axes.kind(x.dtype), "MODE": 0 if largest else 2, "BLOCK": block, "INNER": lanes, "PIECES": 1}
    index_type, numbers = axes.raw_type(index_dtype), (n, inner, pieces, piece)
    wide = torch.int64 if x.element_size() == 8 else torch.int32
    types = (axes.raw_type(x.dtype), wide, None, None, index_type)
    first = LaunchPlan(pieces_kernel, (groups * pieces,), constants, config, (*numbers, 0), types)
    dense = x.is_contiguous()
    if pieces == 1:
        return first.into(output, lambda x, *_, **__: (x if dense else x.contiguous(), None, None, None))
    needed = outputs * pieces * (8 + wide.itemsize)
    whole = None
    if config.get("last_pieces", 0) >= pieces and semaphores.fits(groups, needed):
        # The keys stand behind the places in the scratch memory.
        keys_at = outputs * pieces * 8 // wide.itemsize
        constants = {**constants, "PIECES": next_power_of_2(pieces)}
        whole = LaunchPlan(pieces_kernel, (groups * pieces,), constants, config, (*numbers, keys_at), types)
    best, found = (allocate.Output((outer, pieces, inner), dtype, x.device) for dtype in (wide, torch.int64))
    combine = config_for("arg_reduce", "combine", kind, target)
    size = next_power_of_2(pieces)
    each = max(1, min(combine["tile"] // size, next_power_of_2(outputs)))
    last = LaunchPlan(
        combine_kernel, (cdiv(outputs, each),), {"PIECES": size, "BLOCK": each}, combine, (outputs, inner, pieces),
        (None, None, index_type),
    )  # fmt: skip

    def in_pieces(x: Tensor, *_: Any, **__: Any) -> Tensor:
        x = x if dense else x.contiguous()
        out = output()
        if whole is not None and (shared := semaphores.workspace(device, groups, needed)) is not None:
            counters, scratch = shared
            whole((x, scratch, scratch, counters, out))
            return out
        keys, places = best(), found()
        first((x, keys, places, None, None))
        last((keys, places, out))
        return out

    return in_pieces
