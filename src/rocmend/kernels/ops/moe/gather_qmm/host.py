"""Launch the Triton kernels."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import torch

from rocmend.kernels import allocate, backends, executor, select
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.common.formats import Format
from rocmend.kernels.dtypes import NAMES
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import gemv as one_row
from rocmend.kernels.ops.moe.gather_qmm import (
    NAME,
    OP,
    grouped_class,
    pairs_record,
    shape_class,
    tiles_class,
)
from rocmend.kernels.ops.moe.gather_qmm.arguments import Arguments, Weights
from rocmend.kernels.ops.moe.gather_qmm.kernels.columns import columns_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.grouped import grouped_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.pairs import pairs_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.prepare import arrange_kernel, prepare_kernel
from rocmend.kernels.ops.moe.gather_qmm.kernels.tiles import tiles_kernel
from rocmend.kernels.ops.moe.gather_qmm.problem import problem_of
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import Config, config_for

Launches = Callable[[Sequence[torch.Tensor | None]], None]
"""Of x, weights, second weights, the output and indices."""
Plan = Callable[[Arguments, Target, Sequence[torch.dtype | None]], Launches]
_NO_WEIGHTS = (None, None, None)
_LARGE = 1 << 31
"""Elements from which offsets have more than 32 bits."""


class Kernel:
    """An implementation of the op by a kernel.

    Args:
        plan: Plans its launches; a type for each of the ten tensors, or None, says what it is seen as.
        aligned: Whether the kernel takes tensors at multiples of 16 bytes only; others go to another implementation.
    """

    def __init__(self, plan: Plan, *, aligned: bool = False) -> None:
        self.plan, self.aligned = plan, aligned

    def __call__(self, a: Arguments) -> torch.Tensor:
        """Multiply; see ``function.gather_qmm``."""
        m, k = a.x.shape[-2:]
        out = allocate.empty((*a.pairs.shape, m, a.n), dtype=a.dtype, device=a.x.device)
        if out.numel() == 0:
            return out
        if k == 0:
            return out.zero_()
        x = _at(a.x.to(a.dtype).contiguous(), 4)
        weights = (*_aligned(a.weights), *(_aligned(a.up) if a.up is not None else (None, None, None)))
        self.launches(a)((x, *weights, out, a.pairs.lhs, a.pairs.rhs))
        return out

    def launches(self, a: Arguments, types: Sequence[torch.dtype | None] = (None,) * 10) -> Launches:
        """Plan the launches of x, weights, second weights, the output and indices."""
        planned = self.plan(a, executor.target_for(a.x.device), types)
        if not self.aligned:
            return planned

        @functools.cache
        def at_any_address() -> Launches:
            other: Any = select.implementation(OP, a.x.device, problem_of(a), aligned=False)
            planned: Launches = other.launches(a, types)
            return planned

        def launches(tensors: Sequence[torch.Tensor | None]) -> None:
            (planned if backends.aligned(*tensors[:7]) else at_any_address())(tensors)

        return launches

    def plan_call(
        self, a: Arguments, lhs: torch.Tensor | None, rhs: torch.Tensor | None, whole: Callable[..., torch.Tensor]
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
        if lhs is None and a.pairs.lhs is not None:  # x is broadcast: its indices are made at each call
            return None
        if any(one is not None and not one.is_contiguous() for one in tensors) or a.x.dtype != a.dtype:
            return None
        if 0 in (a.pairs.count, m, k, a.n):
            return None
        signed = [torch.int32 if one is not None and one.dtype == torch.uint32 else None for one in (lhs, rhs)]
        words = torch.int32  # given as uint32, maybe
        types = (None, words, None, None, None if a.up is None else words, None, None, None, *signed)
        launched = self.launches(a, types)
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


def _constants(a: Arguments) -> dict[str, object]:
    return {
        "MODE": a.form.mode, "BITS": a.form.bits, "GROUP": a.form.group_size, "GATED": a.up is not None,
        "HAS_LHS": a.pairs.lhs is not None,
    }  # fmt: skip


def _pairs(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch for rows by themselves, of any format."""
    m, k = a.x.shape[-2:]
    rows = a.pairs.count * m
    kernel, _, size = pairs_record(problem_of(a)).partition("/")
    config = config_for(NAME, kernel, size, target)
    constants = _constants(a) | {"BK": _width(k, config["BK"], a.form.group_size)}
    grid = (rows * cdiv(a.n, config["BN"]),)
    numbers = (m, a.n, k, a.form.words(k), k // a.form.group_size, a.pairs.divisor)
    return LaunchPlan(pairs_kernel, grid, constants, config, numbers, types)


def _gemv(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the launch for rows by themselves with affine codes that do not straddle words."""
    k = a.x.shape[-1]
    experts = one_row.Experts(a.pairs.lhs is not None, a.pairs.divisor, (types[8], types[9]))
    planned = one_row.plan(
        [a.n], k, a.form.group_size, a.form.bits, NAMES[a.dtype], target, gated=a.up is not None, batch=a.pairs.count,
        x_stride=k, w_batch=a.n, experts=experts,
    )  # fmt: skip
    count = 1 if a.up is None else 2

    def launches(tensors: Sequence[torch.Tensor | None]) -> None:
        x, *weights, out, lhs, rhs = tensors
        triples = [weights[first : first + 3] for first in range(0, 3 * count, 3)]
        planned(one_row.operands(x, triples, [out], lhs, rhs))

    return launches


def _arranged(
    a: Arguments, target: Target, height: int, rhs: torch.dtype | None, *, unit: int = 0, paired: bool = False
) -> tuple[LaunchPlan, int, Callable[[], tuple[torch.Tensor | None, torch.Tensor | None, torch.Tensor]]]:
    """Plan the launch before ``grouped`` or ``columns``: of x, indices, ordered x, sums and the table.

    Returns:
        The launch, the places of its table, and what allocates ordered x (None unless ``paired``), the sums of each
        ``unit`` columns (None without a unit) and the table.
    """
    pairs, (m, k), form = a.pairs, a.x.shape[-2:], a.form
    config = config_for(NAME, "arrange", "*", target)
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


def _grouped(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the two launches for rows that share experts."""
    form, (m, k) = a.form, a.x.shape[-2:]
    config = config_for(NAME, "grouped", grouped_class(problem_of(a)), target)
    # A scale is a group's, so a step of affine weights is no more; of the others, K is whole steps.
    block = min(config["BK"], form.group_size) if form.affine else max(math.gcd(config["BK"], k), form.group_size)
    paired = _paired(form, a.dtype)
    arrange, slots, allocated = _arranged(
        a, target, config["BM"], types[9], unit=block if form.affine else 0, paired=paired
    )
    constants = _constants(a) | {
        "PAIRED": paired, "WHOLE": a.n % config["BN"] == 0, "BK": block,
        "LARGE": max(a.x.numel(), a.pairs.count * m * a.n) >= _LARGE, "WAITED": target.vendor == "nvidia",
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
    config, (m, k) = config_for(NAME, "columns", grouped_class(problem_of(a)), target), a.x.shape[-2:]
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


def _tiles(a: Arguments, target: Target, types: Sequence[torch.dtype | None]) -> Launches:
    """Plan the two launches for many rows on NVIDIA's matrix units."""
    form, pairs, (m, k) = a.form, a.pairs, a.x.shape[-2:]
    class_ = tiles_class(problem_of(a))
    config = config_for(NAME, "tiles", class_, target)
    # As many bytes of a row whatever the width of a code is, and no less than a group.
    wide = max(config["BK"] * 4 // form.bits, form.group_size)
    block = 512 // form.bits
    even, padded = k % wide == 0, cdiv(k, block) * block
    groups, matrices = k // form.group_size, a.x.shape[:-2].numel()
    slots = pairs.count * m // config["BM"] + a.experts
    fold = form.mode == "affine" and a.dtype == torch.bfloat16
    ordered_of = allocate.Output((matrices * m * (padded + 2 * groups * fold),), a.dtype, a.x.device)
    table_of = allocate.Output((slots * 4 + pairs.count,), torch.int32, a.x.device)
    first = config_for(NAME, "prepare", class_, target)
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


gemv, pairs, tiles, grouped, columns = map(Kernel, (_gemv, _pairs, _tiles, _grouped, _columns))
