"""The Triton kernels: a scan of a piece of an axis that carries on from what stands before it.

One kernel serves both passes over a long axis: the first writes the whole of each piece, the second scans it.
"""

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
from rocmend.kernels.tuning import config_for

_ACC = {torch.float32: tl.float32, torch.float64: tl.float64, torch.int32: tl.int32, torch.int64: tl.int64}
_OF_WHOLES = ("OP", "REVERSE", "FLIP", "ACC")
_GRID = 65535  # programs along the second axis of a grid


@triton.jit
def _add(a, b):
    return a + b


@triton.jit
def _multiply(a, b):
    return a * b


@triton.jit
def _larger(a, b):
    """The later of equal ones, so that -0.0 after 0.0 stays; NaN wins."""
    return tl.where((a > b) | (a != a), a, b)


@triton.jit
def _smaller(a, b):
    """The earlier of equal ones; NaN wins."""
    return tl.where((b < a) | (b != b), tl.where(a != a, a, b), a)


@triton.jit
def _logaddexp(a, b):
    """Return log(exp(a) + exp(b)); equal infinities stay, NaN wins."""
    high = tl.where(a > b, a, b)
    low = tl.where(a > b, b, a)
    far = tl.exp(low - high)
    # log(1 + t) loses t where it is small; log(u) * t / (u - 1) does not.
    sum_ = 1.0 + far
    small = tl.where(sum_ == 1.0, far, tl.log(sum_) * (far / tl.where(sum_ == 1.0, 1.0, sum_ - 1.0)))
    found = tl.where(high == low, high + 0.6931471805599453, high + small)
    found = tl.where((high - high != 0.0) & (high == high), high, found)
    return tl.where(a != a, a, tl.where(b != b, b, found))


@triton.jit
def _join(a, b, OP: tl.constexpr):
    if OP == "sum":
        return _add(a, b)
    elif OP == "prod":
        return _multiply(a, b)
    elif OP == "max":
        return _larger(a, b)
    elif OP == "min":
        return _smaller(a, b)
    else:
        return _logaddexp(a, b)


@triton.jit
def _scan(x, OP: tl.constexpr, AXIS: tl.constexpr = 0):
    if OP == "sum":
        return tl.associative_scan(x, AXIS, _add)
    elif OP == "prod":
        return tl.associative_scan(x, AXIS, _multiply)
    elif OP == "max":
        return tl.associative_scan(x, AXIS, _larger)
    elif OP == "min":
        return tl.associative_scan(x, AXIS, _smaller)
    else:
        return tl.associative_scan(x, AXIS, _logaddexp)


@triton.jit
def _identity(OP: tl.constexpr, ACC: tl.constexpr):
    if OP == "sum":
        return tl.full((), 0, ACC)
    elif OP == "prod":
        return tl.full((), 1, ACC)
    elif ACC == tl.int32:
        return tl.full((), -0x80000000 if OP == "max" else 0x7FFFFFFF, ACC)
    elif ACC == tl.int64:
        return tl.full((), -0x8000000000000000 if OP == "max" else 0x7FFFFFFFFFFFFFFF, ACC)
    else:
        return tl.full((), float("inf") if OP == "min" else float("-inf"), ACC)


@triton.jit
def _widen(x, ACC: tl.constexpr, FLIP: tl.constexpr):
    """Return an element in the type that is computed in; an unsigned one less half its range, so that order is kept."""
    if FLIP == 8:
        return (x.to(ACC) & 0xFF) - 0x80
    elif FLIP == 16:
        return (x.to(ACC) & 0xFFFF) - 0x8000
    elif FLIP == 32:
        return x.to(ACC) ^ (-0x80000000)
    elif FLIP == 64:
        return x.to(ACC) ^ (-0x8000000000000000)
    return x.to(ACC)


@triton.jit
def _narrow(x, TO: tl.constexpr, FLIP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr):
    """Undo ``_widen``; the identity of a narrow type is its own least or largest number."""
    if LOW != HIGH:
        x = tl.minimum(tl.maximum(x, LOW), HIGH)
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
def _last(x, local, BLOCK: tl.constexpr):
    """Return the last line of a tile. Its bits are summed with zeros: nothing is rounded, -0.0 and NaN stay."""
    WIDTH: tl.constexpr = x.dtype.primitive_bitwidth
    bits = x.to(tl.int64 if WIDTH == 64 else tl.int32, bitcast=True)
    return tl.sum(tl.where(local == BLOCK - 1, bits, 0), 0).to(x.dtype, bitcast=True)


