"""Compute GPUs as the kernel's KFD driver describes them.

Source: drivers/gpu/drm/amd/amdkfd/kfd_topology.c (node_show, iolink_show) and kfd_crat.h (CRAT_IOLINK_FLAGS).
"""

from __future__ import annotations

from collections.abc import Callable

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.hardware.gpus import NODES, GpuNode, read_topology
from rocmend.machine.parse.system import parse_properties
from rocmend.machine.root import ReadError, Root

_NO_ATOMICS = 0b1100
"""Bits of an io_link's flags: no 32-bit atomics, no 64-bit atomics."""

Rule = Callable[[dict[str, int]], int | None]


def _as_is(name: str) -> Rule:
    return lambda properties: properties.get(name)


def _units(properties: dict[str, int]) -> int | None:
    simds, per_unit = properties.get("simd_count"), properties.get("simd_per_cu")
    return simds // per_unit if simds is not None and per_unit else None


_RULES: dict[str, tuple[Rule, str]] = {
    "gfx_target_version": (_as_is("gfx_target_version"), "gfx_target_version as the KFD counts: 110501 is gfx1151."),
    "compute_units": (_units, "Compute units (of this partition, on a split card)."),
    "simd_count": (_as_is("simd_count"), "SIMDs."),
    "simd_per_cu": (_as_is("simd_per_cu"), "SIMDs of a compute unit."),
    "simd_arrays": (_as_is("array_count"), "Shader arrays."),
    "wavefront_size": (_as_is("wave_front_size"), "Lanes of a wavefront of compute code: 32 or 64."),
    "max_waves_per_simd": (_as_is("max_waves_per_simd"), "Wavefronts that a SIMD holds."),
    "max_clock_mhz": (_as_is("max_engine_clk_fcompute"), "Highest engine clock, in MHz."),
    "vendor_id": (_as_is("vendor_id"), "PCI vendor id; 4098 is AMD."),
    "device_id": (_as_is("device_id"), "PCI device id."),
    "num_xcc": (_as_is("num_xcc"), "Accelerated compute cores (chiplets) of this node."),
    "sdma_engines": (_as_is("num_sdma_engines"), "SDMA copy engines."),
    "compute_queues": (_as_is("num_cp_queues"), "Hardware compute queues."),
    "kfd_fw_version": (_as_is("fw_version"), "Compute microcode (MEC) version."),
    "sdma_fw_version": (_as_is("sdma_fw_version"), "SDMA microcode version."),
    "capability": (_as_is("capability"), "Capability bits of the node."),
}

_NULLABLE: dict[str, tuple[str, str]] = {
    "cwsr_size_bytes": ("cwsr_size", "Context save area that the driver reserves; null where it does not say."),
    "ctl_stack_size_bytes": ("ctl_stack_size", "Control stack within that area; null where it does not say."),
}


