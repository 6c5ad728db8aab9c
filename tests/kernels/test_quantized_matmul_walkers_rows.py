"""The kernel for two to eight rows of x whose programs walk over rows of weights: its PTX on a wavefront of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from tests.kernels.wavefront import QUARTER, ROW, Wavefront, code_words, narrow, packed, wide

from rocmend.kernels.ops.quantized_matmul.kernels import blocks, blocks_rows

pytestmark = pytest.mark.cpu


def test_blocks_multiply_eight_rows_of_x_with_a_wavefronts_share() -> None:
    drawn = np.random.default_rng(1)
    depth = 1024
    codes = drawn.integers(0, 16, (16, depth))
    words = code_words(codes)
    x = narrow(drawn.standard_normal((8, depth)))
    scales, biases = narrow(drawn.standard_normal((2, 16, depth // 64)))
    dense = codes.reshape(16, -1, 64) * wide(scales)[:, :, None] + wide(biases)[:, :, None]
    wanted = dense.reshape(16, depth) @ wide(x).astype(np.float64).T

    # Words 0 and 1 of a chunk are of its first group, which quarters 0 and 1 hold; the others are given its halves.
    ordered, totals = [], np.zeros((8, 2, 8), np.uint32)
    for chunk in range(8):
        xs = []
        for word in range(4):
            given = np.where(word // 2 != QUARTER // 2, 2, 0)
            eight = (chunk * 16 + word // 2 * 8 + QUARTER % 2 * 4 + given + word % 2) * 4
            xs += Wavefront([packed(x)[ROW, eight + at] for at in range(4)]).run(blocks.pairs())
        ordered.append(xs)
        for at, total in enumerate(Wavefront(xs).run(blocks_rows.sums())):
            totals[chunk, at // 2, 2 * QUARTER + at % 2] = total
            np.testing.assert_array_equal(total, total[QUARTER])
    left = wide(x).astype(np.float64).reshape(8, 8, 2, 64).sum(3)
    np.testing.assert_allclose(totals.view(np.float32), -128 * left.transpose(1, 2, 0), atol=1e-3)

    sums = [np.zeros(32, np.uint32)] * 4
    for chunk in range(8):
        at = [chunk * 16 + QUARTER * 4 + word for word in range(4)]
        low, high = ([words[ROW + by, one] for one in at] for by in (0, 8))
        starts = [[totals[chunk, group, 2 * QUARTER + column % 2] for column in range(4)] for group in (0, 1)]
        quads = [[packed(scales)[ROW + by, chunk // 4 * 4 + QUARTER]] * 4 for by in (0, 8)]
        operands = [
            *sums,
            *low,
            *high,
            *ordered[chunk],
            *starts[0],
            *quads[0],
            *quads[1],
            *[QUARTER // 2] * 4,
            *starts[1],
        ]
        sums = Wavefront(operands).run(blocks_rows.product(chunk % 4))
    mixed = [packed(biases)[ROW + by, 2 * QUARTER + word] for by in (0, 8) for word in (0, 1)]
    of_row = [totals[2 * QUARTER + at // 2, at % 2, ROW] for at in range(4)]
    sums = Wavefront([*sums, *mixed, *of_row]).run(blocks_rows.biases())
    got = np.zeros((16, 8), np.float32)
    for at in range(4):
        got[ROW + at // 2 * 8, 2 * QUARTER + at % 2] = sums[at].view(np.float32)
    np.testing.assert_allclose(got, wanted, atol=4e-6 * np.abs(dense).sum((1, 2)).max())