@triton.jit
def scan_kernel(
    x_ptr, before_ptr, out_ptr, n, inner, pieces, piece,
    OP: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr, WHOLE: tl.constexpr,
    FLIP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, ACC: tl.constexpr,
    BLOCK: tl.constexpr, INNER: tl.constexpr,
):  # fmt: skip
    """Scan a piece of the axis for ``INNER`` neighbours, or (``WHOLE``) write only its total."""
    program = tl.program_id(0).to(tl.int64)
    groups = tl.cdiv(inner, INNER)
    group, rest = program % groups, program // groups
    number, outer = rest % pieces, rest // pieces
    neighbour = group * INNER + tl.arange(0, INNER)
    lane = (neighbour < inner)[None, :]
    stop = tl.minimum(n, (number + 1) * piece)
    nothing = _identity(OP, ACC)
    carry = tl.zeros((INNER,), ACC) + nothing
    if before_ptr is not None:
        carry = tl.load(before_ptr + (outer * pieces + number) * inner + neighbour, mask=neighbour < inner, other=0)
    local = tl.arange(0, BLOCK)[:, None]
    TO: tl.constexpr = out_ptr.dtype.element_ty
    base = outer * n * inner + neighbour[None, :]
    if EXCLUSIVE and not WHOLE:
        # Its results go one place further; the very first place holds what stands before it.
        edge = n - 1 if REVERSE else 0
        first = out_ptr + outer * n * inner + edge * inner + neighbour
        tl.store(first, _narrow(carry, TO, FLIP, LOW, HIGH), mask=neighbour < tl.where(number == 0, inner, 0))
    for start in range(0, piece, BLOCK):
        step = number * piece + start + local
        place = n - 1 - step if REVERSE else step
        inside = (step < stop) & lane
        x = _widen(tl.load(x_ptr + base + place * inner, mask=inside, other=0), ACC, FLIP)
        x = tl.where(inside, x, nothing)
        if WHOLE:
            scanned = _scan(x, OP)
        else:
            # The carry goes in before the first element, so that every result is the same sum in the same order.
            scanned = _join(tl.broadcast_to(carry[None, :], (BLOCK, INNER)), _scan(x, OP), OP)
            if EXCLUSIVE:
                further = place - 1 if REVERSE else place + 1
                fits = inside & (step + 1 < n)
                tl.store(out_ptr + base + further * inner, _narrow(scanned, TO, FLIP, LOW, HIGH), mask=fits)
            else:
                tl.store(out_ptr + base + place * inner, _narrow(scanned, TO, FLIP, LOW, HIGH), mask=inside)
        if WHOLE:
            carry = _join(carry, _last(scanned, local, BLOCK), OP)
        else:
            carry = _last(scanned, local, BLOCK)
    if WHOLE:
        tl.store(out_ptr + (outer * pieces + number) * inner + neighbour, carry, mask=neighbour < inner)


@triton.jit
def _last_lane(x, lane, LANES: tl.constexpr):
    """Return the last element of each line, as ``_last`` does."""
    bits = x.to(tl.int32, bitcast=True)
    return tl.sum(tl.where(lane[None, :] == LANES - 1, bits, 0), 1).to(x.dtype, bitcast=True)


