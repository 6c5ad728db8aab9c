"""The Triton side of ``semaphores``: which program of several is the last."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def is_last_block(counter_ptr, programs):
    """Count this program after all of its stores; true for the last one, which sees the stores of the others.

    The last program sets the counter back to zero for the next launch. It must read the others' stores past the caches
    of its own compute unit (``.cg``).
    """
    tl.debug_barrier()
    last = tl.atomic_add(counter_ptr, 1, sem="acq_rel") == programs - 1
    if last:
        tl.store(counter_ptr, 0)
    return last
