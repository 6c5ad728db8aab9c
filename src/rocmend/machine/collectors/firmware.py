"""Firmware that runs on each GPU, and the package it came from.

Sources: drivers/gpu/drm/amd/amdgpu/amdgpu_kms.c (amdgpu_firmware_info, in debugfs, for root only) and amdgpu_ucode.c
(fw_version in sysfs, for everybody; MES since Linux 6.8).
"""

from __future__ import annotations

from collections.abc import Iterator

from rocmend.machine.facts import FactSink, collector
from rocmend.machine.hardware.gpus import NODES, GpuNode, device_folder, read_topology
from rocmend.machine.parse.sysfs import MES_VERSION_MASK, firmware_name, parse_firmware_info
from rocmend.machine.parse.system import parse_int
from rocmend.machine.root import ReadError, Root
from rocmend.machine.software.packages import installed_packages

DEBUGFS = "/sys/kernel/debug/dri"
PACKAGES = (
    "linux-firmware-amdgpu",
    "amd-gpu-firmware",
    "amdgpu-firmware",
    "firmware-amd-graphics",
    "linux-firmware-amd-graphics",
    "linux-firmware",
)
"""Packages of AMD's GPU firmware, the more specific first: Arch, Fedora, Debian, Ubuntu from 25.10, everywhere."""


@collector(
    "firmware",
    facts={
        "gpu.*.firmware": "Firmware versions by name: mes, mes_kiq, mec, rlc, sdma0, smc, vcn …",
        "gpu.*.mes_version": "Version of the MES scheduler firmware (0x80, 0x83 …); null where the GPU has none.",
        "firmware.package_version": "Version of the package with AMD's GPU firmware; null where none is installed.",
        "firmware.package": "Name of that package.",
    },
    time_limit_s=6.0,
)
def collect(root: Root, facts: FactSink) -> None:
    """Read firmware versions from sysfs and debugfs, and the package database."""
    packages, source = installed_packages(root)
    name = next((item for item in PACKAGES if item in packages), None)
    facts.put("firmware.package", name, source=source or "package databases")
    facts.put(
        "firmware.package_version", packages.get(name or ""), source=source or "package databases", raw=name or ""
    )
    try:
        gpus = read_topology(root).gpus
    except ReadError as error:
        facts.gap("gpu.*", error.message, source=NODES)
        return
    for gpu in gpus:
        _versions(root, gpu, facts)


def _versions(root: Root, gpu: GpuNode, facts: FactSink) -> None:
    own = f"gpu.{gpu.index}"
    versions, sources, problem = _from_sysfs(root, gpu)
    more, debug_source, debug_problem = _from_debugfs(root, gpu)
    versions = more | versions
    sources += [debug_source] if more else []
    if not versions:
        reason = problem or debug_problem or "the driver shows no firmware versions to this user"
        facts.gap(f"{own}.firmware", reason, source=f"{DEBUGFS}, fw_version")
        facts.gap(f"{own}.mes_version", reason, source=f"{DEBUGFS}, fw_version")
        return
    source = ", ".join(sources)
    facts.put(f"{own}.firmware", versions, source=source)
    mes = versions.get("mes", 0)
    if mes or more or _uses_no_mes(gpu):
        version = mes & MES_VERSION_MASK or None
        facts.put(f"{own}.mes_version", version, source=source, raw=f"0x{mes:08x}" if mes else "")
    else:  # a kernel that does not list MES in sysfs, and no debugfs
        facts.gap(f"{own}.mes_version", debug_problem or "this kernel does not show it in sysfs", source=DEBUGFS)


def _uses_no_mes(gpu: GpuNode) -> bool:
    """Whether the GPU is older than gfx11, which brought the MES scheduler."""
    return 0 < gpu.properties.get("gfx_target_version", 0) < 110000


def _from_sysfs(root: Root, gpu: GpuNode) -> tuple[dict[str, int], list[str], str]:
    folder = f"{device_folder(root, gpu)}/fw_version"
    found: dict[str, int] = {}
    try:
        names = root.list_dir(folder)
    except ReadError as error:
        return {}, [], error.message
    for file in names:
        name = firmware_name(file)
        if name is None:
            continue
        try:
            version = parse_int(root.read_or_none(f"{folder}/{file}", max_bytes=64))
        except ReadError:
            continue
        if version:
            found[name] = version
    return found, [folder] if found else [], ""


def _from_debugfs(root: Root, gpu: GpuNode) -> tuple[dict[str, int], str, str]:
    """Read amdgpu_firmware_info; its folder is called after the slot, the render node or, on old kernels, the card."""
    problem = ""
    for folder in _debug_folders(root, gpu):
        path = f"{folder}/amdgpu_firmware_info"
        try:
            text = root.read_or_none(path)
        except ReadError as error:
            problem = error.message
            continue
        if text:
            return parse_firmware_info(text), path, ""
    return {}, "", problem


def _debug_folders(root: Root, gpu: GpuNode) -> Iterator[str]:
    yield f"{DEBUGFS}/{gpu.slot}"
    if gpu.render_minor is not None:
        yield f"{DEBUGFS}/{gpu.render_minor}"
    try:
        for folder in root.glob(DEBUGFS, "[0-9]*"):
            if gpu.slot in (root.read_or_none(f"{folder}/name", max_bytes=4096) or ""):  # amdgpu dev=0000:c5:00.0 …
                yield folder
    except ReadError:
        return
