"""What a program reads before the kernel in front of it is done: weights, which that one does not write.

Which expert a row has may be what the kernel in front writes. What stands in its place until then is most often what
will stand there: in a model all but the first of a layer's products have indices that were written long before. So it
is taken for a guess, and the guessed expert's words are read; what is small is brought into the second cache, which
holds what memory holds, whoever writes to it. Behind the wait the index is read again, and where it is another one, so
are the weights: a wrong guess costs the time of reading, and no result.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.language import INTERPRETED


@triton.jit
def index_at(index_ptr):
    """Return an index as it stands, from the second cache: the first one keeps what stood there before."""
    return tl.load(index_ptr, cache_modifier=".cg").to(tl.int32)


@triton.jit
def guessed(index_ptr, experts):
    """Return an index as it stands, or a valid one for anything else: it may not be written yet."""
    return tl.minimum(tl.maximum(index_at(index_ptr), 0), experts - 1)


@triton.jit
def brought(pointer, count):
    """Have ``count`` elements from a pointer on brought into the second cache; nobody waits for them."""
    if not INTERPRETED:
        begin = pointer.to(tl.int64)
        # Whole sixteens of bytes, in each of which an element exists.
        end = (begin + count * (pointer.dtype.element_ty.primitive_bitwidth // 8) + 15) & -16
        begin = begin & -16
        tl.inline_asm_elementwise(
            "{ .reg .pred p; .reg .b32 t; mov.u32 t, %tid.x; setp.eq.u32 p, t, 0;"
            " @p cp.async.bulk.prefetch.L2.global [$1], $2; mov.b32 $0, 0; }",
            "=r,l,r",
            [tl.zeros([1], tl.int64) + begin, (tl.zeros([1], tl.int64) + (end - begin)).to(tl.int32)],
            dtype=tl.int32,
            is_pure=False,
            pack=1,
        )
