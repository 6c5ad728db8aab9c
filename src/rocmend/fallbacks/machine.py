"""What decides whether a path works here: the device, its driver, PyTorch and the settings that change kernels."""

from __future__ import annotations

import functools
import importlib.metadata
import os
import platform
from pathlib import Path

import torch

SUITE = "1"
"""Version of the cases that a path has to pass; a new one has everything tried again."""

_SETTINGS = (
    "HSA_OVERRIDE_GFX_VERSION",
    "HSA_ENABLE_SDMA",
    "HSA_XNACK",
    "PYTORCH_MIOPEN_SUGGEST_NHWC",
    "TORCH_BLAS_PREFER_HIPBLASLT",
    "TORCH_ROCM_AOTRITON_ENABLE_EXPERIMENTAL",
)
_SETTING_PREFIXES = ("MIOPEN_", "ROCBLAS_", "HIPBLASLT_")
_NOT_SETTINGS = ("_LOG", "_PATH", "_DIR")
_VENDOR_PACKAGES = ("flash-attn", "flash_attn", "aiter", "amd-aiter")


def _first_line(path: str) -> str:
    try:
        with Path(path).open(encoding="utf-8", errors="replace") as file:
            return file.readline(400).strip()
    except OSError:
        return ""


def _package_versions() -> dict[str, str]:
    found = {}
    for name in _VENDOR_PACKAGES:
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return found


def _settings() -> dict[str, str]:
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name in _SETTINGS or (name.startswith(_SETTING_PREFIXES) and not any(part in name for part in _NOT_SETTINGS))
    }


def describe(device: torch.device) -> dict[str, str]:
    """Return what defines a device and the software under it, name to text; equal only where kernels are the same."""
    index = device.index if device.index is not None or device.type != "cuda" else torch.cuda.current_device()
    return {**_hardware(device.type, index or 0), **_settings()}


@functools.cache
def _hardware(kind: str, index: int) -> dict[str, str]:
    facts = {"torch": torch.__version__, "suite": SUITE, **_package_versions()}
    if kind != "cuda":
        return {**facts, "device": kind, "name": platform.processor() or platform.machine()}
    properties = torch.cuda.get_device_properties(index)
    hip = torch.version.hip
    facts |= {
        "device": properties.name,
        "runtime": f"hip {hip}" if hip else f"cuda {torch.version.cuda}",
        "target": str(properties.gcnArchName) if hip else f"sm_{properties.major}{properties.minor}",
        "vendor_library": str(torch.backends.cudnn.version()),
    }
    if hip:
        facts["driver"] = _first_line("/sys/module/amdgpu/version") or f"kernel {platform.release()}"
    else:
        facts["driver"] = _first_line("/proc/driver/nvidia/version")
    return facts
