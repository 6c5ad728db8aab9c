"""Wheels as they are on PyPI: what they hold was established by reading their bundle tables by hand, too."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from rocmend.codeobject.inspect import inspect_path
from rocmend.codeobject.model import Component, Inspection
from rocmend.codeobject.service import Verdict, serve

pytestmark = pytest.mark.network

RDNA3_AND_LATER = {
    "gfx1100", "gfx1101", "gfx1102", "gfx1103", "gfx1150", "gfx1151", "gfx1152", "gfx1153", "gfx1200", "gfx1201",
}  # fmt: skip
CDNA = {"gfx908", "gfx90a", "gfx942", "gfx950"}
RDNA1 = {"gfx1010", "gfx1011", "gfx1012"}
RDNA2 = {f"gfx103{number}" for number in range(7)}

Fetch = Callable[[str], Inspection]


@pytest.fixture
def fetch(tmp_path: Path) -> Fetch:
    """Download a wheel by name and inspect it."""

    def download(requirement: str) -> Inspection:
        command = [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--only-binary", ":all:"]
        subprocess.run([*command, "-d", str(tmp_path), requirement], check=True, timeout=600)
        (wheel,) = tmp_path.glob("*.whl")
        return inspect_path(wheel)

    return download


def held(component: Component) -> set[str]:
    return {use.target for use in component.targets}


def test_bitsandbytes(fetch: Fetch) -> None:
    """One library for each HIP version, each with compressed bundles (version 3, zstd) and a target list of its own."""
    found = fetch("bitsandbytes==0.50.2")
    assert (found.name, found.version) == ("bitsandbytes", "0.50.2")
    assert found.backends == ("rocm", "cuda", "xpu")
    assert not found.problems
    by_variant = {part.variant: part for part in found.components}
    assert list(by_variant) == ["6.4", "7.0", "7.1", "7.2", "7.14", "7.15"]
    assert held(by_variant["6.4"]) == {"gfx1030", *RDNA3_AND_LATER, *CDNA} - {"gfx950"}
    assert held(by_variant["7.2"]) == {"gfx1030", *RDNA3_AND_LATER, *CDNA}
    assert held(by_variant["7.15"]) == {"gfx1250", *RDNA1, *RDNA2, *RDNA3_AND_LATER, *CDNA}
    assert {part.units for part in found.components} == {2}
    assert all(file.compressed == "zstd" for file in found.files if file.backend == "rocm")
    assert {"libhipblaslt.so.1", "libhipblas.so.3"} <= set(found.external)
    versions = {(item.what, item.version) for item in found.versions}
    assert {("rocm", "6.4.4"), ("rocm", "7.2.4"), ("rocm", "10.0")} <= versions
    assert serve(found, "gfx1151").verdict is Verdict.NATIVE
    old = serve(found, "gfx1010")
    assert (old.verdict, old.only_with) == (Verdict.NONE, ("7.14", "7.15"))
    assert "HIP 6.4, 7.0, 7.1, 7.2 hold no code for gfx1010" in old.reason
    assert serve(found, "gfx1010", hip="7.15.1").verdict is Verdict.NATIVE
    assert serve(found, "gfx1010", hip="7.2.53150").verdict is Verdict.NONE


def test_jax_plugin(fetch: Fetch) -> None:
    found = fetch("jax-rocm7-plugin==0.10.2")
    (part,) = found.components
    assert (part.name, part.units) == ("jax-rocm7-plugin", 4)
    assert held(part) == {"gfx900", "gfx906", "gfx90c", *CDNA, *RDNA1, *RDNA2, *RDNA3_AND_LATER}
    assert found.hip_version == "7"
    assert "libMIOpen.so.1" in found.external


def test_onnxruntime(fetch: Fetch) -> None:
    """Ninety-five plain bundles in half a gigabyte of library."""
    found = fetch("onnxruntime-rocm==1.22.2.post3")
    (part,) = found.components
    assert (part.name, part.units) == ("onnxruntime-rocm", 95)
    assert [(use.target, use.objects) for use in part.targets] == [
        (name, 95) for name in ("gfx908", "gfx90a", "gfx942", "gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201")
    ]
    assert (found.rocm_version, found.totals.code_objects) == ("7.2.4", 760)
    service = serve(found, "gfx1151")
    assert (service.verdict, service.override) == (Verdict.OVERRIDE, "11.0.0")
    refused = serve(found, "gfx1010")
    assert refused.verdict is Verdict.NONE
    assert "10.3.0 is refused" in refused.cautions[0]
    assert serve(found, "gfx950").verdict is Verdict.NONE


def test_amdsmi_has_no_library(fetch: Fetch) -> None:
    found = fetch("amdsmi==7.0.2")
    assert (found.backends, found.files, found.problems) == ((), (), ())
    assert serve(found, "gfx1151").verdict is Verdict.NOT_APPLICABLE


def test_pure_python(fetch: Fetch) -> None:
    found = fetch("idna==3.10")
    assert (found.name, found.backends, found.targets) == ("idna", (), ())
    assert serve(found, "gfx1151").verdict is Verdict.NOT_APPLICABLE


@pytest.mark.large
def test_cupy(fetch: Fetch) -> None:
    found = fetch("cupy-rocm-7-0==14.2.0")
    (part,) = found.components
    assert (part.name, part.units) == ("cupy-rocm-7-0", 3)
    assert held(part) == {"gfx1030", "gfx1100", "gfx1101", "gfx1200", "gfx1201", *CDNA}
    assert (found.rocm_version, found.hip_version) == ("7.0", "7")
    assert "libamdhip64.so.7" in found.external
    assert serve(found, "gfx1032").override == "10.3.0"


@pytest.mark.large
def test_jax_pjrt(fetch: Fetch) -> None:
    """Forty-five compressed bundles; ninety megabytes stand between its section names and its section headers."""
    found = fetch("jax-rocm7-pjrt==0.12.0")
    (part,) = found.components
    assert part.units == 45
    assert held(part) == {"gfx900", "gfx906", "gfx1250", *CDNA, *RDNA1, *RDNA2, *RDNA3_AND_LATER}
    assert {use.objects for use in part.targets} == {45}
    assert found.rocm_version == "7.14.0"
    assert "libMIOpen.so.1" in found.external
    assert not found.problems


@pytest.mark.large
def test_triton_compiles_at_run_time(fetch: Fetch) -> None:
    """Its compiler holds the marks of bundles and of code objects as constants."""
    found = fetch("triton==3.9.0")
    assert (found.targets, found.problems) == ((), ())
    service = serve(found, "gfx1151")
    assert service.verdict is Verdict.NOT_APPLICABLE
    assert "compiled for the GPU at run time" in service.reason


@pytest.mark.large
def test_cuda_wheel(fetch: Fetch) -> None:
    found = fetch("nvidia-nccl-cu12==2.32.3")
    assert (found.backends, found.targets) == (("cuda",), ())
    service = serve(found, "gfx1151")
    assert service.verdict is Verdict.NONE
    assert "NVIDIA" in service.reason
