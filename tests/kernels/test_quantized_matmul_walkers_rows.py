"""The kernel for two to eight rows of x whose programs walk over rows of weights: its PTX on a wavefront of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.wavefront import QUARTER, ROW, Wavefront, bits_of, code_words, narrow, packed, wide

from rocmend.kernels.ops.quantized_matmul.kernels import blocks, blocks_rows

pytestmark = pytest.mark.cpu


def test_blocks_multiply_eight_rows_of_x_with_a_wavefronts_share() -> None:
    drawn = np.random.default_rng(1)
    depth = 512
    codes = drawn.integers(0, 16, (16, depth))
    words = code_words(codes)
    x = narrow(drawn.standard_normal((8, depth)))
    scales, biases = narrow(drawn.standard_normal((2, 16, depth // 64)))
    dense = codes.reshape(16, -1, 64) * wide(scales)[:, :, None] + wide(biases)[:, :, None]
    wanted = dense.reshape(16, depth) @ wide(x).astype(np.float64).T

    # Words 0 and 1 of a chunk are of its first group, which quarters 0 and 1 hold; the others are given its halves.
    ordered = []
    for chunk in range(4):
        xs = []
        for word in range(4):
            given = np.where(word // 2 != QUARTER // 2, 2, 0)
            eight = (chunk * 16 + word // 2 * 8 + QUARTER % 2 * 4 + given + word % 2) * 4
            xs += Wavefront([packed(x)[ROW, eight + at] for at in range(4)]).run(blocks.pairs())
        ordered.append(xs)

    totals = np.zeros((4, 32), np.float32)
    for chunk in range(4):
        given = Wavefront([*ordered[chunk], *[ROW] * 4]).run(blocks_rows.totals(chunk))
        totals += np.stack(given).view(np.float32)
    left = wide(x).astype(np.float64).reshape(8, 8, 64).sum(2)
    for group in range(2):
        np.testing.assert_allclose(totals[group] + totals[2 + group], left[ROW, 2 * QUARTER + group], atol=1e-5)
    parts = Wavefront(list(bits_of(totals)), 8).run(blocks_rows.cut(), 8)

    sums = [np.zeros(32, np.uint32)] * 4
    quads = [[one[ROW + by, QUARTER]] * 4 for one in (packed(biases), packed(scales)) for by in (0, 8)]
    for chunk in range(4):
        at = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([words[ROW + by, one] for one in at] for by in (0, 8))
        operands = [*sums, *low, *high, *ordered[chunk], *quads[2], *quads[3], *[QUARTER // 2] * 4]
        sums = Wavefront(operands).run(blocks_rows.product(chunk))
    sums = Wavefront([*sums, *quads[0], *quads[1], *quads[2], *quads[3], *parts]).run(blocks_rows.others())
    got = np.zeros((16, 8), np.float32)
    for at in range(4):
        got[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = sums[at].view(np.float32)
    np.testing.assert_allclose(got, wanted, atol=4e-6 * np.abs(dense).sum((1, 2)).max())
