"""Which taps an output uses."""

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
