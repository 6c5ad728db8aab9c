"""What ROCm's and Vulkan's tools print on the machine."""

from __future__ import annotations

from collections.abc import Iterator

from examples.machinery.smi import add_smi
from examples.machinery.spec import Gpu, Spec
from examples.machinery.writer import Capture
from rocmend.core.gfx import lookup

RULE = "*******"


def add_tools(spec: Spec, capture: Capture) -> None:
    """Add the tools' outputs; a tool that is not mentioned is not found."""
    tools = spec.tools
    if tools.rocminfo_error:
        capture.tool(("rocminfo",), "", exit_code=1, stderr=tools.rocminfo_error + "\n", time_ms=20)
    elif tools.rocminfo:
        capture.tool(("rocminfo",), "\n".join(_rocminfo(spec)) + "\n", time_ms=190)
    if tools.smi:
        add_smi(spec, capture)
    if tools.vulkaninfo:
        capture.tool(("vulkaninfo", "--summary"), tools.vulkaninfo.strip("\n") + "\n", time_ms=260)


def _row(name: str, value: str, indent: int = 2) -> str:
    return f"{' ' * indent}{name + ':':<25}{value:<35}"


def _rocminfo(spec: Spec) -> Iterator[str]:
    """Source of the form: rocminfo.cc in https://github.com/ROCm/rocminfo."""
    tools = spec.tools
    if tools.module:
        yield f"ROCk module version {tools.module} is loaded"
    elif not spec.wsl:
        yield "ROCk module is loaded"
    yield "=" * 21
    yield "HSA System Attributes"
    yield "=" * 21
    yield from (f"Runtime Version:         {tools.runtime}", f"Runtime Ext Version:     {tools.runtime_ext}")
    yield "System Timestamp Freq.:  1000.000000MHz"
    yield "Sig. Max Wait Duration:  18446744073709551615 (0xFFFFFFFFFFFFFFFF) (timestamp count)"
    yield from ("Machine Model:           LARGE", "System Endianness:       LITTLE")
    yield from ("Mwaitx:                  DISABLED", "XNACK enabled:           NO", "DMAbuf Support:          YES", "")
    yield from ("==========", "HSA Agents", "==========")
    number = 0
    for node in range(spec.kernel.numa_nodes):
        number += 1
        yield from _cpu_agent(spec, number, node)
    for gpu in spec.gpus:
        for slot in gpu.slots:
            number += 1
            yield from _gpu_agent(spec, gpu, slot, number)
    yield "*** Done ***"


def _cpu_agent(spec: Spec, number: int, node: int) -> Iterator[str]:
    yield from (RULE, f"Agent {number}", RULE)
    size = spec.host.memory_kib // spec.kernel.numa_nodes
    rows = {
        "Name": spec.host.cpu,
        "Uuid": "CPU-XX",
        "Marketing Name": spec.host.cpu,
        "Vendor Name": "CPU",
        "Feature": "None specified",
        "Node": str(node),
        "Device Type": "CPU",
        "Compute Unit": str(spec.host.cpu_count // spec.kernel.numa_nodes),
    }
    yield from (_row(name, value) for name, value in rows.items())
    yield "  Pool Info:"
    yield from _pool(1, "GLOBAL; FLAGS: FINE GRAINED", size)
    yield from _pool(2, "GLOBAL; FLAGS: KERNARG, FINE GRAINED", size)
    yield from _pool(3, "GLOBAL; FLAGS: COARSE GRAINED", size)
    yield "  ISA Info:"


def _pool(number: int, segment: str, size_kib: int) -> Iterator[str]:
    yield f"    Pool {number}"
    yield _row("Segment", segment, 6)
    yield _row("Size", f"{size_kib}(0x{size_kib:x}) KB", 6)
    yield _row("Allocatable", "TRUE", 6)


def _gpu_agent(spec: Spec, gpu: Gpu, slot: str, number: int) -> Iterator[str]:
    kfd, target = gpu.kfd, lookup(_seen_as(spec, gpu))
    device = int(gpu.device, 16)
    _, bus, rest = slot.split(":")
    slot_device, _, function = rest.partition(".")
    units = kfd.simd_count // kfd.simd_per_cu
    pool_kib = (max(gpu.drm.vram_total, gpu.drm.gtt_total) if gpu.apu else gpu.drm.vram_total) // 1024
    waves = kfd.max_waves_per_simd * kfd.simd_per_cu
    rows = {
        "Name": target.name,
        "Uuid": "GPU-XX",
        "Marketing Name": gpu.name,
        "Vendor Name": "AMD",
        "Feature": "KERNEL_DISPATCH",
        "Profile": "BASE_PROFILE",
        "Node": str(number - 1),
        "Device Type": "GPU",
        "Chip ID": f"{device}(0x{device:x})",
        "Max Clock Freq. (MHz)": str(kfd.max_clock_mhz),
        "BDFID": str(int(bus, 16) << 8 | int(slot_device, 16) << 3 | int(function)),
        "Compute Unit": str(units),
        "SIMDs per CU": str(kfd.simd_per_cu),
        "Coherent Host Access": "FALSE",
        "Memory Properties": "APU" if gpu.apu else "",
        "Wavefront Size": f"{kfd.wave_size}(0x{kfd.wave_size:x})",
        "Max Waves Per CU": f"{waves}(0x{waves:x})",
        "Packet Processor uCode:": str(kfd.fw_version),
        "SDMA engine uCode:": str(kfd.sdma_fw_version),
    }
    yield from (RULE, f"Agent {number}", RULE)
    yield from (_row(name, value) for name, value in rows.items())
    yield "  Pool Info:"
    yield from _pool(1, "GLOBAL; FLAGS: COARSE GRAINED", pool_kib)
    if target.fine_grained:
        yield from _pool(2, "GLOBAL; FLAGS: EXTENDED FINE GRAINED", pool_kib)
    yield from _pool(3, "GROUP", kfd.lds_kib)
    yield "  ISA Info:"
    features = ":sramecc+:xnack-" if target.name in {"gfx90a", "gfx942", "gfx950"} else ""
    yield from _isa(1, f"amdgcn-amd-amdhsa--{target.name}{features}")
    if spec.tools.generic_isas and target.generic_class:
        yield from _isa(2, f"amdgcn-amd-amdhsa--{target.generic_class}{features}")


def _isa(number: int, name: str) -> Iterator[str]:
    yield f"    ISA {number}"
    yield _row("Name", name, 6)
    yield _row("Machine Models", "HSA_MACHINE_MODEL_LARGE", 6)


def _seen_as(spec: Spec, gpu: Gpu) -> str:
    """Return the target that the runtime reports: the override's where one is set."""
    value = spec.environ.get("HSA_OVERRIDE_GFX_VERSION")
    if not value:
        return gpu.gfx
    major, minor, stepping = (int(part) for part in value.split("."))
    return f"gfx{major}{minor:x}{stepping:x}"
