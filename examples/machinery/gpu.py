"""A GPU's files in sysfs: KFD topology, DRM device, PCI, firmware.

Formats: Linux drivers/gpu/drm/amd/amdkfd/kfd_topology.c (node properties), amdgpu_pm.c (pp_dpm and hwmon files),
amdgpu_ucode.c (fw_version), amdgpu_kms.c (amdgpu_firmware_info).
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator

import msgspec

from examples.machinery.spec import Display, Gpu, Spec
from examples.machinery.writer import Capture
from rocmend.core.gfx import lookup

NODES = "/sys/class/kfd/kfd/topology/nodes"

SYSFS_FIRMWARE = {
    **{name: f"{name}_fw_version" for name in ("me", "pfp", "ce", "mec", "mec2", "rlc", "smc", "vcn", "sos", "asd")},
    "sdma0": "sdma_fw_version",
    "mes": "mes_fw_version",
    "mes_kiq": "mes_kiq_fw_version",
    "imu": "imu_fw_version",
}
"""Firmware names of amdgpu_firmware_info and the files in fw_version that tell the same; DMCUB and others have none."""


def add_gpus(spec: Spec, capture: Capture) -> None:
    """Add the KFD's CPU nodes, then every GPU, then display devices without amdgpu."""
    for display in spec.displays:
        _pci_files(capture, display)
    if not spec.gpus or spec.wsl:
        return
    capture.folder("/sys/class/kfd/kfd/topology", {"generation_id": 2})
    for node in range(spec.kernel.numa_nodes):
        _cpu_node(spec, capture, node)
    for place in places(spec):
        _kfd_node(spec, capture, place)
        _drm(spec, capture, place)
        if spec.who.uid == 0:
            _debugfs(capture, place)
    if spec.who.uid != 0:
        for folder in ("/sys/kernel/debug", "/sys/kernel/debug/dri"):
            capture.denied[folder] = "permission denied."
    rows = [(gpu.device, gpu.revision, gpu.name) for gpu in spec.gpus]
    lines = (f"{device[2:].upper()},\t{revision[2:].upper()},\t{name}" for device, revision, name in rows)
    capture.file("/usr/share/libdrm/amdgpu.ids", "1.0.0\n" + "\n".join(lines))


class Place(msgspec.Struct, frozen=True):
    """One GPU: its kind, and what it is numbered as in the several places where the kernel numbers GPUs."""

    gpu: Gpu
    slot: str
    node: int
    card: int
    render: int
    numa_node: int

    @property
    def folder(self) -> str:
        """Its device folder in sysfs."""
        return device_folder(self.slot, self.gpu.bridge)


def places(spec: Spec) -> Iterator[Place]:
    """Number the GPUs as the kernel does."""
    index = 0
    for gpu in spec.gpus:
        for offset, slot in enumerate(gpu.slots):
            node = spec.kernel.numa_nodes + index
            yield Place(gpu, slot, node, gpu.first_card + offset, 128 + index, spec.node_of(gpu, offset))
            index += 1


def device_folder(slot: str, bridge: str) -> str:
    """Return a PCI device's folder in sysfs."""
    root = f"/sys/devices/pci{slot[:4]}:00"
    return f"{root}/{bridge}/{slot}" if bridge else f"{root}/{slot}"


def _properties(values: dict[str, int]) -> str:
    return "\n".join(f"{name} {value}" for name, value in values.items())


def _cpu_node(spec: Spec, capture: Capture, node: int) -> None:
    folder = f"{NODES}/{node}"
    cores = spec.host.cpu_count // spec.kernel.numa_nodes
    values = {
        "cpu_cores_count": cores,
        "simd_count": 0,
        "mem_banks_count": 1,
        "caches_count": 0,
        "io_links_count": sum(len(gpu.slots) for gpu in spec.gpus),
        "cpu_core_id_base": node * cores,
        "simd_id_base": 0,
        "max_waves_per_simd": 0,
        "lds_size_in_kb": 0,
        "wave_front_size": 0,
        "gfx_target_version": 0,
        "vendor_id": 0,
        "device_id": 0,
        "location_id": 0,
        "max_engine_clk_ccompute": 5_100,
    }
    capture.folder(folder, {"gpu_id": 0, "name": "", "properties": _properties(values)})
    size = spec.host.memory_kib * 1024 // spec.kernel.numa_nodes
    bank = {"heap_type": 0, "size_in_bytes": size, "flags": 0, "width": 64, "mem_clk_max": 4800}
    capture.file(f"{folder}/mem_banks/0/properties", _properties(bank))


