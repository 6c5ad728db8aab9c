"""Launch the Triton kernels."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from rocmend.kernels import allocate, executor
from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.common.formats import Format
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import few_class
from rocmend.kernels.ops.matmul.quantized_matmul import gemv as one_row
from rocmend.kernels.ops.matmul.quantized_matmul.few import parts_of, unit_of
from rocmend.kernels.ops.matmul.quantized_matmul.rules import TILE
from rocmend.kernels.ops.matmul.quantized_projections import Problem, product_of
from rocmend.kernels.ops.matmul.quantized_projections.function import Norm, Weights
from rocmend.kernels.ops.matmul.quantized_projections.kernel import gated_kernel, many_kernel
from rocmend.kernels.plan_cache import Planner
from rocmend.kernels.tuning import config_for, with_warps

Results = tuple[torch.Tensor, ...]


def apart(x: torch.Tensor, weights: tuple[Weights, ...], form: Format, problem: Problem, norm: Norm | None) -> Results:
    """Compute one product after another; with a norm, that first, and then the products as they are best computed."""
    from rocmend.kernels.ops.matmul.quantized_matmul.function import quantized_matmul
    from rocmend.kernels.ops.matmul.quantized_projections.function import quantized_matmul_many, quantized_swiglu
    from rocmend.kernels.ops.rowwise.gated_linear_unit.function import swiglu

    options = (form.group_size, form.bits, form.mode)
    if norm is not None:
        normed, *more = _normed(x, norm)
        more += [normed] if norm.keep else []
        if problem.gated:
            return quantized_swiglu(normed, weights[0], weights[1], *options), *more
        if len(weights) > 1:
            return *quantized_matmul_many(normed, weights, *options), *more
        return quantized_matmul(normed, *weights[0], True, *options), *more
    products = tuple([quantized_matmul(x, *one, True, *options) for one in weights])
    return (swiglu(*products),) if problem.gated else products


def _normed(x: torch.Tensor, norm: Norm) -> Results:
    """Return the normalised x; with a residual, the sum behind it."""
    from rocmend.kernels.ops.rowwise.add_rms_norm.function import add_rms_norm
    from rocmend.kernels.ops.rowwise.rms_norm.function import rms_norm

    if norm.residual is None:
        return (rms_norm(x, norm.weight, norm.eps),)
    return add_rms_norm(x, norm.residual, norm.weight, norm.eps)


@Planner
def gemv(
    x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem, norm: Norm | None
) -> Callable[..., Results]:
    """Plan a launch for one row of x."""
    columns, outputs = _outputs(x, weights, problem)
    if problem.columns == 0:
        # Nothing to multiply with: what normalising returns is all there is.
        return apart if norm else _empty(outputs)
    target = executor.target_for(x.device)
    plan = one_row.plan(
        columns, problem.depth, problem.group_size, problem.bits, problem.dtype, target,
        gated=problem.gated, eps=norm.eps if norm else None,
    )  # fmt: skip
    row = allocate.Output(x.shape, x.dtype, x.device)

    def call(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, _: Problem, norm: Norm | None) -> Any:
        outs = tuple([one() for one in outputs])
        triples = [_whole(one) for one in weights]
        if norm is None:
            plan(one_row.operands(_flat(x), triples, outs))
            return outs
        total = None if norm.residual is None else row()
        normed = row() if norm.keep else None
        residual, weight = (None if one is None else _flat(one) for one in norm[:2])
        plan(one_row.operands(_flat(x), triples, outs, norm=one_row.Norm(residual, weight, total, normed)))
        return (*outs, *[one for one in (total, normed) if one is not None])

    return call


def _empty(outputs: list[allocate.Output]) -> Callable[..., Results]:
    return lambda *_: tuple([one() for one in outputs])


def _flat(row: torch.Tensor) -> torch.Tensor:
    """Return one row as a tensor of one axis, its elements side by side."""
    row = row.reshape(row.numel())
    return row if row.stride(-1) == 1 or row.numel() == 1 else row.contiguous()


def _outputs(
    x: torch.Tensor, weights: tuple[Weights, ...], problem: Problem
) -> tuple[list[int], list[allocate.Output]]:
    """Return the columns of each output, one of a gated pair, and what allocates them."""
    columns = [w.shape[0] for w, _, _ in (weights[:1] if problem.gated else weights)]
    return columns, [allocate.Output((*x.shape[:-1], n), x.dtype, x.device) for n in columns]


@Planner
def lanes(
    x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem, _norm: None
) -> Callable[..., Results]:
    """Plan a launch; see ``function``."""
    columns, outputs = _outputs(x, weights, problem)
    gated = problem.gated
    if problem.rows == 0 or problem.columns == 0:
        return _empty(outputs)
    # Wherever scales stand in a larger tensor, words of several may not be read at once.
    plans: dict[bool, LaunchPlan] = {}

    def call(x: torch.Tensor, weights: tuple[Weights, ...], _form: Format, problem: Problem, _norm: None) -> Results:
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
            return tuple(outs)
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
    product = product_of(problem)
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
