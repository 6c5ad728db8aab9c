import math

import pytest

from rocmend.core import gfx
from rocmend.core.errors import UsageError

ROCM_MI300 = "https://rocm.docs.amd.com/en/docs-6.2.2/conceptual/gpu-arch/mi300.html"
ROCM_MI250 = "https://rocm.docs.amd.com/en/docs-7.14.0/reference/gpu-arch/mi250.html"
AMD_MI100 = "https://www.amd.com/en/products/accelerators/instinct/mi100.html"
AMD_MI250X = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html"
AMD_MI355X = "https://www.amd.com/en/products/accelerators/instinct/mi350/mi355x.html"
AMD_GRAPHICS = "https://www.amd.com/en/products/specifications/graphics.html"
AMD_395 = "https://www.amd.com/en/products/processors/laptop/ryzen/ai-300-series/amd-ryzen-ai-max-plus-395.html"

PUBLISHED = [
    ("Instinct MI300X", "fp64", 163.4, ROCM_MI300),
    ("Instinct MI300X", "fp32", 163.4, ROCM_MI300),
    ("Instinct MI300X", "xf32", 653.7, ROCM_MI300),
    ("Instinct MI300X", "fp16", 1307.4, ROCM_MI300),
    ("Instinct MI300X", "bf16", 1307.4, ROCM_MI300),
    ("Instinct MI300X", "fp8", 2614.9, ROCM_MI300),
    ("Instinct MI300X", "int8", 2614.9, ROCM_MI300),
    ("Instinct MI250", "fp64", 90.5, ROCM_MI250),
    ("Instinct MI250", "fp32", 90.5, ROCM_MI250),
    ("Instinct MI250", "fp16", 362.1, ROCM_MI250),
    ("Instinct MI250", "bf16", 362.1, ROCM_MI250),
    ("Instinct MI250", "int8", 362.1, ROCM_MI250),
    ("Instinct MI250X", "fp16", 383.0, AMD_MI250X),
    ("Instinct MI100", "fp16", 184.6, AMD_MI100),
    ("Instinct MI355X", "fp16", 2516.6, AMD_MI355X),
    ("Radeon RX 9070 XT", "fp16", 195.0, AMD_GRAPHICS),
    ("Radeon RX 7900 XTX", "fp16", 122.8, AMD_GRAPHICS),
    ("Radeon RX 6900 XT", "fp16", 46.08, AMD_GRAPHICS),
    ("Radeon RX 5700 XT", "fp16", 19.5, AMD_GRAPHICS),
    ("Radeon 8060S", "fp16", 59.4, AMD_395),
]


def named(name: str) -> gfx.Product:
    return next(product for product in gfx.products() if product.name == name)


def peak(product: gfx.Product, dtype: str) -> float:
    assert product.max_clock_mhz is not None
    value = gfx.peak_tflops(product.gfx, dtype, product.compute_units, product.max_clock_mhz)
    assert value is not None
    return value


@pytest.mark.parametrize(("name", "dtype", "tflops", "source"), PUBLISHED)
def test_published_peaks_are_reproduced(name: str, dtype: str, tflops: float, source: str) -> None:
    assert peak(named(name), dtype) == pytest.approx(tflops, rel=0.003), source


def test_every_peak_in_the_product_table_follows_from_units_and_clock() -> None:
    checked = 0
    for product in gfx.products():
        for dtype, tflops in product.peaks_tflops.items():
            decimals = len(str(tflops).partition(".")[2])
            rounding = 0.5 * 10**-decimals  # AMD prints three or four digits
            assert abs(peak(product, dtype) - tflops) <= max(0.003 * tflops, rounding), (product.name, dtype)
            checked += 1
    assert checked > 90


def test_peak_of_a_type_the_target_lacks_is_none() -> None:
    assert gfx.peak_tflops("gfx1151", "fp8", 40, 2900) is None
    assert gfx.peak_tflops("gfx1250", "fp16", 256, 2000) is None
    assert gfx.peak_tflops(gfx.lookup("gfx1030"), "bf16", 80, 2250) == pytest.approx(23.04)


def test_peak_refuses_nonsense() -> None:
    with pytest.raises(UsageError):
        gfx.peak_tflops("gfx1151", "fp16", -1, 2900)
    with pytest.raises(UsageError):
        gfx.peak_tflops("gfx1151", "fp16", 1, math.nan)
    with pytest.raises(UsageError):
        gfx.peak_tflops("gfx9999", "fp16", 1, 1)
