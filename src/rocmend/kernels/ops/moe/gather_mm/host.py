"""Launch the Triton kernel."""

from __future__ import annotations

import torch
import triton

from rocmend.kernels import allocate, executor
from rocmend.kernels.common.routing import direct_is_better, route, tiles_at_most
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import launch
from rocmend.kernels.ops.moe.gather_mm import Problem, shape_class
from rocmend.kernels.ops.moe.gather_mm.arguments import Arguments
from rocmend.kernels.ops.moe.gather_mm.kernel import grouped_kernel
from rocmend.kernels.tuning import config_for


def run(given: Arguments) -> torch.Tensor:
    """Multiply; see ``function.gather_mm``."""
    a, b, pairs = given.a, given.b, given.pairs
    (_, m, k), (experts, _, n) = a.shape, b.shape
    out = allocate.empty((pairs.count, m, n), dtype=a.dtype, device=a.device)
    if out.numel() == 0:
        return out
    if k == 0:
        return out.zero_()
    problem = Problem(NAMES[a.dtype], pairs.count, m, n, k, experts)
    config = config_for("gather_mm", "grouped", shape_class(problem), executor.target_for(a.device))
    height = config["BM"]
    direct = direct_is_better(pairs.count, m, experts, height)
    tiles = pairs.count * triton.cdiv(m, height)
    counts, order = None, None
    if not direct:
        tiles = tiles_at_most(pairs.count, m, experts, height)
        counts, order = route(pairs, experts, ordered=given.ordered)
    constants = {
        "HAS_LHS": pairs.lhs is not None, "DIRECT": direct, "ORDERED": order is None,
        "EXPERTS": triton.next_power_of_2(experts),
    }  # fmt: skip
    args = (a, b, out, pairs.lhs, pairs.rhs, order, counts, m, n, k, pairs.divisor, experts, *b.stride())
    launch(grouped_kernel, (tiles * triton.cdiv(n, config["BN"]),), args, constants, config)
    return out
