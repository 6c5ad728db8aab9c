"""Each GPU's device as the amdgpu driver shows it: name, memory, clocks, power, link.

Sources: https://docs.kernel.org/gpu/amdgpu/driver-misc.html and thermal.html; sysfs-bus-pci in Documentation/ABI.
"""

from __future__ import annotations

from collections.abc import Callable

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.hardware.gpus import NODES, GpuNode, device_folder, read_or_gap, read_topology
from rocmend.machine.parse.sysfs import find_marketing_name, parse_levels, parse_link_speed
from rocmend.machine.parse.system import parse_int
from rocmend.machine.root import ReadError, Root

ID_TABLES = (
    "/usr/share/libdrm/amdgpu.ids",
    "/opt/amdgpu/share/libdrm/amdgpu.ids",
    "/usr/local/share/libdrm/amdgpu.ids",
)

_NUMBERS = {
    "vram_total_bytes": ("mem_info_vram_total", "Device memory (of the whole card, on a split one)."),
    "vram_used_bytes": ("mem_info_vram_used", "Device memory in use."),
    "vram_visible_bytes": ("mem_info_vis_vram_total", "Device memory that the processor can address (resizable BAR)."),
    "gtt_total_bytes": ("mem_info_gtt_total", "System memory that the GPU may use."),
    "gtt_used_bytes": ("mem_info_gtt_used", "System memory that the GPU uses."),
    "busy_percent": ("gpu_busy_percent", "Share of time that the GPU is busy."),
    "link_width": ("current_link_width", "Lanes of the PCIe link now."),
    "link_width_max": ("max_link_width", "Lanes that the device can use."),
    "numa_node": ("numa_node", "NUMA node that the slot belongs to; -1 for none."),
}
_TEXTS: dict[str, tuple[str, Callable[[str], str | None], str]] = {
    "pci_device_id": ("device", str.lower, "PCI device id: 0x1586."),
    "pci_revision": ("revision", str.lower, "PCI revision: 0xc1."),
    "vbios": ("vbios_version", str, "Part number of the video BIOS."),
    "performance_level": ("power_dpm_force_performance_level", str, "Clock policy: auto, high, low, manual …"),
    "link_speed": ("current_link_speed", parse_link_speed, "Speed of the PCIe link now: 16.0 GT/s."),
    "link_speed_max": ("max_link_speed", parse_link_speed, "Speed that the device can run its link at."),
    "compute_partition": ("current_compute_partition", str, "SPX, DPX, QPX, CPX …; null where it cannot be split."),
    "memory_partition": ("current_memory_partition", str, "NPS1, NPS2, NPS4 …; null where it cannot be split."),
    "runtime_status": ("power/runtime_status", str, "active or suspended; a sleeping GPU refuses most reads."),
}
_CLOCKS = {
    "sclk_mhz": ("pp_dpm_sclk", "Engine clock now; null where no level is marked."),
    "sclk_max_mhz": ("pp_dpm_sclk", "Highest engine clock level."),
    "mclk_mhz": ("pp_dpm_mclk", "Memory clock now; null where no level is marked."),
    "mclk_max_mhz": ("pp_dpm_mclk", "Highest memory clock level."),
}


