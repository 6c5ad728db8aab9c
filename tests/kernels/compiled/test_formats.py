"""Whatever format of weights and tuning record meet is among the compiled cases."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import msgspec
import pytest

pytest.importorskip("torch")
pytest.importorskip("triton")

from rocmend.kernels import registry
from rocmend.kernels import target as targets
from rocmend.kernels.common.formats import every_format
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.compiled.run import _chosen
from rocmend.kernels.compiled.spec import Spec
from rocmend.kernels.compiled.toolchain import Toolchain
from rocmend.kernels.ops.matmul.quantized_matmul import NAME, OP, Problem
from rocmend.kernels.select import consider
from rocmend.kernels.tuning.lookup import find
from rocmend.kernels.tuning.record import triton_version

pytestmark = [pytest.mark.cpu, pytest.mark.slow]

ROWS = (1, 2, 3, 4, 5, 8, 9, 16, 17, 32, 33, 64, 65, 256, 257, 4096)


def test_every_op_of_quantized_weights_has_its_formats_compiled() -> None:
    fields = {op.name: set(op.problem._fields) for op in registry.ops()}  # type: ignore[attr-defined]
    quantized = {name for name, names in fields.items() if "group_size" in names}
    assert quantized >= {"quantized_matmul", "gather_qmm", "quantized_attention"}
    assert {name for name in quantized if not registry.get(name).formats} == set()


@pytest.mark.parametrize("name", ["gfx1100", "gfx906"])
def test_the_table_has_whatever_a_product_can_meet(name: str, tmp_path: Path) -> None:
    target = targets.by_name(name)
    meets: set[tuple[str, str, int]] = set()
    for form, dtype, rows, transpose in itertools.product(
        every_format(), ("float32", "float16", "bfloat16"), ROWS, (True, False)
    ):
        problem = Problem(dtype, *form, transpose, 1, rows, 1024, 2048)
        taken = next(one.implementation for one in consider(OP, problem, target, "triton", here=False) if one.taken)
        owner, kernel, kind = next(taken.records_of(NAME, problem))
        config = find(owner, kernel, kind, target)
        meets.add(
            (taken.name, _settings(config.items()), form.group_size)
        )  # records with the same settings are the same code
    worker = Worker(Toolchain(triton_version()), tmp_path)
    answer = worker.ask({"do": "record", "op": NAME, "targets": [name]}, 300)
    worker.close()
    compiled = _chosen(msgspec.convert(answer["ok"]["specs"], list[Spec]), "table")
    shown: set[tuple[str, str, int]] = set()
    for spec in compiled:
        named = "/" in spec.record  # the host code of some kernels derives their settings from the record
        kernel = spec.record.split("/")[1] if named else spec.kernel_name.removesuffix("_kernel")
        shown.add((kernel, _settings(spec.config) if named else "", spec.constant("GROUP")))
    assert {one for one in meets if (one[0], "", one[2]) not in shown} <= shown


def _settings(config: dict[str, Any]) -> str:
    return str(sorted(config.items()))
