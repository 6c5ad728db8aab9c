"""Kernels whose wavefronts walk over rows of weights, as a whole: the PTX that a GPU gets, executed on the CPU."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton.experimental.gluon")

from tests.kernels.ptx.launched import called

from rocmend.kernels import allocate, backends, gather_qmm, gather_qmm_swiglu, quantized_matmul
from rocmend.kernels.backends.hopper.gather_qmm import moe_gemv_persistent
from rocmend.kernels.common.formats import format_of
from rocmend.kernels.compiled.fetch import fetch
from rocmend.kernels.compiled.pool import Worker
from rocmend.kernels.ops.matmul.quantized_matmul import reference
from rocmend.kernels.ops.moe.gather_qmm import reference as gathered
from rocmend.kernels.ops.moe.gather_qmm.cases import matrices
from rocmend.kernels.select import prefer
from rocmend.kernels.suite import Maker
from rocmend.kernels.target import by_name

# They are written for Triton 3.6, which is fetched.
pytestmark = [pytest.mark.cpu, pytest.mark.slow, pytest.mark.network]
FORM = format_of("quantized_matmul", "affine", 4, 64)
OPTIONS: dict[str, Any] = {"group_size": FORM.group_size, "bits": FORM.bits, "mode": FORM.mode}


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    one = Worker(fetch("3.6.0"), Path(tmp_path_factory.mktemp("worker")))
    yield one
    one.close()


@pytest.fixture(autouse=True)
def on_hopper(monkeypatch: pytest.MonkeyPatch) -> None:
    """Take the kernels with the Triton at hand."""
    monkeypatch.setattr(backends, "MEASURED", True)


def _wide(*tensors: Any) -> list[Any]:
    return [one.double() if one.is_floating_point() else one for one in tensors]


def _check(out: Any, wanted: Any) -> None:
    torch.testing.assert_close(out.double(), wanted, rtol=2.0**-8, atol=4e-6 * float(wanted.abs().max()))


# Each shape, and each size of numbers with one row and with several: sizes meet no other code in another shape.
@pytest.mark.parametrize(
    ("rows", "columns", "depth", "size"),
    [(1, 256, 1024, 2.0**100), (1, 256, 1024, 2.0**-120), (1, 128, 4096, 1.0), (8, 272, 2048, 1.0),
     (3, 64, 4096, 2.0**100), (3, 64, 4096, 2.0**-120)],
)  # fmt: skip
def test_a_few_rows_of_x(worker: Worker, rows: int, columns: int, depth: int, size: float) -> None:
    m = Maker(torch.device("cpu"), rows)
    x, weights = m.normal(rows, depth, dtype="bfloat16") * size, matrices(m, FORM, "bfloat16", (columns, depth))
    with allocate.poisoned(), prefer("skinny_gemm_persistent"):
        out, kernels = called(worker, by_name("sm90", compute_units=2), quantized_matmul, x, *weights, **OPTIONS)
    assert "skinny_gemm_persistent_kernel" in kernels
    _check(out, reference.quantized_matmul(*_wide(x, *weights), **OPTIONS))


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("depth", [768, 2048])
def test_a_few_rows_of_some_experts(worker: Worker, depth: int, gated: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moe_gemv_persistent, "SPARED", 0)
    m = Maker(torch.device("cpu"), 5)
    x, chosen = m.normal(5, 1, 1, depth, dtype="bfloat16"), m.integers(0, 3, 5, 2)
    weights = [matrices(m, FORM, "bfloat16", (3, 32, depth)) for _ in range(2)]
    named = OPTIONS | {"rhs_indices": chosen}
    function, truth = (gather_qmm_swiglu, gathered.gather_qmm_swiglu) if gated else (gather_qmm, gathered.gather_qmm)
    with allocate.poisoned():
        target = by_name("sm90", compute_units=4)
        out, kernels = called(worker, target, function, x, *(weights if gated else weights[0]), **named)
    assert kernels == ["moe_gemv_persistent_kernel"]
    wide = [tuple(_wide(*part)) for part in weights]
    _check(out, truth(x.double(), *(wide if gated else wide[0]), **named))
