"""The machine code of products with quantized weights."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import target as targets
from rocmend.kernels.compiled.checks import judge
from rocmend.kernels.compiled.measure import Measured
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

Specs = list[dict[str, Any]]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(Toolchain(triton_version()), tmp_path_factory.mktemp("worker"))
    yield one
    one.close()


@pytest.fixture(scope="module")
def specs(worker: Worker) -> Specs:
    answer = worker.ask({"do": "record", "op": "quantized_matmul", "targets": ["gfx1100"]}, 300)
    found: Specs = answer["ok"]["specs"]
    return found


def _spec(specs: Specs, case: str, kernel: str) -> dict[str, Any]:
    return next(one for one in specs if one["case"] == case and one["kernel"].endswith(f":{kernel}"))


def _loads(worker: Worker, spec: dict[str, Any]) -> Counter[str]:
    """Return the widths of a kernel's loads from global memory, with their number."""
    assembly = worker.ask({"do": "compile", "spec": spec, "whole": True}, 120)["ok"]["assembly"]
    return Counter(re.findall(r"^\s+(?:buffer|global)_load_(\w+)", assembly, re.MULTILINE))


@pytest.mark.parametrize("case", ["bfloat16-b4g128-32x2048-2048", "float32-b4g128-16x2048-2048"])
def test_groups_wider_than_a_tile_do_not_spill(worker: Worker, specs: Specs, case: str) -> None:
    spec = _spec(specs, case, "tiles_kernel")
    found = msgspec.convert(worker.ask({"do": "compile", "spec": spec}, 120)["ok"], Measured)
    assert judge(found, targets.by_name("gfx1100")) == ()


def test_a_row_of_straddling_codes_is_loaded_in_whole_words(worker: Worker, specs: Specs) -> None:
    loads = _loads(worker, _spec(specs, "bfloat16-b3g64-1x4096-1024", "rows_kernel"))
    # Of four rows of weights: 32 codes are 12 bytes, and x 64; two bytes at a time only scales and biases.
    assert loads == {"b96": 4, "b128": 4, "u16": 8}


@pytest.mark.parametrize(
    ("case", "kernel"),
    [("bfloat16-b3g64-8x4096-1024", "tiles_kernel"), ("bfloat16-b3g64-plain-16x2048-4096", "columns_kernel")],
)
def test_tiles_of_straddling_codes_take_two_words_for_eight(
    worker: Worker, specs: Specs, case: str, kernel: str
) -> None:
    spec = _spec(specs, case, kernel)
    loads = _loads(worker, spec)
    # Each stage loads at most a scale and a bias for each eight codes of a lane.
    lanes = 32 * spec["config"]["num_warps"]
    octets = spec["config"]["BLOCK_N"] * spec["config"]["BLOCK_K"] // (8 * lanes)
    assert 0 < loads["u16"] <= 2 * octets * 2 * spec["config"]["STAGES"]
    assert loads["b32"] <= loads["u16"]


def test_what_is_compiled_has_the_options_of_what_runs(worker: Worker) -> None:
    for op, fused in (("dequantize", False), ("rope", True)):
        recorded = worker.ask({"do": "record", "op": op, "targets": ["gfx1100", "sm90"]}, 120)["ok"]["specs"]
        assert {spec["options"]["enable_fp_fusion"] for spec in recorded} == {fused}
        assert {spec["config"].get("enable_fp_fusion", True) for spec in recorded} == {fused}
