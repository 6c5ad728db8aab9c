"""Matrix products: what is measured under which settings, what the figures say, and that a wrong product is found."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from rocmend.bench.calls import Torch
from rocmend.bench.case import Case, Setting
from rocmend.bench.device import Device, link_gb_s
from rocmend.bench.measure import Effort
from rocmend.bench.records import BenchRun, Measured
from rocmend.bench.run import run_suite
from rocmend.bench.session import Prepared, Subject
from rocmend.bench.stats import summarize
from rocmend.bench.suite import Bound, Selected
from rocmend.bench.suites import gemm, gemm_cases
from rocmend.bench.suites.gemm_cases import PRESETS, Shape, bytes_of, case_of, group_of, preset_cases
from rocmend.bench.suites.gemm_conclude import conclusions
from rocmend.cli.views.bench_gemm import rooflines
from rocmend.core.errors import UsageError
from rocmend.core.records import Fact
from rocmend.core.verdict import Verdict
from rocmend.machine.facts import Machine
from rocmend.report.document import Plot
from rocmend.runner.interpreter import importable

TORCH = Torch(Path(), "python")
STRIX_HALO = Device("hip", "gfx1151", "AMD Radeon Graphics")


def _suite(device: Device | None, **more: Any) -> gemm.Gemm:
    return gemm.Gemm(TORCH, [case_of(Shape(64, 64, 64), "float16")], device, **more)


def _ids(device: Device | None, **more: Any) -> list[str]:
    return [setting.id for setting in _suite(device, **more).settings()]


def test_settings_that_mean_nothing_on_the_device_are_left_out_and_say_why() -> None:
    assert _ids(STRIX_HALO) == ["default", "rocblas", "rocblas-hipblaslt", "hipblaslt"]
    assert _ids(STRIX_HALO, tune=True)[-1] == "tunableop"
    assert _ids(Device("hip", "gfx1030", "RX 6800"), tune=True) == ["default", "tunableop"]
    assert "not built for gfx1030" in _suite(Device("hip", "gfx1030", "RX 6800")).left_out()["hipblaslt"]
    for device in (Device("cuda", "sm_90", "H200"), Device("cpu", "cpu", "EPYC")):
        assert _ids(device, tune=True) == ["default"]
        with pytest.raises(UsageError, match="hipblaslt cannot be measured here"):
            Selected(_suite(device), settings=["hipblaslt"])


def test_each_setting_says_all_variables_so_that_none_is_left_over_from_a_profile() -> None:
    names = {frozenset(setting.env) - {"PYTORCH_TUNABLEOP_TUNING"} for setting in gemm.SETTINGS}
    assert len(names) == 1
    by = {setting.id: {name: value for name, value in setting.env.items() if value} for setting in gemm.SETTINGS}
    assert by == {
        "default": {},
        "rocblas": {"ROCBLAS_USE_HIPBLASLT": "0", "TORCH_BLAS_PREFER_HIPBLASLT": "0"},
        "rocblas-hipblaslt": {"ROCBLAS_USE_HIPBLASLT": "1", "TORCH_BLAS_PREFER_HIPBLASLT": "0"},
        "hipblaslt": {"ROCBLAS_USE_HIPBLASLT": "1", "TORCH_BLAS_PREFER_HIPBLASLT": "1"},
        "tunableop": {"PYTORCH_TUNABLEOP_ENABLED": "1", "PYTORCH_TUNABLEOP_TUNING": "1"},
    }
    int8 = case_of(Shape(64, 64, 64, "nt"), "int8")
    suite = _suite(STRIX_HALO, tune=True)
    assert [setting.id for setting in suite.settings() if not suite.applies(int8, setting)] == ["default", "hipblaslt"]


@pytest.mark.parametrize("preset", PRESETS)
def test_presets_have_each_case_once_and_only_what_torch_has(preset: str) -> None:
    dtypes = tuple(gemm_cases.DTYPES.values())
    cases = preset_cases(preset, dtypes)
    ids = [case.id for case in cases]
    assert len(ids) == len(set(ids)) > len(dtypes)
    for case in cases:
        if case.parameters["dtype"] in {"float8", "int8"}:
            assert (case.parameters["layout"], case.parameters["batch"]) == ("nt", 1)
            assert case.parameters["n"] % 16 == case.parameters["k"] % 16 == 0
    assert max(case.work for case in preset_cases(preset, dtypes, cpu=True)) <= 2e10
    assert {case.unit for case in cases} == {"TFLOPS", "TOPS"}
    on_cpu = case_of(Shape(1000, 1000, 1000), "float32", cpu=True)
    assert (on_cpu.unit, on_cpu.figure(1.0)) == ("GFLOPS", 2.0)


def test_the_standard_preset_has_each_kind_of_product_once_at_least_and_quick_stays_small() -> None:
    assert len(preset_cases("quick", [])) == 8
    for cpu in (False, True):
        cases = preset_cases("standard", [], cpu=cpu)
        assert {group_of(case) for case in cases} >= {"batched", "strided", "square", "few-row (decode)"}
        assert {case.parameters["layout"] for case in cases} == set(gemm_cases.LAYOUTS)
        assert {case.parameters["dtype"] for case in cases} == {*gemm_cases.DTYPES.values()} - {"float64"}
        assert any(min(case.parameters["m"], case.parameters["n"]) <= 16 for case in cases)
    assert len(preset_cases("standard", [])) <= 30
    assert {case.parameters["dtype"] for case in preset_cases("standard", ["float16"])} == {"float16"}


def test_the_work_and_the_bytes_of_a_product() -> None:
    case = case_of(Shape(3, 5, 7, "nt", 2), "bfloat16")
    assert case.work == 2 * 2 * 3 * 5 * 7
    assert bytes_of(case) == 2 * 2 * (3 * 7 + 7 * 5 + 3 * 5)
    assert bytes_of(case_of(Shape(3, 5, 7), "int8")) == 3 * 7 + 7 * 5 + 4 * 3 * 5
    groups = [group_of(case_of(Shape(*shape), "float16")) for shape in ((1, 64, 64), (512, 64, 64), (64, 64, 64))]
    assert groups == ["few-row (decode)", "rectangular (prompt)", "square"]


def _machine(**facts: Any) -> Machine:
    return Machine(
        "m", "", {f"gpu.0.{name}": Fact(f"gpu.0.{name}", value, "test") for name, value in facts.items()}, {}
    )


def test_the_tighter_of_arithmetic_and_memory_is_the_first_bound() -> None:
    machine = _machine(
        gfx_target="gfx1151",
        product="Radeon 8060S",
        peaks_tflops={"fp16": 59.4},
        bandwidth_gb_s=256.0,
        compute_units=40,
    )
    suite, subject = _suite(STRIX_HALO), Subject("gfx1151", "cuda:0", "AMD Radeon Graphics")
    large, small = case_of(Shape(4096, 4096, 4096), "float16"), case_of(Shape(1, 4096, 4096), "float16")
    assert [bound.name for bound in suite.bounds(large, subject, machine)] == [gemm_cases.PEAK, gemm.MEMORY]
    memory, peak = suite.bounds(small, subject, machine)
    assert (memory.name, peak.figure) == (gemm.MEMORY, 59.4)
    assert memory.figure == pytest.approx(0.256, rel=0.01)  # two operations for each weight of two bytes
    h200 = Subject("sm_90", "cuda:0", "H200")
    assert suite.bounds(large, h200, machine) == ()
    suite._reached.square["float16"], suite._reached.bandwidth_gb_s[large.id] = (690.0, 4096), 4200.0
    fastest, memory = suite.bounds(large, h200, machine)
    assert (fastest.name, fastest.figure, memory.name) == (gemm_cases.FASTEST, 690.0, gemm.MEASURED)
    assert next(bound.name for bound in suite.bounds(large, subject, machine)) == gemm_cases.PEAK


def test_a_pcie_link_carries_what_its_coding_leaves() -> None:
    assert link_gb_s("16.0 GT/s", 16) == pytest.approx(31.5, abs=0.02)
    assert link_gb_s("8.0 GT/s", 16) == pytest.approx(15.75, abs=0.01)
    assert link_gb_s("5.0 GT/s", 1) == 0.5
    assert link_gb_s("fast", 16) is None


def _result(case: Case, setting: Setting, seconds: float, spread: float = 1e-4) -> Measured:
    blocks = tuple((seconds * (1 + spread * step),) for step in (-2, 1, 0, 2, -1, 1, -2, 0))
    return Measured(
        case, Verdict.PASS, "", Prepared(Verdict.PASS), blocks, summarize(blocks), "now", 0.0, setting,
        (Bound(60.0, gemm_cases.PEAK),),
    )  # fmt: skip


def _said(*ratios: float, spread: float = 1e-4) -> list[Any]:
    results = []
    for number, ratio in enumerate(ratios):
        case = case_of(Shape(512 + number, 4096, 4096, "nt"), "bfloat16")
        results += [_result(case, gemm.DEFAULT, 1e-3, spread), _result(case, gemm.ROCBLAS, 1e-3 / ratio, spread)]
    return conclusions(results)


def test_the_answer_names_the_setting_to_use_and_how_sure_that_is() -> None:
    use, said, ceiling = _said(1.2, 1.2, 1.2, 0.9)
    assert use.text.startswith("Use rocblas (ROCBLAS_USE_HIPBLASLT=0 TORCH_BLAS_PREFER_HIPBLASLT=0): 1")
    assert use.text.endswith(" % faster for rectangular (prompt) products.")
    assert f"{(1.2**0.75 * 0.9**0.25 - 1) * 100:.0f} % faster" in said.text
    assert "faster on 3 and slower on 1 of 4 products" in said.text
    assert "Unlike the others of their kind: bf16 515x4096x4096 nt (slower)." in said.text
    assert len(said.evidence) == 4
    assert "of the peak" in ceiling.text


def test_the_answer_says_no_more_than_the_intervals() -> None:
    use, said, _ = _said(1.001, 0.999, 1.0)
    assert (use.shown, said.shown) == (False, False)
    assert use.text == "Use default for rectangular (prompt) products: no other setting is shown to be faster."
    assert "rectangular (prompt) no difference above 1 % shown (-" in said.text
    use, said, _ = _said(0.8, 0.81)
    assert use.text == "Use default for rectangular (prompt) products: no other setting is shown to be faster."
    assert "20 % slower" in said.text
    results = []
    for number in range(2):
        few, square = case_of(Shape(1, 512 + number, 64), "float16"), case_of(Shape(*(64 + number,) * 3), "float16")
        results += [_result(few, gemm.DEFAULT, 1e-3), _result(few, gemm.HIPBLASLT, 2e-3)]
        results += [_result(square, gemm.DEFAULT, 2e-3), _result(square, gemm.HIPBLASLT, 1e-3)]
    use, rest, said, _ = conclusions(results)
    assert use.text.endswith("TORCH_BLAS_PREFER_HIPBLASLT=1): 100 % faster for square products.")
    assert rest.text.startswith("Use default for few-row (decode) products")
    assert "few-row (decode) 50 % slower (" in said.text
    assert use.shown
    assert not rest.shown


ONCE = Effort(block_s=0.0, least_blocks=2, most_blocks=2, least_runs=1)
CPU = Device("cpu", "cpu", "CPU")


def _measured(
    cases: list[Case], more: dict[str, str | None] | None = None, setting: Setting = gemm.DEFAULT
) -> list[Measured]:
    """Measure cases for real, in a process whose environment has more."""
    with importable() as home:
        suite = gemm.Gemm(Torch(home, sys.executable, "cpu", warm_most_s=0.01), cases, CPU)
        if more:
            setting = msgspec.structs.replace(setting, env={**setting.env, **more})
            suite.settings = lambda: [setting]  # type: ignore[method-assign]
        return list(run_suite(suite, effort=ONCE).results)


@pytest.mark.cpu
@pytest.mark.slow
def test_every_layout_and_dtype_of_a_cpu_is_right() -> None:
    cases = [
        case_of(Shape(33, 48, 64, layout, batch, pad), dtype)
        for layout in gemm_cases.LAYOUTS
        for batch, pad in ((1, 0), (3, 0), (1, 8))
        for dtype in ("float32", "bfloat16")
    ]
    cases += [case_of(Shape(33, 48, 64), dtype) for dtype in ("float64", "float16", "int8")]
    cases += [case_of(Shape(33, 48, 64, "nt"), "float8"), case_of(Shape(700, 700, 700), "float32")]
    cases += [case_of(Shape(16, 16, 16), "tf32"), case_of(Shape(33, 48, 64), "float8")]
    results = _measured(cases)
    found = {result.case.id: (result.verdict, result.reason) for result in results}
    assert {verdict for verdict, _ in list(found.values())[:-2]} == {Verdict.PASS}, found
    assert [verdict for verdict, _ in list(found.values())[-2:]] == [Verdict.UNSUPPORTED] * 2
    compared = {result.prepared.detail.get("compared") for result in results}
    assert compared == {"all elements", "8 rows, 8 columns, checksums of all elements", None}


@pytest.mark.cpu
def test_float32_is_not_taken_for_tf32() -> None:
    torch = pytest.importorskip("torch")
    from rocmend.bench.workloads.gemm import _PRECISIONS, Product, make
    from rocmend.runner.torch_device import UnsupportedError

    parameters = {"m": 64, "n": 64, "k": 512, "batch": 1, "dtype": "float32", "layout": "nn"}
    made = make(parameters, torch.device("cpu"))

    def rounded(left: Any, right: Any, out: Any) -> None:
        short = [(part.view(torch.int32) & ~0x1FFF).view(torch.float32) for part in (left, right)]
        torch.matmul(*short, out=out)

    tf32 = Product(made._sets, _PRECISIONS["tf32"], made._multiply, made._device, tune=False)
    with pytest.raises(UnsupportedError, match="in float32 here"):
        tf32.wrong()
    tf32 = Product(made._sets, _PRECISIONS["tf32"], rounded, made._device, tune=False)
    assert tf32.wrong() == ""
    single = Product(made._sets, _PRECISIONS["float32"], rounded, made._device, tune=False)
    assert "are wrong" in single.wrong()


@pytest.mark.cpu
def test_a_product_that_a_library_has_no_kernel_for_is_unsupported() -> None:
    torch = pytest.importorskip("torch")
    from rocmend.bench.workloads.gemm import _PRECISIONS, Product, make
    from rocmend.runner.torch_device import UnsupportedError

    def refuse(*_: Any) -> None:
        raise RuntimeError("CUDA error: HIPBLAS_STATUS_NOT_SUPPORTED when calling `hipblasLtMatmul`\nand more")

    parameters = {"m": 4, "n": 4, "k": 4, "batch": 1, "dtype": "int8", "layout": "nn"}
    made = make(parameters, torch.device("cpu"))
    product = Product(made._sets, _PRECISIONS["int8"], refuse, made._device, tune=False)
    with pytest.raises(UnsupportedError, match=r"hipblasLtMatmul`$"):
        product.run()


KEEPS = """
import json, os, pathlib
names = ("ROCBLAS_USE_HIPBLASLT", "TORCH_BLAS_PREFER_HIPBLASLT", "PYTORCH_TUNABLEOP_ENABLED")
found = {name: os.environ[name] for name in names if name in os.environ}
pathlib.Path(__file__).with_name(os.environ["WHICH"]).write_text(json.dumps(found))
"""


@pytest.mark.cpu
@pytest.mark.slow
def test_a_process_has_the_variables_of_its_setting_and_no_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sitecustomize.py").write_text(KEEPS)
    for name in ("ROCBLAS_USE_HIPBLASLT", "TORCH_BLAS_PREFER_HIPBLASLT", "PYTORCH_TUNABLEOP_ENABLED"):
        monkeypatch.setenv(name, "7")
    case = case_of(Shape(4, 4, 4), "float32")
    for setting in (gemm.DEFAULT, gemm.HIPBLASLT):
        (result,) = _measured([case], {"PYTHONPATH": str(tmp_path), "WHICH": setting.id}, setting)
        assert result.verdict is Verdict.PASS, result.reason
        wanted = {name: value for name, value in setting.env.items() if value}
        assert json.loads((tmp_path / setting.id).read_text()) == wanted


FAULTS = (
    "result[result.shape[0] // 2, 3] *= -1",
    "result[-1] = float('nan')",
    "result[1:9, 32:48] = 0",
    "real(left[:, :-8], right[:-8], out=result)",
    "result.as_strided((1,), (1,), result.storage_offset() + result.numel())[0] = 1",
)
"""An element, a row that is not written, a block, a sum that lacks some of k, something written beside the result."""
WRONG = """
import torch
real = torch.matmul
def wrong(left, right, *, out):
    result = real(left, right, out=out)
    fault = left.shape[0] % 10
    {branches}
    return result
