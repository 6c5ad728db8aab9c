"""The Triton kernels: fronts of pieces of a row; or the leaders of its groups, and then the front of the best groups.

The first ``k`` elements stand in the ``k`` groups of neighbours whose own first elements come first, equal ones by
place. So a long row is read once, and only a few thousand numbers are sorted.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.common.order_keys import ascending, order_key
from rocmend.kernels.language import INTERPRETED
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.sort.kernel import sort_rows
from rocmend.kernels.ops.rowwise.topk import group_of
from rocmend.kernels.tuning import Config, config_for


@triton.jit
def _front(packed, KEPT: tl.constexpr):
    """Return the ``KEPT`` least of integers, in order; ``KEPT`` is a power of two."""
    SIZE: tl.constexpr = packed.shape[0]
    if KEPT >= SIZE:
        found = ascending(packed)
    elif INTERPRETED:
        lines = tl.reshape(ascending(packed), (SIZE // KEPT, KEPT))
        found = tl.sum(tl.where(tl.arange(0, SIZE // KEPT)[:, None] == 0, lines, 0), 0)
    else:
        found = ~tl.topk(~packed, KEPT)
    return found


@triton.jit
def pieces_kernel(
    x_ptr, found_ptr, n, pieces, k,
    KIND: tl.constexpr, MODE: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Write the first ``k`` of a piece of a row as ``key · 2^32 + place``: ``found[row, piece, k]``."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // pieces, (program % pieces) * BLOCK
    column = tl.arange(0, BLOCK)
    inside = start + column < n
    bits = tl.load(x_ptr + row * n + start + column, mask=inside, other=0)
    WIDTH: tl.constexpr = bits.dtype.primitive_bitwidth
    key = order_key(bits, KIND, MODE)
    if WIDTH <= 16:
        packed = _front(tl.where(inside, key * 65536 + column, 0x7FFFFFFF), KEPT)
        wide = (packed >> 16).to(tl.int64) * 4294967296 + (start + (packed & 0xFFFF))
        wide = tl.where(packed == 0x7FFFFFFF, 0x7FFFFFFFFFFFFFFF, wide)
    else:
        wide = tl.where(inside, key.to(tl.int64) * 4294967296 + (start + column), 0x7FFFFFFFFFFFFFFF)
        wide = _front(wide, KEPT)
    kept = tl.arange(0, KEPT)
    tl.store(found_ptr + program * k + kept, wide, mask=kept < k)


@triton.jit
def leaders_kernel(
    x_ptr, leaders_ptr, n, groups, KIND: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr
):
    """Write the first key of each ``GROUP`` neighbours as ``key · 2^32 + group``: ``leaders[row, group]``."""
    tiles = tl.cdiv(groups, BLOCK)
    program = tl.program_id(0).to(tl.int64)
    row = program // tiles
    group = (program % tiles) * BLOCK + tl.arange(0, BLOCK)
    place = group[:, None] * GROUP + tl.arange(0, GROUP)[None, :]
    inside = place < n
    key = order_key(tl.load(x_ptr + row * n + place, mask=inside, other=0), KIND, MODE)
    first = tl.min(tl.where(inside, key, 0x7FFFFFFF), 1)
    tl.store(leaders_ptr + row * groups + group, first.to(tl.int64) * 4294967296 + group, mask=group < groups)


@triton.jit
def _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT: tl.constexpr):
    """Write a front; at the end, where it is the row's, its elements and their places."""
    column = tl.arange(0, KEPT)
    to, kept = program * k + column, column < k
    if front_ptr is not None:
        tl.store(front_ptr + to, packed, mask=kept)
    else:
        place = packed & 0xFFFFFFFF
        tl.store(index_ptr + to, place.to(index_ptr.dtype.element_ty), mask=kept)
        tl.store(values_ptr + to, tl.load(x_ptr + row * n + place, mask=kept, other=0), mask=kept)