@triton.jit
def _tile(
    x_ptr, outer, number, n,
    OP: tl.constexpr, REVERSE: tl.constexpr, FLIP: tl.constexpr, ACC: tl.constexpr,
    LINES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Read a tile of a row: ``LINES`` times ``LANES`` neighbours. Returns elements, their places, steps, and inside."""
    line, lane = tl.arange(0, LINES), tl.arange(0, LANES)
    step = number * (LINES * LANES) + line[:, None] * LANES + lane[None, :]
    inside = step < n
    place = outer * n + (n - 1 - step if REVERSE else step)
    x = _widen(tl.load(x_ptr + place, mask=inside, other=0), ACC, FLIP)
    return tl.where(inside, x, _identity(OP, ACC)), place, step, inside


@triton.jit
def _lines(x, OP: tl.constexpr, LANES: tl.constexpr):
    """Scan each line, and the totals of the lines: no wavefront waits for another to scan its lines."""
    scanned = _scan(x, OP, 1)
    return scanned, _scan(_last_lane(scanned, tl.arange(0, LANES), LANES), OP)


@triton.jit
def wholes_kernel(
    x_ptr, whole_ptr, n,
    OP: tl.constexpr, REVERSE: tl.constexpr, FLIP: tl.constexpr, ACC: tl.constexpr,
    LINES: tl.constexpr, LANES: tl.constexpr,
):  # fmt: skip
    """Write the total of each tile of each row. Programs: (tiles, rows)."""
    number, outer = tl.program_id(0).to(tl.int64), tl.program_id(1).to(tl.int64)
    x, _, _, _ = _tile(x_ptr, outer, number, n, OP, REVERSE, FLIP, ACC, LINES, LANES)
    if OP == "sum":
        whole = tl.sum(tl.sum(x, 0), 0)
    else:
        _, lines = _lines(x, OP, LANES)
        whole = _last(lines, tl.arange(0, LINES), LINES)
    tl.store(whole_ptr + outer * tl.num_programs(0) + number, whole)


@triton.jit
def tiles_kernel(
    x_ptr, whole_ptr, out_ptr, n,
    OP: tl.constexpr, REVERSE: tl.constexpr, EXCLUSIVE: tl.constexpr,
    FLIP: tl.constexpr, LOW: tl.constexpr, HIGH: tl.constexpr, ACC: tl.constexpr,
    LINES: tl.constexpr, LANES: tl.constexpr, BEFORE: tl.constexpr,
):  # fmt: skip
    """Scan each tile, and join it with the wholes of all tiles before it. Programs: (tiles, rows).

    The last tiles come first: they were read last, and caches still hold some; what is written leaves them first.
    """
    tiles = tl.num_programs(0)
    number = (tiles - 1 - tl.program_id(0)).to(tl.int64)
    outer = (tl.num_programs(1) - 1 - tl.program_id(1)).to(tl.int64)
    nothing = _identity(OP, ACC)
    TO: tl.constexpr = out_ptr.dtype.element_ty
    x, place, step, inside = _tile(x_ptr, outer, number, n, OP, REVERSE, FLIP, ACC, LINES, LANES)
    carry = nothing
    slot = tl.arange(0, BEFORE)
    for first in range(0, number, BEFORE):
        wholes = tl.load(whole_ptr + outer * tiles + first + slot, mask=first + slot < number, other=nothing)
        if OP == "sum":
            carry += tl.sum(wholes, 0)
        else:
            carry = _join(carry, _last(_scan(wholes, OP), slot, BEFORE), OP)
    scanned, lines = _lines(x, OP, LANES)
    line = tl.arange(0, LINES)
    above = tl.where(line == 0, nothing, tl.gather(lines, tl.maximum(line - 1, 0), 0))
    above = _join(tl.broadcast_to(carry, (LINES,)), above, OP)
    scanned = _join(tl.broadcast_to(above[:, None], (LINES, LANES)), scanned, OP)
    out = _narrow(scanned, TO, FLIP, LOW, HIGH)
    if EXCLUSIVE:
        # Its results go one place further; the very first place holds what stands before it.
        edge = outer * n + (n - 1 if REVERSE else 0)
        tl.store(out_ptr + edge, _narrow(carry, TO, FLIP, LOW, HIGH), mask=number == 0)
        tl.store(out_ptr + (place - 1 if REVERSE else place + 1), out, mask=step + 1 < n, cache_modifier=".cs")
    else:
        tl.store(out_ptr + place, out, mask=inside, cache_modifier=".cs")


def _computed(dtype: torch.dtype) -> torch.dtype:
    """Return the type that elements are computed in."""
    if dtype == torch.float64:
        return dtype
    if dtype.is_floating_point:
        return torch.float32
    return torch.int64 if dtype.itemsize == 8 else torch.int32


def run(x: Tensor, axis: int, *, op: str, reverse: bool, inclusive: bool, dtype: torch.dtype) -> Tensor:
    """Scan along an axis; see ``function.cumsum``."""
    x = x.contiguous()
    out = allocate.empty(x.shape, dtype=dtype, device=x.device)
    if x.numel() == 0:
        return out
    computed = _computed(dtype)
    compares = op in ("max", "min")
    flip = 8 * x.element_size() if compares and axes.kind(x.dtype) == "unsigned" else 0
    half = 1 << (8 * x.element_size() - 1)
    narrow = compares and not dtype.is_floating_point and x.element_size() < 4
    limits = (-half, half - 1) if narrow else (0, 0)
    if x.dtype == torch.bool and flip:
        limits = (-half, 1 - half)
    constants = {
        "OP": op, "REVERSE": reverse, "EXCLUSIVE": not inclusive, "FLIP": flip, "LOW": limits[0], "HIGH": limits[1],
        "ACC": _ACC[computed],
    }  # fmt: skip
    data = x if x.dtype.is_floating_point else x.view(torch.uint8) if x.dtype == torch.bool else axes.raw(x)
    if op == "logsumexp" and not x.dtype.is_floating_point:
        data = x.to(torch.float32)
    to = out if out.dtype.is_floating_point else axes.raw(out)
    sizes = axes.split(x.shape, axis)
    if not _tiles(data, to, sizes, computed, constants):
        _pieces(data, to, sizes, computed, constants)
    return out


def _tiles(data: Tensor, out: Tensor, sizes: axes.Split, computed: torch.dtype, constants: dict[str, object]) -> bool:
    """Scan long rows in two launches, totals of tiles and then the tiles; return False for other rows."""
    outer, n, inner = sizes
    target = executor.target_for(data.device)
    # Measured on NVIDIA alone; on AMD pieces of rows are walked over.
    if inner != 1 or computed.itemsize != 4 or target.vendor == "amd":
        return False
    config = config_for("scan", "tiles", "*", target)
    tiles = cdiv(n, config["LINES"] * config["LANES"])
    if outer * n < config["elements"] or outer > _GRID or not config["least"] <= tiles <= config["most"]:
        return False
    # Elements of 16 bits are read twice, and wholes of 32 bits beside: many of them take longer so than in pieces.
    most = config.get("narrow_elements", 0)
    if most and data.element_size() < computed.itemsize and outer * n > most:
        return False
    wholes = allocate.empty((outer, tiles), dtype=computed, device=data.device)
    grid = (tiles, outer)
    launch(wholes_kernel, grid, (data, wholes, n), {name: constants[name] for name in _OF_WHOLES}, config)
    launch(tiles_kernel, grid, (data, wholes, out, n), constants, config)
    return True


def _pieces(data: Tensor, out: Tensor, sizes: axes.Split, computed: torch.dtype, constants: dict[str, object]) -> None:
    outer, n, inner = sizes
    config = config_for("scan", "scan", "row" if inner == 1 else "column", executor.target_for(data.device))
    lanes = 1 if inner == 1 else min(config["lanes"], next_power_of_2(inner))
    block = max(2, min(config["tile"] // lanes, next_power_of_2(n)))
    groups = outer * cdiv(inner, lanes)
    # Enough programs to fill the GPU: a long axis is cut where there are few neighbours.
    wanted = max(1, config["programs"] // groups)
    piece = cdiv(max(cdiv(n, wanted), block * config["walk"]), block) * block
    pieces = cdiv(n, piece)
    tiles = {"BLOCK": block, "INNER": lanes}
    before = None
    if pieces > 1:
        wholes = allocate.empty((outer, pieces, inner), dtype=computed, device=data.device)
        before = allocate.empty((outer, pieces, inner), dtype=computed, device=data.device)
        launch(
            scan_kernel, (groups * pieces,), (data, None, wholes, n, inner, pieces, piece),
            {**constants, **tiles, "WHOLE": True}, config,
        )  # fmt: skip
        plain = {"EXCLUSIVE": True, "REVERSE": False, "FLIP": 0, "LOW": 0, "HIGH": 0}
        _pieces(wholes, before, axes.Split(outer, pieces, inner), computed, {**constants, **plain})
    launch(
        scan_kernel, (groups * pieces,), (data, before, out, n, inner, pieces, piece),
        {**constants, **tiles, "WHOLE": False}, config,
    )  # fmt: skip