def _kfd_node(spec: Spec, capture: Capture, place: Place) -> None:
    gpu, node = place.gpu, place.node
    kfd, target = gpu.kfd, lookup(gpu.gfx)
    domain, bus, device, function = (int(part, 16) for part in place.slot.replace(".", ":").split(":"))
    values = {
        "cpu_cores_count": 0,
        "simd_count": kfd.simd_count,
        "mem_banks_count": 1,
        "caches_count": 206,
        "io_links_count": len(spec.kfd_peers(node)) + 1,
        "p2p_links_count": 0,
        "cpu_core_id_base": 0,
        "simd_id_base": 2147487744 + 4096 * node,
        "max_waves_per_simd": kfd.max_waves_per_simd,
        "lds_size_in_kb": kfd.lds_kib,
        "gds_size_in_kb": 0,
        "num_gws": kfd.gws,
        "wave_front_size": kfd.wave_size,
        "array_count": kfd.array_count,
        "simd_arrays_per_engine": kfd.arrays_per_engine,
        "cu_per_simd_array": kfd.cu_per_array,
        "simd_per_cu": kfd.simd_per_cu,
        "max_slots_scratch_cu": 32,
        "gfx_target_version": target.kfd_version,
        "vendor_id": 0x1002,
        "device_id": int(gpu.device, 16),
        "location_id": bus << 8 | device << 3 | function,
        "domain": domain,
        "drm_render_minor": place.render,
        "hive_id": kfd.hive_id,
        "num_sdma_engines": kfd.sdma_engines,
        "num_sdma_xgmi_engines": kfd.xgmi_engines,
        "num_sdma_queues_per_engine": 8,
        "num_cp_queues": 24,
        "max_engine_clk_fcompute": kfd.max_clock_mhz,
        "local_mem_size": 0,
        "fw_version": kfd.fw_version,
        "capability": kfd.capability,
        "debug_prop": 1495,
        "sdma_fw_version": kfd.sdma_fw_version,
        "unique_id": 0 if gpu.apu else 0x5A17_0000_0000_0000 + node,
        "num_xcc": kfd.num_xcc,
        "max_engine_clk_ccompute": kfd.cpu_clock_mhz,
    }
    if kfd.cwsr_size is not None:
        values |= {"cwsr_size": kfd.cwsr_size, "ctl_stack_size": kfd.ctl_stack_size or 0}
    folder = f"{NODES}/{node}"
    capture.folder(folder, {"gpu_id": 40_961 + node * 7, "name": "ip discovery", "properties": _properties(values)})
    heap = {"heap_type": 1 if gpu.drm.vram_visible >= gpu.drm.vram_total else 2, "size_in_bytes": gpu.drm.vram_total}
    bank = heap | {"flags": 0, "width": kfd.memory_width, "mem_clk_max": kfd.memory_clock_mhz}
    capture.file(f"{folder}/mem_banks/0/properties", _properties(bank))
    links = [(2, place.numa_node), *((11, peer) for peer in spec.kfd_peers(node))]
    for number, (kind, to) in enumerate(links):
        link = {"type": kind, "version_major": 0, "version_minor": 0, "node_from": node, "node_to": to}
        link |= {"weight": 20 if kind == 2 else 15, "flags": 13 if gpu.apu else 1}
        capture.file(f"{folder}/io_links/{number}/properties", _properties(link))


