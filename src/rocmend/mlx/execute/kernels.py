"""Triton functions of the executors."""

from __future__ import annotations

import triton
import triton.language as tl


@triton.jit
def write_slice(
    into, update, start, size_1, size_2, size_3, total,
    into_0, into_1, into_2, into_3, from_0, from_1, from_2, from_3, along, BLOCK: tl.constexpr,
):  # fmt: skip
    """Copy ``update``, of four axes, into ``into``, moved by ``start[0]`` steps of ``along`` elements."""
    index = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    inside = index < total
    at_3 = index % size_3
    rest = index // size_3
    at_2 = rest % size_2
    rest = rest // size_2
    at_1 = rest % size_1
    at_0 = rest // size_1
    moved = tl.load(start).to(tl.int64) * along
    value = tl.load(update + at_0 * from_0 + at_1 * from_1 + at_2 * from_2 + at_3 * from_3, mask=inside)
    tl.store(into + moved + at_0 * into_0 + at_1 * into_1 + at_2 * into_2 + at_3 * into_3, value, mask=inside)
