"""Launch the Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common import axes
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.memory.copy.kernel import grid_kernel, lines_kernel, turned_kernel, vectors_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import Config, config_for

_FEW = 1 << 31  # what the kernel counts in 32 bits
_GRID = (1 << 31) - 1, 65535, 65535  # programs along each axis of a grid, on any vendor's GPUs


class Axis(NamedTuple):
    """An axis of a copy: its size, and its strides in both tensors."""

    size: int
    source: int
    target: int


def collapse(sizes: torch.Size, source: tuple[int, ...], target: tuple[int, ...]) -> list[Axis]:
    """Return as few axes as describe a copy, the one of the smallest stride in the target last."""
    found = [Axis(*axis) for axis in zip(sizes, source, target, strict=True) if axis[0] != 1]
    found.sort(key=lambda axis: -abs(axis.target))
    merged: list[Axis] = []
    for axis in found:
        last = merged[-1] if merged else None
        if last and last.source == axis.size * axis.source and last.target == axis.size * axis.target:
            merged[-1] = Axis(last.size * axis.size, axis.source, axis.target)
        else:
            merged.append(axis)
    return merged or [Axis(1, 1, 1)]


@Planner
def run(x: Tensor, dtype: torch.dtype) -> Callable[..., Tensor]:
    """Plan a copy to a new contiguous tensor; see ``function.copy``."""
    output = allocate.Output(x.shape, dtype, x.device)
    if x.numel() == 0:
        return lambda *_: output()
    plan = _plan(output(), x)
    if plan is None:
        return lambda x, _dtype: copy_into(output(), x)
    return plan.into(output, lambda x, _dtype: (x,))


def copy_into(out: Tensor, x: Tensor) -> Tensor:
    """Copy into a tensor of any strides; see ``function.copy_into``."""
    if out.numel():
        plan = _plan(out, x)
        if plan is None:
            source, target, constants = _seen(out, x)
            _in_steps(source, target, _axes(out, x), constants)
        else:
            plan((x, out))
    return out


def _plan(out: Tensor, x: Tensor) -> LaunchPlan | None:
    """Plan a copy in one launch, of ``(x, out)``; None where it takes several."""
    source, target, constants = _seen(out, x)
    types = tuple(None if tensor.dtype == seen.dtype else seen.dtype for tensor, seen in ((x, source), (out, target)))
    return _launch_of(source, target, _axes(out, x), constants, types)


def _seen(out: Tensor, x: Tensor) -> tuple[Tensor, Tensor, dict[str, bool]]:
    """Return both as the kernels take them, and the constants that tell how elements are converted."""
    same = x.dtype == out.dtype
    constants = {
        "UNSIGNED": not same and not x.dtype.is_floating_point and axes.kind(x.dtype) == "unsigned",
        "TO_BOOL": not same and out.dtype == torch.bool,
    }
    return (*((_raw(x), _raw(out)) if same else (_numbers(x), _numbers(out))), constants)


def _axes(out: Tensor, x: Tensor) -> list[Axis]:
    return collapse(x.shape, x.stride(), out.stride())


def _raw(x: Tensor) -> Tensor:
    sizes = {1: torch.int8, 2: torch.int16, 4: torch.int32, 8: torch.int64}
    return x if x.dtype in sizes.values() else x.view(sizes[x.element_size()])


def _numbers(x: Tensor) -> Tensor:
    return x if x.dtype.is_floating_point else _raw(x)


def _launch_of(
    x: Tensor, out: Tensor, found: list[Axis], constants: dict[str, bool], types: tuple[torch.dtype | None, ...] = ()
) -> LaunchPlan | None:
    last = found[-1]
    turning = [axis for axis in found[:-1] if axis.source == 1 and axis.size > 1]
    turned = last.source not in (0, 1) and last.target == 1 and turning and turning[0].size >= 8 and last.size >= 8
    most = 4 if turned else 6
    outer = [axis for axis in found[:-1] if not turned or axis is not turning[0]]
    if len(outer) > most:
        return None
    target = executor.target_for(x.device)
    outer.reverse()
    sizes = [axis.size for axis in outer] + [1] * (most - len(outer))
    source = [axis.source for axis in outer] + [0] * (most - len(outer))
    to = [axis.target for axis in outer] + [0] * (most - len(outer))
    lines = math.prod(axis.size for axis in outer)
    width = str(8 * max(x.element_size(), out.element_size()))
    more = constants | {"RANK": len(outer)}
    if turned:
        config = config_for("copy", "turned", width, target)
        m, n = turning[0].size, last.size
        tiles = cdiv(m, config["BLOCK_M"]) * cdiv(n, config["BLOCK_N"])
        numbers = (m, n, last.source, turning[0].target, *sizes[:-1], *source, *to)
        return LaunchPlan(turned_kernel, (tiles * lines,), more, config, numbers, types)
    config = config_for("copy", "lines", width, target)
    block = min(config["tile"], next_power_of_2(last.size))
    room = config["tile"] // block
    vector = _vector(outer, last, config)
    if vector and 0 < len(outer) <= 3 and last.size % block:
        whole = lines * last.size // vector
        each = config["tile"] // vector
        numbers = (whole, last.size // vector, *sizes[:2], *source[:3])
        parts = {"RANK": len(outer), "VECTOR": vector, "BLOCK": each}
        return LaunchPlan(vectors_kernel, (cdiv(whole, each),), {**constants, **parts}, config, numbers, types)
    if (grid := _grid(outer, last, block, room)) is not None:
        numbers = (last.size, sizes[0], last.source, last.target, *source[:3], *to[:3])
        return LaunchPlan(grid_kernel, grid.programs, constants | grid.constants, config, numbers, types)
    group = max(1, min(room, next_power_of_2(lines)))
    programs = cdiv(lines, group) * cdiv(last.size, block)
    numbers = (lines, last.size, last.source, last.target, *sizes[:-1], *source, *to)
    few = max(lines + group, last.size + block) < _FEW
    return LaunchPlan(
        lines_kernel, (programs,), more | {"FEW": few, "ROWS": group, "BLOCK": block}, config, numbers, types
    )


def _vector(outer: Sequence[Axis], last: Axis, config: Config) -> int:
    """Return of how many elements side by side lines are made, to a tensor without gaps; 0 where that is not so.

    Args:
        outer: All axes but the last, innermost first.
        last: The last one.
        config: The record: the most such elements, or nothing; of less than half as many lines are not made so.
    """
    most = config.get("vector", 0)
    vector = math.gcd(last.size, most) if most else 0
    step = last.size
    for axis in outer:
        if axis.target != step:
            return 0
        step *= axis.size
    enough = vector > 1 and 2 * vector >= most
    return vector if enough and last.source == last.target == 1 and step + config["tile"] < _FEW else 0


class _Grid(NamedTuple):
    programs: tuple[int, int, int]
    constants: dict[str, int]


def _grid(outer: Sequence[Axis], last: Axis, block: int, room: int) -> _Grid | None:
    """Return a grid of programs whose axes are those of a copy; None where there are too many, or tiles stay empty.

    Args:
        outer: All axes but the last, innermost first.
        last: The last one.
        block: Elements of a line in a tile.
        room: Lines that a tile has room for.
    """
    n, sizes = last.size, [axis.size for axis in outer] or [1]
    pieces = cdiv(n, block)
    rows = 1 if pieces > 1 else max(1, min(room, next_power_of_2(sizes[0])))
    blocks = cdiv(sizes[0], rows)
    if 3 * sizes[0] < 2 * blocks * rows or 2 * rows < min(room, next_power_of_2(math.prod(sizes))):
        return None
    wanted = [pieces, *sizes] if pieces > 1 else [blocks, *sizes[1:]]
    if len(wanted) > 3 or n + block >= _FEW:
        return None
    x, y, z = (*wanted, 1, 1)[:3]
    if x > _GRID[0] or y > _GRID[1] or z > _GRID[2]:
        return None
    full = n % block == 0 and sizes[0] % rows == 0
    first = outer[0] if outer else Axis(1, 0, 0)
    columns = pieces * block
    reach = max(
        (rows - 1) * abs(first.source) + columns * abs(last.source),
        (rows - 1) * abs(first.target) + columns * abs(last.target),
    )
    dense = last.target == 1 and (pieces > 1 or first.target == block)
    constants = {"PIECES": pieces > 1, "FULL": full, "NEAR": reach < _FEW, "DENSE": dense, "ROWS": rows, "BLOCK": block}
    return _Grid((x, y, z), constants)


def _in_steps(x: Tensor, out: Tensor, found: list[Axis], constants: dict[str, bool]) -> None:
    """Copy with more axes than a kernel takes: one launch for each step of the outermost that is not turned."""
    plan = _launch_of(x, out, found, constants)
    if plan is not None:
        plan((x, out))
        return
    first = next((axis for axis in found[:-1] if axis.source != 1), found[0])
    rest = [axis for axis in found if axis is not first]
    for step in range(first.size):
        _in_steps(
            x.as_strided((1,), (1,), x.storage_offset() + step * first.source),
            out.as_strided((1,), (1,), out.storage_offset() + step * first.target),
            rest,
            constants,
        )
