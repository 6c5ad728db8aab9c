"""Plan the kernel for a few rows of x: which wavefront holds which part of K, and how many steps each takes."""

from __future__ import annotations

import math
from typing import NamedTuple

import torch

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import Problem
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.lanes import lanes_kernel
from rocmend.kernels.ops.matmul.quantized_matmul.operands import TYPES, Launches, Operands
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, with_warps

MOST_STEPS = 32
"""Of a wavefront, where there can be more of those instead; a record may say another number."""


class Parts(NamedTuple):
    """How K is cut: wavefronts of a program, units that each takes at a step, steps, and how many are under way."""

    slices: int
    per: int
    steps: int
    ahead: int


def unit_of(problem: Problem) -> int:
    """Return how many codes are multiplied before they are scaled: a group, or 64 codes of a longer group."""
    return min(problem.group_size, 64)


def parts_of(problem: Problem, config: Config, compute_units: int, *, aligned: bool = True) -> Parts:
    """Return how K is cut.

    Args:
        problem: Whose weights have one group a row at least.
        config: ``codes`` that a wavefront takes at a step, ``slices`` wavefronts of a program at most, ``fill``
            wavefronts that a compute unit should have, ``steps`` that a wavefront should take at most, ``AHEAD`` steps
            under way; ``units`` of a wavefront's step at most, each of which has sums and scales of its own.
        compute_units: Of the target.
        aligned: Whether the scales of several groups may be read at once.
    """
    unit = unit_of(problem)
    units = problem.depth // unit
    # The units that a wavefront takes at a step divide those of a row, since their scales are read at once.
    per = problem.group_size // unit
    most = min(config["codes"] // unit, config.get("units", config["codes"]))
    while aligned and per * 2 <= most and units % (per * 2) == 0:
        per *= 2
    ahead = min(config["AHEAD"], cdiv(units, per))
    programs = cdiv(problem.columns, TILE) * problem.batch * cdiv(problem.rows, config["BLOCK_M"])
    wanted = config["fill"] * compute_units / programs
    # As many wavefronts as come nearest, with the steps that are under way for each at least, and not too many.
    slices = 2 ** max(0, round(math.log2(wanted)))
    slices = max(slices, next_power_of_2(cdiv(units, per * config.get("steps", MOST_STEPS))))
    while slices > 1 and (slices > config["slices"] or slices * per * ahead > units):
        slices //= 2
    if slices > 1 and _idle(units, slices * per, ahead) > 1.15 * _idle(units, slices // 2 * per, ahead):
        slices //= 2
    steps = cdiv(cdiv(units, slices * per), ahead) * ahead
    return Parts(slices, per, steps, ahead)


def _idle(units: int, step: int, ahead: int) -> float:
    """Return how many times the units are gone through that there are: idle ones count."""
    return cdiv(units, step * ahead) * step * ahead / units


def plan(ops: Operands, config: Config, target: Target) -> Launches:
    """Plan the launch of ``x, w, scales, biases, out``."""
    planned = _planned(ops, config, target, aligned=True)
    # Scales in the middle of a larger tensor may stand anywhere; the widest word is 8 bytes.
    unaligned: list[LaunchPlan] = []

    def launches(
        x: torch.Tensor, w: torch.Tensor, scales: torch.Tensor, biases: torch.Tensor | None, out: torch.Tensor
    ) -> None:
        if (scales.data_ptr() | (0 if biases is None else biases.data_ptr())) & 7:
            if not unaligned:
                unaligned.append(_planned(ops, config, target, aligned=False))
            unaligned[0]((x, w, scales, biases, out))
        else:
            planned((x, w, scales, biases, out))

    return launches


def _planned(ops: Operands, config: Config, target: Target, *, aligned: bool) -> LaunchPlan:
    p = ops.problem
    cut = parts_of(p, config, target.units, aligned=aligned)
    constants = {
        "MODE": p.mode, "GROUP": p.group_size, "BITS": p.bits, "SLICES": cut.slices, "PER": cut.per, "AHEAD": cut.ahead,
        "EVEN": p.depth == cut.slices * cut.per * cut.steps * unit_of(p), "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    numbers = (
        p.rows, p.columns, ops.w.shape[-1], ops.scales.shape[-1], ops.x.stride(-2), ops.x.stride(0), ops.w_batch,
        cut.steps,
    )  # fmt: skip
    grid = (cdiv(p.columns, TILE), cdiv(p.rows, config["BLOCK_M"]) * p.batch)
    return LaunchPlan(lanes_kernel, grid, constants, with_warps(config, cut.slices), numbers, TYPES)