@triton.jit
def merge_kernel(
    found_ptr, x_ptr, front_ptr, values_ptr, index_ptr, n, m, pieces, k, BLOCK: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Take the first ``k`` of ``BLOCK`` candidates."""
    program = tl.program_id(0).to(tl.int64)
    row, start = program // pieces, (program % pieces) * BLOCK
    column = tl.arange(0, BLOCK)
    packed = tl.load(found_ptr + row * m + start + column, mask=start + column < m, other=0x7FFFFFFFFFFFFFFF)
    packed = _front(packed, KEPT)
    _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT)


@triton.jit
def members_kernel(
    leaders_ptr, x_ptr, front_ptr, values_ptr, index_ptr, n, pieces, k,
    KIND: tl.constexpr, MODE: tl.constexpr, GROUP: tl.constexpr, BLOCK: tl.constexpr, KEPT: tl.constexpr,
):  # fmt: skip
    """Take the first ``k`` of ``BLOCK`` members of the row's best groups, ``leaders[row, k]``."""
    program = tl.program_id(0).to(tl.int64)
    row = program // pieces
    member = (program % pieces) * BLOCK + tl.arange(0, BLOCK)
    number = member // GROUP
    group = tl.load(leaders_ptr + row * k + number, mask=number < k, other=0) & 0xFFFFFFFF
    place = group * GROUP + member % GROUP
    inside = (number < k) & (place < n)
    key = order_key(tl.load(x_ptr + row * n + place, mask=inside, other=0), KIND, MODE)
    packed = _front(tl.where(inside, key.to(tl.int64) * 4294967296 + place, 0x7FFFFFFFFFFFFFFF), KEPT)
    _write(packed, x_ptr, front_ptr, values_ptr, index_ptr, row, program, n, k, KEPT)


class _Job(NamedTuple):
    """Rows, and what is taken of each.

    Args:
        x: ``[rows, n]``, contiguous.
        k: How many are taken.
        mode: Order of the keys: 1 where the largest come first.
        values: ``[rows, k]``, takes the elements.
        places: ``[rows, k]``, takes where they stand.
        merge: The record of the kernels that merge.
    """

    x: Tensor
    k: int
    mode: int
    values: Tensor
    places: Tensor
    merge: Config

    def config(self, kernel: str) -> Config:
        """Look a tuning record up."""
        return config_for("topk", kernel, str(8 * self.x.element_size()), executor.target_for(self.x.device))

    @property
    def front(self) -> int:
        """The power of two that holds a front."""
        return max(next_power_of_2(self.k), 2)

    @property
    def candidates(self) -> int:
        """Candidates that one program takes."""
        return max(self.merge["block"], 2 * self.front)


def _run(launches: Callable[[_Job], None]) -> Callable[..., tuple[Tensor, Tensor]]:
    """Make an implementation from the launches of a kernel."""

    def run(x: Tensor, k: int, axis: int, *, largest: bool, index_dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Take the first ``k`` along an axis; see ``function.topk``."""
        rows = axes.rows(x, axis)
        values = allocate.empty((rows.shape[0], k), dtype=x.dtype, device=x.device)
        places = allocate.empty((rows.shape[0], k), dtype=index_dtype, device=x.device)
        merge = config_for("topk", "merge", "*", executor.target_for(x.device))
        launches(_Job(rows, k, int(largest), values, places, merge))
        return axes.unrows(values, x.shape, axis), axes.unrows(places, x.shape, axis)

    return run


def by_sorting(x: Tensor, k: int, axis: int, *, largest: bool, index_dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    """Take the first ``k`` of sorted rows; see ``function.topk``."""
    found = sort_rows(axes.rows(x, axis), descending=largest, keep=k, index_dtype=index_dtype)
    values, places = (axes.unrows(one, x.shape, axis) for one in found if one is not None)
    return values, places


def _pieces(job: _Job) -> None:
    rows, n = job.x.shape
    config = job.config("pieces")
    block = config["block"]
    pieces = cdiv(n, block)
    found = allocate.empty((rows, pieces * job.k), dtype=torch.int64, device=job.x.device)
    constants = {"KIND": axes.kind(job.x.dtype), "MODE": job.mode, "BLOCK": block, "KEPT": job.front}
    launch(pieces_kernel, (rows * pieces,), (axes.raw(job.x), found, n, pieces, job.k), constants, config)
    _write_fronts(job, found)


def _groups(job: _Job) -> None:
    """Find the groups with the best leaders, then the best of their members."""
    rows, n = job.x.shape
    k, device, data = job.k, job.x.device, axes.raw(job.x)
    group, config = group_of(n, k), job.config("leaders")
    groups = cdiv(n, group)
    order = {"KIND": axes.kind(job.x.dtype), "MODE": job.mode, "GROUP": group}
    leaders = allocate.empty((rows, groups), dtype=torch.int64, device=device)
    together = max(1, config["tile"] // group)
    launch(
        leaders_kernel, (rows * cdiv(groups, together),), (data, leaders, n, groups),
        {**order, "BLOCK": together}, config,
    )  # fmt: skip
    best = _merged(job, _narrowed(job, leaders))
    block = min(job.candidates, next_power_of_2(k * group))
    pieces = cdiv(k * group, block)
    constants = {**order, "BLOCK": block, "KEPT": job.front}
    if pieces == 1:
        args = (best, data, None, axes.raw(job.values), axes.raw(job.places), n, 1, k)
        launch(members_kernel, (rows,), args, constants, job.merge)
        return
    found = allocate.empty((rows, pieces * k), dtype=torch.int64, device=device)
    launch(members_kernel, (rows * pieces,), (best, data, found, None, None, n, pieces, k), constants, job.merge)
    _write_fronts(job, found)


def _narrowed(job: _Job, found: Tensor) -> Tensor:
    """Merge candidates ``[rows, m]`` until one program can take a row's."""
    while found.shape[1] > job.candidates:
        found = _merged(job, found)
    return found


def _merged(job: _Job, found: Tensor) -> Tensor:
    """Return the fronts of as many candidates as one program takes: ``[rows, pieces · k]``."""
    rows, m = found.shape
    block = max(min(job.candidates, next_power_of_2(m)), job.front)
    pieces = cdiv(m, block)
    front = allocate.empty((rows, pieces * job.k), dtype=torch.int64, device=found.device)
    args = (found, None, front, None, None, job.x.shape[1], m, pieces, job.k)
    launch(merge_kernel, (rows * pieces,), args, {"BLOCK": block, "KEPT": job.front}, job.merge)
    return front


def _write_fronts(job: _Job, found: Tensor) -> None:
    """Take the front of a row's candidates and write its elements and places."""
    found = _narrowed(job, found)
    rows, m = found.shape
    block = max(next_power_of_2(m), job.front)
    args = (
        found, axes.raw(job.x), None, axes.raw(job.values), axes.raw(job.places), job.x.shape[1], m, 1, job.k
    )  # fmt: skip
    launch(merge_kernel, (rows,), args, {"BLOCK": block, "KEPT": job.front}, job.merge)


groups, pieces = map(_run, (_groups, _pieces))
