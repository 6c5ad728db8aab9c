"""What amd-smi and rocm-smi print as JSON.

Forms: https://rocm.docs.amd.com/projects/amdsmi/en/latest/how-to/amdsmi-cli-tool.html; from ROCm 7 on amd-smi wraps
the GPUs in ``gpu_data``. rocm-smi writes every value as text.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from examples.machinery.gpu import Place, places
from examples.machinery.spec import Spec
from examples.machinery.writer import Capture
from rocmend.core.gfx import lookup


def add_smi(spec: Spec, capture: Capture) -> None:
    """Add the outputs of both tools, which ROCm's packages install together."""
    wrapped = spec.rocm is not None and int(spec.rocm.version.split(".")[0]) >= 7
    for argument, describe in (("static", _static), ("metric", _metric)):
        rows = [describe(spec, index, place) for index, place in enumerate(places(spec))]
        capture.tool(("amd-smi", argument, "--json"), _json({"gpu_data": rows} if wrapped else rows), time_ms=310)
    cards: dict[str, Any] = {f"card{index}": _card(place) for index, place in enumerate(places(spec))}
    version = spec.driver.version if spec.driver and spec.driver.version else spec.kernel.release
    cards["system"] = {"Driver version": version}
    capture.tool(("rocm-smi", "--showallinfo", "--json"), _json(cards), time_ms=420)


def _json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=4).decode() + "\n"


def _quantity(value: float, unit: str) -> dict[str, Any]:
    return {"value": value, "unit": unit}


def _static(spec: Spec, index: int, place: Place) -> dict[str, Any]:
    gpu = place.gpu
    units = gpu.kfd.simd_count // gpu.kfd.simd_per_cu
    origin = spec.driver.version if spec.driver and spec.driver.version else f"Linuxversion{spec.kernel.release}"
    return {
        "gpu": index,
        "asic": {
            "market_name": gpu.name,
            "vendor_id": "0x1002",
            "vendor_name": "Advanced Micro Devices Inc. [AMD/ATI]",
            "device_id": gpu.device,
            "rev_id": gpu.revision,
            "num_compute_units": units,
            "target_graphics_version": gpu.gfx,
        },
        "bus": {"bdf": place.slot, "max_pcie_width": gpu.drm.max_link_width},
        "vbios": {"part_number": gpu.drm.vbios},
        "driver": {"name": "amdgpu", "version": origin},
        "vram": {
            "type": "HBM" if lookup(gpu.gfx).has_matrix_unit and gpu.kfd.memory_width > 1024 else "GDDR6",
            "vendor": "N/A",
            "size": _quantity(gpu.drm.vram_total >> 20, "MB"),
            "bit_width": gpu.kfd.memory_width,
        },
        "partition": {
            "compute_partition": gpu.partitions[0] if gpu.partitions else "N/A",
            "memory_partition": gpu.partitions[1] if gpu.partitions else "N/A",
        },
    }


def _metric(_: Spec, index: int, place: Place) -> dict[str, Any]:
    drm = place.gpu.drm
    return {
        "gpu": index,
        "usage": {"gfx_activity": _quantity(drm.busy_percent, "%"), "umc_activity": _quantity(0, "%")},
        "power": {"socket_power": _quantity(drm.power_uw // 1_000_000, "W")},
        "clock": {"gfx_0": {"clk": _quantity(_active_mhz(drm.sclk), "MHz"), "max_clk": "N/A"}},
        "temperature": {"edge": _quantity(drm.temperature_mc // 1000, "C"), "hotspot": "N/A", "mem": "N/A"},
        "mem_usage": {"used_vram": _quantity(drm.vram_used >> 20, "MB")},
    }


def _active_mhz(levels: tuple[str, ...]) -> int:
    return next(int(re.sub(r"\D", "", level)) for level in levels if level.endswith("*"))


def _card(place: Place) -> dict[str, str]:
    gpu, drm = place.gpu, place.gpu.drm
    return {
        "Device Name": gpu.name,
        "Device ID": gpu.device,
        "Device Rev": gpu.revision,
        "GFX Version": gpu.gfx,
        "Node ID": str(place.node),
        "VBIOS version": drm.vbios,
        "Performance Level": drm.performance_level,
        "GPU use (%)": str(drm.busy_percent),
        "VRAM Total Memory (B)": str(drm.vram_total),
        "VRAM Total Used Memory (B)": str(drm.vram_used),
        "Average Graphics Package Power (W)": str(drm.power_uw / 1_000_000),
        "Temperature (Sensor edge) (C)": str(drm.temperature_mc / 1000),
        "PCI Bus": place.slot.upper(),
    }
