"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.sort import COUNTED_FROM, COUNTED_PAIRS, counted
from rocmend.kernels.ops.rowwise.sort.kernel import (
    count_kernel,
    counted_kernel,
    offsets_kernel,
    rows_kernel,
    scatter_kernel,
)
from rocmend.kernels.tuning import Config, config_for

Pair = tuple[torch.Tensor | None, torch.Tensor | None]


def run(x: torch.Tensor, axis: int, *, descending: bool, values: bool, indices: bool, index_dtype: torch.dtype) -> Pair:
    """Sort along an axis; see ``function.sort`` and ``function.argsort``."""
    ordered, order = sort_rows(
        axes.rows(x, axis), mode=int(descending), values=values, indices=indices, index_dtype=index_dtype
    )
    return (
        None if ordered is None else axes.unrows(ordered, x.shape, axis),
        None if order is None else axes.unrows(order, x.shape, axis),
    )


def sort_rows(
    x: torch.Tensor,
    *,
    mode: int = 0,
    values: bool = True,
    indices: bool = True,
    index_dtype: torch.dtype = torch.int64,
    keep: int | None = None,
    bits: int | None = None,
) -> Pair:
    """Sort the rows of a contiguous ``[rows, n]`` matrix.

    Args:
        x: Any type of 1, 2, 4 or 8 bytes.
        mode: Of ``order_key``.
        values: Whether the elements are wanted.
        indices: Whether their places are.
        index_dtype: Type of the places.
        keep: How many of each row are wanted, from the front.
        bits: Elements are non-negative integers below ``2^bits``: the radix sort's passes over the rest are left out.
    """
    n = x.shape[1]
    kept = n if keep is None else keep
    out = allocate.empty((x.shape[0], kept), dtype=x.dtype, device=x.device) if values else None
    order = allocate.empty((x.shape[0], kept), dtype=index_dtype, device=x.device) if indices else None
    if x.numel() == 0 or kept == 0:
        return out, order
    target = executor.target_for(x.device)
    held, pairs = (config_for("sort", name, f"{8 * x.element_size()}", target) for name in ("rows", "counted"))
    if counted(x.shape[0], n, pairs.get("least", COUNTED_FROM), pairs.get("pairs", COUNTED_PAIRS)):
        _counted(x, out, order, mode, kept, pairs)
    elif n <= held["longest"]:
        _held(x, out, order, mode, kept)
    elif kept == n:
        _radix(x, out, order, mode, bits)
    else:
        whole, places = sort_rows(x, mode=mode, values=values, indices=indices, index_dtype=index_dtype)
        if out is not None and whole is not None:
            axes.raw(out).copy_(axes.raw(whole)[:, :kept])
        if order is not None and places is not None:
            axes.raw(order).copy_(axes.raw(places)[:, :kept])
    return out, order


def _held(x: torch.Tensor, out: torch.Tensor | None, order: torch.Tensor | None, mode: int, keep: int) -> None:
    rows, n = x.shape
    width = 8 * x.element_size()
    config = config_for("sort", "rows", f"{width}", executor.target_for(x.device))
    block = max(triton.next_power_of_2(n), 2)
    group = max(1, min(config["tile"] // block, triton.next_power_of_2(rows)))
    constants = {"KIND": axes.kind(x.dtype), "MODE": mode, "ROWS": group, "BLOCK": block}
    grid = (triton.cdiv(rows, group),)
    data, values = axes.raw(x), None if out is None else axes.raw(out)
    index = None if order is None else axes.raw(order)
    if width < 64:
        launch(rows_kernel, grid, (data, None, values, index, rows, n, keep), constants | {"WORD": 0}, config)
        return
    perm = allocate.empty((rows, n), dtype=torch.int32, device=x.device)
    launch(rows_kernel, grid, (data, None, None, perm, rows, n, n), constants | {"WORD": 1}, config)
    launch(rows_kernel, grid, (data, perm, values, index, rows, n, keep), constants | {"WORD": 2}, config)


def _counted(
    x: torch.Tensor, out: torch.Tensor | None, order: torch.Tensor | None, mode: int, keep: int, config: Config
) -> None:
    rows, n = x.shape
    values, index = None if out is None else axes.raw(out), None if order is None else axes.raw(order)
    constants = {"KIND": axes.kind(x.dtype), "MODE": mode}
    grid = (triton.cdiv(n, config["BLOCK"]), rows)
    launch(counted_kernel, grid, (axes.raw(x), values, index, n, keep), constants, config)


def _radix(x: torch.Tensor, out: torch.Tensor | None, order: torch.Tensor | None, mode: int, bits: int | None) -> None:
    rows, n = x.shape
    config = config_for("sort", "radix", f"{8 * x.element_size()}", executor.target_for(x.device))
    tile, bins, step = config["tile"], config["bins"], config["step"]
    tiles = triton.cdiv(n, tile)
    width = 8 * x.element_size()
    passes = width // 8
    shifts = list(range(0, width, 8))
    if bits is not None and bits < width:
        shifts = list(range(0, max(bits, 1), 8))
        passes = len(shifts)
    device = x.device
    counts = allocate.empty((rows, tiles, 256), dtype=torch.int32, device=device)
    totals = allocate.empty((rows, 256), dtype=torch.int32, device=device)
    data, perm = axes.raw(x), None
    spare = [allocate.empty((rows, n), dtype=data.dtype, device=device) for _ in range(min(passes - 1, 2))]
    perms = [
        allocate.empty((rows, n), dtype=torch.int32, device=device)
        for _ in range(min(passes - 1, 2))
        if order is not None
    ]
    for number, shift in enumerate(shifts):
        last = number == passes - 1
        constants = {"KIND": axes.kind(x.dtype), "MODE": mode, "SHIFT": shift, "TILE": tile}
        values = (None if out is None else axes.raw(out)) if last else spare[number % 2]
        index = (None if order is None else axes.raw(order)) if last else (perms[number % 2] if perms else None)
        launch(count_kernel, (rows * tiles,), (data, counts, n, tiles), constants, config)
        launch(offsets_kernel, (rows, 256 // bins), (counts, totals, tiles), {"BINS": bins, "STEP": step}, config)
        args = (data, perm, counts, totals, values, index, n, tiles)
        launch(scatter_kernel, (rows * tiles,), args, constants, config)
        if values is not None:
            data = values
        perm = index