@collector(
    "kfd",
    facts={
        "kfd.topology": "The KFD shows a topology: amdgpu is loaded with compute support.",
        "kfd.nodes_hidden": "KFD nodes that may not be read from here (a container that was not given the device).",
        "gpu.*.source_node": "KFD node number.",
        "gpu.*.gfx_target": "gfx target, from the KFD's gfx_target_version.",
        **{f"gpu.*.{name}": text for name, (_, text) in _RULES.items()},
        **{f"gpu.*.{name}": text for name, (_, text) in _NULLABLE.items()},
        "gpu.*.lds_bytes": "Local data share of a compute unit.",
        "gpu.*.pci_slot": "PCI slot: domain:bus:device.function.",
        "gpu.*.render_minor": "Number of its /dev/dri/renderD node; null for none.",
        "gpu.*.unique_id_present": "The driver gives it a unique id (which is not kept).",
        "gpu.*.is_apu": "It shares the processor's memory; null where that cannot be told.",
        "gpu.*.partition": "Position among the KFD nodes of its card; 0 where the card is not split.",
        "gpu.*.partitions": "KFD nodes of its card: 1, or more where the card is split (DPX, QPX, CPX …).",
        "gpu.*.kfd_memory_bytes": "Device memory of this node; null where it is not listed.",
        "gpu.*.memory_width_bits": "Width of the memory bus; null where it is not listed.",
        "gpu.*.memory_clock_max_mhz": "Highest memory clock; null where it is not listed.",
        "gpu.*.atomics": "PCIe atomics to the processor work; null for an APU, and where the link is not listed.",
        "gpu.*.xgmi_links": "Links to other GPUs over XGMI (Infinity Fabric).",
    },
    time_limit_s=4.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """State what every GPU node's properties say."""
    try:
        topology = read_topology(root)
    except ReadError as error:
        facts.gap("gpu.*", error.message, source=NODES)
        facts.gap("kfd.topology", error.message, source=NODES)
        return
    facts.put("kfd.topology", topology.present, source=NODES)
    facts.put(
        "kfd.nodes_hidden",
        list(topology.hidden),
        source=NODES,
        raw="; ".join(f"node {node}: {reason}" for node, reason in topology.hidden.items()),
    )
    for gpu in topology.gpus:
        _describe(gpu, facts)
        _memory(root, gpu, facts)
        _links(root, gpu, facts)


def gfx_name(version: int) -> str:
    """Return the gfx target of a ``gfx_target_version``: 90010 is gfx90a, 110501 gfx1151."""
    major, minor, stepping = version // 10000, version // 100 % 100, version % 100
    return f"gfx{major}{minor:x}{stepping:x}"


def _describe(gpu: GpuNode, facts: FactSink) -> None:
    source = f"{gpu.path}/properties"
    own = f"gpu.{gpu.index}"
    properties = gpu.properties
    facts.put(f"{own}.source_node", gpu.node, source=gpu.path)
    version = properties.get("gfx_target_version", 0)
    if version > 0:
        facts.put(f"{own}.gfx_target", gfx_name(version), source=source, raw=f"gfx_target_version {version}")
    for name, (rule, _) in _RULES.items():
        value = rule(properties)
        if value is None:
            facts.gap(f"{own}.{name}", "the KFD does not state it", source=source)
        else:
            facts.put(f"{own}.{name}", value, source=source)
    for name, (given, _) in _NULLABLE.items():
        facts.put(f"{own}.{name}", properties.get(given), source=source)
    if "lds_size_in_kb" in properties:
        facts.put(f"{own}.lds_bytes", properties["lds_size_in_kb"] * 1024, source=source)
    facts.put(f"{own}.pci_slot", gpu.slot, source=source, raw=f"location_id {properties.get('location_id')}")
    facts.put(f"{own}.render_minor", gpu.render_minor, source=source)
    facts.put(f"{own}.unique_id_present", bool(properties.get("unique_id")), source=source)
    facts.put(f"{own}.partition", gpu.partition, source=source)
    facts.put(f"{own}.partitions", gpu.partitions, source=source)
    facts.put(f"{own}.is_apu", is_apu(properties), source=f"{source}, the gfx-target table")


def is_apu(properties: dict[str, int]) -> bool | None:
    """Tell an APU by its device id, else by its gfx target, else by processor cores in its node; None for unknown."""
    from rocmend.core import gfx

    target = gfx.from_kfd_version(properties.get("gfx_target_version", 0))
    if target is not None:
        device = f"0x{properties.get('device_id', 0):04x}"
        kinds = {product.is_apu for product in gfx.products(target.name) if device in product.device_ids}
        return kinds.pop() if len(kinds) == 1 else target.is_apu
    return True if properties.get("cpu_cores_count", 0) > 0 else None


def _memory(root: Root, gpu: GpuNode, facts: FactSink) -> None:
    """Read the memory banks; the first one is the device's own."""
    folder = f"{gpu.path}/mem_banks"
    bank: dict[str, int] = {}
    source = folder
    try:
        names = root.list_dir(folder)
        if names:
            source = f"{folder}/{names[0]}/properties"
            bank = parse_properties(root.read_text(source))
    except ReadError:
        bank = {}
    facts.put(f"gpu.{gpu.index}.kfd_memory_bytes", bank.get("size_in_bytes"), source=source)
    facts.put(f"gpu.{gpu.index}.memory_width_bits", bank.get("width") or None, source=source)
    facts.put(f"gpu.{gpu.index}.memory_clock_max_mhz", bank.get("mem_clk_max") or None, source=source)


def _links(root: Root, gpu: GpuNode, facts: FactSink) -> None:
    """Read the links: type 2 is PCIe, 11 XGMI; the one to node 0 leads to the processor."""
    folder = f"{gpu.path}/io_links"
    atomics: bool | None = None
    xgmi = 0
    source = folder
    try:
        for name in root.list_dir(folder):
            link = parse_properties(root.read_text(f"{folder}/{name}/properties"))
            xgmi += link.get("type") == 11 and link.get("node_to") != 0
            if atomics is None and link.get("type") in {2, 11} and _to_processor(root, link):
                atomics = not link.get("flags", 0) & _NO_ATOMICS
                source = f"{folder}/{name}/properties"
    except ReadError:
        atomics = None
    if is_apu(gpu.properties):  # the driver flags them off there, and no PCIe link is in the way
        atomics = None
    facts.put(f"gpu.{gpu.index}.atomics", atomics, source=source)
    facts.put(f"gpu.{gpu.index}.xgmi_links", xgmi, source=folder)


def _to_processor(root: Root, link: dict[str, int]) -> bool:
    path = f"{NODES}/{link.get('node_to', 0)}/properties"
    try:
        return parse_properties(root.read_text(path)).get("cpu_cores_count", 0) > 0
    except ReadError:
        return link.get("node_to") == 0
