"""Vulkan driver and layer manifests, and what ``vulkaninfo --summary`` prints.

Source: LoaderDriverInterface.md and LoaderLayerInterface.md in
https://github.com/KhronosGroup/Vulkan-Loader/tree/main/docs
"""

from __future__ import annotations

import posixpath
import re
from typing import Any

import msgspec

from rocmend.core.documents import MALFORMED
from rocmend.core.errors import DataError

MAX_MANIFEST_CHARS = 1 << 17

_LIBRARIES = (
    (r"libvulkan_radeon", "radv"),
    (r"amdvlk(pro)?(32|64)?\.so", "amdvlk"),
    (r"libvulkan_lvp", "lavapipe"),
    (r"libGLX_nvidia|libEGL_nvidia|nvidia|libvulkan_nouveau", "nvidia"),
    (r"libvulkan_intel", "intel"),
    (r"libvulkan_dzn", "dozen"),
)
AMD_DRIVERS = ("radv", "amdvlk", "amdgpu-pro")
"""Drivers that drive AMD hardware."""


class Icd(msgspec.Struct, frozen=True):
    """A Vulkan driver as its manifest describes it.

    Attributes:
        name: Manifest's file name without ``.json``.
        file: The manifest.
        library: Library as written: a path, or a name that the dynamic linker looks up.
        driver: radv, amdvlk, amdgpu-pro, lavapipe, nvidia, intel, dozen or other.
        api_version: Highest API version, as written.
        bits: 32 or 64.
    """

    name: str
    file: str
    library: str
    driver: str
    api_version: str
    bits: int


def _object(text: str, subject: str) -> dict[str, Any]:
    try:
        document = msgspec.json.decode(text[:MAX_MANIFEST_CHARS])
    except MALFORMED as error:
        raise DataError(subject, f"is not valid JSON: {str(error)[:120]}.") from None
    if not isinstance(document, dict):
        raise DataError(subject, "expected a JSON object.")
    return document


def parse_icd(text: str, file: str) -> Icd:
    """Read a driver manifest.

    Raises:
        DataError: Not JSON, or it names no library.
    """
    document = _object(text, file)
    icd = document.get("ICD")
    library = icd.get("library_path") if isinstance(icd, dict) else None
    if not isinstance(icd, dict) or not isinstance(library, str) or not library:
        raise DataError(file, "names no library (ICD.library_path).")
    name = posixpath.basename(file).removesuffix(".json")
    version = icd.get("api_version")
    return Icd(
        name=name,
        file=file,
        library=library[:500],
        driver=classify_library(library),
        api_version=version if isinstance(version, str) else "",
        bits=_bits(icd.get("library_arch"), name, library),
    )


def classify_library(library: str) -> str:
    """Return which driver a library is; AMD's closed one is the amdvlk library inside its own folder."""
    for pattern, driver in _LIBRARIES:
        if re.search(pattern, library):
            return "amdgpu-pro" if driver == "amdvlk" and "amdgpu-pro" in library else driver
    return "other"


def _bits(arch: object, name: str, library: str) -> int:
    """Return 32 for a driver of 32-bit programs: manifests say so since 1.0.1, and file names always did."""
    if arch in {"32", "64"}:
        return int(str(arch))
    narrow = re.search(r"i[3-6]86|32\Z", name) or re.search(r"/lib32/|/i386-linux|i686|amdvlk(pro)?32\.so", library)
    return 32 if narrow else 64


class Layer(msgspec.Struct, frozen=True):
    """An implicit layer: loaded into every Vulkan program unless its variable switches it off.

    Attributes:
        name: e.g. ``VK_LAYER_AMD_switchable_graphics_64``.
        file: The manifest.
        disabled_by: Environment variable that switches it off when set.
        enabled_by: Environment variable that it needs to be active; empty where it always is.
    """

    name: str
    file: str
    disabled_by: str
    enabled_by: str


def parse_layers(text: str, file: str) -> list[Layer]:
    """Read the layers of a layer manifest (one ``layer`` or a list ``layers``).

    Raises:
        DataError: Not JSON.
    """
    document = _object(text, file)
    single, several = document.get("layer"), document.get("layers")
    return [
        Layer(item["name"], file, _variable(item, "disable_environment"), _variable(item, "enable_environment"))
        for item in [single, *(several if isinstance(several, list) else [])][:100]
        if isinstance(item, dict) and isinstance(item.get("name"), str)
    ]


def _variable(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return str(next(iter(value), "")) if isinstance(value, dict) else ""


class Device(msgspec.Struct, frozen=True):
    """A device in ``vulkaninfo --summary``."""

    name: str
    type: str
    driver: str
    driver_info: str
    api_version: str


def parse_summary(text: str) -> list[Device]:
    """Return the devices of ``vulkaninfo --summary``, in the order in which programs see them."""
    devices: list[dict[str, str]] = []
    for line in text[: 1 << 20].splitlines():
        if re.match(r"\s*GPU\d+:\s*\Z", line):
            devices.append({})
        elif devices and (match := re.match(r"\s+(\w+)\s*=\s*(.*?)\s*\Z", line)):
            devices[-1].setdefault(match[1], match[2])
    return [
        Device(
            name=device.get("deviceName", ""),
            type=device.get("deviceType", "").removeprefix("PHYSICAL_DEVICE_TYPE_").lower(),
            driver=device.get("driverName", ""),
            driver_info=device.get("driverInfo", ""),
            api_version=device.get("apiVersion", "").split(" ", 1)[0],
        )
        for device in devices
    ]
