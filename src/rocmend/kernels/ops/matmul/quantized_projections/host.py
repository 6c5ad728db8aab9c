"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.formats import Format
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import Problem as Product
from rocmend.kernels.ops.matmul.quantized_matmul import few_class
from rocmend.kernels.ops.matmul.quantized_matmul import gemv as one_row
from rocmend.kernels.ops.matmul.quantized_matmul.few import parts_of, unit_of
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.matmul.quantized_projections import Problem
from rocmend.kernels.ops.matmul.quantized_projections.function import Weights
from rocmend.kernels.ops.matmul.quantized_projections.kernel import gated_kernel, many_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for, with_warps


def apart(x: torch.Tensor, weights: tuple[Weights, ...], form: Format, problem: Problem) -> Any:
    """Compute one product after another."""
    from rocmend.kernels.ops.matmul.quantized_matmul.function import quantized_matmul
    from rocmend.kernels.ops.rowwise.gated_linear_unit.function import swiglu

    products = tuple([quantized_matmul(x, *one, True, form.group_size, form.bits, form.mode) for one in weights])
    return swiglu(*products) if problem.gated else products


@Planner
def gemv(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem) -> Callable[..., Any]:
    """Plan a launch for one row of x."""
    columns, outputs = _outputs(x, weights, problem)
    gated = problem.gated
    if problem.columns == 0:
        return lambda *_: outputs[0]() if gated else tuple([one() for one in outputs])
    target = executor.target_for(x.device)
    plan = one_row.plan(columns, problem.depth, problem.group_size, problem.bits, problem.dtype, target, gated=gated)

    def call(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem) -> Any:
        row = x.reshape(problem.depth)
        row = row if row.stride(-1) == 1 or problem.depth == 1 else row.contiguous()
        outs = tuple([one() for one in outputs])
        plan(one_row.operands(row, [_whole(one) for one in weights], outs))
        return outs[0] if gated else outs

    return call


def _outputs(
    x: torch.Tensor, weights: tuple[Weights, ...], problem: Problem
) -> tuple[list[int], list[allocate.Output]]:
    """Return the columns of each output, one of a gated pair, and what allocates them."""
    columns = [w.shape[0] for w, _, _ in (weights[:1] if problem.gated else weights)]
    return columns, [allocate.Output((*x.shape[:-1], n), x.dtype, x.device) for n in columns]


@Planner
def lanes(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem) -> Callable[..., Any]:
    """Plan a launch; see ``function``."""
    columns, outputs = _outputs(x, weights, problem)
    gated = problem.gated
    if problem.rows == 0 or problem.columns == 0:
        return lambda *_: outputs[0]() if gated else tuple([one() for one in outputs])
    # Wherever scales stand in a larger tensor, words of several may not be read at once.
    plans: dict[bool, LaunchPlan] = {}

    def call(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem) -> Any:
        rows = x.reshape(problem.rows, problem.depth)
        rows = rows if rows.stride(-1) == 1 or problem.depth == 1 else rows.contiguous()
        weights = tuple([_whole(one) for one in weights])
        outs = [one() for one in outputs]
        addresses = 0
        for _, scales, biases in weights:
            addresses |= scales.data_ptr() | (0 if biases is None else biases.data_ptr())
        aligned = not addresses & 7
        plan = plans.get(aligned)
        if plan is None:
            plan = plans[aligned] = _plan(rows, columns, problem, aligned=aligned)
        if gated:
            plan((rows, *weights[0], *weights[1], outs[0]))
            return outs[0]
        given: list[torch.Tensor | None] = [rows]
        for one, out in zip(weights, outs, strict=True):
            given += [*one, out]
        plan((*given, *(None,) * (4 * (one_row.MOST - len(outs)))))
        return tuple(outs)

    return call


def _whole(weights: Weights) -> Weights:
    w, scales, biases = weights
    return w.contiguous(), scales.contiguous(), None if biases is None else biases.contiguous()


def _plan(rows: torch.Tensor, columns: list[int], problem: Problem, *, aligned: bool) -> LaunchPlan:
    target = executor.target_for(rows.device)
    form = (problem.mode, problem.bits, problem.group_size)
    product = Product(problem.dtype, *form, True, 1, problem.rows, problem.columns, problem.depth)
    # What is right for one product of as many rows of weights is so for several.
    config = config_for("quantized_matmul", "lanes", few_class(product), target)
    cut = parts_of(product, config, target.units, aligned=aligned)
    constants: dict[str, object] = {
        "MODE": problem.mode, "GROUP": problem.group_size, "BITS": problem.bits, "SLICES": cut.slices, "PER": cut.per,
        "AHEAD": cut.ahead, "EVEN": problem.depth == cut.slices * cut.per * cut.steps * unit_of(product),
        "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    words = problem.depth * problem.bits // 32
    rest = (words, problem.depth // problem.group_size, rows.stride(0), cut.steps)
    tiles_m = cdiv(problem.rows, config["BLOCK_M"])
    config = with_warps(config, cut.slices)
    if problem.gated:
        grid = (cdiv(columns[0], TILE // 2), tiles_m)
        return LaunchPlan(gated_kernel, grid, constants, config, (problem.rows, columns[0], *rest))
    constants["COUNT"] = len(columns)
    sizes = (*columns, *(0,) * (one_row.MOST - len(columns)))
    grid = (sum(cdiv(n, TILE) for n in columns), tiles_m)
    return LaunchPlan(many_kernel, grid, constants, config, (problem.rows, *sizes, *rest))
