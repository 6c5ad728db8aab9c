"""Plan ``gemv_kernel``: how many wavefronts share a row of weights, and how many programs walk over the rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import torch

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.launch import LaunchPlan
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, gemv_class
from rocmend.kernels.ops.matmul.quantized_matmul.kernels.gemv import CHAINS, gemv_kernel
from rocmend.kernels.target import Target
from rocmend.kernels.tuning import config_for, with_warps

MOST = 3
"""Weights of a launch."""
_MOST_LANES = 512
"""Of a program."""
_LEAST_SUMS = 4
"""Of a tile."""
_WAVE64 = 64
_WORDS = torch.int32
_TYPES = (None, *(_WORDS, None, None, None) * MOST)
"""What the tensors of a launch are seen as: words may be given as uint32."""


class Norm(NamedTuple):
    """Tensors of an RMSNorm of x before the products, each with as many elements as x.

    Args:
        residual: Added to x first, or None.
        weight: Of the normalisation, or None.
        total: Where the sum goes; None without a residual.
        normed: Where the normalised row goes; None where nothing else needs it.
    """

    residual: torch.Tensor | None
    weight: torch.Tensor | None
    total: torch.Tensor | None
    normed: torch.Tensor | None


class Experts(NamedTuple):
    """How the numbers of a batch find their rows of x and their weights.

    Args:
        lhs: Whether rows of x are given by index; otherwise ``divisor`` numbers in turn share one.
        divisor: See there.
        types: What ``lhs`` and ``rhs`` are seen as, or None.
    """

    lhs: bool
    divisor: int
    types: tuple[torch.dtype | None, torch.dtype | None] = (None, None)


def plan(
    columns: Sequence[int],
    depth: int,
    group: int,
    bits: int,
    dtype: str,
    target: Target,
    *,
    gated: bool = False,
    batch: int = 1,
    x_stride: int = 0,
    w_batch: int = 0,
    experts: Experts | None = None,
    eps: float | None = None,
) -> LaunchPlan:
    """Plan a launch of ``x``, three times ``w, scales, biases, out`` (None behind the last), ``lhs, rhs`` and a norm.

    Args:
        columns: Rows of each of one to three weights, one for a gated pair.
        depth: Elements of x.
        group: Codes that share a scale.
        bits: Of a code: 2, 4 or 8.
        dtype: Of x.
        target: What it runs on.
        gated: Whether ``silu(first) * second`` of two weights is computed.
        batch: Rows of x, each with an output of its own.
        x_stride: Elements from one of these to the next.
        w_batch: Rows of weights from one of these, or from one expert, to the next; 0 where all share the weights.
        experts: How indices choose rows of x and weights; None without indices.
        eps: Added to the mean of squares where x is normalised first; None where it is not.
    """
    config = config_for(NAME, "gemv", gemv_class(dtype, bits, gated=gated), target)
    codes, words = 32 // bits, depth * bits // 32
    wide = max(CHAINS.value, min(config["WIDE"], group // codes, config["hold"] // codes))
    padded = max(next_power_of_2(words), wide)
    lanes = max(target.wave_size, 32)
    warps = max(1, min(_MOST_LANES // lanes, next_power_of_2(cdiv(padded * codes, lanes * config["hold"]))))
    wanted = cdiv(config["fill"] * target.units, warps * batch)
    rows = config["ROWS"]
    while rows > min(filter(None, columns), default=1):
        rows //= 2
    # Where rows are few, more programs hide each other's waits; but sums of fewer rows cost more.
    while rows * (1 + gated) > _LEAST_SUMS and 2 * sum(cdiv(n, rows) for n in columns) < wanted:
        rows //= 2
    tiles = sum(cdiv(n, rows) for n in columns)
    programs = max(1, min(wanted, tiles))
    programs = cdiv(tiles, cdiv(tiles, programs))  # all with as many tiles, but for the last
    # Lanes that hold more x than that have no registers for as many rows on their way.
    ahead = config["AHEAD"] if padded * codes <= warps * lanes * config["hold"] else 1
    constants = {
        "GROUP": group, "BITS": bits, "COUNT": 2 if gated else len(columns), "GATED": gated,
        "EXPERTS": experts is not None, "NORM": eps is not None,
        # Most AMD GPUs have no instruction that rounds to bf16.
        "BY_BITS": eps is not None and dtype == "bfloat16" and target.vendor != "nvidia",
        "PAIRED": bits == 4 and dtype != "float32",
        # A vector instruction of theirs takes one scalar register: the masks and exponents are in vectors.
        "APART": target.vendor == "amd" and target.wave_size == _WAVE64,
        "WORDS": words, "PADDED": padded, "WIDE": wide, "ROWS": rows,
        "AHEAD": min(ahead, 2 * rows if gated else rows),
    }  # fmt: skip
    types = (*_TYPES, *(experts.types if experts else (None, None)), *(None,) * len(Norm._fields))
    sizes = (*columns, *(0,) * (MOST - len(columns)))
    divisor = experts.divisor if experts else 1
    numbers = (*sizes, tiles, programs, x_stride, w_batch, divisor, eps)
    return LaunchPlan(gemv_kernel, (programs * batch,), constants, with_warps(config, warps), numbers, types)


def operands(
    x: torch.Tensor | None,
    weights: Sequence[Sequence[torch.Tensor | None]],
    outs: Sequence[torch.Tensor | None],
    lhs: torch.Tensor | None = None,
    rhs: torch.Tensor | None = None,
    norm: Norm = Norm(None, None, None, None),  # noqa: B008  a constant
) -> tuple[torch.Tensor | None, ...]:
    """Return the tensors of a launch in order; a gated pair has one output."""
    given: list[torch.Tensor | None] = [x]
    for index, (w, scales, biases) in enumerate(weights):
        given += [w, scales, biases, outs[index] if index < len(outs) else None]
    return (*given, *(None,) * (4 * (MOST - len(weights))), lhs, rhs, *norm)
