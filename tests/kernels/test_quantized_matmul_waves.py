"""Products with few columns still give every SIMD of a large GPU a wavefront."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.core import gfx
from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.compiled.record import record
from rocmend.kernels.ops.matmul.quantized_matmul.cases import cases

pytestmark = pytest.mark.cpu


@pytest.mark.parametrize("name", ["gfx942", "gfx1100", "gfx1151"])
def test_a_row_of_three_bits_has_a_wavefront_for_each_simd(name: str) -> None:
    target = targets.by_name(name)
    case = next(one for one in cases() if one.name == "bfloat16-b3g64-1x4096-1024")
    launch, *_ = record(registry.get("quantized_matmul"), case, target)
    programs = launch.grid[0] * launch.grid[1] * launch.grid[2]
    assert programs * launch.config["num_warps"] >= target.units * gfx.lookup(name).simd_per_cu


def test_the_units_planned_for_are_those_of_the_device_else_of_the_largest_product() -> None:
    assert targets.by_name("gfx942").units == 304
    assert targets.by_name("gfx90a").units == 110  # of one of an MI250X's two GPUs
    assert targets.by_name("gfx942", compute_units=228).units == 228
    assert targets.by_name("gfx1250").units == targets.UNKNOWN_UNITS
