"""How long a product of many rows takes on Hopper, by estimate: unpacked on the way, or dequantized first.

Which is less depends on how the tiles come out. Unpacking goes in waves of as many tiles as the compute units hold, and
a wave that is not full takes as long as a full one; dequantizing takes its time whatever the rows of x, and the
vendor's product behind it is faster than unpacking is. The constants are fitted to times on an H200 (Triton 3.6, torch
2.11, bfloat16), which the estimates meet within a few per cent (``tests/kernels/test_quantized_matmul_costs.py``).
"""

from __future__ import annotations

from rocmend.kernels.arithmetic import cdiv
from rocmend.kernels.ops.matmul.quantized_matmul import Problem

UNPACKING_NS = {
    4: {16: 4.0, 32: 4.3, 64: 5.8, 128: 8.05, 256: 11.85},
    8: {32: 7.9, 64: 8.5, 128: 11.6, 256: 14.05},
}
"""By the bits of a code and the rows of x in a tile: 128 rows of weights on each compute unit, for a term of a sum."""
BEGINNING_US = 2.0
"""Launches, and the first loads."""
ADDING_US = 1.5
"""The launch that adds up parts of K, beside what it reads."""
BETWEEN_GB_S = 3600.0
"""What one launch writes and the next one reads: x in order, and sums of parts in fp32."""
WRITING_GB_S = 3650.0
"""Dequantizing, of all that it reads and writes."""
PRODUCT_TFLOPS = 820.0
"""The vendor's product of half types."""
PRODUCT_GB_S = 4200.0
"""The same where reading the weights takes longer."""
FEW_ROWS, LEAST_NS = 128, (1.3, 1.6)
"""The same where its tiles are few: for each term of a sum, up to so many rows of x, and with more."""
APART_US = 4.5
"""Two launches, and the beginning and the end of a product."""


def unpacked_us(problem: Problem, block: int, tiles: int, splits: int, units: int, share: float) -> float:
    """Return how long the kernel takes that unpacks weights on the way.

    Args:
        problem: The product.
        block: Rows of x in a tile.
        tiles: How many there are.
        splits: Parts of K.
        units: Compute units.
        share: Of what a compute unit does in the time of a wave, which a tile takes.
    """
    by_block = UNPACKING_NS[problem.bits]
    each = by_block[min((one for one in by_block if one >= block), default=max(by_block))]
    waves = cdiv(tiles * splits, units) * share
    between = 4.0 * problem.rows * problem.depth
    if splits > 1:
        between += 8.0 * splits * problem.rows * problem.columns
    beside = BEGINNING_US + (ADDING_US if splits > 1 else 0.0) + between / BETWEEN_GB_S / 1e3
    return beside + waves * each * problem.depth / splits / 1e3


def apart_us(problem: Problem) -> float:
    """Return how long it takes to dequantize all weights to a half type and to multiply."""
    weights = float(problem.columns) * problem.depth
    packed = problem.bits / 8 + 4.0 / problem.group_size
    least = LEAST_NS[problem.rows > FEW_ROWS] * problem.depth / 1e3
    product = max(2.0 * weights * problem.rows / PRODUCT_TFLOPS / 1e6, 2.0 * weights / PRODUCT_GB_S / 1e3, least)
    return APART_US + weights * (packed + 2.0) / WRITING_GB_S / 1e3 + product
