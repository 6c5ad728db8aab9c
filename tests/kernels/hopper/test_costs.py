"""Which of two ways a product of many rows goes on Hopper: the estimates against what was measured on an H200."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import backends, caches, select
from rocmend.kernels.backends.hopper.quantized_matmul import costs, gemm_w4a16_wgmma
from rocmend.kernels.ops.matmul.quantized_matmul import OP, Problem
from rocmend.kernels.target import by_name
from rocmend.kernels.tuning import config_for

pytestmark = pytest.mark.cpu

H200 = by_name("sm90", compute_units=132)
# Bits of a code (groups of 64), rows and columns of the weights, rows of x, microseconds unpacked on the way and apart:
# H200, Triton 3.6, torch 2.11, bfloat16, 2026-11-22.
MEASURED = (
    (4, 1024, 4096, 17, 6.1, 10.3), (4, 1024, 4096, 32, 6.3, 10.4), (4, 1024, 4096, 64, 10.4, 10.6),
    (4, 1024, 4096, 128, 13.4, 11.3), (4, 1024, 4096, 256, 18.0, 13.2), (4, 1024, 4096, 512, 20.1, 15.5),
    (4, 2048, 2048, 17, 5.9, 9.8), (4, 2048, 2048, 24, 6.0, 10.0), (4, 2048, 2048, 32, 6.2, 9.8),
    (4, 2048, 2048, 48, 9.6, 10.1), (4, 2048, 2048, 64, 9.8, 10.1), (4, 2048, 2048, 96, 12.6, 10.3),
    (4, 2048, 2048, 128, 13.1, 10.5), (4, 2048, 2048, 128, 13.2, 10.6), (4, 2048, 2048, 160, 13.2, 10.4),
    (4, 2048, 2048, 256, 15.8, 10.9), (4, 2048, 2048, 512, 18.6, 13.0), (4, 2048, 2048, 1024, 27.2, 18.0),
    (4, 2048, 2048, 2048, 31.4, 28.6), (4, 2048, 8192, 17, 9.9, 21.4), (4, 2048, 8192, 32, 10.7, 21.8),
    (4, 2048, 8192, 64, 13.7, 22.2), (4, 2048, 8192, 128, 17.6, 27.6), (4, 2048, 8192, 256, 25.9, 33.5),
    (4, 2048, 8192, 512, 39.0, 40.0), (4, 4096, 1024, 17, 4.1, 8.6), (4, 4096, 1024, 32, 4.4, 8.6),
    (4, 4096, 1024, 64, 7.3, 9.0), (4, 4096, 1024, 128, 9.4, 9.4), (4, 4096, 1024, 256, 15.6, 9.6),
    (4, 4096, 1024, 512, 20.1, 13.2), (4, 4096, 4096, 17, 9.8, 21.4), (4, 4096, 4096, 32, 10.1, 21.1),
    (4, 4096, 4096, 48, 12.4, 21.9), (4, 4096, 4096, 64, 12.9, 20.9), (4, 4096, 4096, 96, 15.6, 25.3),
    (4, 4096, 4096, 128, 16.4, 25.2), (4, 4096, 4096, 160, 21.9, 30.9), (4, 4096, 4096, 192, 22.6, 29.1),
    (4, 4096, 4096, 256, 24.6, 26.8), (4, 4096, 4096, 384, 36.5, 35.2), (4, 4096, 4096, 512, 39.1, 36.1),
    (4, 4096, 4096, 768, 51.9, 46.7), (4, 4096, 4096, 1024, 54.3, 56.2), (4, 4096, 4096, 1536, 102.4, 78.1),
    (4, 4096, 4096, 2048, 107.8, 97.6), (4, 4096, 4096, 3072, 164.2, 141.9), (4, 4096, 4096, 4096, 214.6, 188.1),
    (4, 4096, 14336, 256, 58.4, 87.5), (4, 4096, 14336, 512, 104.5, 113.8), (4, 4096, 14336, 1024, 183.6, 183.4),
    (4, 4096, 14336, 2048, 360.7, 329.0), (4, 4096, 14336, 3072, 550.0, 470.9), (4, 8192, 2048, 17, 9.6, 19.9),
    (4, 8192, 2048, 32, 9.8, 19.5), (4, 8192, 2048, 64, 12.2, 20.0), (4, 8192, 2048, 128, 16.9, 20.8),
    (4, 8192, 2048, 320, 27.8, 28.9), (4, 8192, 2048, 640, 52.1, 43.3), (4, 14336, 4096, 17, 19.4, 72.9),
    (4, 14336, 4096, 192, 51.0, 78.3), (4, 14336, 4096, 256, 51.7, 84.3), (4, 14336, 4096, 384, 98.0, 99.0),
    (4, 14336, 4096, 512, 101.5, 126.3), (4, 14336, 4096, 768, 150.8, 156.6), (4, 14336, 4096, 1024, 201.4, 187.6),
    (4, 14336, 4096, 1536, 301.5, 277.0), (4, 14336, 4096, 2048, 352.4, 337.8), (4, 14336, 4096, 3072, 558.2, 472.9),
    (4, 14336, 4096, 4096, 719.8, 636.0), (4, 28672, 8192, 256, 193.6, 324.8), (4, 28672, 8192, 512, 383.0, 448.6),
    (4, 28672, 8192, 1024, 673.6, 744.2), (4, 28672, 8192, 2048, 1353.2, 1329.7),
    (4, 28672, 8192, 3072, 2055.2, 1925.2), (4, 28672, 8192, 4096, 2758.8, 2503.2), (8, 4096, 4096, 256, 28.4, 29.7),
    (8, 4096, 4096, 512, 44.8, 38.8), (8, 4096, 4096, 1024, 64.8, 58.8), (8, 4096, 4096, 2048, 127.5, 99.0),
    (8, 14336, 4096, 256, 64.7, 91.2), (8, 14336, 4096, 512, 121.3, 132.6), (8, 14336, 4096, 1024, 236.8, 193.9),
    (8, 14336, 4096, 2048, 413.9, 344.0), (8, 14336, 4096, 3072, 656.7, 480.8),
)  # fmt: skip
MOST_LOST = 1.04
"""Of what the faster way takes."""


def _problem(bits: int, columns: int, depth: int, rows: int) -> Problem:
    return Problem("bfloat16", "affine", bits, 64, True, 1, rows, columns, depth)


@pytest.mark.parametrize(("bits", "columns", "depth", "rows", "unpacked", "apart"), MEASURED)
def test_the_way_that_is_chosen_takes_hardly_longer_than_the_other(  # noqa: PLR0917  one measurement
    bits: int, columns: int, depth: int, rows: int, unpacked: float, apart: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "MEASURED", True)
    caches.forget()
    chosen = select.select(OP, _problem(bits, columns, depth, rows), H200).implementation
    caches.forget()
    assert (apart if chosen == "dequantize+matmul" else unpacked) <= MOST_LOST * min(unpacked, apart)


def test_estimates_are_what_was_measured_where_products_are_large() -> None:
    for bits, columns, depth, rows, unpacked, apart in MEASURED:
        if min(unpacked, apart) < 50:
            continue
        problem = _problem(bits, columns, depth, rows)
        config = config_for("quantized_matmul", "gemm_w4a16_wgmma", gemm_w4a16_wgmma.record_class(problem), H200)
        splits = gemm_w4a16_wgmma.splits_of(problem, config, 132)
        tiles = -(-rows // config["BLOCK_M"]) * (columns // config["ROWS"])
        estimate = costs.unpacked_us(problem, config["BLOCK_M"], tiles, splits, 132, config["ROWS"] / 128)
        assert estimate == pytest.approx(unpacked, rel=0.08)
        assert costs.apart_us(problem) == pytest.approx(apart, rel=0.08)


def test_a_wave_that_is_not_full_takes_as_long_as_a_full_one() -> None:
    problem = _problem(4, 14336, 4096, 512)
    full, more = (costs.unpacked_us(problem, 256, tiles, 1, 132, 1.0) for tiles in (132, 133))
    assert more > 1.8 * full
    assert costs.unpacked_us(problem, 256, 1, 1, 132, 1.0) == full


def test_parts_of_k_cost_what_their_sums_take() -> None:
    problem = _problem(4, 4096, 4096, 256)
    whole, halves = (costs.unpacked_us(problem, 256, 32, splits, 132, 1.0) for splits in (1, 2))
    sums = 2 * 8 * 256 * 4096 / costs.BETWEEN_GB_S / 1e3
    product = 4096 * costs.UNPACKING_NS[4][256] / 1e3
    assert whole - halves == pytest.approx(product / 2 - sums - costs.ADDING_US)
