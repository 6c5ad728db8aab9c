"""Launch the Triton kernels."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import torch

from rocmend.kernels import allocate, backends, executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.formats import Format
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import gemv
from rocmend.kernels.ops.matmul.quantized_matmul.rules import rejects_row
from rocmend.kernels.ops.moe.gather_qmm import Problem, shape_class
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments, Weights
from rocmend.kernels.ops.moe.gather_qmm.kernels.columns import columns_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.grouped import grouped_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.pairs import pairs_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.prepare import arrange_kernel, prepare_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.tiles import tiles_kernel
from rocmend.kernels.ops.moe.gather_qmm.problem import problem_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for
from rocmend.kernels.without import nvidia_only

Launches = Callable[[Sequence[torch.Tensor | None]], None]
"""Of x, weights, second weights, the output and indices."""
_NO_WEIGHTS = (None, None, None)
SINGLE_PAIRS = 16
"""Rows up to which a launch is bound by latency."""
_LARGE = 1 << 31
"""Elements from which offsets have more than 32 bits."""


def run(a: Arguments) -> torch.Tensor:
    """Multiply; see ``function.gather_qmm``."""
    m, k = a.x.shape[-2:]
    out = allocate.empty((*a.pairs.shape, m, a.n), dtype=a.dtype, device=a.x.device)
    if out.numel() == 0:
        return out
    if k == 0:
        return out.zero_()
    x = _at(a.x.to(a.dtype).contiguous(), 4)
    weights = (*_aligned(a.weights), *(_aligned(a.up) if a.up is not None else (None, None, None)))
    _planned(a)((x, *weights, out, a.pairs.lhs, a.pairs.rhs))
    return out


def kernel_of(problem: Problem, target: Target) -> str:
    """Return which of the op's own kernels computes a problem on a target, where no back end's does."""
    p = problem
    if not p.transpose:
        return "columns"
    matrix = p.dtype != "float32" and (bool(target.matrix_dtypes) or target.vendor == "cpu")
    # From as many rows as experts on, enough of them share one.
    if shape_class(p) == "few" and not (matrix and p.pairs * p.m >= max(p.experts, SINGLE_PAIRS)):
        return "gemv" if rejects_row(p.mode, p.bits, p.m, p.k) is None else "pairs"
    # The interpreter checks both.
    asm = nvidia_only("gather_qmm.tiles", target) or (target.vendor == "cpu" and p.pairs % 2 == 0)
    known = (p.mode, p.dtype) == ("mxfp4", "bfloat16") or (p.mode == "affine" and p.bits in {4, 8} and matrix)
    return "tiles" if asm and known and shape_class(p) != "few" else "grouped"


def _planned(a: Arguments, types: Sequence[torch.dtype | None] = (None,) * 10) -> Launches:
    """Plan the launches of x, weights, second weights, the output and indices."""
    problem, target = problem_of(a), executor.target_for(a.x.device)
    kernel, kind = kernel_of(problem, target), shape_class(problem)
    plan = _PLANS[kernel]
    # A back end takes what each row has for itself, or what has tiles.
    if kind == "few" or kernel == "tiles":
        taken = backends.taken("gather_qmm", problem, target, kind=kind, has_lhs=a.pairs.lhs is not None)
        if taken is not None:
            planned: Launches = taken.plan(a, types, lambda: plan(a, target, types))
            return planned
    return plan(a, target, types)


def _constants(a: Arguments) -> dict[str, object]:
    return {
        "MODE": a.form.mode, "BITS": a.form.bits, "GROUP": a.form.group_size, "GATED": a.up is not None,
        "HAS_LHS": a.pairs.lhs is not None,
    }  # fmt: skip


def _pairs(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch for rows by themselves, of any format."""
    rows = a.pairs.count * a.x.shape[-2]
    m, k = a.x.shape[-2:]
    size = "single" if rows <= SINGLE_PAIRS else "several"
    config = config_for("gather_qmm", "pairs" if a.up is None else "gated", size, target)
    constants = _constants(a) | {"BK": _width(k, config["BK"], a.form.group_size)}
    grid = (rows * cdiv(a.n, config["BN"]),)
    numbers = (m, a.n, k, a.form.words(k), k // a.form.group_size, a.pairs.divisor)
    return LaunchPlan(pairs_kernel, grid, constants, config, numbers, types)


def _gemv(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch for rows by themselves with affine codes that do not straddle words."""
    k = a.x.shape[-1]
    experts = gemv.Experts(a.pairs.lhs is not None, a.pairs.divisor, (types[8], types[9]))
    planned = gemv.plan(
        [a.n], k, a.form.group_size, a.form.bits, NAMES[a.dtype], target, gated=a.up is not None, batch=a.pairs.count,
        x_stride=k, w_batch=a.n, experts=experts,
    )  # fmt: skip
    count = 1 if a.up is None else 2

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, *weights, out, lhs, rhs = tensors
        triples = [weights[first : first + 3] for first in range(0, 3 * count, 3)]
        planned(gemv.operands(x, triples, [out], lhs, rhs))

    return launches


def plan_call(
    a: Arguments, lhs: torch.Tensor | None, rhs: torch.Tensor | None, whole: Callable[..., torch.Tensor]
) -> Callable[..., torch.Tensor] | None:
    """Plan calls of tensors that are used as they are; None for others.

    Args:
        a: Arguments of such a call.
        lhs: Indices as they were given.
        rhs: The like.
        whole: Takes what the plan takes, and computes it from the start: for tensors that lie at odd addresses.
    """
    tensors = (a.x, *a.weights, *(a.up or ()), lhs, rhs)
    m, k = a.x.shape[-2:]
    if rhs is None or tuple(rhs.shape) != a.pairs.shape or (lhs is not None and tuple(lhs.shape) != a.pairs.shape):
        return None
    if any(one is not None and not one.is_contiguous() for one in tensors) or a.x.dtype != a.dtype:
        return None
    if 0 in (a.pairs.count, m, k, a.n):
        return None
    signed = [torch.int32 if one is not None and one.dtype == torch.uint32 else None for one in (lhs, rhs)]
    words = torch.int32  # given as uint32, maybe
    types = (None, words, None, None, None if a.up is None else words, None, None, None, *signed)
    launched = _planned(a, types)
    output = allocate.Output((*a.pairs.shape, m, a.n), a.dtype, a.x.device)
    one_lhs, few = a.pairs.lhs is not None, shape_class(problem_of(a)) == "few"

    def call(
        x: torch.Tensor,
        weights: Sequence[torch.Tensor | None],
        up: Sequence[torch.Tensor | None] | None,
        lhs: torch.Tensor | None,
        rhs: torch.Tensor | None,
    ) -> torch.Tensor:
        first = (*weights, None) if len(weights) == 2 else weights
        second = _NO_WEIGHTS if up is None else (*up, None) if len(up) == 2 else up
        for words in (first[0], second[0]):
            if words is not None and words.data_ptr() % 8:
                return whole(x, weights, up, lhs, rhs)
        for one in (x,) if few else (x, *first[1:], *second[1:]):
            if one is not None and one.data_ptr() % 4:
                return whole(x, weights, up, lhs, rhs)
        out = output()
        launched((x, *first, *second, out, lhs if one_lhs else None, rhs))
        return out

    return call


def _arranged(
    a: Arguments, target: Target, height: int, rhs: torch.dtype | None, *, unit: int = 0, paired: bool = False
) -> tuple[LaunchPlan, int, Callable[[], tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]]]:
    """Plan the launch before ``grouped`` or ``columns``: of x, indices, ordered x, sums and the table.

    Returns:
        The launch, the places of its table, and what allocates ordered x (None unless ``paired``), the sums of each
        ``unit`` columns (None without a unit) and the table.
    """
    pairs, (m, k), form = a.pairs, a.x.shape[-2:], a.form
    config = config_for("gather_qmm", "arrange", "*", target)
    rows = a.x.shape[:-2].numel() * m if unit or paired else 0
    slots = pairs.count * m // height + a.experts
    block = min(config["BLOCK"], max(16, next_power_of_2(pairs.count)))
    once = pairs.count <= block
    constants = {
        "BITS": form.bits, "PAIRED": paired, "SUMS": bool(unit), "BK": unit or 32, "BM": height, "BLOCK": block,
        "ONCE": once, "ORDERED": a.ordered and once,
    }  # fmt: skip
    numbers = (pairs.count, m, a.experts, k, slots)
    plan = LaunchPlan(arrange_kernel, (a.experts + rows,), constants, config, numbers, (None, rhs, None, None, None))
    table_of = allocate.Output((slots * 4 + pairs.count,), torch.int32, a.x.device)
    sums_of = allocate.Output((rows * k // unit,), torch.float32, a.x.device) if unit else None
    ordered_of = allocate.Output((rows * k,), a.dtype, a.x.device) if paired else None

    def allocated() -> tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]:
        ordered, sums = (None if one is None else one() for one in (ordered_of, sums_of))
        return ordered, sums, table_of()

    return plan, slots, allocated


def _paired(form: Format, dtype: torch.dtype) -> bool:
    """Return whether codes leave a word in pairs."""
    if not form.affine:
        return form.bits == 4
    return dtype != torch.float32 and form.bits in ({1, 2, 4, 8} if dtype == torch.float16 else {1, 2, 4})


def _record(a: Arguments, kernel: str, target: Target) -> Config:
    """Return the record of ``grouped`` or ``columns``."""
    kind = shape_class(problem_of(a)).replace("few", "low")
    return config_for("gather_qmm", kernel, kind if a.up is None else f"{kind}-gated", target)


def _grouped(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the two launches for rows that share experts."""
    config, form, (m, k) = _record(a, "grouped", target), a.form, a.x.shape[-2:]
    # A scale is a group's, so a step of affine weights is no more; of the others, K is whole steps.
    block = min(config["BK"], form.group_size) if form.affine else max(math.gcd(config["BK"], k), form.group_size)
    paired = _paired(form, a.dtype)
    arrange, slots, allocated = _arranged(
        a, target, config["BM"], types[9], unit=block if form.affine else 0, paired=paired
    )
    constants = _constants(a) | {
        "PAIRED": paired, "WHOLE": a.n % config["BN"] == 0, "BK": block,
        "LARGE": max(a.x.numel(), a.pairs.count * m * a.n) >= _LARGE,
    }  # fmt: skip
    main = LaunchPlan(
        grouped_kernel,
        (slots * cdiv(a.n, config["BN"]),),
        constants,
        config,
        (m, a.n, k, form.words(k), k // form.group_size, a.pairs.divisor, slots),
        (None, None, *types[1:7], None, types[8], None),
    )

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, *weights, out, lhs, rhs = tensors
        ordered, sums, table = allocated()
        arrange((x, rhs, ordered, sums, table))
        main((x if ordered is None else ordered, sums, *weights, out, lhs, table))

    return launches


def _columns(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the two launches for weights that are not transposed."""
    config, (m, k) = _record(a, "columns", target), a.x.shape[-2:]
    arrange, slots, allocated = _arranged(a, target, config["BM"], types[9])
    constants = _constants(a)
    del constants["GATED"]
    words, groups = a.weights.words.shape[-1], a.weights.scales.shape[-1]
    main = LaunchPlan(
        columns_kernel,
        (slots * cdiv(a.n, config["BN"]),),
        constants,
        config,
        (m, a.n, k, words, groups, a.pairs.divisor, slots),
        (None, *types[1:4], None, types[8], None),
    )

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, w, scales, biases, *_, out, lhs, rhs = tensors
        _, _, table = allocated()
        arrange((x, rhs, None, None, table))
        main((x, w, scales, biases, out, lhs, table))

    return launches


def _class(a: Arguments, kind: str) -> str:
    """Name the class of records of the tiles: rows of an expert, but of uneven K, 4 affine bits, 8 with some rows."""
    if kind != "low" and a.x.shape[-1] % 128:
        kind = "uneven"
    elif kind != "low" and a.up is None and a.form.affine and a.form.bits == 4:
        kind = "b4"
    elif kind == "middle" and a.up is None and a.form.affine:
        kind = "b8"
    return kind if a.up is None else f"{kind}-gated"


def _tiles(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the two launches for many rows on NVIDIA's matrix units."""
    form, pairs, (m, k) = a.form, a.pairs, a.x.shape[-2:]
    class_ = _class(a, shape_class(problem_of(a)))
    config = config_for("gather_qmm", "tiles", class_, target)
    # As many bytes of a row whatever the width of a code is, and no less than a group.
    wide = max(config["BK"] * 4 // form.bits, form.group_size)
    block = 512 // form.bits
    even, padded = k % wide == 0, cdiv(k, block) * block
    groups, matrices = k // form.group_size, a.x.shape[:-2].numel()
    slots = pairs.count * m // config["BM"] + a.experts
    fold = form.mode == "affine" and a.dtype == torch.bfloat16
    ordered_of = allocate.Output((matrices * m * (padded + 2 * groups * fold),), a.dtype, a.x.device)
    table_of = allocate.Output((slots * 4 + pairs.count,), torch.int32, a.x.device)
    first = config_for("gather_qmm", "prepare", class_, target)
    of_pairs = min(first["BLOCK"], max(16, next_power_of_2(pairs.count)))
    prepare = LaunchPlan(
        prepare_kernel,
        (a.experts + matrices * m,),
        {
            "BITS": form.bits,
            "GROUP": form.group_size,
            "SUMS": fold,
            "BM": config["BM"],
            "BLOCK": of_pairs,
            "ONCE": pairs.count <= of_pairs,
            "ORDERED": a.ordered and pairs.count <= of_pairs,
            "PDL": bool(first.get("launch_pdl", 0)),
        },
        first,
        (pairs.count, m, a.experts, k, padded, groups, matrices * m, slots),
        (None, types[9], None, None),
    )
    packed, ahead = _scales(a, config, wide) if even else (False, False)
    constants = _constants(a) | {
        "BK": wide, "EVEN": even, "PACKED": packed, "AHEAD": ahead, "BG": max(16, next_power_of_2(groups)),
        "PDL": bool(config.get("launch_pdl", 0)),
    }  # fmt: skip
    main = LaunchPlan(
        tiles_kernel,
        (slots * cdiv(a.n, config["BN"]),),
        constants,
        config,
        (m, a.n, padded, form.words(k), groups, pairs.divisor, matrices, slots),
        (None, *types[1:7], None, types[8], None),
    )

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, *weights, out, lhs, rhs = tensors
        ordered, table = ordered_of(), table_of()
        prepare((x, rhs, ordered, table))
        main((ordered, *weights, out, lhs, table))

    return launches


def _scales(a: Arguments, config: Config, wide: int) -> tuple[bool, bool]:
    """Return whether scales of a step are loaded two at a time, and whether that is done a step before.

    Neither where each lane has 4 bytes of them, the least that is copied to LDS without waiting.
    """
    of_step = wide // a.form.group_size
    if config["BN"] * of_step * (2 if a.form.affine else 1) >= 4 * 32 * config["num_warps"]:
        return False, False
    if a.form.affine and of_step % 2 == 0 and not config.get("AHEAD", False):
        return True, False
    return False, True


def _width(k: int, most: int, group: int) -> int:
    """Return how many columns are taken at a time: fewer where a quarter of them would lie outside."""
    width: int = min(most, next_power_of_2(k))
    while width > group and -(-k // width) * width * 4 > k * 5:
        width //= 2
    return max(width, group)


def _aligned(weights: Weights) -> tuple[torch.Tensor | None, ...]:
    """Make weights contiguous; words at a multiple of 8 bytes, the others of 4, as they are loaded two at a time."""
    scales = _at(weights.scales.contiguous(), 4)
    return (
        _at(weights.words.contiguous(), 8),
        scales,
        None if weights.biases is None else _at(weights.biases.contiguous(), 4),
    )


def _at(tensor: torch.Tensor, multiple: int) -> torch.Tensor:
    """Return a tensor at a multiple of an address."""
    return tensor.clone() if tensor.device.type != "meta" and tensor.data_ptr() % multiple else tensor


_PLANS: dict[str, Callable[[Arguments, Target, Sequence[torch.dtype | None]], Launches]] = {
    "gemv": _gemv, "pairs": _pairs, "tiles": _tiles, "grouped": _grouped, "columns": _columns,
}  # fmt: skip
