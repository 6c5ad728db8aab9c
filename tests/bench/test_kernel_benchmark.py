"""Our kernels beside torch's: both are compared with the reference, and what is wrong is found."""

from __future__ import annotations

import os
from collections.abc import Iterator

os.environ.setdefault("TRITON_INTERPRET", "1")

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")
pytest.importorskip("numpy")

from rocmend.bench.case import Case, Setting
from rocmend.bench.suites.kernels import LLAMA, SETTINGS, TINY, operation_cases
from rocmend.bench.workloads import kernels as workload
from rocmend.kernels import select
from rocmend.runner.torch_device import UnsupportedError

pytestmark = [pytest.mark.cpu, pytest.mark.filterwarnings("ignore")]
CPU = torch.device("cpu")
CASES = operation_cases(["float32"], TINY)


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
@pytest.mark.parametrize("setting", SETTINGS[:2], ids=lambda setting: setting.id)
def test_each_case_agrees_with_the_reference(case: Case, setting: Setting) -> None:
    run = workload.make({**case.parameters, **setting.options}, CPU)
    with select.prefer("triton"):
        run.run()
        assert run.wrong() == ""
    assert run.detail()["error_of_allowed"] <= 1


def test_a_wrong_result_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, wrong in (("rms_norm", lambda x, *_: x), ("swiglu", lambda _, up: up)):
        monkeypatch.setitem(workload.OPERATIONS, name, workload.OPERATIONS[name]._replace(torch=wrong))
        case = next(case for case in CASES if case.parameters["function"] == name)
        run = workload.make({**case.parameters, "implementation": "torch"}, CPU)
        run.run()
        assert "expected" in run.wrong()


def test_what_no_kernel_computes_is_no_figure_of_ours() -> None:
    run = workload.make({**CASES[0].parameters, "implementation": "rocmend"}, CPU)
    with select.prefer("vendor"):
        run.run()
        with pytest.raises(UnsupportedError, match="no kernel of rocmend's"):
            run.wrong()


def test_work_is_what_must_travel_or_be_computed() -> None:
    work = {case.id: (case.work, case.unit) for case in operation_cases(["bfloat16"], LLAMA)}
    assert work["kernels/rms_norm/bfloat16/2048x4096"] == (2 * 2048 * 4096 * 2, "GB/s")
    assert work["kernels/quantized_matmul/bfloat16/1x14336x4096"] == (2 * 14336 * 4096, "TFLOPS")
    assert work["kernels/scaled_dot_product_attention/bfloat16/32x8x128x1x8192"] == (2 * 8 * 8192 * 128 * 2, "GB/s")