def _drm(spec: Spec, capture: Capture, place: Place) -> None:
    """The device folder is where sysfs has it; class and bus folders hold links to it."""
    gpu, slot, root, drm = place.gpu, place.slot, place.folder, place.gpu.drm
    for name, minor in ((f"card{place.card}", place.card), (f"renderD{place.render}", place.render)):
        capture.links[f"/sys/class/drm/{name}"] = posixpath.relpath(f"{root}/drm/{name}", "/sys/class/drm")
        capture.links[f"{root}/drm/{name}/device"] = f"../../../{slot}"
        capture.file(f"{root}/drm/{name}/dev", f"226:{minor}")
    _pci_files(
        capture,
        Display(
            slot=slot,
            bridge=gpu.bridge,
            vendor="0x1002",
            device=gpu.device,
            revision=gpu.revision,
            pci_class=gpu.pci_class,
            subsystem=gpu.subsystem,
            driver="amdgpu",
        ),
    )
    values: dict[str, object] = {
        "mem_info_vram_total": drm.vram_total,
        "mem_info_vram_used": drm.vram_used,
        "mem_info_vis_vram_total": drm.vram_visible,
        "mem_info_vis_vram_used": min(drm.vram_used, drm.vram_visible),
        "mem_info_gtt_total": drm.gtt_total,
        "mem_info_gtt_used": drm.gtt_used,
        "gpu_busy_percent": drm.busy_percent,
        "mem_busy_percent": 0,
        "pp_dpm_sclk": "\n".join(f"{level}: {text}" for level, text in enumerate(drm.sclk)),
        "pp_dpm_mclk": "\n".join(f"{level}: {text}" for level, text in enumerate(drm.mclk)),
        "power_dpm_force_performance_level": drm.performance_level,
        "vbios_version": drm.vbios,
        "numa_node": place.numa_node if spec.kernel.numa_nodes > 1 else -1,
        "current_link_speed": f"{drm.link_speed} PCIe",
        "current_link_width": drm.link_width,
        "max_link_speed": f"{drm.max_link_speed} PCIe",
        "max_link_width": drm.max_link_width,
    }
    if gpu.boot_vga is not None:
        values["boot_vga"] = gpu.boot_vga
    if gpu.partitions:
        values |= {"current_compute_partition": gpu.partitions[0], "current_memory_partition": gpu.partitions[1]}
    capture.folder(root, values)
    capture.file(f"{root}/power/runtime_status", "active")
    hwmon = f"{root}/hwmon/hwmon{place.card + 3}"
    capture.folder(hwmon, {"name": "amdgpu", "power1_average": drm.power_uw, "temp1_input": drm.temperature_mc})
    for name, version in gpu.firmware.items():
        if name in SYSFS_FIRMWARE:
            capture.file(f"{root}/fw_version/{SYSFS_FIRMWARE[name]}", f"0x{version:08x}")


def _pci_files(capture: Capture, device: Display) -> None:
    """Add the files that every PCI device has."""
    root = device_folder(device.slot, device.bridge)
    sub_vendor, _, sub_device = device.subsystem.partition(":")
    values = {
        "vendor": device.vendor,
        "device": device.device,
        "revision": device.revision,
        "class": device.pci_class,
        "subsystem_vendor": sub_vendor,
        "subsystem_device": sub_device,
    }
    capture.folder(root, values)
    ids = [text.removeprefix("0x").upper().zfill(4) for text in (device.vendor, device.device, sub_vendor, sub_device)]
    uevent = [
        *([f"DRIVER={device.driver}"] if device.driver else []),
        f"PCI_CLASS={device.pci_class.removeprefix('0x').lstrip('0').upper()}",
        f"PCI_ID={ids[0]}:{ids[1]}",
        f"PCI_SUBSYS_ID={ids[2]}:{ids[3]}",
        f"PCI_SLOT_NAME={device.slot}",
    ]
    capture.file(f"{root}/uevent", "\n".join(uevent))
    capture.links[f"/sys/bus/pci/devices/{device.slot}"] = posixpath.relpath(root, "/sys/bus/pci/devices")
    if device.driver:
        capture.links[f"{root}/driver"] = posixpath.relpath(f"/sys/bus/pci/drivers/{device.driver}", root)


def _debugfs(capture: Capture, place: Place) -> None:
    """Add what only root may read."""
    folder = f"/sys/kernel/debug/dri/{place.card}"
    capture.file(f"{folder}/name", f"amdgpu dev={place.slot} unique={place.slot}")
    lines = [_firmware_line(name, version) for name, version in place.gpu.firmware.items()]
    capture.file(f"{folder}/amdgpu_firmware_info", "\n".join([*lines, f"VBIOS version: {place.gpu.drm.vbios}"]))


def _firmware_line(name: str, version: int) -> str:
    if name == "smc":
        dotted = f"{version >> 16 & 0xFF}.{version >> 8 & 0xFF}.{version & 0xFF}"
        return f"SMC feature version: 0, program: {version >> 24}, firmware version: 0x{version:08x} ({dotted})"
    return f"{name.upper()} feature version: 1, firmware version: 0x{version:08x}"