torch.matmul = wrong
"""


@pytest.mark.cpu
def test_a_wrong_product_gets_no_figure_and_a_right_one_after_it_does(tmp_path: Path) -> None:
    branches = "\n    ".join(f"if fault == {number}: {text}" for number, text in enumerate(FAULTS))
    (tmp_path / "sitecustomize.py").write_text(WRONG.format(branches=branches))
    rows = [size + number for size in (40, 700) for number in range(len(FAULTS) + 1)]
    cases = [case_of(Shape(m, 704, 704 if m > 100 else 64, "nt"), "bfloat16") for m in rows]
    results = _measured(cases, {"PYTHONPATH": str(tmp_path)})
    for number in (len(FAULTS), 2 * len(FAULTS) + 1):
        right = results.pop(number if number == len(FAULTS) else number - 1)
        assert (right.verdict, right.figure is None) == (Verdict.PASS, False), right.reason
    assert [(result.verdict, result.figure, result.blocks) for result in results] == [
        (Verdict.WRONG_OUTPUT, None, ())
    ] * len(results), [result.reason for result in results]
    assert "beside" in results[4].reason


def test_a_ceiling_says_of_how_many_figures_it_is() -> None:
    cases = [case_of(Shape(512 + number, 4096, 4096, "nt"), "bfloat16") for number in range(2)]
    good, busy = (_result(case, gemm.DEFAULT, 1e-3) for case in cases)
    busy = msgspec.structs.replace(busy, waited=(0.5,) * 8)
    assert "; of 2 figures 1 can be relied on)" in conclusions([good, busy])[-1].text
    assert "relied on" not in conclusions([good, good])[-1].text


def test_a_roof_is_a_bound_and_not_the_highest_figure() -> None:
    cases = [case_of(Shape(512 + number, 4096, 4096, "nt"), "bfloat16") for number in range(3)]
    with_peak = [_result(case, gemm.DEFAULT, 1e-3) for case in cases]
    without = [msgspec.structs.replace(result, bounds=()) for result in with_peak]
    kinds = []
    for results in (with_peak, without):
        (plot,) = rooflines(BenchRun("", "gemm", "", (gemm.DEFAULT,), tuple(results)))
        assert isinstance(plot, Plot)
        kinds.append([series.name for series in plot.series])
    assert kinds == [[gemm_cases.PEAK, "default"], ["default"]]
