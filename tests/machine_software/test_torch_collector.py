"""What is known of an installed PyTorch without importing it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from rocmend.machine.collectors import torch as torch_collector
from rocmend.machine.facts import FactSink
from rocmend.machine.root import Root

MakeRoot = Callable[..., Any]
Collect = Callable[[str, Root], FactSink]

SITE = "/v/lib/python3.12/site-packages"
BASE = {"/v/pyvenv.cfg": "home = /usr/bin\nversion = 3.12.1\n"}
ENV = {"VIRTUAL_ENV": "/v"}


def torch(version: str, *, hip: str = "None", cuda: str = "None", requires: str = "") -> dict[str, str]:
    return BASE | {
        f"{SITE}/torch/version.py": f"__version__ = '{version}'\ncuda: str = {cuda}\nhip: str = {hip}\n",
        f"{SITE}/torch-{version}.dist-info/METADATA": f"Name: torch\nVersion: {version}\n{requires}\n",
    }


ROCM = torch("2.9.1+rocm6.4", hip="'6.4.43484-123eb5128'", requires="Requires-Dist: pytorch-triton-rocm==3.5.1")


def test_a_rocm_build_with_its_code_objects(fake_root: MakeRoot, collect: Collect) -> None:
    scan = {
        "targets": ["gfx942", "gfx1100", "gfx90a:xnack-", "gfx90a:xnack+"],
        "generic": {"gfx11-generic": 1},
        "components": {},
    }
    root = fake_root(ROCM, env=ENV, measurements={("code-objects", f"{SITE}/torch"): scan})
    sink = collect("torch", root)
    facts = {key: fact.value for key, fact in sink.facts.items()}
    assert facts["torch.version"] == "2.9.1+rocm6.4"
    assert facts["torch.backend"] == "rocm"
    assert facts["torch.hip_version"] == "6.4.43484-123eb5128"
    assert facts["torch.rocm_version"] == "6.4"
    assert facts["torch.cuda_version"] is None
    assert facts["torch.gfx_targets"] == ["gfx90a", "gfx942", "gfx11-generic", "gfx1100"]
    assert facts["torch.code_targets"] == ["gfx90a:xnack+", "gfx90a:xnack-", "gfx942", "gfx11-generic", "gfx1100"]
    assert facts["torch.components"] == {}
    assert facts["torch.path"] == f"{SITE}/torch"
    assert facts["torch.source"] == "pytorch-index"
    assert facts["torch.triton"] == "pytorch-triton-rocm"
    assert facts["torch.overwritten"] is False
    assert "code objects" in sink.facts["torch.gfx_targets"].source


def test_torchs_own_kernels_decide_and_not_its_libraries(fake_root: MakeRoot, collect: Collect) -> None:
    scan = {
        "targets": ["gfx1010", "gfx1030"],
        "generic": {},
        "components": {
            "PyTorch": {"targets": {"gfx1030": 300}, "units": 300},
            "rocBLAS kernels": ["gfx1010", "gfx1030"],
        },
    }
    facts = collect("torch", fake_root(ROCM, env=ENV, measurements={("code-objects", f"{SITE}/torch"): scan})).facts
    assert facts["torch.gfx_targets"].value == ["gfx1030"]
    assert facts["torch.code_targets"].value == ["gfx1010", "gfx1030"]
    assert facts["torch.components"].value["rocBLAS kernels"] == {"targets": {"gfx1010": 1, "gfx1030": 1}}


def test_names_of_kernel_files_stand_in_for_code_objects(fake_root: MakeRoot, collect: Collect) -> None:
    files = ROCM | {
        f"{SITE}/torch/lib/rocblas/library/TensileLibrary_lazy_gfx1030.dat": "",
        f"{SITE}/torch/lib/hipblaslt/library/TensileLibrary_gfx1100.co": "",
    }
    sink = collect("torch", fake_root(files, env=ENV))
    assert sink.facts["torch.gfx_targets"].value == ["gfx1030", "gfx1100"]
    assert "names of kernel files" in sink.facts["torch.gfx_targets"].source
    assert "torch.components" in sink.gaps


def test_split_device_packages_count(fake_root: MakeRoot, collect: Collect) -> None:
    files = torch("2.13.0+rocm10.0.0", hip="'10.0.60900'") | {
        f"{SITE}/amd_torch_device_gfx1151-2.13.0+rocm10.0.0.dist-info/METADATA": "",
        f"{SITE}/torch/.kpack/torch_gfx1201.kpack": "",
    }
    root = fake_root(files, env=ENV, measurements={("code-objects", f"{SITE}/torch"): {"targets": []}})
    facts = collect("torch", root).facts
    assert facts["torch.gfx_targets"].value == ["gfx1151", "gfx1201"]
    assert facts["torch.components"].value == {"PyTorch": {"targets": {"gfx1151": 1, "gfx1201": 1}}}
    assert (facts["torch.source"].value, facts["torch.rocm_version"].value) == ("therock", "10.0.0")


@pytest.mark.parametrize(
    "value", [{"error": "took too long"}, ["not", "a", "table"], {"targets": [], "problems": ["lib/x.so: cut short"]}]
)
def test_targets_that_cannot_be_read_are_a_gap(value: Any, fake_root: MakeRoot, collect: Collect) -> None:
    root = fake_root(ROCM, env=ENV, measurements={("code-objects", f"{SITE}/torch"): value})
    sink = collect("torch", root)
    assert "torch.gfx_targets" not in sink.facts
    assert sink.gaps["torch.gfx_targets"].reason


def test_a_cuda_build_left_rocm_companions_behind(fake_root: MakeRoot, collect: Collect) -> None:
    files = torch("2.13.0", cuda="'13.0'") | {f"{SITE}/pytorch_triton_rocm-3.5.1.dist-info/METADATA": ""}
    sink = collect("torch", fake_root(files, env=ENV))
    assert sink.facts["torch.backend"].value == "cuda"
    assert sink.facts["torch.cuda_version"].value == "13.0"
    assert sink.facts["torch.source"].value == "pypi"
    assert sink.facts["torch.overwritten"].value is True
    assert sink.facts["torch.overwritten"].raw == "pytorch-triton-rocm 3.5.1"
    assert sink.facts["torch.gfx_targets"].value is None


def test_a_rocm_torchvision_beside_a_cpu_torch(fake_root: MakeRoot, collect: Collect) -> None:
    files = torch("2.13.0+cpu") | {f"{SITE}/torchvision-0.24.1+rocm6.4.dist-info/METADATA": ""}
    assert collect("torch", fake_root(files, env=ENV)).facts["torch.overwritten"].value is True


def test_a_plain_cuda_build_is_not_overwritten(fake_root: MakeRoot, collect: Collect) -> None:
    files = torch("2.13.0", cuda="'13.0'") | {f"{SITE}/triton-3.5.1.dist-info/METADATA": ""}
    assert collect("torch", fake_root(files, env=ENV)).facts["torch.overwritten"].value is False


def test_no_torch(fake_root: MakeRoot, collect: Collect) -> None:
    facts = collect("torch", fake_root(BASE, env=ENV)).facts
    assert facts["torch.installed"].value is False
    assert facts["torch.version"].value is None
    assert facts["torch.overwritten"].value is False


def test_no_python(fake_root: MakeRoot, collect: Collect) -> None:
    assert collect("torch", fake_root({"/x": ""}, env={})).facts["torch.installed"].value is False


def test_a_slow_scan_costs_only_its_own_fact(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys
    import time
    import types

    slow = types.ModuleType("rocmend.codeobject.scan")
    slow.scan_targets = lambda _path: time.sleep(30)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rocmend.codeobject.scan", slow)
    monkeypatch.setattr(torch_collector, "SCAN_LIMIT_S", 0.2)
    start = time.monotonic()
    value = torch_collector._scan_within_limit(tmp_path)
    assert "timeout" in value["error"]
    assert time.monotonic() - start < 5


def test_a_scan_hands_its_summary_on(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    import sys
    import types

    module = types.ModuleType("rocmend.codeobject.scan")
    module.scan_targets = lambda path: {"targets": ["gfx1100"], "generic": [], "path": str(path)}  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "rocmend.codeobject.scan", module)
    assert torch_collector._scan_within_limit(tmp_path) == {
        "targets": ["gfx1100"],
        "generic": [],
        "path": str(tmp_path),
    }
