"""Launch the Triton kernels."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.rowwise.sort.host import sort_rows
from rocmend.kernels.ops.rowwise.topk.kernel import leaders_kernel, members_kernel, merge_kernel, pieces_kernel
from rocmend.kernels.tuning import Config, config_for

_LEAST_GROUP, _MOST_GROUP = 16, 512


class _Row(NamedTuple):
    """What is asked of each row.

    Args:
        x: ``[rows, n]``, contiguous.
        k: How many are taken.
        mode: Order of the keys: 1 where the largest come first.
        values: ``[rows, k]``, takes the elements.
        places: ``[rows, k]``, takes where they stand.
        merge: The record of the kernels that merge.
    """

    x: torch.Tensor
    k: int
    mode: int
    values: torch.Tensor
    places: torch.Tensor
    merge: Config

    @property
    def kept(self) -> int:
        """The power of two that holds a front."""
        return max(next_power_of_2(self.k), 2)

    @property
    def most(self) -> int:
        """Candidates that one program takes."""
        return max(self.merge["block"], 2 * self.kept)


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
        values = allocate.empty((rows.shape[0], k), dtype=x.dtype, device=x.device)
        places = allocate.empty((rows.shape[0], k), dtype=index_dtype, device=x.device)
        asked = _Row(rows, k, int(largest), values, places, config_for("topk", "merge", "*", target))
        group = _group(rows.shape[1], k)
        if rows.shape[1] >= config.get("groups_from", 16384) and 2 * k * group <= rows.shape[1]:
            _by_groups(asked, group, config_for("topk", "leaders", f"{width}", target))
        else:
            _in_pieces(asked, config)
    else:
        found, order = sort_rows(rows, mode=int(largest), keep=k, index_dtype=index_dtype)
        values, places = found.view_as(found) if found is not None else rows, order if order is not None else rows
    return axes.unrows(values, x.shape, axis), axes.unrows(places, x.shape, axis)


def _group(n: int, k: int) -> int:
    """Return how many neighbours make a group: as many groups as members of the best groups, roughly."""
    return min(max(next_power_of_2(math.isqrt(n // k)), _LEAST_GROUP), _MOST_GROUP)


def _in_pieces(asked: _Row, config: Config) -> None:
    rows, n = asked.x.shape
    block = config["block"]
    pieces = cdiv(n, block)
    found = allocate.empty((rows, pieces * asked.k), dtype=torch.int64, device=asked.x.device)
    constants = {"KIND": axes.kind(asked.x.dtype), "MODE": asked.mode, "BLOCK": block, "KEPT": asked.kept}
    launch(pieces_kernel, (rows * pieces,), (axes.raw(asked.x), found, n, pieces, asked.k), constants, config)
    _write(asked, found)


def _by_groups(asked: _Row, group: int, config: Config) -> None:
    """Find the groups with the best leaders, then the best of their members."""
    rows, n = asked.x.shape
    k, device, data = asked.k, asked.x.device, axes.raw(asked.x)
    groups = cdiv(n, group)
    order = {"KIND": axes.kind(asked.x.dtype), "MODE": asked.mode, "GROUP": group}
    leaders = allocate.empty((rows, groups), dtype=torch.int64, device=device)
    together = max(1, config["tile"] // group)
    launch(
        leaders_kernel, (rows * cdiv(groups, together),), (data, leaders, n, groups),
        {**order, "BLOCK": together}, config,
    )  # fmt: skip
    best = _merged(asked, _narrowed(asked, leaders))
    block = min(asked.most, next_power_of_2(k * group))
    pieces = cdiv(k * group, block)
    constants = {**order, "BLOCK": block, "KEPT": asked.kept}
    if pieces == 1:
        args = (best, data, None, axes.raw(asked.values), axes.raw(asked.places), n, 1, k)
        launch(members_kernel, (rows,), args, constants, asked.merge)
        return
    found = allocate.empty((rows, pieces * k), dtype=torch.int64, device=device)
    launch(members_kernel, (rows * pieces,), (best, data, found, None, None, n, pieces, k), constants, asked.merge)
    _write(asked, found)


def _narrowed(asked: _Row, found: torch.Tensor) -> torch.Tensor:
    """Merge candidates ``[rows, m]`` until one program can take a row's."""
    while found.shape[1] > asked.most:
        found = _merged(asked, found)
    return found


def _merged(asked: _Row, found: torch.Tensor) -> torch.Tensor:
    """Return the fronts of as many candidates as one program takes: ``[rows, pieces · k]``."""
    rows, m = found.shape
    block = max(min(asked.most, next_power_of_2(m)), asked.kept)
    pieces = cdiv(m, block)
    front = allocate.empty((rows, pieces * asked.k), dtype=torch.int64, device=found.device)
    args = (found, None, front, None, None, asked.x.shape[1], m, pieces, asked.k)
    launch(merge_kernel, (rows * pieces,), args, {"BLOCK": block, "KEPT": asked.kept}, asked.merge)
    return front


def _write(asked: _Row, found: torch.Tensor) -> None:
    """Take the front of a row's candidates and write its elements and places."""
    found = _narrowed(asked, found)
    rows, m = found.shape
    block = max(next_power_of_2(m), asked.kept)
    args = (
        found, axes.raw(asked.x), None, axes.raw(asked.values), axes.raw(asked.places), asked.x.shape[1], m, 1, asked.k
    )  # fmt: skip
    launch(merge_kernel, (rows,), args, {"BLOCK": block, "KEPT": asked.kept}, asked.merge)
