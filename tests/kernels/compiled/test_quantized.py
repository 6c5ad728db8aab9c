"""The machine code of products with quantized weights."""

from __future__ import annotations

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


def _measured(worker: Worker, specs: Specs, case: str, kernel: str) -> Measured:
    spec = next(one for one in specs if one["case"] == case and one["kernel"].endswith(f":{kernel}"))
    return msgspec.convert(worker.ask({"do": "compile", "spec": spec}, 120)["ok"], Measured)


@pytest.mark.parametrize("case", ["bfloat16-b4g128-32x2048-2048", "float32-b4g128-16x2048-2048"])
def test_groups_wider_than_a_tile_do_not_spill(worker: Worker, specs: Specs, case: str) -> None:
    found = _measured(worker, specs, case, "tiles_kernel")
    assert judge(found, targets.by_name("gfx1100")) == ()


def test_what_is_compiled_has_the_options_of_what_runs(worker: Worker) -> None:
    for op, fused in (("dequantize", False), ("rope", True)):
        recorded = worker.ask({"do": "record", "op": op, "targets": ["gfx1100", "sm90"]}, 120)["ok"]["specs"]
        assert {spec["options"]["enable_fp_fusion"] for spec in recorded} == {fused}
        assert {spec["config"].get("enable_fp_fusion", True) for spec in recorded} == {fused}
