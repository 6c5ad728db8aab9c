"""Support modules: importable alone, and right about what they answer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from rocmend.port.python.units import NVML_FUNCTIONS, NVML_NAMES, UNITS, module_of, source_of

VERSION = "__version__ = '2.9'\nhip: str | None = {}\n"


def run(code: str, path: Path) -> str:
    made = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(path)!r})\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    return made.stdout.strip()


@pytest.mark.parametrize("unit", UNITS.values(), ids=lambda unit: unit.name)
def test_a_unit_needs_nothing_of_rocmend(unit: Any) -> None:
    source = source_of(unit.name).decode()
    assert "rocmend" not in source
    for name in unit.exports:
        assert f"def {name}(" in source or f"\n{name} = " in source


@pytest.mark.parametrize(
    ("version", "told"),
    [("None", "False"), ("'6.4.43482'", "True"), ('"7.0"', "True")],
)
def test_the_flag_without_importing_torch(tmp_path: Path, version: str, told: str) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("raise RuntimeError('torch was imported')\n")
    (tmp_path / "torch/version.py").write_text(VERSION.format(version))
    (tmp_path / "_rocm.py").write_bytes(source_of("is_rocm"))
    assert run("import _rocm; print(_rocm.is_rocm)", tmp_path) == told


def test_the_flag_where_torch_is_imported(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch/__init__.py").write_text("from . import version\nversion.hip = '6.0'\n")
    (tmp_path / "torch/version.py").write_text("hip = None\n")
    (tmp_path / "_rocm.py").write_bytes(source_of("is_rocm"))
    assert run("import torch, _rocm; print(_rocm.is_rocm)", tmp_path) == "True"
    assert run("import _rocm; print(_rocm.is_rocm)", tmp_path) == "False"


@pytest.mark.parametrize("before", ["", "sys.modules['torch'] = None; "], ids=["absent", "blocked"])
def test_the_flag_without_torch(tmp_path: Path, before: str) -> None:
    (tmp_path / "_rocm.py").write_bytes(source_of("is_rocm"))
    assert run(f"{before}import _rocm; print(_rocm.is_rocm)", tmp_path) == "False"


@pytest.mark.parametrize(
    ("flag", "name", "module"),
    [
        ("package._rocm", "nvml", "package._rocm_nvml"),
        ("package.sub._rocm", "is_rocm", "package.sub._rocm"),
        ("._rocm", "fp8", "._rocm_fp8"),
        (".._rocm", "fp8", ".._rocm_fp8"),
        ("package.flags", "fp8", "package._rocm_fp8"),
        ("", "attention", "_rocm_attention"),
    ],
)
def test_modules_stand_beside_the_flag(flag: str, name: str, module: str) -> None:
    assert module_of(flag, name) == module


class AmdSmi(ModuleType):
    """As much of amdsmi as is asked."""

    class AmdSmiException(Exception):  # noqa: N818  its name in amdsmi
        pass

    AmdSmiTemperatureType = SimpleNamespace(EDGE=0, HOTSPOT=1)
    AmdSmiTemperatureMetric = SimpleNamespace(CURRENT=0)
    handles = ("a", "b")

    def amdsmi_init(self) -> None:
        self.started = True

    def amdsmi_shut_down(self) -> None:
        self.started = False

    def amdsmi_get_processor_handles(self) -> list[str]:
        return list(self.handles)

    def amdsmi_get_gpu_asic_info(self, handle: str) -> dict[str, str]:
        return {"market_name": f"Instinct {handle}"}

    def amdsmi_get_gpu_device_uuid(self, handle: str) -> str:
        return f"uuid-{handle}"

    def amdsmi_get_gpu_driver_info(self, _: str) -> dict[str, str]:
        return {"driver_version": "6.10.5"}

    def amdsmi_get_gpu_vram_usage(self, _: str) -> dict[str, int]:
        return {"vram_total": 1024, "vram_used": 24}

    def amdsmi_get_gpu_activity(self, handle: str) -> dict[str, Any]:
        return {"gfx_activity": 87, "umc_activity": 12 if handle == "a" else "N/A", "mm_activity": "N/A"}

    def amdsmi_get_temp_metric(self, handle: str, kind: int, _: int) -> int:
        if kind == 0 and handle == "b":
            raise self.AmdSmiException("not supported")
        return 41 + kind

    def amdsmi_get_power_info(self, handle: str) -> dict[str, Any]:
        return {"current_socket_power": "N/A", "average_socket_power": 250 if handle == "a" else "N/A"}


def test_nvml_is_answered_by_amdsmi(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.port.support import nvml

    monkeypatch.setitem(sys.modules, "amdsmi", AmdSmi("amdsmi"))
    with pytest.raises(nvml.NVMLError, match="nvmlInit"):
        nvml.nvmlDeviceGetCount()
    nvml.nvmlInit()
    assert nvml.nvmlDeviceGetCount() == 2
    one, other = nvml.nvmlDeviceGetHandleByIndex(0), nvml.nvmlDeviceGetHandleByIndex(1)
    with pytest.raises(nvml.NVMLError, match="no GPU 2"):
        nvml.nvmlDeviceGetHandleByIndex(2)
    assert nvml.nvmlDeviceGetName(one) == "Instinct a"
    assert nvml.nvmlDeviceGetUUID(other) == "uuid-b"
    assert nvml.nvmlSystemGetDriverVersion() == "6.10.5"
    assert nvml.nvmlDeviceGetMemoryInfo(one) == (1024 << 20, 1000 << 20, 24 << 20)
    assert nvml.nvmlDeviceGetUtilizationRates(one) == (87, 12)
    with pytest.raises(nvml.NVMLError, match="umc_activity"):
        nvml.nvmlDeviceGetUtilizationRates(other)
    assert nvml.nvmlDeviceGetTemperature(one, nvml.NVML_TEMPERATURE_GPU) == 41
    assert nvml.nvmlDeviceGetTemperature(other) == 42
    assert nvml.nvmlDeviceGetPowerUsage(one) == 250_000
    with pytest.raises(nvml.NVMLError, match="power"):
        nvml.nvmlDeviceGetPowerUsage(other)
    nvml.nvmlShutdown()
    with pytest.raises(nvml.NVMLError, match="nvmlInit"):
        nvml.nvmlDeviceGetName(one)


def test_nvml_says_what_it_lacks(monkeypatch: pytest.MonkeyPatch) -> None:
    from rocmend.port.support import nvml

    monkeypatch.setitem(sys.modules, "amdsmi", None)
    with pytest.raises(nvml.NVMLError, match="cannot be imported"):
        nvml.nvmlInit()
    with pytest.raises(AttributeError, match="use amdsmi"):
        _ = nvml.nvmlDeviceGetNvLinkState
    assert {name for name in vars(nvml) if name.startswith("nvml") and name != "nvml"} == NVML_FUNCTIONS
    assert {name for name in vars(nvml) if name.startswith("NVML")} == NVML_NAMES


@pytest.mark.cpu
@pytest.mark.parametrize(
    ("target", "name"),
    [("gfx942:sramecc+:xnack-", "float8_e4m3fnuz"), ("gfx950", "float8_e4m3fn"), ("gfx1201", "float8_e4m3fn")],
)
def test_the_float8_of_a_target(monkeypatch: pytest.MonkeyPatch, target: str, name: str) -> None:
    torch = pytest.importorskip("torch")
    from rocmend.port.support import fp8

    fp8.float8_e4m3.cache_clear()
    assert fp8.float8_e4m3() is torch.float8_e4m3fn
    fp8.float8_e4m3.cache_clear()
    monkeypatch.setattr(torch.version, "hip", "6.4")
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda _: SimpleNamespace(gcnArchName=target))
    assert fp8.float8_e4m3() is getattr(torch, name)
    fp8.float8_e4m3.cache_clear()


@pytest.mark.cpu
def test_inductor_is_settled(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("torch")
    from torch._inductor import config

    from rocmend.port.support.inductor import settle_inductor

    monkeypatch.setenv("TORCHINDUCTOR_MAX_AUTOTUNE", "1")
    with config.patch({"max_autotune": True, "memory_planning": True, "triton.cudagraphs": True}):
        settle_inductor()
        assert not config.max_autotune
        assert not config.memory_planning
        assert not config.triton.cudagraphs
        assert config.max_autotune_gemm_backends == "ATEN"
    import os

    assert "TORCHINDUCTOR_MAX_AUTOTUNE" not in os.environ
