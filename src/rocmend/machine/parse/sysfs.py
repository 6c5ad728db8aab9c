"""Files of the amdgpu driver in sysfs and debugfs, and libdrm's table of names.

Sources: https://docs.kernel.org/gpu/amdgpu/thermal.html (pp_dpm_*); drivers/gpu/drm/amd/amdgpu/amdgpu_kms.c
(amdgpu_firmware_info) and amdgpu_ucode.c (fw_version); libdrm's data/amdgpu.ids.
"""

from __future__ import annotations

import re

import msgspec

from rocmend.machine.parse.system import parse_int

MAX_CHARS = 1 << 20

_LEVEL = re.compile(r"^[ \t]*(\d{1,3}|S):[ \t]*(\d{1,7})[ \t]*M[Hh]z[ \t]*(\*?)", re.MULTILINE)
_FIRMWARE = re.compile(
    r"^[ \t]*([A-Z][A-Z0-9_ ]{0,30}?) feature version:[^,\n]{0,40},"
    r"(?: program: \d{1,10},)? firmware version: (0x[0-9a-fA-F]{1,8}|\d{1,10})",
    re.MULTILINE,
)
_SYSFS_NAMES = {"sdma": "sdma0", "sdma2": "sdma1"}
MES_VERSION_MASK = 0xFFF


class Levels(msgspec.Struct, frozen=True):
    """Clock levels of a ``pp_dpm_*`` file.

    Attributes:
        current_mhz: The level marked with a star; None where none is.
        max_mhz: The highest level; None for an empty file.
    """

    current_mhz: int | None
    max_mhz: int | None


def parse_levels(text: str) -> Levels:
    """Read ``1: 1100Mhz *`` lines; the line S is the deep-sleep clock."""
    current = None
    highest = None
    for name, clock, star in _LEVEL.findall(text[:MAX_CHARS]):
        value = int(clock)
        if star:
            current = value
        if name != "S":
            highest = value if highest is None else max(highest, value)
    return Levels(current, highest)


def parse_firmware_info(text: str) -> dict[str, int]:
    """Return the firmware versions of amdgpu_firmware_info, by lower-case name: ``RLC SRLC`` is rlc_srlc.

    Firmware that is not loaded has version 0 and is left out.
    """
    found: dict[str, int] = {}
    for name, version in _FIRMWARE.findall(text[:MAX_CHARS]):
        number = parse_int(version)
        if number:
            found.setdefault(name.strip().lower().replace(" ", "_"), number)
    return found


def firmware_name(file_name: str) -> str | None:
    """Return the name used here of a file in ``fw_version/``: ``mes_fw_version`` is mes, ``sdma2_fw_version`` sdma1."""
    base = file_name.removesuffix("_fw_version")
    return None if base == file_name else _SYSFS_NAMES.get(base, base)


def parse_link_speed(text: str) -> str | None:
    """Return ``16.0 GT/s`` of ``16.0 GT/s PCIe``; None for an unknown speed."""
    match = re.match(r"\d{1,3}(?:\.\d)? GT/s", text.strip())
    return match[0] if match else None


def find_marketing_name(table: str, device_id: int, revision: int) -> str | None:
    """Return the name that libdrm's amdgpu.ids gives a device id and revision, or None."""
    pattern = rf"^{device_id:04X},[ \t]*{revision:02X},[ \t]*([^\n]{{1,200}})$"
    match = re.search(pattern, table[:MAX_CHARS], re.MULTILINE | re.IGNORECASE)
    return match[1].strip() if match else None