@collector(
    "drm",
    facts={
        "gpu.*.name": "Marketing name; null where no table has it.",
        **{f"gpu.*.{name}": text for name, (_, text) in _NUMBERS.items()},
        **{f"gpu.*.{name}": text for name, (_, _, text) in _TEXTS.items()},
        **{f"gpu.*.{name}": text for name, (_, text) in _CLOCKS.items()},
        "gpu.*.power_watts": "Power drawn now, in watts; null where it is not measured.",
        "gpu.*.temperature_c": "Temperature (edge sensor), in degrees Celsius; null where it is not measured.",
        "gpu.*.boot_vga": "The firmware shows the boot screen on it; null where it does not say.",
    },
    time_limit_s=4.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """State what the sysfs folder of every KFD GPU says."""
    try:
        gpus = read_topology(root).gpus
    except ReadError as error:
        facts.gap("gpu.*", error.message, source=NODES)
        return
    for gpu in gpus:
        _describe(root, gpu, device_folder(root, gpu), facts)


def _describe(root: Root, gpu: GpuNode, folder: str, facts: FactSink) -> None:
    own = f"gpu.{gpu.index}"
    problems: dict[str, str] = {}

    def state(name: str, file: str, value: object, *, raw: str = "") -> None:
        """State a fact, null where the file is absent, a gap where it could not be read."""
        path = f"{folder}/{file}"
        if path in problems:
            facts.gap(f"{own}.{name}", problems[path], source=path)
        else:
            facts.put(f"{own}.{name}", value, source=path, raw=raw)

    if not root.exists(folder):
        facts.gap(f"{own}.vram_total_bytes", "its PCI device is not visible here", source=folder)
    for name, (file, _) in _NUMBERS.items():
        state(name, file, parse_int(read_or_gap(root, f"{folder}/{file}", problems)))
    for name, (file, convert, _) in _TEXTS.items():
        text = read_or_gap(root, f"{folder}/{file}", problems)
        state(name, file, convert(text) if text else None, raw=text or "")
    for name, (file, _) in _CLOCKS.items():
        text = read_or_gap(root, f"{folder}/{file}", problems)
        levels = parse_levels(text or "")
        state(name, file, levels.max_mhz if "max" in name else levels.current_mhz, raw=text or "")
    boot = parse_int(read_or_gap(root, f"{folder}/boot_vga", problems))
    state("boot_vga", "boot_vga", None if boot is None else bool(boot))
    _sensors(root, folder, own, facts)
    _name(root, gpu, folder, facts)


def _sensors(root: Root, folder: str, own: str, facts: FactSink) -> None:
    """Read power (microwatts) and temperature (thousandths of a degree) of the device's first hwmon."""
    problems: dict[str, str] = {}
    try:
        monitors = root.glob(f"{folder}/hwmon", "hwmon*")
    except ReadError:
        monitors = []
    source = monitors[0] if monitors else f"{folder}/hwmon"
    power = temperature = None
    if monitors:
        for file in ("power1_average", "power1_input"):
            value = parse_int(read_or_gap(root, f"{source}/{file}", problems))
            if value is not None:
                power = round(value / 1e6, 1)
                break
        value = parse_int(read_or_gap(root, f"{source}/temp1_input", problems))
        temperature = None if value is None else round(value / 1000, 1)
    facts.put(f"{own}.power_watts", power, source=source)
    facts.put(f"{own}.temperature_c", temperature, source=source)


def _name(root: Root, gpu: GpuNode, folder: str, facts: FactSink) -> None:
    """Name the GPU: by its own EEPROM, libdrm's table, or the product table."""
    key = f"gpu.{gpu.index}.name"
    problems: dict[str, str] = {}
    own = read_or_gap(root, f"{folder}/product_name", problems)
    if own:
        facts.put(key, own, source=f"{folder}/product_name")
        return
    device = gpu.properties.get("device_id") or parse_int(read_or_gap(root, f"{folder}/device", problems)) or 0
    revision = parse_int(read_or_gap(root, f"{folder}/revision", problems))
    for table in ID_TABLES:
        text = read_or_gap(root, table, problems) if revision is not None else None
        name = find_marketing_name(text, device, revision or 0) if text else None
        if name:
            facts.put(key, name, source=table, raw=f"{device:04X}, {revision:02X}, {name}")
            return
    facts.put(key, _from_product_table(gpu, device, revision), source="the product table")


def _from_product_table(gpu: GpuNode, device: int, revision: int | None) -> str | None:
    from rocmend.core import gfx

    target = gfx.from_kfd_version(gpu.properties.get("gfx_target_version", 0))
    if target is None or not device:
        return None
    simds, per_unit = gpu.properties.get("simd_count", 0), gpu.properties.get("simd_per_cu", 0)
    units = simds // per_unit if per_unit and gpu.partitions == 1 else None
    device_id = f"0x{device:04x}" if revision is None else f"0x{device:04x}:{revision:02x}"
    product = gfx.product_for(target.name, device_id=device_id, compute_units=units)
    return None if product is None else f"AMD {product.name}"
