"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.memory.scatter.kernel import atomic_kernel, keys_kernel, runs_kernel
from rocmend.kernels.ops.rowwise.sort.host import sort_rows
from rocmend.kernels.tuning import config_for


def run(
    x: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, axis: int, *, mode: str, along: bool
) -> torch.Tensor:
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
    launch(keys_kernel, (triton.cdiv(total, config["BLOCK"]),), args, constants, config)
    if along:
        outer, n, inner, m = 1, whole, 1, total
    data, source = _numbers(out), _numbers(updates)
    if mode == "assign":
        data, source = axes.raw(out), axes.raw(updates)
    name = f"{8 * x.element_size()}"
    apply = config_for("scatter", "apply", name, target)
    block = min(apply["tile"], triton.next_power_of_2(inner))
    group = max(1, min(apply["tile"] // block, triton.next_power_of_2(outer * m), apply["rows"]))
    tiles = {"MODE": mode, "ROWS": group, "BLOCK": block}
    pieces = triton.cdiv(inner, block)
    if _atomic(x.dtype, mode):
        lines = outer * m
        grid = (triton.cdiv(lines, group) * pieces,)
        launch(atomic_kernel, grid, (data, source, keys, lines, m, n, inner), tiles, apply)
        return out
    ordered, perm = sort_rows(keys, index_dtype=torch.int32, bits=whole.bit_length())
    flip = 8 * x.element_size() if mode in ("max", "min") and axes.kind(x.dtype) == "unsigned" else 0
    grid = (triton.cdiv(m, group) * pieces * outer,)
    launch(runs_kernel, grid, (data, source, ordered, perm, m, n, inner), {**tiles, "FLIP": flip}, apply)
    return out


def _atomic(dtype: torch.dtype, mode: str) -> bool:
    """Whether atomics give the one right answer: integers of a width that they come in."""
    if mode == "add":
        return dtype in (torch.int32, torch.uint32, torch.int64, torch.uint64)
    return mode in ("max", "min") and dtype in (torch.int32, torch.int64)


def _numbers(x: torch.Tensor) -> torch.Tensor:
    """Return floats as they are and everything else by its bits."""
    if x.dtype.is_floating_point and x.element_size() > 1:
        return x
    return axes.raw(x).view(x.shape) if x.dim() else axes.raw(x)
