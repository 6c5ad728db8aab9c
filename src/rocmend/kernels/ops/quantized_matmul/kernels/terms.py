"""What lanes do with a word of 4-bit codes for ``warpgroups``, and the order of x that makes them terms of a sum.

A word holds codes 0 to 7 from its lowest bits on. Under the exponent of 128 (of 1024 in half precision), codes ``v``
and ``v + 4`` are a pair of numbers after a shift by ``4 v`` and one instruction. What stands beside a code comes off
exactly; then scale and bias are applied to both, and rounded once.

Quarter ``q`` of a wavefront's lanes has words ``4 q`` to ``4 q + 3`` of a chunk of 128 codes, and pairs ``2 f`` and
``2 f + 1`` of a word ``w`` are its terms of the matrix instruction ``2 w + f``: numbers ``2 q + e`` and ``2 q + 8 + e``
of 16, ``e`` being 0 for code ``v`` and 1 for code ``v + 4``.
"""

from __future__ import annotations

import triton
import triton.language as tl

ONES = {"bf16": 0x43004300, "f16": 0x64006400}
"""Twice 128 or 1024, whose last bits a code takes."""
MINUS = {"bf16": 0xC300C300, "f16": 0xE400E400}
"""The same, negative."""
CODES = 0x000F000F
TAKE = 0xEA
"""The truth table of ``(a & b) | c``."""
UNPACK_OF = ",".join(["=&r"] * 4 + ["r"] * 24)
"""Constraints of ``unpacked``: four pairs; a word, scales in pairs and biases in pairs, each for eight codes."""


def unpacked(kind: str) -> str:
    """Return PTX that gives the weights of a word's pairs, all eight of whose operands of a kind are the same.

    Args:
        kind: ``bf16`` or ``f16``.
    """
    word, scale, bias = "$4", "$12", "$20"
    lines = [".reg .b32 t, v, o, m;", f"mov.b32 o, {ONES[kind]:#x};", f"mov.b32 m, {MINUS[kind]:#x};"]
    for pair in range(4):
        if pair:
            lines.append(f"shr.u32 t, {word}, {4 * pair};")
        lines.append(f"lop3.b32 v, {'t' if pair else word}, {CODES:#x}, o, {TAKE:#x};")
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
    BLOCK_M: tl.constexpr,
    LINES: tl.constexpr,
    WIDTH: tl.constexpr,
    PDL: tl.constexpr,
):
    """Write rows of x as tiles of BLOCK_M by WIDTH numbers, each chunk of 128 in the order of terms.

    Programs: (LINES rows of what is written, chunks). Behind row M the last one is written again.
    """
    if PDL:
        tl.inline_asm_elementwise("griddepcontrol.launch_dependents; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
        tl.inline_asm_elementwise("griddepcontrol.wait; // $0", "=r", [], tl.int32, is_pure=False, pack=1)
    line = tl.program_id(0) * LINES + tl.arange(0, LINES)
    chunk = tl.program_id(1)
    code = tl.arange(0, 128)
    row = tl.minimum(line, M - 1).to(tl.int64)
    x = tl.load(x_ptr + row[:, None] * stride + chunk * 128 + code[None, :])
    # Code 32 q + 8 w + 4 e + 2 f + h is term 16 (2 w + f) + 8 h + 2 q + e.
    x = tl.reshape(tl.permute(tl.reshape(x, [LINES, 4, 4, 2, 2, 2]), (0, 2, 4, 5, 1, 3)), [LINES, 128])
    tile = (line // BLOCK_M).to(tl.int64) * chunks + chunk
    term = tl.arange(0, 128)
    piece = tile[:, None] * (128 // WIDTH) + (term // WIDTH)[None, :]
    at = (piece * BLOCK_M + (line % BLOCK_M)[:, None]) * WIDTH + (term % WIDTH)[None, :]
    tl.store(out_ptr + at, x)
