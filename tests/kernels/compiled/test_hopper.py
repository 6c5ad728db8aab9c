"""Products whose operands Hopper reads from registers: the registers are not used again before the product is done."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(Toolchain(triton_version()), tmp_path_factory.mktemp("worker"))
    yield one
    one.close()


def _assembly(worker: Worker, op: str, case: str, kernel: str) -> str:
    """Return the PTX of a case's kernel for Hopper."""
    recorded = worker.ask({"do": "record", "op": op, "targets": ["sm90"]}, 120)["ok"]
    specs: list[dict[str, Any]] = recorded["specs"]
    spec = next(one for one in specs if one["case"] == case and one["kernel"].endswith(kernel))
    assembly: str = worker.ask({"do": "compile", "spec": spec, "whole": True}, 120)["ok"]["assembly"]
    return assembly


@pytest.mark.parametrize(
    ("op", "case", "kernel"),
    [
        ("quantized_matmul", "bfloat16-b8g64-48x4096-4096", "tiles_kernel"),
        ("gather_qmm", "bfloat16-long", "tiles_kernel"),
        ("gather_qmm", "float16-long-mxfp4", "grouped_kernel"),
    ],
)
def test_a_product_of_registers_is_waited_for(worker: Worker, op: str, case: str, kernel: str) -> None:
    assembly = _assembly(worker, op, case, kernel)
    # The sums, then registers: in braces too, where the first operand is no address.
    assert re.search(r"wgmma\.mma_async\S+ \{[^}]*\}, \{", assembly)
    assert set(re.findall(r"wgmma\.wait_group\.sync\.aligned\s+(\d+)", assembly)) == {"0"}
