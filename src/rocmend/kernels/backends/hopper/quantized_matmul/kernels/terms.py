"""What lanes do with a word of codes for ``gemm_w4a16_wgmma``, and the order of x that makes them terms of a sum.

A word holds its codes from its lowest bits on. Of four bits, codes ``v`` and ``v + 4`` are a pair of numbers under the
exponent of 128 (of 1024 in half precision), after a shift by ``4 v`` and one instruction. Of eight bits, which a
bfloat16 does not hold beside an exponent, they are numbers in fp32 first. What stands beside a code comes off exactly;
then scale and bias are applied to both of a pair, and rounded once.

Quarter ``q`` of a wavefront's lanes has words ``4 q`` to ``4 q + 3`` of a chunk of 16. Pair ``h`` of an instruction is
its terms ``2 q + e`` and ``2 q + 8 h + e`` of 16: pairs ``2 f`` and ``2 f + 1`` of a word ``w`` of four bits are those
of instruction ``2 w + f``, and ``e`` is 0 for code ``v`` and 1 for code ``v + 4``; the two pairs of a word of eight
bits, neighbours, are those of instruction ``w``.
"""

from __future__ import annotations

import triton
import triton.language as tl

from rocmend.kernels.backends.hopper.mma import CODES, TAKE

ONES = {"bf16": 0x43004300, "f16": 0x64006400}
"""Twice 128 or 1024, whose last bits a code takes."""
MINUS = {"bf16": 0xC300C300, "f16": 0xE400E400}
"""The same, negative."""
WIDE, NOT_WIDE = "0x4B000000", "0fCB000000"
"""2²³ in fp32, whose last bits a code takes, and the same, negative."""
ABOVE = "0x64646464"
"""The upper byte of 1024 in half precision, four times."""


def unpacked_of(bits: int) -> str:
    """Return the constraints of ``unpacked``: pairs; a word, scales in pairs and biases in pairs, for each code."""
    codes = 32 // bits
    return ",".join(["=&r"] * (codes // 2) + ["r"] * (3 * codes))


def unpacked(kind: str, bits: int) -> str:
    """Return PTX that gives the weights of a word's pairs; its operands of a kind are all the same.

    Args:
        kind: ``bf16`` or ``f16``.
        bits: 4 or 8.
    """
    pairs, codes = 16 // bits, 32 // bits
    word, scale, bias = (f"${pairs + codes * at}" for at in range(3))
    lines = [
        ".reg .b32 t, v, o, m;",
        ".reg .f32 a, b;",
        f"mov.b32 o, {ONES[kind]:#x};",
        f"mov.b32 m, {MINUS[kind]:#x};",
    ]
    for pair in range(pairs):
        if bits == 4:
            lines += [f"shr.u32 t, {word}, {4 * pair};"] if pair else []
            lines.append(f"lop3.b32 v, {'t' if pair else word}, {CODES:#x}, o, {TAKE:#x};")
        elif kind == "f16":
            lines.append(f"prmt.b32 v, {word}, {ABOVE}, {0x4140 + 0x202 * pair:#x};")
        else:
            for number, code in (("a", 2 * pair), ("b", 2 * pair + 1)):
                lines += [f"prmt.b32 t, {word}, {WIDE}, {0x7540 + code:#x};", f"mov.b32 {number}, t;"]
                lines.append(f"add.f32 {number}, {number}, {NOT_WIDE};")
            lines += ["mov.b32 t, a;", "mov.b32 v, b;", "prmt.b32 v, t, v, 0x7632;"]
        if bits == 4 or kind == "f16":
            lines.append(f"add.rn.{kind}x2 v, v, m;")
        lines.append(f"fma.rn.{kind}x2 ${pair}, v, {scale}, {bias};")
    return "\n".join(("{", *lines, "}"))


@triton.jit
def ordered_kernel(
    x_ptr,
    out_ptr,
    M,
    stride,
    chunks,
    BITS: tl.constexpr,
    BLOCK_M: tl.constexpr,
    LINES: tl.constexpr,
    WIDTH: tl.constexpr,
    PDL: tl.constexpr,
):
    """Write rows of x as tiles of BLOCK_M by WIDTH numbers, each chunk of 512 / BITS in the order of terms.

    Programs: (LINES rows of what is written, chunks). Behind row M the last one is written again.
    """
    CHUNK: tl.constexpr = 512 // BITS
    if PDL:
        tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    chunk = tl.program_id(1)
    place = tl.arange(0, CHUNK)
    row = tl.minimum(line, M - 1).to(tl.int64)
    x = tl.load(x_ptr + row[:, None] * stride + chunk * CHUNK + place[None, :])
    if BITS == 4:
        # Code 32 q + 8 w + 4 e + 2 f + h is term 16 (2 w + f) + 8 h + 2 q + e.
        x = tl.permute(tl.reshape(x, [LINES, 4, 4, 2, 2, 2]), (0, 2, 4, 5, 1, 3))
    else:
        # Code 16 q + 4 w + 2 h + e is term 16 w + 8 h + 2 q + e.
        x = tl.permute(tl.reshape(x, [LINES, 4, 4, 2, 2]), (0, 2, 3, 1, 4))
    tile = (line // BLOCK_M).to(tl.int64) * chunks + chunk
    piece = tile[:, None] * (CHUNK // WIDTH) + (place // WIDTH)[None, :]
    at = (piece * BLOCK_M + (line % BLOCK_M)[:, None]) * WIDTH + (place % WIDTH)[None, :]
    tl.store(out_ptr + at, tl.reshape(x, [LINES, CHUNK]))
