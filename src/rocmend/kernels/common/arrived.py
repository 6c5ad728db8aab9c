"""The Triton side of ``arrivals``: which program of several is the last."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def arrived_last(counter_ptr, programs):
    """Count this program's arrival behind all that it stored; true for the last, which sees what the others stored.

    The last one sets the counter back to zero, for the next launch. It reads what the others stored past the caches of
    its own compute unit (``.cg``).
    """
    tl.debug_barrier()
    last = tl.atomic_add(counter_ptr, 1, sem="acq_rel") == programs - 1
    if last:
        tl.store(counter_ptr, 0)
    return last
