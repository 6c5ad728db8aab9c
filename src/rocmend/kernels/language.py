"""Pieces of Triton code that every kernel may use, right on a GPU and in the interpreter alike.

The interpreter computes bf16 as raw bits and gives garbage without a word: load, then ``.to(tl.float32)``. It cuts bits
off where fp32 becomes bf16: narrow with ``narrow``. And multiply with ``dot``, which takes fp32 there and the operands'
own type (matrix instructions) everywhere else.
"""

from __future__ import annotations

import triton
import triton.language as tl

INTERPRETED = tl.constexpr(bool(triton.knobs.runtime.interpret))


@triton.jit
def dot(a, b, acc):
    """Return acc + a @ b with fp32 accumulation; fp32 operands in full precision (no tf32, no xf32)."""
    if INTERPRETED:
        return tl.dot(a.to(tl.float32), b.to(tl.float32), acc, input_precision="ieee")
    return tl.dot(a, b, acc, input_precision="ieee")


@triton.jit
def waited(sums):
    """Return fp32 sums as they are, when the product that they come from is done: for NVIDIA, in the loop of a product.

    Hopper's matrix instructions read a first operand in registers while the program goes on. Triton (3.6 to 3.9 at
    least) splits such a product along K and waits, with all but the oldest part under way, behind each part; what the
    next iteration computes for the others it puts into registers that are still being read. Sums that are used within
    the loop, be it by no instruction, make it wait for the whole product.
    """
    if not INTERPRETED:
        sums = tl.inline_asm_elementwise("", "=f,0", [sums], dtype=tl.float32, is_pure=True, pack=1)
    return sums


@triton.jit
def again(x):
    """Return 16-bit elements as they are, but so that what was computed of them is computed anew: for NVIDIA.

    Elements that are needed on both sides of a reduction are else kept in fp32 across it, in twice the registers.
    """
    if not INTERPRETED:
        x = tl.inline_asm_elementwise("", "=r,0", [x], dtype=x.dtype, is_pure=False, pack=2)
    return x


@triton.jit
def narrow(x, dtype: tl.constexpr):
    """Return fp32 x in another type, rounded to nearest even, in the interpreter too."""
    if INTERPRETED:
        if dtype == tl.bfloat16:
            bits = x.to(tl.uint32, bitcast=True)
            rounded = (bits + 0x7FFF + ((bits >> 16) & 1)) & 0xFFFF0000
            x = tl.where(x == x, rounded.to(tl.float32, bitcast=True), x)
    return x.to(dtype)


@triton.jit
def exact(x, dtype: tl.constexpr):
    """Return fp32 x in a type that holds it exactly; bf16 is its upper half, where AMD GPUs would round in software."""
    if INTERPRETED:
        found = x
    elif dtype == tl.bfloat16:
        found = (x.to(tl.int32, bitcast=True) >> 16).to(tl.int16).to(dtype, bitcast=True)
    else:
        found = x.to(dtype)
    return found
