"""Databases of Linux package managers, as files where the manager keeps them as text.

Sources: dpkg(1), https://www.debian.org/doc/debian-policy/ch-controlfields.html; pacman keeps one folder a package.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

PREFIXES = (
    # ROCm, by AMD's names (the amdrocm packages are TheRock's)
    *("rocm", "amdrocm", "hip", "hsa-rocr", "hsa-amd", "rocr", "roct", "rocblas", "rocfft", "rocrand", "rocsolver"),
    *(
        "rocsparse",
        "rocwmma",
        "rccl",
        "rocprof",
        "miopen",
        "migraphx",
        "composablekernel",
        "composable-kernel",
        "comgr",
    ),
    *("amd-smi", "amdsmi", "amdgpu"),
    # ROCm, by the names of Debian and Fedora
    *("libamdhip64", "libhsa-runtime", "libhsakmt", "libhip", "libroc", "libmiopen", "libamd-comgr", "librccl"),
    # Vulkan, firmware, and programs with a ROCm build of their own
    *("amdvlk", "mesa-vulkan", "vulkan-radeon", "vulkan-amdgpu", "linux-firmware", "firmware-amd"),
    *("python-pytorch", "python3-torch", "python3-pytorch", "ollama", "llama-cpp", "llama.cpp"),
)
EXACT = frozenset({"mesa", "vulkan-icd-loader", "vulkan-loader", "vulkan-tools", "libvulkan1"})


def wanted(name: str) -> bool:
    """Whether a package's version matters for machine learning on an AMD GPU."""
    return name.startswith(PREFIXES) or name in EXACT


def parse_dpkg_status(data: bytes) -> dict[str, str]:
    """Return the wanted packages that are installed, with their versions, of ``/var/lib/dpkg/status``."""
    found: dict[str, str] = {}
    for paragraph in data.split(b"\n\n"):
        start = paragraph.lstrip(b"\n")
        if not start.startswith(b"Package: "):
            continue
        name = start[9 : start.find(b"\n")].decode(errors="replace").strip()
        if not wanted(name) or b"\nStatus: install ok installed" not in start:
            continue
        at = start.find(b"\nVersion: ")
        if at >= 0:
            end = start.find(b"\n", at + 1)
            found[name] = start[at + 10 : end if end >= 0 else None].decode(errors="replace").strip()
    return found


def parse_pacman_folders(names: Iterable[str]) -> dict[str, str]:
    """Return the wanted packages of the folder names in ``/var/lib/pacman/local``: ``rocm-core-6.4.1-1``."""
    found: dict[str, str] = {}
    for entry in names:
        parts = entry.rsplit("-", 2)
        if len(parts) == 3 and wanted(parts[0]):
            found[parts[0]] = f"{parts[1]}-{parts[2]}"
    return found


def parse_rpm_list(text: str) -> dict[str, str]:
    """Return the wanted packages of ``rpm -qa``, queried for a line of name, space, version-release each."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        name, _, version = line.strip().partition(" ")
        if version and wanted(name):
            found[name] = version
    return found


def upstream_version(version: str) -> str:
    """Return a distro version without epoch and revision: ``24.2.8`` of ``1:24.2.8-1ubuntu1~24.04.1``."""
    match = re.match(r"(?:\d+:)?(\d[\d.]*\d|\d)", version)
    return match[1] if match else version
