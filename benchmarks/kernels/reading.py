"""What a decode step of a mixture of experts must read, and nothing else done, by small programs of a few rows each.

How long it takes tells what launches and latencies cost so small a read. It is no bound: of larger ones, and where rows
are short, kernels whose programs stay and have the next rows under way read faster.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.suite import Call

NAME = "plain read"
ROWS = 8


@triton.jit
def _read(w_ptr, scales_ptr, biases_ptr, row, words, groups, MODE: tl.constexpr, W: tl.constexpr, G: tl.constexpr):
    word, group = tl.arange(0, W)[None, :], tl.arange(0, G)[None, :]
    total = tl.sum(tl.load(w_ptr + row * words + word, mask=word < words, other=0).to(tl.float32))
    total += tl.sum(tl.load(scales_ptr + row * groups + group, mask=group < groups, other=0).to(tl.float32))
    if MODE == "affine":
        total += tl.sum(tl.load(biases_ptr + row * groups + group, mask=group < groups, other=0).to(tl.float32))
    return total


@triton.jit
def read_kernel(
    w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, rhs_ptr, out_ptr, n, words, groups,
    MODE: tl.constexpr, GATED: tl.constexpr, ROWS: tl.constexpr, W: tl.constexpr, G: tl.constexpr,
):  # fmt: skip
    """Read ROWS rows of a pair's expert. Programs: (blocks of n, pairs)."""
    expert = tl.load(rhs_ptr + tl.program_id(1)).to(tl.int64)
    row = tl.minimum(tl.program_id(0) * ROWS + tl.arange(0, ROWS), n - 1)
    row = (expert * n + row)[:, None]
    total = _read(w_ptr, scales_ptr, biases_ptr, row, words, groups, MODE, W, G)
    if GATED:
        total += _read(up_ptr, up_scales_ptr, up_biases_ptr, row, words, groups, MODE, W, G)
    tl.store(out_ptr + tl.program_id(1) * tl.num_programs(0) + tl.program_id(0), total)


def read(first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...], rhs: torch.Tensor, mode: str) -> Any:
    """Read the matrices of the experts that indices name, once for each index.

    Args:
        first: Words, scales and biases (None but for affine) of the experts.
        second: The like of a fused gate's second matrices, or nothing.
        rhs: Indices.
        mode: Of the format.
    """
    _, n, words = first[0].shape
    groups, pairs = first[1].shape[-1], rhs.numel()
    grid = (cdiv(n, ROWS), pairs)
    out = torch.empty(grid, dtype=torch.float32, device=rhs.device)
    whole = [*first, *[None] * (3 - len(first)), *second, *[None] * (3 - len(second))]
    read_kernel[grid](
        *whole, rhs, out, n, words, groups,
        MODE=mode, GATED=bool(second), ROWS=ROWS, W=next_power_of_2(words), G=next_power_of_2(groups), num_warps=4,
    )  # fmt: skip
    return out


def arguments(call: Call) -> Call:
    """Return the arguments of ``read`` for a call of ``gather_qmm`` or ``gather_qmm_swiglu``."""
    rest = call.args[1:]
    gated = isinstance(rest[0], tuple)
    first, second = (rest[0], rest[1]) if gated else (rest, ())
    return Call((first, second, call.kwargs["rhs_indices"], call.kwargs["mode"]))
