"""Which taps an output uses, and divisions by numbers that the host knows."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def taps_of_phase(phase, stride, padding, dilation, input_dilation, taps):
    """Return the first tap that falls on an input element for outputs of a phase, and how many taps do."""
    first = taps * 0
    count = taps * 0
    for back in range(taps):
        tap = taps - 1 - back
        falls = (phase * stride - padding + tap * dilation) % input_dilation == 0
        first = tl.where(falls, tap, first)
        count += tl.where(falls, 1, 0)
    return first, count


@triton.jit
def divided(n, factor, shift):
    """Return n // divisor for 0 <= n < 2³¹, given the divisor's ``reciprocal``: few instructions, not 20."""
    return (tl.umulhi((n * 2).to(tl.uint32), tl.cast(factor, tl.uint32)) >> shift).to(tl.int32)
