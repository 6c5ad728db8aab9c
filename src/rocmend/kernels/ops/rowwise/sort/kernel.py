"""The Triton kernels: a bitonic sort, one that counts the elements before each, and a radix sort.

The first is for rows held in registers, the second for a few longer ones, the third takes eight bits a pass.

Elements travel as their bits, indices with them. A stable order comes from the position, which is the key's low part.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.common.order_keys import ascending, order_key
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.sort import OP, Problem
from rocmend.kernels.select import implementation
from rocmend.kernels.tuning import Config, config_for

Pair = tuple[Tensor | None, Tensor | None]


@triton.jit
def rows_kernel(
    x_ptr, perm_ptr, values_ptr, index_ptr, rows, n, keep,
    KIND: tl.constexpr, MODE: tl.constexpr, WORD: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Sort whole rows; 64-bit elements take two calls: by the low half (WORD 1), then by the high half (WORD 2)."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, BLOCK)[None, :]
    inside = (row < rows) & (column < n)
    source = column
    if perm_ptr is not None:
        source = tl.load(perm_ptr + row * n + column, mask=inside, other=0).to(tl.int32)
    bits = tl.load(x_ptr + row * n + source, mask=inside, other=0)
    WIDTH: tl.constexpr = bits.dtype.primitive_bitwidth
    key = order_key(bits, KIND, MODE)
    if WORD == 1:
        key = (key & 0xFFFFFFFF) - 0x80000000
    if WORD == 2:
        key = key >> 32
    if WIDTH <= 16:
        packed = tl.where(inside, key * 65536 + column, 0x7FFFFFFF)
        place = ascending(packed) & 0xFFFF
    else:
        packed = tl.where(inside, key.to(tl.int64) * 4294967296 + column, 0x7FFFFFFFFFFFFFFF)
        place = (ascending(packed) & 0xFFFFFFFF).to(tl.int32)
    kept = (row < rows) & (column < keep)
    if perm_ptr is not None:
        place = tl.load(perm_ptr + row * n + place, mask=kept, other=0).to(tl.int32)
    to = row * keep + column
    if index_ptr is not None:
        tl.store(index_ptr + to, place.to(index_ptr.dtype.element_ty), mask=kept)
    if values_ptr is not None:
        tl.store(values_ptr + to, tl.load(x_ptr + row * n + place, mask=kept, other=0), mask=kept)


@triton.jit
def counted_kernel(
    x_ptr, values_ptr, index_ptr, n, keep,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, CHUNK: tl.constexpr,
):  # fmt: skip
    """Put BLOCK elements of a row where they belong: behind as many as are less, or equal and before them.

    Programs: (blocks of a row, rows). All pairs are compared, which takes no more than reading them one after another
    where a row has some thousands of elements; CHUNK is a multiple of BLOCK.
    """
    row = tl.program_id(1).to(tl.int64) * n
    first = tl.program_id(0) * BLOCK
    position = first + tl.arange(0, BLOCK)
    inside = position < n
    bits = tl.load(x_ptr + row + position, mask=inside, other=0)
    own = order_key(bits, KIND, MODE)[:, None]
    chunk = tl.arange(0, CHUNK)
    # Only in its own chunk has an element others on both sides.
    turn = first // CHUNK * CHUNK
    there = turn + chunk < n
    key = order_key(tl.load(x_ptr + row + turn + chunk, mask=there, other=0), KIND, MODE)[None, :]
    earlier = (key < own) | ((key == own) & ((turn + chunk)[None, :] < position[:, None]))
    before = (earlier & there[None, :]).to(tl.int32)
    for start in range(0, turn, CHUNK):
        key = order_key(tl.load(x_ptr + row + start + chunk), KIND, MODE)[None, :]
        before += (key <= own).to(tl.int32)
    for start in range(turn + CHUNK, n, CHUNK):
        there = start + chunk < n
        key = order_key(tl.load(x_ptr + row + start + chunk, mask=there, other=0), KIND, MODE)[None, :]
        before += ((key < own) & there[None, :]).to(tl.int32)
    rank = tl.sum(before, axis=1)
    to = tl.program_id(1).to(tl.int64) * keep + rank
    kept = inside & (rank < keep)
    if index_ptr is not None:
        tl.store(index_ptr + to, position.to(index_ptr.dtype.element_ty), mask=kept)
    if values_ptr is not None:
        tl.store(values_ptr + to, bits, mask=kept)


@triton.jit
def _digit(bits, inside, KIND: tl.constexpr, MODE: tl.constexpr, SHIFT: tl.constexpr):
    """Return eight bits of the key as an unsigned number; 255 past the end, where the position keeps it last."""
    WIDTH: tl.constexpr = bits.dtype.primitive_bitwidth
    digit = ((order_key(bits, KIND, MODE) >> SHIFT) & 255).to(tl.int32)
    if SHIFT + 8 == WIDTH:
        digit = digit ^ 128
    return tl.where(inside, digit, 255)


@triton.jit
def _histogram(digit, inside_count, TILE: tl.constexpr):
    """Count the digits of a tile without those past its end."""
    bins = tl.arange(0, 256)
    return tl.histogram(digit, 256) - tl.where(bins == 255, TILE - inside_count, 0)


@triton.jit
def count_kernel(
    bits_ptr, counts_ptr, n, tiles,
    KIND: tl.constexpr, MODE: tl.constexpr, SHIFT: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Count the digits of each tile: ``counts[row, tile, 256]``."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // tiles, (program % tiles) * TILE
    position = tl.arange(0, TILE)
    inside = start + position < n
    bits = tl.load(bits_ptr + row * n + start + position, mask=inside, other=0)
    count = tl.minimum(n - start, TILE).to(tl.int32)
    counts = _histogram(_digit(bits, inside, KIND, MODE, SHIFT), count, TILE)
    tl.store(counts_ptr + program * 256 + tl.arange(0, 256), counts)


@triton.jit
def offsets_kernel(counts_ptr, totals_ptr, tiles, BINS: tl.constexpr, STEP: tl.constexpr):
    """Turn the counts of each digit into those of the tiles before, and sum them: ``totals[row, 256]``."""
    row = tl.program_id(0).to(tl.int64)
    digit = tl.program_id(1) * BINS + tl.arange(0, BINS)
    before = tl.zeros((BINS,), tl.int32)
    for start in range(0, tiles, STEP):
        tile = start + tl.arange(0, STEP)
        at = counts_ptr + (row * tiles + tile[:, None]) * 256 + digit[None, :]
        inside = (tile < tiles)[:, None]
        counts = tl.load(at, mask=inside, other=0)
        tl.store(at, tl.cumsum(counts, 0) - counts + before[None, :], mask=inside)
        before += tl.sum(counts, 0)
    tl.store(totals_ptr + row * 256 + digit, before)


@triton.jit
def scatter_kernel(
    bits_ptr, perm_ptr, counts_ptr, totals_ptr, values_ptr, index_ptr, n, tiles,
    KIND: tl.constexpr, MODE: tl.constexpr, SHIFT: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Sort a tile by one digit and write its runs where the digit's elements of the row go."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // tiles, (program % tiles) * TILE
    position = tl.arange(0, TILE)
    inside = start + position < n
    from_ = row * n + start
    bits = tl.load(bits_ptr + from_ + position, mask=inside, other=0)
    digit = _digit(bits, inside, KIND, MODE, SHIFT)
    count = tl.minimum(n - start, TILE).to(tl.int32)
    local = _histogram(digit, count, TILE)
    bins = tl.arange(0, 256)
    totals = tl.load(totals_ptr + row * 256 + bins)
    base = tl.cumsum(totals, 0) - totals + tl.load(counts_ptr + program * 256 + bins) - (tl.cumsum(local, 0) - local)
    packed = ascending(digit * TILE + position)
    place = packed & (TILE - 1)
    to = row * n + tl.gather(base, packed // TILE, 0) + position
    if values_ptr is not None:
        tl.store(values_ptr + to, tl.load(bits_ptr + from_ + place, mask=inside, other=0), mask=inside)
    if index_ptr is not None:
        index = (start + place).to(tl.int32)
        if perm_ptr is not None:
            index = tl.load(perm_ptr + from_ + place, mask=inside, other=0)
        tl.store(index_ptr + to, index.to(index_ptr.dtype.element_ty), mask=inside)


class Sorting(NamedTuple):
    """What is wanted of rows.

    Args:
        x: ``[rows, n]``, contiguous, of any type of 1, 2, 4 or 8 bytes.
        mode: Of ``order_key``.
        out: Takes the elements; or None.
        order: Takes their places; or None.
        keep: How many of each row are wanted, from the front.
        bits: Elements are non-negative integers below ``2^bits``: passes over the rest are left out.
    """

    x: Tensor
    mode: int
    out: Tensor | None
    order: Tensor | None
    keep: int
    bits: int | None

    @property
    def results(self) -> Pair:
        """Where elements and places go, as bits."""
        return None if self.out is None else axes.raw(self.out), None if self.order is None else axes.raw(self.order)

    def config(self, kernel: str) -> Config:
        """Look a tuning record up."""
        return config_for("sort", kernel, str(8 * self.x.element_size()), executor.target_for(self.x.device))


def _kernel(launches: Callable[[Sorting], None]) -> Callable[..., Pair]:
    """Make an implementation from the launches of a kernel."""

    def run(
        x: Tensor, axis: int, *, descending: bool, values: bool, indices: bool, index_dtype: torch.dtype,
        keep: int | None = None, bits: int | None = None,
    ) -> Pair:  # fmt: skip
        """Sort along an axis; see ``function.sort`` and ``function.argsort``.

        Args:
            x: Any shape.
            axis: Along which.
            descending: The largest first.
            values: Whether the elements are wanted.
            indices: Whether their places are.
            index_dtype: Type of the places.
            keep: How many of each row are wanted, from the front.
            bits: See ``Sorting``.
        """
        rows = axes.rows(x, axis)
        kept = rows.shape[1] if keep is None else keep
        out = allocate.empty((rows.shape[0], kept), dtype=x.dtype, device=x.device) if values else None
        order = allocate.empty((rows.shape[0], kept), dtype=index_dtype, device=x.device) if indices else None
        if rows.numel() and kept:
            launches(Sorting(rows, int(descending), out, order, kept, bits))
        return (
            None if out is None else axes.unrows(out, x.shape, axis),
            None if order is None else axes.unrows(order, x.shape, axis),
        )

    return run


def sort_rows(x: Tensor, **options: Any) -> Pair:
    """Sort the rows of a contiguous ``[rows, n]`` matrix by the kernel that is selected for it; for other ops.

    Args:
        x: The rows.
        options: Of a kernel's ``run``; by default upwards, elements and int64 places.
    """
    options = {"descending": False, "values": True, "indices": True, "index_dtype": torch.int64} | options
    problem = Problem(NAMES[x.dtype], x.shape[0], x.shape[1], not options["values"])
    found: Pair = implementation(OP, x.device, problem, tier="triton")(x, 1, **options)
    return found


def _rows(job: Sorting) -> None:
    x, keep = job.x, job.keep
    rows, n = x.shape
    config = job.config("rows")
    block = max(next_power_of_2(n), 2)
    group = max(1, min(config["tile"] // block, next_power_of_2(rows)))
    constants = {"KIND": axes.kind(x.dtype), "MODE": job.mode, "ROWS": group, "BLOCK": block}
    grid = (cdiv(rows, group),)
    data, (values, index) = axes.raw(x), job.results
    if x.element_size() < 8:
        launch(rows_kernel, grid, (data, None, values, index, rows, n, keep), constants | {"WORD": 0}, config)
        return
    perm = allocate.empty((rows, n), dtype=torch.int32, device=x.device)
    launch(rows_kernel, grid, (data, None, None, perm, rows, n, n), constants | {"WORD": 1}, config)
    launch(rows_kernel, grid, (data, perm, values, index, rows, n, keep), constants | {"WORD": 2}, config)


def _counted(job: Sorting) -> None:
    rows, n = job.x.shape
    config = job.config("counted")
    constants = {"KIND": axes.kind(job.x.dtype), "MODE": job.mode}
    grid = (cdiv(n, config["BLOCK"]), rows)
    launch(counted_kernel, grid, (axes.raw(job.x), *job.results, n, job.keep), constants, config)


def _radix(job: Sorting) -> None:
    x = job.x
    rows, n = x.shape
    if job.keep < n:
        whole, places = (
            None if one is None else allocate.empty((rows, n), dtype=one.dtype, device=x.device)
            for one in (job.out, job.order)
        )
        _radix(job._replace(out=whole, order=places, keep=n))
        for part, all_of in ((job.out, whole), (job.order, places)):
            if part is not None and all_of is not None:
                axes.raw(part).copy_(axes.raw(all_of)[:, : job.keep])
        return
    config = job.config("radix")
    tile, bins, step = config["tile"], config["bins"], config["step"]
    tiles = cdiv(n, tile)
    width = 8 * x.element_size()
    shifts = range(0, width if job.bits is None else min(width, max(job.bits, 1)), 8)
    passes = len(shifts)
    device = x.device
    counts = allocate.empty((rows, tiles, 256), dtype=torch.int32, device=device)
    totals = allocate.empty((rows, 256), dtype=torch.int32, device=device)
    data, perm = axes.raw(x), None
    out, order = job.results
    spare = [allocate.empty((rows, n), dtype=data.dtype, device=device) for _ in range(min(passes - 1, 2))]
    perms = [
        allocate.empty((rows, n), dtype=torch.int32, device=device)
        for _ in range(min(passes - 1, 2))
        if order is not None
    ]
    for number, shift in enumerate(shifts):
        last = number == passes - 1
        constants = {"KIND": axes.kind(x.dtype), "MODE": job.mode, "SHIFT": shift, "TILE": tile}
        values = out if last else spare[number % 2]
        index = order if last else (perms[number % 2] if perms else None)
        launch(count_kernel, (rows * tiles,), (data, counts, n, tiles), constants, config)
        launch(offsets_kernel, (rows, 256 // bins), (counts, totals, tiles), {"BINS": bins, "STEP": step}, config)
        args = (data, perm, counts, totals, values, index, n, tiles)
        launch(scatter_kernel, (rows * tiles,), args, constants, config)
        if values is not None:
            data = values
        perm = index


rows, counted, radix = map(_kernel, (_rows, _counted, _radix))
