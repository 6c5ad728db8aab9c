"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.sort.host import sort_rows
from rocmend.kernels.ops.topk.kernel import merge_kernel, pieces_kernel
from rocmend.kernels.tuning import config_for


def run(
    x: torch.Tensor, k: int, axis: int, *, largest: bool, index_dtype: torch.dtype
) -> tuple[torch.Tensor, torch.Tensor]:
    """Take the first ``k`` along an axis; see ``function.topk``."""
    rows = axes.rows(x, axis)
    target = executor.target_for(x.device)
    width = 8 * x.element_size()
    config = config_for("topk", "pieces", f"{width}", target)
    held = config_for("sort", "rows", f"{width}", target)["longest"]
    if rows.shape[1] > held and width < 64 and 2 * k <= config["block"] and k and rows.numel():
        values, places = _in_pieces(rows, k, int(largest), index_dtype, config["block"])
    else:
        found, order = sort_rows(rows, mode=int(largest), keep=k, index_dtype=index_dtype)
        values, places = found.view_as(found) if found is not None else rows, order if order is not None else rows
    return axes.unrows(values, x.shape, axis), axes.unrows(places, x.shape, axis)


def _in_pieces(
    x: torch.Tensor, k: int, mode: int, index_dtype: torch.dtype, block: int
) -> tuple[torch.Tensor, torch.Tensor]:
    rows, n = x.shape
    target = executor.target_for(x.device)
    pieces_config = config_for("topk", "pieces", f"{8 * x.element_size()}", target)
    merge_config = config_for("topk", "merge", "*", target)
    device, data = x.device, axes.raw(x)
    pieces = triton.cdiv(n, block)
    found = allocate.empty((rows, pieces * k), dtype=torch.int64, device=device)
    constants = {"KIND": axes.kind(x.dtype), "MODE": mode, "BLOCK": block}
    launch(pieces_kernel, (rows * pieces,), (data, found, n, pieces, k), constants, pieces_config)
    most = max(merge_config["block"], triton.next_power_of_2(2 * k))
    values = allocate.empty((rows, k), dtype=x.dtype, device=device)
    index = allocate.empty((rows, k), dtype=index_dtype, device=device)
    m = pieces * k
    while m > most:
        groups = triton.cdiv(m, most)
        front = allocate.empty((rows, groups * k), dtype=torch.int64, device=device)
        args = (found, None, front, None, None, n, m, groups, k)
        launch(merge_kernel, (rows * groups,), args, {"BLOCK": most}, merge_config)
        found, m = front, groups * k
    args_last = (found, data, None, axes.raw(values), axes.raw(index), n, m, 1, k)
    launch(merge_kernel, (rows,), args_last, {"BLOCK": max(triton.next_power_of_2(m), 2)}, merge_config)
    return values, index
