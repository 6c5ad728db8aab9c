"""What a decode step of a mixture of experts must read, and nothing else done: how long the fastest plain read takes.

It is what launches and latencies leave of the bandwidth for so few bytes. The expert of a pair is looked up, and then
all that a program reads is on its way before any of it is used: 16 bytes a lane at a time, four times, or four times
that where a few programs more than are resident would have to follow. As kernels of ours do on Hopper, a program begins
before the kernel in front has ended, and waits for it. On an H200 no other size of a read, number of wavefronts or of
programs, or way through the caches was faster by more than 1 %, from 7 MB to 110 MB.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

from rocmend.kernels import executor
from rocmend.kernels.arithmetic import cdiv, next_power_of_2
from rocmend.kernels.suite import Call

NAME = "plain read"
WORDS = 2048
"""Of codes that a program reads at a time, with their scales and biases."""
WARPS = 4
RESIDENT = 8
"""Programs of a compute unit up to which each reads once."""
FEWER, DEEP = 3, 4
"""Programs of a compute unit, and reads of each, where those come to more and these suffice; else they read once."""


@triton.jit
def _read(
    w_ptr, scales_ptr, biases_ptr, expert, part, number, total, words, scales, share,
    BIASES: tl.constexpr, WORDS: tl.constexpr, SCALES: tl.constexpr,
):  # fmt: skip
    """Return what a part of an expert's matrix comes to, of codes and of all else."""
    word = part * WORDS + tl.arange(0, WORDS)
    scale = tl.arange(0, SCALES)
    mine = (scale < share) & (part * share + scale < scales) & (number + tl.zeros_like(scale) < total)
    at = part * share + scale
    whole = (word < words) & (number + tl.zeros_like(word) < total)
    codes = tl.load(w_ptr + expert * words + word, mask=whole, other=0)
    rest = tl.load(scales_ptr + expert * scales + at, mask=mine, other=0)
    if BIASES:
        rest ^= tl.load(biases_ptr + expert * scales + at, mask=mine, other=0)
    return codes, rest


@triton.jit
def read_kernel(
    w_ptr, scales_ptr, biases_ptr, up_ptr, up_scales_ptr, up_biases_ptr, rhs_ptr, out_ptr,
    parts, total, words, scales, share,
    BIASES: tl.constexpr, GATED: tl.constexpr, WORDS: tl.constexpr, SCALES: tl.constexpr, DEEP: tl.constexpr,
    KEPT: tl.constexpr, PDL: tl.constexpr,
):  # fmt: skip
    """Read the matrices of the experts that pairs name, ``total`` parts of them, ``parts`` of a pair.

    What was read is written with KEPT alone, by exclusive or of all that a lane had; else only where it is a number
    that hardly ever comes: an output would have to be written, and none has the compiler leave the loads out.
    """
    if PDL:
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
        tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
    codes, rest = tl.zeros([WORDS], tl.int32), tl.zeros([SCALES], tl.int32)
    for deep in tl.static_range(DEEP):
        number = tl.program_id(0) + deep * tl.num_programs(0)
        at = tl.minimum(number, total - 1)
        expert = tl.load(rhs_ptr + at // parts).to(tl.int64)
        more, others = _read(
            w_ptr, scales_ptr, biases_ptr, expert, at % parts, number, total, words, scales, share,
            BIASES, WORDS, SCALES,
        )  # fmt: skip
        codes ^= more
        rest ^= others
        if GATED:
            more, others = _read(
                up_ptr, up_scales_ptr, up_biases_ptr, expert, at % parts, number, total, words, scales, share,
                BIASES, WORDS, SCALES,
            )  # fmt: skip
            codes ^= more
            rest ^= others
    place = tl.program_id(0).to(tl.int64) * (WORDS + SCALES) if KEPT else 0
    tl.store(out_ptr + place + tl.arange(0, WORDS), codes, mask=(codes == 0x5BD1E995) | KEPT)
    tl.store(out_ptr + place + WORDS + tl.arange(0, SCALES), rest, mask=(rest == 0x5BD1E995) | KEPT)


def read(
    first: tuple[torch.Tensor, ...], second: tuple[torch.Tensor, ...], rhs: torch.Tensor, *, kept: bool = False
) -> torch.Tensor:
    """Read the matrices of the experts that indices name, once for each index.

    Args:
        first: Words, scales and biases (only of affine) of the experts, as int32: [experts, those of a matrix].
        second: The like of a fused gate's second matrices, or nothing.
        rhs: Indices.
        kept: Whether what was read is written, for a test.
    """
    words, scales = first[0].shape[1], first[1].shape[1]
    parts = cdiv(words, WORDS)
    share = cdiv(scales, parts)
    total = parts * rhs.numel()
    target = executor.target_for(rhs.device)
    units = target.compute_units or 132
    programs, deep = (FEWER * units, DEEP) if RESIDENT * units < total <= FEWER * DEEP * units else (total, 1)
    side = next_power_of_2(share)
    out = torch.empty((programs if kept else 1, WORDS + side), dtype=torch.int32, device=rhs.device)
    pdl = target.vendor == "nvidia" and target.generation >= 90
    read_kernel[programs,](
        *first, *[None] * (3 - len(first)), *second, *[None] * (3 - len(second)), rhs, out,
        parts, total, words, scales, share,
        BIASES=len(first) > 2, GATED=bool(second), WORDS=WORDS, SCALES=side, DEEP=deep, KEPT=kept, PDL=pdl,
        num_warps=WARPS, **({"launch_pdl": True} if pdl else {}),
    )  # fmt: skip
    return out


def arguments(call: Call) -> Call:
    """Return the arguments of ``read`` for a call of ``gather_qmm`` or ``gather_qmm_swiglu``."""
    rest = call.args[1:]
    gated = isinstance(rest[0], tuple)
    first, second = (rest[0], rest[1]) if gated else (rest, ())
    return Call((_as_int32(first), _as_int32(second), call.kwargs["rhs_indices"]))


def _as_int32(matrices: tuple[Any, ...]) -> tuple[torch.Tensor, ...]:
    return tuple(one.reshape(one.shape[0], -1).view(torch.int32) for one in matrices if one is not None)
