"""Launch the Triton kernels."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.routing import direct_is_better, route, tiles_at_most
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.gather_qmm import shape_class
from rocmend.kernels.ops.gather_qmm.arguments import Arguments, Weights
from rocmend.kernels.ops.gather_qmm.kernels.grouped import grouped_kernel
from rocmend.kernels.ops.gather_qmm.kernels.pairs import pairs_kernel
from rocmend.kernels.ops.gather_qmm.problem import problem_of
from rocmend.kernels.tuning import Config, config_for


def run(a: Arguments) -> torch.Tensor:
    """Multiply; see ``function.gather_qmm``."""
    m, k = a.x.shape[-2:]
    out = allocate.empty((*a.pairs.shape, m, a.n), dtype=a.dtype, device=a.x.device)
    if out.numel() == 0:
        return out
    if k == 0:
        return out.zero_()
    x = a.x.to(a.dtype).contiguous()
    problem = problem_of(a)
    kind = shape_class(problem)
    weights = (*_aligned(a.weights), *(_aligned(a.up) if a.up is not None else (None, None, None)))
    constants: dict[str, object] = {
        "MODE": a.form.mode, "BITS": a.form.bits, "GROUP": a.form.group_size, "GATED": a.up is not None,
        "HAS_LHS": a.pairs.lhs is not None,
    }  # fmt: skip
    target = executor.target_for(a.x.device)
    if kind == "few":
        size = "single" if a.pairs.count * m <= 16 else "several"
        config = config_for("gather_qmm", "pairs" if a.up is None else "gated", size, target)
        constants["BK"] = _width(k, config["BK"], a.form.group_size)
        grid = (a.pairs.count * m * triton.cdiv(a.n, config["BN"]),)
        words, groups = a.form.words(k), k // a.form.group_size
        args = (x, *weights, out, a.pairs.lhs, a.pairs.rhs, m, a.n, k, words, groups, a.pairs.divisor)
        launch(pairs_kernel, grid, args, constants, config)
        return out
    config = config_for("gather_qmm", "grouped", f"{kind}-gated" if a.up is not None else kind, target)
    _grouped(a, x, weights, out, constants, config)
    return out


def _width(k: int, most: int, group: int) -> int:
    """Return how many columns are taken at a time: fewer where a quarter of them would lie outside."""
    width: int = min(most, triton.next_power_of_2(k))
    while width > group and -(-k // width) * width * 4 > k * 5:
        width //= 2
    return max(width, group)


def _aligned(weights: Weights) -> tuple[torch.Tensor | None, ...]:
    """Make weights contiguous; words at a multiple of 8 bytes, as they are loaded two at a time."""
    words = weights.words.contiguous()
    if words.device.type != "meta" and words.data_ptr() % 8:
        words = words.clone()
    return words, weights.scales.contiguous(), None if weights.biases is None else weights.biases.contiguous()


def _grouped(
    a: Arguments,
    x: torch.Tensor,
    weights: tuple[torch.Tensor | None, ...],
    out: torch.Tensor,
    constants: dict[str, object],
    config: Config,
) -> None:
    m, k = x.shape[-2:]
    count, experts, height = a.pairs.count, a.experts, config["BM"]
    direct = direct_is_better(count, m, experts, height)
    blocks = triton.cdiv(a.n, config["BN"])
    constants |= {"DIRECT": direct, "TRANSPOSE": a.transpose, "EXPERTS": triton.next_power_of_2(experts)}
    if direct:
        order, counts, tiles = None, None, count * triton.cdiv(m, height)
    else:
        tiles = tiles_at_most(count, m, experts, height)
        counts, order = route(a.pairs, experts, ordered=a.ordered)
    constants["ORDERED"] = order is None
    words, groups = a.weights.words.shape[-1], a.weights.scales.shape[-1]
    args = (
        x, *weights, out, a.pairs.lhs, a.pairs.rhs, order, counts, m, a.n, k, words, groups, a.pairs.divisor, experts,
    )  # fmt: skip
    launch(grouped_kernel, (tiles * blocks,), args, constants, config)
